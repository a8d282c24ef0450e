"""A user-defined resampling: later rows are scored by what is fitted to earlier ones."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ckcv_ray import InputError
from ckcv_ray.extend import Draws, FoldSize, Resampling, Split, Strata, option, register_resampling


def check_times(name: str, value: object) -> int:
    """Return a number of splits."""
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{name}={value!r} is not a number of splits")
    return value


@register_resampling
@dataclass(frozen=True)
class RollingOrigin(Resampling):
    """Blocks of rows, each scored by what is fitted to all rows before it.

    Attributes:
        times: number of blocks that are scored; one more is only fitted on.
    """

    name: ClassVar[str] = "rolling"
    in_text: ClassVar[tuple[str, ...]] = ("times",)

    times: int = option(5, check_times, "Number of splits.", int)

    def count_splits(self, n: int) -> int:
        """Return ``times``."""
        if n <= self.times:
            raise InputError(f"resampling={self} needs more than {self.times} rows, and there are {n}")
        return self.times

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores the block after the first ``number`` + 1."""
        blocks = np.array_split(np.arange(units.n), self.times + 1)
        return Split(np.concatenate(blocks[: number + 1]), blocks[0][:0], blocks[number + 1])
