"""Sizes up to which tables are read: a small file may expand to a large one, or claim to.

What a file says about itself is checked against limits before it is read; what it really expands to is
limited by the memory that this process may map while it reads.
"""

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.errors import InputError

DECIMAL = b"decimal"  # metadata of a table whose cells are as written: its decimal mark; empty for none
REMARKS = b"remarks"  # metadata of a table: how it was read, ends of sentences that begin with its file
SPARSE = b"sparse"  # metadata of a table that was stored without its zeros
HELD = b"held"  # metadata of a column that was not read: the type of its cells
DECLARED = b"declared"  # metadata of a column that was a dictionary: its values are categories
MAX_TABLE_ROWS = 10_000_000
MAX_TABLE_COLUMNS = 65_536
MAX_CELLS = 1 << 27
MAX_TABLE_BYTES = 1 << 30
LINE_BYTES = 1 << 24
FOLDER_BYTES = 2 << 30  # of memory, besides what is mapped, for reading a file of a run folder
OF_LENGTHS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
OWN_SHARE = 0.75  # of the free memory, for reading a table


@contextmanager
def limit_memory(most: int | None = None) -> Iterator[None]:
    """Let this process map at most ``most`` bytes beyond what it has; lift the limit at the end.

    The limit is on the process. So none is set while Python has other threads, which could not allocate
    either, nor on systems other than Linux: there a file may take all the memory there is.

    Args:
        most: bytes; by default three quarters of the free memory.

    Raises:
        ValueError: more is needed.
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


def check_size(
    name: str, rows: int, columns: int, most_rows: int = MAX_TABLE_ROWS, most_cells: int = MAX_CELLS
) -> None:
    """Raise InputError if a table is too large to be read."""
    if rows > most_rows or columns > MAX_TABLE_COLUMNS or rows * columns > most_cells:
        raise InputError(
            f"{name} has {rows:,} rows and {columns:,} columns: at most {most_rows:,} rows, "
            f"{MAX_TABLE_COLUMNS:,} columns and {most_cells:,} cells can be read; leave out columns, or take "
            "a sample of the rows"
        )


def check_bytes(name: str, size: int) -> None:
    """Raise InputError if something takes too many bytes to be read."""
    if size > MAX_TABLE_BYTES:
        raise InputError(f"{name} takes {size >> 20:,} MiB: at most {MAX_TABLE_BYTES >> 20:,} MiB are read")


def check_text(name: str, *columns: pa.ChunkedArray) -> None:
    """Raise InputError if text takes too many bytes once each cell holds its own, without a dictionary."""
    size = 0
    for chunk in chain.from_iterable(column.chunks for column in columns):
        coded = pa.types.is_dictionary(chunk.type)
        texts = chunk.dictionary if coded else chunk
        if pa.types.is_string_view(texts.type):  # Arrow does not give their lengths
            texts = texts.cast(pa.large_string())
        if any(is_one(texts.type) for is_one in OF_LENGTHS):
            lengths = pc.binary_length(texts)
            size += pc.sum(pc.take(lengths, chunk.indices) if coded else lengths).as_py() or 0
    check_bytes(name, size)


def find_withheld(columns: pa.Table, name: str) -> str:
    """Return what a column held whose cells were not read; "" if they were."""
    held: bytes = (columns.schema.field(name).metadata or {}).get(HELD, b"")
    return held.decode()
