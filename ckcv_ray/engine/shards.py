"""Shards: the work of a study, divided among processes that know nothing of each other.

The work of a problem is a list of items, each a path on a split of a fold size, numbered by stage, fold size,
split and path. A shard computes ranges of that list, every setting in them: what a race drops depends on what
others have found, so a shard cannot know it. Nothing that is computed in addition changes a result, since a
race is exact. What depends on all of it (refits, outer scores of what inner splits select) is left to whoever
joins the logs.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, pairwise

import numpy as np

from ckcv_ray.core.arrays import Index, Mask, Values
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.full import MOST_DIVIDED_SPLITS
from ckcv_ray.engine.progress import Progress
from ckcv_ray.engine.queue import ListQueue
from ckcv_ray.engine.recorder import BaseRecorder
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.records.record import Failure, Outcome, Records
from ckcv_ray.storage.log import Log
from ckcv_ray.storage.shards import Piece
from ckcv_ray.study import Budget, Problem
from ckcv_ray.study.problem import INNER

NOWHERE = -1


def check_divisible(problem: Problem) -> None:
    """Raise InputError if what is computed next depends on all results so far, as within a budget."""
    if isinstance(problem.study.search, Budget):
        raise InputError(
            "search=budget cannot be divided into shards: what a round computes depends on the results of "
            "earlier rounds. Use --search race, of which shards compute every evaluation, or ckcv run on Ray"
        )


class Items:
    """The work of a problem that shards compute: each path on each split, by number.

    Args:
        problem: a problem without a budget.

    Attributes:
        stages: stage and fold size of the splits, in order.
        lengths: number of steps of each path, (n_paths,).
        starts: number of the first item of each of ``stages``, and of all items, (n_stages + 1,).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.stages = _list_stages(problem)
        self.lengths: Index = np.array(problem.learner.space.lengths, dtype=np.intp)
        counts = [problem.sizes[size].n_splits * len(self.lengths) for _, size in self.stages]
        self.starts: Index = np.cumsum([0, *counts])
        self._numbers = {(stage is not Stage.SELECT, size): i for i, (stage, size) in enumerate(self.stages)}

    @property
    def count(self) -> int:
        """Number of items."""
        return int(self.starts[-1])

    @property
    def evaluations(self) -> int:
        """Number of evaluations of all items."""
        return self.count // len(self.lengths) * int(self.lengths.sum())

    def sum_costs(self) -> Values:
        """Return the cost of all items for each learner, (n_learners,)."""
        n_splits = np.diff(self.starts) // len(self.lengths)
        costs = [self._cost_paths(*stage).sum(axis=0) for stage in self.stages]
        return np.asarray(n_splits @ np.array(costs), np.float64)

    def weigh(self, total: Values) -> Values:
        """Return the weight of each item, (count,): its cost as a share of that of all its learner's items.

        Costs of different learners cannot be compared: each learner weighs the same.

        Args:
            total: cost of all work for each learner, (n_learners,).
        """
        n_splits = np.diff(self.starts) // len(self.lengths)
        weights = [(self._cost_paths(*stage) / total).sum(axis=1) for stage in self.stages]
        return np.concatenate([np.tile(each, n) for each, n in zip(weights, n_splits, strict=True)])

    def locate(
        self, estimate: Mask | bool, size: Index | int, split: Index | int, path: Index | int
    ) -> Index:
        """Return the numbers of the items at positions; ``NOWHERE`` for those that no shard computes."""
        items = np.full(np.shape(size), NOWHERE, np.intp)
        for (of_estimate, of_size), number in self._numbers.items():
            here = np.equal(estimate, of_estimate) & np.equal(size, of_size)
            items = np.where(here, self.starts[number] + np.multiply(split, len(self.lengths)) + path, items)
        return items

    def list_units(self, items: Index) -> Iterator[Unit]:
        """Generate the units of some items, in order; where splits are few, each path is one."""
        stages = np.searchsorted(self.starts, items, side="right") - 1
        splits, paths = np.divmod(items - self.starts[stages], len(self.lengths))
        rows = zip(stages.tolist(), splits.tolist(), paths.tolist(), strict=True)
        for (number, split), group in groupby(rows, key=lambda row: row[:2]):
            stage, size = self.stages[number]
            steps = tuple((path, int(self.lengths[path])) for _, _, path in group)
            if self.problem.sizes[size].n_splits <= MOST_DIVIDED_SPLITS:
                yield from (Unit(stage, size, split, (path,)) for path in steps)
            else:
                yield Unit(stage, size, split, steps)

    def _cost_paths(self, stage: Stage, size: int) -> Values:
        """Return the cost of each path for each learner, (n_paths, n_learners)."""
        costs = np.zeros((len(self.lengths), len(self.problem.learners)))
        learners = self.problem.learner_of_paths
        costs[np.arange(len(learners)), learners] = self.lengths * self.problem.cost(stage, size)[learners]
        return costs


