"""What the columns of a table are for: the target, the units in which rows are drawn, and what rows weigh.

The target is which of some classes a row is of, or a number. Labels that may be one class written in several
ways raise a question, or are joined or kept apart as asked: they are one number, or differ only in what is
often written differently: Yes and YES, type 1 and type-1, >50K and >50K., 01 and 1.0.

Units, rows or groups of rows, are drawn independently of each other. A group of rows that belong together,
such as the visits of one patient, is known by its number, counted from 0 in the order of first appearance.
How the column spells its values has no effect on a study, and is not stored. Weights of rows are used only in
fits, unless the error by weight is claimed: all else is about rows, which count once each.

Columns that number the rows are not learned from: in a table sorted by its target they give it away. If a
column looks as if it named groups, by its name or by its values alone, the user is asked about it. What tells
a name from a measurement is how it repeats. Half of the values or more differ, yet some repeat, as often as
names do and not by chance:

* text that is not a number, amount or date;
* whole numbers that fill a range, such as 1, 1, 2, 3, 3, 3, 4, with equal ones in adjacent rows;
* whole numbers of which far more are equal than nearly equal. In a measurement, such as a price in euros,
  about as many pairs of rows are equal as differ by 1, by 2, or by any other small amount. If it is
  rounded, more are equal, but then most of those end in 0 or 5.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from csv import Error, reader
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.core.measures import LABEL, PROBABILITY, RANK, VALUE, Kind, Output
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.errors import (
    Classes,
    Index,
    InputError,
    Label,
    Mask,
    Values,
    check_choice,
    cut,
    cut_list,
    expect,
    pluralize,
    quote,
    sequence,
    write_option,
    write_row,
)
from ckcv_ray.tables.columns import (
    GAPS,
    LARGEST,
    LAST_EXACT,
    LOOKS_LIKE_DATE,
    MAX_CLASSES,
    MAX_TABLE_BYTES,
    NO_NAMES,
    TRUTH,
    Cells,
    ColumnError,
    ColumnKind,
    bare,
    canonical_text,
    check_column,
    check_single,
    find_number_form,
    fold_text,
    is_number_type,
    is_text,
    learn_column,
    list_distinct,
    number_values,
    positions_by_value,
    read_numbers,
    refuse_gaps,
    some,
    without_gaps,
)

TARGETS = ("target", "y", "label", "class")
MIN_GROUPS = 6
SPACES = " \u00a0"


class Roles(NamedTuple):
    """What each column of a table is for.

    Attributes:
        target: name of the column to predict; None for the one column named target, y, label or class.
        features: names of the columns to learn from; None for every column but the target, the groups, the
            weights, and those that number the rows.
        drop: names of columns to leave out.
        group: name of the column whose equal values (text, whole numbers) mark rows that belong together, or
            names of several, all of whose values then agree: a list, or a row of a CSV file (center,id).
            If a column's name reads like such a row, that column is meant.
        numbers: whether the target has numbers to predict rather than classes.
        weight: name of the column of positive numbers that says what each row weighs in a fit.
        id: name of the column that names the rows, which is not learned from.
        split_by: name of the column that a resampling uses, not learned from unless ``features`` name it.
    """

    target: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    group: str | Sequence[str] | None = None
    numbers: bool = False
    weight: str | None = None
    id: str | None = None
    split_by: str | None = None

    def resolve(self, names: list[str], index: set[str]) -> tuple[str, list[str]]:
        """Return the target and the features of a table with these columns; those in ``index`` name rows.

        Raises:
            InputError: a column is missing, has two purposes, or no feature is left.
        """
        target, matches = self.target, [name for name in TARGETS if name in names]
        if target is not None:
            check_column(target, names, " for the target")
        elif len(matches) == 1:
            check_single(names, matches)
            target = matches[0]
        else:
            said = f"columns {', '.join(matches)} could be" if matches else f"none of {', '.join(TARGETS)} is"
            raise InputError(f"{said} the target: name it with --target; the columns are {some(names)}")
        groups = find_groups(self.group, names)
        for option, value, taken in (("features", self.features, ()), ("drop", self.drop, (target,))):
            expect(option, value, list | tuple | None, "a list of column names")
            for name in value or ():
                check_role(option, name, list(dict.fromkeys(names)), {"target": taken})
        purposes = {"target": [target], "features": self.features or (), "group": groups}
        asked = (*(("group", group) for group in groups), ("weight", self.weight), ("id", self.id))
        for option, column in (*asked, (SPLITTING, self.split_by)):
            expect(option, column, str | None, "the name of a column")
            shared = {"weight": "", SPLITTING: "features"}.get(option, "group")
            if column is not None:
                others = {other: purposes[other] for other in purposes if other != shared}
                check_role(option, column, names, others)
        unasked = {*index, self.split_by} if self.features is None else ()
        left_out = {target, *groups, self.weight, self.id, *(self.drop or ()), *unasked}
        wanted = dict.fromkeys(names if self.features is None else self.features)
        chosen = [name for name in wanted if name not in left_out]
        if not chosen:
            raise InputError(f"no feature left besides the target {target!r}: correct --features or --drop")
        check_single(names, set(chosen), droppable=True)
        return target, chosen


USUAL_ROLES = Roles()
SPLITTING = "resampling or --holdout-where"  # options that name a column that divides the rows


def split_names(text: str) -> list[str]:
    """Return the names of columns in a,b,c; names that contain a comma are quoted, as in a CSV file."""
    try:
        return next(reader([text], skipinitialspace=True)) or [""]
    except Error as error:
        raise InputError(f"{quote(text)} is not a list of names: {error}") from None


def find_groups(group: str | Sequence[str] | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns that together say which rows belong together; see ``Roles.group``.

    Raises:
        InputError: it is neither a name nor a list of names.
    """
    if group is None:
        return ()
    expect("group", group, str | list | tuple, "the name of a column, or a list of them")
    if isinstance(group, str):
        return (group,) if group in names else tuple(dict.fromkeys(split_names(group)))
    return sequence("group", group, least=1, kind="column names")


