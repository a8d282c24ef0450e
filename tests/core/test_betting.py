"""Bounds by betting on losses in [0, 1]: the wealth is fair, the bounds hold, exactly and in simulation."""

from collections.abc import Callable
from itertools import product
from math import log

import numpy as np
import pytest

from ckcv_ray import InputError
from ckcv_ray.core.bounds.betting import (
    bound_by_betting,
    bound_by_optimised_bet,
    choose_wagers,
    compute_log_wealth,
)

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


def test_a_wager_depends_on_earlier_losses_alone_and_is_in_0_to_1() -> None:
    rng = np.random.default_rng(0)
    losses = rng.uniform(size=(9, 200))
    wagers = choose_wagers(losses, 0.05)
    assert np.all((wagers > 0) & (wagers <= 1))
    assert np.mean(wagers < 1) > 0.9
    for t in range(0, 200, 7):
        changed = losses.copy()
        changed[:, t:] = rng.uniform(size=(9, 200 - t))
        assert np.array_equal(choose_wagers(changed, 0.05)[:, : t + 1], wagers[:, : t + 1])


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
    ("losses", "said"),
    [
        ([], "at least 1 loss"),
        ([[0.5]], "expected 1 dimension"),
        ([1.5], "outside"),
        ([float("nan")], "outside"),
    ],
)
def test_what_are_no_losses_is_refused(bound: Bound, losses: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        bound(losses, 0.05)
    with pytest.raises(InputError, match="delta"):
        bound([0.5], 1.0)
    for shares in ([1.0] * 3, [1.1] * 4, [-0.1] * 4, [0.0] * 4, [float("nan")] * 4):
        with pytest.raises(InputError, match="expected one for each of 4 losses, from 0 to 1 and not all 0"):
            bound(np.zeros(4), 0.05, shares)
