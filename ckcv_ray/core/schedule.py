"""The order in which evaluations are computed, and a forecast of how many are left.

The aim is to compute little more than the shortest proofs of ``selection``. Candidates are compared over all
fold sizes, or within one whose own best candidate is reported. Until such a comparison has a leader (a
complete candidate), the candidate that looks best after the first splits is completed; from then on each fold
size with candidates alive advances by one split in turn, the size with the lowest lower bound first, and a
candidate that is likely to beat the leader is completed before that. A path always begins at its first step,
so dropping candidates shortens it at the end; until then all of it is computed, because computing a longer
part later would mean starting again from the first step.

Nothing here can change the result, only how soon it is known.

The rounds of a search within a budget: which candidates to compare next, given what is known about them.

Candidates are positions (fold size, path, step). A path is always computed from its first step, so a set of
candidates is written as the number of steps of each path, (n_paths,), by fold size. The effort of a set on
some splits is the number of its evaluations.

These are plain functions of complete rounds: nothing here knows what else has been computed.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.resampling.base import FoldSize
from ckcv_ray.core.selection import Leader, Selection
from ckcv_ray.errors import Index, Values

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
        return sum(length - self.first(length) for _, length in self.paths)


def refits(leader: Leader, n_splits: int) -> list[Unit]:
    """Return the units that refit a leader, one for each split."""
    path = leader.path, leader.step + 1
    return [Unit(Stage.REFIT, leader.size, split, (path,)) for split in range(n_splits)]


class Schedule:
    """The units of a Selection in the order to compute them, each path once.

    Args:
        selection: read, never changed.
        cost: relative cost of an evaluation in each fold size, (n_sizes,); with several learners, whose costs
            cannot be compared, one for each, (n_sizes, n_learners).
        transfer: used by the forecast.
    """

    def __init__(self, selection: Selection, cost: ArrayLike, transfer: Transfer) -> None:
        self.selection = selection
        self.cost: Values = np.asarray(cost, dtype=np.float64).reshape(len(selection.sizes), -1)
        self._transfer = transfer
        self.issued: list[Lengths] = [size.computed.copy() for size in selection.sizes]
        self._seen = -1
        # for each size to serve: whether its comparison has a leader, and its lowest bound alive
        self._lowest: dict[int, tuple[bool, float]] = {}
        self._lengths: dict[int, Lengths] = {}
        self._best_paths: dict[int, tuple[int, int] | None] = {}
        self._ahead: dict[int, int] = {}
        self._units: dict[int, Unit | None] = {}

    def next(self) -> Unit | None:
        """Return the most useful unit not issued yet; None if nothing more is worth computing now."""
        for size in self._open():
            if size not in self._units:
                self._units[size] = self._find_promising(size) or self._frontier(size)
            if (unit := self._units[size]) is not None:
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

        It is 0 once everything is decided. A candidate is assumed to continue as in its prefix; a fold size
        that has not started is estimated from the nearest one that has.
        """
        work: Values = np.zeros(self.cost.shape[1])
        for size, fold in enumerate(self.selection.sizes):
            splits = np.where(self.selection.alive(size), self._splits_expected(size), 0)
            wanted = splits[None] > np.arange(fold.n_splits)[:, None, None]
            lengths = np.max(np.where(wanted, np.arange(1, splits.shape[1] + 1), 0), axis=2)
            missing = np.where(lengths > fold.computed, lengths, 0)
            of_learner = np.bincount(self.selection.learners, missing.sum(axis=0), len(work))
            work += self.cost[size] * of_learner
        return work

    def _open(self) -> list[int]:
        """Return the sizes to serve, by priority; a comparison without a leader has one size at a time."""
        selection = self.selection
        if self._seen != selection.version:
            for size in (j for j, version in enumerate(selection.changed) if version > self._seen):
                self._lengths.pop(size, None)
                self._best_paths.pop(size, None)
                np.maximum(self.issued[size], selection.sizes[size].begun, out=self.issued[size])
                self._forget(size)
            self._seen = selection.version
            alive = [j for j in range(len(selection.sizes)) if selection.lowest(j) < inf]
            waiting = [j for j in alive if selection.threshold(j) == inf and j not in selection.own]
            held_back = set() if selection.exhaustive else set(waiting[1:])
            served = [j for j in alive if j not in held_back]
            self._lowest = {j: (selection.threshold(j) < inf, selection.lowest(j)) for j in served}
        return sorted(self._lowest, key=self._rank)

    def _rank(self, size: int) -> tuple[bool, int, float]:
        """Return the sort key: no leader first, then fewest results pending, then lowest lower bound."""
        if size not in self._ahead:
            ahead = np.sum(self.issued[size] > self.selection.sizes[size].computed, axis=0)
            self._ahead[size] = int(ahead.max())
        led, low = self._lowest[size]
        return led, self._ahead[size], low

    def _forget(self, size: int) -> None:
        """Discard what was derived from the issued units."""
        self._ahead.pop(size, None)
        self._units.pop(size, None)

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
        """Estimate how many splits each candidate needs until it is decided, (n_paths, n_steps)."""
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


