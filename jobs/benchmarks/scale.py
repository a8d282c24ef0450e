"""Benchmark of one driver with many workers: many logical CPUs on one machine, whose workers sleep.

Every batch is dispatched, returned and added up by Ray, the driver and the queue as in a real run; only
the fits are replaced: a worker sleeps as long as they would have taken, as measured here, and returns random
counts. Time is counted from when all workers are up, since starting many interpreters on few cores takes
minutes.

    python -m jobs.benchmarks.scale --workers 64
"""

import os
import time
from pathlib import Path
from typing import Annotated, Any

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # before ray is imported: loopback alone

import ray
import typer

from ckcv_ray import Execution, Job, Study, read_task
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.backend import session
from ckcv_ray.engine.evaluate import Inputs
from ckcv_ray.engine.queue import Batch
from ckcv_ray.engine.ray_backend import RayBackend
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.run import check_job, run_work
from ckcv_ray.study.problem import Problem
from jobs.benchmarks.made_up import MadeUp, measure, occupy, slept

_sleep: Any = ray.remote(max_retries=0)(slept)
_occupy: Any = ray.remote(occupy)


class Sleeping(RayBackend):
    """A Ray backend whose workers sleep; records when they start, and how long they sleep."""

    def __init__(self, workers: int, made_up: MadeUp) -> None:
        super().__init__(workers)
        self.made_up, self.slept = made_up, 0.0
        self.first, self.last, self.batches = 0.0, 0.0, 0

    def start(self, inputs: Inputs) -> None:
        """Start like the real backend, with sleeping tasks; wait until all workers are up."""
        super().start(inputs)
        self._task = _sleep
        self._inputs = ray.put(self.made_up)
        self._need = 0  # sleeping needs no memory
        self._count_workers()
        while len(set(ray.get([_occupy.remote(0.2) for _ in range(4 * self.workers)]))) < self.workers:
            pass
        self.first = time.perf_counter()

    def submit(self, batch: Batch) -> None:
        """Submit a batch; only those of the selection count: refits are few, and end any run."""
        self.selecting = batch.units[0].stage is Stage.SELECT
        super().submit(batch)

    def wait(self) -> list[Outcome]:
        """Wait like the real backend, and add up the time slept."""
        outcomes = super().wait()
        if self.selecting and outcomes:
            self.batches += len(outcomes)
            self.slept += sum(outcome.seconds for outcome in outcomes)
            self.last = time.perf_counter()
        return outcomes

    def busy(self) -> float:
        """Return the share of the workers' time that was slept."""
        return self.slept / (self.workers * (self.last - self.first))


def main(
    workers: Annotated[int, typer.Option(min=1, help="Logical CPUs of the local Ray.")] = 64,
    source: Annotated[str, typer.Option(help="Data set on which the fits are timed.")] = "waveform:4000:0",
    n_splits: Annotated[int, typer.Option(min=1, help="Splits; enough work for many workers.")] = 60,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Drop nothing.")] = False,
) -> None:
    """Print the share of the time in which the logical CPUs were busy."""
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])  # for the workers
    job = Job(Study.paper(scale="none", n_splits=n_splits, exhaustive=exhaustive), read_task(source)[0])
    made_up = measure(Problem.of(job.study, job.task))
    with session(Execution("ray", workers), single=True) as opened:
        backend = Sleeping(workers, made_up)
        result = run_work(check_job(job), opened=opened._replace(backend=lambda: backend))
    seconds, computed = backend.last - backend.first, result.execution["evaluations"]["computed"]
    print(
        f"{workers} workers  {computed:,} evaluations in {backend.batches:,} batches  "
        f"slept {backend.slept:,.0f} s in {seconds:,.1f} s  busy {100 * backend.busy():.1f} %"
    )


if __name__ == "__main__":
    typer.run(main)
