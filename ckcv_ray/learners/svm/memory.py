"""Arrays laid out for vector code: rows start on cache lines and are padded to full vectors.

Fresh memory costs a page fault for every 4096 bytes, more than filling it with a kernel does; so memory that
is needed repeatedly is scratch, kept per thread.
"""

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Single = NDArray[np.float32]

CACHE_LINE = 64
DOUBLES = 8  # in a vector of 512 bits
LANES = 64

_kept = threading.local()


def align(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return zeros that start on a cache line: a vector load across two lines takes twice as long."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    array: NDArray[Any] = memory[start : start + size].view(dtype).reshape(shape)
    return array


def scratch(name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return the calling thread's array of that name, uninitialised; it invalidates the previous one."""
    kept, size = vars(_kept), math.prod(shape)
    memory: NDArray[Any] | None = kept.get(name)
    if memory is None or memory.size < size:
        memory = kept[name] = align((size,), dtype)
    return memory[:size].reshape(shape)


def round_up(n: int, lanes: int) -> int:
    """Return the smallest multiple of ``lanes`` that is not below n."""
    return -(-n // lanes) * lanes
