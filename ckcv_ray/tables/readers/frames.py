"""Rows given in Python as Arrow columns: data frames, Arrow tables, arrays and sparse matrices."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.tables.readers.files import from_matrix, index_names, name_columns, with_strings
from ckcv_ray.tables.readers.limits import MOST_CELLS
from ckcv_ray.tables.readers.text import DECIMAL
from ckcv_ray.tables.target import some
from ckcv_ray.validation import as_array


def make_columns(X: Any, features: tuple[str, ...] | None = None) -> pa.Table:
    """Return the columns of X.

    Args:
        X: a data frame of pandas or polars, an Arrow table, an array [n, d], or a sparse matrix.
        features: names of the columns if X has none, or those of a frame count from 0; by default x0, x1, ...

    Raises:
        InputError: X is none of these.
    """
    if hasattr(X, "__arrow_c_stream__"):
        columns = _arrow(X)
        if columns.num_columns and list(getattr(X, "columns", ())) == list(range(columns.num_columns)):
            columns = columns.rename_columns(features or name_columns(columns.num_columns))  # as of an array
    else:
        columns = _from_array(X, features)
    return columns


def check_same_order(X: Any, y: Any) -> None:
    """Raise InputError if the index of y, of pandas, has the labels of that of X in another order."""
    if not (hasattr(X, "loc") and hasattr(y, "loc")):
        return
    rows, labels = X.index, y.index
    if len(rows) == len(labels) and not rows.equals(labels) and set(rows) == set(labels):
        raise InputError("the index of y has the labels of that of X in another order: give y.loc[X.index]")


def _arrow(X: Any) -> pa.Table:
    """Return a data frame's columns, without its index, which names rows."""
    names = [str(name) for name in getattr(X, "columns", ())] if hasattr(X, "set_axis") else []
    try:
        if len(set(names)) < len(names):  # of pandas, which Arrow takes by name
            columns = pa.table(X.set_axis(range(len(names)), axis=1))
            columns = columns.rename_columns([*names, *columns.column_names[len(names) :]])
        else:
            columns = pa.table(X)
        columns = with_strings(columns)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"X cannot be read as columns: {error}") from None
    index = index_names(columns)
    kept = [i for i, name in enumerate(columns.column_names) if name not in index]
    marks = {key: value for key, value in (columns.schema.metadata or {}).items() if key == DECIMAL}
    return columns.select(kept).replace_schema_metadata(marks or None)


def _from_array(X: Any, features: tuple[str, ...] | None) -> pa.Table:
    values = _dense(X)
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
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"X cannot be read as columns: {error}") from None


def _dense(X: Any) -> NDArray[Any]:
    """Return X as an array, a sparse matrix with its zeros."""
    if hasattr(X, "toarray") and hasattr(X, "shape"):
        if int(np.prod(X.shape, dtype=object)) > MOST_CELLS:
            raise InputError(f"X has shape {X.shape}: at most {MOST_CELLS:,} cells can be learned from")
        return np.asarray(X.toarray())
    return as_array("X", X)
