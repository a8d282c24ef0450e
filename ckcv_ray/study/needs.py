"""What the parts of a study need of each other and of a task, and how its columns are encoded for them.

What does not fit is refused in a sentence that says what it is for.

Models of numbers are compared by a bound on the mean absolute error, of which at most a clip counts: without
one a single row that is very far off could outweigh all others, and nothing could be proven.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.criteria import CLIP_IS, GROUPED, Criterion, MeanClippedError, for_groups
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
OUTPUTS = {  # what a score is computed from: what it is called, and what to do where a learner has none
    Output.PROBABILITY: ("probabilities", "which learner={} does not give: leave one of them out"),
    Output.RANK: ("scores that order rows", "which {} does not give"),
    Output.RANKS: (
        "a score for each of several classes",
        "which learner={} does not give: leave one of them out",
    ),
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
    if task.has_numbers:
        _check_numbers(learner, criterion, certification, task)
    else:
        _check_classes(learner, criterion, task)
    _check_fits(learner, encoding, balancing, task)
    check_balance_stored(learner, balancing)
    certification = _check_claims(certification, learner, task).canonical(task.n_units)
    if task.grouped:
        _check_groups(criterion, certification)
    return certification


def check_scored(
    learner: Learner, encoding: Encoding, balancing: Balance, task: Task, scores: Sequence[Score]
) -> None:
    """Raise InputError unless learners can be fitted to a task without a certification, and scored."""
    _check_fits(learner, encoding, balancing, task)
    for score in scores:
        for label, single in learner.by_label.items():
            if score.needs in OUTPUTS and score.needs not in single.outputs:
                what, remedy = OUTPUTS[score.needs]
                raise InputError(f"measure={score.name} needs {what}, {remedy.format(label)}")


def _check_fits(learner: Learner, encoding: Encoding, balancing: Balance, task: Task) -> None:
    """Raise InputError unless learners can use the weights of rows, the columns and classes of equal size."""
    if task.weighting.given:
        for label, single in learner.by_label.items():
            if not single.weighs_rows:
                raise InputError(
                    f"learner {label} does not use weights of rows: choose from "
                    f"{', '.join(_list_weighing(task.kind))}, or leave out the weights"
                )
    if not task.schema.plain and all(selects_columns(learner, task)):
        for option, value in _list_given(encoding):
            raise InputError(
                f"{option}={value} has no effect: the learner selects columns by name, and is given them as "
                "they are; leave it out"
            )
    if balancing is Balance.NONE:
        return
    if task.has_numbers:
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


def _check_numbers(learner: Learner, criterion: Criterion, certification: Certification, task: Task) -> None:
    target = f"the target {task.target!r} has numbers"
    for label, single in learner.by_label.items():
        if Kind.REGRESSION not in single.kinds:
            raise InputError(
                f"{target}, and learner {label} is for {' or '.join(sorted(single.kinds))}: choose one of "
                "numbers, such as ridge or forest_regressor"
            )
    if not isinstance(criterion, MeanClippedError):
        raise InputError(f"{target}, and criterion {criterion.name} is for classes: {CLIP_IS}")
    for option, why in _list_unfit(certification):
        raise InputError(f"{option} {why}, and {target}: leave it out")


def _list_unfit(certification: Certification) -> Iterator[tuple[str, str]]:
    """Yield the options of a certification that are for classes, and why, the first to be refused."""
    quantities = certification.quantities
    for claim in certification.claim:
        if claim == VOTE:
            yield f"claim={claim}", "is a majority of predicted classes"
        if claim in quantities and not quantities[claim].of_numbers:
            yield certification.name_source(claim), "is about classes"
    for condition in certification.accepted:
        if not condition.kind.of_numbers:
            yield f"accept={condition}", "is about rows that are right or wrong"
    if isinstance(certification, Holdout) and certification.holdout_bound != Holdout.holdout_bound:
        yield f"holdout_bound={certification.holdout_bound}", "is for rows that are right or wrong"


def _check_classes(learner: Learner, criterion: Criterion, task: Task) -> None:
    target = f"{task.target!r} has {task.n_classes} classes ({some(task.classes)})"
    for slot, several in {"learner": learner.by_label, "criterion": {criterion.name: criterion}}.items():
        kinds = KINDS[slot]
        for label in [label for label, single in several.items() if task.kind not in kinds(single)]:
            named = ((name, kinds(choice)) for name, choice in list_parts(slot).items())
            suited = [name for name, known in named if isinstance(known, frozenset) and task.kind in known]
            remedy = (
                f"choose {slot} {' or '.join(suited)}" if suited else "leave out the rows of other classes"
            )
            allowed = " or ".join(sorted(kinds(several[label])))
            raise InputError(
                f"the target {target}, and {slot} {label} is for {allowed}: "
                f"{remedy if len(several) == 1 else 'leave it out'}"
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


def _check_groups(criterion: Criterion, certification: Certification) -> None:
    """Raise InputError unless what is minimised, reported and claimed is defined for groups."""
    if certification.answer:
        raise InputError(
            f"answer={certification.answer} counts rows as independent, which rows of groups are not: leave "
            "it out, or --group"
        )
    for claim, quantity in certification.quantities.items():
        if quantity.rows_alone:
            raise InputError(
                f"{certification.name_source(claim)} counts {quantity.rows_alone} as independent, which rows "
                "of groups are not: leave it out, or --group"
            )
    if certification.subgroups:
        raise InputError(
            f"subgroups={','.join(certification.subgroups)} counts rows of a subgroup as independent, which "
            "rows of groups are not: leave it out, or --group"
        )
    if isinstance(certification, Holdout) and certification.holdout_bound != Holdout.holdout_bound:
        raise InputError(
            f"holdout_bound={certification.holdout_bound} is for rows that are right or wrong, and of a "
            "group the share of wrong rows counts: leave it out, or --group"
        )
    if for_groups(criterion) is None:
        defined = " or ".join(part.name for part in GROUPED)
        raise InputError(
            f"criterion={criterion.name} is not defined for groups of rows: choose criterion {defined}, or "
            "leave out --group"
        )


def _check_claims(certification: Certification, learner: Learner, task: Task) -> Certification:
    """Return a certification with its claims in canonical form for a task.

    Raises:
        InputError: a claim does not apply to the task or to the learner.
    """
    for condition in () if task.has_numbers else certification.accepted:
        if condition.kind.of_numbers:
            raise InputError(
                f"accept={condition} is for numbers, and the target {task.target!r} has classes: leave it out"
            )
    for claim, quantity in certification.quantities.items():
        if quantity.of_numbers and not task.has_numbers:
            raise InputError(
                f"claim={claim} is for numbers, and the target {task.target!r} has classes: leave it out"
            )
        if quantity.two_classes and task.n_classes > 2:
            source = certification.name_source(claim)
            claimed = quantity.by_class and source == f"claim={claim}"
            instead = "claim recall, which is of every class" if claimed else "leave it out"
            raise InputError(
                f"{source} is for two classes, and the target {task.target!r} has {task.n_classes}: {instead}"
            )
    needed = [(f"claim={claim}", quantity.needs) for claim, quantity in certification.quantities.items()]
    required = [(f"require={certification.require}", Output.RANK)] if certification.require else []
    for option, output in (*required, *needed):
        lacking = [label for label, single in learner.by_label.items() if output not in single.outputs]
        if output is not None and lacking:
            what = "scores that order the rows" if output == Output.RANK else output.value
            raise InputError(f"{option} needs {what}, and learner {lacking[0]} gives none: leave it out")
    if certification.require and SAME_SCORE in learner.by_label:
        raise InputError(
            f"require={certification.require} needs scores that order the rows, and learner {SAME_SCORE} "
            "gives every row the same: leave it out"
        )
    needs = Output.RANK if task.n_classes == 2 else Output.RANKS
    unsure = [label for label, single in learner.by_label.items() if needs not in single.outputs]
    if certification.answer and unsure:
        of_each = "" if needs == Output.RANK else " of each class"
        raise InputError(
            f"answer={certification.answer} needs a confidence in each row, and learner {unsure[0]} gives no "
            f"scores{of_each}: choose one that does, such as linear or forest, or leave it out"
        )
    if certification.positive is None:
        return certification
    if task.n_classes != 2:
        has = f"{task.n_classes} classes" if task.n_classes else "numbers"
        raise InputError(
            f"positive={certification.positive!r} is for two classes, and the target {task.target!r} has "
            f"{has}: leave it out"
        )
    number = find_class("positive", certification.positive, task.classes)
    label = None if number == 1 else str(task.classes[number])
    return replace(certification, positive=label)  # type: ignore[type-var]


def check_splits(resampling: Resampling, scores: Sequence[Score], permutations: int, task: Task) -> None:
    """Raise InputError unless a resampling divides such a task, and its splits tell what is asked for."""
    unfit = [score.name for score in scores if score.rows is None]
    if resampling.corrected and unfit:
        raise InputError(
            f"resampling={resampling} needs measures that are means over rows, and {unfit[0]} is none: "
            f"choose from {', '.join(list_row_means(task.kind))}, or choose bootstrap632"
        )
    if permutations and task.grouped:
        rows = np.lexsort((task.y, task.groups))
        same_group, same_target = (np.diff(values[rows]) == 0 for values in (task.groups, task.y))
        if np.all(same_target[same_group]):
            raise InputError(
                f"permutations={permutations} permutes targets within groups, and each group has a single "
                "one: leave it out"
            )
    if resampling.names_rows and task.grouped:
        raise InputError("splits that were given name rows, and groups stay whole: leave groups out")
    if resampling.in_order and np.any(np.diff(task.groups) < 0):
        raise InputError(
            f"resampling={resampling} scores what follows in the table, and rows of other groups stand "
            f"between those of a group of {task.group!r}: sort the table by group, or leave groups out"
        )
    if not resampling.stratify:
        return
    if task.grouped and not resampling.stratifies_groups:
        raise InputError(
            f"stratify keeps groups whole in kfold and repeated_kfold, not in {resampling.name}: "
            "choose one of these, or leave out stratify or the groups"
        )
    if task.kind is Kind.REGRESSION:
        raise InputError("stratify is for classes, and the target has numbers: leave it out")


def check_interval_on(interval: str, resampling: Resampling, task: Task) -> None:
    """Raise InputError unless the splits of a task have an approximate interval; "" is none."""
    if interval and INTERVALS[interval].scores and task.grouped:
        raise InputError(
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
        _check_effect(encoding, {column.kind for column in task.schema})
        return encoding.resolve(trees=False).fit(task, learning).task(task)
    if task.fills is not None:  # there are gaps, in other rows
        _check_effect(encoding, {ColumnKind.NUMBER})
        return task
    for option, value in _list_given(encoding):
        raise InputError(
            f"{option}={value} has no effect: all columns are numbers without gaps, and are taken as they "
            "are; leave it out"
        )
    return task


def _list_given(encoding: Encoding) -> Iterator[tuple[str, Any]]:
    """Yield the options that say otherwise than usual how columns are encoded, and their values."""
    usual = Encoding()
    for option, name in (("encode", "categories"), ("fill", "gaps"), ("rare", "rare")):
        if (value := getattr(encoding, name)) != getattr(usual, name):
            yield option, value


def expand(task: Task) -> Task:
    """Return a task with each date replaced by its parts: as many columns as their kinds say.

    How many columns an encoder makes depends on the rows that it is fitted to, and what is decided for all
    splits must not depend on the rows of any.
    """
    return task if task.schema.plain else replace(task, X=expand_dates(task.X, task.schema))


def _check_effect(encoding: Encoding, kinds: set[ColumnKind]) -> None:
    default, reason = Encoding(), ""
    option, value = "rare", f"{encoding.rare:g}"
    if encoding.rare != default.rare and encoding.categories is Categories.TARGET:
        reason = "encode=target joins no categories, but draws those of few rows towards the mean of all"
    elif encoding.rare != default.rare and ColumnKind.CATEGORY not in kinds:
        reason = "no column holds categories"
    elif encoding.gaps != default.gaps and kinds == {ColumnKind.CATEGORY}:
        option, value, reason = "fill", str(encoding.gaps), "no column holds numbers or dates"
    if reason:
        raise InputError(f"{option}={value} has no effect: {reason}; leave it out")
