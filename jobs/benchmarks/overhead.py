"""Benchmark of the complete default study on Ray: 13 C x 11 gamma, every k from 3 to n, 20 splits.

Runs on two workers of a local Ray, or on the cluster of RAY_ADDRESS. For each set of the IDA archive: seconds
of the run; evaluations planned, computed and dropped; the share of the workers' time (workers x seconds of
the run) spent in kernels and fits (solver), and in all of their work (busy: including gathering and scoring),
by the workers' own clocks; and the peak memory of a worker and of the driver, so far. The first run includes
starting the workers.

With ``--against`` a commit, the same studies are run by this code and by that commit alternately, each in a
separate process (``commits``): the shortest times of each, their ratio (below 1: this code is faster), and
geometric means. In one process (``--serial``), CPU time is compared.

    python jobs/benchmarks/overhead.py --sets banana,image --workers 2
    python jobs/benchmarks/overhead.py --against bdd6c74 --serial --rounds 5
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import os
import resource
from statistics import geometric_mean
from time import perf_counter
from typing import Annotated, Any

import typer

if "RAY_ADDRESS" not in os.environ:  # before ray is imported: a local Ray on loopback alone
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

from ckcv_ray import Execution, Job, Study, read_task
from ckcv_ray.engine.backend import session
from ckcv_ray.runs.run import run_job
from jobs.benchmarks.commits import Compared, checked_out, compare

SETS = [
    *("banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image"),
    *("ringnorm", "splice", "thyroid", "titanic", "twonorm", "waveform"),
]
STANDARDISED = ("splice", "flare_solar")
RATIOS = ("ratio", "ratio_medians")
MIB = 1 << 20


def source(name: str) -> str:
    """Return the source of a set of the archive (realization 1), or a source unchanged."""
    return name if ":" in name else f"ida:{name}:1"


def scale(name: str) -> str:
    """Return how the inputs of a set are scaled."""
    return "standard" if name in STANDARDISED else "none"


def bench(name: str, workers: int, splits: int) -> dict[str, Any]:
    """Time one study, in memory, on the Ray this process is connected to."""
    task, _ = read_task(source(name))
    study = Study.paper(scale=scale(name), n_splits=splits)
    start = perf_counter()
    result = run_job(Job(study, task), Execution("ray", workers))
    seconds = perf_counter() - start
    execution = result.execution
    return {
        "rows": task.n,
        "seconds": seconds,
        **execution["evaluations"],
        "fits": execution["fits"],
        "solver_share": execution["solver_seconds"] / (workers * seconds),
        "busy_share": execution["worker_seconds"] / (workers * seconds),
        "worker_mib": execution["worker_bytes"] / MIB,
        "driver_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "candidate": [*result.setting.values(), result.k],
    }


def line(name: str, row: dict[str, Any]) -> str:
    """Format the figures of one set."""
    return (
        f"{name:<14}{row['rows']:5d} rows {row['seconds']:7.1f} s  planned {row['planned']:>9,}  "
        f"computed {row['computed'] / row['planned']:6.1%}  solver {row['solver_share']:5.1%}  "
        f"busy {row['busy_share']:5.1%}  "
        f"worker {row['worker_mib']:4.0f} MiB  driver {row['driver_mib']:4.0f} MiB"
    )


def show(names: list[str], workers: int, splits: int, as_json: bool) -> None:
    """Run each study, and print its line."""
    results: dict[str, dict[str, Any]] = {}
    with session(Execution("ray", workers)):  # one Ray, which the runs share
        for name in names:
            results[name] = bench(name, workers, splits)
            if not as_json:
                print(line(name, results[name]), flush=True)
    if as_json:
        print(json.dumps({"sets": results}))


def compare_with(commit: str, studies: dict[str, list[str]], rounds: int, as_json: bool) -> bool:
    """Compare the times of each study with another commit's; return whether all answers are the same."""
    results: dict[str, Compared] = {}
    with checked_out(commit) as tree:
        for name, arguments in studies.items():
            one = results[name] = compare(tree, arguments, rounds)
            if not as_json:
                times = f"{min(one.here):9.3f} s  {commit[:7]} {min(one.there):9.3f} s"
                ratios = f"ratio {one.ratio:.3f}  (medians {one.ratio_medians:.3f})"
                print(f"{name:<14}{times}  {ratios}  same {one.same}", flush=True)
    means = [geometric_mean(getattr(one, of) for one in results.values()) for of in RATIOS]
    if as_json:
        listed = {name: one._asdict() | {"ratio": one.ratio} for name, one in results.items()}
        print(json.dumps({"sets": listed, "geomean_ratio": means[0], "geomean_ratio_medians": means[1]}))
    else:
        print(f"geometric mean {means[0]:.3f}  (medians {means[1]:.3f})")
    return all(one.same for one in results.values())


def main(
    sets: Annotated[str, typer.Option(help="Sets of the archive or sources: a,b,twonorm:2000.")] = ",".join(
        SETS
    ),
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    splits: Annotated[int, typer.Option(min=1, help="Monte Carlo splits; more make a longer study.")] = 20,
    against: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Compare with another commit, alternately.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each study by each commit.")] = 3,
    serial: Annotated[bool, typer.Option("--serial", help="Compare in one process, without Ray.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each set.

    Against another commit, also print geometric means; exit with 1 if an answer differs.
    """
    names = sets.split(",")
    if against is None:
        if serial:
            raise typer.BadParameter("--serial requires --against")
        show(names, workers, splits, as_json)
        return
    how = ["serial"] if serial else ["ray", str(workers)]
    studies = {name: ["run", source(name), scale(name), str(splits), *how] for name in names}
    if not compare_with(against, studies, rounds, as_json):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
