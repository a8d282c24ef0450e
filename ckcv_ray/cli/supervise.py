"""A process that runs a command with foreign code, and one that supervises it.

Compiled code of an estimator may crash its process, end it or never return. The process that supervises reads
which fit that was (``learners.watch``), and starts the command again, which resumes. A fit that has ended the
process twice is recorded as failed, and everything else is computed.
"""

import os
import signal
from collections.abc import Sequence
from importlib.metadata import entry_points
from math import inf
from subprocess import Popen, TimeoutExpired
from tempfile import TemporaryFile
from time import monotonic
from types import FrameType
from typing import BinaryIO, NamedTuple

from ckcv_ray.cli.exits import SupervisedError
from ckcv_ray.cli.output import say
from ckcv_ray.cli.restart import start
from ckcv_ray.cli.signals import list_stop_signals
from ckcv_ray.errors import plain, pluralize
from ckcv_ray.learners import LEARNER_GROUP, Learner
from ckcv_ray.learners.watch import VARIABLE, Note, find_watch, read_note, write_lost

PACKAGE_NAME = "ckcv_ray"
LOOK_SECONDS = 0.1
GRACE_SECONDS = 2.0  # that a process has to end by itself after a signal
LONG_SECONDS = 300.0  # of a fit, after which a message says how to limit it
MOST_LOST_PROCESSES = 20  # fits that may end the process before the command is given up
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
    if find_watch() is not None or not all(map(_is_known_elsewhere, learner.by_label.values())):
        return
    if fit_timeout is not None or _is_foreign(learner):
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
            end = _run(arguments, file, fit_timeout)
            if end.signals or not end.note.key:
                return _conclude(end)
            reasons = lost.setdefault(end.note.key, [])
            reasons.append(_reason(end, fit_timeout))
            over = len(reasons) >= end.note.attempts
            again = "it is not begun again" if over else "it is tried once more"
            say(plain(f"the process of the fit {end.note.text} ended: {reasons[-1]}; {again}"))
            given_up += over
            if given_up >= MOST_LOST_PROCESSES:
                count = pluralize(given_up, "fit")
                say(f"ckcv: {count} ended the process: correct the estimator, or narrow its search")
                return UNFINISHED


def _is_known_elsewhere(learner: Learner) -> bool:
    """Return whether another process knows the class of a learner: it is of an installed package."""
    kind = type(learner)
    if kind.__module__.partition(".")[0] == PACKAGE_NAME:
        return True
    return any(
        entry_point.value == f"{kind.__module__}:{kind.__qualname__}"
        for entry_point in entry_points(group=LEARNER_GROUP)
    )


def _is_foreign(learner: Learner) -> bool:
    """Return whether fits call code of another package than this one and scikit-learn."""
    return any(
        single.foreign or type(single).__module__.partition(".")[0] != PACKAGE_NAME
        for single in learner.by_label.values()
    )


def _run(arguments: Sequence[str], file: BinaryIO, fit_timeout: float) -> End:
    """Run the command once; signals are forwarded."""
    signals: list[int] = []
    descriptor = file.fileno()
    child = start(arguments, {VARIABLE: f"{descriptor},{os.getpid()}"}, pass_fds=[descriptor])

    def forward(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in list_stop_signals()}
    try:
        return _wait(child, file, fit_timeout, signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
