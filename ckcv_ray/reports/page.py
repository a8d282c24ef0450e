"""HTML page of a finished study, with sections about what it has: claims and candidates, or scores.

One file without scripts, with figures as SVG and again as tables. Names and labels come from the data, so the
template escapes everything except the figures, which contain no text of the data. The page is a function of
the folder's files.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ckcv_ray.claims.percent import at_least, at_most, format_level, nearest
from ckcv_ray.claims.wording import describe_counts, limit, quantity
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import printable
from ckcv_ray.records.record import Failure
from ckcv_ray.reports.scores import describe_scores
from ckcv_ray.reports.selection import describe_run, shorten_setting
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study import Problem


def page(result: ResultValues, queue: RaceQueue | None, manifest: str) -> str:
    """Return the HTML page of a finished study.

    Args:
        result: what it knows.
        queue: with a certification its log, replayed.
        manifest: SHA-256 of its manifest.

    Raises:
        StoreError: the log does not lead to the certificate's winner.
    """
    problem, execution, digests = result.problem, result.execution, {"manifest.json": manifest}
    if queue is not None:
        sections, failures = describe_run(result, queue), tuple(queue.failures())
        study, digests = _list_options(result), {**result.certificate.origin.digests, **digests}
    else:
        sections, failures = describe_scores(result), result.failures
        study = flatten(problem.study.to_json())
    environment = flatten(execution.get("environment", {}))
    filled: str = _load_template().render(
        result=result,
        task=problem.task,
        failures=_group_failures(failures, problem),
        cost=[*([("search", sections["search"])] if "search" in sections else []), *_list_costs(execution)],
        study=study,
        environment=[("package", execution.get("package", "unknown")), *environment],
        digests=digests,
        **sections,
    )
    return filled


def _list_costs(execution: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a run took, by name."""
    counts = execution["evaluations"]
    computed = f"{counts['computed']:,} ({nearest(counts['computed'] / counts['planned'])})"
    return [
        ("evaluations planned", f"{counts['planned']:,}"),
        ("computed", computed),
        ("dropped as provably beaten", f"{counts['dropped']:,}"),
        ("failed", f"{counts['failed']:,}"),
        ("fits", f"{execution['fits']:,}"),
        ("fits stopped at the iteration limit", f"{execution['not_converged']:,}"),
        ("seconds", f"{execution['seconds']:.1f}"),
        ("workers", execution.get("workers", "unknown")),
        ("backend", execution.get("backend", "unknown")),
    ]


def _group_failures(failures: Sequence[Failure], problem: Problem) -> list[tuple[str, list[Any]]]:
    """Return tracebacks, each with the paths that failed with it: stage, k, split, first and last setting."""
    groups: dict[str, list[Any]] = {}
    for failure in failures:
        first, last = (
            shorten_setting(problem.learner.space.setting(failure.path, step))
            for step in (failure.first, failure.stop - 1)
        )
        stage, k = "estimate" if failure.estimate else "select", problem.folds[failure.size].k
        groups.setdefault(failure.traceback, []).append((stage, k, failure.split, first, last))
    return list(groups.items())


def _list_options(result: ResultValues) -> list[tuple[str, str]]:
    """Format the options of a study with a certification, grids in full."""
    values = result.study.options()
    values |= {"k": values["k"] or f"3:{result.task.n_units} (all)"}
    return [(name, _format_option(value)) for name, value in values.items()]


def _format_option(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(item if isinstance(item, str) else f"{item:.12g}" for item in value) or "none"
    return f"{value:,}" if type(value) is int else str(value)


def flatten(values: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten nested JSON values into pairs of a dotted name and text."""
    if isinstance(values, dict):
        nested = [flatten(value, f"{name}.{key}" if name else str(key)) for key, value in values.items()]
        return [pair for pairs in nested for pair in pairs]
    return [(name, ", ".join(map(str, values)) if isinstance(values, list) else str(values))]


def _format_known(formatted: Callable[[float], str], value: float | None) -> str:
    """Format a number that may be missing."""
    return "–" if value is None else formatted(value)


@cache
def _load_template() -> Any:
    """Return the template, which escapes everything, with filters that format numbers; compiled once."""
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
        environment.filters[filtered] = partial(_format_known, formatted)
    environment.filters["limit"] = limit
    environment.filters["counts"] = describe_counts
    environment.filters["quantity"] = quantity
    environment.filters["level"] = format_level
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: "–" if value is None else f"{value:g}"
    environment.filters["figure"] = lambda value: "–" if value is None or value != value else f"{value:.4f}"
    return environment.get_template("page.html")
