"""The whole default study on two workers: 13 C x 11 gamma, every k from 3 to n, 20 splits, on Ray: a local
one, or the cluster of RAY_ADDRESS.

For each set of the IDA archive: seconds of the run; cells planned, computed and dropped; the share of the
workers' time (workers x seconds of the run) spent in kernels and fits (solver), and in all of their work
(busy: with gathering and scoring), by the workers' own clocks; and the peak memory of a worker and of the
driver, so far. The first run pays for starting the workers.

    python jobs/benchmarks/overhead.py --sets banana,image --workers 2
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import os
import resource
from time import perf_counter
from typing import Annotated, Any

import typer

if "RAY_ADDRESS" not in os.environ:  # before ray is imported: a local Ray on loopback alone
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

from ckcv_ray.data import task as data
from ckcv_ray.engine.backend import session
from ckcv_ray.engine.ray_backend import RayBackend
from ckcv_ray.runs.run import run_table
from ckcv_ray.study import Execution, Study

SETS = [
    *("banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image"),
    *("ringnorm", "splice", "thyroid", "titanic", "twonorm", "waveform"),
]
STANDARDISED = ("splice", "flare_solar")
MIB = 1 << 20


def bench(name: str, workers: int, splits: int) -> dict[str, Any]:
    """One study, in memory."""
    table = data.learning_table(data.read(name if ":" in name else f"ida:{name}:1").learn)
    study = Study(scaling="standard" if name in STANDARDISED else "none", n_splits=splits)
    start = perf_counter()
    result = run_table(study, table, backend=RayBackend(workers))
    seconds = perf_counter() - start
    execution = result.execution
    return {
        "rows": table.n,
        "seconds": seconds,
        **execution["cells"],
        "fits": execution["fits"],
        "solver_share": execution["solver_seconds"] / (workers * seconds),
        "busy_share": execution["worker_seconds"] / (workers * seconds),
        "worker_mib": execution["worker_bytes"] / MIB,
        "driver_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "triple": [result.C, result.gamma, result.k],
    }


def main(
    sets: Annotated[str, typer.Option(help="Sets of the archive or sources: a,b,twonorm:2000.")] = ",".join(
        SETS
    ),
    workers: Annotated[int, typer.Option(min=1, help="Processes at once.")] = 2,
    splits: Annotated[int, typer.Option(min=1, help="Monte Carlo splits; more make a longer study.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each set."""
    found: dict[str, dict[str, Any]] = {}
    with session(Execution("ray", workers)):  # one Ray, which the runs share
        for name in sets.split(","):
            row = found[name] = bench(name, workers, splits)
            if not as_json:
                print(
                    f"{name:<14}{row['rows']:5d} rows {row['seconds']:7.1f} s  planned {row['planned']:>9,}  "
                    f"computed {row['computed'] / row['planned']:6.1%}  solver {row['solver_share']:5.1%}  "
                    f"busy {row['busy_share']:5.1%}  "
                    f"worker {row['worker_mib']:4.0f} MiB  driver {row['driver_mib']:4.0f} MiB"
                )
                sys.stdout.flush()
    if as_json:
        print(json.dumps({"sets": found}))


if __name__ == "__main__":
    typer.run(main)
