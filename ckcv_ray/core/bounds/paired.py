"""Which of two classifiers errs less, proven from units that both classify and neither has learned from.

Each unit, a row or a group, has a difference d in [-1, 1]: the loss of the first classifier minus that of the
second. Units are independent, so the differences are too; their mean D is how much more often the first errs.
A row has d = 1 if only the first is wrong, -1 if only the second is, else 0; a group the mean of its rows.

Two statements, each proven at the level delta / 2, so that both together fail with probability at most delta.
Without a margin: D < 0 ("better"), and D > 0 ("worse"). With a margin: D <= margin ("not worse"), and
D > margin ("worse").

Sign test, for rows without a margin: of the b + c rows on which exactly one is wrong, b only the second and c
only the first, b is Bin(b + c, theta) given b + c, with theta > 1/2 exactly if D < 0. So "better" is proven
if P(Bin(b + c, 1/2) >= b) <= delta / 2: this is exact, and proves no size of the difference.

Bounds on D, for everything else. By betting: (1 + d) / 2 is a loss in [0, 1] of mean (1 + D) / 2
(``betting``). By Clopper-Pearson, for rows: D = P(only first wrong) - P(only second wrong), at most an upper
bound on the one minus a lower bound on the other, each at half the level: the two counts are not independent,
and need not be. Which of the two is used for n rows is fixed by n and the level: the one that is smaller if
one row in 25 is of each kind (``TYPICAL_DIFFERENCES``). Groups use the bound by betting.

Comparison of two learners on the same splits: the corrected resampled t-test.

Scores of different splits are not independent, since their training sets overlap; the plain t-test on their
differences finds differences where there are none. Nadeau and Bengio (Inference for the Generalization Error,
Machine Learning 52, 2003) replace 1 / J in its variance by 1 / J + n_score / n_train. This is a heuristic
with about the right level, not a proof; it assumes splits of about equal size.
"""

from math import nan, sqrt
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson

TYPICAL_DIFFERENCES = (*[0.0] * 12, 1.0, *[0.0] * 11, -1.0)
SIGN, COUNTS, BETTING = "sign", "clopper_pearson", "betting"
MAX_EXPECTED = 100_000  # largest number of units considered when a proof is forecast
Differences = NDArray[np.float64]


class Judgement(NamedTuple):
    """What is proven of two classifiers."""

    better: bool  # whether the first is proven better, or with a margin not worse by more than the margin
    worse: bool  # whether it is proven worse, or with a margin worse by more than the margin
    method: str  # "sign", "clopper_pearson" or "betting"
    low: float | None = None  # lower bound on D at the level delta / 2; None with the sign test
    high: float | None = None  # upper bound, likewise


def judge_differences(
    differences: Differences, delta: float, margin: float | None, has_losses: bool = False
) -> Judgement:
    """Return what is proven of two classifiers.

    Args:
        differences: one per unit, in [-1, 1], in an order drawn independently of everything else, (units,).
        delta: probability that either of the two statements is proven and false.
        margin: by how much more often the first may err; None for no margin.
        has_losses: whether units have losses, as groups do, instead of being right or wrong.
    """
    if margin is None and not has_losses:
        better, worse = (bool(compute_sign_p(sign * differences) <= delta / 2) for sign in (1, -1))
        return Judgement(better, worse, SIGN)
    method, typical = BETTING, np.resize(TYPICAL_DIFFERENCES, len(differences))
    if not has_losses:
        method = min((COUNTS, BETTING), key=lambda bound: bound_difference(typical, delta / 2, bound))
    high = bound_difference(differences, delta / 2, method)
    low = -bound_difference(-differences, delta / 2, method)
    if margin is None:
        return Judgement(high < 0, low > 0, method, low, high)
    return Judgement(high <= margin, low > margin, method, low, high)


def compute_sign_p(differences: Differences) -> float:
    """Return P(Bin(b + c, 1/2) >= b), with b of the differences below 0 and c above; 1 if none is below."""
    below, above = int(np.sum(differences < 0)), int(np.sum(differences > 0))
    return float(scipy.special.betainc(below, above + 1.0, 0.5)) if below else 1.0


def bound_difference(differences: Differences, level: float, method: str, drawn: bool = True) -> float:
    """Return the upper bound on D, by "clopper_pearson" or "betting", at most 1.

    Args:
        differences: see ``judge_differences``; 1, 0 or -1 for "clopper_pearson".
        level: probability that the bound fails.
        drawn: whether the order of the units was drawn.
    """
    if method == BETTING:
        return 2 * bound_losses((1 + differences) / 2, level, drawn=drawn) - 1
    n, below, above = len(differences), np.sum(differences < 0), np.sum(differences > 0)
    least = 1 - clopper_pearson(int(n - below), n, level / 2)  # lower bound on how often only the second errs
    return float(clopper_pearson(int(above), n, level / 2) - least)


def expect_units(
    differences: Differences, delta: float, margin: float | None, has_losses: bool = False
) -> int | None:
    """Return about how many units like these would prove "better"; None if no number would.

    Args:
        differences, delta, margin, has_losses: see ``judge_differences``.

    Returns:
        The smallest number found, more than there are now and at most ``MAX_EXPECTED``.
    """

    def suffices(n: int) -> bool:
        return judge_differences(np.resize(differences, n), delta, margin, has_losses).better

    low = high = len(differences)
    if float(np.mean(differences)) >= (margin or 0.0):
        return None
    while not suffices(high):
        low, high = high, 2 * high
        if high > MAX_EXPECTED:
            return None
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


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
        scored_per_trained: rows that a split scores per row that it fits on.
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
