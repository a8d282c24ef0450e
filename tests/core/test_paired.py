"""Two classifiers on the same units: exact size of the sign test, bounds on the difference by finite sums."""

from collections.abc import Iterator
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from ckcv_ray.core.bounds.paired import (
    BETTING,
    COUNTS,
    MAX_EXPECTED,
    SIGN,
    bound_difference,
    compute_sign_p,
    expect_units,
    judge_differences,
)

GRID = [(p, q) for p, q in product(np.linspace(0, 1, 11), repeat=2) if p + q <= 1 + 1e-12]


def differ(below: int, above: int, n: int) -> np.ndarray:
    """Differences of n rows: the second alone wrong, the first alone wrong, and the others."""
    return np.repeat([-1.0, 1.0, 0.0], [below, above, n - below - above])


def list_chances(counts: np.ndarray) -> Iterator[tuple[float, float, np.ndarray]]:
    """Yield the probabilities of -1 and of 1 in a row, and with them those of counts of -1, 1 and 0."""
    ways = [comb(b + c + rest, b) * comb(c + rest, c) for b, c, rest in counts]
    for p, q in GRID:
        yield p, q, ways * np.prod(np.power([p, q, max(0.0, 1 - p - q)], counts), axis=1)


def list_counts(n: int) -> np.ndarray:
    return np.array([(b, c, n - b - c) for b in range(n + 1) for c in range(n + 1 - b)])


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_sign_test_is_false_with_probability_half_of_delta_at_most(delta: float) -> None:
    counts = list_counts(12)
    verdicts = [judge_differences(differ(b, c, 12), delta, None) for b, c, _ in counts]
    is_better, is_worse = np.array([verdict[:2] for verdict in verdicts]).T
    for p, q, chances in list_chances(counts):
        assert chances @ is_better <= delta / 2 + 1e-12 or p > q
        assert chances @ is_worse <= delta / 2 + 1e-12 or p < q
        assert chances @ (is_better | is_worse) <= delta + 1e-12 or p != q


def test_the_sign_test_is_exact() -> None:
    """Its size is that of the binomial test, and the largest that whole counts allow."""
    for below, above in [(0, 0), (0, 5), (9, 2), (40, 21), (300, 250)]:
        expected = binomtest(below, below + above, 0.5, "greater").pvalue if below + above else 1.0
        assert compute_sign_p(differ(below, above, 600)) == pytest.approx(expected, rel=1e-10)
    n, delta = 400, 0.05
    chances = [comb(n, below) / 2**n for below in range(n + 1)]
    proven = [judge_differences(differ(below, n - below, n), delta, None).better for below in range(n + 1)]
    size = sum(chance for chance, is_better in zip(chances, proven, strict=True) if is_better)
    assert 0.8 * delta / 2 < size <= delta / 2
    assert judge_differences(differ(15, 2, 100), 0.05, None) == (True, False, SIGN, None, None)
    assert judge_differences(-differ(15, 2, 100), 0.05, None) == (False, True, SIGN, None, None)


@pytest.mark.parametrize("level", [0.05, 0.25])
def test_the_bound_by_both_counts_fails_with_probability_level_at_most(level: float) -> None:
    counts = list_counts(10)
    bounds = np.array([bound_difference(differ(b, c, 10), level, COUNTS) for b, c, _ in counts])
    for p, q, chances in list_chances(counts):
        assert chances[bounds < q - p - 1e-12].sum() <= level


@pytest.mark.slow
@pytest.mark.parametrize("values", [(-1.0, 0.0, 1.0), (-0.5, 0.25, 1.0)])
def test_the_bound_by_betting_fails_with_probability_level_at_most(values: tuple[float, ...]) -> None:
    """Over all sequences of differences of four units, rows or groups."""
    level, drawn = 0.25, np.array(list(product(range(3), repeat=4)))
    bounds = np.array([bound_difference(one, level, BETTING) for one in np.array(values)[drawn]])
    for weights in np.array([(0.1, 0.8, 0.1), (0.3, 0.4, 0.3), (0.5, 0.0, 0.5), (0.05, 0.6, 0.35)]):
        chances = np.prod(weights[drawn], axis=1)
        assert chances[bounds < weights @ values - 1e-12].sum() <= level


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("n", [40, 400])
def test_the_interval_holds_the_mean_and_decides(n: int, grouped: bool) -> None:
    differences = np.random.default_rng(n).permutation(differ(n // 10, n // 20, n))
    verdict = judge_differences(differences, 0.05, 0.01, grouped)
    assert -1 <= verdict.low <= differences.mean() <= verdict.high <= 1
    assert verdict.method == (BETTING if grouped or n == 400 else COUNTS)
    assert verdict.better == (verdict.high <= 0.01)
    assert judge_differences(differences, 0.05, verdict.high, grouped).better
    assert judge_differences(-differences, 0.05, 1e-9, grouped).high == -verdict.low
    assert judge_differences(np.ones(n), 0.05, 0.01, grouped)[:2] == (False, True)


def test_groups_without_a_margin_are_compared_with_0() -> None:
    rng = np.random.default_rng(0)
    better = judge_differences(rng.uniform(-0.6, 0.2, 60), 0.05, None, has_losses=True)
    worse = judge_differences(rng.uniform(-0.2, 0.6, 60), 0.05, None, has_losses=True)
    assert (better.better, better.worse, worse.better, worse.worse) == (True, False, False, True)


@pytest.mark.parametrize("margin", [None, 0.05])
def test_as_many_units_as_expected_prove_it(margin: float | None) -> None:
    differences = np.random.default_rng(1).permutation(differ(7, 4, 100))
    assert not judge_differences(differences, 0.05, margin).better
    expected = expect_units(differences, 0.05, margin)
    assert 100 < expected <= 1_000
    assert judge_differences(np.resize(differences, expected), 0.05, margin).better


def test_no_number_of_units_is_expected_to_prove_what_is_not_measured() -> None:
    assert expect_units(differ(4, 4, 50), 0.05, None) is None
    assert expect_units(differ(4, 7, 50), 0.05, 0.05) is None
    assert expect_units(differ(0, 0, 50), 0.05, None) is None
    nearly = differ(2_000, 1_990, 60_000)
    assert len(nearly) < MAX_EXPECTED
    assert expect_units(nearly, 0.05, None) is None  # it would take more than is searched
