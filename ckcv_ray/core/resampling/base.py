"""What a resampling is: fold sizes for a number of units, and the index sets of numbered splits.

What is divided are units: rows, or groups if the task has any. Each split is drawn with a key of its own, so
that any worker can draw it again. It has a training set, a select set and an estimate set, of which the last
two may be empty. A certification selects on one and estimates on the other; where nothing is certified, the
select set is empty, and what is fitted on ``train`` is scored on ``estimate``.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import HasOptions, Option, option
from ckcv_ray.errors import Counts, Index, InputError, Values, boolean, integer

MAX_SPLITS = 1_000_000
FITTED_ON = "some splits score rows that they fit on"
STRATIFY = Option(boolean, "Give each part the same share of every class.", bool)
EMPTY: Index = np.empty(0, dtype=np.intp)

# why the score of a split has no bound: see ``Resampling.no_bound``
NOT_DRAWN = "the rows that a split scores are not drawn at random by the seed"
BY_POSITION = "the order of the table says which rows a split scores, and not a draw by the seed"
BY_COLUMN = "a column of the table says which rows a split scores, and not a draw by the seed"
FIXED_BY_CLASS = "parts have fixed numbers of each class"


class Split(NamedTuple):
    """Ascending numbers of units; ``select`` or ``estimate`` may be empty.

    No unit is in two of the sets, unless a resampling measures how well a model does on what it was fitted
    on. Where units are drawn with replacement, one may be in ``train`` or ``estimate`` several times.
    """

    train: Index
    select: Index
    estimate: Index

    @classmethod
    def score(cls, n: int, units: Index) -> Self:
        """Return the split that scores some of n units and fits on all others."""
        units = np.sort(units)
        return cls(np.setdiff1d(np.arange(n), units), EMPTY, units)

    def merge_select(self) -> tuple[Index, Index]:
        """Return the units of TR and MS, on which the winner is refitted, and those of EE."""
        return np.sort(np.concatenate([self.train, self.select])), self.estimate


class Strata(NamedTuple):
    """What is divided.

    Attributes:
        n: number of rows, of groups, or of distinct values in a column that divides the rows.
        strata: the class number of each row, (n,); None if classes play no part, or with groups.
        class_rows: the number of rows of each class in each group, (n, n_classes); None without groups, or if
            classes play no part.
        values: values of the column, ascending, (n,): numbers, or dates in milliseconds since 1970.
        kind: kind of the column: "number", "date" or "category".
    """

    n: int
    strata: Counts | None = None
    class_rows: Counts | None = None
    values: Values | None = None
    kind: str = "number"

    def take(self, part: Index) -> "Strata":
        """Return some of the units."""
        strata, rows = (None if each is None else each[part] for each in (self.strata, self.class_rows))
        return Strata(len(part), strata, rows)


class FoldSize(NamedTuple):
    """The values of k that share one fold size floor(n / k): one procedure, computed for the smallest k.

    Attributes:
        k_first, k_last: the smallest and the largest of the values requested; 0 where k is not varied.
        n_select: number of units in an estimate set, and in a select set unless that is empty.
        n_train: number of units in a training set; where sets differ in size, both are for the first split.
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


class Term(NamedTuple):
    """One term of an estimate that combines splits.

    Attributes:
        factor: what the mean over its splits is multiplied by.
        splits: which splits the mean is over, (n_splits,).
    """

    factor: float
    splits: NDArray[np.bool_]


