"""The scores of one split, from what its models give for the scored rows."""

from collections.abc import Sequence
from functools import cached_property
from math import isfinite, nan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.scores import Output, Outputs, Score
from ckcv_ray.learners.base import Fits
from ckcv_ray.tables.target import Rows

ScoreTotals = NDArray[np.float64]


class Scoring:
    """The scores of one split, as a measure: of each the score itself, and then its sums.

    Attributes:
        scores: what is asked for.
        X, y: the rows to score, (rows, d) and (rows,).
        n_classes: number of classes of the task.
    """

    name: ClassVar[str] = "scores"
    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)

    def __init__(self, scores: Sequence[Score], X: Rows, y: NDArray[Any], n_classes: int) -> None:
        self.scores, self.X, self.y, self.n_classes = scores, X, y, n_classes

    @cached_property
    def needs(self) -> frozenset[Output]:
        """What the scores are computed from."""
        return frozenset(score.needs for score in self.scores)

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""
        return sum(score.width(n_classes) for score in self.scores)

    def of(self, fits: Fits, length: int) -> ScoreTotals:
        """Return the totals of each fit, (length, columns); labels may come from work that is shared."""
        if self.needs == {Output.LABEL}:
            return np.asarray(fits.totals(self), np.float64)
        models = map(fits.model, range(length))
        return np.array([self._totals(model.predict_outputs(self.X, self.needs)) for model in models])

    def totals(self, y: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> ScoreTotals:
        """Return the totals of labels (..., rows); see ``core.measures.Measure``."""
        each = [self._totals(Outputs(labels)) for labels in predicted.reshape(-1, predicted.shape[-1])]
        return np.array(each).reshape(*predicted.shape[:-1], -1)

    def _totals(self, outputs: Outputs) -> list[float]:
        totals: list[float] = []
        for score in self.scores:
            value = score.of(self.y, outputs)
            totals.append(value if isfinite(value) else nan)
            if score.sums is not None:
                totals += score.sums(self.y, outputs, self.n_classes)
        return totals
