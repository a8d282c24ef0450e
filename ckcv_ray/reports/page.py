"""HTML page of a finished run, made from its folder alone: nothing is unpickled, downloaded or executed.

One file without scripts, with figures as SVG and again as tables. Names and labels come from the data, so the
template escapes everything except the figures, which contain no text of the data. The page is a function of
the folder's files.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from ckcv_ray.claims.baseline import Baseline, select_baseline
from ckcv_ray.claims.certificate import Certificate, ModelCounts, Sample, Winner
from ckcv_ray.claims.percent import at_least, at_most, level_of, nearest
from ckcv_ray.claims.wording import L_EE_IS, MINIMISED, Claim, describe_counts, limit, quantity
from ckcv_ray.core.criteria import MeanBound, MeanCost, MeanError
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import ABSENT, Leader
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import StoreError, printable
from ckcv_ray.learners.base import Space
from ckcv_ray.records.record import Failure
from ckcv_ray.reports import figures
from ckcv_ray.reports.figures import Axis, Landscape, Span
from ckcv_ray.runs.load import load_run, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.summary import ERROR_IS, baseline_is, class_shares, outcome_of_learner
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Candidate, Problem
from ckcv_ray.tables.target import Label

MOST_NAMED = 5
MOST_COLUMNS = 30  # of a confusion matrix; of more classes, as many mistakes are listed
DOTS = {  # what is drawn for each split
    "error": "the {} Clopper-Pearson bound",
    "balanced": "the mean of the classes' {} Clopper-Pearson bounds",
    "cost": "the {} bound on the cost of a decision, in % of the largest cost,",
    "mean_error": "the share of wrong rows",
    "groups": "the {} bound on the share of a new group's wrong rows",
}


class OneSplit(NamedTuple):
    """Errors of the winner on the select and the estimate set of one split, and their bounds."""

    split: int
    select_errors: int
    select_bound: float
    estimate_errors: int
    estimate_bound: float


class Share(NamedTuple):
    """A cell of the confusion matrix: rows, their share of the actual class, whether they are right."""

    rows: int
    share: float
    right: bool


class FailureGroup(NamedTuple):
    """Paths that failed with the same traceback."""

    traceback: str
    paths: "list[FailedPath]"


class FailedPath(NamedTuple):
    """A path that failed, formatted for the page."""

    stage: str
    k: int
    split: int
    first: str
    last: str


def page(out: str | PathLike[str], result: Result | None = None) -> str:
    """Return the HTML page of the finished run in ``out``.

    Args:
        out: run folder.
        result: its result, if already loaded.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
    """
    result = result or load_run(out)
    queue = replay(out, result.problem)
    leader = _leader(result, queue)
    at, spans = landscape(result.candidates, queue, leader), fold_spans(result.per_k())
    splits, certificate = single_splits(result, queue, leader), result.certificate
    winner, sample = certificate.winner, certificate.sample
    filled: str = template("report.html").render(
        result=result,
        certificate=certificate,
        sample=sample,
        quoted=certificate.claims.first,
        best=Candidate(result.setting, result.k),
        winner=winner,
        shown_labels=_shown_labels(result),
        claims=_compare_claims(certificate),
        cautions=certificate.list_cautions(),
        units="rows" if sample.groups is None else "groups",
        error_is=ERROR_IS,
        baselines=_baselines(sample),
        class_shares=class_shares(sample),
        l_ms_is=MINIMISED[winner.criterion].format(level_of(winner.delta)),
        l_ee_is=L_EE_IS[winner.criterion][winner.bound],
        dot=_dot(certificate),
        mean_is=_mean_is(result),
        split_value=_split_value(winner),
        notes=_notes(result),
        at=at,
        spans=spans,
        learners=[(row["learner"], outcome_of_learner(row)) for row in result.per_learner()],
        splits=splits,
        failures=failure_groups(queue.failures(), result.problem),
        landscape=figures.draw_landscape(at, _describe_landscape(result, at)),
        folds=figures.draw_folds(spans, _describe_folds(result, spans)),
        spread=_draw_spread(result, splits),
        classes=_classes(result),
        confusion=_confusion(certificate.counts),
        mistakes=_mistakes(certificate),
        study=_parameters(result),
        environment=list(flat(result.execution.get("environment", {}))),
        digests={
            **certificate.origin.digests,
            "manifest.json": RunFolder(out).sha256("manifest.json"),
        },
    )
    return filled


def landscape(candidates: pa.Table, queue: RaceQueue, leader: Leader) -> Landscape:
    """Return L_MS, or its lower bound from the log, over all settings of the winner's learner at its k.

    The log can hold more splits of a beaten candidate than the table of candidates, which keeps only a proof.
    """
    fold, problem = queue.selection.sizes[leader.size], queue.problem
    number, learner = problem.learner_of(problem.candidate(leader).setting)
    own = np.flatnonzero(problem.learner_of_paths == number)
    first, here = int(own[0]), np.s_[int(own[0]) : int(own[-1]) + 1, : max(learner.space.lengths)]
    exists = fold.values[0] != ABSENT
    value = np.full(exists.shape, np.nan)
    for path, step in np.argwhere(exists):
        if path in own:
            value[path, step] = fold.exact_low(path, step)
    of_size = pc.equal(candidates["k_first"], problem.sizes[leader.size].k_first)
    lost = candidates.filter(pc.and_(of_size, pc.equal(candidates["state"], "failed")))
    failed = np.zeros(exists.shape, np.bool_)
    failed[lost["path"].to_numpy(), lost["step"].to_numpy()] = True
    best = leader.path - first, leader.step
    return Landscape(
        *axes_of(learner.space), value[here], fold.prefix[here], failed[here], fold.n_splits, best
    )


def axes_of(space: Space) -> tuple[Axis, Axis]:
    """Return the axes of a search space: that of its steps and that of its paths.

    An axis is named by a hyperparameter that alone determines the step, or the path; if there is none, they
    are counted.
    """
    lengths = list(space.lengths)
    ends = np.cumsum(lengths)
    columns = {name: np.split(values, ends[:-1]) for name, values in space.settings().items()}
    longest = int(np.argmax(lengths))
    steps = {
        name: parts[longest]
        for name, parts in columns.items()
        if all(np.array_equal(part, parts[longest][: len(part)]) for part in parts)
    }
    step = _axis(steps, "step", max(lengths))
    paths = {
        name: np.array([part[0] for part in parts])
        for name, parts in columns.items()
        if name != step.name and all((part == part[0]).all() for part in parts)
    }
    return step, _axis(paths, "path", len(lengths))


def fold_spans(rows: Sequence[dict[str, Any]]) -> list[Span]:
    """Convert the rows of ``Result.per_k`` to spans."""
    return [
        Span(
            row["k_first"],
            row["k_last"],
            row["n_select"],
            row["state"],
            row["lower_bound"],
            _format_setting(row["setting"]),
            row["l_ms"],
            row["l_ee"],
        )
        for row in rows
    ]


def single_splits(result: Result, queue: RaceQueue, leader: Leader) -> list[OneSplit]:
    """Return the winner's errors and bounds on each split."""
    fold, certificate = queue.selection.sizes[leader.size], result.certificate
    at = [(False, leader.size, split, leader.path, leader.step) for split in range(fold.n_splits)]
    n_classes = len(certificate.sample.labels)
    counts = [sum((queue.ledger.totals(*one) or ())[:n_classes]) for one in at]
    totals = np.array([member.totals for member in result.ensemble.members])
    bounds = result.problem.criterion.value(
        totals, result.problem.units(Stage.ESTIMATE, leader.size)
    ).tolist()
    select = fold.prefix_values(leader.path, leader.step)
    rows = zip(counts, select, certificate.counts.errors, bounds, strict=True)
    return [OneSplit(i, *row) for i, row in enumerate(rows)]


