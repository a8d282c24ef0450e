"""What the columns of a table hold: numbers, categories or dates, with gaps; and the numbers they become.

A table is understood once, from the learning rows. Its rows, and those to be predicted later, then become
numbers [rows, d]: a number as it is, a date in milliseconds since 1970, a category as the number of its
level. A gap is nan. Nothing here depends on labels, and nothing is estimated from rows: that is done inside
each split (``learners.encoding``).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.data.files import HELD, SPARSE
from ckcv_ray.data.forms import (
    GAPS,
    LOOKS_LIKE_DATE,
    ColumnError,
    Parser,
    date_parser,
    form_of_dates,
    form_of_numbers,
    known_texts,
    leave_out,
    number_parser,
)
from ckcv_ray.data.schema import LARGEST, NUMBERS, distinct, some, unique_names
from ckcv_ray.errors import InputError, counted
from ckcv_ray.validation import read_as

Values = NDArray[np.float64]

MOSTLY = 0.5  # share of a column's values from which they are its kind, and others a mistake


class ColumnKind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    CATEGORY = "category"
    DATE = "date"


@dataclass(frozen=True)
class Column:
    """How a column is understood.

    Attributes:
        name: its name.
        kind: what it holds.
        levels: the text of each level of a category, sorted; empty for other kinds.
        form: how text is read: the format of dates, or "point", "comma" or "thousands" for numbers; "" for
            columns that are not text.
    """

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    levels: tuple[str, ...] = ()
    form: str = ""


Schema = tuple[Column, ...]


def schema_of(content: Any) -> Schema:
    """Return the schema that JSON values describe.

    Raises:
        ValueError: they describe none.
    """
    return tuple(read_as(list[Column], content))


class Asked(NamedTuple):
    """Names of the columns whose kind the user says."""

    categorical: Collection[str] = ()
    numeric: Collection[str] = ()
    date: Collection[str] = ()

    def kind(self, name: str) -> ColumnKind | None:
        """Return the kind that was asked for; None if the values decide."""
        for kind, names in zip((ColumnKind.CATEGORY, ColumnKind.NUMBER, ColumnKind.DATE), self, strict=True):
            if name in names:
                return kind
        return None


NOTHING_ASKED = Asked()


class Read(NamedTuple):
    """A column as numbers.

    Attributes:
        values: (rows,), nan for gaps.
        bad: which rows hold a value of another kind, (rows,).
    """

    values: Values
    bad: NDArray[np.bool_]


def understand(columns: pa.Table, names: Sequence[str], asked: Asked) -> tuple[Schema, Values]:
    """Return how the named columns of a table are understood, and their rows as numbers [n, d].

    Raises:
        InputError: what is wrong with every column that cannot be learned from, and how to mend each.
    """
    schema: list[Column] = []
    X = np.empty((columns.num_rows, len(names)))
    problems: list[str] = []
    position = {name: i for i, name in enumerate(columns.column_names)}
    for i, name in enumerate(names):
        cells = Cells(columns.column(position[name]))
        try:
            if held := (columns.schema.field(position[name]).metadata or {}).get(HELD):
                raise ColumnError(_not_learned_from(held.decode(), name))
            column = _understood(cells, name, asked.kind(name))
            X[:, i] = _checked(cells, column)
            schema.append(column)
        except ColumnError as problem:
            problems.append(f"column {name!r} {problem}")
    if problems:
        raise InputError("; and ".join(problems))
    return tuple(schema), X


def is_plain(schema: Schema, X: Values) -> bool:
    """Return whether a table holds nothing but numbers without gaps: every learner takes them as they are."""
    return all(column.kind is ColumnKind.NUMBER for column in schema) and not np.isnan(X).any()


class NewRows(NamedTuple):
    """Rows to be predicted, as numbers.

    Attributes:
        X: (rows, d); a category that was never seen has a level of its own.
        bad: which rows cannot be judged, (rows,).
        reason: why the first of them cannot; "" if all can.
    """

    X: Values
    bad: NDArray[np.bool_]
    reason: str

    def check(self) -> None:
        """Raise InputError if a row cannot be judged."""
        if self.reason:
            raise InputError(self.reason)


def read_values(columns: pa.Table, features: Sequence[str], schema: Schema | None) -> NewRows:
    """Return the rows of a table as numbers, its columns matched by name.

    Args:
        columns: a table with these columns, and perhaps others.
        features: names of the columns.
        schema: how they are understood; None for numbers without gaps, in which a gap cannot be judged.

    Raises:
        InputError: a column is missing, or of another kind as a whole.
    """
    names = unique_names(columns)
    position = {name: i for i, name in enumerate(names)}
    sparse = SPARSE in (columns.schema.metadata or {})  # absent means zero
    for name in features:
        if name not in position and not (sparse and name.startswith("x")):
            raise InputError(f"there is no column {name!r}: the columns are {some(names)}")
    X = np.zeros((columns.num_rows, len(features)))
    bad = np.zeros(columns.num_rows, np.bool_)
    reason = ""
    for i, column in enumerate(schema or tuple(map(Column, features))):
        if column.name not in position:
            continue
        values = columns.column(position[column.name])
        try:
            X[:, i], wrong = _read(Cells(values), column)
        except ColumnError as problem:
            raise InputError(f"column {column.name!r} {problem}: fix it") from None
        wrong |= np.isinf(X[:, i]) | (np.abs(X[:, i]) > LARGEST) | (np.isnan(X[:, i]) & (schema is None))
        if wrong.any() and not reason:
            reason = _reason(values, column, X[:, i], wrong)
        bad |= wrong
    return NewRows(X, bad, reason)


def _reason(values: pa.ChunkedArray, column: Column, numbers: Values, wrong: NDArray[np.bool_]) -> str:
    """Say why the first wrong row of a column cannot be judged."""
    row = int(np.argmax(wrong))
    said = values[row].as_py()
    if np.isinf(numbers[row]):
        wrong_here = f"{numbers[row]} in row {row + 1}"
    elif said is None or said != said:
        empty = int(np.isnan(numbers).sum())
        wrong_here = f"{counted(empty, 'empty cell')}, the first in row {row + 1}"
    elif not isinstance(said, str) and isfinite(said) and abs(said) > LARGEST:
        wrong_here = f"{said} in row {row + 1}, and magnitudes are at most {LARGEST:g}"
    else:
        wrong_here = f"{str(said)[:40]!r} in row {row + 1}, not a {column.kind}"
    return f"column {column.name!r} has {wrong_here}: fix it"


def to_arrow(values: Values, column: Column) -> pa.Array:
    """Return numbers as a column that is understood as ``column`` again, if that kind is asked for."""
    gap = np.isnan(values)
    if column.kind is ColumnKind.CATEGORY:
        levels = [*column.levels, None]
        return pa.array(np.array(levels, dtype=object)[np.where(gap, len(column.levels), values).astype(int)])
    if column.kind is ColumnKind.DATE:
        return pa.array(np.where(gap, 0, values).astype(np.int64), pa.timestamp("ms"), mask=gap)
    return pa.array(values, mask=gap) if gap.any() else pa.array(np.ascontiguousarray(values))


class Cells:
    """A column as it was read, whose distinct texts are looked up once.

    Attributes:
        values: the column.
        kind: type of its values, in a dictionary or not.
    """

    def __init__(self, values: pa.ChunkedArray) -> None:
        self.values = values
        self.kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type

    @property
    def are_numbers(self) -> bool:
        """Whether the values are numbers, decimal ones and booleans included."""
        types = (*NUMBERS, pa.types.is_boolean, pa.types.is_decimal)
        return any(is_one(self.kind) for is_one in types)

    @property
    def are_dates(self) -> bool:
        """Whether the values are days or moments."""
        return bool(pa.types.is_date(self.kind) or pa.types.is_timestamp(self.kind))

    @cached_property
    def texts(self) -> tuple[list[str | None], NDArray[np.intp]]:
        """The distinct texts, without spaces around them, None for a null, and the position of each row's."""
        values = self.values
        if pa.types.is_dictionary(values.type):
            values = values.cast(self.kind)
        if pa.types.is_floating(self.kind) and _whole(values):  # a gap has made whole numbers floating
            values = values.cast(pa.int64())
        raw, codes = distinct(values if is_text(values.type) else values.cast(pa.string()))
        stripped = [None if text is None else text.strip() for text in raw]
        known = list(dict.fromkeys(stripped))
        position = {text: i for i, text in enumerate(known)}
        return known, np.array([position[text] for text in stripped], dtype=np.intp)[codes]


