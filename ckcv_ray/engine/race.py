"""The queue of a search that drops candidates which are provably beaten.

A plain class without files. Adding is idempotent: a duplicate of a record is ignored, and a different record
under the same key stops the run.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from time import monotonic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.schedule import Schedule, Stage, Unit
from ckcv_ray.core.selection import ABSENT, FAILED, UNKNOWN, Leader
from ckcv_ray.engine.queue import Batch, Progress, Queue, choose_batch_seconds, shortest
from ckcv_ray.records.candidates import make_candidate_table, make_selection
from ckcv_ray.records.record import Failure, Ledger, Outcome, Records
from ckcv_ray.study.problem import Candidate, Problem

FORECAST_SECONDS = 0.5
LEADERLESS_SHARE = 0.5


class RaceQueue(Queue):
    """Records of one run, what follows from them, and what is left to compute.

    Args:
        problem: the problem to solve.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.selection = make_selection(problem)
        self.ledger = Ledger(problem)
        costs = np.array([problem.cost(Stage.SELECT, j) for j in range(len(problem.sizes))])
        self.schedule = Schedule(self.selection, costs, self.transfer)
        self._estimates: Iterator[Unit] | None = None
        self._forecast_at, self._left = -inf, inf
        self._looked, self._open_left = -1, True

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of units; empty if none is available now, or none is left.

        As long as no complete candidate leads, batches are shorter than ``choose_batch_seconds`` says, since
        each result may then change what is worth computing.
        """
        self.workers = workers
        seconds = choose_batch_seconds(self._left or inf, workers, least)
        if self._estimates is None and not self.is_decided():
            early = LEADERLESS_SHARE * shortest(workers, least)
            units = iter(self.schedule.next, None)
            return self.fill(units, seconds if self.schedule.has_leaders() else early)
        if self._estimates is None:
            self._estimates = self._estimate_units()
        return self.fill(self._estimates, seconds)

    def add(self, outcome: Outcome) -> Records:
        """Add the outcome of a batch; return its new records."""
        new = super().add(outcome)
        if self.is_decided() or monotonic() - self._forecast_at > FORECAST_SECONDS:
            self._forecast_at = monotonic()
            self._left = self.expect_left()
        return new

    def take(self, outcome: Outcome) -> Records:
        """Enter records and failures; return the records that are new."""
        records = outcome.records
        places, new = self.ledger.enter(records)
        criterion = self.problem.criterion
        for estimate, size in places.list_tables():
            if not estimate:
                here = places.of(estimate, size)
                at = places.split[here], places.path[here], places.step[here]
                units = self.problem.units(Stage.SELECT, size)
                units = units[at[0]] if criterion.by_class else units
                values = criterion.value(records["totals"][here], units)
                self.selection.enter(size, *at, values)
        self.exclude(self.ledger.note(outcome.failures))
        self.selection.refresh()
        return records[new]

    def expect_left(self) -> float:
        """Return the seconds of selection expected to be left for one worker; 0 once decided."""
        return 0.0 if self.is_decided() else self.rates.seconds_for(self.schedule.forecast())

    def is_decided(self) -> bool:
        """Return whether nothing that is left could change what is selected."""
        if self._looked != self.selection.version:
            self._looked = self.selection.version
            self._open_left = any(self.selection.lowest(j) < inf for j in range(len(self.problem.sizes)))
        return not self._open_left

    def progress(self) -> Progress:
        """Return the progress of the run."""
        planned = computed = failed = dropped = 0
        for j, fold in enumerate(self.selection.sizes):
            alive, thresholds = self.selection.alive(j), self.selection.thresholds(j)
            lost = fold.blocked & (fold.low <= thresholds[:, None])
            unknown = fold.values == UNKNOWN
            planned += int(np.sum(fold.values != ABSENT))
            failed += int(np.sum((fold.values == FAILED) | (unknown & lost)))
            computed += int(np.sum(fold.values >= 0))
            dropped += int(np.sum(unknown & ~alive & ~lost))
        leader = self.selection.winner()
        best = (self.problem.candidate(leader), leader.l_ms) if leader else None
        counts = planned, computed, failed, dropped, self.ledger.not_converged(), self.fits
        return Progress(*counts, float(self.rates.seconds.sum()), self._left, best, self.workers)

    def candidates(self) -> pa.Table:
        """Return the table of candidates."""
        return make_candidate_table(self.problem, self.selection, self.ledger.estimate_totals())

    def leaders(self) -> list[Leader]:
        """Return the winner, if there is one, and the leaders of the fold sizes that are reported."""
        reported = (self.selection.leaders[j] for j in self.problem.own)
        return list(dict.fromkeys(filter(None, (self.selection.winner(), *reported))))

    def complete(self) -> bool:
        """Return whether the selection is decided and every requested estimate is held or failed."""
        return self.is_decided() and next(self._estimate_units(), None) is None

    def holds_refits(self, leader: Leader) -> bool:
        """Return whether there is a record of a leader's refit on every split."""
        return bool(self.ledger.known(leader.size, True)[:, leader.path, leader.step].all())

    def knows_refits(self, leader: Leader) -> bool:
        """Return whether each refit of a leader has a record or a recorded failure."""
        return bool(self.ledger.done(leader.size, True)[:, leader.path, leader.step].all())

    def failures(self) -> list[Failure]:
        """Return the paths that failed."""
        return list(self.ledger.failed.values())

    def _estimate_units(self) -> Iterator[Unit]:
        """Generate a unit for each split with estimates neither held nor failed, if exhaustive."""
        if not self.problem.study.exhaustive:
            return
        every = tuple(enumerate(self.problem.learner.space.lengths))
        for j in range(len(self.problem.sizes)):
            missing = (self.selection.sizes[j].values != ABSENT) & ~self.ledger.done(j, True)
            for i in np.flatnonzero(missing.any(axis=(1, 2))).tolist():
                yield Unit(Stage.ESTIMATE, j, i, every)

    def exclude(self, failures: Iterable[Failure]) -> None:
        """Enter failures of the selection into it."""
        for lost in failures:
            if not lost.estimate:
                self.selection.fail(lost.size, lost.split, lost.path, slice(lost.first, lost.stop))

    def transfer(self, values: NDArray[np.float64], like: int, size: int) -> NDArray[np.float64]:
        """Return the values expected in one fold size, given those of another."""
        units = self.problem.units(Stage.SELECT, like), self.problem.units(Stage.SELECT, size)
        return self.problem.criterion.transfer(values, *units)


def describe_failures(failures: Sequence[Failure], problem: Problem) -> str:
    """Describe how many paths failed, and the first of them with its traceback."""
    if not failures:
        return "no failure was recorded"
    first = failures[0]
    lost = Candidate(problem.learner.space.setting(first.path, first.first), problem.folds[first.size].k)
    where = f"{lost}, split {first.split}"
    return f"{len(failures)} paths failed, the first at {where}:\n{first.traceback}"
