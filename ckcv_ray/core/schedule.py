"""The order in which evaluations are computed, and a forecast of how many are left.

The aim is to compute little more than the shortest proofs of ``selection``. Candidates are compared over all
fold sizes, or within one whose own best candidate is reported. Until such a comparison has a leader (a
complete candidate), the candidate that looks best after the first splits is completed; from then on each fold
size with candidates alive advances by one split in turn, the size with the lowest lower bound first, and a
candidate that is likely to beat the leader is completed before that. A path always begins at its first step,
so dropping candidates shortens it at the end; until then all of it is computed, because a longer part of it
later would be computed from the first step again.

Nothing here can change the result, only how soon it is known.
"""

from collections.abc import Callable
from enum import StrEnum
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.selection import Leader, Selection

Lengths = NDArray[np.intp]
Transfer = Callable[[Values, int, int], Values]  # from values in one size to those expected in another


class Stage(StrEnum):
    """The purpose of a unit of work.

    SELECT: fit on TR, score on MS. ESTIMATE: fit on TR + MS, score on EE. REFIT: as ESTIMATE, but only for
    the last step of each path, and return the model.
    """

    SELECT = "select"
    ESTIMATE = "estimate"
    REFIT = "refit"


class Unit(NamedTuple):
    """A unit of work, by position: the paths to compute on one split."""

    stage: Stage  # purpose of the work
    size: int  # position of the fold size
    split: int
    paths: tuple[tuple[int, int], ...]  # (path, length): its first ``length`` steps are computed

    def first(self, length: int) -> int:
        """Return the first step that is scored in a path of this length."""
        return length - 1 if self.stage is Stage.REFIT else 0

    @property
    def evaluations(self) -> int:
        """Number of steps that are scored."""
        if self.stage is Stage.REFIT:
            return len(self.paths)
        return sum(length for _, length in self.paths)


def refits(leader: Leader, n_splits: int) -> list[Unit]:
    """Return the units that refit a leader, one for each split."""
    path = leader.path, leader.step + 1
    return [Unit(Stage.REFIT, leader.size, split, (path,)) for split in range(n_splits)]


