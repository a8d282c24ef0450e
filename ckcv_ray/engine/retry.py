"""Retry policy for lost batches: resubmit, then bisect.

A lost batch is sent again a few times, then as two halves, each counted from zero. So a path that kills every
worker is isolated and recorded as failed, while everything else is computed.
"""

from ckcv_ray.core.schedule import Unit
from ckcv_ray.engine.batches import Batch

MOST_ATTEMPTS = 3


def replacements(batch: Batch, attempts: int = MOST_ATTEMPTS, split: bool = False) -> list[Batch]:
    """Return the batches to send instead of a lost one; none if a single path was lost too many times.

    ``split``: to send its halves at once; each attempt of a batch with a fit that never ends takes its time.
    """
    parts = halves(batch.units)
    if batch.lost + 1 < attempts and not (split and parts):
        return [batch._replace(lost=batch.lost + 1)]
    return [batch._replace(units=part, lost=0) for part in parts]


def halves(units: tuple[Unit, ...]) -> list[tuple[Unit, ...]]:
    """Return the two halves of several units, or of the paths of one unit; none for a single path."""
    if len(units) > 1:
        middle = len(units) // 2
        return [units[:middle], units[middle:]]
    (unit,) = units
    middle = len(unit.paths) // 2
    parts = [unit.paths[:middle], unit.paths[middle:]] if middle else []
    return [(unit._replace(paths=paths),) for paths in parts]
