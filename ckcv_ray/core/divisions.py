"""Divisions: the usual resamplings of cross validation, each a set of numbered splits.

What is divided are units: rows, or groups if the task has any. Each split is drawn from its own seed, so any
worker can redraw it alone. In ``Split``, ``train`` is fitted on, ``estimate`` is scored and ``select`` is
empty. A row may be in ``train`` or in ``estimate`` several times where rows are drawn with replacement, but
never in both.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, comb
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.core.resampling import MOST_SPLITS, Split
from ckcv_ray.errors import InputError
from ckcv_ray.validation import boolean, check_choice, integer, proportion

MOST_LEFT_OUT = 100_000  # splits of leave-p-out
DRAWS = (0, 1)  # first numbers of the spawn keys; those of other resamplings begin otherwise
REMAINDERS = ("spread", "last")
NOTHING: Index = np.empty(0, dtype=np.intp)

# why a split's score has no bound: see ``Division.no_bound``
NOT_DRAWN = "the rows that a split scores are not drawn at random by the seed"
BY_POSITION = "the order of the table says which rows a split scores, and not a draw by the seed"
BY_CLASS = "parts have fixed numbers of each class"
TWICE = "a row may be scored twice in a split"


class Units(NamedTuple):
    """What is divided.

    Attributes:
        n: number of rows, or of groups.
        strata: the class number of each row, (n,); None if classes have no part in it.
    """

    n: int
    strata: NDArray[np.integer[Any]] | None = None


class Draws(NamedTuple):
    """Source of random numbers.

    Attributes:
        seed: non-negative.
        key: first numbers of each spawn key.
    """

    seed: int
    key: tuple[int, ...] = DRAWS

    def generator(self, number: int) -> np.random.Generator:
        """Return the generator of one number: always the same one."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(*self.key, number)))

    def inside(self, number: int) -> "Draws":
        """Return the source for a division of one part."""
        return self._replace(key=(*self.key, number, 0))


class Division(ABC):
    """A set of splits: a frozen value, part of a procedure.

    Attributes:
        name: its name, and the first word of its text.
        between: what separates the values that may follow, as in kfold:10 and repeated_kfold:10x5.
    """

    name: ClassVar[str]
    between: ClassVar[str] = ":"

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def n_splits(self, n: int) -> int:
        """Return the number of splits of n units.

        Raises:
            InputError: n units cannot be divided in this way.
        """

    @abstractmethod
    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return split ``number``, 0 .. ``n_splits`` - 1."""

    @property
    def no_bound(self) -> str:
        """Why a split's score has no bound on new rows; "" if the seed draws the rows that each split scores.

        Drawn means: whatever the rows hold and in whatever order they stand, each set of as many rows is as
        likely to be scored, and a row at most once. Given the rows fitted on, those scored are then
        independent of them, also in a sorted table. A division that does not declare it has no bounds.
        """
        return NOT_DRAWN

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which splits have a part in means over splits; others only show what fewer rows would do."""
        return np.ones(len(numbers), np.bool_)


def _folds(name: str, value: Any) -> int:
    return integer(name, value, least=2, most=MOST_SPLITS)


def _times(name: str, value: Any) -> int:
    return integer(name, value, least=1, most=MOST_SPLITS)


FOLDS = Option(_folds, "Number of folds.", int, "10")
SIZES = Option(_folds, "Numbers of rows to fit on.", int, "5")
TIMES = Option(_times, "Number of splits.", int, "100")
SHARE = Option(proportion, "Share of the rows to score.", float, "0.3")
STRATIFY = Option(boolean, "Give each part the same share of every class.", bool, omit_default=True)


@dataclass(frozen=True)
class SingleSplit(Division):
    """One split: a share of the rows, rounded up, is scored.

    Attributes:
        share: of the rows to score, in (0, 1).
        stratify: whether each part gets the same share of every class.
    """

    name: ClassVar[str] = "holdout"

    share: float = option(0.3, SHARE)
    stratify: bool = option(False, STRATIFY)

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: rows are drawn class by class if stratified."""
        return BY_CLASS if self.stratify else ""

    def n_splits(self, n: int) -> int:
        """Return 1."""
        _check_scored(f"{self.name}:{self.share:g}", self.share, n)
        return 1

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return the split."""
        return _scored(units.n, _sample(units, self.share, self.stratify, draws.generator(number)))


