"""Learning tasks: tables checked once, and the digest that identifies them.

Whatever the source, data arrive as Arrow columns; ``learning_task`` turns them into a checked ``Task``, which
no other code has to check again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.measures import Kind
from ckcv_ray.data import named
from ckcv_ray.data.cells import find_alike, take_in_parts, typed_column
from ckcv_ray.data.chosen import TARGETS, check_asked, check_chosen, target_name
from ckcv_ray.data.columns import (
    NewRows,
    is_plain,
    narrow,
    read_values,
    to_arrow,
    translate,
    understand,
)
from ckcv_ray.data.files import (
    AS_IT_IS,
    SUFFIXES,
    Reading,
    from_matrix,
    index_names,
    read_file,
    suffix_of,
)
from ckcv_ray.data.frames import columns_of
from ckcv_ray.data.grouping import (
    Groups,
    check_groups,
    group_numbers,
    groups_column,
    name_of_groups,
    question,
    renumbered,
)
from ckcv_ray.data.kinds import NOTHING_ASKED, Asked, Column, Schema
from ckcv_ray.data.schema import (
    LEAST_OF_CLASS,
    Index,
    Label,
    Rows,
    canonical,
    check_classes,
    check_spread,
    class_numbers,
    classes_of,
    numbers_of,
    some,
    unique_names,
)
from ckcv_ray.errors import InputError, counted
from ckcv_ray.validation import as_array, as_path, expect

LEAST_ROWS = 6
Target = NDArray[Any]  # of class numbers, or of numbers to predict


@dataclass(frozen=True)
class Task:
    """A checked learning task.

    Attributes:
        X: inputs, (n, d) float64, C-contiguous: finite numbers if there is no ``schema``, else see
            ``columns``: nan for gaps, numbers of levels for categories, milliseconds for dates.
        y: class numbers 0 .. n_classes - 1, (n,); or the numbers to predict, float64.
        classes: the original label of each class, in sorted order; empty if numbers are predicted.
        features: the d column names.
        target: name of the label column.
        source: where the rows came from, for display.
        groups: the group of each row, numbered from 0 in the order of first appearance, (n,); None if the
            rows are independent.
        group: name of the column of groups; None without groups.
        question: asks about a column that looks like groups, for display; "" if there is none.
        unlabelled: rows without labels, (rows, d), which only certify; None if there are none.
        schema: how the columns are understood; None if they are numbers without gaps.
        forms: how the columns are understood that are such numbers, if they were written in some form.
        fills: what stands for a gap in each column, (d,), where these rows have none, and others of their
            table do; None where a row with a gap cannot be judged, or ``schema`` says that gaps are known.
    """

    X: Rows
    y: Target
    classes: tuple[Label, ...]
    features: tuple[str, ...]
    target: str
    source: str = ""
    groups: Groups | None = None
    group: str | None = None
    question: str = ""
    unlabelled: Rows | None = None
    schema: Schema | None = None
    forms: Schema | None = None
    fills: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: ArrayLike,
        source: str = "arrays",
        groups: ArrayLike | None = None,
        asked: Asked = NOTHING_ASKED,
        lonely: bool = False,
        numbers: bool = False,
    ) -> "Task":
        """Make a task from X [n, d], y [n] and, if given, groups [n].

        X is a data frame (pandas, polars, Arrow), an array, or a sparse matrix. Rows with equal values in
        ``groups`` (text or whole numbers) belong together, such as the visits of one patient; groups are
        independent of each other. ``asked`` says which columns are categories, numbers or dates where their
        values do not. A class with a single row is refused unless ``lonely``. With ``numbers`` y has no
        labels of classes, but numbers to predict.

        Raises:
            InputError: as for ``learning_task``, or the shapes do not match.
        """
        labels = as_array("y", y)
        columns, group = columns_of(X), None
        if labels.shape != (columns.num_rows,):
            shape = (columns.num_rows, columns.num_columns)
            raise InputError(f"X has shape {shape} and y {labels.shape}: expected (n, d) and (n,)")
        target = next(name for name in (*TARGETS, "") if name not in columns.column_names)
        columns = columns.append_column(target, _labels(labels))
        if groups is not None:
            group = name_of_groups(columns.column_names)
            columns = columns.append_column(group, groups_column(groups, len(labels)))
        task = stored_task(columns, target, source=source, group=group, asked=asked, numbers=numbers)
        return task.checked(lonely)

    def checked(self, lonely: bool = False) -> "Task":
        """Return the task, to be learned from.

        Raises:
            InputError: it has too few groups, or unless ``lonely`` a class with a single row.
        """
        if not (lonely or self.has_numbers):
            check_classes(self.classes, self.y, self.target)
        if self.groups is not None:
            assert self.group is not None
            check_groups(self.groups, self.group)
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything except the source."""
        return _digest(self)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_units(self) -> int:
        """Number of independent units: groups, or rows if there are none."""
        return self.n if self.groups is None else int(self.groups.max(initial=-1)) + 1

    @property
    def unit(self) -> str:
        """The word for a unit: "group" or "row"."""
        return "row" if self.groups is None else "group"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are predicted, and not classes."""
        return not self.classes

    @property
    def kind(self) -> Kind:
        """Kind of the target."""
        if self.has_numbers:
            return Kind.REGRESSION
        return Kind.BINARY if self.n_classes == 2 else Kind.MULTICLASS

    @property
    def rarest_class_rows(self) -> int:
        """Number of rows of the rarest class."""
        return int(np.bincount(self.y, minlength=self.n_classes).min())

    def without(self, rows: Index) -> "Task":
        """Return the task without ``rows``, which are held out, as the rows that are left are understood.

        What the rows held out hold has no part in it: neither their gaps nor their categories.

        Raises:
            InputError: too few rows are left to learn from, or a column is empty in all of them.
        """
        kept = self._part(np.delete(np.arange(self.n), rows))
        if not len(rows) or kept.n_units < LEAST_ROWS or kept.rarest_class_rows < LEAST_OF_CLASS:
            groups = "" if kept.groups is None else f" in {counted(kept.n_units, 'group')}"
            of_class = f"{LEAST_OF_CLASS} {'rows ' if groups else ''}of each class"
            raise InputError(
                f"holding out {len(rows)} of {self.n} rows leaves {kept.n}{groups}, {kept.rarest_class_rows} "
                f"of the rarest class: hold out at least 1{' group' if groups else ''}, and leave at least "
                f"{LEAST_ROWS}{' groups' if groups else ''} to learn from, with {of_class}; change the share "
                "held out, not the seed (which would void what is proven)"
            )
        return kept._by_itself()

    def _by_itself(self) -> "Task":
        """Return the task with its columns understood from its own rows; which are numbers stays."""
        if self.schema is None:
            return self
        schema = narrow(self.schema, self.X)
        if not is_plain(schema, self.X):
            return replace(self, schema=schema, X=translate(self.X, self.schema, schema))
        check_spread(self.X, list(self.features), plain=True)
        return replace(self, schema=None, forms=_forms(schema))

    def recode(self, rows: Rows, table: "Task") -> Rows:
        """Return rows [rows, d] of the table of which this task has some as these are understood.

        A category that these do not hold was never seen, and a gap is filled if they have none anywhere.
        """
        if table.schema is None or table.schema == self.schema:
            return rows
        return self._filled(rows) if self.schema is None else translate(rows, table.schema, self.schema)

    def _filled(self, rows: Rows) -> Rows:
        return rows if self.fills is None else np.where(np.isnan(rows), self.fills, rows)

    def rows(self, chosen: Index) -> "Task":
        """Return the task on some of its rows.

        Raises:
            InputError: a class has too few of these rows to learn from.
        """
        self.check_part(chosen)
        return self._part(chosen)

    def check_part(self, chosen: Index) -> None:
        """Raise InputError if a class has too few of some rows to learn from."""
        if self.scarce_class(chosen) is not None:
            raise InputError(
                f"{len(chosen)} of the {self.n} rows, drawn at random, have fewer than {LEAST_OF_CLASS} of "
                "one class: nested selection needs more rows of it; another seed would void what is proven"
            )

    def scarce_class(self, chosen: Index) -> int | None:
        """Return the first class with too few of some rows to learn from; None if there is none."""
        few = np.flatnonzero(np.bincount(self.y[chosen], minlength=self.n_classes) < LEAST_OF_CLASS)
        return int(few[0]) if len(few) else None

    def _part(self, chosen: Index) -> "Task":
        groups = None if self.groups is None else renumbered(self.groups[chosen])
        X = np.ascontiguousarray(self.X[chosen])
        return replace(self, X=X, y=self.y[chosen], groups=groups, unlabelled=None)

    def with_unlabelled(self, columns: pa.Table) -> "Task":
        """Return the task with rows without labels; their columns are matched by name.

        Raises:
            InputError: there are none, a feature is missing, or they have the column of the labels.
        """
        if self.target in unique_names(columns):
            raise InputError(
                f"the unlabelled rows have the column {self.target!r} of the labels: rows with labels are "
                "learned from, so add them to the data, or leave out that column"
            )
        if not columns.num_rows:
            raise InputError("there are no unlabelled rows")
        return replace(self, unlabelled=self.rows_from(columns))

    def read(self, columns: pa.Table) -> NewRows:
        """Return the rows of a table as numbers, its columns matched by name, and which cannot be judged.

        Raises:
            InputError: a feature is missing, or a whole column is of another kind.
        """
        schema = self.schema or self.forms or tuple(map(Column, self.features))
        rows = read_values(columns, schema, plain=self.schema is None and self.fills is None)
        return rows._replace(X=self._filled(rows.X))

    def rows_from(self, columns: pa.Table) -> Rows:
        """Return the rows of a table as numbers (rows, d), its columns matched by name.

        Raises:
            InputError: a feature is missing, or a value cannot be judged.
        """
        rows = self.read(columns)
        rows.check()
        return rows.X

    def scored(self, rows: Index) -> "TestRows":
        """Return some of the rows, to be scored."""
        return TestRows(self.X[rows], self.y[rows], self.groups_of(rows))

    def groups_of(self, rows: Index) -> Groups | None:
        """Return the groups of some rows; None without groups."""
        return None if self.groups is None else self.groups[rows]

    def labelled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the original labels of class numbers; numbers that are predicted are their own."""
        if self.has_numbers:
            return numbers
        original: NDArray[Any] = np.array(self.classes)
        return np.take(original, numbers)

    def columns(self) -> pa.Table:
        """Return the features, the target with its original labels, and the numbers of the groups, if any."""
        columns = self.as_columns(self.X)
        labels = pa.array(self.y)
        if not self.has_numbers:
            classes = pa.array(self.classes)
            labels = pa.chunked_array(take_in_parts(classes, labels), classes.type)
        columns = columns.append_column(self.target, labels)
        return columns if self.groups is None else columns.append_column(self.group, pa.array(self.groups))

    def as_columns(self, X: Rows) -> pa.Table:
        """Return rows X [rows, d] as the columns that they were read from."""
        if self.schema is None:
            return from_matrix(X, None, list(self.features))
        return pa.table({one.name: to_arrow(X[:, i], one) for i, one in enumerate(self.schema)})


