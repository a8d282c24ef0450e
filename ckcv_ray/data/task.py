"""Tables: checking them at the door, and the digest that names them.

Whatever the source, data arrive as Arrow columns; ``learning_table`` turns them into a checked ``Table``,
and everything behind it trusts what it gets.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.resampling import Index, hold_out
from ckcv_ray.data import named as datasets
from ckcv_ray.data.files import MOST_BYTES, SPARSE, SUFFIXES, from_matrix, read_file
from ckcv_ray.errors import InputError, counted
from ckcv_ray.learners.svm import scaling
from ckcv_ray.study import Study
from ckcv_ray.validation import as_array, as_path, expect, told

TARGETS = ("target", "y", "label", "class")
LEAST_ROWS = 6
LEAST_OF_CLASS = 2
LARGEST = 1e150  # squares of such numbers, and of their inverses, are the last that a float holds
SHOWN = 10_000
NUMBERS = (pa.types.is_integer, pa.types.is_floating)

Label = str | int | float | bool
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A checked learning set.

    Attributes:
        X: inputs, (n, d) float64, finite, C-contiguous.
        y: labels -1 or +1, (n,) int8.
        labels: the original labels of -1 and +1, in sorted order.
        features: the d column names.
        target: name of the label's column.
        source: where the rows came from, for people.
        whole: the table this is what is left of, where rows are held out.
        held_rows: their numbers in the whole, ascending.
        digest: SHA-256 of all of the above but the source; of the whole, where rows are held out.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int8]
    labels: tuple[Label, Label]
    features: tuple[str, ...]
    target: str
    source: str = ""
    whole: "Table | None" = None
    held_rows: Index | None = None
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        if self.whole is not None:
            object.__setattr__(self, "digest", self.whole.digest)
            return
        header = [self.features, self.target, self.labels, self.X.shape]
        content = hashlib.sha256(json.dumps(header).encode())
        content.update(np.ascontiguousarray(self.X + 0.0, dtype="<f8").data)  # -0.0 and 0.0 are one number
        content.update(np.ascontiguousarray(self.y).data)
        object.__setattr__(self, "digest", content.hexdigest())

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    def hold_out(self, rows: Index) -> "Table":
        """The table without ``rows``, which it keeps as ``held``.

        Raises:
            InputError: what is left is too little to learn from.
        """
        X, y = np.delete(self.X, rows, axis=0), np.delete(self.y, rows)
        fewest = min(np.sum(y < 0), np.sum(y > 0))
        if not len(rows) or len(y) < LEAST_ROWS or fewest < LEAST_OF_CLASS:
            raise InputError(
                f"holding out {len(rows)} of {self.n} rows leaves {len(y)}, {fewest} of the rarer class: "
                f"at least 1 is held out, and {LEAST_ROWS} with {LEAST_OF_CLASS} of each class are needed "
                "to learn from; change the share held out, or the seed"
            )
        return replace(self, X=X, y=y, whole=self, held_rows=rows)

    def rows(self, chosen: Index) -> "Table":
        """A table of some of the rows.

        Raises:
            InputError: a class has too few of them to learn from.
        """
        y = self.y[chosen]
        if min(np.sum(y < 0), np.sum(y > 0)) < LEAST_OF_CLASS:
            raise InputError(
                f"{len(chosen)} of the {self.n} rows, drawn at random, have fewer than {LEAST_OF_CLASS} of "
                "one class: nested selection needs more rows of it"
            )
        return replace(self, X=np.ascontiguousarray(self.X[chosen]), y=y)

    @property
    def held(self) -> "TestRows | None":
        """The rows held out, if any are."""
        if self.whole is None or self.held_rows is None:
            return None
        return TestRows(self.whole.X[self.held_rows], self.whole.y[self.held_rows])

    def columns(self) -> pa.Table:
        """Features and the target with its original labels, as Arrow columns; with the rows held out."""
        if self.whole is not None:
            return self.whole.columns()
        original = pa.array(self.labels).take(pa.array((self.y > 0).astype(np.int8)))
        return from_matrix(self.X, original, list(self.features), self.target)


@dataclass(frozen=True)
class TestRows:
    """Rows to measure a finished ensemble on: X [rows, d], y [rows] in {-1, +1}."""

    __test__ = False

    X: NDArray[np.float64]
    y: NDArray[np.int8]

    @property
    def digest(self) -> str:
        """SHA-256 of the rows."""
        return hashlib.sha256(np.column_stack([self.X + 0.0, self.y]).astype("<f8").tobytes()).hexdigest()


def divide(table: Table, study: Study) -> Table:
    """The table as the study's protocol divides it: without the rows it holds out.

    Raises:
        InputError: what is left is too little to learn from.
    """
    expect("study", study, Study, "a Study, such as Study(k=(3, 5, 10))")
    expect("table", table, Table, "a Table: make one with learning_table(columns)")
    if study.holdout_share is None or table.whole is not None:
        return table
    return table.hold_out(hold_out(table.n, study.holdout_share, study.seed))


def read(source: str | Path, ida_file: str | Path | None = None) -> datasets.Columns:
    """Columns of a file (CSV, Parquet, NPZ with X and y, svmlight) or of a named set.

    Raises:
        InputError: it does not exist, or is not what its name says.
    """
    expect("source", source, str | Path, "a file's path, nor a named set such as twonorm:400:0")
    archive = as_path("ida_file", ida_file) if ida_file is not None else None
    if datasets.is_named(name := str(source)):
        return datasets.load(name, archive)
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{name!r} is neither a file ending in {', '.join(SUFFIXES)} nor a named set ({datasets.FORMS})"
        )
    return datasets.Columns(read_file(path), None)


def learning_table(
    columns: pa.Table,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    source: str = "",
) -> Table:
    """A checked learning set from columns.

    Args:
        columns: one column for each feature, and the target.
        target: its name; by default the one column named target, y, label or class.
        features: names to learn from; by default every column but the target.
        drop: names not to learn from.
        source: where the columns came from, for people.

    Raises:
        InputError: a column is missing, empty, or not of finite numbers; the labels are not of two
            classes with 2 rows each; there are fewer than 6 rows; or nothing varies from row to row.
    """
    names = _unique_names(columns)
    target, known = _target_name(names, target), set(names)
    for argument, value in (("features", features), ("drop", drop)):
        expect(argument, value, list | tuple | None, "a list of column names")
        for name in value or ():
            if not (isinstance(name, str) and name in known):
                raise InputError(f"there is no column {told(name)}: the columns are {_some(names)}")
    left_out = {target, *(drop or [])}
    chosen = [name for name in dict.fromkeys(names if features is None else features) if name not in left_out]
    if not chosen:
        raise InputError(f"no feature is left beside the target {target!r}: mend --features and --drop")
    if columns.num_rows < LEAST_ROWS:
        raise InputError(
            f"the table has {counted(columns.num_rows, 'row')}: at least {LEAST_ROWS} are needed"
        )
    labels, y = _classes(columns[target], target)
    X = matrix(columns, chosen, optional=True)
    _check_spread(X, chosen)
    return Table(X, y, labels, tuple(chosen), target, source)


def table_from_arrays(X: ArrayLike, y: ArrayLike, source: str = "arrays") -> Table:
    """A checked learning set from X [n, d] (an array or a data frame) and y [n].

    Raises:
        InputError: as ``learning_table``, or shapes that do not fit.
    """
    inputs, labels = as_array("X", X), as_array("y", y)
    if inputs.ndim != 2 or labels.ndim != 1 or len(inputs) != len(labels):
        raise InputError(f"X has shape {inputs.shape} and y {labels.shape}: expected (n, d) and (n,)")
    names = _frame_names(X, inputs)
    target = next(name for name in (*TARGETS, "") if name not in (names or ()))
    return learning_table(_columns(inputs, labels, names, target), target, source=source)


def matrix(columns: pa.Table, features: list[str], optional: bool = False) -> NDArray[np.float64]:
    """The named columns as X [n, d] float64.

    Args:
        columns: what was read.
        features: names of the columns wanted, in order.
        optional: whether a bad column could be left out, for the message.

    Raises:
        InputError: a column is missing, empty, or not of finite numbers.
    """
    names = _unique_names(columns)
    place = {name: j for j, name in enumerate(names)}
    X = np.empty((columns.num_rows, len(features)))
    for i, name in enumerate(features):
        if name not in place:
            if (columns.schema.metadata or {}).get(SPARSE) and name.startswith("x"):
                X[:, i] = 0.0  # in a sparse file, absent means zero
                continue
            raise InputError(f"there is no column {name!r}: the columns are {_some(names)}")
        way_out = f"mend it, or leave it out with --drop {name[:60]} or --features" if optional else "mend it"
        X[:, i] = _finite(columns.column(place[name]), name, way_out)
    return X


def rows_of(X: ArrayLike, features: tuple[str, ...]) -> NDArray[np.float64]:
    """X [rows, d] as float64, C-contiguous; the columns of a data frame are matched by name.

    Raises:
        InputError: X has other columns, or numbers that are not finite.
    """
    rows = as_array("X", X)
    names = _frame_names(X, rows)
    if rows.ndim != 2 or (names is None and rows.shape[1] != len(features)):
        raise InputError(f"X has shape {rows.shape}: expected (rows, {len(features)})")
    return matrix(_columns(rows, None, names or list(features)), list(features))


def signs(column: pa.ChunkedArray, labels: tuple[Label, Label], target: str) -> NDArray[np.int8]:
    """A column of original labels as -1 and +1.

    Raises:
        InputError: a label is neither of the two.
    """
    values, place = _encoded(column, target)
    known = np.array([value is not None and value in labels for value in values], dtype=bool)
    if not known[place].all():
        unknown = values[place[int(np.argmin(known[place]))]]
        raise InputError(
            f"column {target!r} holds {unknown!r}: the labels are {labels[0]!r} and {labels[1]!r}"
        )
    positive = np.array([value == labels[1] for value in values], dtype=bool)
    return np.where(positive[place], 1, -1).astype(np.int8)


def rows_to_test(columns: pa.Table | None, table: Table) -> TestRows | None:
    """Rows to test on, matched by name to the learning set's columns; None for None.

    Raises:
        InputError: a feature or the target is missing, or a label is neither of the two.
    """
    expect("table", table, Table, "a Table: make one with learning_table(columns)")
    if columns is None:
        return None
    if table.target not in _unique_names(columns):
        raise InputError(f"the test rows have no column {table.target!r} with the labels")
    if not columns.num_rows:
        raise InputError("there are no rows to test on")
    y = signs(columns[table.target], table.labels, table.target)
    return TestRows(matrix(columns, list(table.features)), y)


def fitting(test: TestRows | None, table: Table) -> TestRows | None:
    """The rows to test on, checked against the learning set; None for None.

    Raises:
        InputError: they are not rows of its features, or have no labels -1 and +1.
    """
    expect("test", test, TestRows | None, "TestRows: make them with rows_to_test(columns, table)")
    if test is None:
        return None
    X, y = rows_of(test.X, table.features), as_array("y", test.y)
    if not len(X):
        raise InputError("there are no rows to test on")
    if y.shape != (len(X),) or not np.isin(y, (-1, 1)).all():
        raise InputError(f"y of the {len(X)} rows to test on has shape {y.shape}: expected -1 or 1 for each")
    return TestRows(X, y.astype(np.int8))


def known_rows(X: Rows, table: Table) -> int:
    """How many rows of X [rows, d] are rows that were learned from."""
    return int(np.isin(_as_items(X), _as_items(table.X)).sum())


def count_repeats(table: Table) -> int:
    """How many rows of a table equal another row in every column, the label among them."""
    _, counts = np.unique(_as_items(np.column_stack([table.X, table.y])), return_counts=True)
    return int(counts[counts > 1].sum())


def _as_items(rows: Rows) -> NDArray[np.void]:
    """Each row as one value, equal where all its numbers are."""
    items = np.ascontiguousarray(rows + 0.0)  # -0.0 and 0.0 are one number
    return items.view(np.dtype((np.void, items.itemsize * items.shape[1])))[:, 0]


def fit_scaling(X: NDArray[np.float64], how: str) -> scaling.Scaling:
    """Scaling of the kind a Study names, fitted on X [rows, d]."""
    return scaling.standard(X) if how == "standard" else scaling.identity(X.shape[1])


def _frame_names(X: ArrayLike, values: NDArray[Any]) -> list[str] | None:
    """Names of the columns where X is a data frame of these values."""
    if values.dtype.kind == "c":
        raise InputError("X is complex: features are real numbers")
    names = [str(name) for name in getattr(X, "columns", ())]
    if names and values.ndim == 2 and (len(names) != values.shape[1] or len(set(names)) < len(names)):
        raise InputError(
            f"X has {counted(values.shape[1], 'column')} named {_some(names)}: names must fit and differ"
        )
    return names or None


def _columns(X: NDArray[Any], y: NDArray[Any] | None, names: list[str] | None, target: str = "") -> pa.Table:
    try:
        return from_matrix(X, y, names, target)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(f"{'X' if y is None else 'X or y'} cannot be read as columns: {error}") from None


def _unique_names(columns: pa.Table) -> list[str]:
    expect("columns", columns, pa.Table, "a pyarrow.Table: see read(source).learn, or pyarrow.table")
    names: list[str] = columns.column_names
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"two columns are named {repeated[0]!r}: names must differ")
    return names


def _target_name(names: list[str], target: str | None) -> str:
    if target is not None:
        if target not in names:
            raise InputError(
                f"there is no column {told(target)} for the target: the columns are {_some(names)}"
            )
        return target
    found = [name for name in TARGETS if name in names]
    if len(found) != 1:
        which = f"columns {', '.join(found)} could all be" if found else f"none of {', '.join(TARGETS)} is"
        raise InputError(
            f"{which} the target: name it with --target; the columns are {_some(names)}{_slip(names)}"
        )
    return found[0]


def _slip(names: list[str]) -> str:
    """What may have gone wrong in a file of text with these columns."""
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        return " (columns are separated by commas)"
    if sum(map(is_number, names)) > len(names) / 2:
        return " (the first line has to name the columns)"
    return ""


def _encoded(column: pa.ChunkedArray, target: str) -> tuple[list[Any], Index]:
    """The distinct values of a column of labels, None for an empty cell; and which of them each row has."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    fine = (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, *NUMBERS)
    if not any(is_one(kind) for is_one in (*fine, pa.types.is_null)):
        raise InputError(f"the target {target!r} has type {kind}: labels are text or numbers")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode("encode")
    whole = column.unify_dictionaries().combine_chunks()
    values = whole.dictionary.to_pylist()
    place = whole.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return [*values, None], place.astype(np.intp)


