"""Count the uses of judged rows, in the folders of the runs that are compared or in a file of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ckcv_ray.claims.percent import nearest
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.storage.files import Files, LocalFiles
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.uses import USES, Use, append_use, read_uses
from ckcv_ray.validation import as_path

SHOWN_DIGITS = 12


class Counted(NamedTuple):
    """A use that was counted.

    Attributes:
        use: the use.
        number: of this use among all of the same rows, from 1.
        repeated: whether the same comparison was made before, which is the same use.
        places: files that have it.
        unwritable: folders that cannot be written.
        delta: probability that an answer is false, over all uses that share it, or for each.
    """

    use: Use
    number: int
    repeated: bool
    places: tuple[str, ...]
    unwritable: tuple[str, ...]
    delta: float

    def describe(self) -> list[str]:
        """Return sentences that say which use it is, and where it is counted."""
        shares, again = self.use.shares, ", the same comparison as before" if self.repeated else ""
        of = f"use {self.number} of {shares}" if shares else f"use {self.number}"
        lines = [
            f"{of} of these rows (SHA-256 {self.use.tables[0][:SHOWN_DIGITS]}){again}, {self._tell_place()}"
        ]
        if shares is None and self.number > 1:
            together = nearest(min(1.0, self.number * self.delta))
            lines.append(
                f"caution: each use has a chance of {nearest(self.delta)} to be false, the {self.number} "
                f"together up to {together}: share it among a number of uses with --uses, or judge new rows"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the use as JSON values."""
        return {
            "tables": list(self.use.tables),
            "number": self.number,
            "repeated": self.repeated,
            "shares": self.use.shares,
            "counted_in": list(self.places),
            "not_counted_in": list(self.unwritable),
        }

    def _tell_place(self) -> str:
        parts = [f"counted in {' and '.join(self.places)}"] if self.places else []
        if self.unwritable:
            where = " and ".join(self.unwritable)
            parts.append(f"not counted in {where}, which cannot be written: name a file with --ledger")
        return ", ".join(parts)


class UseCounter:
    """Where uses are counted: in each run's folder, or in one file.

    Args:
        folders: of the runs; their uses are read in any case.
        file: a file of its own; None for the folders.
    """

    def __init__(self, folders: list[RunFolder], file: str | PathLike[str] | None = None) -> None:
        self.folders = folders
        self.file = None if file is None else self._check(Path(as_path("ledger", file)))

    def count(self, use: Use, delta: float) -> Counted:
        """Count a use, while all places are locked; ``delta`` is as for ``Counted``.

        Raises:
            InputError: the uses among which delta is shared are spent, or their number is another; or delta
                is shared and the use cannot be counted anywhere.
            StoreError: a file of uses is damaged, or a folder is in use.
        """
        with self._lock() as (places, unwritable):
            read = [read_uses(folder.files) for folder in self.folders]
            if self.file is not None:
                read.append(read_uses(LocalFiles(self.file.parent), self.file.name))
            found = {u.answer: u for uses in read for u in uses if u.is_about(use.tables)}
            known = sorted(found.values(), key=lambda u: u.date)
            answers = [u.answer for u in known]
            repeated = use.answer in answers
            number = answers.index(use.answer) + 1 if repeated else len(answers) + 1
            _check_shares(use, number, known)
            if use.shares is not None and not places:
                raise InputError(
                    f"uses={use.shares}: uses cannot be counted in {' or '.join(unwritable)}, which cannot "
                    "be written: name a file with --ledger"
                )
            for files, name in places:
                append_use(files, use, name)
        written = tuple(str(files.path(name)) for files, name in places)
        return Counted(use, number, repeated, written, tuple(unwritable), delta)

    @contextmanager
    def _lock(self) -> Iterator[tuple[list[tuple[Files, str]], list[str]]]:
        """Lock the places that can be written; yield them, and the folders that cannot be."""
        with ExitStack() as stack:
            if self.file is not None:
                files = LocalFiles(self.file.parent)
                files.lock.acquire()
                stack.callback(files.lock.release)
                yield [(files, self.file.name)], []
                return
            places, unwritable = [], []
            for folder in self.folders:
                try:
                    folder.acquire()
                except InputError:  # somebody else's folder, or a read-only disk
                    unwritable.append(str(folder))
                    continue
                stack.callback(folder.release)
                places.append((folder.files, USES))
            yield places, unwritable

    def _check(self, file: Path) -> Path:
        """Return the path of a file of uses, which is in no run folder.

        Raises:
            InputError: it is in one, or its folder does not exist.
        """
        if not file.parent.is_dir():
            raise InputError(f"ledger={str(file)!r}: there is no folder {str(file.parent)!r}: create it")
        if any(folder.files.find_name(file) is not None for folder in self.folders):
            raise InputError(
                f"ledger={str(file)!r} is in a run folder: leave --ledger out to count uses there, in {USES}"
            )
        return file


def _check_shares(use: Use, number: int, known: list[Use]) -> None:
    """Raise InputError unless delta is shared as it was by the earlier uses, and a share is left."""
    for earlier in known:
        if earlier.shares == use.shares:
            continue
        if earlier.shares is None:
            raise InputError(
                f"uses={use.shares}: these rows were used on {earlier.date[:10]} without sharing delta, so "
                "that none is left to share: judge new rows, or leave --uses out"
            )
        raise InputError(
            f"the uses of these rows share delta among {earlier.shares}, as said on {earlier.date[:10]}: "
            f"give --uses {earlier.shares}"
        )
    if use.shares is not None and number > use.shares:
        raise InputError(
            f"uses={use.shares}: {pluralize(number - 1, 'use')} of these rows counted, and no share of "
            "delta is left: judge new rows"
        )