# what a round computes, by position of the fold size: the number of steps of each path, (n_paths,), and the
# number of splits, from the first
Round = dict[int, tuple[Lengths, int]]
MAX_ANCHORS = 3
ANCHORS_WEIGHT = 2.0  # effort of the second-to-last round, relative to one that compares settings
LAST_WEIGHT = 4.0  # effort of the last round


def count_kept(settings: int, keep: float, survivors: int) -> list[int]:
    """Return how many settings take part in each round that compares only settings, at first all of them."""
    counts = [settings]
    while (kept := ceil(keep * counts[-1])) > survivors and kept < counts[-1]:
        counts.append(kept)
    return counts


def weigh_rounds(screens: int) -> list[float]:
    """Return the effort of each round, relative to one that compares settings.

    Args:
        screens: number of rounds that compare settings; one more compares fold sizes, and the last is a race.
    """
    return [1.0] * screens + [ANCHORS_WEIGHT, LAST_WEIGHT]


def keep_best(values: Values, most: int, order: Index) -> Lengths:
    """Return the paths up to the last of the best settings, as numbers of steps.

    Args:
        values: values of settings, (n_paths, n_steps); inf where a setting is ruled out.
        most: number of settings to keep.
        order: the number by which equal settings are ordered first, (n_paths,): that of the learner.
    """
    lengths = np.zeros(len(values), np.intp)
    for path, step in rank([values], order)[:most, 1:]:
        lengths[path] = max(lengths[path], step + 1)
    return lengths


def rank(values: Sequence[Values], order: Index) -> Index:
    """Return the positions (size, path, step) of finite values, the smallest first, (candidates, 3).

    Ties are broken by the learner that comes first, then the smaller step, path and size.
    """
    stacked = np.stack(values)
    at = np.argwhere(np.isfinite(stacked))
    size, path, step = at.T
    best_first = np.lexsort((size, path, step, order[path], stacked[size, path, step]))
    return np.asarray(at[best_first])


def list_anchors(k: Sequence[int], open_sizes: Sequence[int], reported: Sequence[int]) -> list[int]:
    """Return positions of fold sizes that represent all: evenly spaced in log k, and those reported.

    Args:
        k: number of folds of each fold size, ascending.
        open_sizes: positions of those that may win, ascending.
        reported: positions of those whose own best candidate is reported.
    """
    wanted = np.geomspace(k[open_sizes[0]], k[open_sizes[-1]], MAX_ANCHORS)
    nearest = [min(open_sizes, key=lambda j: (abs(k[j] - value), j)) for value in wanted]
    return sorted({*nearest, *reported})


