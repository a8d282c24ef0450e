"""Limits of the process: of one thread for BLAS and OpenMP, since with more sums differ in their last bits;
and of time. Interruptions by the user, told from exceptions that the code of an estimator raises itself.

Ctrl-C becomes a KeyboardInterrupt in whatever code runs just then, and a handler of the user's own may raise
SystemExit there. The code of an estimator may raise the same classes. Only what a signal handler raised is an
interruption, even if the estimator catches it.
"""

import faulthandler
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from types import FrameType
from typing import Any

from threadpoolctl import ThreadpoolController

_held = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread inside the context; nested contexts cost nothing."""
    if getattr(_held, "inside", False):
        yield
        return
    with _controller().limit(limits=1):
        _held.inside = True
        try:
            yield
        finally:
            _held.inside = False


@contextmanager
def end_process_after(seconds: float) -> Iterator[None]:
    """End the process, with its stack on stderr, if the context lasts longer.

    Compiled code that never returns cannot be interrupted in any other way.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - compiled code calls its BLAS

    return ThreadpoolController()


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
            signal.signal(number, partial(_call, handler, noted))
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _active.clear()


def _call(handler: Any, noted: Interrupts, number: int, frame: FrameType | None) -> Any:
    try:
        return handler(number, frame)
    except BaseException as error:
        noted.raised = error
        raise
