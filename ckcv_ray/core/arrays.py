"""Kinds of arrays, by what they hold, and how they are compared.

Shapes stand where they are used: X [rows, columns].
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Index = NDArray[np.intp]  # row numbers, or other positions
Mask = NDArray[np.bool_]
ONE = 1 << 32  # a loss of 1: losses are integers, whose sums are exact in any order
ROUNDING = 1e-9  # see ``agree``: other processors and versions round differently
Classes = NDArray[np.int32]  # class numbers; -1 for an undecided model
Counts = NDArray[np.integer]
Numbers = NDArray[np.number]


class Limits(NamedTuple):
    """The two ends of an interval; nan where it is not known."""

    low: float
    high: float


def agree(a: object, b: object, rounding: float = 0.0) -> bool:
    """Return whether two values have one structure, equal words and integers, and close numbers.

    Args:
        a, b: arrays, numbers and words, and lists, tuples and mappings of such.
        rounding: how far two floats may be apart: this multiple of the larger one, or of 1 if that is more.
            Where both are of single precision, two units in their last place are allowed as well.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(agree(a[name], b[name], rounding) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(agree(*pair, rounding) for pair in zip(a, b, strict=True))
    if isinstance(a, str | bytes) or isinstance(b, str | bytes):  # as arrays they would lose zeros at the end
        return type(a) is type(b) and bool(a == b)
    x, y = np.asarray(a), np.asarray(b)
    if (x.dtype.kind, x.dtype.names, x.shape) != (y.dtype.kind, y.dtype.names, y.shape):
        return False
    if x.dtype.names:
        return all(agree(x[name], y[name], rounding) for name in x.dtype.names)
    if x.dtype.kind != "f" or not rounding:
        return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    finite = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    x, y = x[finite], y[finite]
    allowed = max(rounding, 2 * float(np.finfo(np.result_type(x, y)).eps))
    return bool(np.all(np.abs(x - y) <= allowed * np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))))
