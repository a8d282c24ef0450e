"""The HTML page of a finished run, from its folder alone: nothing is unpickled, fetched or executed.

One file without scripts, in which figures stand as SVG and again as tables. Names and labels come from the
data: the template escapes all it is given but the figures, and these hold no text of the data. The page is
a function of the folder's files.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from ckcv_ray.claims.certificate import at_most, level_of, repeats_told
from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.errors import StoreError, printable
from ckcv_ray.reports import figures
from ckcv_ray.reports.figures import Landscape, Span
from ckcv_ray.runs.load import load_run, replay
from ckcv_ray.runs.result import LIKEWISE, Result
from ckcv_ray.storage.candidates import triple_of
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Failure

REPORTED = ("winner", "reported")


class OneSplit(NamedTuple):
    """Errors of the winner on one split's select and estimate set, and the bounds they give."""

    mc_index: int
    select_errors: int
    select_bound: float
    estimate_errors: int
    estimate_bound: float


class Loss(NamedTuple):
    """Paths that failed alike: at what, and with which traceback."""

    traceback: str
    failures: list[Failure]


def page(out: str | Path) -> str:
    """The page of the finished run in ``out``.

    Raises:
        StoreError: there is no finished run, or it is damaged.
    """
    result, aggregator = load_run(out), replay(out)
    leader = _leader(result, aggregator)
    at, spans = landscape(result, aggregator, leader), fold_spans(result.per_k())
    splits = single_splits(result, aggregator, leader)
    filled: str = _template().render(
        result=result,
        certificate=result.certificate,
        claims=result.certificate.claims,
        repeats=repeats_told(result.certificate.repeats, result.certificate.n_rows),
        likewise=LIKEWISE[result.certificate.bound],
        notes=_notes(result),
        at=at,
        spans=spans,
        splits=splits,
        losses=_losses(aggregator.failures()),
        landscape=figures.draw_landscape(at, _landscape_in_words(result, at)),
        folds=figures.draw_folds(spans, _folds_in_words(result, spans)),
        spread=_draw_spread(result, splits),
        classes=_classes(result),
        study=_parameters(result),
        environment=list(_flat(result.execution.get("environment", {}))),
        digests={**result.certificate.digests, "manifest.json": RunFolder(out).sha256("manifest.json")},
    )
    return filled


def landscape(result: Result, aggregator: Aggregator, leader: Leader) -> Landscape:
    """L_MS over C and gamma at the winner's k, as far as the log of cells knows it.

    The log holds more splits of a beaten triple than the proof that the table of triples keeps.
    """
    fold = aggregator.selection.sizes[leader.size]
    value = np.array([[fold.exact_low(g, c) for c in range(fold.low.shape[1])] for g in range(len(fold.low))])
    states = [row["state"] for row in result.triples.to_pylist() if row["k"] == result.k]
    failed = np.array(states).reshape(value.shape) == "failed"
    best = leader.gamma, leader.C
    return Landscape(result.study.C, result.study.gamma, value, fold.prefix, failed, fold.n_splits, best)


def fold_spans(rows: Sequence[dict[str, Any]]) -> list[Span]:
    """The rows of ``Result.per_k`` with neighbours of one fold size and one fate drawn together."""

    def fate(row: dict[str, Any]) -> tuple[Any, ...]:
        own = row["k"] if row["state"] in REPORTED else None
        return row["n_select"], row["state"], row["lower_bound"], own

    groups = [list(group) for _, group in groupby(rows, fate)]
    return [
        Span(first=group[0]["k"], last=group[-1]["k"], **{n: v for n, v in group[0].items() if n != "k"})
        for group in groups
    ]


def single_splits(result: Result, aggregator: Aggregator, leader: Leader) -> list[OneSplit]:
    """The winner's errors and bounds, split by split."""
    fold, certificate = aggregator.selection.sizes[leader.size], result.certificate
    counts = [int(count) for count in fold.counts[:, leader.gamma, leader.C]]
    bounds = clopper_pearson(list(certificate.errors), certificate.n_select, certificate.delta)
    select = fold.prefix_bounds(leader.gamma, leader.C)
    rows = zip(counts, select, certificate.errors, (float(bound) for bound in bounds), strict=True)
    return [OneSplit(i, *row) for i, row in enumerate(rows)]


def _leader(result: Result, aggregator: Aggregator) -> Leader:
    """The winner's position, where the log of cells leads to the certificate's winner."""
    leader = aggregator.selection.winner()
    winner = (result.C, result.gamma, result.k)
    if leader is None or triple_of(aggregator.study, aggregator.sizes, leader) != winner:
        raise StoreError("the log of cells does not lead to the certificate's winner: see ckcv verify")
    return leader


def _notes(result: Result) -> list[str]:
    """What to know before quoting the number."""
    notes = result.edges()
    if capped := result.execution["capped"]:
        notes.append(f"{capped:,} fits stopped at the iteration cap of {result.study.max_iter:,}")
    if failed := result.execution["cells"]["failed"]:
        notes.append(f"{failed:,} cells failed; their tracebacks are below")
    return notes


def _classes(result: Result) -> list[dict[str, Any]]:
    certificate = result.certificate
    negative, positive = certificate.labels
    return [
        {"actual": negative, "taken": positive, **certificate.false_positives},
        {"actual": positive, "taken": negative, **certificate.false_negatives},
    ]


def _parameters(result: Result) -> dict[str, str]:
    """The study's fields for people; a grid in full."""
    values = result.study.to_json() | {"k": result.study.k or f"3:{result.table.n} (every one)"}
    return {name: _listed(value) for name, value in values.items()}


def _listed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(item if isinstance(item, str) else f"{item:.12g}" for item in value) or "none"
    return f"{value:,}" if type(value) is int else str(value)


def _flat(values: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested JSON values as pairs of a dotted name and text."""
    if isinstance(values, dict):
        nested = [_flat(value, f"{name}.{key}" if name else str(key)) for key, value in values.items()]
        return [pair for pairs in nested for pair in pairs]
    return [(name, ", ".join(map(str, values)) if isinstance(values, list) else str(values))]


def _losses(failures: Sequence[Failure]) -> list[Loss]:
    alike: dict[str, list[Failure]] = {}
    for failure in failures:
        alike.setdefault(failure.traceback, []).append(failure)
    return [Loss(traceback, paths) for traceback, paths in alike.items()]


def _landscape_in_words(result: Result, at: Landscape) -> str:
    complete = int(np.sum(at.splits == at.n_splits))
    return (
        f"L_MS over C and gamma at k = {result.k}. Least: {100 * result.l_ms:.2f} % at C = {result.C:g}, "
        f"gamma = {result.gamma:g}. {complete} of {at.value.size} triples have all {at.n_splits} splits; of "
        "the others a lower bound is drawn. All values are in the table below the figure."
    )


def _folds_in_words(result: Result, spans: Sequence[Span]) -> str:
    return (
        f"L_MS or its lower bound, and L_EE, against k from {spans[0].first} to {spans[-1].last}. "
        f"The winner is k = {result.k} with L_MS {100 * result.l_ms:.2f} % and L_EE {100 * result.l_ee:.2f} "
        "%. All values are in the table below the figure."
    )


def _draw_spread(result: Result, splits: Sequence[OneSplit]) -> str:
    select, estimate = [s.select_bound for s in splits], [s.estimate_bound for s in splits]
    label = (
        f"Bounds of the {len(splits)} single splits. On the select sets from {100 * min(select):.2f} to "
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
