"""What is drawn independently of what else there is, rows or groups of rows, and what rows weigh in a fit.

A group of rows that belong together, such as the visits of one patient, is known by its number, counted from
0 in the order of first appearance. How the column spells its values has no effect on a study, and is not
stored. Weights of rows are used in fits alone, unless the error by weight is claimed: all else that is
measured and claimed is of rows, which count once each.

Columns that number the rows are not learned from: of a table that is sorted by its target they give it away.
A column that looks as if it named groups is asked about, by its name or by its values alone. What tells a
name from a measurement are its repeats. Half of the values or more differ, and yet some repeat, as often as
names do and not by chance:

* text that is no number, amount or date;
* whole numbers that fill a range, such as 1, 1, 2, 3, 3, 3, 4, with equal ones in rows next to each other;
* whole numbers of which far more are equal than are nearly so. Of a measurement, such as a price in euros,
  about as many pairs of rows are equal as differ by 1, by 2, or by any other small amount. Where it is
  rounded, more are equal, but then most of those end in 0 or 5.
"""

import re
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.core.measures import Losses
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.errors import InputError, pluralize, write_option, write_row
from ckcv_ray.tables.columns import (
    LARGEST,
    LAST_EXACT,
    LOOKS_LIKE_DATE,
    MIN_GROUPS,
    NO_NAMES,
    TRUTH,
    Cells,
    ColumnError,
    ColumnKind,
    canonical_text,
    find_number_form,
    is_number_type,
    is_text,
    learn_column,
    number_values,
    positions_by_value,
    read_numbers,
    without_gaps,
)
from ckcv_ray.validation import Classes, Index, Mask, Values, quote

RowUnits = NDArray[np.intp]
GROUP_NAMES = ("group", "groups", "group_of_row")
WEIGHT_NAMES = ("weight", "sample_weight", "weight_of_row")


@dataclass(frozen=True)
class Units:
    """The units of a table: what is drawn independently, here each row by itself.

    Attributes:
        n: number of rows.
        question: asks about a column that looks like groups, for display; "" if there is none.
    """

    unit: ClassVar[str] = "row"
    independent: ClassVar[bool] = True  # whether rows are

    n: int
    question: str = ""

    @staticmethod
    def read(columns: pa.Table, names: Sequence[str], question: str = "") -> "Units":
        """Return the groups by columns of a table, whose rows agree in all of them; of none its rows.

        ``question`` asks about a column that looks like groups, where none is named.

        Raises:
            InputError: as for ``group_numbers``, or a column has the name of the groups.
        """
        if not names:
            return Units(columns.num_rows, question)
        groups, *rest = (group_numbers(Cells.of(columns, name), name) for name in names)
        for finer in rest:
            groups = _number(groups * len(groups) + finer)
        return Groups(columns.num_rows, groups=groups, column=str(name_groups(names, columns.column_names)))

    @property
    def name(self) -> str | None:
        """Name of the column of groups; None without groups."""
        return next(iter(self.columns), None)

    @property
    def columns(self) -> dict[str, RowUnits]:
        """The groups, (n,), by the name of their column; none without groups."""
        return {}

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.n

    @cached_property
    def row_units(self) -> RowUnits:
        """The unit of each row, (n,)."""
        return np.arange(self.n)

    def word(self, of_rows: str, of_groups: str) -> str:
        """Return the words that are said of such units."""
        return of_rows

    def rows(self, units: Index) -> Index:
        """Return the rows of units, as often as each unit is named; of groups ascending."""
        return units

    def part(self, rows: Index) -> "Units":
        """Return the units of some rows; groups are numbered again."""
        return replace(self, n=len(rows))

    def check(self) -> None:
        """Raise InputError if groups are too few, or do not group anything."""

    def check_independent(self, message: str) -> None:
        """Raise InputError with this message if rows belong together."""

    def stratify(self, y: Classes, n_classes: int) -> Strata:
        """Return the units with the classes of their rows, of which ``y`` is that of each, (n,)."""
        return Strata(self.n, y)

    def weigh_rows(self, row_units: RowUnits) -> Values | None:
        """Return how much rows of these units count, so that units count alike; None if all rows do."""
        return None

    def make_losses(self, row_units: RowUnits, of_rows: Losses) -> Losses:
        """Return how the losses of these units are measured, given how those of rows are.

        Args:
            row_units: the unit of each row that is measured, (rows,).
            of_rows: the losses of rows.
        """
        return of_rows


