r"""Upper confidence bounds on a mean loss in [0, 1], and limits and alarms that hold at all times.

Statements and proofs are in docs/theory/bounds.md, under the same headings.

**Betting.** Losses x_1 .. x_m of units in a randomly drawn order are independent with mean L, or L = E a x /
E a where unit t counts for a_t in [0, 1]. With lam_t in [0, 1] chosen from the units before unit t, a gambler
who bets that the mean is below p has, after s units, the wealth

    e_s(p) = prod over t <= s of (1 + lam_t a_t (p - x_t)),    p in [0, 1],

and with probability at least 1 - delta, L is at most the largest p with max over s of e_s(p) <= 1 / delta,
found by bisection. A bound below the mean of the losses, which is possible where they rise along the order,
is raised to it. Logarithms are summed. A factor is at least p, so each has a relative error of a few rounding
units / p, which is subtracted from the logarithm of the wealth before the comparison: bounds are rounded up.

**The optimised bet**, for few units (Ming, Shen, Wang, arXiv 2603.10329): one slope for all units, chosen
after they have been seen. For independent losses of the same distribution, with mean L,

    P(sup over l in [0, 1] of prod (1 + l a_t (L - x_t) / (1 - L)) >= 1 / delta) <= delta.

The product increases with L, its logarithm is concave in l, and the order of the units does not matter. Where
some units are copies of others, and it is not known which, those with the largest factors are left out.

**Losses between 0 and 1**, whose total over a split is an integer in units of 1 / ``ONE``, rounded up:
Catoni's bound holds for it, and so does the averaging-safe bound A, replaced by its least concave majorant
and interpolated between counts (Hoeffding, Annals of Mathematical Statistics 27, 1956). Whichever is smaller
at a mean loss of 0.1 is used; a claim uses A alone (``average_safe``).

**At all times**, while losses Y_1, Y_2, ... of live rows arrive, whose sum is X_t: the limits are the ends of
{p : E_t(p) < 1 / delta}, around X_t / t, with

    E_t(p) = B(a + X_t, b + t - X_t) / (B(a, b) p^X_t (1 - p)^(t - X_t))

(Robbins 1970; Howard, Ramdas, McAuliffe, Sekhon 2021), and the ``Prior`` decides how tight they are.

The alarm is against the hypothesis that no row is expected to be wrong with a probability above c, whatever
the past. Its process M is the mean, over ``LOG_ODDS`` alternatives q and over starts s, of

    product over s <= i <= t of (Y_i q / c + (1 - Y_i) (1 - q) / (1 - c)).

A batch of labels may be sorted: products start, and the process is inspected, at the ends of batches only.
With R_j the sum over the starts before batch j, for one alternative, and W_j the weights of its labels,

    R_j = (R_(j-1) + W_(j-1)) * (product of the factors of batch j),     W_0 = w_1,
    M_j = mean of R_j + W_j + (weight of all labels after batch j).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import fsum, log
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ckcv_ray.core.bounds import binomial
from ckcv_ray.core.bounds.binomial import MAX_CHECKED, TYPICAL_RATE, Bounds, catoni, check_delta
from ckcv_ray.errors import ONE, InputError, Limits, Values


@lru_cache(maxsize=1024)
def choose_loss_method(m: int, delta: float) -> str:
    """Return the bound that a criterion uses for totals of m losses: "safe" or "catoni"."""
    if m > MAX_CHECKED or binomial.find_safe_level(m, delta) is None:
        return "catoni"
    safe = float(np.interp(TYPICAL_RATE * m, np.arange(m + 1), make_concave_table(m, delta)))
    return "safe" if safe <= catoni(TYPICAL_RATE, m, delta) else "catoni"


@lru_cache(maxsize=256)
def make_concave_table(m: int, delta: float) -> Bounds:
    """Return the least concave function that is at least A at 0 .. m, shape (m + 1,); do not modify it."""
    table, corners = binomial.make_safe_table(m, delta), [0]
    for x in range(1, m + 1):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (table[b] - table[a]) * (x - a) > (table[x] - table[a]) * (b - a):
                break
            corners.pop()  # b is on or below the line from a to x
        corners.append(x)
    return np.maximum(table, np.interp(np.arange(m + 1), corners, table[corners]))


def bound_mean_loss(totals: Sequence[int], m: int, delta: float) -> float:
    """Return the bound on the mean over splits of the expected loss, at most 1.

    Args:
        totals: total loss in each split, 0 .. m * ``ONE``; the splits may depend on each other.
        m: losses in each total, at least 1.
        delta: probability that the bound fails.
    """
    if choose_loss_method(m, delta) == "catoni":
        return catoni(min(1.0, sum(totals) / (ONE * m * len(totals))), m, delta)
    return average_safe(np.asarray(totals) / ONE, m, delta)


def average_safe(losses: ArrayLike, m: int, delta: float) -> float:
    """Return the bound of a claim on the mean over splits of the expected loss, by A alone, at most 1.

    Args:
        losses: total loss, or wrong rows, of each split, in 0 .. m; the splits may depend on each other.
        m, delta: as for ``bound_mean_loss``.

    Returns:
        1, which says nothing, where m is above ``MAX_CHECKED``.
    """
    if m > MAX_CHECKED:
        return 1.0
    terms = np.interp(np.asarray(losses, float), np.arange(m + 1), make_concave_table(m, delta)).tolist()
    return min(1.0, fsum(terms) / len(terms))


BISECTIONS = 40  # a bound is a multiple of 2**-40
FACTOR_ROUNDING = 2.0**-49  # relative error of a factor, times p
MANY = 1 << 16  # with more units than this, losses are rounded up to multiples of its inverse
FEW = 5  # distinct losses, of units that count for different shares
MAX_OPTIMISED = 30  # most units for which the optimised bet is the tighter one


def choose_wagers(losses: ArrayLike, delta: float, shares: ArrayLike = 1.0) -> Values:
    """Return the slope lam_t a_t of each bet, lam_t from the units before it, of the shape of ``losses``.

    lam_t is the predictable plug-in of Waudby-Smith and Ramdas (JRSS B 86, 2024, section 3), limited to 1.

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


