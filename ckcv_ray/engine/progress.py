"""How far a run has come."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from ckcv_ray.study import Candidate


class Progress(NamedTuple):
    """A moment of a run.

    Attributes:
        planned: evaluations of the selection.
        computed, failed, dropped: of those, done, failed, and by now proven not to matter.
        not_converged: fits, of both stages, that ended at the iteration cap.
        fits: models fitted so far by this run.
        spent: seconds of work so far, on one worker, in all sessions.
        left: seconds of work expected on one worker; 0 when decided, inf when not known yet.
        best: the best complete candidate so far and its l_ms, or None.
        workers: processes that share the work left.
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
