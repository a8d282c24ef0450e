"""Nested selection: Algorithm 1 inside each outer split, and the ensemble of what it selected.

An outer split is a split of three folds: selection sees TR and MS alone, the model it chooses is fitted on
both, and its errors are counted on EE, a third of the rows. Each inner selection is a run of its own.
"""

from collections.abc import Sequence
from math import inf
from threading import Lock
from typing import NamedTuple

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.storage.execution import Evaluations
from ckcv_ray.study import Problem, inner_rows


class Position(NamedTuple):
    """A setting of the learner, by position."""

    path: int
    step: int


class OverallProgress:
    """How far a run has come, inner selections included: their moments and its own as one.

    Args:
        problem: of any certification.
        listen: told of every moment, one at a time.
    """

    def __init__(self, problem: Problem, listen: Listener) -> None:
        n = problem.task.n
        self._listen, self._lock = listen, Lock()
        self._own, self._inner = Progress(problem.n_evaluations), list[Progress]()
        self._share = problem.inner_share
        if problem.study.outer_splits is not None:
            splits = sum(size.n_splits for size in problem.study.resampling.sizes(inner_rows(n)))
            self._inner = [Progress(splits * problem.n_settings)] * problem.outer.sizes[0].n_splits

    def own(self, moment: Progress) -> None:
        """Take a moment of the run's own selection."""
        with self._lock:
            self._own = moment
            self._listen(self._sum())

    def inner(self, i: int) -> Listener:
        """Return what takes the moments of inner selection i."""

        def take(moment: Progress) -> None:
            with self._lock:
                self._inner[i] = moment
                self._listen(self._sum())

        return take

    def finished(self, i: int, counts: Evaluations) -> None:
        """Take what inner selection i came to: one that is read from its folder has no moments."""
        self.inner(i)(self._inner[i]._replace(**counts, left=0.0))

    def _sum(self) -> Progress:
        """One not begun is taken to cost what the run's own selection did, for fewer rows."""
        own, every = self._own, [self._own, *self._inner]
        typical = self._share * (own.spent + own.left)
        names = ("planned", "computed", "failed", "dropped", "not_converged", "fits", "spent")
        sums = {name: sum(getattr(one, name) for one in every) for name in names}
        left = sum(typical if one.left == inf else one.left for one in self._inner)
        return own._replace(**sums, left=own.left + left)


def inner_problems(problem: Problem) -> list[Problem]:
    """Return what each inner selection is; none without a nested certification.

    Raises:
        InputError: one of them has too few rows of a class.
    """
    if problem.study.outer_splits is None:
        return []
    return [problem.inner(i) for i in range(problem.outer.sizes[0].n_splits)]


def nested_ensemble(problem: Problem, winners: Sequence[Position]) -> Ensemble:
    """Fit each inner winner on TR and MS of its outer split, and count its errors on EE.

    Raises:
        RunError: one could not be fitted.
    """
    inputs = share(problem.outer)
    units = [Unit(Stage.REFIT, 0, i, ((at.path, at.step + 1),)) for i, at in enumerate(winners)]
    outcome = evaluate(units, inputs)
    if outcome.failures:
        raise RunError(f"a nested winner could not be fitted: {outcome.failures[0].traceback}")
    return Ensemble(outcome.members)