def compute_log_wealth(losses: Values, wagers: Values, p: ArrayLike) -> Values:
    """Compute log e_s(p) of each sequence after each unit, shape (..., m).

    Args:
        losses, wagers: (..., m); wagers are the slopes of ``choose_wagers``.
        p: the mean that the bets are against, in [0, 1], broadcast against the sequences.
    """
    with np.errstate(divide="ignore"):  # a factor of 0 has the logarithm -inf
        return np.cumsum(np.log1p(wagers * (np.asarray(p)[..., None] - losses)), axis=-1)


def bound_by_betting(losses: ArrayLike, delta: float, shares: ArrayLike | None = None) -> float:
    """Return the bound on the expected loss of a classifier, at most 1, from one set of units.

    Args:
        losses: in [0, 1], (m,), in an order drawn independently of everything else.
        delta: probability that the bound fails.
        shares: what each unit counts for, in [0, 1], (m,): its weight divided by the largest weight possible,
            also for units that are not here. None if all count the same.

    Raises:
        InputError: there are no losses, a loss or share is outside [0, 1], all shares are 0 or there is not
            one for each loss, or delta is outside (0, 1).
    """
    x, a = _check(losses, delta, shares)
    wagers = choose_wagers(x, delta, a)

    def is_covered(p: float) -> bool:
        """Return whether the wealth at p is never above 1 / delta, whatever the rounding."""
        error = len(x) * FACTOR_ROUNDING / p
        return not compute_log_wealth(x, wagers, p).max() - error > log(1 / delta)

    if is_covered(1.0):
        return 1.0
    _, high = _bisect(is_covered, 0.0, 1.0)
    return max(high, float(np.sum(a * x) / np.sum(a)))