@dataclass(frozen=True)
class Groups(Units):
    """The units of a table whose rows belong together: groups, which are drawn independently of each other.

    Attributes:
        groups: the group of each row, numbered from 0 in the order of first appearance, (n,).
        column: name of the column of groups.
    """

    unit: ClassVar[str] = "group"
    independent: ClassVar[bool] = False

    groups: RowUnits = field(kw_only=True)
    column: str = field(kw_only=True)

    @property
    def columns(self) -> dict[str, RowUnits]:
        """The groups by the name of their column."""
        return {self.column: self.groups}

    @property
    def n_units(self) -> int:
        """Number of groups."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def row_units(self) -> RowUnits:
        """The group of each row."""
        return self.groups

    def word(self, of_rows: str, of_groups: str) -> str:
        """Return the words that are said of groups."""
        return of_groups

    def rows(self, units: Index) -> Index:
        """Return the rows of groups, ascending, as often as each is named."""
        return np.repeat(np.arange(self.n), np.bincount(units, minlength=self.n_units)[self.groups])

    def part(self, rows: Index) -> "Groups":
        """Return the groups of some rows, numbered again."""
        return replace(self, n=len(rows), groups=_number(self.groups[rows]))

    def check(self) -> None:
        """Raise InputError if they are too few, or do not group anything."""
        if self.n_units < MIN_GROUPS:
            raise InputError(
                f"column {self.column!r} has {self.n_units} different value{'s' * (self.n_units > 1)}: at "
                f"least {MIN_GROUPS} groups are needed; name the column that says which rows belong "
                "together, such as the patient's number"
            )
        if self.n_units == self.n:
            drop = "the columns with --drop" if "," in self.column else write_option("drop", self.column)
            raise InputError(
                f"column {self.column!r} has a different value in each of the {self.n:,} rows, so it groups "
                f"nothing: leave --group out (and {drop}), as bounds for independent rows are closer; or "
                "name the column that says which rows belong together"
            )

    def check_independent(self, message: str) -> None:
        """Raise it."""
        raise InputError(message)

    def stratify(self, y: Classes, n_classes: int) -> Strata:
        """Return the groups with the number of rows that each has of each class."""
        cells = np.bincount(self.groups * n_classes + y, minlength=self.n_units * n_classes)
        return Strata(self.n_units, class_rows=cells.reshape(self.n_units, n_classes))

    def weigh_rows(self, row_units: RowUnits) -> Values:
        """Return the share of its group that each row is."""
        return np.asarray(1 / np.bincount(row_units)[row_units])

    def make_losses(self, row_units: RowUnits, of_rows: Losses) -> Losses:
        """Return how each group's mean error, or share of wrong rows, is measured."""
        return replace(of_rows, groups=row_units)


