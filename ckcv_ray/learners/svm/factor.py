"""Cholesky factors A = U'U of positive definite matrices, row-major upper triangles, and their downdates."""

import numpy as np
from numba import types

from ckcv_ray.learners.svm.machine_code import compile_listed
from ckcv_ray.learners.svm.memory import Matrix, Vector
from ckcv_ray.learners.svm.simd import FAST, wide

LEAST_PIVOT = 1e-12
RIDGES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
DOUBLE, LOWER = np.int8(ord("d")), np.int8(ord("L"))  # a row-major upper triangle is Fortran's lower one

# numba's binding of LAPACK's potrf, the one behind its np.linalg.cholesky: in place, no exception
potrf = types.ExternalFunction(
    "numba_xxpotrf", types.intc(types.char, types.char, types.intp, types.CPointer(types.float64), types.intp)
)


@compile_listed()
def factorise(A: Matrix, U: Matrix, m: int) -> None:
    """Fill U with the factor of the leading m x m block of A.

    If pivots are lost to rounding, the diagonal of A is raised by the smallest of RIDGES that saves
    them: the quadratic then bounds the true one from above, and a flat direction leads far, to the bounds.
    """
    for ridge in RIDGES:
        for p in range(m):
            A[p, p] *= 1.0 + ridge
            source, target = A[p, p:m], U[p, p:m]
            for q in range(source.shape[0]):
                target[q] = source[q]
        if potrf(DOUBLE, LOWER, m, U.ctypes, U.shape[1]) == 0 and _sound(A, U, m):
            return


@compile_listed()
def _sound(A: Matrix, U: Matrix, m: int) -> bool:
    """Return whether every pivot is above rounding."""
    sound = True
    for p in range(m):
        sound &= U[p, p] * U[p, p] > LEAST_PIVOT * A[p, p]
    return sound


@compile_listed(fastmath=FAST | {"nnan"})
def solve(U: Matrix, x: Vector, inverse: Vector, m: int) -> None:
    """Replace x by the solution of U'U z = x, four rows per pass over x; ``inverse`` [m] is scratch."""
    wide()
    for p in range(m):
        inverse[p] = 1.0 / U[p, p]
    fours = m - m % 4
    for p in range(0, fours, 4):
        r0, r1, r2, r3 = U[p], U[p + 1], U[p + 2], U[p + 3]
        x0 = x[p] * inverse[p]
        x1 = (x[p + 1] - x0 * r0[p + 1]) * inverse[p + 1]
        x2 = (x[p + 2] - x0 * r0[p + 2] - x1 * r1[p + 2]) * inverse[p + 2]
        x3 = (x[p + 3] - x0 * r0[p + 3] - x1 * r1[p + 3] - x2 * r2[p + 3]) * inverse[p + 3]
        x[p], x[p + 1], x[p + 2], x[p + 3] = x0, x1, x2, x3
        rest, s0, s1, s2, s3 = x[p + 4 : m], r0[p + 4 : m], r1[p + 4 : m], r2[p + 4 : m], r3[p + 4 : m]
        for q in range(rest.shape[0]):
            rest[q] -= (x0 * s0[q] + x1 * s1[q]) + (x2 * s2[q] + x3 * s3[q])
    for p in range(fours, m):
        x[p] *= inverse[p]
        for q in range(p + 1, m):
            x[q] -= x[p] * U[p, q]
    for p in range(m - 1, fours - 1, -1):
        for q in range(p + 1, m):
            x[p] -= U[p, q] * x[q]
        x[p] *= inverse[p]
    for p in range(fours - 4, -1, -4):
        r0, r1, r2, r3 = U[p], U[p + 1], U[p + 2], U[p + 3]
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        rest, s0, s1, s2, s3 = x[p + 4 : m], r0[p + 4 : m], r1[p + 4 : m], r2[p + 4 : m], r3[p + 4 : m]
        for q in range(rest.shape[0]):
            t0 += s0[q] * rest[q]
            t1 += s1[q] * rest[q]
            t2 += s2[q] * rest[q]
            t3 += s3[q] * rest[q]
        x3 = (x[p + 3] - t3) * inverse[p + 3]
        x2 = (x[p + 2] - t2 - r2[p + 3] * x3) * inverse[p + 2]
        x1 = (x[p + 1] - t1 - r1[p + 2] * x2 - r1[p + 3] * x3) * inverse[p + 1]
        x0 = (x[p] - t0 - r0[p + 1] * x1 - r0[p + 2] * x2 - r0[p + 3] * x3) * inverse[p]
        x[p], x[p + 1], x[p + 2], x[p + 3] = x0, x1, x2, x3


@compile_listed(fastmath=FAST | {"nnan"})
def remove(U: Matrix, carried: Vector, m: int, h: int) -> None:
    """Remove variable h from the factor of m variables, by Givens rotations.

    ``carried`` [m] is scratch: the row that is rotated against each later one in turn.
    """
    wide()
    for p in range(h):
        row = U[p, h:m]
        for q in range(m - 1 - h):
            row[q] = row[q + 1]
    for q in range(h, m - 1):
        carried[q] = U[h, q + 1]
    for p in range(h, m - 1):
        carry, row, below = carried[p : m - 1], U[p, p : m - 1], U[p + 1, p + 1 : m]
        x, y = carry[0], below[0]
        r = np.sqrt(x * x + y * y)
        c, s = x / r, y / r
        for q in range(carry.shape[0]):
            a, z = carry[q], below[q]
            row[q] = c * a + s * z
            carry[q] = c * z - s * a
