"""Newton's method on the free variables: those strictly between their bounds.

Let r be the free variable farthest from its bounds. With sum b = 0 it is eliminated, d_r = -sum d_a, and
since K = 1 - M, the quadratic in the others is d'Ad / 2 + g'd with

    A_ac = M_ar + M_cr - M_ac,    g_a = F_a - F_r,

positive definite if the points differ. With M = -expm1(-gamma D) no digits cancel, however small gamma is.

The step is a bent path: walk along d = -A^-1 g; where a variable meets its bound, fix it there and continue
with the rest of d as long as the quadratic falls; then solve again for the variables still free. The
objective never rises. If few variables were fixed, the factor is downdated; if many, it is recomputed.

Cholesky factors A = U'U of positive definite matrices, row-major upper triangles, and their downdates.
"""

import numpy as np
from numba import types

from ckcv_ray.learners.svm.compile import FAST, compile_listed, lesser, wide
from ckcv_ray.learners.svm.kernels import MIN_CURVATURE, RowIndex
from ckcv_ray.learners.svm.problem import Matrix, Vector

MIN_PIVOT = 1e-12
RIDGES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
DOUBLE, LOWER = np.int8(ord("d")), np.int8(ord("L"))  # a row-major upper triangle is Fortran's lower one

# numba's binding of LAPACK's potrf, the one behind its np.linalg.cholesky: in place, no exception
potrf = types.ExternalFunction(
    "numba_xxpotrf", types.intc(types.char, types.char, types.intp, types.CPointer(types.float64), types.intp)
)


