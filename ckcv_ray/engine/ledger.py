"""Store of evaluations by key.

A duplicate record changes nothing. A different record under the same key means that the computation was not
deterministic, and stops the run.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import RunError
from ckcv_ray.learners.base import STATUSES, Status
from ckcv_ray.learners.ensemble import Failure, Records
from ckcv_ray.storage.log import record_type
from ckcv_ray.study.learned import Learned

ABSENT = -1
NOT_CONVERGED = STATUSES.index(Status.NOT_CONVERGED)
Kept = NDArray[Any]  # of the type of the totals
Index = NDArray[np.intp]


class Positions(NamedTuple):
    """Positions of records: stage, size, split, path and step; each of shape (records,)."""

    estimate: NDArray[np.bool_]
    size: Index
    split: Index
    path: Index
    step: Index

    def of_stage(self, estimate: bool, size: int) -> NDArray[np.bool_]:
        """Return a mask of the records of one stage and one size."""
        return np.equal(self.estimate, estimate) & np.equal(self.size, size)

    def groups(self) -> list[tuple[bool, int]]:
        """Return the distinct pairs of stage and size."""
        return list(dict.fromkeys(zip(self.estimate.tolist(), self.size.tolist(), strict=True)))


class Ledger:
    """Store of a problem's records by position: totals, iterations and status of each evaluation.

    Args:
        problem: the problem to solve.
    """

    def __init__(self, problem: Learned) -> None:
        self.n_splits = np.array([size.n_splits for size in problem.sizes])
        self.lengths = np.array(problem.learner.lengths)
        self.n_totals = problem.n_totals
        self._type = problem.total_type
        self._kept: dict[tuple[bool, int], Kept] = {}

    def places(self, records: Records) -> Positions:
        """Return the positions of records.

        Raises:
            LookupError: a record is not of this problem.
        """
        places = Positions(*(records[name] for name in Positions._fields))
        inside = (places.size >= 0) & (places.size < len(self.n_splits))
        inside &= (places.path >= 0) & (places.path < len(self.lengths))
        if not inside.all():
            raise IndexError("a size or a path that is not in the study")
        inside = (places.split >= 0) & (places.split < self.n_splits[places.size])
        inside &= (places.step >= 0) & (places.step < self.lengths[places.path])
        if not inside.all():
            raise IndexError("a split or a step that is not in the study")
        return places

    def enter(self, records: Records) -> tuple[Positions, NDArray[np.bool_]]:
        """Store records; return their positions, and which of them were new.

        Raises:
            LookupError: a record is not of this problem.
            RunError: a record differs from the one held under its key.
        """
        places = self.places(records)
        given = self._values(records)
        new = np.zeros(len(records), np.bool_)
        for estimate, size in places.groups():
            here = np.flatnonzero(places.of_stage(estimate, size))
            kept, at = self._stage(estimate, size), tuple(place[here] for place in places[2:])
            held = kept[at]
            new[here] = fresh = held[:, -1] == ABSENT
            kept[at] = np.where(fresh[:, None], given[here], held)
            if (differs := _unequal(kept[at], given[here])).any():
                first = int(np.argmax(differs))
                self._contradiction(records[here[first]], kept[at][first], given[here[first]])
        return places, new

    def records(self) -> Records:
        """Return every record, by stage, fold size, split, path and step."""
        found = [np.empty(0, record_type(self.n_totals, self._type))]
        for (estimate, size), kept in sorted(self._kept.items()):
            places = np.nonzero(kept[..., -1] != ABSENT)
            some = np.zeros(len(places[0]), found[0].dtype)
            some["estimate"], some["size"] = estimate, size
            for name, place in zip(("split", "path", "step"), places, strict=True):
                some[name] = place
            held = kept[places]
            some["totals"] = held[:, : self.n_totals]
            some["n_iter"], some["status"] = held[:, -2], held[:, -1]
            found.append(some)
        return np.concatenate(found)

    def estimate_totals(self) -> dict[int, Kept]:
        """Return the totals on the estimate sets, by position of the fold size.

        Each is of shape (n_splits, n_paths, n_steps, n_totals), and ABSENT where there is no record.
        """
        return {size: kept[..., : self.n_totals] for (estimate, size), kept in self._kept.items() if estimate}

    def values(self, size: int) -> NDArray[np.float64]:
        """Return totals, iterations and status of every evaluation of the selection of a fold size.

        Of shape (n_splits, n_paths, n_steps, n_totals + 2), and nan where there is no record.
        """
        kept = self._stage(False, size).astype(np.float64)
        kept[kept[..., -1] == ABSENT] = np.nan
        return kept

    def totals(self, estimate: bool, size: int, split: int, path: int, step: int) -> tuple[int, ...] | None:
        """Return the totals of one evaluation; None where there is no record."""
        kept = self._kept.get((estimate, size))
        if kept is None or kept[split, path, step, -1] == ABSENT:
            return None
        return tuple(kept[split, path, step, : self.n_totals].tolist())

    def held(self, records: Records) -> Kept:
        """Return the totals and status held for the keys of records, (records, n_totals + 1).

        They are ABSENT where there is no record.

        Raises:
            LookupError: a key is not of this problem.
        """
        places = self.places(records)
        found = np.full((len(records), self.n_totals + 2), ABSENT, dtype=self._type)
        for (estimate, size), kept in self._kept.items():
            here = places.of_stage(estimate, size)
            found[here] = kept[tuple(place[here] for place in places[2:])]
        return np.delete(found, self.n_totals, axis=1)

    def has_any(self, failure: Failure) -> bool:
        """Return whether any evaluation listed in a failure has a record."""
        return bool(np.any(self._steps(failure) != ABSENT))

    def holds(self, failure: Failure) -> bool:
        """Return whether every evaluation listed in a failure has a record."""
        steps = self._steps(failure)
        return len(steps) > 0 and bool(np.all(steps != ABSENT))

    def is_not_converged(self, size: int, split: int, path: int, step: int) -> bool:
        """Return whether a refit stopped at the iteration limit."""
        kept = self._kept.get((True, size))
        return kept is not None and bool(kept[split, path, step, -1] == NOT_CONVERGED)

    def not_converged(self) -> int:
        """Return the number of fits that stopped at the iteration limit."""
        return sum(int(np.sum(kept[..., -1] == NOT_CONVERGED)) for kept in self._kept.values())

    def _values(self, records: Records) -> Kept:
        """Return totals, iterations and status of each record."""
        last = [records[name].astype(self._type) for name in ("n_iter", "status")]
        return np.concatenate([records["totals"], np.stack(last, axis=-1)], axis=1)

    def _steps(self, failure: Failure) -> Kept:
        """Return the statuses held for the steps of a failure."""
        kept = self._kept.get((failure.estimate, failure.size))
        if kept is None:
            return np.empty(0, np.int32)
        return kept[failure.split, failure.path, failure.first : failure.stop, -1]

    def _stage(self, estimate: bool, size: int) -> Kept:
        if (estimate, size) not in self._kept:
            shape = (self.n_splits[size], len(self.lengths), self.lengths.max(), self.n_totals + 2)
            self._kept[estimate, size] = np.full(shape, ABSENT, dtype=self._type)
        return self._kept[estimate, size]

    def _contradiction(self, record: Any, held: Kept, given: Kept) -> None:
        key = {name: record[name].item() for name in Positions._fields}
        raise RunError(
            f"two records of {key} differ, {held.tolist()} and {given.tolist()} (totals, iterations, "
            "status): the computation was not deterministic"
        )


def _unequal(a: Kept, b: Kept) -> NDArray[np.bool_]:
    """Return in which rows two arrays differ; nan equals nan."""
    differs = a != b
    if differs.any():
        differs &= ~((a != a) & (b != b))
    return np.asarray(differs.any(axis=1))
