"""Rows that occur more than once."""

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.data.schema import Rows, canonical
from ckcv_ray.data.task import Task


def known_rows(X: Rows, task: Task) -> int:
    """Count the rows of X [rows, d] that are among the learning rows."""
    return int(np.isin(_as_items(X), _as_items(task.X)).sum())


def count_repeats(task: Task) -> int:
    """Count the rows that equal another row in every column, including the label.

    With groups, the other row must be of another group: rows of one group may be related in any way.
    """
    _, items, counts = np.unique(
        _as_items(np.column_stack([task.X, task.y])), return_inverse=True, return_counts=True
    )
    if task.groups is None:
        return int(counts[counts > 1].sum())
    pairs = np.unique(np.column_stack([items, task.groups]), axis=0)
    shared = np.bincount(pairs[:, 0]) > 1  # items of more than one group
    return int(np.sum(shared[items]))


def count_repeated(X: Rows) -> int:
    """Count the rows of X [rows, d] that equal another row of it."""
    _, counts = np.unique(_as_items(X), return_counts=True)
    return int(counts[counts > 1].sum())


def _as_items(rows: Rows) -> NDArray[np.void]:
    """View each row as a single value; two are equal if all their numbers are."""
    items = np.ascontiguousarray(canonical(rows))
    return items.view(np.dtype((np.void, items.itemsize * items.shape[1])))[:, 0]
