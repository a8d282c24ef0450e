"""Bounds on losses in [0, 1], by betting and as counts: they hold, by finite sums over all outcomes."""

from collections.abc import Callable, Sequence
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import factorial, fsum, log, prod
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.stats import binom

from ckcv_ray import InputError
from ckcv_ray.core.bounds import betting
from ckcv_ray.core.bounds.betting import (
    AT_FIRST_LABEL,
    LATER,
    LOG_ODDS,
    MAX_OPTIMISED,
    Alarm,
    Prior,
    average_safe,
    bound_by_betting,
    bound_by_optimised_bet,
    bound_losses,
    bound_mean_loss,
    choose_loss_method,
    choose_wagers,
    compute_log_wealth,
    expect_decision,
    limit_at_all_times,
    log_evidence,
    make_concave_table,
    make_prior,
    trace_alarm,
)
from ckcv_ray.core.bounds.binomial import MAX_CHECKED, catoni, find_safe_level, make_safe_table
from ckcv_ray.errors import ONE

Bound = Callable[..., float]
LAWS = [  # values, and their probabilities
    ((0.0, 1.0), (0.7, 0.3)),
    ((0.0, 0.5, 1.0), (0.6, 0.3, 0.1)),
    ((0.1, 0.2), (0.5, 0.5)),
    ((0.0, 0.25, 1.0), (0.05, 0.9, 0.05)),
]


@pytest.mark.parametrize(("values", "weights"), LAWS)
@pytest.mark.parametrize("m", [1, 2, 6])
def test_the_wealth_at_the_mean_has_mean_1(
    values: tuple[float, ...], weights: tuple[float, ...], m: int
) -> None:
    """A finite sum over all sequences of losses; delta is large, so that wagers differ from 1."""
    mean = float(np.dot(values, weights))
    drawn = np.array(list(product(range(len(values)), repeat=m)))
    losses, chances = np.array(values)[drawn], np.prod(np.array(weights)[drawn], axis=1)
    wealth = np.exp(compute_log_wealth(losses, choose_wagers(losses, 0.9), mean))
    assert chances @ wealth == pytest.approx(np.ones(m), abs=1e-12)  # after each unit


@pytest.mark.parametrize(("values", "weights"), LAWS)
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_bound_fails_with_probability_delta_at_most(
    values: tuple[float, ...], weights: tuple[float, ...], delta: float
) -> None:
    drawn = np.array(list(product(range(len(values)), repeat=7)))
    bounds = np.array([bound_by_betting(losses, delta) for losses in np.array(values)[drawn]])
    assert np.prod(np.array(weights)[drawn], axis=1)[bounds < np.dot(values, weights)].sum() <= delta


@pytest.mark.parametrize("m", [1, 4, 20, 300])
def test_a_bound_is_from_the_mean_to_1_and_the_wealth_there_is_1_by_delta(m: int) -> None:
    rng = np.random.default_rng(m)
    for losses in [rng.beta(0.5, 3, m), rng.beta(8, 2, m), np.zeros(m), np.ones(m), np.full(m, 0.5)]:
        bound = bound_by_betting(losses, 0.05)
        assert losses.mean() <= bound <= bound_by_betting(losses, 1e-3) <= 1
        wagers = choose_wagers(losses, 0.05)
        least, most = compute_log_wealth(losses, wagers, max(0, bound - 1e-9)).max(), log(1 / 0.05)
        assert least <= most or bound == losses.mean()
        assert bound == 1 or compute_log_wealth(losses, wagers, bound).max() >= most