class Resampling(HasOptions, ABC):
    """A way to divide units: a frozen dataclass, part of a study.

    A new one defines ``count_splits`` and ``split``, and states what differs from this class.

    Attributes:
        name: its name in files, and the first word of its text.
        in_text, separator: the fields whose values may follow in its text, as in repeated_kfold:10x5, and
            what separates them.
        selects: whether its splits have a select set, for a certification; otherwise they are only scored.
        k: numbers of folds requested, ascending; None for 3 .. n, "auto" for those that suit the number of
            units, and empty where they are not varied.
        inner: the resampling inside each training set, in which settings are selected; None if there is none.
        column: the column of the table whose values are divided, each with its rows; None for rows or groups.
        names_rows: whether its splits are of the rows of one table, which groups cannot replace.
        undrawn: why the units that a split scores are not drawn at random by the seed; "" if they are.
        corrected: whether ``correct`` adds something to an estimate; scores then have one more sum: what they
            would be without information, if targets had nothing to do with outputs.
        note: a sentence on how to read its figures; "" if there is nothing to say.
    """

    name: ClassVar[str]
    in_text: ClassVar[tuple[str, ...]] = ()
    separator: ClassVar[str] = ":"
    selects: ClassVar[bool] = False
    names_rows: ClassVar[bool] = False
    undrawn: ClassVar[str] = NOT_DRAWN
    corrected: ClassVar[bool] = False
    note: ClassVar[str] = ""

    k: tuple[int, ...] | str | None = ()
    inner: "Resampling | None" = None
    column: str | None = None

    def __str__(self) -> str:
        """Return it as text such as kfold:10, without fields that do not belong there."""
        usual = {("gap", 0), ("remainder", "spread")}
        said = [value for name in self.in_text if (name, value := getattr(self, name)) not in usual]
        parts = [f"{value:g}" if isinstance(value, float) else str(value) for value in said]
        return f"{self.name}:{self.separator.join(parts)}" if parts else self.name

    @abstractmethod
    def count_splits(self, n: int) -> int:
        """Return the number of splits of n units, over all fold sizes.

        Raises:
            InputError: n units cannot be divided in this way.
        """

    @abstractmethod
    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return split ``number``, 0 .. ``size.n_splits`` - 1; it depends only on the arguments."""

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the distinct fold sizes of n units, the largest (smallest k) first.

        Unless overridden, there is one, with set sizes taken from the first split under seed 0.
        """
        size = FoldSize(0, 0, 0, 0, self.count_splits(n))
        first = self.split(Strata(n, np.zeros(n, np.intp)), size, 0, Draws(0))
        return (size._replace(n_select=len(first.estimate), n_train=len(first.train)),)

    def terms(self, splits: Index) -> tuple[Term, ...]:
        """Return the means over splits whose weighted sum is the estimate: here one, over all splits.

        Where there are several, the first is over the splits that are shown one by one.
        """
        return (Term(1.0, np.ones(len(splits), np.bool_)),)

    def correct(self, means: Sequence[float], no_information: float) -> float:
        """Return what is added to the weighted sum of the mean losses of the terms: here nothing.

        Args:
            means: the mean loss of each term.
            no_information: the score without information, on the splits of the last term.
        """
        return 0.0

    @property
    def combined(self) -> bool:
        """Whether an estimate has several terms, and so no standard deviation over splits."""
        return len(self.terms(np.empty(0, np.intp))) > 1

    @property
    def stratify(self) -> bool:
        """Whether each part of a split gets the same share of every class."""
        return False

    @property
    def in_order(self) -> bool:
        """Whether it takes the order of rows in the table as their order in time."""
        return False

    @property
    def stratifies_groups(self) -> bool:
        """Whether it can give parts similar shares of every class while keeping groups whole."""
        return False

    @property
    def no_bound(self) -> str:
        """Why a split's score has no bound on new rows; "" if the seed draws the rows that each split scores.

        Drawn means: whatever the rows hold and in whatever order they stand, each set of that many rows is
        equally likely to be scored, and a row at most once. Given the rows fitted on, those scored are then
        independent of them, also in a sorted table. A resampling that does not declare this has no bounds.
        """
        return FIXED_BY_CLASS if self.stratify else BY_COLUMN if self.column else self.undrawn


check_n_splits = partial(integer, least=1, most=MAX_SPLITS)


def arrange(units: Strata, stratify: bool, rng: np.random.Generator) -> Index:
    """Return the units in random order; if stratified, grouped by class."""
    order: Index = rng.permutation(units.n)
    if stratify:
        assert units.strata is not None
        order = order[np.argsort(units.strata[order], kind="stable")]
    return order


@dataclass(frozen=True, eq=False)
class Splits(Resampling):
    """Splits made elsewhere, for example by a splitter object of scikit-learn.

    Attributes:
        sets: the splits.
        digest: SHA-256 of the sets, by which they are part of a procedure's identity.
    """

    name: ClassVar[str] = "given"
    names_rows: ClassVar[bool] = True
    undrawn: ClassVar[str] = "splits were given"  # nobody knows how they were made

    sets: tuple[Split, ...] = field(default=(), repr=False)
    digest: str = option("", lambda _, value: str(value), "Digest of the sets.")

    @classmethod
    def of(cls, pairs: Iterable[tuple[ArrayLike, ArrayLike]], n: int) -> Self:
        """Take pairs of rows to fit and rows to score, out of n rows.

        Raises:
            InputError: there are none, a number is no row, or a split does not fit on some and score others.
        """
        sets = tuple(Split(_check_rows(train, n), EMPTY, _check_rows(score, n)) for train, score in pairs)
        for number, (train, _, score) in enumerate(sets):
            both = len(np.intersect1d(train, score))
            if both or not (len(train) and len(score)):
                raise InputError(
                    f"split {number} of the splitter fits on {len(train)} rows and scores {len(score)}, of "
                    f"which it fits on {both}: expected rows to fit, and other rows to score"
                )
        if not sets:
            raise InputError("the splitter gives no splits")
        parts = chain.from_iterable((split.train, split.estimate) for split in sets)
        content = b"".join(len(part).to_bytes(8, "little") + part.astype("<i8").tobytes() for part in parts)
        return cls(sets, hashlib.sha256(content).hexdigest())

    def count_splits(self, n: int) -> int:
        """Return the number of splits."""
        largest = max((int(part.max()) for split in self.sets for part in split if len(part)), default=0)
        if largest >= n:
            raise InputError(f"the splits that were given name row {largest}, and there are {n} rows")
        return len(self.sets)

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split."""
        return self.sets[number]


def _check_rows(part: ArrayLike, n: int) -> Index:
    rows = np.asarray(part)
    if not len(rows):
        return EMPTY
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not 0 <= rows.min() <= rows.max() < n:
        raise InputError(f"a splitter gives row numbers from 0 to {n - 1}, not {str(part)[:60]}")
    return np.sort(rows).astype(np.intp)
