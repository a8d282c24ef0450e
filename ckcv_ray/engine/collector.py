"""The state of an assessment: adds records and says what to compute next.

Inner splits come first, at every setting; when all of them are known, what is selected is scored on the outer
splits. Without a selection there are only the latter, at every setting.
"""

from collections.abc import Iterator
from functools import cached_property
from math import inf
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.choosing import chosen_positions
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.batches import Batch, Rates, Waiting, batch_seconds, fill
from ckcv_ray.engine.progress import Progress
from ckcv_ray.records.ledger import Ledger
from ckcv_ray.records.record import Failure, Outcome, Records
from ckcv_ray.study.assessment import INNER, OUTER, Assessment

FEW_SPLITS = 16  # up to which the paths of a split are separate units
FORECAST_SECONDS = 0.3
Values = NDArray[np.float64]
Positions = NDArray[np.intp]


class Collector:
    """Records of an assessment, in memory.

    Args:
        problem: the assessment.

    Attributes:
        ledger: the records.
        rates: measured seconds per unit of cost.
        fits: models fitted in the outcomes added.
    """

    def __init__(self, problem: Assessment) -> None:
        self.problem = problem
        self.ledger = Ledger(problem)
        self.rates = Rates(len(problem.learners))
        self.fits = 0
        self._failures: dict[tuple[int, int, int], Failure] = {}
        self._workers = 1
        self._selects = len(problem.sizes) > INNER
        self._phase = INNER if self._selects else OUTER
        self._waiting: Waiting | None = None
        self._forecast_at, self._left = -inf, inf

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of units; empty if none is available now, or none is left.

        As long as it is not known how long a fit takes, each worker gets its share of all that is to do, and
        gives back what it has not begun after ``least`` seconds.
        """
        self._workers = workers
        batch = self._next(workers, least)
        if not batch.units and self._phase == INNER and self._complete(INNER):
            self._phase, self._waiting = OUTER, None
            batch = self._next(workers, least)
        return batch

    def add(self, outcome: Outcome) -> Records:
        """Add the outcome of a batch; return its new records.

        Raises:
            RunError: a record differs from the one held under its key: the computation was not deterministic.
        """
        places, new = self.ledger.enter(outcome.records)
        for failure in outcome.failures:
            self._failures[failure.size, failure.split, failure.path] = failure
        if outcome.seconds:
            cost = np.zeros(len(self.problem.learners))
            for size in np.unique(places.size).tolist():
                paths = places.path[places.size == size]
                cost += self.problem.cost_of_fits(Stage.SELECT, size, paths, np.ones(len(paths)))
            self.rates.add(outcome.seconds, cost, outcome.by_learner)
        self.fits += outcome.fits
        if outcome.left and self._waiting is not None:
            self._waiting = self._waiting.put_back(outcome.left)
        return outcome.records[new]

    def complete(self) -> bool:
        """Return whether everything is computed, or failed."""
        return (not self._selects or self._complete(INNER)) and self._complete(OUTER)

    def failures(self) -> list[Failure]:
        """Return the paths that failed, without those that were computed later."""
        return [one for one in self._failures.values() if self._is_missing(one)]

    def _is_missing(self, failure: Failure) -> bool:
        steps = self.statuses(failure.size)[failure.split, failure.path, failure.first : failure.stop]
        return bool(np.isnan(steps).any())

    def progress(self) -> Progress:
        """Return the progress."""
        planned, sizes = self.problem.n_evaluations, range(len(self.problem.sizes))
        computed = sum(int(np.sum(~np.isnan(self.statuses(size)))) for size in sizes)
        failed = sum(one.stop - one.first for one in self.failures())
        counts = max(planned, computed + failed), computed, failed, 0, self.ledger.not_converged(), self.fits
        spent = float(self.rates.seconds.sum())
        return Progress(*counts, spent, self._expected_left(), None, self._workers)

    def statuses(self, size: int) -> Values:
        """Return the status of each evaluation, (n_splits, n_paths, n_steps); nan where there is none."""
        return self.ledger.values(size)[..., -1]

    def totals(self, size: int) -> Values:
        """Return the totals of each evaluation, (n_splits, n_paths, n_steps, n_totals); nan without one."""
        return self.ledger.values(size)[..., : self.problem.n_totals]

    @cached_property
    def chosen(self) -> Positions:
        """What is selected for each split and learner, (n_splits, n_learners, 2); -1 for nothing.

        It is read once all inner splits are known.
        """
        problem = self.problem
        names = [score.name for score in problem.scores]
        position = names.index(problem.study.select_by or names[0])
        column = sum(problem.widths[:position])
        losses = problem.scores[position].loss * self.totals(INNER)[..., column]
        each = problem.study.select == "each"
        return chosen_positions(losses, problem.starts, problem.learner_of_paths, each)

    def _next(self, workers: int, least: float) -> Batch:
        """Return the next batch of this phase."""
        if self._waiting is None:
            missing = self._missing(self._phase)
            self._waiting = Waiting(missing, self.problem.cost_of_unit, len(self.problem.learners))
        if (waiting := self.rates.seconds_for(self._waiting.cost)) == inf:
            return Batch(self._waiting.share(workers), least)
        seconds = batch_seconds(self._expected_left() or inf, workers, least, waiting)
        seconds_of = self.rates.seconds_for
        return fill(iter(self._waiting), lambda unit: seconds_of(self.problem.cost_of_unit(unit)), seconds)

    def _expected_left(self) -> float:
        """Return the expected seconds of this phase left for one worker; inf if not yet known."""
        if self._left == inf or monotonic() - self._forecast_at > FORECAST_SECONDS:
            self._forecast_at = monotonic()
            costs = map(self.problem.cost_of_unit, self._missing(self._phase))
            self._left = self.rates.seconds_for(sum(costs, np.zeros(len(self.problem.learners))))
        return self._left

    def _complete(self, size: int) -> bool:
        return next(self._missing(size), None) is None

    def _missing(self, size: int) -> Iterator[Unit]:
        """Generate the units that are neither held nor failed."""
        known = ~np.isnan(self.statuses(size))
        for (of_size, split, path), failure in self._failures.items():
            if of_size == size:
                known[split, path, failure.first : failure.stop] = True
        for split in range(len(known)):
            wanted = self._wanted(size, split)
            paths = tuple((path, length) for path, length in wanted if not known[split, path, :length].all())
            if len(known) <= FEW_SPLITS:
                yield from (Unit(Stage.SELECT, size, split, (one,)) for one in paths)
            elif paths:
                yield Unit(Stage.SELECT, size, split, paths)

    def _wanted(self, size: int, split: int) -> list[tuple[int, int]]:
        """Return the paths to compute on a split, and how many steps of each."""
        if size == INNER or not self._selects:
            return list(enumerate(self.problem.learner.lengths))
        lengths: dict[int, int] = {}
        for path, step in self.chosen[split].tolist():
            if path >= 0:
                lengths[path] = max(lengths.get(path, 0), step + 1)
        return list(lengths.items())
