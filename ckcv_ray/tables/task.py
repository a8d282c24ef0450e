"""Learning tasks: tables checked once, what their columns are for, and the digest that identifies them.

Whatever the source, data arrive as Arrow columns; ``Task.from_table`` turns them into a checked ``Task``,
which no other code has to check again. Every failed check raises an InputError that names the column and the
row, and says how to fix it.

Every draw is made with the salt H of the table: the digest of its rows, in any order. A known seed alone
draws known positions, and a table may be sorted so that these are the easy rows. With H the positions depend
on which rows there are, but not on their order. If the rows come in random order, all claims hold exactly,
whatever H is, since the order is random given the rows. If they are sorted, and the table was made without
evaluating H, they hold in the random-oracle model. This does not protect against an owner who looks for a
table, or a seed, with lucky draws.

A row's digest is the sum of the hashes of its cells modulo 2**64, mixed once more: the order of the columns
does not enter, but their names do. The hash of a cell depends only on its value and on the column's name, and
is the same whichever kind of file or frame it was read from. That of the number 0 is 0.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from enum import IntEnum
from functools import cached_property
from itertools import chain, count, pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.quantities import Subgroups, parse_subgroup
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.errors import (
    Classes,
    Index,
    InputError,
    Label,
    Rows,
    Values,
    as_array,
    cut,
    expect,
    pluralize,
    quote,
    write_option,
)
from ckcv_ray.tables.columns import (
    GAPS,
    MINUS,
    NOTHING_ASKED,
    TRUTH,
    Cells,
    ColumnKind,
    DeclaredTypes,
    NewRows,
    Schema,
    bare,
    canonical_text,
    cast_numbers,
    check_alike,
    check_column,
    declare_cells,
    decode,
    is_number_type,
    is_text,
    list_distinct,
    read_moments,
    some,
    suggest_column,
    unify_zeros,
)
from ckcv_ray.tables.read import (
    AS_IT_IS,
    UNREADABLE,
    Reading,
    check_same_order,
    index_names,
    make_columns,
    read_rows,
    with_plain_values,
)
from ckcv_ray.tables.roles import (
    APART,
    GROUP_NAMES,
    TARGETS,
    UNSPLIT,
    UNWEIGHTED,
    USUAL_ROLES,
    WEIGHT_NAMES,
    ClassTarget,
    GapWords,
    Roles,
    RowUnits,
    SplitUnits,
    Target,
    Units,
    Weighting,
    ask_about_groups,
    encode_classes,
    find_filled,
    find_groups,
    is_row_number,
    read_labels,
)

Words = NDArray[np.uint64]
MIN_ROWS = 6
USUAL_BINS = 4
MAX_SUBGROUPS = 200  # of a column
LONGEST_OF_SUBGROUP = 60


def _make_column(name: str, values: object, n: int) -> pa.Array:
    """Return "y", "groups" or "sample_weight" of n rows, given as an array, as a column."""
    column: NDArray[np.generic] = as_array(name, values)
    if column.shape != (n,):
        raise InputError(f"{name} has shape {column.shape}: expected ({n},), one for each row of X")
    try:
        return pa.array(column, from_pandas=True)
    except UNREADABLE as error:
        raise InputError(f"{name} cannot be read as a column ({error}): give values of one type") from None


def _check_spread(X: NDArray[np.float64], names: Sequence[str]) -> None:
    first = X[:1]
    if np.all((first == X) | (np.isnan(first) & np.isnan(X))):
        raise InputError(f"nothing varies from row to row in {some(names)}: there is nothing to learn from")


class CellForm(IntEnum):
    """What kind of value a cell is, on which its hash depends: arbitrary odd constants."""

    NUMBER = 0x9E3779B97F4A7C15
    TRUTH = 0xC2B2AE3D27D4EB4F
    MOMENT = 0x165667B19E3779F9
    TEXT = 0xD6E8FEB86659FD93
    GAP = 0xA0761D6478BD642F


def join_copies(columns: pa.Table) -> pa.Table:
    """Return a table of plain values, without copies of a column: those with the same name and equal cells.

    Raises:
        InputError: it is not a table.
    """
    expect("columns", columns, pa.Table, "a pyarrow.Table: see read(source).learn, or pyarrow.table")
    columns = with_plain_values(columns)
    names = columns.column_names
    if len(set(names)) == len(names):
        return columns
    count, seen, kept = Counter(names), defaultdict[str, set[bytes]](set), []
    for i, name in enumerate(names):
        if count[name] > 1:
            forms, values = read_cell_values(columns.column(i))
            digest = hashlib.sha256(forms.tobytes() + values.tobytes()).digest()
            if digest in seen[name]:
                continue
            seen[name].add(digest)
        kept.append(i)
    return columns.select(kept)


def compute_salt(columns: pa.Table, left_out: Collection[str | None]) -> str:
    """Return the SHA-256 of the ascending row digests of a table, 64 hexadecimal digits.

    Args:
        columns: columns as they were read, without copies.
        left_out: names of columns that name groups or rows. The index of a pandas frame, and others that name
            or number the rows, by their values, are left out as well.
    """
    total = np.zeros(columns.num_rows, np.uint64)
    for _, hashes in hash_telling(columns, left_out):
        total += hashes
    return hashlib.sha256(np.sort(mix(total)).astype("<u8").tobytes()).hexdigest()


def hash_telling(columns: pa.Table, left_out: Collection[str | None]) -> Iterator[tuple[str, Words]]:
    """Yield each column that does not name or number the rows, with the hashes of its cells, (rows,).

    One that does has no gaps, and all its cells differ and are text, or almost consecutive whole numbers.
    """
    left_out = {*left_out, *index_names(columns)}
    for i, name in enumerate(columns.column_names):
        if name in left_out:
            continue
        forms, values = read_cell_values(columns.column(i))
        named = bool(np.all(forms == CellForm.TEXT))
        if not named and np.all(forms == CellForm.NUMBER):
            numbers = values.view(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):  # for infinities alone, and very large numbers
                dense = numbers.max() - numbers.min() < 2 * len(numbers)
            named = bool(dense and np.all(numbers == np.floor(numbers)))
        if not (named and len(np.unique(values)) == len(values)):
            yield name, _hash_cells(forms, values, name)


def hash_columns(columns: pa.Table, names: Iterable[str]) -> dict[str, Words]:
    """Return the hashes of the cells of some columns, by the name of the column, each (rows,)."""
    return {name: _hash_cells(*read_cell_values(columns[name]), name) for name in names}


def _hash_cells(forms: Words, values: Words, name: str) -> Words:
    """Return the hash of each cell of a column; 0 for the number 0."""
    hashes = mix(values ^ forms ^ _digest_text(name))
    hashes[(forms == CellForm.NUMBER) & (values == 0)] = 0
    return hashes


def mix(z: Words) -> Words:
    """Return the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) of each number."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _digest_text(text: str) -> np.uint64:
    """Return eight bytes of the BLAKE2b hash of a text as a number."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def read_cell_values(column: pa.ChunkedArray) -> tuple[Words, Words]:
    """Return the form of each cell of a column and its value in 64 bits, from the cell alone."""
    kind = column.type
    if is_text(kind):
        numbers = cast_numbers(column, comma=False, gaps=GAPS)  # all at once where Arrow can
        if numbers is not None and not np.isinf(numbers).any():
            return _view_numbers(CellForm.NUMBER, numbers)
        return read_distinct(column)
    if pa.types.is_duration(kind):  # which may exceed Python's
        return read_distinct(column.cast(pa.int64()).cast(pa.string()))
    if pa.types.is_boolean(kind):
        return _view_numbers(CellForm.TRUTH, column.cast(pa.float64()).to_numpy())
    if is_number_type(kind) or pa.types.is_decimal(kind):
        exact = column.cast(pa.string()) if pa.types.is_decimal(kind) else column
        return _view_numbers(CellForm.NUMBER, exact.cast(pa.float64(), safe=False).to_numpy())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _view_numbers(CellForm.MOMENT, read_moments(column))
    return read_distinct(column)


def _view_numbers(form: CellForm, values: NDArray[np.float64]) -> tuple[Words, Words]:
    """Return the form and the bits of each number, nan for gaps."""
    gaps = np.isnan(values)
    bits = np.where(gaps, 0.0, values + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(gaps, np.uint64(CellForm.GAP), np.uint64(form)), bits


def read_distinct(column: pa.ChunkedArray) -> tuple[Words, Words]:
    """Return the form and value of each cell, reading each distinct one once, as the text for it."""
    values, codes = list_distinct(column)
    read = [_read_value(value) for value in values]
    words = [_digest_text(v) if isinstance(v, str) else np.float64(v + 0).view(np.uint64) for _, v in read]
    forms, bits = np.array([form for form, _ in read], np.uint64), np.array(words, np.uint64)
    return forms[codes], bits[codes]


def _read_value(value: Any) -> tuple[CellForm, float | Decimal | str]:
    """Return the form of a cell and its value: a number, 0 for a gap, or a text."""
    if value is None or value != value:
        return CellForm.GAP, 0.0
    if isinstance(value, int | float | Decimal):
        return CellForm.TRUTH if isinstance(value, bool) else CellForm.NUMBER, value
    if not isinstance(value, str | date | time):
        return CellForm.TEXT, repr(value)
    text = bare(value).replace(MINUS, "-") if isinstance(value, str) else value.isoformat()
    if text.lower() in GAPS:
        return CellForm.GAP, 0.0
    if (meant := canonical_text(text)) in TRUTH:
        return CellForm.TRUTH, TRUTH[meant]
    form, _, number = meant.partition(" ")
    if meant != normalize("NFC", text) and form != "time":
        return CellForm.NUMBER if form == "number" else CellForm.MOMENT, float(number)
    return CellForm.TEXT, meant


class Provenance(NamedTuple):
    """What the salt of a task depends on, apart from its table.

    Attributes:
        reading: how the file was read.
        id: name of the column that names the rows; None without one.
        drop_unlabelled: whether rows without a label were left out.
        keep_values: words that are ordinary text, not gaps, in lower case, in later tables too.
    """

    reading: Reading = AS_IT_IS
    id: str | None = None
    drop_unlabelled: bool = False
    keep_values: tuple[str, ...] = ()


USUAL_PROVENANCE = Provenance()


@dataclass(frozen=True)
class Task:
    """A checked learning task.

    Attributes:
        X: inputs, (n, d) float64, C-contiguous: finite numbers if the ``schema`` is plain, else see
            ``columns``: nan for gaps, numbers of levels for categories, milliseconds for dates.
        y: class numbers 0 .. n_classes - 1, (n,); or the numbers to predict, float64.
        target: what is predicted.
        schema: how the d columns are interpreted.
        units: which rows are drawn together.
        source: where the rows came from, for display.
        fills: what stands for a gap in each column, (d,), where these rows have none but others of the table
            may; nan where a gap stays one. None where a row with a gap cannot be judged, or where the learner
            handles gaps in every column.
        weighting: what rows weigh in fits.
        row_numbers: names of columns that number the rows and are not learned from, for display.
        gap_words: words in columns of categories that were taken for empty cells, for display.
        split_by: the units of a resampling by a column.
        salt: digest of the rows of the table, dropped columns among them, with which all draws are made:
            see the head of this module.
        provenance: what the salt depends on, apart from its table.
    """

    X: Rows
    y: NDArray[Any]
    target: Target
    schema: Schema
    units: Units
    source: str = ""
    fills: tuple[float, ...] | None = None
    weighting: Weighting = UNWEIGHTED
    row_numbers: tuple[str, ...] = ()
    gap_words: tuple[GapWords, ...] = ()
    split_by: SplitUnits = UNSPLIT
    salt: str = ""
    provenance: Provenance = USUAL_PROVENANCE

    @classmethod
    def of(
        cls,
        X: object,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        asked: DeclaredTypes = NOTHING_ASKED,
        numbers: bool = False,
        allow_singletons: bool = False,
        sample_weight: ArrayLike | None = None,
        checked: bool = True,
        split_by: str | None = None,
    ) -> "Task":
        """Make a task from X [n, d], y [n] and, if given, groups [n] and weights [n].

        X is a data frame (pandas, polars, Arrow), an array, or a sparse matrix, and all its columns are
        learned from, even one that numbers the rows. The columns of a frame keep their names, as do y,
        groups and weights that are columns of one: the task is that of the same table in a file. Rows with
        equal values in ``groups`` (text or whole numbers) belong together, such as the visits of one
        patient; groups are independent of each other. ``asked`` says which columns are categories, numbers
        or dates where their values do not. With ``numbers`` y has no labels of classes, but numbers to
        predict. With ``allow_singletons`` a class may have a single row, as a study without a certification
        can score it. ``sample_weight`` has a positive number for each row: its weight, in fits only. Unless
        it is ``checked``, a task may have few groups, or a single row of any class. ``split_by`` names the
        column of a resampling, which is not learned from.

        Raises:
            InputError: as for ``from_table``, or the shapes do not match.
        """
        columns = make_columns(X)
        features = [name for name in columns.column_names if name != split_by]
        names = dict.fromkeys(("y", "groups", "sample_weight"))
        usual = ("y", *TARGETS), GROUP_NAMES, WEIGHT_NAMES
        for argument, given, others in zip(names, (y, groups, sample_weight), usual, strict=True):
            check_same_order(X, argument, values := read_rows(given))
            if values is not None or argument == "y":
                own = getattr(values, "name", None)  # if a column of a data frame
                likely = (own, *others) if isinstance(own, str) and own else others
                every = chain(likely, (f"{likely[0]}_{i}" for i in count()))
                names[argument] = name = next(each for each in every if each not in columns.column_names)
                columns = columns.append_column(name, _make_column(argument, values, columns.num_rows))
        target, group, weight = names.values()
        roles = Roles(target, features, None, group, numbers, weight, split_by=split_by)
        task = _from_table(columns, roles, asked)
        return replace(task.check(allow_singletons) if checked else task, source="arrays")

    @classmethod
    def from_table(
        cls,
        columns: pa.Table,
        roles: Roles = USUAL_ROLES,
        asked: DeclaredTypes = NOTHING_ASKED,
        source: str = "",
        allow_singletons: bool = False,
        reading: Reading = AS_IT_IS,
    ) -> "Task":
        """Make a task from a table, checking its columns.

        A column that numbers the rows is not learned from, unless ``roles`` names it among the features.

        Args:
            columns: one column for each feature, and the target.
            roles: what each is for.
            asked: columns whose kind is given rather than decided by their values.
            source: where the columns came from, for display.
            allow_singletons: whether a class may have a single row.
            reading: how the columns were read.

        Raises:
            InputError: a column is missing, empty, or of mixed kinds; there are fewer than two classes, or
                fewer than 2 rows in a class (in most, with ``allow_singletons``); there are fewer than 6
                rows; no column varies; the groups have gaps, are fewer than 6, or have one row each; or a
                weight is not a positive number.
        """
        with number_labelled(asked.drop_unlabelled):
            task = _from_table(columns, roles, asked)
        provenance = task.provenance._replace(reading=reading)
        return replace(task, source=source, provenance=provenance).check(allow_singletons)

    @classmethod
    def restore(
        cls,
        columns: pa.Table,
        roles: Roles,
        schema: Schema | None,
        question: str | None = None,
        salt: str = "",
        provenance: Provenance = USUAL_PROVENANCE,
    ) -> "Task":
        """Make a task from another's ``columns``, all rows or some, and how they are interpreted.

        Without a ``schema`` they are plain numbers. ``question``, ``salt`` and ``provenance`` are those of
        the whole table, of which some columns may be left out; a question of None asks about the columns
        there are.

        Raises:
            InputError: the schema is not that of these columns, or they are not a task's.
        """
        labels = "" if roles.numbers else APART
        categories = [name for name in [roles.split_by] if name is not None and is_text(columns[name].type)]
        asked = DeclaredTypes(categories, labels=labels, keep_values=provenance.keep_values)
        task = _from_table(columns, roles, asked, schema, salt)
        units = task.units if question is None else replace(task.units, question=question)
        return replace(task, units=units, provenance=provenance)

    def restored(self) -> "Task":
        """Return the task as read back from its columns: with the classes that its rows have."""
        units, numbers = self.units, not self.classes
        roles = Roles(self.target.name, group=units.name, numbers=numbers, weight=self.weighting.column)
        given = self.schema, units.question, self.salt, self.provenance
        return replace(Task.restore(self.columns(), roles, *given), source=self.source)

    def make_salt(self, columns: pa.Table) -> str:
        """Return the salt of a table; it is this task's if the task was made of that table.

        Raises:
            InputError: the table lacks the target.
        """
        columns = join_copies(columns)
        names = columns.column_names
        check_column(self.target.name, names, ", the target of the run")
        if self.provenance.drop_unlabelled:
            columns = columns.filter(pa.array(self.find_labelled(columns)))
        groups = find_groups(self.units.name, names)
        return compute_salt(columns, {*groups, self.provenance.id})

    def check(self, allow_singletons: bool = False) -> "Task":
        """Return the task, if it can be learned from.

        Raises:
            InputError: it has too few groups, or a class with a single row; with ``allow_singletons``, if
                most classes do.
        """
        self.target.check(self.y, allow_singletons)
        self.units.check()
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything except the source."""
        named = self.target.name, self.target.classes
        header: list[Any] = [self.features, *named, self.X.shape, self.salt, *self.units.columns]
        if not self.schema.plain:
            header.append([[column.name, column.kind, column.levels] for column in self.schema])
        if self.weighting.named is not None:
            header.append({"weight": self.weighting.column})
        if self.provenance.keep_values:
            header.append({"keep_values": self.provenance.keep_values})
        header += [{"split_by": name, "levels": self.split_by.levels} for name in self.split_by.columns]
        content = hashlib.sha256(json.dumps(header).encode())
        numbers = [*self.weighting.columns.values()]
        numbers += [self.split_by.values[self.split_by.groups]] if self.split_by.column else []
        stored = [(unify_zeros(self.X), "<f8"), (self.y, self.target.dtype)]
        stored += [(groups, "<i4") for groups in self.units.columns.values()]
        for values, kind in (*stored, *((each, "<f8") for each in numbers)):
            content.update(np.ascontiguousarray(values, dtype=kind).data)
        return content.hexdigest()

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_units(self) -> int:
        """Number of independent units: groups, or rows if there are none."""
        return self.units.n_units

    @property
    def unit(self) -> str:
        """The word for a unit: "group" or "row"."""
        return self.units.word("row", "group")

    @property
    def row_units(self) -> RowUnits:
        """The unit of each row, (n,): each row its own if the rows are independent."""
        return self.units.row_units

    @property
    def features(self) -> tuple[str, ...]:
        """The d column names."""
        return self.schema.names

    @property
    def classes(self) -> tuple[Label, ...]:
        """The original label of each class, in sorted order; none for numbers."""
        return self.target.classes

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.target.classes)

    @cached_property
    def strata(self) -> Strata:
        """What resamplings divide: the units with their classes, if any, or those by a column."""
        stratified = self.classes or self.split_by.column
        return self.divided.stratify(self.y, self.n_classes) if stratified else Strata(self.n_units)

    @property
    def divided(self) -> Units:
        """The units of resamplings: those by a column if one is named for that."""
        return self.split_by if self.split_by.column else self.units

    def without(self, rows: Index) -> "Task":
        """Return the task without ``rows``, which are held out, as interpreted from the rows that are left.

        The held-out rows have no influence on it, neither by their gaps nor by their categories.

        Raises:
            InputError: too few rows are left to learn from, or a column is empty in all of them.
        """
        kept, n = self.take_part(np.delete(np.arange(self.n), rows)), self.n_units
        if kept.n_units < MIN_ROWS:
            raise InputError(
                f"{n - kept.n_units} of {n} {self.unit}s held out leave {kept.n_units}: leave at least "
                f"{MIN_ROWS} to learn from, so hold out {n - MIN_ROWS} at most (holdout_share)"
            )
        if kept.schema.plain:
            return kept
        schema = kept.schema.narrow(kept.X)
        if schema.plain:
            _check_spread(kept.X, kept.features)
        return replace(kept, schema=schema, X=kept.schema.translate(kept.X, schema))

    def recode(self, rows: Rows, table: "Task") -> Rows:
        """Return rows [rows, d] of the table that this task is part of as its own rows are interpreted.

        A category missing from its rows was never seen; a gap is filled if its rows have none anywhere.
        """
        if table.schema.plain:
            return rows
        if table.schema != self.schema and not self.schema.plain:
            rows = table.schema.translate(rows, self.schema)
        return self._fill(rows)

    def _fill(self, rows: Rows) -> Rows:
        return rows if self.fills is None else np.where(np.isnan(rows), self.fills, rows)

    def take_part(self, chosen: Index) -> "Task":
        """Return the task on some of its rows, however few a class then has."""
        X = np.ascontiguousarray(self.X[chosen])
        units, weights = self.units.part(chosen), self.weighting.take(chosen)
        weighting = replace(self.weighting, named=weights)
        return replace(self, X=X, y=self.y[chosen], units=units, weighting=weighting, split_by=UNSPLIT)

    def find_labelled(self, columns: pa.Table, name: str | None = None) -> NDArray[np.bool_]:
        """Return which rows of a table have a label, in the target or in a column of another ``name``.

        Raises:
            InputError: the table lacks the column, or has two.
        """
        name = self.target.name if name is None else name
        check_column(name, columns.column_names, " with the labels")
        return find_filled(columns[name], name, self.target.gaps.difference(self.provenance.keep_values))

    def keep_words(self, columns: pa.Table) -> pa.Table:
        """Return a table in which the same words are gaps as in the one learned from."""
        return declare_cells(columns, kept=",".join(self.provenance.keep_values))

    def read(self, columns: pa.Table) -> NewRows:
        """Return the rows of a table as numbers, its columns matched by name, and which cannot be judged.

        Raises:
            InputError: a feature is missing, or a whole column is of another kind.
        """
        gaps = not self.schema.plain or self.fills is not None
        rows = self.schema.apply(self.keep_words(join_copies(columns)), gaps)
        return rows._replace(X=self._fill(rows.X))

    def rows_from(self, columns: pa.Table) -> Rows:
        """Return the rows of a table as numbers (rows, d), its columns matched by name.

        Raises:
            InputError: a feature is missing, or a value cannot be judged.
        """
        rows = self.read(columns)
        rows.check()
        return rows.X

    def take_test_rows(self, rows: Index) -> "TestRows":
        """Return some of the rows, to be scored."""
        return TestRows(self.X[rows], self.y[rows], self.row_units[rows])

    def labelled(self, numbers: Values | Classes) -> NDArray[np.generic]:
        """Return the original labels of class numbers; predicted numbers are returned as they are."""
        return self.target.decode(numbers)

    def columns(self) -> pa.Table:
        """Return the features, the target with its original labels, groups, weights and times or folds.

        Groups are numbers, and so are folds with names. Features are interpreted as they were again, if that
        kind is asked for.
        """
        features = dict[str, pa.Array | pa.ChunkedArray]()
        for column, values in zip(self.schema, self.X.T, strict=True):
            gap = np.isnan(values)
            if column.kind is ColumnKind.NUMBER:
                cells = pa.array(np.ascontiguousarray(values), mask=gap if gap.any() else None)
            elif column.kind is ColumnKind.DATE:
                kind = pa.timestamp("ms", "UTC" if column.zoned else None)
                cells = pa.array(np.where(gap, 0, values).astype(np.int64), kind, mask=gap)
            else:
                unseen = f"{max(column.levels, key=len, default='')}?"  # longer than any level: no other
                codes = pa.array(np.where(gap, 0, values).astype(np.int64), mask=gap)
                coded = pa.DictionaryArray.from_arrays(codes, pa.array([*column.levels, unseen], pa.string()))
                cells = decode(pa.chunked_array([coded]))
            features[column.name] = cells
        columns = pa.table(features)
        labels = pa.array(self.y)
        if self.classes:
            coded = pa.DictionaryArray.from_arrays(labels, pa.array(self.classes))
            labels = decode(pa.chunked_array([coded]))
        columns = columns.append_column(self.target.name, labels)
        for name, values in (self.units.columns | self.weighting.columns | self.split_by.columns).items():
            if name not in self.features:  # times may be
                columns = columns.append_column(name, pa.array(values))
        return columns