def expect_values(
    settings: Values,
    means: Mapping[int, tuple[Values, Index]],
    survivors: int,
    screened: int,
    sizes: Sequence[FoldSize],
    transfer: Transfer,
) -> list[Values]:
    """Return the values expected of every candidate, (n_paths, n_steps) for each fold size.

    On a candidate's splits that were not computed, the expected error is that of its setting in one fold size
    plus a + b / n_train with b >= 0, the same for all settings: a learning curve, fitted to what was computed
    by least squares weighted by units scored.

    Reference: Cortes, Jackel, Solla, Vapnik, Denker, "Learning curves: asymptotic values and rate of
    convergence", NIPS 1993.

    Args:
        settings: values of the settings in one fold size, (n_paths, n_steps); inf where one is ruled out.
        means: by position of the fold size, the mean over the splits that were computed, 0 if there are none,
            and their number, each (n_paths, n_steps).
        survivors: number of the best settings, to which the curve is fitted; others that were computed on the
            way may need far more rows.
        screened: the fold size of ``settings``.
        sizes: every fold size.
        transfer: returns the values expected in another size at the same error.
    """
    finite = np.isfinite(settings)
    filled = np.where(finite, settings, 1.0)
    differences, weights = np.zeros(len(sizes)), np.zeros(len(sizes))
    for j, (mean, splits) in means.items():
        if (both := finite & (splits > 0)).any():
            both &= filled <= np.sort(filled[both])[:survivors][-1]
            there = transfer(np.where(both, mean, 1.0), j, screened)
            differences[j] = np.mean((there - filled)[both])
            weights[j] = np.mean(splits[both]) * sizes[j].n_select
    typical = float(np.mean(np.sort(settings[finite])[:survivors])) if finite.any() else 0.0
    inverse = 1.0 / np.array([size.n_train for size in sizes])
    curve = fit_curve(inverse, differences, weights, typical * (1.0 - typical))
    expected = []
    for j, size in enumerate(sizes):
        value = transfer(np.minimum(np.maximum(filled + curve[j], 0.0), 1.0), screened, j)
        if j in means:
            mean, splits = means[j]
            value = (splits * mean + (size.n_splits - splits) * value) / size.n_splits
        expected.append(np.where(finite, value, inf))
    return expected


def fit_curve(x: Values, y: Values, weights: Values, noise: float) -> Values:
    """Return the weighted least-squares fit a + b x with b >= 0, at every x; 0 if all weights are 0.

    b is shrunk by the share of its square that is expected from noise alone (James-Stein).

    Args:
        x, y, weights: coordinates and weights of the points, (n,).
        noise: variance of a point of weight 1.
    """
    if not weights.any():
        return np.zeros_like(x)
    centre, level = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = float(np.sum(weights * (x - centre) ** 2))
    slope = float(np.sum(weights * (x - centre) * (y - level))) / spread if spread > 0 else 0.0
    if slope > 0:
        slope *= max(0.0, 1.0 - noise / spread / slope**2)
    return np.asarray(level + max(0.0, slope) * (x - centre))


def choose(
    expected: Sequence[Values],
    late: Sequence[Values],
    effort: float,
    n_splits: Sequence[int],
    order: Index,
    reported: Sequence[int],
) -> dict[int, Lengths]:
    """Return the candidates that look best, as many as the effort allows, as steps by fold size.

    At least one is returned, and one of every fold size that is reported.

    Args:
        expected: by fold size, the values expected of its candidates, (n_paths, n_steps); inf for none.
        late: the same for candidates that come after all of these.
        effort: number of evaluations that may be computed.
        n_splits: number of splits of each fold size on which they will be computed.
        order: order of the learners; see ``keep_best``.
        reported: positions of the fold sizes that are reported.
    """
    ranked = [tuple(at) for values in (expected, late) for at in rank(values, order).tolist()]
    firsts = [next((at for at in ranked if at[0] == j), None) for j in reported]
    needed = [at for at in firsts if at is not None] or ranked[:1]
    lengths: dict[int, Lengths] = {}
    for i, (size, path, step) in enumerate([*needed, *ranked]):
        steps = lengths.get(size, np.zeros(len(order), np.intp))
        effort -= max(0, step + 1 - int(steps[path])) * n_splits[size]
        if effort < 0 and i >= len(needed):
            break
        steps[path] = max(steps[path], step + 1)
        lengths[size] = steps
    return lengths
