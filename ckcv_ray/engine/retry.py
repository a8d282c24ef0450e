"""Retry policy for lost batches: resubmit, then bisect.

The same batch again, a few times; then its halves, each counted from zero. So whatever kills every worker it
is given to is narrowed down to one path, which fails, while all else is done.
"""

from typing import NamedTuple

from ckcv_ray.core.schedule import Unit

ATTEMPTS = 3


class Batch(NamedTuple):
    """Units that travel together, and how often they were lost."""

    units: tuple[Unit, ...]
    lost: int = 0


def instead(batch: Batch, attempts: int = ATTEMPTS) -> list[Batch]:
    """Return the batches to send in place of a lost one; none where a single path was lost too often."""
    if batch.lost + 1 < attempts:
        return [batch._replace(lost=batch.lost + 1)]
    return [Batch(part) for part in halves(batch.units)]


def halves(units: tuple[Unit, ...]) -> list[tuple[Unit, ...]]:
    """Return the two halves of some units, or of a single one's paths; none of a single path."""
    if len(units) > 1:
        middle = len(units) // 2
        return [units[:middle], units[middle:]]
    (unit,) = units
    middle = len(unit.paths) // 2
    parts = [unit.paths[:middle], unit.paths[middle:]] if middle else []
    return [(unit._replace(paths=paths),) for paths in parts]
