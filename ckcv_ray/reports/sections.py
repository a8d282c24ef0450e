"""What is told of a result: sections of facts, with tables and figures; and those that every result has.

Each fact is worded once, here or in ``facts`` and ``scores``. The terminal, the page, Markdown, cards and
forms show the same facts, each as many as it has room for: see ``render``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from ckcv_ray.runs.judged import ClassPerformance, RowShare, measure_classes
from ckcv_ray.runs.settings import shorten_setting
from ckcv_ray.runs.values import ResultValues
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import Column, ColumnKind, Label
from ckcv_ray.tables.task import Task

FIRST, DETAILS, PAGE = 1, 2, 3  # levels: of the first screen, of --details, of the page alone
CAUTION, QUESTION = "CAUTION", "QUESTION"  # facts that are set off from others
FOLDER = "RUN_FOLDER"  # stands for the folder in commands
NOT_SET = "–"
MAX_NAMED = 20  # columns, values or classes in a sentence
MAX_DESCRIBED = 200  # columns
MAX_OPEN_COLUMNS = 25  # of which the table is not folded
MAX_LABELS, MAX_LABEL = 3, 40
MAX_CONFUSED, MAX_MISTAKES = 12, 10  # classes of a confusion matrix; else mistakes that are listed
BINARY_QUANTITIES = ("sensitivity", "specificity", "ppv", "npv")  # of two classes
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class Fact:
    """One thing worth telling about a result.

    Attributes:
        name: what it is, in a word or two, unique to facts of one kind; "" for a sentence that needs none.
        text: the fact in words, without the name and without a full stop unless it is a sentence.
        level: ``FIRST``, ``DETAILS`` or ``PAGE``: where it is told first.
        value: what the text says, as in ``Result.to_json``; None if that is no single value.
        rule, rows: which rule it is about, and the rows it is counted on; "" if it is about neither. What
            stands side by side has one of each.
    """

    name: str
    text: str
    level: int = PAGE
    value: Any = None
    rule: str = ""
    rows: str = ""


@dataclass(frozen=True)
class FactTable:
    """Facts that are told side by side.

    Attributes:
        title: what it shows.
        heads: names of the columns.
        rows: the cells, as text; the first of each row names it.
        note: what to know of it, or a traceback, of several lines.
        level: as in ``Fact``.
        folded: whether a reader of the page has to ask for it.
        most: rows that a terminal shows; all of them by default.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    level: int = PAGE
    folded: bool = False
    most: int | None = None


@dataclass(frozen=True)
class Section:
    """Facts that belong together.

    Attributes:
        name: identifies it.
        title: heading.
        facts, tables: what it tells.
        figures: pictures of it, where it is drawn.
    """

    name: str
    title: str
    facts: Sequence[Fact] = ()
    tables: Sequence[FactTable] = ()
    figures: Sequence[Any] = ()


def describe_share(part: int, whole: int) -> str:
    """Format a count with the share that it is: "1 of 66 (1.52 %)"."""
    return f"{part:,} of {whole:,}{f' ({format_percent(part / whole)})' if whole else ''}"


def name_units(result: ResultValues) -> str:
    """Say what a new case is."""
    return "rows of new groups" if result.task.grouped else "new rows"


def describe_subject(result: ResultValues) -> str:
    """Say what is predicted, for which rows, and from which."""
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
    return f"Prediction of {what} for {name_units(result)}, learned from {learned}{held_out}."


def tell_data(result: ResultValues, repeats: int, most: int) -> Section:
    """Tell of the table, including the rows held out.

    Args:
        result: the study.
        repeats: how many rows equal another one.
        most: the largest level that is told: its columns, which take long of many rows, are the page's.
    """
    task = result.problem.all_rows
    tables = _tabulate_columns(task) if most == PAGE else []
    return Section("data", "The data", [*_tell_table(result, task, repeats)], tables)


def _tabulate_columns(task: Task) -> list[FactTable]:
    described = enumerate(task.schema.columns[:MAX_DESCRIBED])
    tables = [
        FactTable(
            "Columns",
            ("column", "kind", "gaps", "share", "values", "typical"),
            [_describe_column(task.X[:, i], column) for i, column in described],
            "Typical is the median with the quartiles, or the most common category with its share; values "
            "are different ones.",
            folded=len(task.schema.columns) > MAX_OPEN_COLUMNS,
        )
    ]
    if not task.has_numbers:
        rows = zip(task.classes, np.bincount(task.y, minlength=task.n_classes).tolist(), strict=True)
        shares = [(str(label), f"{count:,}", format_percent(count / task.n)) for label, count in rows]
        tables.insert(0, FactTable("Rows of each class", ("class", "rows", "prevalence"), shares))
    if more := task.schema.columns[MAX_DESCRIBED:]:
        names = [(column.name,) for column in more]
        tables.append(FactTable(f"Names of {len(more):,} more columns", ("column",), names, folded=True))
    return tables


