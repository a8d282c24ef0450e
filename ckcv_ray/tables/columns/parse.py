"""Cells of a column as numbers, by how the column is understood.

What a cell becomes depends on the cell and on the schema alone, and never on other rows.
"""

from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from ckcv_ray.core.arrays import Values
from ckcv_ray.tables.columns.formats import (
    ALL_DIGITS,
    AMOUNTS,
    E_CODE,
    GAPS,
    ISO,
    LAST_EXACT,
    PERCENT_SIGNS,
    ZONE,
    Column,
    ColumnError,
    ColumnKind,
    Parser,
    bare,
    canonical_text,
    choose_date_parser,
    choose_number_parser,
    find_decimal_mark,
    is_doubtful,
    positions_by_value,
)
from ckcv_ray.tables.readers.limits import DECIMAL, check_bytes, count_text_bytes, decimal_mark
from ckcv_ray.tables.target import NUMBER_TYPES, is_text, is_value, list_distinct

KEPT_WORDS = b"kept"  # metadata of a table: the words of GAPS that are ordinary text in it
EMPTY_WORDS = csv.ConvertOptions().null_values  # that Arrow takes for empty cells of a text table
PART_BYTES = 1 << 24  # of text that is made at once
FIRST_ROWS = 100
FEW = 16  # rows of each text from which on a column is read text by text
FIRST_DAY = -62_135_596_800_000  # in milliseconds since 1970: January 1 of the year 1


class Read(NamedTuple):
    """A column as numbers."""

    values: Values  # (rows,), nan for gaps; a category that was never seen is a level of its own, the last
    bad: NDArray[np.bool_]  # which rows hold a value of another kind, (rows,)


