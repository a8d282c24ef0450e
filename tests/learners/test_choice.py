"""A choice among learners: what it consists of, how its models are stored, and what it refuses."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from decision_stump import DecisionStump
from learner_contract import clouds
from nearest_centroid import NearestCentroid

from ckcv_ray import Execution, GaussianSVM, InputError, Study, Task, run
from ckcv_ray.core.measures import Kind, Output
from ckcv_ray.learners.base import ALL, ZOO
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.ensemble import Ensemble, Member, from_arrow, to_arrow
from ckcv_ray.study.problem import Problem

SVM = GaussianSVM(C=(0.1, 1.0), gamma=(0.1, 1.0, 10.0))
CENTROID, STUMP = NearestCentroid((0.5, 2.0)), DecisionStump()
CHOICE = Choice((SVM, CENTROID, STUMP))
TASK = clouds(40, 2)
EVERY = np.arange(40)
TRAIN, SCORE = EVERY[:30], EVERY[30:]


@dataclass(frozen=True)
class Binary(DecisionStump):
    """A learner of two classes alone."""

    kinds = frozenset({Kind.BINARY})


def models(choice: Choice = CHOICE) -> list[Any]:
    """A model of every setting."""
    block = choice.trainer.prepare(choice.trainer.share(TASK), TRAIN, SCORE)
    every = [(block.fit(path, length), length) for path, length in enumerate(choice.space.lengths)]
    return [fits.model(step) for fits, length in every for step in range(length)]


def ensemble(of: list[Any]) -> Ensemble:
    return Ensemble(tuple(Member(3, i, model, (0, 0), (5, 5)) for i, model in enumerate(of)))


def test_a_learner_of_another_kind_is_refused_by_its_name() -> None:
    two = Binary()
    assert Choice((CENTROID, two), ("mine", "other")).kinds == {Kind.BINARY}
    assert CHOICE.kinds == Choice((CENTROID, STUMP)).kinds == {Kind.BINARY, Kind.MULTICLASS}
    with pytest.raises(
        InputError, match=r"learner mine is for two classes, and .* has 3 classes \(0, 1, 2\): leave it out"
    ):
        Problem.of(Study(learner=Choice((two, CENTROID), ("mine", "other"))), clouds(60, 3))


def test_scores_rank_if_those_of_every_learner_do() -> None:
    assert Output.RANK not in CHOICE.outputs
    assert Choice((SVM, GaussianSVM()), ("a", "b")).outputs == {Output.RANK}
    study = Study(learner=CHOICE).replace(certify="holdout", claim="auc")
    with pytest.raises(InputError, match="needs scores that order the rows, and learner centroid gives none"):
        Problem.of(study, TASK)


def test_one_class_can_be_named_twice_by_labels() -> None:
    twice = Choice((SVM, replace(SVM, class_weight="balanced")), ("equal", "balanced"))
    assert [model.label for model in models(twice)] == ["equal"] * 6 + ["balanced"] * 6
    assert twice.codec.columns(TASK).names[:3] == ["learner", "equal.C", "equal.gamma"]


def test_advice_is_that_of_each_learner_and_memory_that_of_one_at_a_time() -> None:
    assert CHOICE.trainer.convergence_advice == "svm: raise max_iter or narrow the grid; stump: there is none"
    assert CHOICE.trainer.memory(100, 50, 3) == max(one.trainer.memory(100, 50, 3) for one in CHOICE.learners)


def forged(change: Any) -> pa.Table:
    table = to_arrow(ensemble([models()[i] for i in (0, 7, 12)]), CHOICE, TASK)
    change(rows := table.to_pylist())
    return pa.Table.from_pylist(rows, schema=pa.schema([*table.schema]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].update({"learner": "no"}), "learner 'no' is none of svm, centroid, stump"),
        (lambda rows: rows[1].update({"svm.C": 1.0}), "svm.C has a value in a row of centroid"),
        (lambda rows: rows[0].update({"svm.offset": None}), "svm.offset has empty cells"),
        (lambda rows: rows[1].update({"centroid.scale": [None, 1.0, 1.0]}), "centroid.scale has empty cells"),
        (lambda rows: rows[2].update({"k": None}), "k has empty cells"),
    ],
)
def test_a_table_with_cells_of_another_learner_or_without_its_own_is_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        from_arrow(forged(change), CHOICE, TASK)


OF_ALL = Study.paper(learner=ALL, k=(3,), n_splits=2)


def noise(n: int, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    return Task.of(rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % 2))


def names_of(study: Study) -> tuple[str, ...]:
    assert isinstance(study.learner, Choice)
    return study.learner.names


@pytest.mark.parametrize("n", sorted({rows for rows in ZOO.values() if rows < 10**6}))
def test_a_learner_is_left_out_of_tables_larger_than_it_is_for(n: int) -> None:
    for rows in (n, n + 1):
        kept = names_of(Problem.of(OF_ALL, noise(rows)).study)
        assert kept == tuple(name for name, most in ZOO.items() if rows <= most)
    assert len(kept) >= 2


def test_it_is_a_study_like_any_whose_folder_names_the_learners_whatever_the_labels_are() -> None:
    assert Study.from_json(OF_ALL.to_json()) == OF_ALL == Study.paper(**OF_ALL.options())
    changed = OF_ALL.replace(C=(1.0,), seed=3)
    assert changed == Study.paper(learner=ALL, k=(3,), n_splits=2, C=(1.0,), seed=3)
    assert changed.options()["learner"] == ALL
    canonical, other = (Problem.of(OF_ALL, noise(60, seed)).study for seed in (0, 1))
    assert canonical == other
    assert canonical.options()["learner"] == ",".join(ZOO)
    assert canonical.learner.most_rows is None


def test_the_simplest_of_equals_wins() -> None:
    """A column that tells nothing: nothing is better than the commonest class, and some are as good."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 1)), (rng.random(60) < 0.1).astype(int)
    study = Study.paper(learner=ALL, k=(3,), n_splits=2, param=["n_estimators=5", "boosting.max_iter=2"])
    result = run(study, X, y, execution=Execution("serial"))
    assert result.setting["learner"] == next(iter(ZOO)) == "constant"