@dataclass(frozen=True)
class Subsampling(Division):
    """Repeated sub-sampling: as ``SingleSplit``, drawn again in each split.

    Attributes:
        times: number of splits.
        share, stratify: as of ``SingleSplit``.
    """

    name: ClassVar[str] = "subsampling"

    times: int = option(100, TIMES)
    share: float = option(0.25, SHARE)
    stratify: bool = option(False, STRATIFY)

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: rows are drawn class by class if stratified."""
        return BY_CLASS if self.stratify else ""

    def n_splits(self, n: int) -> int:
        """Return ``times``."""
        _check_scored(f"{self.name}:{self.times}:{self.share:g}", self.share, n)
        return self.times

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return a split."""
        return _scored(units.n, _sample(units, self.share, self.stratify, draws.generator(number)))


@dataclass(frozen=True)
class KFold(Division):
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
        """Return why there is no bound: only a shuffle draws folds, and it must not look at classes."""
        return BY_CLASS if self.stratify else "" if self.shuffle else BY_POSITION

    def n_splits(self, n: int) -> int:
        """Return the number of folds."""
        return _check_folds(self.name, self.folds, n)

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        order = _order(units, self.stratify, draws.generator(0) if self.shuffle else None)
        if self.stratify:
            return _scored(units.n, order[number :: self.folds])
        if self.remainder == "last":
            size = units.n // self.folds
            stop = units.n if number == self.folds - 1 else (number + 1) * size
            return _scored(units.n, order[number * size : stop])
        return _scored(units.n, np.array_split(order, self.folds)[number])


@dataclass(frozen=True)
class RepeatedKFold(Division):
    """k-fold cross validation repeated with another shuffle.

    Attributes:
        folds, repeats: number of folds, and of shuffles.
        stratify: as of ``KFold``.
    """

    name: ClassVar[str] = "repeated_kfold"
    between: ClassVar[str] = "x"

    folds: int = option(10, FOLDS)
    repeats: int = option(5, Option(_times, "Number of repetitions.", int, "5"))
    stratify: bool = option(False, STRATIFY)

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: rows are dealt class by class if stratified."""
        return BY_CLASS if self.stratify else ""

    def n_splits(self, n: int) -> int:
        """Return folds times repeats."""
        return _check_folds(self.name, self.folds, n) * self.repeats

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return a split; those of one shuffle follow each other."""
        repeat, fold = divmod(number, self.folds)
        return KFold(self.folds, stratify=self.stratify).split(units, fold, draws.inside(repeat))


@dataclass(frozen=True)
class DrawnFolds(Division):
    """Folds drawn row by row with replacement, of floor(n / k) rows each.

    A fold may hold a row twice, and two folds the same row: the rows of the other folds that are not in the
    scored one are fitted on.

    Attributes:
        folds: their number, 2 .. n.
    """

    name: ClassVar[str] = "drawn_folds"

    folds: int = option(10, FOLDS)

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: a fold may hold a row twice."""
        return TWICE

    def n_splits(self, n: int) -> int:
        """Return the number of folds."""
        return _check_folds(self.name, self.folds, n)

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        rng, n = draws.generator(0), units.n
        while True:
            drawn = rng.integers(n, size=(self.folds, n // self.folds))
            others = [np.delete(drawn, fold, axis=0).ravel() for fold in range(self.folds)]
            parts = [rows[~np.isin(rows, fold)] for rows, fold in zip(others, drawn, strict=True)]
            if all(map(len, parts)):  # of few rows, a fold may hold all that others have
                return Split(np.sort(parts[number]), NOTHING, np.sort(drawn[number]))


@dataclass(frozen=True)
class LeaveOneOut(Division):
    """Each row is scored once, by what is fitted on all others."""

    name: ClassVar[str] = "loo"

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: each split scores the row at its number."""
        return BY_POSITION

    def n_splits(self, n: int) -> int:
        """Return n."""
        return n

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return the split that scores row ``number``."""
        return _scored(units.n, np.array([number]))


@dataclass(frozen=True)
class LeavePOut(Division):
    """Each set of p rows is scored once, in lexicographic order.

    Attributes:
        p: number of rows to leave out.
    """

    name: ClassVar[str] = "lpo"

    p: int = option(2, Option(_times, "Number of rows to leave out.", int, "2"))

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: each split scores the rows at the positions of its number."""
        return BY_POSITION

    def n_splits(self, n: int) -> int:
        """Return the number of sets of p of n rows."""
        count = comb(n, self.p) if self.p < n else 0
        if not 0 < count <= MOST_LEFT_OUT:
            raise InputError(
                f"{self.name}:{self.p} has {count:,} splits of {n} units: at most {MOST_LEFT_OUT:,} can be "
                f"enumerated, and p is at most {n - 1}; sub-sampling draws some of them"
            )
        return count

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return the split that scores the set of this number."""
        left_out, row, rank = [], 0, number
        for wanted in range(self.p - 1, -1, -1):
            while rank >= (count := comb(units.n - row - 1, wanted)):
                rank, row = rank - count, row + 1
            left_out.append(row)
            row += 1
        return _scored(units.n, np.array(left_out))


@dataclass(frozen=True)
class Bootstrap(Division):
    """n rows drawn with replacement are fitted on, and those that were not drawn are scored (out of bag).

    Attributes:
        times: number of splits.
    """

    name: ClassVar[str] = "bootstrap"

    times: int = option(100, TIMES)

    @property
    def no_bound(self) -> str:
        """Return "": every row is as likely not to be drawn."""
        return ""

    def n_splits(self, n: int) -> int:
        """Return ``times``."""
        return self.times

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return a split; should every row be drawn, it is drawn again."""
        rng = draws.generator(number)
        while len(np.unique(drawn := rng.integers(units.n, size=units.n))) == units.n:
            pass
        return Split(np.sort(drawn), NOTHING, np.setdiff1d(np.arange(units.n), drawn))


