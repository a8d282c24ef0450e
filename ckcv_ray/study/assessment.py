"""Assessments: a procedure applied to a task and checked once, with its splits as rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.divisions import Division, Draws, Units
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.named_divisions import NestedSplits, Splits
from ckcv_ray.core.resampling import FoldSize, Split
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.scores import PROBABILITY, RANK, Score, score_of
from ckcv_ray.errors import InputError
from ckcv_ray.learners.answers import Scoring
from ckcv_ray.learners.base import Fits
from ckcv_ray.learners.choice import learners_of
from ckcv_ray.study.learned import Learned, as_numbers, expand
from ckcv_ray.study.procedure import Procedure
from ckcv_ray.study.study import run_id
from ckcv_ray.tables.target import Index
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import expect

OUTER, INNER = 0, 1  # positions of the fold sizes
DELTA = 0.05  # of the bounds on the scores of one split


@dataclass(frozen=True)
class Assessment(Learned):
    """A procedure applied to a task, checked once.

    Splits of the outer division have numbers below ``sizes[OUTER].n_splits``; those inside them follow each
    other, outer split by outer split, below ``sizes[INNER].n_splits``.

    Attributes:
        study: the procedure.
        task: all rows.
        sizes: the largest number of units that splits fit on and score, outside and inside.
        run_id: identifier of procedure and data.
        scores: what is measured; the last one may only select.
    """

    study: Procedure
    task: Task
    sizes: tuple[FoldSize, ...]
    run_id: str
    scores: tuple[Score, ...]

    @classmethod
    def of(cls, procedure: Procedure, task: Task) -> "Assessment":
        """Apply a procedure to a task, checking that they are compatible.

        Raises:
            InputError: the learner, a measure or the resampling does not support the task.
        """
        expect("procedure", procedure, Procedure, "a Procedure, such as Procedure.of(resampling='kfold:10')")
        expect("task", task, Task, "a Task: make one with Task.of(X, y)")
        _check_learner(procedure, task)
        names = dict.fromkeys((*procedure.measures, *filter(None, [procedure.select_by])))
        own = {one.name: one.score(task.kind, task.labelled) for one in procedure.functions}
        scores = tuple(own.get(name) or score_of(name, task.kind) for name in names)
        for score in scores:
            _check_answers(procedure, score)
        _check_strata(procedure.resampling, task)
        if isinstance(procedure.resampling, Splits) and task.grouped:
            raise InputError("splits that were given name rows, and groups stay whole: leave groups out")
        plain = as_numbers(procedure.encoding, task, np.arange(task.n))
        nested = isinstance(procedure.resampling, NestedSplits)
        learner = procedure.learner if nested else procedure.learner.usual(expand(task))
        procedure = replace(procedure, learner=learner.canonical(plain))
        sizes = (_size(procedure.resampling, task.n_units, procedure.resampling.n_splits(task.n_units)),)
        made = cls(procedure, task, sizes, run_id(procedure, task.digest), scores)
        if isinstance(procedure.resampling, NestedSplits):
            inner = _size(procedure.resampling.inner, sizes[0].n_train, int(made.starts[-1]))
            made = replace(made, sizes=(*sizes, inner))
        return made

    @property
    def all_rows(self) -> Task:
        """The table: nothing is held out of it."""
        return self.task

    @property
    def data_digest(self) -> str:
        """SHA-256 of the table."""
        return self.task.digest

    @property
    def n_totals(self) -> int:
        """Number of totals of all scores."""
        return sum(self.widths)

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations: inside, and outside of every setting or of what is selected."""
        of_outer = self.sizes[OUTER].n_splits
        if len(self.sizes) == 1:
            return of_outer * self.n_settings
        return self.sizes[INNER].n_splits * self.n_settings + of_outer * len(self.learners)

    @cached_property
    def widths(self) -> list[int]:
        """Number of totals of each score."""
        return [score.width(self.task.n_classes) for score in self.scores]

    @property
    def total_type(self) -> type[Any]:
        """Type of a total."""
        return np.float64

    @cached_property
    def starts(self) -> Index:
        """Number of the first inner split of each outer one, and last of all; 0 without any."""
        division, n = self.study.resampling, self.sizes[OUTER].n_splits
        if not isinstance(division, NestedSplits):
            return np.zeros(n + 1, np.intp)
        counts = [division.inner.n_splits(len(self._units(number).train)) for number in range(n)]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def rows(self, stage: Stage, size: int, number: int) -> tuple[Index, Index]:
        """Return the training rows and the scored rows of a split."""
        split = self._units(number) if size == OUTER else self._inner(number)
        return self._rows(split.train), self._rows(split.estimate)

    def measure_of(self, rows: Index) -> Scoring:
        """Return the scores of some rows."""
        return Scoring(self.scores, self.task.X[rows], self.task.y[rows], self.task.n_classes)

    def totals_of(self, fits: Fits, measure: Any, length: int) -> NDArray[Any]:
        """Return the totals of each fit: the models are asked, where labels do not say all."""
        assert isinstance(measure, Scoring)
        return measure.of(fits, length)

    def for_workers(self) -> "Assessment":
        """Return the assessment itself: nothing is kept from workers."""
        return self

    @property
    def _has_strata(self) -> bool:
        return not (self.task.grouped or self.task.has_numbers)

    @property
    def _draws(self) -> Draws:
        return Draws(self.study.seed)

    def _units(self, number: int) -> Split:
        strata = self.task.y if self._has_strata else None
        return self.study.resampling.split(Units(self.task.n_units, strata), number, self._draws)

    def _inner(self, number: int) -> Split:
        """Return an inner split, in units of the whole."""
        assert isinstance(self.study.resampling, NestedSplits)
        outer = int(np.searchsorted(self.starts, number, side="right")) - 1
        train = self._units(outer).train
        strata = self.task.y[train] if self._has_strata else None
        draws = self._draws.inside(outer)
        own = number - int(self.starts[outer])
        split = self.study.resampling.inner.split(Units(len(train), strata), own, draws)
        return Split(*(train[part] for part in split))

    def _rows(self, units: Index) -> Index:
        """Return the rows of units, ascending, as often as their unit is named."""
        return self.task.grouping.repeated_rows(units)


