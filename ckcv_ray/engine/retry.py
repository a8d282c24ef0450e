"""What to send in the place of a batch that was lost with its worker.

The same batch again, a few times; then its halves, each counted anew. So whatever kills every worker it is
given to is narrowed down to one path, which fails, while all else is done.
"""

from typing import NamedTuple

from ckcv_ray.study import Task

ATTEMPTS = 3


class Batch(NamedTuple):
    """Tasks that travel together, and how often they were lost."""

    tasks: tuple[Task, ...]
    lost: int = 0


def instead(batch: Batch, attempts: int = ATTEMPTS) -> list[Batch]:
    """Batches to send in place of one just lost; none where a single path was lost ``attempts`` times."""
    if batch.lost + 1 < attempts:
        return [batch._replace(lost=batch.lost + 1)]
    return [Batch(part) for part in halves(batch.tasks)]


def halves(tasks: tuple[Task, ...]) -> list[tuple[Task, ...]]:
    """The two halves of some tasks, or of a single one's paths; none of a single path."""
    if len(tasks) > 1:
        middle = len(tasks) // 2
        return [tasks[:middle], tasks[middle:]]
    (task,) = tasks
    middle = len(task.paths) // 2
    parts = [task.paths[:middle], task.paths[middle:]] if middle else []
    return [(task._replace(paths=paths),) for paths in parts]
