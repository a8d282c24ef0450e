"""How long a run will take: a short trial on the data itself, whose records need not be computed again."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np

from ckcv_ray.data.task import Table, divide
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.study import Stage, Study, Task, inner_rows

TRIAL_SECONDS = 2.0


@dataclass(frozen=True)
class Estimate:
    """What a short trial on the data itself says of a run.

    Attributes:
        seconds: work expected to be left for one worker, drops taken into account.
        rate: seconds for a cell, per squared training row.
        outcome: the records of the trial, which the run need not compute again.
    """

    seconds: float
    rate: float
    outcome: worker.Outcome


def estimate(study: Study, table: Table) -> Estimate:
    """Run the race itself for about two seconds, and forecast the rest from what it shows.

    The first split is tried path by path, so that on many rows the trial ends with a path and not later.
    """
    table = divide(table, study)
    study = study.for_rows(table.n)
    data = worker.share(table.X, table.y, study)
    aggregator = Aggregator(study, table)
    outcomes: list[worker.Outcome] = []
    worker.warm_up(study)
    deadline = monotonic() + TRIAL_SECONDS
    for task in _tasks(aggregator):
        outcomes.append(worker.evaluate([task], study, data))
        aggregator.add(outcomes[-1])
        if monotonic() > deadline:
            break
    rate, last = aggregator.rate(), aggregator.sizes[0]
    refits = rate * last.n_splits * len(study.C) * float(last.n_train + last.n_select) ** 2
    if study.exhaustive:
        rows = ((size.n_splits, size.n_train + size.n_select) for size in aggregator.sizes)
        refits += rate * len(study.C) * len(study.gamma) * sum(count * float(n) ** 2 for count, n in rows)
    left, done = aggregator.forecast() + refits, _together(outcomes)
    inner = (study.outer_splits or 0) * (inner_rows(table.n) / table.n) ** 2  # they begin with nothing done
    return Estimate(left + inner * (done.seconds + left), rate, done)


def _tasks(aggregator: Aggregator) -> Iterator[Task]:
    """Tasks of the race, the first of them path by path."""
    first = True
    while (tasks := aggregator.plan(1)) and tasks[0].stage is Stage.SELECT:
        for task in tasks:
            yield from _singly(task) if first else [task]
            first = False


def _singly(task: Task) -> Iterator[Task]:
    """Each path as a task, in such an order that any beginning covers the range of gamma."""
    return (task._replace(paths=(task.paths[i],)) for i in _spread(len(task.paths)))


def _spread(n: int) -> list[int]:
    """0 .. n-1 in bit-reversed order."""
    bits = max(1, (n - 1).bit_length())
    order = sorted(range(1 << bits), key=lambda i: int(f"{i:0{bits}b}"[::-1], 2))
    return [i for i in order if i < n]


def _together(outcomes: list[worker.Outcome]) -> worker.Outcome:
    return worker.Outcome(
        np.concatenate([o.records for o in outcomes]),
        tuple(failure for o in outcomes for failure in o.failures),
        (),
        sum(o.seconds for o in outcomes),
        sum(o.fits for o in outcomes),
        sum(o.solving for o in outcomes),
        max(o.peak for o in outcomes),
    )
