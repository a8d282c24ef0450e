"""What the command line writes: results to standard output, messages to standard error."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
from pyarrow import csv, parquet
from rich.console import Console

from ckcv_ray.errors import StoreError, escaped, plain, printable
from ckcv_ray.runs.load import environment_changes
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import write_beside

CSV = csv.WriteOptions(quoting_style="needed")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet runs (OWASP, CSV injection)
console = Console(stderr=True)


class Messages:
    """Standard error, which may be lost: where it cannot be written to, the work goes on without it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text, or lose it and all that comes after."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            silence(self.stream)
        return len(text)

    def flush(self) -> None:
        """Nothing is left to flush."""


def silence(stream: TextIO) -> bool:
    """Whether a stream cannot be written to; it then leads nowhere, so that nothing is left to fail."""
    try:
        stream.flush()
        return False
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True


def write_table(table: pa.Table, out: Path | None, folder: RunFolder, safe: bool) -> None:
    """Write predictions to a file, or as CSV to standard output."""
    sink = pa.output_stream(sys.stdout.buffer) if out is None else pa.BufferOutputStream()
    if out is None or out.suffix == ".csv":
        csv.write_csv(_fit_for_csv(table, safe), sink, CSV)
    else:
        parquet.write_table(table, sink)
    if out is not None:
        write_beside(folder.files, str(out), sink.getvalue())


def _fit_for_csv(table: pa.Table, safe: bool) -> pa.Table:
    """Labels without control characters, and, where asked for, none that a spreadsheet would run."""
    if not pa.types.is_string(table["prediction"].type):
        return table
    labels = table["prediction"].combine_chunks().dictionary_encode()
    words = labels.dictionary.to_pylist()
    escape = not all(word.isprintable() for word in words)
    cells = pa.array([_cell(word, escape, safe) for word in words], pa.string())
    column = pa.DictionaryArray.from_arrays(labels.indices, cells).cast(pa.string())
    return table.set_column(table.column_names.index("prediction"), "prediction", column)


def _cell(text: str, escape: bool, safe: bool) -> str:
    """A label as a cell; with control characters backslashes are escaped too: no two labels meet."""
    formula = safe and text.startswith(FORMULA)
    if escape:
        text = "".join(c if c.isprintable() and c != "\\" else escaped(c) for c in text)
    return f"'{text}" if formula else text


def say_environment(folder: Path) -> None:
    """Where the run was made in another environment, in which numbers may differ in their last bits."""
    with suppress(StoreError):
        if changes := environment_changes(folder):
            say(f"made in another environment: {plain('; '.join(changes))}. Last bits may differ.")


def show(content: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a result for programs or for people."""
    print(json.dumps(content, allow_nan=False) if as_json else printable(text))


def say(text: str) -> None:
    """Print a message."""
    console.print(printable(text), soft_wrap=True, markup=False, highlight=False, emoji=False)
