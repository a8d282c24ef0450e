"""Weights of rows, read from a column: what a row counts for in a fit.

They are used in fits alone, unless the error by weight is claimed. All else that is measured and claimed is
of rows, which count once each.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.parse import infer_column
from ckcv_ray.tables.readers.text import decimal_mark
from ckcv_ray.tables.target import LARGEST, NUMBER_TYPES, is_text, parse_text_numbers
from ckcv_ray.validation import as_array

WEIGHT_NAMES = ("weight", "sample_weight", "weight_of_row")


@dataclass(frozen=True)
class Weighting:
    """What rows weigh in a fit."""

    named: Values | None = None  # the weight of each row, positive, (n,); None if all weigh the same
    column: str | None = None  # name of the column of weights; None if all weigh the same

    @classmethod
    def read(cls, columns: pa.Table, name: str | None, thousands: str = "") -> "Weighting":
        """Return the weights in a column of a table; without a name all rows weigh the same.

        ``thousands`` is the mark between thousands, if it was said.

        Raises:
            InputError: a cell is empty, or no positive number.
        """
        if name is None:
            return UNWEIGHTED
        return cls(parse_weights(infer_column(columns, name), name, thousands, decimal_mark(columns)), name)

    @property
    def given(self) -> bool:
        """Whether rows have weights."""
        return self.named is not None

    def take(self, rows: Index) -> Values | None:
        """Return the weights of some rows, as often as each is named; None if all weigh the same."""
        return None if self.named is None else self.named[rows]

    def part(self, rows: Index) -> "Weighting":
        """Return the weighting of some rows."""
        return replace(self, named=self.take(rows))

    def describe(self) -> str:
        """Say what the weights are used for; "" if all rows weigh the same."""
        if self.column is None:
            return ""
        return (
            f"Rows are weighted by {self.column!r} in fits alone: measures and claims are of unweighted rows."
        )


UNWEIGHTED = Weighting()


def parse_weights(
    column: pa.ChunkedArray, name: str, thousands: str = "", decimal: str | None = None
) -> Values:
    """Return the weights in a column, (n,) float64; see ``parse_text_numbers``.

    Raises:
        InputError: a cell is empty, or no positive number of a magnitude that can be computed with.
    """
    role = "the column of weights"
    called = f"{role} {name!r}"
    if is_text(column.type):
        column = parse_text_numbers(column, name, role, thousands, decimal=decimal)
    if not any(is_one(column.type) for is_one in NUMBER_TYPES):
        raise InputError(f"{called} has type {column.type}: name a column of numbers with --weight")
    weights = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    if len(empty := np.flatnonzero(np.isnan(weights))):
        raise InputError(
            f"{called} has {len(empty)} empty cells, the first in row {empty[0] + 1}: fill them, or leave "
            "these rows out"
        )
    if len(bad := np.flatnonzero(~((weights >= 1 / LARGEST) & (weights <= LARGEST)))):
        raise InputError(
            f"{called} has {weights[bad[0]]:g} in row {bad[0] + 1}: weights are positive, from "
            f"{1 / LARGEST:g} to {LARGEST:g}; leave out a row of weight zero"
        )
    return weights


def make_weights_column(weights: ArrayLike, n: int) -> pa.Array:
    """Return the weights of n rows as a column of numbers.

    Raises:
        InputError: they have another shape, or are no numbers.
    """
    values: NDArray[np.generic] = as_array("sample_weight", weights)
    if values.shape != (n,):
        raise InputError(f"sample_weight has shape {values.shape}: expected ({n},), the weight of each row")
    if values.dtype.kind not in "iuf":
        raise InputError(f"sample_weight has type {values.dtype}: expected numbers")
    return pa.array(np.asarray(values, np.float64), from_pandas=True)
