"""From a study and a table to a result: plan, dispatch, add up, finish. And the serial backend.

The loop knows two things: an aggregator that says which tasks come next and takes what comes back, and
a backend that evaluates batches of tasks in whatever order it likes.
"""

import os
import platform
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_info

from ckcv_ray import worker
from ckcv_ray.aggregator import Aggregator, Progress
from ckcv_ray.core.schedule import Schedule
from ckcv_ray.data import Table, TestRows, divide, table_from_arrays
from ckcv_ray.ensemble import Ensemble
from ckcv_ray.errors import StoreError
from ckcv_ray.result import Result
from ckcv_ray.store import RunFolder
from ckcv_ray.study import Execution, Stage, Study, Task, run_id
from ckcv_ray.triples import make_selection
from ckcv_ray.version import VERSION

CALIBRATION_SECONDS = 2.0
SERIAL_SECONDS = 20.0
LISTEN_SECONDS = 0.1
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "ray")

Listener = Callable[[Progress], None]
Stop = Callable[[], bool]


class Backend(Protocol):
    """Evaluates batches of tasks; the order in which they come back is its own affair.

    Attributes:
        workers: batches at once; window: batches to keep it supplied with.
        least_seconds: length of a batch below which dispatching it costs more than it is worth.
    """

    name: str
    workers: int
    window: int
    least_seconds: float

    def start(self, study: Study, table: Table, out: Path | None) -> Aggregator:
        """Share the data, and make the aggregator (or what stands for one)."""

    def submit(self, tasks: list[Task]) -> None:
        """Take a batch."""

    def in_flight(self) -> int:
        """Batches taken and not handed back."""

    def wait(self) -> Iterable[Any]:
        """Wait a while for a batch to be done, and hand back what ``Aggregator.add`` takes, if any is."""

    def close(self) -> None:
        """Give everything back; safe to call at any time, and twice."""


class SerialBackend:
    """One batch at a time, in this process."""

    name = "serial"
    workers = 1
    window = 1
    least_seconds = 0.006

    def start(self, study: Study, table: Table, out: Path | None) -> Aggregator:
        """Keep the data at hand."""
        self.study = study
        self.data = worker.share(table.X, table.y, study)
        self.queue: deque[list[Task]] = deque()
        return Aggregator(study, table, out)

    def submit(self, tasks: list[Task]) -> None:
        """Put a batch into the queue."""
        self.queue.append(tasks)

    def in_flight(self) -> int:
        """Length of the queue."""
        return len(self.queue)

    def wait(self) -> Iterable[worker.Outcome]:
        """Evaluate the oldest batch."""
        return [worker.evaluate(self.queue.popleft(), self.study, self.data)]

    def close(self) -> None:
        """Forget what is queued."""
        self.queue = deque()


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
    return Estimate(schedule.forecast() * together.seconds / cost, together)


def run(
    study: Study,
    X: ArrayLike,
    y: ArrayLike,
    out: str | Path | None = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
) -> Result:
    """Select (C, gamma, k), bound the error, and keep F*: Algorithm 1 of Anguita et al., ESANN 2012.

    Args:
        study: grids, folds, splits, bound and solver.
        X: inputs (n, d), an array or a data frame, of finite numbers.
        y: labels (n,), two classes, text or numbers.
        out: run folder; taken up where it stands if it is this study's. None keeps all in memory.
        execution: backend, workers, cluster address.
        listen: called with a Progress about ten times a second, and at the end.

    Raises:
        InputError: the data or the study are refused.
        StoreError: the folder is damaged, in use, or another study's.
        RunError: the run could not finish.
    """
    return run_table(study, table_from_arrays(X, y), Path(out) if out else None, execution, listen)


def run_table(
    study: Study,
    table: Table,
    out: Path | None = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    test: TestRows | None = None,
    expected: Estimate | None = None,
    backend: Backend | None = None,
    stop: Stop = lambda: False,
) -> Result:
    """As ``run``, on a checked table.

    Args:
        study, table, out, execution, listen: as for ``run``.
        test: rows on which to measure the finished ensemble.
        expected: what ``estimate`` returned, if it was asked already.
        backend: one to use instead of the one ``execution`` names; closed at the end.
        stop: asked between batches; once it says so, what is done is kept and the run is interrupted.

    Raises:
        KeyboardInterrupt: it was stopped.
    """
    table = divide(table, study)
    study, execution = study.for_rows(table.n), execution or Execution()
    out = out.absolute() if out is not None else None  # the aggregator may live in another directory
    if (result := finished_run(study, table, out)) is not None:
        return replace(result, execution=result.execution | _measure(result.ensemble, test))
    if expected is None and backend is None and execution.backend == "auto":
        expected = estimate(study, table)
    backend = backend or make_backend(execution, expected.seconds if expected else 0.0)
    try:
        return _run(backend, study, table, out, listen, test, expected, stop)
    finally:
        backend.close()