@compile_listed()
def factorise(A: Matrix, U: Matrix, m: int) -> None:
    """Fill U with the factor of the leading m x m block of A.

    If pivots are lost to rounding, the diagonal of A is raised by the smallest of RIDGES that restores
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
        sound &= U[p, p] * U[p, p] > MIN_PIVOT * A[p, p]
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


MAX_SOLVES = 50
REFACTOR_SHARE = 4
WORK_ROWS = 7


@compile_listed(fastmath=FAST | {"nnan"})
def newton(
    M: Matrix,
    F: Vector,
    b: Vector,
    lo: Vector,
    hi: Vector,
    A: Matrix,
    U: Matrix,
    free: RowIndex,
    place: RowIndex,
    work: Matrix,
) -> int:
    """Minimise over the free variables, updating b; return the linear systems solved, 0 if nothing moved.

    A, U [most, most], free and place [at least most] and work [WORK_ROWS, most] are scratch; with more than
    ``most`` variables free, nothing is done. F is read, and out of date afterwards. Internally, position
    p < m is the variable free[p], row place[p] of A; position m is r.
    """
    wide()
    m = _free_variables(b, lo, hi, free, A.shape[0]) - 1
    if m < 1:
        return 0
    g, d, w, x, low, high, spare = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    root = F[free[m]]
    for p in range(m + 1):
        a = free[p]
        g[p], x[p], low[p], high[p] = F[a] - root, b[a], lo[a], hi[a]
    _assemble(M, free, place, A, m)
    factorise(A, U, m)
    solves = 0
    while solves < MAX_SOLVES:
        solves += 1
        for p in range(m):
            d[p] = -g[p]
            w[p] = -g[p]
        solve(U, d, spare, m)
        _walk(A, place, g, d, w, x, low, high, m)
        lost_root = x[m] == low[m] or x[m] == high[m]
        if lost_root:
            _elect(g, x, low, high, free, m)
        fixed = 0
        for p in range(m):
            fixed += x[p] == low[p] or x[p] == high[p]
        if fixed == 0 or fixed == m:
            break
        if fixed * REFACTOR_SHARE <= m and not lost_root:
            _downdate(U, spare, x, low, high, m)
            m = _compress(b, g, x, low, high, free, place, m)
        else:
            m = _compress(b, g, x, low, high, free, place, m)
            _assemble(M, free, place, A, m)
            factorise(A, U, m)
    for p in range(m + 1):
        b[free[p]] = x[p]
    return solves


@compile_listed()
def _free_variables(b: Vector, lo: Vector, hi: Vector, free: RowIndex, most: int) -> int:
    """List the free variables, the one farthest from its bounds last; return how many, 0 if over ``most``."""
    m, at, widest = 0, 0, 0.0
    for k in range(b.shape[0]):
        room = min(b[k] - lo[k], hi[k] - b[k])
        if room > 0.0:
            if m == most:
                return 0
            free[m] = k
            if room > widest:
                widest, at = room, m
            m += 1
    if m:
        free[at], free[m - 1] = free[m - 1], free[at]
    return m


@compile_listed(fastmath=FAST | {"nnan"})
def _assemble(M: Matrix, free: RowIndex, place: RowIndex, A: Matrix, m: int) -> None:
    wide()
    to_root = M[free[m]]
    for p in range(m):
        place[p] = p
        base, row, made, columns = to_root[free[p]], M[free[p]], A[p, p:m], free[p:m]
        for q in range(made.shape[0]):
            c = columns[q]
            made[q] = base + to_root[c] - row[c]
        made[0] = max(made[0], MIN_CURVATURE)


@compile_listed(fastmath=FAST | {"nnan"})
def _walk(
    A: Matrix, place: RowIndex, g: Vector, d: Vector, w: Vector, x: Vector, low: Vector, high: Vector, m: int
) -> None:
    """Follow the bent path of d, with w = Ad, updating x and g."""
    wide()
    while True:
        slope, curvature, total = 0.0, 0.0, 0.0
        for p in range(m):
            slope += d[p] * g[p]
            curvature += d[p] * w[p]
            total += d[p]
        if not (slope < 0.0 and curvature > 0.0):
            return
        d[m] = -total
        end = -slope / curvature
        t = end
        for p in range(m + 1):
            bound = high[p] if d[p] > 0.0 else low[p]
            room = (bound - x[p]) / d[p]
            t = lesser(room if d[p] != 0.0 else end, t)
        hit = m + 1
        for p in range(m + 1):
            bound = high[p] if d[p] > 0.0 else low[p]
            room = (bound - x[p]) / d[p]
            if hit > m and d[p] != 0.0 and room <= t and t < end:
                hit = p
            moved = x[p] + t * d[p]
            moved = moved if moved < high[p] else high[p]
            x[p] = moved if moved > low[p] else low[p]
        for p in range(m):
            g[p] += t * w[p]
        if hit > m:
            return
        x[hit] = high[hit] if d[hit] > 0.0 else low[hit]
        if hit == m:
            return
        lost, at = d[hit], place[hit]
        d[hit] = 0.0
        for p in range(hit):
            w[p] -= lost * A[place[p], at]
        for p in range(hit, m):
            w[p] -= lost * A[at, place[p]]


@compile_listed()
def _elect(g: Vector, x: Vector, low: Vector, high: Vector, free: RowIndex, m: int) -> None:
    """Replace r, which is at a bound, by the variable now farthest from its bounds."""
    at, widest = m, 0.0
    for p in range(m):
        room = min(x[p] - low[p], high[p] - x[p])
        if room > widest:
            widest, at = room, p
    g[m] = 0.0
    root = g[at]
    for p in range(m + 1):
        g[p] -= root
    g[at], g[m] = g[m], g[at]
    x[at], x[m] = x[m], x[at]
    low[at], low[m] = low[m], low[at]
    high[at], high[m] = high[m], high[at]
    free[at], free[m] = free[m], free[at]


@compile_listed()
def _downdate(U: Matrix, spare: Vector, x: Vector, low: Vector, high: Vector, m: int) -> None:
    """Remove the variables at a bound from the factor, one by one."""
    for p in range(m - 1, -1, -1):
        if x[p] == low[p] or x[p] == high[p]:
            remove(U, spare, m, p)
            m -= 1


@compile_listed()
def _compress(
    b: Vector, g: Vector, x: Vector, low: Vector, high: Vector, free: RowIndex, place: RowIndex, m: int
) -> int:
    """Write the variables at a bound to b and remove them; return how many are left besides r."""
    kept = 0
    for p in range(m + 1):
        if p < m and (x[p] == low[p] or x[p] == high[p]):
            b[free[p]] = x[p]
            continue
        g[kept], x[kept], low[kept], high[kept] = g[p], x[p], low[p], high[p]
        free[kept], place[kept] = free[p], place[p]
        kept += 1
    return kept - 1
