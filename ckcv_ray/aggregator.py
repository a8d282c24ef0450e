"""The one place where records come together: it adds them, says what to compute next, and writes.

A plain class, idempotent: the same record again is ignored, a different one under the same key stops the
run. The Ray backend wraps it in an actor; the serial one calls it directly.
"""

from collections.abc import Iterator
from math import inf
from pathlib import Path as FilePath
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.certificate import certify
from ckcv_ray.core.schedule import Schedule
from ckcv_ray.core.selection import FAILED, UNKNOWN
from ckcv_ray.core.svm import Status
from ckcv_ray.data import Table
from ckcv_ray.ensemble import Ensemble, Member
from ckcv_ray.errors import RunError, StoreError
from ckcv_ray.store import Finished, RunFolder
from ckcv_ray.study import Cell, Path, Stage, Study, Task, Triple, run_id
from ckcv_ray.triples import make_selection, triple_of, triple_table
from ckcv_ray.worker import RECORD, STATUSES, Failure, Outcome, Records

FLUSH_SECONDS = 2.0
BATCH_SECONDS = 1.0
BATCHES_LEFT = 50
KEPT = [("errors_negative", np.int32), ("errors_positive", np.int32), ("n_iter", np.int64), ("status", np.int8)]
VALUES = [name for name, _ in KEPT]
Kept = NDArray[np.void]


