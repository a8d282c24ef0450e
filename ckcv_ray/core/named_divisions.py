"""Divisions that are made of others, or given; and what text and JSON name."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.divisions import DIVISIONS, NOTHING, Division, Draws, KFold, SingleSplit, Units
from ckcv_ray.core.options import Option, option, options
from ckcv_ray.core.resampling import Split
from ckcv_ray.errors import InputError
from ckcv_ray.validation import as_array, check_choice, expect, quote

MOST_NESTED = 10_000


def _drawn(name: str, part: Any) -> Division:
    if not isinstance(part, Division) or isinstance(part, NestedSplits | Splits):
        raise InputError(
            f"a nested resampling is made of two that are drawn, such as kfold:5, not {part!r:.60}"
        )
    return part


FIVE_FOLDS = KFold(5)
OUTER = Option(_drawn, "Resampling of all rows.")
INNER = Option(_drawn, "Resampling inside each training set.")


@dataclass(frozen=True, eq=False)
class Splits(Division):
    """Splits that somebody else has made, such as a splitter object of scikit-learn.

    Attributes:
        sets: the splits.
        digest: SHA-256 of the sets, which is their part of a procedure's identity.
    """

    name: ClassVar[str] = "given"

    sets: tuple[Split, ...] = field(default=(), repr=False)
    digest: str = option("", Option(lambda _, value: str(value), "Digest of the sets."))

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]], n: int) -> Self:
        """Take pairs of rows to fit and rows to score, of n rows.

        Raises:
            InputError: there are none, a number is no row, or a row is in both parts of a split.
        """
        sets = tuple(Split(_rows(train, n), NOTHING, _rows(score, n)) for train, score in pairs)
        if not sets:
            raise InputError("the splitter gives no splits")
        for number, one in enumerate(sets):
            if not (len(one.train) and len(one.estimate)):
                raise InputError(f"split {number} of the splitter has no rows to fit, or none to score")
            if len(both := np.intersect1d(one.train, one.estimate)):
                raise InputError(
                    f"split {number} of the splitter fits on row {both[0]} and scores it: its parts overlap "
                    f"in {len(both)} rows, and no error measured on them is one on new rows"
                )
        parts = chain.from_iterable((one.train, one.estimate) for one in sets)
        content = b"".join(len(part).to_bytes(8, "little") + part.astype("<i8").tobytes() for part in parts)
        return cls(sets, hashlib.sha256(content).hexdigest())

    @property
    def no_bound(self) -> str:
        """Return why there is no bound: nobody knows how they were made."""
        return "splits were given"

    def n_splits(self, n: int) -> int:
        """Return the number of splits."""
        largest = max((int(part.max()) for one in self.sets for part in one if len(part)), default=0)
        if largest >= n:
            raise InputError(f"the splits that were given name row {largest}, and there are {n} rows")
        return len(self.sets)

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return a split."""
        return self.sets[number]