@dataclass(frozen=True)
class TestRows:
    """Test rows for a finished ensemble: X [rows, d], y [rows] as in a task, and groups [rows] or None."""

    __test__ = False

    X: Rows
    y: Target
    groups: Groups | None = None

    def none(self) -> "TestRows":
        """Return no rows, of the same kind."""
        return TestRows(self.X[:0], self.y[:0], None if self.groups is None else self.groups[:0])

    @property
    def digest(self) -> str:
        """SHA-256 of the rows."""
        return hashlib.sha256(
            np.column_stack([canonical(self.X), self.y]).astype("<f8").tobytes()
        ).hexdigest()


def read(
    source: str | Path,
    ida_file: str | Path | None = None,
    reading: Reading = AS_IT_IS,
) -> named.Columns:
    """Read the columns of a file (CSV, Parquet, Feather, Excel, NPZ, svmlight) or of a named set.

    Cells of text tables are text, as they are written.

    Args:
        source: a file's path, or a named set such as twonorm:400:0.
        ida_file: archive of the ``ida:`` sets.
        reading: what the file does not say about itself.

    Raises:
        InputError: the source does not exist or cannot be read.
    """
    expect("source", source, str | Path, "a file's path or a named set such as twonorm:400:0")
    archive = as_path("ida_file", ida_file) if ida_file is not None else None
    if named.is_named(name := str(source)):
        if given := [option for option, value in reading._asdict().items() if value is not None]:
            raise InputError(f"{given[0]} is for files, and {name!r} is a named set: leave it out")
        return named.load(name, archive)
    path = Path(source)
    if suffix_of(path) not in SUFFIXES:
        raise InputError(
            f"{name!r} is neither a file ending in {', '.join(SUFFIXES)} nor a named set ({named.FORMS})"
        )
    return named.Columns(read_file(path, reading), None)


