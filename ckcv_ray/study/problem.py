"""Problems: a study applied to a task and checked once, the only place where the two are combined."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.core.by_label import class_of
from ckcv_ray.core.criteria import GROUPED, Criterion, MeanBound, for_groups
from ckcv_ray.core.measures import GroupShares, Kind, Measure
from ckcv_ray.core.resampling import FoldSize, Outer, Resampling, Split, check_folds, refitted
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Leader
from ckcv_ray.errors import InputError, counted
from ckcv_ray.learners.base import ChecksModels, Setting
from ckcv_ray.learners.choice import learners_of
from ckcv_ray.study.certification import (
    AUC,
    OF_TWO,
    QUANTITIES,
    Holdout,
    Nested,
    Occam,
    member_of,
)
from ckcv_ray.study.learned import Learned, as_numbers, canonical_learner, on_part
from ckcv_ray.study.parts import named_parts
from ckcv_ray.study.study import Study, run_id
from ckcv_ray.tables.grouping import Groups
from ckcv_ray.tables.target import LEAST_OF_CLASS, Index, some
from ckcv_ray.tables.task import Task, TestRows
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


class Refused(NamedTuple):
    """The first outer split whose training rows have too few of a class.

    Attributes:
        split: its number; claims are about splits before it.
        number: number of the class.
        rows: training rows of this class.
    """

    split: int
    number: int
    rows: int


@dataclass(frozen=True)
class Problem(Learned):
    """A study applied to a task, checked once.

    What is divided, held out and counted are units: rows, or groups if the task has any. Fold sizes count
    units; splits and held-out rows are given as rows.

    Attributes:
        study: the study in canonical form for these rows.
        task: the learning rows.
        all_rows: all rows of the table, including those held out, as the table is understood.
        held: numbers of the rows held out, ascending; None if there are none.
        sizes: fold sizes in units, the largest first.
        run_id: identifier of study and data.
        resampling: how the learning rows are divided: that of the study, or that of the outer splits.
    """

    study: Study
    task: Task
    all_rows: Task
    held: Index | None
    sizes: tuple[FoldSize, ...]
    run_id: str
    resampling: Resampling

    @classmethod
    def of(cls, study: Study, task: Task) -> "Problem":
        """Apply a study to a task, checking that they are compatible.

        Raises:
            InputError: a part does not support the task, or a field its number of rows.
        """
        expect("study", study, Study, "a Study, such as Study.of(k=(3, 5, 10))")
        expect("task", task, Task, "a Task: make one with Task.of(X, y)")
        _check_kind(study, task)
        study = _with_claims(study, task)
        _check_unlabelled(study, task)
        if task.grouped:
            _check_for_groups(study)
        study = replace(study, certification=study.certification.canonical(task.n_units))
        held, learned = divide(study, task)
        learner = canonical_learner(study, recode_table(task, learned), held)
        study = replace(study, learner=learner, criterion=study.criterion.on(task.classes))
        study = _canonical(study, learned.n_units, task.unit)
        sizes = study.resampling.sizes(learned.n_units)
        _check_sizes(study, sizes)
        if study.outer is not None:
            _check_outer(study, study.outer, learned.n_units, task.unit)
        name = run_id(study, identify_data(task, learned))
        made = cls(study, learned, task, held, sizes, name, study.resampling)
        if study.outer is not None and made.refusal(0) is not None:  # then there is no claim
            learned.check_part(made._outer_rows(0))
        return made

    def check_models(self) -> None:
        """Check that the models of every learner can be stored; it may fit one to a few rows.

        Raises:
            InputError: they cannot.
        """
        unsure = [one for one in learners_of(self.study.learner).values() if isinstance(one, ChecksModels)]
        task = as_numbers(self.study.encoding, self.task, np.arange(self.task.n)) if unsure else self.task
        for learner in unsure:
            learner.check_models(task)

    @property
    def criterion(self) -> Criterion:
        """What is minimised on this task: with groups, the form of the study's criterion for them."""
        grouped = for_groups(self.study.criterion) if self.task.grouped else None
        return grouped or self.study.criterion

    def measure(self, groups: Groups) -> Measure:
        """Return the criterion's measure for rows of these groups."""
        return GroupShares(groups) if self.task.grouped else self.criterion.measure

    def measure_of(self, rows: Index) -> Measure:
        """Return the criterion's measure for some of the rows."""
        return self.measure(self.task.groups[rows])

    @property
    def positive(self) -> int:
        """Number of the class that sensitivity is about: of two the second, unless the study names one."""
        certification = self.study.certification
        named = certification.positive if isinstance(certification, Holdout | Nested) else None
        return 1 if named is None else class_of("positive", named, self.task.classes)

    @property
    def n_totals(self) -> int:
        """Number of totals of the criterion's measure."""
        return self.criterion.measure.columns(self.task.n_classes)

    @property
    def total_type(self) -> type[Any]:
        """Type of a total: sums over groups take 64 bits."""
        return np.int64 if self.task.grouped else np.int32

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations of the selection, not counting inner selections."""
        return sum(size.n_splits for size in self.sizes) * self.n_settings

    @property
    def own(self) -> tuple[int, ...]:
        """Positions of the fold sizes whose own best candidate is reported."""
        report = self.study.report_k
        return tuple(j for j, size in enumerate(self.sizes) if any(size.holds(k) for k in report))

    def units(self, stage: Stage, size: int) -> Any:
        """Return the units that every split of a fold size scores, as the criterion counts them.

        They are the number of rows in a scored set, or if the criterion is ``by_class`` those of each class,
        (n_splits, n_classes), for which the splits are drawn the first time.
        """
        if not self.criterion.by_class:
            return self.sizes[size].n_select
        if size not in self._class_rows:
            splits = [self.split(size, number) for number in range(self.sizes[size].n_splits)]
            self._class_rows[size] = np.array(
                [[self._count_classes(one.select), self._count_classes(one.estimate)] for one in splits]
            )
        return self._class_rows[size][:, int(stage is not Stage.SELECT)]

    def size_of(self, k: int) -> FoldSize:
        """Return the fold size of ``k``, one of the study's numbers of folds."""
        return next(size for size in self.sizes if size.holds(k))

    def split(self, size: int, number: int) -> Split:
        """Return the rows of split ``number`` of the fold size at position ``size``."""
        task = self.task
        units = self.resampling.split(task.n_units, self.sizes[size], number, self.study.seed)
        return Split(*(task.grouping.rows(part) for part in units))

    def order(self, size: FoldSize) -> Index:
        """Return the numbers of all splits of a fold size in an order that is exchangeable given the data."""
        return self.resampling.order(self.task.n_units, size, self.study.seed)

    def rows(self, stage: Stage, size: int, number: int) -> tuple[Index, Index]:
        """Return the training rows and the scored rows of a split."""
        split = self.split(size, number)
        return (split.train, split.select) if stage is Stage.SELECT else refitted(split)

    @cached_property
    def refused(self) -> Refused | None:
        """The first outer split that leaves too few rows of a class to learn from; None if there is none."""
        splits = range(self.study.outer_splits or 0) if self._may_refuse else ()
        return next(filter(None, map(self.refusal, splits)), None)

    def refusal(self, split: int) -> Refused | None:
        """Return why an outer split is refused; None if it is not."""
        if not self._may_refuse:
            return None
        rows = self._outer_rows(split)
        if (number := self.task.scarce_class(rows)) is None:
            return None
        return Refused(split, number, int(np.sum(self.task.y[rows] == number)))

    def may_use(self, count: int) -> bool:
        """Return whether this many outer splits may be those that are used: all, or up to a refused one.

        At most one split is drawn, however many the study names.
        """
        asked = self.study.outer_splits or 0
        return count == asked or (0 < count < asked and self.refusal(count) is not None)

    @property
    def outer_splits(self) -> int:
        """Number of outer splits that are used: those before the first that is refused."""
        return (self.study.outer_splits or 0) if self.refused is None else self.refused.split

    @property
    def inner_sizes(self) -> tuple[FoldSize, ...]:
        """Fold sizes of the selection inside each outer split; none without a nested certification."""
        return self.study.resampling.sizes(self.n_inner) if self.study.outer is not None else ()

    @property
    def inner_share(self) -> float:
        """Cost of a fit inside an outer split relative to one on all rows; 0 without such splits.

        Of several learners the largest is taken.
        """
        if self.study.outer is None:
            return 0.0
        return float(np.max(self.cost_of(self.n_inner) / self.cost_of(self.task.n_units)))

    @property
    def n_inner(self) -> int:
        """Number of units to select on in each outer split."""
        return self.outer.sizes[0].n_train

    def candidate(self, leader: Leader) -> Candidate:
        """Return the candidate at a leader's position, with the smallest k of its fold size."""
        return Candidate(self.learner.setting(leader.path, leader.step), self.sizes[leader.size].k)

    @cached_property
    def every_row(self) -> Task:
        """All rows of the table, including those held out, as the learning rows are understood."""
        return recode_table(self.all_rows, self.task)

    @cached_property
    def data_digest(self) -> str:
        """SHA-256 of the table, and of how the learning rows are understood."""
        return identify_data(self.all_rows, self.task)

    def held_rows(self) -> TestRows | None:
        """Return the rows held out, if any are."""
        return None if self.held is None else self.every_row.scored(self.held)

    def recode(self, test: TestRows | None) -> TestRows | None:
        """Return test rows of the table as the learning rows are understood."""
        return None if test is None else replace(test, X=self.task.recode(test.X, self.all_rows))

    def with_study(self, study: Study) -> "Problem":
        """Apply another study to the same learning rows, as if there were no others; its settings stay."""
        return Problem.of(on_part(replace(study, certification=Occam()), self.task), self.task)

    def for_workers(self) -> "Problem":
        """Return the problem without the rows held out, which no worker may see."""
        return replace(self, all_rows=self.task, held=None)

    def inner(self, number: int) -> "Problem":
        """Return the problem of selecting inside an outer split, on its TR alone, among the same settings.

        Raises:
            InputError: a class has too few of these rows.
        """
        part = self.task.rows(self._outer_rows(number))
        return Problem.of(on_part(self.study.inner(), part), part)

    @cached_property
    def _class_rows(self) -> dict[int, Index]:
        """Rows of each class in MS and EE by fold size, each (n_splits, 2, n_classes)."""
        return {}

    def _count_classes(self, rows: Index) -> Index:
        return np.bincount(self.task.y[rows], minlength=self.task.n_classes)

    @cached_property
    def _may_refuse(self) -> bool:
        """Whether an outer estimate set can be large enough to leave too few rows of a class."""
        outer = self.study.outer
        if outer is None:
            return False
        estimated = self.most_rows_in(outer.sizes(self.task.n_units)[0].n_select)
        return self.task.rarest_class_rows < estimated + LEAST_OF_CLASS

    def _outer_rows(self, number: int) -> Index:
        """Return the training rows of an outer split, refused or not."""
        outer, n = self.study.outer, self.task.n_units
        assert outer is not None
        units = outer.split(n, outer.sizes(n)[0], number, self.study.seed).train
        return self.task.grouping.rows(units)

    @cached_property
    def outer(self) -> "Problem":
        """The problem on the outer splits of a nested certification that are used."""
        assert self.study.outer is not None
        (size,) = self.study.outer.sizes(self.task.n_units)
        sizes = (size._replace(n_splits=self.outer_splits),)
        return replace(self, sizes=sizes, resampling=self.study.outer)


