"""LIBSVM (Chang, Lin 2011) as shipped with scikit-learn, behind the interface of the package's solver.

The reference for its answers and for its speed (``learners.svm.problem`` has the interface).

It keeps the kernel in float32 and sums its gradient from that, so when it reports convergence, the violation
measured in float64 may exceed the tolerance by about C * n_train * 2^-24.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from ckcv_ray.learners.base import Status
from ckcv_ray.learners.svm.kernels import Complement
from ckcv_ray.learners.svm.problem import (
    EQUAL,
    Matrix,
    Options,
    Solutions,
    Vector,
    Weights,
    fit_constant,
    snap_to_bounds,
)


@dataclass(frozen=True)
class Solution:
    """One fit."""

    b: Vector  # signed dual variables y * alpha, shape (n_train,)
    offset: float  # as in ``problem.Solutions``
    value: float  # the dual objective, 1/2 b'Kb - y'b, at most 0
    violation: float  # KKT violation, >= 0
    n_iter: int  # iterations of the solver
    status: Status  # converged or not


def describe(
    Kb: Vector, y: Vector, b: Vector, C: float, n_iter: int, status: Status, weights: Weights = EQUAL
) -> Solution:
    """Return the solution at b, with offset, objective and violation computed from K b."""
    (lo, hi), downhill = weights.bounds(y, C), y - Kb
    highest = np.max(downhill, where=b < hi, initial=-np.inf)
    lowest = np.min(downhill, where=b > lo, initial=np.inf)
    free = (lo < b) & (b < hi)
    offset = float(downhill[free].mean() if free.any() else (highest + lowest) / 2)
    violation = max(0.0, float(highest - lowest))
    value = float(np.vecdot(b, Kb) / 2 - np.vecdot(b, y))
    return Solution(b, offset, value, violation, n_iter, status)


def list_solutions(fits: Solutions) -> list[Solution]:
    """Return each fit of a path."""
    status = [Status.CONVERGED if converged else Status.NOT_CONVERGED for converged in fits.converged]
    columns = fits.offset, fits.value, fits.violation, fits.n_iter
    return [*map(Solution, fits.b, *(column.tolist() for column in columns), status)]


def path(M: Complement, y: Vector, options: Options, weights: Weights = EQUAL) -> Solutions:
    """Fit each C in turn, starting from zero; see ``path.path``."""
    C_values, tolerance, max_iter = options
    K = 1.0 - M.double[:, : len(y)]

    def fit(C: float) -> Solution:
        svc = _train(K, y, weights, C=C, kernel="precomputed", tol=tolerance, max_iter=max_iter)
        b = _dual(svc, y, C, weights)
        return describe(np.vecdot(K, b), y, b, C, int(svc.n_iter_[0]), _status(svc), weights)

    return _path(fit, y, C_values, weights)


def _path(
    fit: Callable[[float], Solution], y: Vector, C_values: tuple[float, ...], weights: Weights
) -> Solutions:
    """Fit each C in turn; once no |b| is at its bound, all larger C have that solution."""
    if np.all(y == y[0]):
        return fit_constant(y, len(C_values))
    solutions = [fit(C_values[0])]
    for smaller, C in pairwise(C_values):
        last = solutions[-1]
        if last.status is Status.CONVERGED and weights.is_unconstrained(last.b, smaller):
            solutions.append(replace(last, n_iter=0))
        else:
            solutions.append(fit(C))
    return _gather(solutions)


def _gather(solutions: Sequence[Solution]) -> Solutions:
    return Solutions(
        b=np.array([s.b for s in solutions]),
        offset=np.array([s.offset for s in solutions]),
        value=np.array([s.value for s in solutions]),
        violation=np.array([s.violation for s in solutions]),
        n_iter=np.array([s.n_iter for s in solutions]),
        converged=np.array([s.status is Status.CONVERGED for s in solutions]),
    )


def _train(inputs: Matrix, y: Vector, weights: Weights, **options: Any) -> Any:
    """Fit an SVC."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status reports it
        return SVC(class_weight={-1.0: weights.negative, 1.0: weights.positive}, **options).fit(inputs, y)


def _dual(svc: Any, y: Vector, C: float, weights: Weights) -> Vector:
    b = np.zeros(len(y))
    b[svc.support_] = svc.dual_coef_[0]
    return b if weights == EQUAL else snap_to_bounds(b, y, C, weights)


def _status(svc: Any) -> Status:
    return Status.NOT_CONVERGED if svc.fit_status_ else Status.CONVERGED
