"""What files hold: sizes, text, types, and the threads that read them. Bombs are in ``test_bombs``."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables import limits
from ckcv_ray.tables.named import read


def test_what_is_large_but_allowed_is_read(tmp_path: Path) -> None:
    """Many columns, lines longer than a megabyte, and a repeated text."""
    d = 30_000
    names, row = (
        ",".join(f"{name}{i}" for i in range(d))
        for name in ("a_rather_long_name_of_a_column_", "0.12345678901234567")
    )
    (tmp_path / "wide.csv").write_text("\n".join([names, *[row.replace("-", "")] * 3]) + "\n")
    assert len(row) < 1 << 20 < len(names)
    assert read(str(tmp_path / "wide.csv")).learn.shape == (3, d)
    few = pa.table({"y": ["no", "yes"] * 500, "a": [b"\xff"] * 1000, "b": range(1000)})
    parquet.write_table(few, tmp_path / "few.parquet")
    assert read(str(tmp_path / "few.parquet")).learn.equals(few)


def test_texts_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TABLE_BYTES", 1 << 27)
    table = pa.table({name: pa.array(["x" * (1 << 14)] * 4000).dictionary_encode() for name in "abc"})
    parquet.write_table(table, tmp_path / "a.parquet", store_schema=False)
    with pytest.raises(InputError, match="takes 187 MiB: at most 128 MiB are read"):
        read(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather"])
def test_arrow_reads_files_without_its_pool_of_threads(name: str, tmp_path: Path) -> None:
    """They may abort the process at exit. The one that may stay waits for signals, or reads a path: neither
    holds anything of Python's.
    """
    columns = pa.table({f"x{i}": np.arange(1000.0) for i in range(8)})
    parquet.write_table(columns, tmp_path / "t.parquet")
    feather.write_feather(columns, str(tmp_path / "t.feather"), compression="lz4")
    csv.write_csv(columns, tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    count = "len(os.listdir('/proc/self/task'))"
    code = (
        f"import os; from ckcv_ray.tables.read import read_file; n = {count}; "
        f"read_file({name!r}); print({count} - n)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert int(done.stdout) <= (0 if name == "t.feather" else 1)


def test_cells_of_a_parquet_file_that_are_none_of_their_type_are_refused(tmp_path: Path) -> None:
    offsets, y = np.arange(5, dtype=np.int32), pa.array(["no", "yes"] * 2)
    text = pa.StringArray.from_buffers(4, pa.py_buffer(offsets), pa.py_buffer(b"ab\x80d"))
    late = pa.array([1, 2, 3, 86_400_000_000], pa.int64()).view(pa.time64("us"))
    for cells, what in ((text, "UTF8"), (late, "time64")):
        file = tmp_path / "t.parquet"
        parquet.write_table(pa.table({"x": cells, "y": y}), file)
        with pytest.raises(InputError, match=rf"t\.parquet' .*{what}"):
            read(file)


LIMITED = """
import threading
from resource import RLIMIT_AS, getrlimit
import numpy as np
import pyarrow as pa
from ckcv_ray.tables.limits import limit_memory

before = getrlimit(RLIMIT_AS)
for allocate in (lambda: np.ones(1 << 27), lambda: pa.allocate_buffer(1 << 30), lambda: [0] * (1 << 27)):
    try:
        with limit_memory(1 << 28):
            allocate()
    except ValueError as error:
        print(error)
    assert getrlimit(RLIMIT_AS) == before
with limit_memory(1 << 30), limit_memory(1 << 32):  # the lower one holds
    print(getrlimit(RLIMIT_AS)[0] < 1 << 32)
done = threading.Event()
threading.Thread(target=done.wait).start()
with limit_memory(0):  # it would be that of the other thread too
    print(getrlimit(RLIMIT_AS) == before, len(np.ones(1 << 22)))
done.set()
"""


def test_memory_is_limited_while_a_file_is_read_and_no_other_thread_runs() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["reading it takes more than 256 MiB"] * 3 + ["True", "True 4194304"]
