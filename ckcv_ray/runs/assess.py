"""From a procedure and data to the scores of every split: compute, resume and store."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.core.divisions import Division
from ckcv_ray.core.named_divisions import Splits
from ckcv_ray.engine.backend import SERIAL, Backend, Session, session
from ckcv_ray.engine.batches import Batch
from ckcv_ray.engine.collector import Collector
from ckcv_ray.engine.evaluate import Inputs, share
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.learners.ensemble import Outcome
from ckcv_ray.runs.assessed import Assessed
from ckcv_ray.runs.load import check_undamaged, filled, is_finished
from ckcv_ray.runs.run import never
from ckcv_ray.runs.settle import execution_of
from ckcv_ray.storage.execution import Metadata
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution
from ckcv_ray.study.assessment import INNER, OUTER, Assessment
from ckcv_ray.study.procedure import Procedure
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import as_array, as_path, expect, quoted

TRIAL_SECONDS = 2.0  # of work in this process before "auto" chooses a backend

SKLEARN_NAMES = {
    "cv": "resampling",
    "scoring": "measure",
    "measures": "measure",
    "estimator": "learner",
    "random_state": "seed",
    "n_jobs": 'execution=Execution("ray", workers)',
}

Out = str | PathLike[str] | None


def evaluate(
    X: Any,
    y: ArrayLike,
    out: Out = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    groups: ArrayLike | None = None,
    **options: Any,
) -> Assessed:
    """Score a learner on every split of a resampling.

    Args:
        X: inputs (n, d), an array or a data frame.
        y: labels (n,), text or numbers; for a learner of numbers such as "ridge" the numbers to predict.
        out: folder for the scores; continued if it holds the same procedure. None keeps them in memory.
        execution: backend, workers, cluster address.
        listen: called with a Progress about ten times a second, and at the end.
        groups: the group of each row (n,), if rows belong together: groups stay whole.
        options: of ``Procedure.of``: ``resampling="kfold:10"`` (or a splitter of scikit-learn, which alone
            sees the groups), ``measure="accuracy,auc"``, ``select_by``, ``select``, ``seed``, ``stratify``,
            and those of the learner, ``learner="forest"``.

    Raises:
        InputError: the data or an option are invalid.
        StoreError: the folder is damaged, in use, or holds something else.
        RunError: a record contradicts another one.
    """
    for name in options:
        if name in SKLEARN_NAMES:
            raise InputError(f"{name} is scikit-learn's name for it: say {SKLEARN_NAMES[name]}")
    if (given := _given_splits(options.get("resampling"), X, y, groups)) is not None:
        options["resampling"] = given
        groups = None
    procedure = Procedure.of(**options)
    task = Task.of(X, y, groups=groups, numbers=procedure.predicts_numbers)
    return assess(procedure, task, out, execution, listen)


def _given_splits(resampling: Any, X: Any, y: ArrayLike, groups: ArrayLike | None) -> Splits | None:
    """Return the splits of a splitter, or of pairs of rows; None if the resampling is neither.

    Raises:
        InputError: the splitter raises, or gives something else than pairs of rows.
    """
    if resampling is None or isinstance(resampling, str | Division):
        return None
    splits = hasattr(resampling, "split") and not isinstance(resampling, type)
    if isinstance(resampling, type) or not (splits or isinstance(resampling, Iterable)):
        raise InputError(
            f"resampling={quoted(resampling)}: expected text such as 'kfold:10', a splitter such as "
            "KFold(10), or a list of pairs: the rows to fit and the rows to score"
        )
    try:
        pairs = list(resampling.split(X, y, groups) if splits else resampling)
    except Exception as error:  # of any kind: it is code of the user's
        raise InputError(f"the splitter raised {type(error).__name__}: {error}") from error
    for number, pair in enumerate(pairs):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(map(np.ndim, pair))):
            raise InputError(
                f"split {number} is {quoted(pair)}: expected the rows to fit and the rows to score"
            )
    return Splits.of(pairs, len(as_array("y", y)))


def assess(
    procedure: Procedure,
    task: Task,
    out: Out = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    stop: Stop = never,
    retry_failed: bool = False,
) -> Assessed:
    """Compute the scores of a procedure on a task, or return those that its folder holds; see ``evaluate``.

    Args:
        procedure: learner, resampling, measures and selection.
        task: the rows.
        out, execution, listen: as for ``evaluate``.
        stop: called between batches; once it returns True, what is done is kept and the run is interrupted.
        retry_failed: compute again what failed in a finished run.

    Raises:
        KeyboardInterrupt: it was stopped.
    """
    expect("execution", execution, Execution | None, 'an Execution, such as Execution("serial")')
    problem = Assessment.of(procedure, task)
    folder = None if out is None else str(as_path("out", out).absolute())
    if folder is not None and is_finished(problem, stored := RunFolder(folder)):
        found = _loaded(stored, problem)
        if not (retry_failed and found.failures):
            return found
        stored.reopen()
    recorder = ScoreRecorder(problem, folder)
    recorder.open()
    try:
        inputs = share(problem)
        return recorder.finish(*_computed(recorder, inputs, execution or Execution(), listen, stop))
    finally:
        recorder.close()


def assess_in(opened: Session, problem: Assessment) -> Assessed:
    """Compute the scores of a checked procedure in an open session, and keep them in memory."""
    recorder = ScoreRecorder(problem)
    return recorder.finish(*_computed_in(opened, recorder, share(problem), None, never))


def load_scores(out: str | PathLike[str]) -> Assessed:
    """Return the scores in a finished folder of ``evaluate``.

    Raises:
        StoreError: there are none, or a file is damaged or does not match the manifest.
    """
    folder = RunFolder(out)
    identity = folder.require()
    problem = folder.assessment(identity)
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: run its ckcv evaluate command again")
    check_undamaged(folder, folder.differing(), "evaluate")
    return _loaded(folder, problem)


def replay_scores(out: str | PathLike[str]) -> Collector:
    """Return a collector with all the records of a folder, which is not changed.

    Raises:
        StoreError: there are none, or they are damaged.
    """
    folder = RunFolder(out)
    return filled(Collector, folder, folder.assessment())


class ScoreRecorder(Recorder):
    """Records of an assessment, in memory and in its folder; it plans with a ``Collector``."""

    aggregates = Collector

    @property
    def collector(self) -> Collector:
        """What plans and keeps the records."""
        collector: Any = self.aggregator
        assert isinstance(collector, Collector)
        return collector

    def finish(self, backend: str, workers: int) -> Assessed:
        """Write the scores, which finishes the run, and return them."""
        self.flush()
        if not self.collector.complete():
            raise RunError("scores are missing, but nothing is left to compute: please report this")
        metadata: Metadata = self.metadata()
        execution = {**execution_of(self.problem, backend, workers), **metadata}
        result = assessed(self.collector, execution)
        if self.folder is not None:
            self.folder.reopen()
            self.folder.write_scores(self.problem.run_id, result.table(), result.summary_json())
            self.folder.write_manifest(execution)
        return result


class Trial:
    """A supply of units that ends after some seconds."""

    def __init__(self, recorder: ScoreRecorder) -> None:
        self.recorder, self.until = recorder, monotonic() + TRIAL_SECONDS

    def plan(self, workers: int, least: float) -> Batch:
        """Return the next batch of work, until the time is over."""
        return self.recorder.plan(workers, least) if monotonic() < self.until else Batch()

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a batch."""
        self.recorder.add(outcome)

    def progress(self) -> Progress:
        """Return the progress of the work."""
        return self.recorder.progress()


