"""Resamplings: fold sizes for a number of rows, and the index sets of numbered splits.

Complete k-fold cross validation draws, for each k, disjoint sets MS (select) and EE (estimate) of
m = floor(n / k) rows each, and trains on the other n - 2m (TR). There are n! / ((n - 2m)! m! m!) such
splits. If that is no more than the number requested, all are used, in lexicographic order; otherwise
they are drawn at random, each from its own seed, so that any worker can redraw any split.

``rotation`` is the conventional k-fold cross validation with which Algorithm 1 is compared. The outer splits
of a nested certification (``Outer``) have an estimate set and no select set.

Reference: Anguita et al., ESANN 2012, Algorithm 1 and section 4.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from math import comb
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.errors import InputError
from ckcv_ray.validation import folds, integer

LEAST_K = 3
MOST_SPLITS = 1_000_000

# Spawn keys; those of splits begin with m, which is never 0.
HELD_OUT, MEMBERS, ORDER, PAIRS = (0, 0, 2), (0, 0, 3), (0, 0, 5), (0, 0, 6)


class Split(NamedTuple):
    """Disjoint, ascending row numbers; ``select`` or ``estimate`` may be empty in other resamplings."""

    train: Index
    select: Index
    estimate: Index


class FoldSize(NamedTuple):
    """The values of k that share one fold size floor(n / k): one procedure, computed for the smallest k.

    Attributes:
        k_first, k_last: the smallest and the largest of the values requested.
        n_select: number of rows in an estimate set, and in a select set unless that is empty.
        n_train: number of rows in a training set.
        n_splits: number of splits computed.
    """

    k_first: int
    k_last: int
    n_select: int
    n_train: int
    n_splits: int

    @property
    def k(self) -> int:
        """The smallest k, which is the one reported."""
        return self.k_first

    def holds(self, k: int) -> bool:
        """Return whether k has this fold size."""
        return self.k_first <= k <= self.k_last


class Resampling(Protocol):
    """A way to divide rows: a frozen value, part of a study.

    Attributes:
        k: numbers of folds requested, ascending; None for 3 .. n.
    """

    name: ClassVar[str]

    @property
    def k(self) -> tuple[int, ...] | None:
        """Numbers of folds requested, ascending; None for 3 .. n."""

    def canonical(self, n: int) -> Self:
        """Return the canonical form for n rows, the same for all equivalent resamplings.

        Raises:
            InputError: a k is outside 3 .. n.
        """

    def sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the distinct fold sizes on n rows, the largest (smallest k) first."""

    def split(self, n: int, size: FoldSize, number: int, seed: int) -> Split:
        """Return split ``number``, 0 .. ``size.n_splits`` - 1, of n rows."""

    def order(self, n: int, size: FoldSize, seed: int) -> Index:
        """Return the numbers of all splits in an order that is exchangeable given the data."""


def check_folds(name: str, k: tuple[int, ...], n: int, unit: str = "row") -> None:
    """Raise InputError unless every k is in 3 .. n."""
    if invalid := [one for one in k if not LEAST_K <= one <= n]:
        raise InputError(
            f"{name}={invalid[0]} is outside {LEAST_K}..{n}: there are {n} {unit}s to learn from"
        )


def _k(name: str, value: Any) -> tuple[int, ...] | None:
    every = value is None or (isinstance(value, str) and value == "3:n")
    return None if every else folds(name, value, least=1)


K = Option(_k, "Numbers of folds: 3,4,5,10, a range 3:20, or 3:n.", default_text="3:n")
N_SPLITS = Option(
    lambda name, value: integer(name, value, least=1, most=MOST_SPLITS),
    "Number of random splits for each k, such as 100.",
    int,
    "20",
)


