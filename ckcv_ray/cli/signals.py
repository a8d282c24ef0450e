"""Ctrl-C and SIGTERM while a command computes."""

import os
import signal
from contextlib import suppress
from types import FrameType


class Signals:
    """Ctrl-C and SIGTERM while a run is on: the first is a request to stop, the second is obeyed at once.

    An exception raised from a handler can surface anywhere, even inside a library that swallows it;
    so the first signal only leaves a note, which the driver reads between batches.
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
            os.write(2, b"stopping: what is done is being saved (again to stop at once)\n")

    def stop(self) -> bool:
        """Whether a signal came."""
        return self.received is not None
