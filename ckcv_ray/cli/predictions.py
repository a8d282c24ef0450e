"""Tables of predictions: written to a file or to standard output, and recognised in files."""

from csv import reader
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv, parquet

from ckcv_ray.cli.output import results
from ckcv_ray.errors import InputError, escape_text
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import check_page, write_page
from ckcv_ray.tables.columns.parse import decode
from ckcv_ray.tables.named import is_named
from ckcv_ray.tables.target import is_text

PROBABILITY = "probability_"  # begins the name of the column of a class
WRITTEN = ("row", "prediction", "member", "score", "share", "flag", "answered")
PREDICTIONS = "a file of predictions"
LONGEST_HEADER = 1 << 16
CSV = csv.WriteOptions(quoting_style="needed")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # start of a cell that a spreadsheet runs (OWASP, CSV injection)


class Output(NamedTuple):
    """Where predictions are written.

    Attributes:
        path: a file; None for standard output, as CSV.
        safe: whether cells that a spreadsheet would execute are escaped.
        probabilities: whether there is a column with the probability of each class.
    """

    path: Path | None
    safe: bool
    probabilities: bool = False

    @property
    def is_csv(self) -> bool:
        """Whether they are written as CSV."""
        return self.path is None or self.path.suffix == ".csv"

    def check(self, folder: RunFolder, source: str) -> None:
        """Raise InputError if predictions of a source cannot be written to the file, before they are made."""
        if self.path is None:
            return
        file = None if is_named(source) else Path(source)
        if file is not None and file.exists() and self.path.exists() and self.path.samefile(file):
            raise InputError(f"out={str(self.path)!r} is the file to predict: choose another name")
        check_page(folder.files, str(self.path), are_predictions, PREDICTIONS)

    def write(self, table: pa.Table, folder: RunFolder) -> None:
        """Write predictions."""
        stream: Any = results()
        sink = pa.output_stream(stream.buffer) if self.path is None else pa.BufferOutputStream()
        if self.is_csv:
            csv.write_csv(_escape_text(table, self.safe), sink, CSV)
        else:
            parquet.write_table(table, sink)
        if self.path is not None:
            write_page(folder.files, str(self.path), sink.getvalue(), are_predictions, PREDICTIONS)


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
            table = table.set_column(i, field.name, _escape_column(table.column(i), safe))
    names = [_format_cell(name, not name.isprintable(), safe) for name in table.column_names]
    return table.rename_columns(names)


def _escape_column(column: pa.ChunkedArray, safe: bool) -> pa.Array:
    labels = column.combine_chunks().dictionary_encode()
    texts = labels.dictionary.to_pylist()
    escape = not all(text.isprintable() for text in texts)
    cells = pa.array([_format_cell(text, escape, safe) for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(labels.indices, cells).cast(pa.string())


def _format_cell(text: str, escape: bool, safe: bool) -> str:
    """Format text as a CSV cell; ``escape`` includes backslashes, so that texts stay distinct."""
    formula = safe and text.startswith(FORMULA)
    if escape:
        text = "".join(c if c.isprintable() and c != "\\" else escape_text(c) for c in text)
    return f"'{text}" if formula else text
