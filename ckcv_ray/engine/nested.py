"""Nested selection: Algorithm 1 inside each outer split, and the ensemble of what it selected.

An outer split has an estimate set EE, a third or half of the rows. The selection uses the other rows only,
the model it selects is fitted on all of these, and its errors are counted on EE. Each inner selection is a
separate run.
"""

from collections.abc import Sequence
from math import inf
from threading import Lock

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.errors import RunError
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.storage.execution import Evaluations
from ckcv_ray.study import Problem


class OverallProgress:
    """Progress of a run and its inner selections, as one sum.

    Args:
        problem: a problem with any certification.
        listen: called with every new sum, by one thread at a time.
    """

    def __init__(self, problem: Problem, listen: Listener) -> None:
        self._listen, self._lock = listen, Lock()
        splits = sum(size.n_splits for size in problem.inner_sizes)
        self._own, self._share = Progress(problem.n_evaluations), problem.inner_share
        self._inner = [Progress(splits * problem.n_settings)] * problem.outer_splits

    def own(self, progress: Progress) -> None:
        """Update the progress of the run's own selection."""
        with self._lock:
            self._own = progress
            self._listen(self._sum())

    def inner(self, i: int) -> Listener:
        """Return a listener for the progress of inner selection i."""

        def update(progress: Progress) -> None:
            with self._lock:
                self._inner[i] = progress
                self._listen(self._sum())

        return update

    def finish(self, i: int, counts: Evaluations) -> None:
        """Set the final counts of inner selection i, which reports no progress if read from its folder."""
        self.inner(i)(self._inner[i]._replace(**counts, left=0.0))

    def _sum(self) -> Progress:
        """Sum up; an unstarted selection is expected to cost what the run's own does, for fewer rows."""
        whole, every = self._own, [self._own, *self._inner]
        typical = self._share * (whole.spent + whole.left)
        names = ("planned", "computed", "failed", "dropped", "not_converged", "fits", "spent")
        sums = {name: sum(getattr(progress, name) for progress in every) for name in names}
        left = sum(typical if progress.left == inf else progress.left for progress in self._inner)
        return whole._replace(**sums, left=whole.left + left)


def inner_problems(problem: Problem) -> list[Problem]:
    """Return the problem of each inner selection; none without a nested certification."""
    return [problem.inner(i) for i in range(problem.outer_splits)]


def fit_nested_ensemble(problem: Problem, winners: Sequence[Setting]) -> Ensemble:
    """Fit each inner winner on all rows of its outer split but EE, and count its errors there.

    Args:
        problem: a problem with a nested certification.
        winners: the setting selected in each outer split.

    Raises:
        RunError: an inner winner could not be fitted, or is no setting of the problem's learner.
    """
    inputs = share(problem.outer)
    positions = map(problem.position, winners)
    units = [Unit(Stage.REFIT, 0, i, ((path, step + 1),)) for i, (path, step) in enumerate(positions)]
    outcome = evaluate(units, inputs)
    if outcome.failures:
        raise RunError(f"an inner winner could not be fitted: {outcome.failures[0].traceback}")
    return Ensemble(outcome.members)
