"""A figure of the page with what belongs to it: heading, caption, and the same values as a table."""

from collections.abc import Sequence
from typing import NamedTuple


class Picture(NamedTuple):
    """A figure with its table; or the sentence why there is none.

    Attributes:
        title: heading.
        svg: the figure; "" if there is none.
        caption: what it shows, or why there is none.
        heads: names of the columns of its table.
        rows: the table, as text.
    """

    title: str
    svg: str
    caption: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
