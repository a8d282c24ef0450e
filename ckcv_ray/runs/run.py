"""From a study and a table to a result: plan, dispatch, add up, finish. And the serial backend.

The loop knows two things: an aggregator that says which tasks come next and takes what comes back, and
a backend that evaluates batches of tasks in whatever order it likes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple, Protocol

from numpy.typing import ArrayLike

from ckcv_ray.core.threads import one_thread
from ckcv_ray.data.task import Table, TestRows, divide, fitting, table_from_arrays
from ckcv_ray.engine import nested
from ckcv_ray.engine.aggregator import Listener, Progress
from ckcv_ray.engine.backend import Backend, make_backend, session
from ckcv_ray.engine.estimate import Estimate, estimate
from ckcv_ray.engine.evaluate import Outcome
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.runs.load import finished_run
from ckcv_ray.runs.result import Result
from ckcv_ray.study import Execution, Study, Task, Triple
from ckcv_ray.validation import as_path, expect
from ckcv_ray.version import VERSION

LISTEN_SECONDS = 0.1
WAITING = 4  # studies handed to the pool for each that may be under way

Stop = Callable[[], bool]


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
    return run_table(study, table_from_arrays(X, y), out, execution, listen)


def run_table(
    study: Study,
    table: Table,
    out: str | Path | None = None,
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
    table, execution = divide(table, study), _how(execution)
    study, test = study.for_rows(table.n), fitting(test, table)
    expect("listen", listen, Callable | None, "a function that takes a Progress")
    folder = as_path("out", out).absolute() if out is not None else None  # not all work in one directory
    if (result := finished_run(study, table, folder)) is not None:
        return result if _measured(result, test) else _with_test(result, test)
    if expected is None and backend is None and execution.backend == "auto":
        expected = estimate(study, table)
    backend = backend or make_backend(execution, expected.seconds if expected else 0.0)
    try:
        return _run(backend, study, table, folder, listen, test, expected, stop)
    finally:
        backend.close()


class Job(NamedTuple):
    """A study to run among others; see ``run_table``."""

    study: Study
    table: Table
    out: str | Path | None = None
    test: TestRows | None = None
    listen: Listener | None = None


def run_many(
    jobs: Iterable[Job], execution: Execution | None = None, stop: Stop = lambda: False
) -> Iterator[Result]:
    """Run studies side by side in one session of the backend; their results in the order of the jobs.

    On Ray a few are under way at once, so that no worker waits where one of them begins or ends. Given
    again with the same folders, what is finished is read and the rest taken up.

    Args:
        jobs: the studies, asked for as they are needed; a list of them is checked before any begins.
        execution: as for ``run``.
        stop: as for ``run_table``.

    Raises:
        CKCVError: what the first job that fails raises; the others keep what is done.
        KeyboardInterrupt: they were stopped.
    """
    execution = _how(execution)
    expect("jobs", jobs, Iterable, "a list of Job(study, table, out)")
    for job in jobs if isinstance(jobs, Sequence) else ():
        _check(job)
    yield from _side_by_side(jobs, execution, stop)


def _side_by_side(
    jobs: Iterable[Job], execution: Execution, stop: Stop, before: Callable[[], None] = lambda: None
) -> Iterator[Result]:
    """As ``run_many``; ``before`` is called as each of the jobs begins."""
    stopped = Event()

    def halt() -> bool:
        return stopped.is_set() or stop()

    def one(job: Job, backend: Backend) -> Result:
        study, table, out, test, listen = _check(job)
        before()
        return run_table(study, table, out, execution, listen, test, backend=backend, stop=halt)

    with one_thread(), session(execution) as (new_backend, together), ThreadPoolExecutor(together) as pool:
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


def _check(job: Job) -> Job:
    """The job; InputError where it is none, or its study and table do not go together."""
    expect("job", job, Job, "a Job: Job(study, table, out)")
    job.study.for_rows(divide(job.table, job.study).n)
    return job


def _how(execution: Execution | None) -> Execution:
    expect("execution", execution, Execution | None, 'an Execution, such as Execution("serial")')
    return execution or Execution()


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
    whole = nested.Whole(study, table.n, listen) if listen else None
    listen = whole.own if whole is not None else None
    inner = _inner_jobs(study, table, out, whole)
    aggregator = backend.start(study, table, out)
    try:
        aggregator.open()
        if expected is not None:
            aggregator.add(expected.outcome)
        work(backend, aggregator, listen, stop)
        inside = _nested(study, table, inner, backend, whole, stop, aggregator.check_held) if inner else None
        while (settled := aggregator.finish(inside)) is None:
            if not work(backend, aggregator, listen, stop):
                raise RunError("the study is not decided, and nothing is left to compute: please report it")
        finished = settled.finished
        execution: dict[str, Any] = {
            "package": VERSION,
            "backend": backend.name,
            "workers": backend.workers,
            "source": table.source,
            "test": measure(finished.ensemble, test, settled.reported),
            **settled.account,
        }
        aggregator.write_end(finished, execution)
        return Result.of(study, table, finished, execution)
    finally:
        aggregator.close()


def _inner_jobs(study: Study, table: Table, out: Path | None, whole: nested.Whole | None) -> list[Job]:
    """The inner selections of the protocol nested, each in a folder inside ``out``."""
    return [
        Job(
            study.inner(),
            rows,
            out=nested.inner_folder(out, i) if out is not None else None,
            listen=whole.inner(i) if whole is not None else None,
        )
        for i, rows in enumerate(nested.inner_tables(study, table))
    ]


def _nested(
    study: Study,
    table: Table,
    jobs: list[Job],
    backend: Backend,
    whole: nested.Whole | None,
    stop: Stop,
    check_held: Callable[[], None],
) -> Ensemble:
    """The nested ensemble, of what the inner selections chose, each in a folder inside the one held."""
    execution = Execution("ray", backend.workers) if backend.name == "ray" else Execution("serial")
    winners = []
    for i, result in enumerate(_side_by_side(jobs, execution, stop, check_held)):
        winners.append(Triple(result.C, result.gamma, result.k))
        if whole is not None:
            whole.finished(i, result.execution["cells"])
    return nested.members(study, table, winners)


class Supply(Protocol):
    """What says which tasks come next, and takes what comes back: an aggregator, or what stands for one."""

    def plan(self, workers: int, least: float) -> list[Task]:
        """Return the next batch of work; empty if none is available now."""

    def add(self, outcome: Outcome) -> None:
        """Take what a batch gave back."""

    def progress(self) -> Progress:
        """How far the work has come."""


def work(backend: Backend, supply: Supply, listen: Listener | None, stop: Stop) -> int:
    """Keep the backend supplied until nothing is left to compute; how many batches that took."""
    listeners = [one for one in (backend.listener, listen) if one is not None]
    told, batches = -inf, 0
    while True:
        if stop():
            raise KeyboardInterrupt
        while backend.in_flight() < backend.window:
            tasks = supply.plan(backend.workers, backend.least_seconds)
            if not tasks:
                break
            backend.submit(tasks)
            batches += 1
        if not backend.in_flight():
            break
        for outcome in backend.wait():
            supply.add(outcome)
        if monotonic() - told > LISTEN_SECONDS:
            _tell(listeners, supply)
            told = monotonic()
    _tell(listeners, supply)
    return batches


def _tell(listeners: list[Listener], supply: Supply) -> None:
    if listeners:
        moment = supply.progress()  # which looks at every cell there is
        for listen in listeners:
            listen(moment)


def measure(
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
    return replace(result, execution=result.execution | {"test": measure(result.ensemble, test, {})})
