"""HTML page of a finished run, made from its folder alone: nothing is unpickled, downloaded or executed.

One file without scripts, with figures as SVG and again as tables. Names and labels come from the data, so the
template escapes everything except the figures, which contain no text of the data. The page is a function of
the folder's files.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from ckcv_ray.claims.wording import at_most, level_of, repeats_statement
from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.core.selection import ABSENT, Leader
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.errors import StoreError, printable
from ckcv_ray.learners.ensemble import Failure
from ckcv_ray.reports import figures
from ckcv_ray.reports.figures import Axis, Landscape, Span
from ckcv_ray.runs.load import load_run, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.summary import L_EE_IS
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Candidate, Problem

MOST_NAMED = 5


class OneSplit(NamedTuple):
    """Errors of the winner on the select and the estimate set of one split, and their bounds."""

    split: int
    select_errors: int
    select_bound: float
    estimate_errors: int
    estimate_bound: float


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
    aggregator = replay(out, result.problem)
    leader = _leader(result, aggregator)
    at, spans = landscape(result.candidates, aggregator, leader), fold_spans(result.per_k())
    splits = single_splits(result, aggregator, leader)
    filled: str = _template().render(
        result=result,
        certificate=result.certificate,
        winner=Candidate(result.setting, result.k),
        shown_labels=_shown_labels(result),
        claims=result.certificate.claims,
        repeats=repeats_statement(result.certificate.repeats, result.certificate.n_rows),
        l_ee_is=L_EE_IS[result.certificate.bound],
        notes=_notes(result),
        at=at,
        spans=spans,
        splits=splits,
        failures=_failure_groups(aggregator.failures(), result.problem),
        landscape=figures.draw_landscape(at, _describe_landscape(result, at)),
        folds=figures.draw_folds(spans, _describe_folds(result, spans)),
        spread=_draw_spread(result, splits),
        classes=_classes(result),
        study=_parameters(result),
        environment=list(_flat(result.execution.get("environment", {}))),
        digests={**result.certificate.digests, "manifest.json": RunFolder(out).sha256("manifest.json")},
    )
    return filled


def landscape(candidates: pa.Table, aggregator: Aggregator, leader: Leader) -> Landscape:
    """Return L_MS, or its lower bound from the log, over all settings at the winner's k.

    The log can hold more splits of a beaten candidate than the table of candidates, which keeps only a proof.
    """
    fold, problem = aggregator.selection.sizes[leader.size], aggregator.problem
    exists = fold.values[0] != ABSENT
    value = np.full(exists.shape, np.nan)
    for path, step in np.argwhere(exists):
        value[path, step] = fold.exact_low(path, step)
    here = pc.equal(candidates["k_first"], problem.sizes[leader.size].k_first)
    lost = candidates.filter(pc.and_(here, pc.equal(candidates["state"], "failed")))
    failed = np.zeros(exists.shape, np.bool_)
    failed[lost["path"].to_numpy(), lost["step"].to_numpy()] = True
    best = leader.path, leader.step
    return Landscape(*axes_of(problem), value, fold.prefix, failed, fold.n_splits, best)


def axes_of(problem: Problem) -> tuple[Axis, Axis]:
    """Return the axes of a search space: that of its steps and that of its paths.

    An axis is named by a hyperparameter that alone determines the step, or the path; if there is none, they
    are counted.
    """
    lengths = list(problem.learner.lengths)
    ends = np.cumsum(lengths)
    columns = {name: np.split(values, ends[:-1]) for name, values in problem.learner.settings().items()}
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


def single_splits(result: Result, aggregator: Aggregator, leader: Leader) -> list[OneSplit]:
    """Return the winner's errors and bounds on each split."""
    fold, certificate = aggregator.selection.sizes[leader.size], result.certificate
    at = [(False, leader.size, split, leader.path, leader.step) for split in range(fold.n_splits)]
    counts = [sum(aggregator.ledger.totals(*one) or ()) for one in at]
    bounds = clopper_pearson(list(certificate.errors), certificate.n_select, certificate.delta)
    select = fold.prefix_values(leader.path, leader.step)
    rows = zip(counts, select, certificate.errors, (float(bound) for bound in bounds), strict=True)
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
    return list(result.certificate.labels[:MOST_NAMED])


