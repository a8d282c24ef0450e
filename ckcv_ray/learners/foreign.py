"""Containment of the code of others: an estimator of a user's, or a learner of an installed package.

It may raise anything, fork, and change what belongs to the whole process. Around its calls all of that is
contained: what it raises becomes an exception like any other, a forked child ends where it would go on with
our code, and the global state is restored.

Notes for a process that supervises this one: which fit runs just now, and which have ended the process.

Compiled code may crash the process, end it, or never return. Whoever started it then reads in a file that
both have open which fit that was, and starts it again. A fit that has ended the process too many times is not
begun again: it has failed.
"""

import json
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ckcv_ray.core.process import note_interrupts
from ckcv_ray.errors import pluralize

CHILD_ENDED = 1  # exit code of a forked child
MAX_ANSWER_BYTES = 4096  # that a pipe takes at once
STREAMS = ("stdin", "stdout", "stderr")
VALID_SIGNALS = sorted(signal.valid_signals())


class EndedError(RuntimeError):
    """Foreign code tried to end the program."""


def end_forked_child(process: int) -> None:
    """End this process at once, without any clean-up, unless it has this number.

    A fork inside foreign code gives two processes that return to ours: the child must neither write to the
    run folder nor release its lock.
    """
    if os.getpid() != process:
        os._exit(CHILD_ENDED)


def describe_end(error: BaseException) -> str:
    """Return a sentence on an exception that would end the program, such as SystemExit."""
    return f"it raised {error!r}, which would end the program"


@contextmanager
def contain() -> Iterator[None]:
    """Turn what foreign code raises to end the program, such as SystemExit, into an exception.

    What a signal handler raised is raised, even if foreign code caught it. A forked child ends here.

    Raises:
        EndedError: foreign code raised what would end the program.
    """
    process = os.getpid()
    with note_interrupts() as interrupts:
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            interrupts.check()
            raise EndedError(describe_end(error)) from error
        finally:
            end_forked_child(process)
            interrupts.check()


def ask_child(function: Callable[[], str], seconds: float) -> str | None:
    """Return the text that a function returns in a forked child; None if that crashes or takes too long.

    So foreign code can be tried before anything depends on it.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: what blocks the child ends in time
        child = os.fork()
    if not child:
        try:
            os.write(writer, f"={function()}".encode()[:MAX_ANSWER_BYTES])
        finally:
            os._exit(0)
    os.close(writer)
    try:
        answer = os.read(reader, MAX_ANSWER_BYTES) if select([reader], [], [], seconds)[0] else b""
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return answer.decode(errors="replace")[1:] if answer else None


@contextmanager
def preserve_state(seed: int) -> Iterator[None]:
    """Run foreign code with global random numbers that follow from a seed, and restore the global state.

    That is numpy's error handling, the random state of numpy and of Python, filters of warnings, signal
    handlers, the environment, the working directory and the standard streams.
    """
    numbers, own_numbers = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    handlers = {number: signal.getsignal(number) for number in VALID_SIGNALS}
    environment, folder = dict(os.environ), _working_directory()
    streams = {name: getattr(sys, name) for name in STREAMS}
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        with np.errstate(), warnings.catch_warnings():
            yield
    finally:
        np.random.set_state(numbers)  # noqa: NPY002
        random.setstate(own_numbers)
        if threading.current_thread() is threading.main_thread():  # Python installs handlers in no other
            for number, handler in handlers.items():
                # None stands for one that Python did not install
                if handler is not None and signal.getsignal(number) is not handler:
                    if number == signal.SIGALRM:  # set with its handler, it would end the process without
                        signal.setitimer(signal.ITIMER_REAL, 0.0)
                    signal.signal(number, handler)
        if os.environ != environment:
            for name in [name for name in os.environ if name not in environment]:
                del os.environ[name]
            os.environ.update(environment)
        if folder is not None and _working_directory() != folder:
            os.chdir(folder)
        for name, stream in streams.items():
            setattr(sys, name, stream)


def _working_directory() -> str | None:
    with suppress(OSError):
        return os.getcwd()
    return None


VARIABLE = "CKCV_SUPERVISED"
MAX_LOST = 2  # times that a fit may end the process before it has failed
NOTE_BYTES = 4096
MAX_NOTE = 1000


class LostError(RuntimeError):
    """A fit that ended the process as often as it may."""


class Note(NamedTuple):
    """What a supervised process does."""

    number: int = 0  # counts the notes
    key: str = ""  # of the fit, the same when it is repeated; empty outside of fits
    text: str = ""  # the fit in words
    fits: int = 1  # number of fits that the time limit is multiplied by
    attempts: int = MAX_LOST  # times that the fit may end the process
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
        text = json.dumps(note._replace(number=self._number, text=note.text[:MAX_NOTE]))
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
def watch_fit(key: Any, text: str, fits: int = 1, attempts: int = MAX_LOST) -> Iterator[None]:
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
