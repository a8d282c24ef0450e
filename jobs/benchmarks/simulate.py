"""Number of workers that one driver can serve: a discrete-event simulation of a study of a million fits.

The queue and its pruning of candidates are the real ones, and the time of ``plan`` and ``add`` is
measured as they are called; durations of units are as measured on the data, outcomes simulated (see
``made_up``). Ray's overhead is assumed: a batch costs the driver ``--dispatch`` seconds to send and to
receive, and the worker ``--transfer`` seconds between two batches. The driver does one thing at a time, and
so can become the bottleneck.

    python jobs/benchmarks/simulate.py --workers 8,64,512,1000
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import heapq
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from ckcv_ray import Study, read_task
from ckcv_ray.cli.options import parse_workers
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.engine.ray_backend import IN_FLIGHT, RayBackend
from ckcv_ray.records.record import Outcome
from ckcv_ray.study import Problem
from jobs.benchmarks.made_up import MadeUp, measure


@dataclass
class Simulated:
    """The result of one simulation.

    Attributes:
        seconds: from the first batch to the last, by the simulated clock.
        work: seconds of all units; driver: seconds in which the driver was busy.
        batches, fits: how many.
    """

    seconds: float = 0.0
    work: float = 0.0
    driver: float = 0.0
    batches: int = 0
    fits: int = 0


def simulate(made_up: MadeUp, workers: int, dispatch: float, transfer: float) -> Simulated:
    """Simulate the selection of a problem with this number of workers."""
    queue, totals, clock = RaceQueue(made_up.problem), Simulated(), 0.0
    free = [0.0] * workers  # when each worker will be free
    coming: list[tuple[float, int, Outcome]] = []  # batches by when they are done

    def spend(begin: float) -> None:
        nonlocal clock
        clock += time.perf_counter() - begin + dispatch / 2
        totals.driver += time.perf_counter() - begin + dispatch / 2

    over = False
    while not over or coming:
        while not over and len(coming) < IN_FLIGHT * workers:
            begin = time.perf_counter()
            units = queue.plan(workers, RayBackend.least_seconds).units
            spend(begin)
            over = (not units and not coming) or (bool(units) and units[0].stage is not Stage.SELECT)
            if over or not units:
                break
            outcome = made_up.answer(units)  # simulating it takes no simulated time
            done = max(clock, heapq.heappop(free)) + transfer + outcome.seconds
            heapq.heappush(free, done)
            totals.batches += 1
            heapq.heappush(coming, (done, totals.batches, outcome))
        if coming:
            done, _, outcome = heapq.heappop(coming)
            clock = max(clock, done)
            totals.seconds, totals.work = clock, totals.work + outcome.seconds
            totals.fits += outcome.fits
            begin = time.perf_counter()
            queue.add(outcome)
            spend(begin)
    return totals


def main(
    workers: Annotated[str, typer.Option(help="Numbers of workers: a,b,c.")] = "8,64,256,1000",
    source: Annotated[str, typer.Option(help="Data set on which the fits are timed.")] = "waveform:4000:0",
    fits: Annotated[int, typer.Option(min=1, help="Evaluations, reached by the number of splits.")] = 10**6,
    dispatch: Annotated[float, typer.Option(help="Seconds that a batch costs the driver.")] = 0.002,
    transfer: Annotated[float, typer.Option(help="Seconds that a worker waits between two batches.")] = 0.002,
) -> None:
    """Print efficiency by the number of workers."""
    task, _ = read_task(source)
    study = Study.paper(scale="none", exhaustive=True)
    tried = Problem.of(study, task)
    splits = max(1, round(fits / (len(tried.sizes) * tried.n_settings)))
    made_up = measure(Problem.of(study.replace(n_splits=splits), task))
    print("workers       fits  batches   work s    wall s  driver busy  efficiency")
    for count in parse_workers(workers):
        one = simulate(made_up, count, dispatch, transfer)
        efficiency, driver = one.work / count / one.seconds, one.driver / one.seconds
        print(
            f"{count:7d} {one.fits:10,d} {one.batches:8,d} {one.work:8,.0f} {one.seconds:9,.1f} "
            f"{100 * driver:10.1f} % {100 * efficiency:9.1f} %"
        )


if __name__ == "__main__":
    typer.run(main)
