"""HTML page of a finished study, with sections about what it has: claims and candidates, or scores.

One file without scripts, with figures as SVG and again as tables. Names and labels come from the data, so the
template escapes everything except the figures, which contain no text of the data. The page is a function of
the folder's files.

The first screen answers six questions: what the number is, whether it may be quoted, what it is about, what
voids it, how it is checked, and what to do next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.claims.baseline import describe_error
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.claims.wording import describe_minimised
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.core.resampling.complete import Rotation
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import cut, pluralize, printable
from ckcv_ray.records.judged import describe_judged
from ckcv_ray.records.record import Failure
from ckcv_ray.reports.about import NOTHING_SAID, About
from ckcv_ray.reports.answer import describe_errors, describe_passed_over, make_answer, name_search
from ckcv_ray.reports.measured import describe_performance
from ckcv_ray.reports.selection import describe_run, describe_scores, shorten_setting
from ckcv_ray.reports.summary import describe_edges, format_score, list_doubts
from ckcv_ray.runs.judged import judge_rows, read_judged
from ckcv_ray.runs.values import Entry, ResultValues
from ckcv_ray.study import Holdout, Problem
from ckcv_ray.tables.columns.formats import Column, ColumnKind
from ckcv_ray.tables.task import Task

MAX_DESCRIBED = 200  # that are described
MAX_OPEN_COLUMNS = 25  # of which the table is not folded
QUARTILES = (0.25, 0.5, 0.75)


class ClassRows(NamedTuple):
    """Rows of a class and their share."""

    label: Any
    rows: int
    share: float


class ColumnFacts(NamedTuple):
    """What is known of a column that is learned from.

    Attributes:
        name, kind: of the column.
        missing: number of gaps.
        share: of the rows, how many have a gap.
        distinct: number of different values.
        typical: median and quartiles, or the most common category.
    """

    name: str
    kind: str
    missing: int
    share: float
    distinct: int
    typical: str


def describe_data(result: ResultValues) -> dict[str, Any]:
    """Return what the page shows of the table, including the rows held out."""
    task = result.problem.all_rows
    columns = [
        _describe_column(task.X[:, i], column) for i, column in enumerate(task.schema.columns[:MAX_DESCRIBED])
    ]
    rows = [] if task.has_numbers else np.bincount(task.y, minlength=task.n_classes).tolist()
    pairs = zip(task.classes, rows, strict=True)
    return {
        "facts": list(_list_facts(result, task)),
        "class_rows": [ClassRows(label, count, count / task.n) for label, count in pairs],
        "columns": columns,
        "columns_open": len(columns) <= MAX_OPEN_COLUMNS,
        "more_columns": [column.name for column in task.schema.columns[MAX_DESCRIBED:]],
    }


def _list_facts(result: ResultValues, task: Task) -> Iterator[tuple[str, str]]:
    held = 0 if result.problem.held is None else task.n - result.task.n
    divided = f": {result.task.n:,} to learn from, {held:,} held out" if held else ""
    kinds = [column.kind for column in task.schema.columns]
    counted = [
        pluralize(kinds.count(kind), name, many)
        for kind, name, many in (
            (ColumnKind.NUMBER, "number", "numbers"),
            (ColumnKind.CATEGORY, "category", "categories"),
            (ColumnKind.DATE, "date", "dates"),
        )
        if kind in kinds
    ]
    repeats = result.repeats.rows if result.finished is None else result.certificate.sample.repeats
    gaps = np.isnan(task.X).sum(axis=0)
    missing = (
        f"{int(gaps.sum()):,} of {task.X.size:,} cells ({format_percent(float(gaps.sum()) / task.X.size)})"
    )
    target = pluralize(task.n_classes, "class", "classes")
    if task.has_numbers:
        target = f"a number, median (and quartiles) {_describe_numbers(task.y)}"
    yield "table", task.source or result.execution.get("source") or "arrays"
    yield "rows", f"{task.n:,}{divided}"
    if task.grouped:
        sizes = np.bincount(task.groups)
        least, most = int(sizes.min()), int(sizes.max())
        each = f"{least:,} to {most:,} rows each" if least < most else f"{pluralize(least, 'row')} each"
        independent = "groups are independent, their rows may not be"
        yield "groups", f"{len(sizes):,}, by {task.group} ({each}); {independent}"
    if result.finished is not None and result.finished.judged is not None:
        yield "judged rows", describe_judged(result.finished.judged)
    yield "columns learned from", f"{len(kinds):,} ({', '.join(counted)})"
    yield "target", f"{task.target}: {target}"
    yield "gaps", f"{missing}, in {int(np.count_nonzero(gaps)):,} of the columns" if gaps.any() else "none"
    yield "rows that equal another row", f"{repeats:,}" if repeats else "none"
    if task.weighting.given:
        yield "weights in fits", f"by {task.weight}"


def _describe_column(x: Values, column: Column) -> ColumnFacts:
    known = x[~np.isnan(x)]
    missing, distinct = len(x) - len(known), len(np.unique(known))
    return ColumnFacts(
        column.name, str(column.kind), missing, missing / len(x), distinct, _find_typical(known, column)
    )


def _find_typical(known: Values, column: Column) -> str:
    """Return median and quartiles, or the most common category and its share of the rows without a gap."""
    if not len(known):
        return ""
    if column.kind is ColumnKind.CATEGORY:
        counts = np.bincount(known.astype(np.intp))
        best = int(np.argmax(counts))
        return f"{column.levels[best]} ({format_percent(counts[best] / len(known))})"
    if column.kind is ColumnKind.DATE:
        low, middle, high = (_format_date(value) for value in np.quantile(known, QUARTILES))
        return f"{middle} ({low} to {high})"
    return _describe_numbers(known)


def _describe_numbers(known: Values) -> str:
    low, middle, high = np.quantile(known, QUARTILES)
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"


def _format_date(milliseconds: float) -> str:
    """Return a day as text; dates far outside the calendar as milliseconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds:.4g} ms"


