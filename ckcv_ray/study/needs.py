"""What the parts of a study need of each other and of a task, and how its columns are encoded for them.

What does not fit is refused in a sentence that says what it is for.

Models of numbers are compared by a bound on the mean absolute error, of which at most a clip counts: without
one a single row that is very far off could outweigh all others, and nothing could be proven.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.criteria import CLIP_IS, GROUPED, Criterion, for_groups
from ckcv_ray.core.intervals import CORRECTED_T, INTERVALS
from ckcv_ray.core.measures import Kind, Output, Score, find_class, list_row_means
from ckcv_ray.core.resampling.base import Resampling
from ckcv_ray.core.selection import BEST_MEAN, ONE_SE, list_simplifying
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Learner
from ckcv_ray.learners.steps import BALANCED, Balance, Categories, Encoding, expand_dates
from ckcv_ray.learners.steps import NAME as WEIGHTS
from ckcv_ray.study.options import list_parts
from ckcv_ray.study.parts import CLAIMS, Certification, Holdout
from ckcv_ray.tables.columns import ColumnKind, some
from ckcv_ray.tables.task import Task

VOTE = CLAIMS[-1]
SAME_SCORE = "constant"  # the learner whose score is the same for every row
KINDS: dict[str, Callable[[Any], frozenset[Kind]]] = {  # kinds of task that a part of a study supports
    "learner": lambda part: part.kinds,
    "criterion": lambda part: part.measure.kinds,
}
OF_ENCODING = {"encode": "categories", "fill": "gaps", "rare": "rare"}  # fields, by their options
LEAVE_OUT = "leave it out"
CHOOSE_NUMBERS = {"learner": "choose one of numbers, such as ridge or forest_regressor", "criterion": CLIP_IS}
OUTPUTS = {  # what a score is computed from, as it is called
    Output.PROBABILITY: "probabilities",
    Output.RANK: "scores that order the rows",
    Output.RANKS: "a score for each of several classes",
}


def check_certified(
    learner: Learner,
    criterion: Criterion,
    certification: Certification,
    encoding: Encoding,
    balancing: Balance,
    task: Task,
) -> Certification:
    """Return a certification in canonical form for a task, if all that is asked for is for such a task.

    Raises:
        InputError: a part is not for such a task, or not for another part.
    """
    check_kinds("learner", learner.by_label, task)
    check_kinds("criterion", {criterion.name: criterion}, task)
    _check_fits(learner, encoding, balancing, task)
    check_balance_stored(learner, balancing)
    for need in _list_needs(certification, task):
        _check_need(need, learner, task)
    if not task.units.independent and for_groups(criterion) is None:
        defined = " or ".join(part.name for part in GROUPED)
        raise InputError(
            f"criterion={criterion.name} is not defined for groups of rows: choose criterion {defined}, or "
            "leave out --group"
        )
    if certification.positive is not None:
        number = find_class("positive", certification.positive, task.classes)
        label = None if number == 1 else str(task.classes[number])
        certification = replace(certification, positive=label)  # type: ignore[type-var]
    return certification.canonical(task.n_units)


class Requirement(NamedTuple):
    """What an option of a certification needs of a task and of its learners."""

    option: str  # with its value
    kinds: frozenset[Kind]  # of target
    output: Output | None = None  # of every learner
    rows: str = ""  # those that it counts as independent; "": it is defined for groups as well
    instead: str = LEAVE_OUT  # what to do where it is not met
    orders: bool = False  # whether a score that is the same for every row will not do


def _list_needs(certification: Certification, task: Task) -> Iterator[Requirement]:
    """Yield what each option of a certification needs, the first to be refused first."""
    classes, every = (Kind.BINARY, Kind.MULTICLASS), frozenset(Kind)
    of_two, of_classes, of_numbers = map(frozenset, ((Kind.BINARY,), classes, (Kind.REGRESSION,)))
    if VOTE in certification.claim:
        yield Requirement(f"claim={VOTE}", of_classes)
    for claim, quantity in certification.quantities.items():
        kinds = of_numbers if quantity.of_numbers else of_two if quantity.two_classes else of_classes
        source = certification.name_source(claim)
        recall = quantity.by_class and source == f"claim={claim}" and task.n_classes > 2
        instead = "claim recall, which is of every class" if recall else LEAVE_OUT
        yield Requirement(source, kinds, quantity.needs, quantity.rows_alone, instead)
    for condition in certification.accepted:
        yield Requirement(f"accept={condition}", of_numbers if condition.kind.of_numbers else of_classes)
    if certification.require:
        yield Requirement(f"require={certification.require}", of_two, Output.RANK, orders=True)
    if certification.answer:
        output = Output.RANK if task.n_classes == 2 else Output.RANKS
        yield Requirement(f"answer={certification.answer}", of_classes, output, "rows")
    if certification.positive is not None:
        yield Requirement(f"positive={certification.positive!r}", of_two)
    if certification.subgroups:
        yield Requirement(f"subgroups={','.join(certification.subgroups)}", every, rows="rows of a subgroup")
    if isinstance(certification, Holdout) and certification.holdout_bound != Holdout.holdout_bound:
        yield Requirement(f"holdout_bound={certification.holdout_bound}", of_classes, rows="rows")


def _check_need(need: Requirement, learner: Learner, task: Task) -> None:
    """Raise InputError unless a task and every learner have what an option needs."""
    if task.target.kind not in need.kinds:
        raise InputError(
            f"{need.option} is for {_name_kinds(need.kinds)}, and the target {task.target.name!r} has "
            f"{_describe_target(task)}: {need.instead}"
        )
    if need.rows:
        task.units.check_independent(
            f"{need.option} counts {need.rows} as independent, which rows of groups are not: leave it out, "
            "or --group"
        )
    _check_output(need.option, need.output, learner, need.orders)


def _check_output(option: str, output: Output | None, learner: Learner, orders: bool = False) -> None:
    for label, single in learner.by_label.items():
        gives = "none" if output in OUTPUTS and output not in single.outputs else ""
        if orders and label == SAME_SCORE:
            gives = "every row the same"
        if output is not None and gives:
            raise InputError(
                f"{option} needs {OUTPUTS[output]}, and learner {label} gives {gives}: leave one of them "
                "out, or choose a learner such as linear or forest"
            )


def _name_kinds(kinds: Iterable[Kind]) -> str:
    names = sorted(kinds)
    return "classes" if names == [Kind.MULTICLASS, Kind.BINARY] else " or ".join(names)


def _describe_target(task: Task) -> str:
    return f"{task.n_classes} classes ({some(task.classes)})" if task.n_classes else "numbers"


def check_scored(
    learner: Learner, encoding: Encoding, balancing: Balance, task: Task, scores: Sequence[Score]
) -> None:
    """Raise InputError unless learners can be fitted to a task without a certification, and scored."""
    _check_fits(learner, encoding, balancing, task)
    for score in scores:
        _check_output(f"measure={score.name}", score.needs, learner)


def _check_fits(learner: Learner, encoding: Encoding, balancing: Balance, task: Task) -> None:
    """Raise InputError unless learners can use the weights of rows, the columns and classes of equal size."""
    for label, single in learner.by_label.items():
        if task.weighting.columns and not single.weighs_rows:
            raise InputError(
                f"learner {label} does not use weights of rows: choose from "
                f"{', '.join(_list_weighing(task.target.kind))}, or leave out the weights"
            )
    if not task.schema.plain and all(selects_columns(learner, task)):
        why = "the learner selects columns by name, and is given them as they are"
        _check_effect(encoding, dict.fromkeys(OF_ENCODING, why))
    if balancing is Balance.NONE:
        return
    if not task.classes:
        raise InputError(f"balance={balancing} is for classes, and the target has numbers: leave it out")
    for label, single in learner.by_label.items():
        if getattr(single, WEIGHTS, None) == BALANCED:
            raise InputError(
                f"{WEIGHTS}={BALANCED} of {label} has no effect on classes of equal size, which "
                f"balance={balancing} makes: leave one of them out"
            )


def check_balance_stored(learner: Learner, balancing: Balance) -> None:
    """Raise InputError unless a learner's models can be stored where rows are drawn again."""
    for label, single in learner.by_label.items():
        if balancing is Balance.UP and not single.stores_repeats:
            raise InputError(
                f"balance=up draws rows again, and a stored model of learner {label} names each row once: "
                "choose class_weight=balanced, which is the same on average, or balance=down"
            )


