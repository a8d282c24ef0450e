r"""Limits and alarms that hold at all times, while labels of live rows arrive one after the other.

Whoever looks at a bound after every label, and stops when it says what they hoped for, needs one that holds
at all times together. An e-process is a process E_t >= 0 with E_0 = 1 that is a supermartingale under the
hypothesis: then P(E_t >= 1 / delta for any t) <= delta (Ville 1939), so E_t >= 1 / delta rejects it whenever
one looks, however one stops, and false rejections ever happen with probability at most delta.

**The limit.** Shares Y_1, Y_2, ... in [0, 1] (1 for a wrong row, or the share of wrong rows of a group) have
the mean p given the past; X_t is their sum. For a, b > 0 that are fixed before the stream

    E_t(p) = B(a + X_t, b + t - X_t) / (B(a, b) p^X_t (1 - p)^(t - X_t))

is the mean over q ~ Beta(a, b) of the product over i <= t of (q / p)^Y_i ((1 - q) / (1 - p))^(1 - Y_i)
(Robbins 1970). For 0-1 losses each factor has mean 1, so E_t(p) is a martingale of mean 1. For other losses a
factor is convex in Y_i, so it is at most Y_i q / p + (1 - Y_i) (1 - q) / (1 - p), of mean 1: a
supermartingale. So {p : E_t(p) < 1 / delta} covers p at all t together, with probability 1 - delta (Howard,
Ramdas, McAuliffe, Sekhon 2021; Waudby-Smith, Ramdas 2024). ln E_t(p) is convex in p, least at X_t / t: the
set is an interval. a and b only decide how close it is: a = x + 1, b = h - x + 1 for a certificate that rests
on x errors in h rows.

**The alarm**, against the hypothesis that no row is expected to be wrong with a probability above a bound c,
whatever the past and however this probability changes below c. For an alternative q > c and a label s to
start from,

    product over s <= i <= t of (Y_i q / c + (1 - Y_i) (1 - q) / (1 - c))

is a supermartingale: at a mean p <= c a factor has the mean 1 + (p - c) (q - c) / (c (1 - c)) <= 1. So is
every mean of such products with weights fixed beforehand: here over ``LOG_ODDS`` alternatives, whose odds are
exp(0.1) to exp(4) times those of c, with equal weights, and over all starts s. ``AT_FIRST_LABEL`` of the
weight is on s = 1, for a risk that is too high from the first label, and the rest falls as 1 / (s ln(s)^2):
a risk that rises after thousands of quiet labels is found by the products that start near its rise, instead
of having to make up for what all of the quiet labels took from one product. The sums over starts and over
alternatives commute: with R_t the sum over the starts s <= t for one alternative,

    R_t = (R_(t-1) + w_t) * (factor of label t),     M_t = mean of R_t + (weight of the starts after t),

so a label costs one step for each alternative and no memory of earlier ones. (A mixture over Beta(a, b), cut
to q > c and normalised, instead of the fixed alternatives is as valid. It has no such recursion, and
where h is large its weight is so near to c that larger rises are found later.)
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.bounds.binomial import check_delta
from ckcv_ray.core.search import find_first
from ckcv_ray.errors import InputError

LOG_ODDS = np.geomspace(0.1, 4.0, 16)  # of the alternatives, above those of the bound
AT_FIRST_LABEL = 0.5  # weight of the start at the first label
LATER = 500.0  # labels, in units of which the weights of later starts fall
STEPS_OF_BISECTION = 60  # of an interval of probabilities: to 1e-18
MOST_AHEAD = 10_000_000  # that a decision is looked for in
Shares = NDArray[np.float64]


class Prior(NamedTuple):
    """The weights of error rates before the stream, Beta(a, b) with a, b > 0: see ``make_prior``."""

    a: float
    b: float

    def update(self, errors: float, labels: float) -> float:
        """Return the mean error rate after some labels: the prior's and the stream's, together."""
        return (self.a + errors) / (self.a + self.b + labels)


class AnytimeLimits(NamedTuple):
    """Limits of an error rate that hold at all times, in [0, 1]."""

    low: float
    high: float


def make_prior(rate: float, units: float) -> Prior:
    """Return the prior of a certificate that rests on an error rate in [0, 1] among some units."""
    return Prior(rate * units + 1, (1 - rate) * units + 1)


def log_evidence(errors: ArrayLike, labels: ArrayLike, p: ArrayLike, prior: Prior) -> Any:
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
    return weighed - special.xlogy(x, rate) - special.xlog1py(t - x, -rate)


def limit_at_all_times(errors: float, labels: int, prior: Prior, delta: float) -> AnytimeLimits:
    """Compute limits that hold at all times together, with probability 1 - delta.

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
        return AnytimeLimits(0.0, 1.0)
    rate, most = errors / labels, log(1 / delta)

    def is_covered(p: float) -> bool:
        return bool(log_evidence(errors, labels, p, prior) < most)

    return AnytimeLimits(_move_outwards(is_covered, rate, 0.0), _move_outwards(is_covered, rate, 1.0))