@dataclass(frozen=True)
class TestRows:
    """Test rows for a finished ensemble: X [rows, d], y [rows] as in a task, and the unit of each [rows].

    If units are not given, each row is one.
    """

    __test__ = False

    X: Rows
    y: NDArray[Any]
    units: RowUnits | None = None

    @property
    def row_units(self) -> RowUnits:
        """The unit of each row, (rows,)."""
        return np.arange(len(self.y)) if self.units is None else self.units

    @property
    def digest(self) -> str:
        """SHA-256 of the rows."""
        rows = np.column_stack([unify_zeros(self.X), self.y]).astype("<f8")
        return hashlib.sha256(rows.tobytes()).hexdigest()


@contextmanager
def number_labelled(alone: bool) -> Iterator[None]:
    """Where labelled rows ``alone`` are numbered, say so in refusals that name a row."""
    try:
        yield
    except InputError as error:
        if alone and " row " in str(error):
            raise InputError(f"{error} (rows without a label are not numbered)") from None
        raise


def _from_table(
    columns: pa.Table,
    roles: Roles,
    asked: DeclaredTypes,
    known: Schema | None = None,
    salt: str | None = None,
) -> Task:
    """Make a task; from another's columns, with how they are ``known`` and its ``salt``."""
    columns = join_copies(columns)
    target, chosen = roles.resolve(columns.column_names, index_names(columns))
    groups = find_groups(roles.group, columns.column_names)
    for name in (target, *groups, roles.weight, roles.split_by):
        if name is not None and (held := Cells(columns, name).held):
            raise InputError(f"column {name!r} holds {held}, which cannot be read: name another column")
    for word in asked.keep_values:
        if word.lower() not in GAPS - {""}:
            raise InputError(
                f"keep_values={quote(word)}: expected words that are taken for empty cells, which are, in "
                f"capitals as well, {', '.join(sorted(GAPS - {''}))}"
            )
    kept = frozenset(word.lower() for word in asked.keep_values)
    if asked.drop_unlabelled:
        kind = Target if roles.numbers else ClassTarget
        labelled = find_filled(columns[target], target, kind.gaps - kept)
        columns = columns if labelled.all() else columns.filter(pa.array(labelled))
    columns = declare_cells(columns, kept=",".join(sorted(kept)), thousands=asked.thousands)
    if columns.num_rows < MIN_ROWS:
        raise InputError(f"the table has {pluralize(columns.num_rows, 'row')}: {MIN_ROWS} are needed")
    for name in (*groups, *(name for name in asked.categorical if name in chosen)):
        check_alike(columns, name)
    predicted, y = _read_target(columns, target, roles.numbers, asked.labels, kept)
    weighting = Weighting.read(columns, roles.weight)
    provenance = Provenance(AS_IT_IS, roles.id, asked.drop_unlabelled, tuple(sorted(kept)))
    if salt is None:
        salt = compute_salt(columns, {*groups, roles.id})
    numbering, words = tuple[str, ...](), tuple[GapWords, ...]()
    question = "" if groups else ask_about_groups(columns, {target, roles.weight, roles.split_by})
    units = Units.read(columns, groups, question)
    split_by = SplitUnits.of(columns, roles.split_by, asked.kind(roles.split_by or ""))
    if known is None:
        schema, X, numbering, words = _learn_features(columns, roles, chosen, asked)
    else:
        if list(known.names) != chosen:
            raise InputError(f"the columns are {some(chosen)}, and not those that were understood")
        rows = Schema(tuple(replace(column, form="") for column in known)).apply(columns, gaps=True)
        rows.check()
        X = rows.X
        if any(np.any(X[:, i] >= len(column.levels)) for i, column in enumerate(known) if column.levels):
            raise InputError("a category is not among those that were understood")
        schema = known.settle(X)
    return Task(
        X, y, predicted, schema, units,
        weighting=weighting, row_numbers=numbering, gap_words=words,
        split_by=split_by, salt=salt, provenance=provenance,
    )  # fmt: skip


