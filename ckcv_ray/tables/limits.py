"""Sizes up to which tables are read: a small file may expand to a large one, or claim to.

What a file says about itself is checked against limits before it is read; what it really expands to is
limited by the memory that this process may map while it reads.
"""

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ckcv_ray.errors import InputError

MAX_TABLE_ROWS = 10_000_000
MAX_TABLE_COLUMNS = 65_536
MAX_CELLS = 1 << 27
LINE_BYTES = 1 << 24
FOLDER_BYTES = 2 << 30  # of memory, besides what is mapped, for reading a file of a run folder
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
