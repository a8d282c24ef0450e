"""Resamplings whose splits take turns: folds, sets of rows that are left out, and folds inside folds."""

from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import Option, option
from ckcv_ray.core.resampling.base import (
    BY_POSITION,
    EMPTY,
    FIXED_BY_CLASS,
    FOLDS,
    STRATIFY,
    TWICE,
    FoldSize,
    Resampling,
    Split,
    Units,
    arrange,
    check_n_splits,
)
from ckcv_ray.errors import InputError
from ckcv_ray.validation import boolean, check_choice

MOST_LEFT_OUT = 100_000  # splits of leave-p-out
MOST_NESTED = 10_000
REMAINDERS = ("spread", "last")


class Folds(Resampling):
    """Folds that take turns to be scored."""

    folds: int

    def count_splits(self, n: int) -> int:
        """Return the number of folds."""
        if self.folds > n:
            raise InputError(
                f"resampling={self.name}:{self.folds} has more folds than the {n} units there are to divide"
            )
        return self.folds


@dataclass(frozen=True)
class KFold(Folds):
    """k folds take turns to be scored.

    Attributes:
        folds: their number, 2 .. n.
        shuffle: whether rows are shuffled first; else folds are contiguous.
        remainder: of n by the number of folds: one row more in each of the first folds ("spread"), or all of
            it in the last ("last").
        stratify: whether rows are dealt to the folds class by class: in each the rows of a class differ by
            one at most.
    """

    name: ClassVar[str] = "kfold"
    in_text: ClassVar[tuple[str, ...]] = ("folds",)

    folds: int = option(10, FOLDS)
    shuffle: bool = option(True, Option(boolean, "Shuffle the rows first.", bool, omit_default=True))
    remainder: str = option(
        "spread",
        Option(
            lambda name, value: check_choice(name, value, REMAINDERS),
            "Where the rows go that are left over by folds of one size: spread over the first, or last.",
            omit_default=True,
        ),
    )
    stratify: bool = option(False, STRATIFY)

    @property
    def no_bound(self) -> str:
        """Why there is no bound: only a shuffle draws folds, and it must not look at classes."""
        return FIXED_BY_CLASS if self.stratify else "" if self.shuffle else BY_POSITION

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        order = arrange(units, self.stratify, draws.make_generator(0) if self.shuffle else None)
        if self.stratify:
            return Split.score(units.n, order[number :: self.folds])
        if self.remainder == "last":
            rows = units.n // self.folds
            stop = units.n if number == self.folds - 1 else (number + 1) * rows
            return Split.score(units.n, order[number * rows : stop])
        return Split.score(units.n, np.array_split(order, self.folds)[number])


@dataclass(frozen=True)
class RepeatedKFold(Folds):
    """k-fold cross validation repeated with another shuffle.

    Attributes:
        folds, repeats: number of folds, and of shuffles.
        stratify: as of ``KFold``.
    """

    name: ClassVar[str] = "repeated_kfold"
    in_text: ClassVar[tuple[str, ...]] = ("folds", "repeats")
    separator: ClassVar[str] = "x"
    undrawn: ClassVar[str] = ""

    folds: int = option(10, FOLDS)
    repeats: int = option(5, Option(check_n_splits, "Number of repetitions.", int, "5"))
    stratify: bool = option(False, STRATIFY)

    def count_splits(self, n: int) -> int:
        """Return folds times repeats."""
        return super().count_splits(n) * self.repeats

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; those of one shuffle follow each other."""
        repeat, fold = divmod(number, self.folds)
        return KFold(self.folds, stratify=self.stratify).split(units, size, fold, draws.inside(repeat))


@dataclass(frozen=True)
class DrawnFolds(Folds):
    """Folds drawn row by row with replacement, of floor(n / k) rows each.

    A fold may hold a row twice, and two folds the same row: the rows of the other folds that are not in the
    scored one are fitted on.

    Attributes:
        folds: their number, 2 .. n.
    """

    name: ClassVar[str] = "drawn_folds"
    in_text: ClassVar[tuple[str, ...]] = ("folds",)
    undrawn: ClassVar[str] = TWICE

    folds: int = option(10, FOLDS)

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        rng, n = draws.make_generator(0), units.n
        while True:
            drawn = rng.integers(n, size=(self.folds, n // self.folds))
            rest = [np.delete(drawn, fold, axis=0).ravel() for fold in range(self.folds)]
            parts = [rows[~np.isin(rows, fold)] for rows, fold in zip(rest, drawn, strict=True)]
            if all(map(len, parts)):  # of few rows, a fold may hold all that others have
                return Split(np.sort(parts[number]), EMPTY, np.sort(drawn[number]))


@dataclass(frozen=True)
class LeaveOneOut(Resampling):
    """Each row is scored once, by what is fitted on all others."""

    name: ClassVar[str] = "loo"
    undrawn: ClassVar[str] = BY_POSITION

    def count_splits(self, n: int) -> int:
        """Return n."""
        return n

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores row ``number``."""
        return Split.score(units.n, np.array([number]))