def _read_target(
    columns: pa.Table, target: str, numbers: bool, answer: str, kept: frozenset[str]
) -> tuple[Target, NDArray[Any]]:
    """Return the target, and the class number or the number of each row; words ``kept`` are no gaps."""
    if numbers:
        if answer:
            raise InputError(f"labels={answer} is for classes, and numbers are predicted: leave it out")
        y = Target(target).read(columns)
        if np.all(y == y[0]):
            raise InputError(f"the target {target!r} is {y[0]:g} in every row: there is nothing to learn")
        return Target(target), y
    labels = read_labels(columns, target, answer)
    labelled = find_filled(columns[target], target, ClassTarget.gaps - kept)
    if not labelled.all():
        said = GapWords.of(columns[target], target, ~labelled).describe()
        raise InputError(
            f"the target {target!r} has empty cells in {said}, the first in row {np.argmin(labelled) + 1}: "
            "fix them, or leave these rows out with --drop-unlabelled"
        )
    classes, y = encode_classes(labels, target)
    return ClassTarget(target, classes), y


def _learn_features(
    columns: pa.Table, roles: Roles, chosen: Sequence[str], asked: DeclaredTypes
) -> tuple[Schema, Rows, tuple[str, ...], tuple[GapWords, ...]]:
    """Return how columns are interpreted, their values, the names of some left out, and words taken for gaps.

    Left out is what numbers the rows, unless the features are named, or its kind is given.
    """
    learned = [*chosen, *([roles.split_by] if roles.split_by else [])]
    given: set[str] = set()
    for option, names in zip(DeclaredTypes._fields, asked[:3], strict=False):
        for name in names:
            if name not in learned:
                raise InputError(
                    f"--{option} {quote(name)}: the columns that are learned from are {some(learned)}"
                    f"{suggest_column(name, learned)}"
                )
            if name in given:
                raise InputError(f"column {quote(name)} is given two kinds: leave it out of one")
            given.add(name)
    schema, X = Schema.learn(columns, chosen, asked)
    free = (
        [] if roles.features is not None else [column.name for column in schema if column.name not in given]
    )
    numbering = tuple(
        column.name
        for column, x in zip(schema, X.T, strict=True)
        if column.kind is ColumnKind.NUMBER and column.name in free and is_row_number(x, column.name)
    )
    if len(numbering) == len(schema):
        raise InputError(
            f"no feature is left: column {numbering[0]!r} numbers the rows; name it with "
            f"{write_option('features', numbering[0])} if it is meant"
        )
    if numbering:
        kept = [i for i, column in enumerate(schema) if column.name not in numbering]
        X = np.ascontiguousarray(X[:, kept])
        schema = Schema(tuple(schema[i] for i in kept)).settle(X)
    _check_spread(X, schema.names)
    words = [
        GapWords.of(columns[column.name], column.name, np.isnan(x))
        for column, x in zip(schema, X.T, strict=True)
        if column.kind is ColumnKind.CATEGORY
    ]
    return schema, X, numbering, tuple(said for said in words if any(said.rows))


