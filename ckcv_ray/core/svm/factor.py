"""Cholesky factors A = U'U of positive definite matrices, upper triangle by rows, and their downdates."""

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from ckcv_ray.core.simd import wide

FAST = {"contract", "reassoc", "arcp", "nsz", "nnan"}
LEAST_PIVOT = 1e-12
RIDGES = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
DOUBLE, LOWER = np.int8(ord("d")), np.int8(ord("L"))  # our upper triangle by rows is Fortran's lower one
Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

# numba's own binding of LAPACK's potrf, the one behind its np.linalg.cholesky: in place, no exception
potrf = types.ExternalFunction(
    "numba_xxpotrf", types.intc(types.char, types.char, types.intp, types.CPointer(types.float64), types.intp)
)


@njit(cache=True, error_model="numpy")
def factorise(A: Matrix, U: Matrix, m: int) -> None:
    """Fill U with the factor of the leading m x m block of A.

    If pivots are lost to rounding, the diagonal of A is raised by the smallest of RIDGES that saves
    them: the quadratic then bounds the true one from above, and a flat direction leads far, to the box.
    """
    for ridge in RIDGES:
        for p in range(m):
            A[p, p] *= 1.0 + ridge
            U[p, p:m] = A[p, p:m]
        if potrf(DOUBLE, LOWER, m, U.ctypes, U.shape[1]) == 0 and _sound(A, U, m):
            return


@njit(cache=True, error_model="numpy")
def _sound(A: Matrix, U: Matrix, m: int) -> bool:
    """Whether every pivot stands above rounding."""
    for p in range(m):
        if not U[p, p] * U[p, p] > LEAST_PIVOT * A[p, p]:
            return False
    return True


@njit(cache=True, fastmath=FAST, error_model="numpy")
def solve(U: Matrix, x: Vector, m: int) -> None:
    """Replace x by the solution of U'U z = x."""
    wide()
    for p in range(m):
        row = U[p]
        value = x[p] / row[p]
        x[p] = value
        for q in range(p + 1, m):
            x[q] -= value * row[q]
    for p in range(m - 1, -1, -1):
        row = U[p]
        total = 0.0
        for q in range(p + 1, m):
            total += row[q] * x[q]
        x[p] = (x[p] - total) / row[p]


@njit(cache=True, fastmath=FAST, error_model="numpy")
def remove(U: Matrix, m: int, h: int) -> None:
    """Make the factor of m variables that of the m - 1 others than h, by Givens rotations."""
    wide()
    for p in range(h + 1):
        row = U[p]
        for q in range(max(h, p), m - 1):
            row[q] = row[q + 1]
    for p in range(h, m - 1):
        upper, lower = U[p], U[p + 1]
        for q in range(p, m - 1):
            lower[q] = lower[q + 1]
        x, y = upper[p], lower[p]
        r = np.sqrt(x * x + y * y)
        c, s = x / r, y / r
        for q in range(p, m - 1):
            a, z = upper[q], lower[q]
            upper[q] = c * a + s * z
            lower[q] = c * z - s * a


@njit(cache=True, fastmath=FAST, error_model="numpy")
def drop(A: Matrix, m: int, h: int) -> None:
    """Take row and column h out of the upper triangle of A."""
    wide()
    for p in range(h):
        row = A[p]
        for q in range(h, m - 1):
            row[q] = row[q + 1]
    for p in range(h, m - 1):
        row, under = A[p], A[p + 1]
        for q in range(p, m - 1):
            row[q] = under[q + 1]
