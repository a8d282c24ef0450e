"""Malicious files for ``fuzz``: small or cheap to write, but expensive to read.

Files that lie about their sizes are in ``tests/tables/test_bombs.py``.
"""

import struct
import zipfile
import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from jobs.faults.fuzz_parts import CLASSES, ROWS, SEEN
from jobs.faults.fuzz_tables import (
    MEMBERS,
    npy,
    parquet_of,
    sound_npy,
    zipped,
)


def bomb(mib: int) -> bytes:
    """Build an archive of arrays whose X is ``mib`` MiB of zeros, without compressing them all."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    size = mib << 20
    head = npy("'<f8'", [size // 8, 1], b"")
    packed = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed += block * mib + packer.flush(zlib.Z_FINISH)
    content = bytearray(zipped({"X.npy": packed, "y.npy": sound_npy(CLASSES)}))
    central = content.index(b"PK\1\2")
    for at in (8, central + 10):
        struct.pack_into("<H", content, at, zipfile.ZIP_DEFLATED)
    for at in (14, central + 16):
        struct.pack_into("<III", content, at, 0, len(packed), len(head) + size)
    return bytes(content)


def _deep(levels: int) -> pa.Table:
    kind, value = pa.int64(), 1
    array = pa.array([value] * ROWS, kind)
    for _ in range(levels):
        array = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), array)
    return pa.table({"x": array, "y": CLASSES})


def _wide(columns: int, cell: str = "1") -> bytes:
    lines = [",".join(["y", *(f"x{i}" for i in range(columns))])]
    return "\n".join(lines + [",".join([y] + [cell] * columns) for y in CLASSES]).encode()


def _tall(rows: int) -> pa.Table:
    return pa.table({"x": np.zeros(rows), "y": np.arange(rows) % 2})


def with_X(content: bytes) -> bytes:
    """Build an archive that is valid except for its X."""
    return zipped(MEMBERS["npz"] | {"X.npy": content})


def with_part(part: str, content: bytes) -> bytes:
    """Build an IDA archive that is valid except for one part, compressed."""
    return zipped(MEMBERS["ida"] | {f"toy/{part}.npy": content}, zipfile.ZIP_DEFLATED)


HOSTILE: dict[str, dict[str, Callable[[], bytes]]] = {
    "csv": {
        "a million columns": lambda: _wide(1_000_000),
        "one endless line": lambda: b"1," * (40 << 20),
        "one endless cell": lambda: b"x,y\n" + b"1" * (80 << 20),
        "one endless name": lambda: b"x" * (80 << 20) + b",y\n1,a\n",
        "ten million rows": lambda: b"x,y\n" + b"1,a\n2,b\n" * 10_000_000,
        "ten million labels": lambda: b"x,y\n" + b"".join(b"1,%d\n" % i for i in range(5_000_000)),
        "nothing but zeros": lambda: bytes(100 << 20),
        "open quote": lambda: b'x,y\n"' + b"1,a\n" * 10_000_000,
    },
    "parquet": {
        "three hundred million rows": lambda: parquet_of(_tall(1_000_000), 300),
        "deep lists": lambda: parquet_of(_deep(500)),
        "many columns": lambda: parquet_of(pa.table({f"x{i}": SEEN for i in range(20_000)} | {"y": CLASSES})),
    },
    "npz": {
        "bomb": lambda: bomb(3_500),
        "objects": lambda: with_X(sound_npy(np.array([[None] * 2] * ROWS))),
        "a million columns": lambda: with_X(sound_npy(np.zeros((ROWS, 10**6)))),
        "many members": lambda: zipped({f"a{i}.npy": b"" for i in range(60_000)}),
        "no columns": lambda: zipped({"X.npy": npy("'<f8'", [10**9, 0], b"")}),
        "no bytes": lambda: with_X(npy("'|S0'", [10**9, 1], b"")),
    },
    "ida": {
        "a header of 24 TB": lambda: with_part("x", npy("'<f8'", [10**12, 3], b"")),
        "a million columns": lambda: with_part("x", sound_npy(np.zeros((ROWS, 10**6), np.int8))),
        "rows repeated many times": lambda: with_part("train", sound_npy(np.zeros((2, 5 * 10**7), np.int8))),
    },
    "svmlight": {
        "index of 10^9": lambda: b"1 1000000000:1\n-1 1:1\n" * 4,
        "index of 10^7": lambda: b"1 10000000:1\n-1 1:1\n" * 4,
        "index of 10^6": lambda: b"1 1000000:1\n-1 1:1\n" * 4,
        "many rows, wide": lambda: b"1 20000:1\n-1 1:1\n" * 50_000,
        "one endless line": lambda: b"1 " + b"1:1 " * 10_000_000,
        "one endless comment": lambda: b"1 1:1 #" + b"x" * (80 << 20),
        "one endless number": lambda: b"1 1:" + b"1" * (40 << 20),
    },
    "toml": {
        "deep lists": lambda: b"C = " + b"[" * 100_000 + b"]" * 100_000,
        "deep tables": lambda: b"[" + b".".join([b"a"] * 20_000) + b"]",
        "ten million folds": lambda: b'k = "3:10000000"',
        "a long list": lambda: b"C = [" + b"1," * 2_000_000 + b"]",
        "a long number": lambda: b"seed = 0x" + b"f" * 1_000_000,
        "a long name": lambda: b"x" * 10_000_000 + b" = 1",
        "many splits": lambda: b"n_splits = 1000000\nk = '3:n'",
    },
    "words": {
        "ten million": lambda: b"0:10000000",
        "a long list": lambda: b"1," * 2_000_000 + b"1",
        "a long number": lambda: b"9" * 3_000_000,
        "large numbers": lambda: b"9999999999999:10000000000000",
    },
}  # fmt: skip