def make_rows(X: object, task: Task) -> Rows:
    """Return X [rows, d], anything that a task can be made of, as numbers; named columns by name.

    Raises:
        InputError: X has other columns, or values that cannot be judged.
    """
    return task.rows_from(make_columns(X, task.features))


def make_scored_rows(X: object, y: object, task: Task) -> "TestRows":
    """Return rows X [rows, d] as ``make_rows`` does, with their labels, or numbers, y [rows].

    Raises:
        InputError: as for ``make_rows``, there are no rows, the shapes do not match, or a label is not one of
            the classes.
    """
    check_same_order(X, "y", values := read_rows(y))
    rows, name = make_rows(X, task), task.target.name
    if not len(rows):
        raise InputError("X has no rows: there is nothing to score")
    return TestRows(rows, task.target.read(pa.table({name: _make_column("y", values, len(rows))})))


def make_test_rows(rows: "pa.Table | TestRows | None", task: Task) -> TestRows | None:
    """Return test rows; a table's columns are matched by name to those of the task; None for None.

    Raises:
        InputError: a feature or the target is missing, or a label is not one of the classes.
    """
    expect("task", task, Task, "a Task: make one with Task.of(X, y)")
    expect("test", rows, pa.Table | TestRows | None, "TestRows, or a pyarrow.Table: see read(source).learn")
    if rows is None:
        return None
    if not task.classes:
        raise InputError(
            f"test rows are for classes, and the target {task.target.name!r} has numbers: leave them out, "
            "and see how far off ckcv predict is on them"
        )
    if isinstance(rows, pa.Table):
        columns = join_copies(rows)
        check_column(task.target.name, columns.column_names, " with the labels of the test rows")
        X, y = task.rows_from(columns), task.target.read(columns)
    else:
        y = as_array("y", rows.y)
        X = make_rows(rows.X, task) if task.schema.plain else as_array("X", rows.X)
        X = np.ascontiguousarray(X, np.float64)
    d, allowed = len(task.features), range(task.n_classes)
    if not y.size or y.shape != X.shape[:1] or X.shape[1:] != (d,) or not np.isin(y, allowed).all():
        raise InputError(
            f"test rows have X of shape {X.shape} and y of shape {y.shape}: expected (rows, {d}), and a "
            f"class number below {task.n_classes} for each row"
        )
    return TestRows(X, y.astype(np.int32))


