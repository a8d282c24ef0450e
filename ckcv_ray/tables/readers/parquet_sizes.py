"""What the pages of a Parquet file expand to, from the headers of its columns and pages alone.

Whoever writes a file chooses every size in it. Arrow allocates what a page header says before it reads the
page, and a column's number of values before it reads the column; the footer may claim less. So each header is
read here first, by itself. Nothing is allocated for what it announces.

Headers are in Thrift's compact protocol; their fields are numbered in parquet.thrift of
https://github.com/apache/parquet-format, and are named below by these numbers.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

MAGIC, TAIL_BYTES = b"PAR1", 8
MAX_FOOTER_BYTES = 1 << 26
MAX_HEADER_BYTES, FIRST_READ = 1 << 24, 1 << 9
PADDING = 100  # bytes that some old writers leave out of the length of a column (PARQUET-816)
MAX_BLOCK = 1 << 16  # values of a block of differences: writers use 128
UNSIGNED = (1 << 32) - 1

BOOLEANS, BYTE, INTEGERS, DOUBLE, BINARY, LISTS, MAP, STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
PATH = (4, 1)  # of the lists of row groups, and in each of columns
Wanted = Mapping[int, Any]  # numbers of fields; of a structure, with those inside it
CHUNK: Wanted = {3: {4: None, 5: None, 7: None, 9: None, 11: None}}
PAGE: Wanted = {
    **dict.fromkeys((1, 2, 3)),
    5: {1: None, 2: None},
    7: {1: None},
    8: {1: None, 4: None, 5: None, 6: None, 7: None},
}
DICTIONARY_PAGE, DELTA_LENGTHS, DELTA_TEXTS = 2, 6, 7
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


class ParquetSizes(NamedTuple):
    """What a column of a row group expands to."""

    position: int  # of the column, counted from 0
    values: int  # their number
    entries: int  # number of values of its dictionary
    size: int  # bytes of its pages, and of text that they abbreviate


def read_parquet_sizes(file: BinaryIO, schema: parquet.ParquetSchema, most: int) -> Iterator[ParquetSizes]:
    """Yield the sizes of every column of every row group.

    Args:
        file: a Parquet file.
        schema: of its columns.
        most: bytes of a column, after which no more of it is read.

    Raises:
        ValueError, IndexError: the file is damaged.
    """
    end = file.seek(0, 2)
    file.seek(max(0, end - TAIL_BYTES))
    tail = file.read(TAIL_BYTES)
    if tail[4:] != MAGIC:
        raise ValueError("it does not end as a Parquet file does")
    length = int.from_bytes(tail[:4], "little")
    if length > min(end - TAIL_BYTES, MAX_FOOTER_BYTES):
        raise ValueError(f"its footer takes {length:,} bytes: at most {MAX_FOOTER_BYTES:,} can be read")
    file.seek(end - TAIL_BYTES - length)
    for position, chunk in _find_chunks(file.read(length), 0, PATH):
        if 3 not in chunk or position >= len(schema):
            raise ValueError("its columns are not those of its schema")
        count = partial(_count_levels, schema, position)
        yield ParquetSizes(position, *_measure(file, end, chunk[3], most, count))


def _count_levels(schema: parquet.ParquetSchema, position: int) -> int:
    """Return how many kinds of levels, which say what is missing and what is repeated, a column has."""
    column = schema.column(position)
    return int(column.max_definition_level > 0) + int(column.max_repetition_level > 0)


def _find_chunks(
    data: bytes, at: int, path: tuple[int, ...]
) -> Generator[tuple[int, dict[int, Any]], None, int]:
    """Yield the position and the fields of every column of every row group; return where a structure ends.

    ``path`` has the numbers of the fields, lists, that lead from it to the columns.
    """
    number = 0
    while head := data[at]:
        kind, number, at = _read_head(data, at, head, number)
        if number != path[0] or kind not in LISTS:
            at = _skip(data, at, kind)
            continue
        count, element, at = _read_list(data, at)
        if element != STRUCT:
            raise ValueError("a list in its footer is of another kind")
        for position in range(count):
            if len(path) > 1:
                at = yield from _find_chunks(data, at, path[1:])
            else:
                chunk, at = _read_struct(data, at, CHUNK)
                yield position, chunk
    return at + 1


def _measure(
    file: BinaryIO, end: int, chunk: Mapping[int, int], most: int, levels: Callable[[], int]
) -> tuple[int, int, int]:
    """Read the headers of the pages of a column, as far as Arrow reads them; see ``ParquetSizes``."""
    values, start = chunk[5], chunk[9]
    if 0 < chunk.get(11, 0) < start:  # the dictionary comes first
        start = chunk[11]
    stop = min(end, start + chunk[7] + PADDING)
    if min(values, start, chunk[7]) < 0:
        raise ValueError("a column has a negative size")
    seen = size = entries = 0
    at = start
    while seen < values and at < stop and size <= most:
        page, header = _read_page(file, at, stop)
        packed, unpacked, body = page[3], page[2], at + header
        if min(packed, unpacked) < 0 or body + packed > end:
            raise ValueError("a page has an impossible size")
        size += unpacked
        at = body + packed
        if page[1] == DICTIONARY_PAGE:
            entries += page[7][1]
            continue
        inner = page.get(5) or page.get(8)
        if not inner:
            continue
        if inner[1] < 0:
            raise ValueError("a page has a negative number of values")
        seen += inner[1]
        if (encoding := inner[2 if 5 in page else 4]) in (DELTA_LENGTHS, DELTA_TEXTS) and size <= most:
            data = _read_content(file, body, page, chunk[4], levels())
            size += _add_abbreviated(data, encoding, inner[1])
    return values, entries, size


def _read_page(file: BinaryIO, at: int, stop: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a page's header, and how many bytes it takes."""
    most = FIRST_READ
    while True:
        file.seek(at)
        data = file.read(min(most, stop - at))
        try:
            return _read_struct(data, 0, PAGE)
        except IndexError:  # more is needed, such as for a long least and greatest value
            if len(data) < most or most >= MAX_HEADER_BYTES:
                raise
            most = min(16 * most, MAX_HEADER_BYTES)


