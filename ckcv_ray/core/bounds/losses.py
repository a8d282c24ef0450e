"""Upper confidence bounds on a mean loss in [0, 1], such as a group's share of wrong rows, or a cost.

A loss is an integer in units of 1 / ``ONE``, rounded up: sums are then exact in any order, and a bound on the
rounded loss holds for the loss. X is the total of m independent losses with mean p.

Clopper-Pearson and Stevens do not hold for X. Two bounds do. Catoni's holds as it is: exp(-lam x) is convex,
so E exp(-lam X) is at most that of a binomial count of the same mean. So is, for A concave in x,

    E max(0, 1 - lam (A(X) - p)),

by the same argument (Hoeffding, Annals of Mathematical Statistics 27, 1956): the averaging-safe bound A, made
concave by its least concave majorant and interpolated between counts, may be averaged over splits as well.

Which of the two a criterion uses depends on m and delta: the smaller one at a mean loss of 0.1. A claim uses
A alone (``average_safe``). Losses of one set of rows or groups held out are bet on (``betting``).
"""

from collections.abc import Sequence
from functools import lru_cache
from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.core.bounds.binomial import (
    MOST_CHECKED,
    TYPICAL_RATE,
    Bounds,
    catoni,
    safe_level,
    safe_table,
)

ONE = 1 << 32  # a loss of 1


@lru_cache(maxsize=1024)
def loss_method(m: int, delta: float) -> str:
    """Return the bound that a criterion uses for totals of m losses: "safe" or "catoni"."""
    if m > MOST_CHECKED or safe_level(m, delta) is None:
        return "catoni"
    safe = float(np.interp(TYPICAL_RATE * m, np.arange(m + 1), concave_table(m, delta)))
    return "safe" if safe <= catoni(TYPICAL_RATE, m, delta) else "catoni"


@lru_cache(maxsize=256)
def concave_table(m: int, delta: float) -> Bounds:
    """Return the least concave function that is at least A at 0 .. m, shape (m + 1,); do not modify it."""
    table, corners = safe_table(m, delta), [0]
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
        return catoni(min(1.0, sum(totals) / (ONE * m * len(totals))), m, delta)
    return average_safe(np.asarray(totals) / ONE, m, delta)


def average_safe(losses: ArrayLike, m: int, delta: float) -> float:
    """Return the bound of a claim on the mean over splits of the expected loss, by A alone, at most 1.

    Args:
        losses: total loss, or wrong rows, of each split, in 0 .. m; the splits may depend on each other.
        m, delta: as for ``mean_loss_bound``.

    Returns:
        1, which says nothing, where m is above ``MOST_CHECKED``.
    """
    if m > MOST_CHECKED:
        return 1.0
    terms = np.interp(np.asarray(losses, float), np.arange(m + 1), concave_table(m, delta)).tolist()
    return min(1.0, fsum(terms) / len(terms))


def _below_chord(table: Bounds, a: int, b: int, c: int) -> bool:
    """Return whether the point at b is on or below the line from a to c."""
    return bool((table[b] - table[a]) * (c - a) <= (table[c] - table[a]) * (b - a))
