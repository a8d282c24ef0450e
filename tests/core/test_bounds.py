"""Bounds on counts: their definition, their closed forms and their exact coverage."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, product
from math import comb, fsum, nan
from typing import NamedTuple

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.stats import binom

from ckcv_ray.core.bounds.averaging import satisfies
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import (
    MAX_CHECKED,
    bound_in_order,
    bound_table,
    catoni,
    clopper_pearson,
    find_rows_for_good,
    find_safe_level,
    make_safe_table,
    rank_positions,
    stevens,
)
from ckcv_ray.core.draws import Draws, hold_out, order_held_out
from ckcv_ray.errors import ONE, InputError

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(120))


def exact_cdf(x, m, p):
    """P(Bin(m, p) <= x) for the rational number that the float p is, without rounding."""
    p = Fraction(p)
    return sum(comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(x + 1))


# The definition: P(Bin(m, U) <= x) = delta


@pytest.mark.parametrize(
    ("x", "m", "delta"),
    [
        *((x, m, 0.05) for x, m in ((0, 1), (0, 20), (3, 20), (19, 20), (7, 57), (40, 57))),
        *((x, m, 1e-17) for x, m in ((0, 78), (3, 100), (10, 133))),  # for which 1 - delta is 1
        *((x, 20, 0.95) for x in (0, 3, 19)),
    ],
)
def test_definition_in_rational_arithmetic(x, m, delta):
    probability = exact_cdf(x, m, clopper_pearson(x, m, delta))
    assert abs(probability / Fraction(delta) - 1) < (1e-10 if delta == 1e-17 else 1e-12)
    assert clopper_pearson(m, m, delta) == clopper_pearson(0, 0, delta) == 1.0


@pytest.mark.parametrize("delta", [1e-30, 1e-100, 1e-110, 1e-150, 1e-200, 1e-300])
def test_every_delta_that_is_accepted_gives_a_probability(delta):
    """A delta too small to be handled may be refused; nan or a falling table may not be handed out."""
    try:
        tables = [bound_table(m, delta) for m in (5, 10, 200)]
    except InputError:
        return
    for table in tables:
        assert np.all((table > 0) & (table <= 1)), table
        assert np.all(np.diff(table) >= 0), table


# The theorem: P(p > U(X)) <= delta for every p, and no smaller number will do


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("m", [1, 2, 5, 20, 80])
def test_coverage_holds_and_is_tight_just_above_each_jump(m, delta):
    """Non-coverage rises in p up to each U(x) and drops behind it: its suprema sit just above the jumps."""
    bounds = bound_table(m, delta)
    for p in bounds[:-1] * (1 + 1e-12):
        assert p < 1
        failure = fsum(stats.binom.pmf(np.arange(m + 1), m, p)[bounds < p])
        assert failure <= delta * (1 + 1e-12)
        assert failure >= delta * (1 - 1e-7)


def test_counts_of_every_shape_and_type_give_the_same_bits():
    assert type(clopper_pearson(np.int64(3), np.uint8(10))) is float
    x, m = np.arange(4)[:, None], np.array([3, 10, 250])
    table = clopper_pearson(x, m, 0.1)
    assert table.tolist() == [[clopper_pearson(int(i), int(j), 0.1) for j in m] for i in x[:, 0]]
    assert bound_table(37, 0.05).tolist() == [clopper_pearson(x, 37, 0.05) for x in range(38)]
    assert clopper_pearson(np.uint8(255), 300) == clopper_pearson(255, 300) < 1  # nothing wraps around


NO_COUNTS = ([1.0, 2.0], nan, [3, -1], np.array([True, False]), None, "3")
REFUSED = [
    *((clopper_pearson, (bad, 10), "errors") for bad in NO_COUNTS),
    *((clopper_pearson, (0, bad), "m") for bad in NO_COUNTS),
    *((clopper_pearson, pair, "11|5 is") for pair in (([0, 11, 3], 10), (5, [9, 4]))),
    *((clopper_pearson, (10, 10, delta), "delta") for delta in (0.0, 1.0, nan)),
    *((stevens, (1, 20, v), "outside") for v in (1.1, nan)),
    *((make_safe_table, (m, 0.05), f"outside 1..{MAX_CHECKED}") for m in (0, MAX_CHECKED + 1)),
    *((catoni, each, r"must be in|outside \(0, 1\)") for each in ((nan, 20), (0.1, 0), (0.1, 20, 0.0))),
]


@pytest.mark.parametrize(("bound", "arguments", "message"), REFUSED)
def test_what_is_no_count_rate_or_delta_is_refused(bound, arguments, message):
    with pytest.raises(InputError, match=message):
        bound(*arguments)


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("m", [1, 2, 7, 20, 133])
def test_stevens_fails_with_probability_exactly_delta(m, delta):
    """The bound is below p where F(x - 1; p) + v f(x; p) <= delta: a share of v that sums to delta."""
    x = np.arange(m + 1)
    for p in (1e-6, 0.003, 0.1, 0.37, 0.5, 0.9, 0.999):
        f, below = stats.binom.pmf(x, m, p), stats.binom.cdf(x - 1, m, p)
        share = np.clip((delta - below) / np.maximum(f, 1e-290), 0, 1)
        assert np.sum(f * share) == pytest.approx(delta, rel=1e-10)
        for v in (0.0, 0.2, 0.5, 0.8, 1.0):
            bound = stevens(x, m, v, delta)
            clear = np.abs(v - share) > 1e-9  # else rounding decides
            np.testing.assert_array_equal((bound < p)[clear], (v < share)[clear])


def test_stevens_at_the_ends():
    assert stevens(0, 20, 0.04) == 0.0  # v <= delta: the set is empty
    assert stevens(20, 20, 0.06) == 1.0
    assert stevens(0, 0, 0.5) == 1.0
    assert stevens(20, 20, 0.01) == pytest.approx((0.95 / 0.99) ** (1 / 20), rel=1e-12)
    assert stevens([[1], [2]], 30, [0.1, 0.9]).shape == (2, 2)


def points_beside(A, m):
    """A fine grid, and points just below and above each bound, for they need not lie on it."""
    grid = np.concatenate([np.linspace(0, 1, 401 + 12 * m), np.linspace(0, min(1, 40 / m), 400)])
    return np.unique(np.clip(np.concatenate([grid, A * (1 - 1e-9), A * (1 + 1e-9)]), 0, 1))


def least_of_worst(m, level, delta):
    """The smallest over lam of the largest over p of E max(0, 1 - lam (A(X) - p)): convex in lam."""
    rate = np.arange(m + 1) / m
    A = rate + np.maximum.accumulate(bound_table(m, level) - rate)
    p = points_beside(A, m)
    f = stats.binom.pmf(np.arange(m + 1), m, p[:, None])

    def worst(log_lam):
        return np.max(np.vecdot(f, np.maximum(0, 1 - np.exp(log_lam) * (A - p[:, None])))) / delta

    low, high = np.log(0.5 / A[0]), np.log(10 * m + 2 / level)
    found = optimize.minimize_scalar(worst, (low, high), method="golden", tol=1e-10)
    return found.fun, np.exp(found.x), A


@given(st.integers(1, 90), st.floats(-8, -0.02).map(lambda e: 10**e))
@settings(derandomize=True, deadline=None, max_examples=limit_examples(25))
def test_level_keeps_the_condition_at_every_p_and_a_larger_one_does_not(m, delta):
    """By scipy's weights and a lam of our own: the level passes for one lam, the next few fail for all."""
    level = find_safe_level(m, delta)
    if level is None:
        assert m < 3
        return
    assert least_of_worst(m, level, delta)[0] <= 1 + 1e-9
    larger = level * (1 + 2**-8)
    assert larger > delta or least_of_worst(m, larger, delta)[0] > 1


