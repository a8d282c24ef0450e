"""What is told of a result: sections of facts, with tables and figures; and those that every result has.

Each fact is worded once, here or in ``facts`` and ``scores``. The terminal, the page, Markdown, cards and
forms show the same facts, each as many as it has room for: see ``render``.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.certificate import list_mistakes
from ckcv_ray.claims.quantity import describe_intervals, format_ends
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.percent import format_percent
from ckcv_ray.errors import cut, pluralize
from ckcv_ray.records.record import Failure
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.settings import shorten_setting
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import Column, ColumnKind, Label
from ckcv_ray.tables.task import Task

FIRST, DETAILS, PAGE = 1, 2, 3  # levels: of the first screen, of --details, of the page alone
CAUTION, QUESTION = "CAUTION", "QUESTION"  # facts that are set off from others
FOLDER = "RUN_FOLDER"  # stands for the folder in commands
NOT_SET = "–"
FOUR_DIGITS = "{:.4g}".format
MAX_NAMED = 20  # columns, values or classes in a sentence
MAX_DESCRIBED = 200  # columns
MAX_OPEN_COLUMNS = 25  # of which the table is not folded
MAX_LABELS, MAX_LABEL = 3, 40
MAX_CONFUSED, MAX_MISTAKES = 12, 10  # classes of a confusion matrix; else mistakes that are listed
BY_CLASS = {  # what is measured of a class against all others, and how it is named of two
    "sensitivity": "sensitivity: ‘{}’ found",
    "specificity": "specificity: ‘{}’ found",
    "ppv": "PPV: ‘{}’ predicted, and right",
    "npv": "NPV: ‘{}’ predicted, and right",
}
TYPICAL_IS = (
    "Typical is the median with the quartiles, or the most common category with its share; values are "
    "different ones."
)
KINDS = {
    ColumnKind.NUMBER: ("number", "numbers"),
    ColumnKind.CATEGORY: ("category", "categories"),
    ColumnKind.DATE: ("date", "dates"),
}


@dataclass(frozen=True, eq=False)
class Fact:
    """One thing worth telling about a result. What stands side by side has one rule and one set of rows."""

    name: str  # in a word or two, unique to facts of one kind; "" for a sentence that needs none
    text: str  # in words, without the name and without a full stop unless it is a sentence
    level: int = PAGE  # ``FIRST``, ``DETAILS`` or ``PAGE``: where it is told first
    value: Any = None  # what the text says, as in ``Result.to_json``; None if that is no single value
    rule: str = ""  # that it is about; "" without one
    rows: str = ""  # that it is counted on; "" without any


@dataclass(frozen=True)
class FactTable:
    """Facts that are told side by side."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of each names it
    note: str = ""  # what to know of it, or a traceback, of several lines
    level: int = PAGE
    folded: bool = False  # whether a reader of the page has to ask for it
    most: int | None = None  # rows that a terminal shows; all of them by default


@dataclass(frozen=True)
class Section:
    """Facts that belong together, with pictures of them where these are drawn."""

    name: str  # identifies it
    title: str
    facts: Sequence[Fact] = ()
    tables: Sequence[FactTable] = ()
    figures: Sequence[Any] = ()


def format_row(*values: Any) -> tuple[str, ...]:
    """Format the cells of a row: text, counts, and shares in percent; None and nan are not known."""
    return tuple(
        NOT_SET if value is None or value != value
        else value if isinstance(value, str)
        else format_percent(value) if isinstance(value, float)
        else f"{value:,}"
        for value in values
    )  # fmt: skip


def name_units(result: Result) -> str:
    """Say what a new case is."""
    return result.task.units.word("new rows", "rows of new groups")


def describe_subject(result: Result) -> str:
    """Say what is predicted, for which rows, and from which."""
    table, task = result.problem.all_rows, result.task
    held, labels = table.n - task.n, [cut(str(label), MAX_LABEL) for label in task.classes]
    of_groups = task.units.word("", f" of {task.n_units:,} groups by {table.units.name}")
    of_held = task.units.word("", f" of {table.n_units - task.n_units:,} groups")
    held_out = f", and judged by {held:,} others{of_held}, which were held out" if held else ""
    if (more := len(labels) - MAX_LABELS) > 0:
        labels[MAX_LABELS - 1 :] = [f"{more + 1} more classes"]
    joined = f"{', '.join(labels[:-1])} {'and' if more > 0 else 'or'} {labels[-1]}" if labels else ""
    what = f"{task.target.name} ({joined})" if labels else f"a number, {task.target.name},"
    learned = f"{task.n:,} rows{of_groups}, {pluralize(len(table.features), 'feature')}"
    return f"Prediction of {what} for {name_units(result)}, learned from {learned}{held_out}."


