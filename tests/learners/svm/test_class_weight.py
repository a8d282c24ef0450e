"""Class weights: the box of a row is C times its class weight, compared with the definition and with SVC.

That they are those of the training rows is in the contract of learners.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from ckcv_ray import Study, Task
from ckcv_ray.learners.base import Status
from ckcv_ray.learners.steps import compute_weights, match_labels
from ckcv_ray.learners.svm import path
from ckcv_ray.learners.svm.decomposition import path_on_points
from ckcv_ray.learners.svm.kernels import complement, compute_distances, gaussian, make_complement
from ckcv_ray.learners.svm.problem import EQUAL, Weights
from ckcv_ray.study.problem import Problem
from jobs.benchmarks import libsvm

EVERY_SOLVER = {"newton": path.path, "libsvm": libsvm.path}
EVERY_ON_POINTS = {"newton": path_on_points, "libsvm": libsvm.path_on_points}
PLENTY = 10_000_000
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
WEIGHTS = [Weights(1.0, 10.0), Weights(0.3, 0.7), Weights(1e-3, 30.0), Weights(20.0, 0.05)]


def weights(class_weight: str, classes, y) -> Weights:
    """Return the weights of the classes -1 and +1 for training rows with labels y."""
    return Weights(*compute_weights(class_weight, classes, (y > 0).astype(int)).tolist())


class Posed(NamedTuple):
    """Inputs, labels, kernel, and the kernel of fresh rows."""

    X: np.ndarray
    y: np.ndarray
    K: np.ndarray
    K_new: np.ndarray


def posed(seed, n=120, share=0.08, gamma=0.5):
    """A minority of ``share`` of the rows, in the midst of the majority's edge."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, round(1000 * share))))
    y = np.where(np.arange(n) < max(2, round(n * share)), 1.0, -1.0)
    X, new = rng.normal(size=(n, 3)) + 0.8 * y[:, None], rng.normal(size=(40, 3))
    order = rng.permutation(n)
    X, y = X[order], y[order]
    X.flags.writeable = y.flags.writeable = False
    D, D_new = compute_distances(X, X), compute_distances(new, X)
    return Posed(X, y, gaussian(D, gamma), gaussian(D_new, gamma))


def balanced(y):
    return weights("balanced", ("no", "yes"), y)


def violation(p, solution, C, w):
    """The KKT violation in long double, in the textbook's form, with a cost for every row."""
    K, y = p.K.astype(np.longdouble), p.y.astype(np.longdouble)
    cost = np.where(p.y > 0, C * w.positive, C * w.negative)
    alpha = y * solution.b
    assert np.all((alpha >= 0) & (alpha <= cost))
    assert abs(solution.b.sum()) <= 1e-11 * np.abs(solution.b).sum()
    gradient = (K * np.outer(y, y)) @ alpha - 1
    up = ((y > 0) & (alpha < cost)) | ((y < 0) & (alpha > 0))
    low = ((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < cost))
    return float((-y * gradient)[up].max() - (-y * gradient)[low].min())


def gap(p, solution, C, w):
    """Primal minus dual objective, in long double."""
    K, y = p.K.astype(np.longdouble), p.y.astype(np.longdouble)
    quadratic = solution.b @ K @ solution.b
    hinge = np.maximum(0, 1 - y * (K @ solution.b + solution.offset))
    return float(quadratic - y @ solution.b + C * np.where(p.y > 0, w.positive, w.negative) @ hinge)


def solve(solver, p, w, C_values=GRID, tolerance=1e-6, gamma=0.5):
    """The fits of solver or reference, on a kernel or on points, or of the decomposition in small blocks."""
    if solver == "blocks":
        fits = path_on_points(p.X, gamma, p.y, C_values, tolerance, PLENTY, 16, w)
        return libsvm.list_solutions(fits)
    name, _, on_points = solver.partition(" ")
    if on_points:
        fits = EVERY_ON_POINTS[name](p.X, gamma, p.y, C_values, tolerance, PLENTY, weights=w)
        return libsvm.list_solutions(fits)
    M = make_complement(complement(compute_distances(p.X, p.X), gamma))
    return libsvm.list_solutions(EVERY_SOLVER[name](M, p.y, C_values, tolerance, PLENTY, w))


