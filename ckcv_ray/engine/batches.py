"""Batches of units: how long one should last, and how long units take."""

from collections.abc import Callable, Iterator
from math import inf

from ckcv_ray.core.schedule import Unit

BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
OWN_SECONDS = 0.003


def batch_seconds(left: float, workers: int, least: float) -> float:
    """Return how long a batch should last.

    A second, or a fiftieth of what is left where that is less, but no less than ``least`` seconds, nor than
    it takes to plan and add a batch for each of the workers.

    Args:
        left: seconds of work left for one worker.
        workers: batches at once.
        least: seconds below which dispatching a batch costs more than it is worth.
    """
    return max(least, workers * OWN_SECONDS, min(BATCH_SECONDS, left / workers / BATCHES_LEFT))


def fill(units: Iterator[Unit], seconds_of: Callable[[Unit], float], seconds: float) -> list[Unit]:
    """Take units for about so many seconds, at least one if there is any."""
    batch: list[Unit] = []
    expected = 0.0
    for unit in units:
        batch.append(unit)
        expected += seconds_of(unit)
        if expected >= seconds:
            break
    return batch


class Rate:
    """Seconds for a unit of cost, learned from what came back."""

    def __init__(self) -> None:
        self.seconds = self.cost = 0.0

    def add(self, seconds: float, cost: float) -> None:
        """Take in a batch."""
        self.seconds += seconds
        self.cost += cost

    @property
    def per_cost(self) -> float:
        """Seconds for a unit of cost; inf as long as it is not known."""
        return self.seconds / self.cost if self.cost else inf
