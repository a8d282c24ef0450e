"""What models answer about the scored rows of a split, and the scores of the answers."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import isfinite, nan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.scores import LABEL, RANK, Answers, Score
from ckcv_ray.learners.base import Fits
from ckcv_ray.tables.target import Rows

Totals = NDArray[np.float64]


def answers_of(model: Any, X: Rows, needs: frozenset[str]) -> Answers:
    """Return what a model says of rows X [rows, d], at least all that is needed.

    A model that has more to say than ``predict`` returns has a method ``answers`` with the same arguments.
    """
    if hasattr(model, "answers"):
        answered: Answers = model.answers(X, needs)
        return answered
    label, rank = model.predict(X)
    return Answers(label, rank if RANK in needs else None)


class Scoring:
    """The scores of one split, as a measure: of each the score itself, and then its sums.

    Attributes:
        scores: what is asked for.
        X, y: the rows to score, (rows, d) and (rows,).
        n_classes: number of classes of the task.
    """

    name: ClassVar[str] = "scores"
    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)
    bounded: ClassVar[bool] = False

    def __init__(self, scores: Sequence[Score], X: Rows, y: NDArray[Any], n_classes: int) -> None:
        self.scores, self.X, self.y, self.n_classes = scores, X, y, n_classes

    @cached_property
    def needs(self) -> frozenset[str]:
        """What the scores are computed from."""
        return frozenset(score.needs for score in self.scores)

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""
        return sum(score.width(n_classes) for score in self.scores)

    def of(self, fits: Fits, length: int) -> Totals:
        """Return the totals of each fit, (length, columns); labels may come from work that is shared."""
        if self.needs == {LABEL}:
            return np.asarray(fits.totals(self), np.float64)
        answered = (answers_of(fits.model(step), self.X, self.needs) for step in range(length))
        return np.array([self._totals(one) for one in answered])

    def totals(self, y: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> Totals:
        """Return the totals of labels (..., rows); see ``core.measures.Measure``."""
        each = [self._totals(Answers(labels)) for labels in predicted.reshape(-1, predicted.shape[-1])]
        return np.array(each).reshape(*predicted.shape[:-1], -1)

    def _totals(self, answers: Answers) -> list[float]:
        return [value for score in self.scores for value in self._of_score(score, answers)]

    def _of_score(self, score: Score, answers: Answers) -> Iterable[float]:
        value = score.of(self.y, answers)
        yield value if isfinite(value) else nan
        if score.sums is not None:
            yield from score.sums(self.y, answers, self.n_classes)
