"""Output of the command line: results to standard output, messages to standard error."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from csv import reader
from io import UnsupportedOperation
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
from pyarrow import csv, parquet
from rich.console import Console

from ckcv_ray.errors import StoreError, counted, escaped, plain, printable
from ckcv_ray.runs.load import environment_changes
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import check_page, write_page
from ckcv_ray.tables.columns.parse import decoded
from ckcv_ray.tables.named import is_named
from ckcv_ray.tables.survey import survey
from ckcv_ray.tables.target import is_text
from ckcv_ray.tables.task import Task

WRITTEN = ("row", "prediction", "member", "score", "share", "referred")  # columns of predictions
PREDICTIONS = "a file of predictions"
LONGEST_HEADER = 1 << 16
MOST_SURVEYED = 10_000_000  # cells
MOST_SHOWN = 40  # columns
LONGEST_NAME = 30
CSV = csv.WriteOptions(quoting_style="needed")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # start of a cell that a spreadsheet runs (OWASP, CSV injection)
STDOUT, STDERR = 1, 2  # descriptors
console = Console(stderr=True)
_results: list[TextIO] = []  # the stream of results, where it is kept apart


def results() -> TextIO | None:
    """Return the stream of results: standard output; None if it was closed."""
    return _results[0] if _results else sys.stdout


def results_descriptor() -> int | None:
    """Return the descriptor of standard output for another process; None if there is none to give."""
    with suppress(AttributeError, UnsupportedOperation):
        return results().fileno()  # type: ignore[union-attr]
    return None


@contextmanager
def keep_results_apart() -> Iterator[None]:
    """Keep standard output for results: whatever else is written there goes to standard error.

    That is what estimators print, by Python, by compiled code, or by processes that they start. In a process
    that runs one command it goes on to its end, so that nothing printed later follows the results.
    """
    before = sys.stdout
    if before is None or _results:
        yield
        return
    before.flush()
    saved = os.dup(STDOUT)
    own = _descriptor(before) == STDOUT
    kept = os.fdopen(os.dup(STDOUT), "w", encoding=before.encoding, errors=before.errors) if own else before
    _send_to_stderr()
    sys.stdout = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    _results.append(kept)
    try:
        yield
    finally:
        if not (own and before is sys.__stdout__):
            kept.flush()
            _results.clear()
            sys.stdout = before
            _flush_compiled()
            os.dup2(saved, STDOUT)
            os.close(saved)


def _descriptor(stream: TextIO) -> int | None:
    with suppress(AttributeError, UnsupportedOperation):
        return stream.fileno()
    return None


def _send_to_stderr() -> None:
    """Let the descriptor of standard output lead to standard error, or nowhere if that was closed."""
    try:
        os.dup2(STDERR, STDOUT)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def _flush_compiled() -> None:
    """Write out what compiled code has in its buffers."""
    import ctypes

    ctypes.CDLL(None).fflush(None)


class Messages:
    """Standard error stream that ignores write failures, so that the computation continues without it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text; after a failure, discard it and all further text."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            silence(self.stream)
        return len(text)

    def flush(self) -> None:
        """Do nothing: every write is flushed."""


def silence(stream: TextIO) -> bool:
    """Return whether a stream cannot be written to; if so, redirect it to the null device."""
    try:
        stream.flush()
        return False
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True


def open_closed_streams() -> None:
    """Open standard streams that are closed (``>&-``), so that no file takes their place.

    What is written to standard output then fails, as to a full disk; messages are dropped.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with suppress(OSError):  # closed by now, if it ever was open
                os.close(number)
            descriptor = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def say_columns(task: Task, held: int = 0) -> None:
    """Print what was understood of the columns of a table, and what looks like a mistake in them.

    Args:
        task: the rows to look at.
        held: how many others are held out, and must not be looked at before they certify.
    """
    if is_named(task.source) or task.X.size > MOST_SURVEYED:
        return
    columns = survey(task)
    if not columns:
        return
    shown = columns[:MOST_SHOWN]
    width = max(len("column"), *(len(one.name) for one in shown))
    width = min(width, LONGEST_NAME)
    say(f"{'column':<{width}}  {'kind':<8}  {'missing':>8}  {'distinct':>8}")
    for one in shown:
        figures = f"{one.kind:<8}  {one.missing:>8,}  {one.distinct:>8,}"
        say(f"{plain(one.name)[:width]:<{width}}  {figures}  {one.note}".rstrip())
    if more := len(columns) - len(shown):
        say(f"and {counted(more, 'column')} more")
    if held:
        say(f"(of the {counted(task.n, 'row')} to learn from: nobody looks at those held out)")


def write_table(table: pa.Table, out: Path | None, folder: RunFolder, safe: bool) -> None:
    """Write predictions to a file, or to standard output as CSV."""
    stream: Any = results()
    sink = pa.output_stream(stream.buffer) if out is None else pa.BufferOutputStream()
    if out is None or out.suffix == ".csv":
        csv.write_csv(_escape_text(table, safe), sink, CSV)
    else:
        parquet.write_table(table, sink)
    if out is not None:
        write_page(folder.files, str(out), sink.getvalue(), are_predictions, PREDICTIONS)


def check_table(out: Path, folder: RunFolder) -> None:
    """Raise InputError if predictions cannot be written to a file, before they are made."""
    check_page(folder.files, str(out), are_predictions, PREDICTIONS)


def are_predictions(file: Path) -> bool:
    """Return whether a file has the columns of predictions; one column may be among them that was kept."""
    try:
        if file.suffix == ".csv":
            with file.open(encoding="utf-8", newline="") as stream:
                names = next(reader([stream.readline(LONGEST_HEADER)]), [])
        else:
            names = parquet.read_schema(file).names
    except Exception:  # readers raise errors of all kinds
        return False
    return names[:1] == ["row"] and any(tuple(names[at : at + 4]) == WRITTEN[1:5] for at in (1, 2))


def _escape_text(table: pa.Table, safe: bool) -> pa.Table:
    """Escape control characters in text and, if ``safe``, what a spreadsheet would execute."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, decoded(table.column(i)))
        if is_text(table.schema.field(i).type):
            table = table.set_column(i, field.name, _escaped(table.column(i), safe))
    names = [_cell(name, not name.isprintable(), safe) for name in table.column_names]
    return table.rename_columns(names)


def _escaped(column: pa.ChunkedArray, safe: bool) -> pa.Array:
    labels = column.combine_chunks().dictionary_encode()
    texts = labels.dictionary.to_pylist()
    escape = not all(text.isprintable() for text in texts)
    cells = pa.array([_cell(text, escape, safe) for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(labels.indices, cells).cast(pa.string())


def _cell(text: str, escape: bool, safe: bool) -> str:
    """Format text as a CSV cell; ``escape`` includes backslashes, so that texts stay distinct."""
    formula = safe and text.startswith(FORMULA)
    if escape:
        text = "".join(c if c.isprintable() and c != "\\" else escaped(c) for c in text)
    return f"'{text}" if formula else text


def say_environment(folder: Path) -> None:
    """Print a message if the run was made in another environment, where last bits may differ."""
    with suppress(StoreError):
        if changes := environment_changes(folder):
            say(
                f"the run was made in another environment: {plain('; '.join(changes))}. Last bits may differ."
            )


def show(content: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a result, as JSON or as text."""
    print(json.dumps(content, allow_nan=False) if as_json else printable(text), file=results())


def say(text: str) -> None:
    """Print a message to standard error."""
    console.print(printable(text), soft_wrap=True, markup=False, highlight=False, emoji=False)
