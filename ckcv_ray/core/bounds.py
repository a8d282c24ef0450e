"""Upper confidence bounds on an error rate after ``errors`` mistakes on ``m`` independent rows.

Clopper and Pearson (Biometrika 26, 1934): U(x; m) is the p at which P(Bin(m, p) <= x) = delta, so that
P(p > U(X; m)) <= delta for every p. It is the upper delta quantile of Beta(x + 1, m - x), and 1 at x = m.
(Equation (3) of Anguita et al. 2012 prints p^s where p^j is meant.)

Stevens (Biometrika 37, 1950): sup{p : F(x - 1; p) + v f(x; p) > delta} for a v drawn uniformly from (0, 1),
f and F the binomial weights and their sums. It fails with probability exactly delta, and lies between
U(x - 1; m) and U(x; m).

Neither may be averaged: over splits that overlap, the mean of such bounds can fail more often than each of
them does. Two that may be averaged, under any dependence between the splits:

Safe, A(x; m) = x/m + max over j <= x of (U'(j; m) - j/m), with U' at a level delta' below delta. If for some
lam > 0, whatever p,

    E max(0, 1 - lam (A(X) - p)) <= delta,    X ~ Bin(m, p),

then P(R >= mean A(X_i)) <= delta, R the mean risk: z -> max(0, 1 - lam z) is convex, so it is at the mean
of the A(X_i) - L_i at most its mean there, whose expectation is at most delta, and Markov's inequality ends
the proof (the step to the mean is that of Blum, Kalai, Langford, COLT 1999). ``safe_level`` finds the largest
delta' that keeps the condition with the best lam, checked for all p (``core.averaging``): at delta = 0.05,
delta / 1.41 for m = 10 and delta / 2.11 for m = 133. A may exceed 1: it is averaged first and capped then.

Catoni (2007): R <= (1 - exp(-lam r - ln(1/delta)/m)) / (1 - exp(-lam)) for the mean error rate r, since
E exp(-lam X) = (1 - p (1 - exp(-lam)))^m; lam is fixed beforehand as sqrt(2 ln(1/delta) / (m p0)), p0 = 0.1.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from math import exp, fsum, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betainccinv

from ckcv_ray.core.averaging import largest_level
from ckcv_ray.errors import InputError
from ckcv_ray.validation import as_array, number

LEAST_DELTA = 1e-100  # below, scipy's inverse of the beta function gives nan or falls with x
TYPICAL_RATE = 0.1  # p0 of Catoni's lam
MOST_CHECKED = 5_000  # rows up to which the condition of A is checked
BOUNDS = ("clopper_pearson", "stevens", "safe", "catoni")
Bounds = NDArray[np.float64]


def clopper_pearson(errors: ArrayLike, m: ArrayLike, delta: float = 0.05) -> Any:
    """Clopper-Pearson upper bound at confidence 1 - delta, elementwise.

    Args:
        errors: whole numbers, 0 <= errors <= m, any shape.
        m: whole numbers >= 0, broadcast against ``errors``; m = 0 gives 1.
        delta: probability with which the bound may fail, inside (0, 1).

    Returns:
        float64 in (0, 1], of the broadcast shape; a float where both arguments are scalars.

    Raises:
        InputError: a count that is not a whole number in its range, or delta outside (0, 1).
    """
    x, size = _checked(errors, m, delta)
    partial = x < size
    bound = np.where(partial, betainccinv(x + 1.0, np.where(partial, size - x, 1.0), delta), 1.0)
    return bound if bound.ndim else float(bound)


def stevens(errors: ArrayLike, m: ArrayLike, v: ArrayLike, delta: float = 0.05) -> Any:
    """Stevens' randomised upper bound, which fails with probability exactly delta; elementwise.

    Args:
        errors, m, delta: as for ``clopper_pearson``.
        v: uniform draws from (0, 1), made apart from the data; v = 1 gives Clopper-Pearson.

    Returns:
        float64 in [0, 1], of the broadcast shape; a float where all arguments are scalars.

    Raises:
        InputError: as for ``clopper_pearson``, or a v outside [0, 1].
    """
    from scipy.optimize import elementwise  # takes long to import, and every worker would

    x, size = _checked(errors, m, delta)
    share = np.asarray(v, dtype=np.float64)
    if not np.all((share >= 0) & (share <= 1)):
        raise InputError(f"v={v!r} is outside [0, 1]: it is drawn uniformly from there")
    x, size, share = np.broadcast_arrays(x, size, share)
    high = np.asarray(clopper_pearson(x, size, delta))
    low = np.where(x > 0, clopper_pearson(np.maximum(x - 1, 0), np.maximum(size, 1), delta), 0.0)

    def excess(p: Bounds, x: Any, size: Any, share: Any) -> Bounds:
        """F(x - 1; p) + v f(x; p) - delta, falling in p."""
        below = np.where(x > 0, bdtr(np.maximum(x - 1, 0), size, p), 0.0)
        return np.asarray((1 - share) * below + share * bdtr(x, size, p) - delta)

    at_low, at_high = excess(low, x, size, share), excess(high, x, size, share)
    inside = (size > 0) & (at_low > 0) & (at_high < 0)
    bound = np.where((at_low <= 0) & (size > 0), low, high)
    if inside.any():
        chosen = tuple(a[inside] for a in (x, size, share))
        bound[inside] = elementwise.find_root(excess, (low[inside], high[inside]), args=chosen).x
    return bound if bound.ndim else float(bound)


def safe(errors: ArrayLike, m: int, delta: float = 0.05) -> Any:
    """The averaging-safe bound A of the module's head, elementwise; may exceed 1.

    Args:
        errors: whole numbers, 0 <= errors <= m, any shape.
        m: rows, 1 .. ``MOST_CHECKED``.
        delta: probability with which the mean of such bounds may lie below the mean risk.

    Raises:
        InputError: as for ``clopper_pearson``, or m outside its range.
    """
    _checked(errors, m, delta)
    bound = safe_table(int(m), delta)[np.asarray(errors)]
    return bound if bound.ndim else float(bound)


@lru_cache(maxsize=256)
def safe_table(m: int, delta: float) -> Bounds:
    """A for every count: element x is A(x; m), shape (m + 1,); not to be written to.

    Where no level was found, with a handful of rows and a tiny delta, it is 1 throughout: that always holds.
    """
    level = safe_level(m, delta)
    return _safe(m, level) if level else np.ones(m + 1)


@lru_cache(maxsize=1024)
def safe_level(m: int, delta: float) -> float | None:
    """The largest level, to one part in a thousand, at which A(.; m) keeps delta; None if none is found.

    Raises:
        InputError: m outside 1 .. ``MOST_CHECKED``, or delta outside (0, 1).
    """
    check_delta(delta)
    if not 1 <= m <= MOST_CHECKED:
        raise InputError(f"m={m} is outside 1..{MOST_CHECKED}, where the averaging-safe bound is checked")
    return largest_level(partial(_safe, m), delta, LEAST_DELTA)


def catoni(rate: float, m: int, delta: float = 0.05) -> float:
    """Catoni's upper bound on the mean risk after a mean error rate over splits of m rows each.

    Args:
        rate: mean over the splits of errors / m, in [0, 1]; the splits may depend on each other.
        m: rows of each, at least 1.
        delta: probability with which the bound may fail.

    Raises:
        InputError: an argument outside its range.
    """
    check_delta(delta)
    if not (0.0 <= rate <= 1.0 and m >= 1):
        raise InputError(f"rate={rate!r}, m={m!r}: a rate lies in [0, 1], and m is at least 1")
    lam = sqrt(2 * log(1 / delta) / (m * TYPICAL_RATE))
    return min(1.0, (1 - exp(-lam * rate - log(1 / delta) / m)) / (1 - exp(-lam)))


def reported_bound(name: str, errors: Sequence[int], m: int, delta: float, v: Sequence[float] = ()) -> float:
    """The figure reported for one candidate: the bound called ``name`` over its splits, at most 1.

    Args:
        name: one of ``BOUNDS``.
        errors: wrong rows of each split's m.
        m: rows of each set, at least 1.
        delta: level of each bound; with safe and catoni, of the mean.
        v: for stevens, a draw for each split.
    """
    if name == "catoni":
        return catoni(fsum(errors) / (m * len(errors)), m, delta)
    counts = np.asarray(errors)
    bounds = {
        "clopper_pearson": lambda: clopper_pearson(counts, m, delta),
        "stevens": lambda: stevens(counts, m, v, delta),
        "safe": lambda: safe(counts, m, delta),
    }[name]()
    return min(1.0, fsum(bounds) / len(counts))


def bound_table(m: int, delta: float) -> Bounds:
    """Clopper-Pearson for every count: element x is U(x; m), shape (m + 1,)."""
    return np.asarray(clopper_pearson(np.arange(m + 1), m, delta))


def check_delta(delta: float) -> None:
    """Raise InputError unless delta lies inside (0, 1), and not below ``LEAST_DELTA``."""
    if not LEAST_DELTA <= number("delta", delta) < 1.0:
        told = f"below {LEAST_DELTA:g}, the least supported" if 0.0 < delta < 1.0 else "outside (0, 1)"
        raise InputError(f"delta={delta!r} is {told}: it is a probability of failure, for example 0.05")


def _safe(m: int, level: float) -> Bounds:
    rate = np.arange(m + 1) / m
    return np.asarray(rate + np.maximum.accumulate(bound_table(m, level) - rate))


def _checked(errors: ArrayLike, m: ArrayLike, delta: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts and sizes, broadcast."""
    x, size = _counts(errors, "errors"), _counts(m, "m")
    check_delta(delta)
    try:
        x, size = np.broadcast_arrays(x, size)
    except ValueError:
        raise InputError(
            f"errors has shape {x.shape} and m {size.shape}: one m goes with each, or one with all"
        ) from None
    if np.any(x > size):
        first = np.argmax(x > size)
        raise InputError(f"errors={x.flat[first]} is above m={size.flat[first]}: errors lie in 0..m")
    return x, size


def _counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = as_array(name, values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has type {array.dtype}: counts are whole numbers")
    if np.any(array < 0):
        raise InputError(f"{name}={array.min()} is negative: counts are 0 or more")
    return array.astype(np.int64)
