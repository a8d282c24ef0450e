"""Signals during a computation: Ctrl-C, SIGTERM, SIGHUP and SIGUSR1. Estimators that would end a command."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from time import monotonic
from types import FrameType
from typing import Any

import typer

from ckcv_ray.cli.output import keep_results_apart, results, say
from ckcv_ray.errors import RunError
from ckcv_ray.storage.files import open_files

MAY_BE_IGNORED = (signal.SIGHUP, signal.SIGUSR1)  # the first as by nohup
STOPS = (signal.SIGINT, signal.SIGTERM, *MAY_BE_IGNORED)  # schedulers send the last before they kill
STOPPING = b"stopping: saving completed work (repeat to stop at once)\n"
GRACE_SECONDS = 10.0  # for a fit to end by itself after a first signal
REPEAT_SECONDS = 0.3  # a signal to a group of processes also comes from the one that forwards it


class Signals:
    """Handlers of the signals in ``STOPS``: the first one requests a stop, the second interrupts at once.

    So does a timer if nobody heeds the first, as while a worker computes a fit that never ends.

    Those that the process was started to ignore, as by nohup, are ignored. An exception raised from a handler
    can surface anywhere, even inside a library that swallows it. So the first signal only sets a flag, which
    the driver reads between batches.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._received_at = 0.0

    def __enter__(self) -> "Signals":
        self.previous = {number: signal.signal(number, self.note) for number in list_stop_signals()}
        self.previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self.interrupt)
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

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Interrupt what goes on."""
        raise KeyboardInterrupt

    def stop(self) -> bool:
        """Return whether a signal was received; it is heeded then."""
        if self.received is not None:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        return self.received is not None


def list_stop_signals() -> list[signal.Signals]:
    """Return the signals that ask a command to stop, without those that it was started to ignore."""
    ignored = [number for number in MAY_BE_IGNORED if signal.getsignal(number) == signal.SIG_IGN]
    return [number for number in STOPS if number not in ignored]


@contextmanager
def say_what_is_saved(out: str | None) -> Iterator[Signals]:
    """Say what is saved in a folder, if any, when a computation is interrupted; exit as the shell expects."""
    signals = Signals()
    try:
        yield signals
    except KeyboardInterrupt:
        saved = f"completed work is saved in {out}; run the same command again to resume"
        say(f"interrupted: {saved if out and open_files(out).exists() else 'no work was saved'}")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None


def contain_command(command: Callable[..., None]) -> Callable[..., None]:
    """Keep what estimators print out of the results of a command, and let it end when it is done, not before.

    Raises:
        RunError: code of an estimator or of a package raised SystemExit, or the like.
    """

    @wraps(command)
    def call(**given: Any) -> None:
        with keep_results_apart():
            try:
                command(**given)
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                ends = f"it raised {error!r}, which would end the program"
                raise RunError(f"code of an estimator or a package: {ends}") from error
            if (stream := results()) is not None:
                stream.flush()

    return call