def divide(study: Study, task: Task) -> tuple[Index | None, Task]:
    """Return the rows that a study holds out of a task, None if none, and the learning rows by themselves.

    Raises:
        InputError: too few rows are left to learn from.
    """
    units = study.certification.canonical(task.n_units).held_out(task.n_units, study.seed)
    if units is None:
        return None, task
    held = task.grouping.rows(units)
    learned = task.without(held)
    if learned.schema.plain and not task.schema.plain:
        learned = replace(learned, fills=study.encoding.stand_ins(learned.X))
    return held, learned


def recode_table(table: Task, learned: Task) -> Task:
    """Return all rows of a table as its learning rows are understood."""
    if table.schema == learned.schema:
        return table
    X = np.ascontiguousarray(learned.recode(table.X, table))
    unlabelled = None if table.unlabelled is None else learned.recode(table.unlabelled, table)
    return replace(learned, X=X, y=table.y, grouping=table.grouping, unlabelled=unlabelled)


def identify_data(table: Task, learned: Task) -> str:
    """Return the SHA-256 of a table, and of how its learning rows are understood if that is otherwise.

    Until the learning rows alone decided that, the table did: what was computed then has another digest.
    """
    if table.schema == learned.schema:
        return table.digest
    columns = [] if learned.schema.plain else [[one.name, one.levels] for one in learned.schema]
    return hashlib.sha256(json.dumps([table.digest, columns]).encode()).hexdigest()


