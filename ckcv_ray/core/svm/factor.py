"""Cholesky factors A = U'U of positive definite matrices, upper triangle by rows, and their downdates."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

FAST = {"contract", "reassoc", "arcp", "nsz", "nnan"}
PANEL = 8
LEAST_PIVOT = 1e-10
Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@njit(cache=True, fastmath=FAST, error_model="numpy")
def factorise(A: Matrix, U: Matrix, m: int) -> None:
    """Factorise the leading m x m block of U in place.

    Panels of eight rows: each later row is then updated once for the whole panel, in one pass.
    """
    for first in range(0, m, PANEL):
        stop = min(first + PANEL, m)
        for p in range(first, stop):
            row = U[p]
            for s in range(first, p):
                above = U[s]
                weight = above[p]
                for q in range(p, m):
                    row[q] -= weight * above[q]
            least = LEAST_PIVOT * A[p, p] + 1e-30
            if not row[p] > least:
                A[p, p] += least - row[p]
                row[p] = least
            scale = 1.0 / np.sqrt(row[p])
            for q in range(p, m):
                row[q] *= scale
        if stop < m:
            _update(U, first, stop, m)


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _update(U: Matrix, first: int, stop: int, m: int) -> None:
    """Take the full panel of rows first .. stop - 1 off all rows below it."""
    u0, u1, u2, u3 = U[first], U[first + 1], U[first + 2], U[first + 3]
    u4, u5, u6, u7 = U[first + 4], U[first + 5], U[first + 6], U[first + 7]
    for p in range(stop, m):
        row = U[p]
        a0, a1, a2, a3, a4, a5, a6, a7 = u0[p], u1[p], u2[p], u3[p], u4[p], u5[p], u6[p], u7[p]
        for q in range(p, m):
            left = a0 * u0[q] + a1 * u1[q] + a2 * u2[q] + a3 * u3[q]
            right = a4 * u4[q] + a5 * u5[q] + a6 * u6[q] + a7 * u7[q]
            row[q] -= left + right


@njit(cache=True, fastmath=FAST, error_model="numpy")
def solve(U: Matrix, x: Vector, m: int) -> None:
    """Replace x by the solution of U'U z = x."""
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
    for p in range(h):
        row = A[p]
        for q in range(h, m - 1):
            row[q] = row[q + 1]
    for p in range(h, m - 1):
        row, under = A[p], A[p + 1]
        for q in range(p, m - 1):
            row[q] = under[q + 1]
