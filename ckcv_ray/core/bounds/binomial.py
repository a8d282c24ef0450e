"""Upper confidence bounds on an error rate after ``errors`` mistakes on ``m`` independent rows.

Clopper and Pearson (Biometrika 26, 1934): U(x; m) is the p at which P(Bin(m, p) <= x) = delta, so that
P(p > U(X; m)) <= delta for every p. It is the upper delta quantile of Beta(x + 1, m - x), and 1 at x = m.
(Equation (3) of Anguita et al. 2012 prints p^s where p^j is meant.)

Stevens (Biometrika 37, 1950): sup{p : F(x - 1; p) + v f(x; p) > delta} for a v drawn uniformly from (0, 1),
with f and F the binomial weights and their sums. It fails with probability exactly delta, and lies between
U(x - 1; m) and U(x; m).

Neither may be averaged: over overlapping splits, the mean of such bounds can fail more often than each of
them does. Two bounds may be averaged, under any dependence between the splits:

Safe, A(x; m) = x/m + max over j <= x of (U'(j; m) - j/m), with U' at a level delta' below delta. If for some
lam > 0 and every p

    E max(0, 1 - lam (A(X) - p)) <= delta,    X ~ Bin(m, p),

then P(R >= mean A(X_i)) <= delta, where R is the mean of the risks (docs/theory/bounds.md, "The
averaging-safe bound"). ``find_safe_level`` finds the largest delta' that satisfies the condition for the best
lam, checked for all p (``averaging``). A may exceed 1: it is averaged first, then capped at 1.

Catoni (2007): R <= (1 - exp(-lam r - ln(1/delta)/m)) / (1 - exp(-lam)) for the mean error rate r, since
E exp(-lam X) = (1 - p (1 - exp(-lam)))^m; lam is fixed in advance as sqrt(2 ln(1/delta) / (m p0)), p0 = 0.1.

Stevens' bound without a random number: for h rows in an order that is drawn without regard to them, each of
the C(h, x) sets of positions of x wrong rows is equally likely, and the number of the set that occurred,
divided by C(h, x), replaces v (docs/theory/bounds.md, "By positions, without a random number"). With
positions c_1 < .. < c_x, counted from 0, it is 1 + C(c_1, 1) + .. + C(c_x, x) (Knuth, The Art of Computer
Programming 4A, section 7.2.1.3); without errors it is 1, which gives Clopper-Pearson.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import comb, exp, log, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.bounds.averaging import find_largest_level
from ckcv_ray.errors import Counts, InputError, as_array, number

MIN_DELTA = 1e-100  # below this, scipy's inverse beta function returns nan or decreases in x
TYPICAL_RATE = 0.1  # p0 of Catoni's lam
MAX_ROWS = 1 << 24  # rows within which a bound is looked for
MAX_CHECKED = 5_000  # largest m for which the condition on A is checked
TAIL = 1e-15  # probability of the counts left out of long sums
TIE = 1e-12  # by which a computed probability may fall below its exact value, such as one half
Bounds = NDArray[np.float64]
Wrong = NDArray[np.bool_]


def clopper_pearson(errors: ArrayLike, m: ArrayLike, delta: float = 0.05) -> Any:
    """Compute the Clopper-Pearson upper bound at confidence 1 - delta, elementwise.

    Args:
        errors: integers, 0 <= errors <= m, any shape.
        m: integers >= 0, broadcast against ``errors``; m = 0 gives 1.
        delta: allowed failure probability of the bound, in (0, 1).

    Returns:
        float64 in (0, 1], of the broadcast shape; a float if both arguments are scalars.

    Raises:
        InputError: a count is not an integer in its range, or delta is outside (0, 1).
    """
    x, size = _check_counts(errors, m, delta)
    below = x < size
    bound = np.where(below, scipy.special.betainccinv(x + 1.0, np.where(below, size - x, 1.0), delta), 1.0)
    return bound if bound.ndim else float(bound)


def find_fewest_rows(allowed: float, misses: int, delta: float) -> int:
    """Return the fewest rows whose Clopper-Pearson bound after some misses is at most ``allowed``."""
    return find_first(lambda m: clopper_pearson(misses, m, delta) <= allowed, misses + 1, MAX_ROWS)


def find_rows_for_good(
    risks: Sequence[float], holds: Callable[..., Wrong], delta: float, power: float, most: int
) -> int:
    """Return the number of rows from which on a statement is proven with a given probability, for good.

    This probability is a sawtooth: each further row lowers it, until one more may be wrong. From ``low`` to
    ``high`` rows it is at least that of the counts of ``high`` with the bounds for ``low``, since with more
    rows counts are larger, and the bound at a given count is smaller: whole stretches pass, from above.

    Args:
        risks: the probability that a row is wrong, of one kind of rows or two, each in [0, 1).
        holds: returns whether the statement holds if the risks are at most these, elementwise; not at 1.
        delta: probability with which the bounds may fail; two kinds get half of it each.
        power: the probability of the proof, in (0, 1).
        most: the largest number of rows of each kind to consider.

    Returns:
        The number of rows of each kind, the same for both; ``most`` + 1 if ``most`` do not prove it.
    """
    binomial, each = scipy.stats.binom, delta / len(risks)
    power -= TIE

    def proves(low: int, high: int) -> bool:
        if len(risks) == 1:
            likely = np.minimum(binomial.ppf(power, high, risks[0]), low).astype(int)
            return bool(holds(clopper_pearson(likely, low, each)))
        chances, bounds = list[Bounds](), list[Bounds]()
        for risk in risks:
            least, largest = binomial.ppf(TAIL, high, risk), high - binomial.ppf(TAIL, high, 1 - risk)
            counts = np.arange(least, largest + 1).astype(int)
            chances.append(binomial.pmf(counts, high, risk))
            bounds.append(clopper_pearson(np.minimum(counts, low), low, each))
        few = np.zeros(len(bounds[0]), dtype=int)  # counts of the second kind that go with each of the first
        for digit in reversed(range(len(bounds[1]).bit_length())):
            more = few + (1 << digit)
            bound = np.append(1.0, bounds[1])[np.where(more <= len(bounds[1]), more, 0)]
            few = np.where(holds(bounds[0], bound), more, few)
        return bool(chances[0] @ np.append(0, np.cumsum(chances[1]))[few] >= power)

    n, step = most, most // 2
    while True:
        if proves(max(0, n - step), n):
            n, step = n - step - 1, step + step // 4 + 1
        elif step:
            step //= 2
        else:
            return n + 1


def bound_both_sides(errors: int, m: int, delta: float) -> tuple[float, float]:
    """Return the exact interval of an error rate: two Clopper-Pearson bounds, each at delta / 2.

    Args:
        errors: wrong rows, 0..m.
        m: independent rows.
        delta: probability with which the interval may miss the rate.

    Returns:
        The lower and the upper end, in [0, 1]; (0, 1) for no rows.

    Raises:
        InputError: as for ``clopper_pearson``.
    """
    upper = clopper_pearson([errors, m - errors], m, delta / 2).tolist()
    return 1 - upper[1], upper[0]


def stevens(errors: ArrayLike, m: ArrayLike, v: ArrayLike, delta: float = 0.05) -> Any:
    """Compute Stevens' randomised upper bound, which fails with probability exactly delta; elementwise.

    Args:
        errors, m, delta: as for ``clopper_pearson``.
        v: uniform draws from (0, 1), independent of the data; v = 1 gives Clopper-Pearson.

    Returns:
        float64 in [0, 1], of the broadcast shape; a float if all arguments are scalars.

    Raises:
        InputError: as for ``clopper_pearson``, or a v is outside [0, 1].
    """
    from scipy.optimize import elementwise

    x, size = _check_counts(errors, m, delta)
    share = np.asarray(v, dtype=np.float64)
    if not np.all((share >= 0) & (share <= 1)):
        raise InputError(f"v={v!r} is outside [0, 1]: v is drawn uniformly from this interval")
    x, size, share = np.broadcast_arrays(x, size, share)
    high = np.asarray(clopper_pearson(x, size, delta))
    low = np.where(x > 0, clopper_pearson(np.maximum(x - 1, 0), np.maximum(size, 1), delta), 0.0)

    def excess(p: Bounds, x: Any, size: Any, share: Any) -> Bounds:
        """Compute F(x - 1; p) + v f(x; p) - delta, which decreases in p."""
        below = np.where(x > 0, scipy.special.bdtr(np.maximum(x - 1, 0), size, p), 0.0)
        return np.asarray((1 - share) * below + share * scipy.special.bdtr(x, size, p) - delta)

    at_low, at_high = excess(low, x, size, share), excess(high, x, size, share)
    inside = (size > 0) & (at_low > 0) & (at_high < 0)
    bound = np.where((at_low <= 0) & (size > 0), low, high)
    if inside.any():
        chosen = tuple(a[inside] for a in (x, size, share))
        bound[inside] = elementwise.find_root(excess, (low[inside], high[inside]), args=chosen).x
    return bound if bound.ndim else float(bound)


@lru_cache(maxsize=256)
def make_safe_table(m: int, delta: float) -> Bounds:
    """Return A for every count: element x is A(x; m), shape (m + 1,); the array is cached: do not modify it.

    If no level is found, as for a few rows and a tiny delta, all elements are 1, which is always valid.
    """
    level = find_safe_level(m, delta)
    return _safe_at(m, level) if level else np.ones(m + 1)


@lru_cache(maxsize=1024)
def find_safe_level(m: int, delta: float) -> float | None:
    """Find the largest level, to 1 part in 1000, at which A(.; m) satisfies the condition; None if none.

    Raises:
        InputError: m is outside 1 .. ``MAX_CHECKED``, or delta outside (0, 1).
    """
    check_delta(delta)
    if not 1 <= m <= MAX_CHECKED:
        raise InputError(f"m={m} is outside 1..{MAX_CHECKED}, the range checked for the safe bound")
    return find_largest_level(partial(_safe_at, m), delta, MIN_DELTA)


def catoni(rate: float, m: int, delta: float = 0.05) -> float:
    """Compute Catoni's upper bound on the mean risk from the mean error rate over splits of m rows each.

    Args:
        rate: mean over the splits of errors / m, in [0, 1]; the splits may depend on each other.
        m: rows in each split, at least 1.
        delta: allowed failure probability of the bound.

    Raises:
        InputError: an argument is outside its range.
    """
    check_delta(delta)
    if not (0.0 <= rate <= 1.0 and m >= 1):
        raise InputError(f"rate={rate!r}, m={m!r}: the rate must be in [0, 1] and m at least 1")
    lam = sqrt(2 * log(1 / delta) / (m * TYPICAL_RATE))
    return min(1.0, (1 - exp(-lam * rate - log(1 / delta) / m)) / (1 - exp(-lam)))


def count_without(copies: int, m: int) -> int:
    """Return how many of m units count where this many, not known which, are copies of others."""
    return max(0, m - copies)


def bound_table(m: int, delta: float) -> Bounds:
    """Return the Clopper-Pearson bound for every count: element x is U(x; m), shape (m + 1,)."""
    return np.asarray(clopper_pearson(np.arange(m + 1), m, delta))


def check_delta(delta: float) -> None:
    """Raise InputError unless delta is inside (0, 1) and not below ``MIN_DELTA``."""
    if not MIN_DELTA <= number("delta", delta) < 1.0:
        reason = f"below {MIN_DELTA:g}, the smallest supported" if 0.0 < delta < 1.0 else "outside (0, 1)"
        raise InputError(f"delta={delta!r} is {reason}: it is a failure probability, for example 0.05")


def _safe_at(m: int, level: float) -> Bounds:
    """Compute A(.; m) from Clopper-Pearson bounds at a level, shape (m + 1,)."""
    rate = np.arange(m + 1) / m
    return np.asarray(rate + np.maximum.accumulate(bound_table(m, level) - rate))


def _check_counts(errors: ArrayLike, m: ArrayLike, delta: float) -> tuple[Counts, Counts]:
    """Return the counts and sizes, checked and broadcast."""
    x, size = _counts(errors, "errors"), _counts(m, "m")
    check_delta(delta)
    try:
        x, size = np.broadcast_arrays(x, size)
    except ValueError:
        raise InputError(
            f"errors has shape {x.shape} and m {size.shape}: give one m for each, or one for all"
        ) from None
    if (x > size).any():
        first = np.argmax(x > size)
        raise InputError(f"errors={x.flat[first]} is above m={size.flat[first]}: errors are in 0..m")
    return x, size


def _counts(values: ArrayLike, name: str) -> Counts:
    array = as_array(name, values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has type {array.dtype}: counts are whole numbers")
    if (array < 0).any():
        raise InputError(f"{name}={array.min()} is negative: counts are 0 or more")
    return array.astype(np.int64)


SHARPEST = 1 << 60  # V is rounded up once the rest of it is a smaller part than 1 / SHARPEST


def bound_in_order(wrong: Wrong, delta: float) -> float:
    """Compute Stevens' upper bound with V from the positions of the wrong rows.

    Args:
        wrong: whether each row is wrong, (h,), in an order that is drawn without regard to the rows.
        delta: allowed failure probability of the bound.

    Returns:
        A float in (0, 1]; 1 for no rows.
    """
    return float(stevens(int(np.sum(wrong)), len(wrong), rank_positions(wrong), delta))


def rank_positions(wrong: Wrong) -> float:
    """Compute V: the index of the set of positions of the wrong rows, divided by the number of such sets.

    The integers are exact. Once the remaining positions change V by less than 1 / ``SHARPEST``, V is rounded
    up: as it is never too small, the bound stays valid.
    """
    positions: list[Any] = np.flatnonzero(wrong).tolist()
    sets, below = comb(len(wrong), len(positions)), 0
    for i in range(len(positions), 0, -1):
        below += comb(positions[i - 1], i)
        left = comb(positions[i - 1], i - 1)  # sets with the same last positions
        if left * SHARPEST < sets:
            return (below + left) / sets
    return (below + 1) / sets


def find_first(passes: Callable[[int], bool], low: int, most: int) -> int:
    """Return the first of low .. most that passes; ``most``, untested, if none below it does."""
    high = low
    while high < most and not passes(high):
        low, high = high + 1, min(max(1, 2 * high), most)
    return low + bisect_left(range(low, high), True, key=passes)
