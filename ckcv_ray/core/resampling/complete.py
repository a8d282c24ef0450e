"""Complete k-fold cross validation, and the conventional rotation.

Complete k-fold cross validation draws, for each k, disjoint sets MS (select) and EE (estimate) of
m = floor(n / k) rows each, and trains on the other n - 2m (TR). There are n! / ((n - 2m)! m! m!) such
splits. If that is no more than the number requested, all are used, in lexicographic order; otherwise
they are drawn at random, each with its own key, so that any worker can redraw any split.

``Rotation`` is the conventional k-fold cross validation with which Algorithm 1 is compared.

Reference: Anguita et al., ESANN 2012, Algorithm 1 and section 4.
"""

from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import comb, log
from typing import Any, ClassVar, Self

import numpy as np

from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import option
from ckcv_ray.core.resampling.base import MAX_SPLITS, FoldSize, Resampling, Split, Strata, check_n_splits
from ckcv_ray.errors import InputError, folds

MIN_K = 3
AUTO = "auto"
MAX_UNITS_OF_ALL = 1300  # auto takes every k up to this many units
MIN_BOUND = 0.05  # auto takes no k whose proven bound could not be below this
USUAL_K = 10  # auto always takes this one
MOST_COUNTED = 12  # units of a set; with more there are over 3**12 * 2**12 > MAX_SPLITS splits


def check_folds(name: str, k: tuple[int, ...], n: int, unit: str) -> None:
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

    def canonical(self, n: int, settings: int, delta: float, unit: str = "row") -> Self:
        """Return the canonical form for n units: with the numbers of folds, or None for every one of them.

        "auto" stands for those that suit n units. Many units have too many fold sizes to compare: then the
        numbers of folds are 3, 4, 5, ... 20 and from there grow in steps of a tenth, up to the largest for
        which delta, divided among the settings, still gives a bound of 5 % on a set without errors, or 10 if
        that is larger. Labels play no part.

        Args:
            n: number of units, at least 3.
            settings: number of settings that are compared.
            delta: failure probability of the bound.
            unit: what a unit is, for messages.

        Raises:
            InputError: a k is outside 3 .. n.
        """
        if isinstance(self.k, str):
            most = min(n, max(USUAL_K, int(MIN_BOUND * n / log(settings / delta))))
            ladder = [MIN_K]
            while (following := ladder[-1] + max(1, ladder[-1] // 10)) <= most:
                ladder.append(following)
            return replace(self, k=None if n <= MAX_UNITS_OF_ALL else tuple(ladder))
        check_folds("k", self.k or (), n, unit)
        return replace(self, k=None) if self.k == tuple(range(MIN_K, n + 1)) else self

    def count_splits(self, n: int) -> int:
        """Return the number of splits over all fold sizes."""
        return sum(size.n_splits for size in self.fold_sizes(n))


@dataclass(frozen=True)
class Complete(CertifiableFolds):
    """Complete k-fold cross validation: random splits for each k, as in the paper's Algorithm 1.

    Attributes:
        n_splits: number of splits for each k (l_MC in the paper); if there are fewer, all are used.
    """

    name: ClassVar[str] = "complete"

    n_splits: int = option(20, check_n_splits, "Number of random splits for each k.", int)

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the fold sizes; values of k with equal floor(n / k) share one."""
        assert not isinstance(self.k, str), "canonical chooses them"
        groups: dict[int, list[int]] = {}
        for k in self.k or ():
            groups.setdefault(n // k, []).append(k)
        k = MIN_K
        while not self.k and k <= n:  # about 2 sqrt(n) steps: not all k of 3 .. n need to be listed
            last = n // (n // k)  # the largest k of this fold size
            groups[n // k] = [k, last]
            k = last + 1
        return tuple(
            FoldSize(ks[0], ks[-1], m, n - 2 * m, min(self.n_splits, _count_every_split(n, m)))
            for m, ks in groups.items()
        )

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split, drawn with the key (floor(n / k), number) unless all are used."""
        n, m = units.n, size.n_select
        if _count_every_split(n, m) > self.n_splits:
            order = draws.at(m, number).make_generator().permutation(n)
            return Split(np.sort(order[2 * m :]), np.sort(order[:m]), np.sort(order[m : 2 * m]))
        outer, inner = divmod(number, comb(n - m, m))
        select = np.array(next(islice(combinations(range(n), m), outer, None)), dtype=np.intp)
        rest = np.setdiff1d(np.arange(n), select)
        estimate = np.array(next(islice(combinations(rest, m), inner, None)), dtype=np.intp)
        return Split(np.setdiff1d(rest, estimate), select, estimate)


class Rotation(CertifiableFolds):
    """Conventional k-fold cross validation: the k splits of one shuffle, with folds taking turns.

    Fold i selects, fold i + 1 mod k estimates, the others train. A fold has floor(n / k) units; the remaining
    ones always train.
    """

    name: ClassVar[str] = "rotation"

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return a fold size for each k."""
        assert not isinstance(self.k, str), "canonical chooses them"
        return tuple(FoldSize(k, k, n // k, n - 2 * (n // k), k) for k in self.k or range(MIN_K, n + 1))

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split of the shuffle that is drawn with the key (k, 0, 4)."""
        m, order = size.n_select, draws.at(size.k, 0, 4).make_generator().permutation(units.n)
        first, second = (number * m, (number + 1) % size.k * m)
        select, estimate = np.sort(order[first : first + m]), np.sort(order[second : second + m])
        train = np.setdiff1d(np.arange(units.n), np.concatenate([select, estimate]))
        return Split(train, select, estimate)


def _count_every_split(n: int, m: int) -> int:
    """Return how many splits there are; if more than ``MAX_SPLITS``, any number above it."""
    return comb(n, m) * comb(n - m, m) if m <= MOST_COUNTED else MAX_SPLITS + 1
