"""Tables for ``fuzz`` that take little room as files, and much once they are read.

Each is drawn from a family: a format, a way to abbreviate or to lie, a column that it concerns, and a size.
Some members of each family are small enough to be read.
"""

import base64
import io
import struct
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from pyarrow import feather, parquet

from jobs.faults.fuzz_parts import CLASSES, ROWS, SEEN
from jobs.faults.fuzz_tables import zipped

TEXTS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
}
NAMES = {"feature": "x", "label": "y", "group": "patient"}
HUGE = (2**31, 2**40, 2**62, 2**63 - 1)
SHEET = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'


class Bomb(NamedTuple):
    """A file that is much larger once it is read.

    Attributes:
        name: of its family, and of the member.
        suffix: of the file.
        make: builds it.
    """

    name: str
    suffix: str
    make: Callable[[], bytes]


def add_rest(column: Any, name: str) -> pa.Table:
    """Return a table of a column, and the others that a table to learn from has."""
    rows = len(column)
    rest = {"x": pa.array(np.arange(rows) % 7 / 2), "y": pa.array(np.arange(rows) % 2)}
    return pa.table({**rest, name: column})


def repeat(kind: pa.DataType, rows: int, length: int) -> pa.DictionaryArray:
    """Return two texts of a length by turns, as a dictionary."""
    texts = pa.array([b"a" * length, b"b" * length], pa.binary()).cast(kind)
    return pa.DictionaryArray.from_arrays(pa.array(np.arange(rows) % 2, pa.int8()), texts)


def parquet_dictionary(kind: str, name: str, rows: int, length: int, declared: bool) -> bytes:
    """Write a dictionary as a column of Parquet, which says that it is one, or plain text."""
    table = add_rest(repeat(TEXTS[kind], rows, length), name)
    plain = pa.schema(
        [field if field.name != name else pa.field(name, TEXTS[kind]) for field in table.schema]
    )
    stated = base64.b64encode(plain.serialize().to_pybytes())
    if not declared:
        table = table.replace_schema_metadata({"ARROW:schema": stated})
    sink = io.BytesIO()
    parquet.write_table(table, sink, store_schema=declared)
    return sink.getvalue()


def parquet_prefixes(name: str, rows: int, length: int, version: str, compression: str) -> bytes:
    """Write texts that begin alike, of which only the differences are stored."""
    texts = ["a" * length + "no", "a" * length + "yes"] * 4
    table = add_rest(pa.array(texts), name)
    sink = io.BytesIO()
    options: dict[str, Any] = {"data_page_version": version, "compression": compression}
    with parquet.ParquetWriter(
        sink, table.schema, use_dictionary=False, column_encoding={name: "DELTA_BYTE_ARRAY"}, **options
    ) as writer:
        for _ in range(max(1, rows // len(texts))):
            writer.write_table(table)
    return sink.getvalue()


def parquet_numbers(kind: pa.DataType, rows: int, columns: int) -> bytes:
    """Write columns of one number."""
    column = pa.array([1], pa.int8()).cast(pa.int64()).cast(kind).take(pa.array(np.zeros(rows, np.int8)))
    table = pa.table({**{f"x{i}": column for i in range(columns)}, "y": pa.array(np.arange(rows) % 2)})
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def parquet_zeros(mib: int, times: int) -> bytes:
    """Write pages of zeros that pack well, and a footer that says that they are small."""
    table = pa.table({"x": pa.array(["\0" * (mib << 20)] + ["a"] * (ROWS - 1)), "y": CLASSES})
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(times):
            writer.write_table(table)
    content = bytearray(sink.getvalue())
    said = write_varint(2 * (mib << 20))[:-1]  # as a footer has the size of a page: all but the last byte
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length :]
    return bytes(content[: -8 - length] + footer.replace(said, bytes([0x80] * len(said))))


def write_varint(value: int) -> bytes:
    """Return a number as Thrift writes it."""
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def parquet_lie(name: str, value: int) -> bytes:
    """Replace the number of rows by a large number wherever the file has it, but for one."""
    table = add_rest(pa.array([f"{i % 4}" for i in range(7001)]), name)
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="none", store_schema=False)
    content = sink.getvalue()
    length = int.from_bytes(content[-8:-4], "little")
    body, footer = content[: -8 - length], content[-8 - length : -8]
    parts = footer.split(write_varint(2 * 7001))
    footer = (
        write_varint(2 * 7001).join(parts[:2])
        + write_varint(2 * value)
        + write_varint(2 * value).join(parts[2:])
    )
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def feather_dictionary(kind: str, name: str, rows: int, length: int, compression: str) -> bytes:
    """Write a dictionary as a column of Feather."""
    sink = io.BytesIO()
    feather.write_feather(add_rest(repeat(TEXTS[kind], rows, length), name), sink, compression)
    return sink.getvalue()


