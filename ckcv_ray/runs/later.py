"""Finished runs on labelled rows that came later: one is compared with another, or watched.

Nothing is fitted, and nothing in a folder is executed that prediction does not execute.

A run is compared with another run, or with somebody else's predictions, on rows that neither learned from.
Each run classifies by the rule that ``ckcv predict`` uses. A rule that draws members draws with the study's
seed, which was fixed before the rows, so that the same command gives the same answer. Uses of judged rows are
counted in the folders of the runs that are compared, or in a separate file.

A run is watched after deployment by a stream: live rows are appended with their labels, and it is said
whether what is certified still holds. Rows without a prediction are classified by the rule whose error is
certified; otherwise the predictions that were made before are taken as given. Each quantity watched, the
error and the error on each class, has a share of delta that is fixed before the stream. So with probability
1 - delta all limits of a stream hold, at all times; and the probability that an alarm is ever raised although
all that is certified still holds is at most delta.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import compress
from math import exp, fsum, log
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray import errors
from ckcv_ray.claims.quantity import name_loss_bound
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds import betting, paired
from ckcv_ray.core.bounds.betting import Prior
from ckcv_ray.core.bounds.binomial import check_delta
from ckcv_ray.core.draws import JUDGED, Draws
from ckcv_ray.core.measures import average_by_group
from ckcv_ray.errors import InputError, Limits, Rows, StoreError, ceil_percent, format_level, pluralize
from ckcv_ray.runs.finished import load, load_run
from ckcv_ray.runs.result import Certified, Result, find_error_claim
from ckcv_ray.storage import pieces
from ckcv_ray.storage.files import Files
from ckcv_ray.storage.folder import CERTIFICATE, RunFolder
from ckcv_ray.storage.pieces import STREAM, Header, LiveRow, Stream
from ckcv_ray.study.parts import Holdout
from ckcv_ray.tables.columns import Cells, NewRows, check_column, declare_cells, list_distinct
from ckcv_ray.tables.questions import count_repeated, find_known
from ckcv_ray.tables.roles import Units, find_groups, name_groups
from ckcv_ray.tables.task import Task, compute_salt, hash_columns, join_copies, mix, number_labelled

BETTER, NOT_WORSE, WORSE, OPEN = "better", "not worse", "worse", "not yet proven"
MAX_KNOWN = 0.1  # share of judged rows that may equal rows a run has learned from
HOLDS, UNKNOWN, ALARM, UNCERTIFIED = "holds", "unknown", "alarm", "not_certified"
Runs: TypeAlias = list[tuple[str, Result]]  # with their folders
LARGEST_LOG = 700.0  # exp of it is still a float
CONDITIONS = (
    "This holds if rows arrive independently of how they are classified, and if their labels do: labels "
    "that come sooner, or only, for rows that were wrong make the error look larger, and vice versa.",
    "Each batch, the rows of one call, must be a fair sample of the rows that are classified: its size was "
    "fixed before its labels were seen, or by a rule that takes rows in order of arrival. The order within a "
    "batch does not matter.",
    "The limits are about an error that does not change; the alarm allows for any change below what is "
    "certified.",
)


def _count_use(
    use: pieces.Use, runs: list[Files], ledger: str | PathLike[str] | None
) -> tuple[int, bool, tuple[str, ...], tuple[str, ...]]:
    """Count a use in the runs' folders, or in a separate file, and refuse if others count there meanwhile.

    Return ``number``, ``repeated``, ``places`` and ``unwritable`` of a ``Comparison``.
    """
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
        where = f"{' or '.join(unwritable)}, which cannot be written"
        raise InputError(f"uses={use.shares}: uses cannot be counted in {where}: name a file with --ledger")
    for (files, name), found in counting:
        pieces.append_use(files, use, name, found)
    written = tuple(str(files.path(name)) for (files, name), _ in counting)
    return number, bool(same), written, tuple(unwritable)


@dataclass(frozen=True)
class Question:
    """The question asked about two classifiers."""

    no_worse: float | None = None  # how much more often the run may err; None if it has to be better
    # the column that says which rows belong together, or several, as for ``read_task``; None if independent
    group: str | Sequence[str] | None = None
    delta: float = 0.05  # probability that an answer is proven but false, over all the uses that share it
    uses: int = 1  # how many uses of the judged rows share delta

    def __post_init__(self) -> None:
        if self.no_worse is not None:
            errors.inner_share("no_worse", self.no_worse)
        check_delta(self.delta)
        errors.integer("uses", self.uses, least=1, most=pieces.MAX_SHARES)


class Side(NamedTuple):
    """One of the two classifiers on the judged rows."""

    name: str  # folder, or column, for display
    by: str  # a phrase that says what classifies
    wrong: NDArray[np.bool_]  # which rows are wrong, (rows,)
    predicted: NDArray[np.generic]  # the labels it predicts, (rows,)


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
    left_out: int  # rows not counted, because a run has learned from their features
    cautions: tuple[str, ...]  # what may void the proof, and which rows were left out
    use: pieces.Use  # this use of the rows
    number: int  # of this use among all uses of the same rows, from 1
    repeated: bool  # whether the same comparison was made before: that counts as the same use
    places: tuple[str, ...]  # files that record it
    unwritable: tuple[str, ...]  # folders that cannot be written

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

    def describe(self) -> list[str]:
        """Return the comparison in a few lines."""
        rows, (only_other, only_run) = len(self.run.wrong), self.counts
        low, high, interval = self.verdict.low, self.verdict.high, ""
        if low is not None and high is not None:
            limits = f"{errors.floor_percent(low)} and {ceil_percent(high)}"
            interval = f"; the difference of the errors is between {limits} of the rows"
        mean = "" if self.question.group is None else f", mean over {pluralize(self.units, 'group')}"
        places = [f"counted in {' and '.join(self.places)}"] if self.places else []
        if self.unwritable:
            where = " and ".join(self.unwritable)
            places.append(f"not counted in {where}, which cannot be written: name a file with --ledger")
        shares, again = self.use.shares, ", the same comparison as before" if self.repeated else ""
        shown = f"these rows (SHA-256 {self.use.tables[0][:12]}){again}, {', '.join(places)}"
        counted = [
            f"use {self.number} of {shares} of {shown}",
            f"all {shares} together are covered if what is compared, and how many rows were added, was not "
            "chosen by what earlier uses showed of these rows",
        ]
        return [
            *(
                f"{side.name}: error {errors.format_percent(error)}{mean} ({int(side.wrong.sum()):,} of "
                f"{rows:,} rows wrong), {side.by}"
                for side, error in zip((self.run, self.reference), self.errors, strict=True)
            ),
            f"of {pluralize(rows, 'row')}, {only_other:,} are misclassified by {self.reference.name} alone, "
            f"and {only_run:,} by {self.run.name} alone{interval}",
            self.state(),
            *([f"the only use of {shown}"] if shares == 1 else counted),
            *self.cautions,
        ]

    def state(self) -> str:
        """Return what is proven in one sentence."""
        question, answer, unit = self.question, self.answer, "row"
        new = " whose features were not learned from" if self.left_out else ""
        what = f"a new row{new} is misclassified"
        if question.group is not None:
            what, unit = f"the rows{new} of a new group are on average misclassified", "group"
        level = format_level(question.delta / question.uses / 2)
        methods = {
            paired.SIGN: "exact sign test",
            paired.COUNTS: "Clopper-Pearson for both counts",
            paired.BETTING: name_loss_bound(self.units, unit),
        }
        how = f"with probability at least {level} over the judged rows ({methods[self.verdict.method]})"
        compared, limited = ("more often", "more than") if answer == WORSE else ("less often", "at most")
        if question.no_worse is not None:
            points = 100 * question.no_worse
            compared = f"{limited} {points:g} percentage point{'' if points == 1 else 's'} more often"
        claim = f"{what} {compared} by {self.run.name} than by {self.reference.name}"
        if answer != OPEN:
            return f"proven {answer}: {claim}, {how}"
        outlook = f"as measured, no number of {unit}s up to {paired.MAX_EXPECTED:,} is expected to prove it"
        if self.expected is not None:
            about = f"about {self.expected:,} new {unit}s, like these but none of them"
            outlook = f"{about}, are expected to prove it"
        return f"not yet proven: that {claim}; {outlook}"

    def to_json(self) -> dict[str, object]:
        """Return the comparison as JSON values; what is not known is null."""
        (only_other, only_run), has_groups = self.counts, self.question.group is not None
        sides = zip(("run", "other"), (self.run, self.reference), self.errors, strict=True)
        told = {
            name: {"name": side.name, "by": side.by, "error": error, "wrong": int(side.wrong.sum())}
            for name, side, error in sides
        }
        return {
            "answer": self.answer,
            "statement": self.state(),
            **told,
            "rows": len(self.run.wrong),
            "rows_left_out": self.left_out,
            "groups": self.units if has_groups else None,
            "only_other_wrong": only_other,
            "only_run_wrong": only_run,
            "difference": self.errors[0] - self.errors[1],
            "low": self.verdict.low,
            "high": self.verdict.high,
            "method": self.verdict.method,
            "no_worse": self.question.no_worse,
            "delta": self.question.delta,
            "delta_of_each_statement": self.question.delta / self.question.uses / 2,
            "expected_groups" if has_groups else "expected_rows": self.expected,
            "use": {
                "tables": list(self.use.tables),
                "number": self.number,
                "repeated": self.repeated,
                "shares": self.use.shares,
                "counted_in": list(self.places),
                "not_counted_in": list(self.unwritable),
            },
            "cautions": list(self.cautions),
        }


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
    folders = [place for place in (folder, reference) if place is not None]
    runs = [(str(RunFolder(place)), load(place)) for place in folders]
    columns, counted, rows, cautions = _read_judged(runs, question, columns, thousands)
    judged = runs[0][1].task.keep_words(columns).filter(pa.array(counted))
    groups = find_groups(question.group, judged.column_names)
    new, (run, against), has_twins = _classify(runs, predictions, judged, rows, cautions)
    judged, counted[counted] = judged.filter(pa.array(new)), new
    for name in groups:
        check_column(name, judged.column_names, " for the groups")
    of = Units.read(judged, groups).row_units  # the loss of a group is the mean of its rows
    losses = [average_by_group(side.wrong, of) for side in (run, against)]
    draws = Draws(runs[0][1].study.seed, compute_salt(judged, groups)).at(*JUDGED)
    differences = (losses[0] - losses[1])[draws.make_generator().permutation(len(losses[0]))]
    answers = [list(map(str, side.predicted)) for side in (run, against)]
    answer = json.dumps([question.no_worse, name_groups(groups), question.delta, answers])
    digests = *_digest_rows(runs, columns, counted, has_twins), hashlib.sha256(answer.encode()).hexdigest()
    compared = errors.plain(f"{run.name}, {against.name}")[: pieces.MAX_OF_COMPARED]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    use = pieces.Use(*digests, compared, question.uses, question.delta, date)
    asked = differences, question.delta / question.uses, question.no_worse, question.group is not None
    verdict = paired.judge_differences(*asked)
    expected = None if verdict.better or verdict.worse else paired.expect_units(*asked)
    means = float(losses[0].mean()), float(losses[1].mean())
    files = [RunFolder(name).files for name, _ in runs]
    number, repeated, places, unwritable = _count_use(use, files, ledger)
    return Comparison(
        *(question, run, against, means, len(differences), verdict, expected, int(np.sum(~new))),
        *(tuple(cautions), use, number, repeated, places, unwritable),
    )


def _read_judged(
    runs: Runs, question: Question, columns: pa.Table, thousands: str
) -> tuple[pa.Table, NDArray[np.bool_], list[Rows], list[str]]:
    """Return the table, and which rows have a label and can be classified by every run, (rows,).

    Then these rows as numbers, for each run, and cautions: which rows were left out.
    Refuse runs that cannot be compared: both have to be of classes, of one target, and not one run.
    """
    (place, first), *others = runs
    for folder, result in runs:
        if not result.task.classes:
            raise InputError(f"{folder!r} predicts numbers: only classes are compared")
        if result.task.target.name != first.task.target.name:
            two = f"{place!r} predicts {first.task.target.name!r} and {folder!r} {result.task.target.name!r}"
            raise InputError(f"{two}: compare runs that predict the same column")
        if question.group is None and (group := result.task.units.name) is not None:
            made = f"{folder!r} was made with groups of related rows, by {group!r}"
            cure = f"say which of the judged rows belong together with {errors.write_option('group', group)}"
            raise InputError(f"{made}: {cure}")
    if any(os.path.realpath(folder) == os.path.realpath(place) for folder, _ in others):
        raise InputError(f"{place!r} is both runs: there is nothing to compare")
    task, columns = first.task, declare_cells(join_copies(columns), thousands=thousands)
    labelled = task.find_labelled(columns)
    found = list[NewRows]()
    for folder, result in runs:
        try:
            found.append(result.task.read(columns))
        except InputError as error:
            raise InputError(f"for {folder!r}: {error}") from None
    bad = np.any([rows.bad for rows in found], axis=0) & labelled
    usable = labelled & ~bad
    cautions = list[str]()
    if not labelled.all():
        cautions.append(f"{pluralize(int(np.sum(~labelled)), 'row')} without a label left out")
    if bad.any():
        reason = next(rows.reason for rows in found if rows.reason)
        cautions.append(f"{pluralize(int(bad.sum()), 'row')} that cannot be classified left out: {reason}")
    if not usable.any():
        raise InputError(f"there is no row to compare on: {'; '.join(cautions) or 'the table is empty'}")
    return columns, usable, [rows.X[usable] for rows in found], cautions


def _classify(
    runs: Runs, predictions: str | None, judged: pa.Table, rows: list[Rows], cautions: list[str]
) -> tuple[NDArray[np.bool_], list[Side], list[bool]]:
    """Return which rows are new to all runs, and how the runs, or a run and a column, judge these.

    A run judges by the rule that ``ckcv predict`` uses. Rows are known by their features; where different
    examples are often equal in a run's columns, as is returned last, they count with a caution.
    """
    sides, known, has_twins = list[Side](), list[NDArray[np.bool_]](), list[bool]()
    for (name, result), X in zip(runs, rows, strict=True):
        rule = result.rule()
        if rule.name == "random":
            rule = replace(rule, seed=result.study.seed)
        task = result.problem.every_row if rule.name == "full" else result.task
        try:
            y = task.target.read(judged)
        except InputError as error:
            raise InputError(f"for {name!r}: {error}") from None
        predicted = rule.predict(result.models, X).label
        sides.append(Side(name, f"by {rule.classifier()}", predicted != y, task.labelled(predicted)))
        known.append(find_known(X, task))
        has_twins.append(count_repeated(task.X, task) > pieces.MAX_TWINS * task.n)
    task = runs[0][1].task
    if predictions is not None:
        if predictions == task.target.name:
            raise InputError(f"predictions={predictions!r} is the column of the true labels: name another")
        predicted, y = _read_predicted(task, judged, predictions), task.target.read(judged)
        name, by = f"column {predictions!r}", "from the judged table"
        sides.append(Side(name, by, predicted != y, task.labelled(predicted)))
    learned: NDArray[np.bool_] = np.array(known)[~np.array(has_twins)].any(axis=0)
    alike = np.array(known)[has_twins].any(axis=0) & ~learned
    if learned.mean() > MAX_KNOWN:
        raise InputError(
            f"{int(learned.sum()):,} of {pluralize(len(learned), 'judged row')} equal rows that a run has "
            "learned from: they show nothing about new rows; leave the learning rows out of the table, and "
            "judge rows that neither has learned from"
        )
    if left := int(learned.sum()):
        left_out = f"{pluralize(left, 'row')} of {len(learned):,} left out"
        cautions.append(f"{left_out}, whose features a run has learned from")
    if alike.any():
        cautions.append(
            f"CAUTION: {pluralize(int(alike.sum()), 'row')} of {len(alike) - left:,} equal rows that a run "
            "has learned from, as rows of these columns often do: if they are the same examples, nothing is "
            "proven"
        )
    cautions += _caution_repeats(rows[0][~learned], task)
    new = ~learned
    sides = [side._replace(wrong=side.wrong[new], predicted=side.predicted[new]) for side in sides]
    return new, sides, has_twins


def _read_predicted(task: Task, table: pa.Table, column: str) -> errors.Classes:
    """Return the classes that a column of a table predicts for its rows, (rows,), none of them missing."""
    check_column(column, table.column_names, " with predictions")
    there = task.find_labelled(table, column)
    if lacking := int(np.sum(~there)):
        lack = f"column {column!r} has no prediction in {lacking:,} of {len(there):,} labelled rows"
        cure = "fill them, or leave these rows out for a reason that does not depend on their labels"
        raise InputError(f"{lack}: {cure}")
    return np.asarray(task.target.read(table, column), np.int32)


def _digest_rows(
    runs: Runs, columns: pa.Table, counted: NDArray[np.bool_], has_twins: list[bool]
) -> tuple[tuple[str, ...], str, str]:
    """Return the tables, rows and learned of a ``Use``, over all columns and those each run learned from.

    Columns in which rows are often equal give no digests of rows.
    """
    names = Counter(columns.column_names)
    hashes = hash_columns(columns, [name for name in names if names[name] == 1])
    task = runs[0][1].task
    label, labelled = hashes.pop(task.target.name), task.find_labelled(columns)
    totals = [sum(hashes.values(), 0 * label)]
    totals += [sum((hashes[name] for name in result.task.features), 0 * label) for _, result in runs]
    tables = [np.sort(mix(total + label)[labelled]).astype("<u8").tobytes() for total in totals]
    rows, *learned = (mix(total)[counted] for total in totals)
    counts = np.unique(rows, return_counts=True)[1]
    discrete = counts[counts > 1].sum() > pieces.MAX_TWINS * len(rows)
    telling = [each for each, twins in zip(learned, has_twins, strict=True) if not twins]
    first, second = (
        np.unique(np.concatenate([label[:0], *some])).astype("<u8").tobytes().hex()
        for some in ([] if discrete else [rows], telling)
    )
    return tuple(hashlib.sha256(table).hexdigest() for table in tables), first, second


def _caution_repeats(X: Rows, task: Task) -> Iterator[str]:
    """Yield a caution if rows (rows, d) of a table are equal."""
    if repeated := count_repeated(X, task):
        yield (
            f"CAUTION: {repeated:,} of {pluralize(len(X), 'row')} equal another row of the table: if they "
            "have the same origin, they are not independent, and nothing said here holds"
        )


@dataclass(frozen=True)
class Watched:
    """A quantity that is watched."""

    label: errors.Label | None  # of the class whose error it is; None for the error on all rows
    bound: float | None  # the upper bound certified for it; None if none is
    prior: Prior  # the prior of its limits
    delta: float  # its share of the delta of the stream
    scope: str = ""  # a clause that names the rows that the bound is about; "" for all


@dataclass(frozen=True)
class Finding:
    """What a stream says about a quantity."""

    watched: Watched  # the quantity
    units: int  # rows, or groups, with a label
    errors: float  # how many of them are wrong; for groups, the sum of their shares of wrong rows
    limits: Limits  # limits of its rate, which hold at all times at once with probability 1 - delta
    state: str  # "holds", "unknown", "alarm", or "not_certified"
    evidence: float  # ln of the largest value of the alarm process, which raises an alarm at ln(1 / delta)
    # number of the batch, from 1, at whose end the alarm was raised; None without one
    alarm_batch: int | None
    # how many more units a decision is expected to take at the rate so far; None if it has been made or is
    # out of sight
    more: int | None

    @property
    def name(self) -> str:
        """Which error it is about."""
        return "error" if self.watched.label is None else f"error on class {self.watched.label!r}"

    @property
    def rate(self) -> float | None:
        """The error measured; None without labels."""
        return self.errors / self.units if self.units else None

    def to_json(self) -> dict[str, object]:
        """Return the finding as JSON values."""
        return {
            "class": self.watched.label,
            "units": self.units,
            "errors": self.errors,
            "error": self.rate,
            "low": self.limits.low,
            "high": self.limits.high,
            "delta": self.watched.delta,
            "certified": self.watched.bound,
            "state": self.state,
            "evidence": exp(min(self.evidence, LARGEST_LOG)),
            "alarm_batch": self.alarm_batch,
            "more": self.more,
        }

    def describe(self, unit: str) -> list[str]:
        """Return what was measured, and whether what is certified holds, one line each.

        Args:
            unit: "row" or "group".
        """
        if self.rate is None:
            return [f"{self.name}: no label yet"]
        counted, bound, delta = pluralize(self.units, unit), self.watched.bound, self.watched.delta
        wrong = f"{self.errors:g} of {counted}" if unit == "row" else f"mean over {counted}"
        measured = (
            f"{self.name}: {errors.format_percent(self.rate)} ({wrong}); at all times from "
            f"{errors.floor_percent(self.limits.low)} to {ceil_percent(self.limits.high)}, with probability "
            f"{format_level(delta)}"
        )
        if bound is None:
            return [measured]
        certified = f"certified is at most {ceil_percent(bound)}{self.watched.scope}"
        if self.state == ALARM:
            said = (
                f"ALARM, raised at the end of batch {self.alarm_batch:,}: wrong more often than certified, "
                f"from the first batch or from a later one ({certified}); the probability that such an alarm "
                f"is ever false is at most {ceil_percent(delta)}"
            )
        elif self.state == HOLDS:
            said = f"the certificate holds: {certified}, and the labels show less"
        else:
            when = "no decision is in sight"
            if self.more is not None:
                when = f"a decision takes about {pluralize(self.more, f'more {unit}')}"
            said = f"not yet known whether the certificate holds: {certified}; at the rate so far, {when}"
        return [measured, f"  {said}"]


def _judge_losses(watched: Watched, losses: errors.Values, batches: NDArray[np.intp]) -> Finding:
    """Return what the losses of a quantity, in [0, 1], say; batches have numbers from 0, ascending, (n,)."""
    errors, units, delta, bound = fsum(losses), len(losses), watched.delta, watched.bound
    limits = betting.limit_at_all_times(errors, units, watched.prior, delta)
    if bound is None:
        return Finding(watched, units, errors, limits, UNCERTIFIED, 0.0, None, None)
    numbers, sizes = np.unique(batches, return_counts=True)
    alarm = betting.trace_alarm(losses, bound, sizes)
    state, batch, more, raised = UNKNOWN, None, None, numbers[alarm.log_evidence >= log(1 / delta)]
    if len(raised):
        state, batch = ALARM, int(raised[0]) + 1
    elif units and limits.high <= bound:
        state = HOLDS
    else:
        more = betting.expect_decision(alarm, errors, units, bound, watched.prior, delta)
    evidence = float(alarm.log_evidence.max(initial=0.0))
    return Finding(watched, units, errors, limits, state, evidence, batch, more)


@dataclass(frozen=True)
class WatchedRun:
    """A watched run, and what its stream says.

    Attributes:
        run_id: that of the run.
        stream: the file of the stream.
        by: a phrase that names what classifies the rows.
        unit: "row" or "group".
        delta: probability with which any finding may ever be false.
        rows: rows of the stream.
        added: how many of them are new.
        head: the last digest of the stream; "" if it has not begun.
        findings: about the error, and the error on each class.
        notes: what to know about the new rows, one sentence each.
    """

    run_id: str
    stream: str
    by: str
    unit: str
    delta: float
    rows: int
    added: int
    head: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether any quantity is proven worse than certified."""
        return any(finding.state == ALARM for finding in self.findings)

    def to_json(self) -> dict[str, object]:
        """Return the watched run as JSON values."""
        findings = [finding.to_json() for finding in self.findings]
        said = {"notes": list(self.notes), "conditions": list(CONDITIONS), "alarm": self.alarm}
        return {**vars(self), "head": self.head or None, "findings": findings, **said}

    def summary(self) -> str:
        """Return the watched run as text."""
        head = f", head {self.head[:12]}" if self.head else ""
        lines = [line for finding in self.findings for line in finding.describe(self.unit)]
        lines.append(
            f"all limits hold at all times together with probability {format_level(self.delta)}, and the "
            f"probability that an alarm is ever false is at most {ceil_percent(self.delta)}"
        )
        rows = f"{pluralize(self.rows, 'row')}, {self.added:,} of them new"
        first = f"run {self.run_id}, by {self.by}", f"stream {self.stream}: {rows}{head}"
        return "\n".join((*first, *lines, *CONDITIONS))


