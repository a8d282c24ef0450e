"""Hostile files: small ones that unfold to large ones, or claim to, are refused in bounded memory."""

import base64
import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from threading import get_ident

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.readers import limits
from ckcv_ray.tables.readers.files import read_parquet
from ckcv_ray.tables.task import read

READ = """
import json, sys
from pathlib import Path
from ckcv_ray import study
from ckcv_ray.tables import task as data
from ckcv_ray.errors import InputError

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))

import sklearn.datasets
before, found = peak(), {}
for name in sys.argv[1:]:
    path, told = Path(name), "it was read"
    try:
        if path.suffix == ".toml":
            study.read_toml(path)
        else:
            data.read(name)
    except InputError as error:
        told = str(error)
    found[name] = told, peak() - before
print(json.dumps(found))
"""
MAX_MIB = 400


def holes(path: Path, size: int) -> None:
    """A file of zero bytes that takes no room."""
    path.touch()
    os.truncate(path, size)


def text(path: Path, content: str) -> None:
    path.write_text(content)


def npy(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """An array's header without its values."""
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def member(path: Path, content: bytes, zeros: int = 0) -> None:
    """An NPZ with the array X: its beginning, and then zeros."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as file,
    ):
        file.write(content)
        for _ in range(zeros >> 24):
            file.write(bytes(1 << 24))


def objects(path: Path) -> None:
    np.savez(path, X=np.array([[{"a": 1}, print]], dtype=object), y=np.array([0]))


def wide_parquet(path: Path) -> None:
    parquet.write_table(pa.table({f"a{i}": [1] for i in range(limits.MAX_TABLE_COLUMNS + 1)}), path)


def long_parquet(path: Path) -> None:
    parquet.write_table(pa.table({"a": pa.array(np.zeros(limits.MAX_TABLE_ROWS + 1, np.int8))}), path)


def repeated_text(path: Path) -> None:
    """A text of 16 KiB in 200 000 rows: 3 GiB, stored once."""
    column = pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), ["x" * (1 << 14)])
    parquet.write_table(pa.table({"a": column}), path, store_schema=False)


def many_views(path: Path) -> None:
    """The same, as a view, of which Arrow unfolds every one."""
    schema = pa.schema([("a", pa.string_view())]).serialize().to_pybytes()
    column = pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), ["x" * (1 << 14)])
    table = pa.table({"a": column})
    with parquet.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(schema).decode()})


def misdeclared(path: Path) -> None:
    """A column written as optional and declared as required: Arrow aborts over its statistics."""
    optional, required = (b"\x25" + kind + b"\x18\x01a" for kind in (b"\x02", b"\x00"))
    parquet.write_table(pa.table({"a": [1, 2]}), path, store_schema=False)
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))


HOSTILE: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "one line of 1 GB": ("a.csv", lambda p: holes(p, 10**9), "a line of more than 16 MiB"),
    "a CSV of 8 GB": ("a.csv", lambda p: holes(p, 8 << 30), "takes 8,192 MiB: at most 1,024 MiB"),
    "a million columns": ("a.csv", lambda p: text(p, ",".join("a" * 10**6) + "\n1\n"), "1,000,000 columns"),
    "a million columns after \r": ("a.csv", lambda p: text(p, "," * 10**6 + "\r1\r"), "1,000,001 columns"),
    "empty rows": ("a.csv", lambda p: text(p, "a,b\n" + ",\n" * 11_000_000), "11,000,001 rows"),
    "zero bytes": ("a.npz", lambda p: holes(p, 5000), "as npz: it is not an archive"),
    "an object array": ("a.npz", objects, "Object arrays cannot be loaded"),
    "a zip bomb": ("a.npz", lambda p: member(p, npy((1 << 17, 1 << 10)), 1 << 30), "'X.npy' takes 1,024 MiB"),
    "10^12 numbers claimed": ("a.npz", lambda p: member(p, npy((10**6, 10**6))), "cannot read"),
    "10^8 numbers claimed": ("a.npz", lambda p: member(p, npy((10**4, 10**4))), "cannot read"),
    "a negative shape": ("a.npz", lambda p: member(p, npy((-8, 2))), "cannot read"),
    "a wide array": ("a.npz", lambda p: member(p, npy((64, 1 << 18), "|i1"), 1 << 24), "262,144 columns"),
    "an index of 10^9": ("a.svmlight", lambda p: text(p, "1 1:1\n-1 999999999:1\n"), "1,000,000,000 columns"),
    "an index beyond int64": ("a.svmlight", lambda p: text(p, "1 99999999999999999999:1\n"), "cannot read"),
    "svmlight in one line": ("a.svmlight", lambda p: holes(p, 10**9), "a line of more than 16 MiB"),
    "a wide Parquet": ("a.parquet", wide_parquet, "65,537 columns"),
    "a long Parquet": ("a.parquet", long_parquet, "10,000,001 rows"),
    "a text many times": ("a.parquet", repeated_text, "column 'a' takes 3,125 MiB"),
    "a text view many times": ("a.parquet", many_views, "column 'a' takes 3,125 MiB"),
    "a column misdeclared": ("a.parquet", misdeclared, "cannot read"),
    "a deep study file": ("a.toml", lambda p: text(p, "C = " + "[" * 10**6), "cannot read the study file"),
    "a study file of 8 GB": ("a.toml", lambda p: holes(p, 8 << 30), "more than 16 MiB"),
}  # fmt: skip


def test_hostile_files_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    paths = {name: tmp_path / str(i) / file for i, (name, (file, _, _)) in enumerate(HOSTILE.items())}
    for name, path in paths.items():
        path.parent.mkdir()
        HOSTILE[name][1](path)
    done = subprocess.run([sys.executable, "-c", READ, *paths.values()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, path in paths.items():
        messages, mib = found[str(path)]
        assert str(path) in messages, name
        assert HOSTILE[name][2] in messages
        assert mib <= MAX_MIB, name  # of all up to this one
        assert list(path.parent.iterdir()) == [path]


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


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_text_column_is_read(tmp_path: Path, rows: int) -> None:
    table = pa.table({"a": pa.array([None] * rows, pa.string()), "b": pa.array([""] * rows)})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read(str(tmp_path / "a.parquet")).learn.equals(table)


def test_texts_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TABLE_BYTES", 1 << 27)
    table = pa.table({name: pa.array(["x" * (1 << 14)] * 4000).dictionary_encode() for name in "abc"})
    parquet.write_table(table, tmp_path / "a.parquet", store_schema=False)
    with pytest.raises(InputError, match="its text takes 187 MiB: at most 128 MiB can be read"):
        read(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("kind", [pa.binary(3), pa.list_(pa.float64(), 3), pa.uuid()], ids=str)
def test_columns_of_a_width_of_their_own_are_not_unfolded(tmp_path: Path, kind: pa.DataType) -> None:
    value = {pa.binary(3): b"abc", pa.uuid(): b"x" * 16}.get(kind, [1.0, 2.0, 3.0])
    table = pa.table({"a": pa.array([value] * 2, kind), "y": ["no", "yes"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read(str(tmp_path / "a.parquet")).learn["a"].null_count == 2


def test_a_single_column_may_have_a_separator_in_its_name(tmp_path: Path) -> None:
    text(file := tmp_path / "rows.csv", '"a;b"\n0.5\n')
    assert read(str(file)).learn.column_names == ["a;b"]


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(InputError, match="there is no file"):
        read(str(tmp_path / "a.csv"))


class Watched(io.BytesIO):
    """A stream that notes which threads use it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.threads: set[int] = set()

    def read(self, size: int | None = -1) -> bytes:
        self.threads.add(get_ident())
        return super().read(size)


def test_a_stream_is_read_by_the_calling_thread_alone() -> None:
    """Arrow's threads may still hold it while Python shuts down, which aborts the process (arrow #34314)."""
    table = pa.table({"x": np.arange(1000.0), "word": ["a", "b"] * 500})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    stream = Watched(sink.getvalue().to_pybytes())
    assert read_parquet(stream, table.schema).equals(table)
    assert stream.threads == {get_ident()}


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
        f"import os; from ckcv_ray.tables.readers.files import read_file; n = {count}; "
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
