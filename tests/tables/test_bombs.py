"""Files that expand to large ones, or claim to, and how each is refused; what is large but allowed.

Bombs are read in a process whose memory is limited, which none of them may end.
"""

import gzip
import json
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import feather, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.named import read

READ = """
import json, os, resource, sys
from pathlib import Path
from ckcv_ray.study import study
from ckcv_ray.tables import named as data
from ckcv_ray.errors import InputError

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(name))

import openpyxl, sklearn.datasets
limit = status("VmSize") + int(sys.argv[1]) << 20, resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, limit)
before, found = status("VmHWM"), {}
for name in sys.argv[2:]:
    path, told, start = Path(name), "it was read", sum(os.times()[:4])
    try:
        if path.suffix == ".toml":
            study.read_toml(path)
        else:
            data.read(name)
    except InputError as error:
        told = str(error)
    assert resource.getrlimit(resource.RLIMIT_AS) == limit
    found[name] = told, sum(os.times()[:4]) - start
print(json.dumps([found, status("VmHWM") - before]))
"""
text = Path.write_text
MIB, SECONDS = 600, 20  # beside what the process has; of processor time, of the slowest
SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:B9"/>'
    "<sheetData>{}</sheetData>{}</worksheet>"
)


# A text of 16 KiB in 200,000 rows: 3 GiB, stored once; the same as views, and as bytes.
LONG = [pa.array(["x" * (1 << 14)], kind) for kind in (pa.string(), pa.string_view(), pa.binary())]
LONG_TEXT, LONG_VIEWS, LONG_BYTES = (
    pa.table({"a": pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), long)}) for long in LONG
)


def holes(path: Path, size: int) -> None:
    """A file of zero bytes that takes no room."""
    path.touch()
    os.truncate(path, size)


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


many_texts = partial(parquet.write_table, LONG_TEXT, store_schema=False)


def save(path: Path, columns: dict[str, Any]) -> None:
    parquet.write_table(pa.table(columns), path, store_schema=False)


def misdeclared(path: Path) -> None:
    """A column written as optional and declared as required: Arrow aborts over its statistics."""
    optional, required = (b"\x25" + kind + b"\x18\x01a" for kind in (b"\x02", b"\x00"))
    save(path, {"a": [1, 2]})
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))


def find_footer(path: Path) -> tuple[bytes, int]:
    content = path.read_bytes()
    return content, len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def small_pages(path: Path) -> None:
    """Pages of 1.2 GB of zeros that the footer says are small."""
    size = 20 << 20
    table = pa.table({"a": ["\0" * size]})
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    with parquet.ParquetWriter(path, table.schema, **options) as writer:
        for _ in range(60):
            writer.write_table(table)
    content, start = find_footer(path)
    said = re.compile(rb"[\x80-\xff]{3}\x14")  # sizes as Thrift writes them, here from 20 to 21 MiB
    assert len(said.findall(content, start)) >= 120
    path.write_bytes(content[:start] + said.sub(b"\x80\x80\x80\x00", content[start:]))


