"""Records of evaluations, failures, and the outcome of a batch: what a worker hands back, and their store.

A record holds the position of an evaluation, its totals, and the iterations and status of its fit. Storing a
duplicate record changes nothing. A different record under the same key means that the computation was not
deterministic, and stops the run.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import Index, RunError
from ckcv_ray.learners.base import STATUSES, Status
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.study.problem import Problem

POSITIONS = ("size", "split", "path", "step")
KEY = ("estimate", *POSITIONS)

Records = NDArray[np.void]  # of ``record_type``
NO_RECORD = -1
NOT_CONVERGED = STATUSES.index(Status.NOT_CONVERGED)
Kept = NDArray[Any]  # of the type of the totals


def record_type(problem: Problem) -> np.dtype[np.void]:
    """Return the type of the record of one evaluation of a problem."""
    return np.dtype(
        [
            ("estimate", np.bool_),
            *((name, np.int32) for name in POSITIONS),
            ("totals", problem.total_type, (problem.n_totals,)),
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
    first: int  # first lost step
    stop: int  # the step after the last lost one
    traceback: str


class Outcome(NamedTuple):
    """The outcome of a batch of units; what follows ``members`` is logged, and is not part of the result."""

    records: Records  # of ``record_type``
    failures: tuple[Failure, ...]  # paths that raised
    members: tuple[Member, ...]  # models of refit units
    seconds: float = 0.0  # total time
    fits: int = 0
    solving: float = 0.0  # seconds spent in fits
    peak: int = 0  # peak memory of the process so far, in bytes
    by_learner: tuple[float, ...] = ()  # seconds of each learner; empty if they were not measured
    left: tuple[Any, ...] = ()  # units that were not evaluated, since the batch ran out of time
    held_out: tuple[Any, ...] = ()  # predictions of refit units, in a study without a certification


def divide_records(records: Records) -> Iterator[tuple[bool, int, Index]]:
    """Yield each stage and fold size of some records, with the positions of its records among them."""
    codes = 2 * records["size"] + records["estimate"]
    for code in np.unique(codes).tolist():
        yield bool(code % 2), code // 2, np.flatnonzero(codes == code)


class Ledger:
    """Store of a problem's records by position: totals, iterations and status of each evaluation.

    Each stage and fold size has a table of its evaluations by split, path and step, created with its first
    record: memory grows with what was computed, not with what is planned.

    Args:
        problem: the problem to solve.

    Attributes:
        failed: what failed and has no record, by stage, fold size, split and path.
    """

    def __init__(self, problem: Problem) -> None:
        self.n_splits = np.array([size.n_splits for size in problem.folds])
        self.lengths = np.array(problem.learner.space.lengths)
        self.n_totals = problem.n_totals
        self._type, self._number = record_type(problem), problem.total_type
        self._kept: dict[tuple[bool, int], Kept] = {}
        self.failed: dict[tuple[bool, int, int, int], Failure] = {}

    def enter(self, records: Records) -> NDArray[np.bool_]:
        """Store records; return which of them were new.

        Raises:
            RunError: a record differs from the one held under its key.
        """
        given = np.empty((len(records), self.n_totals + 2), self._number)
        given[:, :-2] = records["totals"]
        given[:, -2], given[:, -1] = records["n_iter"], records["status"]
        new = np.zeros(len(records), np.bool_)
        for estimate, size, here in divide_records(records):
            at = tuple(records[name][here] for name in POSITIONS[1:])
            if (estimate, size) not in self._kept:
                self._kept[estimate, size] = self._view(estimate, size).copy()
            kept = self._kept[estimate, size]
            new[here] = fresh = kept[..., -1][at] == NO_RECORD
            kept[tuple(place[fresh] for place in at)] = given[here[fresh]]
            held = kept[at]
            both_nan = (held != held) & (given[here] != given[here])
            if (differs := ((held != given[here]) & ~both_nan).any(axis=1)).any():
                first = int(np.argmax(differs))
                record, other = records[here[first]], given[here[first]]
                key = {name: record[name].item() for name in KEY}
                raise RunError(
                    f"two records of {key} differ, {held[first].tolist()} and {other.tolist()} (totals, "
                    "iterations, status): the computation was not deterministic"
                )
        return new

    def records(self) -> Records:
        """Return every record, by stage, fold size, split, path and step."""
        found = [np.empty(0, self._type)]
        for estimate, size in sorted(self._kept):
            kept = self._kept[estimate, size]
            places = np.nonzero(kept[..., -1] != NO_RECORD)
            some = np.zeros(len(places[0]), self._type)
            some["estimate"], some["size"] = estimate, size
            some["split"], some["path"], some["step"] = places
            held = kept[places]
            some["totals"], some["n_iter"], some["status"] = held[:, :-2], held[:, -2], held[:, -1]
            found.append(some)
        return np.concatenate(found)

    def known(self, size: int, estimate: bool = False) -> NDArray[np.bool_]:
        """Return which evaluations of a stage and fold size have a record, (n_splits, n_paths, n_steps)."""
        return np.asarray(self._view(estimate, size)[..., -1] != NO_RECORD)

    def done(self, size: int, estimate: bool = False) -> NDArray[np.bool_]:
        """Return which evaluations have a record, or failed, (n_splits, n_paths, n_steps)."""
        done = self.known(size, estimate)
        for failure in self.failed.values():
            if (failure.estimate, failure.size) == (estimate, size):
                done[failure.split, failure.path, failure.first : failure.stop] = True
        return done

    def totals(self, size: int, estimate: bool = False) -> Kept:
        """Return the totals of evaluations, (n_splits, n_paths, n_steps, n_totals), -1 without a record."""
        return self._view(estimate, size)[..., :-2]

    def note(self, failures: Iterable[Failure]) -> list[Failure]:
        """Note failures, and forget those computed since; return the given ones that are not computed."""
        for key in [key for key, failure in self.failed.items() if self.holds(failure)]:
            del self.failed[key]
        lost = [failure for failure in failures if not self.holds(failure)]
        for failure in lost:
            known = self.failed.get(failure[:4], failure)
            first, stop = min(known.first, failure.first), max(known.stop, failure.stop)
            self.failed[failure[:4]] = failure._replace(first=first, stop=stop)
        return lost

    def holds(self, failure: Failure) -> bool:
        """Return whether every evaluation listed in a failure has a record."""
        kept = self._view(failure.estimate, failure.size)
        statuses = kept[failure.split, failure.path, failure.first : failure.stop, -1]
        return len(statuses) > 0 and bool(np.all(statuses != NO_RECORD))

    def not_converged(self) -> int:
        """Return the number of fits that stopped at the iteration limit."""
        return sum(int(np.sum(kept[..., -1] == NOT_CONVERGED)) for kept in self._kept.values())

    def _view(self, estimate: bool, size: int) -> Kept:
        """Return what is held for a fold size, (n_splits, n_paths, n_steps, n_totals + 2)."""
        shape = self.n_splits[size], len(self.lengths), self.lengths.max(), self.n_totals + 2
        return self._kept.get((estimate, size), np.broadcast_to(np.array(NO_RECORD, self._number), shape))
