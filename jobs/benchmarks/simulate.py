"""Number of workers that one driver can serve: a discrete-event simulation of a study of a million fits.

The queue and its pruning of candidates are the real ones, and the processor time of what it does is measured
as it is called; durations of units are as measured on the data, outcomes are random errors (``MadeUp``).
Ray's own costs are measured at the beginning, with as many batches pending as the simulated workers have:
submitting a batch, looking for what is done, fetching an outcome, calling the recorder, and a worker's going
from one batch to the next. The driver does one thing at a time, as ``engine/loop`` does, so it can become
the bottleneck: it exchanges all outcomes that have arrived for as many batches, and submits these singly.

    python -m jobs.benchmarks.simulate --workers 8,64,512,1000
"""

import heapq
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, pairwise, takewhile
from statistics import median
from typing import Annotated, Any, NamedTuple, TypeVar

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # before ray is imported: loopback only

import numpy as np
import ray
import typer

from ckcv_ray import Execution, Study, read_task
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.backend import session
from ckcv_ray.engine.evaluate import Evaluated, _records, evaluate, share
from ckcv_ray.engine.loop import LISTEN_SECONDS, LISTEN_SHARE
from ckcv_ray.engine.queue import Batch
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.engine.ray_backend import IN_FLIGHT, RayBackend
from ckcv_ray.errors import Values, parse_folds
from ckcv_ray.records.record import Outcome
from ckcv_ray.study.problem import Problem

TRIED = 200  # batches sent for measuring
CALLS = 30  # calls whose median counts

Result = TypeVar("Result")


@dataclass(frozen=True)
class MadeUp:
    """Durations and error rates measured on a problem."""

    problem: Problem  # its search space has paths of one length
    n_train: Values  # training rows of the fold sizes measured, ascending, (tried,)
    seconds: Values  # of a complete path, (tried, n_paths)
    rate: Values  # share of errors, (tried, n_paths, n_steps)

    def length(self, unit: Unit) -> float:
        """Return the seconds that a unit takes, interpolated from those measured on other sizes."""
        size, lengths = self.problem.sizes[unit.size], self.problem.learner.space.lengths
        complete = {
            path: np.interp(size.n_train, self.n_train, self.seconds[:, path]) for path, _ in unit.paths
        }
        return float(sum(complete[path] * length / lengths[path] for path, length in unit.paths))

    def answer(self, units: Sequence[Unit]) -> Outcome:
        """Return what a worker would, after ``length`` seconds for each unit."""
        results = [self._path(unit, path, length) for unit in units for path, length in unit.paths]
        records = _records(results, self.problem)
        seconds = sum(self.length(unit) for unit in units)
        return Outcome(records, (), (), seconds, len(records), seconds)

    def _path(self, unit: Unit, path: int, length: int) -> Evaluated:
        size = self.problem.sizes[unit.size]
        at = int(np.argmin(np.abs(self.n_train - size.n_train)))
        rng = np.random.default_rng([unit.stage is not Stage.SELECT, size.k, unit.split, path])
        wrong = rng.binomial(size.n_select, self.rate[at, path])
        first = unit.first(length)
        totals = np.zeros((length - first, self.problem.n_totals), np.int64)
        totals[:, 0] = wrong[first:length]
        nothing = np.zeros(len(totals), np.int64)
        return Evaluated(unit, path, first, totals, nothing, nothing.astype(np.int8), ())


def measure(problem: Problem, tried: int = 4) -> MadeUp:
    """Measure every path on the first split of a few fold sizes, in processor time."""
    inputs, sizes = share(problem), problem.sizes
    problem.learner.trainer.load()
    chosen = sorted({int(j) for j in np.linspace(0, len(sizes) - 1, tried)})
    seconds, rate = [], []
    for j in chosen:
        spent, errors = [], []
        for path in enumerate(problem.learner.space.lengths):
            begin = time.thread_time()  # the machine may do other things meanwhile
            outcome = evaluate(inputs, [Unit(Stage.SELECT, j, 0, (path,))])
            spent.append(time.thread_time() - begin)
            errors.append(outcome.records["totals"].sum(axis=1))
        seconds.append(spent)
        rate.append(np.array(errors) / sizes[j].n_select)
    rows = np.array([float(sizes[j].n_train) for j in chosen])
    return MadeUp(problem, rows, np.array(seconds), np.array(rate))


