"""Averaging-safe bounds over splits whose sets differ in size, such as the rows of one class.

X_i ~ Bin(m_i, L_i) given (m_i, L_i), under any dependence between the splits. If one slope lam > 0, fixed
beforehand, has for every m a table A(.; m) with

    E max(0, 1 - lam (A(X; m) - p)) <= delta,    X ~ Bin(m, p), for all p,

then P(mean L_i >= mean A(X_i; m_i)) <= delta: the proof for equal sizes (``binomial``) uses nothing else,
and neither does that for all prefixes of an exchangeable order. The tables, for a given lam:

* the averaging-safe bound at the largest level at which it satisfies the condition with this lam, lowered as
  far as the condition allows (``averaging.lower_table``);
* where there is no such level, and for m = 0, the constant 1 + (1 - delta) / lam, for which the left side is
  max(0, delta - lam (1 - p)) <= delta;
* for m > ``MOST_EXACT``, from a smaller M (``choose_size``), for which a level is found faster: the least
  concave majorant B of A(.; M), interpolated at M x / m. The mean of m rows is the expectation, given all of
  them, of the mean of M of them drawn at random, and max(0, 1 - lam (B(x) - p)) is convex in x: by Jensen's
  inequality the condition for M implies it for m.

lam is the best slope for one typical size. A bound may exceed 1: it is averaged first, then limited to 1.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from math import sqrt

import numpy as np

from ckcv_ray.core.bounds.averaging import largest_level, lower_table
from ckcv_ray.core.bounds.binomial import LEAST_DELTA, MOST_CHECKED, Bounds, safe_at
from ckcv_ray.core.bounds.losses import concave_majorant

MOST_EXACT = 512
STEPS = 32  # sizes checked per factor of two above MOST_EXACT
TYPICAL_SLOPE = 5.0  # in units of sqrt(m), where no level is found at the typical size


@lru_cache(maxsize=1024)
def slope(m: int, delta: float) -> float:
    """Return the slope lam for sets of about m rows, to three digits: the best one for exactly m rows.

    Args:
        m: typical number of rows; it must not depend on the splits or on the errors.
        delta: allowed probability that the mean of the bounds is below the mean risk.
    """
    m = choose_size(max(m, 1))
    found = largest_level(partial(safe_at, m), delta, LEAST_DELTA)
    return float(f"{found.lam if found else TYPICAL_SLOPE * sqrt(m):.3g}")


@lru_cache(maxsize=4096)
def compute_table(m: int, delta: float, lam: float) -> Bounds:
    """Return the bound of every count of m rows, shape (m + 1,), for a slope; cached: do not modify it."""
    if (M := choose_size(m)) < m:
        majorant = concave_majorant(compute_table(M, delta, lam))
        return np.asarray(np.interp(np.arange(m + 1) * (M / m), np.arange(M + 1), majorant))
    found = largest_level(partial(safe_at, m), delta, LEAST_DELTA, lam) if m else None
    if found is None:
        return np.full(m + 1, 1 + (1 - delta) / lam)
    return lower_table(safe_at(m, found.level), lam, delta)


def choose_size(m: int) -> int:
    """Return the size M from whose bound that for m rows is interpolated: m itself if it is small."""
    if m <= MOST_EXACT:
        return m
    step = 1 << (m.bit_length() - STEPS.bit_length())
    return min(m // step * step, MOST_CHECKED)


def bound_terms(errors: Sequence[int], sizes: Sequence[int], typical: int, delta: float) -> list[float]:
    """Return the bound of each split; the mean over any prefix of an exchangeable order bounds its mean risk.

    Args:
        errors: wrong rows in each split.
        sizes: rows of each split, 0 or more.
        typical: as for ``slope``.
        delta: probability that any of these means is below the mean risk.
    """
    lam = slope(typical, delta)
    return [float(compute_table(m, delta, lam)[x]) for x, m in zip(errors, sizes, strict=True)]