def _axis(known: dict[str, NDArray[Any]], name: str, count: int) -> Axis:
    """Return the axis of the first hyperparameter with distinct values, else an axis of positions."""
    for hyperparameter, values in known.items():
        if len(np.unique(values)) == count:
            return Axis(hyperparameter, tuple(map(_short, values)))
    return Axis(name, tuple(map(str, range(count))), counted=True)


def _short(value: Any) -> str:
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, float | np.floating) else str(value)


def _format_setting(setting: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in (setting or {}).items())


def _shown_labels(result: Result) -> list[Any]:
    """Return the labels shown in the page's title: at most ``MOST_NAMED``."""
    return list(result.certificate.sample.labels[:MOST_NAMED])


def _leader(result: Result, queue: RaceQueue) -> Leader:
    """Return the winner's position; raise StoreError if the log and the certificate differ on it."""
    leader = queue.selection.winner()
    winner = Candidate(result.setting, result.k)
    if leader is None or queue.problem.candidate(leader) != winner:
        raise StoreError("the log does not lead to the certificate's winner: see ckcv verify")
    return leader


def _notes(result: Result) -> list[str]:
    """List what to know before quoting the bound."""
    notes = result.edges()
    if asked := result.problem.all_rows.question:
        notes.append(asked)
    if not_converged := result.execution["not_converged"]:
        notes.append(f"{not_converged:,} fits did not converge: {result.problem.learner.convergence_advice}")
    if failed := result.execution["evaluations"]["failed"]:
        notes.append(f"{failed:,} evaluations failed; their tracebacks are below")
    return notes


