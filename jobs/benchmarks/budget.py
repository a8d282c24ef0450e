"""How good a search within a budget is: a tenth of what the exact race computes, on many draws of tables.

For each draw the exact race gives the least L_MS and the number of evaluations that proved it. A budget whose
effort is a share of that number is then run on the same table, and its winner's L_MS is compared. Sources
have 1,000 to 1,300 learning rows; noisy ones have a tenth of their labels flipped.

    python -m jobs.benchmarks.budget --draws 20 --share 0.1
"""

import sys
import time
from typing import Annotated

import numpy as np
import typer

from ckcv_ray import Execution, Job, Study, Task, read_task
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from jobs.frame import AsJson, Row, show

SERIAL = Execution("serial")
NOISY = {"noisy waveform": "waveform", "noisy twonorm": "twonorm"}  # a tenth of the labels flipped
SOURCES = "twonorm,ringnorm,waveform,noisy waveform,noisy twonorm,image"
CLOSE = 0.005  # distance from the least L_MS
LINE = (
    "{name:14} {draws:3} draws  within 0.5 points {close:3}  mean gap {gap:.2f}  "
    "largest {largest:.2f} points  effort {effort:,.0f}  time {time:.2f} of the race's"
)


def read(source: str, number: int) -> Task:
    """Return the table of a draw."""
    if source == "image":
        return read_task(f"ida:image:{number % 10 + 1}")[0]  # in any archive; the seed differs
    task = read_task(f"{NOISY.get(source, source)}:1000:{number}")[0]
    if source not in NOISY:
        return task
    rng = np.random.default_rng(np.random.SeedSequence(number))
    return Task.of(task.X, np.where(rng.random(task.n) < 0.1, 1 - task.y, task.y))


def compare(source: str, number: int, share: float) -> Row:
    """Run the race and a budget of a share of its evaluations on one draw."""
    task, began = read(source, number), time.process_time()
    exact = run_job(Job(Study.paper(seed=number), task), SERIAL)
    between, effort = time.process_time(), round(share * exact.execution["evaluations"]["computed"])
    found = run_job(Job(Study.paper(seed=number, search="budget", effort=effort), task), SERIAL)
    gap = found.certificate.l_ms - exact.certificate.l_ms
    return {"gap": gap, "effort": effort, "time": (time.process_time() - between) / (between - began)}


def bench(source: str, numbers: range, share: float) -> Row:
    """Compare on many draws; leave out those whose race is so short that a share of it selects nothing."""
    found = []
    for number in numbers:
        try:
            found.append(compare(source, number, share))
        except InputError as error:
            print(f"{source} {number}: {error}", file=sys.stderr)
    gaps, efforts, times = (np.array([draw[name] for draw in found]) for name in ("gap", "effort", "time"))
    row = {"draws": len(found), "close": int(np.sum(gaps <= CLOSE)), "gap": 100 * float(gaps.mean())}
    return row | {"largest": 100 * gaps.max(), "effort": efforts.mean(), "time": float(np.median(times))}


def main(
    draws: Annotated[int, typer.Option(min=1, help="Draws of each source.")] = 17,
    share: Annotated[float, typer.Option(help="Effort, as a share of the evaluations of the race.")] = 0.1,
    sources: Annotated[str, typer.Option(help="Sources, separated by commas.")] = SOURCES,
    first: Annotated[int, typer.Option(help="Number of the first draw.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare a search within a budget with the exact race."""
    numbers = range(first, first + draws)
    show(((name, bench(name, numbers, share)) for name in sources.split(",")), LINE, [], as_json)


if __name__ == "__main__":
    typer.run(main)
