"""Bounds over dependent splits, maximised exactly over the joint laws of two or three splits.

A split is a pair (law, x): the law of the total of its m losses given its model, and that total. Only these
conditional laws are known, so a joint law of several splits is any law of such pairs in which each x has its
law given that law: the largest probability that a bound fails is a linear program. Exchangeable laws give
every order of the splits the same probability; for them it is enough to average the failures over the orders.
"""

from collections.abc import Callable, Sequence
from functools import cache, reduce
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.stats import binom

from ckcv_ray.core.bounds.betting import bound_mean_by_betting, choose_wagers, compute_log_wealth
from ckcv_ray.core.bounds.binomial import best_prefix, catoni, clopper_pearson, report_bound, safe, safe_table
from ckcv_ray.core.bounds.losses import ONE, best_loss_prefix, concave_table, mean_loss_bound

DELTA = 0.05
GRID = np.array([0.0, 0.5, 1.0])  # losses


class Law(NamedTuple):
    """The law of a total of losses: their mean, and the probability of each total."""

    risk: float
    weights: np.ndarray


Pair = tuple[float, int]  # a risk, and the position of a total
Fails = Callable[[Sequence[Pair]], float]  # the probability of failure, or whether it fails


def worst(fails: Fails, laws: Sequence[Law], n_splits: int = 2, exchangeable: bool = False) -> float:
    """Largest probability of failure over all joint laws of splits."""
    n_totals = len(laws[0].weights)
    states = [(law.risk, x) for law in laws for x in range(n_totals)]
    n = len(states)
    failed = np.array([float(fails(one)) for one in product(states, repeat=n_splits)]).reshape(
        (n,) * n_splits
    )
    if exchangeable:
        orders = list(permutations(range(n_splits)))
        failed = sum(failed.transpose(order) for order in orders) / len(orders)
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


def any_prefix(table: np.ndarray) -> Fails:
    """The event that the mean risk of some prefix is above the mean of its bounds."""

    def fails(splits: Sequence[Pair]) -> bool:
        slack = np.cumsum([table[x] - p for p, x in splits])
        return bool(np.any(slack < 0))

    return fails


def the_mean(table: np.ndarray) -> Fails:
    """The event that the mean risk of all splits is above the mean of their bounds."""
    return lambda splits: sum(table[x] - p for p, x in splits) < 0


@pytest.mark.parametrize("name", ["safe", "catoni"])
@pytest.mark.parametrize("m", [3, 4])
def test_the_best_prefix_fails_at_most_delta_under_any_exchangeable_law(m: int, name: str) -> None:
    single = np.array([report_bound(name, [x], m, DELTA) for x in range(m + 1)])

    def fails(splits: Sequence[Pair]) -> bool:
        best = best_prefix(name, [x for _, x in splits], m, DELTA)
        return float(np.mean([p for p, _ in splits[: best.length]])) > best.bound

    assert worst(fails, counts(m, risks(single)), exchangeable=True) <= DELTA


@pytest.mark.parametrize("n_splits", [2, 3])
def test_all_prefixes_hold_together(n_splits: int) -> None:
    """Stronger: the event that any prefix fails, whichever of them is chosen."""
    A = safe_table(3, DELTA)
    laws = counts(3, risks(A, n_splits, others=3))
    largest = worst(any_prefix(A), laws, n_splits, exchangeable=True)
    assert 0.1 * DELTA < largest <= DELTA


def test_a_prefix_of_splits_in_a_fixed_order_may_fail_more_often() -> None:
    """What the exchangeable order is for: without it, only the mean over all splits has been proven."""
    A = safe_table(3, DELTA)
    laws = counts(3, risks(A))
    assert worst(any_prefix(A), laws) > worst(any_prefix(A), laws, exchangeable=True)