@dataclass(frozen=True)
class LearningCurve(Division):
    """Repeated sub-sampling, and the same rows scored after fits to fewer and fewer of the others.

    Of ``sizes`` splits that follow each other the first fits on all other rows, and each next one on fewer of
    them by a share 1 / ``sizes``. Only the first has a part in means over splits.

    Attributes:
        sizes: numbers of rows to fit on.
        times: how often the rows to score are drawn.
        share: of the rows to score, as of ``SingleSplit``.
    """

    name: ClassVar[str] = "learning_curve"

    sizes: int = option(5, SIZES)
    times: int = option(20, TIMES)
    share: float = option(0.25, SHARE)

    @property
    def no_bound(self) -> str:
        """Return "": the rows to score are drawn, and of the others those to fit on."""
        return ""

    def n_splits(self, n: int) -> int:
        """Return ``sizes`` * ``times``."""
        text = f"{self.name}:{self.sizes}:{self.times}:{self.share:g}"
        _check_scored(text, self.share, n)
        if n - ceil(self.share * n - 1e-9) < self.sizes:
            raise InputError(f"resampling={text} has more sizes than there are rows to fit on: ask for fewer")
        return self.sizes * self.times

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return a split."""
        time, left_out = divmod(number, self.sizes)
        order = draws.generator(time).permutation(units.n)
        scored = ceil(self.share * units.n - 1e-9)
        fitted = ceil((units.n - scored) * (self.sizes - left_out) / self.sizes)
        return Split(np.sort(order[scored : scored + fitted]), NOTHING, np.sort(order[:scored]))

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which splits fit on all rows that they do not score."""
        return np.asarray(numbers % self.sizes == 0)


DIVISIONS: dict[str, Any] = {
    one.name: one
    for one in (
        SingleSplit,
        KFold,
        RepeatedKFold,
        DrawnFolds,
        LeaveOneOut,
        LeavePOut,
        Subsampling,
        Bootstrap,
        LearningCurve,
    )
}


def _scored(n: int, rows: Index) -> Split:
    """Return the split that scores some rows, and fits on all others."""
    rows = np.sort(rows)
    return Split(np.setdiff1d(np.arange(n), rows), NOTHING, rows)


def _order(units: Units, stratify: bool, rng: np.random.Generator | None) -> Index:
    """Return the units in random order, or in their own without ``rng``; if stratified, class by class."""
    order: Index = np.arange(units.n) if rng is None else rng.permutation(units.n)
    if stratify:
        assert units.strata is not None
        order = order[np.argsort(units.strata[order], kind="stable")]
    return order


def _sample(units: Units, part: float, stratify: bool, rng: np.random.Generator) -> Index:
    """Draw a share of the units, rounded up; if stratified, evenly from them class by class."""
    order, count = _order(units, stratify, rng), ceil(part * units.n - 1e-9)
    if not stratify:
        return order[:count]
    return order[((np.arange(count) + 0.5) * units.n / count).astype(np.intp)]


def _check_scored(text: str, part: float, n: int) -> None:
    if not 0 < ceil(part * n - 1e-9) < n:
        raise InputError(
            f"resampling={text} has no rows to fit on, or none to score, of {n}: change the share"
        )


def _check_folds(name: str, folds: int, n: int) -> int:
    if folds > n:
        raise InputError(f"resampling={name}:{folds} has more folds than the {n} units there are to divide")
    return folds
