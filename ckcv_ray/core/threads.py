"""One thread for BLAS and OpenMP: with more, sums differ in their last bits."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread while the context lasts."""
    with _controller().limit(limits=1):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