def watch(
    out: str | PathLike[str],
    rows: pa.Table | None = None,
    identifier: str = "id",
    prediction: str = "prediction",
    label: str | None = None,
    by: str = "auto",
    delta: float | None = None,
    stream: str | PathLike[str] | None = None,
) -> WatchedRun:
    """Append live rows with their labels to the stream of a run, and return what the stream says.

    Args:
        out: the run folder.
        rows: a table of live rows; None to look at the stream alone, which writes nothing.
        identifier: the column that names the rows.
        prediction: the column of predictions, which are made here if there is none.
        label: the column of true labels; None for the name of the target.
        by: the rule that classified them, as for ``Result.rule``; "auto" for that of the stream, or for what
            ``ckcv predict`` does without options.
        delta: probability with which anything said may ever be false; None for that of the stream, or
            of the certificate. It is fixed with the first rows.
        stream: file of the stream, outside of run folders; None for the one in the run folder.

    Raises:
        InputError: rows cannot be appended, or nothing is certified of the rule.
        StoreError: there is no finished run, the stream is damaged, was edited or watches something else.
    """
    result = load_run(out)
    if not result.task.classes:
        raise InputError(f"{str(out)!r} predicts numbers: only errors of classes are watched")
    folder = RunFolder(out)
    files, name = folder.files, STREAM
    if stream is not None:
        files, name = pieces.locate_elsewhere("stream", stream, [files], STREAM)
    found = pieces.read_stream(files, name)
    if stream is None:
        folder.check_stream()
    file = files.path(name)
    header = _make_header(result, folder, found, by, delta, file)
    rule = result.rule(header.by)
    watched = _list_watched(result, rule, header.delta)
    live, notes = tuple[LiveRow, ...](), tuple[str, ...]()
    if rows is not None:
        label = result.task.target.name if label is None else label
        batch = found.rows[-1].batch + 1 if found is not None and found.rows else 0
        live, notes = _read_live_rows(result, rule, rows, batch, identifier, prediction, label)
        lock = folder if stream is None else files.lock
        lock.acquire()
        try:
            found = pieces.write_stream(files, name, header, found, live)
            if stream is None:  # the manifest then lists it
                folder.list_stream()
        finally:
            lock.release()
    there = () if found is None else found.rows
    findings, head = _judge_rows(result, watched, there, file), "" if found is None else found.head
    about = result.run_id, str(file), rule.classifier(), result.task.unit, header.delta
    return WatchedRun(*about, len(there), len(live), head, findings, notes)


