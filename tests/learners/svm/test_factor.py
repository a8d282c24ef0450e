"""Cholesky factors, their solves and downdates, against numpy."""

import numpy as np
import pytest

from ckcv_ray.learners.svm.compile import load_code
from ckcv_ray.learners.svm.newton import factorise, remove, solve

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 30)


@pytest.fixture(autouse=True)
def loaded():
    """These functions are called as they are, without a solver that loads them first."""
    load_code()


def positive_definite(m, seed=0):
    """A, its padded copy, and room for U."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(m, m + 3))
    A = half @ half.T
    padded = np.zeros((m + 2, m + 5))
    padded[:m, :m] = A
    return A, padded, np.zeros_like(padded)


@pytest.mark.parametrize("m", SIZES)
def test_solve_inverts(m):
    A, padded, U = positive_definite(m)
    factorise(padded, U, m)
    x = np.random.default_rng(1).normal(size=m)
    z = x.copy()
    solve(U, z, np.empty(m), m)
    np.testing.assert_allclose(A @ z, x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("m", SIZES[1:])
def test_a_removed_variable_leaves_the_factor_of_the_others(m):
    A, padded, U = positive_definite(m)
    for h in range(m):
        factorise(padded, U, m)
        remove(U, np.empty(m), m, h)
        R = np.triu(U[: m - 1, : m - 1])
        others = np.delete(np.arange(m), h)
        np.testing.assert_allclose(R.T @ R, A[np.ix_(others, others)], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_singular_matrix_gets_the_least_ridge_that_helps(rank):
    half = np.random.default_rng(2).normal(size=(6, rank))
    A = half @ half.T + 1e-12 * np.eye(6)
    before, U = A.copy(), np.zeros((6, 6))
    factorise(A, U, 6)
    R = np.triu(U)
    raised = np.diag(A) / np.diag(before)
    assert np.all(raised > 1)
    assert np.all(raised < 1 + 1e-3)
    assert np.all(np.isfinite(R))
    np.testing.assert_allclose(R.T @ R, np.triu(A) + np.triu(A, 1).T, atol=1e-9)
