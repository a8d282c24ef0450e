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
exp(0.1) to exp(4) times those of c, with equal weights, and over starts s. ``AT_FIRST_LABEL`` of the
weight is on s = 1, for a risk that is too high from the first label, and the rest falls as 1 / (s ln(s)^2):
a risk that rises after thousands of quiet labels is found by the products that start near its rise, instead
of having to make up for what all of the quiet labels took from one product.

Labels arrive in batches, in files that may be sorted by label or by prediction: in such an order the mean of
a label given those before it in the file is not the risk, and the process is no supermartingale. So products
start, and the process is looked at, at the ends of batches alone. Within a batch it is a symmetric function
of the losses. The weight of a label, but for that of the first one, is put on the start after its batch: what
a batch is given does not depend on its own size. The sums over starts and over alternatives commute: with
R_j the sum over the starts before batch j, for one alternative, and W_j the weights of the labels of batch j,

    R_j = (R_(j-1) + W_(j-1)) * (product of the factors of batch j),     W_0 = w_1,
    M_j = mean of R_j + W_j + (weight of all labels after batch j).

(A mixture over Beta(a, b), cut to q > c and normalised, instead of the fixed alternatives is as valid. It has
no such recursion, and where h is large its weight is so near to c that larger rises are found later.)
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
    """The alarm process of one stream, or of several."""

    log_evidence: Shares  # ln M_j at the end of each batch, (..., batches)
    log_sums: Shares  # ln (R_j + W_j) of each alternative at the end of the last batch, (..., alternatives)

    def find_first(self, delta: float) -> int | None:
        """Return the number of the batch, from 1, at whose end one stream raises an alarm; None if none."""
        raised = np.flatnonzero(self.log_evidence >= log(1 / delta))
        return int(raised[0]) + 1 if len(raised) else None


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
    weights, after = _weigh_starts(ends)
    total, sums = np.broadcast_to(after, (*y.shape[:-1], len(sizes))), []
    for wrong, right in zip(*_compare_alternatives(bound), strict=True):
        steps = np.cumsum(np.log(y * wrong + (1 - y) * right), axis=-1)
        steps = np.concatenate([np.zeros((*y.shape[:-1], 1)), steps], axis=-1)[..., ends]
        begun = np.logaddexp.accumulate(weights - steps, axis=-1)
        total = np.logaddexp(total, steps[..., 1:] + begun[..., :-1] - log(len(LOG_ODDS)))
        sums.append(steps[..., -1] + begun[..., -1])
    return Alarm(total, np.stack(sums, axis=-1))


def _compare_alternatives(bound: float) -> tuple[Shares, Shares]:
    """Return q / c and (1 - q) / (1 - c) for every alternative q of a bound c, (alternatives,) each."""
    if not 0 < bound < 1:
        raise InputError(f"bound={bound!r} is outside (0, 1): nothing could be worse, or nothing as good")
    grown = np.exp(LOG_ODDS)
    scale = 1 / (1 - bound + bound * grown)
    return grown * scale, scale


def _weigh_starts(ends: NDArray[np.intp]) -> tuple[Shares, Shares]:
    """Return the logarithms of the weights of starts.

    Of the later starts the weight T(t) = 1 / (1 + ln(1 + t / LATER)) is after label t, so that of the labels
    from s + 1 to t is T(s) - T(t) = T(s) T(t) ln(1 + (t - s) / (s + LATER)), and all weights sum to 1.

    Args:
        ends: how many labels there are before each batch, and after the last one, ascending, (batches + 1,).

    Returns:
        of the starts before each batch, and after the last one, (batches + 1,); and, before each batch, of
        all starts after it, (batches,).
    """
    t = np.maximum(ends, 1.0)  # the first label's weight is on the start before it
    after = 1 / (1 + np.log1p(t / LATER))
    later = after[:-1] * after[1:] * np.log1p((t[1:] - t[:-1]) / (t[:-1] + LATER))
    first = 1 - (1 - AT_FIRST_LABEL) * after[:1]
    with np.errstate(divide="ignore"):  # the first label may be a batch of its own
        weights = np.log(np.concatenate([first, (1 - AT_FIRST_LABEL) * later]))
    return weights, np.log((1 - AT_FIRST_LABEL) * after[:-1])


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

    Starts after the last batch are left out. None if the rate is not above the bound, or more than
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
