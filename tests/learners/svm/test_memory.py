"""Memory that vector code likes, and scratch that each thread keeps to itself."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ckcv_ray.learners.svm.problem import CACHE_LINE, align, round_up, scratch


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 8)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_arrays_begin_on_a_cache_line_and_are_zero(shape, dtype):
    for _ in range(5):
        array = align(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.ctypes.data % CACHE_LINE == 0
        assert not array.any()


@pytest.mark.parametrize(("n", "lanes", "expected"), [(0, 8, 0), (1, 8, 8), (8, 8, 8), (65, 64, 128)])
def test_whole_vectors(n, lanes, expected):
    assert round_up(n, lanes) == expected


def test_scratch_is_the_same_memory_until_it_must_grow():
    large = scratch("test", (10, 8))
    large[:] = 7.0
    small = scratch("test", (3, 8))
    assert np.shares_memory(large, small)
    assert np.all(small == 7.0)
    assert not np.shares_memory(large, scratch("another test", (3, 8)))
    assert not np.shares_memory(large, scratch("test", (100, 8)))


def test_threads_do_not_share_scratch():
    mine = scratch("test", (4,))
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(scratch, "test", (4,)).result()
    assert not np.shares_memory(mine, theirs)
