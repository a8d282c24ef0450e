"""The same code, and so the same bits, whether it was compiled just now, came from the cache, or was not the
first of its kind in a process.
"""

import os
import subprocess
import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from ckcv_ray.core.svm import compiled, decision, factor, loop, newton, path

FIT = """
import sys
import numpy as np
from ckcv_ray import blocks, worker
from ckcv_ray.data import table_from_arrays
from ckcv_ray.driver import run_table
from ckcv_ray.study import Execution, Study

def models(study):
    result = run_table(study, table, execution=Execution("serial"))
    return [m.dual_coef.tobytes().hex() + float(m.offset).hex() for m in result.ensemble.members]

rng = np.random.default_rng(0)
y = np.where(np.arange(150) % 2, 1, -1)
table = table_from_arrays(rng.normal(size=(150, 3)) + y[:, None] / 2, y)
study = Study(C=(10.0, 100.0), gamma=(10.0, 30.0), k=(10,), n_splits=3)  # many free variables
found = {}
for which in sys.argv[1:]:
    blocks.DENSE_BYTES = 0 if which == "points" else 1 << 30
    found[which] = models(study)
print(found["whole"], found["points"])
"""
ORDER = """
from ckcv_ray.core.svm.compiled import signatures
for function, types in signatures():
    assert not function.signatures, f"{function.__name__} is called by one that comes before it"
    function.compile(types)
"""


def python(code: str, cache: Path, *words: str) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compiled_cached_and_in_any_company_the_bits_are_the_same(tmp_path: Path) -> None:
    anew = python(FIT, tmp_path, "whole", "points")
    assert list(tmp_path.rglob("*.nbi"))
    assert python(FIT, tmp_path, "whole", "points") == anew
    assert python(FIT, tmp_path, "points", "whole") == anew
    python(ORDER, tmp_path)


def test_every_function_that_calls_or_is_called_is_loaded() -> None:
    listed = {function for function, _ in compiled.signatures()}
    there = {
        value
        for module in (decision, factor, loop, newton, path)
        for value in vars(module).values()
        if isinstance(value, Dispatcher) and value.py_func.__module__.startswith("ckcv_ray.core.svm")
    }
    assert there == listed
