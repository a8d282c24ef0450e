"""Solutions of the SVM, compared with the definition of the problem and with baselines."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest

from ckcv_ray.learners.base import Status
from ckcv_ray.learners.svm import path as paths
from ckcv_ray.learners.svm.kernels import compute_distances, gaussian, make_complement
from jobs.benchmarks import libsvm

TOLERANCE = 1e-3
PLENTY = 10_000_000
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)


EVERY = {"newton": paths.path, "libsvm": libsvm.path}


@pytest.fixture(params=sorted(EVERY))
def path(request):
    """A solver, or the reference, here called with K: 1 - K loses nothing at the widths used in this file."""

    def solve(K, *rest):
        M = make_complement(1.0 - K)
        for array in M:
            array.flags.writeable = False
        return libsvm.list_solutions(EVERY[request.param](M, *rest))

    solve.name = request.param
    return solve


class Problem(NamedTuple):
    K: np.ndarray
    y: np.ndarray
    K_new: np.ndarray


def problem(seed, n=60, gamma=0.5, noise=0.5, d=2):
    """A noisy exclusive or, its kernel matrix, and the kernel of 40 fresh rows."""
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(n, d)), rng.normal(size=(40, d))
    y = np.where(X[:, 0] * X[:, -1] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Problem(gaussian(compute_distances(X, X), gamma), y, gaussian(compute_distances(new, X), gamma))


class Audit(NamedTuple):
    decision: np.ndarray
    dual: float
    primal: float
    violation: float


def audit(p, solution, C):
    """Everything anew from alpha = y b, in long double and in the textbook's form of the problem."""
    K, y = p.K.astype(np.longdouble), p.y.astype(np.longdouble)
    alpha = y * solution.b
    decision = K @ (alpha * y) + solution.offset
    Q = K * np.outer(y, y)
    dual = alpha.sum() - alpha @ Q @ alpha / 2
    hinge = np.maximum(0, 1 - y * decision)
    primal = alpha @ Q @ alpha / 2 + C * hinge.sum()
    gradient = Q @ alpha - 1  # of the dual as a minimisation over alpha
    up = ((y > 0) & (alpha < C)) | ((y < 0) & (alpha > 0))
    low = ((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < C))
    violation = (-y * gradient)[up].max() - (-y * gradient)[low].min()
    return Audit(decision.astype(float), float(dual), float(primal), max(0.0, float(violation)))


def same_fit(a, b):
    arrays = np.array_equal(a.b, b.b) and np.array_equal(a.gradient, b.gradient)
    return arrays and a.offset == b.offset and (a.n_iter, a.status) == (b.n_iter, b.status)


@pytest.mark.parametrize("gamma", [0.01, 0.5, 10.0])
def test_stated_numbers_are_those_of_the_definition(path, gamma):
    p = problem(5, gamma=gamma)
    for C, solution in zip(GRID, path(p.K, p.y, GRID, TOLERANCE, PLENTY), strict=True):
        true = audit(p, solution, C)
        scale = max(1.0, true.primal)
        np.testing.assert_allclose(solution.gradient, p.K @ solution.b - p.y, atol=1e-11 * scale)
        assert solution.value == pytest.approx(-true.dual, abs=1e-11 * scale)
        assert solution.value <= 0
        assert solution.gap == pytest.approx((true.primal - true.dual) / scale, abs=1e-11)
        assert solution.violation == pytest.approx(true.violation, abs=1e-11 * scale)
        assert -1e-12 <= solution.gap <= TOLERANCE * len(p.y) * C / scale
        assert 0 <= solution.violation <= 1.1 * TOLERANCE


def test_offset_is_the_mean_over_free_vectors(path):
    p = problem(6)
    for C, solution in zip(GRID, path(p.K, p.y, GRID, TOLERANCE, PLENTY), strict=True):
        free = (solution.b != 0) & (np.abs(solution.b) < C)
        if free.any():
            assert solution.offset == pytest.approx(np.mean(p.y[free] - p.K[free] @ solution.b), abs=1e-10)
    assert free.any()


def test_a_shorter_path_is_the_beginning_of_a_longer_one_in_every_bit(path):
    p = problem(12)
    whole = path(p.K, p.y, GRID, TOLERANCE, PLENTY)
    for length in range(1, len(GRID) + 1):
        short = path(p.K, p.y, GRID[:length], TOLERANCE, PLENTY)
        assert len(short) == length
        assert all(same_fit(a, b) for a, b in zip(short, whole, strict=False))


def separable():
    p = problem(13, n=40, gamma=2.0, noise=0.0)
    return p, (1.0, 1e3, 1e4, 1e5)