def _baselines(sample: Sample) -> list[dict[str, Any]]:
    """Return each baseline with a phrase that says what it is."""
    return [{**one, "what": baseline_is(sample, one)} for one in sample.baselines]


def _compare_claims(certificate: Certificate) -> list[tuple[Claim, Baseline]]:
    """Return each claim with the baseline that it is compared with."""
    return [(claim, select_baseline(claim, certificate.sample.baselines)) for claim in certificate.claims]


def _classes(result: Result) -> list[dict[str, Any]]:
    """Return the errors of each class, with the label predicted instead if there are two classes."""
    labels, by_class = result.certificate.sample.labels, result.certificate.counts.by_class
    return [
        {"actual": label, "predicted": labels[1 - number] if len(labels) == 2 else None, **side}
        for number, (label, side) in enumerate(zip(labels, by_class, strict=True))
    ]


def _confusion(counts: ModelCounts) -> list[list[Share]]:
    """Return the confusion matrix by actual and predicted class, the undecided last if there are any.

    Empty for two classes, whose errors say the same, and for more than a page can show.
    """
    if not 2 < len(counts.by_class) <= MOST_COLUMNS:
        return []
    lines = []
    for number, (line, rows) in enumerate(zip(counts.confusion_matrix, counts.class_totals, strict=True)):
        cells = [*line, *([rows - sum(line)] if counts.undecided else [])]
        lines.append([Share(count, count / max(1, rows), i == number) for i, count in enumerate(cells)])
    return lines


def _mistakes(certificate: Certificate) -> list[dict[str, Any]]:
    """Return the most frequent mistakes of more classes than a confusion matrix can show."""
    labels = certificate.sample.labels
    if len(labels) <= MOST_COLUMNS:
        return []
    return [
        {**one._asdict(), "actual": labels[one.actual], "predicted": _label_of(one.predicted, labels)}
        for one in certificate.counts.list_mistakes()[:MOST_COLUMNS]
    ]


def _label_of(number: int | None, labels: Sequence[Label]) -> Label:
    return "undecided" if number is None else labels[number]


def _parameters(result: Result) -> dict[str, str]:
    """Format the study's options, grids in full."""
    values = result.study.options()
    values |= {"k": values["k"] or f"3:{result.task.n_units} (all)"}
    return {name: _listed(value) for name, value in values.items()}


def _listed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(item if isinstance(item, str) else f"{item:.12g}" for item in value) or "none"
    return f"{value:,}" if type(value) is int else str(value)


