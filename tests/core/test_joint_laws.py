"""Bounds over dependent splits, maximised exactly over the joint laws of two splits by linear programs.

A split is a pair (p, x): the risk of its model and its number of wrong rows, x ~ Bin(m, p) given p. A joint
law of two splits is any law of pairs whose conditional laws of x_1 given p_1 and of x_2 given p_2 are these;
it is exchangeable if both orders have the same probability.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack
from scipy.stats import binom

from ckcv_ray.core.bounds import best_prefix, clopper_pearson, safe, safe_table

DELTA = 0.05


def risks(A: np.ndarray, m: int) -> np.ndarray:
    """Risks just above each bound and each mean of two, where a failure begins, and a grid."""
    means = (A[:, None] + A[None, :]) / 2
    edges = np.unique(np.concatenate([A, means.ravel()]))
    return np.unique(np.concatenate([edges[edges < 1] * (1 + 1e-9), np.linspace(0, 1, 9)]))[: 12 * m]


def worst(fails: Callable[[float, int, float, int], bool], m: int, p: np.ndarray, symmetric: bool) -> float:
    """Largest probability of failure over all joint laws with risks among p."""
    states = [(risk, x) for risk in p for x in range(m + 1)]
    n = len(states)
    cost = np.array([-float(fails(*a, *b)) for a, b in product(states, states)])
    weights = binom.pmf(np.arange(m + 1)[None, :], m, p[:, None])
    # P(p_i, x_i) - b(x_i; p_i) P(p_i) = 0
    conditional = np.kron(np.eye(len(p)), np.ones((m + 1, m + 1)))
    rows = csr_array(np.eye(n) - weights.ravel()[:, None] * conditional)
    first = rows @ csr_array(np.kron(np.eye(n), np.ones((1, n))))
    second = rows @ csr_array(np.kron(np.ones((1, n)), np.eye(n)))
    blocks = [first, second, csr_array(np.ones((1, n * n)))]
    if symmetric:
        pairs = [(i, j) for i in range(n) for j in range(i)]
        index = np.arange(len(pairs))
        i, j = np.array(pairs).T
        values = np.concatenate([np.ones(len(pairs)), -np.ones(len(pairs))])
        places = np.concatenate([index, index]), np.concatenate([i * n + j, j * n + i])
        blocks.append(csr_array((values, places), shape=(len(pairs), n * n)))
    equal = vstack(blocks)
    target = np.zeros(equal.shape[0])
    target[2 * n] = 1.0
    solved = linprog(cost, A_eq=equal, b_eq=target, bounds=(0, None), method="highs")
    assert solved.status == 0, solved.message
    return -float(solved.fun)


@pytest.mark.parametrize("m", [3, 4])
def test_the_best_prefix_fails_at_most_delta_under_any_exchangeable_law(m: int) -> None:
    A = safe_table(m, DELTA)

    def fails(p: float, x: int, q: float, z: int) -> bool:
        best = best_prefix("safe", [x, z], m, DELTA)
        return bool((p if best.length == 1 else (p + q) / 2) > best.bound)

    assert worst(fails, m, risks(A, m)[::2], symmetric=True) <= DELTA


def test_all_prefixes_hold_together() -> None:
    """Stronger: the event that any prefix fails, whichever of them is chosen."""
    m, A = 3, safe_table(3, DELTA)

    def fails(p: float, x: int, q: float, z: int) -> bool:
        return bool(p > A[x] or p + q > A[x] + A[z])

    largest = worst(fails, m, risks(A, m)[::2], symmetric=True)
    assert 0.1 * DELTA < largest <= DELTA


def test_a_prefix_of_splits_in_a_fixed_order_may_fail_more_often() -> None:
    """What the exchangeable order is for: without it, only the mean over all splits has been proven."""
    m, A = 3, safe_table(3, DELTA)

    def fails(p: float, x: int, q: float, z: int) -> bool:
        return bool(p > A[x] or p + q > A[x] + A[z])

    p = risks(A, m)[::2]
    assert worst(fails, m, p, symmetric=False) >= worst(fails, m, p, symmetric=True)


@pytest.mark.parametrize(("bound", "holds"), [(safe, True), (clopper_pearson, False)])
def test_a_mean_over_two_splits_under_any_law(bound: Callable[..., np.ndarray], holds: bool) -> None:
    """The program finds the failures of the mean of Clopper-Pearson bounds, so it would find others."""
    m = 4
    table = bound(np.arange(m + 1), m, DELTA)

    def fails(p: float, x: int, q: float, z: int) -> bool:
        return bool(p + q > table[x] + table[z])

    largest = worst(fails, m, risks(np.minimum(table, 1), m)[::2], symmetric=False)
    assert (largest <= DELTA) is holds
