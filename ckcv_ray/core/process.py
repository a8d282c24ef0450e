"""Limits of the process: one thread for BLAS and OpenMP, since with more threads sums differ in their last
bits; and time. Also whether it is that of a notebook.
"""

import faulthandler
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

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


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, whose front end shows HTML."""
    find_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find_shell is not None and getattr(find_shell(), "kernel", None) is not None
