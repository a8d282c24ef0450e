"""Bounds that may be averaged over splits of different sizes: the condition, and the worst joint laws."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack
from scipy.stats import binom

from ckcv_ray.core.bounds.averaging import satisfies
from ckcv_ray.core.bounds.binomial import (
    MOST_CHECKED,
    clopper_pearson,
    safe_table,
    smallest_mean,
    tabulate_claim,
)
from ckcv_ray.core.bounds.unequal_sizes import MOST_EXACT, bound_terms, choose_size, compute_table, slope

DELTA = 0.05


def expectation(table: np.ndarray, lam: float, p: np.ndarray) -> np.ndarray:
    """E max(0, 1 - lam (A(X) - p)), X ~ Bin(m, p), at each p."""
    x = np.arange(len(table))
    terms = np.maximum(0, 1 - lam * (table - p[:, None]))
    return np.vecdot(binom.pmf(x, len(table) - 1, p[:, None]), terms)


@pytest.mark.parametrize("delta", [0.05, 0.0125, 1e-4])
@pytest.mark.parametrize("typical", [1, 4, 30])
def test_one_slope_keeps_the_condition_for_every_size(typical: int, delta: float) -> None:
    lam, p = slope(typical, delta), np.linspace(0, 1, 4001)
    for m in {0, 1, 2, typical // 2, typical, 2 * typical, 100}:
        table = compute_table(m, delta, lam)
        assert table.shape == (m + 1,)
        assert np.all(np.diff(table) >= 0)
        assert expectation(table, lam, p).max() <= delta * (1 + 1e-9)


@pytest.mark.parametrize("m", [MOST_EXACT + 8, 1000, MOST_CHECKED + 500])
def test_a_bound_interpolated_from_fewer_rows_keeps_the_condition(m: int) -> None:
    """And is hardly larger than the bound of all the rows would be."""
    lam, table = slope(m, DELTA), compute_table(m, DELTA, slope(m, DELTA))
    assert choose_size(m) < m
    p = np.concatenate([np.linspace(0, 0.02, 60), np.linspace(0.02, 1, 60)])
    assert expectation(table, lam, p).max() <= DELTA
    if m <= MOST_CHECKED:
        x = m // 10
        assert 0 <= table[x] - safe_table(m, DELTA)[x] < 0.02 * (table[x] - 0.1)


def test_sizes_are_checked_to_one_part_in_32() -> None:
    for m in (*range(1, 3000, 7), 4999, 5000):
        assert m - m // 32 <= choose_size(m) <= m
        assert choose_size(m) == m or m > MOST_EXACT
    assert choose_size(10**6) == MOST_CHECKED


@pytest.mark.parametrize(("m", "delta"), [(5, 0.05), (40, 0.025), (133, 0.0125)])
def test_at_the_typical_size_it_is_the_safe_bound(m: int, delta: float) -> None:
    """That of a claim; the slope has three digits, so the level may be a little smaller."""
    table, safe = compute_table(m, delta, slope(m, delta)), tabulate_claim(m, delta).A
    np.testing.assert_allclose(table, safe, rtol=4e-3)


@pytest.mark.parametrize("delta", [0.05, 0.0125])
@pytest.mark.parametrize("typical", [5, 30, 300])
def test_near_the_typical_size_little_is_lost(typical: int, delta: float) -> None:
    """Three standard deviations of the rows of a class in a third of all rows, drawn at random."""
    away = 3 * np.sqrt(typical * 2 / 3)
    for m in (max(1, round(typical - away)), round(typical + away)):
        lost = compute_table(m, delta, slope(typical, delta)) / safe_table(m, delta)
        assert lost.max() < (1.1 if m == 1 else 1.06)


def test_the_level_is_the_largest_for_the_slope() -> None:
    """The bound at a level 1 % larger does not satisfy the condition."""
    lam, m = slope(20, DELTA), 12
    table = compute_table(m, DELTA, lam)
    level = binom.cdf(0, m, table[0])
    larger = np.arange(m + 1) / m
    larger = larger + np.maximum.accumulate(clopper_pearson(np.arange(m + 1), m, 1.01 * level) - larger)
    assert satisfies(table, lam, DELTA)
    assert not satisfies(larger, lam, DELTA)


def test_without_rows_or_without_a_level_it_is_a_constant_that_keeps_the_condition() -> None:
    assert bound_terms([0], [0], 10, DELTA) == [1 + (1 - DELTA) / slope(10, DELTA)]
    assert slope(1, 1e-90) == 5.0  # no level is found for one row
    assert np.all(compute_table(1, 1e-90, 5.0) == 1.2)


State = tuple[int, float, int]  # rows, risk, wrong rows


def worst(tables: dict[int, np.ndarray], risks: np.ndarray, fails) -> float:
    """Largest probability of failure over all exchangeable laws of two splits whose numbers of rows vary."""
    states = [(m, p, x) for m in tables for p in risks for x in range(m + 1)]
    n = len(states)
    cost = -np.array([float(fails(*pair)) for pair in product(states, states)])
    weight = np.array([binom.pmf(x, m, p) for m, p, x in states])
    same = np.array([[a[:2] == b[:2] for b in states] for a in states])
    # P(m, p, x) - b(x; m, p) P(m, p) = 0 for the first split; with exchangeability, for both
    conditional = csr_array(np.eye(n) - weight[:, None] * same) @ csr_array(
        np.kron(np.eye(n), np.ones((1, n)))
    )
    i, j = np.tril_indices(n, -1)
    index = np.arange(len(i))
    values = np.concatenate([np.ones(len(i)), -np.ones(len(i))])
    places = np.concatenate([index, index]), np.concatenate([i * n + j, j * n + i])
    swapped = csr_array((values, places), shape=(len(i), n * n))
    equal = vstack([conditional, csr_array(np.ones((1, n * n))), swapped])
    target = np.zeros(equal.shape[0])
    target[n] = 1.0
    solved = linprog(cost, A_eq=equal, b_eq=target, bounds=(0, None), method="highs")
    assert solved.status == 0, solved.message
    return -float(solved.fun)


@pytest.mark.parametrize(("bounds", "holds"), [("varying", True), ("clopper_pearson", False)])
def test_prefixes_hold_together_under_any_law_of_two_splits_of_varying_size(bounds: str, holds: bool) -> None:
    """Each split has no row of the class, two or four; the same program finds where other bounds fail."""
    sizes = (0, 2, 4)
    tables = {m: compute_table(m, DELTA, slope(3, DELTA)) for m in sizes}
    if bounds == "clopper_pearson":
        tables = {m: np.asarray(clopper_pearson(np.arange(m + 1), m, DELTA)) for m in sizes}
    ends = np.concatenate([*tables.values(), [(a + b) / 2 for a in tables[2] for b in tables[4]]])
    risks = np.unique(np.concatenate([ends[ends < 1] * (1 + 1e-9), [0.0, 0.5, 1.0]]))[::2]

    def fails(one: State, other: State) -> bool:
        first, second = (tables[m][x] for m, _, x in (one, other))
        return bool(one[1] > first or one[1] + other[1] > first + second)

    assert (worst(tables, risks, fails) <= DELTA) is holds


def test_the_mean_holds_where_rows_are_shared_and_sizes_vary() -> None:
    """Estimate sets overlap, and members err on the rows of a class with different probabilities."""
    rng = np.random.default_rng(11)
    runs, n, delta = 3000, 40, 0.3
    failures = 0
    for _ in range(runs):
        risks, drawn = rng.permutation([0.05, 0.2, 0.4]), rng.random(n)
        wrong, sizes = [], []
        for risk in risks:
            of_class = rng.permutation(n)[: rng.integers(0, 16)]
            sizes.append(len(of_class))
            wrong.append(int(np.sum(drawn[of_class] < risk)))  # the same rows are hard for every member
        terms = bound_terms(wrong, sizes, 8, delta)
        length = smallest_mean(terms)
        failures += risks[:length].mean() > np.mean(terms[:length])
    assert failures <= binom.ppf(1 - 1e-6, runs, delta)
