"""What is said about a task: columns that number the rows, repeats, spellings, what gives the target away.

Equal rows are harmless where independent examples happen to be alike, but not where one example was entered
several times. Both look the same, so they are counted: how many there are, and how many would have to be left
out to keep one of each. A column that numbers the rows, such as an id, makes all rows differ but says nothing
about them, so it is not compared.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.errors import Index, Rows, Values, quote, write_option
from ckcv_ray.tables.columns import Column, ColumnKind, fold_text, unify_zeros
from ckcv_ray.tables.roles import DENSE, MAX_SPELLINGS, RowCounts, describe_ways, is_name_of_groups
from ckcv_ray.tables.task import Task

LARGEST_KAPPA = 0.001
MAX_TYPED = 1 << 32  # a seed above it was drawn by --seed random
NUMBERED = 8  # columns at a time: Arrow's table of distinct values holds at most 2 GiB
TOO_CLOSE = 1e-4  # to a correlation of 1
GIVES_AWAY = 1 / 50  # share of the baseline's error
MAX_SURVEYED_ROWS = 20_000  # examined for columns that give the target away
MAX_SURVEYED = 10_000_000  # cells
AWAY = "gives the target away: would it be known for a new row?"


class Repeats(NamedTuple):
    """Rows that equal another row in every column that is compared, including the label.

    With groups, the other row is of another group: rows of one group may be related in any way.
    """

    rows: int  # how many there are
    # how many rows, or groups, to leave out to keep one of those that are equal, or that share equal rows.
    # If some are held out, of these alone: all that equal a learning row, and all but one of the others
    copies: int


def find_repeats(task: Task, held: Index | None = None) -> Repeats:
    """Count the rows that equal another row, and the copies among held-out rows, if any are held out."""
    items = _number_compared(task, task.X, task.y)
    judged = np.full(task.n_units, held is None)
    if held is not None:
        judged[task.row_units[held]] = True
    if task.n_units == len(task.y):
        shared, alike = np.bincount(items) > 1, items  # a number that equal units share
    else:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pairs = np.unique(np.column_stack([items, task.row_units]), axis=0)
        shared = np.bincount(pairs[:, 0]) > 1  # items of more than one group
        groups, n = pairs[shared[pairs[:, 0]]], task.n_units
        size = n + int(groups[:, 0].max(initial=-1)) + 1
        edges = coo_array((np.ones(len(groups)), (groups[:, 1], n + groups[:, 0])), shape=(size, size))
        alike = np.asarray(connected_components(edges, directed=False)[1][:n], np.intp)
    new = np.bincount(alike[judged], minlength=int(alike.max()) + 1) == np.bincount(alike)
    return Repeats(int(np.sum(shared[items])), int(np.sum(judged)) - int(np.sum(new[np.unique(alike)])))


def describe_sorted(task: Task, seed: int) -> list[str]:
    """Return a sentence, in a list, if a known seed draws too little from a sorted table; else an empty list.

    With a known seed the draws rest on the salt, a digest of which rows there are. If the rows come sorted
    and few of them differ, few salts are likely, and those may draw lucky positions. Kappa is the probability
    of the likeliest table: of a multinomial with the shares of the different rows.
    """
    if seed >= MAX_TYPED:
        return []
    units = task.y[np.unique(task.row_units, return_index=True)[1]] if task.n_units < len(task.y) else task.y
    shares = np.unique(units, return_counts=True)[1] / len(units)
    if np.mean(units[1:] != units[:-1]) >= (1 - np.sum(shares**2)) / 2:
        return []
    n, counts = len(task.y), np.bincount(_number_rows(np.column_stack([task.X, task.y])))
    log_kappa = -(len(counts) - 1) / 2 * np.log(2 * np.pi * n) - np.log(counts / n).sum() / 2
    if log_kappa <= np.log(LARGEST_KAPPA):
        return []
    return [
        f"The rows are sorted by {quote(task.target.name)}, and only {len(counts)} of {n:,} differ: a known "
        "seed may draw positions that flatter such a table. Let --seed random draw one, before any is judged."
    ]


def find_known(X: Rows, task: Task) -> NDArray[np.bool_]:
    """Return which rows of X [rows, d] equal a learning row, (rows,)."""
    items = _number_compared(task, np.concatenate([task.X, X]))
    return np.isin(items[len(task.X) :], items[: len(task.X)])


def count_repeated(X: Rows, task: Task) -> int:
    """Count the rows of X [rows, d], with the columns of a task, that equal another row of X."""
    counts = np.bincount(_number_compared(task, X))
    return int(counts[counts > 1].sum())


def _numbers_rows(x: NDArray[np.float64], column: Column) -> bool:
    """Return whether a column numbers or names the rows: all values differ, and say nothing about rows.

    That is a column of whole numbers without wide gaps, or named like a number (patient_id), or of names.
    """
    if column.kind is ColumnKind.NUMBER and not np.all(np.floor(x) == x):  # faster than the next check
        return False
    if len(np.unique(x)) < len(x) or len(x) < 2:  # gaps are equal
        return False
    if column.kind is not ColumnKind.NUMBER:
        return column.kind is ColumnKind.CATEGORY
    dense = x.max() - x.min() < DENSE * len(x)
    return bool(dense) or is_name_of_groups(column.name) or not column.name.strip("_ ")


def _number_compared(task: Task, X: Rows, *labels: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return a number for each of rows X, the same for equal ones; where no column is compared all differ."""
    compared = [not _numbers_rows(x, column) for x, column in zip(task.X.T, task.schema, strict=True)]
    return _number_rows(np.column_stack([X[:, compared], *labels])) if any(compared) else np.arange(len(X))