@dataclass(frozen=True)
class NestedSplits(Division):
    """A division with another inside each of its training sets, in which settings are selected.

    Attributes:
        outer: divides all rows.
        inner: divides the rows that a split of ``outer`` fits on.
    """

    name: ClassVar[str] = "nested"

    outer: Division = option(FIVE_FOLDS, OUTER)
    inner: Division = option(FIVE_FOLDS, INNER)

    @property
    def no_bound(self) -> str:
        """Return why the outer splits have no bound; those inside only select."""
        return self.outer.no_bound

    def n_splits(self, n: int) -> int:
        """Return the number of outer splits."""
        if (count := self.outer.n_splits(n)) > MOST_NESTED:
            raise InputError(f"a nested resampling selects in at most {MOST_NESTED:,} splits, not {count:,}")
        return count

    def split(self, units: Units, number: int, draws: Draws) -> Split:
        """Return an outer split."""
        return self.outer.split(units, number, draws)

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which outer splits have a part in means."""
        return self.outer.counts(numbers)


def nested_halves(folds: int = 5) -> NestedSplits:
    """Return k folds, of which the rows of the others are halved: to fit a setting, and to select it."""
    return NestedSplits(KFold(folds), SingleSplit(0.5))


def nested_kfold(outer: int = 5, inner: int = 5) -> NestedSplits:
    """Return k-fold cross validation inside each fold of k-fold cross validation."""
    return NestedSplits(KFold(outer), KFold(inner))


NESTED = {"nested_halves": nested_halves, "nested": nested_kfold}
FORMS = (
    "holdout:0.3, kfold:10, repeated_kfold:10x5, drawn_folds:10, loo, lpo:2, subsampling:50:0.25, "
    "bootstrap:50, learning_curve:5:20:0.25, nested_halves:5, nested:5:3"
)


def parse_division(text: str) -> Division:
    """Return the division that text such as kfold:10 names; values that are left out have defaults.

    Raises:
        InputError: it names none, or a value is out of range.
    """
    name, _, rest = text.strip().partition(":")
    made: Any = NESTED.get(name) or DIVISIONS.get(name)
    if made is None:
        raise InputError(f"resampling={text!r} is not known: expected {FORMS}")
    between = getattr(made, "between", ":")
    words = rest.split(between) if rest else []
    try:
        division: Division = made(*map(_value, words))
        return division
    except TypeError:
        raise InputError(f"resampling={text!r} has more values than {name} takes: expected {FORMS}") from None


def _value(word: str) -> float:
    try:
        return int(word) if word.strip().lstrip("+-").isdigit() else float(word)
    except ValueError:
        raise InputError(f"{word!r} is no number: expected a resampling such as {FORMS}") from None


def read_division(content: Any) -> Division:
    """Return the division that JSON values describe, as ``core.options.described`` gives them.

    Splits that were given are without their sets.

    Raises:
        InputError: they describe none.
    """
    expect("resampling", content, Mapping, "a mapping with the name and the options of a resampling")
    kinds = {**DIVISIONS, NestedSplits.name: NestedSplits, Splits.name: Splits}
    kind = kinds[check_choice("resampling", content.get("name"), kinds)]
    given = {name: value for name, value in content.items() if name != "name"}
    for name in given:
        check_choice("option of a resampling", name, options(kind))
    division: Division = kind(
        **{n: read_division(v) if isinstance(v, Mapping) else v for n, v in given.items()}
    )
    return division


def stratified(division: Division) -> Division:
    """Return a division that gives each part the same share of every class.

    Raises:
        InputError: there is no such form of it.
    """
    if isinstance(division, NestedSplits):
        return NestedSplits(stratified(division.outer), stratified(division.inner))
    if "stratify" not in options(division):
        able = [name for name, one in DIVISIONS.items() if "stratify" in options(one)]
        raise InputError(f"stratify is for {', '.join(able)}, not {division.name}: leave it out")
    return replace(division, stratify=True)  # type: ignore[type-var]


def take_splits(resampling: Any, X: Any, y: ArrayLike, groups: ArrayLike | None) -> Splits | None:
    """Return the splits of a splitter, or of pairs of rows; None if the resampling is neither.

    Raises:
        InputError: the splitter raises, or gives something else than pairs of rows.
    """
    if resampling is None or isinstance(resampling, str | Division):
        return None
    splits = hasattr(resampling, "split") and not isinstance(resampling, type)
    if isinstance(resampling, type) or not (splits or isinstance(resampling, Iterable)):
        raise InputError(
            f"resampling={quote(resampling)}: expected text such as 'kfold:10', a splitter such as "
            "KFold(10), or a list of pairs: the rows to fit and the rows to score"
        )
    try:
        pairs = list(resampling.split(X, y, groups) if splits else resampling)
    except Exception as error:  # of any kind: it is code of the user's
        raise InputError(f"the splitter raised {type(error).__name__}: {error}") from error
    for number, pair in enumerate(pairs):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(map(np.ndim, pair))):
            raise InputError(
                f"split {number} is {quote(pair)}: expected the rows to fit and the rows to score"
            )
    return Splits.of(pairs, len(as_array("y", y)))


def _rows(part: Any, n: int) -> Index:
    rows = np.asarray(part)
    if not len(rows):
        return NOTHING
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not 0 <= rows.min() <= rows.max() < n:
        raise InputError(f"a splitter gives row numbers from 0 to {n - 1}, not {str(part)[:60]}")
    return np.sort(rows).astype(np.intp)