@dataclass(frozen=True)
class SplitUnits(Groups):
    """The units of a resampling by a column of times or folds: for each of its values the rows that have it.

    Attributes:
        groups: the position of each row's value, (n,).
        column: its name; "" without one.
        values: the different values, ascending, of a category the positions of its names.
        kind: what they are.
        levels: the names of categories.
    """

    values: Values = field(kw_only=True)
    kind: ColumnKind = ColumnKind.NUMBER
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: pa.Table, name: str | None, asked: ColumnKind | None) -> "SplitUnits":
        """Return those by a column of a table, in which all text is dates if some looks like a date.

        Raises:
            InputError: a cell is empty, or not of the kind of the others.
        """
        if name is None:
            return UNSPLIT
        cells = Cells.of(columns, name)
        dates = not cells.are_numbers and any(map(LOOKS_LIKE_DATE.match, cells.known))
        try:
            column, x = learn_column(cells, name, ColumnKind.DATE if dates else asked)
        except ColumnError as problem:
            mend = next((mend for mend in problem.mends if "{" not in mend), "name another column")
            raise InputError(f"column {name!r} {problem}: {mend}") from None
        if len(empty := np.flatnonzero(np.isnan(x))):
            raise InputError(
                f"column {name!r}, which divides the rows, is empty in {pluralize(len(empty), 'row')}, the "
                f"first {empty[0] + 1}: fill these cells, or leave the rows out"
            )
        values, groups = np.unique(x, return_inverse=True)
        levels = tuple(column.levels)
        return cls(len(x), groups=groups, column=name, values=values, kind=column.kind, levels=levels)

    @property
    def columns(self) -> dict[str, NDArray[np.generic]]:  # type: ignore[override]
        """The value of each row, (n,), by the name of the column; none without one."""
        values: NDArray[np.generic] = self.values
        if self.kind is ColumnKind.DATE:
            values = self.values.astype("M8[ms]")
        elif self.levels:
            values = np.array(self.levels)[self.values.astype(np.intp)]
        return {self.column: values[self.groups]} if self.column else {}

    def find_rows(self, sign: str, text: str) -> Mask:
        """Return which rows have a value that equals a text ("="), is at least it (">="), or above it (">").

        Raises:
            InputError: the text is of another kind than the values, or categories are asked for their order.
        """
        form, _, number = canonical_text(text).partition(" ")
        if form in TRUTH and self.kind is ColumnKind.NUMBER:
            form, number = "number", str(TRUTH[form])
        if self.kind is ColumnKind.NUMBER and np.abs(self.values).max() >= LAST_EXACT:
            raise InputError(
                f"column {self.column!r} has numbers of {LAST_EXACT:,.0f} and more, which are not all told "
                "apart: name another column, or say --categorical"
            )
        expected = {ColumnKind.NUMBER: "number", ColumnKind.DATE: "date"}.get(self.kind, "")
        if expected and form != expected:
            example = "2025-01-31" if expected == "date" else "3.5"
            raise InputError(
                f"column {self.column!r} has {expected}s, and {quote(text)} is none: write it as {example}"
            )
        if sign in {ColumnKind.DATE: "=", ColumnKind.CATEGORY: (">=", ">")}.get(self.kind, ()):
            instead = "=" if self.levels else ">="
            raise InputError(
                f"column {self.column!r} is a {self.kind}: write {self.column}{instead}{text}, not {sign}"
            )
        if self.levels:
            alike = positions_by_value(self.levels).get(canonical_text(text), -1)
            chosen = self.values == (self.levels.index(text) if text in self.levels else alike)
        else:
            compare = {"=": np.equal, ">=": np.greater_equal, ">": np.greater}[sign]
            chosen = compare(self.values, float(number))
        return np.asarray(chosen)[self.groups]

    def stratify(self, y: Classes, n_classes: int) -> Strata:
        """Return the values; classes have no part in it."""
        return Strata(self.n_units, values=self.values, kind=self.kind)


UNSPLIT = SplitUnits(0, groups=np.zeros(0, np.intp), column="", values=np.zeros(0))


def name_groups(groups: Sequence[str], names: Sequence[str] = ()) -> str | None:
    """Return the one name of these columns together; None of none.

    Raises:
        InputError: another one of the columns ``names`` has it.
    """
    name = groups[0] if len(groups) == 1 else write_row(groups) if groups else None
    if len(groups) > 1 and name in names:
        raise InputError(f"a column is named {name!r}, as the groups by these columns would be: rename it")
    return name


def group_numbers(cells: Cells, name: str) -> RowUnits:
    """Return the group number of every row of a column.

    Raises:
        InputError: it has empty cells, or values that are not text, numbers, dates or the like.
    """
    column = cells.infer()
    if pa.types.is_null(column.type):
        raise InputError(f"column {name!r} is empty: groups are named by text or whole numbers")
    if is_text(column.type):  # whose cells are of one group if they differ in the spaces around them alone
        column = without_gaps(column, NO_NAMES & cells.gaps)
    missing = pc.is_null(column, nan_is_null=True)
    if len(rows := np.flatnonzero(missing.to_numpy())):
        raise InputError(
            f"column {name!r} has no group in {len(rows):,} of {len(column):,} rows, the first in row "
            f"{rows[0] + 1}: fill the empty cells (NA, null, nan and ? are such, unless --keep-values "
            "names them), with a value of its own for each row that belongs to no other, or leave these rows "
            "out"
        )
    try:
        return number_values(column)
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} cannot be read as groups: {error}") from None


def _number(groups: RowUnits) -> RowUnits:
    return number_values(pa.chunked_array([groups]))


