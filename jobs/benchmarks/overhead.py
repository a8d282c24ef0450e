"""Benchmark of the complete default study on Ray: 13 C x 11 gamma, every k from 3 to n, 20 splits.

Runs on two workers of a local Ray, or on the cluster of RAY_ADDRESS. For each set of the IDA archive: seconds
of the run; evaluations planned, computed and dropped; the share of the workers' time (workers x seconds of
the run) spent in kernels and fits (solver), and in all of their work (busy: including gathering and scoring),
by the workers' own clocks; and the peak memory of a worker and of the driver, so far. The first run includes
starting the workers.

    python -m jobs.benchmarks.overhead --sets banana,image --workers 2
"""

import resource
from time import perf_counter
from typing import Annotated

import typer

from ckcv_ray import Execution, Job, Study, read_task
from ckcv_ray.engine.backend import session
from ckcv_ray.runs.run import run_job
from jobs.frame import SETS, AsJson, Row, Sets, choose_scale, name_source, show

MIB = 1 << 20
LINE = (
    "{name:<14}{rows:5d} rows {seconds:7.1f} s  planned {planned:>9,}  computed {computed_share:6.1%}  "
    "solver {solver_share:5.1%}  busy {busy_share:5.1%}  worker {worker_mib:4.0f} MiB  "
    "driver {driver_mib:4.0f} MiB"
)


def bench(name: str, workers: int, splits: int) -> Row:
    """Time one study, in memory, on the Ray this process is connected to."""
    task, _ = read_task(name_source(name))
    study = Study.paper(scale=choose_scale(name), n_splits=splits)
    start = perf_counter()
    result = run_job(Job(study, task), Execution("ray", workers))
    seconds = perf_counter() - start
    execution = result.execution
    return {
        "rows": task.n,
        "seconds": seconds,
        **execution["evaluations"],
        "computed_share": execution["evaluations"]["computed"] / execution["evaluations"]["planned"],
        "fits": execution["fits"],
        "solver_share": execution["solver_seconds"] / (workers * seconds),
        "busy_share": execution["worker_seconds"] / (workers * seconds),
        "worker_mib": execution["worker_bytes"] / MIB,
        "driver_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "candidate": [*result.setting.values(), result.k],
    }


def main(
    sets: Sets = SETS,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    splits: Annotated[int, typer.Option(min=1, help="Monte Carlo splits; more make a longer study.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Print one line for each set."""
    with session(Execution("ray", workers)):  # one Ray, which the runs share
        show(((name, bench(name, workers, splits)) for name in sets.split(",")), LINE, [], as_json)


if __name__ == "__main__":
    typer.run(main)