def find_alarm(result: Certified) -> str:
    """Return a sentence if the stream in the folder of a result has an alarm, or is refused; else ""."""
    if not (address := result.execution.get("folder")):
        return ""
    folder = RunFolder(address)
    try:
        found, file = pieces.read_stream(folder.files, STREAM), folder.files.path(STREAM)
        if folder.finished:  # otherwise it has been removed since
            folder.check_stream()
        if found is None:
            return ""
        header = _make_header(result, folder, found, "auto", None, file)
        rule = result.rule(header.by)
        findings = _judge_rows(result, _list_watched(result, rule, header.delta), found.rows, file)
    except errors.CKCVError as error:
        return f"What ckcv watch has found is not known: {errors.plain(str(error))}"
    raised = [f"{one.name} (batch {one.alarm_batch:,})" for one in findings if one.alarm_batch is not None]
    alarm = f"ckcv watch has raised an ALARM: {rule.classifier()} is wrong more often than certified"
    return f"{alarm}, on live rows: {', '.join(errors.cut_list(raised, 'more'))}." if raised else ""


def _make_header(
    result: Certified, folder: RunFolder, found: Stream | None, by: str, delta: float | None, file: str | Path
) -> Header:
    """Return what the stream watches: what it began with, or what is requested."""
    certificate = folder.sha256(CERTIFICATE)
    if found is None:
        level = result.study.delta if delta is None else delta
        check_delta(level)
        return Header(2, result.run_id, certificate, by, level)
    header, instead = found.header, "begin another stream with --stream"
    if header.run_id != result.run_id:
        raise StoreError(f"{file} is the stream of run {header.run_id}, not of {result.run_id}: {instead}")
    if header.certificate != certificate:
        now = f"what is certified now was not fixed before its rows; {instead}"
        raise StoreError(f"{file} watches what was certified before the run grew: {now}")
    if any((row.unit == "") != result.task.units.independent for row in found.rows):
        raise StoreError(f"{file} is damaged: its rows have groups, or none, and those of the run differ")
    if by not in ("auto", header.by) or delta not in (None, header.delta):
        fixed = f"by={errors.quote(header.by)} and delta={header.delta:g}, fixed with its first rows"
        raise InputError(f"{str(file)!r} has {fixed}: leave both out, or {instead}")
    return header


