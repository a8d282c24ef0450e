"""The evaluations that a finished run rests on, computed again and held against its log.

They are the winner's on every split, of each beaten candidate those that prove it beaten, what failed,
and the refits of the winner and of what is reported. Other records of the log serve for nothing and are left
alone.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.engine.aggregator import Aggregator, Progress, batch_seconds
from ckcv_ray.engine.evaluate import Outcome
from ckcv_ray.learners.ensemble import Ensemble, Member
from ckcv_ray.storage.log import Records
from ckcv_ray.study import Cell, Stage, Task

COMPARED = ("errors_negative", "errors_positive", "status")  # of a record; iterations depend on the processor


class Unit(NamedTuple):
    """A path to compute again: its stage, position of the fold size, split, position of gamma, and length."""

    stage: Stage
    size: int
    mc_index: int
    gamma: int
    n_C: int

    @property
    def evaluations(self) -> int:
        """How many are counted on its way."""
        return 1 if self.stage is Stage.REFIT else self.n_C


def rests_on(aggregator: Aggregator, triples: pa.Table) -> list[Unit]:
    """List what the winner, the beaten candidates and the models follow from.

    Args:
        aggregator: the run's log, played back.
        triples: its table of triples, which that log gives.
    """
    units = [unit for j in range(len(aggregator.sizes)) for unit in _selected(aggregator, triples, j)]
    study, sizes, selection = aggregator.study, aggregator.sizes, aggregator.selection
    if study.exhaustive:
        units += [
            Unit(Stage.ESTIMATE, j, i, g, len(study.C))
            for j, size in enumerate(sizes)
            for i in range(size.n_splits)
            for g in range(len(study.gamma))
        ]
    reported = (selection.leaders[j] for j in sorted(selection.own))
    for leader in dict.fromkeys([selection.winner(), *reported]):
        if leader is not None:
            splits = range(sizes[leader.size].n_splits)
            units += [Unit(Stage.REFIT, leader.size, i, leader.gamma, leader.C + 1) for i in splits]
    return units


def drawn(units: Sequence[Unit], share: float) -> list[Unit]:
    """A random share of the units, at least one, drawn afresh at each call; in their order."""
    if share >= 1:
        return list(units)
    rng = np.random.default_rng(np.random.SeedSequence())
    chosen = rng.permutation(len(units))[: max(1, round(share * len(units)))]
    return [units[i] for i in np.sort(chosen)]


class Recount:
    """Hands out units as tasks, and compares what comes back with the log.

    Args:
        aggregator: the run's log, played back.
        ensemble: the models stored.
        units: what to compute again, of one stage and split next to each other.
        exact: whether models have to agree in every bit, as they do in one environment.
    """

    def __init__(
        self, aggregator: Aggregator, ensemble: Ensemble, units: Sequence[Unit], exact: bool
    ) -> None:
        self._sizes, self._ledger = aggregator.sizes, aggregator.ledger
        self._stored = {(m.C, m.gamma, m.k, m.mc_index): m for m in ensemble.members}
        self._exact = exact
        training = [(size.n_train, size.n_train + size.n_select) for size in self._sizes]
        self._rows = np.array(training, dtype=np.float64).T  # rows of a training set, by stage and size
        self._tasks = self._grouped(units)
        self._cost, self._cost_done = sum(self._cost_of(unit) for unit in units), 0.0
        self._seconds, self._workers = 0.0, 1
        self.planned, self.done, self.failed = sum(unit.evaluations for unit in units), 0, 0
        self.differences: list[str] = []

    def plan(self, workers: int, least: float = 0.0) -> list[Task]:
        """Return the next batch of work; empty if all of it is handed out."""
        self._workers = workers
        seconds, expected = batch_seconds(self._left(), workers, least), 0.0
        batch: list[Task] = []
        for task, cost in self._tasks:
            batch.append(task)
            expected += cost * self._rate()
            if expected >= seconds:
                break
        return batch

    def add(self, outcome: Outcome) -> None:
        """Compare what a batch gave back."""
        self._seconds += outcome.seconds
        places = self._ledger.places(outcome.records)
        self._cost_done += float(np.sum(self._rows[places.estimate.astype(int), places.size] ** 2))
        self.done += len(outcome.records)
        self.differences += self._contradictions(outcome.records)
        for failure in outcome.failures:
            self.failed += failure.stop - failure.first
            if self._ledger.has_any(failure):  # what failed in the run, too, agrees with the log
                reason = failure.traceback.strip().splitlines()[-1]
                self.differences.append(f"{failure.path} could not be computed again: {reason}")
        for member in outcome.members:
            stored = self._stored.get((member.C, member.gamma, member.k, member.mc_index))
            if self._exact and stored is not None and not same_model(member, stored):
                self.differences.append(f"model of split {member.mc_index}: fitted again, it is another one")

    def progress(self) -> Progress:
        """How far the work has come."""
        return Progress(
            self.planned, self.done, self.failed, fits=self.done, left=self._left(), workers=self._workers
        )

    def _left(self) -> float:
        left = self._cost - self._cost_done
        return left * self._rate() if left > 0 else 0.0

    def _rate(self) -> float:
        """Seconds for a unit of cost; inf as long as it is not known."""
        return self._seconds / self._cost_done if self._cost_done else inf

    def _grouped(self, units: Sequence[Unit]) -> Iterator[tuple[Task, float]]:
        for (stage, size, mc_index), group in groupby(units, lambda unit: unit[:3]):
            listed = list(group)
            paths = tuple((unit.gamma, unit.n_C) for unit in listed)
            cost = sum(self._cost_of(unit) for unit in listed)
            yield Task(stage, self._sizes[size].k, mc_index, paths), cost

    def _cost_of(self, unit: Unit) -> float:
        return float(unit.evaluations * self._rows[int(unit.stage is not Stage.SELECT), unit.size] ** 2)

    def _contradictions(self, records: Records) -> Iterator[str]:
        made = np.stack([records[name] for name in COMPARED], axis=-1).astype(np.int64)
        held = self._ledger.held(records, COMPARED)
        for i in np.flatnonzero((made != held).any(axis=1)):
            cell = Cell(*(records[name][i].item() for name in Cell._fields))
            stage = "estimate" if records["estimate"][i] else "select"
            known = f"the log has {held[i].tolist()}" if held[i, 0] >= 0 else "the log has none"
            again = f"computed again {made[i].tolist()}"
            yield f"errors by class and status of {cell} on the {stage} set: {again}, {known}"


def same_model(a: Member, b: Member) -> bool:
    """Whether two models are equal in every bit."""
    arrays = zip((a.support, a.dual_coef, *a.scaling), (b.support, b.dual_coef, *b.scaling), strict=True)
    return a.offset == b.offset and all(np.array_equal(one, other) for one, other in arrays)


def _selected(aggregator: Aggregator, triples: pa.Table, j: int) -> Iterator[Unit]:
    """The paths on the select sets of one fold size: on each split as far as some candidate needs them."""
    study, size = aggregator.study, aggregator.sizes[j]
    shape, rows = (len(study.gamma), len(study.C)), triples.filter(pc.equal(triples["k"], size.k))
    failed = pc.equal(rows["state"], "failed").to_numpy()
    needed = (rows["splits"].to_numpy() + failed).reshape(shape)  # and the split that failed
    for i in range(size.n_splits):
        lengths = np.max(np.where(needed > i, np.arange(1, shape[1] + 1), 0), axis=1)
        yield from (Unit(Stage.SELECT, j, i, g, int(lengths[g])) for g in np.flatnonzero(lengths).tolist())
