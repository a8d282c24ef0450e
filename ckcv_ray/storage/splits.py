"""The file of splits: those that were given to a procedure, or are kept with its predictions."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.tables.limits import MAX_CELLS

FILE = "splits.parquet"
SPLIT_COLUMNS = pa.schema([("split", pa.int32()), ("train", pa.bool_()), ("row", pa.int64())])


def make_splits(sets: Sequence[tuple[Index, Index]], run_id: str) -> pa.Buffer:
    """Return the file of the rows that each split fits on, and those that it scores."""
    marked = [((True, train), (False, scored)) for train, scored in sets]
    parts = [(i, train, rows) for i, pair in enumerate(marked) for train, rows in pair]
    columns = {
        "split": np.repeat([i for i, _, _ in parts], [len(rows) for _, _, rows in parts]),
        "train": np.repeat([train for _, train, _ in parts], [len(rows) for _, _, rows in parts]),
        "row": np.concatenate([rows for _, _, rows in parts]),
    }
    return formats.make_table(pa.table(columns).cast(SPLIT_COLUMNS), run_id)


def read_splits(files: Files, resampling: Splits, run_id: str, n: int) -> Splits:
    """Return the splits of a procedure, of n rows, whose digest alone is known.

    Raises:
        StoreError: they are missing, damaged, or not those of the procedure.
    """
    table = formats.read_table(files, FILE, run_id, SPLIT_COLUMNS, values=2 * MAX_CELLS)
    with formats.guard_reading(files, FILE):
        split, train, row = (table[name].to_numpy() for name in SPLIT_COLUMNS.names)
        count = len(numbers := np.unique(split))
        if not np.array_equal(numbers, np.arange(count)):  # before there is a part for each number
            raise ValueError("its splits are not numbered from 0, one after another")
        part = 2 * split.astype(np.int64) + ~train
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(1, 2 * count))
        parts = np.split(row[order], ends)
        given = Splits.of(zip(parts[::2], parts[1::2], strict=True) if count else [], n)
        if given.digest != resampling.digest:
            raise ValueError("its splits are not those of the procedure: their digest differs")
    return given
