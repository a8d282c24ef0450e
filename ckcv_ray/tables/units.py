"""Which columns are the target, the features, the groups and the weights: what is asked for must be there.

A group of rows that belong together, such as the visits of one patient, is known by its number, counted from
0 in the order of first appearance. How the column spells its values has no effect on a study, and is not
stored. Weights of rows are used in fits alone, unless the error by weight is claimed: all else that is
measured and claimed is of rows, which count once each.
"""

from collections.abc import Collection, Sequence
from csv import Error, reader
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.errors import InputError, write_option, write_row
from ckcv_ray.tables.columns.formats import GAPS, NO_NAMES, DeclaredTypes
from ckcv_ray.tables.columns.parse import decode, infer_column, kept_words, number_values, without_gaps
from ckcv_ray.tables.readers.files import is_plain
from ckcv_ray.tables.readers.limits import decimal_mark
from ckcv_ray.tables.target import (
    LARGEST,
    MIN_GROUPS,
    NUMBER_TYPES,
    check_single,
    is_number,
    is_text,
    parse_text_numbers,
    some,
    suggest_column,
)
from ckcv_ray.validation import as_array, expect, quote, sequence

TARGETS = ("target", "y", "label", "class")


class Roles(NamedTuple):
    """What the columns of a table are for.

    Attributes:
        target: name of the column to predict; None for the one column named target, y, label or class.
        features: names of the columns to learn from; None for every column but the target, the groups, the
            weights, and those that number the rows.
        drop: names of columns to leave out.
        group: name of the column whose equal values (text, whole numbers) mark rows that belong together, or
            names of several, whose values then agree together: a list, or a row of a CSV file (center,id).
            If a column has a name that reads like such a row, it is meant.
        numbers: whether the target has numbers to predict, and not classes.
        weight: name of the column of positive numbers that says what each row weighs in a fit.
        id: name of the column that names the rows, which is not learned from.
    """

    target: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    group: str | Sequence[str] | None = None
    numbers: bool = False
    weight: str | None = None
    id: str | None = None

    def resolve(self, names: list[str], index: set[str]) -> tuple[str, list[str]]:
        """Return the target and the features of a table with these columns, of which ``index`` name rows.

        Raises:
            InputError: a column is missing, has two purposes, or no feature is left.
        """
        target = find_target_name(names, self.target)
        groups = find_groups(self.group, names)
        check_chosen(names, target, groups, self)
        unasked = index if self.features is None else ()
        left_out = {target, *groups, self.weight, self.id, *(self.drop or ()), *unasked}
        wanted = dict.fromkeys(names if self.features is None else self.features)
        chosen = [name for name in wanted if name not in left_out]
        if not chosen:
            raise InputError(
                f"no feature is left besides the target {target!r}: correct --features and --drop"
            )
        check_single(names, set(chosen), droppable=True)
        return target, chosen


USUAL_ROLES = Roles()


def find_target_name(names: list[str], target: str | None) -> str:
    """Return the name of the target, by default the one column that is called like one."""
    if target is not None:
        check_column(target, names, " for the target")
        return target
    matches = [name for name in TARGETS if name in names]
    if len(matches) != 1:
        which = (
            f"columns {', '.join(matches)} could all be" if matches else f"none of {', '.join(TARGETS)} is"
        )
        hint = ""
        if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
            hint = " (say by --separator what separates the columns)"
        elif sum(map(is_number, names)) > len(names) / 2:
            hint = " (the first line must name the columns)"
        raise InputError(f"{which} the target: name it with --target; the columns are {some(names)}{hint}")
    check_single(names, matches)
    return matches[0]


def split_names(text: str) -> list[str]:
    """Return the names of columns in a,b,c; names that contain a comma are quoted, as in a CSV file."""
    try:
        return next(reader([text], skipinitialspace=True)) or [""]
    except Error as error:
        raise InputError(f"{quote(text)} is no row of names: {error}") from None


