"""Tables of predictions: written to a file or to standard output, and recognised in files."""

from csv import reader
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from ckcv_ray.cli.output import results
from ckcv_ray.errors import escape_text
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import check_page, write_page
from ckcv_ray.tables.columns.parse import decode
from ckcv_ray.tables.target import is_text

WRITTEN = ("row", "prediction", "member", "score", "share", "referred")  # columns of predictions
PREDICTIONS = "a file of predictions"
LONGEST_HEADER = 1 << 16
CSV = csv.WriteOptions(quoting_style="needed")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # start of a cell that a spreadsheet runs (OWASP, CSV injection)


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
            table = table.set_column(i, field.name, decode(table.column(i)))
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
        text = "".join(c if c.isprintable() and c != "\\" else escape_text(c) for c in text)
    return f"'{text}" if formula else text