@dataclass(frozen=True)
class LeavePOut(Resampling):
    """Each set of p rows is scored once, in lexicographic order.

    Attributes:
        p: number of rows to leave out.
    """

    name: ClassVar[str] = "lpo"
    in_text: ClassVar[tuple[str, ...]] = ("p",)
    undrawn: ClassVar[str] = BY_POSITION

    p: int = option(2, Option(check_n_splits, "Number of rows to leave out.", int, "2"))

    def count_splits(self, n: int) -> int:
        """Return the number of sets of p of n rows."""
        count = comb(n, self.p) if self.p < n else 0
        if not 0 < count <= MOST_LEFT_OUT:
            raise InputError(
                f"{self} has {count:,} splits of {n} units: at most {MOST_LEFT_OUT:,} can be enumerated, and "
                f"p is at most {n - 1}; sub-sampling draws some of them"
            )
        return count

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores the set of this number."""
        left_out, row, rank = [], 0, number
        for wanted in range(self.p - 1, -1, -1):
            while rank >= (count := comb(units.n - row - 1, wanted)):
                rank, row = rank - count, row + 1
            left_out.append(row)
            row += 1
        return Split.score(units.n, np.array(left_out))


def _check_drawn(name: str, part: Any) -> Resampling:
    if not isinstance(part, Resampling) or part.selects or part.names_rows or part.inner is not None:
        raise InputError(
            f"a nested resampling is made of two that are drawn, such as kfold:5, not {part!r:.60}"
        )
    return part


@dataclass(frozen=True)
class NestedSplits(Resampling):
    """A resampling with another inside each of its training sets, in which settings are selected.

    Attributes:
        outer: divides all rows.
        inner: divides the rows that a split of ``outer`` fits on.
    """

    name: ClassVar[str] = "nested"

    outer: Resampling = option(KFold(5), Option(_check_drawn, "Resampling of all rows."))
    inner: Resampling = option(KFold(5), Option(_check_drawn, "Resampling inside each training set."))

    @property
    def stratify(self) -> bool:
        """Whether either part gives each of its parts the same share of every class."""
        return self.outer.stratify or self.inner.stratify

    @property
    def no_bound(self) -> str:
        """Return why the outer splits have no bound; those inside only select."""
        return self.outer.no_bound

    def count_splits(self, n: int) -> int:
        """Return the number of outer splits."""
        if (count := self.outer.count_splits(n)) > MOST_NESTED:
            raise InputError(f"a nested resampling selects in at most {MOST_NESTED:,} splits, not {count:,}")
        return count

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return an outer split."""
        return self.outer.split(units, size, number, draws)

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which outer splits have a part in means."""
        return self.outer.counts(numbers)
