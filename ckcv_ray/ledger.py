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
from ckcv_ray.worker import STATUSES, Records

VALUES = ("errors_negative", "errors_positive", "n_iter", "status")
STATUS = VALUES.index("status")
ABSENT = -1
Kept = NDArray[np.int64]


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
        self.gamma, self.C = study.gamma, study.C
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
        keys = np.stack([records[name] for name in ("estimate", "gamma", "k", "mc_index")])
        starts = [0, *(np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1), len(records)]
        C = np.array([self.C_of[value] for value in records["C"].tolist()])
        values = np.stack([records[name] for name in VALUES], axis=-1, dtype=np.int64)
        places = [self._place(*keys[:, start]) for start in starts[:-1]]
        return [
            self._enter_path(place, C[a:b], values[a:b])
            for place, (a, b) in zip(places, pairwise(starts), strict=True)
        ]

    def estimate_counts(self) -> dict[int, Counts]:
        """Errors on the estimate sets by position of the size, (n_splits, n_gamma, n_C) or UNKNOWN."""
        return {size: _totals(kept) for (estimate, size), kept in self._kept.items() if estimate}

    def errors_by_class(self, triple: Triple, mc_index: int) -> tuple[int, int] | None:
        """Errors by class on one estimate set; None where there is no record."""
        kept = self._kept.get((True, self.size_of[triple.k]))
        if kept is None:
            return None
        cell = kept[mc_index, self.gamma_of[triple.gamma], self.C_of[triple.C]]
        return None if cell[STATUS] == ABSENT else (int(cell[0]), int(cell[1]))

    def capped(self) -> int:
        """Number of fits that ended at the iteration cap."""
        capped = STATUSES.index(Status.CAPPED)
        return sum(int(np.sum(kept[..., STATUS] == capped)) for kept in self._kept.values())

    def _place(self, estimate: float, gamma: float, k: float, mc_index: float) -> Place:
        return Place(bool(estimate), self.size_of[int(k)], int(mc_index), self.gamma_of[gamma])

    def _enter_path(self, place: Place, C: NDArray[np.intp], given: Kept) -> Entry:
        row = self._stage(place)[place.mc_index, place.gamma]
        held = row[C]
        new = np.equal(held[:, STATUS], ABSENT)
        if np.any(differs := ~new & np.any(held != given, axis=1)):
            where = int(np.argmax(differs))
            k = self.sizes[place.size].k
            cell = Cell(self.C[C[where]], self.gamma[place.gamma], k, place.mc_index)
            raise RunError(
                f"two records of {cell} differ, {held[where]} and {given[where]} ({', '.join(VALUES)}): "
                "the computation was not deterministic"
            )
        row[C] = given
        return Entry(place, new, _totals(row[: int(C.max()) + 1]))

    def _stage(self, place: Place) -> Kept:
        key = (place.estimate, place.size)
        if key not in self._kept:
            shape = (self.sizes[place.size].n_splits, len(self.gamma), len(self.C), len(VALUES))
            self._kept[key] = np.full(shape, ABSENT, dtype=np.int64)
        return self._kept[key]


def _totals(kept: Kept) -> Counts:
    both = kept[..., 0] + kept[..., 1]
    return np.where(kept[..., STATUS] == ABSENT, UNKNOWN, both).astype(np.int32)