EVERY = ["newton", "libsvm", "newton points", "libsvm points", "blocks"]


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("w", [*WEIGHTS, EQUAL, None], ids=str)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
def test_every_fit_meets_the_kkt_conditions_of_its_own_box(solver, w, share):
    p = posed(1, share=share)
    w = w or balanced(p.y)
    for C, s in zip(GRID, solve(solver, p, w), strict=True):
        rounding = C * max(w) * len(p.y) * 2**-23 if solver.startswith("libsvm") else 1e-9
        assert s.status is Status.CONVERGED
        assert violation(p, s, C, w) <= 1.001e-6 + rounding
        exact = gap(p, s, C, w)
        room = 1e-9 + 1e-13 * C * max(w) * len(p.y)
        assert s.gap == pytest.approx(exact / max(1, exact - s.value), abs=room)
        assert s.value == pytest.approx(s.b @ p.K @ s.b / 2 - p.y @ s.b, rel=1e-9)


@pytest.mark.parametrize("solver", EVERY)
def test_if_all_rows_are_at_their_bounds_the_offset_is_the_middle_of_the_interval(solver):
    """With balanced weights the bounds of the classes add up to the same, except for rounding."""
    for n, share in ((90, 0.07), (100, 0.03), (119, 0.11), (97, 0.5), (100, 0.5)):
        p = posed(4, n, share)
        w = balanced(p.y)
        C_values = (1e-5, 1e-4, 1e-3)
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
    p = Posed(X, np.where(X[:, 0] < 6, -1.0, 1.0), gaussian(compute_distances(X, X), 0.5), X)
    C_values, w = (1.0, 60.0, 1e4, 1e5), Weights(0.05, 8.0)
    first, second, third, last = solve(solver, p, w, C_values)
    assert first.b.min() == -0.05
    assert 0.05 * 60 > -second.b.min() > 0.05
    for C, s in zip(C_values[2:], (third, last), strict=True):
        assert np.array_equal(s.b, second.b)
        assert s.n_iter == 0
        assert violation(p, s, C, w) <= 1.001e-6
        assert s.gap == pytest.approx(gap(p, s, C, w) / max(1, gap(p, s, C, w) - s.value), abs=1e-6)


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
    """Feasible, below the tolerance by definition, and not above the objective of scikit-learn's SVC at
    1e-8 by more than its duality gap allows; the order of rows in memory and write protection are no matter.
    """
    X, y, w, gamma, C_values = case
    D = compute_distances(X, X)
    K = gaussian(D, gamma)
    M = make_complement(complement(np.asfortranarray(D), gamma))
    for array in (*M, y):
        array.flags.writeable = False
    whole = libsvm.list_solutions(path.path(M, y, C_values, tolerance, PLENTY, w))
    in_blocks = libsvm.list_solutions(path_on_points(X, gamma, y, C_values, tolerance, PLENTY, 8, w))
    for C, s, other in zip(C_values, whole, in_blocks, strict=True):
        if abs(y.sum()) == len(y):
            assert not s.b.any()
            assert s.offset == y[0]
            continue
        lo, hi = w.bounds(y, C)
        for one in (s, other):
            assert one.status is Status.CONVERGED
            assert np.all((one.b >= lo) & (one.b <= hi))
            assert abs(one.b.sum()) <= 1e-9 * C * max(w) * len(y)
            again = libsvm.describe(one.b.sum() - complement(D, gamma) @ one.b, y, one.b, C, 0, one.status, w)
            assert again.violation <= tolerance * 1.001 + 1e-12 * C * max(w) * len(y)
            assert one.gap == pytest.approx(again.gap, abs=1e-9)
        machine = SVC(
            C=C,
            kernel="precomputed",
            tol=1e-8,
            max_iter=200_000,
            class_weight={-1: w.negative, 1: w.positive},
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(K, y)
        b = np.zeros(len(y))
        b[machine.support_] = machine.dual_coef_[0]
        theirs = b @ K @ b / 2 - y @ b
        primal = max(1.0, s.value + s.gap)
        assert s.value <= theirs + s.gap * max(primal, abs(theirs)) + 1e-6 * max(1.0, abs(theirs))


def labelled(seed=0, n=60):
    """Two clouds of rows, of which a sixth are sick."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 6 == 0, "sick", "well")
    return Task.of(rng.normal(size=(n, 2)) + (y == "sick")[:, None], y)


def test_equal_weights_on_a_task_are_one_problem():
    task = labelled()

    def problem(class_weight):
        return Problem.of(Study.paper(class_weight=class_weight, k=(3,)), task)

    assert problem({"sick": 1}).run_id == problem({"well": 1.0, "sick": 1}).run_id == problem(None).run_id
    assert problem({"sick": 5, "well": 1}).run_id == problem("sick=5").run_id
    others = [None, "balanced", "sick=5", "well=5", "sick=5,well=5"]
    assert len({problem(one).run_id for one in others}) == len(others)
    assert match_labels("1.0=4", (0, 1)) == "1=4"