def _understood(cells: Cells, name: str, asked: ColumnKind | None) -> Column:
    """Decide what a column holds."""
    if cells.are_numbers:
        if asked is ColumnKind.DATE:
            raise ColumnError(f"holds numbers, not dates: leave it out of --date {name[:60]}")
        if asked is not ColumnKind.CATEGORY:
            return Column(name)
        return Column(name, ColumnKind.CATEGORY, _levels(cells.texts[0]))
    if cells.are_dates:
        if asked in (None, ColumnKind.DATE):
            return Column(name, ColumnKind.DATE)
        return Column(name, asked, _levels(cells.texts[0]) if asked is ColumnKind.CATEGORY else ())
    if is_text(cells.kind):
        return _understood_text(*cells.texts, name, asked)
    if pa.types.is_null(cells.kind):
        raise ColumnError(f"is empty: {leave_out(name)}")
    raise ColumnError(_not_learned_from(str(cells.kind), name))


def _not_learned_from(kind: str, name: str) -> str:
    return f"holds {kind}, which cannot be learned from: {leave_out(name)}"


def _understood_text(
    distinct: list[str | None], codes: NDArray[Any], name: str, asked: ColumnKind | None
) -> Column:
    """Decide what a column of text holds, from its distinct values and those of each row."""
    out = leave_out(name)
    known = known_texts(distinct)
    if not known:
        raise ColumnError(f"is empty: {out}")
    counts = np.bincount(codes, minlength=len(distinct))
    rows_of = {text: int(counts[i]) for i, text in enumerate(distinct) if text is not None}
    rows = sum(rows_of[text] for text in known)
    if asked is ColumnKind.CATEGORY:
        return Column(name, ColumnKind.CATEGORY, _levels(distinct))
    if asked in (None, ColumnKind.NUMBER):
        form, bad = form_of_numbers(known, name)
        wrong = sum(rows_of[text] for text in bad)
        if asked is ColumnKind.NUMBER and len(bad) < len(known):
            return Column(name, ColumnKind.NUMBER, form=form)
        if asked is ColumnKind.NUMBER:
            raise ColumnError(f"holds no numbers{_such_as(bad, distinct, codes)}: {out}, or from --numeric")
        if not bad:
            return Column(name, ColumnKind.NUMBER, form=form)
        if wrong <= (1 - MOSTLY) * rows and form:
            raise ColumnError(
                f"holds numbers and in {counted(wrong, 'row')} something else"
                f"{_such_as(bad, distinct, codes)}: mend it, or say --numeric {name[:60]} (what is none is a "
                f"gap), --categorical {name[:60]}, or {out}"
            )
    if asked is ColumnKind.DATE or LOOKS_LIKE_DATE.match(known[0]):
        form, bad = form_of_dates(known, name)
        wrong = sum(rows_of[text] for text in bad)
        if not bad:
            return Column(name, ColumnKind.DATE, form=form)
        if asked is ColumnKind.DATE or wrong <= (1 - MOSTLY) * rows:
            raise ColumnError(
                f"holds dates and in {counted(wrong, 'row')} what is none"
                f"{_such_as(bad, distinct, codes)}: mend it, or say --categorical {name[:60]}, or {out}"
            )
    if len(known) == rows and rows > 2:
        raise ColumnError(
            f"has another text in each of its {counted(rows, 'row')}{_such_as(known, distinct, codes)}, "
            f"of which nothing can be learned: {out}, or say --id {name[:60]} if it names the rows"
        )
    return Column(name, ColumnKind.CATEGORY, _levels(distinct))


