"""Which cells to compute next, and how many are likely to be left.

The aim is to compute little more than the shortest proofs of ``selection``. Until a race has a complete
triple, the one that looks best after the first splits is completed; from then on each fold size with
living triples is taken one split further in turn, the size with the lowest lower bound first, and a
triple that promises to beat the leader is completed before that. A path always begins at the smallest C,
so what is dropped cuts its tail.

Nothing here can change an answer: only how soon it is known.
"""

from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.selection import Selection

Lengths = NDArray[np.intp]


class Job(NamedTuple):
    """Paths of one split: position of the size, split, and (position of gamma, cells) for each path."""

    size: int
    mc_index: int
    paths: tuple[tuple[int, int], ...]


class Schedule:
    """Hands out jobs over a Selection, each path once.

    Args:
        selection: the race; read, never changed.
        n_train: training rows of each fold size.
    """

    def __init__(self, selection: Selection, n_train: list[int]) -> None:
        self.selection = selection
        self.n_train = n_train
        self.issued: list[Lengths] = [size.computed.copy() for size in selection.sizes]
        self._seen = -1
        self._lowest: dict[int, tuple[bool, float]] = {}
        self._cells: dict[int, Lengths] = {}
        self._hope: dict[int, tuple[int, int] | None] = {}
        self._ahead: dict[int, int] = {}
        self._jobs: dict[int, Job | None] = {}

    def next(self) -> Job | None:
        """The most useful job not handed out yet; None when nothing more is worth computing now."""
        for size in self._open():
            if (job := self._job(size)) is not None:
                self.mark(job)
                return job
        return None

    def mark(self, job: Job) -> None:
        """Count a job as handed out."""
        for gamma, cells in job.paths:
            issued = self.issued[job.size]
            issued[job.mc_index, gamma] = max(issued[job.mc_index, gamma], cells)
        self._forget(job.size)

    def mark_cells(self, size: int, mc_index: Lengths, gamma: Lengths, C: Lengths) -> None:
        """Count cells, by position, as handed out, with all of smaller C."""
        np.maximum.at(self.issued[size], (mc_index, gamma), C + 1)
        self._forget(size)

    def leading(self) -> bool:
        """Whether every race still open has a leader, so that work handed out now is rarely in vain."""
        self._open()
        return all(led for led, _ in self._lowest.values())

    def forecast(self) -> float:
        """Expected work left, cells times squared training rows; 0 when all is decided.

        A triple is taken to go on as its prefix did; a fold size not begun, as the nearest one that is.
        """
        work = 0.0
        for size, fold in enumerate(self.selection.sizes):
            splits = np.where(self.selection.alive(size), self._splits_expected(size), 0)
            cells = _path_lengths(splits, fold.n_splits)
            missing = np.where(cells > fold.computed, cells, 0)
            work += float(self.n_train[size]) ** 2 * float(missing.sum())
        return work

    def _open(self) -> list[int]:
        """Sizes with living triples, in the order to serve them; leaderless races one size at a time."""
        if self._seen != self.selection.version:
            for size in (j for j, version in enumerate(self.selection.changed) if version > self._seen):
                self._cells.pop(size, None)
                self._hope.pop(size, None)
                self._forget(size)
            self._seen = self.selection.version
            self._lowest = self._lowest_bounds()
        return sorted(self._lowest, key=self._rank)

    def _lowest_bounds(self) -> dict[int, tuple[bool, float]]:
        """For each size to serve, whether its race has a leader, and its lowest living lower bound."""
        selection = self.selection
        alive = [j for j in range(len(selection.sizes)) if selection.lowest(j) < inf]
        waiting = [j for j in alive if selection.threshold(j) == inf and j not in selection.own]
        held_back = set() if selection.exhaustive else set(waiting[1:])
        return {j: (selection.threshold(j) < inf, selection.lowest(j)) for j in alive if j not in held_back}

    def _rank(self, size: int) -> tuple[bool, int, float]:
        """Leaderless first, then the least ahead of its results, then the lowest lower bound."""
        if size not in self._ahead:
            ahead = np.sum(self.issued[size] > self.selection.sizes[size].computed, axis=0)
            self._ahead[size] = int(ahead.max())
        led, low = self._lowest[size]
        return led, self._ahead[size], low

    def _forget(self, size: int) -> None:
        """Have what depends on the jobs handed out derived anew."""
        self._ahead.pop(size, None)
        self._jobs.pop(size, None)

    def _job(self, size: int) -> Job | None:
        """The next job of this size, None if it has none now."""
        if size not in self._jobs:
            self._jobs[size] = self._promising(size) or self._frontier(size)
        return self._jobs[size]

    def _promising(self, size: int) -> Job | None:
        """The next split of the triple that looks best, if it may take the lead."""
        if size not in self._hope:
            self._hope[size] = self._hopeful(size)
        if (path := self._hope[size]) is None:
            return None
        gamma, cells = path
        missing = np.flatnonzero(self.issued[size][:, gamma] < cells)
        return Job(size, int(missing[0]), (path,)) if len(missing) else None

    def _hopeful(self, size: int) -> tuple[int, int] | None:
        """The path, as in a Job, of the triple that looks best, if it may take the lead."""
        selection, fold = self.selection, self.selection.sizes[size]
        threshold = selection.threshold(size)
        least = 2 if threshold == inf else max(2, ceil(fold.n_splits / 4))
        hopeful = selection.alive(size) & (fold.prefix >= least) & (fold.expected < threshold)
        if selection.exhaustive or not hopeful.any():
            return None
        gamma, C = divmod(int(np.argmin(np.where(hopeful, fold.expected, inf))), fold.low.shape[1])
        return gamma, C + 1 if threshold == inf else int(self._living(size)[gamma])

    def _frontier(self, size: int) -> Job | None:
        """The first split that any living path of this size still needs, with all that need it."""
        cells = self._living(size)
        splits, gammas = np.nonzero(self.issued[size] < cells)
        if not len(splits):
            return None
        first = gammas[splits == splits[0]]
        return Job(size, int(splits[0]), tuple((int(g), int(cells[g])) for g in first))

    def _living(self, size: int) -> Lengths:
        """Cells of each gamma's path up to its last living C, (n_gamma,)."""
        if size not in self._cells:
            alive = self.selection.alive(size)
            self._cells[size] = np.max(np.where(alive, np.arange(1, alive.shape[1] + 1), 0), axis=1)
        return self._cells[size]

    def _splits_expected(self, size: int) -> Lengths:
        """Splits each triple is expected to need until it is decided, (n_gamma, n_C)."""
        fold = self.selection.sizes[size]
        everything = np.full(fold.low.shape, fold.n_splits, dtype=np.intp)
        begun = [j for j, other in enumerate(self.selection.sizes) if other.prefix.any()]
        if self.selection.exhaustive or not begun:
            return everything
        expected = self._expected_bounds(size, min(begun, key=lambda j: abs(j - size)))
        threshold = self.selection.threshold(size)
        if threshold == inf and size in self.selection.own:
            threshold = float(expected.min())
        elif threshold == inf:
            threshold = min(float(self._expected_bounds(j, j).min()) for j in begun)
        if fold.least > threshold:
            return np.zeros_like(everything)
        rise = np.maximum(expected - fold.least, 1e-12)
        splits = np.ceil(fold.n_splits * (threshold - fold.least) / rise)
        return np.where(expected > threshold, np.minimum(splits, fold.n_splits), everything).astype(np.intp)

    def _expected_bounds(self, size: int, like: int) -> NDArray[np.float64]:
        """Mean bound of each triple of ``size`` at its error rate in the size ``like``.

        Between two counts in proportion: half an error on average is one error on every other split.
        """
        fold, other = self.selection.sizes[size], self.selection.sizes[like]
        counts = np.where(other.counts >= 0, other.counts, 0).sum(axis=0)
        rate = counts / np.maximum((other.counts >= 0).sum(axis=0), 1) / other.n_select
        known = (other.counts >= 0).any(axis=0)
        typical = rate[known].mean() if known.any() else 0.0
        rate = np.where(known, rate, typical)
        return np.asarray(np.interp(rate * fold.n_select, np.arange(fold.n_select + 1), fold.bounds))


def _path_lengths(splits: Lengths, n_splits: int) -> Lengths:
    """Cells of each path if triple (gamma, C) is computed on its first ``splits``, (n_splits, n_gamma)."""
    wanted = splits[None] > np.arange(n_splits)[:, None, None]
    return np.asarray(np.max(np.where(wanted, np.arange(1, splits.shape[1] + 1), 0), axis=2))
