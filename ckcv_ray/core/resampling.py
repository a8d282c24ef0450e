"""Resamplings: pure functions from numbers to index sets.

Complete k-fold cross validation draws, for each k, disjoint sets MS (select) and EE (estimate) of
m = floor(n / k) rows each, and trains on the n - 2m others (TR). There are n! / ((n - 2m)! m! m!) such
splits. Where that is no more than the number asked for, all are taken, in lexicographic order;
otherwise they are drawn at random, each from its own seed, so that any worker can redraw any split.

``rotation`` is the conventional k-fold cross validation that Algorithm 1 is compared with.

Reference: Anguita et al., ESANN 2012, Algorithm 1 and section 4.
"""

from functools import lru_cache
from itertools import combinations, islice
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]
HELD_OUT, MEMBERS = (0, 0, 2), (0, 0, 3)  # spawn keys; those of splits begin with m, which is never 0


class Split(NamedTuple):
    """Disjoint, ascending row numbers; ``select`` or ``estimate`` may be empty in other resamplings."""

    train: Index
    select: Index
    estimate: Index


@lru_cache
def count_splits(n: int, k: int, n_splits: int) -> int:
    """Number of splits computed for k folds of n rows: ``n_splits``, or all where there are fewer."""
    m = n // k
    return min(n_splits, comb(n, m) * comb(n - m, m))


@lru_cache(maxsize=256)
def complete_kfold(n: int, k: int, mc_index: int, n_splits: int, seed: int) -> Split:
    """Split number ``mc_index`` of complete k-fold cross validation.

    A function of floor(n / k), not of k: values of k with the same fold size are one procedure.

    Args:
        n: rows of the learning set.
        k: folds, 3 .. n.
        mc_index: 0 .. ``count_splits(n, k, n_splits)`` - 1.
        n_splits: splits asked for; decides between enumeration and drawing.
        seed: non-negative; the generator's spawn key is (floor(n / k), mc_index).
    """
    m = n // k
    if count_splits(n, k, n_splits + 1) <= n_splits:
        return _enumerated(n, m, mc_index)
    order = _generator(seed, (m, mc_index)).permutation(n)
    role = np.zeros(n, dtype=np.int8)
    role[order[:m]], role[order[m : 2 * m]] = 1, 2
    return Split(*(np.flatnonzero(role == part) for part in range(3)))


@lru_cache(maxsize=256)
def rotation(n: int, k: int, mc_index: int, seed: int) -> Split:
    """Split number ``mc_index`` of the conventional rotation: k folds of one shuffle take turns.

    Fold i selects, fold i + 1 mod k estimates, the others train. A fold has floor(n / k) rows; what is left
    over trains always.

    Args:
        n: rows of the learning set.
        k: folds, 3 .. n.
        mc_index: 0 .. k - 1.
        seed: non-negative; the generator's spawn key is (k, 0, 4).
    """
    m = n // k
    order = _generator(seed, (k, 0, 4)).permutation(n)
    first, second = (mc_index * m, (mc_index + 1) % k * m)
    select, estimate = order[first : first + m], order[second : second + m]
    train = np.setdiff1d(np.arange(n), np.concatenate([select, estimate]))
    return Split(train, np.sort(select), np.sort(estimate))


def hold_out(n: int, share: float, seed: int) -> Index:
    """The floor(share * n) rows, ascending, that nothing touches before the very end."""
    order = _generator(seed, HELD_OUT).permutation(n)
    return np.sort(order[: int(share * n)])


def draw_members(n_members: int, rows: int, seed: int) -> Index:
    """Draw a member for each row."""
    return np.asarray(_generator(seed, MEMBERS).integers(n_members, size=rows))


def randomisers(m: int, n_splits: int, seed: int) -> list[float]:
    """Stevens' v for each split with folds of m rows, the same for all C and gamma."""
    return [_generator(seed, (m, mc_index, 1)).uniform() for mc_index in range(n_splits)]


def _generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _enumerated(n: int, m: int, rank: int) -> Split:
    outer, inner = divmod(rank, comb(n - m, m))
    select = np.array(next(islice(combinations(range(n), m), outer, None)), dtype=np.intp)
    others = np.setdiff1d(np.arange(n), select)
    estimate = np.array(next(islice(combinations(others, m), inner, None)), dtype=np.intp)
    return Split(np.setdiff1d(others, estimate), select, estimate)
