"""The bounds by betting, written a second time for ``jobs/check_certificate.py`` with numpy alone.

Losses in [0, 1] come one by one, in an order that was drawn; a share of the wealth is bet on each being below
p, and p is too large if the wealth grows beyond 1 / delta (docs/theory/bounds.md has the proofs). Nothing
here is shared with the package.
"""

from math import fsum, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW = 30  # up to so many held-out units, one stake is used for all
Array = NDArray[Any]


def bound_held(losses: Array, delta: float, copies: int, shares: Any = None) -> float:
    """Return the bound on the mean loss of held-out units: if few or with copies, by one stake for all.

    Args:
        losses: in [0, 1], in the order in which the units were drawn.
        delta: probability that the bound fails.
        copies: units that are not counted; it is not known which.
        shares: what units count for, in [0, 1]; by default 1.
    """
    if not copies and len(losses) > FEW:
        return bet(losses, delta, shares)
    low, high, a = 0.0, 1.0, 1.0 if shares is None else shares
    for _ in range(50):
        p = (low + high) / 2
        gains = np.sort(a * (p - losses) / (1 - p))[: max(0, len(losses) - copies)]
        low, high = (low, p) if stake_once(gains) > log(1 / delta) else (p, high)
    return high


def stake_once(gains: Array) -> float:
    """Return the logarithm of the largest wealth if one share of it, up to all, is put on every gain."""
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        low, high = (share, high) if fsum(gains / (1 + share * gains)) > 0 else (low, share)
    return fsum(np.log1p(low * gains))


def list_stakes(losses: Array, shares: Any, delta: float) -> Array:
    """Return what is staked on each loss, as a share of the wealth, from the losses before it."""
    stakes, total, of, squares = list[float](), 0.5, 1.0, 0.25
    for t, (x, share) in enumerate(zip(losses, shares, strict=True), start=1):
        stakes.append(share * min(1.0, sqrt(2 * log(1 / delta) * t / (len(losses) * squares))))
        total, of = total + share * x, of + share
        squares += (share * (x - total / of)) ** 2
    return np.array(stakes)


def bet(losses: Array, delta: float, shares: Any = None) -> float:
    """Return the largest p at which the wealth of bets that the mean is below p is never above 1 / delta.

    ``shares`` are what units count for, in [0, 1]; by default 1.
    """
    a = [1.0] * len(losses) if shares is None else list(shares)
    stakes = list_stakes(losses, a, delta)
    low, high = 0.0, 1.0
    for _ in range(50):
        p = (low + high) / 2
        wins = np.max(np.cumsum(np.log1p(stakes * (p - losses)))) > log(1 / delta)
        low, high = (low, p) if wins else (p, high)
    return max(high, fsum(np.multiply(a, losses)) / fsum(a))
