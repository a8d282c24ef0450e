"""Upper confidence bounds on mean losses in [0, 1] by betting on the losses, one after another.

Split i judges a classifier on m units that it has not seen, in an order drawn from the seed, which depends on
nothing else. Given that classifier, the losses x_1 .. x_m of these units, in this order, are independent with
mean L_i: its expected loss on a new unit. A gambler who bets that the mean is below p wins where losses are
small; with lam_t in [0, 1] chosen from x_1 .. x_t-1 alone, and not from p, the wealth after s units is

    e_is(p) = prod over t <= s of (1 + lam_t (p - x_t)),    p in [0, 1],    and e_i = e_im that after all.

* e_is(p) >= 0, since lam_t (p - x_t) >= -1.
* e_is(L_i) is a martingale of mean 1: given x_1 .. x_t-1 the factor t has mean 1 + lam_t (L_i - E x_t) = 1.
* e_is is increasing and convex: factors are affine in p, with slopes of 0 or more, and 0 or more themselves,
  and products of such functions increase and are convex. So is the largest of them over s.

Weighted, where unit t counts for a_t in [0, 1], its weight divided by the largest that there can be: pairs
(a_t, x_t) are independent, the loss is L_i = E a x / E a, and a factor is 1 + lam_t a_t (p - x_t). At p = L_i
it has mean 1 + lam_t (L_i E a - E a x) = 1, whatever E a is, and all that follows is the same with lam_t a_t
for lam_t. Without weights a_t = 1.

One split: by Ville's inequality P(max over s of e_s(L) > 1 / delta) <= delta. So with probability at least
1 - delta L is in {p : max over s of e_s(p) <= 1 / delta}, and is at most its largest element, found by
bisection. All e_s(0) <= 1, so the set is not empty; where all of [0, 1] is in it the bound is 1. A bound
below the mean of the losses, which is possible where they rise along the order, is raised to it.

Several splits that depend on each other in any way, L = (L_1 + .. + L_l) / l: E mean e_i(L_i) = 1, so with
probability at least 1 - delta

    L <= max {mean p_i : mean e_i(p_i) <= 1 / delta, every p_i in [0, 1]}.

The maximum of a linear function on a convex set, of which any multiplier nu >= 0 gives an upper bound:

    nu / delta + mean over i of max over p of (p - nu e_i(p)).

This is convex in nu. The least value that was found is used, so a search that stops early errs upwards.

lam_t is the predictable plug-in of Waudby-Smith and Ramdas (Journal of the Royal Statistical Society B 86,
2024, section 3) for a fixed number of units, limited to 1: sqrt(2 ln(1/delta) / (m v_t-1)), with v_t the mean
of 1/4 and of the squared deviations of x_1 .. x_t from their running means, which begin with 1/2, each
deviation times a_t, and means weighted by a_t.

Sums are of logarithms. A factor is at least p, so each has a relative error of a few units of rounding / p,
which is taken from the logarithm of the wealth before it is compared: bounds are rounded upwards.
"""

from math import log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.bounds.binomial import check_delta
from ckcv_ray.errors import InputError

BISECTIONS = 40  # a bound is a multiple of 2**-40
LEAST = 2.0**-BISECTIONS
FACTOR_ROUNDING = 2.0**-49  # relative error of a factor, times p
MULTIPLIERS, ROUNDS = 25, 5  # multipliers that are tried at once, each time between those around the best
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
    """Compute log e_s(p) of each split after each unit, shape (..., m).

    Args:
        losses, wagers: (..., m); wagers are the slopes of ``choose_wagers``.
        p: the mean that is bet against, in [0, 1], broadcast against the splits.
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
    x = _check(losses, delta, 1)
    a = np.ones(len(x)) if shares is None else _check_shares(shares, len(x))
    wagers = choose_wagers(x, delta, a)
    low, high = 0.0, 1.0
    if not _exceeds(x, wagers, high, delta):
        return 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _exceeds(x, wagers, middle, delta) else (middle, high)
    return max(high, float(np.sum(a * x) / np.sum(a)))


def bound_mean_by_betting(losses: ArrayLike, delta: float) -> float:
    """Return the bound on the mean over splits of the expected loss, at most 1.

    Args:
        losses: in [0, 1], (splits, m), the units of each in an order drawn independently of everything else;
            the splits may depend on each other.
        delta: probability that the bound fails.

    Raises:
        InputError: as for ``bound_by_betting``.
    """
    x = _check(losses, delta, 2)
    wagers = choose_wagers(x, delta)

    low, high = log(delta * LEAST / x.shape[1]), log(delta) + 10.0
    least = 1.0
    for _ in range(ROUNDS):  # the bound is convex in nu
        logs = np.linspace(low, high, MULTIPLIERS)
        nu = np.exp(logs)
        bounds = nu / delta + np.mean(_maximise(x, wagers, nu), axis=-1)
        at = int(np.argmin(bounds))
        least = min(least, float(bounds[at]))
        low, high = float(logs[max(0, at - 1)]), float(logs[min(MULTIPLIERS - 1, at + 1)])
    return max(least, float(np.mean(x)))


def _check(losses: ArrayLike, delta: float, dimensions: int) -> Losses:
    check_delta(delta)
    x = np.asarray(losses, dtype=np.float64)
    if x.ndim != dimensions or not x.size:
        raise InputError(f"losses has shape {x.shape}: expected {dimensions} dimensions, and at least 1 loss")
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
    error = losses.shape[-1] * FACTOR_ROUNDING / p
    return bool(float(compute_log_wealth(losses, wagers, p).max()) - error > log(1 / delta))


def _maximise(losses: Losses, wagers: Losses, nu: Losses) -> Losses:
    """Return upper bounds on the maximum of p - nu e(p) over p in [0, 1], (multipliers, splits).

    The function is concave; where its maximum is between low and high it is at most high - nu e(low).
    """
    shape = (len(nu), len(losses))
    low, high = np.full(shape, LEAST), np.ones(shape)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rises = _compute_slope(losses, wagers, middle) < 1 / nu[:, None]
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    error = losses.shape[-1] * FACTOR_ROUNDING / low
    with np.errstate(over="ignore"):
        wealth = np.exp(compute_log_wealth(losses, wagers, low)[..., -1] - error)
    return np.asarray(np.maximum(high - nu[:, None] * wealth, LEAST))


def _compute_slope(losses: Losses, wagers: Losses, p: Losses) -> Losses:
    """Compute the derivative of e at p > 0, of the shape of p, whose last axis is that of the splits."""
    shares = np.sum(wagers / (1 + wagers * (p[..., None] - losses)), axis=-1)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(compute_log_wealth(losses, wagers, p)[..., -1]) * shares)