def feather_views(name: str, rows: int, length: int, in_dictionary: bool) -> bytes:
    """Write texts that are one place of the file."""
    view = b"a" * 4
    cells = np.frombuffer(struct.pack("<i4sii", length, view, 0, 0), np.uint8)
    count = 1000 if in_dictionary else rows
    buffers = [None, pa.py_buffer(np.tile(cells, count).tobytes()), pa.py_buffer(b"a" * length)]
    column: Any = pa.Array.from_buffers(pa.string_view(), count, buffers)
    if in_dictionary:
        column = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows) % count, pa.int32()), column)
    return write_stream(add_rest(column, name))


def feather_nested(kind: str, rows: int, size: int) -> bytes:
    """Write a column whose cells hold a place of the file each, all the same one, or nothing many times."""
    column: Any
    if kind == "list of nothing":
        size = min(size, (2**31 - 1) // rows)  # as far as Arrow writes
        column = pa.FixedSizeListArray.from_arrays(pa.nulls(rows * size), size)
    elif kind == "runs":
        ends = pa.array([rows // 2, rows], pa.int32())
        column = pa.RunEndEncodedArray.from_arrays(ends, pa.array(["a" * size, "b" * size]))
    elif kind == "dictionary of lists":
        lists = pa.array([[1] * size], pa.list_(pa.int8()))
        column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows), pa.int8()), lists)
    elif kind == "dictionary of bytes":
        fixed = pa.array([b"a" * size], pa.binary(size))
        column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows), pa.int8()), fixed)
    else:
        offsets = pa.array(np.zeros(rows), pa.int32())
        sizes = pa.array(np.full(rows, size), pa.int32())
        column = pa.ListViewArray.from_arrays(offsets, sizes, pa.array(np.zeros(size, np.int8)))
    return write_stream(add_rest(column, "x"))


def write_stream(table: pa.Table, compression: str | None = "zstd") -> bytes:
    """Write a table as Feather, of any type."""
    sink = io.BytesIO()
    with pa.ipc.new_file(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return sink.getvalue()


def feather_zeros(rows: int, times: int) -> bytes:
    """Write columns of zeros, and say often that a batch is where the first is."""
    table = pa.table({"x": np.zeros(rows), "y": pa.array(np.zeros(rows, np.int8))})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for _ in range(times):
            writer.write_table(table, max_chunksize=rows)
    content = bytearray(sink.getvalue())
    length = int.from_bytes(content[-10:-6], "little")
    footer = content[-10 - length : -10]
    first = next(
        at for at in range(0, length, 8) if struct.unpack_from("<q", footer, at)[0] in range(64, 4096)
    )
    block = footer[first : first + 24]
    for i in range(times):
        at = first + 24 * i
        if at + 24 <= length:
            footer[at : at + 24] = block
    content[-10 - length : -10] = footer
    return bytes(content)


def feather_lie(value: int) -> bytes:
    """Write compressed buffers that say to be very long once unpacked."""
    content = write_stream(pa.table({"x": np.arange(5001.0), "y": np.arange(5001) % 2}), "lz4")
    return content.replace(struct.pack("<q", 8 * 5001), struct.pack("<q", value))


def feather_body(value: int) -> bytes:
    """Write a batch whose body is said to be very long."""
    content = write_stream(pa.table({"x": SEEN, "y": CLASSES}), None)
    with pa.ipc.open_file(pa.BufferReader(content)) as file:
        size = file.get_batch(0).get_total_buffer_size()
    sizes = {size, *range(size & ~63, size + 1024, 8)}
    for one in sorted(sizes):
        if content.count(struct.pack("<q", one)) >= 2:
            content = content.replace(struct.pack("<q", one), struct.pack("<q", value))
    return content


def workbook(sheet: bytes, strings: bytes = b"") -> bytes:
    """Write a workbook whose sheet, and whose strings, are given."""
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["x", "y"])
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(out) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = SHEET + sheet + b"</worksheet>"
    if strings:
        members["xl/sharedStrings.xml"] = strings
    return zipped(members, zipfile.ZIP_DEFLATED)


def data(rows: bytes, dimension: bytes = b"A1:B9") -> bytes:
    """Return the rows of a sheet."""
    return b'<dimension ref="%s"/><sheetData>%s</sheetData>' % (dimension, rows)