def check_role(option: str, column: str, names: Sequence[str], others: Mapping[str, Collection[str]]) -> None:
    """Raise InputError unless a column exists, and is not among ``others``, which are listed by option."""
    check_column(column, names, f" for --{option}")
    for other, columns in others.items():
        if column in columns:
            raise InputError(f"column {column!r} cannot be both --{option} and --{other}: change one of them")


MIN_OF_CLASS = 2
MIN_CLASSES = 2
MAX_CLASSES_NAMED, MAX_OF_CLASS = 5, 24  # of classes named in one sentence; characters of their labels


@dataclass(frozen=True)
class Target:
    """What a task predicts; in this class, a number.

    Attributes:
        name: name of its column.
        classes: the original label of each class, in sorted order; none for numbers.
        output: what a model must give for a row.
        outputs: what it may give.
        dtype: how the values of rows are stored.
        gaps: words that stand for an empty cell.
    """

    name: str
    classes: tuple[Label, ...] = ()
    output: ClassVar[Output] = VALUE
    outputs: ClassVar[frozenset[Output]] = frozenset({VALUE})
    dtype: ClassVar[str] = "<f8"
    gaps: ClassVar[frozenset[str]] = GAPS

    @property
    def type(self) -> pa.DataType:
        """The same, for columns."""
        return pa.from_numpy_dtype(np.dtype(self.dtype))

    @property
    def kind(self) -> Kind:
        """The kind of learners and measures that suit it."""
        return {0: Kind.REGRESSION, 2: Kind.BINARY}.get(len(self.classes), Kind.MULTICLASS)

    def word(self, of_classes: str, of_numbers: str) -> str:
        """Return the words for such a target."""
        return of_classes if self.classes else of_numbers

    def name_classes(self, chosen: Sequence[int] | Index, counts: Index, unit: str = "row") -> str:
        """Name some classes with their ``counts`` (n_classes,); "" if there are none."""
        named = [f"{cut(repr(self.classes[i]), MAX_OF_CLASS)} ({pluralize(counts[i], unit)})" for i in chosen]
        return ", ".join(cut_list(named, "more classes", MAX_CLASSES_NAMED))

    def check(self, y: Classes, allow_singletons: bool = False) -> None:
        """Raise InputError if a class has a single row; with ``allow_singletons``, if most classes do."""
        if not self.classes:
            return
        counts = np.bincount(y, minlength=len(self.classes))
        few, half = np.flatnonzero(counts < MIN_OF_CLASS).tolist(), len(self.classes) // 2
        if len(few) > (half if allow_singletons else 0):
            cures = ["leave these out"] * (len(self.classes) - len(few) >= MIN_CLASSES)
            cures += ["score by ckcv evaluate, which proves nothing"] * (len(few) <= half)
            raise InputError(
                f"the target {self.name!r} has classes of 1 row ({some([self.classes[i] for i in few])}) "
                f"among its {len(self.classes):,} ({some(self.classes)}): "
                f"{'most need' if allow_singletons else 'each needs'} at least {MIN_OF_CLASS}"
                f"{'; ' * bool(cures)}{', or '.join(cures)}{_perhaps_numbers(self.classes)}"
            )

    def read(self, columns: pa.Table, name: str | None = None) -> Values | Classes:
        """Return the numbers, or the class numbers, in a column of a table, none of whose cells are gaps.

        A label may be written differently from its class: 01 or 1.0 for 1, True for true, YES for yes.

        Args:
            columns: a table.
            name: name of the column; None if it is the target's.

        Raises:
            InputError: a label is not one of the classes; numbers are such as ``read_numbers`` refuses, or
                too large.
        """
        name = self.name if name is None else name
        otherwise = (
            ", and the learner predicts numbers: name a column of numbers, or choose a learner of classes "
            "such as forest"
        )
        y = read_numbers(Cells(columns, name), name, "the target", otherwise)
        if (most := np.abs(y).max(initial=0.0)) > LARGEST:
            raise InputError(f"the target {name!r} has {most:g}: magnitudes are at most {LARGEST:g}")
        return y + 0.0

    def decode(self, y: Values | Classes) -> NDArray[np.generic]:
        """Return the original labels of class numbers; predicted numbers are returned as they are."""
        return np.array(self.classes)[np.asarray(y, np.intp)] if self.classes else y


