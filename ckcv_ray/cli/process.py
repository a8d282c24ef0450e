"""Processes and signals: Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 during a computation; a command in a process of
its own; foreign code, and what supervises it.

Compiled code of an estimator may crash its process, end it or never return. The process that supervises reads
which fit that was (``learners.foreign``), and starts the command again, which resumes. A fit that has ended
the process twice is recorded as failed, and everything else is computed.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from importlib.metadata import entry_points
from math import inf
from subprocess import Popen, TimeoutExpired
from tempfile import TemporaryFile
from time import monotonic
from types import FrameType
from typing import Any, BinaryIO, NamedTuple

import typer

from ckcv_ray.cli.output import PACKAGE, SupervisedError, find_descriptor, keep_results_apart, results, say
from ckcv_ray.errors import RunError, plain, pluralize
from ckcv_ray.learners.base import LEARNER_GROUP, Learner
from ckcv_ray.learners.foreign import (
    VARIABLE,
    EndedError,
    Note,
    accept_supervision,
    describe_end,
    find_watch,
    note_done,
    read_note,
    write_lost,
)
from ckcv_ray.storage.objects import open_files

STOP_SIGNAL_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")  # schedulers send the last before they kill
STOPS = tuple(getattr(signal, name) for name in STOP_SIGNAL_NAMES if hasattr(signal, name))
MAY_BE_IGNORED = {"SIGHUP", "SIGUSR1"}  # as by nohup
STOPPING = b"stopping: saving completed work (repeat to stop at once)\n"
REPEAT_SECONDS = 0.3  # a signal to a group of processes also comes from the one that forwards it


class Signals:
    """Handlers of the signals in ``STOPS``: the first one requests a stop, the second interrupts at once.

    Those that the process was started to ignore, as by nohup, are ignored. An exception raised from a handler
    can surface anywhere, even inside a library that swallows it. So the first signal only sets a flag, which
    the driver reads between batches.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._received_at = 0.0

    def __enter__(self) -> "Signals":
        self.previous = {number: signal.signal(number, self.note) for number in list_stop_signals()}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; interrupt if it is not the first."""
        if self.received is not None:
            if monotonic() - self._received_at > REPEAT_SECONDS:
                raise KeyboardInterrupt
            return
        self.received, self._received_at = number, monotonic()
        with suppress(OSError):
            os.write(2, STOPPING)

    def stop(self) -> bool:
        """Return whether a signal was received, or the process that supervises this one has ended."""
        watch = find_watch()
        return self.received is not None or (watch is not None and watch.orphaned)


def list_stop_signals() -> list[signal.Signals]:
    """Return the signals that ask a command to stop, without those that it was started to ignore."""
    ignored = [number for number in STOPS if signal.getsignal(number) == signal.SIG_IGN]
    return [number for number in STOPS if number not in ignored or number.name not in MAY_BE_IGNORED]


@contextmanager
def say_what_is_saved(out: str) -> Iterator[Signals]:
    """Say what is saved in a folder when a computation is interrupted, and exit as the shell expects."""
    signals = Signals()
    try:
        yield signals
    except KeyboardInterrupt:
        saved = f"completed work is saved in {out}; run the same command again to resume"
        say(f"interrupted: {saved if open_files(out).exists() else 'no work was saved'}")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None


PARENT = "CKCV_PARENT"  # number of the process that started this one, and that it does not outlive
PR_SET_PDEATHSIG = 1  # of Linux


def start(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> Popen[bytes]:
    """Start ``ckcv ARGUMENTS`` as a process of its own, with our standard output.

    Args:
        arguments: of the command line.
        environment: additional variables.
        options: of ``Popen``.
    """
    path = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    given = {**os.environ, "PYTHONPATH": path, PARENT: str(os.getpid()), **(environment or {})}
    command = [sys.executable, "-m", "ckcv_ray", *arguments]
    return Popen(command, env=given, stdout=find_descriptor(results()), **options)


def end_with_parent() -> None:
    """Let the end of the process that started this one end it, even inside compiled code (on Linux)."""
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if str(os.getppid()) != parent:  # it had ended before
        os._exit(1)


@contextmanager
def forward_signals(child: Popen[bytes]) -> Iterator[list[int]]:
    """Forward the signals that ask to stop to a child process, and list them."""
    signals: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in list_stop_signals()}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


LOOK_SECONDS = 0.1
GRACE_SECONDS = 2.0  # that a process has to end by itself after a signal
LONG_SECONDS = 300.0  # of a fit, after which a message says how to limit it
MAX_LOST_PROCESSES = 20  # fits that may end the process before the command is given up
LIMIT = "if it never does, give a limit such as --fit-timeout 600"
UNFINISHED = 1


class End(NamedTuple):
    """How a process ended."""

    code: int  # exit code; of a signal its negative number
    note: Note  # what it did last
    signals: tuple[int, ...]  # those that it was sent by the user
    late: bool  # whether it was killed since a fit took too long


def require_supervision(learner: Learner, fit_timeout: float | None = None) -> None:
    """Raise SupervisedError if fits may end the process or last too long, and no other process supervises it.

    Fits of this package and of scikit-learn are taken to end well, unless they are to have a limit of time. A
    learner that this process alone has registered is left where it is known.
    """
    singles = learner.by_label.values()
    if find_watch() is not None or not all(map(_is_known_elsewhere, singles)):
        return
    if fit_timeout is not None or any(single.foreign or not _is_own(single) for single in singles):
        raise SupervisedError(inf if fit_timeout is None else fit_timeout)


def supervise(arguments: Sequence[str], fit_timeout: float) -> int:
    """Run ``ckcv ARGUMENTS``, again whenever a fit has ended it; return its exit code.

    Args:
        arguments: of the command line.
        fit_timeout: seconds that a fit may take.
    """
    lost: dict[str, list[str]] = {}
    given_up = 0
    with TemporaryFile() as file:
        while True:
            write_lost(file, lost)
            child = start(arguments, {VARIABLE: f"{file.fileno()},{os.getpid()}"}, pass_fds=[file.fileno()])
            with forward_signals(child) as signals:
                end = _wait(child, file, fit_timeout, signals)
            if end.signals or not end.note.key:
                return _conclude(end)
            reasons = lost.setdefault(end.note.key, [])
            reasons.append(_reason(end, fit_timeout))
            over = len(reasons) >= end.note.attempts
            again = "it is not begun again" if over else "it is tried once more"
            say(plain(f"the process of the fit {end.note.text} ended: {reasons[-1]}; {again}"))
            given_up += over
            if given_up >= MAX_LOST_PROCESSES:
                count = pluralize(given_up, "fit")
                say(f"ckcv: {count} ended the process: correct the estimator, or narrow its search")
                return UNFINISHED


def _is_known_elsewhere(learner: Learner) -> bool:
    """Return whether another process knows the class of a learner: it is of an installed package."""
    name = f"{type(learner).__module__}:{type(learner).__qualname__}"
    return _is_own(learner) or any(entry.value == name for entry in entry_points(group=LEARNER_GROUP))


def _is_own(learner: Learner) -> bool:
    return type(learner).__module__.partition(".")[0] == "ckcv_ray"


def _wait(child: Popen[bytes], file: BinaryIO, fit_timeout: float, signals: list[int]) -> End:
    """Wait for a process; kill it if a fit takes too long, or if it does not heed a second signal."""
    note, began, said = Note(), monotonic(), set[str]()
    asked, asked_again, late = inf, inf, False

    def say_once(what: str) -> None:
        if what not in said:
            said.add(what)
            say(plain(f"the fit {note.text} {what}"))

    while True:
        try:
            return End(child.wait(LOOK_SECONDS), read_note(file), tuple(signals), late)
        except TimeoutExpired:
            now, current = monotonic(), read_note(file)
        if current.number != note.number:
            note, began = current, now
        asked = min(asked, now) if signals else inf
        asked_again = min(asked_again, now) if len(signals) > 1 else inf
        late = bool(note.key) and now - began > fit_timeout * note.fits
        if late or now - asked_again > GRACE_SECONDS:
            child.kill()
        elif note.key and now - began > LONG_SECONDS:
            say_once(f"has not ended in {LONG_SECONDS / 60:.0f} minutes: {LIMIT}")
        elif note.key and now - max(asked, began) > GRACE_SECONDS and signals:
            say_once("has not ended: ask again to stop at once")


def _conclude(end: End) -> int:
    """Return the exit code of a process that is not started again, and say what it could not say itself."""
    if end.signals and end.code < 0:
        say("interrupted: completed work is saved; run the same command again to resume")
        if end.note.key:
            say(plain(f"the fit {end.note.text} did not end: {LIMIT}"))
        return 128 + end.signals[0]
    if end.code < 0 or (end.code == 0 and not end.note.done):
        reason = _reason(end, inf)
        say(f"ckcv: the process ended outside of a fit: {reason}; run the same command again to resume")
        return UNFINISHED
    return end.code


def _reason(end: End, fit_timeout: float) -> str:
    if end.late:
        return f"it took more than {fit_timeout * end.note.fits:g} seconds (--fit-timeout)"
    if end.code >= 0:
        return f"exit code {end.code}"
    name = signal.Signals(-end.code).name
    return f"{signal.strsignal(-end.code) or name} ({name})"


def contain_command(command: Callable[..., None]) -> Callable[..., None]:
    """Keep what estimators print out of the results of a command, and let it end when it is done, not before.

    Raises:
        RunError: code of an estimator or of a package raised SystemExit, or the like.
    """

    @wraps(command)
    def call(**given: Any) -> None:
        accept_supervision()
        with keep_results_apart():
            try:
                command(**given)
            except EndedError as error:
                raise RunError(f"code of an estimator: {error}") from error
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise RunError(f"code of an estimator or a package: {describe_end(error)}") from error
            if (stream := results()) is not None:
                stream.flush()
            note_done()

    return call
