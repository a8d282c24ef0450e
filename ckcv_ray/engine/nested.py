"""The nested protocol: Algorithm 1 anew inside each outer split, and the ensemble of what it selected.

An outer split is a split of three folds: selection sees TR and MS alone, the machine it chooses is fitted on
both, and its errors are counted on EE, a third of the rows. Each inner selection is a run of its own.
"""

from collections.abc import Iterable
from math import inf
from pathlib import Path
from threading import Lock

from ckcv_ray.data.task import Table
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.aggregator import Listener, Progress
from ckcv_ray.engine.evaluate import roles
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.storage.execution import Cells
from ckcv_ray.study import OUTER_K, Stage, Study, Task, Triple, inner_rows


class Whole:
    """How far a run has come, inner selections included: their moments and its own, told as one.

    Args:
        study: in its form for n rows; of any protocol.
        n: rows of the learning set.
        listen: told of every moment, one at a time.
    """

    def __init__(self, study: Study, n: int, listen: Listener) -> None:
        self._listen, self._lock = listen, Lock()
        self._own, self._inner = Progress(study.cells(n)), list[Progress]()
        self._share = (inner_rows(n) / n) ** 2  # a fit takes about its rows squared
        if study.outer_splits is not None:
            inner = Progress(study.inner().cells(inner_rows(n)))
            self._inner = [inner] * study.outer().sizes(n)[0].n_splits

    def own(self, moment: Progress) -> None:
        """Take a moment of the run's own selection."""
        with self._lock:
            self._own = moment
            self._listen(self._sum())

    def inner(self, i: int) -> Listener:
        """What takes the moments of inner selection i."""

        def take(moment: Progress) -> None:
            with self._lock:
                self._inner[i] = moment
                self._listen(self._sum())

        return take

    def finished(self, i: int, cells: Cells) -> None:
        """Take what inner selection i came to: one that is read from its folder has no moments."""
        self.inner(i)(self._inner[i]._replace(**cells, left=0.0))

    def _sum(self) -> Progress:
        """One not begun is taken to cost what the run's own selection did, for fewer rows."""
        own, every = self._own, [self._own, *self._inner]
        typical = self._share * (own.spent + own.left)
        names = ("planned", "computed", "failed", "dropped", "capped", "fits", "spent")
        sums = {name: sum(getattr(one, name) for one in every) for name in names}
        left = sum(typical if one.left == inf else one.left for one in self._inner)
        return own._replace(**sums, left=own.left + left)


def inner_tables(study: Study, table: Table) -> list[Table]:
    """What each inner selection sees: the rows of TR and MS of each outer split; none without them.

    Raises:
        InputError: one of them has rows of one class alone.
    """
    if study.outer_splits is None:
        return []
    outer = study.outer()
    splits = [outer.split(table.n, OUTER_K, i) for i in range(outer.sizes(table.n)[0].n_splits)]
    return [table.rows(roles(Stage.REFIT, split)[0]) for split in splits]


def inner_folder(out: Path, outer: int) -> Path:
    """The run folder of one inner selection, inside that of the run."""
    return out / "nested" / f"outer-{outer:03d}"


def members(study: Study, table: Table, winners: Iterable[Triple]) -> Ensemble:
    """The machine of each inner winner, fitted on TR and MS of its outer split, with its errors on EE.

    Raises:
        RunError: one could not be fitted.
    """
    outer = study.outer()
    shared = worker.share(table.X, table.y, outer)
    tasks = [
        Task(Stage.REFIT, OUTER_K, i, ((outer.gamma.index(w.gamma), outer.C.index(w.C) + 1),))
        for i, w in enumerate(winners)
    ]
    outcome = worker.evaluate(tasks, outer, shared)
    if outcome.failures:
        raise RunError(f"a nested winner could not be fitted: {outcome.failures[0].traceback}")
    return Ensemble(outcome.members)
