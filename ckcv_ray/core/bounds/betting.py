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

This is convex in nu, and least where the e_i at the maxima have the mean 1 / delta. Since e_i is convex, its
tangent at any point q bounds the maximum from above:

    p - nu e_i(p) <= q - nu e_i(q) + (1 - nu e_i'(q)) (p - q).

So a search that stops early errs upwards, in nu and in p.

All prefixes at once: let the splits be exchangeable, with the orders of their units, given the data. Then so
are the e_i(L_i), which are 0 or more and of mean 1, and by the exchangeable Markov inequality (Ramdas and
Manole, 2023) the mean of e_1(L_1) .. e_t(L_t) is below 1 / delta for all t together, with probability at
least 1 - delta. Hence the bounds of all prefixes hold together, and any of them may be chosen after the
losses are known: that with the smallest bound, searched on a grid of nu that all prefixes share. With U
uniform and independent of data and splits, the same event and e_1(L_1) < U / delta have at least this
probability (``binomial.best_prefix``): so for a prefix of one split 1 / delta may be U / delta.

lam_t is the predictable plug-in of Waudby-Smith and Ramdas (Journal of the Royal Statistical Society B 86,
2024, section 3) for a fixed number of units, limited to 1: sqrt(2 ln(1/delta) / (m v_t-1)), with v_t the mean
of 1/4 and of the squared deviations of x_1 .. x_t from their running means, which begin with 1/2, each
deviation times a_t, and means weighted by a_t.

Sums are of logarithms. A factor is at least p, so each has a relative error of a few units of rounding / p,
which is taken from the logarithm of the wealth before it is compared: bounds are rounded upwards.

Few units: the optimised bet (Ming, Shen, Wang, arXiv 2603.10329; docs/theory/bounds.md has the proof). It is
one slope for all units, chosen after they were seen: for independent losses of one law with mean L,

    P(sup over l in [0, 1] of prod (1 + l a_t (L - x_t) / (1 - L)) >= 1 / delta) <= delta.

The product increases with L, its logarithm is concave in l, and no order has a part in it. It holds for one
set of units, and neither at all times nor for several splits. Where some units are copies of others, and it
is not known which, those with the largest factors are left out: the product of the others is at most that of
any as many, so of independent ones too.
"""

from math import ceil, exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.bounds.binomial import Prefix, check_delta
from ckcv_ray.errors import InputError

BISECTIONS = 40  # a bound is a multiple of 2**-40
LEAST = 2.0**-BISECTIONS
FACTOR_ROUNDING = 2.0**-49  # relative error of a factor, times p
MULTIPLIER_HALVINGS = 32  # bisections on log nu
MULTIPLIERS = 65  # values of nu that all prefixes share
EQUAL_BOUNDS = 2.0**-30  # bounds that differ by less are equal
LAST_STEP = 2.0**-22  # a step of p after which its maximum is found: the next would be of about its square
NEWTON_STEPS = 100  # of a search for it, halvings included
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
    x = _check(losses, delta, 1)
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


def bound_mean_by_betting(losses: ArrayLike, delta: float, u: float = 1.0) -> float:
    """Return the bound on the mean over splits of the expected loss, at most 1.

    Args:
        losses: in [0, 1], (splits, m), the units of each in an order drawn independently of everything else;
            the splits may depend on each other.
        delta: probability that the bound fails.
        u: the U on the first split, which lowers the bound of a single split; 1 for none.

    Raises:
        InputError: as for ``bound_by_betting``.
    """
    x = _check(losses, delta, 2)
    bets = _make_bets(x, delta)
    least = float(np.mean(x))
    if len(x) == 1:
        return max(least, float(_find_wealth(bets, log(max(u, LEAST) / delta))[0]))
    low, high = _bracket_multiplier(bets, delta)
    p = np.full(len(x), 0.5)
    for _ in range(MULTIPLIER_HALVINGS):
        middle = (low + high) / 2
        p = _find_maxima(bets, middle, p)
        logs = np.sum(np.log(bets.find_factors(p)), axis=-1)
        is_rich = float(np.logaddexp.reduce(logs)) - log(len(x)) > log(1 / delta)
        low, high = (middle, high) if is_rich else (low, middle)
    bound = exp(high) / delta + float(np.mean(_bound_maxima(bets, high, _find_maxima(bets, high, p))))
    return min(1.0, max(least, ceil(bound / LEAST) * LEAST))


def find_betting_prefix(losses: ArrayLike, delta: float, u: float = 1.0) -> Prefix:
    """Find the prefix of exchangeable splits with the smallest bound by betting; the longest of equals.

    Which one it is is decided on a grid, to about 1e-5; its bound is that of ``bound_mean_by_betting``.

    Args:
        losses, delta, u: as for ``bound_mean_by_betting``, the splits in an exchangeable order.
    """
    x = _check(losses, delta, 2)
    if len(x) == 1:
        return Prefix(bound_mean_by_betting(x, delta, u), 1)
    bets, number = _make_bets(x, delta), np.arange(1, len(x) + 1)
    bounds, p = np.ones(len(x)), np.full(len(x), 0.5)
    for log_nu in np.linspace(*_bracket_multiplier(bets, delta), MULTIPLIERS).tolist():
        p = _find_maxima(bets, log_nu, p)
        terms = np.cumsum(_bound_maxima(bets, log_nu, p)) / number
        bounds = np.minimum(bounds, exp(log_nu) / delta + terms)
    bounds = np.maximum(bounds, np.cumsum(np.mean(x, axis=-1)) / number)
    bounds[0] = bound_mean_by_betting(x[:1], delta, u)
    length = int(np.flatnonzero(bounds <= bounds.min() + EQUAL_BOUNDS)[-1]) + 1
    return Prefix(bound_mean_by_betting(x[:length], delta, u), length)


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


class _Bets(NamedTuple):
    """The factors of the wealth of each split: a + w p, (splits, m).

    Attributes:
        a, w: see above; w are the wagers.
        bottom, top: logarithm of the derivative of the wealth at ``LEAST`` and at 1, (splits,).
    """

    a: Losses
    w: Losses
    bottom: Losses
    top: Losses

    def find_factors(self, p: Losses) -> Losses:
        """Return the factors at p, (splits,)."""
        return np.asarray(self.a + self.w * p[:, None])

    def compute_log_slope(self, p: Losses) -> Losses:
        """Compute the logarithm of the derivative of the wealth at p > 0, (splits,)."""
        factors = self.find_factors(p)
        return np.asarray(np.sum(np.log(factors), axis=-1) + np.log(np.sum(self.w / factors, axis=-1)))


def _make_bets(losses: Losses, delta: float) -> _Bets:
    w, ends = choose_wagers(losses, delta), np.ones(len(losses))
    bets = _Bets(1 - w * losses, w, ends, ends)
    return bets._replace(bottom=bets.compute_log_slope(LEAST * ends), top=bets.compute_log_slope(ends))


def _find_wealth(bets: _Bets, log_wealth: float) -> Losses:
    """Return the p at which each split's wealth reaches this one, rounded up; 1 if it does not, (splits,)."""
    low, high = np.zeros(len(bets.a)), np.ones(len(bets.a))
    for _ in range(BISECTIONS):
        p = (low + high) / 2
        factors = bets.find_factors(p)
        error = FACTOR_ROUNDING * np.sum(1 / factors, axis=-1)
        reaches = np.sum(np.log(factors), axis=-1) - error > log_wealth
        low, high = np.where(reaches, low, p), np.where(reaches, p, high)
    return high


def _bracket_multiplier(bets: _Bets, delta: float) -> tuple[float, float]:
    """Return logarithms between which the best nu of every prefix is.

    At the upper one no wealth is above 1 / delta. At the lower one some wealth of each prefix is its length /
    delta, or all p are 1.
    """
    least, most = (bets.compute_log_slope(_find_wealth(bets, log(x / delta))) for x in (1, len(bets.a)))
    return -float(most.max()), -float(least.min())


def _find_maxima(bets: _Bets, log_nu: float, p: Losses) -> Losses:
    """Return where p - nu e(p) has its maximum for each split, (splits,).

    There log e'(p) = -log nu, which increases in p. Newton's steps begin at ``p`` and stay between what is
    known to be too small and too large.
    """
    low, high = np.full(len(p), LEAST), np.ones(len(p))
    is_end = (bets.top + log_nu <= 0) | (bets.bottom + log_nu >= 0)
    end = np.where(bets.top + log_nu <= 0, 1.0, LEAST)
    p = np.where(is_end, end, p)
    for _ in range(NEWTON_STEPS):
        factors = bets.find_factors(p)
        shares = bets.w / factors
        S, Q = np.sum(shares, axis=-1), np.sum(shares * shares, axis=-1)
        excess = np.sum(np.log(factors), axis=-1) + np.log(S) + log_nu
        low, high = np.where(excess < 0, p, low), np.where(excess < 0, high, p)
        with np.errstate(divide="ignore", invalid="ignore"):  # of a single unit the slope is constant
            stepped = p - excess * S / (S * S - Q)
        stepped = np.where((stepped >= low) & (stepped <= high), stepped, (low + high) / 2)
        is_found = np.all(is_end | (np.abs(stepped - p) <= LAST_STEP))
        p = np.where(is_end, end, stepped)
        if is_found:
            break
    return p


def _bound_maxima(bets: _Bets, log_nu: float, p: Losses) -> Losses:
    """Return upper bounds on the maxima of q - nu e(q) over q in [0, 1], by tangents at p, (splits,)."""
    factors = bets.find_factors(p)
    wealth = np.exp(np.sum(np.log(factors), axis=-1) + log_nu)
    slope = wealth * np.sum(bets.w / factors, axis=-1)
    error = FACTOR_ROUNDING * np.sum(1 / factors, axis=-1)
    above = np.maximum(1 - slope * (1 - error), 0) * (1 - p)
    below = np.maximum(slope * (1 + error) - 1, 0) * p
    return np.asarray(p - wealth * (1 - error) + above + below)
