"""Simulated outcomes of a study's units: random errors, durations as measured.

They let the driver and the queue serve more workers than the machine has: the work of these two is real,
that of the workers is slept or skipped. Each outcome is a function of its key, as a real one is.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import Evaluated, _records, evaluate, share
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.records.record import Outcome
from ckcv_ray.study.problem import Problem


@dataclass(frozen=True)
class MadeUp:
    """Durations and error rates measured on a problem.

    Attributes:
        problem: its search space has paths of one length.
        n_train: training rows of the fold sizes measured, ascending, (tried,).
        seconds: of a complete path, (tried, n_paths).
        rate: share of errors, (tried, n_paths, n_steps).
        member: one real member, used for all.
    """

    problem: Problem
    n_train: Values
    seconds: Values
    rate: Values
    member: Member

    def length(self, unit: Unit) -> float:
        """Return the seconds that a unit takes, interpolated from those measured on other sizes."""
        size, lengths = self.problem.sizes[unit.size], self.problem.learner.space.lengths
        rows = size.n_train if unit.stage is Stage.SELECT else size.n_train + size.n_select
        complete = {path: np.interp(rows, self.n_train, self.seconds[:, path]) for path, _ in unit.paths}
        return float(sum(complete[path] * length / lengths[path] for path, length in unit.paths))

    def answer(self, units: Sequence[Unit]) -> Outcome:
        """Return what a worker would, after ``length`` seconds for each unit."""
        results = [self._path(unit, path, length) for unit in units for path, length in unit.paths]
        records = _records(results, self.problem.n_totals)
        members = tuple(member for result in results for member in result.members)
        seconds = sum(self.length(unit) for unit in units)
        return Outcome(records, (), members, seconds, len(records), seconds)

    def _path(self, unit: Unit, path: int, length: int) -> Evaluated:
        size = self.problem.sizes[unit.size]
        at = int(np.argmin(np.abs(self.n_train - size.n_train)))
        rng = np.random.default_rng([unit.stage is not Stage.SELECT, size.k, unit.split, path])
        wrong = rng.binomial(size.n_select, self.rate[at, path])
        first = unit.first(length)
        totals = np.zeros((length - first, self.problem.n_totals), np.int64)
        totals[:, 0] = wrong[first:length]
        kept: tuple[Member, ...] = ()
        if unit.stage is Stage.REFIT:
            kept = (self._fitted(unit, path, length - 1, int(wrong[length - 1])),)
        nothing = np.zeros(len(totals), np.int64)
        return Evaluated(unit, path, first, totals, nothing, nothing.astype(np.int8), kept)

    def _fitted(self, unit: Unit, path: int, step: int, wrong: int) -> Member:
        size, others = self.problem.sizes[unit.size], (0,) * (self.problem.n_totals - 1)
        model = replace(self.member.model, **self.problem.learner.space.setting(path, step))
        return Member(size.k, unit.split, model, (wrong, *others), (size.n_select, *others))


def measure(problem: Problem, tried: int = 4) -> MadeUp:
    """Measure every path on the first split of a few fold sizes, in processor time."""
    inputs, sizes = share(problem), problem.sizes
    problem.learner.trainer.load()
    chosen = sorted({int(j) for j in np.linspace(0, len(sizes) - 1, tried)})
    seconds, rate = [], []
    for j in chosen:
        spent, errors = [], []
        for path in enumerate(problem.learner.space.lengths):
            begin = time.thread_time()  # the machine may do other things meanwhile
            outcome = evaluate([Unit(Stage.SELECT, j, 0, (path,))], inputs)
            spent.append(time.thread_time() - begin)
            errors.append(outcome.records["totals"].sum(axis=1))
        seconds.append(spent)
        rate.append(np.array(errors) / sizes[j].n_select)
    refit = evaluate([Unit(Stage.REFIT, len(sizes) - 1, 0, ((0, 1),))], inputs)
    rows = np.array([float(sizes[j].n_train) for j in chosen])
    return MadeUp(problem, rows, np.array(seconds), np.array(rate), refit.members[0])


def slept(units: Sequence[Unit], seconds: float, inputs: list[Any]) -> Outcome:
    """Sleep as long as the units would have taken; return their simulated outcome.

    Like the real task, it is given a reference: here to the MadeUp, in a list so that Ray leaves it alone.
    """
    outcome: Outcome = ray.get(inputs[0]).answer(units)
    time.sleep(outcome.seconds)
    return outcome


def occupy(seconds: float) -> int:
    """Occupy a worker for a while; return its process id."""
    time.sleep(seconds)
    return os.getpid()
