"""Accuracy of ``ckcv plan``: the seconds it estimates for IDA sets, and those their runs take.

One process, the default study, inputs unscaled (standardised in splice). Each estimate is made twice, before
the run and after it, since the load of the machine may change meanwhile; the worse of the two counts.

    python -m jobs.benchmarks.plan
"""

from time import perf_counter
from typing import Annotated

import typer

from ckcv_ray import Execution, Job, Study, plan, read_task
from ckcv_ray.runs.run import run_job
from jobs.frame import AsJson, Row, Sets, choose_scale, name_source, show

LINE = "{name:<14} planned {before:6.1f} and {after:6.1f} s  took {took:6.1f} s   factor {factor:.2f}"


def bench(name: str) -> Row:
    """Plan and run one study."""
    task, _ = read_task(name_source(name))
    study = Study.paper(scale=choose_scale(name))
    before = plan(study, task.X, task.y).seconds_by_workers[1]
    start = perf_counter()
    run_job(Job(study, task), Execution("serial"))
    took = perf_counter() - start
    after = plan(study, task.X, task.y).seconds_by_workers[1]
    factor = max(max(estimate / took, took / estimate) for estimate in (before, after))
    return {"before": before, "after": after, "took": took, "factor": factor}


def main(
    sets: Sets = "diabetis,flare_solar,german,image,splice",
    most: Annotated[float, typer.Option(help="Largest factor between the two; above it, exit code 1.")] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Print estimated and actual seconds for each set."""
    rows = show(((name, bench(name)) for name in sets.split(",")), LINE, [], as_json)
    if any(row["factor"] > most for row in rows.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
