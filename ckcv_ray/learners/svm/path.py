"""The path in C: each C starts from the previous solution and alternates pair steps and Newton steps.

A row's bound is C times the weight of its class, ``highest`` or ``lowest`` in signed variables. The smallest
C starts with as many variables at their bound as sum b = 0 allows. At each later C the previous
b is scaled by the s that minimises the objective, s = y'b / b'Kb, as far as the box allows. Then
``iterate`` runs for about the time one Newton step would take (as in ski rental), at least n/2
iterations the first time; if it has not converged, ``newton`` solves for the free variables; and so on. The
budgets are counts derived from sizes, so a solution depends only on its inputs. F is kept in float64 and
updated from what changed; float32 is used only between two such updates.

If no |b| has reached its bound, the box has no effect: the solution is that of every larger C.

What did not pay off: a Newton step first at a new C, from b scaled to its bounds (1.6 times slower); updating
F only where the Newton step reads it; mirroring half of the kernel (1.2-1.7 times slower than computing all
of it); sorting the free variables by their distance to the bounds.

Sequential minimal optimisation: two variables at a time, chosen by second-order information.

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

from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from ckcv_ray.learners.svm.compile import FAST, compile_listed, emit, entry, greater, lesser, wide
from ckcv_ray.learners.svm.kernels import MIN_CURVATURE, Complement, RowIndex
from ckcv_ray.learners.svm.newton import WORK_ROWS, newton
from ckcv_ray.learners.svm.problem import (
    AT_BOUND,
    DOUBLES,
    EQUAL,
    LANES,
    Matrix,
    Options,
    Single,
    Solutions,
    Vector,
    Weights,
    empty_fits,
    fit_constant,
    round_up,
    scratch,
    writable,
)

Double = NDArray[np.float64]
INT32 = ir.IntType(32)


def _pack(builder: Any, value: Any, index: Any, mask: Any) -> Any:
    """Write the upper bits of a value above an index, in one int32."""
    return builder.or_(builder.and_(value, mask), builder.trunc(index, INT32))


def _gain(builder: Any, best: Any, difference: Any, m: Any, index: Any, mask: Any) -> Any:
    gain = builder.bitcast(builder.fmul(difference, difference), INT32)
    key = _pack(builder, builder.sub(gain, builder.bitcast(m, INT32)), index, mask)
    return builder.select(builder.icmp_signed(">", key, best), key, best)


def _height(builder: Any, best: Any, height: Any, index: Any, mask: Any) -> Any:
    key = _pack(builder, builder.bitcast(height, INT32), index, mask)
    return builder.select(builder.icmp_signed("<", key, best), key, best)


# a * b + c, rounded once
fuse = emit(None, lambda builder, a, b, c: builder.fma(a, b, c))
# max(best, key), where key holds about log2(difference^2 / m) above the index, in one int32. The bits of a
# positive float, read as an integer, are its logarithm with the mantissa as the fraction; so a subtraction
# replaces the division, to within 9 percent of the gain
largest_gain = emit(types.int32(types.int32, types.float32, types.float32, types.int64, types.int32), _gain)
# min(best, key), where key holds the upper bits of height above the index; negative if height is, by rounding
lowest = emit(types.int32(types.int32, types.float32, types.int64, types.int32), _height)


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
    """Do the same as ``iterate`` in plain float64, for tolerances below the resolution of float32."""
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
                candidate = difference * difference / max(M[i, k], MIN_CURVATURE)
                if candidate > gain:
                    j, gain = k, candidate
        if violation < tolerance or j < 0:
            return iteration
        step = (F[j] - F[i]) / (2.0 * max(M[i, j], MIN_CURVATURE))
        room_i, room_j = hi[i] - b[i], b[j] - lo[j]
        step = min(step, min(room_i, room_j))
        b[i] = hi[i] if step == room_i else b[i] + step
        b[j] = lo[j] if step == room_j else b[j] - step
        for k in range(n):
            F[k] += step * (M[j, k] - M[i, k])
    return budget


MAX_FREE = 2000
MARGIN = 0.98
PATIENCE = 10
MIN_BUDGET = 16


class Workspace(NamedTuple):
    """Scratch memory for n training rows."""

    state: Matrix  # b, lo, hi, F and an earlier b, [5, n rounded up to lanes]
    rows: NDArray[np.float32]  # U and V of ``iterate``, [2, n rounded up to lanes]
    positions: RowIndex  # of changed variables, of free ones, and of these ones' rows in A; [3, n + 1]
    factors: Matrix  # A and U of ``newton``, [2, most, most]
    work: Matrix  # its rows, [WORK_ROWS, most]


def path(M: Complement, y: Vector, options: Options, weights: Weights = EQUAL) -> Solutions:
    """Fit each C in turn, starting from the previous solution.

    Args:
        M: 1 - K of the n training rows, symmetric, never written to. With sum b = 0, Kb = -Mb.
        y: labels -1.0 or +1.0, shape (n,); a single class gives the constant classifier.
        options: the costs, and when to stop.
        weights: weights of the two classes, positive.
    """
    C_values, tolerance, max_iter = options
    if (y == y[:1]).all():
        return fit_constant(y, len(C_values))
    M, y, n = Complement(writable(M.double), writable(M.single)), writable(y), len(y)
    fits = empty_fits(len(C_values), n)
    space = workspace(n, get_ident())
    solve = entry(_solve_path)
    solve(M, y, np.array(C_values), tolerance, max_iter, index_mask(n), weights, space, fits)
    return fits


def index_mask(n: int) -> int:
    """Return a mask that clears the low bits an index needs: at least 11, to treat up to 2048 rows alike."""
    return -(1 << max(11, (n + LANES).bit_length()))


@lru_cache(maxsize=1)
def workspace(n: int, thread: int) -> Workspace:
    """Return a thread's scratch memory for n training rows."""
    width, most = round_up(n, LANES), round_up(min(n, MAX_FREE), DOUBLES)
    return Workspace(
        state=scratch("state", (5, width), np.float64),
        rows=scratch("rows", (2, width), np.float32),
        positions=scratch("positions", (3, n + 1), np.int64),
        factors=scratch("factors", (2, most, most), np.float64),
        work=scratch("work", (WORK_ROWS, most), np.float64),
    )