def find_groups(group: str | Sequence[str] | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns that together say which rows belong together; see ``Roles.group``.

    Raises:
        InputError: it is no name, and no list of names.
    """
    if group is None:
        return ()
    expect("group", group, str | list | tuple, "the name of a column, or a list of them")
    if isinstance(group, str):
        return (group,) if group in names else tuple(dict.fromkeys(split_names(group)))
    return sequence("group", group, least=1, kind="column names")


def name_groups(groups: Sequence[str], names: Sequence[str] = ()) -> str | None:
    """Return the one name of these columns together; None of none.

    Raises:
        InputError: another one of the columns ``names`` has it.
    """
    name = groups[0] if len(groups) == 1 else write_row(groups) if groups else None
    if len(groups) > 1 and name in names:
        raise InputError(f"a column is named {name!r}, as the groups by these columns would be: rename it")
    return name


def check_column(name: object, names: Sequence[str], purpose: str = "") -> None:
    """Raise InputError unless a table has a single column of this name, which is wanted for a ``purpose``."""
    if not (isinstance(name, str) and name in names):
        raise InputError(
            f"there is no column {quote(name)}{purpose}: the columns are {some(names)}"
            f"{suggest_column(name, names)}"
        )
    check_single(names, [name])


def check_chosen(names: list[str], target: str, groups: Sequence[str], roles: Roles) -> None:
    """Raise InputError unless the columns asked for exist, and each is for one purpose."""
    features, drop, known = roles.features, roles.drop, list(dict.fromkeys(names))
    for argument, value in (("features", features), ("drop", drop)):
        expect(argument, value, list | tuple | None, "a list of column names")
        for name in value or ():
            check_column(name, known)
    if target in (drop or ()):
        raise InputError(
            f"column {quote(target)} is the target: leave it out of --drop, or name another as the target"
        )
    for argument, column, purpose, says in (
        *(("group", group, "groups", "which rows belong together") for group in groups),
        ("weight", roles.weight, "weights", "what rows weigh"),
        ("id", roles.id, "names of rows", "which row is which"),
    ):
        expect(argument, column, str | None, "the name of a column")
        if column is None:
            continue
        check_column(column, names, f" for the {purpose}")
        if column == target:
            raise InputError(
                f"column {column!r} is the target, and cannot say {says}: name another column with "
                f"--{argument}"
            )
        if column in (features or ()):
            raise InputError(f"column {column!r} says {says}, and is no feature: leave it out of --features")
    if roles.weight in groups:
        raise InputError(
            f"column {roles.weight!r} says which rows belong together, and cannot say what rows weigh: name "
            "another column with --weight"
        )


def check_asked(asked: DeclaredTypes, chosen: Sequence[str]) -> None:
    """Raise InputError unless each column that is asked to be of a kind is learned from, and of one kind."""
    seen: set[str] = set()
    for option, names in asked.names.items():
        for name in names:
            if name not in chosen:
                raise InputError(
                    f"--{option} {quote(name)}: the columns that are learned from are {some(chosen)}"
                    f"{suggest_column(name, chosen)}"
                )
            if name in seen:
                raise InputError(f"column {quote(name)} is given two kinds: leave it out of one")
            seen.add(name)


def check_kept(words: Collection[str]) -> frozenset[str]:
    """Return words of gaps that are kept as text, in lower case.

    Raises:
        InputError: a word is no gap, or the text of an empty cell.
    """
    for word in words:
        if not word.strip():
            raise InputError("keep_values='': an empty cell is a gap in any case: name words, such as NA")
        if word.lower() not in GAPS:
            raise InputError(
                f"keep_values={quote(word)}: it is no word that is taken for an empty cell, as these are, in "
                f"capitals as well: {', '.join(sorted(GAPS - {''}))}: leave it out"
            )
    return frozenset(word.lower() for word in words)


Groups = NDArray[np.intp]
GROUP_NAMES = ("group", "groups", "group_of_row")


@dataclass(frozen=True)
class Grouping:
    """Which rows belong together: the groups of a column, or each row is a group of its own.

    Groups are the units that are drawn independently.

    Attributes:
        n: number of rows.
        named: the group of each row, numbered from 0 in the order of first appearance, (n,); None if each row
            is its own.
        column: name of the column of groups; None if each row is its own.
        question: asks about a column that looks like groups, for display; "" if there is none.
    """

    n: int
    named: Groups | None = None
    column: str | None = None
    question: str = ""

    @classmethod
    def read(cls, columns: pa.Table, names: Sequence[str], question: str = "") -> "Grouping":
        """Return the grouping by columns of a table, in which rows of a group agree; of none each is its own.

        ``question`` asks about a column that looks like groups, where none is named.

        Raises:
            InputError: as for ``group_numbers``, or a column has the name of the groups.
        """
        if not names:
            return cls(columns.num_rows, question=question)
        gaps = NO_NAMES - kept_words(columns)
        groups, *rest = (group_numbers(infer_column(columns, name), name, gaps) for name in names)
        for finer in rest:
            groups = renumber(groups * len(groups) + finer)
        return cls(columns.num_rows, groups, name_groups(names, columns.column_names))

    @property
    def given(self) -> bool:
        """Whether rows belong together."""
        return self.named is not None

    @cached_property
    def numbers(self) -> Groups:
        """The group of each row, (n,)."""
        return np.arange(self.n) if self.named is None else self.named

    @property
    def n_units(self) -> int:
        """Number of groups."""
        return self.n if self.named is None else int(self.named.max(initial=-1)) + 1

    @property
    def unit(self) -> str:
        """The word for a unit: "group" or "row"."""
        return "group" if self.given else "row"

    def rows(self, units: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the rows of some units, ascending; rows that are their own units as they are."""
        return np.flatnonzero(np.isin(self.numbers, units)) if self.given else units

    def repeat_rows(self, units: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the rows of units as often as each unit is named; those of groups ascending."""
        if not self.given:
            return units
        times = np.bincount(units, minlength=self.n_units)[self.numbers]
        return np.repeat(np.arange(self.n), times)

    def count_fewest_rows(self, units: int) -> int:
        """Return the smallest number of rows that this many different units can have."""
        if self.named is None:
            return units
        return int(np.sort(np.bincount(self.named))[:units].sum())

    def part(self, rows: NDArray[np.intp]) -> "Grouping":
        """Return the grouping of some rows, whose groups are numbered again."""
        named = None if self.named is None else renumber(self.named[rows])
        return replace(self, n=len(rows), named=named)

    def check(self) -> None:
        """Raise InputError if groups are too few, or do not group anything."""
        if self.named is None:
            return
        count, name = self.n_units, str(self.column)
        if count < MIN_GROUPS:
            raise InputError(
                f"column {name!r} has {count} different value{'s' * (count > 1)}: at least {MIN_GROUPS} "
                "groups are needed; name the column that says which rows belong together, such as the "
                "patient's number"
            )
        if count == self.n:
            drop = "the columns with --drop" if "," in name else write_option("drop", name)
            raise InputError(
                f"column {name!r} has a different value in each of the {count:,} rows, so it groups nothing: "
                f"leave --group out (and {drop}), as bounds for independent rows are closer; or name the "
                "column that says which rows belong together"
            )


def renumber(groups: NDArray[np.integer]) -> Groups:
    """Return group numbers (n,) counted from 0 in the order of first appearance."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def group_numbers(column: pa.ChunkedArray, name: str, gaps: Collection[str] = NO_NAMES) -> Groups:
    """Return the group number of every row of a column.

    Raises:
        InputError: it has empty cells, or values that are not text, numbers, dates or the like.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_plain(kind) or pa.types.is_null(kind):
        what = "is empty" if pa.types.is_null(kind) else f"holds {kind}"
        raise InputError(f"column {name!r} {what}: groups are named by text or whole numbers")
    if is_text(kind):  # whose cells are of one group if they differ in the spaces around them alone
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        encoded = encoded.unify_dictionaries().combine_chunks()
        names = without_gaps(pa.chunked_array([encoded.dictionary]), gaps)
        numbers = names.dictionary_encode().combine_chunks().indices
        column = pa.chunked_array([numbers.take(encoded.indices)])
    else:
        column = decode(column)
    missing = pc.is_null(column, nan_is_null=True)
    if len(rows := np.flatnonzero(missing.to_numpy())):
        raise InputError(
            f"column {name!r} has no group in {len(rows):,} of {len(column):,} rows, the first in row "
            f"{rows[0] + 1}: fill the empty cells (NA, null, nan and ? are such, unless --keep-values "
            "names them), with a value of its own for each row that belongs to no other, or leave these rows "
            "out"
        )
    try:
        return renumber(number_values(column))
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} cannot be read as groups: {error}") from None


WEIGHT_NAMES = ("weight", "sample_weight", "weight_of_row")


@dataclass(frozen=True)
class Weighting:
    """What rows weigh in a fit."""

    named: Values | None = None  # the weight of each row, positive, (n,); None if all weigh the same
    column: str | None = None  # name of the column of weights; None if all weigh the same

    @classmethod
    def read(cls, columns: pa.Table, name: str | None, thousands: str = "") -> "Weighting":
        """Return the weights in a column of a table; without a name all rows weigh the same.

        ``thousands`` is the mark between thousands, if it was said.

        Raises:
            InputError: a cell is empty, or no positive number of a magnitude that can be computed with.
        """
        if name is None:
            return UNWEIGHTED
        role, column = "the column of weights", infer_column(columns, name)
        called = f"{role} {name!r}"
        if is_text(column.type):
            column = parse_text_numbers(column, name, role, thousands, decimal=decimal_mark(columns))
        if not any(is_one(column.type) for is_one in NUMBER_TYPES):
            raise InputError(f"{called} has type {column.type}: name a column of numbers with --weight")
        weights = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
        if len(empty := np.flatnonzero(np.isnan(weights))):
            raise InputError(
                f"{called} has {len(empty)} empty cells, the first in row {empty[0] + 1}: fill them, or "
                "leave these rows out"
            )
        if len(bad := np.flatnonzero(~((weights >= 1 / LARGEST) & (weights <= LARGEST)))):
            raise InputError(
                f"{called} has {weights[bad[0]]:g} in row {bad[0] + 1}: weights are positive, from "
                f"{1 / LARGEST:g} to {LARGEST:g}; leave out a row of weight zero"
            )
        return cls(weights, name)

    @property
    def given(self) -> bool:
        """Whether rows have weights."""
        return self.named is not None

    def take(self, rows: Index) -> Values | None:
        """Return the weights of some rows, as often as each is named; None if all weigh the same."""
        return None if self.named is None else self.named[rows]

    def part(self, rows: Index) -> "Weighting":
        """Return the weighting of some rows."""
        return replace(self, named=self.take(rows))

    def describe(self) -> str:
        """Say what the weights are used for; "" if all rows weigh the same."""
        if self.column is None:
            return ""
        return (
            f"Rows are weighted by {self.column!r} in fits alone: measures and claims are of unweighted rows."
        )


UNWEIGHTED = Weighting()


def make_unit_column(name: str, values: ArrayLike, n: int) -> pa.Array:
    """Return the "groups" or the "sample_weight" of n rows, given as an array, as a column.

    Raises:
        InputError: it is not one value for each row, or weights are no numbers.
    """
    column: NDArray[np.generic] = as_array(name, values)
    if column.shape != (n,):
        what = "group" if name == "groups" else "weight"
        raise InputError(f"{name} has shape {column.shape}: expected ({n},), the {what} of each row")
    if name == "sample_weight":
        if column.dtype.kind not in "iuf":
            raise InputError(f"{name} has type {column.dtype}: expected numbers")
        column = np.asarray(column, np.float64)
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} cannot be read as a column: {error}") from None
