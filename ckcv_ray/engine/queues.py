"""Which queue a search has."""

from typing import Any

from ckcv_ray.engine.budget import BudgetQueue
from ckcv_ray.engine.full import FullQueue
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.study import All, Budget, Inner, Problem, Race

QUEUES: dict[type, type[RaceQueue] | type[FullQueue]] = {
    Race: RaceQueue,
    Budget: BudgetQueue,
    Inner: FullQueue,
    All: FullQueue,
}


def make_queue(problem: Problem) -> Any:
    """Make the queue of a problem, a ``RaceQueue`` or a ``FullQueue``, as its search needs."""
    return QUEUES[type(problem.study.search)](problem)