class Cells:
    """A column as it was read, whose distinct texts are looked up once.

    Cells of a text table are text, as they were written. They are of one kind together, such as whole
    numbers, which says how the column is understood; what a cell becomes then depends on its text alone.

    Attributes:
        values: the column, no dictionary.
        stored: type of its values.
        declared: whether it was a dictionary, which says that its values are categories.
        written: whether it is text of a text table.
        decimal: the decimal mark of its table; None or "" if it is not known.
        thousands: the mark between thousands, if that was said.
        gaps: words that say that a cell is empty, in lower case.
    """

    def __init__(
        self,
        values: pa.ChunkedArray,
        decimal: str | None = None,
        thousands: str = "",
        kept: Collection[str] = (),
    ) -> None:
        self.declared = pa.types.is_dictionary(values.type)
        self.stored = values.type.value_type if self.declared else values.type
        self.written = decimal is not None and is_text(self.stored)
        self.values, self.decimal, self.thousands = decode(values), decimal, thousands
        self.gaps = GAPS.difference(kept) if is_text(self.stored) else GAPS

    @classmethod
    def of(cls, columns: pa.Table, name: str | int, thousands: str = "") -> "Cells":
        """Return the cells of a column of a table, by its name or position."""
        return cls(columns.column(name), decimal_mark(columns), thousands, kept_words(columns))

    def infer(self) -> pa.ChunkedArray:
        """Return the values; of a text table as what its cells are together, such as whole numbers."""
        if not self.written or is_text(self.typed.type):
            return self.values
        if pa.types.is_null(self.typed.type):
            return pa.chunked_array([pa.nulls(len(self.values))])
        return pa.chunked_array([self.typed.take(chunk.indices) for chunk in self.encoded.chunks])

    @property
    def comma(self) -> bool:
        """Whether it is of a table with decimal commas."""
        return self.decimal == ","

    @cached_property
    def kind(self) -> pa.DataType:
        """Type of the values; of cells as they were written the type that they are of together."""
        if not self.written:
            return self.stored
        if self.values.null_count == len(self.values):
            return pa.null()
        if self.numbers is not None:
            return pa.float64()
        return pa.timestamp("ms") if self.moments is not None else self.typed.type

    @property
    def are_numbers(self) -> bool:
        """Whether the values are numbers, decimal ones and booleans included."""
        types = (*NUMBER_TYPES, pa.types.is_boolean, pa.types.is_decimal)
        return any(is_one(self.kind) for is_one in types)

    @property
    def are_dates(self) -> bool:
        """Whether the values are days or moments."""
        return bool(pa.types.is_date(self.kind) or pa.types.is_timestamp(self.kind))

    @cached_property
    def numbers(self) -> Values | None:
        """Text as numbers, all of it at once; None if some of it has to be read cell by cell, or is none."""
        return cast_numbers(self.values, self.comma)

    @cached_property
    def moments(self) -> Values | None:
        """Text as milliseconds since 1970, all of it at once; None if some has to be read cell by cell."""
        return cast_dates(self.values)

    @cached_property
    def zoned(self) -> NDArray[np.bool_]:
        """Which moments say how far they are from UTC, (rows,)."""
        if not is_text(self.stored):
            return np.full(len(self.values), getattr(self.stored, "tz", None) is not None)
        texts, codes = self.texts
        return np.array([bool(ZONE.search(text or "")) for text in texts], np.bool_)[codes]

    @cached_property
    def encoded(self) -> pa.ChunkedArray:
        """The values as a dictionary, the same for all chunks."""
        return self.values.dictionary_encode().unify_dictionaries()

    @cached_property
    def typed(self) -> pa.Array:
        """The distinct values of cells as they were written, as what they are together.

        That is as Arrow reads a column of a table; but codes such as 12E03, and numbers of more digits than
        floats tell apart, are text.
        """
        texts = self.encoded.chunk(0).dictionary if self.encoded.num_chunks else pa.array([], pa.string())
        if not len(texts):
            return pa.nulls(0)
        sink = pa.BufferOutputStream()
        csv.write_csv(pa.table({"": texts}), sink, csv.WriteOptions(quoting_style="all_valid"))
        written = sink.getvalue()
        read = csv.read_csv(
            pa.BufferReader(written),
            csv.ReadOptions(block_size=written.size + 1, use_threads=False),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(
                strings_can_be_null=True,
                null_values=[word for word in EMPTY_WORDS if word.lower() in self.gaps],
                decimal_point="," if self.comma else ".",
            ),
        )
        typed = read.column(0).combine_chunks()
        floating = pa.types.is_floating(typed.type)
        large = floating and pc.any(pc.greater_equal(pc.abs(typed), LAST_EXACT)).as_py()
        return texts if are_codes(texts) or (large and _all_match(texts, ALL_DIGITS)) else typed

    @property
    def have_few_texts(self) -> bool:
        """Whether most texts are in many rows, so that they are read as fast one by one."""
        return self.encoded.num_chunks == 0 or FEW * len(self.encoded.chunk(0).dictionary) < len(self.values)

    @property
    def are_codes(self) -> bool:
        """Whether cells as they were written are all digits, of which some have an E among them: 12E03."""
        return self.written and any(map(are_codes, self.values.chunks)) and are_codes(pa.array(self.known))

    @cached_property
    def texts(self) -> tuple[list[str | None], NDArray[np.intp]]:
        """The distinct texts, without spaces around them, None for a gap, and the position of each row's."""
        values = self.values
        if pa.types.is_floating(self.stored):
            numbers = values.drop_null().to_numpy()
            whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < LAST_EXACT)
            if np.all(whole):  # a gap has made them floating
                values = values.cast(pa.int64())
        raw, codes = list_distinct(self.encoded if is_text(values.type) else values.cast(pa.string()))
        stripped = [None if text is None else bare(text) for text in raw]
        stripped = [None if text is None or text.lower() in self.gaps else text for text in stripped]
        known = list(dict.fromkeys(stripped))
        position = {text: i for i, text in enumerate(known)}
        return known, np.array([position[text] for text in stripped], dtype=np.intp)[codes]

    @property
    def known(self) -> list[str]:
        """The distinct texts that are no gaps, without spaces around them."""
        return [text for text in self.texts[0] if text is not None]

    def choose_form(self, column: Column) -> str:
        """Return how numbers are written here, in a column that is understood as ``column``."""
        return column.form or ("comma" if self.comma else "")

    def find_doubtful_mark(self, text: str, column: Column) -> str:
        """Return the mark of a cell that may be that of decimals or of thousands; "" if it has none."""
        form = self.choose_form(column)
        doubtful = column.short_decimals and is_doubtful(bare(text), form)
        return find_decimal_mark(form) if doubtful else ""

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of a column of categories, sorted: of cells as they were written those of their values.

        Where a cell would not find its level then, such as 0x1F that of 31, they are the texts themselves.
        """
        texts = self.known
        if self.written and not is_text(self.kind):
            values = tuple(sorted(set(Cells(pa.chunked_array([self.typed])).known)))
            number = _make_numbering(values)
            if all(number(text) < len(values) for text in texts):
                return values
        return tuple(sorted(set(texts)))


def read_cells(cells: Cells, column: Column) -> Read:
    """Return the cells of a column as numbers.

    Raises:
        ColumnError: all of them are of another kind.
    """
    if pa.types.is_null(cells.stored):
        return _all_known(np.full(len(cells.values), nan))
    if not is_value(cells.stored):
        raise ColumnError(f"holds {cells.stored}, which cannot be read")
    if column.kind is ColumnKind.CATEGORY:
        return _of_distinct(cells, _make_numbering(column.levels))
    if column.kind is ColumnKind.DATE:
        if is_text(cells.stored) and column.form in ("", ISO) and cells.moments is not None:
            return _all_known(cells.moments)
        if is_text(cells.stored) or (cells.are_numbers and column.form):
            return _of_distinct(cells, choose_date_parser(column.form))
        if not cells.are_dates:
            raise ColumnError(f"holds {cells.stored}, not dates")
        return _all_known(read_moments(cells.values))
    if is_text(cells.stored):
        return _numbers_in_text(cells, column)
    if not cells.are_numbers:
        raise ColumnError(f"holds {cells.stored}, not numbers")
    unit = column.form.rpartition(AMOUNTS)[0]
    if unit in PERCENT_SIGNS and cells.values.null_count < len(cells.values):
        raise ColumnError(
            f"holds {cells.stored}, which may be of 1 or of 100, and the cells learned from have a {unit}: "
            f"write it as text, such as '12.5{unit}'"
        )
    values = cells.values.cast(pa.int8()) if pa.types.is_boolean(cells.stored) else cells.values
    if pa.types.is_decimal(cells.stored):
        values = values.cast(pa.string()).cast(pa.float64())
    return _all_known(values.to_numpy())


def infer_column(columns: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column of a table; of a text table as what its cells are together, such as whole numbers."""
    cells = Cells.of(columns, name)
    return columns.column(name) if not cells.written or is_text(cells.typed.type) else cells.infer()


