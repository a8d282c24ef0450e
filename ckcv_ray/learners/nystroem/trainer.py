"""Fits of the Gaussian SVM on Nyström features to splits of a task, and checks of its models."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index, Values
from ckcv_ray.core.measures import Measure
from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.base import STATUSES, Checked, Status, Trainer
from ckcv_ray.learners.class_weight import compute_weights
from ckcv_ray.learners.nystroem.codec import count_outputs
from ckcv_ray.learners.nystroem.model import Landmarks, NystroemModel, classify
from ckcv_ray.learners.nystroem.newton import (
    BLOCK,
    TOLERANCE,
    Gram,
    Point,
    Primal,
    Solution,
    find_direction,
    solve_path,
)
from ckcv_ray.learners.seeds import make_seed_sequence
from ckcv_ray.learners.svm.scaling import fit_scaling
from ckcv_ray.tables.task import Task

SOLVE_ROWS = 8  # rows for each landmark whose products take as long as what does not depend on rows
SCALING_COPIES = 3  # of the training rows: themselves, and what their deviation is computed from
COLUMNS = 8  # numbers for each row of a fit: signs, weights, decision values, slack
CHECKED = (
    1e3 * TOLERANCE
)  # of the sum, by which it may fall further at stored coefficients: they were rounded
SPANNED = 1e-6  # of the largest coefficient, by which a sum of features may differ from one of kernels
ROUNDING = 1e-9  # of a scaling, on another processor
CONVERGED, NOT_CONVERGED = STATUSES.index(Status.CONVERGED), STATUSES.index(Status.NOT_CONVERGED)


@dataclass(frozen=True)
class NystroemTrainer(Trainer):
    """What fits the settings of a learner."""

    gammas: tuple[float, ...]  # of the paths
    costs: tuple[float, ...]  # their steps
    n_landmarks: int
    scale: str  # how features are scaled
    class_weight: str  # canonical form of the option

    def prepare(self, shared: Task, train: Index, score: Index) -> "NystroemBlock":
        """Draw the landmarks of a split, and fit its scaling.

        Raises:
            ValueError: there are fewer training rows than landmarks.
        """
        return NystroemBlock(self, shared, train, score, self.draw_landmarks(shared, train))

    def draw_landmarks(self, task: Task, train: Index) -> Landmarks:
        """Return landmarks drawn from the training rows, at random by their numbers alone, without repeats.

        Raises:
            ValueError: there are fewer training rows than landmarks.
        """
        different = np.unique(train)
        if len(different) < self.n_landmarks:
            raise ValueError(
                f"{self.n_landmarks} landmarks cannot be drawn from {len(different)} training rows"
            )
        draws = np.random.default_rng(make_seed_sequence(train))
        rows = np.sort(draws.choice(different, self.n_landmarks, replace=False))
        return Landmarks(rows, task.X[rows], fit_scaling(task.X[train], self.scale))

    def cost(self, n_train: int) -> float:
        """Return the number of training rows, and a constant."""
        return float(n_train + SOLVE_ROWS * self.n_landmarks)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of the features of the training rows, of matrices of landmarks, and of rows."""
        m = self.n_landmarks
        features = n_train * (m + 1 + COLUMNS)
        matrices = m * (8 * m + 3 * BLOCK)
        scored = n_score * 3 * len(self.costs)
        return 8 * (features + matrices + SCALING_COPIES * n_train * d + scored)

    def check(self, model: NystroemModel, task: Task, train: Index, converged: bool) -> Checked:
        """Check landmarks and scaling, and that a Newton step hardly lowers what is minimised."""
        expected = self.draw_landmarks(task, train)
        if not np.array_equal(model.landmarks.rows, expected.rows):
            return Checked(["its landmarks are not those drawn from its training rows"], [])
        if not model.landmarks.scaling.is_close(expected.scaling, ROUNDING):
            return Checked(["its scaling is not that of its training rows"], [])
        with one_thread():
            if NystroemBlock(self, task, train, train[:0], model.landmarks).is_minimum(model):
                return Checked([], [])
        if not converged:
            return Checked([], ["that its fit was stopped at the iteration limit: it is not optimal"])
        return Checked(
            ["it is not the model fitted to its training rows: what is minimised falls further"], []
        )