def _computed(
    recorder: ScoreRecorder, inputs: Inputs, execution: Execution, listen: Listener | None, stop: Stop
) -> tuple[str, int]:
    """Compute everything; return the backend and its workers.

    "auto" begins in this process, and goes on where it pays.
    """
    seconds = 0.0
    if execution.backend == "auto" and execution.fit_timeout is None and execution.address is None:
        with _started(SERIAL, inputs) as backend:
            work(backend, Trial(recorder), listen, stop)
        if recorder.collector.complete():
            return backend.name, backend.workers
        seconds = recorder.progress().left
    with session(execution, seconds) as opened:
        return _computed_in(opened, recorder, inputs, listen, stop)


def _computed_in(
    opened: Session, recorder: ScoreRecorder, inputs: Inputs, listen: Listener | None, stop: Stop
) -> tuple[str, int]:
    """Compute what is left in an open session; return the backend and its workers."""
    with _started(opened, inputs) as backend:
        work(backend, recorder, listen, stop)
        return backend.name, backend.workers


@contextmanager
def _started(opened: Session, inputs: Inputs) -> Iterator[Backend]:
    """Start a backend, and close it at the end."""
    backend = opened.backend()
    try:
        backend.start(inputs)
        yield backend
    finally:
        backend.close()


def assessed(collector: Collector, execution: dict[str, Any]) -> Assessed:
    """Return the result of a procedure all of whose scores are known; ``execution`` as in ``Assessed``."""
    problem = collector.problem
    chosen = collector.chosen if len(problem.sizes) > INNER else None
    known = ~np.isnan(collector.statuses(OUTER))
    return Assessed(problem, collector.totals(OUTER), known, chosen, tuple(collector.failures()), execution)


def _loaded(folder: RunFolder, problem: Assessment) -> Assessed:
    """Return the scores in the log of a folder."""
    return assessed(filled(Collector, folder, problem), folder.execution())