def find_alike(columns: pa.Table, name: str) -> tuple[str, str] | None:
    """Return two different texts of a column of a text table that are one value; None if there are none."""
    cells = Cells.of(columns, name)
    if not cells.written or pa.types.is_null(cells.typed.type):
        return None
    values = cells.typed
    if is_text(values.type):
        if cells.numbers is None:
            return None
        values = pa.array([text and canonical_text(bare(text)) for text in values.to_pylist()], pa.string())
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 and 0.0 are one number
    if pc.count_distinct(values).as_py() == len(values) - values.null_count:
        return None
    first: dict[Any, str] = {}
    for text, value in zip(cells.encoded.chunk(0).dictionary.to_pylist(), values.to_pylist(), strict=True):
        if value is not None and value == value and first.setdefault(value, bare(text)) != bare(text):
            return first[value], bare(text)
    return None


def take_gaps(columns: pa.Table, kept: Collection[str]) -> pa.Table:
    """Return a table as it is read if some words of ``GAPS`` are ordinary text in it, in any case of letters.

    In a text table the others that Arrow takes for empty cells are null then, so that numbers are read at
    once. What else is a gap depends on the column.
    """
    marks = {**(columns.schema.metadata or {}), KEPT_WORDS: ",".join(sorted(kept)).encode()}
    cells = columns.columns
    if DECIMAL in marks:
        empty = pa.array([word for word in EMPTY_WORDS if word.lower() not in kept])
        for i, column in enumerate(cells):
            if column.type == empty.type and pc.any(found := pc.is_in(column, empty)).as_py():
                cells[i] = pc.if_else(found, pa.scalar(None, column.type), column)
    return pa.Table.from_arrays(cells, schema=columns.schema.with_metadata(marks))


def kept_words(columns: pa.Table) -> frozenset[str]:
    """Return the words of ``GAPS`` that are ordinary text in a table; none of one that nobody has taken."""
    return frozenset((columns.schema.metadata or {}).get(KEPT_WORDS, b"").decode().split(",")) - {""}


