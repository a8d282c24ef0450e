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
    """The steps of a path that were lost to an exception."""

    estimate: bool  # whether they were fitted on TR + MS
    size: int  # position of the fold size
    split: int
    path: int
    first: int  # of the lost steps
    stop: int  # the step after them
    traceback: str


class Outcome(NamedTuple):
    """The outcome of a batch of units; what follows ``members`` is logged, and is no part of the result."""

    records: Records  # of ``record_type``
    failures: tuple[Failure, ...]  # paths that raised
    members: tuple[Member, ...]  # models of refit units
    seconds: float = 0.0  # total time
    fits: int = 0
    solving: float = 0.0  # seconds spent in fits
    peak: int = 0  # peak memory of the process so far, in bytes
    by_learner: tuple[float, ...] = ()  # seconds of each learner; empty if they were not measured
    left: tuple[Any, ...] = ()  # units that were not evaluated, since the time of the batch was over
    held_out: tuple[Any, ...] = ()  # predictions of refit units, of a study without a certification
