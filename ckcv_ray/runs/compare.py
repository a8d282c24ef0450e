"""Compare a run with another one, or with somebody else's predictions, on rows that neither learned from.

The rule of each run is the one that ``ckcv predict`` uses; where it draws members, by the seed of the study,
which was fixed before the rows, so that the same command gives the same answer. Nothing is executed from a
folder that prediction does not execute.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
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
from ckcv_ray.storage.uses import MOST_TWINS, make_use
from ckcv_ray.tables.columns.schema import NewRows
from ckcv_ray.tables.grouping import Grouping
from ckcv_ray.tables.repeats import count_repeated, find_known
from ckcv_ray.tables.roles import check_column, find_groups, name_groups
from ckcv_ray.tables.salt import compute_salt, hash_columns, join_copies, mix
from ckcv_ray.tables.target import class_numbers, rows_with_label
from ckcv_ray.tables.task import Task

MOST_KNOWN = 0.1  # of the judged rows, that equal rows that a run has learned from


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
        InputError: the rows do not suit a run, too many are known to one, or their uses are spent.
        StoreError: a folder holds no finished run, or is damaged.
    """
    question = question or Question()
    if (reference is None) == (predictions is None):
        raise InputError("give either the folder of another run, or predictions=COLUMN: one of the two")
    results = [load(place) for place in (folder, reference) if place is not None]
    folders = [RunFolder(place) for place in (folder, reference) if place is not None]
    _check_results(results, folders, question)
    judged = _read_judged(results, folders, join_copies(columns), thousands)
    groups = find_groups(question.group, judged.columns.column_names)
    sides = [
        _predict(result, str(place), rows, judged)
        for result, place, rows in zip(results, folders, judged.rows, strict=True)
    ]
    if predictions is not None:
        sides.append(_take_predictions(results[0], predictions, judged))
    known = _find_learned(sides)
    judged, (run, against) = judged.select(~known), (side.select(~known) for side in sides)
    losses = _average_by_unit([run, against], judged.columns, groups)
    draws = Draws(results[0].study.seed, compute_salt(judged.columns, groups))
    order = draws.at(*JUDGED).make_generator().permutation(len(losses[0]))
    differences = (losses[0] - losses[1])[order]
    digests = judged.tables, *judged.list_digests(sides), _digest_answer([run, against], question, groups)
    use = make_use(*digests, f"{run.name}, {against.name}", question.uses, question.delta)
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
        counted=UseCounter(folders, ledger).count(use),
        left_out=int(known.sum()),
        cautions=(*judged.cautions, *_describe_known(known, [run, against]), *_describe_repeats(judged)),
    )


class JudgedRows(NamedTuple):
    """Judged rows that every classifier can classify."""

    columns: pa.Table  # as they were read
    rows: list[NDArray[np.float64]]  # as numbers, for each run
    task: Task  # of the first run
    # SHA-256 of the rows with labels, in any order: of all columns, and of those that each run has learned
    # from, and its target
    tables: list[str]
    # of each row, without its label, of the same columns: one array (rows,) for each
    digests: list[NDArray[np.uint64]]
    cautions: list[str]  # how many rows were left out

    def select(self, rows: NDArray[np.bool_]) -> "JudgedRows":
        """Return some of the rows."""
        return self._replace(
            columns=self.columns.filter(pa.array(rows)),
            rows=[X[rows] for X in self.rows],
            digests=[digests[rows] for digests in self.digests],
        )

    def list_digests(self, sides: list[Side]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the digests of the rows by all columns, and by those that a run has learned from.

        There are none by columns in which rows are often equal.
        """
        (rows, *learned), nothing = self.digests, np.empty(0, np.uint64)
        _, counts = np.unique(rows, return_counts=True)
        discrete = counts[counts > 1].sum() > MOST_TWINS * len(rows)
        telling = [each for each, side in zip(learned, sides, strict=False) if not side.discrete]
        return nothing if discrete else rows, np.concatenate([nothing, *telling])


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
    names = Counter(columns.column_names)
    hashes = hash_columns(columns, [name for name in names if names[name] == 1])
    label = hashes.pop(task.target)
    totals = [sum(hashes.values(), 0 * label)]
    totals += [sum((hashes[name] for name in result.task.features), 0 * label) for result in results]
    tables = [np.sort(mix(total + label)[labelled]).astype("<u8").tobytes() for total in totals]
    return JudgedRows(
        columns=task.take_gaps(columns).filter(pa.array(usable)),
        rows=[rows.X[usable] for rows in found],
        task=task,
        tables=[hashlib.sha256(table).hexdigest() for table in tables],
        digests=[mix(total)[usable] for total in totals],
        cautions=cautions,
    )


def _digest_answer(sides: list[Side], question: Question, by: tuple[str, ...]) -> str:
    predicted = [list(map(str, side.predicted)) for side in sides]
    asked = [question.no_worse, name_groups(by), question.delta, predicted]
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
    by, discrete = f"by {rule.classifier(each='row')}", count_repeated(task.X, task) > MOST_TWINS * task.n
    return Side(name, by, predicted != y, task.labelled(predicted), find_known(rows, task), discrete)


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
    if lacking := int(np.sum(~rows_with_label(cells, column, kept=task.provenance.keep_values))):
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


def _find_learned(sides: list[Side]) -> NDArray[np.bool_]:
    """Return which rows do not count, since a run has learned from their features, (rows,).

    Raises:
        InputError: they are more than ``MOST_KNOWN`` of the rows.
    """
    known: NDArray[np.bool_] = np.any([side.known & (not side.discrete) for side in sides], axis=0)
    if known.mean() > MOST_KNOWN:
        raise InputError(
            f"{int(known.sum()):,} of {pluralize(len(known), 'judged row')} equal rows that a run has "
            "learned from: they show nothing about new rows; leave the learning rows out of the table, and "
            "judge rows that neither has learned from"
        )
    return known


def _describe_known(left_out: NDArray[np.bool_], sides: list[Side]) -> Iterator[str]:
    if left_out.any():
        yield (
            f"{pluralize(int(left_out.sum()), 'row')} of {len(left_out):,} left out, whose features a run "
            "has learned from"
        )
    alike = np.any([side.known & side.discrete for side in sides], axis=0)
    if alike.any():
        yield (
            f"caution: {pluralize(int(alike.sum()), 'row')} of {len(alike):,} equal rows that a run has "
            "learned from, as rows of these columns often do: if they are the same examples, nothing is "
            "proven"
        )


def _describe_repeats(judged: JudgedRows) -> list[str]:
    repeated = count_repeated(judged.rows[0], judged.task)
    if not repeated:
        return []
    return [
        f"caution: {repeated:,} judged rows equal another one: if they are the same example, it counts once"
    ]


def _average_by_unit(sides: list[Side], columns: pa.Table, by: tuple[str, ...]) -> list[NDArray[np.float64]]:
    """Return the losses of both sides, each (units,): of a row 0 or 1, of a group the mean of its rows.

    Raises:
        InputError: there is no such column, or it cannot be read as groups.
    """
    if not by:
        return [side.wrong.astype(np.float64) for side in sides]
    for name in by:
        check_column(name, columns.column_names, " for the groups")
    groups: Index = Grouping.read(columns, by).numbers
    return [average_by_group(side.wrong, groups) for side in sides]
