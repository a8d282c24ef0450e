"""Cells of a column as numbers, by how the column is understood.

What a cell becomes depends on the cell and on the schema alone, and never on other rows.
"""

from collections.abc import Collection
from functools import cached_property
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.tables.columns.formats import (
    GAPS,
    ColumnError,
    Parser,
    bare,
    canonical_text,
    date_parser,
    number_parser,
    positions_by_value,
)
from ckcv_ray.tables.columns.types import Column, ColumnKind
from ckcv_ray.tables.readers.limits import check_bytes, count_text_bytes
from ckcv_ray.tables.target import NUMBERS, distinct, is_text

Values = NDArray[np.float64]
PART_BYTES = 1 << 24  # of text that is made at once


class Read(NamedTuple):
    """A column as numbers.

    Attributes:
        values: (rows,), nan for gaps; a category that was never seen is a level of its own, the last.
        bad: which rows hold a value of another kind, (rows,).
    """

    values: Values
    bad: NDArray[np.bool_]


class Cells:
    """A column as it was read, whose distinct texts are looked up once.

    Attributes:
        values: the column, no dictionary.
        kind: type of its values.
        declared: whether it was a dictionary, which says that its values are categories.
        comma: whether it is of a table with decimal commas.
    """

    def __init__(self, values: pa.ChunkedArray, comma: bool = False) -> None:
        self.declared = pa.types.is_dictionary(values.type)
        self.kind = values.type.value_type if self.declared else values.type
        self.values, self.comma = decoded(values), comma

    @property
    def are_numbers(self) -> bool:
        """Whether the values are numbers, decimal ones and booleans included."""
        types = (*NUMBERS, pa.types.is_boolean, pa.types.is_decimal)
        return any(is_one(self.kind) for is_one in types)

    @property
    def are_dates(self) -> bool:
        """Whether the values are days or moments."""
        return bool(pa.types.is_date(self.kind) or pa.types.is_timestamp(self.kind))

    @property
    def are_text(self) -> bool:
        """Whether the values are text."""
        return is_text(self.kind)

    @cached_property
    def texts(self) -> tuple[list[str | None], NDArray[np.intp]]:
        """The distinct texts, without spaces around them, None for a null, and the position of each row's."""
        values = self.values
        if pa.types.is_floating(self.kind) and _whole(values):  # a gap has made whole numbers floating
            values = values.cast(pa.int64())
        raw, codes = distinct(values if is_text(values.type) else values.cast(pa.string()))
        stripped = [None if text is None else bare(text) for text in raw]
        known = list(dict.fromkeys(stripped))
        position = {text: i for i, text in enumerate(known)}
        return known, np.array([position[text] for text in stripped], dtype=np.intp)[codes]


def read_cells(cells: Cells, column: Column) -> Read:
    """Return the cells of a column as numbers.

    Raises:
        ColumnError: all of them are of another kind.
    """
    rows = len(cells.values)
    if pa.types.is_null(cells.kind):
        return _all_known(np.full(rows, nan))
    if column.kind is ColumnKind.CATEGORY:
        return _of_distinct(cells, _number_of(column.levels))
    if column.kind is ColumnKind.DATE:
        return _dates(cells, column)
    if cells.are_text:
        return _numbers_in_text(cells, column)
    if not cells.are_numbers:
        raise ColumnError(f"holds {cells.kind}, not numbers")
    if pa.types.is_boolean(cells.kind):
        return _all_known(cells.values.cast(pa.int8()).to_numpy())
    if pa.types.is_decimal(cells.kind):
        return _all_known(cells.values.cast(pa.float64()).to_numpy())
    return _all_known(cells.values.to_numpy())


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column, which may be a dictionary that holds a value, or none, twice.

    Raises:
        InputError: they take too many bytes.
    """
    if not pa.types.is_dictionary(values.type):
        return values
    check_bytes("a column", count_text_bytes(values))
    parts = [part for chunk in values.chunks for part in take_in_parts(chunk.dictionary, chunk.indices)]
    return pa.chunked_array(parts, values.type.value_type)


def take_in_parts(values: pa.Array, codes: pa.Array) -> list[pa.Array]:
    """Return the value of each code: text in parts of some megabytes, since Arrow doubles what grows."""
    if not is_text(values.type):
        return [values.take(codes)]
    lengths = pc.fill_null(pc.take(pc.binary_length(values), codes), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.unique([0, *np.searchsorted(ends, np.arange(PART_BYTES, total, PART_BYTES)), len(codes)])
    return [values.take(codes.slice(start, end - start)) for start, end in pairwise(cuts.tolist())]


def without_gaps(values: pa.ChunkedArray, gaps: Collection[str]) -> pa.ChunkedArray:
    """Return text without spaces around it, and null in place of words that say that it is missing."""
    trimmed = pc.utf8_trim_whitespace(values)
    missing = pc.is_in(pc.utf8_lower(trimmed), pa.array(sorted(gaps), trimmed.type))
    return pc.if_else(missing, pa.scalar(None, trimmed.type), trimmed)


def _all_known(values: NDArray[Any]) -> Read:
    return Read(np.asarray(values, dtype=np.float64), np.zeros(len(values), np.bool_))


def _number_of(levels: tuple[str, ...]) -> Parser:
    """Return what gives the number of a level, which may be written in another way; one more for no level."""
    exact = {level: i for i, level in enumerate(levels)}
    alike = positions_by_value(levels)

    def number(text: str) -> float:
        return float(exact.get(text, alike.get(canonical_text(text), len(levels))))

    return number


def _numbers_in_text(cells: Cells, column: Column) -> Read:
    """Read text as numbers: all at once if that can be done, else each distinct text."""
    form = column.form or ("comma" if cells.comma else "")
    if form in ("", "point"):
        try:
            return _all_known(without_gaps(cells.values, GAPS).cast(pa.float64()).to_numpy())
        except pa.ArrowInvalid:  # some text is no number, or is written as Arrow does not read it
            pass
    return _of_distinct(cells, number_parser(form), column.lenient)


def _dates(cells: Cells, column: Column) -> Read:
    if cells.are_text or (cells.are_numbers and column.form):
        return _of_distinct(cells, date_parser(column.form))
    if not cells.are_dates:
        raise ColumnError(f"holds {cells.kind}, not dates")
    zone = getattr(cells.kind, "tz", None)
    stamps = cells.values.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
    gap = stamps.is_null().to_numpy()
    return _all_known(np.where(gap, nan, stamps.fill_null(0).to_numpy().astype(np.float64)))


def _of_distinct(cells: Cells, parse: Parser, lenient: bool = False) -> Read:
    """Return the numbers of texts, each distinct one parsed once; nan and bad where it cannot be."""
    texts, codes = cells.texts
    numbers, bad = np.full(len(texts), nan), np.zeros(len(texts), np.bool_)
    for i, text in enumerate(texts):
        if text is None or text.lower() in GAPS:
            continue
        parsed = parse(text)
        numbers[i], bad[i] = (nan, not lenient) if parsed is None else (parsed, False)
    return Read(numbers[codes], bad[codes])


def _whole(values: pa.ChunkedArray) -> bool:
    numbers = values.drop_null().to_numpy()
    return bool(np.all(np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)))