def divide_work(every: Sequence[Items], count: int) -> tuple[tuple[Piece, ...], ...]:
    """Divide the work of problems into shards that take about equally long.

    Args:
        every: the work of the run.
        count: number of shards, at most that of all items.

    Returns:
        For each shard its ranges of items; together they are all items, in order.
    """
    total = np.sum([items.sum_costs() for items in every], axis=0)
    ends = np.cumsum(np.concatenate([items.weigh(total) for items in every]))
    shards = np.arange(1, count)
    stops = np.searchsorted(ends, ends[-1] * shards / count) + 1 - shards
    bounds = [0, *(np.clip(np.maximum.accumulate(stops), 0, len(ends) - count) + shards).tolist(), len(ends)]
    offsets = np.cumsum([0, *(items.count for items in every)]).tolist()
    return tuple(
        tuple(
            (number, max(first, offset) - offset, min(stop, end) - offset)
            for number, (offset, end) in enumerate(pairwise(offsets))
            if first < end and stop > offset
        )
        for first, stop in pairwise(bounds)
    )


class Tally:
    """Which evaluations of a range of items have a record, or have failed.

    Args:
        items: the work of a problem.
        first, stop: the range of items.
    """

    def __init__(self, items: Items, first: int, stop: int) -> None:
        self.items, self.first, self.stop = items, first, stop
        lengths = items.lengths[np.arange(first, stop) % len(items.lengths)]
        self._absent: Mask = np.arange(items.lengths.max()) >= lengths[:, None]
        self._recorded: Mask = np.zeros_like(self._absent)
        self._failed: Mask = np.zeros_like(self._absent)

    def enter(self, records: Records, failures: Iterable[Failure]) -> None:
        """Enter records and failures; those of other items are left out."""
        item = self.items.locate(*(records[name] for name in ("estimate", "size", "split", "path")))
        here = (item >= self.first) & (item < self.stop)
        self._recorded[item[here] - self.first, records["step"][here]] = True
        for failure in failures:
            place = int(self.items.locate(*failure[:4]))
            if self.first <= place < self.stop:
                self._failed[place - self.first, failure.first : failure.stop] = True

    def list_missing(self) -> Index:
        """Return the numbers of the items of which something is left to compute, in order."""
        done = self._absent | self._recorded | self._failed
        return self.first + np.flatnonzero(~done.all(axis=1))

    def count(self) -> tuple[int, int, int]:
        """Return the numbers of evaluations, of those with a record, and of those that failed without one."""
        counts = ~self._absent, self._recorded, self._failed & ~self._recorded & ~self._absent
        planned, recorded, failed = (int(np.sum(mask)) for mask in counts)
        return planned, recorded, failed


class ShardQueue(ListQueue):
    """What is left to compute of a range of items.

    Args:
        items: the work of a problem.
        first, stop: the range.
    """

    def __init__(self, items: Items, first: int, stop: int) -> None:
        super().__init__(items.problem)
        self.tally = Tally(items, first, stop)

    def begin_missing(self) -> None:
        """Begin with what has neither a record nor a failure by now."""
        self.begin(self.tally.items.list_units(self.tally.list_missing()))

    def take(self, outcome: Outcome) -> Records:
        """Note what came back."""
        self.tally.enter(outcome.records, outcome.failures)
        return outcome.records

    def progress(self) -> Progress:
        """Return the progress of the range."""
        planned, computed, failed = self.tally.count()
        left = self.expect_left()
        return Progress(planned, computed, failed, fits=self.fits, left=left, workers=self.workers)


class ShardRecorder(BaseRecorder):
    """A range of items and the log of the shard that computes it, whose folder is locked.

    Args:
        queue: what is left to compute.
        log: of the shard.
        run_log: of the run, whose records need not be computed again.
    """

    queue: ShardQueue

    def __init__(self, queue: ShardQueue, log: Log, run_log: Log) -> None:
        super().__init__(queue, log)
        with suppress(StoreError):  # whoever writes the log of the run repairs it
            self._load(run_log.read_own())
        self._load(log.read_own([]))
        queue.begin_missing()

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a batch; records are written to the log from time to time."""
        self.keep(self.queue.add(outcome), outcome.failures)

    def _load(self, parts: Iterable[tuple[Records, list[Failure]]]) -> None:
        for records, failures in parts:
            self.queue.tally.enter(records, failures)


def _list_stages(problem: Problem) -> list[tuple[Stage, int]]:
    """Return the stages and fold sizes that can be computed without knowing what is selected."""
    every = range(len(problem.sizes))
    if problem.scores:
        return [(Stage.SELECT, size) for size in ([INNER] if problem.study.select_by else every)]
    stages = [Stage.SELECT, Stage.ESTIMATE] if problem.study.exhaustive else [Stage.SELECT]
    return [(stage, size) for stage in stages for size in every]
