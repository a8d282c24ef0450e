"""What our solver is measured against: scikit-learn's plain loop, and how far two solvers may differ."""

from collections.abc import Iterator
from math import fsum, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from ckcv_ray.core.bounds import bound_table
from ckcv_ray.core.resampling import Index, complete_kfold
from ckcv_ray.data.task import Table
from ckcv_ray.learners.svm import Solution
from ckcv_ray.learners.svm.decision import UNDECIDED
from ckcv_ray.study import Study, Triple

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
    """Duality gap and violation computed here, from the definitions."""
    Kb = K @ s.b
    slope = y - Kb
    primal = s.b @ Kb / 2 + C * np.maximum(0.0, 1.0 - y * (Kb + s.offset)).sum()
    rises, falls = s.b < np.maximum(0.0, C * y), s.b > np.minimum(0.0, C * y)
    return Reach(primal - (y @ s.b - s.b @ Kb / 2), slope[rises].max() - slope[falls].min())


class Found(NamedTuple):
    """What Algorithm 1 returns."""

    triple: Triple
    l_ms: float
    l_ee: float


def plain_loop(study: Study, table: Table) -> Iterator[Found]:
    """Algorithm 1 as the paper writes it, with scikit-learn's SVC on X: one fit on TR and one on TR + MS
    for every C, gamma, k and split. After each triple, the best so far.
    """
    best = (inf, Triple(0.0, 0.0, 0), inf)
    for k in study.k or range(3, table.n + 1):
        splits = [complete_kfold(table.n, k, i, study.n_splits, study.seed) for i in range(study.n_splits)]
        bounds = bound_table(table.n // k, study.delta)
        both = [np.sort(np.concatenate([split.train, split.select])) for split in splits]
        for gamma in study.gamma:
            for C in study.C:
                ms = [errors(table, C, gamma, s.train, s.select) for s in splits]
                ee = [errors(table, C, gamma, fit, s.estimate) for fit, s in zip(both, splits, strict=True)]
                l_ms, l_ee = (fsum(bounds[counts]) / len(splits) for counts in (ms, ee))
                if (l_ms, Triple(C, gamma, k)) < best[:2]:
                    best = (l_ms, Triple(C, gamma, k), l_ee)
                yield Found(best[1], best[0], best[2])


def errors(table: Table, C: float, gamma: float, fit: Index, score: Index) -> int:
    """Rows of ``score`` that an SVC fitted on the rows ``fit`` gets wrong."""
    machine = SVC(C=C, gamma=gamma).fit(table.X[fit], table.y[fit])
    return int(np.sum(table.y[score] * machine.decision_function(table.X[score]) <= UNDECIDED))
