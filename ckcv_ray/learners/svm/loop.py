"""Sequential minimal optimisation: two variables at a time, chosen by second-order information.

With M = 1 - K and F the gradient (``problem``), raising b_i and lowering b_j by t changes the objective by
t (F_i - F_j) + t^2 M_ij. Each iteration takes

    i = argmin {F_i : b_i < hi_i},    j = argmax {(F_j - F_i)^2 / M_ij : b_j > lo_j, F_j > F_i},

the minimising t = (F_j - F_i) / (2 M_ij) as far as the box allows, and F += t (M_j - M_i). It ends when
max {F_j : b_j > lo_j} - F_i, the KKT violation, is below the tolerance (Fan, Chen, Lin, JMLR 6, 2005).

F is kept twice: U is F where b may rise and +inf elsewhere, V is F where b may fall and -inf elsewhere, so
that no loop needs a mask. ``iterate`` works in float32 on rows padded to a multiple of 64, with two passes
per iteration: one finds j; the other updates U and V and finds the next i. Both search with packed keys, a
value's upper bits above its index, in a single integer reduction. So i and j may miss the best by a relative
2^-12, and convergence is decided only by a scan of all of U and V. It can stall at the resolution of float32;
its caller updates F in float64 and checks again. ``iterate_exactly`` is the plain float64 loop for when that
is not enough.
"""

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.learners.svm.kernels import LEAST_CURVATURE
from ckcv_ray.learners.svm.machine_code import compile_listed
from ckcv_ray.learners.svm.memory import LANES, Single
from ckcv_ray.learners.svm.simd import FAST, fuse, greater, largest_gain, lesser, lowest, wide

Double = NDArray[np.float64]


@compile_listed(fastmath=FAST)
def iterate(
    M: Single,
    U: Single,
    V: Single,
    b: Double,
    lo: Double,
    hi: Double,
    tolerance: float,
    budget: int,
    mask: int,
) -> int:
    """Iterate until the violation is below tolerance or the budget is spent; return the iterations made.

    Updates b, U and V. ``mask`` clears as many low bits as an index needs.
    """
    wide()
    n = U.shape[0] // LANES * LANES
    infinity = np.float32(np.inf)
    zero = np.float32(0.0)
    limit = np.float32(tolerance)
    keep = np.int32(mask)
    i = _lowest_place(U)
    for iteration in range(budget):
        Mi, least = M[i], U[i]
        best = np.int32(-(2**31))
        for k in range(n):
            best = largest_gain(best, greater(V[k] - least, zero), Mi[k], k, keep)
        j = np.int64(best & ~keep)
        if not V[j] - least >= limit:
            low, high = infinity, -infinity
            for k in range(n):
                low, high = lesser(U[k], low), greater(V[k], high)
            if not high - low >= limit:
                return iteration
            if low < least:
                i = _lowest_place(U)
                continue
        Mj = M[j]
        Fi, Fj, curvature = U[i], V[j], 2.0 * np.float64(Mi[j])
        step = (np.float64(Fj) - np.float64(Fi)) / curvature
        room_i, room_j = hi[i] - b[i], b[j] - lo[j]
        step = min(step, min(room_i, room_j))
        b[i] = hi[i] if step == room_i else b[i] + step
        b[j] = lo[j] if step == room_j else b[j] - step
        if b[i] == hi[i]:
            U[i] = infinity
        if V[i] == -infinity:
            V[i] = Fi
        if b[j] == lo[j]:
            V[j] = -infinity
        if U[j] == infinity:
            U[j] = Fj
        t = np.float32(step)
        floor = np.float32(Fi - step * np.sqrt(curvature))
        key = np.int32(2**31 - 1)
        for k in range(n):
            change = Mj[k] - Mi[k]
            u = fuse(t, change, U[k])
            U[k] = u
            V[k] = fuse(t, change, V[k])
            key = lowest(key, u - floor, k, keep)
        i = np.int64(key & ~keep)
    return budget


@compile_listed()
def _lowest_place(U: Single) -> int:
    place = 0
    for k in range(U.shape[0]):
        if U[k] < U[place]:
            place = k
    return place


@compile_listed()
def iterate_exactly(
    M: Double, F: Double, b: Double, lo: Double, hi: Double, tolerance: float, budget: int
) -> int:
    """Do the same in plain float64, for tolerances below the resolution of float32."""
    n = F.shape[0]
    for iteration in range(budget):
        i = -1
        for k in range(n):
            if b[k] < hi[k] and (i < 0 or F[k] < F[i]):
                i = k
        j, gain, violation = -1, 0.0, 0.0
        for k in range(n):
            if b[k] > lo[k] and F[k] > F[i]:
                difference = F[k] - F[i]
                violation = max(violation, difference)
                candidate = difference * difference / max(M[i, k], LEAST_CURVATURE)
                if candidate > gain:
                    j, gain = k, candidate
        if violation < tolerance or j < 0:
            return iteration
        step = (F[j] - F[i]) / (2.0 * max(M[i, j], LEAST_CURVATURE))
        room_i, room_j = hi[i] - b[i], b[j] - lo[j]
        step = min(step, min(room_i, room_j))
        b[i] = hi[i] if step == room_i else b[i] + step
        b[j] = lo[j] if step == room_j else b[j] - step
        for k in range(n):
            F[k] += step * (M[j, k] - M[i, k])
    return budget
