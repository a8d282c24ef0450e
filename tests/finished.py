"""A library of finished run folders, each made once per session: small kinds, and the acceptance cases."""

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs, draw_patients
from untidy import untidy

from ckcv_ray import Execution, Job, Study, Task, evaluate
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.roles import Roles

sys.path.append(str(Path(__file__).with_name("acceptance")))

import acceptance

SERIAL = Execution("serial")
N = 90
RNG = np.random.default_rng(np.random.SeedSequence(29))
X = RNG.normal(size=(N, 3))
LABELS = RNG.permutation(np.arange(N) % 2)
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5, seed=1)
TREE = Study.paper(
    learner="tree", param=("max_depth=2,4", "min_samples_leaf=1"), k=(3, 4), n_splits=3, seed=1
)
TREES = TREE.with_learner(
    Choice(
        (
            LEARNERS["tree"](param={"max_depth": (2, 4), "min_samples_leaf": (1,)}),
            AnyEstimator(param={"max_depth": (2, 4)}, estimator="sklearn.tree:ExtraTreeClassifier"),
        )
    )
)
AGAINST = tuple(f"better:{label}" for label in TREES.learner.by_label)  # one of them is the winner
HELD = {"certify": "holdout", "holdout_share": 0.5}
CLOUDS, PLAIN = blobs(60, seed=2), Task.of(X, LABELS)
VISITS = Task.of(X, np.repeat(LABELS[: N // 3], 3), groups=np.repeat(range(N // 3), 3))
TABLE = blobs(90, shift=2.0)
BY_HEART = {"max_depth": [None], "min_samples_leaf": [1], "criterion": ["gini"], "ccp_alpha": [0.0]}


def words() -> Task:
    """Numbers with gaps, and text."""
    gaps = np.where(RNG.random(N) < 0.1, np.nan, X[:, 0])
    table = {"size": pa.array(gaps, from_pandas=True), "town": RNG.choice(["here", "there", "nowhere"], N)}
    return Task.from_table(pa.table({**table, "outcome": np.where(LABELS, "ill", "well")}), Roles("outcome"))


def half(**options: Any) -> Study:
    return Study.of(k=(3,), n_splits=3, **HELD, **options)


RUNS = {
    "paper": (SMALL.replace(exhaustive=True), CLOUDS),
    "trees": (TREE.replace(exhaustive=True), PLAIN),
    "encoded": (TREE, words()),
    "visits": (TREE, VISITS),
    "three": (TREE, Task.of(X, np.arange(N) % 3)),
    "held": (SMALL.replace(**HELD, claim="refit,vote"), CLOUDS),
    "held vote": (TREE.replace(**HELD, claim="vote"), PLAIN),
    "held auc": (TREE.replace(**HELD, claim="auc"), PLAIN),
    "held better": (TREES.replace(**HELD, claim=("refit", *AGAINST)), VISITS),
    "patients": (
        Study.of(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=4),
        Task.from_table(draw_patients(), Roles("outcome")),
    ),
    "prices": (
        half(learner="ridge", param={"alpha": (0.1, 1.0)}, clip=4.0),
        Task.of(X, 20 + 3 * X[:, 0] + RNG.normal(size=N), numbers=True),
    ),
}
EXACT = {  # whose models are moved, or know the table by heart
    "exact tree": (half(learner="tree", param=BY_HEART), TABLE),
    "exact svm": (half(learner="svm", C=1.0, gamma=1.0), TABLE),
    "exact encoded": (half(learner="linear"), Task.from_table(untidy(80), Roles("outcome"))),
    "exact ridge": (
        half(learner="ridge", param={"alpha": 1.0}, clip=4.0),
        Task.of(TABLE.X, 20 + 3 * TABLE.X[:, 0], numbers=True),
    ),
}
KINDS = {**RUNS, **EXACT}  # to which files of tests add their own
FOLDS = {"learner": "tree,naive_bayes", "measure": "zero_one,log_loss", "resampling": "kfold:3"}
SCORED: dict[str, dict[str, Any]] = {
    "folds": FOLDS,
    "nested": {"learner": "tree", "measure": "zero_one", "select_by": "zero_one", "resampling": "nested:3:3"},
    "kept": {**FOLDS, "refit": "best", "save_predictions": True},
    "given": {"learner": "constant", "resampling": [(range(45), range(45, N)), (range(45, N), range(45))]},
    "prices scored": {
        "learner": "ridge", "measure": "clipped:2", "resampling": "holdout:0.5", "y": 10 * X[:, 0]
    },
    "scored tree": {
        "learner": "tree", "param": BY_HEART, "resampling": "kfold:3", "refit": "best",
        "X": TABLE.X, "y": TABLE.y,
    },
}  # fmt: skip


class Finished(Protocol):
    """Gives a folder: ``finished("held")``, or for an acceptance case ``finished("criteria", "b")``.

    With ``to`` it is a copy in that folder, which a test may damage; the tables of a case lie beside the
    original.
    """

    def __call__(self, kind: str, name: str = "r", *, to: Path | None = None) -> Path: ...


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The folders of the library, by kind or by the name of an acceptance case."""

    @cache
    def make(kind: str) -> Path:
        folder = tmp_path_factory.mktemp("finished")
        if kind in SCORED:
            evaluate(**{"X": X, "y": LABELS, "out": folder / "r", "execution": SERIAL} | SCORED[kind])
        elif kind in KINDS:
            run_job(Job(*KINDS[kind], folder / "r"), SERIAL)
        else:
            acceptance.make_folders(kind, folder)
        return folder

    def find(kind: str, name: str = "r", *, to: Path | None = None) -> Path:
        folder = make(kind) / name
        return folder if to is None else Path(shutil.copytree(folder, to / name))

    return find