@pytest.mark.parametrize(("m", "delta"), [(133, 0.05), (250, 0.05 / 286), (433, 1e-6)])
def test_level_of_larger_sets_keeps_the_condition(m, delta):
    assert least_of_worst(m, find_safe_level(m, delta), delta)[0] <= 1 + 1e-9


@pytest.mark.parametrize(("m", "delta"), [(1, 1e-9), (3, 1e-60), (400, 1e-100)])
def test_bound_is_one_where_there_is_no_level(m, delta):
    assert find_safe_level(m, delta) is None
    assert (make_safe_table(m, delta) == 1).all()


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0, 5))
@repeatable
def test_condition_of_any_ascending_bound_is_decided_as_on_a_fine_grid(m, seed, log_lam):
    """A bound of our own, wherever its steps lie, is refused where a single p breaks the condition."""
    rng = np.random.default_rng(seed)
    A, lam = np.sort(rng.uniform(0, 1.3, m + 1)), np.exp(log_lam)
    p = np.concatenate([points_beside(A, m), rng.uniform(0, 1, 200)])
    f = stats.binom.pmf(np.arange(m + 1), m, p[:, None])
    largest = np.max(np.vecdot(f, np.maximum(0, 1 - lam * (A - p[:, None]))))
    assert largest == 0 or not satisfies(A, lam, largest * (1 - 1e-6))
    assert satisfies(A, lam, largest * 1.01 or 0.05)  # a bound above 1 for every count does for every delta