def test_an_unconstrained_solution_is_that_of_every_larger_cost(path):
    p, C_values = separable()
    solutions = path(p.K, p.y, C_values, TOLERANCE, PLENTY)
    unconstrained = [np.abs(s.b).max() < C for C, s in zip(C_values, solutions, strict=True)]
    assert unconstrained[-3:] == [True] * 3, "the case must provoke it"
    for C, solution in zip(C_values[-2:], solutions[-2:], strict=True):
        assert np.array_equal(solution.b, solutions[1].b)
        assert (solution.n_iter, solution.status) == (0, Status.CONVERGED)
        alpha, margin = p.y * solution.b, p.y * audit(p, solution, C).decision
        assert np.all(margin >= 1 - 1.1 * TOLERANCE)
        assert np.all(margin[alpha > 0] <= 1 + 1.1 * TOLERANCE)
        true = audit(p, solution, C)
        assert solution.gap == pytest.approx((true.primal - true.dual) / max(1, true.primal), abs=1e-9)


def test_a_fit_that_did_not_converge_says_so_and_nothing_else_does(path):
    p = problem(16)
    kept = warnings.filters[:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solutions = path(p.K, p.y, GRID[2:], TOLERANCE, 3)
    assert not caught
    assert warnings.filters == kept
    for C, solution in zip(GRID[2:], solutions, strict=True):
        assert solution.status is Status.NOT_CONVERGED
        assert 0 < solution.n_iter <= 3
        alpha = p.y * solution.b
        assert np.all((alpha >= 0) & (alpha <= C))
        assert abs(solution.b.sum()) <= 1e-12 * C
        assert solution.violation > TOLERANCE
        assert solution.violation == pytest.approx(audit(p, solution, C).violation, rel=1e-9)


def test_a_fit_that_did_not_converge_is_not_taken_for_the_solution_of_larger_costs(path):
    p, _ = separable()
    first, second = path(p.K, p.y, (1e3, 1e4), TOLERANCE, 2)
    assert np.abs(first.b).max() < 1e3, "the case must provoke it"
    assert (second.status, second.n_iter) == (Status.NOT_CONVERGED, 2)


def test_only_the_costs_that_need_more_iterations_do_not_converge(path):
    p = problem(17)
    free = path(p.K, p.y, GRID, TOLERANCE, PLENTY)
    iterations = sorted({s.n_iter for s in free})
    cap = iterations[len(iterations) // 2]
    statuses = [s.status for s in path(p.K, p.y, GRID, TOLERANCE, cap)]
    for solution, status in zip(free, statuses, strict=True):
        if solution.n_iter != cap:
            assert status is (Status.NOT_CONVERGED if solution.n_iter > cap else Status.CONVERGED)
    assert len(set(statuses)) == 2


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_class_alone_gives_the_constant_classifier(path, label):
    p = problem(18, n=12)
    solutions = path(p.K, np.full(12, label), GRID, TOLERANCE, PLENTY)
    assert len(solutions) == len(GRID)
    for solution in solutions:
        assert isinstance(solution, libsvm.Solution)
        assert np.all(p.K_new @ solution.b + solution.offset == label)
        assert solution.status is Status.CONVERGED
        assert (solution.value, solution.violation, solution.gap) == (0, 0, 0)
        assert np.array_equal(solution.gradient, np.full(12, -label))


@pytest.mark.parametrize("n_same", [1, 2])
def test_a_class_of_a_row_or_two(path, n_same):
    p = problem(19, n=30)
    y = np.full(30, -1.0)
    y[:n_same] = 1.0
    for C, solution in zip(GRID, path(p.K, y, GRID, TOLERANCE, PLENTY), strict=True):
        assert np.isfinite(solution.offset)
        assert audit(p._replace(y=y), solution, C).violation <= 1.1 * TOLERANCE


def test_equal_rows_with_opposite_labels(path):
    """The kernel matrix is singular, and along these pairs the objective is a straight line."""
    p = problem(20, n=20)
    K = np.tile(p.K, (2, 2))
    y = np.concatenate([p.y, -p.y])
    for C, solution in zip(GRID, path(K, y, GRID, TOLERANCE, PLENTY), strict=True):
        np.testing.assert_allclose(np.abs(solution.b), C, rtol=1e-9)
        assert solution.violation <= 1.1 * TOLERANCE


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_more_rows_than_the_packed_index_was_made_for(tolerance):
    """Beyond 2048 rows the keys of the pair loop give up more bits of the gain."""
    p = problem(31, n=2200, gamma=0.3)
    M = make_complement(1.0 - p.K)
    for C, s in zip(
        (0.1, 10.0), libsvm.list_solutions(paths.path(M, p.y, (0.1, 10.0), tolerance, PLENTY)), strict=True
    ):
        assert s.status is Status.CONVERGED
        assert audit(p, s, C).violation <= tolerance * 1.001 + 1e-9