def _list_watched(result: Certified, rule: Rule, delta: float) -> tuple[Watched, ...]:
    """Return what is watched for a rule, with its share of delta: the error, and the error on each class.

    With groups, whose rows are related, only the error is watched. A prior is what was counted in one
    estimate set: any that is fixed before the stream is valid; see ``core.bounds.betting``.
    """
    c, proven = result.certificate, find_error_claim(result.claims, rule)
    labels = result.task.classes if result.task.units.independent else ()
    share = delta / 2 if labels else delta  # the classes share the other half
    claims = [claim for claim in c.claims if claim.covers(rule)]
    claim = next((claim for claim in claims if claim.quantity.is_error), None)
    bound = proven.risk if proven is not None and 0 < proven.risk < 1 else None
    watched, wrong, rows = list[Watched](), sum(c.errors), sum(c.class_totals)
    for number, label in enumerate((None, *labels), start=-1):
        if label is not None:
            share, counts = delta / 2 / len(labels), c.by_class[number]
            about = [claim for claim in claims if claim.quantity.by_class and claim.label == label]
            claim = min(about, key=lambda claim: claim.risk, default=None)
            bound = claim.bound if claim is not None and claim.risk < 1 else None
            wrong, rows = counts["errors"], counts["rows"]
        sets = c.n_splits
        if claim is not None and claim.rows is not None and claim.errors is not None:
            wrong, rows = claim.errors, claim.rows
            sets = 1 if claim.certification == Holdout.name else sets
        units = rows / sets * (result.problem.all_rows.n_units / c.n_rows)
        prior = betting.make_prior(wrong / rows if rows else 0.5, units)
        watched.append(Watched(label, bound, prior, share, result.problem.certification.scope))
    if all(quantity.bound is None for quantity in watched):
        lack = "no error below 100 % is certified, so there is nothing to watch"
        cure = "name another rule, or run the study with --certify holdout --claim refit"
        raise InputError(f"by {rule.classifier()}: {lack}: {cure}")
    return tuple(watched)


