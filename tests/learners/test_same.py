"""Whether two models are the same in content: one unit in the last place of a number is, more is not."""

from typing import Any

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from learner_contract import clouds
from moved import last_place, more, moved
from untidy import untidy

from ckcv_ray import Study
from ckcv_ray.core.arrays import agree
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.choice import Choice
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Roles, Task

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
    problem = Problem.of(Study(learner=learner), task) if task.classes else None
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
