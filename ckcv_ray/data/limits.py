"""Sizes up to which tables are read: a small file may expand to a large one, or claim to."""

from ckcv_ray.errors import InputError

MOST_ROWS = 10_000_000
MOST_COLUMNS = 65_536
MOST_CELLS = 1 << 27
MOST_BYTES = 1 << 30
LINE_BYTES = 1 << 24


def check_size(name: str, rows: int, columns: int) -> None:
    """Raise InputError if a table is too large to be read."""
    if rows > MOST_ROWS or columns > MOST_COLUMNS or rows * columns > MOST_CELLS:
        raise InputError(
            f"{name} has {rows:,} rows and {columns:,} columns: at most {MOST_ROWS:,} rows, {MOST_COLUMNS:,} "
            f"columns and {MOST_CELLS:,} cells can be read; leave out columns, or take a sample of the rows"
        )


def check_bytes(name: str, size: int) -> None:
    """Raise InputError if something takes too many bytes to be read."""
    if size > MOST_BYTES:
        raise InputError(f"{name} takes {size >> 20:,} MiB: at most {MOST_BYTES >> 20:,} MiB can be read")