@pytest.mark.parametrize("bound", [bound_by_betting, bound_by_optimised_bet])
@pytest.mark.parametrize(
    ("losses", "said"), [([], "at least 1 loss"), ([[0.5]], "expected 1 dim"), ([float("nan")], "outside")]
)
def test_what_are_no_losses_is_refused(bound: Bound, losses: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        bound(losses, 0.05)
    with pytest.raises(InputError, match="delta"):
        bound([0.5], 1.0)
    for shares in ([1.0] * 3, [1.1] * 4, [0.0] * 4, [float("nan")] * 4):
        with pytest.raises(InputError, match="expected one for each of 4 losses, from 0 to 1 and not all 0"):
            bound(np.zeros(4), 0.05, shares)


SIZES = [1, 2, 7, 33, 133, 850, 6_000]


@pytest.mark.parametrize("m", SIZES)
def test_the_method_depends_on_m_and_delta_alone_and_is_the_smaller_at_a_tenth(m: int) -> None:
    name = choose_loss_method(m, 0.05)
    other = catoni(0.1, m, 0.05)
    if name == "safe":
        assert bound_mean_loss([round(0.1 * m * ONE)], m, 0.05) <= other + 1e-9
    elif m <= 5_000 and find_safe_level(m, 0.05) is not None:
        assert np.interp(0.1 * m, np.arange(m + 1), make_concave_table(m, 0.05)) > other


@pytest.mark.parametrize("m", SIZES)
def test_whole_losses_are_counts(m: int) -> None:
    counts = [0, m // 3, m // 2, m]
    safe = 1.0 if m > MAX_CHECKED else min(1.0, float(make_safe_table(m, 0.05)[counts].mean()))
    expected = safe if choose_loss_method(m, 0.05) == "safe" else catoni(sum(counts) / (4 * m), m, 0.05)
    assert bound_mean_loss([c * ONE for c in counts], m, 0.05) == pytest.approx(expected, abs=1e-12)
    bounds = [bound_mean_loss([total], m, 0.05) for total in range(0, m * ONE + 1, m * ONE // 64)]
    assert 0 < bounds[0] <= bounds[-1] <= 1
    assert bounds == sorted(bounds)
    assert average_safe(counts, m, 0.05) == pytest.approx(safe, abs=1e-12)


@pytest.mark.parametrize("values", [(0.0, 0.5), (0.0, 0.25, 1.0), (0.3, 0.7), (0.0, 0.01, 1.0)])
@pytest.mark.parametrize("m", [3, 6])
def test_the_bound_holds_exactly_for_independent_losses(values: tuple[float, ...], m: int) -> None:
    """The probability of failure, a finite sum over all tuples of losses, for many distributions."""
    drawn = np.array(list(product(range(len(values)), repeat=m)))
    totals = np.array([round(value * ONE) for value in values])[drawn].sum(axis=1).tolist()
    bounds = np.array([bound_mean_loss([total], m, 0.05) for total in totals])
    rng = np.random.default_rng(0)
    for _ in range(30):
        weights = rng.dirichlet(np.full(len(values), 0.5))
        assert np.prod(weights[drawn], axis=1)[bounds < weights @ values].sum() <= 0.05


DELTA = 0.05
unit_losses = st.lists(st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.9, 1.0]), min_size=1, max_size=8)


def find_worst(m: int, low: float, high: float) -> float:
    """The largest probability that the bound fails over all laws of two values; it is just above a bound."""
    bounds = [bound_by_optimised_bet([high] * j + [low] * (m - j), DELTA) for j in range(m + 1)]
    chances = [(bound - low) / (high - low) for bound in bounds]  # of ``high``: the mean is then a bound
    return max((float(binom.cdf(j, m, q)) for j, q in enumerate(chances) if q < 1), default=0.0)


@pytest.mark.parametrize("m", range(1, 6))
def test_no_law_of_two_values_fails_more_often_and_some_law_exactly_as_often(m: int) -> None:
    """A loss of 1 now and then, and else always the same one, uses up delta."""
    values = (0.0, 0.1, 0.4, 0.6, 0.8, 1.0)
    worst = {pair: find_worst(m, *pair) for pair in combinations(values, 2) if pair[1] > 0.5}
    assert max(worst.values()) <= DELTA * (1 + 1e-9)
    assert all(worst[low, 1.0] == pytest.approx(DELTA, rel=1e-8) for low in values[:-1])


@pytest.mark.parametrize("m", range(1, 6))
@pytest.mark.parametrize("values", [(0.0, 0.5, 1.0), (0.0, 0.1, 0.8), (0.2, 0.9, 1.0)])
def test_no_law_of_three_values_fails_more_often(m: int, values: tuple[float, ...]) -> None:
    drawn = list(combinations_with_replacement(range(3), m))
    bounds = np.array([bound_by_optimised_bet([values[i] for i in one], DELTA) for one in drawn])
    counts = np.array([[one.count(i) for i in range(3)] for one in drawn])
    orders = np.array([factorial(m) / prod(map(factorial, count)) for count in counts.tolist()])
    rng = np.random.default_rng(m)
    for law in np.concatenate([rng.dirichlet(np.full(3, a), 400) for a in (0.2, 1.0)]):
        chances = orders * np.prod(law**counts, axis=1)
        assert chances[bounds < law @ values - 1e-12].sum() <= DELTA


@pytest.mark.parametrize(
    "kinds", [((1.0, 1.0), (0.05, 0.0)), ((0.1, 1.0), (1.0, 0.0)), ((0.5, 0.4), (1.0, 1.0))]
)
@pytest.mark.parametrize("q", [0.02, 0.2, 0.5, 0.8, 0.95])
def test_by_weight_it_fails_no_more_often(kinds: Sequence[tuple[float, float]], q: float) -> None:
    """Pairs of a share and a loss, the first of two with probability q, four times."""
    (a, x), (b, y) = kinds
    mean, failed = (q * a * x + (1 - q) * b * y) / (q * a + (1 - q) * b), 0.0
    for j in range(5):
        shares, losses = [a] * j + [b] * (4 - j), [x] * j + [y] * (4 - j)
        failed += binom.pmf(j, 4, q) * (bound_by_optimised_bet(losses, DELTA, shares) < mean)
    assert failed <= DELTA


@pytest.mark.parametrize("copied", range(3))
@pytest.mark.parametrize("q", [0.05, 0.5, 0.632, 0.9])
def test_copies_that_nobody_knows_are_allowed_for(copied: int, q: float) -> None:
    """Three independent losses, one of which stands there three times: without copies it fails."""
    failed = dict.fromkeys((0, 2), 0.0)
    for drawn in product((0.0, 1.0), repeat=3):
        losses = [*drawn, drawn[copied], drawn[copied]]
        chance = prod(q if loss else 1 - q for loss in drawn)
        for copies in failed:
            failed[copies] += chance * (bound_by_optimised_bet(losses, DELTA, copies=copies) < q)
    assert failed[2] <= DELTA
    assert q != 0.5 or failed[0] > DELTA


@given(unit_losses, st.integers(0, 3), st.randoms(use_true_random=False))
def test_it_is_never_below_the_mean_grows_with_every_loss_and_knows_no_order(losses, copies, random) -> None:
    shares = [random.choice([0.2, 0.7, 1.0]) for _ in losses]
    bound = bound_by_optimised_bet(losses, DELTA, shares, copies)
    assert np.average(losses, weights=shares) <= bound <= 1
    assert bound_by_optimised_bet(losses, DELTA, shares, copies + 1) >= bound
    assert bound_by_optimised_bet(losses, DELTA / 2, shares, copies) >= bound
    larger = losses.copy()
    larger[random.randrange(len(losses))] = 1.0
    assert bound_by_optimised_bet(larger, DELTA, shares, copies) >= bound
    pairs = random.sample([*zip(losses, shares, strict=True)], len(losses))
    again = bound_by_optimised_bet(*np.transpose(pairs)[:1], DELTA, np.transpose(pairs)[1], copies)
    assert again == pytest.approx(bound, rel=1e-11)


def test_a_search_that_stops_early_errs_upwards(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = np.random.default_rng(0).beta(1, 7, 12)
    bound = bound_by_optimised_bet(losses, DELTA)
    for steps in (3, 8, 20):
        monkeypatch.setattr(betting._bisect, "__defaults__", (steps,))
        assert bound_by_optimised_bet(losses, DELTA) > bound


def test_the_number_of_units_alone_and_whether_some_are_copies_decide_which_bet_it_is() -> None:
    losses = np.random.default_rng(1).beta(1, 7, MAX_OPTIMISED + 1)
    assert bound_losses(losses[:-1], DELTA) == bound_by_optimised_bet(losses[:-1], DELTA)
    assert bound_losses(losses, DELTA) == bound_by_betting(losses, DELTA)
    assert bound_losses(losses, DELTA, copies=2) == bound_by_optimised_bet(losses, DELTA, copies=2)


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.5, 1.0)])
def test_shares_that_are_alike_are_taken_together_and_never_prove_more(
    values: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    losses, shares = rng.choice(values, 300), rng.random(300)
    coarse = np.ceil(8 * shares) / 8
    exact = [bound_by_optimised_bet(losses, DELTA, a) for a in (shares, coarse)]
    monkeypatch.setattr(betting, "MANY", 16)
    together = [bound_by_optimised_bet(losses, DELTA, a) for a in (shares, coarse)]
    assert exact[0] < together[0] < exact[0] + 2 / 16  # by the width of what is alike
    assert together[1] == pytest.approx(exact[1], rel=1e-9)  # which is none


# Limits and alarms at all times: exact sums over every stream of a length

PRIORS = [Prior(1, 1), Prior(0.5, 0.5), make_prior(0.1, 60), make_prior(0.0, 500)]
RATES = [0.001, 0.05, 0.2, 0.5, 0.9]
EVERY = np.array(list(product((0.0, 1.0), repeat=12)))  # every stream of 12 labels


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
    alarm = trace([0.0], bound)
    more = expect_decision(alarm, 3, 100, bound, prior, DELTA)
    assert more > 0
    rate = prior.update(3, 100)
    highs = [limit_at_all_times(3 + n * rate, 100 + n, prior, DELTA).high for n in (more - 1, more)]
    assert highs[1] <= bound < highs[0]
    assert expect_decision(alarm, 3, 1000, bound, prior, DELTA) == 0
    assert expect_decision(alarm, 0, 0, 0.02, prior, DELTA) is None  # no label yet, and the rate is above
    assert expect_decision(alarm, 50, 998, 0.0510001, Prior(1, 1), DELTA) is None  # and here hardly below


def test_what_is_no_stream_is_refused() -> None:
    for errors, delta, words in ((3, DELTA, "errors=3 is outside 0..2"), (1, 1.0, "delta=1.0 is outside")):
        with pytest.raises(InputError, match=words):
            limit_at_all_times(errors, 2, Prior(1, 1), delta)
    for loss, bound, words in ((np.nan, 0.1, "losses are outside 0..1"), (0.5, 1.0, "bound=1.0 is outside")):
        with pytest.raises(InputError, match=words):
            trace([loss], bound)
