"""Arrays as vector code likes them: rows that begin on cache lines and are filled up to whole vectors.

Fresh memory costs a page fault for every 4096 bytes, more than filling it with a kernel does; so what is
needed again and again is scratch, kept for each thread.
"""

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

CACHE_LINE = 64
LANES = 64

_kept = threading.local()


def aligned(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """An array that begins on a cache line, of zeros: a vector load across two lines takes twice as long."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    array: NDArray[Any] = memory[start : start + size].view(dtype).reshape(shape)
    return array


def scratch(name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """The calling thread's array of that name, with what was left in it; the one had before is lost."""
    kept, size = vars(_kept), math.prod(shape)
    memory: NDArray[Any] | None = kept.get(name)
    if memory is None or memory.size < size:
        memory = kept[name] = aligned((size,), dtype)
    return memory[:size].reshape(shape)


def round_up(n: int, lanes: int) -> int:
    """The least multiple of lanes that is not below n."""
    return -(-n // lanes) * lanes
