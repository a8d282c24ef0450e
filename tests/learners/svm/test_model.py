"""A machine as a model: its decision function, row by row; the undecided; the table it is kept in."""

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import bits, make_constant, make_model, task_of
from pyarrow import parquet

from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.svm import model as models
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.problem import Scaling
from ckcv_ray.learners.svm.trainer import SVMCodec

N, D = 40, 3
AWKWARD = [0.0, -0.0, 5e-324, 1e-300, 0.1, 1 / 3, -2 / 3, 1.7976931348623157e308]

seeds = st.integers(0, 2**32 - 1)


def made(seed=0, d=D):
    X = np.random.default_rng(seed).normal(size=(N, d))
    return make_model(np.random.default_rng(seed), X), X


@settings(max_examples=limit_examples(30), deadline=None)
@given(seeds)
def test_the_decision_is_the_sum_that_defines_it(seed):
    model, X = made(seed)

    def scaled(row):
        return (row - model.scaling.centre) / model.scaling.scale

    expected = [
        model.offset
        + sum(
            b * np.exp(-model.gamma * np.sum((scaled(x) - scaled(v)) ** 2))
            for b, v in zip(model.dual_coef, model.vectors, strict=True)
        )
        for x in X[:5]
    ]
    assert model.decision(X[:5]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_size_of_the_internal_block_does_not_matter(monkeypatch):
    model, X = made(2)
    whole = model.predict(X)
    for block in (1, 50, 97):
        monkeypatch.setattr(models, "BLOCK_VALUES", block)
        assert bits(model.predict(X)) == bits(whole)


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


def test_parquet_and_back_is_exact_for_awkward_numbers(tmp_path):
    X = np.resize(AWKWARD, (8, D))
    odd = SVMModel(
        C=0.1,
        gamma=5e-324,
        scaling=Scaling(np.array(AWKWARD[:D]), np.array([5e-324, 1 / 3, np.finfo(float).max])),
        support=np.arange(8),
        vectors=X,
        dual_coef=np.array(AWKWARD),
        offset=-0.0,
    )
    listed = [odd, make_constant(1 / 3)]
    file = tmp_path / "models.parquet"
    parquet.write_table(SVMCodec().table(listed, task_of(X)), file)
    assert bits(SVMCodec().from_table(parquet.read_table(file), task_of(X))) == bits(listed)