class NystroemBlock(NamedTuple):
    """One split: its rows to train on and to score, and its landmarks."""

    trainer: NystroemTrainer
    task: Task
    train: Index
    score: Index
    landmarks: Landmarks

    def fit(self, path: int, length: int) -> "NystroemFits":
        """Fit the first ``length`` costs at one gamma."""
        costs, gamma = self.trainer.costs[:length], self.trainer.gammas[path]
        normalisation, problems = self.make_problems(gamma)
        outputs = [list(solve_path(problem, costs)) for problem in problems]
        return NystroemFits(
            [
                self._make_model(C, gamma, normalisation, solutions)
                for C, *solutions in zip(costs, *outputs, strict=True)
            ],
            np.sum([[solution.n_iter for solution in path] for path in outputs], axis=0),
            np.all([[solution.converged for solution in path] for path in outputs], axis=0),
            self.task,
            self.score,
        )

    def make_problems(self, gamma: float) -> tuple[Values, list[Primal]]:
        """Return the normalisation of the features at a gamma, and what is minimised for each output."""
        task, y = self.task, self.task.y[self.train]
        normalisation = self.landmarks.find_normalisation(gamma)
        Z = self.landmarks.compute_features(task.X, self.train, gamma, normalisation)
        weights = compute_weights(self.trainer.class_weight, task.classes, y)[y]
        if (of_rows := task.weighting.take(self.train)) is not None:
            weights = weights * of_rows
        positive = [1] if count_outputs(task) == 1 else range(task.n_classes)
        return normalisation, [Primal(Z, np.where(y == c, 1.0, -1.0), weights) for c in positive]

    def is_minimum(self, model: NystroemModel) -> bool:
        """Return whether a model is a minimum up to rounding, by a Newton step from its coefficients."""
        normalisation, problems = self.make_problems(model.gamma)
        for problem, dual_coef, offset in zip(problems, model.dual_coef, model.offset, strict=True):
            w = normalisation.T @ dual_coef / np.vecdot(normalisation.T, normalisation.T)
            if not np.allclose(normalisation @ w, dual_coef, 0, SPANNED * np.abs(dual_coef).max()):
                return False  # it is no sum of features
            coefficients = np.append(w, offset)
            if problem.constant is not None:
                return np.array_equal(coefficients, problem.constant)
            point = Point(coefficients, problem.Z @ coefficients)
            _, fall = find_direction(Gram(problem), point, model.C)
            if fall > CHECKED * problem.evaluate(point, model.C):
                return False
        return True

    def _make_model(
        self, C: float, gamma: float, normalisation: Values, solutions: Sequence[Solution]
    ) -> NystroemModel:
        coefficients = np.array([solution.coefficients for solution in solutions])
        return NystroemModel(
            C, gamma, self.landmarks, coefficients[:, :-1] @ normalisation.T, coefficients[:, -1].copy()
        )


class NystroemFits:
    """The fits of one gamma at its first costs.

    Args:
        models: of each step.
        n_iter: Newton steps of each, (steps,).
        converged: whether the fits of all its outputs did, (steps,).
        task, score: the rows to score.
    """

    def __init__(
        self,
        models: list[NystroemModel],
        n_iter: NDArray[np.int64],
        converged: NDArray[np.bool_],
        task: Task,
        score: Index,
    ) -> None:
        self.models, self.n_iter, self.task, self.score = models, n_iter, task, score
        self.status = np.where(converged, CONVERGED, NOT_CONVERGED).astype(np.int8)

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals of each model on the scored rows, whose kernel all of them share."""
        y = self.task.y[self.score]
        return np.array([measure.totals(y, label, self.task.n_classes) for label in self.labels])

    @cached_property
    def labels(self) -> Classes:
        """The class of each scored row by each model, (steps, rows)."""
        first = self.models[0]
        coefficients = np.concatenate([model.dual_coef for model in self.models])
        offsets = np.concatenate([model.offset for model in self.models])
        values = first.landmarks.evaluate(self.task.X, self.score, first.gamma, coefficients, offsets)
        return np.array([classify(part).label for part in np.split(values, len(self.models), axis=1)])

    def model(self, step: int) -> NystroemModel:
        """Return the model at one cost."""
        return self.models[step]
