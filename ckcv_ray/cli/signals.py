"""Handling of Ctrl-C and SIGTERM during a computation."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import typer

from ckcv_ray.cli.output import say


class Signals:
    """Handlers for Ctrl-C and SIGTERM: the first signal requests a stop, the second interrupts at once.

    An exception raised from a handler can surface anywhere, even inside a library that swallows it. So the
    first signal only sets a flag, which the driver reads between batches.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def __enter__(self) -> "Signals":
        self.previous = {
            number: signal.signal(number, self.note) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; interrupt if it is not the first."""
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number
        with suppress(OSError):
            os.write(2, b"stopping: saving completed work (repeat to stop at once)\n")

    def stop(self) -> bool:
        """Return whether a signal was received."""
        return self.received is not None


@contextmanager
def saving(out: Path) -> Iterator[Signals]:
    """Say what is saved in a folder when a computation is interrupted, and exit as the shell expects."""
    signals = Signals()
    try:
        yield signals
    except KeyboardInterrupt:
        saved = f"completed work is saved in {out}; run the same command again to resume"
        say(f"interrupted: {saved if out.exists() else 'no work was saved'}")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None
