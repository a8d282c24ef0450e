"""How long a run will take: a short trial on the data itself, whose records need not be computed again."""

from dataclasses import dataclass
from time import monotonic

import numpy as np

from ckcv_ray import worker
from ckcv_ray.core.schedule import Schedule
from ckcv_ray.data import Table, divide
from ckcv_ray.study import OUTER_K, Stage, Study, Task
from ckcv_ray.triples import make_selection

CALIBRATION_SECONDS = 2.0


@dataclass(frozen=True)
class Estimate:
    """What a short trial on the data itself says of a run.

    Attributes:
        seconds: expected work of one worker; drops are taken into account.
        outcome: the records of the trial, which the run need not compute again.
    """

    seconds: float
    outcome: worker.Outcome


def estimate(study: Study, table: Table) -> Estimate:
    """Time the first split's paths for about two seconds, and forecast the rest from what they show."""
    table = divide(table, study)
    study = study.for_rows(table.n)
    sizes = study.sizes(table.n)
    data = worker.share(table.X, table.y, study)
    selection = make_selection(study, table.n)
    outcomes: list[worker.Outcome] = []
    worker.warm_up(study)
    deadline = monotonic() + CALIBRATION_SECONDS
    for gamma in _spread(len(study.gamma)):
        task = Task(Stage.SELECT, sizes[0].k, 0, ((gamma, len(study.C)),))
        outcomes.append(worker.evaluate([task], study, data))
        records = outcomes[-1].records
        if len(records):
            selection.add(0, 0, gamma, records["errors_negative"] + records["errors_positive"])
        if monotonic() > deadline:
            break
    selection.refresh()
    together = _together(outcomes)
    schedule = Schedule(selection, [size.n_train for size in sizes])
    cost = float(sizes[0].n_train) ** 2 * max(1, len(together.records))
    runs = 1 + (study.outer_splits or 0) * (1 - 1 / OUTER_K) ** 2  # an inner run has 2/3 of the rows
    return Estimate(runs * schedule.forecast() * together.seconds / cost, together)


def _spread(n: int) -> list[int]:
    """0 .. n-1 so that any beginning of the list covers the range: by bit-reversed order."""
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
    )
