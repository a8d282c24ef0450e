"""Whether two models are the same in content: one unit in the last place of a number is, more is not."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boosting import LIBRARIES, make
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from learner_contract import clouds
from moved import Move, last_place, more, move_json, moved
from untidy import untidy

from ckcv_ray import Study
from ckcv_ray.core.arrays import agree
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.sklearn.store import Booster
from ckcv_ray.study import Problem
from ckcv_ray.tables.task import Task
from ckcv_ray.tables.units import Roles

ROUNDING = 1e-9
TASKS = {
    "svm": blobs(60),
    "svm of three classes": clouds(60, 3),
    "svm_nystroem": blobs(60),
    "ridge": Task.of(blobs(60).X, blobs(60).X[:, 0] ** 2, numbers=True),
    "tree": blobs(60),
    "forest": blobs(60),
    "neighbors": blobs(60),
    "linear": blobs(60),
    "boosting": blobs(60),
    "tree of categories": Task.from_table(untidy(80), Roles("outcome")),
    "several": blobs(60),
}
FEW: dict[str, dict[str, Any]] = {
    "forest": {"param": {"n_estimators": [5]}},
    "boosting": {"param": {"max_iter": [5]}},
    "svm_nystroem": {"landmarks": 20},
}


def fit(name: str, task: Task) -> tuple[Any, Task, Any]:
    """The learner of a study as it is fitted, its task, and a model of all rows."""
    short = name.split()[0]
    learner = (
        Choice((LEARNERS["svm"](), LEARNERS["tree"]()))
        if short == "several"
        else LEARNERS[short](**FEW.get(short, {}))
    )
    problem = Problem.of(Study(learner=learner), task) if not task.has_numbers else None
    learner, task = (learner.canonical(task), task) if problem is None else (problem.learner, problem.task)
    every = np.arange(task.n)
    block = learner.trainer.prepare(learner.trainer.share(task), every, every)
    return learner, task, block.fit(0, 1).model(0)


@pytest.mark.parametrize("name", TASKS)
def test_one_unit_in_the_last_place_is_no_other_model_and_more_is(name: str) -> None:
    learner, task, model = fit(name, TASKS[name])
    same = learner.codec.same
    rounded, other = (moved(learner, task, model, by) for by in (last_place, more))
    assert same(model, moved(learner, task, model, lambda values: values))
    assert not same(model, rounded)
    for one, two in ((model, rounded), (rounded, model)):
        assert same(one, two, ROUNDING)
    for one, two in ((model, other), (other, model)):
        assert not same(one, two, ROUNDING)


@pytest.mark.parametrize("name", LIBRARIES)
def test_models_of_boosting_libraries_are_compared_as_others(name: str, tmp_path: Path) -> None:
    learner, task = make(name), blobs(60)
    every = np.arange(task.n)
    model = learner.trainer.prepare(learner.trainer.share(task), every, every).fit(0, 1).model(0)
    (stored,) = learner.codec.from_table(learner.codec.table([model], task), task)
    read = partial(read_booster, stored.estimator, tmp_path)
    for by, expected in ((lambda values: values, True), (last_place, True), (more, False)):
        again = type(stored)(stored.setting, read(by), stored.n_classes, foreign=True)
        assert learner.codec.same(model, again, ROUNDING) == expected
        assert learner.codec.same(again, model, ROUNDING) == expected


def read_booster(booster: Any, folder: Path, by: Move) -> Any:
    """A model of a boosting library whose leaves are moved."""
    changed = Booster(booster.estimator)
    changed.__dict__.update(booster.__dict__)
    if booster.library == "lightgbm":
        lines = booster.content.decode().splitlines()
        changed.content = "\n".join(_move_line(line, by) for line in lines).encode()
        return changed
    changed.content = b"the bytes of what is read from JSON below"
    file = folder / "model.json"
    if booster.library == "xgboost":
        content = json.loads(bytes(booster.predictor.get_booster().save_raw("json")))
        for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
            values = np.array(tree["split_conditions"], np.float32)
            tree["split_conditions"] = [float(value) for value in by(values)]
        changed.predictor = type(booster.predictor)()
        changed.predictor.load_model(bytearray(json.dumps(content).encode()))
        return changed
    booster.predictor.save_model(str(file), format="json")
    content = json.loads(file.read_text())
    for tree in content["oblivious_trees"]:
        tree["leaf_values"] = move_json(tree["leaf_values"], by)
    file.write_text(json.dumps(content))
    changed.predictor = type(booster.predictor)()
    changed.predictor.load_model(str(file), format="json")
    return changed


def _move_line(line: str, by: Move) -> str:
    name, _, values = line.partition("=")
    if name == "tree_sizes":
        return "tree_sizes=1"
    if name not in ("leaf_value", "threshold"):
        return line
    return f"{name}={' '.join(f'{by(np.float64(value)):.17g}' for value in values.split())}"


FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(FLOATS, FLOATS)
def test_numbers_agree_within_a_multiple_of_the_larger_one_or_of_one(a: float, b: float) -> None:
    close = a == b or (np.isnan(a) and np.isnan(b))
    if np.isfinite([a, b]).all():
        close |= abs(a / 2 - b / 2) <= ROUNDING / 2 * max(1.0, abs(a), abs(b))
    assert agree({"a": [a]}, {"a": [b]}, ROUNDING) == close
    assert agree(a, b) == (a == b or (np.isnan(a) and np.isnan(b)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 2], [1, 2, 3]),
        ({"a": 1}, {"b": 1}),
        (10**10, 10**10 + 1),
        (np.arange(3), np.arange(3.0)),
        (b"a\0", b"a"),
        ("a", b"a"),
        ("1", 1),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2, [("a", "f8")]), np.zeros(2, [("b", "f8")])),
        (np.float16(1.0), 1.001),
        (None, 0),
    ],
)
def test_structure_words_and_integers_have_to_be_equal(a: Any, b: Any) -> None:
    assert agree(a, a, ROUNDING)
    assert agree(b, b, ROUNDING)
    assert not agree(a, b, ROUNDING)
    assert not agree(b, a, ROUNDING)
