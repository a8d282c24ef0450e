"""Evaluations of a finished run, computed again and compared with its log.

Nothing that a folder says lowers what is compared: neither its environment nor that an evaluation failed.

Without a certification they are all of them. With one, they are those that the result rests on: the
winner's on every split, those that prove each beaten candidate beaten, those that failed, and the refits of
the winner and of what is reported. Other records of the log have no effect on the result and are ignored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.core.schedule import Stage, Unit, refits
from ckcv_ray.core.selection import ABSENT
from ckcv_ray.engine.backend import Backend, start_backend
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.full import FullQueue
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.queue import Listener, Progress, Queue
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import cut_list
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.records.record import NO_RECORD, Ledger, Outcome, Records
from ckcv_ray.runs.verification import Limit, Verification
from ckcv_ray.study.problem import OUTER, Problem, describe_setting

SECONDS = 3600.0  # that a verification may take: a folder that somebody else made may ask for any fits
ROUNDING = 1e-9  # relative: other processors round differently


@dataclass(frozen=True)
class Refit:
    """How much of what a run rests on is computed again, and by which backend."""

    share: float = 0.0  # share of the evaluations, in [0, 1]; below 1 a random sample of them
    backend: Callable[[], Backend] | None = None  # for each run; None if nothing is computed
    listen: Listener | None = None  # as for ``run_job``
    stop: Stop = lambda: False
    limit: Limit = field(default_factory=Limit)  # how long it may take

    def is_stopped(self) -> bool:
        """Return whether to stop, as ``stop`` does.

        Raises:
            LackingError: the time is over.
        """
        self.limit.check()
        return self.stop()


def list_required(queue: RaceQueue, candidates: pa.Table) -> list[Unit]:
    """Return the units that the winner, the beaten candidates and the models follow from, one path each.

    Args:
        queue: the run's log, replayed.
        candidates: its table of candidates, as that log gives it.
    """
    problem, units = queue.problem, queue.list_rounds()
    for j in range(len(problem.sizes)):
        units += _list_selected(queue, candidates, j)
    if problem.study.exhaustive:
        units += [
            Unit(Stage.ESTIMATE, j, i, (path,))
            for j, size in enumerate(problem.sizes)
            for i in range(size.n_splits)
            for path in enumerate(problem.learner.space.lengths)
        ]
    longest: dict[tuple[Any, ...], Unit] = {}
    for unit in units:  # rounds and selected candidates share paths
        ((path, length),) = unit.paths
        if length > longest.setdefault((*unit[:3], path), unit).paths[0][1]:
            longest[*unit[:3], path] = unit
    of_leaders = [unit for at in queue.leaders() for unit in refits(at, problem.sizes[at.size].n_splits)]
    return [*longest.values(), *of_leaders]


def sample(units: Sequence[Unit], part: float) -> list[Unit]:
    """Return a random sample of the units, at least one and in their order; it differs at each call."""
    if part >= 1:
        return list(units)
    rng = np.random.default_rng(np.random.SeedSequence())
    chosen = rng.permutation(len(units))[: max(1, round(part * len(units)))]
    return [units[i] for i in np.sort(chosen)]


def list_computed(queue: FullQueue) -> list[Unit]:
    """Return a unit for each split of a procedure: each path as far as it has scores, or failed."""
    units = []
    for size in range(len(queue.problem.sizes)):
        ends = queue.ledger.known(size).sum(axis=2)  # records are of the first steps of a path
        for failure in queue.failures():
            if failure.size == size:
                at = failure.split, failure.path
                ends[at] = max(ends[at], failure.stop)
        for split, row in enumerate(ends.tolist()):
            if paths := tuple((path, length) for path, length in enumerate(row) if length):
                units.append(Unit(Stage.SELECT, size, split, paths))
    return units


class RecheckQueue(Queue):
    """Units to compute again, and the comparison of their outcomes with the log.

    Counts have to be equal, and scores up to rounding; those of functions of the user, which a folder does
    not keep, are taken from the log.

    Args:
        problem: what the units are of.
        log: the records of the run.
        units: what to compute again.

    Attributes:
        planned, done, failed: numbers of evaluations.
        last_bits: number of evaluations that are equal up to rounding alone.
        differences: what differs, a sentence each.
        unverified: what could not be computed again, a sentence each.
        records: what was computed, without what is trusted.
        members: the models that came back.
    """

    def __init__(self, problem: Problem, log: Ledger, units: Sequence[Unit]) -> None:
        names = problem.study.functions  # of the user: a folder does not keep them, so they give no value
        scores = (
            replace(score, of=lambda y, answers: nan) if score.name in names else score
            for score in problem.scores
        )
        super().__init__(replace(problem, scores=tuple(scores)) if names else problem, units)
        self.log, self.tolerance = log, ROUNDING if problem.scores else 0.0
        self.trusted = [problem.columns[name].start for name in names]
        self.planned, self.done, self.failed = sum(unit.evaluations for unit in units), 0, 0
        self.last_bits = 0
        self.differences, self.unverified = list[str](), list[str]()
        self.records: list[Records] = []
        self.members: list[Member] = []

    def take(self, outcome: Outcome) -> Records:
        """Compare the outcome of a batch with the log."""
        self.done += len(outcome.records)
        self.members += outcome.members
        for failure in outcome.failures:
            self.failed += failure.stop - failure.first
            if self.log.has_any(failure):  # what also failed in the run agrees with the log
                at = self.describe_split(failure.estimate, failure.size, failure.split)
                reason = failure.traceback.strip().splitlines()[-1]
                self.unverified.append(f"{at} could not be computed again here: {reason}")
        logged, records = self.log.look_up(outcome.records), outcome.records.copy()
        records["totals"][:, self.trusted] = logged[:, self.trusted]
        self.records.append(records)
        computed = np.concatenate([records["totals"], records["status"][:, None]], axis=1)
        equal = (computed == logged) | (np.isnan(computed) & np.isnan(logged))
        close = equal | np.isclose(computed, logged, self.tolerance, 0.0) if self.tolerance else equal
        self.last_bits += int(np.sum(close.all(axis=1) & ~equal.all(axis=1)))
        for i in np.flatnonzero(~close.all(axis=1)):
            self.differences.append(self.describe(records[i], computed[i], logged[i]))
        return outcome.records

    def progress(self) -> Progress:
        """Return the progress of the work."""
        planned, left = max(self.planned, self.done + self.failed), self.expect_left()
        return Progress(planned, self.done, self.failed, fits=self.fits, left=left, workers=self.workers)

    def describe(self, record: Any, computed: Any, logged: Any) -> str:
        """Return a sentence about an evaluation that differs, given its totals and status."""
        setting = self.problem.learner.space.setting(int(record["path"]), int(record["step"]))
        at = self.describe_split(bool(record["estimate"]), int(record["size"]), int(record["split"]))
        at = f"{at}, {describe_setting(setting)}"
        if not self.problem.scores:
            before = f"the log has {logged.tolist()}" if logged[-1] != NO_RECORD else "the log has none"
            return f"{at}: totals and status, computed again, are {computed.tolist()}; {before}"
        if logged[-1] == NO_RECORD:
            return f"{at}: the log has no scores; computed again there are some"
        name, part = next(
            (name, part)
            for name, part in [*self.problem.columns.items(), ("its status", slice(-1, None))]
            if not np.allclose(computed[part], logged[part], ROUNDING, 0.0, equal_nan=True)
        )
        return f"{at}: {name}, computed again, is {computed[part][0]:g}; the log has {logged[part][0]:g}"

    def describe_split(self, estimate: bool, size: int, split: int) -> str:
        """Return a phrase that names the scored rows of a split."""
        if (permuted := self.problem.find_permutation(size, split)) is not None:
            return f"split {permuted[1]} of permutation {permuted[0]}"
        if self.problem.scores:
            return f"{'split' if size == OUTER else 'inner split'} {split}"
        return (
            f"{'estimate' if estimate else 'select'} set of split {split}, k = {self.problem.folds[size].k}"
        )


def recheck(
    problem: Problem, log: Ledger, units: Sequence[Unit], refit: Refit, result: Verification
) -> RecheckQueue:
    """Compute a share of units again, and note what could not be; return the comparison with the log."""
    assert refit.backend is not None
    on_splits = groupby(sample(units, refit.share), lambda unit: unit[:3])  # they share what is prepared
    merged = [
        Unit(stage, size, split, tuple(path for unit in some for path in unit.paths))
        for (stage, size, split), some in on_splits
    ]
    again = RecheckQueue(problem, log, merged)
    with start_backend(refit.backend, share(again.problem)) as backend:
        work(backend, again, refit.listen, refit.is_stopped)
    result.unverified += cut_list(again.unverified, "other evaluations could not be computed again here")
    return again


def _list_selected(queue: RaceQueue, candidates: pa.Table, j: int) -> Iterator[Unit]:
    """Yield the paths on one fold size's select sets, on each split only as far as some candidate needs."""
    fold, size = queue.selection.sizes[j], queue.problem.sizes[j]
    rows = candidates.filter(pc.equal(candidates["k_first"], size.k_first))
    needed = np.zeros(fold.low.shape, np.int64)
    failed = pc.equal(rows["state"], "failed").to_numpy()
    at = rows["path"].to_numpy(), rows["step"].to_numpy()
    needed[at] = rows["splits"].to_numpy() + failed  # and the split that failed
    exists = fold.values[0] != ABSENT
    for i in range(size.n_splits):
        wanted = (needed > i) & exists
        lengths = np.max(np.where(wanted, np.arange(1, wanted.shape[1] + 1), 0), axis=1)
        for path in np.flatnonzero(lengths).tolist():
            yield Unit(Stage.SELECT, j, i, ((path, int(lengths[path])),))