@dataclass(frozen=True)
class ClassTarget(Target):
    """One of some classes, which the rows of y name by their numbers 0 .. n_classes - 1."""

    output: ClassVar[Output] = LABEL
    outputs: ClassVar[frozenset[Output]] = frozenset({LABEL, RANK, PROBABILITY})
    dtype: ClassVar[str] = "<i4"
    gaps: ClassVar[frozenset[str]] = NO_NAMES

    def read(self, columns: pa.Table, name: str | None = None) -> Classes:
        """Return the class numbers of a column of labels."""
        name = self.name if name is None else name
        return _number_labels(*_encode(columns[name], name), self.classes, name)


def match_labels(column: pa.ChunkedArray, name: str, classes: Sequence[Label]) -> tuple[Classes, list[Label]]:
    """Return the class numbers of predicted labels, -1 for what is not a class, and the labels that are not.

    Raises:
        InputError: a label differs from a class only in case or spaces.
    """
    values, codes = _encode(column, name)
    numbers, near = (_find_classes(values, classes, key) for key in (canonical_text, fold_text))
    strange = [i for i, value in enumerate(values) if numbers[i] < 0 and value is not None]
    if found := [i for i in strange if near[i] >= 0]:
        raise InputError(
            f"column {name!r} holds {values[found[0]]!r}, which differs from the label "
            f"{classes[near[found[0]]]!r} only by case or spaces: write both in the same way"
        )
    return numbers[codes], [values[i] for i in strange]


def find_filled(column: pa.ChunkedArray, name: str, gaps: Collection[str]) -> Mask:
    """Return which cells of a column of labels, or of numbers to predict, are not among these ``gaps``."""
    values, codes = _encode(column, name)
    missing = (value is None or value != value or str(value).lower() in gaps for value in values)
    return ~np.array(list(missing))[codes]