def more_rows(path: Path) -> None:
    """A footer that claims 2^40 rows, as does one of its columns."""
    parquet.write_table(pa.table({"a": np.arange(7001) % 7}), path, compression="none", store_schema=False)
    content, start = find_footer(path)
    few, many = (write_varint(2 * rows) for rows in (7001, 1 << 40))
    footer = content[start:-8].replace(few, many)
    path.write_bytes(content[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1")


def write_varint(value: int) -> bytes:
    """A number as Thrift writes it."""
    return bytes([value & 127 | 128]) + write_varint(value >> 7) if value > 127 else bytes([value])


def write_feather(path: Path, table: pa.Table, compression: str | None = "zstd", times: int = 1) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        for _ in range(times):
            writer.write_table(table)


def long_buffers(path: Path, length: int) -> None:
    """Buffers that claim to be very long once unpacked."""
    write_feather(path, pa.table({"a": np.arange(5001.0)}), "lz4")
    lengths = struct.pack("<q", 8 * 5001), struct.pack("<q", length)
    path.write_bytes(path.read_bytes().replace(*lengths))


def workbook(path: Path, rows: str, rest: str = "", strings: str = "") -> None:
    """A workbook whose sheet is given."""
    book = Workbook()
    book.active.append(["x", "y"])
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = SHEET.format(rows, rest).encode()
    if strings:
        members["xl/sharedStrings.xml"] = strings.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def far_corners(path: Path) -> None:
    book = Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    book.save(path)


ZEROS = pa.table({"a": np.zeros(400_000)})
MERGED = f"<mergeCells>{'<mergeCell/>' * 1_100_000}</mergeCells>"
STRINGS = f"<sst>{'<t/>' * 1_200_000}</sst>"
HOSTILE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "one line of 1 GB": ("a.csv", lambda p: holes(p, 10**9), "a line of more than 16 MiB"),
    "a million columns": ("a.csv", lambda p: text(p, ",".join("a" * 10**6) + "\n1\n"), "1,000,000 columns"),
    "an object array": ("a.npz", lambda p: np.savez(p, X=np.array([[print]])), "Object arrays cannot be"),
    "a zip bomb": ("a.npz", lambda p: member(p, npy((1 << 17, 1 << 10)), 1 << 30), "'X.npy' takes 1,024 MiB"),
    "10^12 numbers claimed": ("a.npz", lambda p: member(p, npy((10**6, 10**6))), "cannot read"),
    "a wide array": ("a.npz", lambda p: member(p, npy((64, 1 << 18), "|i1"), 1 << 24), "262,144 columns"),
    "an index of 10^9": ("a.svmlight", lambda p: text(p, "1 1:1\n-1 999999999:1\n"), "1,000,000,000 columns"),
    "an index of 60 thousand": ("a.svmlight", lambda p: text(p, "1 60000:1\n" * 2000), "takes more than"),
    "a wide Parquet": ("a.parquet", lambda p: save(p, {str(i): [1] for i in range(65537)}), "65,537 columns"),
    "a long Parquet": ("a.parquet", lambda p: save(p, {"a": np.zeros(10_000_001, "i1")}), "10,000,001 rows"),
    "a text many times": ("a.parquet", many_texts, "takes 3,125 MiB"),
    "pages said to be small": ("a.parquet", small_pages, "takes 1,200 MiB"),
    "2^40 rows": ("a.parquet", more_rows, "1,099,511,627,776 rows"),
    "a column misdeclared": ("a.parquet", misdeclared, "cannot read"),
    "a text many times in Feather": ("a.feather", lambda p: write_feather(p, LONG_TEXT), "takes 3,125 MiB"),
    "a view many times": ("a.feather", lambda p: write_feather(p, LONG_VIEWS), "takes 3,125 MiB"),
    "many zeros": ("a.feather", lambda p: write_feather(p, ZEROS, times=60), "10,400,000 rows"),
    "a buffer of 2^40 bytes": ("a.feather", lambda p: long_buffers(p, 1 << 40), "takes more than"),
    "17 million cells": ("a.xlsx", lambda p: workbook(p, f"<row>{'<c/>' * 17}</row>" * 10**6), "16,777,216"),
    "far corners": ("a.xlsx", far_corners, "1,048,576 rows and 16,384 columns"),
    "merged cells": ("a.xlsx", lambda p: workbook(p, "", MERGED), "or much else"),
    "strings": ("a.xlsx", lambda p: workbook(p, "<row><c/></row>", "", STRINGS), "or much else"),
    "a deep study file": ("a.toml", lambda p: text(p, "C = " + "[" * 10**6), "cannot read the study file"),
}  # fmt: skip


LARGE = {"17 million cells", "a zip bomb", "merged cells", "pages said to be small", "strings"}


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_bombs_are_refused_in_a_sentence_within_memory_and_time(large: bool, tmp_path: Path) -> None:
    chosen = [name for name in HOSTILE if (name in LARGE) == large]
    paths = {name: tmp_path / str(i) / HOSTILE[name][0] for i, name in enumerate(chosen)}
    for name, path in paths.items():
        path.parent.mkdir()
        HOSTILE[name][1](path)
    command = [sys.executable, "-c", READ, str(MIB), *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, mib = json.loads(done.stdout)
    for name, path in paths.items():
        message, seconds = found[str(path)]
        assert str(path) in message, name
        assert HOSTILE[name][2] in message
        assert "\n" not in message
        assert seconds < SECONDS, name
        assert list(path.parent.iterdir()) == [path]
    assert mib <= MIB


def test_what_is_large_but_allowed_is_read(tmp_path: Path) -> None:
    """Many columns, lines longer than a megabyte, and repeated bytes, which are not unfolded."""
    names = ",".join(f"a_rather_long_name_of_a_column_{i}" for i in range(30_000))
    text(tmp_path / "wide.csv", names + "\n" + (",".join(["0.5"] * 30_000) + "\n") * 3)
    assert len(names) > 1 << 20
    assert read(tmp_path / "wide.csv").learn.shape == (3, 30_000)
    save(tmp_path / "few.parquet", {"a": [b"\xff"] * 1000, "b": range(1000)})
    assert read(tmp_path / "few.parquet").learn.shape == (1000, 2)
    write_feather(tmp_path / "bytes.feather", LONG_BYTES)
    assert read(tmp_path / "bytes.feather").learn.shape == (200_000, 1)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.feather"])
def test_arrow_reads_files_without_its_pool_of_threads(name: str, tmp_path: Path) -> None:
    """They may abort the process at exit; the one that may stay holds nothing of Python's."""
    columns = pa.table({f"x{i}": np.arange(1000.0) for i in range(8)})
    parquet.write_table(columns, tmp_path / "t.parquet")
    feather.write_feather(columns, str(tmp_path / "t.feather"), compression="lz4")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 1000))
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
from ckcv_ray.tables.read import limit_memory

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