METHOD_SOURCES = {  # of the method, by whether there is a certification
    True: "D. Anguita, L. Ghelardoni, A. Ghio, L. Oneto, S. Ridella: The ‘K’ in K-fold Cross Validation, "
    "ESANN 2012.",
    False: "S. Arlot, A. Celisse: A survey of cross-validation procedures for model selection, Statistics "
    "Surveys 4, 2010.",
}


def _describe_selection(result: ResultValues) -> list[str]:
    winner, sample = result.certificate.winner, result.certificate.sample
    unit = "rows" if sample.groups is None else "groups"
    divided = f"the {unit} were divided at random {pluralize(winner.n_splits, 'time')} into"
    if result.study.resampling.name == Rotation.name:
        divided = f"the {unit} were shuffled and cut into k parts, which in turn were"
    refit = ", and one more model was fitted on all rows that were not held out" if sample.n_held else ""
    members = pluralize(len(result.ensemble.members), "model")
    minimised = describe_minimised(winner.criterion, winner.bound, winner.delta).partition(" (")[0]
    return [
        f"For every candidate, a setting of the learner with a number of folds k, {divided} a part to "
        "learn from, a part to select by and a part to estimate on.",
        f"The candidate with the smallest {minimised} won, and was fitted again on each of its splits; these "
        f"{members} are the ensemble F*{refit}.",
        _describe_proof(result),
    ]


def _describe_proof(result: ResultValues) -> str:
    sample, first = result.certificate.sample, result.certificate.claims.first
    level = format_level(first.delta)
    if first.certification != Holdout.name:
        return (
            "The bound comes from the parts to estimate on, and pays for the selection: each candidate has "
            f"its share of the probability to fail, so that it holds at {level} whichever was selected."
        )
    limit = f"a limit for independent {'rows' if sample.groups is None else 'groups'}"
    if sample.numbers is None and not sample.groups:
        limit = "the exact binomial limit of Clopper and Pearson"
    wrong = "how many of them are judged wrongly"
    if sample.numbers is not None:
        wrong = "how far off the predictions for them are"
    used = f"The bound comes from {sample.n_held:,} rows that nothing used before"
    return f"{used}: {wrong}, and {limit} at {level}."


