"""Watch a finished run after deployment: append live rows with their labels, and say whether it still holds.

Nothing is fitted. Rows without a prediction are classified by the rule whose error is certified; otherwise
the predictions that were made before are taken as given.

Each quantity watched, the error and the error on each class, has a share of delta that is fixed before the
stream. So with probability 1 - delta all limits of a stream hold, at all times; and the probability that an
alarm is ever raised although all that is certified still holds is at most delta.
"""

from dataclasses import dataclass
from itertools import compress
from math import exp, fsum, log
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.quantity import Claim
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds import betting
from ckcv_ray.core.bounds.betting import Prior
from ckcv_ray.core.bounds.binomial import check_delta
from ckcv_ray.core.measures import average_by_group
from ckcv_ray.errors import (
    CKCVError,
    Classes,
    InputError,
    Label,
    Limits,
    StoreError,
    Values,
    ceil_percent,
    cut_list,
    expect,
    floor_percent,
    format_level,
    format_percent,
    plain,
    pluralize,
    quote,
    write_row,
)
from ckcv_ray.runs.compare import caution_repeats, read_predicted
from ckcv_ray.runs.finished import load_run
from ckcv_ray.runs.result import Certified, find_error_claim
from ckcv_ray.storage import pieces
from ckcv_ray.storage.folder import CERTIFICATE, RunFolder
from ckcv_ray.storage.pieces import STREAM, Header, LiveRow, Stream
from ckcv_ray.study.parts import Holdout
from ckcv_ray.tables.columns import Cells, NewRows, check_column, list_distinct
from ckcv_ray.tables.questions import find_known
from ckcv_ray.tables.roles import find_groups
from ckcv_ray.tables.task import join_copies, number_labelled

HOLDS, UNKNOWN, ALARM, UNCERTIFIED = "holds", "unknown", "alarm", "not_certified"
LARGEST_LOG = 700.0  # exp of it is still a float


@dataclass(frozen=True)
class Watched:
    """A quantity that is watched."""

    label: Label | None  # of the class whose error it is; None for the error on all rows
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
            f"{self.name}: {format_percent(self.rate)} ({wrong}); at all times from "
            f"{floor_percent(self.limits.low)} to {ceil_percent(self.limits.high)}, with probability "
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


def judge_losses(watched: Watched, losses: Values, batches: NDArray[np.intp]) -> Finding:
    """Return what the losses of a stream say about a quantity.

    Args:
        watched: the quantity.
        losses: the quantity's losses in [0, 1], batch by batch, (n,).
        batches: the numbers of their batches, from 0, ascending, (n,).
    """
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


CONDITIONS = (
    "This holds if rows arrive independently of how they are classified, and if their labels do: labels "
    "that come sooner, or only, for rows that were wrong make the error look larger, and vice versa.",
    "Each batch, the rows of one call, must be a fair sample of the rows that are classified: its size was "
    "fixed before its labels were seen, or by a rule that takes rows in order of arrival. The order within a "
    "batch does not matter.",
    "The limits are about an error that does not change; the alarm allows for any change below what is "
    "certified.",
)


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
        return "\n".join(
            [
                f"run {self.run_id}, by {self.by}",
                f"stream {self.stream}: {pluralize(self.rows, 'row')}, {self.added:,} of them new"
                + (f", head {self.head[:12]}" if self.head else ""),
                *(line for finding in self.findings for line in finding.describe(self.unit)),
                f"all limits hold at all times together with probability {format_level(self.delta)}, and the "
                f"probability that an alarm is ever false is at most {ceil_percent(self.delta)}",
                *CONDITIONS,
            ]
        )


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
    watched = list_watched(result, rule, header.delta)
    live, notes = tuple[LiveRow, ...](), tuple[str, ...]()
    if rows is not None:
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
        findings = _judge_rows(result, list_watched(result, rule, header.delta), found.rows, file)
    except CKCVError as error:
        return f"What ckcv watch has found is not known: {plain(str(error))}"
    raised = [f"{one.name} (batch {one.alarm_batch:,})" for one in findings if one.alarm_batch is not None]
    alarm = f"ckcv watch has raised an ALARM: {rule.classifier()} is wrong more often than certified"
    return f"{alarm}, on live rows: {', '.join(cut_list(raised, 'more'))}." if raised else ""


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
        raise StoreError(
            f"{file} watches what was certified before the run grew: what is certified now was not fixed "
            f"before its rows; {instead}"
        )
    if any((row.unit == "") != result.task.units.independent for row in found.rows):
        raise StoreError(f"{file} is damaged: its rows have groups, or none, and those of the run differ")
    if by not in ("auto", header.by) or delta not in (None, header.delta):
        raise InputError(
            f"{str(file)!r} has by={quote(header.by)} and delta={header.delta:g}, fixed with its first rows: "
            f"leave both out, or {instead}"
        )
    return header


