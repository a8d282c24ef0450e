"""The one place where records come together: it adds them, says what to compute next, and writes.

A plain class, idempotent: the same record again is ignored, a different one under the same key stops the
run. The Ray backend wraps it in an actor; the serial one calls it directly.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from pathlib import Path as FilePath
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.certificate import certify
from ckcv_ray.core.schedule import Schedule
from ckcv_ray.core.selection import FAILED, UNKNOWN, Leader
from ckcv_ray.data.task import Table
from ckcv_ray.engine.evaluate import Outcome
from ckcv_ray.engine.ledger import Ledger, Places
from ckcv_ray.errors import RunError, StoreError
from ckcv_ray.learners.ensemble import Ensemble, Member
from ckcv_ray.storage.candidates import make_selection, triple_of, triple_table
from ckcv_ray.storage.environment import environment
from ckcv_ray.storage.execution import Account, Cells
from ckcv_ray.storage.folder import Finished, RunFolder
from ckcv_ray.storage.log import Failure, Records
from ckcv_ray.study import Path, Stage, Study, Task, Triple, run_id

FLUSH_SECONDS = 2.0
FLUSH_SHARE = 0.01
FORECAST_SECONDS = 0.5
BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
OWN_SECONDS = 0.003
LEADERLESS_SHARE = 0.5


class Progress(NamedTuple):
    """A moment of a run.

    Attributes:
        planned: select cells of the study.
        computed, failed, dropped: of those, done, failed, and by now proven not to matter.
        capped: fits, of both stages, that ended at the iteration cap.
        fits: machines fitted so far by this run.
        spent: seconds of work so far, on one worker, in all sessions.
        left: seconds of work expected on one worker; 0 when decided, inf when not known yet.
        best: the best complete triple so far and its l_ms, or None.
        workers: processes that share the work left.
    """

    planned: int
    computed: int = 0
    failed: int = 0
    dropped: int = 0
    capped: int = 0
    fits: int = 0
    spent: float = 0.0
    left: float = inf
    best: tuple[Triple, float] | None = None
    workers: int = 1


Listener = Callable[[Progress], None]


class Settled(NamedTuple):
    """The end of a run, all that has to be known of it at once: an aggregator may die after saying it.

    Attributes:
        finished: triples, models and certificate.
        reported: the ensemble of the best triple of each reported k that could be refitted on every split.
        account: what the run has cost, in all its sessions, and what failed.
    """

    finished: Finished
    reported: dict[int, Ensemble]
    account: Account


def batch_seconds(left: float, workers: int, least: float) -> float:
    """How long a batch should last.

    A second, or a fiftieth of what is left where that is less, but no less than ``least`` seconds, nor than
    it takes to plan and add a batch for each of the workers.

    Args:
        left: seconds of work left for one worker.
        workers: batches at once.
        least: seconds below which dispatching a batch costs more than it is worth.
    """
    return max(least, workers * OWN_SECONDS, min(BATCH_SECONDS, left / workers / BATCHES_LEFT))


class Aggregator:
    """Records of one run and what follows from them.

    Args:
        study: the question, in its form for the table's rows.
        table: the learning set.
        out: the run folder to write; None keeps everything in memory.
    """

    def __init__(self, study: Study, table: Table, out: FilePath | None = None) -> None:
        self.study = study
        self.table = table
        self.run_id = run_id(study, table.digest)
        self.folder = RunFolder(out) if out else None
        self.sizes = study.sizes(table.n)
        self.selection = make_selection(study, table.n)
        self.schedule = Schedule(self.selection, [size.n_train for size in self.sizes])
        self.ledger = Ledger(study, self.sizes)
        self._cell_cost = np.array([float(size.n_train) ** 2 for size in self.sizes])
        self._failures: dict[tuple[bool, Path], Failure] = {}
        self._members: dict[tuple[Triple, int], Member] = {}
        self._unsaved: list[tuple[Records, tuple[Failure, ...]]] = []
        self._opened_at = self._saved_at = monotonic()
        self._forecast_at = -inf
        self._before = {"seconds": 0.0, "fits": 0, "worker_seconds": 0.0, "solver_seconds": 0.0}
        self._working, self._solving, self._peak = 0.0, 0.0, 0
        self._damaged: list[str] = []
        self._estimates: Iterator[Task] | None = None
        self._looked, self._open_left = -1, True
        self._workers, self._begun = 1, False
        self._fits, self._seconds, self._cost, self._left = 0, 0.0, 0.0, inf

    def open(self) -> None:
        """Take hold of the run folder, and take up what it holds.

        Raises:
            StoreError: it is in use, damaged, or another study's.
            InputError: it cannot be written.
        """
        if self.folder is None:
            return
        self.folder.acquire()
        if self.folder.holds(self.run_id):
            self._take_up(self.folder)
        else:
            self.folder.begin(self.study, self.table, self.run_id)
        self._begun = True

    def _take_up(self, folder: RunFolder) -> None:
        """What earlier sessions found and wrote, so far as it is not damaged."""
        self._damaged = folder.mend(self.study, self.table, self.run_id)
        self._take_up_account(folder)
        parts: list[str] = []
        for records, _ in folder.cells(folder.require(), self.sizes, parts):  # what failed is tried again
            self._take(records, ())
        self._damaged = list(dict.fromkeys([*self._damaged, *parts]))

    def _take_up_account(self, folder: RunFolder) -> None:
        """What they cost; from nothing, where that is damaged."""
        try:
            if account := folder.execution():
                self._before |= {name: account[name] for name in self._before}
        except StoreError:
            self._damaged.append("execution.json")

    def plan(self, workers: int, least: float = 0.0) -> list[Task]:
        """The next batch of tasks; empty when all is handed out, for now or for good.

        As long as a race has no leader, batches are shorter than ``batch_seconds``, since each result may
        then change what is worth computing.
        """
        self._workers = workers
        seconds = batch_seconds(self._left or inf, workers, least)
        if self._estimates is None and not self._decided():
            early = LEADERLESS_SHARE * batch_seconds(0.0, workers, least)
            return self._plan_selection(seconds if self.schedule.leading() else early)
        if self._estimates is None:
            self._estimates = self._estimate_tasks()
        return self._fill(self._estimates, seconds)

    def add(self, outcome: Outcome) -> None:
        """Add what a batch gave back.

        Raises:
            RunError: a record differs from one already held: the computation was not deterministic.
        """
        places, new = self._take(outcome.records, outcome.failures)
        for member in outcome.members:
            self._members[Triple(member.C, member.gamma, member.k), member.mc_index] = member
        selecting = places.size[~places.estimate]
        if len(selecting):
            self._cost += float(self._cell_cost[selecting].sum())
            self._seconds += outcome.seconds
        self._fits += outcome.fits
        self._working += outcome.seconds
        self._solving += outcome.solving
        self._peak = max(self._peak, outcome.peak)
        if self._decided() or monotonic() - self._forecast_at > FORECAST_SECONDS:
            self._forecast_at = monotonic()
            self._left = self.forecast()
        self._unsaved.append((outcome.records[new], outcome.failures))
        now = monotonic()
        if now - self._saved_at > max(FLUSH_SECONDS, FLUSH_SHARE * (now - self._opened_at)):
            self.flush()

    def forecast(self) -> float:
        """Seconds of selecting that are expected to be left for one worker: 0 when all is decided."""
        return 0.0 if self._decided() else self.schedule.forecast() * self.rate()

    def rate(self) -> float:
        """Seconds of work for a unit of cost, a cell and a squared training row; inf when not known yet."""
        return self._seconds / self._cost if self._cost else inf

    def progress(self) -> Progress:
        """Where the run stands."""
        planned = computed = failed = dropped = 0
        for j, fold in enumerate(self.selection.sizes):
            alive, lost = self.selection.alive(j), fold.blocked & (fold.low <= self.selection.threshold(j))
            unknown = fold.counts == UNKNOWN
            planned += unknown.size
            failed += int(np.sum((fold.counts == FAILED) | (unknown & lost)))
            computed += int(np.sum(fold.counts >= 0))
            dropped += int(np.sum(unknown & ~alive & ~lost))
        leader = self.selection.winner()
        best = (triple_of(self.study, self.sizes, leader), leader.l_ms) if leader else None
        return Progress(
            planned,
            computed,
            failed,
            dropped,
            capped=self.ledger.capped(),
            fits=self._fits,
            spent=self._before["worker_seconds"] + self._working,
            left=self._left,
            best=best,
            workers=self._workers,
        )

    def flush(self) -> None:
        """Write what has come in since the last time."""
        if self.folder is not None and self._unsaved:
            records = np.concatenate([records for records, _ in self._unsaved])
            failures = [failure for _, failed in self._unsaved for failure in failed]
            if len(records) or failures:
                self.folder.append(records, failures, self.study, self.run_id)
        self._unsaved = []
        self._saved_at = monotonic()

    def finish(self, nested: Ensemble | None = None) -> Settled | None:
        """Settle the winner, and write triples and models, those of the nested ensemble with them.

        None where work is left, since an aggregator died with what had come in: ``plan`` hands it out again.

        Raises:
            RunError: no triple could be completed, or the winner could not be refitted.
        """
        self.flush()
        if not self._decided():
            return None
        winner = self.selection.winner()
        if winner is None:
            raise RunError(f"no triple could be completed: {self._first_failure()}")
        triple = triple_of(self.study, self.sizes, winner)
        ensemble = self._ensemble(winner)
        if ensemble is None and self._estimates is None:
            return None
        if ensemble is None:
            raise RunError(f"the winner could not be refitted on every split: {self._first_failure()}")
        triples = self.triples()
        provisional = "failed" in triples["state"].to_pylist()
        digests = {"data": self.table.digest}
        if self.folder is not None:
            digests |= self.folder.write_results(triples, ensemble, nested, self.table, self.run_id)
        certificate = certify(
            self.study, self.table, self.run_id, triple, winner.l_ms, ensemble, nested, provisional, digests
        )
        finished = Finished(triples, ensemble, certificate, nested)
        return Settled(finished, self._reported(), self.account())

    def account(self) -> Account:
        """What the run has cost, in all its sessions, and what failed."""
        at = self.progress()
        cells = Cells(planned=at.planned, computed=at.computed, dropped=at.dropped, failed=at.failed)
        seconds = self._before["seconds"] + monotonic() - self._opened_at
        return {
            "seconds": seconds,
            "fits": int(self._before["fits"]) + self._fits,
            "worker_seconds": self._before["worker_seconds"] + self._working,
            "solver_seconds": self._before["solver_seconds"] + self._solving,
            "worker_bytes": self._peak,
            "environment": environment(),
            "damaged": self._damaged,
            "failures": [(*failure.path, failure.traceback) for failure in self.failures()],
            "cells": cells,
            "capped": at.capped,
        }

    def triples(self) -> pa.Table:
        """What the records held say of each triple."""
        return triple_table(self.study, self.sizes, self.selection, self.ledger.estimate_counts())

    def write_end(self, finished: Finished, execution: dict[str, Any]) -> None:
        """Write certificate, account and manifest: the run is finished."""
        if self.folder is not None:
            self.folder.write_end(finished.certificate, execution)

    def close(self) -> None:
        """Write what is unsaved, where the folder says whose it is, and let it go whatever happens."""
        if self.folder is None or not self.folder.held:
            return
        try:
            if self._begun:
                self.flush()
            if self._begun and not self.folder.finished:
                self.folder.write_execution(self.account())
        finally:
            self.folder.release()

    def check_held(self) -> None:
        """Raise RunError where the folder is no longer in its place."""
        if self.folder is not None:
            self.folder.check_held()

    def failures(self) -> list[Failure]:
        """Paths that failed."""
        return list(self._failures.values())

    def _reported(self) -> dict[int, Ensemble]:
        found: dict[int, Ensemble] = {}
        for size, leader in zip(self.sizes, self.selection.leaders, strict=True):
            for k in set(size.k_values) & set(self.study.report_k):
                if leader is not None and (ensemble := self._ensemble(leader)) is not None:
                    found[k] = ensemble
        return found

    def _ensemble(self, leader: Leader) -> Ensemble | None:
        """The members of a leader; None where one is missing."""
        triple = triple_of(self.study, self.sizes, leader)
        splits = range(self.sizes[leader.size].n_splits)
        if any((triple, i) not in self._members for i in splits):
            return None
        return Ensemble(tuple(self._members[triple, i] for i in splits))

    def _decided(self) -> bool:
        if self._looked != self.selection.version:
            self._looked = self.selection.version
            self._open_left = any(self.selection.lowest(j) < inf for j in range(len(self.sizes)))
        return not self._open_left

    def _plan_selection(self, seconds: float) -> list[Task]:
        jobs = iter(self.schedule.next, None)
        tasks = (Task(Stage.SELECT, self.sizes[job.size].k, job.mc_index, job.paths) for job in jobs)
        return self._fill(tasks, seconds)

    def _fill(self, tasks: Iterator[Task], seconds: float) -> list[Task]:
        """Tasks for about so many seconds, at least one if there is any."""
        batch: list[Task] = []
        expected = 0.0
        for task in tasks:
            batch.append(task)
            size = self.sizes[self.ledger.size_of[task.k]]
            rows = size.n_train if task.stage is Stage.SELECT else size.n_train + size.n_select
            cost = float(rows) ** 2 * sum(n_C for _, n_C in task.paths)
            expected += cost * self.rate() if self._cost else inf
            if expected >= seconds:
                break
        return batch

    def _estimate_tasks(self) -> Iterator[Task]:
        """Refit the winner and the leaders of reported k; everything, if exhaustive."""
        winner = self.selection.winner()
        if self.study.exhaustive:
            every = tuple((g, len(self.study.C)) for g in range(len(self.study.gamma)))
            known = self.ledger.estimate_counts()
            for j, size in enumerate(self.sizes):
                for i in range(size.n_splits):
                    if j not in known or np.any(known[j][i] == UNKNOWN):
                        yield Task(Stage.ESTIMATE, size.k, i, every)
        reported = (self.selection.leaders[j] for j in sorted(self.selection.own))
        for leader in dict.fromkeys([winner, *reported]):
            if leader is not None:
                for i in range(self.sizes[leader.size].n_splits):
                    paths = ((leader.gamma, leader.C + 1),)
                    yield Task(Stage.REFIT, self.sizes[leader.size].k, i, paths)

    def _take(self, records: Records, failures: Iterable[Failure]) -> tuple[Places, NDArray[np.bool_]]:
        """Enter records and failures; the places of the records, and which of them are new."""
        places, new = self.ledger.enter(records)
        errors = records["errors_negative"] + records["errors_positive"]
        for size in np.unique(places.size[~places.estimate]).tolist():
            here = places.of_stage(False, size)
            cells = places.mc_index[here], places.gamma[here], places.C[here]
            self.selection.enter(size, *cells, errors[here])
            self.schedule.mark_cells(size, *cells)
        for estimate, path in [key for key, failure in self._failures.items() if self._mended(failure)]:
            del self._failures[estimate, path]
        for failure in (failure for failure in failures if not self._mended(failure)):
            self._failures[failure.estimate, failure.path] = failure
            if not failure.estimate:
                size, gamma = self.ledger.size_of[failure.path.k], self.ledger.gamma_of[failure.path.gamma]
                marks = np.full(failure.stop, UNKNOWN, dtype=np.int32)
                marks[failure.first :] = FAILED
                self.selection.add(size, failure.path.mc_index, gamma, marks)
        self.selection.refresh()
        return places, new

    def _mended(self, failure: Failure) -> bool:
        """Whether records have since come in for what had failed."""
        gamma, k, mc_index = failure.path
        path = self.ledger.size_of[k], mc_index, self.ledger.gamma_of[gamma]
        return self.ledger.holds(failure.estimate, *path, failure.stop)

    def _first_failure(self) -> str:
        if not self._failures:
            return "no failure was recorded"
        first = self.failures()[0]
        return f"{len(self._failures)} paths failed, the first at {first.path}:\n{first.traceback}"