def _size(division: Division, n: int, n_splits: int) -> FoldSize:
    """Return the largest sizes of splits of n units, up to the remainder of a division."""
    first = (division.outer if isinstance(division, NestedSplits) else division).split(
        Units(n, np.zeros(n, np.intp)), 0, Draws(0)
    )
    return FoldSize(0, 0, len(first.estimate), len(first.train), n_splits)


def _check_learner(procedure: Procedure, task: Task) -> None:
    for label, one in learners_of(procedure.learner).items():
        if task.kind not in one.kinds:
            made = ": make the task with numbers=True" if procedure.predicts_numbers else ""
            raise InputError(
                f"learner={label} is not for {task.kind}, which is what {task.target!r} has{made}"
            )


def _check_answers(procedure: Procedure, score: Score) -> None:
    """Raise InputError if a learner does not give what a score is computed from."""
    for label, one in learners_of(procedure.learner).items():
        if score.needs == PROBABILITY and not one.probabilities:
            raise InputError(
                f"measure={score.name} needs probabilities, which learner={label} does not give: "
                "leave one of them out"
            )
        if score.needs == RANK and not one.ranks:
            raise InputError(
                f"measure={score.name} needs scores that order rows, which {label} does not give"
            )


def _check_strata(division: Division, task: Task) -> None:
    parts = (division.outer, division.inner) if isinstance(division, NestedSplits) else (division,)
    if not any(getattr(part, "stratify", False) for part in parts):
        return
    if task.grouped:
        raise InputError("stratify deals rows class by class, and groups stay whole: leave one of them out")
    if task.kind is Kind.REGRESSION:
        raise InputError("stratify is for classes, and the target has numbers: leave it out")
