"""Encoders: what makes numbers without gaps of a table's columns, fitted to the training rows of a split.

What is kept of each fitted transformer is what it makes of each value: numbers that anybody can read, stored
with every model.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from ckcv_ray.core.arrays import Values
from ckcv_ray.tables.columns.schema import Schema
from ckcv_ray.tables.columns.types import Column, ColumnKind
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import read_as

PART = 1 << 12  # rows encoded at once, whose columns then fit into a processor's cache
DAY = 86_400_000.0  # milliseconds
PARTS = ("days", "year", "month", "day", "weekday", "hour")  # of a date
TargetFolds = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Numbers:
    """What becomes of a column of numbers, x: (x - mean) / scale, and a column of ones where x is missing."""

    fill: float  # stands for a missing x
    missing: bool  # whether there is a column that says where x is missing: where the training rows had gaps
    mean: float  # 0 for learners that need no scaling
    scale: float  # 1 for these

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(f"its encoder divides by {self.scale}")

    def columns(self, x: Values, fold: int | None = None) -> Iterator[Values]:
        """Yield the columns that x (rows,) becomes, in any fold."""
        gap = np.isnan(x)
        yield (np.where(gap, self.fill, x) - self.mean) / self.scale
        if self.missing:
            yield gap.astype(np.float64)


@dataclass(frozen=True)
class Levels:
    """What becomes of a column of categories."""

    # for each level, for one that was never seen, and for a gap, its number; or with ``width`` the position
    # of its column of ones, -1 for none
    value: tuple[float, ...]
    width: int  # number of such columns; 0 for a number

    def __post_init__(self) -> None:
        if self.width and not set(self.value) <= set(range(-1, self.width)):
            raise ValueError("its encoder puts a category into a column that does not exist")

    def columns(self, x: Values, fold: int | None = None) -> Iterator[Values]:
        """Yield the columns that level numbers x (rows,) become, in any fold."""
        found = _map_levels(self.value, x)
        if not self.width:
            yield found
        for position in range(self.width):
            yield (found == position).astype(np.float64)


@dataclass(frozen=True)
class Means:
    """What becomes of a column of categories by the shares of classes in them.

    A training row is given the shares among the training rows of other folds, since it is one of the rows
    that those of all tell of.
    """

    # for each class that is counted, its share in each level, in one that was never seen, and where there is
    # a gap
    of_all: tuple[tuple[float, ...], ...]
    # the same for each fold, of the training rows that are not in it
    of_others: tuple[tuple[tuple[float, ...], ...], ...]

    def columns(self, x: Values, fold: int | None = None) -> Iterator[Values]:
        """Yield the columns that level numbers x become, of training rows of a fold or of new rows."""
        for value in self.of_all if fold is None else self.of_others[fold]:
            yield _map_levels(value, x)


@dataclass(frozen=True)
class Encoder:
    """A fitted encoder."""

    fitted: tuple[Numbers | Levels | Means, ...]  # one for each column, dates expanded
    schema: Schema  # the columns it was fitted to
    folds: TargetFolds = ()  # numbers of the training rows in each fold of ``Means``; empty if there are none

    def transform(self, X: Rows, fold: int | None = None) -> Rows:
        """Return rows X [rows, d] of a table as numbers without gaps; each depends on itself alone.

        Args:
            X: new rows, or if ``fold`` is given training rows of that fold.
            fold: see there.
        """
        first = self._transform_part(X[:PART], fold)
        if len(X) <= PART:
            return first
        numbers = np.empty((len(X), first.shape[1]))
        numbers[:PART] = first
        for start in range(PART, len(X), PART):
            numbers[start : start + PART] = self._transform_part(X[start : start + PART], fold)
        return numbers

    def _transform_part(self, X: Rows, fold: int | None) -> Rows:
        """Return so few rows as numbers that their columns are put together within the processor's cache."""
        raw = expand_dates(X, self.schema)
        return np.column_stack(
            [c for i, column in enumerate(self.fitted) for c in column.columns(raw[:, i], fold)]
        )

    def task(self, task: Task) -> Task:
        """Return the task of which rows it was fitted to, with numbers as columns."""
        X = self.transform(task.X)
        for fold, rows in enumerate(map(list, self.folds)):
            X[rows] = self.transform(task.X[rows], fold)
        return task.with_numbers(X, (f"x{i}" for i in range(X.shape[1])))

    @property
    def text(self) -> str:
        """The encoder as JSON."""
        return json.dumps({"columns": [asdict(column) for column in self.fitted], "folds": self.folds})

    @classmethod
    def from_json(cls, text: str, schema: Schema, n_rows: int) -> Self:
        """Return the encoder whose ``text`` is given, by anybody, of a table with ``n_rows``.

        Raises:
            ValueError: it is not one for these columns.
        """
        columns, content = list_expanded_columns(schema), json.loads(text)
        if not isinstance(content, dict) or set(content) != {"columns", "folds"}:
            raise ValueError("its encoder does not have columns and folds")
        if not isinstance(content["columns"], list) or len(content["columns"]) != len(columns):
            raise ValueError(f"its encoder is not for {len(columns)} columns")
        folds = tuple(read_as(list[tuple[int, ...]], content["folds"]))
        rows = [row for fold in folds for row in fold]
        if len(set(rows)) != len(rows) or not all(0 <= row < n_rows for row in rows):
            raise ValueError(f"its encoder has folds of rows that are not below {n_rows}, or in two folds")
        pairs = zip(content["columns"], columns, strict=True)
        return cls(tuple(_read_column(*pair, len(folds)) for pair in pairs), schema, folds)