@compile_listed()
def _solve_path(
    M: Complement,
    y: Vector,
    C_values: Vector,
    tolerance: float,
    max_iter: int,
    mask: int,
    weights: Weights,
    space: Workspace,
    fits: Solutions,
) -> None:
    n = y.shape[0]
    b, lo, hi, F = space.state[0], space.state[1], space.state[2], space.state[3, :n]
    solved = False
    for c in range(C_values.shape[0]):
        C = C_values[c]
        lowest, highest = -C * weights.negative, C * weights.positive
        for k in range(n):
            lo[k], hi[k] = (0.0, highest) if y[k] > 0.0 else (lowest, 0.0)
        if c == 0:
            _begin(M.double, F, y, b, lowest, highest, space)
        elif not solved:
            rescale(F, y, b, lo, hi, lowest, highest)
        if not solved:
            fits.n_iter[c] = optimise(M, F, b, lo, hi, tolerance, max_iter, mask, space)
        least, most = 0.0, 0.0
        for k in range(n):
            fits.b[c, k] = b[k]
            least, most = min(least, b[k]), max(most, b[k])
        describe_fit(F, y, b, lo, hi, c, fits)
        fits.converged[c] = solved or fits.violation[c] < tolerance
        solved = solved or (fits.converged[c] and lowest < least and most < highest)


