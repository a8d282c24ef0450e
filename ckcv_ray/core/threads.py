"""A limit of one thread for BLAS and OpenMP: with more, sums differ in their last bits."""

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


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
