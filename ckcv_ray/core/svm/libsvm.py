"""LIBSVM (Chang, Lin 2011) as scikit-learn ships it, behind the interface of ``problem``.

It keeps the kernel in float32 and sums its gradient from that, so where it says "converged" the violation
measured in float64 may exceed the tolerance by about C * n_train * 2^-24.
"""

import warnings
from itertools import pairwise

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from ckcv_ray.core.kernels import Complement
from ckcv_ray.core.svm.problem import Fits, Matrix, Solution, Status, Vector, constant, describe, gather_fits


def path(M: Complement, y: Vector, C_values: tuple[float, ...], tolerance: float, max_iter: int) -> Fits:
    """Fit for each C in turn, from zero; see ``problem.Path``.

    Once every |b| is below C, no box constraint is active: that solution is the one of every larger C.
    """
    if np.all(y == y[0]):
        return constant(y, len(C_values))
    K = 1.0 - M.double[:, : len(y)]
    solutions = [_fit(K, y, C_values[0], tolerance, max_iter)]
    for smaller, C in pairwise(C_values):
        last = solutions[-1]
        if last.status is Status.CONVERGED and np.max(np.abs(last.b)) < smaller:
            solutions.append(describe(K, y, last.b, C, 0, Status.CONVERGED))
        else:
            solutions.append(_fit(K, y, C, tolerance, max_iter))
    return gather_fits(solutions)


def _fit(K: Matrix, y: Vector, C: float, tolerance: float, max_iter: int) -> Solution:
    machine = SVC(C=C, kernel="precomputed", tol=tolerance, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status carries it
        machine.fit(K, y)
    b = np.zeros(len(y))
    b[machine.support_] = machine.dual_coef_[0]
    status = Status.CAPPED if machine.fit_status_ else Status.CONVERGED
    return describe(K, y, b, C, int(machine.n_iter_[0]), status)
