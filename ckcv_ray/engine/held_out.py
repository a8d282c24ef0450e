"""Fits that give predictions for the rows that each split scores, of the settings that a study ends with."""

from collections.abc import Iterable

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.progress import Progress
from ckcv_ray.engine.queue import ListQueue, Supply
from ckcv_ray.records.held_out import HeldOut
from ckcv_ray.records.record import Failure, Outcome, Records
from ckcv_ray.study.problem import OUTER, Problem

Position = tuple[int, int, int]  # path, step, split


class HeldOutQueue(ListQueue):
    """Models fitted again, and what they predict; the records of their scores are known already.

    Args:
        problem: one without a certification.
        positions: path, step and split of each model.
        recorder: knows the progress of the run.
    """

    def __init__(self, problem: Problem, positions: Iterable[Position], recorder: Supply) -> None:
        self.positions, self.recorder = list(positions), recorder
        units = [Unit(Stage.REFIT, OUTER, split, ((path, step + 1),)) for path, step, split in self.positions]
        super().__init__(problem, units)
        self._found: dict[Position, HeldOut] = {}
        self.failures: list[Failure] = []

    def take(self, outcome: Outcome) -> Records:
        """Keep the predictions of a batch."""
        self._found |= {(held.path, held.step, held.split): held for held in outcome.held_out}
        self.failures += outcome.failures
        return outcome.records

    def progress(self) -> Progress:
        """Return the progress of the run."""
        return self.recorder.progress()

    def held_out(self) -> list[HeldOut]:
        """Return the predictions in the order of the positions; those that failed are missing."""
        return [self._found[position] for position in self.positions if position in self._found]