XLSX: dict[str, Callable[[int], bytes]] = {
    "a row of cells": lambda n: workbook(data(b"<row>" + b"<c/>" * n + b"</row>")),
    "rows": lambda n: workbook(data(b"<row/>" * n)),
    "rows in rows": lambda n: workbook(data(b"<row>" + b"<row/><c/>" * n + b"</row>")),
    "cells behind remarks": lambda n: workbook(data(b"<row><!-- </row> -->" + b"<c/>" * n + b"</row>")),
    "no dimension": lambda n: workbook(b"<sheetData>" + b"<row><c/><c/></row>" * (n // 2) + b"</sheetData>"),
    "merged cells": lambda n: workbook(
        data(b"<row><c/></row>") + b"<mergeCells>" + b'<mergeCell ref="A1:B9"/>' * n + b"</mergeCells>"
    ),
    "a dimension": lambda n: workbook(
        data(b"<row><c><v>1</v></c></row>" * 8 + b'<row r="%d"/>' % n, b"A1:XFD%d" % n)
    ),
    "a row far below": lambda n: workbook(data(b'<row r="%d"><c><v>1</v></c></row>' % (n * n))),
    "cells far right": lambda n: workbook(
        data(b'<row><c><v>1</v></c><c r="XFD9"><v>1</v></c></row>' * (n // 1000))
    ),
    "strings": lambda n: workbook(data(b"<row><c/></row>"), b"<sst>" + b"<si><t/></si>" * n + b"</sst>"),
    "long strings": lambda n: workbook(
        data(b"<row><c/></row>"), b"<sst><si><t>\xf0\x9f\x98\x80" + b"a" * (20 * n) + b"</t></si></sst>"
    ),
    "formats": lambda n: workbook(data(b"<row><c/></row>") + b"<cols>" + b'<col min="1"/>' * n + b"</cols>"),
}  # fmt: skip


def npz_header(kind: str, shape: str) -> bytes:
    """Write an archive whose X says to have a shape."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)
    return zipped({"X.npy": array, "y.npy": array}, zipfile.ZIP_DEFLATED)


def list_bombs(rows: int, length: int, cells: int) -> list[Bomb]:
    """List a member of each family.

    Args:
        rows: of tables with dictionaries and the like.
        length: of a text or list that is repeated.
        cells: of a workbook.
    """
    bombs: list[Bomb] = []

    def add(name: str, suffix: str, make: Callable[..., bytes], *given: Any) -> None:
        bombs.append(Bomb(f"{suffix}: {name} {given}", suffix, lambda: make(*given)))

    for role, name in NAMES.items():
        for kind in TEXTS:
            for declared in (True, False):
                if not (declared and "large" in kind):  # Arrow does not read these
                    add(role, "parquet", parquet_dictionary, kind, name, rows, length, declared)
            add(role, "feather", feather_dictionary, kind, name, rows, length, "zstd")
        for in_dictionary in (True, False):
            add(role, "feather", feather_views, name, rows, length, in_dictionary)
        for version, compression in (("1.0", "none"), ("1.0", "zstd"), ("2.0", "gzip")):
            times = (name, 8 * (1 + rows // 20_000), length * 100, version, compression)
            add(f"{role}, beginnings", "parquet", parquet_prefixes, *times)
        add(f"{role}, rows", "parquet", parquet_lie, name, rows * length)
    add("decimals", "parquet", parquet_numbers, pa.decimal256(76, 1), rows, 13)
    mib = max(1, length // 300)
    add("zeros", "parquet", parquet_zeros, mib, 1 + (rows >= 100_000) * 1200 // mib)
    for kind in ("list of nothing", "runs", "dictionary of lists", "dictionary of bytes", "list view"):
        add(kind, "feather", feather_nested, kind, rows, length)
    add("one place", "feather", feather_zeros, rows, 1 + length // 100)
    for value in HUGE:
        add("unpacked", "feather", feather_lie, value)
        add("body", "feather", feather_body, value)
        add("header", "npz", npz_header, "<f8", f"({value}, 2)")
    add("text", "npz", npz_header, f"<U{rows * length}", f"({ROWS}, 2)")
    for name, make in XLSX.items():
        add(name, "xlsx", make, cells)
    add("index", "svmlight", lambda n: b"1 %d:1\n-1 1:1\n" % n * ROWS, rows * length)
    return bombs


@st.composite
def bomb_file(draw: DrawFn, suffix: str) -> bytes:
    """Draw a bomb of a format, of any size."""
    rows = draw(st.sampled_from((8, 1000, 100_000, 2_000_000)))
    length = draw(st.sampled_from((1, 30, 1000, 10_000)))
    cells = draw(st.sampled_from((8, 1000, 100_000, 3_000_000)))
    return draw(
        st.sampled_from([one for one in list_bombs(rows, length, cells) if one.suffix == suffix])
    ).make()