def check_kinds(slot: str, several: Mapping[str, Any], task: Task) -> None:
    """Raise InputError unless each of several parts, by their labels, is for the kind of a task."""
    kinds = KINDS[slot]
    for label, part in several.items():
        if task.target.kind in kinds(part):
            continue
        named = ((name, kinds(choice)) for name, choice in list_parts(slot).items())
        suited = [name for name, known in named if isinstance(known, frozenset) and task.target.kind in known]
        remedy = f"choose {slot} {' or '.join(suited)}" if suited else "leave out the rows of other classes"
        if not task.classes:
            remedy = CHOOSE_NUMBERS[slot]
        elif len(several) > 1:
            remedy = LEAVE_OUT
        raise InputError(
            f"the target {task.target.name!r} has {_describe_target(task)}, and {slot} {label} is for "
            f"{_name_kinds(kinds(part))}: {remedy}"
        )


def _list_weighing(kind: Kind) -> list[str]:
    """Return the names of the learners for a kind of task that use weights of rows."""
    names = []
    for name, part in list_parts("learner").items():
        with suppress(InputError):  # of a library that is not installed, or not trusted
            kinds = KINDS["learner"](part)
            if isinstance(kinds, frozenset) and kind in kinds and part().weighs_rows:
                names.append(name)
    return names