def _describe_scoring(result: ResultValues) -> list[str]:
    splits = "one split" if result.n_splits == 1 else f"each of {result.n_splits:,} splits"
    chosen = (
        f"Settings were selected inside the training rows of each split, by {result.study.select_by}."
        if result.chosen is not None
        else "No setting was selected: every line of the tables is fitted as it is named."
    )
    return [
        f"The rows were divided by {result.study.resampling}: on {splits} a learner is fitted on some rows "
        "and scored on others.",
        chosen,
        "A figure is the mean over splits, an estimate of what a model fitted on as many rows scores on "
        "new rows of the same source.",
    ]


def describe_question(result: ResultValues) -> str:
    """Say what was asked of a study, in a sentence."""
    learners, target = ", ".join(result.problem.learners), result.task.target
    if result.finished is None:
        names = ", ".join(score.name for score in result.scores)
        return f"How well is {target} predicted by {learners}, as measured by {names}?"
    numbers, of = result.task.has_numbers, "rows of new groups" if result.task.grouped else "new rows"
    return (
        f"Which setting of {learners}, with which number of folds, predicts {target} best among "
        f"{len(result.candidates):,} candidates, and how {'far off' if numbers else 'often'} is it "
        f"{'' if numbers else 'wrong '}at most on {of}?"
    )


def describe_models(result: ResultValues) -> list[tuple[str, str]]:
    """Return what models the folder holds, by name."""
    if result.finished is None:
        none = "none: the study keeps scores"
        return [("model", none if result.kept is None else f"{result.kept.name}, fitted on all rows")]
    models, one = result.models, "one model at the winner's setting, fitted on all rows"
    members = f"{pluralize(len(models.best.members), 'model')}, each fitted on the rows of its split"
    found = [("F*", f"{members} but those that estimate; k = {result.k}")]
    if models.refit is not None:
        found.append(("refit", f"{one} that were not held out"))
    if models.full is not None:
        found.append(("full", f"{one}; nothing is proven for it alone"))
    return found


MAX_LABELS, MAX_LABEL = 3, 40


class ShellCommand(NamedTuple):
    """What to do: the command, without the program's name, and what to know of it, a sentence each."""

    command: str
    sentences: Sequence[str]


class Opening(NamedTuple):
    """The answers to what a reader asks first.

    Attributes:
        state: "quote", "worthless", "provisional" or "estimate".
        kicker: heading of the number.
        number: the number as text; "" if none may be quoted.
        name: what it is of, in a few words.
        statement: the sentence to quote with it; "" if there is none.
        quotable: whether and how it may be quoted, a sentence each.
        notes: what to look at before, a sentence each.
        subject: what it is about, a sentence each.
        voids: what makes it invalid, a phrase each.
        check: how it is checked.
        advice: what to do next.
    """

    state: str
    kicker: str
    number: str
    name: str
    statement: str
    quotable: Sequence[str]
    notes: Sequence[str]
    subject: Sequence[str]
    voids: Sequence[str]
    check: ShellCommand
    advice: ShellCommand


def make_title(result: ResultValues, about: About) -> str:
    """Return the title of a report: the one that was asked for, or one with the target and the table."""
    source = result.execution.get("source") or result.task.source
    of_table = f" from {source}" if source and source != "arrays" else ""
    return about.title or f"Prediction of {result.task.target}{of_table}"


def open_run(result: ResultValues) -> Opening:
    """Return the answers about a study with a certification."""
    certificate, answer = result.certificate, make_answer(result)
    quoted, facts = answer.quoted, dict(answer.facts)
    state, kicker = "quote", "The number to quote"
    if quoted is None:
        state, kicker = "worthless", "Nothing to quote yet"
    if certificate.winner.provisional:
        state = "provisional"
        kicker = "Provisional: evaluations failed; the bound is proven nevertheless"
    return Opening(
        state,
        kicker,
        "" if quoted is None else quoted.limit,
        "" if quoted is None else _name_claim(result, quoted),
        "" if quoted is None else quoted.statement,
        [
            *([f"{answer.decided}."] if answer.decided else []),
            f"{answer.verdict.removesuffix('.')}.",
            *answer.cautions,
        ],
        list_notes(result),
        [
            _describe_rows(result),
            *(
                f"{name.capitalize()}: {facts[name]}."
                for name in ("measured", "baseline", "better")
                if name in facts
            ),
        ],
        [
            *certificate.wording.not_covered,
            "a study repeated with other seeds, grids or data until it looked good",
        ],
        ShellCommand(
            "verify RUN_FOLDER",
            [
                "It recomputes the number from the run folder; with --refit it also fits again what the "
                "number rests on."
            ],
        ),
        _advise_run(result, answer.advice, worthless=quoted is None),
    )


