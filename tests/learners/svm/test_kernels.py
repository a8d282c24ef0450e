"""Distances equal in every bit however they are cut, and the Gaussian kernel of them."""

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.learners.svm import kernels
from ckcv_ray.learners.svm.kernels import (
    MIN_CURVATURE,
    Complement,
    complement,
    compute_distances,
    fill_complement,
    fill_distances,
    make_complement,
)
from ckcv_ray.learners.svm.problem import DOUBLES, LANES, round_up

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(60))


def cloud(seed, n, d):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)


def same_bits(a, b):
    return a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (3, 70, 9), (70, 3, 64), (131, 67, 50), (5, 8, 300)])
def test_every_bit_is_that_of_a_plain_sum_over_the_features(n, m, d):
    A, B = cloud(1, n, d), cloud(2, m, d)
    for first, second in ((A, B), (A, A), (B, A)):
        total = np.zeros((len(first), len(second)))
        for f in range(d):
            difference = first[:, None, f] - second[None, :, f]
            total += difference * difference
        assert same_bits(compute_distances(first, second), total)
        out = np.full((len(first), round_up(len(second), DOUBLES)), np.nan)
        fill_distances(first, second, out)
        assert same_bits(out[:, : len(second)], total)
        assert np.isfinite(out).all()


@given(st.integers(0, 10**6), st.floats(-12, 6))
@repeatable
def test_the_complement_has_all_its_digits(seed, exponent):
    D = compute_distances(cloud(seed, 9, 3), cloud(seed + 1, 11, 3))
    gamma = 10.0**exponent
    np.testing.assert_allclose(complement(D, gamma), -np.expm1(-gamma * D), rtol=1e-15, atol=0)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65])
def test_both_precisions_are_filled_up_with_ones_and_agree(n):
    X = cloud(5, n, 3)
    D = np.zeros((n, round_up(n, DOUBLES)))
    fill_distances(X, X, D)
    M = Complement(np.empty_like(D), np.full((n, round_up(n, LANES)), np.nan, np.float32))
    fill_complement(D, 0.1, M)
    assert same_bits(M.double[:, :n], complement(compute_distances(X, X), 0.1))
    assert np.all(M.single[:, round_up(n, DOUBLES) :] == 1)
    assert np.all(M.single >= np.float32(MIN_CURVATURE))
    given = make_complement(M.double[:, :n])
    assert same_bits(given.single[:, :n], M.single[:, :n])
    assert same_bits(given.double[:, :n], M.double[:, :n])


@pytest.mark.parametrize("strip", [1, 7, 1 << 20])
def test_a_product_in_strips_is_that_of_the_whole(strip, monkeypatch):
    monkeypatch.setattr(kernels, "STRIP", strip)
    A, B = cloud(1, 23, 4), cloud(2, 9, 4)
    b = np.random.default_rng(0).normal(size=9)
    product = kernels.complement_product(A, B, 0.02, b)
    np.testing.assert_allclose(product, complement(compute_distances(A, B), 0.02) @ b, rtol=1e-12)
    assert kernels.complement_product(A, B[:0], 0.02, b[:0]).tolist() == [0.0] * 23
