"""How good a search within a budget is: a tenth of what the exact race computes, on many draws of tables.

For each draw the exact race gives the least L_MS and the number of evaluations that proved it. A budget whose
effort is a share of that number is then run on the same table, and its winner's L_MS is compared. Sources
have 1,000 to 1,300 learning rows; those of noisy ones have a tenth of their labels turned.

    python jobs/benchmarks/budget.py --draws 20 --share 0.1
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import time
from typing import Annotated, NamedTuple

import numpy as np
import typer

from ckcv_ray import Execution, Job, Study, Task, read_task
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job

SERIAL = Execution("serial")
NOISY = {"noisy waveform": "waveform", "noisy twonorm": "twonorm"}  # a tenth of the labels turned
SOURCES = ("twonorm", "ringnorm", "waveform", *NOISY, "image")
CLOSE = 0.005  # of the least L_MS


class Draw(NamedTuple):
    """The outcome of one draw.

    Attributes:
        source, number: which table.
        least: the least L_MS; found: that of the budget's winner.
        evaluations: of the race; effort: of the budget.
        race_seconds, seconds: processor time of both.
    """

    source: str
    number: int
    least: float
    found: float
    evaluations: int
    effort: int
    race_seconds: float
    seconds: float


def read(source: str, number: int) -> Task:
    """Return the table of a draw."""
    if source == "image":
        return read_task(f"ida:image:{number % 10 + 1}")[0]  # in any archive; the seed differs
    task = read_task(f"{NOISY.get(source, source)}:1000:{number}")[0]
    if source not in NOISY:
        return task
    rng = np.random.default_rng(np.random.SeedSequence(number))
    return Task.of(task.X, np.where(rng.random(task.n) < 0.1, 1 - task.y, task.y))


def compare(source: str, number: int, share: float) -> Draw:
    """Run the race and a budget of a share of its evaluations on one draw."""
    task, began = read(source, number), time.process_time()
    exact = run_job(Job(Study.paper(seed=number), task), SERIAL)
    between, evaluations = time.process_time(), exact.execution["evaluations"]["computed"]
    effort = round(share * evaluations)
    study = Study.paper(seed=number, search="budget", effort=effort)
    found = run_job(Job(study, task), SERIAL)
    least, l_ms = (result.certificate.l_ms for result in (exact, found))
    return Draw(
        source, number, least, l_ms, evaluations, effort, between - began, time.process_time() - between
    )


def main(
    draws: Annotated[int, typer.Option(help="Draws of each source.")] = 17,
    share: Annotated[float, typer.Option(help="Effort, as a share of the evaluations of the race.")] = 0.1,
    sources: Annotated[str, typer.Option(help="Sources, separated by commas.")] = ",".join(SOURCES),
    first: Annotated[int, typer.Option(help="Number of the first draw.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every draw as JSON.")] = False,
) -> None:
    """Compare a search within a budget with the exact race."""
    every: list[Draw] = []
    for source in sources.split(","):
        found: list[Draw] = []
        for number in range(first, first + draws):
            try:
                found.append(compare(source, number, share))
            except InputError as error:  # a race so short that its share selects nothing
                print(f"{source} {number}: {error}", file=sys.stderr)
        every += found
        gaps = np.array([draw.found - draw.least for draw in found])
        times = [draw.seconds / draw.race_seconds for draw in found]
        effort = np.mean([draw.effort for draw in found])
        print(
            f"{source:14} {len(found):3} draws  within 0.5 points {np.sum(gaps <= CLOSE):3}  "
            f"mean gap {100 * gaps.mean():.2f}  largest {100 * gaps.max():.2f} points  "
            f"effort {effort:,.0f}  time {np.median(times):.2f} of the race's",
            flush=True,
        )
    close = sum(draw.found - draw.least <= CLOSE for draw in every)
    print(f"all            {len(every):3} draws  within 0.5 points {close:3}")
    if as_json:
        print(json.dumps([draw._asdict() for draw in every]))


if __name__ == "__main__":
    typer.run(main)