def read_task(
    source: str | Path,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    ida_file: str | Path | None = None,
    group: str | None = None,
    asked: Asked = NOTHING_ASKED,
) -> tuple[Task, TestRows | None]:
    """Read a task, and test rows if a named set has any.

    Args:
        source: a file's path, or a named set such as twonorm:400:0.
        target, features, drop, group, asked: as for ``learning_task``.
        ida_file: archive of the ``ida:`` sets.

    Raises:
        InputError: the source cannot be read or learned from.
    """
    columns = read(source, ida_file)
    task = learning_task(columns.learn, target, features, drop, str(source), group, asked)
    return task, make_test_rows(columns.test, task)


def learning_task(
    columns: pa.Table,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    source: str = "",
    group: str | None = None,
    asked: Asked = NOTHING_ASKED,
    numbers: bool = False,
) -> Task:
    """Make a task from a table, checking its columns.

    Args:
        columns: one column for each feature, and the target.
        target: its name; by default the one column named target, y, label or class.
        features: names of the columns to learn from; by default every column but the target and the groups.
        drop: names of columns to leave out.
        source: where the columns came from, for display.
        group: name of the column whose equal values (text, whole numbers) mark rows that belong together.
        asked: columns whose kind is said instead of decided by their values.
        numbers: whether the target has numbers to predict, and not classes.

    Raises:
        InputError: a column is missing, empty, or of mixed kinds; there are fewer than two classes, or
            fewer than 2 rows of a class; there are fewer than 6 rows; no column varies; or the groups have
            gaps, are fewer than 6, or have one row each.
    """
    return stored_task(columns, target, features, drop, source, group, asked, numbers=numbers).checked()