def _check_kind(study: Study, task: Task) -> None:
    if task.has_numbers:
        raise InputError(
            f"the target {task.target!r} has numbers, and ckcv run certifies errors of classes: use ckcv "
            "evaluate"
        )
    target = f"{task.target!r} has {task.n_classes} classes ({some(task.classes)})"
    for slot, kinds in KINDS.items():
        part = getattr(study, slot)
        several = learners_of(part) if slot == "learner" else {part.name: part}
        for label in [label for label, one in several.items() if task.kind not in kinds(one)]:
            named = ((name, kinds(other)) for name, other in named_parts(slot).items())
            others = [name for name, known in named if isinstance(known, frozenset) and task.kind in known]
            remedy = (
                f"choose {slot} {' or '.join(others)}" if others else "leave out the rows of other classes"
            )
            allowed = " or ".join(sorted(kinds(several[label])))
            if kinds(several[label]) == {Kind.REGRESSION}:
                remedy += ", or use ckcv evaluate on a column of numbers"
            raise InputError(
                f"the target {target}, and {slot} {label} is for {allowed}: "
                f"{remedy if len(several) == 1 else 'leave it out'}"
            )


def _check_for_groups(study: Study) -> None:
    """Raise InputError unless what is minimised, reported and claimed is defined for groups."""
    criterion = study.criterion
    claims = study.certification.claim if isinstance(study.certification, Holdout | Nested) else ()
    if by_class := [claim for claim in claims if claim in QUANTITIES]:
        raise InputError(
            f"claim={by_class[0]} counts rows of a class as independent, which rows of groups are not: leave "
            "it out, or --group"
        )
    if for_groups(criterion) is None:
        defined = " or ".join(part.name for part in GROUPED)
        raise InputError(
            f"criterion={criterion.name} is not defined for groups of rows: choose criterion {defined}, or "
            "leave out --group"
        )
    if isinstance(criterion, MeanBound) and criterion.bound != MeanBound.bound:
        raise InputError(
            f"bound={criterion.bound!r} is for counts of rows: with groups, L_EE is computed with the bound "
            "that is minimised (on the mean share of a group's rows that are wrong); leave --bound out"
        )