@dataclass(frozen=True)
class Complete:
    """Complete k-fold cross validation: random splits for each k, as in the paper's Algorithm 1.

    Attributes:
        k: numbers of folds, each in 3 .. n; None for all of them.
        n_splits: number of splits for each k (l_MC in the paper); all splits if there are fewer.

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    name: ClassVar[str] = "complete"

    k: tuple[int, ...] | None = option(None, K)
    n_splits: int = option(20, N_SPLITS)

    def __post_init__(self) -> None:
        check_options(self)

    def canonical(self, n: int) -> Self:
        """Return the canonical form for n rows; see ``Resampling``."""
        check_folds("k", self.k or (), n)
        return replace(self, k=None) if _is_every_k(self.k, n) else self

    def sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the fold sizes; values of k with equal floor(n / k) share one."""
        groups: dict[int, list[int]] = {}
        for k in self.k or _every_k(n):
            groups.setdefault(n // k, []).append(k)
        return tuple(
            FoldSize(ks[0], ks[-1], m, n - 2 * m, count_splits(n, ks[0], self.n_splits))
            for m, ks in groups.items()
        )

    def split(self, n: int, size: FoldSize, number: int, seed: int) -> Split:
        """Return a split; see ``complete_kfold``."""
        return complete_kfold(n, size.k, number, self.n_splits, seed)

    def order(self, n: int, size: FoldSize, seed: int) -> Index:
        """Return the splits as they are numbered, or shuffled if they were enumerated."""
        if is_enumerated(n, size.k, self.n_splits):
            return shuffled_order(size.n_splits, seed)
        return np.arange(size.n_splits)


@dataclass(frozen=True)
class Rotation:
    """Conventional k-fold cross validation: the k splits of one shuffle, with folds taking turns.

    Attributes:
        k: numbers of folds, each in 3 .. n; None for all of them.

    Raises:
        InputError: k has the wrong type.
    """

    name: ClassVar[str] = "rotation"

    k: tuple[int, ...] | None = option(None, K)

    def __post_init__(self) -> None:
        check_options(self)

    def canonical(self, n: int) -> Self:
        """Return the canonical form for n rows; see ``Resampling``."""
        check_folds("k", self.k or (), n)
        return replace(self, k=None) if _is_every_k(self.k, n) else self

    def sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return a fold size for each k."""
        return tuple(FoldSize(k, k, n // k, n - 2 * (n // k), k) for k in self.k or range(LEAST_K, n + 1))

    def split(self, n: int, size: FoldSize, number: int, seed: int) -> Split:
        """Return a split; see ``rotation``."""
        return rotation(n, size.k, number, seed)

    def order(self, n: int, size: FoldSize, seed: int) -> Index:
        """Return the splits shuffled: neighbours share a fold."""
        return shuffled_order(size.n_splits, seed)


@dataclass(frozen=True)
class Outer:
    """Outer splits of a nested certification: an estimate set, and all other rows, in which to select.

    They are always drawn at random, each from its own seed, so that the first of many are those of few. Each
    estimate set is that of the complete split of ``parts`` folds with the same number.

    Attributes:
        parts: an estimate set has the ``1 / parts`` of the rows, rounded down: 3 for a third, 2 for half.
        n_splits: number of splits.
    """

    name: ClassVar[str] = "outer"

    parts: int
    n_splits: int

    @property
    def k(self) -> tuple[int, ...]:
        """The number of parts."""
        return (self.parts,)

    def check(self, n: int, unit: str = "row") -> None:
        """Raise InputError unless n rows have more estimate sets than there are splits.

        Otherwise one could as well take each set once, and then adding splits would change those there are.
        """
        m = n // self.parts
        possible = _choices(n, m, self.n_splits + 1)
        if self.n_splits >= possible:
            raise InputError(
                f"outer_splits={self.n_splits}: {n} {unit}s have only {possible} different outer estimate "
                f"sets (of {m} {unit}s), and fewer than these can be drawn: at most {possible - 1}"
            )

    def canonical(self, n: int) -> Self:
        """Return itself."""
        return self

    def sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the only fold size; its training sets are all rows outside the estimate sets."""
        m = n // self.parts
        return (FoldSize(self.parts, self.parts, m, n - m, self.n_splits),)

    def split(self, n: int, size: FoldSize, number: int, seed: int) -> Split:
        """Draw a split, whose select set is empty."""
        estimated = _drawn(n, size.n_select, number, seed) == 2
        return Split(np.flatnonzero(~estimated), np.empty(0, dtype=np.intp), np.flatnonzero(estimated))

    def order(self, n: int, size: FoldSize, seed: int) -> Index:
        """Return the splits as they are numbered: they are drawn independently."""
        return np.arange(size.n_splits)


def _is_every_k(k: tuple[int, ...] | None, n: int) -> bool:
    """Return whether the numbers of folds are all those possible for n rows."""
    return k == tuple(range(LEAST_K, n + 1))


def _every_k(n: int) -> list[int]:
    """Return the smallest and the largest k of 3 .. n for each value of floor(n / k), in ascending order.

    There are about 2 sqrt(n) such values, so not all n numbers of folds need to be listed.
    """
    listed: list[int] = []
    k = LEAST_K
    while k <= n:
        last = n // (n // k)
        listed += [k, last] if last > k else [k]
        k = last + 1
    return listed


@lru_cache
def count_splits(n: int, k: int, n_splits: int) -> int:
    """Return the number of splits computed for k folds of n rows: ``n_splits``, or all if there are fewer."""
    m = n // k
    return min(n_splits, _choices(n, m, n_splits) * _choices(n - m, m, n_splits))


def is_enumerated(n: int, k: int, n_splits: int) -> bool:
    """Return whether all splits are used, in lexicographic order, since there are at most ``n_splits``."""
    return count_splits(n, k, n_splits + 1) <= n_splits


def _choices(n: int, m: int, most: int) -> int:
    """Count the subsets of m of n rows, m at most n / 2, up to ``most``: the full count can be huge."""
    count = 1
    for i in range(m):
        count = count * (n - i) // (i + 1)
        if count >= most:
            return most
    return count


@lru_cache(maxsize=256)
def complete_kfold(n: int, k: int, number: int, n_splits: int, seed: int) -> Split:
    """Return split number ``number`` of complete k-fold cross validation.

    It depends on k only through floor(n / k): values of k with the same fold size are one procedure.

    Args:
        n: rows of the learning set.
        k: folds, 3 .. n.
        number: 0 .. ``count_splits(n, k, n_splits)`` - 1.
        n_splits: number of splits requested; decides between enumeration and random draws.
        seed: non-negative; the generator's spawn key is (floor(n / k), number).
    """
    m = n // k
    if is_enumerated(n, k, n_splits):
        return _enumerated(n, m, number)
    role = _drawn(n, m, number, seed)
    return Split(*(np.flatnonzero(role == part) for part in range(3)))


@lru_cache(maxsize=256)
def rotation(n: int, k: int, number: int, seed: int) -> Split:
    """Return split number ``number`` of the conventional rotation: k folds of one shuffle take turns.

    Fold i selects, fold i + 1 mod k estimates, the others train. A fold has floor(n / k) rows; the remaining
    rows always train.

    Args:
        n: rows of the learning set.
        k: folds, 3 .. n.
        number: 0 .. k - 1.
        seed: non-negative; the generator's spawn key is (k, 0, 4).
    """
    m = n // k
    order = _generator(seed, (k, 0, 4)).permutation(n)
    first, second = (number * m, (number + 1) % k * m)
    select, estimate = order[first : first + m], order[second : second + m]
    train = np.setdiff1d(np.arange(n), np.concatenate([select, estimate]))
    return Split(train, np.sort(select), np.sort(estimate))


def refitted(split: Split) -> tuple[Index, Index]:
    """Return the rows of TR and MS, on which the winner is refitted, and those of EE."""
    return np.sort(np.concatenate([split.train, split.select])), split.estimate


def hold_out(n: int, share: float, seed: int) -> Index:
    """Draw the floor(share * n) rows to hold out, ascending; nothing uses them before the very end."""
    order = _generator(seed, HELD_OUT).permutation(n)
    return np.sort(order[: int(share * n)])


def shuffled_order(n_splits: int, seed: int) -> Index:
    """Draw an order for splits that were enumerated or that take turns: theirs is not random."""
    return np.asarray(_generator(seed, ORDER).permutation(n_splits))


def member_draws(seed: int) -> np.random.Generator:
    """Return the generator of the members that a seed draws; it goes on from one call to the next."""
    return _generator(seed, MEMBERS)


def draw_members(n_members: int, rows: int, draws: np.random.Generator) -> Index:
    """Draw an ensemble member for each row; rows drawn for one by one have the members of one call."""
    return np.asarray(draws.integers(n_members, size=rows))


def draw_pairs(y: NDArray[np.integer[Any]], seed: int, number: int = 0) -> tuple[Index, Index]:
    """Draw disjoint pairs of a row of class 0 and a row of class 1, as many as the rarer class has rows.

    Args:
        y: class numbers (rows,); the pairs depend on the positions of the classes alone.
        seed: non-negative.
        number: of the split that the rows belong to.

    Returns:
        Positions of the rows of class 0, and of those of class 1, each (pairs,).
    """
    rng = _generator(seed, (*PAIRS, number))
    first, second = (rng.permutation(np.flatnonzero(y == c)) for c in (0, 1))
    pairs = min(len(first), len(second))
    return first[:pairs], second[:pairs]


def randomisers(m: int, n_splits: int, seed: int) -> list[float]:
    """Draw Stevens' v for each split with folds of m rows, the same for all settings."""
    return [_generator(seed, (m, number, 1)).uniform() for number in range(n_splits)]


def _generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _drawn(n: int, m: int, number: int, seed: int) -> NDArray[np.int8]:
    """Draw which of n rows are in TR (0), MS (1) and EE (2), the last two of m rows each."""
    order = _generator(seed, (m, number)).permutation(n)
    role = np.zeros(n, dtype=np.int8)
    role[order[:m]], role[order[m : 2 * m]] = 1, 2
    return role


def _enumerated(n: int, m: int, rank: int) -> Split:
    outer, inner = divmod(rank, comb(n - m, m))
    select = np.array(next(islice(combinations(range(n), m), outer, None)), dtype=np.intp)
    others = np.setdiff1d(np.arange(n), select)
    estimate = np.array(next(islice(combinations(others, m), inner, None)), dtype=np.intp)
    return Split(np.setdiff1d(others, estimate), select, estimate)