def tell_data(result: Result, repeats: int, most: int) -> Section:
    """Tell of the table, including the rows held out.

    Args:
        result: the study.
        repeats: how many rows equal another one.
        most: the largest level that is told: its columns, which take long of many rows, are the page's.
    """
    task, tables = result.problem.all_rows, list[FactTable]()
    if not task.classes:
        target = f"a number, median (and quartiles) {_describe_typical(task.y)}"
    else:
        rows = np.bincount(task.y, minlength=task.n_classes).tolist()
        cells = [format_row(str(label), n, n / task.n) for label, n in zip(task.classes, rows, strict=True)]
        named = zip(task.classes, cells, strict=True)
        shares = list_first([f"{label!r} {share}" for label, (_, _, share) in named])
        target = f"{pluralize(len(cells), 'class', 'classes')}: {shares}"
        tables.append(FactTable("Rows of each class", ("class", "rows", "prevalence"), cells))
    tables = [*tables, *_tabulate_columns(task)] if most == PAGE else []
    return Section("data", "The data", [*_tell_table(result, task, target, repeats)], tables)


def _tabulate_columns(task: Task) -> Iterator[FactTable]:
    columns, more = task.schema.columns[:MAX_DESCRIBED], task.schema.columns[MAX_DESCRIBED:]
    rows = [_describe_column(task.X[:, i], column) for i, column in enumerate(columns)]
    heads = ("column", "kind", "gaps", "share", "values", "typical")
    yield FactTable("Columns", heads, rows, TYPICAL_IS, folded=len(task.schema.columns) > MAX_OPEN_COLUMNS)
    if more:
        names = [(column.name,) for column in more]
        yield FactTable(f"Names of {len(more):,} more columns", ("column",), names, folded=True)


def _tell_table(result: Result, task: Task, target: str, repeats: int) -> Iterator[Fact]:
    held = 0 if result.problem.held is None else task.n - result.task.n
    divided = f": {result.task.n:,} to learn from, {held:,} held out" if held else ""
    kinds = [column.kind for column in task.schema.columns]
    counted = [pluralize(kinds.count(kind), *names) for kind, names in KINDS.items() if kind in kinds]
    yield Fact("run", result.run_id, DETAILS, result.run_id)
    yield Fact("table", task.source or result.execution.get("source") or "arrays")
    yield Fact("rows", f"{task.n:,}{divided}", DETAILS, task.n)
    if task.units.independent:
        yield Fact("groups", "none: rows are taken as independent")
    else:
        sizes = np.bincount(task.row_units)
        least, most = int(sizes.min()), int(sizes.max())
        each = f"{least:,} to {most:,} rows each" if least < most else f"{pluralize(least, 'row')} each"
        said = f"{len(sizes):,}, by {task.units.name} ({each}); groups are independent, their rows may not be"
        yield Fact("groups", said, DETAILS, len(sizes))
    columns = f"{len(kinds):,} ({', '.join(counted)}): {list_first(task.features)}"
    yield Fact("columns", columns, DETAILS, len(kinds))
    yield Fact("target", f"{task.target.name}: {target}", DETAILS)
    missing = dict(zip(task.features, np.isnan(task.X).sum(axis=0).tolist(), strict=True))
    lacking = [f"{name} {n:,} ({format_percent(n / task.n)})" for name, n in missing.items() if n]
    cells, size = sum(missing.values()), task.X.size
    gaps = f"{cells:,} of {size:,} cells ({format_percent(cells / size)}): {list_first(lacking)}"
    yield Fact("gaps", gaps if cells else "none", DETAILS, cells)
    equal = f"{repeats:,} rows equal another one" if repeats else "no row equals another"
    yield Fact("repeats", equal, DETAILS, repeats)
    if task.weighting.columns:
        yield Fact("weights in fits", f"by {task.weighting.column}", DETAILS)


