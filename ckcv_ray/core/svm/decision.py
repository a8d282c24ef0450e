"""Decision values of a path's fits."""

import numpy as np
from numba import njit

from ckcv_ray.core.kernels import Matrix
from ckcv_ray.core.simd import wide
from ckcv_ray.core.svm.problem import Fits

FAST = {"contract", "reassoc", "arcp", "nsz"}


def decisions(M: Matrix, fits: Fits) -> Matrix:
    """f(x) = offset - sum_i b_i M(x, x_i), shape (n_C, rows); M = 1 - K of rows and training rows [rows, >= n].

    One sum for each fit and row: which other fits are asked for makes no difference to its bits.
    """
    values = np.empty((len(fits.offset), len(M)))
    _sum_up(M, fits.b, fits.offset, values)
    return values


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _sum_up(M: Matrix, b: Matrix, offset: Matrix, values: Matrix) -> None:
    wide()
    n = b.shape[1]
    for p in range(M.shape[0]):
        row = M[p]
        for c in range(b.shape[0]):
            weights = b[c]
            total = 0.0
            for q in range(n):
                total += weights[q] * row[q]
            values[c, p] = offset[c] - total
