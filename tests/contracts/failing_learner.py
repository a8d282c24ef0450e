"""A learner of which every fit raises."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nearest_centroid import NearestCentroid

from ckcv_ray.extend import Setting, register


@register
@dataclass(frozen=True)
class Failing(NearestCentroid):
    """Raises in every fit."""

    name = "failing"

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> Any:
        raise ArithmeticError("no fit at all")
