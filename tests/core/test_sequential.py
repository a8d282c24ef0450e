"""Limits and alarms at all times: exact sums over every stream of a length."""

from itertools import pairwise, product
from math import fsum, log
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.stats import binom

from ckcv_ray import InputError
from ckcv_ray.core.bounds.betting import (
    AT_FIRST_LABEL,
    LATER,
    LOG_ODDS,
    Alarm,
    Prior,
    expect_confirmation,
    limit_at_all_times,
    log_evidence,
    make_prior,
    trace_alarm,
)

PRIORS = [Prior(1, 1), Prior(0.5, 0.5), make_prior(0.1, 60), make_prior(0.0, 500)]
RATES = [0.001, 0.05, 0.2, 0.5, 0.9]
EVERY = np.array(list(product((0.0, 1.0), repeat=12)))  # every stream of 12 labels
DELTA = 0.05


def weigh(streams: np.ndarray, p: float) -> np.ndarray:
    """The probability of each stream if every label is wrong with probability p."""
    wrong = streams.sum(axis=1)
    return p**wrong * (1 - p) ** (streams.shape[1] - wrong)


def trace(losses: ArrayLike, bound: float, size: int = 1) -> Alarm:
    """Trace the alarm over batches of so many labels."""
    return trace_alarm(losses, bound, [size] * (np.shape(losses)[-1] // size))


def evidence_over_time(streams: np.ndarray, p: float, prior: Prior) -> np.ndarray:
    t = np.arange(1, streams.shape[1] + 1)
    return np.asarray(log_evidence(streams.cumsum(axis=1), t, p, prior))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("p", RATES)
def test_the_evidence_against_the_truth_has_mean_one(p: float, prior: Prior) -> None:
    for t in (1, 2, 7, 40):
        x = np.arange(t + 1)
        assert fsum(binom.pmf(x, t, p) * np.exp(log_evidence(x, t, p, prior))) == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("p", RATES)
def test_the_limits_ever_fail_with_probability_at_most_delta(p: float, prior: Prior) -> None:
    """Ville's inequality, over every stream; deltas are large, as few labels prove little."""
    largest = evidence_over_time(EVERY, p, prior).max(axis=1)
    for delta in (0.05, 0.2, 0.5, 0.9):
        assert fsum(weigh(EVERY, p)[largest >= log(1 / delta)]) <= delta


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("bound", [0.05, 0.2, 0.5])
def test_the_alarm_has_mean_one_at_the_bound_and_is_no_larger_below(bound: float, size: int) -> None:
    evidence = np.exp(trace(EVERY, bound, size).log_evidence)
    for batch in range(12 // size):
        assert fsum(weigh(EVERY, bound) * evidence[:, batch]) == pytest.approx(1, abs=1e-12)
        assert fsum(weigh(EVERY, bound / 2) * evidence[:, batch]) < 1


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("bound", [0.05, 0.2, 0.5])
def test_a_false_alarm_is_ever_raised_with_probability_at_most_delta(bound: float, size: int) -> None:
    """However the rows of a batch are sorted, here with the wrong ones first."""
    batches = np.sort(EVERY.reshape(len(EVERY), -1, size))[..., ::-1].reshape(EVERY.shape)
    largest = trace(batches, bound, size).log_evidence.max(axis=1)
    for p, delta in product((bound, bound / 2, bound / 10), (0.05, 0.2, 0.5, 0.9)):
        assert fsum(weigh(EVERY, p)[largest >= log(1 / delta)]) <= delta


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=1, max_size=5), st.randoms())
def test_any_order_within_a_batch_gives_the_same_bits(batches: list[list[float]], rng: Random) -> None:
    sizes, losses = [len(batch) for batch in batches], np.concatenate(batches)
    losses.flags.writeable = False
    found = trace_alarm(losses, 0.1, sizes)
    for batch in batches:
        rng.shuffle(batch)
    again = trace_alarm(np.concatenate(batches), 0.1, sizes)
    assert [part.tobytes() for part in found] == [part.tobytes() for part in again]


def test_an_alarm_allows_for_a_risk_that_changes_below_the_bound() -> None:
    """The risk of a row depends on the rows before: the bound after a wrong row, and far below otherwise."""
    bound, weights = 0.3, np.ones(len(EVERY))
    for t in range(EVERY.shape[1]):
        p = np.where(EVERY[:, t - 1] == 1, bound, bound / 5) if t else np.full(len(EVERY), bound)
        weights = weights * np.where(EVERY[:, t] == 1, p, 1 - p)
    assert fsum(weights) == pytest.approx(1)
    assert fsum(weights * np.exp(trace(EVERY, bound).log_evidence[:, -1])) <= 1


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.9, 0.1, 0.0), (0.2, 0.6, 0.2)])
def test_shares_of_groups_are_losses_too(shares: tuple[float, ...]) -> None:
    """With losses 0, 1/2 and 1 both processes have means of at most one, and the alarm exactly one."""
    streams = np.array(list(product((0.0, 0.5, 1.0), repeat=7)))
    weights = np.prod(np.array(shares)[(2 * streams).astype(int)], axis=1)
    mean = shares[1] / 2 + shares[2]
    assert fsum(weights * np.exp(trace(streams, mean).log_evidence[:, -1])) == pytest.approx(1)
    for prior in PRIORS:
        assert fsum(weights * np.exp(evidence_over_time(streams, mean, prior)[:, -1])) <= 1 + 1e-12