def _checked(cells: Cells, column: Column) -> Values:
    """Return the learning rows of a column as numbers."""
    numbers = _read(cells, column).values
    out = leave_out(column.name)
    if len(numbers) and np.isnan(numbers).all():
        raise ColumnError(f"is empty: {out}")
    limit = f"magnitudes are at most {LARGEST:g}, and no number may stand for a missing value; "
    for wrong, what in ((np.isinf(numbers), ""), (np.abs(numbers) > LARGEST, limit)):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ColumnError(f"has {numbers[row]} in row {row + 1}: {what}fix it, or {out}")
    return numbers


def _read(cells: Cells, column: Column) -> Read:
    values, kind, rows = cells.values, cells.kind, len(cells.values)
    if pa.types.is_null(kind):
        return Read(np.full(rows, nan), np.zeros(rows, np.bool_))
    if column.kind is ColumnKind.CATEGORY:
        number = {level: float(i) for i, level in enumerate(column.levels)}
        return _of_distinct(*cells.texts, lambda text: number.get(text, float(len(number))))
    if is_text(kind):
        return _of_distinct(*cells.texts, _parser(column, cells.texts[0]))
    if column.kind is ColumnKind.DATE:
        return _dates(cells)
    if not cells.are_numbers:
        raise ColumnError(f"holds {kind}, not numbers")
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    numbers = np.asarray(values.to_numpy(), dtype=np.float64)
    return Read(numbers, np.zeros(rows, np.bool_))


