"""The optimised bet on few losses: its worst laws, exactly, and what it never does."""

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ckcv_ray.core.bounds import betting
from ckcv_ray.core.bounds.betting import MAX_OPTIMISED, bound_by_betting, bound_by_optimised_bet, bound_losses

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
        monkeypatch.setattr(betting, "BISECTIONS", steps)
        assert bound_by_optimised_bet(losses, DELTA) >= bound


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