def _read_live_rows(
    result: Certified, rule: Rule, table: pa.Table, batch: int, identifier: str, prediction: str, label: str
) -> tuple[tuple[LiveRow, ...], tuple[str, ...]]:
    """Return the rows of a table that have a label, to be appended to a stream, and what to know of them."""
    errors.expect("rows", table, pa.Table, "a pyarrow.Table: see pyarrow.table")
    task = result.task
    table = task.keep_words(join_copies(table))
    names = table.column_names
    check_column(identifier, names, " with the names of the rows (--id)")
    check_column(label, names, " with the true labels (--label)")
    known, notes, of = task.find_labelled(table, label), list[str](), find_groups(task.units.name, names)
    for name in of:
        check_column(name, names, " with the groups that the certificate is about")
    parts = zip(*(_read_names(table, name) for name in of), strict=True)
    groups = [row[0] if len(row) == 1 else errors.write_row(row) for row in parts] or [""] * len(known)
    if left := int(np.sum(~known)):
        notes = [f"{pluralize(left, 'row')} without a label: not counted; append them when they have one"]
    if left and not task.units.independent:  # in part, a group would have another share of wrong rows
        incomplete = {group for group, there in zip(groups, known, strict=True) if not there}
        known = np.array([group not in incomplete for group in groups])
        notes = [
            f"{pluralize(int(np.sum(~known)), 'row')} of groups with an unlabelled row: not counted; append "
            "each such group as a whole, once all its rows have labels"
        ]
    table, groups = table.filter(pa.array(known)), [*compress(groups, known)]
    with number_labelled(left > 0):
        identifiers = _read_names(table, identifier)
        try:
            truth = task.target.read(table, label)
        except InputError as unknown:
            raise InputError(
                f"{unknown}. Write a class as the run does; for a new class make a new run, since every row "
                "of it is wrong, and without these rows the error looks smaller than it is"
            ) from None
        there = table.num_rows and set(task.features) <= set(names)
        read = task.read(table) if there else None
        predicted, about = _read_predictions(result, rule, table, read, prediction)
    notes += about
    if read is not None:
        X, every = read.X[~read.bad], result.problem.every_row
        if equal := int(find_known(X, every).sum()):
            notes.append(
                f"CAUTION: {equal:,} of {pluralize(len(X), 'row')} equal a row that the run has learned from "
                "or was judged on: if they are the same examples, they say little about new ones"
            )
        notes += _caution_repeats(X, every)
    cells, labels = zip(identifiers, predicted.tolist(), truth.tolist(), groups, strict=True), task.classes
    rows = tuple(LiveRow(name, labels[of], labels[is_], group, batch) for name, of, is_, group in cells)
    return rows, tuple(notes)


