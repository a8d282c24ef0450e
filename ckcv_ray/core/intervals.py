"""Intervals for a mean score, at 95 %, from the scores of splits: only that of a single split is exact.

With J splits, scores s_j with mean m and variance v (n - 1), and n2 scored rows per n1 that are fitted on:

* corrected t: m +- t(J - 1) sqrt((1 / J + n2 / n1) v). Nadeau, Bengio, "Inference for the Generalization
  Error", Machine Learning 52, 2003, section 4.1; for repeated folds Bouckaert, Frank, PAKDD 2004.
* Clopper-Pearson: for a single split, from the share of the scored rows that are wrong, or right. Exact where
  rows are independent, for a line that was named before its score was seen.
* BBC: rows are drawn with replacement, the setting with the best mean on those drawn is scored on the rest,
  and the interval lies between quantiles of these scores. Tsamardinos, Greasidou, Borboudakis, "Bootstrapping
  the out-of-sample predictions for efficient and accurate cross-validation", Machine Learning 107, 2018.

Schulz-Kuempel and others, "Constructing Confidence Intervals for the Generalization Error", arXiv 2409.18836,
compare these and others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.measures import CLIPPED, OWN, Score
from ckcv_ray.errors import Values

MISS = 0.05
LEVEL = 1 - MISS
CORRECTED_T, CLOPPER_PEARSON, BBC = "corrected_t", "clopper_pearson", "bbc"
ROW_MEANS = (*(score.name for score in OWN if score.rows is not None), CLIPPED.rstrip(":"))
BOOTSTRAPS = 1000


@dataclass(frozen=True)
class Interval:
    """A kind of interval."""

    resamplings: Sequence[str]  # names of the resamplings whose splits it is defined for
    scores: Sequence[str]  # names of the scores it is defined for; empty for all
    about: str  # a phrase that says what it is
    choosing: bool = False  # whether it is for the best line only, and allows for its having been chosen
    exact: bool = False  # whether it is proven for a line that was named before its score was seen


INTERVALS = {
    CORRECTED_T: Interval(
        ("subsampling", "kfold", "repeated_kfold"),
        (),
        "corrected t around the mean (Nadeau, Bengio 2003), for models fitted to as many rows",
    ),
    CLOPPER_PEARSON: Interval(
        ("holdout",),
        ("zero_one", "accuracy"),
        "Clopper-Pearson around the share of the scored rows, exact where rows are independent",
        exact=True,
    ),
    BBC: Interval(
        ("kfold", "drawn_folds", "loo"),
        ROW_MEANS,
        "BBC (Tsamardinos, Greasidou, Borboudakis 2018) of the line that is best by the first measure, "
        "chosen again in each of 1,000 bootstrap draws of the rows",
        choosing=True,
    ),
}


def bound_score(score: Score, sums: Values, delta: float) -> float:
    """Return what the score of a model is at most on new rows, or at least if a larger score is better.

    Args:
        score: one that has a bound.
        sums: its sums on one split, whose rows are independent.
        delta: probability that the bound fails.
    """
    first, m = int(sums[0]), int(sums[1])
    if score.bound == "losses":
        return score.largest * bound_mean_loss([int(sums[2])], m, delta)
    wrong = first if score.bound == "wrong" else m - first
    bound = float(clopper_pearson(wrong, m, delta))
    return bound if score.bound == "wrong" else 1.0 - bound
