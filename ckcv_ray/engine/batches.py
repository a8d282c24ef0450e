"""Batches of units, and their sizes, from the measured time of units."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import inf
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.schedule import Unit

BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
OWN_SECONDS = 0.0015  # of driver and recorder for a batch, as jobs/benchmarks/simulate.py measures them


class Batch(NamedTuple):
    """Units that are evaluated together."""

    units: tuple[Unit, ...] = ()  # in the order in which to evaluate them; none if there is nothing to do now
    seconds: float = inf  # after which no other unit is begun; those left come back with the outcome
    lost: int = 0  # how many times the batch was lost


def batch_seconds(left: float, workers: int, least: float, waiting: float = inf) -> float:
    """Return how long a batch should last.

    The smaller of one second and a fiftieth of what is left, but at least ``shortest``. Among several workers
    never more than half of what is left for each, nor its share of what is in no batch yet: one of them would
    compute it while the others wait.

    Args:
        left: seconds of work left for one worker.
        workers: number of batches evaluated at once.
        least: seconds below which dispatching a batch costs more than it is worth.
        waiting: seconds of work that is in no batch yet, if known.
    """
    length = max(shortest(workers, least), min(BATCH_SECONDS, left / workers / BATCHES_LEFT))
    most = min(left / workers / 2, waiting / workers)
    return length if workers == 1 else min(length, max(workers * OWN_SECONDS, most))


def shortest(workers: int, least: float) -> float:
    """Return ``least``, or the time that a batch for each of the workers takes the driver if longer."""
    return max(least, workers * OWN_SECONDS)


def fill(units: Iterator[Unit], seconds_of: Callable[[Unit], float], seconds: float) -> Batch:
    """Take units for about ``seconds``, at least one if there is any.

    One more that is as long as the last would be further from it: among many workers those whose last batch
    is too long by most of a unit keep all others waiting.
    """
    batch: list[Unit] = []
    expected = 0.0
    for unit in units:
        batch.append(unit)
        longer = seconds_of(unit)
        expected += longer
        if expected + longer / 2 >= seconds:
            break
    return Batch(tuple(batch))


class Waiting:
    """Units that are in no batch yet, in the order in which to issue them.

    Args:
        units: the units.
        cost_of: returns the cost of a unit for each learner, (n_learners,).
        n_learners: number of learners.
    """

    def __init__(self, units: Iterable[Unit], cost_of: Callable[[Unit], Values], n_learners: int = 1) -> None:
        self._units, self._cost_of, self._issued = list(units), cost_of, 0
        self._left: Values = np.zeros((len(self._units) + 1, n_learners))
        for i, unit in reversed(list(enumerate(self._units))):
            self._left[i] = self._left[i + 1] + cost_of(unit)

    @property
    def cost(self) -> Values:
        """Their cost for each learner, (n_learners,); exactly zero if there are none."""
        cost: Values = self._left[self._issued]
        return cost

    def share(self, parts: int) -> tuple[Unit, ...]:
        """Take one of ``parts`` equal parts of all units there were."""
        return tuple(islice(self, -(-len(self._units) // parts)))

    def put_back(self, units: Iterable[Unit]) -> "Waiting":
        """Return what waits if units that were issued have come back; they are the first."""
        return Waiting([*units, *self], self._cost_of, self._left.shape[1])

    def __iter__(self) -> Iterator[Unit]:
        """Issue the units, one after the other."""
        while self._issued < len(self._units):
            self._issued += 1
            yield self._units[self._issued - 1]


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
        self._old_seconds: Values = np.zeros(n_learners)
        self._old_cost: Values = np.zeros(n_learners)

    def forget(self) -> None:
        """Have what was measured so far count a tenth in ``per_cost``: what follows may be unlike it."""
        self._old_seconds, self._old_cost = 0.9 * self.seconds, 0.9 * self.cost

    def add(self, seconds: float, cost: Values, by_learner: Sequence[float] = ()) -> None:
        """Add the measurement of a batch.

        Args:
            seconds: that the batch took; divided among learners like ``by_learner``.
            cost: of what was computed for each learner, (n_learners,); a learner without any is left out.
            by_learner: seconds measured for each learner; empty to divide by cost.
        """
        weights = np.where(cost > 0, by_learner if sum(by_learner) > 0 else cost, 0.0)
        if weights.any():
            self.seconds += seconds * weights / weights.sum()
            self.cost += cost
            measured, recent = self.cost > 0, self.cost - self._old_cost
            self.per_cost = np.where(
                measured, (self.seconds - self._old_seconds) / np.where(measured, recent, 1.0), inf
            )

    def seconds_for(self, cost: Values) -> float:
        """Return the seconds expected for work, given its cost for each learner, (n_learners,)."""
        some = cost > 0
        return float(np.dot(cost[some], self.per_cost[some]))
