"""HTML page of a finished study, with sections about what it has: claims and candidates, or scores.

One file without scripts, with figures as SVG and again as tables. Names and labels come from the data, so the
template escapes everything except the figures, which contain no text of the data. The page is a function of
the folder's files.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined

from ckcv_ray.claims.baseline import describe_error
from ckcv_ray.claims.claim import describe_counts, limit, name_side, quantity
from ckcv_ray.claims.percent import at_least, at_most, format_level, nearest
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import printable
from ckcv_ray.records.record import Failure
from ckcv_ray.reports.about import NOTHING_SAID, About
from ckcv_ray.reports.answer import name_search
from ckcv_ray.reports.data import describe_data
from ckcv_ray.reports.explanation import (
    METHOD_SOURCES,
    describe_method,
    describe_models,
    describe_question,
)
from ckcv_ray.reports.judged import judge_rows, read_judged
from ckcv_ray.reports.measured import describe_performance
from ckcv_ray.reports.numbers import describe_errors
from ckcv_ray.reports.opening import make_title, open_run, open_scores
from ckcv_ray.reports.scores import describe_scores
from ckcv_ray.reports.selection import describe_run, shorten_setting
from ckcv_ray.reports.summary import list_doubts
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study import Problem, is_error

LAST_SECTIONS = (
    ("models", "Models"),
    ("cost", "Time spent"),
    ("study", "Options"),
    ("environment", "Environment"),
    ("glossary", "Glossary"),
    ("verify", "How to verify it"),
)
CONTENTS = {  # of the page, by whether there is a certification: the place and the heading of each section
    True: (
        ("figures", "In figures"),
        ("method", "Method"),
        ("data", "Data"),
        ("performance", "Performance"),
        ("claims", "Claims and assumptions"),
        ("search", "Search"),
        ("winner", "Winner"),
        *LAST_SECTIONS,
    ),
    False: (
        ("method", "Method"),
        ("data", "Data"),
        ("scores", "Scores"),
        ("performance", "Performance"),
        *LAST_SECTIONS,
    ),
}
NOT_OF_NUMBERS = ("search", "winner")  # sections of the page that numbers have not
NOT_SET = "–"


def page(
    result: ResultValues,
    queue: RaceQueue | None,
    manifest: str,
    about: About = NOTHING_SAID,
    held_out: pa.Table | None = None,
) -> str:
    """Return the HTML page of a finished study.

    Args:
        result: what it knows.
        queue: with a certification its log, replayed.
        manifest: SHA-256 of its manifest.
        about: what a person says of the report.
        held_out: without a certification, the predictions that its folder keeps; None if it keeps none.

    Raises:
        StoreError: the log does not lead to the certificate's winner, or a stored model cannot classify rows.
    """
    problem, certified = result.problem, queue is not None
    judged = judge_rows(result) if certified else read_judged(result, held_out)
    values = {
        "result": result,
        "task": problem.task,
        "about": about,
        "title": make_title(result, about),
        "heading": _list_heading(result, about),
        "closing": f"Made by ckcv report from the files of run {result.run_id} alone; this page loads "
        "nothing and runs no script. It claims no conformity with any standard or law.",
        "opening": open_run(result) if certified else open_scores(result, list_doubts(result)),
        "question": describe_question(result),
        "method": describe_method(result),
        "reference": METHOD_SOURCES[certified],
        **describe_data(result),
        **describe_performance(result, judged),
    }
    if about.short:
        certificate = result.certificate if certified else None
        return _fill(values | {"certificate": certificate})
    sections, failures = _describe_sections(result, queue)
    environment = flatten(result.execution.get("environment", {}))
    digests = {"manifest.json": manifest}
    left_out = NOT_OF_NUMBERS if certified and result.task.has_numbers else ()
    return _fill(
        {
            **values,
            "contents": [part for part in CONTENTS[certified] if part[0] not in left_out],
            "models": describe_models(result),
            "failures": _group_failures(failures, problem),
            "cost": [
                *([("search", sections["search"])] if "search" in sections else []),
                *_list_costs(result.execution),
            ],
            "study": _list_options(result) if certified else flatten(problem.study.to_json()),
            "environment": [("package", result.execution.get("package", "unknown")), *environment],
            "digests": {**result.certificate.origin.digests, **digests} if certified else digests,
            **sections,
        }
    )


def _describe_sections(
    result: ResultValues, queue: RaceQueue | None
) -> tuple[dict[str, Any], Sequence[Failure]]:
    """Return the sections about the search, or about the scores, and what failed."""
    if queue is None:
        return describe_scores(result), result.failures
    if result.task.has_numbers:
        return {**describe_errors(result.certificate), "search": name_search(result)}, tuple(queue.failures())
    return describe_run(result, queue), tuple(queue.failures())


def _fill(values: dict[str, Any]) -> str:
    filled: str = _load_template().render(values)
    return filled


def _list_heading(result: ResultValues, about: About) -> list[str]:
    return [
        f"finished {result.execution['finished']}",
        f"author: {about.author}" if about.author else "author not named",
        f"{'procedure' if result.finished is None else 'run'} {result.run_id}",
        f"ckcv_ray {result.execution.get('package', 'of unknown version')}",
    ]


def _list_costs(execution: Mapping[str, Any]) -> list[tuple[str, str]]:
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
    values = result.study.options()
    values |= {"k": values["k"] or f"3:{result.task.n_units} (all)"}
    return [(name, _format_option(value)) for name, value in values.items()]


def _format_option(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(item if isinstance(item, str) else f"{item:.12g}" for item in value) or "none"
    return f"{value:,}" if type(value) is int else _format_plain(value)


def _format_plain(value: Any) -> str:
    if value is None or value == "":
        return NOT_SET
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def flatten(values: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten nested JSON values into pairs of a dotted name and text.

    Items of a list are named by their ``name``, or counted from 1.
    """
    if isinstance(values, list | tuple) and values and all(isinstance(value, dict) for value in values):
        values = {str(value.get("name", i)): value for i, value in enumerate(values, start=1)}
    if isinstance(values, dict):
        nested = [flatten(value, f"{name}.{key}" if name else str(key)) for key, value in values.items()]
        return [pair for pairs in nested for pair in pairs]
    if isinstance(values, list | tuple):
        return [(name, ", ".join(map(_format_plain, values)) or "none")]
    return [(name, _format_plain(values))]


def _format_known(formatted: Callable[[float], str], value: float | None) -> str:
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
    environment.filters["side"] = name_side
    environment.filters["counts"] = describe_counts
    environment.filters["quantity"] = quantity
    environment.filters["level"] = format_level
    environment.filters["error"] = describe_error
    environment.tests["error"] = lambda claim: is_error(claim["quantity"])
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: "–" if value is None else f"{value:g}"
    environment.filters["figure"] = lambda value: "–" if value is None or value != value else f"{value:.4f}"
    return environment.get_template("page.html")
