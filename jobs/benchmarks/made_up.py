"""Answers made up at once that look like a study's: its errors by chance, its lengths as measured.

So the driver and the aggregator can be shown more workers than the machine has: what they do is real, what
the workers do is slept or skipped. Each answer is a function of its key, as a real one is.
"""

import os
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.data.task import Table
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.study import Path, Size, Stage, Study, Task

Values = NDArray[np.float64]


@dataclass(frozen=True)
class MadeUp:
    """What was measured of a study.

    Attributes:
        sizes: its fold sizes.
        n_train: training rows of the sizes tried, ascending, (tried,).
        seconds: of a whole path, (tried, n_gamma).
        rate: share of errors, (tried, n_gamma, n_C).
        member: one real model, which stands for all.
    """

    sizes: dict[int, Size]
    n_train: Values
    seconds: Values
    rate: Values
    member: Member

    def length(self, study: Study, task: Task) -> float:
        """Seconds that a task takes, as measured on tasks of other sizes."""
        size = self.sizes[task.k]
        rows = size.n_train if task.stage is Stage.SELECT else size.n_train + size.n_select
        whole = {g: np.interp(rows, self.n_train, self.seconds[:, g]) for g, _ in task.paths}
        return float(sum(whole[g] * n_C / len(study.C) for g, n_C in task.paths))

    def answer(self, tasks: list[Task], study: Study) -> worker.Outcome:
        """What a worker would hand back, after ``length`` seconds for each task."""
        results = [self._path(task, study, g, n_C) for task in tasks for g, n_C in task.paths]
        records = worker._records(results, study)
        members = tuple(member for result in results for member in result.members)
        seconds = sum(self.length(study, task) for task in tasks)
        return worker.Outcome(records, (), members, seconds, len(records), seconds)

    def _path(self, task: Task, study: Study, gamma: int, n_C: int) -> worker.Result:
        size, key = self.sizes[task.k], Path(study.gamma[gamma], task.k, task.mc_index)
        estimate = task.stage is not Stage.SELECT
        at = int(np.argmin(np.abs(self.n_train - size.n_train)))
        rng = np.random.default_rng([estimate, task.k, task.mc_index, gamma])
        wrong = rng.binomial(size.n_select, self.rate[at, gamma, : len(study.C)])
        first = n_C - 1 if task.stage is Stage.REFIT else 0
        errors = np.column_stack([wrong, np.zeros_like(wrong)])[first:n_C]
        kept: tuple[Member, ...] = ()
        if task.stage is Stage.REFIT:
            kept = (self._named(task, study, gamma, n_C, int(wrong[n_C - 1])),)
        nothing = np.zeros(len(errors), np.int64)
        return worker.Result(estimate, key, first, errors, nothing, nothing.astype(np.int8), kept)

    def _named(self, task: Task, study: Study, gamma: int, n_C: int, wrong: int) -> Member:
        m = self.member
        return Member(
            task.k, task.mc_index, study.C[n_C - 1], study.gamma[gamma], m.scaling, m.support, m.vectors,
            m.dual_coef, m.offset, (wrong, 0), (self.sizes[task.k].n_select, 0),
        )  # fmt: skip


def measure(study: Study, table: Table, tried: int = 4) -> MadeUp:
    """Fit the first split of a few fold sizes, every path of it."""
    study = study.for_rows(table.n)
    data = worker.share(table.X, table.y, study)
    worker.warm_up(study)
    sizes = study.sizes(table.n)
    chosen = sorted({int(j) for j in np.linspace(0, len(sizes) - 1, tried)})
    seconds, rate = [], []
    for j in chosen:
        outcomes = [
            worker.evaluate([Task(Stage.SELECT, sizes[j].k, 0, ((g, len(study.C)),))], study, data)
            for g in range(len(study.gamma))
        ]
        errors = [o.records["errors_negative"] + o.records["errors_positive"] for o in outcomes]
        seconds.append([outcome.seconds for outcome in outcomes])
        rate.append(np.array(errors) / sizes[j].n_select)
    refit = worker.evaluate([Task(Stage.REFIT, sizes[-1].k, 0, ((0, 1),))], study, data)
    rows = np.array([float(sizes[j].n_train) for j in chosen])
    by_k = {size.k: size for size in sizes}
    return MadeUp(by_k, rows, np.array(seconds), np.array(rate), refit.members[0])


def slept(tasks: list[Task], study: Study, made_up: MadeUp) -> worker.Outcome:
    """Sleep as long as the tasks would have taken; their made-up answer."""
    outcome = made_up.answer(tasks, study)
    time.sleep(outcome.seconds)
    return outcome


def there(seconds: float) -> int:
    """Be busy for a while; which process this is."""
    time.sleep(seconds)
    return os.getpid()
