"""Problems: a study applied to a task and checked once, the only place where the two are combined."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.resampling import FoldSize, Split, check_folds, refitted
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Leader
from ckcv_ray.data.schema import Index, some
from ckcv_ray.data.task import Task, TestRows
from ckcv_ray.errors import InputError
from ckcv_ray.learners import Learner
from ckcv_ray.learners.base import Setting
from ckcv_ray.study.certification import Holdout, Occam, inner_rows, member_of
from ckcv_ray.study.study import SLOTS, Study, run_id
from ckcv_ray.validation import expect

KINDS: dict[str, Callable[[Any], frozenset[Kind]]] = {  # kinds of task that a part of a study supports
    "learner": lambda part: part.kinds,
    "criterion": lambda part: part.measure.kinds,
}


class Candidate(NamedTuple):
    """What is selected: a setting of the learner and a number of folds."""

    setting: Setting
    k: int

    def __str__(self) -> str:
        return listed({**self.setting, "k": self.k})


def listed(setting: Setting) -> str:
    """Format hyperparameters as text: "C = 0.1, gamma = 10"."""
    shown = ((name, f"{value:g}" if isinstance(value, float) else value) for name, value in setting.items())
    return ", ".join(f"{name} = {value}" for name, value in shown)


@dataclass(frozen=True)
class Problem:
    """A study applied to a task, checked once.

    Attributes:
        study: the study in canonical form for these rows.
        task: the learning rows.
        all_rows: all rows of the table, including those held out.
        held: numbers of the rows held out, ascending; None if there are none.
        sizes: fold sizes, the largest first.
        run_id: identifier of study and data.
    """

    study: Study
    task: Task
    all_rows: Task
    held: Index | None
    sizes: tuple[FoldSize, ...]
    run_id: str

    @classmethod
    def of(cls, study: Study, task: Task) -> "Problem":
        """Apply a study to a task, checking that they are compatible.

        Raises:
            InputError: a part does not support the task, or a field its number of rows.
        """
        expect("study", study, Study, "a Study, such as Study.of(k=(3, 5, 10))")
        expect("task", task, Task, "a Task: make one with Task.of(X, y)")
        _check_kind(study, task)
        held = study.certification.held_out(task.n, study.seed)
        learned = task if held is None else task.without(held)
        study = _canonical(study, learned.n)
        sizes = study.resampling.sizes(learned.n)
        _check_sizes(study, sizes)
        if study.outer_splits is not None:
            _check_inner(study, learned.n)
        return cls(study, learned, task, held, sizes, run_id(study, task.digest))

    @property
    def learner(self) -> Learner:
        """Learner of the study."""
        return self.study.learner

    @cached_property
    def n_settings(self) -> int:
        """Number of settings of the learner."""
        return sum(self.learner.lengths)

    @property
    def n_totals(self) -> int:
        """Number of totals of the criterion's measure."""
        return self.study.criterion.measure.columns(self.task.n_classes)

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations of the selection, not counting inner selections."""
        return sum(size.n_splits for size in self.sizes) * self.n_settings

    @property
    def own(self) -> tuple[int, ...]:
        """Positions of the fold sizes whose own best candidate is reported."""
        report = self.study.report_k
        return tuple(j for j, size in enumerate(self.sizes) if any(size.holds(k) for k in report))

    def size_of(self, k: int) -> FoldSize:
        """Return the fold size of ``k``, one of the study's numbers of folds."""
        return next(size for size in self.sizes if size.holds(k))

    def split(self, size: int, number: int) -> Split:
        """Return split ``number`` of the fold size at position ``size``."""
        return self.study.resampling.split(self.task.n, self.sizes[size], number, self.study.seed)

    def rows(self, stage: Stage, size: int, number: int) -> tuple[Index, Index]:
        """Return the training rows and the scored rows of a split."""
        split = self.split(size, number)
        return (split.train, split.select) if stage is Stage.SELECT else refitted(split)

    def cost(self, stage: Stage, size: int) -> float:
        """Return the relative cost of a fit."""
        fold = self.sizes[size]
        return self.learner.cost(fold.n_train + (stage is not Stage.SELECT) * fold.n_select)

    @property
    def inner_share(self) -> float:
        """Cost of a fit inside an outer split of a nested certification, relative to one on all rows."""
        return self.learner.cost(inner_rows(self.task.n)) / self.learner.cost(self.task.n)

    def candidate(self, leader: Leader) -> Candidate:
        """Return the candidate at a leader's position, with the smallest k of its fold size."""
        return Candidate(self.learner.setting(leader.path, leader.step), self.sizes[leader.size].k)

    def held_rows(self) -> TestRows | None:
        """Return the rows held out, if any are."""
        return None if self.held is None else TestRows(self.all_rows.X[self.held], self.all_rows.y[self.held])

    def with_study(self, study: Study) -> "Problem":
        """Apply another study to the same learning rows, as if there were no others."""
        return Problem.of(replace(study, certification=Occam()), self.task)

    def for_workers(self) -> "Problem":
        """Return the problem without the rows held out, which no worker may see."""
        return replace(self, all_rows=self.task, held=None)

    def inner(self, number: int) -> "Problem":
        """Return the problem of selecting inside an outer split, on its TR and MS alone.

        Raises:
            InputError: a class has too few of these rows.
        """
        train, _ = self.outer.rows(Stage.REFIT, 0, number)
        return Problem.of(self.study.inner(), self.task.rows(train))

    @cached_property
    def outer(self) -> "Problem":
        """The problem of the outer splits of a nested certification."""
        return Problem.of(self.study.outer(), self.task)


def _check_kind(study: Study, task: Task) -> None:
    target = f"{task.target!r} has {task.n_classes} classes ({some(task.classes)})"
    for slot, kinds in KINDS.items():
        part = getattr(study, slot)
        if task.kind not in kinds(part):
            others = [name for name, other in SLOTS[slot].items() if task.kind in kinds(other)]
            remedy = (
                f"choose {slot} {' or '.join(others)}" if others else "leave out the rows of other classes"
            )
            allowed = " or ".join(sorted(kinds(part)))
            raise InputError(f"the target {target}, and {slot} {part.name} is for {allowed}: {remedy}")


def _canonical(study: Study, n: int) -> Study:
    """Return the canonical form of a study for n learning rows."""
    check_folds("report_k", study.report_k, n)
    resampling = study.resampling.canonical(n)
    for k in study.report_k:
        if resampling.k is not None and k not in resampling.k:
            asked = ",".join(map(str, resampling.k))
            raise InputError(f"report_k={k} is not among k={asked}: add it to k to have it computed")
    return replace(study, resampling=resampling)


def _check_sizes(study: Study, sizes: tuple[FoldSize, ...]) -> None:
    study.criterion.check(sizes[0].n_select)
    claims = study.certification.claim if isinstance(study.certification, Holdout) else ()
    fewest = min(size.n_splits for size in sizes)
    for claim in claims:
        if member_of(claim) >= fewest:
            raise InputError(f"claim={claim!r} is outside member:0 to member:{fewest - 1}")


def _check_inner(study: Study, n: int) -> None:
    inner = study.inner()
    try:
        _check_sizes(inner, _canonical(inner, inner_rows(n)).resampling.sizes(inner_rows(n)))
    except InputError as error:
        raise InputError(f"selecting inside {inner_rows(n)} of the {n} rows (nested): {error}") from None
