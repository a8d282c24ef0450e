"""Streams of the command line: results to standard output, messages to standard error.

How a command ends: an error becomes a message and an exit code, as do signals and estimators that would end
it.
"""

import ctypes
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from io import UnsupportedOperation
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, TextIO

from rich.console import Console

from ckcv_ray.errors import CKCVError, InputError, RunError, StoreError, printable

PACKAGE = Path(__file__).resolve().parents[1]
STDOUT, STDERR = 1, 2  # file descriptors
console = Console(stderr=True)
_results: list[TextIO] = []  # the stream of results, if it is kept apart
MAY_BE_IGNORED = (signal.SIGHUP, signal.SIGUSR1)  # the first by nohup, for example
STOPS = (signal.SIGINT, signal.SIGTERM, *MAY_BE_IGNORED)  # schedulers send the last before they kill
STOPPING = b"stopping: saving completed work (repeat to stop at once)\n"
GRACE_SECONDS = 10.0  # for a fit to end by itself after a first signal
REPEAT_SECONDS = 0.3  # a signal to a group of processes also comes from the one that forwards it


def results() -> TextIO | None:
    """Return the stream of results: standard output; None if it was closed."""
    return _results[0] if _results else sys.stdout


class Messages:
    """Standard error stream that ignores write failures, so that the computation continues without it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text; after a failure, discard it and all further text."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            silence(self.stream)
        return len(text)

    def flush(self) -> None:
        """Do nothing: every write is flushed."""


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning of this package as a message, any other as Python does; a ``warnings.showwarning``."""
    if Path(filename).is_relative_to(PACKAGE):
        say(f"ckcv: {message}")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def silence(stream: TextIO) -> bool:
    """Return whether a stream cannot be written to; if so, redirect it to the null device."""
    try:
        stream.flush()
        return False
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True


def show(content: Mapping[str, object], text: str, as_json: bool) -> None:
    """Print a result, as JSON or as text."""
    print(json.dumps(content, allow_nan=False) if as_json else printable(text), file=results())


def say(*messages: str) -> None:
    """Print messages to standard error."""
    for message in messages:
        console.print(printable(message), soft_wrap=True, markup=False, highlight=False, emoji=False)


PROVEN_WORSE, NOT_YET_PROVEN = 5, 6  # exit codes: proven not to hold; not proven yet, or not verified here


@contextmanager
def exit_by_code() -> Iterator[None]:
    """End the process with a message and an exit code if what is inside raises an error of this package."""
    try:
        try:
            yield
        finally:
            if (stream := results()) is not None:
                stream.flush()  # report its errors here, not from Python's shutdown
        return
    except CKCVError as error:
        reason = str(error)
        code = 2 if isinstance(error, InputError) else 4 if isinstance(error, StoreError) else 1
    except MemoryError:
        reason, code = "it needs more memory than there is: take fewer rows or columns, or another machine", 1
    except BrokenPipeError:
        if (stream := results()) is not None:
            silence(stream)
        sys.exit(1)
    except OSError as error:
        # On standard output: it still cannot be written to; or no file is named, and the disk is full or
        # failing.
        unnamed = error.filename is None and error.errno in {ENOSPC, EDQUOT, EFBIG, EIO}
        if (stream := results()) is None or not (silence(stream) or unnamed):
            raise
        reason, code = f"cannot write to standard output: {error.strerror or error}", 1
    say(f"ckcv: {reason}")
    sys.exit(code)


class Signals:
    """Handlers for the signals in ``STOPS``: the first one requests a stop, the second interrupts at once.

    A timer does so too if nobody heeds the first, as while a worker computes a fit that never ends.

    Signals that the process was started to ignore, as by nohup, stay ignored. An exception raised from a
    handler can surface anywhere, even inside a library that swallows it. So the first signal only sets a
    flag, which the driver reads between batches.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._received_at = 0.0

    def __enter__(self) -> "Signals":
        self.previous = {number: signal.signal(number, self.note) for number in list_stop_signals()}
        self.previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, signal.default_int_handler)
        return self

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; interrupt if it is not the first."""
        if self.received is not None:
            if monotonic() - self._received_at > REPEAT_SECONDS:
                raise KeyboardInterrupt
            return
        self.received, self._received_at = number, monotonic()
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        with suppress(OSError):
            os.write(2, STOPPING)

    def stop(self) -> bool:
        """Return whether a signal was received; it has then been heeded."""
        if self.received is not None:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        return self.received is not None


def list_stop_signals() -> list[signal.Signals]:
    """Return the signals that ask a command to stop, except those that it was started to ignore."""
    ignored = [number for number in MAY_BE_IGNORED if signal.getsignal(number) == signal.SIG_IGN]
    return [number for number in STOPS if number not in ignored]


@contextmanager
def contain_command() -> Iterator[None]:
    """Keep standard output for the results of a command, and let it end only when it is done.

    Whatever else is written there goes to standard error: what estimators print, from Python, from compiled
    code, or from processes they start. In a process that runs one command this lasts to its end, so that
    nothing printed later follows the results.

    Raises:
        RunError: code of an estimator or of a package raised SystemExit, or the like.
    """
    before, outermost, is_ours = sys.stdout, not _results, False
    if outermost:
        before.flush()
        saved = os.dup(STDOUT)
        with suppress(AttributeError, UnsupportedOperation):  # it may have no file descriptor
            is_ours = before.fileno() == STDOUT
        encoding, errors = before.encoding, before.errors
        copied = os.fdopen(os.dup(STDOUT), "w", encoding=encoding, errors=errors) if is_ours else before
        _results.append(copied)
        os.dup2(STDERR, STDOUT)
        sys.stdout = sys.stderr
    try:
        yield
        _results[0].flush()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        ends = f"it raised {error!r}, which would end the program"
        raise RunError(f"code of an estimator or a package: {ends}") from error
    finally:
        if outermost and not (is_ours and before is sys.__stdout__):
            _results[0].flush()
            _results.clear()
            sys.stdout = before
            ctypes.CDLL(None).fflush(None)  # what compiled code has printed
            os.dup2(saved, STDOUT)
            os.close(saved)
