"""Compare a run with another run, or with somebody else's predictions, on rows that neither learned from.

Each run classifies by the rule that ``ckcv predict`` uses. A rule that draws members draws with the study's
seed, which was fixed before the rows, so that the same command gives the same answer. Nothing in a folder is
executed that prediction does not execute.

Uses of judged rows are counted in the folders of the runs that are compared, or in a separate file.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.quantity import name_loss_bound
from ckcv_ray.core.bounds import paired
from ckcv_ray.core.bounds.binomial import check_delta
from ckcv_ray.core.draws import JUDGED, Draws
from ckcv_ray.core.measures import average_by_group
from ckcv_ray.errors import (
    Classes,
    InputError,
    Rows,
    ceil_percent,
    floor_percent,
    format_level,
    format_percent,
    inner_share,
    integer,
    pluralize,
    write_option,
)
from ckcv_ray.runs.finished import load
from ckcv_ray.runs.result import Result
from ckcv_ray.storage import pieces
from ckcv_ray.storage.files import Files
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.tables.columns import NewRows, check_column, declare_cells
from ckcv_ray.tables.questions import count_repeated, find_known
from ckcv_ray.tables.roles import Units, find_groups, name_groups
from ckcv_ray.tables.task import Task, compute_salt, hash_columns, join_copies, mix


class Counted(NamedTuple):
    """A use of judged rows, as counted."""

    use: pieces.Use
    number: int  # of this use among all uses of the same rows, from 1
    repeated: bool  # whether the same comparison was made before: that counts as the same use
    places: tuple[str, ...]  # files that record it
    unwritable: tuple[str, ...]  # folders that cannot be written

    def describe(self) -> list[str]:
        """Return sentences that say which use it is, and where it is counted."""
        places = [f"counted in {' and '.join(self.places)}"] if self.places else []
        if self.unwritable:
            where = " and ".join(self.unwritable)
            places.append(f"not counted in {where}, which cannot be written: name a file with --ledger")
        shares, again = self.use.shares, ", the same comparison as before" if self.repeated else ""
        shown = f"these rows (SHA-256 {self.use.tables[0][:12]}){again}, {', '.join(places)}"
        if shares == 1:
            return [f"the only use of {shown}"]
        return [
            f"use {self.number} of {shares} of {shown}",
            f"all {shares} together are covered if what is compared, and how many rows were added, was not "
            "chosen by what earlier uses showed of these rows",
        ]


def _count_use(use: pieces.Use, runs: list[Files], ledger: str | PathLike[str] | None) -> Counted:
    """Count a use in the runs' folders, or in a separate file, and refuse if others count there meanwhile."""
    places = [(files, pieces.USES) for files in runs]
    if ledger is not None:
        places.append(pieces.locate_elsewhere("ledger", ledger, runs, pieces.USES))
        places[-1][0].check_writable()
    read = [(place, pieces.read_uses(*place)) for place in places]
    linked = pieces.list_linked(use, dict.fromkeys(earlier for _, found in read for earlier in found))
    same = [position for position, earlier in enumerate(linked) if use.repeats(earlier)]
    number = same[0] + 1 if same else len(linked) + 1
    others = [earlier for earlier in linked if (earlier.shares, earlier.delta) != (use.shares, use.delta)]
    if number > use.shares or others:
        fixed = (others or linked)[0]
        counted = sum((one.shares, one.delta) == (fixed.shares, fixed.delta) for one in linked)
        raise InputError(
            f"some of these rows, or of rows linked with them, were judged on {fixed.date[:10]}, with a "
            f"delta of {fixed.delta:g} shared among {pluralize(fixed.shares, 'use')}, {counted} of them "
            "counted: give that --delta and --uses while a share is left; else judge new rows, and give the "
            "number of uses at the first one"
        )
    counting, unwritable = read[len(runs) :], list[str]()
    for place, found in read if ledger is None else ():
        try:
            place[0].check_writable()
            counting.append((place, found))
        except InputError:  # somebody else's folder, or a read-only disk
            unwritable.append(str(place[0]))
    if use.shares > 1 and not counting:
        raise InputError(
            f"uses={use.shares}: uses cannot be counted in {' or '.join(unwritable)}, which cannot be "
            "written: name a file with --ledger"
        )
    for (files, name), found in counting:
        pieces.append_use(files, use, name, found)
    written = tuple(str(files.path(name)) for (files, name), _ in counting)
    return Counted(use, number, bool(same), written, tuple(unwritable))