class Schedule:
    """The units of a Selection in the order to compute them, each path once.

    Args:
        selection: read, never changed.
        cost: relative cost of an evaluation in each fold size, (n_sizes,); with several learners, whose costs
            cannot be compared, that of each, (n_sizes, n_learners).
        transfer: used by the forecast.
    """

    def __init__(self, selection: Selection, cost: ArrayLike, transfer: Transfer) -> None:
        self.selection = selection
        self.cost: Values = np.asarray(cost, dtype=np.float64).reshape(len(selection.sizes), -1)
        self._transfer = transfer
        self.issued: list[Lengths] = [size.computed.copy() for size in selection.sizes]
        self._seen = -1
        self._lowest: dict[int, tuple[bool, float]] = {}
        self._lengths: dict[int, Lengths] = {}
        self._best_paths: dict[int, tuple[int, int] | None] = {}
        self._ahead: dict[int, int] = {}
        self._units: dict[int, Unit | None] = {}

    def next(self) -> Unit | None:
        """Return the most useful unit not issued yet; None if nothing more is worth computing now."""
        for size in self._open():
            if (unit := self._unit(size)) is not None:
                self.mark(unit)
                return unit
        return None

    def mark(self, unit: Unit) -> None:
        """Mark a unit as issued."""
        issued = self.issued[unit.size]
        for path, length in unit.paths:
            issued[unit.split, path] = max(issued[unit.split, path], length)
        self._forget(unit.size)

    def has_leaders(self) -> bool:
        """Return whether every open comparison has a leader: units issued now are then rarely wasted."""
        self._open()
        return all(led for led, _ in self._lowest.values())

    def forecast(self) -> Values:
        """Return the expected remaining work of each learner, in evaluations times their cost, (n_learners,).

        It is 0 if all is decided. A candidate is assumed to continue as in its prefix; a fold size that has
        not started is estimated from the nearest one that has.
        """
        work: Values = np.zeros(self.cost.shape[1])
        for size, fold in enumerate(self.selection.sizes):
            splits = np.where(self.selection.alive(size), self._splits_expected(size), 0)
            lengths = _path_lengths(splits, fold.n_splits)
            missing = np.where(lengths > fold.computed, lengths, 0)
            of_learner = np.bincount(self.selection.learners, missing.sum(axis=0), len(work))
            work += self.cost[size] * of_learner
        return work

    def _open(self) -> list[int]:
        """Return the sizes to serve, by priority; a comparison without a leader has one size at a time."""
        if self._seen != self.selection.version:
            for size in (j for j, version in enumerate(self.selection.changed) if version > self._seen):
                self._lengths.pop(size, None)
                self._best_paths.pop(size, None)
                np.maximum(self.issued[size], self.selection.sizes[size].begun, out=self.issued[size])
                self._forget(size)
            self._seen = self.selection.version
            self._lowest = self._lowest_bounds()
        return sorted(self._lowest, key=self._rank)

    def _lowest_bounds(self) -> dict[int, tuple[bool, float]]:
        """Return for each size to serve whether its comparison has a leader, and its lowest bound alive."""
        selection = self.selection
        alive = [j for j in range(len(selection.sizes)) if selection.lowest(j) < inf]
        waiting = [j for j in alive if selection.threshold(j) == inf and j not in selection.own]
        held_back = set() if selection.exhaustive else set(waiting[1:])
        return {j: (selection.threshold(j) < inf, selection.lowest(j)) for j in alive if j not in held_back}

    def _rank(self, size: int) -> tuple[bool, int, float]:
        """Return the sort key: no leader first, then least ahead of its results, then lowest lower bound."""
        if size not in self._ahead:
            ahead = np.sum(self.issued[size] > self.selection.sizes[size].computed, axis=0)
            self._ahead[size] = int(ahead.max())
        led, low = self._lowest[size]
        return led, self._ahead[size], low

    def _forget(self, size: int) -> None:
        """Discard what was derived from the units issued."""
        self._ahead.pop(size, None)
        self._units.pop(size, None)

    def _unit(self, size: int) -> Unit | None:
        """Return the next unit of this size, None if it has none now."""
        if size not in self._units:
            self._units[size] = self._find_promising(size) or self._frontier(size)
        return self._units[size]

    def _find_promising(self, size: int) -> Unit | None:
        """Return the next split of the candidate that looks best, if it may become the leader."""
        if size not in self._best_paths:
            self._best_paths[size] = self._best_path(size)
        if (path := self._best_paths[size]) is None:
            return None
        number, length = path
        missing = np.flatnonzero(self.issued[size][:, number] < length)
        return Unit(Stage.SELECT, size, int(missing[0]), (path,)) if len(missing) else None

    def _best_path(self, size: int) -> tuple[int, int] | None:
        """Return the path, as in a Unit, of the candidate that looks best, if it may become the leader."""
        selection, fold = self.selection, self.selection.sizes[size]
        thresholds = selection.thresholds(size)[:, None]
        least = np.where(thresholds == inf, 2, max(2, ceil(fold.n_splits / 4)))
        eligible = selection.alive(size) & (fold.prefix >= least) & (fold.expected < thresholds)
        if selection.exhaustive or not eligible.any():
            return None
        path = int(np.argmin(np.where(eligible, fold.expected, inf))) // fold.low.shape[1]
        return path, int(self._alive_lengths(size)[path])

    def _frontier(self, size: int) -> Unit | None:
        """Return the first split that any path alive in this size needs, with all paths that need it."""
        lengths = self._alive_lengths(size)
        splits, paths = np.nonzero(self.issued[size] < lengths)
        if not len(splits):
            return None
        first = paths[splits == splits[0]]
        return Unit(Stage.SELECT, size, int(splits[0]), tuple((int(p), int(lengths[p])) for p in first))

    def _alive_lengths(self, size: int) -> Lengths:
        """Return the length of each path up to its last step alive, (n_paths,)."""
        if size not in self._lengths:
            alive = self.selection.alive(size)
            self._lengths[size] = np.max(np.where(alive, np.arange(1, alive.shape[1] + 1), 0), axis=1)
        return self._lengths[size]

    def _splits_expected(self, size: int) -> Lengths:
        """Estimate the splits each candidate needs until it is decided, (n_paths, n_steps)."""
        fold = self.selection.sizes[size]
        everything = np.full(fold.low.shape, fold.n_splits, dtype=np.intp)
        started = [j for j, fold_size in enumerate(self.selection.sizes) if fold_size.prefix.any()]
        if self.selection.exhaustive or not started:
            return everything
        expected = self._expect_values(size, min(started, key=lambda j: abs(j - size)))
        threshold = self.selection.threshold(size)
        if threshold == inf and size in self.selection.own:
            threshold = float(expected.min())
        elif threshold == inf:
            threshold = min(float(self._expect_values(j, j).min()) for j in started)
        if fold.floor > threshold:
            return np.zeros_like(everything)
        rise = np.maximum(expected - fold.floor, 1e-12)
        splits = np.ceil(fold.n_splits * (threshold - fold.floor) / rise)
        return np.where(expected > threshold, np.minimum(splits, fold.n_splits), everything).astype(np.intp)

    def _expect_values(self, size: int, like: int) -> Values:
        """Estimate the values of candidates of ``size`` from their means in ``like``, (n_paths, n_steps)."""
        source = self.selection.sizes[like]
        known = source.values >= 0
        counts = known.sum(axis=0)
        mean = np.where(known, source.values, 0).sum(axis=0) / np.maximum(counts, 1)
        typical = mean[counts > 0].mean() if counts.any() else source.floor
        return self._transfer(np.where(counts > 0, mean, typical), like, size)


def _path_lengths(splits: Lengths, n_splits: int) -> Lengths:
    """Return the path lengths (n_splits, n_paths) that compute candidates on their first ``splits``."""
    wanted = splits[None] > np.arange(n_splits)[:, None, None]
    return np.asarray(np.max(np.where(wanted, np.arange(1, splits.shape[1] + 1), 0), axis=2))