def _tell_table(result: ResultValues, task: Task, repeats: int) -> Iterator[Fact]:
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
    target = f"a number, median (and quartiles) {_describe_numbers(task.y)}"
    if not task.has_numbers:
        rows = np.bincount(task.y, minlength=task.n_classes).tolist()
        shares = [
            f"{label!r} {format_percent(n / task.n)}" for label, n in zip(task.classes, rows, strict=True)
        ]
        target = f"{pluralize(task.n_classes, 'class', 'classes')}: {list_first(shares)}"
    yield Fact("run", result.run_id, DETAILS, result.run_id)
    yield Fact("table", task.source or result.execution.get("source") or "arrays")
    yield Fact("rows", f"{task.n:,}{divided}", DETAILS, task.n)
    if task.grouped:
        sizes = np.bincount(task.groups)
        least, most = int(sizes.min()), int(sizes.max())
        each = f"{least:,} to {most:,} rows each" if least < most else f"{pluralize(least, 'row')} each"
        independent = "groups are independent, their rows may not be"
        yield Fact("groups", f"{len(sizes):,}, by {task.group} ({each}); {independent}", DETAILS, len(sizes))
    else:
        yield Fact("groups", "none: rows are taken as independent")
    yield Fact(
        "columns", f"{len(kinds):,} ({', '.join(counted)}): {list_first(task.features)}", DETAILS, len(kinds)
    )
    yield Fact("target", f"{task.target}: {target}", DETAILS)
    missing = np.isnan(task.X).sum(axis=0).tolist()
    lacking = [
        f"{name} {count:,} ({format_percent(count / task.n)})"
        for name, count in zip(task.features, missing, strict=True)
        if count
    ]
    cells = sum(missing)
    gaps = (
        f"{cells:,} of {task.X.size:,} cells ({format_percent(cells / task.X.size)}): {list_first(lacking)}"
    )
    yield Fact("gaps", gaps if cells else "none", DETAILS, cells)
    yield Fact(
        "repeats",
        f"{repeats:,} rows equal another one" if repeats else "no row equals another",
        DETAILS,
        repeats,
    )
    if task.weighting.given:
        yield Fact("weights in fits", f"by {task.weight}", DETAILS)


def _describe_column(x: Values, column: Column) -> tuple[str, ...]:
    """Return name, kind, gaps and their share, number of different values, and what is typical."""
    known = x[~np.isnan(x)]
    missing, share = len(x) - len(known), format_percent(1 - len(known) / len(x))
    gaps = (f"{missing:,}", share) if missing else (NOT_SET, NOT_SET)
    return column.name, str(column.kind), *gaps, f"{len(np.unique(known)):,}", _find_typical(known, column)


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
        first, last = (
            shorten_setting(problem.learner.space.setting(failure.path, step))
            for step in (failure.first, failure.stop - 1)
        )
        stage, k = "estimate" if failure.estimate else "select", problem.folds[failure.size].k
        groups.setdefault(failure.traceback, []).append((stage, str(k), str(failure.split), first, last))
    heads = ("stage", "k", "split", "from", "to")
    tables = [
        FactTable(
            f"{pluralize(len(paths), 'path')} failed with this traceback",
            heads,
            paths,
            traceback,
            folded=True,
        )
        for traceback, paths in groups.items()
    ]
    return [Section("failures", "Failures", (), tables)] if tables else []


def tell_options(values: Mapping[str, Any]) -> Section:
    """Tell the options of a study."""
    return Section("study", "Options", [Fact(*pair) for pair in flatten(values)])


def tell_origin(result: ResultValues, digests: Mapping[str, str]) -> list[Section]:
    """Tell on what a result was computed, and the SHA-256 of what it is made of."""
    package = {"package": result.execution.get("package", "unknown")}
    environment = [Fact(*pair) for pair in flatten(package | result.execution.get("environment", {}))]
    check = f"ckcv verify {FOLDER} recomputes the result from the run folder; with --refit from the data."
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


@dataclass(frozen=True)
class ByClass:
    """What is known beyond the counts of a table by class.

    Attributes:
        fixed: which of ``BINARY_QUANTITIES`` have exact intervals.
        delta: probability with which such an interval may miss.
        proven: of the recall of each class, in words; "" where nothing is.
        level: of what is proven; "" if nothing is.
    """

    fixed: Collection[str]
    delta: float
    proven: Sequence[str]
    level: str