def _name_claim(result: ResultValues, claim: Claim) -> str:
    """Say in a few words what the number of a claim is of, and by what it is proven."""
    what = "wrong" if str(claim.quantity) == "error" else claim.name
    counts = f"; {claim.counted}" if claim.counted else ""
    return f"{what} on {_name_units(result)}, {claim.side}; proven, by {claim.certification}{counts}"


def open_scores(result: ResultValues, doubts: Sequence[str]) -> Opening:
    """Return the answers about a study without a certification."""
    score, several = result.scores[0], len(result.entries) > 1
    entry = result.kept or result.rank(score)[0][0]
    found = result.figures(entry, score)
    known = found.mean == found.mean
    spread = "" if found.deviation != found.deviation else f"; standard deviation {found.deviation:.4f}"
    splits = pluralize(int(result.counted.sum()), "split")
    quotable = [
        "As an estimate, with its name and the splits it is of. It is no bound, and nothing is proven by it."
    ]
    if several:
        quotable.append(
            f"It is the best of {len(result.entries):,}, chosen by this very figure, so it is too good."
        )
    if not known:
        quotable = ["No: a fit failed, or the score is not defined on a split, so there is no mean."]
    return Opening(
        "estimate" if known else "worthless",
        "An estimate, not a bound",
        format_score(found.mean, "") if known else "–",
        f"mean {score.name} of {entry.name} over {splits}{spread}",
        "",
        quotable,
        list(doubts),
        [
            _describe_rows(result),
            f"Each split fits on some rows and scores others ({result.study.resampling}).",
        ],
        [
            "rows that belong together, such as visits of one patient, in different parts of a split",
            "scaling or a choice of columns made on the full table before the splits",
            *(["a choice among many lines by the figure that is quoted"] if several else []),
            "new rows from another source than these",
        ],
        ShellCommand(
            "verify RUN_FOLDER", ["It recomputes every figure from the log; with --refit it also fits again."]
        ),
        _advise_scores(result, entry),
    )


def list_notes(result: ResultValues) -> list[str]:
    """List what to look at before quoting the bound."""
    notes = [note for note in (result.problem.all_rows.question, describe_passed_over(result)) if note]
    if not_converged := result.execution["not_converged"]:
        notes.append(f"{not_converged:,} fits did not converge: {result.problem.learner.convergence_advice}")
    if failed := result.execution["evaluations"]["failed"]:
        notes.append(f"{failed:,} evaluations failed; their tracebacks are below")
    return notes


def _describe_rows(result: ResultValues) -> str:
    table, task = result.problem.all_rows, result.task
    held, labels = table.n - task.n, [cut(str(label), MAX_LABEL) for label in task.classes]
    of_groups = f" of {task.n_units:,} groups by {table.group}" if table.grouped else ""
    of_held = f" of {table.n_units - task.n_units:,} groups" if table.grouped else ""
    held_out = f", and judged by {held:,} others{of_held}, which were held out" if held else ""
    if task.has_numbers:
        what = f"a number, {task.target},"
    elif (more := len(labels) - MAX_LABELS) > 0:
        what = f"{task.target} ({', '.join(labels[: MAX_LABELS - 1])} and {more + 1} more classes)"
    else:
        what = f"{task.target} ({', '.join(labels[:-1])} or {labels[-1]})"
    learned = f"{task.n:,} rows{of_groups}, {pluralize(len(table.features), 'feature')}"
    return f"Prediction of {what} for {_name_units(result)}, learned from {learned}{held_out}."


def _name_units(result: ResultValues) -> str:
    return "rows of new groups" if result.task.grouped else "new rows"


