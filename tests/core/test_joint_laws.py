"""Bounds over dependent splits, maximised exactly over the joint laws of two or three splits.

A split is a pair (law, x): the law of the total of its m losses given its model, and that total. Only these
conditional laws are known, so a joint law of several splits is any law of such pairs in which each x has its
law given that law: the largest probability that a bound fails is a linear program.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.stats import binom

from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import bound_table, catoni, make_safe_table
from ckcv_ray.validation import ONE

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
