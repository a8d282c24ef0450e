"""Interruptions by the user, distinguished from exceptions that the code of an estimator raises itself.

Ctrl-C becomes a KeyboardInterrupt in whatever code runs just then, and a handler of the user's own may raise
SystemExit there. The code of an estimator may raise the same classes. Only what a signal handler raised is an
interruption, even if the estimator catches it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

SIGNAL_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM")
SIGNALS = [getattr(signal, name) for name in SIGNAL_NAMES if hasattr(signal, name)]


@dataclass
class Interrupts:
    """What a signal handler raised, if one did."""

    raised: BaseException | None = None

    def check(self) -> None:
        """Raise what a signal handler raised."""
        if self.raised is not None:
            raise self.raised


_active: list[Interrupts] = []


@contextmanager
def note_interrupts() -> Iterator[Interrupts]:
    """Note what signal handlers raise inside the context.

    Handlers run in the main thread: in another one no exception is an interruption.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return
    if _active:
        yield _active[0]
        return
    noted = Interrupts()
    _active.append(noted)
    before = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        for number, handler in before.items():
            signal.signal(number, _note(handler, noted))
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _active.clear()


def _note(handler: Any, noted: Interrupts) -> Any:
    def call(number: int, frame: FrameType | None) -> Any:
        try:
            return handler(number, frame)
        except BaseException as error:
            noted.raised = error
            raise

    return call
