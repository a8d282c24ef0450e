"""Interleaved timing: the measured ratio does not depend on how the machine's speed varies meanwhile."""

from collections.abc import Iterator

import pytest

from jobs.frame import in_one_step, take_turns


class Machine:
    """A simulated computer that changes its speed every tenth of a second: its clock, and work on it."""

    def __init__(self) -> None:
        self.now = 0.0

    def work(self, seconds: float) -> None:
        self.now += seconds * (2.0 if int(self.now / 0.1) % 2 else 1.0)

    def steps(self, count: int, seconds: float) -> Iterator[None]:
        for _ in range(count):
            self.work(seconds)
            yield


def test_speeds_are_compared_at_the_same_machine_speed() -> None:
    machine = Machine()
    ours = in_one_step(lambda: machine.work(0.002))
    mine, theirs = take_turns((ours, lambda: machine.steps(400, 0.001)), lambda: machine.now)
    assert theirs / mine == pytest.approx(200, rel=0.05)


def test_every_pass_started_is_finished() -> None:
    machine, passes = Machine(), [0, 0]

    def long() -> Iterator[None]:
        yield from machine.steps(3, 1.0)
        passes[0] += 1

    def short() -> Iterator[None]:
        yield from machine.steps(2, 0.01)
        passes[1] += 1

    take_turns((long, short), lambda: machine.now)
    assert passes[0] == 1
    assert passes[1] > 50, "the short one runs as long"
