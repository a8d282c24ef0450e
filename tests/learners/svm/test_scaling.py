"""Standardisation: against scikit-learn, on constant columns, and without touching its input."""

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from ckcv_ray.learners.svm.problem import Scaling, fit_scaling, identity, standard

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(150))


def ordinary(seed, n=50, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-4, 5, size=d) + rng.normal(size=d)


def test_matches_scikit_learn_on_the_rows_it_saw_and_on_others():
    X, others = ordinary(0), ordinary(1)
    baseline = StandardScaler().fit(X)
    scaling = standard(X)
    np.testing.assert_allclose(scaling.centre, baseline.mean_, rtol=1e-12)
    np.testing.assert_allclose(scaling.scale, baseline.scale_, rtol=1e-12)
    for rows in (X, others, others[:1]):
        np.testing.assert_allclose(scaling.apply(rows), baseline.transform(rows), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1 / 3, 1e-300, 1e100, 123456.789])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
def test_a_constant_column_is_centred_and_keeps_its_scale(value, rows):
    """The mean of equal numbers may be off by an ulp, and then their standard deviation is not 0."""
    X = np.column_stack([np.full(rows, value), np.arange(rows)])
    scaling = standard(X)
    assert scaling.scale[0] == 1.0
    assert np.all(np.abs(scaling.apply(X)[:, 0]) <= 1e-13 * abs(value))
    if rows > 1:
        assert scaling.scale[1] == pytest.approx(np.sqrt((rows**2 - 1) / 12))


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 4)),
        elements=st.floats(-1e100, 1e100, allow_subnormal=True),
    )
)
@repeatable
def test_any_table_gives_positive_scales_and_finite_results(X):
    scaling = standard(X)
    assert scaling.centre.shape == scaling.scale.shape == (X.shape[1],)
    assert np.all(scaling.scale > 0)
    assert np.all(np.isfinite(scaling.apply(X)))


def test_identity_leaves_every_bit():
    X = ordinary(4)
    Z = identity(X.shape[1]).apply(X)
    assert np.array_equal(Z, X)
    assert not np.shares_memory(Z, X)


def test_input_may_be_read_only_and_is_left_alone():
    X = ordinary(6)
    kept = X.copy()
    X.setflags(write=False)
    scaling = standard(X)
    for part in scaling:
        part.setflags(write=False)
    Scaling(*scaling).apply(X)
    assert np.array_equal(X, kept)


@pytest.mark.parametrize("unit", [1e-149, 1.0, 1e149])
def test_the_unit_of_a_column_does_not_matter_to_its_scaled_values(unit):
    X = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(
        fit_scaling(X * unit, "standard").apply(X * unit), fit_scaling(X, "standard").apply(X), rtol=1e-9
    )