@compile_listed()
def _begin(
    M: Matrix, F: Vector, y: Vector, b: Vector, lowest: float, highest: float, space: Workspace
) -> None:
    """Start with as many b at their bound as the constraint sum b = 0 allows, if the objective still falls
    along that ray, else at zero. The solution for a small C is near that start; from zero, the solver would
    reach it one variable after the other.

    In the class whose bounds add up to more, the last variable used is between its bounds.
    """
    n = y.shape[0]
    positive = 0
    for k in range(n):
        positive += y[k] > 0.0
    upper = _whole(min(positive, (n - positive) * (-lowest / highest)))  # rows used of each class
    lower = _whole(min(n - positive, positive * (highest / -lowest)))
    linear = highest * upper - lowest * lower
    known = space.state[4]
    quadratic = 0.0
    for k in range(n):
        if y[k] > 0.0:
            b[k] = highest * min(upper, 1.0) if upper > 0.0 else 0.0
            upper -= 1.0
        else:
            b[k] = lowest * min(lower, 1.0) if lower > 0.0 else 0.0
            lower -= 1.0
        F[k], known[k] = -y[k], 0.0
    _refresh(M, F, b, known, space.positions[0])
    for k in range(n):
        quadratic += b[k] * (F[k] + y[k])
    if quadratic > linear:
        for k in range(n):
            F[k], b[k] = -y[k], 0.0


@compile_listed()
def _whole(rows: float) -> float:
    """Round a number that is whole except for rounding errors."""
    nearest = np.rint(rows)
    return nearest if abs(rows - nearest) <= AT_BOUND * nearest else rows


@compile_listed(fastmath=FAST)
def rescale(F: Vector, y: Vector, b: Vector, lo: Vector, hi: Vector, lowest: float, highest: float) -> None:
    """Scale b, and F accordingly, to minimise the objective along the ray."""
    wide()
    n = y.shape[0]
    linear, quadratic, least, most = 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        linear += y[k] * b[k]
        quadratic += b[k] * (F[k] + y[k])
        least, most = lesser(b[k], least), greater(b[k], most)
    if not (linear > 0.0 and quadratic > 0.0):
        return
    scale = min(linear / quadratic, min(highest / most, lowest / least))
    at_highest, at_lowest = highest * (1.0 - AT_BOUND), lowest * (1.0 - AT_BOUND)
    for k in range(n):
        moved = scale * b[k]
        moved = hi[k] if moved > at_highest else moved
        b[k] = lo[k] if moved < at_lowest else moved
        F[k] = scale * (F[k] + y[k]) - y[k]


