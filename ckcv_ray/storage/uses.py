"""Uses of judged rows: each comparison on them is a new chance to be wrong, so each is counted.

    uses.json               tables, answer, date and what was compared, for each use in order

The file is in the folders of the runs that are compared, or wherever a ledger is named. The manifest does not
list it, so that comparing changes no file of a run. Rows are known by several SHA-256 of what they hold, of
which one has to agree: that of all columns, and that of what a run learned from, so that neither another run
nor another column makes them new. An answer has one too: the same comparison of the same predictions can give
no other answer, and is one use. Whoever can write to the file can write anything in it.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from ckcv_ray.errors import plain
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.validation import STRICT, check_count

USES = "uses.json"
SHA256 = re.compile("[0-9a-f]{64}")
MOST_USES, MOST_TABLES = 10_000, 8
MOST_SHARES = 1_000
MOST_OF_COMPARED = 400


@dataclass(frozen=True)
class Use:
    """One use of judged rows.

    Attributes:
        tables: SHA-256 of the rows: of all their columns first, and of some.
        answer: SHA-256 of the question and of the predictions that were compared.
        compared: what was compared, for display.
        shares: among how many uses delta is shared; None if it is not.
        date: when, in UTC, such as 2026-11-25T13:00:00+00:00.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    tables: tuple[str, ...]
    answer: str
    compared: str
    shares: int | None
    date: str

    def is_about(self, tables: Sequence[str]) -> bool:
        """Return whether it is a use of rows that have one of these SHA-256."""
        return not set(tables).isdisjoint(self.tables)


@dataclass(frozen=True)
class UseList:
    """The content of the file."""

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    uses: tuple[Use, ...]

    def check(self) -> None:
        """Raise ValueError unless it is as this module writes it."""
        check_count("uses", len(self.uses), MOST_USES)
        for use in self.uses:
            _check(use)


def make_use(tables: Sequence[str], answer: str, compared: str, shares: int | None) -> Use:
    """Return a use, dated now."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Use(tuple(tables), answer, plain(compared)[:MOST_OF_COMPARED], shares, date)


def read_uses(files: Files, name: str = USES) -> tuple[Use, ...]:
    """Return the uses in a file, the oldest first; none if there is no file.

    Raises:
        StoreError: the file is damaged, or holds something else.
    """
    found = formats.read_checked(files, name, UseList)
    return () if found is None else found.uses


def append_use(files: Files, use: Use, name: str = USES) -> None:
    """Append a use to a file, in a folder that is locked; no effect if it has the same answer already.

    Raises:
        StoreError: the file is damaged, or holds something else.
        RunError: it cannot be written.
    """
    uses = read_uses(files, name)
    if not any(found.answer == use.answer and found.is_about(use.tables) for found in uses):
        formats.write_json(files, name, asdict(UseList((*uses, use))))


def _check(use: Use) -> None:
    """Raise ValueError unless a use is as this module writes one."""
    if datetime.fromisoformat(use.date).tzinfo is None:
        raise ValueError(f"the date {use.date!r} has no time zone")
    check_count("tables", len(use.tables), MOST_TABLES)
    for digest in (*use.tables, use.answer):
        if SHA256.fullmatch(digest) is None:
            raise ValueError(f"{digest!r} is not a SHA-256")
    if len(use.compared) > MOST_OF_COMPARED or not use.compared.isprintable():
        raise ValueError(f"what was compared is not one line of at most {MOST_OF_COMPARED} characters")
    if use.shares is not None and not 1 <= use.shares <= MOST_SHARES:
        raise ValueError(f"shares: {use.shares} is outside 1..{MOST_SHARES}")