def stored_task(
    columns: pa.Table,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    source: str = "",
    group: str | None = None,
    asked: Asked = NOTHING_ASKED,
    schema: Schema | None = None,
    numbers: bool = False,
) -> Task:
    """Make a task as ``learning_task`` does; some rows of a task may have few groups, or rows of a class.

    ``schema`` says how the columns are understood, if they were before.
    """
    names = unique_names(columns)
    target = target_name(names, target)
    check_chosen(names, target, features, drop, group)
    left_out = {target, group, *(drop or [])} | (index_names(columns) if features is None else set())
    chosen = [name for name in dict.fromkeys(names if features is None else features) if name not in left_out]
    if not chosen:
        raise InputError(f"no feature is left besides the target {target!r}: correct --features and --drop")
    if columns.num_rows < LEAST_ROWS:
        raise InputError(
            f"the table has {counted(columns.num_rows, 'row')}: at least {LEAST_ROWS} are needed"
        )
    names_in = {} if numbers else {target: f"the target {target!r}"}
    for name in (group, *(name for name in asked.categorical if name in chosen)):
        names_in |= {} if name is None else {name: f"column {name!r}"}
    for name, called in names_in.items():
        check_alike(columns, name, called)
    y: Target
    labels = typed_column(columns, target)
    classes, y = ((), numbers_of(labels, target)) if numbers else classes_of(labels, target)
    groups = None if group is None else group_numbers(typed_column(columns, group), group)
    if schema is None:
        check_asked(asked, chosen)
        understood, X = understand(columns, chosen, asked)
    else:
        understood, X = schema, _read(columns, chosen, schema)
    plain = is_plain(understood, X)
    if schema is None:
        check_spread(X, chosen, plain)
    forms = _forms(understood) if plain else None
    doubt = question(columns, [target]) if groups is None else ""
    return Task(
        X,
        y,
        classes,
        tuple(chosen),
        target,
        source,
        groups,
        group,
        doubt,
        None,
        None if plain else understood,
        forms,
    )