def are_codes(texts: pa.Array) -> bool:
    """Return whether texts may be codes such as 12E03: all are digits, of which some have an E among them."""
    content = b"" if (held := texts.buffers()[2]) is None else held.to_pybytes()
    if b"e" not in content and b"E" not in content:
        return False  # found in no time
    digits = _all_match(texts[:FIRST_ROWS], ALL_DIGITS) and _all_match(texts, ALL_DIGITS)
    return digits and bool(pc.any(pc.match_substring_regex(texts, E_CODE)).as_py())


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def cast_numbers(texts: pa.ChunkedArray, comma: bool) -> Values | None:
    """Return text as numbers, nan for nulls; None unless Arrow casts all of it.

    That is what ``formats.number_parser`` reads in the forms "" and "point" (or "comma"), at once: both round
    to the nearest float, and Arrow casts nothing that the parser refuses, but for words of nan that are no
    gaps, such as nan(1). Nor is anything that Arrow casts a date or a truth value.
    """
    if comma:
        if pc.any(pc.match_substring(texts, ".")).as_py():
            return None
        texts = pc.replace_substring(texts, ",", ".")
    if (cast := _cast(texts, pa.float64())) is None:
        return None
    numbers = cast.to_numpy()
    return numbers if np.count_nonzero(np.isnan(numbers)) == cast.null_count else None


def cast_dates(texts: pa.ChunkedArray) -> Values | None:
    """Return text as milliseconds since 1970, nan for nulls; None unless Arrow casts all of it.

    That is what ``formats.date_parser`` reads in the form "", at once: Arrow casts nothing that the parser
    refuses, but for the year 0, and both cut fractions of a millisecond off.
    """
    for kind in (pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("s", "ns")):
        if (cast := _cast(texts, kind)) is not None:
            moments = read_moments(cast)
            return None if np.any(moments < FIRST_DAY) else moments
    return None


def _cast(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        texts.slice(0, FIRST_ROWS).cast(kind)  # Arrow words a message for every text that it cannot cast
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def number_values(column: pa.ChunkedArray) -> NDArray[np.intp]:
    """Return a number for each row of a column without gaps, the same for equal values alone."""
    if pa.types.is_floating(column.type):
        values: Values = column.to_numpy() + 0.0  # -0.0 and 0.0 are one number
        return np.unique(values, return_inverse=True)[1]
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.intp)


