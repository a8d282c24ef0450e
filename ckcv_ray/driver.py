"""From a study and a table to a result: plan, dispatch, add up, finish. And the serial backend.

The loop knows two things: an aggregator that says which tasks come next and takes what comes back, and
a backend that evaluates batches of tasks in whatever order it likes.
"""

import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple, Protocol

from numpy.typing import ArrayLike
from threadpoolctl import threadpool_info

from ckcv_ray import nested, worker
from ckcv_ray.aggregator import Aggregator, Progress
from ckcv_ray.core.threads import one_thread
from ckcv_ray.data import Table, TestRows, divide, table_from_arrays
from ckcv_ray.ensemble import Ensemble
from ckcv_ray.errors import StoreError
from ckcv_ray.estimate import Estimate, estimate
from ckcv_ray.result import Result
from ckcv_ray.store import RunFolder
from ckcv_ray.study import Execution, Study, Task, Triple, run_id
from ckcv_ray.version import VERSION

SERIAL_SECONDS = 20.0
LISTEN_SECONDS = 0.1
TOGETHER = 3  # studies under way at once where several are run
WAITING = 4  # studies handed to the pool for each of these
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
        return result if _measured(result, test) else _with_test(result, test)
    if expected is None and backend is None and execution.backend == "auto":
        expected = estimate(study, table)
    backend = backend or make_backend(execution, expected.seconds if expected else 0.0)
    try:
        return _run(backend, study, table, out, listen, test, expected, stop)
    finally:
        backend.close()


class Job(NamedTuple):
    """A study to run among others; see ``run_table``."""

    study: Study
    table: Table
    out: Path | None = None
    test: TestRows | None = None


def run_many(
    jobs: Iterable[Job], execution: Execution | None = None, stop: Stop = lambda: False
) -> Iterator[Result]:
    """Run studies side by side in one session of the backend; their results in the order of the jobs.

    On Ray a few are under way at once, so that no worker waits where one of them begins or ends. Given
    again with the same folders, what is finished is read and the rest taken up.

    Args:
        jobs: the studies, asked for as they are needed.
        execution: as for ``run``.
        stop: as for ``run_table``.

    Raises:
        CKCVError: what the first job that fails raises; the others keep what is done.
        KeyboardInterrupt: they were stopped.
    """
    execution, stopped = execution or Execution(), Event()

    def halt() -> bool:
        return stopped.is_set() or stop()

    def one(job: Job, backend: Backend) -> Result:
        study, table, out, test = job
        return run_table(study, table, out, execution, test=test, backend=backend, stop=halt)

    session = _session(execution)
    with one_thread(), session as (new_backend, together), ThreadPoolExecutor(together) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(one, job, new_backend()))
                if len(waiting) >= WAITING * together:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


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
    address = _ray_address(execution)
    from ckcv_ray.cluster import RayBackend

    return RayBackend(execution.workers, address)


@contextmanager
def _session(execution: Execution) -> Iterator[tuple[Callable[[], Backend], int]]:
    """What makes the backends of studies that run side by side, and how many may."""
    if choose_backend(execution, inf) == "serial":
        yield SerialBackend, 1
        return
    address = _ray_address(execution)
    from ckcv_ray.cluster import RayBackend, connected

    with connected(execution.workers, address):
        yield lambda: RayBackend(execution.workers, address, apart=False), TOGETHER


def _ray_address(execution: Execution) -> str:
    """Where Ray is, or "local"; to be asked before ray is imported."""
    address = execution.address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":  # read when ray is imported: without it a local Ray listens on every interface
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    return address


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
        inside = _nested(study, table, out, backend, stop) if study.outer_splits is not None else None
        finished = aggregator.finish(inside)
        execution: dict[str, Any] = {
            "package": VERSION,
            "backend": backend.name,
            "workers": backend.workers,
            "source": table.source,
            "environment": environment(),
            "failures": [[*failure.path, failure.traceback] for failure in aggregator.failures()],
            "test": _measure(finished.ensemble, test, aggregator.reported() if test else {}),
            **aggregator.account(),
        }
        aggregator.write_end(finished, execution)
        return Result.of(study, table, finished, execution)
    finally:
        aggregator.close()


def _nested(study: Study, table: Table, out: Path | None, backend: Backend, stop: Stop) -> Ensemble:
    """The nested ensemble: each inner selection is a run, in a folder inside ``out``."""
    tables = nested.inner_tables(study, table)
    outs = [nested.inner_folder(out, i) if out is not None else None for i in range(len(tables))]
    inner = (Job(study.inner(), one, folder) for one, folder in zip(tables, outs, strict=True))
    results = run_many(inner, Execution("ray" if backend.name == "ray" else "serial"), stop)
    return nested.members(study, table, [Triple(r.C, r.gamma, r.k) for r in results])


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


def _measure(
    ensemble: Ensemble, test: TestRows | None, reported: dict[int, Ensemble]
) -> dict[str, Any] | None:
    """The entry ``test`` of an account: error rates of F*, and of the best triple of each reported k."""
    if test is None:
        return None
    rates = {"": ensemble, **{str(k): other for k, other in sorted(reported.items())}}
    found = {
        k: dict(zip(("error", "vote_error"), one.error_rates(test.X, test.y), strict=True))
        for k, one in rates.items()
    }
    return {"rows": len(test.y), "digest": test.digest, **found.pop(""), "reported": found}


def _measured(result: Result, test: TestRows | None) -> bool:
    """Whether nothing is to be measured on these rows that the account does not tell."""
    told = result.execution.get("test")
    return test is None or (told is not None and told["digest"] == test.digest)


def _with_test(result: Result, test: TestRows | None) -> Result:
    return replace(result, execution=result.execution | {"test": _measure(result.ensemble, test, {})})


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