@dataclass(frozen=True)
class Weighting:
    """What rows weigh in a fit."""

    named: Values | None = None  # the weight of each row, positive, (n,); None if all weigh the same
    column: str | None = None  # name of the column of weights; None if all weigh the same

    @classmethod
    def read(cls, columns: pa.Table, name: str | None) -> "Weighting":
        """Return the weights in a column of a table; without a name all rows weigh the same.

        Raises:
            InputError: a cell is empty, or no positive number of a magnitude that can be computed with.
        """
        if name is None:
            return UNWEIGHTED
        role, cells = "the column of weights", Cells.of(columns, name)
        weights = read_numbers(cells, name, role, ": name a column of numbers")
        if len(bad := np.flatnonzero(~((weights >= 1 / LARGEST) & (weights <= LARGEST)))):
            raise InputError(
                f"{role} {name!r} has {weights[bad[0]]:g} in row {bad[0] + 1}: weights are positive, from "
                f"{1 / LARGEST:g} to {LARGEST:g}; leave out a row of weight zero"
            )
        return cls(weights, name)

    @property
    def columns(self) -> dict[str, Values]:
        """The weights by the name of their column; none if all rows weigh the same."""
        return {} if self.column is None or self.named is None else {self.column: self.named}

    def take(self, rows: Index) -> Values | None:
        """Return the weights of some rows, as often as each is named; None if all weigh the same."""
        return None if self.named is None else self.named[rows]

    def part(self, rows: Index) -> "Weighting":
        """Return the weighting of some rows."""
        return replace(self, named=self.take(rows))

    def describe(self) -> str:
        """Say what the weights are used for; "" if all rows weigh the same."""
        if self.column is None:
            return ""
        return f"Rows are weighted by {self.column!r} in fits alone: measures and claims are unweighted."


UNWEIGHTED = Weighting()


