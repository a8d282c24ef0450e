"""Upper confidence bounds on a mean loss in [0, 1] by betting on the losses, one after another.

A classifier is judged on m units that it has not seen, in an order drawn from the seed, which depends on
nothing else. Given that classifier, the losses x_1 .. x_m of these units, in this order, are independent with
mean L: its expected loss on a new unit. A gambler who bets that the mean is below p wins where losses are
small; with lam_t in [0, 1] chosen from x_1 .. x_t-1 alone, and not from p, the wealth after s units is

    e_s(p) = prod over t <= s of (1 + lam_t (p - x_t)),    p in [0, 1].

* e_s(p) >= 0, since lam_t (p - x_t) >= -1.
* e_s(L) is a martingale of mean 1: given x_1 .. x_t-1 the factor t has mean 1 + lam_t (L - E x_t) = 1.
* e_s is increasing: factors increase in p, and are 0 or more.

By Ville's inequality P(max over s of e_s(L) > 1 / delta) <= delta. So with probability at least 1 - delta L
is in {p : max over s of e_s(p) <= 1 / delta}, and is at most its largest element, found by bisection. All
e_s(0) <= 1, so the set is not empty; where all of [0, 1] is in it the bound is 1. A bound below the mean of
the losses, which is possible where they rise along the order, is raised to it.

Weighted, where unit t counts for a_t in [0, 1], its weight divided by the largest that there can be: pairs
(a_t, x_t) are independent, the loss is L = E a x / E a, and a factor is 1 + lam_t a_t (p - x_t). At p = L it
has mean 1 + lam_t (L E a - E a x) = 1, whatever E a is, and all else is the same with lam_t a_t for lam_t.
Without weights a_t = 1.

lam_t is the predictable plug-in of Waudby-Smith and Ramdas (Journal of the Royal Statistical Society B 86,
2024, section 3) for a fixed number of units, limited to 1: sqrt(2 ln(1/delta) / (m v_t-1)), with v_t the mean
of 1/4 and of the squared deviations of x_1 .. x_t from their running means, which begin with 1/2, each
deviation times a_t, and means weighted by a_t.

Sums are of logarithms. A factor is at least p, so each has a relative error of a few units of rounding / p,
which is taken from the logarithm of the wealth before it is compared: bounds are rounded upwards.

Few units: the optimised bet (Ming, Shen, Wang, arXiv 2603.10329; docs/theory/bounds.md has the proof). It is
one slope for all units, chosen after they were seen: for independent losses of one law with mean L,

    P(sup over l in [0, 1] of prod (1 + l a_t (L - x_t) / (1 - L)) >= 1 / delta) <= delta.

The product increases with L, its logarithm is concave in l, and no order has a part in it. It does not hold
at all times. Where some units are copies of others, and it is not known which, those with the largest factors
are left out: the product of the others is at most that of any as many, so of independent ones too.
"""

from math import log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.bounds.binomial import check_delta
from ckcv_ray.errors import InputError

BISECTIONS = 40  # a bound is a multiple of 2**-40
FACTOR_ROUNDING = 2.0**-49  # relative error of a factor, times p
MOST_OPTIMISED = 30  # units up to which the optimised bet is the closer one
Losses = NDArray[np.float64]


def choose_wagers(losses: ArrayLike, delta: float, shares: ArrayLike = 1.0) -> Losses:
    """Return the slope lam_t a_t of each bet, lam_t from the units before it, of the shape of ``losses``.

    Args:
        losses: in [0, 1], (..., m), in an order that does not depend on them.
        delta: probability that the bound fails.
        shares: a_t, what each unit counts for, in [0, 1], (..., m); by default 1.
    """
    x = np.asarray(losses, dtype=np.float64)
    a = np.broadcast_to(np.asarray(shares, dtype=np.float64), x.shape)
    m = x.shape[-1]
    t = np.arange(1, m + 1)
    means = (0.5 + np.cumsum(a * x, axis=-1)) / (1 + np.cumsum(a, axis=-1))
    variances = (0.25 + np.cumsum((a * (x - means)) ** 2, axis=-1)) / (t + 1)
    before = np.concatenate([np.full((*x.shape[:-1], 1), 0.25), variances[..., :-1]], axis=-1)
    return np.asarray(a * np.minimum(1.0, np.sqrt(2 * log(1 / delta) / (m * before))))


def compute_log_wealth(losses: Losses, wagers: Losses, p: ArrayLike) -> Losses:
    """Compute log e_s(p) of each sequence after each unit, shape (..., m).

    Args:
        losses, wagers: (..., m); wagers are the slopes of ``choose_wagers``.
        p: the mean that is bet against, in [0, 1], broadcast against the sequences.
    """
    with np.errstate(divide="ignore"):  # a factor of 0 has the logarithm -inf
        return np.cumsum(np.log1p(wagers * (np.asarray(p)[..., None] - losses)), axis=-1)


