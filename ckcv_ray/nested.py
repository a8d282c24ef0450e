"""The nested protocol: Algorithm 1 anew inside each outer split, and the ensemble of what it selected.

An outer split is a split of three folds: selection sees TR and MS alone, the machine it chooses is fitted on
both, and its errors are counted on EE, a third of the rows. Each inner selection is a run of its own.
"""

from collections.abc import Iterable
from pathlib import Path

from ckcv_ray import worker
from ckcv_ray.data import Table
from ckcv_ray.ensemble import Ensemble
from ckcv_ray.errors import RunError
from ckcv_ray.study import OUTER_K, Stage, Study, Task, Triple
from ckcv_ray.worker import roles


def inner_tables(study: Study, table: Table) -> list[Table]:
    """What each inner selection sees: the rows of TR and MS of each outer split.

    Raises:
        InputError: one of them has rows of one class alone.
    """
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
