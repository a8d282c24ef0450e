"""One thread for BLAS: with more, sums differ in their last bits."""

import os
import subprocess
import sys

SCRIPT = """
from ckcv_ray.core.process import one_thread
with one_thread():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    assert {one["num_threads"] for one in threadpool_info()} == {1}
"""


def test_libraries_that_were_not_loaded_yet_are_limited_too() -> None:
    """The solver calls SciPy's LAPACK, which nothing has loaded when the command line starts."""
    several = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", SCRIPT], env=several, check=True)
