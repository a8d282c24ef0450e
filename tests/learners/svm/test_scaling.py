"""Standardisation, against scikit-learn and on constant columns."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from ckcv_ray.learners.svm.problem import fit_scaling


def ordinary(seed, n=50, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-4, 5, size=d) + rng.normal(size=d)


def test_matches_scikit_learn_on_the_rows_it_saw_and_on_others():
    X, others = ordinary(0), ordinary(1)
    baseline = StandardScaler().fit(X)
    scaling = fit_scaling(X)
    np.testing.assert_allclose(scaling.centre, baseline.mean_, rtol=1e-12)
    np.testing.assert_allclose(scaling.scale, baseline.scale_, rtol=1e-12)
    for rows in (X, others, others[:1]):
        np.testing.assert_allclose(scaling.apply(rows), baseline.transform(rows), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1 / 3, 1e-300, 1e100, 123456.789])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
def test_a_constant_column_is_centred_and_keeps_its_scale(value, rows):
    """The mean of equal numbers may be off by an ulp, and then their standard deviation is not 0."""
    X = np.column_stack([np.full(rows, value), np.arange(rows)])
    scaling = fit_scaling(X)
    assert scaling.scale[0] == 1.0
    assert np.all(np.abs(scaling.apply(X)[:, 0]) <= 1e-13 * abs(value))
    if rows > 1:
        assert scaling.scale[1] == pytest.approx(np.sqrt((rows**2 - 1) / 12))


@pytest.mark.parametrize("unit", [1e-149, 1.0, 1e149])
def test_the_unit_of_a_column_does_not_matter_to_its_scaled_values(unit):
    X = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(fit_scaling(X * unit).apply(X * unit), fit_scaling(X).apply(X), rtol=1e-9)
