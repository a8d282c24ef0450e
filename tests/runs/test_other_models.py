"""Models that are right on every row of the table and wrong elsewhere: none passes for the model of its rows.

And honest ones: fitted on another machine, their numbers differ by rounding alone.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from forgery import SERIAL, rewrite_run
from moved import last_place, moved
from sklearn.base import clone
from sklearn.tree._tree import Tree
from untidy import untidy

from ckcv_ray import Job, Study, Task, evaluate, verify
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.learners.sklearn.store import FittedEstimator, last_step
from ckcv_ray.runs.load import read_certified
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.models import FULL, make_model_table, read_full
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Roles

ANOTHER = "another processor"
TABLE = blobs(90, shift=2.0)
NEW = blobs(2000, seed=5, shift=2.0)  # rows of the same source
FAR = np.array([1e6, 0.0])
PARAM: dict[str, dict[str, Any]] = {
    "tree": {"max_depth": [None], "min_samples_leaf": [1], "criterion": ["gini"], "ccp_alpha": [0.0]},
    "forest": {"n_estimators": [1], "max_features": [1.0], "min_samples_leaf": [1]},
    "neighbors": {"n_neighbors": [1]},
}
HELD = {"k": (3,), "n_splits": 3, "certify": "holdout", "holdout_share": 0.5}


def disguise(model: FittedEstimator) -> FittedEstimator:
    """A model of the same class that knows the table by heart, and errs on most of the new rows."""
    X = np.concatenate([TABLE.X, NEW.X])
    labels = np.concatenate([model.predict(TABLE.X).label, 1 - model.predict(NEW.X).label])
    estimator = clone(model.estimator)
    options, last = {"max_depth": None, "bootstrap": False, "n_neighbors": 1}, last_step(estimator)
    last.set_params(**{name: value for name, value in options.items() if name in last.get_params()})
    return FittedEstimator(model.setting, estimator.fit(X, labels), model.n_classes)


def plant(model: FittedEstimator) -> FittedEstimator:
    """A tree with one more node: above a value that no row of the table has, a leaf says the other class."""
    tree = model.estimator.tree_
    state, n = tree.__getstate__(), tree.node_count
    nodes, values = state["nodes"], state["values"]
    leaf = int(np.bincount(model.estimator.apply(NEW.X + FAR)).argmax())
    state["nodes"] = np.concatenate([nodes, nodes[[leaf, leaf]]])
    state["values"] = np.concatenate([values, values[[leaf]], values[[leaf]][..., ::-1]])
    at = state["nodes"][leaf : leaf + 1]
    at["left_child"], at["right_child"], at["feature"], at["threshold"] = n, n + 1, 0, 1e3
    planted = Tree(tree.n_features, tree.n_classes, tree.n_outputs)
    planted.__setstate__(state | {"node_count": n + 2, "max_depth": tree.max_depth + 1})
    estimator = clone(model.estimator).fit(TABLE.X, TABLE.y)
    estimator.tree_ = planted
    return FittedEstimator(model.setting, estimator, model.n_classes)


def share_otherwise(one: Any, other: Any, X: np.ndarray) -> float:
    return float(np.mean(one.predict(X).label != other.predict(X).label))


def read_models(folder: Path) -> tuple[Problem, Models]:
    problem = RunFolder(folder).problem()
    return problem, read_certified(RunFolder(folder), problem).models


def with_model(ensemble: Ensemble | None, change: Any) -> Ensemble:
    """The ensemble of a single model, which is changed."""
    assert ensemble is not None
    (member,) = ensemble.members
    return Ensemble((replace(member, model=change(member.model)),))


@pytest.mark.parametrize("there", ["", ANOTHER])
@pytest.mark.parametrize(
    ("name", "forge"),
    [("tree", disguise), ("forest", disguise), ("tree", plant), ("neighbors", disguise)],
    ids=["tree", "forest", "trigger", "neighbours"],
)
def test_a_model_that_is_right_on_the_table_and_wrong_elsewhere_is_found(
    name: str, forge: Any, there: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run_job(Job(Study.of(learner=name, param=PARAM[name], **HELD), TABLE, out), SERIAL)
    _, before = read_models(out)
    models = replace(before, refit=with_model(before.refit, forge))
    assert before.refit is not None
    assert models.refit is not None
    (honest,), (forged,) = before.refit.members, models.refit.members
    assert share_otherwise(honest.model, forged.model, TABLE.X) == 0
    assert share_otherwise(honest.model, forged.model, NEW.X + FAR * (forge is plant)) > 0.3
    rewrite_run(out, models=models, environment=there)
    found = verify(out)
    assert not found.ok
    said, *_ = found.unverified if there else found.differences
    assert said.startswith("model refit: fitted again, ")
    assert ("versions or processor are not those of the run" in said) == bool(there)


@pytest.mark.parametrize("forge", [disguise, plant])
def test_a_model_of_a_procedure_that_is_wrong_elsewhere_is_found(forge: Any, tmp_path: Path) -> None:
    out = tmp_path / "scores"
    evaluate(
        TABLE.X, TABLE.y, learner="tree", param=PARAM["tree"], resampling="kfold:3", refit="best", out=out,
        execution=SERIAL,
    )  # fmt: skip
    folder = RunFolder(out)
    problem = folder.problem()
    ensemble = read_full(folder.files, problem, problem.learner.space.setting(0, 0))
    forged = make_model_table(problem, with_model(ensemble, forge))
    folder.write_manifest(folder.execution(), {FULL: forged})
    found = verify(out)
    assert not found.ok
    assert [line.partition(":")[0] for line in found.differences] == ["model full"]


WORDS = Task.from_table(untidy(80), Roles("outcome"))
NUMBERS = Task.of(TABLE.X, 20 + 3 * TABLE.X[:, 0], numbers=True)
HONEST = {
    "svm": (Study.of(learner="svm", C=1.0, gamma=1.0, **HELD), TABLE),
    "tree": (Study.of(learner="tree", param=PARAM["tree"], **HELD), TABLE),
    "forest": (Study.of(learner="forest", param=PARAM["forest"], **HELD), TABLE),
    "neighbours": (Study.of(learner="neighbors", param=PARAM["neighbors"], **HELD), TABLE),
    "linear": (Study.of(learner="linear", **HELD), TABLE),
    "encoded": (Study.of(learner="linear", **HELD), WORDS),
    "numbers": (Study.of(learner="ridge", param={"alpha": 1.0}, clip=4.0, **HELD), NUMBERS),
    "numbers of trees": (
        Study.of(learner="tree_regressor", param={"max_depth": [2]}, clip=4.0, **HELD),
        NUMBERS,
    ),
}


@pytest.mark.parametrize("there", ["", ANOTHER])
@pytest.mark.parametrize("name", HONEST)
def test_a_model_that_differs_in_the_last_place_of_its_numbers_is_the_model(
    name: str, there: str, tmp_path: Path
) -> None:
    study, task = HONEST[name]
    out = tmp_path / "run"
    run_job(Job(study, task, out), SERIAL)
    problem, models = read_models(out)
    refit, full = (
        with_model(ensemble, lambda model, rows=rows: moved(problem.learner, rows, model, last_place))
        for ensemble, rows in ((models.refit, problem.task), (models.full, problem.every_row))
    )
    rewrite_run(out, models=replace(models, refit=refit, full=full), environment=there)
    found = verify(out)
    assert found.ok, found
    assert "5 models, fitted again: 2 not equal in every bit" in found.recomputed