def _forms(schema: Schema) -> Schema | None:
    """Return how columns of numbers without gaps are understood, if any were written in some form."""
    return schema if any(one.form or one.lenient for one in schema) else None


def check_alike(columns: pa.Table, name: str, called: str) -> None:
    """Raise InputError if two names in a column of a text table would become one."""
    if alike := find_alike(columns, name):
        kind = typed_column(columns, name).type
        kind = "number" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "value"
        one, other = (repr(text[:40]) for text in alike)
        raise InputError(
            f"{called} has {one} and {other}, which are one {kind} and two names: write them alike if they "
            f"mean the same, else as words, such as 'no. {alike[0][:40]}'"
        )


def rows_of(X: Any, task: Task) -> Rows:
    """Return X [rows, d], anything that a task can be made of, as numbers; columns with names by name.

    Raises:
        InputError: X has other columns, or values that cannot be judged.
    """
    return task.rows_from(columns_of(X, task.features))


def make_test_rows(columns: pa.Table | None, task: Task) -> TestRows | None:
    """Return test rows, with columns matched by name to those of the task; None for None.

    Raises:
        InputError: a feature or the target is missing, or a label is not one of the classes.
    """
    expect("task", task, Task, "a Task: make one with Task.of(X, y)")
    if columns is None:
        return None
    if task.target not in unique_names(columns):
        raise InputError(f"the test rows have no column {task.target!r} with the labels")
    if not columns.num_rows:
        raise InputError("there are no test rows")
    y = class_numbers(columns[task.target], task.classes, task.target)
    return TestRows(task.rows_from(columns), y)


def check_test_rows(test: TestRows | None, task: Task) -> TestRows | None:
    """Check test rows against the task and return them; None for None.

    Raises:
        InputError: they do not have its features, or have no class numbers.
    """
    expect("test", test, TestRows | None, "TestRows: make them with make_test_rows(columns, task)")
    if test is None:
        return None
    X, y = _numbers(test.X, task), as_array("y", test.y)
    if not len(X):
        raise InputError("there are no test rows")
    if y.shape != (len(X),) or not np.isin(y, range(task.n_classes)).all():
        raise InputError(
            f"y of the {len(X)} test rows has shape {y.shape}: expected a class number below "
            f"{task.n_classes} for each"
        )
    return TestRows(X, y.astype(np.int32))


def _digest(task: Task) -> str:
    header: list[Any] = [task.features, task.target, task.classes, task.X.shape]
    if task.groups is not None:
        header.append(task.group)
    if task.schema is not None:
        header.append([[one.name, one.kind, one.levels] for one in task.schema])
    content = hashlib.sha256(json.dumps(header).encode())
    content.update(_bytes(task.X))
    content.update(np.ascontiguousarray(task.y, dtype="<f8" if task.has_numbers else "<i4").data)
    if task.groups is not None:
        content.update(np.ascontiguousarray(task.groups, dtype="<i4").data)
    if task.unlabelled is not None:
        content.update(_bytes(task.unlabelled))
    return content.hexdigest()


def _bytes(rows: Rows) -> memoryview:
    """Return the bytes of rows, the same for all zeros and for all gaps."""
    return np.ascontiguousarray(canonical(rows), dtype="<f8").data


def _read(columns: pa.Table, features: list[str], schema: Schema) -> Rows:
    """Return rows as numbers, by a schema that is theirs."""
    if [one.name for one in schema] != features:
        raise InputError(f"the columns are {some(features)}, and not those that were understood")
    rows = read_values(columns, schema, plain=False)
    rows.check()
    if any(np.any(rows.X[:, i] >= len(one.levels)) for i, one in enumerate(schema) if one.levels):
        raise InputError("a category is not among those that were understood")
    return rows.X


def _labels(y: NDArray[Any]) -> pa.Array:
    try:
        return pa.array(y, from_pandas=y.dtype == object)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"y cannot be read as labels: {error}") from None


def _numbers(X: Any, task: Task) -> Rows:
    """Check rows of numbers as ``TestRows`` has them: of a task with a schema they are its own already."""
    if task.schema is None:
        return rows_of(X, task)
    rows = np.ascontiguousarray(as_array("X", X), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(task.features):
        raise InputError(f"X has shape {rows.shape}: expected (rows, {len(task.features)})")
    return rows