@compile_listed()
def optimise(
    M: Complement,
    F: Vector,
    b: Vector,
    lo: Vector,
    hi: Vector,
    tolerance: float,
    max_iter: int,
    mask: int,
    space: Workspace,
) -> int:
    """Move b and F to the optimum at one C; return the iterations, where a linear system counts as one."""
    n = F.shape[0]
    before, changed = space.state[4], space.positions[0]
    A, U, free, place = space.factors[0], space.factors[1], space.positions[1], space.positions[2]
    done, stalls, lowest = 0, 0, np.inf
    budget = max(n // 2, _newton_budget(b, lo, hi, n))
    violation = _violation(F, b, lo, hi)
    while violation >= tolerance and done < max_iter:
        stalls = stalls + 1 if violation > 0.9 * lowest else 0
        lowest = min(lowest, violation)
        _copy(b, before, n)
        if stalls < PATIENCE:
            _fill_rows(F, b, lo, hi, space.rows[0], space.rows[1])
            done += iterate(
                M.single, space.rows[0], space.rows[1], b, lo, hi,
                MARGIN * tolerance, min(budget, max_iter - done), mask,
            )  # fmt: skip
            _refresh(M.double, F, b, before, changed)
        else:
            done += iterate_exactly(M.double, F, b, lo, hi, tolerance, min(budget, max_iter - done))
        violation = _violation(F, b, lo, hi)
        if violation >= tolerance and done < max_iter:
            _copy(b, before, n)
            done += max(1, newton(M.double, F, b[:n], lo[:n], hi[:n], A, U, free, place, space.work))
            _refresh(M.double, F, b, before, changed)
            violation = _violation(F, b, lo, hi)
            budget = max(MIN_BUDGET, _newton_budget(b, lo, hi, n))
    return done


@compile_listed(fastmath=FAST)
def _newton_budget(b: Vector, lo: Vector, hi: Vector, n: int) -> int:
    """Return the number of pair steps that take about as long as a Newton step on the free variables."""
    wide()
    m = 0.0
    for k in range(n):
        m += 1.0 if lo[k] < b[k] and b[k] < hi[k] else 0.0
    nanoseconds = 1000.0 + 20.0 * m + 1.0 * m * m + 0.0075 * m * m * m + 0.08 * m * n
    return int(nanoseconds / (35.0 + 0.2 * n))


@compile_listed(fastmath=FAST)
def _violation(F: Vector, b: Vector, lo: Vector, hi: Vector) -> float:
    wide()
    least, most = np.inf, -np.inf
    for k in range(F.shape[0]):
        least = lesser(F[k] if b[k] < hi[k] else np.inf, least)
        most = greater(F[k] if b[k] > lo[k] else -np.inf, most)
    return most - least


@compile_listed()
def _copy(source: Vector, target: Vector, n: int) -> None:
    for k in range(n):
        target[k] = source[k]


@compile_listed()
def _fill_rows(
    F: Vector, b: Vector, lo: Vector, hi: Vector, U: NDArray[np.float32], V: NDArray[np.float32]
) -> None:
    """Fill the two float32 rows of ``iterate``, padding included."""
    wide()
    n = F.shape[0]
    for k in range(n, U.shape[0]):
        U[k], V[k] = np.float32(np.inf), np.float32(-np.inf)
    for k in range(n):
        f = np.float32(F[k])
        U[k] = f if b[k] < hi[k] else np.float32(np.inf)
        V[k] = f if b[k] > lo[k] else np.float32(-np.inf)


@compile_listed(fastmath=FAST)
def _refresh(M: Matrix, F: Vector, b: Vector, before: Vector, changed: RowIndex) -> None:
    """Update F: F -= M (b - before), over the variables that changed, four rows at a time."""
    wide()
    n = F.shape[0]
    m = 0
    for k in range(n):
        changed[m] = k
        m += b[k] != before[k]
    whole_fours = m - m % 4
    for p in range(0, whole_fours, 4):
        i0, i1, i2, i3 = changed[p], changed[p + 1], changed[p + 2], changed[p + 3]
        t0, t1, t2, t3 = b[i0] - before[i0], b[i1] - before[i1], b[i2] - before[i2], b[i3] - before[i3]
        M0, M1, M2, M3 = M[i0], M[i1], M[i2], M[i3]
        for k in range(n):
            F[k] -= (t0 * M0[k] + t1 * M1[k]) + (t2 * M2[k] + t3 * M3[k])
    for p in range(whole_fours, m):
        i0 = changed[p]
        t0, M0 = b[i0] - before[i0], M[i0]
        for k in range(n):
            F[k] -= t0 * M0[k]


@compile_listed(fastmath=FAST)
def describe_fit(F: Vector, y: Vector, b: Vector, lo: Vector, hi: Vector, c: int, fits: Solutions) -> None:
    """Compute offset, value and violation of one fit, as ``problem`` defines them; Kb = F + y."""
    wide()
    total, count, quadratic, linear = 0.0, 0.0, 0.0, 0.0
    least, most = np.inf, -np.inf
    for k in range(F.shape[0]):
        least = lesser(F[k] if b[k] < hi[k] else np.inf, least)
        most = greater(F[k] if b[k] > lo[k] else -np.inf, most)
        free = 1.0 if b[k] < hi[k] and b[k] > lo[k] else 0.0
        total -= free * F[k]
        count += free
        quadratic += b[k] * (F[k] + y[k])
        linear += b[k] * y[k]
    fits.offset[c] = total / count if count else -(least + most) / 2.0
    fits.value[c] = quadratic / 2.0 - linear
    fits.violation[c] = max(0.0, most - least)