def _advise_run(result: ResultValues, advice: Sequence[str], worthless: bool) -> ShellCommand:
    """Say what to do next: apply the model, or get a bound that says something, with what to expect of it."""
    if worthless:
        return ShellCommand("run … --out NEW_FOLDER", [f"{text}." for text in advice])
    closer = [f"For a closer bound {text}." for text in advice]
    closer += [
        f"{edge}: a better candidate may be there." for edge in describe_edges(result.problem, result.setting)
    ]
    does = "predicts" if result.task.has_numbers else "classifies"
    return ShellCommand(
        "predict RUN_FOLDER NEW_ROWS.csv",
        [f"It {does} new rows by the very rule that the number is about.", *closer],
    )


def _advise_scores(result: ResultValues, entry: Entry) -> ShellCommand:
    command = "run … --out NEW_FOLDER"
    sentence = "It makes a study with a certificate, for a number that may be quoted as a bound."
    if result.kept is not None:
        command = "predict RUN_FOLDER NEW_ROWS.csv"
        sentence = f"It predicts new rows with the model fitted on all rows ({entry.name})."
    elif result.task.has_numbers:
        command = "evaluate … --refit best"
        sentence = "It fits the best line on all rows, to predict new ones."
    return ShellCommand(command, [sentence])


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
        "heading": [
            f"finished {result.execution['finished']}",
            f"author: {about.author}" if about.author else "author not named",
            f"{'run' if certified else 'procedure'} {result.run_id}",
            f"ckcv_ray {result.execution.get('package', 'of unknown version')}",
        ],
        "closing": f"Made by ckcv report from the files of run {result.run_id} alone; this page loads "
        "nothing and runs no script. It claims no conformity with any standard or law.",
        "opening": open_run(result) if certified else open_scores(result, list_doubts(result)),
        "question": describe_question(result),
        "method": _describe_selection(result) if certified else _describe_scoring(result),
        "reference": METHOD_SOURCES[certified],
        **describe_data(result),
        **describe_performance(result, judged),
    }
    if about.short:
        return _load_template().render(values, certificate=result.certificate if certified else None)
    sections = _describe_sections(result, queue)
    environment = flatten(result.execution.get("environment", {}))
    left_out = NOT_OF_NUMBERS if certified and result.task.has_numbers else ()
    values |= {
        "contents": [part for part in CONTENTS[certified] if part[0] not in left_out],
        "models": describe_models(result),
        "failures": _group_failures(result.failures if queue is None else tuple(queue.failures()), problem),
        "cost": [
            *([("search", sections["search"])] if "search" in sections else []),
            *_list_costs(result.execution),
        ],
        "study": _list_options(result) if certified else flatten(problem.study.to_json()),
        "environment": [("package", result.execution.get("package", "unknown")), *environment],
        "digests": {**(result.certificate.origin.digests if certified else {}), "manifest.json": manifest},
        **sections,
    }
    return _load_template().render(values)


def _describe_sections(result: ResultValues, queue: RaceQueue | None) -> dict[str, Any]:
    """Return the sections about the search, or about the scores."""
    if queue is None:
        return describe_scores(result)
    if result.task.has_numbers:
        return {**describe_errors(result.certificate), "search": name_search(result)}
    return describe_run(result, queue)


def _list_costs(execution: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = execution["evaluations"]
    computed = f"{counts['computed']:,} ({format_percent(counts['computed'] / counts['planned'])})"
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
def _load_template() -> Template:
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
    for filtered, formatted in {
        "percent": format_percent,
        "at_most": ceil_percent,
        "at_least": floor_percent,
    }.items():
        environment.filters[filtered] = partial(_format_known, formatted)
    environment.filters["limit"] = attrgetter("limit")
    environment.filters["side"] = attrgetter("side")
    environment.filters["counts"] = attrgetter("counted")
    environment.filters["quantity"] = attrgetter("name")
    environment.filters["level"] = format_level
    environment.filters["error"] = describe_error
    environment.tests["error"] = lambda claim: claim.quantity.is_error
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: "–" if value is None else f"{value:g}"
    environment.filters["figure"] = lambda value: "–" if value is None or value != value else f"{value:.4f}"
    return environment.get_template("page.html")