def finished_run(study: Study, table: Table, out: Path | None) -> Result | None:
    """The result already in the folder ``out``, if it is there; None where there is work to do.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: it cannot be written.
    """
    if out is None:
        return None
    study, folder = study.for_rows(divide(table, study).n), RunFolder(out)
    identity = folder.identity()
    if identity is None or identity.run_id == run_id(study, table.digest):
        if folder.finished:
            return load_run(out)
        folder.check_writable()
        return None
    differences = study.differences(identity.study)
    if identity.data_digest != table.digest:
        differences.append("data: another table")
    told = "; ".join(differences) or "another version of this package wrote it"
    raise StoreError(f"{str(out)!r} holds another study ({told}): choose another --out")


def replay(out: str | Path) -> Aggregator:
    """An aggregator with all the records of a folder, which it leaves alone.

    Raises:
        StoreError: there is no run, or it is damaged.
        RunError: two of its records contradict each other.
    """
    folder = RunFolder(Path(out))
    identity = folder.require()
    aggregator = Aggregator(identity.study, folder.table(identity))
    try:
        for records, failures in folder.cells(identity):
            aggregator.add(worker.Outcome(records, tuple(failures), (), 0.0, 0))
    except LookupError as error:
        raise StoreError(f"the log in {str(out)!r} is damaged: it speaks of {error}, unknown here") from None
    return aggregator


def load_run(out: str | Path) -> Result:
    """The result of a finished run, from its folder.

    Raises:
        StoreError: there is no finished run, or it is damaged.
    """
    folder = RunFolder(Path(out))
    identity = folder.require()
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: give its ckcv run command again")
    table = folder.table(identity)
    return Result.of(identity.study, table, folder.results(identity, table), folder.execution())


def choose_backend(execution: Execution, seconds: float) -> str:
    """Name of the backend for work of about ``seconds``: "auto" takes ray where it pays or is asked for."""
    if execution.backend != "auto":
        return execution.backend
    asked = execution.address is not None or (execution.workers or 1) > 1
    return "ray" if asked or (execution.workers != 1 and seconds > SERIAL_SECONDS) else "serial"


def make_backend(execution: Execution, seconds: float) -> Backend:
    """The backend that ``execution`` names, for work of about ``seconds``."""
    if choose_backend(execution, seconds) == "serial":
        return SerialBackend()
    address = execution.address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":  # read when ray is imported: without it a local Ray listens on every interface
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    from ckcv_ray.cluster import RayBackend

    return RayBackend(execution.workers, address)


def _run(
    backend: Backend,
    study: Study,
    table: Table,
    out: Path | None,
    listen: Listener | None,
    test: TestRows | None,
    expected: Estimate | None,
    stop: Stop,
) -> Result:
    aggregator = backend.start(study, table, out)
    try:
        aggregator.open()
        if expected is not None:
            aggregator.add(expected.outcome)
        _work(backend, aggregator, listen, stop)
        finished = aggregator.finish()
        execution: dict[str, Any] = {
            "package": VERSION,
            "backend": backend.name,
            "workers": backend.workers,
            "source": table.source,
            "environment": environment(),
            "failures": [[*failure.path, failure.traceback] for failure in aggregator.failures()],
            "test": None,
            **_measure(finished.ensemble, test),
            **aggregator.account(),
        }
        aggregator.write_end(finished, execution)
        return Result.of(study, table, finished, execution)
    finally:
        aggregator.close()


def _work(backend: Backend, aggregator: Aggregator, listen: Listener | None, stop: Stop) -> None:
    """Keep the backend supplied until nothing is left to compute."""
    told = -inf
    while True:
        if stop():
            raise KeyboardInterrupt
        while backend.in_flight() < backend.window:
            tasks = aggregator.plan(backend.workers, backend.least_seconds)
            if not tasks:
                break
            backend.submit(tasks)
        if not backend.in_flight():
            break
        for outcome in backend.wait():
            aggregator.add(outcome)
        if listen is not None and monotonic() - told > LISTEN_SECONDS:
            listen(aggregator.progress())
            told = monotonic()
    if listen is not None:
        listen(aggregator.progress())


def _measure(ensemble: Ensemble, test: TestRows | None) -> dict[str, Any]:
    """The entry ``test`` of an account; none where there are no rows to test on."""
    if test is None:
        return {}
    error, vote_error = ensemble.error_rates(test.X, test.y)
    return {"test": {"rows": len(test.y), "error": error, "vote_error": vote_error}}


@cache
def environment() -> dict[str, Any]:
    """What may change bits: processor, operating system, versions, BLAS. Not to be written to."""
    from importlib.metadata import version

    processor = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    blas = sorted({f"{lib['internal_api']} {lib['version']}" for lib in threadpool_info()})
    return {
        "processor": processor,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "blas": blas,
    }


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