def _read_names(table: pa.Table, column: str) -> list[str]:
    values, codes = list_distinct(Cells(table, column).values)
    texts = ["" if value is None or value != value else str(value).strip() for value in values]
    if (bad := np.array([not text for text in texts])[codes]).any():
        row = int(np.argmax(bad)) + 1
        raise InputError(f"column {column!r} has no name in row {row}: every row needs one")
    return [texts[code] for code in codes]


def _read_predictions(
    result: Certified, rule: Rule, table: pa.Table, read: NewRows | None, name: str
) -> tuple[errors.Classes, list[str]]:
    """Return the predicted classes, and a sentence if they are made here or are not the rule's."""
    task, notes = result.task, list[str]()
    if name not in table.column_names:
        try:
            predicted = rule.predict(result.models, task.rows_from(table)).label
        except InputError as error:
            lack = f"there is no column {name!r} with predictions (--prediction), and none can be made here"
            raise InputError(f"{lack}: {error}") from None
        return predicted, [f"there is no column {name!r}: predicted here, by {rule.classifier()}"]
    predicted = _read_predicted(task, table, name)
    # whether they are the rule's, if it draws nothing and the features are there
    if rule.name != "random" and read is not None:
        again = rule.predict(result.models, read.X[~read.bad]).label
        if differing := int(np.sum(again != predicted[~read.bad])):
            of = f"{pluralize(len(again), 'prediction')} are not those of {rule.classifier()}"
            notes.append(f"CAUTION: {differing:,} of {of}: what is certified is about its own")
    return predicted, notes