def _map_levels(value: tuple[float, ...], x: Values) -> Values:
    """Return what is said of each level number in x (rows,); the last is said of gaps."""
    return np.array(value)[np.where(np.isnan(x), len(value) - 1, x).astype(np.intp)]


def _read_column(content: Any, column: Column, n_folds: int) -> Numbers | Levels | Means:
    kind: Any = Levels if column.levels else Numbers
    if column.levels and isinstance(content, dict) and "of_all" in content:
        kind = Means
    if not isinstance(content, dict) or set(content) != {field.name for field in fields(kind)}:
        raise ValueError(f"its encoder of {column.name[:60]!r} is not one of {kind.__name__.lower()}")
    read: Numbers | Levels | Means = read_as(kind, content)
    if isinstance(read, Means) and len(read.of_others) != n_folds:
        raise ValueError(f"its encoder of {column.name[:60]!r} has another number of folds than {n_folds}")
    if any(len(values) != len(column.levels) + 2 for values in _list_values(read)):
        raise ValueError(f"its encoder has another number of categories than {column.name[:60]!r}")
    if isinstance(read, Means) and any(len(fold) != len(read.of_all) for fold in read.of_others):
        raise ValueError(f"its encoder of {column.name[:60]!r} counts other classes in a fold")
    return read


def _list_values(read: Numbers | Levels | Means) -> Iterator[tuple[float, ...]]:
    match read:
        case Levels():
            yield read.value
        case Means():
            yield from read.of_all
            for fold in read.of_others:
                yield from fold


def expand_dates(X: Rows, schema: Schema) -> Rows:
    """Return rows X [rows, d] with each date replaced by its parts, as numbers; gaps stay gaps.

    Without a date these are the rows themselves.
    """
    if all(column.kind is not ColumnKind.DATE for column in schema):
        return X
    columns: list[Any] = []
    for i, column in enumerate(schema):
        columns += _split_dates(X[:, i]) if column.kind is ColumnKind.DATE else [X[:, i]]
    return np.column_stack(columns)


def list_expanded_columns(schema: Schema) -> tuple[Column, ...]:
    """Return what the columns of rows with expanded dates hold: numbers or categories."""
    columns: list[Column] = []
    for column in schema:
        parts = [Column(f"{column.name}.{part}") for part in PARTS]
        columns += parts if column.kind is ColumnKind.DATE else [column]
    return tuple(columns)


def find_gap_columns(schema: Schema) -> list[bool]:
    """Return for each number in expanded rows whether it says where gaps are: the first of a date does."""
    each: list[bool] = []
    for column in schema:
        if column.kind is not ColumnKind.CATEGORY:
            each += [True] + [False] * (len(PARTS) - 1 if column.kind is ColumnKind.DATE else 0)
    return each


def _split_dates(milliseconds: Any) -> list[Any]:
    gap = np.isnan(milliseconds)
    stamps = np.where(gap, 0.0, milliseconds).astype(np.int64).astype("datetime64[ms]")
    days, months, years = (stamps.astype(f"datetime64[{unit}]") for unit in "DMY")
    since = days.astype(np.int64)
    parts = (
        stamps.astype(np.int64) / DAY,
        years.astype(np.int64) + 1970,
        (months - years).astype(np.int64) + 1,
        (days - months).astype(np.int64) + 1,
        (since + 3) % 7,  # 0 is Monday
        (stamps - days).astype(np.int64) / (DAY / 24),
    )
    return [np.where(gap, np.nan, part.astype(np.float64)) for part in parts]