def _number_labels(values: list[Any], codes: Index, classes: tuple[Label, ...], target: str) -> Classes:
    """Return the class number of each row, given the distinct labels and the position of each row's."""
    numbers, near = (_find_classes(values, classes, key) for key in (canonical_text, fold_text))
    y = np.where(numbers < 0, near, numbers)[codes]
    if len(y) and y.min() < 0:
        labels = [repr(label) for label in classes]
        listed = " and ".join(labels) if len(labels) == 2 else some(labels)
        raise InputError(f"column {target!r} holds {values[codes[np.argmin(y)]]!r}: the labels are {listed}")
    return y


def _find_classes(values: list[Any], classes: Sequence[Label], make_key: Callable[[str], str]) -> Classes:
    """Return the number of each value's class, by value or by a key of its text; -1 for none, and None."""
    exact = {label: number for number, label in enumerate(classes)} | {None: -1}
    alike = positions_by_value(list(map(str, classes)), make_key)
    found = [exact.get(value, alike.get(make_key(str(value)), -1)) for value in values]
    return np.array(found, np.int32)


def _encode(column: pa.ChunkedArray, target: str) -> tuple[list[Any], Index]:
    """Return the distinct values of a column of labels, None for an empty cell, and each row's position."""
    labels = is_text, is_number_type, pa.types.is_boolean, pa.types.is_null
    if not any(is_one(column.type) for is_one in labels):
        raise InputError(
            f"the target {target!r} has type {column.type}: labels are text or numbers; write it as one of "
            "them, or name another column as target"
        )
    values, codes = list_distinct(column)
    return [value.strip(SPACES) if isinstance(value, str) else value for value in values], codes


def encode_classes(column: pa.ChunkedArray, target: str) -> tuple[tuple[Label, ...], Classes]:
    """Return the classes of a target without gaps, sorted, and the class number of every row."""
    values, codes = _encode(column, target)
    limit = inf if any(isinstance(value, float) for value in values) else 2**63
    held = values[:-1]  # some may differ only in spaces
    found = sorted({value + 0.0 if isinstance(value, float) else value for value in held})  # -0.0 equals 0.0
    odd = [
        value for value in found if not (isinstance(value, str) or (isfinite(value) and abs(value) < limit))
    ]
    if odd:
        raise InputError(f"the target {target!r} has {odd[0]}: labels are text or finite numbers")
    if not MIN_CLASSES <= len(found) <= MAX_CLASSES:
        hint = _perhaps_numbers(found[:MAX_CLASSES]) if len(found) > MAX_CLASSES else ""
        raise InputError(
            f"the target {target!r} has {pluralize(len(found), 'class', 'classes')} "
            f"({some(found)}): expected {MIN_CLASSES} to {MAX_CLASSES:,}{hint}"
        )
    numbers = {label: _find_number(label) for label in found}
    if None not in numbers.values():  # texts that are all numbers are sorted by value
        found.sort(key=lambda label: (numbers[label], label))
    if len(codes) * max(len(str(label)) for label in found) > MAX_TABLE_BYTES:
        raise InputError(f"labels of {target!r} take more than {MAX_TABLE_BYTES >> 20:,} MiB: shorten them")
    return tuple(found), _number_labels(values, codes, tuple(found), target)


def _perhaps_numbers(classes: Sequence[Label]) -> str:
    """Return the end of a message that says how to predict numbers, if labels look like numbers; else ""."""
    if any(isinstance(label, bool) or _find_number(label) is None for label in classes):
        return ""
    return "; to predict numbers, choose a learner of numbers such as ridge, in ckcv run with --clip"


def _find_number(label: Label) -> float | None:
    if not isinstance(label, str):
        return float(label)
    _, is_one, number = canonical_text(label).partition("number ")
    return float(number) if is_one else None