def _classes(column: pa.ChunkedArray, target: str) -> tuple[tuple[Label, Label], NDArray[np.int8]]:
    values, place = _encoded(column, target)
    limit = inf if any(isinstance(value, float) for value in values) else 2**63
    bad = {i for i, v in enumerate(values) if v is None or v != v}
    if len(rows := np.flatnonzero(np.isin(place, list(bad)))):
        raise InputError(
            f"the target {target!r} has empty cells, the first in row {rows[0] + 1}: mend or drop them "
            "(in a CSV file, NA, null and nan are empty cells)"
        )
    counts = np.bincount(place, minlength=len(values)).tolist()
    found = {value: count for value, count in zip(values, counts, strict=True) if count}
    for value in found:
        if not isinstance(value, str) and not (isfinite(value) and abs(value) < limit):
            row = int(np.argmax(place == values.index(value))) + 1
            raise InputError(
                f"the target {target!r} has {value} in row {row}: labels are text or finite numbers"
            )
    classes = sorted(found)
    if len(classes) != 2:
        raise InputError(
            f"the target {target!r} has {counted(len(classes), 'class', 'classes')} ({_some(classes)}): "
            "expected 2"
        )
    labels = (classes[0], classes[1])
    if len(place) * max(len(str(label)) for label in labels) > MOST_BYTES:
        raise InputError(f"the labels of {target!r} take more than {MOST_BYTES >> 20:,} MiB: shorten them")
    for label in labels:
        if (count := found[label]) < LEAST_OF_CLASS:
            raise InputError(f"class {label!r} has {count} row: each needs at least {LEAST_OF_CLASS}")
    return labels, signs(column, labels, target)