@pytest.mark.parametrize(
    ("bound", "n_splits", "holds"), [(safe, 2, True), (safe, 3, True), (clopper_pearson, 2, False)]
)
def test_a_mean_over_splits_under_any_law(
    bound: Callable[..., np.ndarray], n_splits: int, holds: bool
) -> None:
    """The program finds the failures of the mean of Clopper-Pearson bounds, so it would find others."""
    m = 3
    table = bound(np.arange(m + 1), m, DELTA)
    laws = counts(m, risks(np.minimum(table, 1), n_splits, others=3))
    largest = worst(the_mean(table), laws, n_splits)
    assert (largest <= DELTA) is holds


# Losses in [0, 1]


def test_a_mean_of_losses_under_any_law() -> None:
    m = 3
    table = np.interp(np.arange(2 * m + 1) / 2, np.arange(m + 1), concave_table(m, DELTA))

    def fails(splits: Sequence[Pair]) -> bool:
        bound = mean_loss_bound([x * ONE // 2 for _, x in splits], m, DELTA)
        return float(np.mean([p for p, _ in splits])) > bound

    assert worst(fails, totals(m, risks(table, others=3)[::2])) <= DELTA


def test_the_best_prefix_of_losses_under_any_exchangeable_law() -> None:
    m = 3
    table = np.interp(np.arange(2 * m + 1) / 2, np.arange(m + 1), concave_table(m, DELTA))

    def fails(splits: Sequence[Pair]) -> bool:
        best = best_loss_prefix([x * ONE // 2 for _, x in splits], m, DELTA)
        return float(np.mean([p for p, _ in splits[: best.length]])) > best.bound

    assert worst(fails, totals(m, risks(table, others=3)[::2]), exchangeable=True) <= DELTA


def test_catonis_bound_on_losses_under_any_law() -> None:
    m = 3
    table = np.array([catoni(x / (2 * m), m, DELTA) for x in range(2 * m + 1)])

    def fails(splits: Sequence[Pair]) -> bool:
        rate = sum(x for _, x in splits) / (2 * m * len(splits))
        return float(np.mean([p for p, _ in splits])) > catoni(rate, m, DELTA)

    assert worst(fails, totals(m, risks(table, others=3)[::2])) <= DELTA


# Losses one by one, on which the bound by betting depends

SEQUENCES = [*product(GRID, repeat=3)]


def sequences(p: np.ndarray) -> list[Law]:
    """Laws of three losses of 0, 1/2 or 1 in order, with no halves or as many as possible."""
    laws = []
    for risk, share in product(p, (0.0, 1.0)):
        half = 2 * share * min(risk, 1 - risk)
        one = np.maximum([1 - risk - half / 2, half, risk - half / 2], 0)
        laws.append(Law(float(one @ GRID), reduce(np.kron, [one] * 3)))
    return laws


@cache
def bet(*positions: int) -> float:
    """The bound by betting from one or two sequences, by their positions."""
    return bound_mean_by_betting([SEQUENCES[at] for at in positions], 0.3)


def test_betting_on_two_splits_under_any_law() -> None:
    """At delta = 0.3, as no bound from three losses is below 1 at 0.05; the program does find failures."""

    def fails(splits: Sequence[Pair]) -> bool:
        first, second = sorted(x for _, x in splits)
        return float(np.mean([p for p, _ in splits])) > bet(first, second)

    edges = [bet(0, x) for x in range(27)]
    p = np.unique(np.round([edge for edge in edges if edge < 1], 6))[:2] + 1e-5
    largest = worst(fails, sequences(np.union1d(p, [0.5, 1.0])))
    assert 0.05 < largest <= 0.3


@pytest.mark.parametrize("uniform", [False, True])
def test_betting_on_all_prefixes_under_any_exchangeable_law(uniform: bool) -> None:
    """The event that either prefix fails; with U on the first, its probability over U."""
    delta = 0.3

    def fail(splits: Sequence[Pair]) -> float:
        (p, first), (q, second) = splits
        if (p + q) / 2 > bet(*sorted((first, second))):
            return 1.0
        if not uniform:
            return float(p > bet(first))
        wealth = compute_log_wealth(SEQUENCES[first], choose_wagers(SEQUENCES[first], delta), p)
        return min(1.0, delta * float(np.exp(wealth[-1])))  # U is at most this: it is above its limit

    edges = [bet(x) for x in range(27)] + [bet(0, x) for x in range(27)]
    p = np.unique(np.round([edge for edge in edges if edge < 1], 6))[:2] + 1e-5
    laws = sequences(np.union1d(p, [0.5, 1.0]))
    largest = worst(fail, laws, exchangeable=True)
    assert 0.05 < largest <= delta + 1e-9
    if not uniform:
        assert largest <= worst(fail, laws)


def test_u_on_the_first_fails_as_its_limit_says() -> None:
    """The bound with U is below a risk if and only if the wealth there is above U / delta."""
    for at, p, u in product((0, 5, 13), (0.4, 0.7, 0.95), (0.05, 0.4, 0.8)):
        wealth = compute_log_wealth(SEQUENCES[at], choose_wagers(SEQUENCES[at], 0.3), p)[-1]
        bound = bound_mean_by_betting([SEQUENCES[at]], 0.3, u)
        if bound > np.mean(SEQUENCES[at]):
            assert (bound < p) == (np.exp(wealth) > u / 0.3)


# Many splits: simulated laws that give every order the same probability


def failures(A: np.ndarray, risk: np.ndarray, x: np.ndarray) -> int:
    """Count the rows of risk and x [runs, splits] in which any prefix fails."""
    return int(np.sum(np.any(np.cumsum(A[x] - risk, axis=1) < 0, axis=1)))


def equal_risks(A: np.ndarray, m: int, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Independent splits of one risk, just above the bound of no error."""
    risk = np.full((runs, 12), A[0] * (1 + 1e-9))
    return risk, rng.binomial(m, risk)


def one_for_all(A: np.ndarray, m: int, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One split that errs always if the others see no error, at a place drawn at random."""
    x = rng.binomial(m, A[0] * (1 + 1e-9), size=(runs, 1)) * np.ones((1, 12), dtype=int)
    risk = np.full((runs, 12), A[0] * (1 + 1e-9))
    at = rng.integers(12, size=runs)
    risk[np.arange(runs), at] = np.where(x[:, 0] == 0, 1.0, risk[0, 0])
    x[np.arange(runs), at] = np.where(x[:, 0] == 0, m, x[:, 0])
    return risk, x


def shared_rows(A: np.ndarray, m: int, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random splits of one learning set, each with the constant that its training rows suggest."""
    p = 0.45
    y = rng.uniform(size=(runs, 3 * m)) < p
    order = rng.permuted(np.tile(np.arange(3 * m), (runs, 12, 1)), axis=2)
    drawn = np.take_along_axis(y[:, None, :], order, axis=2)
    positive = drawn[:, :, m:].mean(axis=2) > 0.5
    errors = np.where(positive[:, :, None], ~drawn[:, :, :m], drawn[:, :, :m]).sum(axis=2)
    return np.where(positive, 1 - p, p), errors


@pytest.mark.parametrize("law", [equal_risks, one_for_all, shared_rows])
@pytest.mark.parametrize("m", [20, 66])
def test_all_prefixes_of_twelve_splits_hold_in_simulation(law: Callable[..., tuple], m: int) -> None:
    """More failures than this have probability 1e-6 at most."""
    runs, A = 4_000, safe_table(m, DELTA)
    failed = failures(A, *law(A, m, runs, np.random.default_rng(m)))
    assert failed <= binom.ppf(1 - 1e-6, runs, DELTA)


def test_the_simulated_laws_do_make_bounds_fail() -> None:
    """The same prefixes with the estimates themselves, which are no bounds."""
    m, runs = 20, 1_000
    A = np.arange(m + 1) / m
    for law in (equal_risks, shared_rows):
        table = safe_table(m, DELTA)
        assert failures(A, *law(table, m, runs, np.random.default_rng(m))) > DELTA * runs
