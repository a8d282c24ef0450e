"""Groups of rows that belong together, such as the visits of one patient: read from a column, or suspected.

A group is known by its number, counted from 0 in the order of first appearance. How the column spells its
values has no effect on a study, and is not stored.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import NO_NAMES
from ckcv_ray.tables.columns.parse import decode, infer_column, without_gaps
from ckcv_ray.tables.readers.files import is_plain
from ckcv_ray.tables.target import choose_name, is_text
from ckcv_ray.validation import as_array

LEAST_GROUPS = 6
GROUP_NAMES = ("group", "groups", "group_of_row")
ENTITIES = frozenset(
    (
        "patient",
        "subject",
        "customer",
        "client",
        "person",
        "participant",
        "user",
        "account",
        "household",
        "family",
        "animal",
        "donor",
        "device",
        "machine",
        "document",
        "group",
    )
)
NUMBER_WORDS = ("id", "ids", "no", "nr", "num", "number", "key", "code")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
LEAST_SHARED = 1 / 3  # share of rows whose value occurs again, for a column to look like groups

Groups = NDArray[np.intp]


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
    def read(cls, columns: pa.Table, name: str | None, known: Iterable[str]) -> "Grouping":
        """Return the grouping by a column of a table; without a name each row is its own.

        ``known`` are the columns that are something else, and are not asked about.

        Raises:
            InputError: as for ``group_numbers``.
        """
        if name is None:
            return cls(columns.num_rows, question=question(columns, known))
        return cls(columns.num_rows, group_numbers(infer_column(columns, name), name), name)

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


def group_numbers(column: pa.ChunkedArray, name: str) -> Groups:
    """Return the group number of every row of a column.

    Raises:
        InputError: it has empty cells, or values that are not text, numbers, dates or the like.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_plain(kind) or pa.types.is_null(kind):
        what = "is empty" if pa.types.is_null(kind) else f"holds {kind}"
        raise InputError(f"column {name!r} {what}: groups are named by text or whole numbers")
    column = _number_names(column) if is_text(kind) else decode(column)
    missing = pc.is_null(column, nan_is_null=True)
    if len(rows := np.flatnonzero(missing.to_numpy())):
        raise InputError(
            f"column {name!r} has no group in {len(rows):,} of {len(column):,} rows, the first in row "
            f"{rows[0] + 1}: fill the empty cells (NA, null, nan and ? are such), with a value of its own "
            "for each row that belongs to no other, or leave these rows out"
        )
    try:
        return renumber(_codes(column))
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} cannot be read as groups: {error}") from None


def _number_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a number for each text of a column, null for those that name nothing.

    Cells that differ in the spaces around them are of one group. Each distinct text is looked at once.
    """
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    names = without_gaps(pa.chunked_array([encoded.dictionary]), NO_NAMES)
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
        raise InputError(
            f"column {name!r} has a different value in each of the {count:,} rows, so it groups nothing: "
            f"leave --group out (and --drop {name[:60]}), as bounds for independent rows are closer; or name "
            "the column that says which rows belong together"
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


def question(columns: pa.Table, known: Iterable[str]) -> str:
    """Ask about the first column that looks as if it named groups; "" if there is none.

    Args:
        columns: a table.
        known: names of columns that are something else.
    """
    left = [name for name in columns.column_names if name not in set(known)]
    for name in left:
        if is_name_of_groups(name) and (count := _count_repeats(infer_column(columns, name))):
            return (
                f"column {name[:60]!r} repeats: {count:,} values in {columns.num_rows:,} rows. If rows of "
                f"one value belong together, such as visits of one patient, say --group {name[:60]}: without "
                "it nothing here is proven."
            )
    return ""


def is_name_of_groups(name: str) -> bool:
    """Return whether a column's name is that of something with several rows: patient, subject_id, userNo."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words:
        return False
    last, before = words[-1], words[:-1]
    if last in ENTITIES or last in ("id", "ids", "uid", "pid") or words[0] == "id":
        return True
    if last in NUMBER_WORDS and any(word in ENTITIES for word in before):
        return True
    return any(last.removesuffix(ending) in ENTITIES for ending in NUMBER_WORDS if last.endswith(ending))


def _count_repeats(column: pa.ChunkedArray) -> int:
    """Return the number of values of a column of text or whole numbers that repeat; 0 if few do."""
    column = decode(column)
    kind = column.type
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)) or column.null_count:
        return 0
    if pa.types.is_floating(kind):
        values = column.to_numpy()
        if not np.array_equal(values, np.floor(values)):
            return 0
    counts = np.bincount(_codes(column)) if len(column) else np.zeros(0, np.intp)
    shared = int(counts[counts > 1].sum())
    enough = np.count_nonzero(counts) >= LEAST_GROUPS and shared >= LEAST_SHARED * len(column)
    return int(np.count_nonzero(counts)) if enough else 0


def _codes(column: pa.ChunkedArray) -> Groups:
    """Return a number for each row of a column without gaps, the same for equal values alone."""
    if pa.types.is_floating(column.type):
        values: NDArray[np.float64] = column.to_numpy() + 0.0  # -0.0 and 0.0 are one number
        return np.unique(values, return_inverse=True)[1]
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    codes: Groups = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    return codes