def test_the_alarm_is_the_mixture_over_starts_and_alternatives() -> None:
    """A label's weight is on the start after its batch, that of the first label on the first start."""
    rng, bound, sizes = np.random.default_rng(0), 0.1, [1, 9, 4, 16]
    losses, ends = rng.random(30), np.cumsum([0, *sizes])
    odds = bound / (1 - bound) * np.exp(LOG_ODDS)
    later = (1 - AT_FIRST_LABEL) / (1 + np.log1p(np.arange(31) / LATER))
    of_label = later[:-1] - later[1:]
    weights = [of_label[0] + AT_FIRST_LABEL, 0.0, *(of_label[s:e].sum() for s, e in pairwise(ends[1:-1]))]
    for batch, end in enumerate(ends[1:]):
        products = [
            weights[j] * np.prod(losses[s:end] * q / bound + (1 - losses[s:end]) * (1 - q) / (1 - bound))
            for j, s in enumerate(ends[: batch + 1])
            for q in odds / (1 + odds)
        ]
        expected = fsum(products) / len(odds) + 1 - fsum(weights[: batch + 1])
        found = trace_alarm(losses, bound, sizes).log_evidence[batch]
        assert found == pytest.approx(log(expected), abs=1e-10)


def test_a_long_stream_is_traced_as_label_by_label() -> None:
    """The sums of logarithms lose nothing after 100 000 labels, most of which speak against every alarm."""
    losses = np.random.default_rng(2).random(100_000) < 0.02
    losses[-300:] = np.random.default_rng(3).random(300) < 0.4
    alarm, several = trace(losses, 0.2), trace([losses[:50], losses[50:100]], 0.2)
    assert np.isfinite(alarm.log_evidence).all()
    assert np.array_equal(several.log_evidence[0], alarm.log_evidence[:50])  # of which a longer one goes on
    assert np.array_equal(several.log_sums[1], trace(losses[50:100], 0.2).log_sums)
    s = np.arange(len(losses) + 1.0)
    later = 1 / (1 + np.log1p(s / LATER))
    weights = (1 - AT_FIRST_LABEL) * later[:-1] * later[1:] * np.log1p(1 / (s[:-1] + LATER))
    before = weights[0] + AT_FIRST_LABEL  # of the first label, on the start before it
    grown, sums = np.exp(LOG_ODDS), np.full(len(LOG_ODDS), log(before))
    scale = 1 / (0.8 + 0.2 * grown)
    steps = np.log(np.where(losses[:, None], grown * scale, scale))
    for weight, step in zip([-np.inf, *np.log(weights[1:])], steps, strict=True):
        sums = np.logaddexp(sums + step, weight)
    assert alarm.log_sums == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize("prior", PRIORS)
@given(x=st.integers(0, 300), more=st.integers(0, 3000), delta=st.sampled_from([1e-6, 0.05, 0.5]))
def test_limits_enclose_the_rate_and_rise_with_the_errors(
    prior: Prior, x: int, more: int, delta: float
) -> None:
    t = x + more
    low, high = limit_at_all_times(x, t, prior, delta)
    assert 0 <= low <= (x / t if t else 0.5) <= high <= 1
    for limit in (low, high):
        if 1e-9 < limit < 1:  # the evidence is 1 / delta there, on the outer side of rounding
            assert log_evidence(x, t, limit, prior) >= log(1 / delta)
        if 1e-9 < limit < 1 - 1e-9:  # nearer to 1, one rounding of the limit changes the evidence
            assert log_evidence(x, t, limit, prior) == pytest.approx(log(1 / delta), rel=1e-3, abs=1e-6)
    if more:
        next_low, next_high = limit_at_all_times(x + 1, t, prior, delta)
        assert next_low >= low
        assert next_high >= high


def test_limits_of_no_labels_say_nothing_and_those_of_a_certificate_are_closer() -> None:
    assert limit_at_all_times(0, 0, Prior(1, 1), DELTA) == (0, 1)
    at = [limit_at_all_times(0.086 * t, t, make_prior(0.086, 300), DELTA).high for t in (100, 300, 1000)]
    flat = [limit_at_all_times(0.086 * t, t, Prior(1, 1), DELTA).high for t in (100, 300, 1000)]
    assert at == pytest.approx([0.173, 0.134, 0.112], abs=5e-4)
    assert all(a < b for a, b in zip(at, flat, strict=True))


def test_the_labels_until_it_is_confirmed_are_those_after_which_it_is() -> None:
    prior, bound = make_prior(0.03, 200), 0.08
    more = expect_confirmation(3, 100, bound, prior, DELTA)
    assert more > 0
    rate = prior.update(3, 100)
    highs = [limit_at_all_times(3 + n * rate, 100 + n, prior, DELTA).high for n in (more - 1, more)]
    assert highs[1] <= bound < highs[0]
    assert expect_confirmation(3, 1000, bound, prior, DELTA) == 0
    assert expect_confirmation(30, 100, bound, prior, DELTA) is None  # the rate is above the bound
    assert expect_confirmation(50, 998, 0.0510001, Prior(1, 1), DELTA) is None  # and here hardly below


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: limit_at_all_times(3, 2, Prior(1, 1), DELTA), "errors=3 is outside 0..2"),
        (lambda: limit_at_all_times(1, 2, Prior(1, 1), 1.0), "delta=1.0 is outside"),
        (lambda: trace([0.5, 1.5], 0.1), "losses are outside 0..1"),
        (lambda: trace([np.nan], 0.1), "losses are outside 0..1"),
        (lambda: trace([0.5], 1.0), r"bound=1.0 is outside \(0, 1\)"),
    ],
)
def test_what_is_no_stream_is_refused(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words):
        call()
