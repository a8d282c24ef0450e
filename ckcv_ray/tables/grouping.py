"""Groups of rows that belong together, such as the visits of one patient: read from a column, or suspected.

A group is known by its number, counted from 0 in the order of first appearance. How the column spells its
values has no effect on a study, and is not stored.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.errors import InputError, write_option
from ckcv_ray.tables.columns.formats import NO_NAMES
from ckcv_ray.tables.columns.parse import decode, infer_column, kept_words, number_values, without_gaps
from ckcv_ray.tables.readers.files import is_plain
from ckcv_ray.tables.roles import name_groups
from ckcv_ray.tables.target import LEAST_GROUPS, choose_name, is_text
from ckcv_ray.validation import as_array

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
        if self.named is not None:
            check_groups(self.named, str(self.column))


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
    column = _number_names(column, gaps) if is_text(kind) else decode(column)
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


def _number_names(column: pa.ChunkedArray, gaps: Collection[str]) -> pa.ChunkedArray:
    """Return a number for each text of a column, null for those that name nothing.

    Cells that differ in the spaces around them are of one group. Each distinct text is looked at once.
    """
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    names = without_gaps(pa.chunked_array([encoded.dictionary]), gaps)
    numbers = names.dictionary_encode().combine_chunks().indices
    return pa.chunked_array([numbers.take(encoded.indices)])


def check_groups(groups: Groups, name: str) -> None:
    """Raise InputError if the groups of a table are too few, or do not group anything."""
    count = int(groups.max(initial=-1)) + 1
    if count < LEAST_GROUPS:
        raise InputError(
            f"column {name!r} has {count} different value{'s' * (count > 1)}: at least {LEAST_GROUPS} groups "
            "are needed; name the column that says which rows belong together, such as the patient's number"
        )
    if count == len(groups):
        drop = "the columns with --drop" if "," in name else write_option("drop", name)
        raise InputError(
            f"column {name!r} has a different value in each of the {count:,} rows, so it groups nothing: "
            f"leave --group out (and {drop}), as bounds for independent rows are closer; or name the column "
            "that says which rows belong together"
        )


def groups_column(groups: ArrayLike, n: int) -> pa.Array:
    """Return the groups of n rows, given as an array, as an Arrow column.

    Raises:
        InputError: it is not one value for each row.
    """
    values = as_array("groups", groups)
    if values.shape != (n,):
        raise InputError(f"groups has shape {values.shape}: expected ({n},), the group of each row")
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"groups cannot be read as a column: {error}") from None


def name_of_groups(taken: Iterable[str]) -> str:
    """Return a name for a column of groups that has none, other than those taken."""
    return choose_name(GROUP_NAMES, taken)