USUAL_DIGITS, MAX_DIGITS = 6, 17  # of a number in a name; 17 tell any two floats apart


class Subgroup(NamedTuple):
    """A subgroup: its name, and which rows belong to it."""

    name: str
    rows: NDArray[np.bool_]


def check_subgroups(names: Sequence[str], task: Task) -> None:
    """Raise InputError unless subgroups are of a column that is learned from, and bins can be made."""
    for subgroups in map(parse_subgroup, names):
        if subgroups.column not in task.schema.names:
            raise InputError(
                f"subgroups={cut(str(subgroups), LONGEST_OF_SUBGROUP)}: {quote(subgroups.column)} is not a "
                "column that is learned from: name one that new rows have as well"
            )
        divide_rows(subgroups, task, task.X)


def divide_rows(subgroups: Subgroups, task: Task, X: Rows) -> list[Subgroup]:
    """Return the subgroups that some rows belong to.

    Numbers have bins with the edges given, or at quantiles of the learning rows; few numbers are one each.

    Args:
        subgroups: subgroups by a column of the task.
        task: the learning rows, from which edges of bins come.
        X: the rows to divide, [rows, d], in the columns of the task.

    Raises:
        InputError: bins are asked for of what are not numbers, or cannot be made from the learning rows.
    """
    position = task.schema.names.index(subgroups.column)
    column, learned, values = task.schema[position], task.X[:, position], X[:, position]
    name = column.name[:LONGEST_OF_SUBGROUP]
    if column.kind is ColumnKind.CATEGORY:
        if subgroups.bins or subgroups.edges or len(column.levels) > MAX_SUBGROUPS:
            raise InputError(
                f"subgroups={subgroups}: {name!r} has {len(column.levels):,} categories: name the column "
                f"alone, of at most {MAX_SUBGROUPS} categories"
            )
        texts = [cut(level, LONGEST_OF_SUBGROUP) for level in column.levels]
        if len(set(texts)) < len(texts):  # names must differ
            texts = [f"{text} ({i + 1} of {len(texts)})" for i, text in enumerate(texts)]
        parts = [Subgroup(f"{name} = {text}", values == i) for i, text in enumerate(texts)]
        parts.append(Subgroup(f"{name}: none of these", values == len(column.levels)))
    else:
        known = learned[~np.isnan(learned)]
        distinct, bins = np.unique(known), subgroups.bins or USUAL_BINS
        if not subgroups.bins and not subgroups.edges and len(distinct) <= USUAL_BINS:
            texts = _write_apart(distinct, column.kind)
            parts = [
                Subgroup(f"{name} = {text}", values == value)
                for text, value in zip(texts, distinct, strict=True)
            ]
            others = ~np.isnan(values) & ~np.isin(values, distinct)
            parts.append(Subgroup(f"{name}: none of these", others))
        else:
            edges = np.quantile(known, np.arange(1, bins) / bins) if len(known) else np.zeros(bins - 1)
            edges = np.array(subgroups.edges) if subgroups.edges else edges
            if subgroups.bins and (len(np.unique(edges)) < len(edges) or len(distinct) < bins):
                raise InputError(
                    f"subgroups={subgroups}: {bins} bins of {name!r} would have equal edges, since many rows "
                    f"have the same number: ask for fewer, or leave :{bins} out"
                )
            edges = np.unique(edges)
            shown = _write_apart(edges, column.kind)
            parts = [Subgroup(f"{name} < {shown[0]}", values < edges[0])]
            for (low, high), (least, below) in zip(pairwise(edges), pairwise(shown), strict=True):
                within = (values >= low) & (values < high)
                parts.append(Subgroup(f"{least} <= {name} < {below}", within))
            parts.append(Subgroup(f"{name} >= {shown[-1]}", values >= edges[-1]))
    parts.append(Subgroup(f"{name} missing", np.isnan(values)))
    return [part for part in parts if part.rows.any()]


def _write_apart(values: Values, kind: ColumnKind) -> list[str]:
    """Return distinct numbers as text with six digits, or as many as tell them apart, or as dates."""
    if kind is ColumnKind.DATE:
        stamps = values.astype(np.int64).astype("datetime64[ms]")
        return [str(np.datetime_as_string(stamp, unit="auto")) for stamp in stamps]
    forms = ([f"{number:.{n}g}" for number in values] for n in range(USUAL_DIGITS, MAX_DIGITS + 1))
    return next(texts for texts in forms if len(set(texts)) == len(texts))
