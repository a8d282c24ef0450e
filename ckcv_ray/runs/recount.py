"""The evaluations that a finished run rests on, computed again and compared with its log.

Nothing that a folder says lowers what is compared: neither its environment nor that an evaluation failed.

They are the winner's on every split, those that prove each beaten candidate beaten, those that failed, and
the refits of the winner and of what is reported. Other records of the log have no effect on the result and
are ignored.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.core.schedule import Stage, Unit, refits
from ckcv_ray.core.selection import ABSENT, Leader
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.engine.batches import Batch, Rates, batch_seconds, fill
from ckcv_ray.engine.progress import Progress
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.records.ledger import Positions
from ckcv_ray.records.record import Outcome, Records
from ckcv_ray.study.learned import Costs


def rests_on(aggregator: Aggregator, candidates: pa.Table) -> list[Unit]:
    """Return the units that the winner, the beaten candidates and the models follow from, one path each.

    Args:
        aggregator: the run's log, replayed.
        candidates: its table of candidates, as that log gives it.
    """
    problem = aggregator.problem
    sizes = range(len(problem.sizes))
    units = [unit for j in sizes for unit in _selected(aggregator, candidates, j)]
    if problem.study.exhaustive:
        units += [
            Unit(Stage.ESTIMATE, j, i, (path,))
            for j in sizes
            for i in range(problem.sizes[j].n_splits)
            for path in enumerate(problem.learner.lengths)
        ]
    for leader in aggregator.leaders():
        units += refits(leader, problem.sizes[leader.size].n_splits)
    return units


def sample(units: Sequence[Unit], share: float) -> list[Unit]:
    """Return a random sample of the units, at least one and in their order; it differs at each call."""
    if share >= 1:
        return list(units)
    rng = np.random.default_rng(np.random.SeedSequence())
    chosen = rng.permutation(len(units))[: max(1, round(share * len(units)))]
    return [units[i] for i in np.sort(chosen)]


class Recount:
    """Units to compute again, and the comparison of their outcomes with the log.

    Args:
        aggregator: the run's log, replayed.
        winner: its winner.
        units: what to compute again; units of one stage and split are adjacent.

    Attributes:
        planned, done, failed: numbers of evaluations.
        differences: what differs, a sentence each.
        unverified: what could not be computed again, a sentence each.
        members: the winner's models.
    """

    def __init__(self, aggregator: Aggregator, winner: Leader, units: Sequence[Unit]) -> None:
        self._aggregator, self._ledger = aggregator, aggregator.ledger
        self._winner = aggregator.problem.candidate(winner)
        self._units = _grouped(units)
        self._rates = Rates(len(aggregator.problem.learners))
        self._cost = sum(map(self._cost_of_unit, units), np.zeros(len(self._rates.cost)))
        self._workers = 1
        self.planned, self.done, self.failed = sum(unit.evaluations for unit in units), 0, 0
        self.differences, self.unverified = list[str](), list[str]()
        self.members: list[Member] = []

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of work; empty if all of it has been given out."""
        self._workers = workers
        seconds = batch_seconds(self._left(), workers, least)
        seconds_for = self._rates.seconds_for
        return fill(self._units, lambda unit: seconds_for(self._cost_of_unit(unit)), seconds)

    def add(self, outcome: Outcome) -> None:
        """Compare the outcome of a batch with the log, and keep the models of the winner."""
        self._rates.add(outcome.seconds, self._cost_of(outcome.records), outcome.by_learner)
        self.done += len(outcome.records)
        self.differences += self._contradictions(outcome.records)
        for failure in outcome.failures:
            self.failed += failure.stop - failure.first
            if self._ledger.has_any(failure):  # what also failed in the run agrees with the log
                reason = failure.traceback.strip().splitlines()[-1]
                position = dict(zip(failure._fields[1:4], failure[1:4], strict=True))
                self.unverified.append(f"{position} could not be computed again here: {reason}")
        setting_of = self._aggregator.problem.learner.setting_of
        for member in outcome.members:
            if (setting_of(member.model), member.k) == self._winner:
                self.members.append(member)

    def progress(self) -> Progress:
        """Return the progress of the work."""
        return Progress(
            self.planned, self.done, self.failed, fits=self.done, left=self._left(), workers=self._workers
        )

    def _left(self) -> float:
        return self._rates.seconds_for(np.maximum(self._cost - self._rates.cost, 0.0))

    def _cost_of_unit(self, unit: Unit) -> Costs:
        paths, scored = zip(
            *((path, length - unit.first(length)) for path, length in unit.paths), strict=True
        )
        return self._aggregator.problem.cost_of_fits(unit.stage, unit.size, paths, scored)

    def _cost_of(self, records: Records) -> Costs:
        problem = self._aggregator.problem
        cost = np.zeros(len(problem.learners))
        for estimate, size in self._ledger.places(records).groups():
            here = (records["estimate"] == estimate) & (records["size"] == size)
            stage = Stage.REFIT if estimate else Stage.SELECT
            cost += problem.cost_of_fits(stage, size, records["path"][here], np.ones(np.sum(here)))
        return cost

    def _contradictions(self, records: Records) -> Iterator[str]:
        computed = np.concatenate([records["totals"], records["status"][:, None]], axis=1).astype(np.int64)
        logged = self._ledger.held(records)
        for i in np.flatnonzero((computed != logged).any(axis=1)):
            key = {name: records[name][i].item() for name in Positions._fields[1:]}
            stage = "estimate" if records["estimate"][i] else "select"
            before = f"the log has {logged[i].tolist()}" if logged[i, 0] >= 0 else "the log has none"
            again = f"computed again {computed[i].tolist()}"
            yield f"errors by class and status of {key} on the {stage} set: {again}, {before}"


def _grouped(units: Sequence[Unit]) -> Iterator[Unit]:
    """Merge adjacent units of one stage, fold size and split into one."""
    for (stage, size, split), group in groupby(units, lambda unit: unit[:3]):
        yield Unit(stage, size, split, tuple(path for unit in group for path in unit.paths))


def _selected(aggregator: Aggregator, candidates: pa.Table, j: int) -> Iterator[Unit]:
    """Yield the paths on one fold size's select sets, on each split only as far as some candidate needs."""
    fold, size = aggregator.selection.sizes[j], aggregator.problem.sizes[j]
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
