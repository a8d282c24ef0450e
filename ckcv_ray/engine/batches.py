"""Sizes of batches of units, from the measured time of units."""

from collections.abc import Callable, Iterator
from math import inf

from ckcv_ray.core.schedule import Unit

BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
OWN_SECONDS = 0.003


def batch_seconds(left: float, workers: int, least: float) -> float:
    """Return how long a batch should last.

    The smaller of one second and a fiftieth of what is left, but at least ``least`` seconds and the time it
    takes to plan and add a batch for each of the workers.

    Args:
        left: seconds of work left for one worker.
        workers: number of batches evaluated at once.
        least: seconds below which dispatching a batch costs more than it is worth.
    """
    return max(least, workers * OWN_SECONDS, min(BATCH_SECONDS, left / workers / BATCHES_LEFT))


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


class Rate:
    """Measured seconds per unit of cost."""

    def __init__(self) -> None:
        self.seconds = self.cost = 0.0

    def add(self, seconds: float, cost: float) -> None:
        """Add the measurement of a batch."""
        self.seconds += seconds
        self.cost += cost

    @property
    def per_cost(self) -> float:
        """Seconds per unit of cost; inf if not yet known."""
        return self.seconds / self.cost if self.cost else inf