def flat(values: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten nested JSON values into pairs of a dotted name and text."""
    if isinstance(values, dict):
        nested = [flat(value, f"{name}.{key}" if name else str(key)) for key, value in values.items()]
        return [pair for pairs in nested for pair in pairs]
    return [(name, ", ".join(map(str, values)) if isinstance(values, list) else str(values))]


def failure_groups(failures: Sequence[Failure], problem: Problem) -> list[FailureGroup]:
    """Return the paths that failed, those with the same traceback together."""
    by_traceback: dict[str, list[FailedPath]] = {}
    for one in failures:
        first, last = (
            dict(problem.learner.space.setting(one.path, step)) for step in (one.first, one.stop - 1)
        )
        stage = "estimate" if one.estimate else "select"
        failed = FailedPath(
            stage,
            problem.sizes[one.size].k,
            one.split,
            _format_setting(first),
            _format_setting(last),
        )
        by_traceback.setdefault(one.traceback, []).append(failed)
    return [FailureGroup(traceback, paths) for traceback, paths in by_traceback.items()]


def _mean_is(result: Result) -> str:
    """Say what the mean of the single splits' values on the estimate sets is."""
    criterion, bound = result.certificate.winner.criterion, result.certificate.winner.bound
    if criterion == MeanError.name:
        return "L_EE"
    if criterion == MeanCost.name:
        return "the same mean on the estimate sets, not L_EE, which bounds the mean cost"
    return "L_EE" if bound in ("clopper_pearson", "loss") else "what L_EE would be with Clopper-Pearson"


def _dot(certificate: Certificate) -> str:
    """Say what is drawn for each split."""
    winner = certificate.winner
    grouped = certificate.sample.groups is not None and winner.criterion == MeanBound.name
    return DOTS["groups" if grouped else winner.criterion].format(level_of(winner.delta))


def _split_value(winner: Winner) -> str:
    """Return a word for the criterion's value of one split."""
    return "error rate" if winner.criterion == MeanError.name else "bound"


def _describe_landscape(result: Result, at: Landscape) -> str:
    exists = ~np.isnan(at.value)
    complete = int(np.sum((at.splits == at.n_splits) & exists))
    return (
        f"L_MS over {at.steps.name} and {at.paths.name} at k = {result.k}. Minimum: {at_most(result.l_ms)} "
        f"at {_format_setting(dict(result.setting))}. {complete} of {int(np.sum(exists))} candidates have "
        f"all {at.n_splits} splits; for the others a lower bound is drawn. All values are in the table "
        "below the figure."
    )


def _describe_folds(result: Result, spans: Sequence[Span]) -> str:
    return (
        f"L_MS or its lower bound, and L_EE, against k from {spans[0].first} to {spans[-1].last}. "
        f"The winner is k = {result.k} with L_MS {at_most(result.l_ms)} and L_EE {at_most(result.l_ee)}. "
        "All values are in the table below the figure."
    )


def _draw_spread(result: Result, splits: Sequence[OneSplit]) -> str:
    value = _split_value(result.certificate.winner)
    select, estimate = [s.select_bound for s in splits], [s.estimate_bound for s in splits]
    label = (
        f"{value.capitalize()}s of the {len(splits)} splits. On the select sets from "
        f"{at_most(min(select))} to "
        f"{at_most(max(select))}, mean L_MS {at_most(result.l_ms)}; on the estimate sets from "
        f"{at_most(min(estimate))} to {at_most(max(estimate))}, mean "
        f"{at_most(sum(estimate) / len(estimate))}. "
        "All values are in the table below the figure."
    )
    return figures.draw_spread(select, estimate, label, value)


def _known(formatted: Callable[[float], str], value: float | None) -> str:
    """Format a number that may be missing."""
    return "–" if value is None else formatted(value)


@cache
def template(name: str) -> Any:
    """Return a template that escapes everything, with filters that format numbers; each is compiled once."""
    environment = Environment(
        loader=PackageLoader("ckcv_ray.reports"),
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filtered, formatted in {"percent": nearest, "at_most": at_most, "at_least": at_least}.items():
        environment.filters[filtered] = partial(_known, formatted)
    environment.filters["limit"] = limit
    environment.filters["counts"] = describe_counts
    environment.filters["quantity"] = quantity
    environment.filters["level"] = level_of
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: "–" if value is None else f"{value:g}"
    environment.filters["figure"] = lambda value: "–" if value is None or value != value else f"{value:.4f}"
    return environment.get_template(name)
