"""Sizes up to which tables are read: a small file may expand to a large one, or claim to.

What a file says of itself is checked against limits before it is read; what it expands to in fact is limited
by the memory that this process may map while it reads.
"""

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.errors import InputError

DECIMAL = b"decimal"  # metadata of a table whose cells are as they were written: its decimal mark
REMARKS = b"remarks"  # metadata of a table: what has to be said of how it was read, a line each
SPARSE = b"sparse"  # metadata of a table that was stored without its zeros
HELD = b"held"  # metadata of a column that was not read: the type of its cells
MAX_TABLE_ROWS = 10_000_000
MAX_TABLE_COLUMNS = 65_536
MAX_CELLS = 1 << 27
MAX_TABLE_BYTES = 1 << 30
LINE_BYTES = 1 << 24
FOLDER_BYTES = 2 << 30  # of memory, beside what is mapped, for reading a file of a run folder
OWN_SHARE = 0.75  # of the memory that is free, for reading a table


@contextmanager
def limit_memory(most: int | None = None) -> Iterator[None]:
    """Let this process map no more than so many bytes beside what it has; the limit is lifted at the end.

    The limit is one of the process. So none is set while Python has other threads, which could not allocate
    either, nor on systems other than Linux: there a file may take what memory there is.

    Args:
        most: bytes; by default three quarters of the memory that is free.

    Raises:
        ValueError: more was needed.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        yield
        return
    if most is None:
        free = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
        most = int(OWN_SHARE * 1024 * int(free.split()[1]))
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = min(limit for limit in (mapped + most, soft, hard) if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (least, hard))
    try:
        yield
    except MemoryError:
        raise ValueError(f"reading it takes more than {max(0, least - mapped) >> 20:,} MiB") from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def check_size(name: str, rows: int, columns: int) -> None:
    """Raise InputError if a table is too large to be read."""
    if rows > MAX_TABLE_ROWS or columns > MAX_TABLE_COLUMNS or rows * columns > MAX_CELLS:
        raise InputError(
            f"{name} has {rows:,} rows and {columns:,} columns: at most {MAX_TABLE_ROWS:,} rows, "
            f"{MAX_TABLE_COLUMNS:,} "
            f"columns and {MAX_CELLS:,} cells can be read; leave out columns, or take a sample of the rows"
        )


def check_bytes(name: str, size: int) -> None:
    """Raise InputError if something takes too many bytes to be read."""
    if size > MAX_TABLE_BYTES:
        raise InputError(
            f"{name} takes {size >> 20:,} MiB: at most {MAX_TABLE_BYTES >> 20:,} MiB can be read"
        )


def check_text(name: str, columns: pa.Table) -> None:
    """Raise InputError if text takes too many bytes once each cell holds its own."""
    text = 0
    for i, field in enumerate(columns.schema):
        size = count_text_bytes(columns.column(i))
        check_bytes(f"{name}: column {field.name!r}", size)
        check_bytes(f"{name}: its text", text := text + size)


def count_cell_bytes(kind: pa.DataType) -> int:
    """Return the bytes of a cell of a type, without those of text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        return int(-(-kind.bit_width // 8))
    except ValueError:  # cells of this type have no fixed width
        return 0


def count_text_bytes(column: pa.ChunkedArray) -> int:
    """Count the bytes of text whose cells share it (dictionaries and views) once each cell has its own."""
    kind = column.type
    if pa.types.is_dictionary(kind) and has_lengths(kind.value_type):
        lengths = [pc.take(_measure(chunk.dictionary), chunk.indices) for chunk in column.chunks]
    elif _is_view(kind):
        lengths = [_measure(chunk) for chunk in column.chunks]
    else:
        return 0
    return sum(pc.sum(length).as_py() or 0 for length in lengths)


def _measure(texts: pa.Array) -> pa.Array:
    if not _is_view(texts.type):
        return pc.binary_length(texts)
    if not len(texts):
        return pa.array([], pa.int64())
    views = np.frombuffer(texts.buffers()[1], np.int32)[::4]  # of 16 bytes, which begin with the length
    lengths = views[texts.offset : texts.offset + len(texts)].astype(np.int64)
    return pa.array(lengths, mask=texts.is_null().to_numpy(zero_copy_only=False))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def has_lengths(kind: pa.DataType) -> bool:
    """Return whether a type is that of text, or of bytes of any length."""
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return _is_view(kind) or any(is_one(kind) for is_one in texts)


def decimal_mark(columns: pa.Table) -> str | None:
    """Return the decimal mark of a table whose cells are as they were written: "" if no number has one.

    None for any other table.
    """
    mark = (columns.schema.metadata or {}).get(DECIMAL)
    return None if mark is None else {b",": ",", b".": "."}.get(mark, "")


def list_remarks(columns: pa.Table) -> list[str]:
    """Return what has to be said of how a table was read: ends of sentences that begin with its file."""
    remarks: bytes = (columns.schema.metadata or {}).get(REMARKS, b"")
    return remarks.decode("utf-8", "replace").splitlines()


def find_withheld(columns: pa.Table, name: str) -> str:
    """Return what a column held whose cells were not read; "" if they were."""
    held: bytes = (columns.schema.field(name).metadata or {}).get(HELD, b"")
    return held.decode()
