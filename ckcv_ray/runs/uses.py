"""Count the uses of judged rows, in the folders of the runs that are compared or in a file of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.storage.files import Files, LocalFiles
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.uses import USES, Use, append_use, list_linked, read_uses
from ckcv_ray.validation import as_path

SHOWN_DIGITS = 12


class Counted(NamedTuple):
    """A use that was counted."""

    use: Use
    number: int  # of this use among all of the same rows, from 1
    repeated: bool  # whether the same comparison was made before, which is the same use
    places: tuple[str, ...]  # files that have it
    unwritable: tuple[str, ...]  # folders that cannot be written

    def describe(self) -> list[str]:
        """Return sentences that say which use it is, and where it is counted."""
        shares, again = self.use.shares, ", the same comparison as before" if self.repeated else ""
        shown = f"these rows (SHA-256 {self.use.tables[0][:SHOWN_DIGITS]})"
        if shares == 1:
            return [f"the only use of {shown}{again}, {self._tell_place()}"]
        return [
            f"use {self.number} of {shares} of {shown}{again}, {self._tell_place()}",
            f"all {shares} together are covered if what is compared, and how many rows were added, was not "
            "chosen by what earlier uses showed of these rows",
        ]

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

    def count(self, use: Use) -> Counted:
        """Count a use, while all places are locked.

        Raises:
            InputError: the uses among which delta is shared are spent, or their number is another; or delta
                is shared and the use cannot be counted anywhere; or a file of uses would be too large.
            StoreError: a file of uses is damaged, or a folder is in use.
        """
        with self._lock() as (places, unwritable):
            read = [read_uses(folder.files) for folder in self.folders]
            if self.file is not None:
                read.append(read_uses(LocalFiles(self.file.parent), self.file.name))
            linked = list_linked(use, dict.fromkeys(earlier for uses in read for earlier in uses))
            same = [position for position, earlier in enumerate(linked) if use.repeats(earlier)]
            number = same[0] + 1 if same else len(linked) + 1
            _check_shares(use, number, linked)
            if use.shares > 1 and not places:
                raise InputError(
                    f"uses={use.shares}: uses cannot be counted in {' or '.join(unwritable)}, which cannot "
                    "be written: name a file with --ledger"
                )
            for files, name in places:
                append_use(files, use, name)
        written = tuple(str(files.path(name)) for files, name in places)
        return Counted(use, number, bool(same), written, tuple(unwritable))

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


def _check_shares(use: Use, number: int, linked: list[Use]) -> None:
    """Raise InputError unless delta is shared as it was by the earlier uses, and a share is left."""
    shares, delta = use.shares, use.delta
    for earlier in linked:
        if (earlier.shares, earlier.delta) == (shares, delta):
            continue
        when = f"some of these rows were judged on {earlier.date[:10]}"
        if earlier.shares == 1:
            raise InputError(
                f"uses={shares}: {when}, and that took all of delta: judge new rows, and name the number of "
                "uses at the first one"
            )
        raise InputError(
            f"{when}, with delta={earlier.delta:g} shared among {earlier.shares} uses: give --uses "
            f"{earlier.shares} and --delta {earlier.delta:g}, or judge new rows"
        )
    if number > shares:
        raise InputError(
            f"uses={shares}: {pluralize(number - 1, 'use')} of these rows, or of rows linked with them, "
            "counted, and no share of delta is left: judge new rows, and name the number of uses at the "
            "first one"
        )
