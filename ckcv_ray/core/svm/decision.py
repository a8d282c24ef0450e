"""Decision values, and the errors a path's fits make on rows they were not trained on."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ckcv_ray.core.kernels import Matrix
from ckcv_ray.core.simd import wide
from ckcv_ray.core.svm.problem import Fits

FAST = {"contract", "reassoc", "arcp", "nsz"}
UNDECIDED = 1e-9  # so near to zero, rounding would decide the label: an error


def count_errors(M: Matrix, fits: Fits, y: NDArray[np.int8]) -> NDArray[np.int64]:
    """Errors of each fit among the rows of class -1 and among those of class +1, shape (n_C, 2).

    M = 1 - K of the rows [rows] and the training rows [>= n_train]; f(x) = offset - sum_i b_i M(x, x_i). One
    sum for each fit and row: which other fits are asked for makes no difference to it.
    """
    errors = np.zeros((len(fits.offset), 2), np.int64)
    _count_errors(M, fits.b, fits.offset, y, errors)
    return errors


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _count_errors(
    M: Matrix, b: Matrix, offset: Matrix, y: NDArray[np.int8], errors: NDArray[np.int64]
) -> None:
    wide()
    n = b.shape[1]
    for p in range(M.shape[0]):
        row, positive = M[p], np.int64(y[p] > 0)
        for c in range(b.shape[0]):
            weights = b[c]
            total = 0.0
            for q in range(n):
                total += weights[q] * row[q]
            if y[p] * (offset[c] - total) <= UNDECIDED:
                errors[c, positive] += 1
