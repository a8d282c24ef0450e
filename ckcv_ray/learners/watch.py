"""Notes for a process that supervises this one: which fit runs just now, and which have ended the process.

Compiled code may crash the process, end it, or never return. Whoever started it then reads in a file that
both have open which fit that was, and starts it again. A fit that has ended the process too many times is not
begun again: it has failed.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from ckcv_ray.errors import pluralize

VARIABLE = "CKCV_SUPERVISED"
MOST_LOST = 2  # times that a fit may end the process before it has failed
NOTE_BYTES = 4096
MOST_NOTE = 1000


class LostError(RuntimeError):
    """A fit that ended the process as often as it may."""


class Note(NamedTuple):
    """What a supervised process does."""

    number: int = 0  # counts the notes
    key: str = ""  # of the fit, the same when it is repeated; empty outside of fits
    text: str = ""  # the fit in words
    fits: int = 1  # number of fits that the time limit is multiplied by
    attempts: int = MOST_LOST  # times that the fit may end the process
    done: bool = False  # whether the process has done all that it was asked to


class Watch:
    """The file of notes, from the side of the process that is supervised.

    Args:
        descriptor: of the file.
        parent: number of the process that supervises.
        lost: what ended the process in earlier attempts, by the key of the fit.
    """

    def __init__(self, descriptor: int, parent: int, lost: dict[str, list[str]]) -> None:
        self._descriptor, self._parent, self._lost, self._number = descriptor, parent, lost, 0

    @property
    def orphaned(self) -> bool:
        """Whether the process that supervises has ended."""
        return os.getppid() != self._parent

    def check(self, key: str, attempts: int) -> None:
        """Raise LostError if a fit has ended the process as often as it may."""
        reasons = self._lost.get(key, [])
        if len(reasons) >= attempts:
            raise LostError(f"it ended the process {pluralize(len(reasons), 'time')}: {'; '.join(reasons)}")

    def write(self, note: Note) -> None:
        """Write the current note."""
        self._number += 1
        text = json.dumps(note._replace(number=self._number, text=note.text[:MOST_NOTE]))
        os.pwrite(self._descriptor, text.encode()[: NOTE_BYTES - 1] + b"\n", 0)


_watch: list[Watch] = []


def find_watch() -> Watch | None:
    """Return the watch of this process; None if no process supervises it."""
    return _watch[0] if _watch else None


def accept_supervision() -> None:
    """Begin to write notes if this process was started to be supervised; its own children are not."""
    if (given := os.environ.pop(VARIABLE, None)) is None:
        return
    descriptor, parent = map(int, given.split(","))
    os.set_inheritable(descriptor, False)
    lost = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, NOTE_BYTES) or b"{}")
    _watch[:] = [Watch(descriptor, parent, lost)]


@contextmanager
def watch_fit(key: Any, text: str, fits: int = 1, attempts: int = MOST_LOST) -> Iterator[None]:
    """Let the supervising process know of a fit inside the context.

    Args:
        key: what tells the fit from all others of the command.
        text: the fit in words.
        fits: number of fits that a limit of time is multiplied by.
        attempts: times that it may end the process.

    Raises:
        LostError: it has ended the process as often as it may.
    """
    if (watch := find_watch()) is None:
        yield
        return
    name = str(key)
    watch.check(name, attempts)
    watch.write(Note(key=name, text=text, fits=fits, attempts=attempts))
    try:
        yield
    finally:
        watch.write(Note())


def note_done() -> None:
    """Let the supervising process know that everything is done."""
    if (watch := find_watch()) is not None:
        watch.write(Note(done=True))


def write_lost(file: BinaryIO, lost: dict[str, list[str]]) -> None:
    """Write an empty note, and what has ended the process before, for the next process."""
    os.ftruncate(file.fileno(), 0)
    os.pwrite(file.fileno(), json.dumps(lost).encode(), NOTE_BYTES)


def read_note(file: BinaryIO) -> Note:
    """Return the current note; an empty one if it is just being written."""
    text = os.pread(file.fileno(), NOTE_BYTES, 0).partition(b"\n")[0].strip(b"\0")
    try:
        return Note(*json.loads(text)) if text else Note()
    except ValueError:
        return Note()