def _move_outwards(is_covered: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the end of an interval between a point inside and an extreme, on the outer side of rounding."""
    if is_covered(outside):
        return outside
    for _ in range(STEPS_OF_BISECTION):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_covered(middle) else (inside, middle)
    return outside


class Alarm(NamedTuple):
    """The alarm process of one stream, or of several.

    Attributes:
        log_evidence: ln M_t after each label, (..., t).
        log_sums: ln R_t of each alternative after the last label, (..., alternatives).
    """

    log_evidence: Shares
    log_sums: Shares

    def find_first(self, delta: float) -> int | None:
        """Return the number of the label, from 1, at which one stream raises an alarm; None if none does."""
        raised = np.flatnonzero(self.log_evidence >= log(1 / delta))
        return int(raised[0]) + 1 if len(raised) else None


def trace_alarm(losses: ArrayLike, bound: float) -> Alarm:
    """Compute the alarm process against the hypothesis that no mean loss exceeds a bound.

    Args:
        losses: in [0, 1], in the order of arrival, (..., t).
        bound: in (0, 1).

    Raises:
        InputError: a loss or the bound is outside its range.
    """
    y = np.asarray(losses, dtype=np.float64)
    if not np.all((y >= 0) & (y <= 1)):
        raise InputError("losses are outside 0..1: a wrong row is 1, a right one 0, a group its share")
    if_wrong, if_right = _compare_alternatives(bound)
    first, after = _weigh_starts(y.shape[-1])
    total, sums = np.broadcast_to(after, y.shape), []
    for wrong, right in zip(if_wrong, if_right, strict=True):
        steps = np.cumsum(np.log(y * wrong + (1 - y) * right), axis=-1)
        before = np.concatenate([np.zeros((*y.shape[:-1], 1)), steps[..., :-1]], axis=-1)[..., : y.shape[-1]]
        log_sum = steps + np.logaddexp.accumulate(first - before, axis=-1)
        total = np.logaddexp(total, log_sum - log(len(LOG_ODDS)))
        sums.append(log_sum[..., -1] if y.shape[-1] else np.full(y.shape[:-1], -np.inf))
    return Alarm(total, np.stack(sums, axis=-1))


def _compare_alternatives(bound: float) -> tuple[Shares, Shares]:
    """Return q / c and (1 - q) / (1 - c) for every alternative q of a bound c, (alternatives,) each."""
    if not 0 < bound < 1:
        raise InputError(f"bound={bound!r} is outside (0, 1): nothing could be worse, or nothing as good")
    grown = np.exp(LOG_ODDS)
    scale = 1 / (1 - bound + bound * grown)
    return grown * scale, scale


def _weigh_starts(labels: int) -> tuple[Shares, Shares]:
    """Return the logarithms of the weight of a start at each label, and of all starts after it, (t,) each.

    Of the later starts the weight T(s) = 1 / (1 + ln(1 + s / LATER)) is after label s, so that of label s is
    T(s - 1) - T(s) = T(s - 1) T(s) ln(1 + 1 / (s - 1 + LATER)), and all weights sum to 1.
    """
    s = np.arange(labels + 1.0)
    after = 1 / (1 + np.log1p(s / LATER))
    weights = (1 - AT_FIRST_LABEL) * after[:-1] * after[1:] * np.log1p(1 / (s[:-1] + LATER))
    weights[:1] += AT_FIRST_LABEL
    return np.log(weights), np.log((1 - AT_FIRST_LABEL) * after[1:])


def expect_confirmation(errors: float, labels: int, bound: float, prior: Prior, delta: float) -> int | None:
    """Return how many more labels it takes until the limit is at most the bound, if the rate stays as it is.

    The rate is ``Prior.update``; None if it is not below the bound, or more than ``MOST_AHEAD`` are needed.
    """
    rate = prior.update(errors, labels)
    if rate >= bound:
        return None

    def is_confirmed(more: int) -> bool:
        x, t = errors + more * rate, labels + more
        return bool(x < t * bound and log_evidence(x, t, bound, prior) >= log(1 / delta))

    return _find_enough(is_confirmed)


def expect_alarm(alarm: Alarm, rate: float, bound: float, delta: float) -> int | None:
    """Return how many more labels it takes until one stream raises an alarm, at a rate of errors from now on.

    Starts after the last label are left out. None if the rate is not above the bound, or more than
    ``MOST_AHEAD`` are needed.
    """
    if rate <= bound:
        return None
    wrong, right = map(np.log, _compare_alternatives(bound))
    growth, sums = rate * wrong + (1 - rate) * right, alarm.log_sums - log(len(LOG_ODDS))
    return _find_enough(lambda more: bool(np.logaddexp.reduce(sums + more * growth) >= log(1 / delta)))


def _find_enough(is_enough: Callable[[int], bool]) -> int | None:
    """Return the first number of labels that is enough, given that all above it are; None if it is large."""
    found = find_first(is_enough, 0, MOST_AHEAD)
    return found if is_enough(found) else None
