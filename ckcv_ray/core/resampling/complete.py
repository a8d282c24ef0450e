"""Complete k-fold cross validation, and the conventional rotation.

Complete k-fold cross validation draws, for each k, disjoint sets MS (select) and EE (estimate) of
m = floor(n / k) rows each, and trains on the other n - 2m (TR). There are n! / ((n - 2m)! m! m!) such
splits. If that is no more than the number requested, all are used, in lexicographic order; otherwise
they are drawn at random, each from its own seed, so that any worker can redraw any split.

``Rotation`` is the conventional k-fold cross validation with which Algorithm 1 is compared.

Reference: Anguita et al., ESANN 2012, Algorithm 1 and section 4.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from math import comb, log
from typing import Any, ClassVar, Self

import numpy as np

from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import option
from ckcv_ray.core.resampling.base import FoldSize, Resampling, Split, Strata, check_n_splits
from ckcv_ray.errors import InputError
from ckcv_ray.validation import folds

MIN_K = 3
AUTO = "auto"
MAX_UNITS_OF_ALL = 1300  # up to which auto takes every k
MIN_BOUND = 0.05  # auto takes no k whose proven bound could not be below it
USUAL_K = 10  # which auto always takes


def check_folds(name: str, k: tuple[int, ...], n: int, unit: str = "row") -> None:
    """Raise InputError unless every k is in 3 .. n."""
    if invalid := [value for value in k if not MIN_K <= value <= n]:
        raise InputError(f"{name}={invalid[0]} is outside {MIN_K}..{n}: there are {n} {unit}s to learn from")


def _check_k(name: str, value: Any) -> tuple[int, ...] | str | None:
    if isinstance(value, str) and value == AUTO:
        return AUTO
    every = value is None or (isinstance(value, str) and value == "3:n")
    return None if every else folds(name, value, least=1)


@dataclass(frozen=True)
class CertifiableFolds(Resampling):
    """A resampling for a certification: for each k, select and estimate sets of floor(n / k) rows each.

    Attributes:
        k: numbers of folds, each in 3 .. n; None for all of them, "auto" for those that suit n.

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    selects: ClassVar[bool] = True

    k: tuple[int, ...] | str | None = option(
        None,
        _check_k,
        "Numbers of folds: 3,4,5,10, a range 3:20, 3:n, or auto: all for up to 1,300 rows, else fewer.",
        default_text="auto",
    )

    def canonical(self, n: int, unit: str = "row") -> Self:
        """Return the canonical form for n units: with no k if all possible ones are requested.

        Raises:
            InputError: a k is outside 3 .. n.
        """
        if isinstance(self.k, str):
            return self
        check_folds("k", self.k or (), n, unit)
        if self.k != tuple(range(MIN_K, n + 1)):
            return self
        return replace(self, k=None)

    def choose_k(self, n: int, settings: int, delta: float) -> Self:
        """Return it with the numbers of folds that "auto" stands for: those that suit n units.

        Many units have too many fold sizes to compare: then they are 3, 4, 5, ... 20 and from there in steps
        of a tenth, up to the largest for which delta, divided among the settings, still gives a bound of 5 %
        on a set without errors, and at least 10. Labels have no part in it.

        Args:
            n: number of units, at least 3.
            settings: number of settings that are compared.
            delta: failure probability of the bound.
        """
        if not isinstance(self.k, str):
            return self
        if n <= MAX_UNITS_OF_ALL:
            return replace(self, k=None)
        most = min(n, max(USUAL_K, int(MIN_BOUND * n / log(settings / delta))))
        ladder = [MIN_K]
        while (following := ladder[-1] + max(1, ladder[-1] // 10)) <= most:
            ladder.append(following)
        return replace(self, k=tuple(ladder))

    @property
    def _listed_k(self) -> tuple[int, ...] | None:
        """The numbers of folds, once they are chosen; None for all of them."""
        if isinstance(self.k, str):
            raise InputError(f"k={self.k} stands for numbers of folds that Problem.of chooses")
        return self.k

    def count_splits(self, n: int) -> int:
        """Return the number of splits of all fold sizes."""
        return sum(size.n_splits for size in self.fold_sizes(n))


@dataclass(frozen=True)
class Complete(CertifiableFolds):
    """Complete k-fold cross validation: random splits for each k, as in the paper's Algorithm 1.

    Attributes:
        n_splits: number of splits for each k (l_MC in the paper); all splits if there are fewer.
    """

    name: ClassVar[str] = "complete"

    n_splits: int = option(20, check_n_splits, "Number of random splits for each k.", int)

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the fold sizes; values of k with equal floor(n / k) share one."""
        groups: dict[int, list[int]] = {}
        for k in self._listed_k or _list_every_k(n):
            groups.setdefault(n // k, []).append(k)
        return tuple(
            FoldSize(ks[0], ks[-1], m, n - 2 * m, count_complete(n, ks[0], self.n_splits))
            for m, ks in groups.items()
        )

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; see ``split_complete``."""
        return split_complete(units.n, size.k, number, self.n_splits, draws)


class Rotation(CertifiableFolds):
    """Conventional k-fold cross validation: the k splits of one shuffle, with folds taking turns."""

    name: ClassVar[str] = "rotation"

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return a fold size for each k."""
        every = self._listed_k or range(MIN_K, n + 1)
        return tuple(FoldSize(k, k, n // k, n - 2 * (n // k), k) for k in every)

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; see ``split_rotation``."""
        return split_rotation(units.n, size.k, number, draws)


def _list_every_k(n: int) -> list[int]:
    """Return the smallest and the largest k of 3 .. n for each value of floor(n / k), in ascending order.

    There are about 2 sqrt(n) such values, so not all n numbers of folds need to be listed.
    """
    listed: list[int] = []
    k = MIN_K
    while k <= n:
        last = n // (n // k)
        listed += [k, last] if last > k else [k]
        k = last + 1
    return listed


@lru_cache
def count_complete(n: int, k: int, n_splits: int) -> int:
    """Return the number of splits computed for k folds of n rows: ``n_splits``, or all if there are fewer."""
    m = n // k
    return min(n_splits, _count_subsets(n, m, n_splits) * _count_subsets(n - m, m, n_splits))


def _count_subsets(n: int, m: int, most: int) -> int:
    """Count the subsets of m of n rows, m at most n / 2, up to ``most``: the full count can be huge."""
    count = 1
    for i in range(m):
        count = count * (n - i) // (i + 1)
        if count >= most:
            return most
    return count


@lru_cache(maxsize=256)
def split_complete(n: int, k: int, number: int, n_splits: int, draws: Draws) -> Split:
    """Return split number ``number`` of complete k-fold cross validation.

    It depends on k only through floor(n / k): values of k with the same fold size are one procedure.

    Args:
        n: rows of the learning set.
        k: folds, 3 .. n.
        number: 0 .. ``count_complete(n, k, n_splits)`` - 1.
        n_splits: number of splits requested; decides between enumeration and random draws.
        draws: of the table; the generator's spawn key is (floor(n / k), number).
    """
    m = n // k
    if count_complete(n, k, n_splits + 1) <= n_splits:  # all splits are used, in lexicographic order
        outer, inner = divmod(number, comb(n - m, m))
        select = np.array(next(islice(combinations(range(n), m), outer, None)), dtype=np.intp)
        rest = np.setdiff1d(np.arange(n), select)
        estimate = np.array(next(islice(combinations(rest, m), inner, None)), dtype=np.intp)
        return Split(np.setdiff1d(rest, estimate), select, estimate)
    order = draws.at(m, number).make_generator().permutation(n)
    return Split(np.sort(order[2 * m :]), np.sort(order[:m]), np.sort(order[m : 2 * m]))


@lru_cache(maxsize=256)
def split_rotation(n: int, k: int, number: int, draws: Draws) -> Split:
    """Return split number ``number`` of the conventional rotation: k folds of one shuffle take turns.

    Fold i selects, fold i + 1 mod k estimates, the others train. A fold has floor(n / k) rows; the remaining
    rows always train.

    Args:
        n: rows of the learning set.
        k: folds, 3 .. n.
        number: 0 .. k - 1.
        draws: of the table; the generator's spawn key is (k, 0, 4).
    """
    m = n // k
    order = draws.at(k, 0, 4).make_generator().permutation(n)
    first, second = (number * m, (number + 1) % k * m)
    select, estimate = order[first : first + m], order[second : second + m]
    train = np.setdiff1d(np.arange(n), np.concatenate([select, estimate]))
    return Split(train, np.sort(select), np.sort(estimate))
