"""Interleaved timing: small alternating steps, so that all the work timed meets the same machine speed.

A shared processor changes its speed by a third from one tenth of a second to the next, in CPU time too (the
other thread of the core, the clock frequency). Two pieces of work timed one after the other differ by that
much; cut into alternating steps of a few milliseconds, by 2 %.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Clock = Callable[[], float]
Work = Callable[[], Iterator[Any]]  # one pass over the work, cut into steps


def in_one_step(call: Callable[[], object]) -> Work:
    """Return work of one step, for what cannot be divided."""

    def steps() -> Iterator[None]:
        call()
        yield

    return steps


def take_turns(works: Sequence[Work], clock: Clock) -> list[float]:
    """Time one pass of each piece of work, in seconds.

    The next step is always of the work that has had the least time so far, until each has finished a pass;
    passes already started are finished.
    """
    timed = [_Timed(work, clock) for work in works]
    while waiting := [one for one in timed if one.under_way or not all(each.passes for each in timed)]:
        min(waiting, key=lambda one: one.spent).step()
    return [one.spent / one.passes for one in timed]


class _Timed:
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
