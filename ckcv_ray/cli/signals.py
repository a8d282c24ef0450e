"""Handling of Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 during a computation."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType

import typer

from ckcv_ray.cli.output import say
from ckcv_ray.learners.watch import find_watch
from ckcv_ray.storage.places import open_files

STOP_SIGNAL_NAMES = (
    "SIGINT",
    "SIGTERM",
    "SIGHUP",
    "SIGUSR1",
)  # the last is what schedulers send before they kill
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
