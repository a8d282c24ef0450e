"""Progress of a run."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from ckcv_ray.study import Candidate


class Progress(NamedTuple):
    """Progress of a run at one moment.

    Attributes:
        planned: number of evaluations of the selection.
        computed, failed, dropped: how many of them are computed, failed, and proven not to matter.
        not_converged: fits, of both stages, that stopped at the iteration limit.
        fits: models fitted so far by this run.
        spent: seconds of work so far, summed over workers and sessions.
        left: expected seconds of work left for one worker; 0 once decided, inf if not yet known.
        best: the best complete candidate so far and its l_ms, or None.
        workers: number of processes that share the work left.
    """

    planned: int
    computed: int = 0
    failed: int = 0
    dropped: int = 0
    not_converged: int = 0
    fits: int = 0
    spent: float = 0.0
    left: float = inf
    best: tuple[Candidate, float] | None = None
    workers: int = 1


Listener = Callable[[Progress], None]