def bound_by_optimised_bet(
    losses: ArrayLike, delta: float, shares: ArrayLike | None = None, copies: int = 0
) -> float:
    """Return the bound of the optimised bet on the expected loss of a classifier, at most 1.

    Args:
        losses: losses of independent units, in [0, 1], (m,), in any order.
        delta, shares: as for ``bound_by_betting``.
        copies: how many units may be copies of others, not known which; 1 is returned if all may.

    Raises:
        InputError: as for ``bound_by_betting``.
    """
    x, a = _check(losses, delta, shares)
    kept, times, most = binomial.count_without(copies, len(x)), np.ones(len(x)), a
    many = len(x) > MANY and not copies
    if many and shares is None:  # equal losses together, rounded up
        times = np.bincount(np.ceil(MANY * x).astype(np.intp), minlength=MANY + 1).astype(np.float64)
        x, a, kept = np.arange(MANY + 1) / MANY, np.ones(MANY + 1), MANY + 1
        most = a
    elif many and len(values := np.unique(x)) <= FEW:  # similar shares together
        cells = np.searchsorted(values, x) * (MANY + 1) + (MANY * a).astype(np.intp)
        order = np.lexsort((a, cells))
        starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
        times = np.diff(starts, append=len(x)).astype(np.float64)
        a, most, x = a[order][starts], a[order][starts + times.astype(np.intp) - 1], x[order][starts]
        kept = len(x)

    def is_covered(p: float) -> bool:
        """Return whether no bet against p is worth more than 1 / delta, whatever the rounding.

        A bet is a multiple, up to 1 / (1 - p), of the gains a_t (p - x_t). A search for the best bet that
        stops early finds a smaller wealth, so bounds err upwards.
        """
        gains = np.where(x < p, a, most) * (p - x)  # for similar shares, the least that it can be
        order = np.argsort(gains)[:kept]
        gains, n = gains[order], times[order]
        best, _ = _bisect(lambda bet: bool((n * gains / (1 + bet * gains)).sum() > 0), 0.0, 1 / (1 - p))
        factors = 1 + best * gains
        return not np.sum(n * (np.log(factors) - FACTOR_ROUNDING * (1 + 1 / factors))) > log(1 / delta)

    return _bisect(is_covered, 0.0, 1.0)[1]


def bound_losses(
    losses: ArrayLike, delta: float, shares: ArrayLike | None = None, copies: int = 0, drawn: bool = True
) -> float:
    """Return the bound on the expected loss of a classifier from one set of units, by the tighter bet.

    Up to ``MAX_OPTIMISED`` units, and where some may be copies or no order was drawn, that is the optimised
    bet; otherwise it is the bets in the order drawn.

    Args:
        losses, delta, shares: as for ``bound_by_betting``.
        copies: as for ``bound_by_optimised_bet``.
        drawn: whether the order of the losses was drawn independently of everything else.

    Raises:
        InputError: as for ``bound_by_betting``.
    """
    if copies or not drawn or np.size(losses) <= MAX_OPTIMISED:
        return bound_by_optimised_bet(losses, delta, shares, copies)
    return bound_by_betting(losses, delta, shares)


def _check(losses: ArrayLike, delta: float, shares: ArrayLike | None) -> tuple[Values, Values]:
    check_delta(delta)
    x = np.asarray(losses, dtype=np.float64)
    if x.ndim != 1 or not x.size:
        raise InputError(f"losses has shape {x.shape}: expected 1 dimension, and at least 1 loss")
    if not np.all((x >= 0) & (x <= 1)):
        raise InputError("losses has values outside [0, 1]: divide losses by the largest possible one")
    a = np.ones(len(x)) if shares is None else np.asarray(shares, dtype=np.float64)
    if a.shape != x.shape or not np.all((a >= 0) & (a <= 1)) or not a.any():
        raise InputError(
            f"shares has shape {a.shape}: expected one for each of {len(x)} losses, from 0 to 1 and not all "
            "0: divide weights by the largest possible one"
        )
    return x, a


