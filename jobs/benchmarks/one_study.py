"""CPU or wall-clock time of one study, or of reading one table, with the package that PYTHONPATH points to.

A process for ``commits``. Of a study a small one runs first, which loads the solver and starts Ray's workers.
Prints a JSON object.

    python -P jobs/benchmarks/one_study.py run ida:banana:1 none 20 serial
    python -P jobs/benchmarks/one_study.py read table.csv
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module  # of the package that PYTHONPATH names, whichever this folder belongs to
from time import perf_counter, process_time
from typing import Any

import ckcv_ray

SMALL = "twonorm:60:0", "none", 2
Timed = tuple[float, list[Any]]  # seconds, and what must be equal for both commits


def prepare(source: str, scale: str, splits: int, execution: Any) -> Callable[[], Any]:
    """Return a call that runs a study."""
    study = ckcv_ray.Study.paper(scale=scale, n_splits=splits)
    job = ckcv_ray.Job(study, ckcv_ray.read_task(source)[0])
    return lambda: import_module("ckcv_ray.runs.run").run_job(job, execution)


def time_study(source: str, scale: str, splits: str, backend: str, workers: str = "") -> Timed:
    """Time a study: CPU time of a serial run, or wall-clock time of a complete run on Ray."""
    execution = ckcv_ray.Execution(backend, int(workers) if workers else None)
    clock = process_time if backend == "serial" else perf_counter
    study = prepare(source, scale, int(splits), execution)
    with import_module("ckcv_ray.engine.backend").session(execution):
        prepare(*SMALL, execution)()
        start = clock()
        result = study()
        seconds = clock() - start
    return seconds, [*result.setting.values(), result.k, result.l_ms, result.l_ee]


def time_reading(file: str) -> Timed:
    """Time reading a table whose target is y, until it is a task."""
    start = process_time()
    task, _ = ckcv_ray.read_task(file, "y")
    return process_time() - start, [*task.X.shape, float(task.X.sum())]


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    seconds, answer = time_study(*words) if what == "run" else time_reading(*words)
    print(json.dumps({"seconds": seconds, "answer": answer, "package": ckcv_ray.__file__}))
