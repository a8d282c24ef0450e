"""A resampling with another inside each of its training sets."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.draws import Draws, Index
from ckcv_ray.core.options import Option, option
from ckcv_ray.core.resampling.base import FoldSize, Resampling, Split, Units
from ckcv_ray.core.resampling.kfold import KFold
from ckcv_ray.errors import InputError

MOST_NESTED = 10_000


def _check_drawn(name: str, part: Any) -> Resampling:
    if not isinstance(part, Resampling) or part.selects or part.names_rows or part.inner is not None:
        raise InputError(
            f"a nested resampling is made of two that are drawn, such as kfold:5, not {part!r:.60}"
        )
    return part


@dataclass(frozen=True)
class NestedSplits(Resampling):
    """A resampling with another inside each of its training sets, in which settings are selected.

    Attributes:
        outer: divides all rows.
        inner: divides the rows that a split of ``outer`` fits on.
    """

    name: ClassVar[str] = "nested"

    outer: Resampling = option(KFold(5), Option(_check_drawn, "Resampling of all rows."))
    inner: Resampling = option(KFold(5), Option(_check_drawn, "Resampling inside each training set."))

    @property
    def stratify(self) -> bool:
        """Whether either part gives each of its parts the same share of every class."""
        return self.outer.stratify or self.inner.stratify

    @property
    def no_bound(self) -> str:
        """Return why the outer splits have no bound; those inside only select."""
        return self.outer.no_bound

    def count_splits(self, n: int) -> int:
        """Return the number of outer splits."""
        if (count := self.outer.count_splits(n)) > MOST_NESTED:
            raise InputError(f"a nested resampling selects in at most {MOST_NESTED:,} splits, not {count:,}")
        return count

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return an outer split."""
        return self.outer.split(units, size, number, draws)

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which outer splits have a part in means."""
        return self.outer.counts(numbers)
