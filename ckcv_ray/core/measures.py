"""Measures: the losses of rows as totals that can be added over sets of rows.

A prediction of -1 is undecided and counts as wrong in every measure.
"""

from enum import StrEnum
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

UNDECIDED = -1

Classes = NDArray[np.int32]


class Kind(StrEnum):
    """The kind of target to predict."""

    BINARY = "two classes"
    MULTICLASS = "three or more classes"
    REGRESSION = "numbers"


class Measure(Protocol):
    """A loss that is totalled over predictions.

    Attributes:
        kinds: kinds of task it is defined for.
        bounded: whether the loss of a row is in [0, 1].
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[Kind]]
    bounded: ClassVar[bool]

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""

    def totals(self, y: Classes, predicted: Classes, n_classes: int) -> NDArray[np.int64]:
        """Return the totals over rows.

        Args:
            y: classes 0 .. n_classes - 1, (rows,).
            predicted: classes, or -1 for undecided, (..., rows).
            n_classes: number of classes of the task.

        Returns:
            Shape (..., columns).
        """


class ZeroOne:
    """Wrong rows, by their class: one total for each class."""

    name: ClassVar[str] = "zero_one"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})
    bounded: ClassVar[bool] = True

    def columns(self, n_classes: int) -> int:
        """Return the number of classes."""
        return n_classes

    def totals(self, y: Classes, predicted: Classes, n_classes: int) -> NDArray[np.int64]:
        """Count wrong rows by class; see ``Measure``."""
        wrong = predicted != y
        return np.stack([np.sum(wrong & (y == c), axis=-1) for c in range(n_classes)], axis=-1)


ZERO_ONE = ZeroOne()
