"""The classes that a path's fits give rows they were not trained on, and their errors there."""

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.learners.svm.machine_code import compile_listed, load_code, writable
from ckcv_ray.learners.svm.memory import Matrix
from ckcv_ray.learners.svm.problem import Signs, Solutions
from ckcv_ray.learners.svm.simd import FAST, wide

UNDECIDED_WIDTH = 1e-9  # this close to zero, rounding would decide the label: an error


def classify(M: Matrix, fits: Solutions) -> Signs:
    """Return the sign that each fit gives each row, 0 where it is undecided, shape (n_C, rows).

    M = 1 - K of the rows [rows] and the training rows [>= n_train]; f(x) = offset - sum_i b_i M(x, x_i).
    There is one sum per fit and row, which does not depend on which other fits and rows there are.
    """
    load_code()
    signs = np.empty((len(fits.offset), len(M)), np.int8)
    _classify(writable(M), writable(fits.b), writable(fits.offset), signs)
    return signs


def count_errors(M: Matrix, fits: Solutions, y: Signs) -> NDArray[np.int64]:
    """Return the errors of each fit among the rows of class -1 and those of class +1, shape (n_C, 2).

    M: as for ``classify``; y: signs of the rows.
    """
    load_code()
    errors = np.zeros((len(fits.offset), 2), np.int64)
    _count_errors(writable(M), writable(fits.b), writable(fits.offset), writable(y), errors)
    return errors


@compile_listed(fastmath=FAST)
def _classify(M: Matrix, b: Matrix, offset: Matrix, signs: NDArray[np.int8]) -> None:
    """Take four rows per pass over b, repeating the last one if their number is not a multiple of four."""
    wide()
    n, rows = b.shape[1], M.shape[0]
    for first in range(0, rows, 4):
        last = rows - 1
        p0, p1, p2, p3 = first, min(first + 1, last), min(first + 2, last), min(first + 3, last)
        M0, M1, M2, M3 = M[p0], M[p1], M[p2], M[p3]
        for c in range(b.shape[0]):
            weights = b[c]
            f0, f1, f2, f3 = offset[c], offset[c], offset[c], offset[c]
            for q in range(n):
                f0 -= weights[q] * M0[q]
                f1 -= weights[q] * M1[q]
                f2 -= weights[q] * M2[q]
                f3 -= weights[q] * M3[q]
            signs[c, p0], signs[c, p1] = _decide_sign(f0), _decide_sign(f1)
            signs[c, p2], signs[c, p3] = _decide_sign(f2), _decide_sign(f3)


@compile_listed()
def _decide_sign(f: float) -> np.int8:
    return np.int8(f > UNDECIDED_WIDTH) - np.int8(f < -UNDECIDED_WIDTH)


@compile_listed()
def _count_errors(M: Matrix, b: Matrix, offset: Matrix, y: Signs, errors: NDArray[np.int64]) -> None:
    signs = np.empty((b.shape[0], M.shape[0]), np.int8)
    _classify(M, b, offset, signs)
    for c in range(b.shape[0]):
        for p in range(M.shape[0]):
            if signs[c, p] != y[p]:
                errors[c, np.int64(y[p] > 0)] += 1
