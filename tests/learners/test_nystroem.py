"""The SVM on Nyström features: what is approximated, what it depends on, what is refused."""

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from learner_contract import clouds
from scipy.optimize import minimize
from sklearn.kernel_approximation import Nystroem

from ckcv_ray import Task
from ckcv_ray.learners import nystroem
from ckcv_ray.learners.nystroem import NystroemBlock, NystroemSVM, NystroemTrainer, Primal, solve_path

GAMMA = 0.2
TRAIN, SCORE = (np.flatnonzero(np.arange(60) % 4 // 2 == part) for part in (0, 1))


def make_trainer(**changes: object) -> NystroemTrainer:
    return NystroemSVM(**{"C": (0.1, 1.0, 10.0), "gamma": (GAMMA,), "landmarks": 8, **changes}).trainer  # type: ignore[arg-type]


def prepare(task: Task, train: np.ndarray = TRAIN, **changes: object) -> NystroemBlock:
    return make_trainer(**changes).prepare(task, train, SCORE)


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_features_are_those_of_scikit_learn(scale: str) -> None:
    """Up to a rotation, which no product of two rows depends on."""
    task = clouds(60, 2)
    block = prepare(task, scale=scale)
    landmarks, (_, (problem,)) = block.landmarks, block.make_problems(GAMMA)
    Z = problem.Z
    scaled = landmarks.scaling.apply(task.X)
    theirs = Nystroem(gamma=GAMMA, n_components=8).fit(scaled[landmarks.rows]).transform(scaled[TRAIN])
    np.testing.assert_allclose(Z[:, :-1] @ Z[:, :-1].T, theirs @ theirs.T, rtol=0, atol=1e-12)
    assert np.all(Z[:, -1] == 1.0)


def test_landmarks_depend_on_the_numbers_of_the_training_rows_alone() -> None:
    task = clouds(60, 2)
    drawn = prepare(task).landmarks.rows
    assert len(np.unique(drawn)) == 8
    assert set(drawn.tolist()) <= set(TRAIN.tolist())
    other = Task.of(task.X[::-1] * 3, 1 - task.y)
    assert prepare(other, C=(5.0,), gamma=(9.0,)).landmarks.rows.tolist() == drawn.tolist()
    assert make_trainer().prepare(task, TRAIN, SCORE[:3]).landmarks.rows.tolist() == drawn.tolist()
    assert prepare(task, TRAIN[1:]).landmarks.rows.tolist() != drawn.tolist()


def test_repeated_training_rows_count_repeatedly_and_are_drawn_once() -> None:
    task = clouds(60, 2)
    repeated = np.sort(np.append(TRAIN, TRAIN[:10]))
    landmarks = prepare(task, repeated, landmarks=30).landmarks
    assert landmarks.rows.tolist() == TRAIN.tolist()
    assert landmarks.scaling.centre.tolist() == task.X[repeated].mean(axis=0).tolist()
    with pytest.raises(ValueError, match="31 landmarks cannot be drawn from 30 training rows"):
        prepare(task, repeated, landmarks=31)


# The linear SVM with squared hinge loss: its minimum, and what it does at the limits


COSTS = (0.01, 0.3, 10.0, 1000.0)
seeds = st.integers(0, 2**32 - 1)


def make_problem(seed: int, n: int = 80, r: int = 5) -> Primal:
    """Return overlapping clouds with random weights and a column of ones."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    Z = np.column_stack([rng.normal(size=(n, r)) + 0.5 * y[:, None], np.ones(n)])
    return Primal(Z, y, rng.uniform(0.1, 3.0, n))


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


def test_a_path_that_is_stopped_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystroem, "MAX_STEPS", 1)
    stopped = list(solve_path(make_problem(1), COSTS))
    assert not all(solution.converged for solution in stopped)
    assert {solution.n_iter for solution in stopped} == {1}