def _finite(column: pa.ChunkedArray, name: str, way_out: str) -> NDArray[np.float64]:
    if len(column) and column.null_count == len(column):
        raise InputError(f"column {name!r} is empty: {way_out}")
    kind = column.type
    if not any(is_one(kind) for is_one in (*NUMBERS, pa.types.is_boolean)):
        raise InputError(f"column {name!r} holds {kind}{_example(column)}, not numbers: {way_out}")
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy())) + 1
        raise InputError(
            f"column {name!r} has {counted(column.null_count, 'empty cell')}, the first in row {row}: "
            f"{way_out}"
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    values = np.asarray(column.to_numpy(), dtype=np.float64)
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"column {name!r} has {values[row]} in row {row + 1}: {way_out}")
    if np.max(np.abs(values), initial=0.0) > LARGEST:
        row = int(np.argmax(np.abs(values)))
        raise InputError(
            f"column {name!r} has {values[row]} in row {row + 1}: at most {LARGEST:g} can be computed with, "
            f"and a number that stands for a missing value is none; {way_out}"
        )
    return values


def _check_spread(X: NDArray[np.float64], names: list[str]) -> None:
    """Raise InputError where no column varies, or one has numbers too small to be computed with."""
    low, high = X.min(axis=0), X.max(axis=0)
    if np.array_equal(low, high):
        raise InputError(f"nothing varies from row to row in {_some(names)}: there is nothing to learn from")
    most = np.maximum(high, -low)
    if len(small := np.flatnonzero((most > 0) & (most < 1 / LARGEST))):
        name, value = names[small[0]], most[small[0]]
        raise InputError(
            f"column {name!r} has no number beyond {value:g}: at least {1 / LARGEST:g} can be computed with; "
            f"take another unit, or leave it out with --drop {name[:60]} or --features"
        )


def _example(column: pa.ChunkedArray) -> str:
    """A value of the column for a message: one that is no number, if there is one among the first."""
    if pa.types.is_dictionary(column.type):
        column = column.slice(0, SHOWN).cast(column.type.value_type)
    values: list[str] = []
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = [value for value in column.slice(0, SHOWN).to_pylist() if value is not None]
    else:
        with suppress(ValueError, OverflowError, pa.ArrowException):  # a time beyond what Python knows
            values = [str(column.drop_null()[0].as_py())]
    shown = next((value for value in values if not is_number(value)), values[0] if values else None)
    return "" if shown is None else f" such as {shown[:40]!r}"


def is_number(value: str) -> bool:
    """Whether text reads as a float."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def _some(names: Any, most: int = 12) -> str:
    shown = [str(name)[:60] for name in names[:most]]
    return ", ".join(shown) + (f", ... ({len(names)} in all)" if len(names) > most else "")
