"""Solutions of the SVM, in any box and by each way to them, compared with the definition and with baselines.

A row's box is C times the weight of its class. That weights are those of the training rows is in the contract
of learners.
"""

import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from ckcv_ray.learners.base import Status
from ckcv_ray.learners.steps import compute_weights
from ckcv_ray.learners.svm import path
from ckcv_ray.learners.svm.blocks import BLOCK, path_on_points
from ckcv_ray.learners.svm.kernels import compute_complement, compute_distances, gaussian
from ckcv_ray.learners.svm.problem import EQUAL, Options, Weights
from jobs.benchmarks import libsvm

TOLERANCE = 1e-6
PLENTY = 10_000_000
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
WEIGHTS = [Weights(1.0, 10.0), Weights(1e-3, 30.0), Weights(20.0, 0.05)]
WHOLE = {"newton": path.path, "libsvm": libsvm.path}  # of a kernel; the reference among them
BLOCKS = {f"in blocks of {n}": n for n in (2, 8, 30)}
EVERY = [*WHOLE, "newton on points", *BLOCKS]


class Posed(NamedTuple):
    """Inputs, labels, and the width and matrix of the kernel."""

    X: np.ndarray
    y: np.ndarray
    gamma: float
    K: np.ndarray


def pose(X, y, gamma):
    X.flags.writeable = y.flags.writeable = False
    return Posed(X, y, gamma, gaussian(compute_distances(X, X), gamma))


def minority(seed, n=120, share=0.08, gamma=0.5):
    """A minority of ``share`` of the rows, in the midst of the majority's edge."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, round(1000 * share))))
    y = np.where(np.arange(n) < max(2, round(n * share)), 1.0, -1.0)
    X, order = rng.normal(size=(n, 3)) + 0.8 * y[:, None], rng.permutation(n)
    return pose(X[order], y[order], gamma)


def exclusive_or(seed, n=60, gamma=0.5):
    """A noisy exclusive or."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return pose(X, y, gamma)


def balanced(y):
    return Weights(*compute_weights("balanced", ("no", "yes"), (y > 0).astype(int)).tolist())


def solve(solver, p, w=EQUAL, C_values=GRID, tolerance=TOLERANCE, max_iter=PLENTY):
    """The fits of a path; 1 - K is computed without loss, and protected from writing."""
    options = Options(C_values, tolerance, max_iter)
    if solver not in WHOLE:
        fits = path_on_points(p.X, p.gamma, p.y, options, w, BLOCKS.get(solver, BLOCK))
    else:
        M = compute_complement(p.X, p.gamma)
        for array in M:
            array.flags.writeable = False
        fits = WHOLE[solver](M, p.y, options, w)
    return libsvm.list_solutions(fits)


class Audit(NamedTuple):
    primal: float
    dual: float
    violation: float


def audit(p, solution, C, w=EQUAL):
    """Everything anew from alpha = y b, in long double, in the textbook's form with a cost for every row."""
    K, y = p.K.astype(np.longdouble), p.y.astype(np.longdouble)
    cost = np.where(p.y > 0, C * w.positive, C * w.negative)
    alpha = y * solution.b
    assert np.all((alpha >= 0) & (alpha <= cost))
    assert abs(solution.b.sum()) <= 1e-11 * np.abs(solution.b).sum()
    Q = K * np.outer(y, y)
    hinge = np.maximum(0, 1 - y * (K @ solution.b + solution.offset))
    primal, dual = alpha @ Q @ alpha / 2 + cost @ hinge, alpha.sum() - alpha @ Q @ alpha / 2
    gradient = Q @ alpha - 1  # of the dual as a minimisation over alpha
    up = ((y > 0) & (alpha < cost)) | ((y < 0) & (alpha > 0))
    low = ((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < cost))
    violation = (-y * gradient)[up].max() - (-y * gradient)[low].min()
    return Audit(float(primal), float(dual), max(0.0, float(violation)))


POSED = {
    "few of one class": minority(1, share=0.02),
    "more": minority(1, share=0.1),
    "half, wide": minority(1, share=0.4, gamma=0.01),
    "both narrow": exclusive_or(5, gamma=10.0),
}


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("w", [*WEIGHTS, EQUAL, None], ids=str)
@pytest.mark.parametrize("name", POSED)
def test_every_fit_meets_the_kkt_conditions_of_its_own_box(solver, w, name):
    p = POSED[name]
    w = w or balanced(p.y)
    for C, s in zip(GRID, solve(solver, p, w), strict=True):
        # LIBSVM sums its gradient in float32
        rounding = C * max(w) * len(p.y) * 2**-23 if solver.startswith("libsvm") else 1e-9
        room, true = 1e-9 + 1e-12 * C * max(w) * len(p.y), audit(p, s, C, w)
        assert s.status is Status.CONVERGED
        assert true.violation <= 1.001 * TOLERANCE + rounding
        assert s.violation == pytest.approx(true.violation, abs=1e-9 + room)
        assert s.value == pytest.approx(-true.dual, rel=1e-9, abs=room)
        lo, hi = w.bounds(p.y, C)
        assert true.primal - true.dual <= (1.001 * TOLERANCE + rounding) * np.sum(hi - lo) + room
        if (free := (lo < s.b) & (s.b < hi)).any():
            assert s.offset == pytest.approx(np.mean(p.y[free] - p.K[free] @ s.b), abs=1e-9 + room)


