"""Sizes of batches of units, from the measured time of units."""

from collections.abc import Callable, Iterator, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.schedule import Unit

BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
OWN_SECONDS = 0.003

Values = NDArray[np.float64]


def batch_seconds(left: float, workers: int, least: float) -> float:
    """Return how long a batch should last.

    The smaller of one second and a fiftieth of what is left, but at least ``shortest``. Among several workers
    never more than half of what is left for each: one of them would compute it while the others wait.

    Args:
        left: seconds of work left for one worker.
        workers: number of batches evaluated at once.
        least: seconds below which dispatching a batch costs more than it is worth.
    """
    length = max(shortest(workers, least), min(BATCH_SECONDS, left / workers / BATCHES_LEFT))
    return length if workers == 1 else min(length, max(workers * OWN_SECONDS, left / workers / 2))


def shortest(workers: int, least: float) -> float:
    """Return ``least``, or the time it takes to plan and add a batch for each of the workers if longer."""
    return max(least, workers * OWN_SECONDS)


def fill(units: Iterator[Unit], seconds_of: Callable[[Unit], float], seconds: float) -> list[Unit]:
    """Take units for about ``seconds``, at least one if there is any."""
    batch: list[Unit] = []
    expected = 0.0
    for unit in units:
        batch.append(unit)
        expected += seconds_of(unit)
        if expected >= seconds:
            break
    return batch


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
            measured = self.cost > 0
            self.per_cost = np.where(measured, self.seconds / np.where(measured, self.cost, 1.0), inf)

    def seconds_for(self, cost: Values) -> float:
        """Return the seconds expected for work, given its cost for each learner, (n_learners,)."""
        some = cost > 0
        return float(np.dot(cost[some], self.per_cost[some]))
