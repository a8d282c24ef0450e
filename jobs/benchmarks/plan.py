"""Accuracy of ``ckcv plan``: the seconds it estimates for IDA sets, and those their runs take.

One process, the default study, inputs unscaled (standardised in splice). Each estimate is made twice, before
the run and after it, since the load of the machine may change meanwhile; the worse of the two counts.

    python jobs/benchmarks/plan.py
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from time import perf_counter
from typing import Annotated

import typer

from ckcv_ray import Execution, Job, Study, plan, read_task
from ckcv_ray.runs.run import run_job
from jobs.benchmarks.overhead import scale


def main(
    sets: Annotated[str, typer.Option(help="IDA sets: a,b,c.")] = "diabetis,flare_solar,german,image,splice",
    most: Annotated[float, typer.Option(help="Largest factor between the two; above it, exit code 1.")] = 2.0,
) -> None:
    """Print estimated and actual seconds for each set."""
    worst = 1.0
    for name in sets.split(","):
        task, _ = read_task(f"ida:{name}:1")
        study = Study.paper(scale=scale(name))
        before = plan(study, task.X, task.y).seconds_by_workers[1]
        start = perf_counter()
        run_job(Job(study, task), Execution("serial"))
        actual = perf_counter() - start
        after = plan(study, task.X, task.y).seconds_by_workers[1]
        factor = max(max(estimate / actual, actual / estimate) for estimate in (before, after))
        worst = max(worst, factor)
        print(
            f"{name:<14} planned {before:6.1f} and {after:6.1f} s  took {actual:6.1f} s   factor {factor:.2f}"
        )
    if worst > most:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