@pytest.mark.parametrize("solver", EVERY)
def test_if_all_rows_are_at_their_bounds_the_offset_is_the_middle_of_the_interval(solver):
    """With balanced weights the bounds of the classes add up to the same, except for rounding."""
    for n, share in ((90, 0.07), (100, 0.03), (119, 0.11), (97, 0.5), (100, 0.5)):
        p = minority(4, n, share)
        w, C_values = balanced(p.y), (1e-5, 1e-4, 1e-3)
        for C, s in zip(C_values, solve(solver, p, w, C_values), strict=True):
            lo, hi = w.bounds(p.y, C)
            assert np.array_equal(s.b, np.where(p.y > 0, hi, lo))
            wanted = p.y - p.K @ s.b
            middle = (wanted[p.y > 0].min() + wanted[p.y < 0].max()) / 2
            assert s.offset == pytest.approx(middle, abs=1e-9)
            assert abs(s.offset) < 0.1, "so that neither class is always predicted"


@pytest.mark.parametrize("solver", EVERY)
def test_a_solution_within_its_own_box_is_that_of_every_larger_cost(solver):
    """The lighter class may reach its bound although no variable is above C."""
    X = np.arange(12.0)[:, None]
    p = pose(X, np.where(X[:, 0] < 6, -1.0, 1.0), 0.5)
    C_values, w = (1.0, 60.0, 1e4, 1e5), Weights(0.05, 8.0)
    first, second, *others = solve(solver, p, w, C_values)
    assert first.b.min() == -0.05
    assert 0.05 * 60 > -second.b.min() > 0.05
    for C, s in zip(C_values[2:], others, strict=True):
        assert np.array_equal(s.b, second.b)
        assert (s.n_iter, s.status) == (0, Status.CONVERGED)
        assert audit(p, s, C, w).violation <= 1.001 * TOLERANCE
    stopped = solve(solver, p, w, C_values[2:], max_iter=2)
    if stopped[0].status is Status.NOT_CONVERGED:  # and so no solution, of larger costs neither
        assert (stopped[1].status, stopped[1].n_iter) == (Status.NOT_CONVERGED, 2)


@pytest.mark.parametrize("solver", EVERY)
def test_a_fit_that_did_not_converge_says_so_and_nothing_else_does(solver):
    p, kept = exclusive_or(16), warnings.filters[:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solutions = solve(solver, p, C_values=GRID[2:], max_iter=3)
    assert not caught
    assert warnings.filters == kept
    for C, s in zip(GRID[2:], solutions, strict=True):
        assert s.status is Status.NOT_CONVERGED
        assert 0 < s.n_iter <= 3
        assert s.violation > TOLERANCE
        assert s.violation == pytest.approx(audit(p, s, C).violation, rel=1e-6)


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("solver", EVERY)
def test_one_class_alone_gives_the_constant_classifier(solver, label):
    for s in solve(solver, exclusive_or(18, n=12)._replace(y=np.full(12, label))):
        assert not s.b.any()
        assert (s.offset, s.status, s.value, s.violation) == (label, Status.CONVERGED, 0, 0)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_more_rows_than_the_packed_index_was_made_for(tolerance):
    """Beyond 2048 rows the keys of the pair loop give up more bits of the gain."""
    p = exclusive_or(31, n=2200, gamma=0.3)
    for C, s in zip((0.1, 10.0), solve("newton", p, EQUAL, (0.1, 10.0), tolerance), strict=True):
        assert s.status is Status.CONVERGED
        assert audit(p, s, C).violation <= tolerance * 1.001 + 1e-9


@st.composite
def problems(draw):
    """Rows of few values, so that many are equal, with labels and weights of classes in any proportion."""
    n, d = draw(st.integers(2, 60)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    levels = draw(st.sampled_from([2, 5, 1000]))
    X = rng.integers(0, levels, (n, d)) * 10.0 ** draw(st.integers(-2, 2)) / levels
    y = np.where(rng.random(n) < draw(st.sampled_from([0.02, 0.1, 0.5, 0.9])), 1.0, -1.0)
    if draw(st.booleans()):
        y[0], y[-1] = 1.0, -1.0
    w = Weights(*(10.0 ** draw(st.floats(-3, 3)) for _ in range(2))) if draw(st.booleans()) else EQUAL
    gamma, C = 10.0 ** draw(st.floats(-6, 3)), 10.0 ** draw(st.floats(-4, 4))
    return X, y, w, gamma, (C / 30, C)


@pytest.mark.slow
@given(problems(), st.sampled_from([1e-3, 1e-6]))
@settings(derandomize=True, deadline=None, max_examples=limit_examples(300))
def test_any_problem_is_solved_to_its_tolerance(case, tolerance):
    """Not above the objective of scikit-learn's SVC at 1e-8 by more than the tolerance allows."""
    X, y, w, gamma, C_values = case
    if abs(y.sum()) == len(y):
        return
    p = pose(np.asfortranarray(X), y, gamma)
    for solver, (i, C) in product(("newton", "in blocks of 8"), enumerate(C_values)):
        s, (lo, hi) = solve(solver, p, w, C_values, tolerance)[i], w.bounds(y, C)
        assert s.status is Status.CONVERGED
        assert audit(p, s, C, w).violation <= tolerance * 1.001 + 1e-12 * C * max(w) * len(y)
        weight, options = {-1: w.negative, 1: w.positive}, {"tol": 1e-8, "max_iter": 200_000}
        machine = SVC(C=C, kernel="precomputed", class_weight=weight, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(p.K, y)
        b = np.zeros(len(y))
        b[machine.support_] = machine.dual_coef_[0]
        theirs = b @ p.K @ b / 2 - y @ b
        # what can move between the bounds gains at most the tolerance
        assert s.value <= theirs + tolerance * np.sum(hi - lo) + 1e-6 * max(1.0, abs(theirs))
