"""Records of evaluations, failures, and the outcome of a batch: what a worker hands back.

A record holds the position of an evaluation, its totals, and the iterations and status of its fit.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.learners.ensemble import Member

POSITIONS = ("size", "split", "path", "step")

Records = NDArray[np.void]  # of ``record_type``


def record_type(n_totals: int, kind: type[Any] = np.int32) -> np.dtype[np.void]:
    """Return the type of one evaluation's record, with ``n_totals`` totals of a type."""
    return np.dtype(
        [
            ("estimate", np.bool_),
            *((name, np.int32) for name in POSITIONS),
            ("totals", kind, (n_totals,)),
            ("n_iter", np.int64),
            ("status", np.int8),
        ]
    )


class Failure(NamedTuple):
    """The steps of a path that were lost to an exception.

    Attributes:
        estimate: whether they were fitted on TR + MS.
        size, split, path: position of the path.
        first, stop: the range of lost steps, without ``stop``.
        traceback: text of the traceback.
    """

    estimate: bool
    size: int
    split: int
    path: int
    first: int
    stop: int
    traceback: str


class Outcome(NamedTuple):
    """The outcome of a batch of units; the fields after ``members`` are logged and are no part of the result.

    Attributes:
        records: of ``record_type``; failures: paths that raised; members: models of refit units.
        seconds: total time; fits: number of fits; solving: seconds spent in fits.
        peak: peak memory of the process so far, in bytes.
        by_learner: seconds spent on the paths of each learner; empty if they were not measured.
        held_out: predictions of refit units, of a study without a certification.
        left: units that were not evaluated, since the time of the batch was over.
    """

    records: Records
    failures: tuple[Failure, ...]
    members: tuple[Member, ...]
    seconds: float = 0.0
    fits: int = 0
    solving: float = 0.0
    peak: int = 0
    by_learner: tuple[float, ...] = ()
    left: tuple[Any, ...] = ()
    held_out: tuple[Any, ...] = ()
