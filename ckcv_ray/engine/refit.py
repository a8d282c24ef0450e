"""One model at the selected setting: on all rows that were not held out, and on all rows.

The first is what held-out rows certify. The second has no rows left to judge it; what is known of it follows
from how often it differs from the first. What the winner is compared with is fitted like the first: one model
of another learner, at that learner's own best setting.
"""

from dataclasses import replace
from traceback import format_exc

import numpy as np
import pyarrow as pa

from ckcv_ray.core.selection import Leader
from ckcv_ray.core.threads import one_thread
from ckcv_ray.errors import RunError
from ckcv_ray.learners.base import Model
from ckcv_ray.learners.ensemble import Ensemble, Member, class_sizes, judge, make_member
from ckcv_ray.learners.foreign import contain
from ckcv_ray.learners.watch import watch_fit
from ckcv_ray.records.candidates import find_best
from ckcv_ray.study import Problem
from ckcv_ray.tables.task import Task, TestRows


def one_model(problem: Problem, winner: Leader) -> tuple[Ensemble | None, Ensemble | None]:
    """Fit the winner's setting on all rows that were not held out, and on all rows; None if none were.

    Raises:
        RunError: a fit failed.
    """
    held = problem.take_held_rows()
    if held is None:
        return None, None
    refit = _fit_and_score(problem, winner, problem.task, held)
    return refit, _fit_and_score(problem, winner, problem.every_row, held.none())


def fit_references(problem: Problem, winner: Leader, table: pa.Table) -> Ensemble | None:
    """Fit each learner that the winner is compared with on all rows that were not held out, at its best.

    There is none of the winner's own learner, nor of one of which no candidate could be completed.

    Args:
        problem: the problem that was solved.
        winner: position of the winner.
        table: its candidates.

    Raises:
        RunError: a fit failed.
    """
    held, learners, members = problem.take_held_rows(), list(problem.learners), list[Member]()
    numbers = [n for n in problem.references if n != problem.learner_of_paths[winner.path]]
    found = [find_best(table, problem, learners[number]) for number in numbers]
    for best in filter(None, found):
        assert held is not None
        (fitted,) = _fit_and_score(problem, best, problem.task, held).members
        members.append(replace(fitted, split=len(members)))
    return Ensemble(tuple(members)) if members else None


def fit_on_all_rows(problem: Problem, path: int, step: int) -> Ensemble:
    """Fit a setting of a study without a certification on all rows; no row is left to count its errors on.

    Raises:
        RunError: the fit failed.
    """
    none = (0,) * problem.task.n_classes
    totals = (*none, *([0] if problem.task.grouped else []))
    return Ensemble((make_member(0, 0, _fit(problem, path, step, problem.task), totals, none),))


def _fit_and_score(problem: Problem, winner: Leader, task: Task, scored: TestRows) -> Ensemble:
    model = _fit(problem, winner.path, winner.step, task)
    n_classes, k = task.n_classes, problem.sizes[winner.size].k
    totals = judge(model, scored.X, scored.y, problem.measure(scored.units), n_classes)
    return Ensemble((make_member(k, 0, model, totals, class_sizes(scored.y, n_classes)),))


def _fit(problem: Problem, path: int, step: int, task: Task) -> Model:
    learner, every = problem.learner, np.arange(task.n)
    try:
        learner.trainer.load()
        key = problem.run_id, "one model", path, step, task.n
        text = f"of one model on {task.n} rows at once"
        with one_thread(), contain(), watch_fit(key, text, step + 1):
            block = learner.trainer.prepare(learner.trainer.share(task), every, every[:1])
            return block.fit(path, step + 1).model(step)
    except Exception:  # any error of a learner: the message holds the traceback
        raise RunError(f"one model could not be fitted on {task.n} rows at once: {format_exc()}") from None