def _bisect(
    is_inside: Callable[[float], bool], inside: float, outside: float, halvings: int = BISECTIONS
) -> tuple[float, float]:
    """Halve an interval between a point inside a set and one outside, and return its ends in this order."""
    for _ in range(halvings):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside, outside


LOG_ODDS = np.geomspace(0.1, 4.0, 16)  # of the alternatives, in excess of those of the bound
AT_FIRST_LABEL = 0.5  # weight of the start at the first label
LATER = 500.0  # labels, in units of which the weights of later starts fall
MAX_AHEAD = 10_000_000  # labels within which a decision is looked for


class Prior(NamedTuple):
    """The weights of error rates before the stream, Beta(a, b) with a, b > 0: see ``make_prior``."""

    a: float
    b: float

    def update(self, errors: float, labels: float) -> float:
        """Return the mean error rate after some labels: the prior's and the stream's, together."""
        return (self.a + errors) / (self.a + self.b + labels)


def make_prior(rate: float, units: float) -> Prior:
    """Return the prior of a certificate that rests on an error rate in [0, 1] among some units."""
    return Prior(rate * units + 1, (1 - rate) * units + 1)


def log_evidence(errors: ArrayLike, labels: ArrayLike, p: ArrayLike, prior: Prior) -> Values:
    """Compute ln E_t(p) against the error rate p, elementwise: see the module docstring.

    Args:
        errors: sums of losses, 0 <= errors <= labels.
        labels: number of losses, t.
        p: error rates in [0, 1].
        prior: fixed before the stream.

    Returns:
        float64 of the broadcast shape; infinite where p is 0 or 1 and the errors exclude it.
    """
    x, t, rate = (np.asarray(value, dtype=np.float64) for value in (errors, labels, p))
    special = scipy.special
    weighed = special.betaln(prior.a + x, prior.b + t - x) - special.betaln(prior.a, prior.b)
    evidence: Values = weighed - special.xlogy(x, rate) - special.xlog1py(t - x, -rate)
    return evidence


def limit_at_all_times(errors: float, labels: int, prior: Prior, delta: float) -> Limits:
    """Compute limits that hold at all times simultaneously, with probability 1 - delta.

    Args:
        errors: sum of the losses so far, 0 <= errors <= labels.
        labels: how many there are.
        prior: fixed before the stream.
        delta: probability that the limits ever fail, in (0, 1).

    Raises:
        InputError: there are more errors than labels, or delta is outside (0, 1).
    """
    check_delta(delta)
    if not 0 <= errors <= labels:
        raise InputError(f"errors={errors} is outside 0..{labels}: there are no more errors than labels")
    if not labels:
        return Limits(0.0, 1.0)
    rate, most = errors / labels, log(1 / delta)

    def is_covered(p: float) -> bool:
        return bool(log_evidence(errors, labels, p, prior) < most)

    ends = (end if is_covered(end) else _bisect(is_covered, rate, end, 60)[1] for end in (0.0, 1.0))
    return Limits(*ends)  # each rounded outwards, to 1e-18


class Alarm(NamedTuple):
    """The alarm process of one stream, or of several: at ln(1 / delta) the alarm is raised."""

    log_evidence: Values  # ln M_j at the end of each batch, (..., batches)
    log_sums: Values  # ln (R_j + W_j) of each alternative at the end of the last batch, (..., alternatives)


