"""Compare a run with another one, or with somebody else's predictions, on rows that neither learned from.

The rule of each run is the one that ``ckcv predict`` uses; where it draws members, by the seed of the study,
which was fixed before the rows, so that the same command gives the same answer. Nothing is executed from a
folder that prediction does not execute.
"""

import hashlib
import json
from dataclasses import replace
from os import PathLike
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.bounds.paired import expect_units, judge_differences
from ckcv_ray.core.draws import JUDGED, Draws
from ckcv_ray.core.measures import average_by_group
from ckcv_ray.errors import InputError, pluralize, write_option
from ckcv_ray.runs.comparison import Comparison, Question, Side
from ckcv_ray.runs.load import load
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.uses import UseCounter
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.uses import make_use
from ckcv_ray.tables.columns.schema import NewRows
from ckcv_ray.tables.grouping import Grouping
from ckcv_ray.tables.repeats import count_repeated, find_known
from ckcv_ray.tables.roles import check_column
from ckcv_ray.tables.target import class_numbers, rows_with_label


def compare(
    folder: str | PathLike[str],
    columns: pa.Table,
    reference: str | PathLike[str] | None = None,
    predictions: str | None = None,
    question: Question | None = None,
    ledger: str | PathLike[str] | None = None,
    thousands: str = "",
) -> Comparison:
    """Compare a run with another one, or with a column of predictions, on judged rows, and count this use.

    Args:
        folder: run folder of the run.
        columns: the judged rows: the features and the target of the runs.
        reference: run folder of the other run; None if ``predictions`` are compared.
        predictions: column of somebody else's predictions.
        question: what is asked.
        ledger: file in which uses are counted; None for the folders of the runs.
        thousands: mark between thousands in the rows, if it was said.

    Raises:
        InputError: the rows do not suit a run, all of them are known to one, or their uses are spent.
        StoreError: a folder holds no finished run, or is damaged.
    """
    question = question or Question()
    if (reference is None) == (predictions is None):
        raise InputError("give either the folder of another run, or predictions=COLUMN: one of the two")
    results = [load(place) for place in (folder, reference) if place is not None]
    folders = [RunFolder(place) for place in (folder, reference) if place is not None]
    _check_results(results, folders, question)
    judged = _read_judged(results, folders, columns, thousands)
    sides = [
        _predict(result, str(place), rows, judged)
        for result, place, rows in zip(results, folders, judged.rows, strict=True)
    ]
    if predictions is not None:
        sides.append(_take_predictions(results[0], predictions, judged))
    run, against = sides
    known = _check_known(run, against)
    losses = _average_by_unit(sides, judged.columns, question)
    order = Draws(results[0].study.seed).at(*JUDGED).make_generator().permutation(len(losses[0]))
    differences = (losses[0] - losses[1])[order]
    use = make_use(
        judged.digests, _digest_answer(sides, question), f"{run.name}, {against.name}", question.uses
    )
    counted = UseCounter(folders, ledger).count(use, question.delta)
    asked = differences, question.shared_delta, question.no_worse, question.group is not None
    verdict = judge_differences(*asked)
    return Comparison(
        question=question,
        run=run,
        reference=against,
        errors=(float(losses[0].mean()), float(losses[1].mean())),
        units=len(differences),
        verdict=verdict,
        expected=None if verdict.better or verdict.worse else expect_units(*asked),
        counted=counted,
        cautions=(*judged.cautions, *known, *_describe_repeats(results[0], judged.rows[0])),
    )


class JudgedRows(NamedTuple):
    """Judged rows that every classifier can classify.

    Attributes:
        columns: as they were read.
        rows: as numbers, for each run.
        digests: SHA-256 of the rows with labels, in any order: of all columns, and of those that each run has
            learned from, and its target.
        cautions: how many rows were left out.
    """

    columns: pa.Table
    rows: list[NDArray[np.float64]]
    digests: list[str]
    cautions: list[str]


def _check_results(results: list[Result], folders: list[RunFolder], question: Question) -> None:
    """Raise InputError unless runs can be compared: of classes, of one target, and not the same."""
    first = results[0].task
    for result, folder in zip(results, folders, strict=True):
        if result.task.has_numbers:
            raise InputError(f"{str(folder)!r} predicts numbers: what is compared are classes")
        if result.task.target != first.target:
            raise InputError(
                f"{str(folders[0])!r} predicts {first.target!r} and {str(folder)!r} {result.task.target!r}: "
                "compare runs that predict the same column"
            )
        if question.group is None and (group := result.task.group) is not None:
            raise InputError(
                f"{str(folder)!r} was made with groups of related rows, by {group!r}: say which of the "
                f"judged rows belong together with {write_option('group', group)}"
            )
    if len(folders) == 2 and folders[0].files.is_same(folders[1].files):
        raise InputError(f"{str(folders[0])!r} is both runs: there is nothing to compare")


