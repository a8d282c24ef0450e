"""Kinds of columns: numbers, categories and dates, and how each column is understood."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class ColumnKind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    CATEGORY = "category"
    DATE = "date"


@dataclass(frozen=True)
class Column:
    """How a column is understood.

    Attributes:
        name: its name.
        kind: what it holds.
        levels: the text of each level of a category, sorted; empty for other kinds.
        form: how text is read: see ``formats.number_parser`` and ``formats.date_parser``; "" for columns that
            were not text.
        lenient: whether what is no number is a gap, as ``--numeric`` asks.
        zoned: whether dates are moments that say how far they are from UTC; a day alone does not.
        short_decimals: whether every number was text with one or two decimals, or none but thousands, and
            nobody said what marks thousands: a cell with three, such as 1.250, may then have such a mark.
    """

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    levels: tuple[str, ...] = ()
    form: str = ""
    lenient: bool = False
    short_decimals: bool = False
    zoned: bool = False


class DeclaredTypes(NamedTuple):
    """What the user says of columns.

    Attributes:
        categorical, numeric, date: names of the columns of each kind.
        thousands: the mark between thousands, a comma or a point, where a number does not tell; "" if that
            is not known.
        labels: what labels are that differ in case or spaces alone, or are one number: "join" for one class,
            "apart" for several; "" to ask.
        drop_unlabelled: whether rows without a label are left out; otherwise they are refused.
        keep_values: words that are otherwise taken for empty cells, such as NA, in any case of letters: here
            they are text like any other, in every column.
    """

    categorical: Collection[str] = ()
    numeric: Collection[str] = ()
    date: Collection[str] = ()
    thousands: str = ""
    labels: str = ""
    drop_unlabelled: bool = False
    keep_values: Collection[str] = ()

    @property
    def names(self) -> dict[str, Collection[str]]:
        """The names of the columns of each kind, by the option that says so."""
        return {"categorical": self.categorical, "numeric": self.numeric, "date": self.date}

    def kind(self, name: str) -> ColumnKind | None:
        """Return the kind that was asked for; None if the values decide."""
        kinds = (ColumnKind.CATEGORY, ColumnKind.NUMBER, ColumnKind.DATE)
        for kind, names in zip(kinds, self.names.values(), strict=True):
            if name in names:
                return kind
        return None


NOTHING_ASKED = DeclaredTypes()
