"""What the report says of the rows: how many, of which classes, with which gaps, repeats and groups."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.claims.percent import nearest
from ckcv_ray.core.arrays import Values
from ckcv_ray.errors import pluralize
from ckcv_ray.records.judged import describe_judged
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.tables.columns.types import Column, ColumnKind
from ckcv_ray.tables.task import Task

MOST_DESCRIBED = 200  # that are described
MOST_OPEN_COLUMNS = 25  # of which the table is not folded
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
        _describe_column(task.X[:, i], column)
        for i, column in enumerate(task.schema.columns[:MOST_DESCRIBED])
    ]
    return {
        "facts": _list_facts(result, task),
        "class_rows": _list_classes(task),
        "columns": columns,
        "columns_open": len(columns) <= MOST_OPEN_COLUMNS,
        "more_columns": [column.name for column in task.schema.columns[MOST_DESCRIBED:]],
    }


def _list_facts(result: ResultValues, task: Task) -> list[tuple[str, str]]:
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
    judged = None if result.finished is None else result.finished.judged
    repeats = result.repeats.rows if result.finished is None else result.certificate.sample.repeats
    gaps = np.isnan(task.X).sum(axis=0)
    missing = f"{int(gaps.sum()):,} of {task.X.size:,} cells ({nearest(float(gaps.sum()) / task.X.size)})"
    return [
        ("table", task.source or result.execution.get("source") or "arrays"),
        ("rows", f"{task.n:,}{divided}"),
        *_describe_groups(task),
        *([] if judged is None else [("judged rows", describe_judged(judged))]),
        ("columns learned from", f"{len(kinds):,} ({', '.join(counted)})"),
        ("target", _describe_target(task)),
        ("gaps", f"{missing}, in {int(np.count_nonzero(gaps)):,} of the columns" if gaps.any() else "none"),
        ("rows that equal another row", f"{repeats:,}" if repeats else "none"),
        *([("weights in fits", f"by {task.weight}")] if task.weighting.given else []),
    ]


def _describe_groups(task: Task) -> list[tuple[str, str]]:
    """Say how many groups there are, and of which size; nothing where rows are independent."""
    if not task.grouped:
        return []
    sizes = np.bincount(task.groups)
    least, most = int(sizes.min()), int(sizes.max())
    each = f"{least:,} to {most:,} rows each" if least < most else f"{pluralize(least, 'row')} each"
    return [
        ("groups", f"{len(sizes):,}, by {task.group} ({each}); groups are independent, their rows may not be")
    ]


def _describe_target(task: Task) -> str:
    if not task.has_numbers:
        return f"{task.target}: {pluralize(task.n_classes, 'class', 'classes')}"
    return f"{task.target}: a number, median (and quartiles) {_describe_numbers(task.y)}"


def _list_classes(task: Task) -> list[ClassRows]:
    if task.has_numbers:
        return []
    rows = np.bincount(task.y, minlength=task.n_classes).tolist()
    return [ClassRows(label, count, count / task.n) for label, count in zip(task.classes, rows, strict=True)]


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
        return f"{column.levels[best]} ({nearest(counts[best] / len(known))})"
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