class Costs(NamedTuple):
    """Ray's costs, in seconds of processor time, as the machine may do other things meanwhile."""

    submit: float  # of the driver, to submit a batch
    wait: float  # of the driver, to find what is done among all pending batches
    fetch: float  # of the driver, to read an outcome that has arrived
    call: float  # of the driver and the recorder, for an empty call
    exchange: float  # of both, for each outcome that a call brings and batch that it returns
    transfer: float  # of a worker, from the end of a batch to the beginning of the next


@dataclass
class Simulated:
    """The result of one simulation."""

    seconds: float = 0.0  # from the first batch to the last, by the simulated clock
    work: float = 0.0  # seconds of all units
    driver: float = 0.0  # seconds in which the driver was busy
    batches: int = 0
    fits: int = 0


class Echo:
    """A recorder that does nothing: it returns the batches that it is given."""

    def exchange(self, outcomes: Sequence[Outcome], batches: list[Batch]) -> list[Batch]:
        """Return the batches."""
        return batches

    def processor_seconds(self) -> float:
        """Return the processor time of this process so far."""
        return time.process_time()


def answer(units: Sequence[Unit], seconds: float, inputs: list[Any]) -> tuple[Outcome, float, float]:
    """Return an outcome at once, and the worker's processor time when this began and ended."""
    begin = time.process_time()
    outcome: Outcome = ray.get(inputs[0]).answer(units)
    return outcome, begin, time.process_time()


def occupy(seconds: float) -> None:
    """Occupy a worker for a while."""
    time.sleep(seconds)


_answer: Any = ray.remote(max_retries=0)(answer)
_occupy: Any = ray.remote(occupy)


def spend(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the processor time of this thread that work takes, and its result."""
    begin = time.thread_time()
    result = work()
    return time.thread_time() - begin, result


def measure_ray(made_up: MadeUp, pending: int) -> Costs:
    """Measure Ray's costs on this machine, with this many batches pending."""
    with session(Execution("ray", 1)):
        queue = RaceQueue(made_up.problem)
        batches = [queue.plan(pending, RayBackend.least_seconds) for _ in range(TRIED)]
        send = partial(_send, batches, [ray.put(made_up)])
        done = send(TRIED)
        answers = [ray.get(reference) for reference in done]
        with block_worker():
            submit, waiting = spend(lambda: send(pending))
            wait = median(spend(lambda: _find_done([done[0], *waiting]))[0] for _ in range(CALLS))
            for reference in waiting:
                ray.cancel(reference)
        outcomes = [outcome for outcome, _, _ in answers]
        fetch = median(spend(partial(ray.get, reference))[0] for reference in done)
        call, exchange = measure_exchange(outcomes, batches)
        times = sorted((begin, end) for _, begin, end in answers)
        transfer = median(begin - end for (_, end), (begin, _) in pairwise(times))
        return Costs(submit / pending, wait, fetch, call, exchange, transfer)


@contextmanager
def block_worker() -> Iterator[None]:
    """Keep the only worker busy, so that batches wait for it."""
    blocking = _occupy.remote(3600.0)
    yield
    ray.cancel(blocking, force=True)


def _send(batches: list[Batch], inputs: list[Any], count: int) -> list[Any]:
    """Submit ``count`` batches, and return their references."""
    some = islice(cycle(batches), count)
    return [_answer.remote(batch.units, batch.seconds, inputs) for batch in some]


def _find_done(references: list[Any]) -> None:
    """Look for what is done as the backend does: for anything, then for all."""
    ray.wait(references, num_returns=1, timeout=1.0, fetch_local=False)
    ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)


