"""The salt of a table: the digest of its rows, in any order, with which every draw is made.

A known seed alone draws known positions, and a table may be sorted so that these are the easy rows. With the
salt H the positions depend on which rows there are, but not on their order. If the rows come in random order,
all claims hold exactly, whatever H is, since the order is random given the rows. If they are sorted, and the
table was made without evaluating H, they hold in the random-oracle model. It is no protection against an
owner who looks for a table, or a seed, with lucky draws.

A row's digest is the sum of the hashes of its cells modulo 2**64, mixed once more: the order of the columns
does not enter, but their names do. The hash of a cell depends on its value and on the column's name alone,
and is the same from whichever kind of file or frame it was read. That of the number 0 is 0.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import date, time
from decimal import Decimal
from enum import IntEnum
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.tables.columns.formats import GAPS, MINUS, TRUTH, bare, canonical_text
from ckcv_ray.tables.columns.parse import FIRST_ROWS, Cells, cast_numbers, read_moments, without_gaps
from ckcv_ray.tables.readers.files import with_plain_values
from ckcv_ray.tables.target import distinct, is_text
from ckcv_ray.validation import expect

Words = NDArray[np.uint64]


class CellForm(IntEnum):
    """What a cell is; its hash depends on it. Arbitrary odd constants."""

    NUMBER = 0x9E3779B97F4A7C15
    TRUTH = 0xC2B2AE3D27D4EB4F
    MOMENT = 0x165667B19E3779F9
    TEXT = 0xD6E8FEB86659FD93
    GAP = 0xA0761D6478BD642F


def join_copies(columns: pa.Table) -> pa.Table:
    """Return a table of plain values, without copies of a column: of one name, with equal cells.

    Raises:
        InputError: it is no table.
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
        columns: as they were read, without copies.
        left_out: names of those that name groups or rows. Others that name or number the rows, by their
            values, are left out as well.
    """
    total = np.zeros(columns.num_rows, np.uint64)
    for i, name in enumerate(columns.column_names):
        if name not in left_out:
            forms, values = read_cell_values(columns.column(i))
            if not name_rows(forms, values):
                total += hash_cells(forms, values, name)
    return hashlib.sha256(np.sort(mix(total)).astype("<u8").tobytes()).hexdigest()


def hash_columns(columns: pa.Table, names: Iterable[str]) -> dict[str, Words]:
    """Return the hashes of the cells of some columns, by the name of the column, each (rows,)."""
    return {name: hash_cells(*read_cell_values(columns[name]), name) for name in names}


def hash_cells(forms: Words, values: Words, name: str) -> Words:
    """Return the hash of each cell of a column; 0 of the number 0."""
    hashes = mix(values ^ forms ^ digest_text(name))
    hashes[(forms == CellForm.NUMBER) & (values == 0)] = 0
    return hashes


def mix(z: Words) -> Words:
    """Return the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) of each number."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def digest_text(text: str) -> np.uint64:
    """Return eight bytes of the BLAKE2b of a text as a number."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def name_rows(forms: Words, values: Words) -> bool:
    """Return whether the cells of a column without gaps all differ, and are text, or almost consecutive."""
    if np.all(forms == CellForm.TEXT):
        return len(np.unique(values)) == len(values)
    if not np.all(forms == CellForm.NUMBER):
        return False
    numbers = values.view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities alone, and of very large numbers
        spread = numbers.max() - numbers.min() < 2 * len(numbers)
    return bool(spread and np.all(numbers == np.floor(numbers)) and len(np.unique(values)) == len(values))


def read_cell_values(column: pa.ChunkedArray) -> tuple[Words, Words]:
    """Return the form of each cell of a column and its value in 64 bits: that of the cell alone."""
    kind = column.type
    if is_text(kind):
        numbers = cast_numbers(column, comma=False)  # all at once where Arrow can
        if (
            numbers is None
            and cast_numbers(without_gaps(column.slice(0, FIRST_ROWS), GAPS), False) is not None
        ):
            numbers = cast_numbers(without_gaps(column, GAPS), comma=False)
        if numbers is not None and not np.isinf(numbers).any():
            return view_numbers(CellForm.NUMBER, numbers)
        return read_distinct(column)
    if pa.types.is_duration(kind):  # of more than Python's may be
        return read_distinct(column.cast(pa.int64()).cast(pa.string()))
    cells = Cells(column)
    if pa.types.is_boolean(kind):
        return view_numbers(CellForm.TRUTH, column.cast(pa.float64()).to_numpy())
    if not cells.declared and cells.are_numbers:
        exact = column.cast(pa.string()) if pa.types.is_decimal(kind) else column
        return view_numbers(CellForm.NUMBER, exact.cast(pa.float64(), safe=False).to_numpy())
    if not cells.declared and cells.are_dates:
        return view_numbers(CellForm.MOMENT, read_moments(column))
    return read_distinct(column)


def view_numbers(form: CellForm, values: NDArray[np.float64]) -> tuple[Words, Words]:
    """Return the form of each number, nan for gaps, and its bits."""
    gaps = np.isnan(values)
    bits = np.where(gaps, 0.0, values + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(gaps, np.uint64(CellForm.GAP), np.uint64(form)), bits


def read_distinct(column: pa.ChunkedArray) -> tuple[Words, Words]:
    """Return the form and value of each cell, each distinct one read once, as the text that stands for it."""
    try:
        values, codes = distinct(column)
    except pa.ArrowNotImplementedError:  # of lists, in a column that is not learned from
        values, codes = column.to_pylist(), np.arange(len(column))
    read = [read_value(value) for value in values]
    forms, bits = (np.array([cell[i] for cell in read], np.uint64) for i in range(2))
    return forms[codes], bits[codes]


def read_value(value: Any) -> tuple[int, int]:
    """Return the form of a cell and its value in 64 bits."""
    if value is None or value != value:
        return CellForm.GAP, 0
    if isinstance(value, str):
        return parse_text(bare(value).replace(MINUS, "-"))
    if isinstance(value, bool):
        return CellForm.TRUTH, view_bits(value)
    if isinstance(value, int | float | Decimal):
        return CellForm.NUMBER, view_bits(value)
    if isinstance(value, date | time):
        return parse_text(value.isoformat())
    return CellForm.TEXT, int(digest_text(repr(value)))


def parse_text(text: str) -> tuple[int, int]:
    """Return the form of a text and its value in 64 bits."""
    if text.lower() in GAPS:
        return CellForm.GAP, 0
    if (meant := canonical_text(text)) in TRUTH:
        return CellForm.TRUTH, view_bits(TRUTH[meant])
    form, _, number = meant.partition(" ")
    if meant != normalize("NFC", text) and form != "time":
        return CellForm.NUMBER if form == "number" else CellForm.MOMENT, view_bits(float(number))
    return CellForm.TEXT, int(digest_text(meant))


def view_bits(value: float | Decimal) -> int:
    """Return the bits of a number as a double."""
    return int(np.float64(value + 0).view(np.uint64))  # -0.0 is 0.0