def _number_rows(rows: Rows) -> NDArray[np.intp]:
    """Return a number for each row, the same only for equal rows."""
    numbers = np.zeros(len(rows), np.int64)
    for first in range(0, rows.shape[1], NUMBERED):  # the number so far stands for the columns before
        values = np.ascontiguousarray(unify_zeros(rows[:, first : first + NUMBERED]))
        items = np.column_stack([numbers, values.view(np.int64)])
        width = pa.binary(items.itemsize * items.shape[1])
        encoded = pa.FixedSizeBinaryArray.from_buffers(width, len(rows), [None, pa.py_buffer(items)])
        numbers = encoded.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.asarray(numbers, np.intp)


INTERVALS, MIN_OF_INTERVAL = 8, 5


class Surveyed(NamedTuple):
    """What is known about a column."""

    name: str  # of the column
    kind: str  # what it holds, in a word
    missing: int  # number of gaps
    distinct: int  # number of different values
    note: str  # what looks like a mistake; "" if nothing does


def list_row_numbers(names: Iterable[str]) -> list[str]:
    """Return a sentence on each column that numbers the rows: it is not learned from."""
    return [
        f"column {name[:60]!r} numbers the rows and is not learned from; --features names it if it is meant"
        for name in names
    ]


def survey(task: Task) -> list[Surveyed]:
    """Return what is known of each column that is learned from; if plain numbers, of those with a note.

    The note is about the first thing that looks like a mistake; the slowest checks come last.
    """
    said = list[Surveyed]()
    first: dict[bytes, str] = {}  # the name of the first column with these cells
    for x, column in zip(task.X.T, task.schema, strict=True):
        twin, note = first.setdefault(unify_zeros(x).tobytes(), column.name), ""
        if np.all(x == x[0]) or np.all(np.isnan(x)):
            note = "is the same in every row"
        elif twin != column.name:
            note = f"is a copy of {twin[:60]}"
        elif column.kind is ColumnKind.NUMBER and _numbers_rows(x, column):
            note = f"seems to number the rows: leave it out with {write_option('drop', column.name)}"
        elif column.kind is ColumnKind.CATEGORY and 2 * len(np.unique(x)) > len(x):
            note = "has a different text in most rows: is it a number, a date or a name in an unknown form?"
        elif _gives_away(x, task.y, task.n_classes):
            note = AWAY
        elif column.levels and len(column.levels) <= MAX_SPELLINGS:
            counts = defaultdict[str, RowCounts](dict)
            rows = np.bincount(x[~np.isnan(x)].astype(np.intp), minlength=len(column.levels))
            for text, count in zip(column.levels, rows.tolist(), strict=True):
                counts[fold_text(text)][text] = count
            if several := [ways for ways in counts.values() if len(ways) > 1]:
                note = f"has {describe_ways(several, 'value')}: write them alike if they are one"
        if note or not task.schema.plain:
            known = np.sort(x[~np.isnan(x)])
            distinct = int(np.count_nonzero(known[1:] != known[:-1])) + min(1, len(known))
            said.append(Surveyed(column.name, str(column.kind), len(x) - len(known), distinct, note))
    return said


def find_giveaways(task: Task) -> tuple[str, ...]:
    """Return the names of the columns that give the target away; none for a very large table."""
    surveyed = survey(task) if task.X.size <= MAX_SURVEYED else []
    return tuple(one.name for one in surveyed if one.note == AWAY)


def _gives_away(x: Values, y: NDArray[Any], n_classes: int) -> bool:
    """Return whether a few intervals of a column hold hardly any row of a class other than theirs.

    There are fewer of them than five rows of the smallest class for each, as chance makes some. Numbers to
    predict are given away if they are hardly more than the column in another unit.
    """
    if not n_classes:
        known = ~np.isnan(x)
        enough = min(len(np.unique(x[known])), len(np.unique(y[known]))) >= INTERVALS
        return enough and bool(abs(np.corrcoef(x[known], y[known])[0, 1]) > 1 - TOO_CLOSE)
    x, y = x[:MAX_SURVEYED_ROWS], y[:MAX_SURVEYED_ROWS]
    counts = np.sort(np.bincount(y, minlength=2))
    allowed = GIVES_AWAY * (len(y) - int(counts[-1]))
    intervals = min(INTERVALS, max(len(counts), 1 + int(counts[0]) // MIN_OF_INTERVAL))
    values, place = np.unique(x, return_inverse=True)  # gaps are one value, the last
    pairs = np.bincount(place * len(counts) + y, minlength=len(values) * len(counts))
    pairs = pairs.reshape(len(values), -1)
    wrong = len(y) - int(pairs.max(axis=1).sum())  # by the best function of the value
    starts = np.flatnonzero(np.diff(pairs.argmax(axis=1), prepend=-1))  # of intervals of one class
    classes, rows = pairs.argmax(axis=1)[starts].tolist(), np.add.reduceat(pairs.sum(axis=1), starts).tolist()
    if counts[0] < MIN_OF_INTERVAL or len(rows) > intervals + 2 * allowed:
        return False
    while len(rows) > intervals and wrong <= allowed:
        i = rows.index(min(rows))  # the smallest interval joins its neighbours
        wrong += rows.pop(i)
        classes.pop(i)
        if 0 < i < len(rows) and classes[i - 1] == classes[i]:
            rows[i - 1] += rows.pop(i)
            classes.pop(i)
    return wrong <= allowed
