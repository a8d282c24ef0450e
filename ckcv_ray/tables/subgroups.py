"""Subgroups of rows by the values of a column: one for each category, or bins of a column of numbers."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.quantities import Subgroups, parse_subgroup
from ckcv_ray.errors import InputError, cut
from ckcv_ray.tables.columns import ColumnKind, Rows
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import Values, quote

USUAL_BINS = 4
MAX_SUBGROUPS = 200  # of a column
LONGEST_OF_SUBGROUP = 60
USUAL_DIGITS, MAX_DIGITS = 6, 17  # of a number in a name; 17 tell any two apart


class Subgroup(NamedTuple):
    """A subgroup: its name, and which rows belong to it."""

    name: str
    rows: NDArray[np.bool_]


def check_subgroups(names: Sequence[str], task: Task) -> None:
    """Raise InputError if subgroups are of no column that is learned from, or their bins cannot be made."""
    for subgroups in map(parse_subgroup, names):
        if subgroups.column not in task.schema.names:
            is_target = subgroups.column == task.target.name
            why = "is the target" if is_target else "is no column that is learned from"
            raise InputError(
                f"subgroups={cut(str(subgroups), LONGEST_OF_SUBGROUP)}: {quote(subgroups.column)} {why}: "
                "name one that new rows have as well"
            )
        divide_rows(subgroups, task, task.X)


def divide_rows(subgroups: Subgroups, task: Task, X: Rows) -> list[Subgroup]:
    """Return the subgroups that some rows belong to.

    Args:
        subgroups: of a column of the task.
        task: the learning rows, from which edges of bins come.
        X: the rows to divide, [rows, d], in the columns of the task.

    Raises:
        InputError: bins are asked for of what are no numbers, or cannot be made of the learning rows.
    """
    position = task.schema.names.index(subgroups.column)
    column, learned, values = task.schema[position], task.X[:, position], X[:, position]
    name = column.name[:LONGEST_OF_SUBGROUP]
    if column.kind is ColumnKind.CATEGORY:
        if subgroups.bins or subgroups.edges:
            raise InputError(f"subgroups={subgroups}: {name!r} has categories: name the column alone")
        if len(column.levels) > MAX_SUBGROUPS:
            raise InputError(
                f"subgroups={subgroups}: {name!r} has {len(column.levels):,} categories, more than rows can "
                f"carry: at most {MAX_SUBGROUPS}"
            )
        texts = [cut(level, LONGEST_OF_SUBGROUP) for level in column.levels]
        if len(set(texts)) < len(texts):  # names must differ
            texts = [f"{text} ({i + 1} of {len(texts)})" for i, text in enumerate(texts)]
        parts = [Subgroup(f"{name} = {text}", values == i) for i, text in enumerate(texts)]
        parts.append(Subgroup(f"{name}: none of these", values == len(column.levels)))
    else:
        form = _format_dates if column.kind is ColumnKind.DATE else _format_apart
        parts = list(_list_bins(subgroups, name, learned[~np.isnan(learned)], values, form))
    parts.append(Subgroup(f"{name} missing", np.isnan(values)))
    return [part for part in parts if part.rows.any()]


def _list_bins(
    subgroups: Subgroups, name: str, learned: Values, values: Values, form: Callable[[Values], list[str]]
) -> Iterator[Subgroup]:
    """Yield bins with edges as asked, or at quantiles of the learning rows; of few numbers, one for each."""
    distinct = np.unique(learned)
    if not subgroups.bins and not subgroups.edges and len(distinct) <= USUAL_BINS:
        for text, value in zip(form(distinct), distinct, strict=True):
            yield Subgroup(f"{name} = {text}", values == value)
        yield Subgroup(f"{name}: none of these", ~np.isnan(values) & ~np.isin(values, distinct))
        return
    bins = subgroups.bins or USUAL_BINS
    edges = np.quantile(learned, np.arange(1, bins) / bins) if len(learned) else np.zeros(bins - 1)
    edges = np.array(subgroups.edges) if subgroups.edges else edges
    if subgroups.bins and (len(np.unique(edges)) < len(edges) or len(distinct) < bins):
        raise InputError(
            f"subgroups={subgroups}: {bins} bins of {name!r} would have equal edges, since many rows have "
            f"the same number: ask for fewer, or leave :{bins} out"
        )
    edges = np.unique(edges)
    shown = form(edges)
    yield Subgroup(f"{name} < {shown[0]}", values < edges[0])
    for (low, high), (least, below) in zip(pairwise(edges), pairwise(shown), strict=True):
        yield Subgroup(f"{least} <= {name} < {below}", (values >= low) & (values < high))
    yield Subgroup(f"{name} >= {shown[-1]}", values >= edges[-1])


def _format_dates(milliseconds: Values) -> list[str]:
    stamps = milliseconds.astype(np.int64).astype("datetime64[ms]")
    return [str(np.datetime_as_string(stamp, unit="auto")) for stamp in stamps]


def _format_apart(values: Values) -> list[str]:
    """Return different numbers as text with six digits, or as many as tell them apart: names must differ."""
    forms = ([f"{number:.{n}g}" for number in values] for n in range(USUAL_DIGITS, MAX_DIGITS + 1))
    return next(texts for texts in forms if len(set(texts)) == len(texts))
