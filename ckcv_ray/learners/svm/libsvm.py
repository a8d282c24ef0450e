"""LIBSVM (Chang, Lin 2011) as scikit-learn ships it, behind the interface of ``problem``.

It keeps the kernel in float32 and sums its gradient from that, so where it says "converged" the violation
measured in float64 may exceed the tolerance by about C * n_train * 2^-24.
"""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ckcv_ray.learners.base import Status
from ckcv_ray.learners.svm.kernels import Complement, complement_product
from ckcv_ray.learners.svm.problem import (
    Fits,
    Matrix,
    Solution,
    Vector,
    constant,
    describe,
    gather_fits,
)


def path(M: Complement, y: Vector, C_values: tuple[float, ...], tolerance: float, max_iter: int) -> Fits:
    """Fit for each C in turn, from zero; see ``problem.PathSolver``."""
    K = 1.0 - M.double[:, : len(y)]

    def fit(C: float) -> Solution:
        machine = _train(K, y, C=C, kernel="precomputed", tol=tolerance, max_iter=max_iter)
        b = _dual(machine, len(y))
        return describe(np.vecdot(K, b), y, b, C, int(machine.n_iter_[0]), _status(machine))

    return _path(fit, y, C_values)


def path_on_points(
    X: Matrix, gamma: float, y: Vector, C_values: tuple[float, ...], tolerance: float, max_iter: int
) -> Fits:
    """Fit for each C in turn, from zero, LIBSVM making its own kernel; see ``problem.PathSolverOnPoints``."""

    def fit(C: float) -> Solution:
        machine = _train(X, y, C=C, gamma=gamma, tol=tolerance, max_iter=max_iter)
        b = _dual(machine, len(y))
        Kb = b.sum() - complement_product(X, X[machine.support_], gamma, b[machine.support_])
        return describe(Kb, y, b, C, int(machine.n_iter_[0]), _status(machine))

    return _path(fit, y, C_values)


def _path(fit: Callable[[float], Solution], y: Vector, C_values: tuple[float, ...]) -> Fits:
    """Once every |b| is below C, no box constraint is active: that solution is the one of every larger C."""
    if np.all(y == y[0]):
        return constant(y, len(C_values))
    solutions = [fit(C_values[0])]
    for smaller, C in pairwise(C_values):
        last = solutions[-1]
        if last.status is Status.CONVERGED and np.max(np.abs(last.b)) < smaller:
            solutions.append(describe(last.gradient + y, y, last.b, C, 0, Status.CONVERGED))
        else:
            solutions.append(fit(C))
    return gather_fits(solutions)


def _train(inputs: Matrix, y: Vector, **options: Any) -> Any:
    """An SVC, fitted; scikit-learn is imported here: half of the time a worker needs to start."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status carries it
        return SVC(**options).fit(inputs, y)


def _dual(machine: Any, n: int) -> Vector:
    b = np.zeros(n)
    b[machine.support_] = machine.dual_coef_[0]
    return b


def _status(machine: Any) -> Status:
    return Status.NOT_CONVERGED if machine.fit_status_ else Status.CONVERGED
