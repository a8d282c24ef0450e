"""Rows given in Python as Arrow columns: data frames, Arrow tables, arrays and sparse matrices."""

from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.tables.readers.files import (
    as_values,
    from_matrix,
    index_names,
    name_columns,
    with_plain_values,
    withhold,
)
from ckcv_ray.tables.readers.limits import DECIMAL, MAX_CELLS
from ckcv_ray.tables.target import is_value, some
from ckcv_ray.validation import as_array

UNREADABLE = (pa.ArrowException, ValueError, TypeError, OverflowError)


def make_columns(X: Any, features: tuple[str, ...] | None = None) -> pa.Table:
    """Return the columns of X.

    Args:
        X: a data frame of pandas or polars, an Arrow table, an array [n, d], a sparse matrix, or what
            ``read_rows`` reads.
        features: names of the columns if X has none, or those of a frame count from 0; by default x0, x1, ...

    Raises:
        InputError: X is none of these.
    """
    X = read_rows(X)
    if hasattr(X, "__arrow_c_stream__"):
        columns = _arrow(X)
        if columns.num_columns and list(getattr(X, "columns", ())) == list(range(columns.num_columns)):
            columns = columns.rename_columns(features or name_columns(columns.num_columns))  # as of an array
        return columns
    if hasattr(X, "toarray") and hasattr(X, "shape"):  # a sparse matrix, with its zeros
        _check_cells(X.shape)
        values = np.asarray(X.toarray())
    else:
        values = as_array("X", X)
    names = [str(name) for name in getattr(X, "columns", ())] or None
    if values.ndim != 2 or (names is None and features is not None and values.shape[1] != len(features)):
        wanted = f"(rows, {len(features)})" if features is not None else "(n, d)"
        raise InputError(f"X has shape {values.shape}: expected {wanted}")
    if values.dtype.kind == "c":
        raise InputError("X is complex: features are real numbers")
    if not values.shape[1]:
        raise InputError(f"X has shape {values.shape}: there is no feature to learn from")
    if names is not None and len(names) != values.shape[1]:
        raise InputError(
            f"X has {pluralize(values.shape[1], 'column')} named {some(names)}: names must match the columns"
        )
    try:
        columns = from_matrix(values, None)
        return columns.rename_columns(names or features or columns.column_names)
    except UNREADABLE as error:
        raise InputError(f"X cannot be read as columns: {error}") from None


def read_rows(X: Any) -> Any:
    """Return the rows of a lazy frame of polars, or of a batch, reader, dataset or column of Arrow.

    All else is returned as it is.
    """
    if isinstance(X, pa.RecordBatch | pa.RecordBatchReader):
        return pa.table(X)
    if isinstance(X, pa.Array | pa.ChunkedArray):
        column = as_values(pa.chunked_array(getattr(X, "chunks", [X]), X.type))
        if not (pa.types.is_dictionary(column.type) and is_value(column.type.value_type)):
            return column
        parts = [chunk.dictionary_decode() for chunk in column.chunks]  # an array would hold values for gaps
        return pa.chunked_array(parts, column.type.value_type)
    if type(X).__module__.partition(".")[0] in ("polars", "pyarrow"):
        for method in ("collect", "to_table"):
            if hasattr(X, method):
                return getattr(X, method)()
    return X


def check_same_order(X: Any, name: str, values: Any) -> None:
    """Raise InputError if the index of y or the like, of pandas, has the labels of X's in another order."""
    if not (hasattr(X, "loc") and hasattr(values, "loc")):
        return
    rows, labels = X.index, values.index
    if len(rows) == len(labels) and not rows.equals(labels) and set(rows) == set(labels):
        raise InputError(
            f"the index of {name} has the labels of that of X in another order: give {name}.loc[X.index]"
        )


def _arrow(X: Any) -> pa.Table:
    """Return a data frame's columns, without its index, which names rows."""
    names = [str(name) for name in getattr(X, "columns", ())] if hasattr(X, "set_axis") else []
    if twins := len(set(names)) < len(names):  # of pandas, which Arrow takes by name
        X = X.set_axis(range(len(names)), axis=1)
    try:
        columns = pa.table(X)
    except UNREADABLE as error:
        if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
            raise InputError(f"X cannot be read as columns: {error}") from None
        columns = _read_each(X)
    columns = with_plain_values(columns)
    if twins:
        columns = columns.rename_columns([*names, *columns.column_names[len(names) :]])
    index = index_names(columns)
    kept = [i for i, name in enumerate(columns.column_names) if name not in index]
    marks = {key: value for key, value in (columns.schema.metadata or {}).items() if key == DECIMAL}
    return columns.select(kept).replace_schema_metadata(marks or None)


def _read_each(X: Any) -> pa.Table:
    """Return the columns of a frame, each by itself; one that Arrow cannot read is empty, and says why."""
    _check_cells(X.shape)
    columns, fields = [], []
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        try:
            part = X[[name]]
            part = pa.table(part.sparse.to_dense() if type(kind).__name__ == "SparseDtype" else part)
            read, field = part.column(0), part.schema.field(0)
        except UNREADABLE as error:
            read, field = pa.nulls(len(X)), withhold(str(name), f"{kind} ({error.args[0]})")
        columns.append(read)
        fields.append(field)
    return pa.table(columns, pa.schema(fields))


def _check_cells(shape: tuple[int, ...]) -> None:
    if int(np.prod(shape, dtype=object)) > MAX_CELLS:
        raise InputError(f"X has shape {shape}: at most {MAX_CELLS:,} cells can be learned from")
