"""Rows that occur more than once, columns that number the rows aside.

Equal rows are harmless where independent examples happen to be alike, and not where they are one example that
was entered several times. Both look the same, so they are counted: how many there are, and how many would
have to be left out to keep one of each. A column that numbers the rows, such as an id, makes all rows differ
and says nothing about a row: it is not compared.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.tables.columns.types import Column, ColumnKind
from ckcv_ray.tables.identifiers import DENSE, is_name_of_groups
from ckcv_ray.tables.target import Rows, unify_zeros
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import quote

LARGEST_KAPPA = 0.001
MOST_TYPED = 1 << 32  # a seed above it was drawn by --seed random
FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class Repeats(NamedTuple):
    """Rows that equal another row in every column that is compared, including the label.

    With groups, the other row is of another group: rows of one group may be related in any way.
    """

    rows: int  # how many there are
    # how many rows, or groups, are left out to keep one of those that are equal, or that share equal rows.
    # Where some are held out, of these alone: all that equal a learning row, and of others all but one
    copies: int


def find_repeats(task: Task, held: Index | None = None) -> Repeats:
    """Count the rows that equal another row, and the copies among rows that are held out, if any are."""
    columns = _select_compared(task)
    if not columns.any():
        return Repeats(0, 0)
    rows = np.empty((task.n, np.count_nonzero(columns) + 1))
    rows[:, :-1], rows[:, -1] = np.compress(columns, task.X, axis=1), task.y
    items, counts = _number_rows(rows)
    judged = np.full(task.n_units, held is None)
    if held is not None:
        judged[task.groups[held]] = True
    if not task.grouped:
        return Repeats(int(counts[counts > 1].sum()), _count_copies(items, judged))
    pairs = np.unique(np.column_stack([items, task.groups]), axis=0)
    shared = np.bincount(pairs[:, 0]) > 1  # items of more than one group
    connected = _connect_groups(pairs[shared[pairs[:, 0]]], task.n_units)
    return Repeats(int(np.sum(shared[items])), _count_copies(connected, judged))


def _count_copies(number: NDArray[np.intp], judged: NDArray[np.bool_]) -> int:
    """Return how many judged units to leave out so that all are new, by a number that equal units share."""
    alone = np.bincount(number[judged], minlength=int(number.max()) + 1) == np.bincount(number)
    return int(np.sum(judged)) - int(np.sum(alone[np.unique(number)]))


def count_repeats(task: Task) -> int:
    """Count the rows that equal another row; see ``Repeats``."""
    return find_repeats(task).rows


def describe_sorted(task: Task, seed: int) -> list[str]:
    """Return a list of one sentence if a known seed draws too little from a table that is sorted, else none.

    With a known seed the draws rest on the salt, a digest of which rows there are. If the rows come sorted
    and few of them differ, few salts are likely, and those may draw lucky positions. Kappa is the probability
    of the likeliest table: of a multinomial with the shares of the different rows.
    """
    if seed >= MOST_TYPED:
        return []
    units = task.y[np.unique(task.groups, return_index=True)[1]] if task.grouped else task.y
    shares = np.unique(units, return_counts=True)[1] / len(units)
    if np.mean(units[1:] != units[:-1]) >= (1 - np.sum(shares**2)) / 2:
        return []
    counts = _number_rows(np.column_stack([task.X, task.y]))[1]
    log_kappa = -(len(counts) - 1) / 2 * np.log(2 * np.pi * task.n) - np.log(counts / task.n).sum() / 2
    if log_kappa <= np.log(LARGEST_KAPPA):
        return []
    return [
        f"The rows are sorted by {quote(task.target)}, and only {len(counts)} of {task.n:,} differ: a known "
        "seed may draw positions that flatter such a table. Let --seed random draw one, before any is judged."
    ]


def count_known(X: Rows, task: Task) -> int:
    """Count the rows of X [rows, d] that are among the learning rows."""
    return int(find_known(X, task).sum())


def count_repeated(X: Rows, task: Task) -> int:
    """Count the rows of X [rows, d], with the columns of a task, that equal another row of it."""
    columns = _select_compared(task)
    if not columns.any():
        return 0
    counts = _number_rows(X[:, columns])[1]
    return int(counts[counts > 1].sum())


def numbers_rows(x: NDArray[np.float64], column: Column) -> bool:
    """Return whether a column numbers or names the rows: every value differs, and says nothing about its row.

    That is a column of whole numbers without wide gaps, or called like a number (patient_id), or of names.
    """
    if column.kind is ColumnKind.NUMBER and not np.all(np.floor(x) == x):  # sooner known than the next
        return False
    if len(np.unique(x)) < len(x) or len(x) < 2:  # gaps are equal
        return False
    if column.kind is not ColumnKind.NUMBER:
        return column.kind is ColumnKind.CATEGORY
    dense = x.max() - x.min() < DENSE * len(x)
    return bool(dense) or is_name_of_groups(column.name) or not column.name.strip("_ ")


def _select_compared(task: Task) -> NDArray[np.bool_]:
    numbering = (numbers_rows(task.X[:, i], column) for i, column in enumerate(task.schema))
    return np.array([not numbers for numbers in numbering], dtype=bool)


def find_known(X: Rows, task: Task) -> NDArray[np.bool_]:
    """Return which rows of X [rows, d] are among the learning rows, (rows,)."""
    columns = _select_compared(task)
    if not columns.any():
        return np.zeros(len(X), dtype=bool)
    return np.isin(_as_items(X[:, columns]), _as_items(task.X[:, columns]))


def _connect_groups(pairs: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return a number for each of n groups, which those that are connected by equal rows share, (n,).

    Args:
        pairs: item and group, for each item that several groups have, (pairs, 2).
        n: number of groups.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    items = pairs[:, 0]
    size = n + int(items.max(initial=-1)) + 1
    edges = coo_array((np.ones(len(pairs)), (pairs[:, 1], n + items)), shape=(size, size))
    return np.asarray(connected_components(edges, directed=False)[1][:n], np.intp)


def _number_rows(rows: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a number for each row, the same for equal rows alone, and how many rows have each number.

    Rows are sorted by a hash, which takes a tenth of the time that whole rows do; those of equal hashes are
    then compared whole.
    """
    items = _as_items(rows)
    hashes, numbers, counts = np.unique(_hash_items(items), return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[numbers] > 1)
    numbers[several] = len(hashes) + np.unique(items[several], return_inverse=True)[1]
    _, numbers, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return numbers, counts


def _hash_items(items: NDArray[np.void]) -> NDArray[np.uint64]:
    """Return a hash of each row's bits, the same for equal rows: FNV-1a, a number at a time."""
    words = items.view(np.uint64).reshape(len(items), items.itemsize // 8)
    hashes = np.full(len(items), FNV_BASIS)
    for column in words.T:
        hashes ^= column
        hashes *= FNV_PRIME
        hashes ^= hashes >> np.uint64(32)  # a product hands bits upwards only
    return hashes


def _as_items(rows: Rows) -> NDArray[np.void]:
    items = np.ascontiguousarray(unify_zeros(rows))
    return items.view(np.dtype((np.void, items.itemsize * items.shape[1])))[:, 0]
