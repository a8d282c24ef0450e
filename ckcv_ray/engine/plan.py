"""What a study will take, without running it: how much there is, and how long by how many workers.

Nothing here grows with the number of cells: they are counted, not listed, and a short trial is made on a
thinned study where the whole one is large.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ckcv_ray.data.task import Table, divide
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.aggregator import batch_seconds
from ckcv_ray.engine.estimate import estimate
from ckcv_ray.study import Study, inner_rows

WORKERS = (1, 8, 64, 512)
MOST_TRIED = 500_000
MOST_SIZES, MOST_VALUES, MOST_SPLITS = 48, 12, 20
RAY_SECONDS = 5.0
LEAST_SECONDS = 0.05
DRIVER_SECONDS = 0.003


@dataclass(frozen=True)
class Plan:
    """What a study will take.

    Attributes:
        cells: (C, gamma, k, split) of the selection, those of the inner runs of the protocol nested included.
        splits: splits of the data they belong to.
        sizes: distinct fold sizes.
        bytes_per_worker: memory a worker needs for the largest split.
        seconds_at_most: for one worker, were nothing dropped.
        seconds_by_workers: expected, by number of workers; one means a single process without Ray.
    """

    cells: int
    splits: int
    sizes: int
    bytes_per_worker: int
    seconds_at_most: float
    seconds_by_workers: dict[int, float]

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON values."""
        return asdict(self)


def plan(study: Study, table: Table, workers: Sequence[int] = WORKERS) -> Plan:
    """Plan a study on a table; it takes about two seconds, however large the study is.

    Raises:
        InputError: the study does not go with the table.
    """
    table = divide(table, study)
    study = study.for_rows(table.n)
    tried = thinned(study, table.n)
    expected = estimate(tried, table)
    every, some = work(study, table.n), work(tried, table.n)
    seconds = (expected.outcome.seconds + expected.seconds) * every / some
    stages = 2 if study.exhaustive else 1
    runs = [study.sizes(table.n)]
    if study.outer_splits is not None:
        runs += [study.inner().sizes(inner_rows(table.n))] * study.outer_splits
    splits = sum(size.n_splits for sizes in runs for size in sizes)
    return Plan(
        cells=splits * len(study.gamma) * len(study.C),
        splits=splits,
        sizes=len(runs[0]),
        bytes_per_worker=worker.memory(study, *table.X.shape),
        seconds_at_most=max(seconds, expected.rate * every * stages),
        seconds_by_workers={
            count: wall_seconds(seconds, count) if count > 1 else seconds for count in workers
        },
    )


def work(study: Study, n: int) -> float:
    """Cells of the selection, each times its squared training rows; inner runs included."""
    cells = len(study.gamma) * len(study.C)
    own = cells * sum(float(size.n_train) ** 2 * size.n_splits for size in study.sizes(n))
    if study.outer_splits is None:
        return own
    return own + study.outer_splits * work(study.inner(), inner_rows(n))


def thinned(study: Study, n: int) -> Study:
    """A study of the same kind that is not too large to be tried: itself, or one with values left out."""
    if study.cells(n) <= MOST_TRIED:
        return study
    ks: Sequence[int] = [size.k for size in _spaced(study.sizes(n), MOST_SIZES)]
    return replace(
        study,
        C=_spaced(study.C, MOST_VALUES),
        gamma=_spaced(study.gamma, MOST_VALUES),
        k=tuple(ks),
        n_splits=min(study.n_splits, MOST_SPLITS),
        report_k=(),
        claims=(),
    )


def _spaced(values: Sequence[Any], most: int) -> tuple[Any, ...]:
    """At most so many of the values, evenly spaced, the first and the last among them."""
    if len(values) <= most:
        return tuple(values)
    return tuple(values[i * (len(values) - 1) // (most - 1)] for i in range(most))


def wall_seconds(work: float, workers: int) -> float:
    """Time on Ray for so many seconds of work: its start, and the driver where it cannot keep up."""
    batch = batch_seconds(work, workers, LEAST_SECONDS)
    return RAY_SECONDS + max(work / workers, batch, work / batch * DRIVER_SECONDS)
