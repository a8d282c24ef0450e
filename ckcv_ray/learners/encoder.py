"""Encoders: what makes numbers without gaps of a table's columns, fitted to the training rows of a split.

Scikit-learn's transformers are fitted; what is kept of them is what they make of each value: numbers that
anybody can read, stored with every model.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.data.columns import Column, ColumnKind, Schema
from ckcv_ray.data.schema import Index, Rows
from ckcv_ray.data.task import Task
from ckcv_ray.validation import read_as

DAY = 86_400_000.0  # milliseconds
PARTS = ("days", "year", "month", "day", "weekday", "hour")  # of a date
LEAST_RARE = 2  # rows
RARE = 0.01


class Categories(StrEnum):
    """How categories become numbers."""

    AUTO = "auto"
    ONEHOT = "onehot"
    ORDINAL = "ordinal"


class Gaps(StrEnum):
    """What fills gaps in numbers and dates; a column of its own says where they were."""

    MEDIAN = "median"
    MEAN = "mean"
    MOST_FREQUENT = "most_frequent"


@dataclass(frozen=True)
class Encoding:
    """How columns become numbers, fitted in every split.

    Attributes:
        categories: one column for each category ("onehot"), one number ("ordinal"), or as suits the learner.
        gaps: what fills gaps in numbers and dates. A gap in a category is a category.
        rare: share of the training rows below which categories are joined.
    """

    categories: Categories = Categories.AUTO
    gaps: Gaps = Gaps.MEDIAN
    rare: float = RARE

    def suited(self, trees: bool) -> "Encoding":
        """Return the encoding with ``auto`` replaced: trees split numbers, other learners need columns."""
        if self.categories is not Categories.AUTO:
            return self
        return replace(self, categories=Categories.ORDINAL if trees else Categories.ONEHOT)

    def width(self, schema: Schema) -> int:
        """Return the largest number of columns that a table can become."""
        columns = 0
        for one in schema:
            if one.kind is ColumnKind.CATEGORY:
                columns += len(one.levels) + 1 if self.categories is not Categories.ORDINAL else 1
            else:
                columns += 2 * (len(PARTS) if one.kind is ColumnKind.DATE else 1)
        return columns

    def fit(self, task: Task, train: Index) -> "Encoder":
        """Fit an encoder to some rows of a task, on which alone it depends."""
        assert task.schema is not None
        X, columns = expanded(task.X[train], task.schema), expanded_columns(task.schema)
        categorical = np.array([bool(one.levels) for one in columns])
        numbers = iter(self._fit_numbers(X[:, ~categorical]))
        fitted = (
            self._fit_levels(X[:, [i]], len(one.levels)) if one.levels else next(numbers)
            for i, one in enumerate(columns)
        )
        return Encoder(tuple(fitted), task.schema)

    def _fit_numbers(self, X: Rows) -> "list[Numbers]":
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import StandardScaler

        if not X.shape[1]:
            return []
        imputer = SimpleImputer(strategy=str(self.gaps), keep_empty_features=True).fit(X)
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.categories is not Categories.ORDINAL:
            scaler = StandardScaler().fit(imputer.transform(X))
            mean, scale = scaler.mean_, scaler.scale_
        parts = imputer.statistics_, np.isnan(X).any(axis=0), mean, scale
        return [Numbers(*one) for one in zip(*(part.tolist() for part in parts), strict=True)]

    def _fit_levels(self, values: Rows, n_levels: int) -> "Levels":
        from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

        least = max(LEAST_RARE, int(np.ceil(self.rare * len(values))))
        unseen_and_gap = (float(n_levels), np.nan)
        every = np.append(np.arange(float(n_levels)), unseen_and_gap)[:, None]
        if self.categories is Categories.ORDINAL:
            ordinal = OrdinalEncoder(
                handle_unknown="use_encoded_value",
                unknown_value=-1,
                encoded_missing_value=-2,
                min_frequency=least,
            )
            return Levels(tuple(ordinal.fit(values).transform(every)[:, 0].tolist()), 0)
        onehot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=least, sparse_output=False)
        columns = onehot.fit(values).transform(every)
        place = np.where(columns.any(axis=1), columns.argmax(axis=1), -1).astype(np.float64)
        return Levels(tuple(place.tolist()), columns.shape[1])


@dataclass(frozen=True)
class Numbers:
    """What becomes of a column of numbers, x: (x - mean) / scale, and a column of ones where x is missing.

    Attributes:
        fill: stands for a missing x.
        missing: whether there is a column that says where x is missing: where the training rows had gaps.
        mean, scale: 0 and 1 for learners that need no scaling.
    """

    fill: float
    missing: bool
    mean: float
    scale: float

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(f"its encoder divides by {self.scale}")

    def columns(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield the columns that x (rows,) becomes."""
        gap = np.isnan(x)
        yield (np.where(gap, self.fill, x) - self.mean) / self.scale
        if self.missing:
            yield gap.astype(np.float64)