def _read_judged(
    results: list[Result], folders: list[RunFolder], columns: pa.Table, thousands: str
) -> JudgedRows:
    """Return the rows that have a label and can be classified by every run.

    Raises:
        InputError: there are none, or a column is missing.
    """
    task = results[0].task
    check_column(task.target, columns.column_names, " with the labels")
    labelled = task.find_labelled(columns)
    found: list[NewRows] = []
    for result, folder in zip(results, folders, strict=True):
        try:
            found.append(result.task.read(columns, thousands))
        except InputError as error:
            raise InputError(f"for {str(folder)!r}: {error}") from None
    bad = np.any([rows.bad for rows in found], axis=0) & labelled
    usable = labelled & ~bad
    cautions = []
    if not labelled.all():
        cautions.append(f"{pluralize(int(np.sum(~labelled)), 'row')} without a label left out")
    if bad.any():
        reason = next(rows.reason for rows in found if rows.reason)
        cautions.append(f"{pluralize(int(bad.sum()), 'row')} that cannot be classified left out: {reason}")
    if not usable.any():
        raise InputError(f"there is no row to compare on: {'; '.join(cautions) or 'the table is empty'}")
    names = [columns.column_names, *([*result.task.features, task.target] for result in results)]
    digests = [_digest_rows(columns.filter(pa.array(labelled)), sorted(some)) for some in names]
    return JudgedRows(columns.filter(pa.array(usable)), [rows.X[usable] for rows in found], digests, cautions)


def _digest_rows(columns: pa.Table, names: list[str]) -> str:
    """Return the SHA-256 of some columns of a table, of those that it has, whatever the order of its rows."""
    cells = [columns[name].to_pylist() for name in names if name in columns.column_names]
    texts = (json.dumps(row, default=str) for row in zip(*cells, strict=True))
    rows = sorted(hashlib.sha256(text.encode()).digest() for text in texts)
    return hashlib.sha256(json.dumps(names).encode() + b"".join(rows)).hexdigest()


def _digest_answer(sides: list[Side], question: Question) -> str:
    """Return the SHA-256 of what decides an answer."""
    asked = [question.no_worse, question.group, question.delta, [list(map(str, s.predicted)) for s in sides]]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _predict(result: Result, name: str, rows: NDArray[np.float64], judged: JudgedRows) -> Side:
    """Return a run on the judged rows, by the rule that ``ckcv predict`` uses."""
    rule = result.rule()
    if rule.name == "random":
        rule = replace(rule, seed=result.study.seed)
    task = result.problem.every_row if rule.name == "full" else result.task
    try:
        y = class_numbers(judged.columns[task.target], task.classes, task.target)
    except InputError as error:
        raise InputError(f"for {name!r}: {error}") from None
    predicted = result.classify(rows, rule).label
    by = f"by {rule.classifier(each='row')}"
    return Side(name, by, predicted != y, task.labelled(predicted), find_known(rows, task))


def _take_predictions(result: Result, column: str, judged: JudgedRows) -> Side:
    """Return somebody else's predictions on the judged rows.

    Raises:
        InputError: there is no such column, it is that of the labels, or a row has no prediction.
    """
    task = result.task
    check_column(column, judged.columns.column_names, " with predictions")
    if column == task.target:
        raise InputError(f"predictions={column!r} is the column of the true labels: name another")
    cells = judged.columns[column]
    if lacking := int(np.sum(~rows_with_label(cells, column))):
        raise InputError(
            f"predictions={column!r} has no prediction in {lacking:,} of {len(cells):,} rows: fill them, or "
            "leave these rows out for a reason that does not depend on their labels"
        )
    predicted = class_numbers(cells, task.classes, column)
    y = class_numbers(judged.columns[task.target], task.classes, task.target)
    known = np.zeros(len(cells), dtype=bool)
    return Side(
        f"column {column!r}", "from the judged table", predicted != y, task.labelled(predicted), known
    )


def _check_known(run: Side, reference: Side) -> list[str]:
    """Return a sentence if a run has learned from rows that equal some of the judged ones.

    Raises:
        InputError: all of them are such rows.
    """
    known = run.known | reference.known
    if known.all():
        raise InputError(
            "every judged row equals one that a run has learned from: they show nothing about new rows; "
            "judge rows that neither has learned from"
        )
    if not known.any():
        return []
    return [
        f"caution: {pluralize(int(known.sum()), 'row')} of {len(known):,} equal rows that a run has learned "
        "from: if they are the same examples, nothing is proven"
    ]


def _describe_repeats(result: Result, rows: NDArray[np.float64]) -> list[str]:
    repeated = count_repeated(rows, result.task)
    if not repeated:
        return []
    return [
        f"caution: {repeated:,} judged rows equal another one: if they are the same example, it counts once"
    ]


def _average_by_unit(sides: list[Side], columns: pa.Table, question: Question) -> list[NDArray[np.float64]]:
    """Return the losses of both sides, each (units,): of a row 0 or 1, of a group the mean of its rows.

    Raises:
        InputError: there is no such column, or it cannot be read as groups.
    """
    if question.group is None:
        return [side.wrong.astype(np.float64) for side in sides]
    check_column(question.group, columns.column_names, " for the groups")
    groups: Index = Grouping.read(columns, question.group).numbers
    return [average_by_group(side.wrong, groups) for side in sides]
