"""Contestants timed in small turns, so that all of them meet the machine as it is at each moment.

A processor that is shared changes its speed by a third from one tenth of a second to the next, in the seconds
of a process's own clock too (its neighbour on the core, its frequency). Two pieces of work timed one after
the other differ by that much; cut into steps of some milliseconds that take turns, by 2 %.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Clock = Callable[[], float]
Work = Callable[[], Iterator[Any]]  # one pass over the work, cut into steps


def in_one_step(call: Callable[[], object]) -> Work:
    """Work that cannot be cut: one step."""

    def steps() -> Iterator[None]:
        call()
        yield

    return steps


def take_turns(contestants: Sequence[Work], clock: Clock) -> list[float]:
    """Seconds that one pass takes each of them.

    The next step is always that of the one that has had the least time, until each has finished a pass; a
    pass that is begun is finished.
    """
    entrants = [_Entrant(work, clock) for work in contestants]
    while waiting := [one for one in entrants if one.under_way or not all(e.passes for e in entrants)]:
        min(waiting, key=lambda one: one.spent).step()
    return [one.spent / one.passes for one in entrants]


class _Entrant:
    def __init__(self, work: Work, clock: Clock) -> None:
        self.work, self.clock = work, clock
        self.steps: Iterator[Any] = iter(())
        self.under_way, self.spent, self.passes = False, 0.0, 0

    def step(self) -> None:
        start = self.clock()
        if not self.under_way:
            self.steps = self.work()
        self.under_way = next(self.steps, self) is not self
        self.spent += self.clock() - start
        self.passes += not self.under_way