def bound_by_betting(losses: ArrayLike, delta: float, shares: ArrayLike | None = None) -> float:
    """Return the bound on the expected loss of a classifier, at most 1, from one set of units.

    Args:
        losses: in [0, 1], (m,), in an order drawn independently of everything else.
        delta: probability that the bound fails.
        shares: what each unit counts for, in [0, 1], (m,): its weight divided by the largest that there can
            be, also of units that are not here. None if all count the same.

    Raises:
        InputError: there is no loss, a loss or share is outside [0, 1], all shares are 0 or there is not one
            for each loss, or delta is outside (0, 1).
    """
    x = _check(losses, delta)
    a = np.ones(len(x)) if shares is None else _check_shares(shares, len(x))
    wagers = choose_wagers(x, delta, a)
    low, high = 0.0, 1.0
    if not _exceeds(x, wagers, high, delta):
        return 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _exceeds(x, wagers, middle, delta) else (middle, high)
    return max(high, float(np.sum(a * x) / np.sum(a)))


def bound_by_optimised_bet(
    losses: ArrayLike, delta: float, shares: ArrayLike | None = None, copies: int = 0
) -> float:
    """Return the bound of the optimised bet on the expected loss of a classifier, at most 1.

    Args:
        losses: of independent units, in [0, 1], (m,), in any order.
        delta, shares: as for ``bound_by_betting``.
        copies: how many units may be copies of others, not known which; 1 is returned if all may.

    Raises:
        InputError: as for ``bound_by_betting``.
    """
    x = _check(losses, delta)
    a = np.ones(len(x)) if shares is None else _check_shares(shares, len(x))
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        kept = np.sort(a * (middle - x))[: max(0, len(x) - copies)]
        low, high = (low, middle) if _is_rich(kept, middle, delta) else (middle, high)
    return high


def bound_losses(losses: ArrayLike, delta: float, shares: ArrayLike | None = None, copies: int = 0) -> float:
    """Return the bound on the expected loss of a classifier from one set of units, by the closer bet.

    Up to ``MOST_OPTIMISED`` units, and where some may be copies, that is the optimised bet; else the bets in
    the order drawn.

    Args:
        losses, delta, shares: as for ``bound_by_betting``.
        copies: as for ``bound_by_optimised_bet``.

    Raises:
        InputError: as for ``bound_by_betting``.
    """
    if copies or np.size(losses) <= MOST_OPTIMISED:
        return bound_by_optimised_bet(losses, delta, shares, copies)
    return bound_by_betting(losses, delta, shares)


def _check(losses: ArrayLike, delta: float) -> Losses:
    check_delta(delta)
    x = np.asarray(losses, dtype=np.float64)
    if x.ndim != 1 or not x.size:
        raise InputError(f"losses has shape {x.shape}: expected 1 dimension, and at least 1 loss")
    if not np.all((x >= 0) & (x <= 1)):
        raise InputError("losses has values outside [0, 1]: divide losses by the largest possible one")
    return x


def _check_shares(shares: ArrayLike, m: int) -> Losses:
    a = np.asarray(shares, dtype=np.float64)
    if a.shape != (m,) or not np.all((a >= 0) & (a <= 1)) or not a.any():
        raise InputError(
            f"shares has shape {a.shape}: expected one for each of {m} losses, from 0 to 1 and not all 0: "
            "divide weights by the largest possible one"
        )
    return a


def _exceeds(losses: Losses, wagers: Losses, p: float, delta: float) -> bool:
    """Return whether the wealth at p is ever above 1 / delta, whatever the rounding."""
    error = len(losses) * FACTOR_ROUNDING / p
    return bool(float(compute_log_wealth(losses, wagers, p).max()) - error > log(1 / delta))


def _is_rich(gains: Losses, p: float, delta: float) -> bool:
    """Return whether a bet against the mean p is worth more than 1 / delta, whatever the rounding.

    ``gains`` are a_t (p - x_t), of which the bet is a multiple up to 1 / (1 - p). A search for the best one
    that stops early finds a smaller wealth, so that bounds err upwards.
    """
    low, high = 0.0, 1 / (1 - p)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(gains / (1 + middle * gains)) > 0 else (low, middle)
    factors = 1 + low * gains
    return bool(np.sum(np.log(factors) - FACTOR_ROUNDING * (1 + 1 / factors)) > log(1 / delta))
