"""One thread for BLAS: with more, sums differ in their last bits."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
from ckcv_ray.core.process import one_thread
with one_thread():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    libraries = threadpool_info()
assert libraries
assert all(one["num_threads"] == 1 for one in libraries), libraries
"""


@pytest.mark.slow
def test_libraries_that_were_not_loaded_yet_are_limited_too() -> None:
    """The solver calls SciPy's LAPACK, which nothing has loaded when the command line starts."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