def check_splits(resampling: Resampling, scores: Sequence[Score], permutations: int, task: Task) -> None:
    """Raise InputError unless a resampling divides such a task, and its splits tell what is asked for."""
    unfit = [score.name for score in scores if score.rows is None]
    if resampling.corrected and unfit:
        raise InputError(
            f"resampling={resampling} needs measures that are means over rows, and {unfit[0]} is none: "
            f"choose from {', '.join(list_row_means(task.target.kind))}, or choose bootstrap632"
        )
    if permutations and task.n_units < task.n:
        rows = np.lexsort((task.y, task.row_units))
        same_group, same_target = (np.diff(values[rows]) == 0 for values in (task.row_units, task.y))
        if np.all(same_target[same_group]):
            raise InputError(
                f"permutations={permutations} permutes targets within groups, and each group has a single "
                "one: leave it out"
            )
    if resampling.names_rows:
        task.units.check_independent(
            "splits that were given name rows, and groups stay whole: leave groups out"
        )
    if resampling.in_order and np.any(np.diff(task.row_units) < 0):
        raise InputError(
            f"resampling={resampling} scores what follows in the table, and rows of other groups stand "
            f"between those of a group of {task.units.name!r}: sort the table by group, or leave groups out"
        )
    if not resampling.stratify:
        return
    if not resampling.stratifies_groups:
        task.units.check_independent(
            f"stratify keeps groups whole in kfold and repeated_kfold, not in {resampling.name}: "
            "choose one of these, or leave out stratify or the groups"
        )
    if not task.classes:
        raise InputError("stratify is for classes, and the target has numbers: leave it out")


def check_interval_on(interval: str, resampling: Resampling, task: Task) -> None:
    """Raise InputError unless the splits of a task have an approximate interval; "" is none."""
    if interval and INTERVALS[interval].scores:
        task.units.check_independent(
            f"interval={interval} takes rows as independent, and rows of a group are not: leave groups "
            "or the interval out, or choose interval=corrected_t"
        )
    if interval == CORRECTED_T and resampling.count_splits(task.n_units) < 2:
        raise InputError(
            f"interval={interval} requires two splits or more, and {resampling} has one: raise it"
        )


def check_simplest(choose: str, resampling: Resampling, learner: Learner, task: Task) -> None:
    """Raise InputError if it is not known which of the settings that are about as good is the simplest."""
    if choose in ("", BEST_MEAN):
        return
    if choose == ONE_SE and (resampling.combined or resampling.count_splits(task.n_units) < 2):
        raise InputError(
            f"choose={ONE_SE} needs the standard error of several splits, and {resampling} has none: choose "
            "best or tolerance:2%, or a resampling such as kfold:10"
        )
    for label, single in learner.by_label.items():
        settings = [setting for path in single.space.paths for setting in path]
        if len(settings) > 1 and not list_simplifying(settings):
            raise InputError(
                f"choose={choose} keeps the simplest of the settings that are about as good, and of {label} "
                f"it is not known which value of {', '.join(settings[0])} is simpler: choose best"
            )


def selects_columns(learner: Learner, task: Task) -> list[bool]:
    """Return of each of the learners that are compared whether it selects columns by name."""
    return [single.prepare(task, onehot=True)[1] for single in learner.by_label.values()]


def as_numbers(encoding: Encoding, task: Task, learning: Index) -> Task:
    """Return a task of numbers: itself, or as it is encoded for learners that need numbers alone.

    Args:
        encoding: how columns are encoded.
        task: all rows.
        learning: the rows to which the encoder is fitted.

    Raises:
        InputError: all columns are plain numbers, and it is said how to encode them.
    """
    if not task.schema.plain:
        _check_effect(encoding, _list_idle(encoding, {column.kind for column in task.schema}))
        return encoding.resolve(trees=False).fit(task, learning).task(task)
    if task.fills is not None:  # there are gaps, in other rows
        _check_effect(encoding, _list_idle(encoding, {ColumnKind.NUMBER}))
    else:
        why = "all columns are numbers without gaps, and are taken as they are"
        _check_effect(encoding, dict.fromkeys(OF_ENCODING, why))
    return task


def _check_effect(encoding: Encoding, idle: Mapping[str, str]) -> None:
    """Raise InputError if an option says otherwise than usual what has no effect, for one of some reasons."""
    for option, name in OF_ENCODING.items():
        if option in idle and (value := getattr(encoding, name)) != getattr(Encoding(), name):
            raise InputError(f"{option}={value} has no effect: {idle[option]}; leave it out")


def _list_idle(encoding: Encoding, kinds: set[ColumnKind]) -> dict[str, str]:
    """Return why an option of encoding has no effect on columns of these kinds, by the option."""
    idle = {} if ColumnKind.CATEGORY in kinds else {"rare": "no column holds categories"}
    if encoding.categories is Categories.TARGET:
        idle["rare"] = (
            "encode=target joins no categories, but draws those of few rows towards the mean of all"
        )
    return idle | ({"fill": "no column holds numbers or dates"} if kinds == {ColumnKind.CATEGORY} else {})


def expand(task: Task) -> Task:
    """Return a task with each date replaced by its parts: as many columns as their kinds say.

    How many columns an encoder makes depends on the rows that it is fitted to, and what is decided for all
    splits must not depend on the rows of any.
    """
    return task if task.schema.plain else replace(task, X=expand_dates(task.X, task.schema))