class Progress(NamedTuple):
    """A moment of a run.

    Attributes:
        planned: select cells of the whole study.
        computed, failed, dropped: of those, done, failed, and by now proven not to matter.
        capped: fits, of both stages, that ended at the iteration cap.
        fits: machines fitted so far by this run.
        left: seconds of work expected on one worker; 0 when decided, inf when not known yet.
        best: the best complete triple so far and its l_ms, or None.
    """

    planned: int
    computed: int
    failed: int
    dropped: int
    capped: int
    fits: int
    left: float
    best: tuple[Triple, float] | None


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
        self._size_of = {size.k: j for j, size in enumerate(self.sizes)}
        self._position = {
            name: {value: i for i, value in enumerate(grid)}
            for name, grid in (("C", study.C), ("gamma", study.gamma))
        }
        self._kept: dict[tuple[bool, int], Kept] = {}
        self._failures: dict[tuple[bool, Path], Failure] = {}
        self._members: dict[tuple[Triple, int], Member] = {}
        self._unsaved: list[tuple[Records, tuple[Failure, ...]]] = []
        self._opened_at = self._saved_at = monotonic()
        self._before = {"seconds": 0.0, "fits": 0}
        self._estimates: Iterator[Task] | None = None
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
        identity = self.folder.identity()
        if identity is None:
            self.folder.begin(self.study, self.table, self.run_id)
        elif identity.run_id != self.run_id:
            raise StoreError(f"{str(self.folder.path)!r} holds run {identity.run_id}, not {self.run_id}")
        else:
            self._before |= self.folder.execution()
            for records, failures in self.folder.cells(identity):
                self._take(records, failures)
            self.selection.refresh()
            self.schedule = Schedule(self.selection, self.schedule.n_train)

    def plan(self, workers: int) -> list[Task]:
        """The next batch of tasks; empty when all is handed out, for now or for good.

        A batch is meant to last a second, or a fiftieth of what is left where that is less.
        """
        if self._estimates is None and not self._decided():
            return self._plan_selection(workers)
        if self._estimates is None:
            self._estimates = self._estimate_tasks()
        return self._fill(self._estimates, workers, inf)

    def add(self, outcome: Outcome) -> Progress:
        """Add what a batch gave back.

        Raises:
            RunError: a record differs from one already held: the computation was not deterministic.
        """
        new = self._take(outcome.records, list(outcome.failures))
        for member in outcome.members:
            self._members[Triple(member.C, member.gamma, member.k), member.mc_index] = member
        self.selection.refresh()
        n_train = {size.k: float(size.n_train) for size in self.sizes}
        selecting = outcome.records[~outcome.records["estimate"]]
        if len(selecting):
            self._cost += sum(n_train[int(k)] ** 2 for k in selecting["k"])
            self._seconds += outcome.seconds
        self._fits += outcome.fits
        self._left = self.schedule.forecast() * self._rate()
        self._unsaved.append((new, outcome.failures))
        if monotonic() - self._saved_at > FLUSH_SECONDS:
            self.flush()
        return self.progress()

    def progress(self) -> Progress:
        """Where the run stands."""
        planned = computed = failed = dropped = 0
        for j, fold in enumerate(self.selection.sizes):
            unknown = fold.counts == UNKNOWN
            planned += unknown.size
            failed += int(np.sum(fold.counts == FAILED))
            computed += int(np.sum(fold.counts >= 0))
            dropped += int(np.sum(unknown & ~self.selection.alive(j)))
        capped = STATUSES.index(Status.CAPPED)
        n_capped = sum(int(np.sum(kept["status"] == capped)) for kept in self._kept.values())
        leader = self.selection.winner()
        best = (triple_of(self.study, self.sizes, leader), leader.l_ms) if leader else None
        return Progress(planned, computed, failed, dropped, n_capped, self._fits, self._left, best)

    def flush(self) -> None:
        """Write what has come in since the last time."""
        unsaved, self._unsaved = self._unsaved, []
        self._saved_at = monotonic()
        records = np.concatenate([np.empty(0, RECORD), *(records for records, _ in unsaved)])
        failures = [failure for _, failed in unsaved for failure in failed]
        if self.folder is not None and (len(records) or failures):
            self.folder.append(records, failures, self.study, self.run_id)

    def finish(self) -> Finished:
        """Settle the winner, and write triples and models.

        Raises:
            RunError: no triple could be completed, or the winner could not be refitted.
        """
        self.flush()
        winner = self.selection.winner()
        if winner is None:
            raise RunError(f"no triple could be completed: {self._first_failure()}")
        triple = triple_of(self.study, self.sizes, winner)
        splits = range(self.sizes[winner.size].n_splits)
        if any((triple, i) not in self._members for i in splits):
            raise RunError(f"the winner could not be refitted on every split: {self._first_failure()}")
        ensemble = Ensemble(tuple(self._members[triple, i] for i in splits))
        estimates = {j: _totals(kept) for (estimate, j), kept in self._kept.items() if estimate}
        triples = triple_table(self.study, self.sizes, self.selection, estimates)
        provisional = "failed" in triples["state"].to_pylist()
        digests = {"data": self.table.digest}
        if self.folder is not None:
            digests |= self.folder.write_results(triples, ensemble, self.table, self.run_id)
        certificate = certify(
            self.study, self.table, self.run_id, triple, winner.l_ms, ensemble, provisional, digests
        )
        return Finished(triples, ensemble, certificate)

    def account(self) -> dict[str, Any]:
        """What the run has cost, in all its sessions."""
        at = self.progress()
        cells = {name: getattr(at, name) for name in ("planned", "computed", "dropped", "failed")}
        seconds = self._before["seconds"] + monotonic() - self._opened_at
        return {"seconds": seconds, "fits": self._before["fits"] + self._fits, "cells": cells, "capped": at.capped}

    def write_end(self, finished: Finished, execution: dict[str, Any]) -> None:
        """Write certificate, account and manifest: the run is finished."""
        if self.folder is not None:
            self.folder.write_end(finished.certificate, execution)

    def close(self) -> None:
        """Write what is unsaved and let the folder go."""
        if self.folder is not None:
            self.flush()
            if not self.folder.finished:
                self.folder.write_execution(self.account())
            self.folder.release()

    def failures(self) -> list[Failure]:
        """Paths that failed."""
        return list(self._failures.values())

    def _decided(self) -> bool:
        return not any(self.selection.alive(j).any() for j in range(len(self.sizes)))

    def _rate(self) -> float:
        return self._seconds / self._cost if self._cost else inf

    def _plan_selection(self, workers: int) -> list[Task]:
        jobs = iter(self.schedule.next, None)
        tasks = (Task(Stage.SELECT, self.sizes[job.size].k, job.mc_index, job.paths) for job in jobs)
        most = inf if self.schedule.leading() else 1
        return self._fill(tasks, workers, most)

    def _fill(self, tasks: Iterator[Task], workers: int, most: float) -> list[Task]:
        """Tasks for about one batch, at most ``most`` and at least one if there is any."""
        seconds = min(BATCH_SECONDS, self._left / workers / BATCHES_LEFT) if self._left else BATCH_SECONDS
        batch: list[Task] = []
        expected = 0.0
        for task in tasks:
            batch.append(task)
            size = self.sizes[self._size_of[task.k]]
            rows = size.n_train if task.stage is Stage.SELECT else size.n_train + size.n_select
            cost = float(rows) ** 2 * sum(n_C for _, n_C in task.paths)
            expected += cost * self._rate() if self._cost else inf
            if expected >= seconds or len(batch) >= most:
                break
        return batch

    def _estimate_tasks(self) -> Iterator[Task]:
        """Refit the winner and the leaders of reported k; everything, if exhaustive."""
        winner = self.selection.winner()
        if self.study.exhaustive:
            every = tuple((g, len(self.study.C)) for g in range(len(self.study.gamma)))
            for j, size in enumerate(self.sizes):
                known = self._kept.get((True, j))
                for i in range(size.n_splits):
                    if known is None or np.any(known[i]["status"] < 0):
                        yield Task(Stage.ESTIMATE, size.k, i, every)
        reported = (self.selection.leaders[j] for j in sorted(self.selection.own))
        for leader in dict.fromkeys([winner, *reported]):
            if leader is not None:
                for i in range(self.sizes[leader.size].n_splits):
                    paths = ((leader.gamma, leader.C + 1),)
                    yield Task(Stage.REFIT, self.sizes[leader.size].k, i, paths)

    def _take(self, records: Records, failures: list[Failure]) -> Records:
        """Enter records and failures; the records that are new."""
        new = np.zeros(len(records), dtype=bool)
        groups = _paths_of(records)
        for rows in groups:
            new[rows] = self._enter(records[rows])
        for failure in failures:
            self._failures[failure.estimate, failure.path] = failure
            if not failure.estimate:
                size = self._size_of[failure.path.k]
                gamma = self._position["gamma"][failure.path.gamma]
                marks = np.full(failure.n_C, FAILED, dtype=np.int32)
                self.selection.add(size, failure.path.mc_index, gamma, marks)
        return records[new]

    def _enter(self, path: Records) -> NDArray[np.bool_]:
        """Enter the records of one path; which of them are new."""
        first = path[0]
        estimate, size, i = bool(first["estimate"]), self._size_of[int(first["k"])], int(first["mc_index"])
        gamma = self._position["gamma"][float(first["gamma"])]
        C = np.array([self._position["C"][float(value)] for value in path["C"]])
        kept = self._kept_for(estimate, size)
        cells = kept[i, gamma][C]
        new = cells["status"] < 0
        given = np.array([tuple(row) for row in path[VALUES].tolist()], dtype=KEPT)
        if np.any(differs := ~new & (cells != given)):
            where = int(np.argmax(differs))
            cell = Cell(float(path["C"][where]), float(first["gamma"]), int(first["k"]), i)
            raise RunError(
                f"two records of {cell} differ, {cells[where]} and {given[where]} ({', '.join(VALUES)}): "
                "the computation was not deterministic"
            )
        kept[i, gamma, C] = given
        if not estimate:
            known = kept[i, gamma]
            totals = np.where(known["status"] >= 0, known["errors_negative"] + known["errors_positive"], UNKNOWN)
            self.selection.add(size, i, gamma, totals[: int(C.max()) + 1].astype(np.int32))
        return new

    def _kept_for(self, estimate: bool, size: int) -> Kept:
        if (estimate, size) not in self._kept:
            shape = (self.sizes[size].n_splits, len(self.study.gamma), len(self.study.C))
            kept = np.zeros(shape, KEPT)
            kept["status"] = -1
            self._kept[estimate, size] = kept
        return self._kept[estimate, size]

    def _first_failure(self) -> str:
        if not self._failures:
            return "no failure was recorded"
        first = self.failures()[0]
        return f"{len(self._failures)} paths failed, the first at {first.path}:\n{first.traceback}"


def _paths_of(records: Records) -> list[slice]:
    """Runs of records that share a path."""
    if not len(records):
        return []
    keys = records[["estimate", "gamma", "k", "mc_index"]]
    starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1), len(records)]
    return [slice(a, b) for a, b in zip(starts[:-1], starts[1:], strict=True)]


def _totals(kept: Kept) -> NDArray[np.int32]:
    both = kept["errors_negative"] + kept["errors_positive"]
    return np.where(kept["status"] >= 0, both, UNKNOWN).astype(np.int32)