@dataclass(frozen=True)
class Levels:
    """What becomes of a column of categories.

    Attributes:
        value: for each level, for one that was never seen, and for a gap, its number; or with ``width`` the
            position of its column of ones, -1 for none.
        width: number of such columns; 0 for a number.
    """

    value: tuple[float, ...]
    width: int

    def __post_init__(self) -> None:
        if self.width and not set(self.value) <= set(range(-1, self.width)):
            raise ValueError("its encoder puts a category into a column that does not exist")

    def columns(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield the columns that level numbers x (rows,) become."""
        found = np.array(self.value)[np.where(np.isnan(x), len(self.value) - 1, x).astype(np.intp)]
        if not self.width:
            yield found
        for position in range(self.width):
            yield (found == position).astype(np.float64)


@dataclass(frozen=True)
class Encoder:
    """A fitted encoder.

    Attributes:
        fitted: what becomes of each column of ``expanded`` rows.
        schema: the columns it was fitted to.
    """

    fitted: tuple[Numbers | Levels, ...]
    schema: Schema

    def transform(self, X: Rows) -> Rows:
        """Return rows X [rows, d] of a table as numbers without gaps; each depends on itself alone."""
        raw = expanded(X, self.schema)
        return np.column_stack([c for i, one in enumerate(self.fitted) for c in one.columns(raw[:, i])])

    def task(self, task: Task) -> Task:
        """Return a task whose columns are numbers."""
        X = self.transform(task.X)
        features = tuple(f"x{i}" for i in range(X.shape[1]))
        return replace(task, X=X, features=features, schema=None, unlabelled=None)

    @property
    def text(self) -> str:
        """The encoder as JSON."""
        return json.dumps([asdict(one) for one in self.fitted])

    @classmethod
    def of(cls, text: str, schema: Schema) -> Self:
        """Return the encoder whose ``text`` is given, by anybody.

        Raises:
            ValueError: it is not one for these columns.
        """
        columns, content = expanded_columns(schema), json.loads(text)
        if not isinstance(content, list) or len(content) != len(columns):
            raise ValueError(f"its encoder is not for {len(columns)} columns")
        fitted = tuple(_read(one, column) for one, column in zip(content, columns, strict=True))
        return cls(fitted, schema)


def _read(content: Any, column: Column) -> Numbers | Levels:
    kind: Any = Levels if column.levels else Numbers
    if not isinstance(content, dict) or set(content) != {field.name for field in fields(kind)}:
        raise ValueError(f"its encoder of {column.name[:60]!r} is not one of {kind.__name__.lower()}")
    if kind is Numbers:
        return read_as(Numbers, content)
    levels = read_as(Levels, content)
    if len(levels.value) != len(column.levels) + 2:
        raise ValueError(f"its encoder has another number of categories than {column.name[:60]!r}")
    return levels


def expanded(X: Rows, schema: Schema) -> Rows:
    """Return rows X [rows, d] with each date replaced by its parts, as numbers; gaps stay gaps."""
    columns: list[Any] = []
    for i, one in enumerate(schema):
        columns += _parts(X[:, i]) if one.kind is ColumnKind.DATE else [X[:, i]]
    return np.column_stack(columns)


def expanded_columns(schema: Schema) -> Schema:
    """Return what the columns of ``expanded`` rows hold: numbers or categories."""
    columns: list[Column] = []
    for one in schema:
        parts = [Column(f"{one.name}.{part}") for part in PARTS]
        columns += parts if one.kind is ColumnKind.DATE else [one]
    return tuple(columns)


def _parts(milliseconds: Any) -> list[Any]:
    """Return ``PARTS`` of dates, nan for gaps."""
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
