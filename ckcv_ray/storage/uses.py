"""Uses of judged rows: each comparison on them is a new chance to be wrong, so each is counted.

    uses.json               rows, answer, date and what was compared, for the first use
    uses-000001.json        the same for the second, and so on

The files are in the folders of the runs that are compared, or wherever a ledger is named. Of two writers one
alone can create a file. The manifest does not list them, so that comparing changes no file of a run. Rows are
known one by one, by digests of all columns but the label, and by those of what a run has learned from, of
which a few may agree by chance: neither another run, nor another column, nor more rows make them new. Tables
have SHA-256s as well, for columns in which rows are often equal. An answer has one too: the same comparison
of the same predictions can give no other answer, and is one use. Whoever can write to a file can write
anything in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import InputError, plain
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.validation import Limited, Probability, Sha256, Stored, read_as

USES = "uses.json"
MAX_USES = 10_000
MAX_SHARES, MAX_OF_COMPARED = 1_000, 400
Digests = Annotated[str, Limited(pattern="^([0-9a-f]{16})*$")]
Line = Annotated[str, Limited(max_length=MAX_OF_COMPARED, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]*$")]  # printable
Moment = Annotated[str, Limited(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
MAX_TWINS = 0.01  # of rows, that equal another one: above it equal rows may well be other examples


@dataclass(frozen=True)
class Use(Stored):
    """One use of judged rows.

    Attributes:
        tables: SHA-256 of the rows with their labels: of all their columns first, and of some.
        rows: digests of the rows that counted, without their labels, of 16 hexadecimal digits each; none if
            rows of other examples are often equal.
        learned: the same of the columns that a run has learned from.
        answer: SHA-256 of the question and of the predictions that were compared.
        compared: what was compared, for display.
        shares: among how many uses delta is shared.
        delta: what is shared.
        date: when, in UTC, such as 2026-11-25T13:00:00+00:00.
    """

    tables: Annotated[tuple[Sha256, ...], Limited(max_length=8)]
    rows: Digests
    learned: Digests
    answer: Sha256
    compared: Line
    shares: Annotated[int, Limited(ge=1, le=MAX_SHARES)]
    delta: Probability
    date: Moment

    def has_table(self, earlier: "Use") -> bool:
        """Return whether an earlier use is of the same table."""
        return not set(self.tables).isdisjoint(earlier.tables)

    def shares_rows(self, earlier: "Use") -> bool:
        """Return whether an earlier use has some of the same rows."""
        learned, before = _read_digests(self.learned), _read_digests(earlier.learned)
        few = MAX_TWINS * min(len(learned), len(before))
        return (
            self.has_table(earlier)
            or bool(np.isin(_read_digests(self.rows), _read_digests(earlier.rows)).any())
            or int(np.isin(learned, before).sum()) > few
        )

    def repeats(self, earlier: "Use") -> bool:
        """Return whether an earlier use is the same: the same question and predictions on the same table."""
        return self.answer == earlier.answer and self.has_table(earlier)


def make_use(
    tables: Sequence[str],
    rows: NDArray[np.uint64],
    learned: NDArray[np.uint64],
    answer: str,
    compared: str,
    shares: int,
    delta: float,
) -> Use:
    """Return a use, dated now."""
    digits, learned_digits = (np.unique(each).astype("<u8").tobytes().hex() for each in (rows, learned))
    date, shown = datetime.now(UTC).isoformat(timespec="seconds"), plain(compared)[:MAX_OF_COMPARED]
    return Use(tuple(tables), digits, learned_digits, answer, shown, shares, delta, date)


def list_linked(use: Use, earlier: Iterable[Use]) -> list[Use]:
    """Return the uses that share rows with a use, or with one that does, and so on, the oldest first."""
    linked, left = [use], list(earlier)
    for found in linked:
        linked += [before for before in left if found.shares_rows(before)]
        left = [before for before in left if before not in linked]
    return sorted(linked[1:], key=lambda found: found.date)


def read_uses(files: Files, name: str = USES) -> tuple[Use, ...]:
    """Return the uses in a file and in those that follow it, the oldest first; none if there is no file.

    Raises:
        StoreError: a file is damaged, or holds something else.
    """
    uses: list[Use] = []
    for piece in formats.list_pieces(files, name)[:MAX_USES]:
        content = formats.read_json(files, piece)
        with formats.guard_reading(files, piece):
            uses.append(read_as(Use, content))
    return tuple(uses)


def append_use(files: Files, use: Use, name: str, earlier: Sequence[Use]) -> None:
    """Write a use to a file of its own; no effect if there is one with the same answer already.

    Args:
        files: of the folder.
        use: the use.
        name: of the first file.
        earlier: the uses in the folder, as ``read_uses`` returned them.

    Raises:
        StoreError: another comparison was written since they were read.
        InputError: there are too many uses.
        RunError: it cannot be written.
    """
    if any(use.repeats(found) for found in earlier):
        return
    if len(earlier) >= MAX_USES:
        raise InputError(
            f"{str(files.path(name))!r} has {MAX_USES:,} uses, the maximum: begin another file with --ledger"
        )
    content = formats.to_json(use.to_json())
    grown = "was written by another comparison just now: compare again"
    formats.create(files, formats.name_piece(name, len(earlier)), content, grown)


def _read_digests(digits: str) -> NDArray[np.uint64]:
    return np.frombuffer(bytes.fromhex(digits), "<u8")
