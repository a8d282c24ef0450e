"""Every record of a run in its place: entered once, compared ever after.

The same record again changes nothing. A different one under the same key means that the computation was
not deterministic, and stops the run.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.selection import UNKNOWN, Counts
from ckcv_ray.core.svm import Status
from ckcv_ray.errors import RunError
from ckcv_ray.study import Cell, Size, Study, Triple
from ckcv_ray.worker import RECORD, STATUSES, Records

VALUES = ("errors_negative", "errors_positive", "n_iter", "status")
KEPT = np.dtype([(name, RECORD[name]) for name in VALUES])
ABSENT = -1
Kept = NDArray[np.void]


class Place(NamedTuple):
    """Where a path's records are kept: stage, and positions of size, split and gamma."""

    estimate: bool
    size: int
    mc_index: int
    gamma: int


class Entry(NamedTuple):
    """A path entered: its place, which of its records were new, and the errors known of it in ascending C."""

    place: Place
    new: NDArray[np.bool_]
    counts: Counts


class Ledger:
    """The records of a study, by position in its grids.

    Args:
        study: the question.
        sizes: its distinct fold sizes on the data at hand.
    """

    def __init__(self, study: Study, sizes: tuple[Size, ...]) -> None:
        self.sizes = sizes
        self.shape = (len(study.gamma), len(study.C))
        self.size_of = {size.k: j for j, size in enumerate(sizes)}
        self.gamma_of = {gamma: g for g, gamma in enumerate(study.gamma)}
        self.C_of = {C: c for c, C in enumerate(study.C)}
        self._kept: dict[tuple[bool, int], Kept] = {}

    def enter(self, records: Records) -> list[Entry]:
        """Enter records, path by path in the order they stand.

        Raises:
            RunError: a record differs from the one already there.
        """
        if not len(records):
            return []
        keys = records[["estimate", "gamma", "k", "mc_index"]]
        starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1), len(records)]
        return [self._enter_path(records[a:b]) for a, b in pairwise(starts)]

    def estimate_counts(self) -> dict[int, Counts]:
        """Errors on the estimate sets by position of the size, (n_splits, n_gamma, n_C) or UNKNOWN."""
        return {size: _totals(kept) for (estimate, size), kept in self._kept.items() if estimate}

    def errors_by_class(self, triple: Triple, mc_index: int) -> tuple[int, int] | None:
        """Errors by class on one estimate set; None where there is no record."""
        kept = self._kept.get((True, self.size_of[triple.k]))
        if kept is None:
            return None
        cell = kept[mc_index, self.gamma_of[triple.gamma], self.C_of[triple.C]]
        return None if cell["status"] == ABSENT else (int(cell[VALUES[0]]), int(cell[VALUES[1]]))

    def capped(self) -> int:
        """Number of fits that ended at the iteration cap."""
        capped = STATUSES.index(Status.CAPPED)
        return sum(int(np.sum(kept["status"] == capped)) for kept in self._kept.values())

    def _enter_path(self, path: Records) -> Entry:
        first = path[0]
        place = Place(
            bool(first["estimate"]),
            self.size_of[int(first["k"])],
            int(first["mc_index"]),
            self.gamma_of[float(first["gamma"])],
        )
        row = self._stage(place)[place.mc_index, place.gamma]
        C = np.array([self.C_of[float(value)] for value in path["C"]])
        held, given = row[C], _values(path)
        new: NDArray[np.bool_] = held["status"] == ABSENT
        if np.any(differs := ~new & (held != given)):
            where = int(np.argmax(differs))
            cell = Cell(float(path["C"][where]), float(first["gamma"]), int(first["k"]), place.mc_index)
            raise RunError(
                f"two records of {cell} differ, {held[where]} and {given[where]} ({', '.join(VALUES)}): "
                "the computation was not deterministic"
            )
        row[C] = given
        return Entry(place, new, _totals(row[: int(C.max()) + 1]))

    def _stage(self, place: Place) -> Kept:
        key = (place.estimate, place.size)
        if key not in self._kept:
            kept = np.zeros((self.sizes[place.size].n_splits, *self.shape), KEPT)
            kept["status"] = ABSENT
            self._kept[key] = kept
        return self._kept[key]


def _values(path: Records) -> Kept:
    given = np.zeros(len(path), KEPT)
    for name in VALUES:
        given[name] = path[name]
    return given


def _totals(kept: Kept) -> Counts:
    both = kept["errors_negative"] + kept["errors_positive"]
    return np.where(kept["status"] == ABSENT, UNKNOWN, both).astype(np.int32)
