"""Measures: the losses of rows as totals that can be added over sets of rows.

A prediction of -1 is undecided and counts as wrong in every measure.

Where rows belong to groups, the loss of a group is the mean loss of its rows: of classes the share that is
wrong. A measure of groups knows the group of each scored row; its totals, of one model on one split, are
never added over splits.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.core.bounds.losses import ONE

UNDECIDED = -1
GRAIN = 1 << 12  # of losses of numbers: 2**-20 of the largest one


class Kind(StrEnum):
    """The kind of target to predict."""

    BINARY = "two classes"
    MULTICLASS = "three or more classes"
    REGRESSION = "numbers"


class Measure(Protocol):
    """A loss that is totalled over predictions.

    Attributes:
        kinds: kinds of task it is defined for.
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[Kind]]

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""

    def totals(self, y: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> NDArray[Any]:
        """Return the totals over rows.

        Args:
            y: classes 0 .. n_classes - 1, or numbers, (rows,).
            predicted: classes, or -1 for undecided, or numbers, (..., rows).
            n_classes: number of classes of the task; 0 with numbers.

        Returns:
            Shape (..., columns).
        """


class ZeroOne:
    """Wrong rows, by their class: one total for each class."""

    name: ClassVar[str] = "zero_one"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})

    def columns(self, n_classes: int) -> int:
        """Return the number of classes."""
        return n_classes

    def totals(self, y: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
        """Count wrong rows by class; see ``Measure``."""
        wrong = predicted != y
        return np.stack([np.sum(wrong & (y == c), axis=-1) for c in range(n_classes)], axis=-1)


@dataclass(frozen=True, eq=False)
class ByGroup:
    """The base of the losses of groups.

    Each group's loss is rounded up, so that totals are exact in any order and bounds hold for the loss.
    """

    groups: NDArray[np.intp]  # number of the group of each scored row, (rows,)

    def average(self, losses: NDArray[Any], unit: int = 1) -> NDArray[np.int64]:
        """Return the mean loss of each group's rows in the order of the groups' numbers, (..., groups).

        Args:
            losses: of the scored rows, (..., rows).
            unit: what one of them counts.
        """
        total = np.add.reduceat(losses[..., self.order], self.starts, axis=-1, dtype=np.int64)
        return np.asarray(-(-total * unit // self.rows))  # rounded up

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Positions of the scored rows, group by group."""
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each group starts in ``order``, (groups,)."""
        return np.flatnonzero(np.diff(self.groups[self.order], prepend=-1))

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Number of scored rows of each group, (groups,)."""
        return np.diff(np.append(self.starts, len(self.groups)))


class GroupShares(ByGroup):
    """Wrong rows by class, and last the sum over groups of the share of wrong rows, in 1 / ``ONE``."""

    name: ClassVar[str] = "group_shares"
    kinds: ClassVar[frozenset[Kind]] = ZeroOne.kinds

    def columns(self, n_classes: int) -> int:
        """Return the number of classes, and one more."""
        return n_classes + 1

    def totals(self, y: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
        """Count wrong rows by class, and add up the groups' shares; see ``Measure``."""
        counts = ZERO_ONE.totals(y, predicted, n_classes)
        shares = self.measure_losses(y, predicted)
        return np.concatenate([counts, shares.sum(axis=-1, keepdims=True)], axis=-1)

    def measure_losses(self, y: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.int64]:
        """Return the loss of each group in the order of their numbers, (..., groups); see ``Measure``."""
        return self.average(predicted != y, ONE)


class OneTotal(ABC):
    """The base of measures with one total: the sum of what each unit loses."""

    def columns(self, n_classes: int) -> int:
        """Return 1."""
        return 1

    def totals(self, y: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
        """Add up the losses of units; see ``Measure``."""
        return np.asarray(self.measure_losses(y, predicted).sum(axis=-1, keepdims=True))

    @abstractmethod
    def measure_losses(self, y: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.int64]:
        """Return the loss of each unit, 0 .. ``ONE``, (..., units)."""


@dataclass(frozen=True)
class ClippedErrors(OneTotal):
    """The sum over rows of the absolute error, at most ``clip`` and divided by it, in units of 1 / ``ONE``.

    Each row's loss is rounded up to a multiple of ``GRAIN`` of these units: totals are exact in any order,
    bounds hold for the error itself, and the last bits of a prediction hardly ever matter. A prediction that
    is no number counts as the largest error.
    """

    name: ClassVar[str] = "clipped_errors"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.REGRESSION})

    clip: float  # the error from which on a prediction is as wrong as any other, positive

    def measure_losses(self, y: Values, predicted: Values) -> NDArray[np.int64]:
        """Return the loss of each row, 0 .. ``ONE``, of the shape of ``predicted``."""
        with np.errstate(invalid="ignore", over="ignore"):  # of predictions that are not finite
            shares = np.abs(predicted - y) / self.clip
        shares = np.where(shares < 1, shares, 1.0)  # nan too counts as 1
        return np.ceil(shares * (ONE // GRAIN)).astype(np.int64) * GRAIN


@dataclass(frozen=True, eq=False)
class GroupErrors(OneTotal, ByGroup):
    """The sum over groups of the mean of their rows' clipped errors, in units of 1 / ``ONE``."""

    name: ClassVar[str] = "group_errors"
    kinds: ClassVar[frozenset[Kind]] = ClippedErrors.kinds

    errors: ClippedErrors  # the errors of rows

    def measure_losses(self, y: Values, predicted: Values) -> NDArray[np.int64]:
        """Return the loss of each group in the order of their numbers, 0 .. ``ONE``, (..., groups)."""
        return self.average(self.errors.measure_losses(y, predicted))


LossMeasure: TypeAlias = GroupShares | ClippedErrors | GroupErrors  # of units whose losses are no counts
ZERO_ONE = ZeroOne()


def average_by_group(wrong: ArrayLike, group: Index) -> Values:
    """Return the share of wrong rows of each group, (groups,), given the number of each row's group."""
    return np.asarray(np.bincount(group, wrong) / np.bincount(group))
