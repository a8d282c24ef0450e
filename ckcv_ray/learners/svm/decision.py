"""Decision values, and the errors of a path's fits on rows they were not trained on."""

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.learners.svm.machine_code import compile_listed, load_code, writable
from ckcv_ray.learners.svm.memory import Matrix
from ckcv_ray.learners.svm.problem import Solutions
from ckcv_ray.learners.svm.simd import FAST, wide

UNDECIDED_WIDTH = 1e-9  # this close to zero, rounding would decide the label: an error


def count_errors(M: Matrix, fits: Solutions, y: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the errors of each fit among the rows of class -1 and those of class +1, shape (n_C, 2).

    M = 1 - K of the rows [rows] and the training rows [>= n_train]; f(x) = offset - sum_i b_i M(x, x_i).
    There is one sum per fit and row, which does not depend on which other fits are requested.
    """
    load_code()
    errors = np.zeros((len(fits.offset), 2), np.int64)
    _count_errors(writable(M), writable(fits.b), writable(fits.offset), writable(y), errors)
    return errors


@compile_listed(fastmath=FAST)
def _count_errors(
    M: Matrix, b: Matrix, offset: Matrix, y: NDArray[np.int8], errors: NDArray[np.int64]
) -> None:
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
            _judge(f0, y[p0], errors[c])
            if first + 1 < rows:
                _judge(f1, y[p1], errors[c])
            if first + 2 < rows:
                _judge(f2, y[p2], errors[c])
            if first + 3 < rows:
                _judge(f3, y[p3], errors[c])


@compile_listed()
def _judge(f: float, y: int, errors: NDArray[np.int64]) -> None:
    if y * f <= UNDECIDED_WIDTH:
        errors[np.int64(y > 0)] += 1
