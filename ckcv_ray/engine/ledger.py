"""Every record of a run in its place: entered once, compared ever after.

The same record again changes nothing. A different one under the same key means that the computation was
not deterministic, and stops the run.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.selection import UNKNOWN, Counts
from ckcv_ray.errors import RunError
from ckcv_ray.learners.svm import Status
from ckcv_ray.storage.log import STATUSES, Failure, Records
from ckcv_ray.study import Cell, Size, Study, Triple

VALUES = ("errors_negative", "errors_positive", "n_iter", "status")
STATUS = VALUES.index("status")
ABSENT = -1
Kept = NDArray[np.int32]
Index = NDArray[np.intp]


class Places(NamedTuple):
    """Where records are kept: stage, and positions of size, split, gamma and C; each of shape (records,)."""

    estimate: NDArray[np.bool_]
    size: Index
    mc_index: Index
    gamma: Index
    C: Index

    def of_stage(self, estimate: bool, size: int) -> NDArray[np.bool_]:
        """Which records belong to one stage of one size."""
        return np.equal(self.estimate, estimate) & np.equal(self.size, size)


class Ledger:
    """The records of a study, by position in its grids.

    Args:
        study: the question.
        sizes: its distinct fold sizes on the data at hand.
    """

    def __init__(self, study: Study, sizes: tuple[Size, ...]) -> None:
        self.sizes = sizes
        self.gamma, self.C = np.array(study.gamma), np.array(study.C)
        self.k = np.array([size.k for size in sizes])
        self.n_splits = np.array([size.n_splits for size in sizes])
        self.size_of = {size.k: j for j, size in enumerate(sizes)}
        self.gamma_of = {gamma: g for g, gamma in enumerate(study.gamma)}
        self.C_of = {C: c for c, C in enumerate(study.C)}
        self._kept: dict[tuple[bool, int], Kept] = {}

    def places(self, records: Records) -> Places:
        """Where records belong.

        Raises:
            LookupError: one is not of this study.
        """
        places = Places(
            records["estimate"],
            _positions(records["k"], self.k),
            records["mc_index"],
            _positions(records["gamma"], self.gamma),
            _positions(records["C"], self.C),
        )
        if ((places.mc_index < 0) | (places.mc_index >= self.n_splits[places.size])).any():
            raise IndexError("a split that is not in the study")
        return places

    def enter(self, records: Records) -> tuple[Places, NDArray[np.bool_]]:
        """Enter records; their places, and which of them were new.

        Raises:
            LookupError: one is not of this study.
            RunError: one differs from the one already there.
        """
        places = self.places(records)
        given = np.stack([records[name] for name in VALUES], axis=-1, dtype=np.int32)
        new = np.zeros(len(records), np.bool_)
        for estimate, size in dict.fromkeys(zip(places.estimate.tolist(), places.size.tolist(), strict=True)):
            here = np.flatnonzero(places.of_stage(estimate, size))
            kept, at = self._stage(estimate, size), tuple(place[here] for place in places[2:])
            held = kept[at]
            new[here] = fresh = held[:, STATUS] == ABSENT
            kept[at] = np.where(fresh[:, None], given[here], held)
            if (differs := (kept[at] != given[here]).any(axis=1)).any():
                first = int(np.argmax(differs))
                self._contradiction(records[here[first]], kept[at][first], given[here[first]])
        return places, new

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

    def held(self, records: Records, names: Sequence[str]) -> Kept:
        """Values (records, names) held for the keys of some records; ABSENT where there are none.

        Raises:
            LookupError: a key is not of this study.
        """
        places = self.places(records)
        columns = [VALUES.index(name) for name in names]
        found = np.full((len(records), len(columns)), ABSENT, dtype=np.int32)
        for (estimate, size), kept in self._kept.items():
            here = places.of_stage(estimate, size)
            found[here] = kept[places.mc_index[here], places.gamma[here], places.C[here]][:, columns]
        return found

    def has_any(self, failure: Failure) -> bool:
        """Whether there is a record of something that a failure says was lost."""
        gamma, k, mc_index = failure.path
        kept = self._kept.get((failure.estimate, self.size_of[k]))
        cells = slice(failure.first, failure.stop)
        return kept is not None and bool(
            np.any(kept[mc_index, self.gamma_of[gamma], cells, STATUS] != ABSENT)
        )

    def is_capped(self, triple: Triple, mc_index: int) -> bool:
        """Whether a refit ended at the iteration cap."""
        kept = self._kept.get((True, self.size_of[triple.k]))
        at = mc_index, self.gamma_of[triple.gamma], self.C_of[triple.C], STATUS
        return kept is not None and kept[at] == STATUSES.index(Status.CAPPED)

    def holds(self, estimate: bool, size: int, mc_index: int, gamma: int, n_C: int) -> bool:
        """Whether the first n_C cells of a path are all here."""
        kept = self._kept.get((estimate, size))
        return kept is not None and bool(np.all(kept[mc_index, gamma, :n_C, STATUS] != ABSENT))

    def capped(self) -> int:
        """Number of fits that ended at the iteration cap."""
        capped = STATUSES.index(Status.CAPPED)
        return sum(int(np.sum(kept[..., STATUS] == capped)) for kept in self._kept.values())

    def _stage(self, estimate: bool, size: int) -> Kept:
        if (estimate, size) not in self._kept:
            shape = (self.sizes[size].n_splits, len(self.gamma), len(self.C), len(VALUES))
            self._kept[estimate, size] = np.full(shape, ABSENT, dtype=np.int32)
        return self._kept[estimate, size]

    def _contradiction(self, record: Any, held: Kept, given: Kept) -> None:
        cell = Cell(*(record[name].item() for name in Cell._fields))
        raise RunError(
            f"two records of {cell} differ, {held} and {given} ({', '.join(VALUES)}): "
            "the computation was not deterministic"
        )


def _positions(values: NDArray[Any], grid: NDArray[Any]) -> Index:
    """Places of values in an ascending grid."""
    places = np.minimum(np.searchsorted(grid, values), len(grid) - 1)
    if (grid[places] != values).any():
        raise KeyError(values[grid[places] != values][0].item())
    return places


def _totals(kept: Kept) -> Counts:
    both = kept[..., 0] + kept[..., 1]
    return np.where(kept[..., STATUS] == ABSENT, UNKNOWN, both).astype(np.int32)