def measure_exchange(outcomes: list[Outcome], batches: list[Batch]) -> tuple[float, float]:
    """Return the seconds of an empty call of an actor, and per outcome and batch of a full one.

    They are processor time of both processes, since one waits for the other.
    """
    echo = ray.remote(num_cpus=0)(Echo).remote()

    def ask() -> float:
        return float(ray.get(echo.processor_seconds.remote()))

    def call(count: int) -> float:
        asked = -ask() + (before := ask())  # what asking costs
        here, _ = spend(lambda: ray.get(echo.exchange.remote(outcomes[:count], batches[:count])))
        return here + ask() - before - asked

    empty, full = (median(call(count) for _ in range(CALLS)) for count in (0, len(batches)))
    ray.kill(echo)
    return empty, (full - empty) / len(batches)


def simulate(made_up: MadeUp, workers: int, costs: Costs) -> Simulated:
    """Simulate the selection of a problem with this number of workers."""
    queue, totals, clock, due = RaceQueue(made_up.problem), Simulated(), 0.0, 0.0
    free = [0.0] * workers  # when each worker will be free
    coming: list[tuple[float, int, Outcome]] = []  # batches by the time they are done

    def pay(seconds: float) -> None:
        nonlocal clock
        clock += seconds
        totals.driver += seconds

    arrived: list[Outcome] = []
    over = False
    while True:
        most = 0 if over else IN_FLIGHT * workers - len(coming)
        seconds, batches = spend(partial(queue.exchange, arrived, most, workers, RayBackend.least_seconds))
        pay(seconds + costs.call + costs.exchange * max(len(arrived), len(batches)))
        selecting = list(takewhile(lambda batch: batch.units[0].stage is Stage.SELECT, batches))
        over = len(selecting) < len(batches)
        for batch in selecting:
            pay(costs.submit)
            outcome = made_up.answer(batch.units)  # simulating it takes no simulated time
            done = max(clock, heapq.heappop(free)) + costs.transfer + outcome.seconds
            heapq.heappush(free, done)
            totals.batches += 1
            heapq.heappush(coming, (done, totals.batches, outcome))
        if arrived and clock > due:
            seconds = spend(queue.progress)[0] + costs.call
            pay(seconds)
            due = clock + max(LISTEN_SECONDS, seconds / LISTEN_SHARE)
        if not coming:
            return totals
        clock = max(clock, coming[0][0])
        arrived = []
        while coming and coming[0][0] <= clock:
            arrived.append(heapq.heappop(coming)[2])
            totals.work += arrived[-1].seconds
            totals.fits += arrived[-1].fits
        totals.seconds = clock
        pay(costs.wait + costs.fetch * len(arrived))


def main(
    workers: Annotated[str, typer.Option(help="Numbers of workers: a,b,c.")] = "8,64,256,1000",
    source: Annotated[str, typer.Option(help="Data set on which the fits are timed.")] = "waveform:4000:0",
    fits: Annotated[int, typer.Option(min=1, help="Evaluations, reached by the number of splits.")] = 10**6,
) -> None:
    """Print what Ray takes, and efficiency, by the number of workers."""
    task, _ = read_task(source)
    study = Study.paper(scale="none", exhaustive=True)
    tried = Problem.of(study, task)
    splits = max(1, round(fits / (len(tried.sizes) * tried.n_settings)))
    made_up = measure(Problem.of(study.replace(n_splits=splits), task))
    lines = []
    for count in parse_folds(workers, "workers"):
        costs = measure_ray(made_up, IN_FLIGHT * count)
        result = simulate(made_up, count, costs)
        efficiency, driver = result.work / count / result.seconds, result.driver / result.seconds
        print(
            f"{count:7d} workers  "
            + "  ".join(f"{name} {1e3 * cost:.2f} ms" for name, cost in costs._asdict().items())
        )
        lines.append(
            f"{count:7d} {result.fits:10,d} {result.batches:8,d} {result.work:8,.0f} {result.seconds:9,.1f} "
            f"{100 * driver:10.1f} % {100 * efficiency:9.1f} %"
        )
    print("workers       fits  batches   work s    wall s  driver busy  efficiency", *lines, sep="\n")


if __name__ == "__main__":
    typer.run(main)
