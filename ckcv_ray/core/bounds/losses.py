"""Upper confidence bounds on a mean loss in [0, 1], such as a group's share of wrong rows, or a cost.

A loss is an integer in units of 1 / ``ONE``, rounded up: sums are then exact in any order, and a bound on the
rounded loss holds for the loss. X is the total of m independent losses with mean p.

Clopper-Pearson and Stevens do not hold for X. Two bounds do. Catoni's holds as it is: exp(-lam x) is convex,
so E exp(-lam X) is at most that of a binomial count of the same mean. So is, for A concave in x,

    E max(0, 1 - lam (A(X) - p)),

by the same argument (Hoeffding, Annals of Mathematical Statistics 27, 1956): the averaging-safe bound A, made
concave by its least concave majorant and interpolated between counts, may be averaged over splits as well.

Which of the two is used depends on m and delta alone: the smaller one at a mean loss of 0.1. A claim uses the
majorant of the lowered A (``binomial.tabulate_claim``), which meets the condition because it is above it.

Of losses that are known one by one, as those of each of several splits, a third bound holds: betting
(``betting``), which is closer where losses vary less than wrong and right do, as shares do. It is used where
m and delta say that it is closer: if it is the smaller one for losses that alternate between 0.2 and 0, whose
mean is the same, in every split. Losses of one set of rows or groups held out are always bet on
(``betting.bound_losses``).
"""

from collections.abc import Sequence
from functools import lru_cache
from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.core.bounds.betting import bound_mean_by_betting
from ckcv_ray.core.bounds.binomial import (
    MOST_CHECKED,
    TYPICAL_RATE,
    Bounds,
    Prefix,
    average_terms,
    catoni,
    compute_credit,
    safe_level,
    safe_table,
    smallest_mean,
    tabulate_claim,
)

ONE = 1 << 32  # a loss of 1
MOST_BET = 100_000  # losses of a split
TYPICAL_SHARES = (2 * TYPICAL_RATE, 0.0)  # losses that decide whether betting is closer


@lru_cache(maxsize=1024)
def loss_method(m: int, delta: float, claimed: bool = False) -> str:
    """Return the bound for totals of m losses: "safe" or "catoni"; ``claimed``: that of a claim."""
    if m > MOST_CHECKED or safe_level(m, delta) is None:
        return "catoni"
    safe = float(np.interp(TYPICAL_RATE * m, np.arange(m + 1), concave_table(m, delta, claimed)))
    return "safe" if safe <= catoni(TYPICAL_RATE, m, delta) else "catoni"


@lru_cache(maxsize=1024)
def choose_split_method(m: int, delta: float) -> str:
    """Return the bound for splits of m losses each that are known one by one: "betting", or ``loss_method``.

    Betting is not used for more than ``MOST_BET`` losses each, where it would take seconds and gain little.
    """
    if m > MOST_BET:
        return loss_method(m, delta, claimed=True)
    typical = bound_loss_claim([round(TYPICAL_RATE * m * ONE)], m, delta)
    betting = bound_mean_by_betting([np.resize(TYPICAL_SHARES, m)], delta)
    return "betting" if betting < typical else loss_method(m, delta, claimed=True)


@lru_cache(maxsize=256)
def concave_table(m: int, delta: float, claimed: bool = False) -> Bounds:
    """Return the least concave majorant of A, or of the lowered A of claims, at 0 .. m, shape (m + 1,).

    The array is cached: do not modify it.
    """
    return concave_majorant(tabulate_claim(m, delta).A if claimed else safe_table(m, delta))


def concave_majorant(table: Bounds) -> Bounds:
    """Return the least concave function that is at least ``table`` at 0 .. m, shape (m + 1,)."""
    m = len(table) - 1
    corners = [0]
    for x in range(1, m + 1):
        while len(corners) > 1 and _below_chord(table, corners[-2], corners[-1], x):
            corners.pop()
        corners.append(x)
    return np.maximum(table, np.interp(np.arange(m + 1), corners, table[corners]))


def mean_loss_bound(totals: Sequence[int], m: int, delta: float) -> float:
    """Return the bound on the mean over splits of the expected loss, at most 1.

    Args:
        totals: total loss in each split, 0 .. m * ``ONE``; the splits may depend on each other.
        m: losses in each total, at least 1.
        delta: probability that the bound fails.
    """
    if loss_method(m, delta) == "catoni":
        return _mean_catoni(totals, m, delta)
    return min(1.0, fsum(_interpolate(totals, m, delta)) / len(totals))


def _mean_catoni(totals: Sequence[int], m: int, delta: float) -> float:
    """Return Catoni's bound on the mean over splits of the expected loss; see ``mean_loss_bound``."""
    return catoni(min(1.0, sum(totals) / (ONE * m * len(totals))), m, delta)


def bound_loss_claim(totals: Sequence[int], m: int, delta: float, u: float = 1.0) -> float:
    """Compute ``mean_loss_bound`` for a claim; ``u`` is as for ``binomial.best_prefix``."""
    if loss_method(m, delta, claimed=True) == "catoni":
        return _mean_catoni(totals, m, delta)
    terms = _interpolate(totals, m, delta, claimed=True).tolist()
    return average_terms(terms, compute_credit(u, tabulate_claim(m, delta).lam))


def best_loss_prefix(totals: Sequence[int], m: int, delta: float, u: float = 1.0) -> Prefix:
    """Find the prefix of exchangeable splits with the smallest ``bound_loss_claim``; see ``best_prefix``."""
    if loss_method(m, delta, claimed=True) == "catoni":
        length = smallest_mean(totals)
    else:
        terms = _interpolate(totals, m, delta, claimed=True).tolist()
        length = smallest_mean(terms, compute_credit(u, tabulate_claim(m, delta).lam))
    return Prefix(bound_loss_claim(totals[:length], m, delta, u), length)


def _interpolate(totals: ArrayLike, m: int, delta: float, claimed: bool = False) -> Bounds:
    """Return the interpolated A of each total; may exceed 1."""
    table = concave_table(m, delta, claimed)
    return np.asarray(np.interp(np.asarray(totals) / ONE, np.arange(m + 1), table))


def _below_chord(table: Bounds, a: int, b: int, c: int) -> bool:
    """Return whether the point at b is on or below the line from a to c."""
    return bool((table[b] - table[a]) * (c - a) <= (table[c] - table[a]) * (b - a))