def _with_claims(study: Study, task: Task) -> Study:
    """Return a study with its claims in canonical form for a task.

    Raises:
        InputError: a claim does not apply to the task or to the learner.
    """
    certification = study.certification
    if not isinstance(certification, Holdout | Nested):
        return study
    for claim in certification.claim:
        if claim in (*OF_TWO, AUC) and task.n_classes > 2:
            instead = "claim recall, which is of every class" if claim in OF_TWO else "leave it out"
            raise InputError(
                f"claim={claim} is for two classes, and the target {task.target!r} has {task.n_classes}: "
                f"{instead}"
            )
        unranked = [label for label, one in learners_of(study.learner).items() if not one.ranks]
        if claim == AUC and unranked:
            raise InputError(
                f"claim={AUC} needs scores that order the rows, and learner {unranked[0]} gives none: "
                "leave it out"
            )
    if certification.positive is None:
        return study
    number = class_of("positive", certification.positive, task.classes)
    label = None if number == 1 else str(task.classes[number])
    return replace(study, certification=replace(certification, positive=label))


def _check_unlabelled(study: Study, task: Task) -> None:
    if task.unlabelled is None:
        return
    if not isinstance(study.certification, Holdout):
        raise InputError(
            f"there are {counted(len(task.unlabelled), 'unlabelled row')}, which certify the model on all "
            "rows together with rows held out: add --certify holdout, or leave out --unlabelled"
        )
    if task.grouped:
        raise InputError(
            "unlabelled rows count as independent of each other, which rows of groups are not: leave out "
            "--unlabelled, or --group"
        )


def _canonical(study: Study, n: int, unit: str) -> Study:
    """Return the canonical form of a study for n learning rows, or groups of them."""
    check_folds("report_k", study.report_k, n, unit)
    check_folds("k", study.resampling.k or (), n, unit)
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


def _check_outer(study: Study, outer: Outer, n: int, unit: str) -> None:
    outer.check(n, unit)
    inner, inside = study.inner(), outer.sizes(n)[0].n_train
    try:
        _check_sizes(inner, _canonical(inner, inside, unit).resampling.sizes(inside))
    except InputError as error:
        raise InputError(f"selecting inside {inside} of the {n} {unit}s (nested): {error}") from None