class GapWords(NamedTuple):
    """Words in a column that were taken for empty cells."""

    column: str  # its name
    rows: dict[str, int]  # how many rows have each word; "" stands for an empty cell
    n: int  # number of rows of the table

    @classmethod
    def of(cls, column: pa.ChunkedArray, name: str, taken: NDArray[np.bool_]) -> "GapWords":
        """Return the words in those cells of a column that were taken for empty ones, (rows,)."""
        rows: Counter[str] = Counter()
        for found in column.filter(pa.array(taken)).value_counts().to_pylist():
            rows[bare(found["values"]) if isinstance(found["values"], str) else ""] += found["counts"]
        return cls(name, {word: rows[word] for word in sorted(rows)}, len(column))

    def describe(self, keepable: bool = True) -> str:
        """Say in how many rows cells count as empty, and which words do, with the option to keep these.

        Words are not ``keepable`` where numbers are needed.
        """
        empty, words = sum(self.rows.values()), [word for word in self.rows if word]
        said = f"{empty:,} of {self.n:,} rows ({format(100 * empty / self.n, '.3g')} %)"
        if not words:
            return said
        listed = " and ".join(f"{word!r} in {self.rows[word]:,}" for word in words)
        kept = f" (to keep such text, say {write_option('keep-values', ','.join(words))})" if keepable else ""
        return f"{said}, with {listed} of them{kept}"


ANSWERS = JOIN, APART = "join", "apart"
MAX_SPELLINGS = 10 * MAX_CLASSES  # with more, there are too many classes in any case
MAX_WAYS = 4
RowCounts = dict[str, int]  # number of rows by way of writing a class


def read_labels(columns: pa.Table, target: str, answer: str = "") -> pa.ChunkedArray:
    """Return a column of labels; in a text table, as what its cells are together, if they are written so.

    Labels such as 1 and 2 become numbers, True and False truth values; 01, 1.50 and TRUE stay the texts that
    predictions are to hold.

    Args:
        columns: a table.
        target: name of its column of labels.
        answer: "join" to make one class of labels that are written in several ways, named as in most of its
            rows (of equally frequent ways, as the first one, sorted); "apart" to take each way as a separate
            class, as text; "" to ask.

    Raises:
        InputError: labels are written in several ways, and there is no answer.
    """
    if answer:
        check_choice("labels", answer, ANSWERS)
    cells = Cells(columns, target)
    if not is_text(cells.stored) or (answer == APART and not cells.written):
        return cells.values
    values, codes = list_distinct(cells.encoded)
    if len(values) > MAX_SPELLINGS:
        return cells.infer()
    texts, gaps = ["" if value is None else value.strip(SPACES) for value in values], NO_NAMES & cells.gaps
    classes = [None if text.lower() in gaps else fold_text(text) for text in texts]
    rows = np.bincount(codes, minlength=len(values))
    counts: dict[str | None, RowCounts] = defaultdict(lambda: defaultdict(int))
    for text, name, count in zip(texts, classes, rows.tolist(), strict=True):
        if name is not None:
            counts[name][text] += count
    several = [ways for ways in counts.values() if len(ways) > 1]
    if several and not answer:
        raise InputError(
            f"the target {target!r} has {describe_ways(several, 'label')}: say --labels join if they are one "
            "class, --labels apart if each is a class of its own, or write them alike"
        )
    if several and answer == APART:
        return cells.values
    if several:
        called = {name: min(ways, key=lambda text: (-ways[text], text)) for name, ways in counts.items()}
        labels = pa.array([called.get(name) for name in classes], pa.string()).take(pa.array(codes))
        cells = Cells(columns.set_column(columns.column_names.index(target), target, labels), target)
    if cells.written and not is_text(cells.typed.type):
        values, _ = list_distinct(cells.encoded)
        pairs = zip(values, cells.typed.to_pylist(), strict=False)  # an empty cell is the last value
        if all(value is None or str(value) == bare(text) for text, value in pairs):
            return cells.infer()
    return cells.values


def describe_ways(several: list[RowCounts], noun: str) -> str:
    """Say how the first of several is written, and count the others."""
    ways = sorted(several[0].items(), key=lambda way: (-way[1], way[0]))
    shown = some([f"{text[:40]!r} ({pluralize(count, 'row')})" for text, count in ways], MAX_WAYS)
    rest = f", and {pluralize(len(several) - 1, f'other {noun}')} of several forms" if several[1:] else ""
    return f"{shown}, which may be one{rest}"


RowUnits = NDArray[np.intp]
GROUP_NAMES = ("group", "groups", "group_of_row")
WEIGHT_NAMES = ("weight", "sample_weight", "weight_of_row")