def _read_content(file: BinaryIO, at: int, page: Mapping[int, Any], codec: int, levels: int) -> bytes:
    """Return what a page holds after its levels, unpacked; its sizes were checked."""
    file.seek(at)
    data = file.read(page[3])
    before = sum(page[8].get(part, 0) for part in (5, 6)) if 8 in page else 0
    if codec and not (8 in page and page[8].get(7) is False):
        if codec not in CODECS:
            raise ValueError("its text is compressed in a way that cannot be read")
        data = pa.decompress(data[before:], page[2] - before, CODECS[codec], asbytes=True)
        before = 0
    if 8 not in page:
        for _ in range(levels):  # each after its length
            before += 4 + int.from_bytes(data[before : before + 4], "little")
    return data[before:]


def _add_abbreviated(data: bytes, encoding: int, most: int) -> int:
    """Sum the lengths of the beginnings that texts of a page share with the text before them.

    A page of texts begins with such lengths, or with those of whole texts, which are not added. Numbers are
    stored as the first, and in blocks as differences from each to the next, less the least difference.

    Raises:
        ValueError: there are more of them than the page has values.
    """
    block, at = _read_varint(data, 0)
    parts, at = _read_varint(data, at)
    count, at = _read_varint(data, at)
    value, at = _read_zigzag(data, at)
    if count > most or not (0 < parts <= block <= MAX_BLOCK and block % (8 * parts) == 0):
        raise ValueError("a page has an impossible number of texts")
    if encoding == DELTA_LENGTHS or not count:
        return 0
    total, left = value, count - 1
    while left > 0:
        least, at = _read_zigzag(data, at)
        widths, at = data[at : at + parts], at + parts
        for width in widths:
            if left <= 0:
                break
            packed = np.frombuffer(data, np.uint8, block // parts * width // 8, at)
            at += len(packed)
            steps = least + _unpack(packed, width, block // parts)[:left]
            values = (value + np.cumsum(steps)) & UNSIGNED
            total, value, left = total + int(values.sum()), int(values[-1]), left - len(steps)
    return total


def _unpack(packed: NDArray[np.uint8], width: int, count: int) -> NDArray[np.int64]:
    if width > 32:
        raise ValueError("a page has too large numbers")
    bits = np.unpackbits(packed, bitorder="little").reshape(count, width)
    return bits.astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))


def _read_struct(data: bytes, at: int, wanted: Wanted) -> tuple[dict[int, Any], int]:
    found: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        kind, number, at = _read_head(data, at, head, number)
        if number not in wanted:
            at = _skip(data, at, kind)
        elif kind == STRUCT and wanted[number]:
            found[number], at = _read_struct(data, at, wanted[number])
        elif kind in INTEGERS and not wanted[number]:
            found[number], at = _read_zigzag(data, at)
        elif kind in BOOLEANS and not wanted[number]:
            found[number] = kind == BOOLEANS[0]
        else:
            raise ValueError("a field is of another kind")
    return found, at + 1


def _read_head(data: bytes, at: int, head: int, number: int) -> tuple[int, int, int]:
    """Return the kind and number of a field that follows the one numbered ``number``, and where it begins."""
    if head >> 4:
        return head & 15, number + (head >> 4), at + 1
    number, at = _read_zigzag(data, at + 1)
    return head & 15, number, at


def _read_list(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number and kind of the elements of a list, and where they begin."""
    head = data[at]
    if head >> 4 < 15:
        return head >> 4, head & 15, at + 1
    count, at = _read_varint(data, at + 1)
    return count, head & 15, at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    if (value := data[at]) < 128:
        return value, at + 1
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number is too long")


def _read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _skip(data: bytes, at: int, kind: int) -> int:
    depth = 0  # of structures; their fields need no numbers to be skipped
    while True:
        if kind in INTEGERS:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind == STRUCT:
            depth += 1
        elif kind == BINARY:
            length, at = _read_varint(data, at)
            at += length
        elif kind in LISTS:
            count, element, at = _read_list(data, at)
            if count > len(data):
                raise IndexError("a list does not end")
            for _ in range(count):
                at = at + 1 if element in BOOLEANS else _skip(data, at, element)
        elif kind in (BYTE, DOUBLE):
            at += 1 if kind == BYTE else 8
        elif kind not in BOOLEANS:
            raise ValueError("a field is of an unknown kind")  # maps are in no header
        while depth and not data[at]:
            depth, at = depth - 1, at + 1
        if not depth:
            return at
        head = data[at]
        at += 1
        if head < 16:  # the number of the field follows
            while data[at] > 127:
                at += 1
            at += 1
        kind = head & 15
