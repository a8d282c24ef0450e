"""Baselines: the paper's plain loop with scikit-learn, and how far two solvers may differ."""

from collections.abc import Iterator
from math import fsum, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from ckcv_ray.core.bounds.binomial import bound_table
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.core.resampling.complete import Complete
from ckcv_ray.errors import Classes, Index
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.model import UNDECIDED_WIDTH
from ckcv_ray.study.study import Study
from ckcv_ray.tables.task import Task
from jobs.benchmarks.libsvm import Solution

Matrix = NDArray[np.float64]


class Reach(NamedTuple):
    """How far a solution may be from the optimum: duality gap and KKT violation, from K alone."""

    gap: float
    violation: float

    @property
    def decision(self) -> float:
        """Bound on the error of a decision value: the squared distance of the weights to the optimum is at
        most 2 gap, K(x, x) = 1, and the offset is known to within the violation.
        """
        return float(np.sqrt(2 * max(0.0, self.gap)) + max(0.0, self.violation))


def reach(K: Matrix, y: Matrix, s: Solution, C: float) -> Reach:
    """Compute the duality gap and the violation here, from the definitions."""
    Kb = K @ s.b
    slope = y - Kb
    primal = s.b @ Kb / 2 + C * np.maximum(0.0, 1.0 - y * (Kb + s.offset)).sum()
    rises, falls = s.b < np.maximum(0.0, C * y), s.b > np.minimum(0.0, C * y)
    return Reach(primal - (y @ s.b - s.b @ Kb / 2), slope[rises].max() - slope[falls].min())


Winner = tuple[float, float, int]  # C, gamma, k


class Answer(NamedTuple):
    """What Algorithm 1 returns."""

    winner: Winner
    l_ms: float
    l_ee: float


def plain_loop(study: Study, task: Task) -> Iterator[Answer]:
    """Run Algorithm 1 as the paper writes it, with scikit-learn's SVC on X.

    One fit on TR and one on TR + MS for every C, gamma, k and split. Yields the best so far after each
    candidate.
    """
    learner, resampling, y = study.learner, study.resampling, 2 * task.y - 1
    assert isinstance(learner, GaussianSVM)
    assert isinstance(resampling, Complete)
    assert not isinstance(resampling.k, str)
    n_splits = resampling.n_splits
    best = Answer((0.0, 0.0, 0), inf, inf)
    for k in resampling.k or range(3, task.n + 1):
        (size,) = Complete((k,), n_splits).fold_sizes(task.n)
        draws = Draws(study.seed, task.salt)
        splits = [resampling.split(Strata(task.n), size, i, draws) for i in range(n_splits)]
        bounds = bound_table(task.n // k, study.delta)
        both = [split.merge_select() for split in splits]
        for gamma in learner.gamma:
            for C in learner.C:
                ms = [errors(task.X, y, C, gamma, split.train, split.select) for split in splits]
                ee = [errors(task.X, y, C, gamma, fit, score) for fit, score in both]
                l_ms, l_ee = (fsum(bounds[counts]) / n_splits for counts in (ms, ee))
                if (l_ms, (C, gamma, k)) < (best.l_ms, best.winner):
                    best = Answer((C, gamma, k), l_ms, l_ee)
                yield best


def errors(X: Matrix, y: Classes, C: float, gamma: float, fit: Index, score: Index) -> int:
    """Count the rows of ``score`` that an SVC fitted on the rows ``fit`` misclassifies."""
    model = SVC(C=C, gamma=gamma).fit(X[fit], y[fit])
    return int(np.sum(y[score] * model.decision_function(X[score]) <= UNDECIDED_WIDTH))
