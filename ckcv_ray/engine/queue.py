"""Queues: what to compute next, and what follows from what came back; ``FullQueue`` is a procedure's.

A queue adds the outcomes of its batches in any order. How long a batch lasts follows from the time that
earlier ones took, which every queue measures in the same way; each queue says itself which units are left.

In a procedure, inner splits come first, at every setting; when all of them are known, what is selected is
scored on the outer splits. Without a selection there are only the latter, at every setting, and then once
more with permuted targets.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile
from math import inf, nan
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import select_settings
from ckcv_ray.errors import Index, Mask, Values
from ckcv_ray.records.record import Failure, Ledger, Outcome, Records, divide_records
from ckcv_ray.study.parts import EACH
from ckcv_ray.study.problem import INNER, OUTER, PERMUTED, Candidate, Costs, Problem

BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
MAX_DIVIDED_SPLITS = 16  # up to which the paths of a split are separate units
OWN_SECONDS = 0.0015  # of driver and recorder per batch, as jobs/benchmarks/simulate.py measures them


class Progress(NamedTuple):
    """Progress of a run at one moment.

    Attributes:
        planned: number of evaluations of the selection.
        computed, failed, dropped: how many of them are computed, failed, and proven not to matter.
        not_converged: fits, of both stages, that stopped at the iteration limit.
        fits: models fitted so far by this run.
        spent: seconds of work so far, summed over workers and sessions.
        left: expected seconds of work left for one worker; 0 once decided, inf if not yet known.
        best: the best complete candidate so far and its l_ms, or None.
        workers: number of processes that share the work left.
        stage: what the run is doing, such as "searching", or "refitting 20 models".
    """

    planned: int
    computed: int = 0
    failed: int = 0
    dropped: int = 0
    not_converged: int = 0
    fits: int = 0
    spent: float = 0.0
    left: float = inf
    best: tuple[Candidate, float] | None = None
    workers: int = 1
    stage: str = "searching"


Listener = Callable[[Progress], None]


class Batch(NamedTuple):
    """Units that are evaluated together."""

    units: tuple[Unit, ...] = ()  # in the order in which to evaluate them; none if there is nothing to do now
    seconds: float = inf  # after which no further unit is begun; those left come back with the outcome
    lost: int = 0  # how many times the batch was lost


def choose_batch_seconds(left: float, workers: int, least: float, waiting: float = inf) -> float:
    """Return how long a batch should last.

    The smaller of one second and a fiftieth of what is left, but at least ``least`` and what a batch for each
    worker takes the driver. With several workers, it is at most half of what is left for each, and at most a
    worker's share of what is in no batch yet: one of them would otherwise compute it while the others wait.

    Args:
        left: seconds of work left for one worker.
        workers: number of batches evaluated at once.
        least: seconds below which dispatching a batch costs more than it is worth.
        waiting: seconds of work that is in no batch yet, if known.
    """
    own = workers * OWN_SECONDS
    length = max(least, own, min(BATCH_SECONDS, left / workers / BATCHES_LEFT))
    most = min(left / workers / 2, waiting / workers)
    return length if workers == 1 else min(length, max(own, most))


class Rates:
    """Measured seconds per unit of cost, for each learner: costs of different learners cannot be compared.

    Args:
        n_learners: number of learners.

    Attributes:
        seconds, cost: seconds spent, and the cost of what was computed, (n_learners,).
        per_cost: seconds per unit of cost, (n_learners,); inf if not yet known.
    """

    def __init__(self, n_learners: int = 1) -> None:
        self.seconds: Values = np.zeros(n_learners)
        self.cost: Values = np.zeros(n_learners)
        self.per_cost: Values = np.full(n_learners, inf)
        self._old_seconds, self._old_cost = np.zeros(n_learners), np.zeros(n_learners)

    def forget(self) -> None:
        """Reduce the weight of earlier measurements in ``per_cost`` to a tenth: what follows may differ."""
        self._old_seconds, self._old_cost = 0.9 * self.seconds, 0.9 * self.cost

    def add(self, seconds: float, cost: Values, by_learner: Sequence[float] = ()) -> None:
        """Add the measurement of a batch.

        Args:
            seconds: seconds of the batch; divided among learners like ``by_learner``.
            cost: cost of what was computed for each learner, (n_learners,); learners with none are left out.
            by_learner: seconds measured for each learner; empty to divide by cost.
        """
        weights = np.where(cost > 0, by_learner if sum(by_learner) > 0 else cost, 0.0)
        if weights.any():
            self.seconds += seconds * weights / weights.sum()
            self.cost += cost
            measured = self.cost > 0
            recent = np.where(measured, self.cost - self._old_cost, 1.0)
            self.per_cost = np.where(measured, (self.seconds - self._old_seconds) / recent, inf)

    def seconds_for(self, cost: Values) -> float:
        """Return the seconds expected for work, given its cost for each learner, (n_learners,)."""
        some = cost > 0
        return float(np.dot(cost[some], self.per_cost[some]))


class Supply(ABC):
    """A source of units, and the receiver of their outcomes: a queue, or the recorder of one."""

    @abstractmethod
    def exchange(self, outcomes: Iterable[Outcome], most: int, workers: int, least: float) -> list[Batch]:
        """Add outcomes, and return the next batches, at most ``most``; see ``Queue.plan``.

        One call for all, since a call of a recorder that is an actor costs more than what it does.

        Raises:
            RunError: a record differs from the one held under its key: the computation was not deterministic.
        """

    @abstractmethod
    def progress(self) -> Progress:
        """Return the progress of the work."""


class Queue(Supply):
    """A supply that keeps what it needs to know in memory.

    Args:
        problem: the problem that the units belong to.
        units: those known before the first of them is computed.

    Attributes:
        ledger: the records.
        rates: measured seconds per unit of cost.
        fits: models fitted in the outcomes added.
        workers: number of workers that share the work.
    """

    def __init__(self, problem: Problem, units: Iterable[Unit] = ()) -> None:
        self.problem, self.ledger = problem, Ledger(problem)
        self.rates = Rates(len(problem.learners))
        self.fits = 0
        self.workers = 1
        self._waiting: deque[tuple[Unit, Costs]]  # in no batch yet, each with the cost of it and all after it
        self.begin(units)

    def follow(self, outcome: Outcome, lost: Sequence[Failure]) -> None:
        """Follow up on an outcome that is in the ledger; ``lost`` is what failed and has no record."""

    def exchange(self, outcomes: Iterable[Outcome], most: int, workers: int, least: float) -> list[Batch]:
        """Add outcomes, and return the next batches, at most ``most``; see ``plan``."""
        for outcome in outcomes:
            self.add(outcome)
        planned = (self.plan(workers, least) for _ in range(most))
        return list(takewhile(attrgetter("units"), planned))

    def add(self, outcome: Outcome) -> Records:
        """Add the outcome of a batch, in any order and any number of times; return its new records."""
        new = outcome.records[self.ledger.enter(outcome.records)]
        self.follow(outcome, self.ledger.note(outcome.failures))
        if outcome.seconds:  # records read from a log have no time
            records, cost = outcome.records, np.zeros(len(self.problem.learners))
            stages, cost_of = (Stage.SELECT, Stage.ESTIMATE), self.problem.cost_of_fits
            for estimate, size, here in divide_records(records):
                cost += cost_of(stages[estimate], size, records["path"][here], np.ones(len(here)))
            # one of several learners may always fail: what failed counts, lest its rate stays unknown, and
            # with it the time left, while others' are known
            for lost in outcome.failures if len(cost) > 1 else ():
                cost += cost_of(stages[lost.estimate], lost.size, [lost.path], [lost.stop - lost.first])
            self.rates.add(outcome.seconds, cost, outcome.by_learner)
        self.fits += outcome.fits
        if outcome.left:
            self._wait([*outcome.left, *(unit for unit, _ in self._waiting)])
        return new

    def failures(self) -> list[Failure]:
        """Return the paths that failed, except those that were computed later."""
        return list(self.ledger.failed.values())

    def begin(self, units: Iterable[Unit]) -> None:
        """Append units that are known, after all earlier ones."""
        self._wait(list(units))
        self._end = self.rates.cost + (self._waiting[0][1] if self._waiting else 0.0)

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of the known units; empty if none is available now, or none is left.

        While it is unknown how long a fit takes, each worker gets its share of all units, and gives
        back what it has not begun after the least seconds of a batch.

        Args:
            workers: number of batches evaluated at once.
            least: seconds below which dispatching a batch costs more than it is worth.
        """
        self.workers = workers
        units = (self._waiting.popleft()[0] for _ in range(len(self._waiting)))
        waiting = self.rates.seconds_for(self._waiting[0][1]) if self._waiting else 0.0
        if waiting == inf:
            return Batch(tuple(islice(units, -(-self._n_waited // workers))), least)
        return self.fill(units, choose_batch_seconds(self.expect_left() or inf, workers, least, waiting))

    def expect_left(self) -> float:
        """Return the seconds of the known units left for one worker; inf if not yet known."""
        return self.rates.seconds_for(np.maximum(0.0, self._end - self.rates.cost))

    def fill(self, units: Iterator[Unit], seconds: float) -> Batch:
        """Take units for about ``seconds``, at least one if there is any.

        One more as long as the last would miss it by more: with many workers, those whose last
        batch is too long by most of a unit keep all the others waiting.
        """
        batch, expected = list[Unit](), 0.0
        for unit in units:
            batch.append(unit)
            longer = self.rates.seconds_for(self.problem.cost_of_unit(unit))
            expected += longer
            if expected + longer / 2 >= seconds:
                break
        return Batch(tuple(batch))

    def _wait(self, units: Sequence[Unit]) -> None:
        costs = [self.problem.cost_of_unit(unit) for unit in reversed(units)]
        self._waiting = deque(zip(units, np.cumsum(costs, axis=0)[::-1], strict=True))
        self._n_waited = len(units)


class Scores(NamedTuple):
    """What a study without a certification computes; totals are nan where missing."""

    totals: Values  # on the outer splits, (n_splits, n_paths, n_steps, n_totals)
    known: Mask  # whether there are totals, (n_splits, n_paths, n_steps)
    chosen: Index | None  # path and step selected for each split and learner, (n_splits, n_learners, 2)
    inner: Values | None  # on splits inside training sets, (n_inner, n_paths, n_steps, n_totals)
    permuted: Values | None  # with permuted targets, (n_permutations, n_splits, n_paths, n_steps, n_totals)
    failures: tuple[Failure, ...]  # what failed and was not computed later
    row_values: Mapping[str, Values] | None = None  # values of rows at entries by score, (rows, entries)

    @property
    def n_splits(self) -> int:
        """Number of splits that are scored."""
        return len(self.known)


class FullQueue(Queue):
    """Records of a study without a certification, and what is left to compute.

    Args:
        problem: the problem to solve.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._selects = problem.procedure.select_by is not None
        self._phase: int | None = None

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of units; the outer splits wait for all inner ones."""
        batch = Batch() if self._phase is None else super().plan(workers, least)
        if not batch.units and self._phase != OUTER:
            following = INNER if self._selects and any(self._list_missing(INNER)) else OUTER
            if following != self._phase:
                self._phase = following
                sizes = [following] if self._selects else range(len(self.problem.sizes))
                self.begin(unit for size in sizes for unit in self._list_missing(size))
                batch = super().plan(workers, least)
        return batch

    def expect_left(self) -> float:
        """Return the seconds of this phase expected to be left for one worker; inf if not yet known."""
        return inf if self._phase is None else super().expect_left()

    def complete(self) -> bool:
        """Return whether everything is computed or has failed."""
        return not any(any(self._list_missing(size)) for size in reversed(range(len(self.problem.sizes))))

    def progress(self) -> Progress:
        """Return the progress."""
        planned, sizes = self.problem.n_evaluations, range(len(self.problem.sizes))
        computed = sum(int(np.sum(self.ledger.known(size))) for size in sizes)
        failed = sum(failure.stop - failure.first for failure in self.failures())
        counts = max(planned, computed + failed), computed, failed, 0, self.ledger.not_converged(), self.fits
        return Progress(*counts, left=self.expect_left(), workers=self.workers, stage="scoring")

    def scores(self) -> Scores:
        """Return the scores, once all are known or have failed."""
        totals, known, permuted = self.totals(OUTER), self.ledger.known(OUTER), None
        chosen, inner = (self.chosen, self.totals(INNER)) if self._selects else (None, None)
        if n := self.problem.procedure.permutations:
            permuted = self.totals(PERMUTED).reshape(n, *totals.shape)
        return Scores(totals, known, chosen, inner, permuted, tuple(self.failures()))

    def totals(self, size: int) -> Values:
        """Return the totals of each evaluation, (n_splits, n_paths, n_steps, n_totals); nan without one."""
        known = self.ledger.known(size)[..., None]
        return np.where(known, self.ledger.totals(size).astype(np.float64), nan)

    @cached_property
    def chosen(self) -> Index:
        """What is selected for each split and learner, (n_splits, n_learners, 2); -1 for nothing.

        It is read once all inner splits are known.
        """
        problem = self.problem
        score = next(score for score in problem.scores if score.name == problem.procedure.select_by)
        losses = score.loss * self.totals(INNER)[..., problem.columns[score.name].start]
        each = problem.procedure.select == EACH
        return select_settings(losses, problem.starts, problem.learner_of_paths, each)

    def _list_missing(self, size: int) -> Iterator[Unit]:
        done, wanted = self.ledger.done(size), list(enumerate(self.problem.learner.space.lengths))
        for split in range(len(done)):
            if self._selects and size != INNER:
                lengths: dict[int, int] = {}
                for path, step in self.chosen[split].tolist():
                    if path >= 0:
                        lengths[path] = max(lengths.get(path, 0), step + 1)
                wanted = list(lengths.items())
            paths = tuple((path, length) for path, length in wanted if not done[split, path, :length].all())
            if len(done) <= MAX_DIVIDED_SPLITS:
                yield from (Unit(Stage.SELECT, size, split, (steps,)) for steps in paths)
            elif paths:
                yield Unit(Stage.SELECT, size, split, paths)