def list_watched(result: Certified, rule: Rule, delta: float) -> tuple[Watched, ...]:
    """Return what is watched for a rule, with its share of delta: the error, and the error on each class.

    With groups, whose rows are related, only the error is watched.

    Raises:
        InputError: nothing is certified about the rule's error, on all rows or on a class.
    """
    proven = find_error_claim(result.claims, rule)
    labels = result.task.classes if result.task.units.independent else ()
    scope = result.problem.certification.scope
    of_error = delta / 2 if labels else delta  # the classes share the other half
    claims = [claim for claim in result.certificate.claims if claim.covers(rule)]
    error = next((claim for claim in claims if claim.quantity.is_error), None)
    known = proven.risk if proven is not None and 0 < proven.risk < 1 else None
    watched = [Watched(None, known, _make_prior(result, error, None), of_error, scope)]
    for number, label in enumerate(labels):
        about = [claim for claim in claims if claim.quantity.by_class and claim.label == label]
        claim = min(about, key=lambda claim: claim.risk, default=None)
        certified = claim.bound if claim is not None and claim.risk < 1 else None
        prior, of_class = _make_prior(result, claim, number), delta / 2 / len(labels)
        watched.append(Watched(label, certified, prior, of_class, scope))
    if all(quantity.bound is None for quantity in watched):
        raise InputError(
            f"by {rule.classifier()}: no error below 100 % is certified, so there is nothing to watch: name "
            "another rule, or run the study with --certify holdout --claim refit"
        )
    return tuple(watched)


def _make_prior(result: Certified, claim: Claim | None, number: int | None) -> Prior:
    """Return the prior of the error, or of the error on a class: what was counted in one estimate set.

    Any prior that is fixed before the stream is valid; see ``core.bounds.betting``.
    """
    c, sets = result.certificate, result.certificate.n_splits
    wrong, rows = sum(c.errors), sum(c.class_totals)
    if number is not None:
        wrong, rows = c.by_class[number]["errors"], c.by_class[number]["rows"]
    if claim is not None and claim.rows is not None and claim.errors is not None:
        wrong, rows = claim.errors, claim.rows
        if claim.certification == Holdout.name:
            sets = 1
    units = rows / sets * (result.problem.all_rows.n_units / c.n_rows)
    return betting.make_prior(wrong / rows if rows else 0.5, units)


def _read_live_rows(
    result: Certified,
    rule: Rule,
    table: pa.Table,
    batch: int,
    identifier: str,
    prediction: str,
    label: str | None,
) -> tuple[tuple[LiveRow, ...], tuple[str, ...]]:
    """Return the rows of a table that have a label, to be appended to a stream, and what to know of them."""
    expect("rows", table, pa.Table, "a pyarrow.Table: see pyarrow.table")
    task = result.task
    table = task.keep_words(join_copies(table))
    names = table.column_names
    target = task.target.name if label is None else label
    check_column(identifier, names, " with the names of the rows (--id)")
    check_column(target, names, " with the true labels (--label)")
    known, notes, groups = task.find_labelled(table, target), list[str](), _read_groups(table, result)
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
            truth = task.target.read(table, target)
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
        notes += caution_repeats(X, every)
    cells = zip(identifiers, predicted.tolist(), truth.tolist(), groups, strict=True)
    rows = tuple(
        LiveRow(name, task.classes[of], task.classes[is_], group, batch) for name, of, is_, group in cells
    )
    return rows, tuple(notes)