@dataclass(frozen=True)
class Units:
    """The units of a table, drawn independently of each other: rows, or groups of rows that belong together.

    Attributes:
        n: number of rows.
        question: a question about a column that looks like groups, for display; "" if there is none.
        groups: the group of each row, numbered from 0 in the order of first appearance, (n,); None if each
            row is a unit.
        name: name of the column of groups; None without groups.
    """

    n: int
    question: str = ""
    groups: RowUnits | None = None
    name: str | None = None

    @staticmethod
    def read(columns: pa.Table, names: Sequence[str], question: str = "") -> "Units":
        """Return the groups of rows that agree in all these columns of a table; without columns, its rows.

        ``question`` asks about a column that looks like groups, where none is named.

        Raises:
            InputError: a column has empty cells, or values other than text, numbers, dates or the like; or
                one has the name of the groups.
        """
        if not names:
            return Units(columns.num_rows, question)
        groups = np.zeros(columns.num_rows, np.intp)
        for name in names:
            cells = Cells(columns, name)
            column = cells.infer()
            if is_text(column.type):  # cells that differ only in surrounding spaces are one group
                column = without_gaps(column, NO_NAMES & cells.gaps)
            refuse_gaps(
                pc.is_null(column, nan_is_null=True).to_numpy(),
                f"column {name!r}, which names groups,",
                "fill them (NA, null, nan and ? count as empty, unless --keep-values names them), with a "
                "value of its own for each row that belongs to no other, or leave these rows out",
            )
            try:
                pairs = groups * len(groups) + number_values(column)
                groups = number_values(pa.chunked_array([pairs]))
            except pa.ArrowException as error:
                raise InputError(f"column {name!r} cannot be read as groups: {error}") from None
        together = name_groups(names)
        if len(names) > 1 and together in columns.column_names:
            raise InputError(
                f"a column is named {together!r}, as the groups by these columns would be: rename it"
            )
        return Units(columns.num_rows, groups=groups, name=together)

    @property
    def independent(self) -> bool:
        """Whether rows are independent."""
        return self.groups is None

    @property
    def columns(self) -> dict[str, RowUnits]:
        """The groups, (n,), by the name of their column; none without groups."""
        return {} if self.groups is None or self.name is None else {self.name: self.groups}

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.n if self.groups is None else int(self.groups.max(initial=-1)) + 1

    @cached_property
    def row_units(self) -> RowUnits:
        """The unit of each row, (n,)."""
        return np.arange(self.n) if self.groups is None else self.groups

    def word(self, of_rows: str, of_groups: str) -> str:
        """Return the words for such units."""
        return of_rows if self.groups is None else of_groups

    def rows(self, units: Index) -> Index:
        """Return the rows of units, as often as each unit is named; for groups, ascending."""
        if self.groups is None:
            return units
        return np.repeat(np.arange(self.n), np.bincount(units, minlength=self.n_units)[self.groups])

    def part(self, rows: Index) -> "Units":
        """Return the units of some rows; groups are numbered again."""
        groups = None if self.groups is None else number_values(pa.chunked_array([self.groups[rows]]))
        return replace(self, n=len(rows), groups=groups)

    def check(self) -> None:
        """Raise InputError if groups are too few, or do not group anything."""
        if self.groups is not None and not MIN_GROUPS <= self.n_units < self.n:
            raise InputError(
                f"column {self.name!r} makes {self.n_units:,} groups of {self.n:,} rows: at least "
                f"{MIN_GROUPS} are needed, with several rows in one; name the column that says which rows "
                "belong together, such as the patient's number, or leave --group out if none do"
            )

    def check_independent(self, message: str) -> None:
        """Raise InputError with this message if rows belong together."""
        if self.groups is not None:
            raise InputError(message)

    def stratify(self, y: Classes, n_classes: int) -> Strata:
        """Return the units with the classes of their rows, given in ``y``, (n,): of groups, their numbers."""
        if self.groups is None:
            return Strata(self.n, y)
        cells = np.bincount(self.groups * n_classes + y, minlength=self.n_units * n_classes)
        return Strata(self.n_units, class_rows=cells.reshape(self.n_units, n_classes))

    def weigh_rows(self, row_units: RowUnits) -> Values | None:
        """Return what share of its group each row is, so that groups count alike; None if rows do."""
        return None if self.groups is None else np.asarray(1 / np.bincount(row_units)[row_units])


