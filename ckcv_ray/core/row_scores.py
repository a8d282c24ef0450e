"""Scores that are means over rows, with a further sum for an estimate that is corrected by it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.scores import OWN, Outputs, Score

RowScores = Callable[[Any, Outputs], Values]


def list_row_means(kind: Kind) -> list[str]:
    """Return the names of the scores of a kind of task that are means over rows."""
    return [score.name for score in OWN if score.rows is not None and kind in score.kinds]


def compute_no_information(rows: RowScores, y: Any, outputs: Outputs) -> float:
    """Return what a score would be if targets had nothing to do with the outputs: its mean over all pairs.

    A pair is the target of one row and the output of another, or the same: gamma in Efron, Tibshirani,
    "Improvements on cross-validation: the .632+ bootstrap method", Journal of the American Statistical
    Association 92 (1997), equation 24. Each distinct target meets all outputs once.
    """
    targets, counts = np.unique(y, return_counts=True)
    means = [float(rows(np.full(len(y), target), outputs).mean()) for target in targets]
    return float(np.average(means, weights=counts))


def extend_score(score: Score) -> Score:
    """Return a score with one more sum, that without information; itself if it is no mean over rows."""
    rows, sums, bound = score.rows, score.sums, score.bound
    if rows is None or sums is None:
        return score

    def extend(y: Any, outputs: Outputs, n_classes: int) -> Sequence[float]:
        return *sums(y, outputs, n_classes), compute_no_information(rows, y, outputs)

    return replace(
        score,
        sums=extend,
        n_sums=lambda n_classes: score.n_sums(n_classes) + 1,
        pooled=lambda found: score.pooled(found[:, :-1]),
        bound=None if bound is None else lambda found, delta: bound(found[:-1], delta),
    )