def _read_names(table: pa.Table, column: str) -> list[str]:
    values, codes = list_distinct(Cells.of(table, column).values)
    texts = ["" if value is None or value != value else str(value).strip() for value in values]
    if (bad := np.array([not text for text in texts])[codes]).any():
        row = int(np.argmax(bad)) + 1
        raise InputError(f"column {column!r} has no name in row {row}: every row needs one")
    return [texts[code] for code in codes]


def _read_predictions(
    result: Certified, rule: Rule, table: pa.Table, read: NewRows | None, name: str
) -> tuple[Classes, list[str]]:
    """Return the predicted classes, and a sentence if they are made here or are not the rule's."""
    task, notes = result.task, list[str]()
    if name in table.column_names:
        predicted = read_predicted(task, table, name)
        # whether they are the rule's, if it draws nothing and the features are there
        if rule.name != "random" and read is not None:
            again = rule.predict(result.models, read.X[~read.bad]).label
            if differing := int(np.sum(again != predicted[~read.bad])):
                notes.append(
                    f"CAUTION: {differing:,} of {pluralize(len(again), 'prediction')} are not those of "
                    f"{rule.classifier()}: what is certified is about its own"
                )
    else:
        try:
            predicted = rule.predict(result.models, task.rows_from(table)).label
        except InputError as error:
            lack = f"there is no column {name!r} with predictions (--prediction), and none can be made here"
            raise InputError(f"{lack}: {error}") from None
        notes.append(f"there is no column {name!r}: predicted here, by {rule.classifier()}")
    return predicted, notes


def _read_groups(table: pa.Table, result: Certified) -> list[str]:
    """Return the name of each row's group; "" without groups."""
    names = find_groups(result.task.units.name, table.column_names)
    if not names:
        return [""] * table.num_rows
    for name in names:
        check_column(name, table.column_names, " with the groups that the certificate is about")
    cells = zip(*(_read_names(table, name) for name in names), strict=True)
    return [row[0] if len(row) == 1 else write_row(row) for row in cells]


def _judge_rows(
    result: Certified, watched: tuple[Watched, ...], rows: tuple[LiveRow, ...], file: str | Path
) -> tuple[Finding, ...]:
    # 1, 1.0 and True are equal in Python, but not as labels
    numbers = {(type(label), label): number for number, label in enumerate(result.task.classes)}
    labels, given = [row.label for row in rows], [row.prediction for row in rows]
    try:
        truth, predicted = (
            np.array([numbers[type(v), v] for v in each], np.intp) for each in (labels, given)
        )
    except KeyError as unknown:
        raise StoreError(f"{file} is damaged: {unknown.args[0][1]!r} is no class of the run") from None
    wrong = (truth != predicted).astype(np.float64)
    losses, batches = wrong, np.array([row.batch for row in rows], np.intp)
    if not result.task.units.independent:  # groups' means, in order of arrival
        group = pa.array([row.unit for row in rows], pa.string()).dictionary_encode().indices.to_numpy()
        losses, batches = average_by_group(wrong, group), average_by_group(batches, group).astype(np.intp)
    of_class = [np.ones(len(losses), np.bool_), *(truth == c for c in range(len(watched) - 1))]
    return tuple(
        judge_losses(quantity, losses[chosen], batches[chosen])
        for quantity, chosen in zip(watched, of_class, strict=True)
    )
