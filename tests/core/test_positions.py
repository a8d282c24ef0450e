"""Stevens' bound by the positions of the wrong rows: never too small, and nearly as close as with a draw."""

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from ckcv_ray.core.bounds.binomial import bound_in_order, clopper_pearson, rank_positions
from ckcv_ray.core.draws import Draws, hold_out, order_held_out


def marks(h: int, positions: tuple[int, ...]) -> np.ndarray:
    wrong = np.zeros(h, bool)
    wrong[list(positions)] = True
    return wrong


@pytest.mark.parametrize(("h", "delta"), [(1, 0.05), (4, 0.2), (7, 0.6), (9, 0.05), (12, 0.01)])
def test_it_fails_at_most_with_delta_at_every_risk(h, delta):
    """A finite sum over all sets of positions, just above each bound, on a grid and at both ends."""
    bounds = [
        np.array([bound_in_order(marks(h, found), delta) for found in combinations(range(h), x)])
        for x in range(h + 1)
    ]
    ends = np.unique(np.concatenate(bounds)) * (1 + 1e-9)
    points = np.concatenate([ends[ends < 1], np.linspace(0, 1, 101), [1e-12, 1 - 1e-12]])
    below = [np.searchsorted(np.sort(one), points * (1 - 1e-12)) / len(one) for one in bounds]
    failing = np.sum(binom.pmf(np.arange(h + 1)[:, None], h, points) * below, axis=0)
    assert max(failing) <= delta * (1 + 1e-9)
    if h >= 9 and delta < 0.5:
        typical = [value for value, p in zip(failing, points, strict=True) if 0.3 <= p <= 0.7]
        assert np.mean(typical) > 0.9 * delta  # Clopper-Pearson's is about half of it


def test_without_an_error_it_is_clopper_pearson_and_with_errors_it_is_closer():
    for h in (1, 20, 200):
        assert bound_in_order(np.zeros(h, bool), 0.05) == pytest.approx(clopper_pearson(0, h), rel=1e-12)
        assert bound_in_order(np.ones(h, bool), 0.05) == 1.0
    assert bound_in_order(np.zeros(0, bool), 0.05) == 1.0
    for found in combinations(range(8), 3):
        bound = bound_in_order(marks(8, found), 0.05)
        assert clopper_pearson(2, 8) <= bound <= clopper_pearson(3, 8) * (1 + 1e-12)


@pytest.mark.parametrize(("h", "x"), [(7, 3), (6, 6), (5, 0), (9, 1)])
def test_each_set_of_positions_has_its_own_number(h, x):
    found = Counter(rank_positions(marks(h, one)) for one in combinations(range(h), x))
    assert sorted(found) == pytest.approx([(i + 1) / comb(h, x) for i in range(comb(h, x))])


@pytest.mark.parametrize(("h", "x"), [(400, 40), (800, 400), (300, 2)])
def test_the_number_of_many_positions_is_rounded_up_and_hardly(h, x):
    rng = np.random.default_rng(x)
    for _ in range(20):
        positions = np.sort(rng.permutation(h)[:x]).tolist()
        exact = Fraction(1 + sum(comb(c, i) for i, c in enumerate(positions, start=1)), comb(h, x))
        found = rank_positions(marks(h, tuple(positions)))
        assert float(exact) - 1e-15 <= found <= float(exact) + 1e-15


# The order of the draw


@pytest.mark.parametrize("risk", [0.15, 0.2])
def test_in_the_order_of_the_draw_it_holds_on_a_table_sorted_by_label(risk):
    """A constant classifier on tables whose wrong rows come first; by the rows' own order it would fail."""
    runs, n, delta = 1_000, 60, 0.05
    rng = np.random.default_rng(1)
    drawn = by_row = 0
    for seed in range(runs):
        wrong = np.sort(rng.uniform(size=n) < risk)[::-1]
        held = hold_out(n, 0.5, Draws(seed))
        drawn += bound_in_order(wrong[order_held_out(n, len(held), Draws(seed))], delta) < risk
        by_row += bound_in_order(wrong[held], delta) < risk
    most = binom.ppf(1 - 1e-6, runs, delta)
    assert drawn <= most < by_row