def trace_alarm(losses: ArrayLike, bound: float, sizes: ArrayLike) -> Alarm:
    """Compute the alarm process against the hypothesis that no mean loss exceeds a bound.

    Any order of the losses within a batch gives the same bits.

    Args:
        losses: in [0, 1], batch after batch, (..., t).
        bound: in (0, 1).
        sizes: how many losses each batch has, 1 or more; they add up to t, (batches,).

    Raises:
        InputError: a loss or the bound is outside its range.
    """
    y = np.asarray(losses, dtype=np.float64)
    if not np.all((y >= 0) & (y <= 1)):
        raise InputError("losses are outside 0..1: a wrong row is 1, a right one 0, a group its share")
    sizes = np.asarray(sizes, dtype=np.intp)
    batches = np.broadcast_to(np.repeat(np.arange(len(sizes)), sizes), y.shape)
    y = np.take_along_axis(y, np.lexsort((y, batches), axis=-1), axis=-1)  # sums depend on the order of terms
    ends = np.concatenate([[0], np.cumsum(sizes)])
    # After label t, later starts have the weight T(t) = 1 / (1 + ln(1 + t / LATER)) of all but the first, so
    # labels s + 1 to t have T(s) - T(t) = T(s) T(t) ln(1 + (t - s) / (s + LATER)), and all weights sum to 1.
    t = np.maximum(ends, 1.0)  # the first label's weight is on the start before it
    rest = 1 / (1 + np.log1p(t / LATER))
    later = rest[:-1] * rest[1:] * np.log1p((t[1:] - t[:-1]) / (t[:-1] + LATER))
    first = 1 - (1 - AT_FIRST_LABEL) * rest[:1]
    with np.errstate(divide="ignore"):  # the first label may be a batch of its own
        weights = np.log(np.concatenate([first, (1 - AT_FIRST_LABEL) * later]))
    after = np.log((1 - AT_FIRST_LABEL) * rest[:-1])  # of all labels after each batch
    total, sums = np.broadcast_to(after, (*y.shape[:-1], len(sizes))), []
    for wrong, right in zip(*_compare_alternatives(bound), strict=True):
        steps = np.cumsum(np.log(y * wrong + (1 - y) * right), axis=-1)
        steps = np.concatenate([np.zeros((*y.shape[:-1], 1)), steps], axis=-1)[..., ends]
        begun = np.logaddexp.accumulate(weights - steps, axis=-1)
        total = np.logaddexp(total, steps[..., 1:] + begun[..., :-1] - log(len(LOG_ODDS)))
        sums.append(steps[..., -1] + begun[..., -1])
    return Alarm(total, np.stack(sums, axis=-1))


def _compare_alternatives(bound: float) -> tuple[Values, Values]:
    """Return q / c and (1 - q) / (1 - c) for every alternative q of a bound c, (alternatives,) each."""
    if not 0 < bound < 1:
        raise InputError(f"bound={bound!r} is outside (0, 1): nothing could be worse, or nothing as good")
    grown = np.exp(LOG_ODDS)
    scale = 1 / (1 - bound + bound * grown)
    return grown * scale, scale


def expect_decision(
    alarm: Alarm, errors: float, labels: int, bound: float, prior: Prior, delta: float
) -> int | None:
    """Return how many more labels of one stream it takes to a decision, if the rate stays as it is.

    The rate is ``Prior.update``'s. Below the bound, the limit falls to it; above the bound, the alarm is
    raised, where starts after the last batch are left out. None if the rate is the bound itself, or above it
    before any label, or if more than ``MAX_AHEAD`` labels are needed.
    """
    rate, enough = prior.update(errors, labels), log(1 / delta)
    if rate == bound or (rate > bound and not labels):
        return None
    wrong, right = map(np.log, _compare_alternatives(bound))
    growth, sums = rate * wrong + (1 - rate) * right, alarm.log_sums - log(len(LOG_ODDS))

    def is_decided(more: int) -> bool:
        """Return whether this many more labels suffice, as any larger number does then."""
        if rate > bound:
            return bool(np.logaddexp.reduce(sums + more * growth) >= enough)
        x, t = errors + more * rate, labels + more
        return bool(x < t * bound and log_evidence(x, t, bound, prior) >= enough)

    found = binomial.find_first(is_decided, 0, MAX_AHEAD)
    return found if is_decided(found) else None
