"""The canonical form of a study on a task, and the checks that the two can be combined.

A part is refused in a sentence that says what it is for. All is decided by the learning rows alone. Models
of numbers are compared by a bound on the mean absolute error, of which at most a clip counts: without one a
single row that is very far off could outweigh all others, and nothing could be proven.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson, find_fewest_rows
from ckcv_ray.core.criteria import CLIP_IS, GROUPED, Criterion, MeanClippedError, for_groups
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.intervals import CORRECTED_T, INTERVALS
from ckcv_ray.core.measures import Kind, Output, Score, extend_score, find_class, list_row_means, make_score
from ckcv_ray.core.resampling.complete import CertifiableFolds, check_folds
from ckcv_ray.core.selection import BEST_MEAN, ONE_SE, list_simplifying
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.learners.base import Learner
from ckcv_ray.learners.steps import BALANCED, Balance, Categories, Encoding, expand_dates, settle_scaling
from ckcv_ray.learners.steps import NAME as WEIGHTS
from ckcv_ray.study.options import list_parts
from ckcv_ray.study.parts import CLAIMS, MIN_HELD_OUT, Certification, Holdout
from ckcv_ray.study.study import Study
from ckcv_ray.tables.columns import ColumnKind, some
from ckcv_ray.tables.subgroups import check_subgroups
from ckcv_ray.tables.task import MIN_ROWS, Task

VOTE = CLAIMS[-1]


def check_numbers(
    learners: Mapping[str, Learner], criterion: Criterion, certification: Certification, task: Task
) -> None:
    """Raise InputError unless these parts of a study can predict the numbers of a task."""
    target = f"the target {task.target!r} has numbers"
    for label, learner in learners.items():
        if Kind.REGRESSION not in learner.kinds:
            raise InputError(
                f"{target}, and learner {label} is for {' or '.join(sorted(learner.kinds))}: choose one of "
                "numbers, such as ridge or forest_regressor"
            )
    if not isinstance(criterion, MeanClippedError):
        raise InputError(f"{target}, and criterion {criterion.name} is for classes: {CLIP_IS}")
    for option, why in _list_unfit(certification, task):
        raise InputError(f"{option} {why}, and {target}: leave it out")


def _list_unfit(certification: Certification, task: Task) -> Iterator[tuple[str, str]]:
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


SAME_SCORE = "constant"  # the learner whose score is the same for every row
KINDS: dict[str, Callable[[Any], frozenset[Kind]]] = {  # kinds of task that a part of a study supports
    "learner": lambda part: part.kinds,
    "criterion": lambda part: part.measure.kinds,
}


def canonicalize_certified(study: Study, task: Task) -> tuple[Study, Index | None, Task]:
    """Return the canonical form of a study with a certification on a task, the rows held out, and the others.

    Raises:
        InputError: a part does not support the task, or a field its number of rows.
    """
    _check_kind(study, task)
    _check_weights(study, task)
    _check_columns(study, task)
    _check_balance(study, task)
    _check_balance_stored(study)
    assert study.certification is not None
    certification = _check_claims(study.certification, study.learner, task).canonical(task.n_units)
    if task.grouped:
        _check_for_groups(study.criterion, certification)
    study = replace(study, certification=certification)
    held, learned = divide(study, task)
    check_subgroups(certification.subgroups, learned)
    learning = np.arange(task.n) if held is None else np.delete(np.arange(task.n), held)
    numbers = as_numbers(study.encoding, recode_table(task, learned), learning)
    learner = settle_scaling(study.learner.canonical(numbers), study.encoding, learned)
    study = study.with_learner(learner)
    study = replace(study, search=replace(study.selecting, criterion=study.criterion.on(task.classes)))
    study = _with_folds(study, learned.n_units, task.unit)
    sizes = study.resampling.fold_sizes(learned.n_units)
    settings, n_splits = sum(study.learner.space.lengths), max(size.n_splits for size in sizes)
    search = study.selecting.resolve(learned.n_units, settings, len(sizes), n_splits)
    study = replace(study, search=search)
    for quantity in certification.quantities.values():
        quantity.check(study, task, 0 if held is None else len(held))
    return study, held, learned


def canonicalize_scored(study: Study, task: Task) -> tuple[Study, tuple[Score, ...]]:
    """Return the canonical form of a study without a certification on a task, and its scores.

    Raises:
        InputError: the learner, a measure or the resampling does not support the task.
    """
    for label, learner in study.learner.by_label.items():
        if task.kind not in learner.kinds:
            made = ": make the task with numbers=True" if study.predicts_numbers else ""
            raise InputError(
                f"learner={label} is not for {task.kind}, which is what {task.target!r} has{made}"
            )
    _check_weights(study, task)
    _check_columns(study, task)
    _check_balance(study, task)
    names = dict.fromkeys((*study.measure_names, *filter(None, [study.select_by])))
    functions = {name: measure.score(task.kind, task.labelled) for name, measure in study.functions.items()}
    scores = tuple(functions.get(name) or make_score(name, task.kind) for name in names)
    for score in scores:
        _check_outputs(study, score)
    _check_no_information(study, scores, task.kind)
    outer = getattr(study.resampling, "outer", study.resampling)
    scores = tuple(map(extend_score, scores)) if outer.corrected else scores
    check_interval_on(study, task)
    _check_strata(study, task)
    _check_permutations(study, task)
    if study.resampling.names_rows and task.grouped:
        raise InputError("splits that were given name rows, and groups stay whole: leave groups out")
    if study.resampling.in_order and np.any(np.diff(task.groups) < 0):
        raise InputError(
            f"resampling={study.resampling} scores what follows in the table, and rows of "
            f"other groups stand between those of a group of {task.group!r}: sort the table by group, or "
            "leave groups out"
        )
    numbers = as_numbers(study.encoding, task, np.arange(task.n))
    selects = study.select_by is not None or study.choose != ""
    learner = study.learner if selects else study.learner.usual(expand(task))
    study = study.with_learner(settle_scaling(learner.canonical(numbers), study.encoding, task))
    _check_simplest(study, task)
    if study.choose:
        _check_balance_stored(study)
    return study, scores


def _check_balance_stored(study: Study) -> None:
    for label, learner in study.learner.by_label.items():
        if study.balancing is Balance.UP and not learner.stores_repeats:
            raise InputError(
                f"balance=up draws rows again, and a stored model of learner {label} names each row once: "
                "choose class_weight=balanced, which is the same on average, or balance=down"
            )


def divide(study: Study, task: Task) -> tuple[Index | None, Task]:
    """Return the rows that a study holds out of a task, None if none, and the learning rows by themselves.

    Raises:
        InputError: too few rows are held out, or left to learn from.
    """
    n, certification = task.n_units, study.certification
    draws = Draws(study.seed, task.salt)
    units = None if certification is None else certification.canonical(n).draw_held_out(n, draws)
    if units is None:
        return None, fill_new_rows(study, task)
    if len(units) < MIN_HELD_OUT or n < MIN_HELD_OUT + MIN_ROWS:
        raise InputError(_describe_few(study, task, len(units)))
    held = task.grouping.rows(units)
    learned = task.without(held)
    if learned.schema.plain and not task.schema.plain:
        learned = replace(learned, fills=study.encoding.fit_fills(learned.X))
    return held, fill_new_rows(study, learned)


def _describe_few(study: Study, task: Task, held: int) -> str:
    """Return what so few units held out would prove at best, and what to do instead."""
    unit, delta, losses = "group" if task.grouped else "row", study.delta, task.grouped or task.has_numbers
    best = bound_losses(np.zeros(held), delta) if losses and held else float(clopper_pearson(0, held, delta))
    of_clip = " of the clip" if task.has_numbers else ""
    outside = find_fewest_rows(float(np.nextafter(0.5, 0)), 0, delta)
    gate = "" if losses else f", and better than a constant takes {outside} of them outside each class"
    paper = f"--paper runs from {MIN_ROWS} rows on (--k 3 --n-splits 90 takes every split once), and "
    return (
        f"{pluralize(held, unit)} of {task.n_units:,} held out would prove an error of at most "
        f"{ceil(100 * best)} in 100{of_clip} if none of them were wrong{gate}: hold out at least "
        f"{MIN_HELD_OUT}, which are half of {2 * MIN_HELD_OUT}. Of fewer {unit}s "
        f"{'' if task.has_numbers else paper}ckcv evaluate gives scores, without a proof"
    )


def fill_new_rows(study: Study, learned: Task) -> Task:
    """Return learning rows with what stands for gaps of others in numbers and dates, where they have none.

    A learner that selects columns by name is given them as they are, and has seen no gap there; others encode
    each column in every split.
    """
    if learned.schema.plain or not any(_selects_columns(study, learned)):
        return learned
    known = np.array([not column.levels for column in learned.schema]) & ~np.isnan(learned.X).any(axis=0)
    if not known.any():
        return learned
    fills = np.full(len(known), np.nan)
    fills[known] = study.encoding.fit_fills(learned.X[:, known])
    return replace(learned, fills=tuple(fills.tolist()))


def recode_table(table: Task, learned: Task) -> Task:
    """Return all rows of a table as its learning rows are understood."""
    if table.schema == learned.schema and learned.fills is None:
        return table
    X = np.ascontiguousarray(learned.recode(table.X, table))
    return replace(learned, X=X, y=table.y, grouping=table.grouping, weighting=table.weighting)


def identify_data(table: Task, learned: Task) -> str:
    """Return the SHA-256 of a table, and of how its learning rows are understood if that is otherwise."""
    if table.schema == learned.schema:
        return table.digest
    columns = [] if learned.schema.plain else [[column.name, column.levels] for column in learned.schema]
    return hashlib.sha256(json.dumps([table.digest, columns]).encode()).hexdigest()


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
    for option, value in list_given(encoding):
        raise InputError(
            f"{option}={value} has no effect: all columns are numbers without gaps, and are taken as they "
            "are; leave it out"
        )
    return task


def list_given(encoding: Encoding) -> Iterator[tuple[str, Any]]:
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


def _check_columns(study: Study, task: Task) -> None:
    """Raise InputError if a learner selects columns that are not there, or encodes them itself in vain."""
    found = _selects_columns(study, task)
    if not any(found) or task.schema.plain:
        return
    for option, value in list_given(study.encoding):
        if all(found):
            raise InputError(
                f"{option}={value} has no effect: the learner selects columns by name, and is given them as "
                "they are; leave it out"
            )


def _selects_columns(study: Study, task: Task) -> list[bool]:
    return [learner.on_columns(task.schema) is not None for learner in study.learner.by_label.values()]


def _check_kind(study: Study, task: Task) -> None:
    if task.has_numbers:
        assert study.certification is not None
        return check_numbers(study.learner.by_label, study.criterion, study.certification, task)
    target = f"{task.target!r} has {task.n_classes} classes ({some(task.classes)})"
    for slot, kinds in KINDS.items():
        part = getattr(study, slot)
        several = part.by_label if slot == "learner" else {part.name: part}
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
    return None


def _check_weights(study: Study, task: Task) -> None:
    if not task.weighting.given:
        return
    for label, learner in study.learner.by_label.items():
        if not learner.weighs_rows:
            raise InputError(
                f"learner {label} does not use weights of rows: choose from "
                f"{', '.join(_list_weighing(task.kind))}, or leave out the weights"
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


def _check_balance(study: Study, task: Task) -> None:
    if study.balancing is Balance.NONE:
        return
    if task.has_numbers:
        raise InputError(f"balance={study.balance} is for classes, and the target has numbers: leave it out")
    for label, learner in study.learner.by_label.items():
        if getattr(learner, WEIGHTS, None) == BALANCED:
            raise InputError(
                f"{WEIGHTS}={BALANCED} of {label} has no effect on classes of equal size, which "
                f"balance={study.balance} makes: leave one of them out"
            )


def _check_for_groups(criterion: Criterion, certification: Certification) -> None:
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


def _with_folds(study: Study, n: int, unit: str) -> Study:
    """Return the canonical form of a study for n learning rows, or groups of them."""
    check_folds("report_k", study.report_k, n, unit)
    assert isinstance(study.resampling, CertifiableFolds)
    settings = sum(study.learner.space.lengths)
    resampling = study.resampling.choose_k(n, settings, study.delta).canonical(n, unit)
    for k in study.report_k:
        if resampling.k is not None and k not in resampling.k:
            asked = ",".join(map(str, resampling.k))
            raise InputError(f"report_k={k} is not among k={asked}: add it to k to have it computed")
    return replace(study, resampling=resampling)


def _check_simplest(study: Study, task: Task) -> None:
    if study.choose in ("", BEST_MEAN):
        return
    resampling = study.resampling
    if study.choose == ONE_SE and (resampling.combined or resampling.count_splits(task.n_units) < 2):
        raise InputError(
            f"choose={ONE_SE} needs the standard error of several splits, and {resampling} has none: choose "
            "best or tolerance:2%, or a resampling such as kfold:10"
        )
    for label, learner in study.learner.by_label.items():
        settings = [setting for path in learner.space.paths for setting in path]
        if len(settings) > 1 and not list_simplifying(settings):
            raise InputError(
                f"choose={study.choose} keeps the simplest of the settings that are about as good, and of "
                f"{label} it is not known which value of {', '.join(settings[0])} is simpler: choose best"
            )


def _check_outputs(study: Study, score: Score) -> None:
    for label, learner in study.learner.by_label.items():
        if score.needs == Output.PROBABILITY and score.needs not in learner.outputs:
            raise InputError(
                f"measure={score.name} needs probabilities, which learner={label} does not give: "
                "leave one of them out"
            )
        if score.needs == Output.RANK and score.needs not in learner.outputs:
            raise InputError(
                f"measure={score.name} needs scores that order rows, which {label} does not give"
            )
        if score.needs == Output.RANKS and score.needs not in learner.outputs:
            raise InputError(
                f"measure={score.name} needs a score for each of several classes, which learner={label} does "
                "not give: leave one of them out"
            )


def _check_no_information(study: Study, scores: Sequence[Score], kind: Kind) -> None:
    """Raise InputError if an estimate needs the values of rows, and a score is no mean of them."""
    if not study.resampling.corrected:
        return
    if unfit := [score.name for score in scores if score.rows is None]:
        raise InputError(
            f"resampling={study.resampling} needs measures that are means over rows, and {unfit[0]} is none: "
            f"choose from {', '.join(list_row_means(kind))}, or choose bootstrap632"
        )


def _check_permutations(study: Study, task: Task) -> None:
    if not (study.permutations and task.grouped):
        return
    rows = np.lexsort((task.y, task.groups))
    same_group, same_target = (np.diff(values[rows]) == 0 for values in (task.groups, task.y))
    if np.all(same_target[same_group]):
        raise InputError(
            f"permutations={study.permutations} permutes targets within groups, and each group has a single "
            "one: leave it out"
        )


def check_interval_on(study: Study, task: Task) -> None:
    """Raise InputError unless the splits of a task have an approximate interval."""
    if study.interval and INTERVALS[study.interval].scores and task.grouped:
        raise InputError(
            f"interval={study.interval} takes rows as independent, and rows of a group are not: leave groups "
            "or the interval out, or choose interval=corrected_t"
        )
    if study.interval != CORRECTED_T:
        return
    if study.resampling.count_splits(task.n_units) < 2:
        raise InputError(
            f"interval={study.interval} requires two splits or more, and {study.resampling} has one: raise it"
        )


def _check_strata(study: Study, task: Task) -> None:
    if not study.resampling.stratify:
        return
    if task.grouped and not study.resampling.stratifies_groups:
        raise InputError(
            f"stratify keeps groups whole in kfold and repeated_kfold, not in {study.resampling.name}: "
            "choose one of these, or leave out stratify or the groups"
        )
    if task.kind is Kind.REGRESSION:
        raise InputError("stratify is for classes, and the target has numbers: leave it out")