BETTER, NOT_WORSE, WORSE, OPEN = "better", "not worse", "worse", "not yet proven"


@dataclass(frozen=True)
class Question:
    """The question asked about two classifiers.

    Attributes:
        no_worse: how much more often the run may err, such as 0.01; None if it has to be better.
        group: column that says which rows belong together, or several, as for ``read_task``; None if rows are
            independent.
        delta: probability that an answer is proven but false, over all the uses that share it.
        uses: how many uses of the judged rows share delta.
    """

    no_worse: float | None = None
    group: str | Sequence[str] | None = None
    delta: float = 0.05
    uses: int = 1

    def __post_init__(self) -> None:
        if self.no_worse is not None:
            inner_share("no_worse", self.no_worse)
        check_delta(self.delta)
        integer("uses", self.uses, least=1, most=pieces.MAX_SHARES)

    @property
    def shared_delta(self) -> float:
        """One use's share of delta."""
        return self.delta / self.uses


class Side(NamedTuple):
    """One of the two classifiers on the judged rows."""

    name: str  # folder, or column, for display
    by: str  # a phrase that says what classifies
    wrong: NDArray[np.bool_]  # which rows are wrong, (rows,)
    predicted: NDArray[np.generic]  # the labels it predicts, (rows,)
    known: NDArray[np.bool_]  # which rows equal one it has learned from, label aside, (rows,)
    discrete: bool = False  # whether rows of different examples are often equal in its columns


