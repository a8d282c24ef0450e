"""Calibration: what is said about calibrated probabilities is false in at most delta of all tables."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ckcv_ray.runs.judged import MIN_ROWS, Calibration, Judged

DELTA = 0.05
TEN = np.ones(10)


def stack(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p])


def calibrate(y: np.ndarray, probability: np.ndarray, delta: float = DELTA, **more: Any) -> Calibration:
    return Judged(y, y, None, probability, 0 * y, "", delta=delta, **more).calibration


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize(
    "parts",
    [
        (np.full(60, 0.15), np.full(60, 0.5)),
        (np.linspace(0.0, 0.59, 10), np.linspace(0.6, 1.0, 11)),
        (np.append(0 * TEN, 0.09), np.append(TEN, 0.99)),  # counts of 1 and n - 1 beside certain rows
        (np.append(0 * TEN, 0.026), np.append(TEN, 0.988)),
    ],
    ids=["equal", "all", "certain", "at a level"],
)
def test_calibrated_probabilities_are_refuted_in_at_most_delta_of_all_tables(
    parts: tuple[np.ndarray, np.ndarray], delta: float
) -> None:
    """By the exact law of the two counts, each a sum of rows of unlike probabilities."""
    laws, chance = [], 0.0
    for p in parts:
        law = np.ones(1)
        for each in p:
            law = np.convolve(law, [1 - each, each])
        laws.append(law)
    for counts in product(*(range(len(p) + 1) for p in parts)):
        y = np.concatenate([np.arange(len(p)) < x for p, x in zip(parts, counts, strict=True)]).astype(int)
        refuted = calibrate(y, stack(np.concatenate(parts)), delta).n_outside > 0
        chance += refuted * laws[0][counts[0]] * laws[1][counts[1]]
    assert 0 < chance <= delta


@pytest.mark.parametrize("n_classes", [2, 3])
def test_intervals_are_those_of_scipy_at_a_level_shared_by_all_bins(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.ones(n_classes), 120)
    y = rng.integers(0, n_classes, 120)
    bins = calibrate(y, probability, positive=0).bins
    assert {each.label for each in bins} == ({0} if n_classes == 2 else {0, 1, 2})
    for each in bins:
        test = stats.binomtest(each.found, each.rows)
        assert each.interval == pytest.approx(test.proportion_ci(1 - DELTA / len(bins), "exact"))
        low, high = each.interval
        side = "too low" if each.mean < low else "too high" if each.mean > high else "inside"
        given = probability[:, each.label]
        rows = (given >= each.edges[0]) & (given < each.edges[1])
        assert each[2:5] == (rows.sum(), (y[rows] == each.label).sum(), pytest.approx(given[rows].mean()))
        assert each.side == side


def test_bins_have_ten_rows_and_depend_on_no_label() -> None:
    rng = np.random.default_rng(0)
    for power in (0.1, 1, 5, 40):
        probability = stack(rng.random(rng.integers(MIN_ROWS, 200)) ** power)
        n = len(probability)
        bins = calibrate(np.zeros(n, int), probability).bins
        assert min(each.rows for each in bins) >= MIN_ROWS
        assert sum(each.rows for each in bins) == n
        edges = [edge for each in bins for edge in each.edges]
        assert edges == sorted(edges)
        others = calibrate(rng.integers(0, 2, n), probability).bins
        assert [each._replace(found=0, interval=None, side=None) for each in others] == [
            each._replace(interval=None, side=None) for each in bins
        ]


def test_a_tenth_begins_with_its_edge_and_the_last_ends_with_one() -> None:
    for tenth in range(10):
        probability = stack(np.repeat([tenth / 10, 1.0], MIN_ROWS))
        bins = calibrate(np.ones(2 * MIN_ROWS, int), probability, refusal="groups").bins
        assert [each.edges for each in bins] == [(tenth / 10, (tenth + 1) / 10), (0.9, 1.0)][: 10 - tenth]
        assert {each.interval for each in bins} == {None}
