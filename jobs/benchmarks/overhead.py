"""The whole default study on two workers: 13 C x 11 gamma, every k from 3 to n, 20 splits, on Ray: a local
one, or the cluster of RAY_ADDRESS.

For each set of the IDA archive: seconds of the run; evaluations planned, computed and dropped; the share of
the workers' time (workers x seconds of the run) spent in kernels and fits (solver), and in all of their work
(busy: with gathering and scoring), by the workers' own clocks; and the peak memory of a worker and of the
driver, so far. The first run pays for starting the workers.

With ``--against`` a commit, the same studies are run by this state of the code and by that one in turns,
each in a process of its own (``commits``): the shortest times of each, their ratio (below 1 is faster than it
was), and geometric means. In one process (``--serial``) it is the seconds computed that are compared.

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
MIB = 1 << 20


def source(name: str) -> str:
    """Realization 1 of a set of the archive, or a source as it is."""
    return name if ":" in name else f"ida:{name}:1"


def scale(name: str) -> str:
    """Whether the inputs of a set are standardised."""
    return "standard" if name in STANDARDISED else "none"


def bench(name: str, workers: int, splits: int) -> dict[str, Any]:
    """One study, in memory, on the Ray this process is connected to."""
    task, _ = read_task(source(name))
    study = Study.of(scale=scale(name), n_splits=splits)
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
    """One set's figures."""
    return (
        f"{name:<14}{row['rows']:5d} rows {row['seconds']:7.1f} s  planned {row['planned']:>9,}  "
        f"computed {row['computed'] / row['planned']:6.1%}  solver {row['solver_share']:5.1%}  "
        f"busy {row['busy_share']:5.1%}  "
        f"worker {row['worker_mib']:4.0f} MiB  driver {row['driver_mib']:4.0f} MiB"
    )


def show(names: list[str], workers: int, splits: int, as_json: bool) -> None:
    """Run each study, and print its line."""
    found: dict[str, dict[str, Any]] = {}
    with session(Execution("ray", workers)):  # one Ray, which the runs share
        for name in names:
            found[name] = bench(name, workers, splits)
            if not as_json:
                print(line(name, found[name]), flush=True)
    if as_json:
        print(json.dumps({"sets": found}))


def hold_against(commit: str, studies: dict[str, list[str]], rounds: int, as_json: bool) -> bool:
    """Compare the times of each study with those of another commit; whether all answers are the same."""
    found: dict[str, Compared] = {}
    with checked_out(commit) as tree:
        for name, words in studies.items():
            one = found[name] = compare(tree, words, rounds)
            if not as_json:
                times = f"{min(one.here):9.3f} s  {commit[:7]} {min(one.there):9.3f} s"
                ratios = f"ratio {one.ratio:.3f}  (medians {one.ratio_medians:.3f})"
                print(f"{name:<14}{times}  {ratios}  same {one.same}", flush=True)
    means = [geometric_mean(getattr(one, of) for one in found.values()) for of in ("ratio", "ratio_medians")]
    if as_json:
        listed = {name: one._asdict() | {"ratio": one.ratio} for name, one in found.items()}
        print(json.dumps({"sets": listed, "geomean_ratio": means[0], "geomean_ratio_medians": means[1]}))
    else:
        print(f"geometric mean {means[0]:.3f}  (medians {means[1]:.3f})")
    return all(one.same for one in found.values())


def main(
    sets: Annotated[str, typer.Option(help="Sets of the archive or sources: a,b,twonorm:2000.")] = ",".join(
        SETS
    ),
    workers: Annotated[int, typer.Option(min=1, help="Processes at once.")] = 2,
    splits: Annotated[int, typer.Option(min=1, help="Monte Carlo splits; more make a longer study.")] = 20,
    against: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Compare with another commit, in turns.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each study by each of the two.")] = 3,
    serial: Annotated[bool, typer.Option("--serial", help="Compare in one process, without Ray.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each set; against another commit also geometric means, and exit code 1 where an
    answer differs.
    """
    names = sets.split(",")
    if against is None:
        if serial:
            raise typer.BadParameter("--serial goes with --against")
        show(names, workers, splits, as_json)
        return
    how = ["serial"] if serial else ["ray", str(workers)]
    studies = {name: [source(name), scale(name), str(splits), *how] for name in names}
    if not hold_against(against, studies, rounds, as_json):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
