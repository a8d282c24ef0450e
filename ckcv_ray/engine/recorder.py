"""Recorder: a queue and the run folder it writes to; the Ray backend runs it as an actor.

It is the only writer of a run folder, under its lock: records as they arrive, and results at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.queue import Batch, FullQueue, Progress, Scores, Supply
from ckcv_ray.engine.race import BudgetQueue, RaceQueue, describe_failures
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.records.record import Failure, Outcome, Records
from ckcv_ray.storage.execution import Before, Evaluations, Metadata, read_environment
from ckcv_ray.storage.folder import EXECUTION, FolderPath, RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.study.problem import Problem

FLUSH_SECONDS = 2.0
FLUSH_SHARE = 0.01
COSTS = ("seconds", "fits", "worker_seconds", "solver_seconds")

RunQueue = TypeVar("RunQueue", bound=RaceQueue | FullQueue)


def make_queue(problem: Problem) -> Any:
    """Make the queue of a problem, a ``RaceQueue`` or a ``FullQueue``, as its search needs."""
    if problem.scores:
        return FullQueue(problem)
    return RaceQueue(problem) if problem.budget is None else BudgetQueue(problem)


class Conclusion(NamedTuple):
    """What the records amount to, returned in one call."""

    candidates: pa.Table  # table with the state of each candidate
    metadata: Metadata  # cost of the run over all its sessions, and its failures
    writes: bool  # whether there is a folder for the results


class Recorder(Supply, Generic[RunQueue]):
    """The records of one run, in its queue and in its folder.

    Args:
        problem: decides the queue, which says what to compute, and keeps the records.
        out: run folder to write; None keeps everything in memory.
    """

    def __init__(self, problem: Problem, out: FolderPath | None = None) -> None:
        self.problem = problem
        self.queue: RunQueue = make_queue(problem)
        for learner in problem.learners.values():  # otherwise an actor could not read the folder's study
            LEARNERS.setdefault(learner.name, type(learner))
        self.folder = RunFolder(out) if out is not None else None
        self._log = Log(self.folder.files, self.problem) if self.folder else None
        self._unsaved: list[tuple[Records, tuple[Failure, ...]]] = []
        self._opened_at = self._saved_at = monotonic()
        self._before: dict[str, Any] = dict.fromkeys(COSTS, 0)
        self._working, self._solving, self._peak = 0.0, 0.0, 0
        self._damaged: list[str] = []
        self._earlier_runs: Before | None = None
        self._failed: list[Failure] = []  # from before it began again
        self._opened = self._concluded = False

    def open(self) -> None:
        """Lock the run folder and load existing records; a second call does nothing.

        Raises:
            StoreError: it is in use, damaged, or holds another study.
            InputError: it cannot be written.
        """
        if self.folder is None or self._opened:
            return
        self.folder.acquire()
        if self.folder.holds(self.problem):
            damaged = self.folder.repair(self.problem)
            try:
                if metadata := self.folder.execution():
                    self._before = {name: metadata[name] for name in COSTS}
                    self._earlier_runs = metadata.get("before")  # not runs finished since
            except StoreError:
                damaged.append(EXECUTION)
            assert self._log is not None
            loaded = 0
            for records, _ in self._log.read(damaged):  # failures are not loaded: they are retried
                self.queue.add(Outcome(records, (), ()))
                loaded += len(records)
            self._before["fits"] = max(int(self._before["fits"]), loaded)  # a killed session wrote no costs
            self._damaged = list(dict.fromkeys(damaged))
        else:
            self.folder.begin(self.problem)
        self._opened = True

    def exchange(self, outcomes: Iterable[Outcome], most: int, workers: int, least: float) -> list[Batch]:
        """Add outcomes, and return the next batches, at most ``most``; see ``Queue.plan``."""
        for outcome in outcomes:
            self.add(outcome)
        return self.queue.exchange((), most, workers, least)

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a batch; records are written to the log from time to time.

        Raises:
            RunError: a record differs from the one held under its key, or the folder cannot be written.
        """
        self._concluded = False
        new = self.queue.add(outcome)
        self._working += outcome.seconds
        self._solving += outcome.solving
        self._peak = max(self._peak, outcome.peak)
        self._unsaved.append((new, outcome.failures))
        now = monotonic()
        if now - self._saved_at > max(FLUSH_SECONDS, FLUSH_SHARE * (now - self._opened_at)):
            self.flush()

    def add_trial(self, outcomes: Iterable[Outcome]) -> None:
        """Add the outcomes of a trial that ran before this session; its seconds count as the run's."""
        for outcome in outcomes:
            self.add(outcome)
            self._before["seconds"] += outcome.seconds

    def begin_again(self: "Recorder[RaceQueue]") -> bool:
        """Begin again with what was computed, so that what failed is retried once, unless it is beaten.

        Return whether anything had failed. What follows from failures, such as the rounds of a budget, is
        forgotten with them.
        """
        self._failed = self.queue.failures()
        if not self._failed:
            return False
        records, self._before["fits"] = self.queue.ledger.records(), self._before["fits"] + self.queue.fits
        self.queue = make_queue(self.problem)
        self.queue.add(Outcome(records, (), ()))
        return True

    def progress(self) -> Progress:
        """Return the progress of the run, including the time spent in earlier sessions."""
        return self.queue.progress()._replace(spent=self._before["worker_seconds"] + self._working)

    def decision(self: "Recorder[RaceQueue]") -> tuple[list[Leader], str] | None:
        """Return the winner and the leaders of the reported fold sizes, and what the first failure was.

        None if work is left, since a recorder died with unsaved records; so both are returned in one call.
        There is no leader if no candidate could be completed.
        """
        if not self.queue.complete():
            return None
        selection = self.queue.selection
        leaders = (selection.winner, *(selection.leaders[j] for j in self.problem.own))
        reason = describe_failures(self.queue.failures(), self.problem)
        return list(dict.fromkeys(filter(None, leaders))), reason

    def conclude(
        self: "Recorder[RaceQueue]", refitted: Sequence[Leader], failed: Sequence[Leader]
    ) -> Conclusion | None:
        """Write all records, and return what they amount to.

        None if work is left, since a recorder died with unsaved records.

        Args:
            refitted: leaders with a model on every split.
            failed: leaders with a failed refit.
        """
        self.flush()
        ledger = self.queue.ledger
        held = (ledger.known(at.size, True)[:, at.path, at.step].all() for at in refitted)
        known = (ledger.done(at.size, True)[:, at.path, at.step].all() for at in failed)
        if not (self.queue.complete() and all(held) and all(known)):
            return None
        self._concluded = True
        return Conclusion(self.queue.candidates(), self.metadata(), self.folder is not None)

    def scores(self: "Recorder[FullQueue]") -> tuple[Scores, Metadata] | None:
        """Write all records, and return the scores with the cost of the run.

        None if work is left, since a recorder died with unsaved records.
        """
        self.flush()
        if not self.queue.complete():
            return None
        self._concluded = True
        return self.queue.scores(), self.metadata()

    def records(self) -> Records:
        """Return the records of all evaluations."""
        return self.queue.ledger.records()

    def flush(self) -> None:
        """Write the records added since the last write."""
        if self._log is not None and self._unsaved:
            records = np.concatenate([records for records, _ in self._unsaved])
            failures = [failure for _, failed in self._unsaved for failure in failed]
            if len(records) or failures:
                self._log.append(records, failures)
        self._unsaved = []
        self._saved_at = monotonic()

    def write_end(self, execution: Mapping[str, object], results: Mapping[str, bytes]) -> bool:
        """Write results, execution and manifest, which finishes the run; return whether it was.

        False if the log may not support them, since another recorder, which died, concluded them.
        """
        if self._concluded and self.folder is not None:
            self.folder.reopen()
            self.folder.write_end(execution, results)
        return self._concluded

    def metadata(self) -> Metadata:
        """Return the cost of the run over all its sessions, and its failures."""
        at = self.progress()
        earlier: list[Failure] = [failure for failure in self._failed if not self.queue.ledger.holds(failure)]
        failures = {lost[:4]: lost for lost in (*earlier, *self.queue.failures())}
        counts = Evaluations(planned=at.planned, computed=at.computed, dropped=at.dropped, failed=at.failed)
        metadata: Metadata = {
            "seconds": self._before["seconds"] + monotonic() - self._opened_at,
            "fits": self._before["fits"] + self.queue.fits,
            "worker_seconds": at.spent,
            "solver_seconds": self._before["solver_seconds"] + self._solving,
            "worker_bytes": self._peak,
            "environment": read_environment(self.problem.learner),
            "damaged": self._damaged,
            "failures": [
                (failure.path, self.problem.folds[failure.size].k, failure.split, failure.traceback)
                for failure in failures.values()
            ],
            "evaluations": counts,
            "not_converged": at.not_converged,
        }
        if self._earlier_runs is not None:
            metadata["before"] = self._earlier_runs
        return metadata

    def close(self) -> None:
        """Write what is unsaved if the folder was opened, and release the folder in any case."""
        if self.folder is None or not self.folder.files.lock.held:
            return
        try:
            if self._opened:
                self.flush()
            if self._opened and not self.folder.finished:
                self.folder.write_execution(self.metadata())
        finally:
            self.folder.release()