@dataclass(frozen=True)
class SplitUnits(Units):
    """The units of a resampling by a column of times or folds: for each value, the rows that have it.

    Attributes:
        groups: the position of each row's value, (n,).
        column: its name; "" without one.
        values: the different values, ascending; for categories, positions of their names.
        kind: kind of the values.
        levels: the names of categories.
    """

    groups: RowUnits = field(kw_only=True)
    column: str = field(kw_only=True)
    values: Values = field(kw_only=True)
    kind: ColumnKind = ColumnKind.NUMBER
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: pa.Table, name: str | None, asked: ColumnKind | None) -> "SplitUnits":
        """Return the units by a column of a table; all its text is dates if some looks like a date.

        Raises:
            InputError: a cell is empty, or not of the same kind as the others.
        """
        if name is None:
            return UNSPLIT
        cells = Cells(columns, name)
        dates = not cells.are_numbers and any(map(LOOKS_LIKE_DATE.match, cells.known))
        try:
            column, x = learn_column(cells, name, ColumnKind.DATE if dates else asked)
        except ColumnError as problem:
            mend = next((mend for mend in problem.mends if "{" not in mend), "name another column")
            raise InputError(f"column {name!r} {problem}: {mend}") from None
        called = f"column {name!r}, which divides the rows,"
        refuse_gaps(np.isnan(x), called, "fill these cells, or leave the rows out")
        values, groups = np.unique(x, return_inverse=True)
        return cls(len(x), groups=groups, column=name, values=values, kind=column.kind, levels=column.levels)

    @property
    def columns(self) -> dict[str, NDArray[np.generic]]:  # type: ignore[override]
        """The value of each row, (n,), by the name of the column; empty without one."""
        values: NDArray[np.generic] = self.values
        if self.kind is ColumnKind.DATE:
            values = self.values.astype("M8[ms]")
        elif self.levels:
            values = np.array(self.levels)[self.values.astype(np.intp)]
        return {self.column: values[self.groups]} if self.column else {}

    def find_rows(self, sign: str, text: str) -> Mask:
        """Return which rows have a value that equals a text ("="), is at least it (">="), or above it (">").

        Raises:
            InputError: the text is not of the values' kind, or an order of categories is asked for.
        """
        form, _, number = canonical_text(text).partition(" ")
        if form in TRUTH and self.kind is ColumnKind.NUMBER:
            form, number = "number", str(TRUTH[form])
        if self.kind is ColumnKind.NUMBER and np.abs(self.values).max() >= LAST_EXACT:
            raise InputError(
                f"column {self.column!r} has numbers of {LAST_EXACT:,.0f} and more, too large to be told "
                "apart: name another column, or say --categorical"
            )
        wanted, signs, example = {
            ColumnKind.NUMBER: ("number", ("=", ">=", ">"), "3.5"),
            ColumnKind.DATE: ("date", (">=", ">"), "2025-01-31"),
            ColumnKind.CATEGORY: (form, ("=",), self.levels[:1]),
        }[self.kind]
        if form != wanted or sign not in signs:
            raise InputError(
                f"column {self.column!r} has {self.kind} values: say, for example, "
                f"{self.column}{signs[0]}{''.join(example)}, not {quote(sign + text)}"
            )
        if self.levels:
            alike = positions_by_value(self.levels).get(canonical_text(text), -1)
            chosen = self.values == (self.levels.index(text) if text in self.levels else alike)
        else:
            compare = {"=": np.equal, ">=": np.greater_equal, ">": np.greater}[sign]
            chosen = compare(self.values, float(number))
        return np.asarray(chosen)[self.groups]

    def stratify(self, y: Classes, n_classes: int) -> Strata:
        """Return the values; classes play no part."""
        return Strata(self.n_units, values=self.values, kind=self.kind)


UNSPLIT = SplitUnits(0, groups=np.zeros(0, np.intp), column="", values=np.zeros(0))