@dataclass(frozen=True)
class Comparison:
    """What is measured and proven of a run and another classifier."""

    question: Question
    run: Side
    reference: Side
    errors: tuple[float, float]  # shares of wrong rows; with groups, means of the groups' shares
    units: int  # rows, or groups
    verdict: paired.Judgement  # what is proven
    expected: int | None  # about how many units should prove what is asked; None if no number is expected to
    counted: Counted  # this use of the rows
    left_out: int  # rows not counted, because a run has learned from their features
    cautions: tuple[str, ...]  # what may void the proof, and which rows were left out

    @property
    def answer(self) -> str:
        """One of "better", "not worse", "worse" and "not yet proven"."""
        if self.verdict.better:
            return BETTER if self.question.no_worse is None else NOT_WORSE
        return WORSE if self.verdict.worse else OPEN

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows only the other classifier gets wrong, and how many only the run does."""
        first, second = self.run.wrong, self.reference.wrong
        return int(np.sum(second & ~first)), int(np.sum(first & ~second))

    @property
    def unit(self) -> str:
        """The word for a unit."""
        return "row" if self.question.group is None else "group"

    def describe(self) -> list[str]:
        """Return the comparison in a few lines."""
        rows, (only_other, only_run) = len(self.run.wrong), self.counts
        low, high, interval = self.verdict.low, self.verdict.high, ""
        if low is not None and high is not None:
            limits = f"{floor_percent(low)} and {ceil_percent(high)}"
            interval = f"; the difference of the errors is between {limits} of the rows"
        mean = "" if self.question.group is None else f", mean over {pluralize(self.units, 'group')}"
        return [
            *(
                f"{side.name}: error {format_percent(error)}{mean} ({int(side.wrong.sum()):,} of {rows:,} "
                f"rows wrong), {side.by}"
                for side, error in zip((self.run, self.reference), self.errors, strict=True)
            ),
            f"of {pluralize(rows, 'row')}, {only_other:,} are misclassified by {self.reference.name} alone, "
            f"and {only_run:,} by {self.run.name} alone{interval}",
            self.state(),
            *self.counted.describe(),
            *self.cautions,
        ]

    def state(self) -> str:
        """Return what is proven in one sentence."""
        level = format_level(self.question.shared_delta / 2)
        methods = {
            paired.SIGN: "exact sign test",
            paired.COUNTS: "Clopper-Pearson for both counts",
            paired.BETTING: name_loss_bound(self.units, self.unit),
        }
        how = f"with probability at least {level} over the judged rows ({methods[self.verdict.method]})"
        if self.answer == WORSE:
            return f"proven worse: {self._claim('more often', 'more than')}, {how}"
        claim = self._claim("less often", "at most")
        if self.answer != OPEN:
            return f"proven {self.answer}: {claim}, {how}"
        outlook = (
            f"about {self.expected:,} new {self.unit}s, like these but none of them, are expected to prove it"
            if self.expected is not None
            else f"as measured, no number of {self.unit}s up to {paired.MAX_EXPECTED:,} is expected to prove "
            "it"
        )
        return f"not yet proven: that {claim}; {outlook}"

    def to_json(self) -> dict[str, object]:
        """Return the comparison as JSON values; what is not known is null."""
        counted, (only_other, only_run) = self.counted, self.counts
        sides = {"run": self.run, "other": self.reference}
        return {
            "answer": self.answer,
            "statement": self.state(),
            **{
                name: {"name": side.name, "by": side.by, "error": error, "wrong": int(side.wrong.sum())}
                for (name, side), error in zip(sides.items(), self.errors, strict=True)
            },
            "rows": len(self.run.wrong),
            "rows_left_out": self.left_out,
            "groups": self.units if self.question.group is not None else None,
            "only_other_wrong": only_other,
            "only_run_wrong": only_run,
            "difference": self.errors[0] - self.errors[1],
            "low": self.verdict.low,
            "high": self.verdict.high,
            "method": self.verdict.method,
            "no_worse": self.question.no_worse,
            "delta": self.question.delta,
            "delta_of_each_statement": self.question.shared_delta / 2,
            f"expected_{self.unit}s": self.expected,
            "use": {
                "tables": list(counted.use.tables),
                "number": counted.number,
                "repeated": counted.repeated,
                "shares": counted.use.shares,
                "counted_in": list(counted.places),
                "not_counted_in": list(counted.unwritable),
            },
            "cautions": list(self.cautions),
        }

    def _claim(self, compared: str, limited: str) -> str:
        """Return a phrase that says how often the run errs, compared with the other or with a margin."""
        new = " whose features were not learned from" if self.left_out else ""
        what = f"a new row{new} is misclassified"
        if self.question.group is not None:
            what = f"the rows{new} of a new group are on average misclassified"
        if self.question.no_worse is None:
            return f"{what} {compared} by {self.run.name} than by {self.reference.name}"
        points = 100 * self.question.no_worse
        margin = f"{points:g} percentage point{'' if points == 1 else 's'}"
        return f"{what} {limited} {margin} more often by {self.run.name} than by {self.reference.name}"


MAX_KNOWN = 0.1  # share of judged rows that may equal rows a run has learned from


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
        thousands: thousands separator in the rows, if one was given.

    Raises:
        InputError: the rows do not suit a run, too many are known to one, or their uses are spent.
        StoreError: a folder holds no finished run, or is damaged.
    """
    question = question or Question()
    if (reference is None) == (predictions is None):
        raise InputError("give either the folder of another run, or predictions=COLUMN: one of the two")
    places = [place for place in (folder, reference) if place is not None]
    runs = [(str(RunFolder(place)), load(place)) for place in places]
    _check_runs(runs, question)
    judged = _read_judged(runs, declare_cells(join_copies(columns), thousands=thousands))
    groups = find_groups(question.group, judged.columns.column_names)
    (_, first), *_ = runs
    sides = _classify(runs, predictions, judged)
    known, (run, against), cautions = _leave_out_known(judged, sides)
    kept = judged.columns.filter(pa.array(~known))
    for name in groups:
        check_column(name, kept.column_names, " for the groups")
    units = Units.read(kept, groups)  # a row's loss is 0 or 1, a group's the mean of its rows
    losses = [average_by_group(side.wrong, units.row_units) for side in (run, against)]
    draws = Draws(first.study.seed, compute_salt(kept, groups)).at(*JUDGED)
    differences = (losses[0] - losses[1])[draws.make_generator().permutation(len(losses[0]))]
    answers = [list(map(str, side.predicted)) for side in (run, against)]
    answer = json.dumps([question.no_worse, name_groups(groups), question.delta, answers])
    digests = judged.tables, *judged.list_digests(sides, ~known), hashlib.sha256(answer.encode()).hexdigest()
    use = pieces.make_use(*digests, f"{run.name}, {against.name}", question.uses, question.delta)
    asked = differences, question.shared_delta, question.no_worse, question.group is not None
    verdict = paired.judge_differences(*asked)
    return Comparison(
        *(question, run, against),
        errors=(float(losses[0].mean()), float(losses[1].mean())),
        units=len(differences),
        verdict=verdict,
        expected=None if verdict.better or verdict.worse else paired.expect_units(*asked),
        counted=_count_use(use, [RunFolder(name).files for name, _ in runs], ledger),
        left_out=int(known.sum()),
        cautions=tuple(cautions),
    )


