"""A machine as a model: its decision function, row by row; the undecided; the table it is kept in."""

import numpy as np
import pytest
from machines import make_constant, make_model

from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE
from ckcv_ray.learners.ensemble import judge

N, D = 40, 3


def made(seed=0, d=D):
    X = np.random.default_rng(seed).normal(size=(N, d))
    return make_model(np.random.default_rng(seed), X), X


NEAR = [0.0, -0.0, 1e-10, -1e-10, 1e-9, -1e-9, np.nextafter(1e-9, 0)]
CLEAR = [np.nextafter(1e-9, 1), 2e-9, 1.0, 1e300]
ROW = np.zeros((1, D))


def judged(value, y):
    """Errors by class of a constant model on one row of class y."""
    return judge(make_constant(value), ROW, np.array([y], dtype=np.int32), ZERO_ONE, 2)


@pytest.mark.parametrize("value", NEAR)
def test_a_decision_within_1e_9_is_undecided_and_counts_as_an_error(value):
    found = make_constant(value).predict(ROW)
    assert found.label.tolist() == [UNDECIDED]
    assert found.score.tolist() == [value]
    assert judged(value, 0) == (1, 0)
    assert judged(value, 1) == (0, 1)


@pytest.mark.parametrize("value", CLEAR)
def test_a_decision_beyond_1e_9_counts_by_its_sign(value):
    for decision, label in ((value, 1), (-value, 0)):
        found = make_constant(decision).predict(ROW).label
        assert found.tolist() == [label]
        assert found.dtype == np.int32
        assert judged(decision, label) == (0, 0)
        assert judged(decision, 1 - label) == ((1, 0) if label else (0, 1))
