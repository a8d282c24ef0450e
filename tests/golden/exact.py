"""Values in a form that can be compared bit by bit: floats in hexadecimal, tables and files by their SHA-256.

A golden value is a flat mapping of keys to such values. A key that begins with ``BITS`` depends on the
processor and on versions of packages, and is compared only where these are the same.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

BITS = "bits of "
OF_THE_RUN = {"execution.json", "manifest.json", "report.html", ".lock"}  # they hold seconds and hosts
PICKLES = ".pkl"  # they name the modules of their classes; the tables hold the same models

Values = dict[str, Any]


def exact(value: Any) -> Any:
    """Return JSON values without rounding: floats in hexadecimal, bytes and arrays by their digest."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value.hex()
        case bytes():
            return hashlib.sha256(value).hexdigest()
        case np.ndarray():
            return exact([value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()])
        case Mapping():
            return {str(name): exact(part) for name, part in value.items()}
        case list() | tuple():
            return [exact(part) for part in value]
    raise TypeError(f"{type(value).__name__} has no exact form here: add one")


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's exact form."""
    return hashlib.sha256(json.dumps(exact(value), sort_keys=True).encode()).hexdigest()


def digest_files(folder: Path) -> Values:
    """Return the SHA-256 of every file of a run folder that does not depend on how the run went."""
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
    return {
        f"{BITS}{name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in files.items()
        if file.name not in OF_THE_RUN and file.suffix != PICKLES and "log/" not in name
    }


def digest_log(folder: Path) -> str:
    """Return the SHA-256 of all records in the log of a run folder, in whatever order they were written.

    It is the same in every run only if all evaluations are computed, dropping none. Tracebacks, which name
    places in the code, are left out.
    """
    parts = [parquet.read_table(file) for file in (folder / "log").glob("part-*.parquet")]
    rows = pa.concat_tables(parts).drop_columns("traceback").to_pylist()
    return digest(sorted(json.dumps(exact(row), sort_keys=True) for row in rows))