class JudgedRows(NamedTuple):
    """Judged rows that every classifier can classify."""

    columns: pa.Table  # as they were read
    rows: list[NDArray[np.float64]]  # as numbers, for each run
    task: Task  # of the first run
    # SHA-256 of the labelled rows, in any order: over all columns, and over those that each run has learned
    # from and its target
    tables: list[str]
    # digests of each row over the same columns but the label: one array (rows,) for each
    digests: list[NDArray[np.uint64]]
    cautions: list[str]  # how many rows were left out

    def list_digests(
        self, sides: list[Side], kept: NDArray[np.bool_]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the digests of the rows that are kept, by all columns, and by those that a run learned from.

        Columns in which rows are often equal give none.
        """
        (rows, *learned), nothing = [each[kept] for each in self.digests], np.empty(0, np.uint64)
        _, counts = np.unique(rows, return_counts=True)
        discrete = counts[counts > 1].sum() > pieces.MAX_TWINS * len(rows)
        telling = [each for each, side in zip(learned, sides, strict=False) if not side.discrete]
        return nothing if discrete else rows, np.concatenate([nothing, *telling])


def _check_runs(runs: list[tuple[str, Result]], question: Question) -> None:
    """Raise InputError unless runs can be compared: both of classes, of one target, and not one run."""
    (place, first), *others = runs
    for folder, result in runs:
        if not result.task.classes:
            raise InputError(f"{folder!r} predicts numbers: only classes are compared")
        if result.task.target.name != first.task.target.name:
            raise InputError(
                f"{place!r} predicts {first.task.target.name!r} and {folder!r} "
                f"{result.task.target.name!r}: compare runs that predict the same column"
            )
        if question.group is None and (group := result.task.units.name) is not None:
            raise InputError(
                f"{folder!r} was made with groups of related rows, by {group!r}: say which of the "
                f"judged rows belong together with {write_option('group', group)}"
            )
    if any(os.path.realpath(folder) == os.path.realpath(place) for folder, _ in others):
        raise InputError(f"{place!r} is both runs: there is nothing to compare")


def _read_judged(runs: list[tuple[str, Result]], columns: pa.Table) -> JudgedRows:
    """Return the rows that have a label and can be classified by every run."""
    task = runs[0][1].task
    labelled = task.find_labelled(columns)
    found: list[NewRows] = []
    for folder, result in runs:
        try:
            found.append(result.task.read(columns))
        except InputError as error:
            raise InputError(f"for {folder!r}: {error}") from None
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
    label = hashes.pop(task.target.name)
    totals = [sum(hashes.values(), 0 * label)]
    totals += [sum((hashes[name] for name in result.task.features), 0 * label) for _, result in runs]
    tables = [np.sort(mix(total + label)[labelled]).astype("<u8").tobytes() for total in totals]
    return JudgedRows(
        columns=task.keep_words(columns).filter(pa.array(usable)),
        rows=[rows.X[usable] for rows in found],
        task=task,
        tables=[hashlib.sha256(table).hexdigest() for table in tables],
        digests=[mix(total)[usable] for total in totals],
        cautions=cautions,
    )


def _classify(runs: list[tuple[str, Result]], predictions: str | None, judged: JudgedRows) -> list[Side]:
    """Return how runs judge the rows, each by the rule that ``ckcv predict`` uses, and how a column does."""
    sides = list[Side]()
    for (name, result), rows in zip(runs, judged.rows, strict=True):
        rule = result.rule()
        if rule.name == "random":
            rule = replace(rule, seed=result.study.seed)
        task = result.problem.every_row if rule.name == "full" else result.task
        try:
            y = task.target.read(judged.columns)
        except InputError as error:
            raise InputError(f"for {name!r}: {error}") from None
        predicted, known = rule.predict(result.models, rows).label, find_known(rows, task)
        by, discrete = f"by {rule.classifier()}", count_repeated(task.X, task) > pieces.MAX_TWINS * task.n
        sides.append(Side(name, by, predicted != y, task.labelled(predicted), known, discrete))
    if predictions is not None:
        task = runs[0][1].task
        if predictions == task.target.name:
            raise InputError(f"predictions={predictions!r} is the column of the true labels: name another")
        predicted, y = read_predicted(task, judged.columns, predictions), task.target.read(judged.columns)
        name, known = f"column {predictions!r}", np.zeros(len(y), dtype=bool)
        sides.append(Side(name, "from the judged table", predicted != y, task.labelled(predicted), known))
    return sides


def read_predicted(task: Task, table: pa.Table, column: str) -> Classes:
    """Return the classes that a column of a table predicts for its rows, (rows,).

    Raises:
        InputError: there is no such column, or a prediction is missing or is not one of the classes.
    """
    check_column(column, table.column_names, " with predictions")
    there = task.find_labelled(table, column)
    if lacking := int(np.sum(~there)):
        raise InputError(
            f"column {column!r} has no prediction in {lacking:,} of {len(there):,} labelled rows: fill them, "
            "or leave these rows out for a reason that does not depend on their labels"
        )
    return np.asarray(task.target.read(table, column), np.int32)


def _leave_out_known(
    judged: JudgedRows, sides: list[Side]
) -> tuple[NDArray[np.bool_], list[Side], list[str]]:
    """Return which rows do not count, (rows,), the sides on the others, and cautions about both.

    Rows do not count if a run has learned from their features.
    """
    known: NDArray[np.bool_] = np.any([side.known & (not side.discrete) for side in sides], axis=0)
    if known.mean() > MAX_KNOWN:
        raise InputError(
            f"{int(known.sum()):,} of {pluralize(len(known), 'judged row')} equal rows that a run has "
            "learned from: they show nothing about new rows; leave the learning rows out of the table, and "
            "judge rows that neither has learned from"
        )
    cautions, at = list(judged.cautions), ~known
    kept = [
        side._replace(wrong=side.wrong[at], predicted=side.predicted[at], known=side.known[at])
        for side in sides
    ]
    if known.any():
        cautions.append(
            f"{pluralize(int(known.sum()), 'row')} of {len(known):,} left out, whose features a run has "
            "learned from"
        )
    alike = np.any([side.known & side.discrete for side in kept], axis=0)
    if alike.any():
        cautions.append(
            f"CAUTION: {pluralize(int(alike.sum()), 'row')} of {len(alike):,} equal rows that a run has "
            "learned from, as rows of these columns often do: if they are the same examples, nothing is "
            "proven"
        )
    return known, kept, [*cautions, *caution_repeats(judged.rows[0][at], judged.task)]


def caution_repeats(X: Rows, task: Task) -> Iterator[str]:
    """Yield a caution if rows (rows, d) of a table are equal."""
    if repeated := count_repeated(X, task):
        yield (
            f"CAUTION: {repeated:,} of {pluralize(len(X), 'row')} equal another row of the table: if they "
            "have the same origin, they are not independent, and nothing said here holds"
        )