def _describe_column(x: Values, column: Column) -> tuple[str, ...]:
    """Return name, kind, gaps and their share, number of different values, and what is typical."""
    known, typical = x[~np.isnan(x)], ""
    gaps = len(x) - len(known) or None
    if len(known) and column.kind is ColumnKind.CATEGORY:
        counts = np.bincount(known.astype(np.intp))
        best = int(np.argmax(counts))
        typical = f"{column.levels[best]} ({format_percent(counts[best] / len(known))})"
    elif len(known):
        typical = _describe_typical(known, _format_date if column.kind is ColumnKind.DATE else FOUR_DIGITS)
    return format_row(
        column.name, str(column.kind), gaps, gaps and gaps / len(x), len(np.unique(known)), typical
    )


def _describe_typical(known: Values, write: Callable[[float], str] = FOUR_DIGITS) -> str:
    low, middle, high = map(write, np.quantile(known, (0.25, 0.5, 0.75)).tolist())
    return f"{middle} ({low} to {high})"


def _format_date(milliseconds: float) -> str:
    """Return a day as text; dates far outside the calendar as milliseconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds:.4g} ms"


def tell_cost(execution: Mapping[str, Any]) -> list[Fact]:
    """Tell how much was computed, and on what."""
    counts = execution["evaluations"]
    evaluations = (
        f"{counts['computed']:,} of {counts['planned']:,} computed "
        f"({format_percent(counts['computed'] / counts['planned'])}), {counts['dropped']:,} dropped as "
        f"provably beaten, {counts['failed']:,} failed"
    )
    workers = f"{execution.get('workers', 'unknown')} ({execution.get('backend', 'unknown')})"
    return [
        Fact("evaluations", evaluations, DETAILS, counts),
        Fact("fits", f"{execution['fits']:,} in {execution['seconds']:.1f} s", DETAILS, execution["fits"]),
        Fact("workers", workers),
    ]


def tell_failures(failures: Sequence[Failure], problem: Problem) -> list[Section]:
    """Tell which paths failed, by their tracebacks; nothing if none did."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for failure in failures:
        steps = failure.first, failure.stop - 1
        ends = [shorten_setting(problem.learner.space.setting(failure.path, step)) for step in steps]
        stage, k = "estimate" if failure.estimate else "select", problem.folds[failure.size].k
        groups.setdefault(failure.traceback, []).append((stage, str(k), str(failure.split), *ends))
    tables = [
        FactTable(
            f"{pluralize(len(paths), 'path')} failed with this traceback",
            ("stage", "k", "split", "from", "to"), paths, traceback, folded=True,
        )
        for traceback, paths in groups.items()
    ]  # fmt: skip
    return [Section("failures", "Failures", (), tables)] if tables else []


def tell_options(values: Mapping[str, object]) -> Section:
    """Tell the options of a study."""
    return Section("study", "Options", [Fact(*pair) for pair in flatten(values)])


def tell_origin(result: Result, digests: Mapping[str, str]) -> list[Section]:
    """Tell on what a result was computed, and the SHA-256 of what it is made of."""
    package = {"package": result.execution.get("package", "unknown")}
    environment = [Fact(*pair) for pair in flatten(package | result.execution.get("environment", {}))]
    check = f"ckcv verify {FOLDER} recomputes the result from the run folder; with --rerun from the data."
    files = [Fact("", check), *(Fact(f"SHA-256.{name}", digest) for name, digest in digests.items())]
    return [Section("environment", "Environment", environment), Section("files", "How to verify it", files)]