@given(st.integers(1, 400), st.sampled_from([0.05, 0.01, 1e-4]))
@repeatable
def test_safe_bound_is_above_clopper_pearson_and_rises_faster_than_the_rate(m, delta):
    A = make_safe_table(m, delta)
    assert (clopper_pearson(np.arange(m + 1), m, delta) - 1e-12 <= A).all()
    assert (np.diff(A) >= 1 / m - 1e-12).all() or (A == 1).all()


@pytest.mark.parametrize("m", [1, 133])
def test_catonis_coverage(m):
    x, delta = np.arange(m + 1), 0.05
    bound = np.array([catoni(count / m, m, delta) for count in x])
    for p in [*np.linspace(0, 1, 101), *np.minimum(1, bound * (1 + 1e-12))]:
        assert np.sum(stats.binom.pmf(x, m, p)[bound < p]) <= delta
    assert (np.diff(bound) >= 0).all()


# From how many rows on something is proven, for good


def list_powers(most, risk, allowed, delta):
    """The probability for 0, 1, .. rows that at most ``allowed`` is proven, by the bound's definition."""
    sizes = np.arange(most + 1)[:, None]
    proven = stats.binom.cdf(sizes.T, sizes, allowed) <= delta  # (rows, wrong ones)
    return np.sum(stats.binom.pmf(sizes.T, sizes, risk) * proven, axis=1)


