"""Whether two models are the same in content: one unit in the last place of a number is, more is not."""

from typing import Any

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from learner_contract import ROUNDING, check_rounding
from untidy import untidy

from ckcv_ray import Study
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import agree


def test_models_of_categories_and_of_numbers_are_the_same_within_rounding() -> None:
    """Others are compared in the contract of learners."""
    problem = Problem.of(Study(learner=LEARNERS["tree"]()), Task.from_table(untidy(80), Roles("outcome")))
    X, every = blobs(60).X, np.arange(60)
    numbers = Task.of(X, X[:, 0] ** 2, numbers=True)
    for learner, task in ((problem.learner, problem.task), (LEARNERS["ridge"]().canonical(numbers), numbers)):
        block = learner.trainer.prepare(learner.trainer.share(task), every, every)
        check_rounding(learner, task, block.fit(0, 1).model(0))


FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(FLOATS, FLOATS)
def test_numbers_agree_within_a_multiple_of_the_larger_one_or_of_one(a: float, b: float) -> None:
    close = a == b or (np.isnan(a) and np.isnan(b))
    if np.isfinite([a, b]).all():
        close |= abs(a / 2 - b / 2) <= ROUNDING / 2 * max(1.0, abs(a), abs(b))
    assert agree({"a": [a]}, {"a": [b]}, ROUNDING) == close
    assert agree(a, b) == (a == b or (np.isnan(a) and np.isnan(b)))


DIFFERENT: list[tuple[Any, Any]] = [
    ([1, 2], [1, 2, 3]),
    ({"a": 1}, {"b": 1}),
    (10**10, 10**10 + 1),
    (np.arange(3), np.arange(3.0)),
    (b"a\0", b"a"),
    ("1", 1),
    (np.zeros(2), np.zeros((2, 1))),
    (np.zeros(2, [("a", "f8")]), np.zeros(2, [("b", "f8")])),
    (np.float16(1.0), 1.001),
    (None, 0),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_structure_words_and_integers_have_to_be_equal(a: Any, b: Any) -> None:
    for one, other in ((a, b), (b, a)):
        assert agree(one, one, ROUNDING)
        assert not agree(one, other, ROUNDING)