ENTITIES = frozenset(
    (
        *("patient", "subject", "customer", "client", "person", "participant", "user", "account"),
        *("household", "family", "animal", "donor", "device", "machine", "document", "group"),
    )
)
NUMBER_WORDS = ("id", "ids", "no", "nr", "num", "number", "key", "code")
ROW_NAMES = frozenset(("", "row", "rows", "rowname", "rownames", "rownumber", "index", "unnamed", "obs"))
TIME_NAMES = frozenset(
    ("time", "t", "date", "year", "quarter", "month", "week", "day", "hour", "minute", "second", "age")
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
MIN_SHARED = 1 / 3  # share of rows whose value occurs again, for a column that is named like groups
MANY_NAMES, MAX_ROWS_OF_NAME = 20, 100  # fewer values of more rows each are kinds of things, and not names
MIN_REPEATED = 0.05  # share of rows whose value occurs again, for a column of any name
MIN_FILLED = 0.95  # share of a range's numbers that occur
MAX_NEAR, MIN_TIMES = 10, 20  # how far numbers that are near differ; how many times more are equal
MIN_ROUND = ((10, 0.3), (5, 0.5))  # share of numbers that are multiples, from which they are rounded
MAX_ROWS_SEEN = 20_000  # of a column of any name, to see whether it looks like groups
MIN_NUMBERED = 20  # rows: fewer may be numbered by chance, as the steps of a dose are
DENSE = 2  # numbers of rows are less than twice as far apart as there are rows


def is_row_number(x: Values, name: str) -> bool:
    """Return whether a column x (n,) numbers the rows, so that it must not be learned from unasked.

    That is a column that goes up by one from row to row, from 0 or 1, in 20 rows or more, unless it is named
    as a time; or one that is named as a number of rows or of what the rows are, and has another whole number
    in each: without wide gaps, or rising.
    """
    steps = np.diff(x)
    if not len(steps) or np.isnan(x).any() or not np.all(np.floor(x) == x):
        return False
    words = [word.lower() for word in WORD.findall(name)]
    if len(x) >= MIN_NUMBERED and x[0] in (0, 1) and np.all(steps == 1):
        return not any(word in TIME_NAMES for word in words)
    if "".join(words) not in ROW_NAMES and not is_name_of_groups(name):
        return False
    if np.all(steps > 0):
        return True
    return len(np.unique(x)) == len(x) and bool(np.ptp(x) < DENSE * len(x))


def ask_about_groups(columns: pa.Table, known: Container[str | None]) -> str:
    """Ask about the first column that looks as if it named groups; "" if there is none.

    Columns that are named as groups are come first.

    Args:
        columns: a table.
        known: names of columns that are something else.
    """
    counts = Counter(columns.column_names)
    left = [name for name in counts if counts[name] == 1 and name not in known]
    for name in sorted(left, key=is_name_of_groups, reverse=True):
        if count := _count_names(columns, name):
            return (
                f"column {name[:60]!r} repeats: {count:,} values in {columns.num_rows:,} rows. If rows of "
                "one value belong together, such as visits of one patient, say "
                f"{write_option('group', name)}: without it nothing here is proven."
            )
    return ""


def is_name_of_groups(name: str) -> bool:
    """Return whether a column's name is that of something with several rows: patient, subject_id, userNo."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words:
        return False
    last, before = words[-1], words[:-1]
    if last in ENTITIES or last in ("id", "ids", "uid", "pid") or words[0] == "id":
        return True
    if last in NUMBER_WORDS and any(word in ENTITIES for word in before):
        return True
    return any(last.removesuffix(ending) in ENTITIES for ending in NUMBER_WORDS if last.endswith(ending))


def _count_names(columns: pa.Table, name: str) -> int:
    """Return the number of values of a column that looks as if it named groups; 0 if it does not.

    The most frequent value does not count, as it may stand for none; see the head of the module.
    """
    if is_name_of_groups(name):
        counts = np.bincount(number_values(_read_names(Cells.of(columns, name))))
        enough = len(counts) >= MANY_NAMES or counts.sum() <= MAX_ROWS_OF_NAME * len(counts)
        if len(counts) >= MIN_GROUPS and enough and _share_repeated(counts) >= MIN_SHARED:
            return len(counts)
    cells = Cells.of(columns.slice(0, MAX_ROWS_SEEN), name)
    counts = np.bincount(number_values(column := _read_names(cells)))
    if len(counts) < MANY_NAMES or len(column) > 2 * len(counts):
        return 0
    repeated = _share_repeated(counts) - counts.max() / len(column) >= MIN_REPEATED
    if not repeated or not _are_names(cells, column):
        return 0
    return len(np.bincount(number_values(_read_names(Cells.of(columns, name)))))  # of all rows


def _read_names(cells: Cells) -> pa.ChunkedArray:
    """Return a column of text or whole numbers without gaps; of another no cells."""
    no_names = pa.chunked_array([], pa.null())
    if cells.written and cells.floats is not None and np.any(cells.floats != np.floor(cells.floats)):
        return no_names  # found at once; what all texts are together takes several times as long
    column = cells.infer()
    if pa.types.is_floating(column.type) and np.any((values := column.to_numpy()) != np.floor(values)):
        return no_names
    is_name = is_text(column.type) or is_number_type(column.type)
    return column if is_name and not column.null_count else no_names


def _share_repeated(counts: NDArray[np.intp]) -> float:
    return float(counts[counts > 1].sum() / counts.sum())


def _are_names(cells: Cells, column: pa.ChunkedArray) -> bool:
    """Return whether the values of a column repeat as names do."""
    if is_text(column.type):
        if cells.written and cells.floats is not None:  # of more digits than numbers have
            return True
        with suppress(ColumnError):  # numbers in several forms
            _, words = find_number_form(cells.known)
            return len(words) > len(cells.known) / 2 and not LOOKS_LIKE_DATE.match(cells.known[0])
        return False
    x = np.asarray(column.to_numpy(), np.float64)
    values, counts = np.unique(x, return_counts=True)
    if len(values) >= MIN_FILLED * (values[-1] - values[0] + 1):
        return bool(1 + np.count_nonzero(np.diff(x)) == len(values))
    repeated = values[counts > 1]
    if any(np.mean(repeated % base == 0) >= share for base, share in MIN_ROUND):
        return False
    pairs = counts * (counts - 1) // 2
    ordered = np.sort(x)
    until = np.searchsorted(ordered, ordered + MAX_NEAR, side="right")
    near = int((until - np.arange(1, len(x) + 1)).sum() - pairs.sum())
    return bool(pairs.sum() - pairs.max() >= MIN_TIMES * near / (2 * MAX_NEAR))