def _leader(result: Result, aggregator: Aggregator) -> Leader:
    """Return the winner's position; raise StoreError if the log and the certificate differ on it."""
    leader = aggregator.selection.winner()
    winner = Candidate(result.setting, result.k)
    if leader is None or aggregator.problem.candidate(leader) != winner:
        raise StoreError("the log does not lead to the certificate's winner: see ckcv verify")
    return leader


def _notes(result: Result) -> list[str]:
    """List what to know before quoting the bound."""
    notes = result.edges()
    if not_converged := result.execution["not_converged"]:
        notes.append(f"{not_converged:,} fits did not converge: {result.problem.learner.convergence_advice}")
    if failed := result.execution["evaluations"]["failed"]:
        notes.append(f"{failed:,} evaluations failed; their tracebacks are below")
    return notes


def _classes(result: Result) -> list[dict[str, Any]]:
    """Return the errors of each class, with the label predicted instead if there are two classes."""
    labels = result.certificate.labels
    return [
        {"actual": label, "predicted": labels[1 - number] if len(labels) == 2 else None, **side}
        for number, (label, side) in enumerate(zip(labels, result.certificate.by_class, strict=True))
    ]


def _parameters(result: Result) -> dict[str, str]:
    """Format the study's options, grids in full."""
    values = result.study.options()
    values |= {"k": values["k"] or f"3:{result.task.n} (all)"}
    return {name: _listed(value) for name, value in values.items()}


def _listed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(item if isinstance(item, str) else f"{item:.12g}" for item in value) or "none"
    return f"{value:,}" if type(value) is int else str(value)


def _flat(values: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten nested JSON values into pairs of a dotted name and text."""
    if isinstance(values, dict):
        nested = [_flat(value, f"{name}.{key}" if name else str(key)) for key, value in values.items()]
        return [pair for pairs in nested for pair in pairs]
    return [(name, ", ".join(map(str, values)) if isinstance(values, list) else str(values))]


def _failure_groups(failures: Sequence[Failure], problem: Problem) -> list[FailureGroup]:
    by_traceback: dict[str, list[FailedPath]] = {}
    for one in failures:
        first, last = (dict(problem.learner.setting(one.path, step)) for step in (one.first, one.stop - 1))
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


def _describe_landscape(result: Result, at: Landscape) -> str:
    exists = ~np.isnan(at.value)
    complete = int(np.sum((at.splits == at.n_splits) & exists))
    return (
        f"L_MS over {at.steps.name} and {at.paths.name} at k = {result.k}. Minimum: {100 * result.l_ms:.2f} "
        f"% at {_format_setting(dict(result.setting))}. {complete} of {int(np.sum(exists))} candidates have "
        f"all {at.n_splits} splits; for the others a lower bound is drawn. All values are in the table "
        "below the figure."
    )


def _describe_folds(result: Result, spans: Sequence[Span]) -> str:
    return (
        f"L_MS or its lower bound, and L_EE, against k from {spans[0].first} to {spans[-1].last}. "
        f"The winner is k = {result.k} with L_MS {100 * result.l_ms:.2f} % and L_EE {100 * result.l_ee:.2f} "
        "%. All values are in the table below the figure."
    )


def _draw_spread(result: Result, splits: Sequence[OneSplit]) -> str:
    select, estimate = [s.select_bound for s in splits], [s.estimate_bound for s in splits]
    label = (
        f"Bounds of the {len(splits)} splits. On the select sets from {100 * min(select):.2f} to "
        f"{100 * max(select):.2f} %, mean L_MS {100 * result.l_ms:.2f} %; on the estimate sets from "
        f"{100 * min(estimate):.2f} to {100 * max(estimate):.2f} %, mean "
        f"{100 * sum(estimate) / len(estimate):.2f} %. "
        "All values are in the table below the figure."
    )
    return figures.draw_spread(select, estimate, label)


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("ckcv_ray.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda value: "–" if value is None else f"{100 * value:.2f} %"
    environment.filters["at_most"] = at_most
    environment.filters["level"] = level_of
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: "–" if value is None else f"{value:g}"
    return environment.get_template("report.html")