def decode(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column, which may be a dictionary that holds a value, or none, twice.

    Raises:
        InputError: they take too many bytes.
    """
    if not pa.types.is_dictionary(values.type):
        return values
    check_bytes("a column", count_text_bytes(values))
    parts = [part for chunk in values.chunks for part in take_in_parts(chunk.dictionary, chunk.indices)]
    return pa.chunked_array(parts, values.type.value_type)


def decode_columns(columns: pa.Table) -> pa.Table:
    """Return a table whose columns hold values in place of dictionaries.

    Raises:
        InputError: those of a column take too many bytes.
    """
    for i, field in enumerate(columns.schema):
        if pa.types.is_dictionary(field.type):
            columns = columns.set_column(i, field.with_type(field.type.value_type), decode(columns.column(i)))
    return columns


def decode_in_parts(columns: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table with values in place of dictionaries, some megabytes of text at a time.

    A table without rows is one part.
    """
    sizes = np.zeros(columns.num_rows, np.int64)
    for column in columns.columns:
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            sizes += np.concatenate([sizes[:0], *(_measure(c.dictionary, c.indices) for c in column.chunks)])
    for start, end in _cut(sizes):
        yield decode_columns(columns.slice(start, end - start))


def take_in_parts(values: pa.Array, codes: pa.Array) -> list[pa.Array]:
    """Return the value of each code: text in parts of some megabytes, since Arrow doubles what grows."""
    if not is_text(values.type):
        return [values.take(codes)]
    return [values.take(codes.slice(start, end - start)) for start, end in _cut(_measure(values, codes))]


def _measure(texts: pa.Array, codes: pa.Array) -> NDArray[np.int64]:
    lengths = pc.fill_null(pc.take(pc.binary_length(texts), codes), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _cut(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return first and last row + 1 of parts of rows of ``PART_BYTES``, given the bytes of each row."""
    ends = np.cumsum(sizes)
    cuts = np.unique([0, *np.searchsorted(ends, np.arange(PART_BYTES, sizes.sum(), PART_BYTES)), len(sizes)])
    return list(pairwise(cuts.tolist())) or [(0, 0)]


def without_gaps(values: pa.ChunkedArray, gaps: Collection[str]) -> pa.ChunkedArray:
    """Return text without spaces around it, and null in place of words that say that it is missing.

    Chunk by chunk, as each step holds a copy of all text that it is given.
    """
    words, null, parts = pa.array(sorted(gaps), values.type), pa.scalar(None, values.type), []
    for chunk in values.chunks:
        trimmed = pc.utf8_trim_whitespace(chunk)
        parts.append(pc.if_else(pc.is_in(pc.utf8_lower(trimmed), words), null, trimmed))
    return pa.chunked_array(parts, values.type)


def _all_known(values: NDArray[Any]) -> Read:
    return Read(np.asarray(values, dtype=np.float64), np.zeros(len(values), np.bool_))


def _make_numbering(levels: tuple[str, ...]) -> Callable[[str], float]:
    """Return what gives the number of a level, which may be written in another way; one more for no level."""
    exact, alike = {level: i for i, level in enumerate(levels)}, positions_by_value(levels)
    return lambda text: float(exact.get(text, alike.get(canonical_text(text), len(levels))))


def _numbers_in_text(cells: Cells, column: Column) -> Read:
    """Read text as numbers: all at once if that can be done, else each distinct text."""
    form, thousands = cells.choose_form(column), cells.thousands
    mark, parse = find_decimal_mark(form), choose_number_parser(form)
    if form in ("", "point", "comma") and not (
        column.short_decimals  # three characters behind a decimal mark may be a group of thousands
        and np.any(_count_decimals(pc.utf8_trim_whitespace(cells.values), form) == 3)
    ):
        if cells.comma == (form == "comma") and cells.numbers is not None:
            return _all_known(cells.numbers)
        if not cells.have_few_texts:
            numbers = cast_numbers(without_gaps(cells.values, cells.gaps), form == "comma")
            if numbers is not None:
                return _all_known(numbers)
    if not column.short_decimals:
        return _of_distinct(cells, parse, column.lenient)

    def parse_certain(text: str) -> float | None:
        """Take the mark of 1.250 for that of thousands if that is said; without a word it is no number."""
        if thousands in ("", mark) and is_doubtful(text, form):
            return parse(text.replace(mark, "")) if thousands else None
        return parse(text)

    return _of_distinct(cells, parse_certain, column.lenient, partial(is_doubtful, form=form))


def have_short_decimals(cells: Cells, form: str) -> bool:
    """Return whether all cells of a column that Arrow takes for numbers have one or two decimals."""
    for values in (cells.values.slice(0, FIRST_ROWS), cells.values):  # most others are found at once
        decimals = _count_decimals(values, form)
        if not np.all((decimals == 1) | (decimals == 2)):
            return False
    return bool(len(decimals))


def _count_decimals(texts: pa.ChunkedArray, form: str) -> NDArray[np.int64]:
    """Return the number of bytes behind the first decimal mark of each text that is no null; -1 without."""
    place = pc.find_substring(texts, find_decimal_mark(form))
    behind = pc.subtract(pc.binary_length(texts), pc.add(place, 1))
    counts = pc.if_else(pc.less(place, 0), -1, behind)
    return np.asarray(counts.drop_null().to_numpy(), np.int64)


def read_moments(moments: pa.ChunkedArray) -> Values:
    """Return days or moments as milliseconds since 1970, nan for nulls."""
    zone = getattr(moments.type, "tz", None)
    stamps = moments.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
    gap = stamps.is_null().to_numpy()
    return np.where(gap, nan, stamps.fill_null(0).to_numpy().astype(np.float64))


def _of_distinct(
    cells: Cells, parse: Parser, lenient: bool = False, doubt: Callable[[str], bool] = lambda text: False
) -> Read:
    """Return the numbers of texts, each distinct one parsed once; nan and bad where it cannot be.

    If ``lenient``, what is no number is a gap, unless there is ``doubt`` about what it is.
    """
    texts, codes = cells.texts
    numbers, bad = np.full(len(texts), nan), np.zeros(len(texts), np.bool_)
    for i, text in enumerate(texts):
        if text is None:
            continue
        parsed = parse(text)
        numbers[i], bad[i] = (nan, not lenient or doubt(text)) if parsed is None else (parsed, False)
    return Read(numbers[codes], bad[codes])