def _parser(column: Column, distinct: Sequence[str | None]) -> Parser:
    """Return what reads text as a column's numbers or dates; their form is that of the learning rows."""
    known = known_texts(distinct)
    if column.kind is ColumnKind.DATE:
        return date_parser(column.form or (form_of_dates(known, column.name)[0] if known else ""))
    return number_parser(column.form or (form_of_numbers(known, column.name)[0] if known else ""))


def _of_distinct(distinct: list[str | None], codes: NDArray[Any], parse: Parser) -> Read:
    """Return the numbers of texts, each distinct one parsed once; nan and bad where it cannot be."""
    numbers, bad = np.full(len(distinct), nan), np.zeros(len(distinct), np.bool_)
    for i, text in enumerate(distinct):
        if text is None or text.lower() in GAPS:
            continue
        parsed = parse(text)
        numbers[i], bad[i] = (nan, True) if parsed is None else (parsed, False)
    return Read(numbers[codes], bad[codes])


def _dates(cells: Cells) -> Read:
    if not cells.are_dates:
        raise ColumnError(f"holds {cells.kind}, not dates")
    zone = getattr(cells.kind, "tz", None)
    stamps = cells.values.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
    gap = stamps.is_null().to_numpy()
    numbers = np.where(gap, nan, stamps.fill_null(0).to_numpy().astype(np.float64))
    return Read(numbers, np.zeros(len(numbers), np.bool_))


def _whole(values: pa.ChunkedArray) -> bool:
    numbers = values.drop_null().to_numpy()
    return bool(np.all(np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)))


def _levels(distinct: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted(set(known_texts(distinct))))


def _such_as(bad: Sequence[str], distinct: Sequence[str | None], codes: NDArray[Any]) -> str:
    """Give an example of a text and its row."""
    row = int(np.argmax(codes == distinct.index(bad[0])))
    return f", such as {bad[0][:40]!r} in row {row + 1}"


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is that of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
