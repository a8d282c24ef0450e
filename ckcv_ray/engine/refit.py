"""One model at the selected setting: on all rows that were not held out, and on all rows.

The first is what held-out rows certify. The second has no rows left to judge it; what is known of it follows
from how often it differs from the first.
"""

from traceback import format_exc

import numpy as np

from ckcv_ray.core.selection import Leader
from ckcv_ray.core.threads import one_thread
from ckcv_ray.errors import RunError
from ckcv_ray.learners.base import Model
from ckcv_ray.learners.ensemble import Ensemble, class_sizes, judge, make_member
from ckcv_ray.learners.foreign import contain
from ckcv_ray.learners.watch import watch_fit
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


def fit_on_all_rows(problem: Problem, path: int, step: int) -> Ensemble:
    """Fit a setting of a study without a certification on all rows; no row is left to count its errors on.

    Raises:
        RunError: the fit failed.
    """
    none = (0,) * problem.task.n_classes
    totals = (*none, *([0] if problem.task.grouped else []))
    return Ensemble((make_member(0, 0, _fit(problem, path, step, problem.task), totals, none),))


def _fit_and_score(problem: Problem, winner: Leader, task: Task, scored: TestRows) -> Ensemble:
    """Return the model fitted on all rows of a task, with its errors on other rows."""
    model = _fit(problem, winner.path, winner.step, task)
    n_classes, k = task.n_classes, problem.sizes[winner.size].k
    totals = judge(model, scored.X, scored.y, problem.measure(scored.units), n_classes)
    return Ensemble((make_member(k, 0, model, totals, class_sizes(scored.y, n_classes)),))


def _fit(problem: Problem, path: int, step: int, task: Task) -> Model:
    learner, every = problem.learner, np.arange(task.n)
    try:
        learner.trainer.load()
        key, text = (problem.run_id, "one model", task.n), f"of the winner on {task.n} rows at once"
        with one_thread(), contain(), watch_fit(key, text, step + 1):
            block = learner.trainer.prepare(learner.trainer.share(task), every, every[:1])
            return block.fit(path, step + 1).model(step)
    except Exception:  # any error of a learner: the message holds the traceback
        raise RunError(f"the winner could not be fitted on {task.n} rows at once: {format_exc()}") from None