def drop_empty(
    heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return heads and rows of a table without the columns in which nothing is known."""
    kept = [i for i in range(len(heads)) if not i or any(row[i] != NOT_SET for row in rows)]
    return [heads[i] for i in kept], [tuple(row[i] for i in kept) for row in rows]


def list_first(texts: Sequence[object], most: int = MAX_NAMED) -> str:
    """List the first of some texts, and count the others."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return f"{', '.join(map(str, texts[:most]))}{more}"


def flatten(values: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten nested JSON values into pairs of a dotted name and text.

    Items of a list are named by their ``name``, or counted from 1.
    """
    if isinstance(values, list | tuple) and values and all(isinstance(value, dict) for value in values):
        values = {str(value.get("name", i)): value for i, value in enumerate(values, start=1)}
    if isinstance(values, Mapping):
        nested = [flatten(value, f"{name}.{key}" if name else str(key)) for key, value in values.items()]
        return [pair for pairs in nested for pair in pairs]
    if isinstance(values, list | tuple):
        return [(name, ", ".join(map(_format_plain, values)) or "none")]
    return [(name, _format_plain(values))]


def _format_plain(value: Any) -> str:
    if value is None or value == "":
        return NOT_SET
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.12g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def measure_class(counts: NDArray[np.int64], number: int) -> list[tuple[int, int]]:
    """Return sensitivity, specificity, PPV and NPV of a class against all others: rows, of how many.

    Args:
        counts: rows by class and predicted class, as in ``tell_classes``.
        number: of the class.
    """
    total, hits = int(counts.sum()), int(counts[number, number])
    of_class, as_class = int(counts[number].sum()), int(counts[:, number].sum())
    others = total - of_class - as_class + hits  # of other classes, and not predicted as this one
    return [(hits, of_class), (others, total - of_class), (hits, as_class), (others, total - as_class)]


def tell_classes(
    result: Result,
    counts: NDArray[np.int64],
    delta: float,
    fixed: Collection[str] = (),
    proven: Sequence[str] = (),
    level: str = "",
) -> tuple[Fact, list[FactTable]]:
    """Tell what a rule makes of the rows of each class, from a table of predictions.

    Args:
        result: what it is of.
        counts: rows by class and predicted class, the undecided last, (n_classes, n_classes + 1).
        delta: probability with which an interval may miss.
        fixed: which of ``BY_CLASS`` have exact intervals.
        proven: of the recall of each class, in words; "" where nothing is.
        level: of what is proven; "" if nothing is.
    """

    def divide(part: int, whole: int) -> float | None:
        return part / whole if whole else None

    def bound(part: int, whole: int) -> str | None:
        return format_ends(*bound_both_sides(part, whole, delta)) if fixed and whole else None

    labels, total, positive = result.task.classes, int(counts.sum()), result.problem.positive
    said = [text or None for text in proven or [""] * len(labels)]
    if len(labels) == 2:  # figures of the positive one
        order = positive, 1 - positive
        figures = zip(BY_CLASS.items(), order * 2, measure_class(counts, positive), strict=True)
        heads: tuple[str, ...] = ("figure", "rows", "measured", "interval", "proven")
        rows = [
            format_row(
                name.format(labels[of]), f"{part:,} of {whole:,}", divide(part, whole),
                bound(part, whole) if quantity in fixed else None, said[of] if "found" in name else None,
            )
            for (quantity, name), of, (part, whole) in figures
        ]  # fmt: skip
    else:
        heads = ("class", "rows", "sensitivity", "specificity", "PPV", "NPV")
        heads = (*heads, "interval of sensitivity", "proven of it")
        shares = [measure_class(counts, number) for number in range(len(labels))]
        rows = [
            format_row(str(label), each[0][1], *(divide(*share) for share in each), bound(*each[0]), of_it)
            for label, each, of_it in zip(labels, shares, said, strict=True)
        ]
    wrong = total - int(counts.diagonal().sum())
    exact = f", {bound(wrong, total)}" if fixed and set(fixed) >= set(BY_CLASS) else ""
    intervals = f" The intervals are {describe_intervals(delta)}." if fixed else ""
    carries = (
        f"Only the column ‘proven’ carries the {level} statement." if level else "Nothing here is proven."
    )
    note = f"{carries} PPV and NPV are those at the prevalence of these rows.{intervals}"
    tables = [FactTable("By class", *drop_empty(heads, rows), note, DETAILS), _tell_confusion(labels, counts)]
    (share,) = format_row(divide(wrong, total))
    return Fact("wrong", f"{wrong:,} of {total:,} rows ({share}{exact})", DETAILS, wrong), tables


def _tell_confusion(labels: Sequence[Label], counts: NDArray[np.int64]) -> FactTable:
    """Return the confusion matrix in rows; of more classes than can be shown, the most frequent mistakes."""
    names = [*map(str, labels), "undecided"]
    if len(labels) <= MAX_CONFUSED:
        shown = len(labels) + bool(counts[:, -1].any())
        rows = [format_row(name, *line[:shown]) for name, line in zip(names, counts.tolist(), strict=False)]
        heads = ("actual \\ predicted", *names[:shown])
        return FactTable("Confusion matrix, in rows", heads, rows, level=DETAILS)
    found = list_mistakes(counts)
    rows = [
        format_row(
            names[each.actual], names[-1 if each.predicted is None else each.predicted], each.rows, each.share
        )
        for each in found[:MAX_MISTAKES]
    ]
    title = f"The most frequent of {pluralize(len(found), 'kind')} of mistake"
    return FactTable(title, ("actual", "predicted", "rows", "share of the class"), rows, level=DETAILS)