@pytest.mark.parametrize("power", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("delta", [0.05, 0.3, 1e-4])
@pytest.mark.parametrize(
    ("risk", "allowed"), [(0.05, 0.1), (0.06, 0.1), (0.0, 0.02), (0.5, 0.6), (0.3, 0.95)]
)
def test_rows_for_good_are_those_beyond_the_last_that_are_too_few(risk, allowed, delta, power):
    few = np.flatnonzero(list_powers(400, risk, allowed, delta) < power - 1e-12)  # one half may be exact
    assert find_rows_for_good([risk], lambda p: p <= allowed, delta, power, 400) == few[-1] + 1


@pytest.mark.parametrize(("risks", "power"), [((0.1, 0.02), 0.8), ((0.0, 0.02), 0.9), ((0.2, 0.0), 0.5)])
def test_rows_of_two_kinds_are_counted_together(risks, power):
    most = 50

    def holds(missed, flagged):
        return missed + 3 * flagged <= 0.7

    few = []
    for n in range(most + 1):
        counts = np.arange(n + 1)
        bounds = np.append(stats.beta.ppf(1 - 0.025, counts[:-1] + 1, n - counts[:-1]), 1.0)
        chance = np.outer(*(stats.binom.pmf(counts, n, risk) for risk in risks))
        if np.sum(chance * holds(bounds[:, None], bounds)) < power:
            few.append(n)
    assert 20 < few[-1] < most
    assert find_rows_for_good(risks, holds, 0.05, power, most) == few[-1] + 1


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


# Bounds over dependent splits, maximised exactly over the joint laws of two or three splits. A split is a
# pair (law, x): the law of the total of its m losses given its model, and that total. Only these conditional
# laws are known, so a joint law of several splits is any law of such pairs in which each x has its law given
# that law: the largest probability that a bound fails is a linear program.

DELTA = 0.05
GRID = np.array([0.0, 0.5, 1.0])  # losses


class Law(NamedTuple):
    """The law of a total of losses: their mean, and the probability of each total."""

    risk: float
    weights: np.ndarray


Pair = tuple[float, int]  # a risk, and the position of a total
Fails = Callable[[Sequence[Pair]], bool]


def worst(fails: Fails, laws: Sequence[Law], n_splits: int = 2) -> float:
    """Largest probability of failure over all joint laws of splits."""
    n_totals = len(laws[0].weights)
    states = [(law.risk, x) for law in laws for x in range(n_totals)]
    n = len(states)
    failed = np.array([float(fails(one)) for one in product(states, repeat=n_splits)]).reshape(
        (n,) * n_splits
    )
    # P(law, x) - weight(x; law) P(law) = 0 for every split
    weights = np.concatenate([law.weights for law in laws])
    conditional = csr_array(
        np.eye(n) - weights[:, None] * np.kron(np.eye(len(laws)), np.ones((n_totals, n_totals)))
    )
    every = csr_array(np.ones((1, n)))
    margins = [
        reduce(kron, [eye_array(n) if i == split else every for i in range(n_splits)])
        for split in range(n_splits)
    ]
    equal = vstack([*(conditional @ margin for margin in margins), csr_array(np.ones((1, n**n_splits)))])
    target = np.zeros(equal.shape[0])
    target[-1] = 1.0
    solved = linprog(-failed.ravel(), A_eq=equal.tocsr(), b_eq=target, bounds=(0, None), method="highs")
    assert solved.status == 0, solved.message
    return -float(solved.fun)


def risks(bounds: np.ndarray, n_splits: int = 2, others: int = 9) -> np.ndarray:
    """Risks just above each bound and each mean of several, where a failure begins, and a grid."""
    means = [np.mean(some) for some in product(np.unique(bounds), repeat=n_splits)]
    edges = np.unique(np.round(np.concatenate([bounds, means]), 9))
    return np.unique(np.concatenate([edges[edges < 1] + 1e-8, np.linspace(0, 1, others)]))


def counts(m: int, p: np.ndarray) -> list[Law]:
    """Laws of the number of wrong rows among m."""
    return [Law(float(risk), binom.pmf(np.arange(m + 1), m, risk)) for risk in p]


def totals(m: int, p: np.ndarray) -> list[Law]:
    """Laws of a total of m losses of 0, 1/2 or 1, with no, some or as many halves as possible; in halves."""
    laws = []
    for risk, share in product(p, (0.0, 0.5, 1.0)):
        half = 2 * share * min(risk, 1 - risk)
        one = np.array([1 - risk - half / 2, half, risk - half / 2])
        weights = reduce(np.convolve, [np.maximum(one, 0)] * m)
        laws.append(Law(float(one @ GRID), weights))
    return laws


def bound_by_catoni(losses: list[int], m: int, delta: float) -> float:
    return catoni(sum(losses) / (ONE * m * len(losses)), m, delta)


@pytest.mark.parametrize(
    ("table", "n_splits", "holds"),
    [(make_safe_table, 2, True), (make_safe_table, 3, True), (bound_table, 2, False)],
)
def test_a_mean_over_splits_under_any_law(
    table: Callable[[int, float], np.ndarray], n_splits: int, holds: bool
) -> None:
    """The program finds the failures of the mean of Clopper-Pearson bounds, so it would find others."""
    bounds = table(3, DELTA)
    laws = counts(3, risks(np.minimum(bounds, 1), n_splits, others=3))
    largest = worst(lambda splits: sum(bounds[x] - p for p, x in splits) < 0, laws, n_splits)
    assert (largest <= DELTA) is holds


@pytest.mark.parametrize("bound", [bound_mean_loss, bound_by_catoni])
def test_a_mean_of_losses_under_any_law(bound: Callable[[list[int], int, float], float]) -> None:
    m = 3
    table = np.array([bound([x * ONE // 2], m, DELTA) for x in range(2 * m + 1)])

    def fails(splits: Sequence[Pair]) -> bool:
        return float(np.mean([p for p, _ in splits])) > bound([x * ONE // 2 for _, x in splits], m, DELTA)

    assert worst(fails, totals(m, risks(table, others=3)[::2])) <= DELTA
