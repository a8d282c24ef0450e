"""Arrays as vector code likes them: rows that begin on cache lines and are filled up to whole vectors."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

CACHE_LINE = 64
LANES = 64


def aligned(shape: tuple[int, ...], dtype: Any = np.float64, fill: float = 0.0) -> NDArray[Any]:
    """An array that begins on a cache line: a vector load across two lines takes twice as long."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = fill
    return array


def whole(n: int, lanes: int) -> int:
    """n rounded up to a multiple of lanes."""
    return -(-n // lanes) * lanes
