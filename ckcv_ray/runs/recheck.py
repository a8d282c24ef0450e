"""The evaluations that a finished run rests on, computed again and compared with its log.

Nothing that a folder says lowers what is compared: neither its environment nor that an evaluation failed.

They are the winner's on every split, those that prove each beaten candidate beaten, those that failed, and
the refits of the winner and of what is reported. Other records of the log have no effect on the result and
are ignored.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.core.schedule import Stage, Unit, refits
from ckcv_ray.core.selection import ABSENT
from ckcv_ray.engine.progress import Progress
from ckcv_ray.engine.queue import ListQueue
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.records.ledger import ABSENT as NO_RECORD
from ckcv_ray.records.ledger import Ledger
from ckcv_ray.records.record import Outcome, Records
from ckcv_ray.study import Problem
from ckcv_ray.study import listed as format_setting


def rests_on(queue: RaceQueue, candidates: pa.Table) -> list[Unit]:
    """Return the units that the winner, the beaten candidates and the models follow from, one path each.

    Args:
        queue: the run's log, replayed.
        candidates: its table of candidates, as that log gives it.
    """
    problem = queue.problem
    sizes = range(len(problem.sizes))
    units = [unit for j in sizes for unit in _selected(queue, candidates, j)]
    if problem.study.exhaustive:
        units += [
            Unit(Stage.ESTIMATE, j, i, (path,))
            for j in sizes
            for i in range(problem.sizes[j].n_splits)
            for path in enumerate(problem.learner.space.lengths)
        ]
    for leader in queue.leaders():
        units += refits(leader, problem.sizes[leader.size].n_splits)
    return units


def sample(units: Sequence[Unit], share: float) -> list[Unit]:
    """Return a random sample of the units, at least one and in their order; it differs at each call."""
    if share >= 1:
        return list(units)
    rng = np.random.default_rng(np.random.SeedSequence())
    chosen = rng.permutation(len(units))[: max(1, round(share * len(units)))]
    return [units[i] for i in np.sort(chosen)]


class RecheckQueue(ListQueue):
    """Units to compute again, and the comparison of their outcomes with the log.

    Args:
        problem: what the units are of.
        log: the records of the run.
        units: what to compute again.
        tolerance: relative difference up to which totals are equal.
        trusted: positions of totals that cannot be computed again.

    Attributes:
        planned, done, failed: numbers of evaluations.
        last_bits: number of evaluations that are equal up to the tolerance alone.
        differences: what differs, a sentence each.
        unverified: what could not be computed again, a sentence each.
        records: what was computed, without what is trusted.
        members: the models that came back.
    """

    def __init__(
        self,
        problem: Problem,
        log: Ledger,
        units: Sequence[Unit],
        tolerance: float = 0.0,
        trusted: Sequence[int] = (),
    ) -> None:
        super().__init__(problem, units)
        self.log, self.tolerance, self.trusted = log, tolerance, list(trusted)
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
        logged, records = self.log.held(outcome.records), outcome.records.copy()
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
        before = f"the log has {logged.tolist()}" if logged[-1] != NO_RECORD else "the log has none"
        again = f"totals and status, computed again, are {computed.tolist()}"
        return f"{at}, {format_setting(setting)}: {again}; {before}"

    def describe_split(self, estimate: bool, size: int, split: int) -> str:
        """Return a phrase that names the scored rows of a split."""
        of_set = "estimate" if estimate else "select"
        return f"{of_set} set of split {split}, k = {self.problem.sizes[size].k}"


def merge(units: Iterable[Unit]) -> Iterator[Unit]:
    """Merge adjacent units of one stage, fold size and split into one."""
    for (stage, size, split), group in groupby(units, lambda unit: unit[:3]):
        yield Unit(stage, size, split, tuple(path for unit in group for path in unit.paths))


def _selected(queue: RaceQueue, candidates: pa.Table, j: int) -> Iterator[Unit]:
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
