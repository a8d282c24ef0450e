"""The queue of a procedure: every setting on every split.

Inner splits come first, at every setting; when all of them are known, what is selected is scored on the outer
splits. Without a selection there are only the latter, at every setting, and then with permuted targets.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import select_settings
from ckcv_ray.engine.queue import Batch, Progress, Queue
from ckcv_ray.records.record import Failure
from ckcv_ray.study.parts import EACH
from ckcv_ray.study.problem import INNER, OUTER, PERMUTED, Problem
from ckcv_ray.validation import Index, Values

MAX_DIVIDED_SPLITS = 16  # up to which the paths of a split are separate units


class Scores(NamedTuple):
    """What a study without a certification computes.

    Attributes:
        totals: totals on the outer splits, (n_splits, n_paths, n_steps, n_totals), nan where there are none.
        known: whether there are, (n_splits, n_paths, n_steps).
        chosen: the path and step selected for each split and learner, (n_splits, n_learners, 2); None
            without a selection.
        inner: totals on the splits inside training sets, (n_inner, n_paths, n_steps, n_totals), nan where
            there are none; None without a selection.
        permuted: totals with permuted targets, (n_permutations, n_splits, n_paths, n_steps, n_totals), nan
            where there are none; None without permutations.
        failures: what failed, and was not computed later.
        row_values: by the name of each score its value of each row at each entry, (rows, entries), nan where
            there is none; None unless an interval needs them.
    """

    totals: Values
    known: NDArray[np.bool_]
    chosen: Index | None
    inner: Values | None
    permuted: Values | None
    failures: tuple[Failure, ...]
    row_values: Mapping[str, Values] | None = None

    @property
    def n_splits(self) -> int:
        """Number of splits that are scored."""
        return len(self.known)


class FullQueue(Queue):
    """Records of a study without a certification, and what is left to compute.

    Args:
        problem: the problem to solve.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._selects = problem.procedure.select_by is not None
        self._phase: int | None = None

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of units; the outer splits wait for all inner ones."""
        if self._phase is None:
            self._begin(INNER if self._selects else OUTER)
        batch = super().plan(workers, least)
        if not batch.units and self._phase == INNER and self._complete(INNER):
            self._begin(OUTER)
            batch = super().plan(workers, least)
        return batch

    def expect_left(self) -> float:
        """Return the seconds of this phase expected to be left for one worker; inf if not yet known."""
        return inf if self._phase is None else super().expect_left()

    def complete(self) -> bool:
        """Return whether everything is computed, or failed."""
        return all(self._complete(size) for size in reversed(range(len(self.problem.sizes))))

    def progress(self) -> Progress:
        """Return the progress."""
        planned, sizes = self.problem.n_evaluations, range(len(self.problem.sizes))
        computed = sum(int(np.sum(self.ledger.known(size))) for size in sizes)
        failed = sum(failure.stop - failure.first for failure in self.failures())
        counts = max(planned, computed + failed), computed, failed, 0, self.ledger.not_converged(), self.fits
        spent = float(self.rates.seconds.sum())
        return Progress(*counts, spent, self.expect_left(), None, self.workers, "scoring")

    def scores(self) -> Scores:
        """Return the scores, once all are known or failed."""
        totals, known, permuted = self.totals(OUTER), self.ledger.known(OUTER), None
        chosen, inner = (self.chosen, self.totals(INNER)) if self._selects else (None, None)
        if n := self.problem.procedure.permutations:
            permuted = self.totals(PERMUTED).reshape(n, *totals.shape)
        return Scores(totals, known, chosen, inner, permuted, tuple(self.failures()))

    def totals(self, size: int) -> Values:
        """Return the totals of each evaluation, (n_splits, n_paths, n_steps, n_totals); nan without one."""
        known = self.ledger.known(size)[..., None]
        return np.where(known, self.ledger.totals(size).astype(np.float64), nan)

    @cached_property
    def chosen(self) -> Index:
        """What is selected for each split and learner, (n_splits, n_learners, 2); -1 for nothing.

        It is read once all inner splits are known.
        """
        problem = self.problem
        score = next(score for score in problem.scores if score.name == problem.procedure.select_by)
        losses = score.loss * self.totals(INNER)[..., problem.columns[score.name].start]
        each = problem.procedure.select == EACH
        return select_settings(losses, problem.starts, problem.learner_of_paths, each)

    def _begin(self, phase: int) -> None:
        self._phase = phase
        sizes = [phase] if self._selects else range(len(self.problem.sizes))
        self.begin(unit for size in sizes for unit in self._list_missing(size))

    def _complete(self, size: int) -> bool:
        return next(self._list_missing(size), None) is None

    def _list_missing(self, size: int) -> Iterator[Unit]:
        done = self.ledger.done(size)
        for split in range(len(done)):
            wanted = self._list_wanted(size, split)
            paths = tuple((path, length) for path, length in wanted if not done[split, path, :length].all())
            if len(done) <= MAX_DIVIDED_SPLITS:
                yield from (Unit(Stage.SELECT, size, split, (steps,)) for steps in paths)
            elif paths:
                yield Unit(Stage.SELECT, size, split, paths)

    def _list_wanted(self, size: int, split: int) -> list[tuple[int, int]]:
        if not self._selects or size == INNER:
            return list(enumerate(self.problem.learner.space.lengths))
        lengths: dict[int, int] = {}
        for path, step in self.chosen[split].tolist():
            if path >= 0:
                lengths[path] = max(lengths.get(path, 0), step + 1)
        return list(lengths.items())
