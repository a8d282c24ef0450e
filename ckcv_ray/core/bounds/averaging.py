"""The level at which bounds A(x; m) on one count may be averaged over dependent splits.

The condition, for X ~ Bin(m, p) and some slope lam > 0 that depends on (m, delta) alone, is

    G(p) = E h(X, p) <= delta for all p,    h(x, p) = max(0, 1 - lam (A(x) - p)).

``satisfies`` proves it on intervals (docs/theory/bounds.md). With b the binomial weights, F(s, r) = E h(X, r)
for X ~ Bin(m, s), and D the sum over x < m of m min(b(x; m - 1, low), b(x; m - 1, high)) times
h(x, low) - h(x + 1, low),

    G(r) <= max(F(low, low), F(low, high) - (high - low) D)    for low <= r <= high,

which exceeds G by a term of order (high - low)^2: repeatedly halving the intervals on which it is above delta
soon terminates.

The search: a smaller level gives a larger A and a smaller G; G is convex in lam, and so is its maximum over
p. The best lam for a level is found by bisection on the sign of a derivative, on points p that do not depend
on delta; proofs are attempted from the largest level that passes on these points. The result is the largest
level with a proof, so a smaller delta never has a larger level. Levels have eleven significant bits and are
the same on every machine.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from math import ceil, exp, frexp, ldexp, log, log2, pi, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

WIDEST = 100.0  # largest delta / level tried
LEVEL_STEPS = 1024  # levels per factor of two
MIN_WIDTH = 2.0**-40  # width of the narrowest interval examined
EXPECTATION_ROUNDING = 1e-9  # far above the rounding error of the expectations compared with delta
TINY = 1e-300  # replaces 0 in logarithms; a zero weight becomes at most m times this
ENTRIES = 1_000_000  # weights that the proof keeps in memory at a time
HALVINGS = 24  # bisection steps on log lam
Array = NDArray[np.float64]


def find_largest_level(table: Callable[[float], Array], delta: float, least: float) -> float | None:
    """Find the largest level, from max(delta / ``WIDEST``, least) to delta, whose table is safe.

    Args:
        table: A(.; m) computed from bounds at a level: ascending, shape (m + 1,), larger for smaller levels.
        delta: allowed probability that the mean of such bounds is below the mean risk.
        least: smallest level for which ``table`` may be called.

    Returns:
        The level to 1 part in ``LEVEL_STEPS``; None if there is none.
    """
    m = len(table(delta)) - 1
    # evenly spaced in arcsin sqrt p, denser where errors are few
    coarse = np.linspace(0.0, pi / 2, max(512, min(2048, ENTRIES // (2 * m))))
    fine = np.linspace(0.0, min(7 / sqrt(m), pi / 2), 672)
    points = np.asarray(np.sin(np.union1d(coarse, fine)) ** 2)
    by_count = np.ascontiguousarray(_weights(m, points).T)  # the weights of a count are contiguous
    sums = _accumulate(by_count.copy())

    @cache
    def best_slope(step: int) -> tuple[float, float]:
        """Find the lam with the smallest maximum of G over the points, and that maximum."""
        A = table(_level(step))
        moments = _accumulate(by_count * A[:, None])
        low, high = log(1e-3), log(1 / _level(step) + 10 * len(A))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rising = _worst(A, exp(middle), points, sums, moments)[1] >= 0
            low, high = (low, middle) if rising else (middle, high)
        return exp(high), _worst(A, exp(high), points, sums, moments)[0]

    @cache
    def is_proven(step: int) -> bool:
        return satisfies(table(_level(step)), best_slope(step)[0], delta)

    first, last = _step(delta), _step(max(delta / WIDEST, least)) - 1
    if first > last:
        return None
    near = first
    for _ in range(6):  # initial guess: the largest expectation is nearly proportional to the level
        near += ceil(LEVEL_STEPS * log2(max(best_slope(near)[1], TINY) / delta))
        near = min(max(near, first), last)
    near = min(_first(lambda step: best_slope(step)[1] <= delta, near, first, last), last)
    step = _first(is_proven, near, first, last)
    return None if step > last else _level(step)


def satisfies(A: Array, lam: float, delta: float) -> bool:
    """Return whether E max(0, 1 - lam (A(X) - p)) <= delta for X ~ Bin(m, p) and every p in [0, 1].

    Args:
        A: a bound for every count, ascending, shape (m + 1,).
        lam: slope, positive.
        delta: upper limit of the expectation.

    Intervals on which the bound in the module docstring is above delta are halved until none remain, or until
    the expectation itself is above delta at some point.
    """
    allowed = delta * (1 - EXPECTATION_ROUNDING)
    lost = delta * EXPECTATION_ROUNDING / 2 / (1 + lam)
    ends = np.linspace(0.0, 1.0, 4 * int(sqrt(len(A))) + 9)
    low, high = ends[:-1], ends[1:]
    while len(low):
        if np.min(high - low) < MIN_WIDTH:
            return False
        open_ = []
        rows = max(1, ENTRIES // len(A))
        for i in range(0, len(low), rows):
            at_low, most = _bound_expectation(A, lam, low[i : i + rows], high[i : i + rows], lost)
            if np.any(at_low > allowed):
                return False
            open_.append(most > allowed)
        unproven = np.concatenate(open_)
        low, high = low[unproven], high[unproven]
        middle = (low + high) / 2
        low, high = np.stack([low, middle], axis=1).ravel(), np.stack([middle, high], axis=1).ravel()
    return True


def _bound_expectation(A: Array, lam: float, low: Array, high: Array, lost: float) -> tuple[Array, Array]:
    """Compute G at the lower ends of intervals in ascending order, and its upper bound on each interval.

    Both omit the lowest counts, whose probability is at most ``lost``, and those at which h is zero.
    """
    m = len(A) - 1
    first = int(max(0.0, m * low[0] - sqrt(2 * m * low[0] * log(1 / lost))))  # Chernoff
    last = int(np.searchsorted(A, high.max() + 1 / lam, side="right")) + 1
    A = A[first:last]
    ends, places = np.unique(np.stack([low, high]), return_inverse=True)  # neighbours share their ends
    weights, ahead = _weights(m, ends, first, last)[places]
    below, above = _terms(A, lam, low), _terms(A, lam, high)
    at_low = np.vecdot(weights, below)
    # m b(x; m - 1, s) is (m - x) b(x; m, s) / (1 - s)
    shared = np.minimum(weights / (1 - low)[:, None], ahead / np.maximum(1 - high, TINY)[:, None])
    x = np.arange(first, first + len(A) - 1)
    D = np.vecdot(shared[:, :-1], (m - x) * -np.diff(below))
    return at_low, np.maximum(at_low, np.vecdot(weights, above) - (high - low) * D)


def _terms(A: Array, lam: float, p: Array) -> Array:
    """Return h for each p and count, shape (len(p), len(A))."""
    h = A - p[:, None]
    h *= -lam
    h += 1
    return np.maximum(0.0, h, out=h)


def _weights(m: int, p: Array, first: int = 0, last: int | None = None) -> Array:
    """Compute the binomial weights of counts first .. last - 1 (default: to m), shape (len(p), counts)."""
    x = np.arange(m + 1)[first:last]
    logs = np.multiply.outer(np.log(np.maximum(p, TINY)), x)
    logs += np.multiply.outer(np.log(np.maximum(1 - p, TINY)), m - x)
    logs -= np.log1p(m) + scipy.special.betaln(m - x + 1, x + 1)
    return np.asarray(np.exp(logs, out=logs))


def _accumulate(rows: Array) -> Array:
    """Replace each row by the sum of all rows up to it, in order; returns the same array."""
    for i in range(1, len(rows)):  # four times as fast as cumsum, with the same bits
        rows[i] += rows[i - 1]
    return rows


def _worst(A: Array, lam: float, p: Array, sums: Array, moments: Array) -> tuple[float, float]:
    """Return the largest G over the points p, and its derivative with respect to lam.

    ``sums`` and ``moments`` are cumulative over counts, of the weights and of weights times A, (m + 1, n).
    """
    counts = np.searchsorted(A, p + 1 / lam)  # number of counts at which h is positive
    last, columns = np.maximum(counts - 1, 0), np.arange(len(p))
    share = np.where(counts, sums[last, columns], 0.0)
    slope = np.where(counts, p * share - moments[last, columns], 0.0)
    G = share + lam * slope
    i = np.argmax(G)
    return float(G[i]), float(slope[i])


def _level(step: int) -> float:
    """Return level number ``step``: 1, 2047/2048, 2046/2048, .. 1/2, 2047/4096, .."""
    return ldexp(2 * LEVEL_STEPS - step % LEVEL_STEPS, -11 - step // LEVEL_STEPS)


def _step(level: float) -> int:
    """Return the number of the first level that is at most ``level``."""
    fraction, exponent = frexp(level)
    return 2 * LEVEL_STEPS - int(2 * LEVEL_STEPS * fraction) - LEVEL_STEPS * exponent


def _first(passes: Callable[[int], bool], near: int, low: int, high: int) -> int:
    """Find the first of low .. high that passes, where all above it pass too; high + 1 if none does.

    The search starts at ``near`` and doubles its steps.
    """
    width = 1
    if passes(near):
        high = near
        while high - width >= low and passes(high - width):
            high, width = high - width, 2 * width
        low = max(low, high - width)
    else:
        low = near + 1
        while low + width <= high and not passes(low + width):
            low, width = low + width + 1, 2 * width
        high = min(low + width, high + 1)
    return low + bisect_left(range(low, high), True, key=passes)