def name_groups(groups: Sequence[str]) -> str | None:
    """Return one name for these columns together; None if there are none."""
    if len(groups) > 1:
        return write_row(groups)
    return groups[0] if groups else None


@dataclass(frozen=True)
class Weighting:
    """What rows weigh in a fit."""

    named: Values | None = None  # the weight of each row, positive, (n,); None if all weigh the same
    column: str | None = None  # name of the column of weights; None if all weigh the same

    @classmethod
    def read(cls, columns: pa.Table, name: str | None) -> "Weighting":
        """Return the weights in a column of a table; without a name all rows weigh the same.

        Raises:
            InputError: a cell is empty, or is not a positive number of a magnitude that can be computed with.
        """
        if name is None:
            return UNWEIGHTED
        role, cells = "the column of weights", Cells(columns, name)
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

    def describe(self) -> str:
        """Say what the weights are used for; "" if all rows weigh the same."""
        if self.column is None:
            return ""
        return f"Rows are weighted by {self.column!r} only in fits: measures and claims are unweighted."


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
MANY_NAMES, MAX_ROWS_OF_NAME = 20, 100  # fewer values with more rows each are kinds of things, not names
MIN_REPEATED = 0.05  # share of rows whose value occurs again, for a column of any name
MIN_FILLED = 0.95  # share of a range's numbers that occur
MAX_NEAR, MIN_TIMES = 10, 20  # how far near numbers differ; how many times more are equal
MIN_ROUND = ((10, 0.3), (5, 0.5))  # share of multiples from which on numbers are rounded
MAX_ROWS_SEEN = 20_000  # to see whether a column of any name looks like groups
MIN_NUMBERED = 20  # rows: fewer may look numbered by chance, as the steps of a dose do
DENSE = 2  # numbers of rows are less than twice as far apart as there are rows


def is_row_number(x: Values, name: str) -> bool:
    """Return whether a column x (n,) numbers the rows, so that it must not be learned from unless asked for.

    That is a column that goes up by one from row to row, from 0 or 1, in 20 rows or more, unless it is named
    like a time; or one that is named like a row number or like what the rows are, and has a different whole
    number in each: without wide gaps, or rising.
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
    """Return a question about the first column that looks as if it named groups; "" if there is none.

    Columns with names like those of groups come first.

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

    The most frequent value does not count, as it may stand for no group; see the head of the module.
    """
    if is_name_of_groups(name):
        counts = np.bincount(number_values(_read_names(Cells(columns, name))))
        enough = len(counts) >= MANY_NAMES or counts.sum() <= MAX_ROWS_OF_NAME * len(counts)
        if len(counts) >= MIN_GROUPS and enough and counts[counts > 1].sum() / counts.sum() >= MIN_SHARED:
            return len(counts)
    cells = Cells(columns.slice(0, MAX_ROWS_SEEN), name)
    counts = np.bincount(number_values(column := _read_names(cells)))
    if len(counts) < MANY_NAMES or len(column) > 2 * len(counts):
        return 0
    repeated = counts[counts > 1].sum() / counts.sum() - counts.max() / len(column)
    if repeated < MIN_REPEATED or not _are_names(cells, column):
        return 0
    return len(np.bincount(number_values(_read_names(Cells(columns, name)))))  # of all rows


def _read_names(cells: Cells) -> pa.ChunkedArray:
    """Return a column of text or whole numbers without gaps; for any other, no cells."""
    no_names = pa.chunked_array([], pa.null())
    if cells.written and cells.floats is not None and np.any(cells.floats != np.floor(cells.floats)):
        return no_names  # found at once; the kind of all texts together takes several times as long
    column = cells.infer()
    if pa.types.is_floating(column.type) and np.any((values := column.to_numpy()) != np.floor(values)):
        return no_names
    is_name = is_text(column.type) or is_number_type(column.type)
    return column if is_name and not column.null_count else no_names


def _are_names(cells: Cells, column: pa.ChunkedArray) -> bool:
    """Return whether the values of a column repeat as names do."""
    if is_text(column.type):
        if cells.written and cells.floats is not None:  # with more digits than numbers have
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
