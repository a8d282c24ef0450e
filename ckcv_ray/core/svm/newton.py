"""Newton's method on the free variables: those strictly between their bounds.

Let r be the free variable farthest from its bounds. With sum b = 0 it is eliminated, d_r = -sum d_a, and
since K = 1 - M, the quadratic in the others is d'Ad / 2 + g'd with

    A_ac = M_ar + M_cr - M_ac,    g_a = F_a - F_r,

positive definite where the points differ. From M = -expm1(-gamma D) no digits cancel, however small gamma.

The step is a bent path: walk along d = -A^-1 g; where a variable meets its bound, fix it there and go on with
the rest of d as long as the quadratic falls; then solve again for what is still free. The objective never
rises. Few variables fixed: the factor is downdated; many: it is made anew.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ckcv_ray.core.svm.factor import drop, factorise, remove, solve
from ckcv_ray.core.kernels import LEAST_CURVATURE

FAST = {"contract", "reassoc", "arcp", "nsz", "nnan"}
MOST_SOLVES = 50
REFACTOR_SHARE = 10
MOVED, BOUND, ROOT = -2, -1, -3
Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Index = NDArray[np.int64]


@njit(cache=True, fastmath=FAST, error_model="numpy")
def newton(
    M: Matrix, F: Vector, b: Vector, lo: Vector, hi: Vector, A: Matrix, U: Matrix, free: Index, work: Matrix
) -> int:
    """Minimise over the free variables; moves b. The number of linear systems solved, 0 if nothing moved.

    A, U [most, most], free [most] and work [3, most] are scratch; with more than ``most`` variables free,
    nothing is done. F is read, and out of date afterwards.
    """
    m = _free_variables(b, lo, hi, free)
    if m < 2:
        return 0
    root = free[m - 1]
    m -= 1
    g, d, w = work[0], work[1], work[2]
    for p in range(m):
        g[p] = F[free[p]] - F[root]
    _assemble(M, free, root, A, U, m)
    for solves in range(1, MOST_SOLVES + 1):
        for p in range(m):
            d[p] = -g[p]
            w[p] = -g[p]
        solve(U, d, m)
        fixed = _walk(A, g, d, w, b, lo, hi, free, root, m)
        if fixed <= 0:
            return solves
        if fixed * REFACTOR_SHARE <= m:
            m = _downdate(A, U, g, b, lo, hi, free, m)
        else:
            m = _compress(g, b, lo, hi, free, m)
            _assemble(M, free, root, A, U, m)
        if m == 0:
            return solves
    return MOST_SOLVES


@njit(cache=True, error_model="numpy")
def _free_variables(b: Vector, lo: Vector, hi: Vector, free: Index) -> int:
    """List the free variables, the one farthest from its bounds last; 0 if there is no room for them."""
    m, at, widest = 0, 0, 0.0
    for k in range(b.shape[0]):
        room = min(b[k] - lo[k], hi[k] - b[k])
        if room > 0.0:
            if m == free.shape[0]:
                return 0
            free[m] = k
            if room > widest:
                widest, at = room, m
            m += 1
    if m:
        free[at], free[m - 1] = free[m - 1], free[at]
    return m


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _assemble(M: Matrix, free: Index, root: int, A: Matrix, U: Matrix, m: int) -> None:
    """Fill A and its factor U; False where rounding leaves A not positive definite."""
    to_root = M[root]
    for p in range(m):
        a = free[p]
        row, made = M[a], A[p]
        own = to_root[a]
        for q in range(p, m):
            c = free[q]
            made[q] = own + to_root[c] - row[c]
        made[p] = max(made[p], LEAST_CURVATURE)
    factorise(A, U, m)


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _walk(
    A: Matrix,
    g: Vector,
    d: Vector,
    w: Vector,
    b: Vector,
    lo: Vector,
    hi: Vector,
    free: Index,
    root: int,
    m: int,
) -> int:
    """Follow the bent path of d, with w = Ad; how many variables were fixed, -1 if r itself was."""
    fixed = 0
    while True:
        d_root, slope, curvature = 0.0, 0.0, 0.0
        for p in range(m):
            d_root -= d[p]
            slope += d[p] * g[p]
            curvature += d[p] * w[p]
        if not (slope < 0.0 and curvature > 0.0):
            return fixed
        t, hit = -slope / curvature, MOVED
        for p in range(m):
            if d[p] != 0.0:
                a = free[p]
                room = ((hi[a] if d[p] > 0.0 else lo[a]) - b[a]) / d[p]
                if room < t:
                    t, hit = room, p
        end = hi[root] if d_root > 0.0 else lo[root]
        if d_root != 0.0 and (end - b[root]) / d_root < t:
            t, hit = (end - b[root]) / d_root, ROOT
        for p in range(m):
            a = free[p]
            b[a] = min(max(b[a] + t * d[p], lo[a]), hi[a])
            g[p] += t * w[p]
        b[root] += t * d_root
        if hit == MOVED:
            return fixed
        if hit == ROOT:
            b[root] = end
            return BOUND
        b[free[hit]] = hi[free[hit]] if d[hit] > 0.0 else lo[free[hit]]
        lost = d[hit]
        d[hit] = 0.0
        fixed += 1
        for p in range(hit):
            w[p] -= lost * A[p, hit]
        for p in range(hit, m):
            w[p] -= lost * A[hit, p]


@njit(cache=True, error_model="numpy")
def _downdate(A: Matrix, U: Matrix, g: Vector, b: Vector, lo: Vector, hi: Vector, free: Index, m: int) -> int:
    """Take the variables at a bound out of A, U, g and free, one by one; how many are left."""
    for h in range(m - 1, -1, -1):
        if not lo[free[h]] < b[free[h]] < hi[free[h]]:
            remove(U, m, h)
            drop(A, m, h)
            m -= 1
            for p in range(h, m):
                free[p] = free[p + 1]
                g[p] = g[p + 1]
    return m


@njit(cache=True, error_model="numpy")
def _compress(g: Vector, b: Vector, lo: Vector, hi: Vector, free: Index, m: int) -> int:
    """Take the variables at a bound out of g and free; how many are left."""
    kept = 0
    for p in range(m):
        if lo[free[p]] < b[free[p]] < hi[free[p]]:
            free[kept] = free[p]
            g[kept] = g[p]
            kept += 1
    return kept
