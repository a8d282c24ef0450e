"""Queues: what to compute next, and what follows from what came back.

A queue adds the outcomes of its batches in any order. How long a batch lasts follows from the time that
earlier ones took, which every queue measures in the same way; which units are left, each says for itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import takewhile
from math import inf
from operator import attrgetter

import numpy as np

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.batches import Batch, Rates, Waiting, batch_seconds, fill
from ckcv_ray.engine.progress import Progress
from ckcv_ray.records.record import Outcome, Records
from ckcv_ray.study import Costs, Problem


class Supply(ABC):
    """A source of units, and the receiver of their outcomes: a queue, or the recorder of one."""

    @abstractmethod
    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch; empty if none is available now, or none is left.

        Args:
            workers: number of batches evaluated at once.
            least: seconds below which dispatching a batch costs more than it is worth.
        """

    @abstractmethod
    def add(self, outcome: Outcome) -> object:
        """Add the outcome of a batch.

        Raises:
            RunError: a record differs from the one held under its key: the computation was not deterministic.
        """

    @abstractmethod
    def progress(self) -> Progress:
        """Return the progress of the work."""

    def exchange(
        self, outcomes: Iterable[Outcome], most: int, workers: int, least: float = 0.0
    ) -> list[Batch]:
        """Add outcomes, and return the next batches, at most ``most``; see ``plan``.

        One call for all, since a call of a recorder that is an actor costs more than what it does.
        """
        for outcome in outcomes:
            self.add(outcome)
        planned = (self.plan(workers, least) for _ in range(most))
        return list(takewhile(attrgetter("units"), planned))


class Queue(Supply):
    """A supply that keeps what it needs to know in memory.

    Args:
        problem: what the units are of.

    Attributes:
        rates: measured seconds per unit of cost.
        fits: models fitted in the outcomes added.
        workers: those among which the work is divided.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rates = Rates(len(problem.learners))
        self.fits = 0
        self.workers = 1
        self._waiting = Waiting((), problem.cost_of_unit, len(problem.learners))
        self._end = self._waiting.cost

    @abstractmethod
    def take(self, outcome: Outcome) -> Records:
        """Take what came back, in any order and any number of times; return the records that are new."""

    @abstractmethod
    def expect_left(self) -> float:
        """Return the seconds of work expected to be left for one worker; inf if not yet known."""

    def add(self, outcome: Outcome) -> Records:
        """Add the outcome of a batch; return its new records."""
        new = self.take(outcome)
        if outcome.seconds:  # records read from a log have no time
            self.rates.add(outcome.seconds, self.count_cost(outcome), outcome.by_learner)
        self.fits += outcome.fits
        if outcome.left:
            self._waiting = self._waiting.put_back(outcome.left)
        return new

    def count_cost(self, outcome: Outcome) -> Costs:
        """Return the cost of an outcome for each learner, (n_learners,).

        Of several learners one may always fail. Its rate would stay unknown, and with it the time left, which
        others make known: so what failed counts as well.
        """
        records, cost = outcome.records, np.zeros(len(self.problem.learners))
        groups = zip(records["estimate"].tolist(), records["size"].tolist(), strict=True)
        for estimate, size in dict.fromkeys(groups):
            here = (records["estimate"] == estimate) & (records["size"] == size)
            stage = Stage.ESTIMATE if estimate else Stage.SELECT
            cost += self.problem.cost_of_fits(stage, size, records["path"][here], np.ones(np.sum(here)))
        for failure in outcome.failures if len(cost) > 1 else ():
            stage = Stage.ESTIMATE if failure.estimate else Stage.SELECT
            cost += self.problem.cost_of_fits(
                stage, failure.size, [failure.path], [failure.stop - failure.first]
            )
        return cost

    def expect_seconds(self, unit: Unit) -> float:
        """Return the seconds that a unit is expected to take; inf if not yet known."""
        return self.rates.seconds_for(self.problem.cost_of_unit(unit))

    def begin(self, units: Iterable[Unit]) -> None:
        """Begin with units that are known, after all earlier ones."""
        self._waiting = Waiting(units, self.problem.cost_of_unit, len(self.rates.cost))
        self._end = self.rates.cost + self._waiting.cost

    def plan_known(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of the known units, in their order.

        As long as it is not known how long a fit takes, each worker gets its share of all units, and gives
        back what it has not begun after the least seconds of a batch.
        """
        self.workers = workers
        waiting = self.rates.seconds_for(self._waiting.cost)
        if waiting == inf:
            return Batch(self._waiting.share(workers), least)
        seconds = batch_seconds(self.expect_left() or inf, workers, least, waiting)
        return self.fill(iter(self._waiting), seconds)

    def expect_known(self) -> float:
        """Return the seconds of the known units left for one worker; inf if not yet known."""
        return self.rates.seconds_for(np.maximum(0.0, self._end - self.rates.cost))

    def fill(self, units: Iterator[Unit], seconds: float) -> Batch:
        """Take units for about ``seconds``, at least one if there is any."""
        return fill(units, self.expect_seconds, seconds)


class ListQueue(Queue):
    """A queue of units that are known before the first of them is computed."""

    def __init__(self, problem: Problem, units: Iterable[Unit] = ()) -> None:
        super().__init__(problem)
        self.begin(units)

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of units, in their order."""
        return self.plan_known(workers, least)

    def expect_left(self) -> float:
        """Return the seconds of work expected to be left for one worker; inf if not yet known."""
        return self.expect_known()
