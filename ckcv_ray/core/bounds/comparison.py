"""Comparison of two learners on the same splits: the corrected resampled t-test.

Scores of different splits are not independent, since their training sets overlap; the plain t-test on their
differences finds differences where there are none. Nadeau and Bengio (Inference for the Generalization Error,
Machine Learning 52, 2003) replace 1 / J in its variance by 1 / J + n_score / n_train. It is a heuristic with
about the right level, not a proof; it presumes splits of about equal sizes.
"""

from math import nan, sqrt
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike


class Compared(NamedTuple):
    """The difference of two learners' scores.

    Attributes:
        difference: mean over splits.
        low, high: limits of its 95 % interval; nan for a single split.
        p: two-sided p-value; nan for a single split.
    """

    difference: float
    low: float
    high: float
    p: float


def compare_scores(first: ArrayLike, second: ArrayLike, scored_per_trained: float) -> Compared:
    """Compare scores on the same splits, each (splits,).

    Args:
        first, second: scores of the two learners.
        scored_per_trained: rows that a split scores, for each row that it fits on.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    count, mean = len(differences), float(differences.mean())
    if count < 2:
        return Compared(mean, nan, nan, nan)
    error = sqrt((1 / count + scored_per_trained) * float(differences.var(ddof=1)))
    if error == 0:
        return Compared(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    student = scipy.stats.t
    reach = float(student.ppf(0.975, count - 1)) * error
    p = 2 * float(student.sf(abs(mean) / error, count - 1))
    return Compared(mean, mean - reach, mean + reach, p)