def _judge_rows(
    result: Certified, watched: tuple[Watched, ...], rows: tuple[LiveRow, ...], file: str | Path
) -> tuple[Finding, ...]:
    # 1, 1.0 and True are equal in Python, but not as labels
    places = {(type(label), label): number for number, label in enumerate(result.task.classes)}
    labels, given = [row.label for row in rows], [row.prediction for row in rows]
    try:
        truth, predicted = (np.array([places[type(v), v] for v in each], np.intp) for each in (labels, given))
    except KeyError as unknown:
        raise StoreError(f"{file} is damaged: {unknown.args[0][1]!r} is no class of the run") from None
    wrong = (truth != predicted).astype(np.float64)
    losses, batches = wrong, np.array([row.batch for row in rows], np.intp)
    if not result.task.units.independent:  # groups' means, in order of arrival
        group = pa.array([row.unit for row in rows], pa.string()).dictionary_encode().indices.to_numpy()
        losses, batches = average_by_group(wrong, group), average_by_group(batches, group).astype(np.intp)
    of_class = [np.ones(len(losses), np.bool_), *(truth == c for c in range(len(watched) - 1))]
    return tuple(
        _judge_losses(quantity, losses[chosen], batches[chosen])
        for quantity, chosen in zip(watched, of_class, strict=True)
    )
