"""The linear SVM with squared hinge loss: its minimum, and what it does at the limits."""

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from ckcv_ray.learners import nystroem
from ckcv_ray.learners.nystroem import (
    ARMIJO,
    Gram,
    Point,
    Primal,
    find_direction,
    search_line,
    solve_path,
)

COSTS = (0.01, 0.3, 10.0, 1000.0)
seeds = st.integers(0, 2**32 - 1)


def make_problem(seed: int, n: int = 80, r: int = 5, weights: bool = True) -> Primal:
    """Return overlapping clouds with random weights and a column of ones."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    Z = np.column_stack([rng.normal(size=(n, r)) + 0.5 * y[:, None], np.ones(n)])
    return Primal(Z, y, rng.uniform(0.1, 3.0, n) if weights else np.ones(n))


def compute_sum(problem: Primal, coefficients: np.ndarray, C: float) -> float:
    """Return what is minimised, in the usual form divided by C."""
    missing = np.maximum(0.0, 1.0 - problem.y * (problem.Z @ coefficients))
    return float(coefficients[:-1] @ coefficients[:-1] / (2 * C) + problem.weights @ missing**2)


@given(seed=seeds)
@settings(max_examples=limit_examples(20), deadline=None)
def test_no_general_minimiser_finds_less(seed: int) -> None:
    problem = make_problem(seed)
    for C, solution in zip(COSTS, solve_path(problem, COSTS), strict=True):
        assert solution.converged
        found = compute_sum(problem, solution.coefficients, C)
        rival = minimize(
            lambda point, C=C: compute_sum(problem, point, C),
            np.zeros(6),
            method="BFGS",
            options={"gtol": 1e-9},
        )
        assert found <= rival.fun * (1 + 1e-9)
        assert found >= rival.fun * (1 - 1e-4)  # it is no minimum of something else


def test_liblinear_finds_the_same() -> None:
    """LIBLINEAR penalises the offset too: as a coefficient of a column of 1000, hardly."""
    problem = make_problem(3, n=400, weights=False)
    for C, solution in zip(COSTS, solve_path(problem, COSTS), strict=True):
        rival = LinearSVC(C=C, dual=False, tol=1e-10, intercept_scaling=1000.0, max_iter=100_000)
        rival.fit(problem.Z[:, :-1], problem.y)
        np.testing.assert_allclose(solution.coefficients[:-1], rival.coef_[0], rtol=1e-4, atol=1e-5)
        assert solution.coefficients[-1] == pytest.approx(rival.intercept_[0], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_rows_of_one_sign_have_a_constant(sign: float) -> None:
    problem = make_problem(0)
    problem = problem._replace(y=np.full(80, sign))
    for solution in solve_path(problem, COSTS):
        assert (solution.n_iter, solution.converged) == (0, True)
        assert solution.coefficients.tolist() == [0.0] * 5 + [sign]


def test_a_path_that_is_stopped_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystroem, "MAX_STEPS", 1)
    stopped = list(solve_path(make_problem(1), COSTS))
    assert not all(solution.converged for solution in stopped)
    assert {solution.n_iter for solution in stopped} == {1}


@given(seed=seeds, factor=st.sampled_from([1.0, 3.0, 50.0]))
@settings(max_examples=limit_examples(30), deadline=None)
def test_the_line_search_takes_the_longest_step_that_lowers_the_sum_enough(seed: int, factor: float) -> None:
    """Here also along multiples of a Newton step, which overshoot."""
    problem, C = make_problem(seed), 1.0
    start = Point(np.zeros(6), np.zeros(80))
    newton_step, fall = find_direction(Gram(problem), start, C)
    direction = Point(factor * newton_step.coefficients, factor * newton_step.f)
    point, value = search_line(problem, start, direction, C, factor * fall)
    length = point.coefficients[0] / direction.coefficients[0]
    assert np.log2(length) == pytest.approx(round(np.log2(length)), abs=1e-9)
    assert value == pytest.approx(compute_sum(problem, point.coefficients, C))
    before = compute_sum(problem, start.coefficients, C)
    for tried, enough in ((length, True), (2 * length, False)):
        if tried <= 1.0:
            reached = compute_sum(problem, tried * direction.coefficients, C)
            assert (reached <= before - 2 * ARMIJO * tried * factor * fall) == enough
    assert length < 1.0 or factor < 50.0


def test_numbers_beyond_float64_are_an_error() -> None:
    problem = make_problem(2)._replace(weights=np.full(80, 1e308))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="exceeds what float64 can hold"):
        list(solve_path(problem, (1.0,)))
