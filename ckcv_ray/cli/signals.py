"""Handling of Ctrl-C and SIGTERM during a computation."""

import os
import signal
from contextlib import suppress
from types import FrameType


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
