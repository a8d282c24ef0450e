"""Timing of one default study with the package that PYTHONPATH points to, this version or an older one.

A process for ``commits``: it knows the present interface of the package, and that of the time when a Study
was flat and ``ckcv_ray.driver`` ran it. A small study runs first, which loads the solver and starts Ray's
workers. Prints a JSON object.

    python -P jobs/benchmarks/one_study.py ida:banana:1 none 20 serial
"""

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any, NamedTuple

SMALL = "twonorm:60:0", "none", 2


class Package(NamedTuple):
    """Interface to one version of the package: prepare a study for running, and open a session."""

    ready: Callable[[str, str, int], Callable[[], Any]]
    session: Callable[[], AbstractContextManager[Any]]


def current_package(backend: str, workers: int | None) -> Package:
    """Return the package with studies composed of parts."""
    ckcv, runs = import_module("ckcv_ray"), import_module("ckcv_ray.runs.run")
    execution = ckcv.Execution(backend, workers)

    def ready(source: str, scale: str, splits: int) -> Callable[[], Any]:
        make_study = getattr(ckcv.Study, "paper", ckcv.Study.of)  # before there was one, of was the paper's
        job = ckcv.Job(make_study(scale=scale, n_splits=splits), ckcv.read_task(source)[0])
        return lambda: runs.run_job(job, execution)

    return Package(ready, lambda: import_module("ckcv_ray.engine.backend").session(execution))


def flat_package(backend: str, workers: int | None) -> Package:
    """Return the package with a flat Study and a flat folder."""
    names = "data", "driver", "study", "backend"
    data, driver, study, engine = (import_module(f"ckcv_ray.{name}") for name in names)
    execution = study.Execution(backend, workers)

    def ready(source: str, scale: str, splits: int) -> Callable[[], Any]:
        table = data.learning_table(data.read(source).learn)
        settings = study.Study(scaling=scale, n_splits=splits)
        return lambda: driver.run_table(settings, table, execution=execution)

    return Package(ready, lambda: engine.session(execution))


def setting(result: Any) -> list[float]:
    """Return C and gamma of a result."""
    return list(result.setting.values()) if hasattr(result, "setting") else [result.C, result.gamma]


def main(source: str, scale: str, splits: str, backend: str, workers: str = "") -> None:
    """Time the study: CPU time of a serial run, or wall-clock time of a complete run on Ray."""
    flat = find_spec("ckcv_ray.driver") is not None
    package = (flat_package if flat else current_package)(backend, int(workers) if workers else None)
    clock = process_time if backend == "serial" else perf_counter
    study = package.ready(source, scale, int(splits))
    with package.session():
        package.ready(*SMALL)()
        start = clock()
        result = study()
        seconds = clock() - start
    answer = [*setting(result), result.k, result.l_ms, result.l_ee]
    print(json.dumps({"seconds": seconds, "answer": answer, "package": import_module("ckcv_ray").__file__}))


if __name__ == "__main__":
    main(*sys.argv[1:])
