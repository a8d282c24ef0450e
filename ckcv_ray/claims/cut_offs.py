"""A cut-off of scores with a guarantee: sensitivity at least tau, chosen on the rows that certify.

A row is flagged, that is classified as positive, if its score is at least t. Let n+ held-out rows be
positive, U_d Clopper-Pearson's bound, k the largest count with U_d(k; n+) <= 1 - tau, and t the (k + 1)-th
smallest of their scores. Then P(sensitivity at t < tau) <= d: with
t0 = sup{t : P(score of a positive >= t) >= tau}, the sensitivity at t is below tau only if t > t0, for which
at most k positives may have scores of at most t0, a binomial count of n+ with a chance of at least 1 - tau.
There is no grid, nothing is paid for the choice, and ties are allowed. Given the labels, the other rows and
the positives, t is fixed and the negatives are independent: their bound at t is Clopper-Pearson's, and both
hold together with probability 1 - 2 d.

For a specificity the same is done on the negatives, from above: t is just beyond the (k + 1)-th largest.

Scores are rounded to ``SCORE_DIGITS`` digits before they are ordered and whenever a row is classified, since
their last bits may differ with the rows that are predicted together.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Values
from ckcv_ray.core.bounds.binomial import bound_table
from ckcv_ray.study.parts import Condition

SCORE_DIGITS = 12  # of a score, that count
LARGEST_SCORE = 1e300


class CutOff(NamedTuple):
    """A cut-off of the scores of two classes.

    Attributes:
        value: a row is flagged if its score for the positive class is at least this.
        positive: number of the class of the rows that are flagged, 0 or 1.
    """

    value: float
    positive: int

    def flag(self, score: Values) -> NDArray[np.bool_]:
        """Return which rows are flagged, given scores (rows,) that are larger for rows of class 1."""
        return np.asarray(orient_scores(score, self.positive) >= self.value)

    def classify(self, score: Values) -> Classes:
        """Return the class of each row, given scores as for ``flag``."""
        return np.where(self.flag(score), self.positive, 1 - self.positive).astype(np.int32)


class ChosenCutOff(NamedTuple):
    """A cut-off that was chosen for a condition.

    Attributes:
        cut_off: what was chosen.
        number: of the class whose recall it guarantees.
        misses: how many held-out rows of this class it may miss: as many are counted as missed.
    """

    cut_off: CutOff
    number: int
    misses: int


def orient_scores(score: Values, positive: int) -> Values:
    """Return scores that are larger for rows of the positive class, rounded to ``SCORE_DIGITS`` digits."""
    return round_scores(score if positive == 1 else -score)


def round_scores(score: Values) -> Values:
    """Return scores rounded to ``SCORE_DIGITS`` digits, and zeros without a sign."""
    limited = np.clip(np.where(score == 0, 0.0, score), -LARGEST_SCORE, LARGEST_SCORE)
    exponent = np.floor(np.log10(np.abs(limited), where=limited != 0, out=np.zeros_like(limited)))
    unit = 10.0 ** (SCORE_DIGITS - 1 - np.clip(exponent, -200, 200))
    return np.asarray(np.round(limited * unit) / unit)


def choose_cut_off(
    score: Values, y: Classes, positive: int, condition: Condition, delta: float
) -> ChosenCutOff | None:
    """Choose the cut-off of a condition on one recall; None if there are too few rows of the class.

    Args:
        score: of each held-out row, larger for rows of class 1.
        y: class of each held-out row, 0 or 1.
        positive: number of the class of the rows that are flagged.
        condition: on sensitivity or specificity.
        delta: probability with which the recall at the cut-off may be smaller.
    """
    number = condition.find_class(positive)
    ordered = np.sort(orient_scores(score, positive)[y == number])
    within = bound_table(len(ordered), delta) <= 1 - condition.value
    if not within[0]:
        return None
    misses = int(np.count_nonzero(within)) - 1  # the bound increases with the count
    value = ordered[misses] if number == positive else np.nextafter(ordered[-1 - misses], np.inf)
    return ChosenCutOff(CutOff(float(value), positive), number, misses)
