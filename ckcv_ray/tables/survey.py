"""What is said about the columns of a table before a run: what they hold, and what looks like a mistake."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.errors import write_option
from ckcv_ray.tables.columns.types import Column, ColumnKind
from ckcv_ray.tables.repeats import numbers_rows
from ckcv_ray.tables.target import unify_zeros
from ckcv_ray.tables.task import Task

FOLDS, LEAVES = 5, 8
TOO_CLOSE = 1e-4  # to a correlation of 1
GIVES_AWAY = 1 / 50  # of the baseline's error
MOST_SURVEYED_ROWS = 20_000  # looked at to see whether a column gives the target away


class Surveyed(NamedTuple):
    """What is known of a column.

    Attributes:
        name: of the column.
        kind: what it holds, in a word.
        missing: number of gaps.
        distinct: number of different values.
        note: what looks like a mistake; "" if nothing does.
    """

    name: str
    kind: str
    missing: int
    distinct: int
    note: str


def list_row_numbers(task: Task) -> list[str]:
    """Say of each column that numbers the rows that it is not learned from."""
    named = [
        f"column {name[:60]!r}" if name.strip() else "a column without a name" for name in task.row_numbers
    ]
    return [
        f"{column} numbers the rows and is not learned from; --features names it if it is meant"
        for column in named
    ]


def survey(task: Task) -> list[Surveyed]:
    """Return what is known of each column that is learned from; of plain numbers, of those with a note."""
    noted = zip(task.schema, _notes(task), strict=True)
    return [
        _one(task.X[:, i], column, note)
        for i, (column, note) in enumerate(noted)
        if note or not task.schema.plain
    ]


def _one(x: Values, column: Column, note: str) -> Surveyed:
    known = x[~np.isnan(x)]
    return Surveyed(column.name, str(column.kind), len(x) - len(known), _count_distinct(known), note)


def _count_distinct(x: Values) -> int:
    """Return the number of different values of x (rows,), without gaps."""
    ordered = np.sort(x)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + min(1, len(x))


def _notes(task: Task) -> Iterator[str]:
    """Yield for each column the first thing that looks like a mistake."""
    first: dict[bytes, str] = {}
    for i, column in enumerate(task.schema):
        x = task.X[:, i]
        twin = first.setdefault(unify_zeros(x).tobytes(), column.name)
        if _is_constant(x):
            yield "is the same in every row"
        elif twin != column.name:
            yield f"is a copy of {twin[:60]}"
        elif column.kind is ColumnKind.NUMBER and numbers_rows(x, column):
            out = write_option("drop", column.name) if column.name.strip() else "--features"
            yield f"seems to number the rows: leave it out with {out}"
        elif column.kind is ColumnKind.CATEGORY and 2 * len(np.unique(x)) > len(x):
            yield "has another text in most rows: is it a number, a date or a name in an unknown form?"
        elif (_follows if task.has_numbers else _gives_away)(x, task.y):
            yield "gives the target away: would it be known for a new row?"
        else:
            yield ""


def _is_constant(x: Values) -> bool:
    return bool(np.all(x == x[0]) or np.all(np.isnan(x)))


def _follows(x: Values, y: Values) -> bool:
    """Return whether numbers to predict are hardly more than another unit of a column."""
    known = ~np.isnan(x)
    x, y = x[known], y[known]
    if min(len(np.unique(x)), len(np.unique(y))) < LEAVES:
        return False
    return bool(abs(np.corrcoef(x, y)[0, 1]) > 1 - TOO_CLOSE)


def _gives_away(x: Values, y: NDArray[np.int32]) -> bool:
    """Return whether a tree of eight leaves on this column alone errs hardly ever, in five folds."""
    x, y = x[:MOST_SURVEYED_ROWS], y[:MOST_SURVEYED_ROWS]
    allowed = GIVES_AWAY * (len(y) - int(np.bincount(y).max()))
    if _count_least_errors(x, y) >= allowed:  # then nothing that is made of this column can do that
        return False
    if _changes(x, y) > FOLDS * LEAVES + 2 * FOLDS * allowed:  # then no such tree can
        return False
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    if np.bincount(y).min() < FOLDS:
        return False
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return int(np.sum(cross_val_predict(tree, x[:, None], y, cv=folds) != y)) < allowed


def _count_least_errors(x: Values, y: NDArray[np.int32]) -> int:
    """Return how many of these rows the best function of x errs on."""
    values, value = np.unique(x, return_inverse=True)
    counts = np.bincount(value * (int(y.max()) + 1) + y, minlength=len(values) * (int(y.max()) + 1))
    return len(y) - int(counts.reshape(len(values), -1).max(axis=1).sum())


def _changes(x: Values, y: NDArray[np.int32]) -> int:
    """Return how often the label changes from row to row, in the order of x."""
    in_order = y[np.lexsort((y, x))]
    return int(np.sum(in_order[1:] != in_order[:-1]))
