"""Files of labels and predictions made by somebody else: what their columns are for, checked once.

Nothing is learned from them, so a file may have few rows, and only one class.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ckcv_ray.core.quantities import parse_subgroup
from ckcv_ray.errors import InputError, Label, Mask, Numbers, Values, write_option
from ckcv_ray.tables import roles
from ckcv_ray.tables.columns import (
    NOTHING_ASKED,
    Cells,
    Schema,
    canonical_text,
    check_column,
    read_numbers,
    refuse_gaps,
)
from ckcv_ray.tables.task import Task, compute_salt, hash_telling, join_copies, mix

MIN_GROUPS = 2
ROWS_ALIKE = 10  # per combination of values in a file: if more, rows are equal by chance
ANOTHER = "(another class)"  # a class that no row has and that is never predicted
MAX_LABELS = 20  # more classes than this, all numbers, are numbers to predict
PROBABILITY = re.compile(r"[01]?[.,][0-9]+(e-[0-9]+)?")


class PredictionColumns(NamedTuple):
    """What each column of a file is.

    Attributes:
        label: the true label.
        prediction: what was predicted; None for a score alone.
        score: for two classes, larger for rows that are more likely positive; None without one.
        against: other predictions of the same rows; None without any.
        group, weight: as in ``tables.task.Roles``.
        subgroups: columns whose groups of rows are claimed.
    """

    label: str
    prediction: str | None = None
    score: str | None = None
    against: str | None = None
    group: str | Sequence[str] | None = None
    weight: str | None = None
    subgroups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Predictions:
    """Rows with what was predicted for them.

    Attributes:
        task: the rows, with the columns of subgroups.
        columns: which columns are what.
        predicted: class numbers, -1 for what is not a class, or numbers, (n,); None if only scores are known.
        score: larger for rows of class 1, (n,); None without scores.
        against: other predictions, as ``predicted``; None without any.
        empty: rows without a label, which count as wrong; their class number is 0, (n,).
        strange: labels that were predicted but that no row has.
        repeats: rows that equal another one (of another group) in every column that does not number the rows;
            0 where many are equal by chance.
        cut_off: the score from which on rows were predicted positive, if ``predicted`` was made so.
    """

    task: Task
    columns: PredictionColumns
    predicted: Numbers | None
    score: Values | None
    against: Numbers | None
    empty: Mask
    strange: tuple[Label, ...] = ()
    repeats: int = 0
    cut_off: float | None = None


def read_predictions(
    table: pa.Table, columns: PredictionColumns, numbers: bool, empty_wrong: bool = False, source: str = ""
) -> Predictions:
    """Check a file of labels and predictions.

    Args:
        table: the file.
        columns: what each of its columns is.
        numbers: whether numbers are predicted rather than classes.
        empty_wrong: whether rows without a label, or a prediction, count as wrong instead of being refused.
        source: where the table came from, for display.

    Raises:
        InputError: a column is missing, has two purposes, or holds what does not suit its purpose.
    """
    table = join_copies(table)
    taken = dict[str, list[str]]()
    for purpose in ("label", "prediction", "score", "against", "weight"):
        if (name := getattr(columns, purpose)) is not None:
            roles.check_role(purpose, name, table.column_names, taken)
            taken[purpose] = [name]
    divided = [parse_subgroup(subgroups).column for subgroups in columns.subgroups]
    for name in divided:
        check_column(name, table.column_names, " for --subgroups")
    if not table.num_rows:
        raise InputError("the table has no rows: there is nothing to judge")
    groups = roles.find_groups(columns.group, table.column_names)
    salt = compute_salt(table, groups)
    units, weighting = roles.Units.read(table, groups), roles.Weighting.read(table, columns.weight)
    if not units.independent and units.n_units < MIN_GROUPS:
        raise InputError(f"column {units.name!r} has one group: at least {MIN_GROUPS} are needed")
    target, y, empty = _read_labels(table, columns, numbers, empty_wrong)
    schema, X = Schema.learn(table, divided, NOTHING_ASKED)
    task = Task(X, y, target, schema, units, source, weighting=weighting, salt=salt)
    predicted, strange = _read_predicted(table, columns.prediction, target, empty_wrong)
    against, others = _read_predicted(table, columns.against, target, empty_wrong)
    score = None
    if columns.score is not None:
        cells = Cells(table, columns.score)
        score = read_numbers(cells, columns.score, "the score", ": name a column of numbers")
    strange += [label for label in others if label not in strange]
    total, ways, n, repeats = np.zeros(table.num_rows, np.uint64), 1, table.num_rows, 0
    for name, hashes in hash_telling(table, groups):
        distinct = len(np.unique(hashes))
        if distinct < n or not roles.is_name_of_groups(name):
            total += hashes
            ways *= 1 if name in (columns.label, columns.prediction, columns.against) else distinct
    if ways > 1 and n <= ROWS_ALIKE * ways:  # else rows are equal by chance, as columns have few values
        by_unit = total + mix(units.row_units.astype(np.uint64))
        _, once = np.unique(by_unit, return_index=True)  # in each unit
        items, counts = np.unique(total[once], return_counts=True)
        repeats = int(np.sum(np.isin(total, items[counts > 1])))
    return Predictions(task, columns, predicted, score, against, empty, tuple(strange), repeats)


def _read_labels(
    table: pa.Table, columns: PredictionColumns, numbers: bool, empty_wrong: bool
) -> tuple[roles.Target, Numbers, Mask]:
    """Return the target, the class number or number of each row, and which rows have no label."""
    name = columns.label
    if numbers:
        return roles.Target(name), roles.Target(name).read(table), np.zeros(table.num_rows, bool)
    empty = _find_empty(table, name, empty_wrong)
    known = table.filter(pa.array(~empty))
    labels = roles.read_labels(known, name)
    if columns.prediction is not None and len(labels.unique()) == 1:  # other classes may be predicted
        predicted = known[columns.prediction]
        predicted = predicted.filter(
            pa.array(roles.find_filled(predicted, columns.prediction, roles.ClassTarget.gaps))
        )
        texts = [*labels.cast(pa.string()).chunks, *predicted.cast(pa.string()).chunks]
        alone = len(pa.chunked_array(texts).unique()) == 1
        labels = pa.chunked_array([*texts, *([pa.array([ANOTHER])] if alone else [])])
    classes, known_y = roles.encode_classes(labels, name)
    if len(classes) > MAX_LABELS and all(canonical_text(str(each)).startswith("number ") for each in classes):
        raise InputError(
            f"column {name!r} holds {len(classes):,} different numbers: to predict numbers, name the largest "
            "error that counts with --clip, such as --clip 50"
        )
    y = np.zeros(table.num_rows, np.int32)
    y[~empty] = known_y[: known.num_rows]
    return roles.ClassTarget(name, classes), y, empty


def _read_predicted(
    table: pa.Table, name: str | None, target: roles.Target, empty_wrong: bool
) -> tuple[Numbers | None, list[Label]]:
    """Return what a column predicts, and the labels in it that are not classes; None without a column."""
    if name is None:
        return None, []
    if not target.classes:
        return read_numbers(Cells(table, name), name, "the prediction", ": name a column of numbers"), []
    empty = _find_empty(table, name, empty_wrong)
    numbers, strange = roles.match_labels(table[name], name, target.classes)
    if strange and all(map(PROBABILITY.fullmatch, map(str, strange))):
        raise InputError(
            f"column {name!r} holds probabilities such as {strange[0]}, and no labels: name it as the score, "
            f"{write_option('score', name)} --cut-off 0.5"
        )
    return np.where(empty, -1, numbers), strange


def _find_empty(table: pa.Table, name: str, empty_wrong: bool) -> Mask:
    """Return which cells of a column are empty, if these may count as wrong."""
    empty = ~roles.find_filled(table[name], name, roles.ClassTarget.gaps)
    if not empty_wrong:
        mend = (
            "fill them; leave these rows out, if that was decided before any figure was seen; or count them "
            "as wrong with --empty-wrong"
        )
        refuse_gaps(empty, f"column {name!r}", mend)
    return empty