def tell_classes(
    result: ResultValues, counts: NDArray[np.int64], known: ByClass
) -> tuple[Fact, list[FactTable]]:
    """Tell what a rule makes of the rows of each class, from a table of predictions.

    Args:
        result: what it is of.
        counts: rows by class and predicted class, the undecided last, (n_classes, n_classes + 1).
        known: what is known beyond.
    """
    labels, total = result.task.classes, int(counts.sum())
    wrong = RowShare(total - int(counts.diagonal().sum()), total)
    exact = known.fixed and set(known.fixed) >= set(BINARY_QUANTITIES)
    interval = f", {_format_interval(wrong, known)}" if exact else ""
    share = NOT_SET if wrong.value is None else format_percent(wrong.value)
    said = f"{wrong.part:,} of {wrong.whole:,} rows ({share}{interval})"
    intervals = f" The intervals are {describe_intervals(known.delta)}." if known.fixed else ""
    proven = (
        f"Only the column ‘proven’ carries the {known.level} statement."
        if known.level
        else "Nothing here is proven."
    )
    note = f"{proven} PPV and NPV are those at the prevalence of these rows.{intervals}"
    made = _list_binary if len(labels) == 2 else _list_classes
    heads, rows = drop_empty(*made(result, measure_classes(counts), known))
    tables = [FactTable("By class", heads, rows, note, DETAILS), _tell_confusion(labels, counts)]
    return Fact("wrong", said, DETAILS, wrong.part), tables


def _list_binary(
    result: ResultValues, classes: Sequence[ClassPerformance], known: ByClass
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the figures of two classes, of which one is positive."""
    positive = result.problem.positive
    label, other = (result.task.classes[number] for number in (positive, 1 - positive))
    proven = [*(known.proven[number] for number in (positive, 1 - positive)), "", ""]
    names = (
        f"sensitivity: ‘{label}’ found",
        f"specificity: ‘{other}’ found",
        f"PPV: ‘{label}’ predicted, and right",
        f"NPV: ‘{other}’ predicted, and right",
    )
    rows: list[tuple[str, ...]] = [
        (
            name, f"{share.part:,} of {share.whole:,}", _format_share(share),
            _format_interval(share, known) if quantity in known.fixed else NOT_SET, said or NOT_SET,
        )
        for name, share, quantity, said in zip(
            names, classes[positive][1:], BINARY_QUANTITIES, proven, strict=True
        )
    ]  # fmt: skip
    return ("figure", "rows", "measured", "interval", "proven"), rows


def _list_classes(
    result: ResultValues, classes: Sequence[ClassPerformance], known: ByClass
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the figures of each of several classes against all others."""
    heads = (
        "class",
        "rows",
        "sensitivity",
        "specificity",
        "PPV",
        "NPV",
        "interval of sensitivity",
        "proven of it",
    )
    rows = [
        (
            str(result.task.classes[found.number]), f"{found.sensitivity.whole:,}",
            *(_format_share(share) for share in found[1:]),
            _format_interval(found.sensitivity, known), known.proven[found.number] or NOT_SET,
        )
        for found in classes
    ]  # fmt: skip
    return heads, rows


def _format_share(share: RowShare) -> str:
    return NOT_SET if share.value is None else format_percent(share.value)


def _format_interval(share: RowShare, known: ByClass) -> str:
    return (
        format_ends(*bound_both_sides(share.part, share.whole, known.delta))
        if share.whole and known.fixed
        else NOT_SET
    )


def _tell_confusion(labels: Sequence[Label], counts: NDArray[np.int64]) -> FactTable:
    """Return the confusion matrix in rows; of more classes than can be shown, the most frequent mistakes."""
    if len(labels) <= MAX_CONFUSED:
        undecided = bool(counts[:, -1].any())
        heads = ("actual \\ predicted", *map(str, labels), *(["undecided"] if undecided else []))
        lines = counts if undecided else counts[:, :-1]
        rows = [
            (str(label), *(f"{n:,}" for n in line))
            for label, line in zip(labels, lines.tolist(), strict=True)
        ]
        return FactTable("Confusion matrix, in rows", heads, rows, level=DETAILS)
    found = list_mistakes(counts)
    rows = [
        (
            str(labels[each.actual]), "undecided" if each.predicted is None else str(labels[each.predicted]),
            f"{each.rows:,}", format_percent(each.share),
        )
        for each in found[:MAX_MISTAKES]
    ]  # fmt: skip
    title = f"The most frequent of {pluralize(len(found), 'kind')} of mistake"
    return FactTable(title, ("actual", "predicted", "rows", "share of the class"), rows, level=DETAILS)
