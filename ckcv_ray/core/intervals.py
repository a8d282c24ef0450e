"""Approximate intervals for a mean score, at 95 %, from the scores of splits: none of them is proven.

With J splits, scores s_j with mean m and variance v (n - 1), and n2 scored rows for n1 that are fitted on:

* corrected t: m +- t(J - 1) sqrt((1 / J + n2 / n1) v). Nadeau, Bengio, "Inference for the Generalization
  Error", Machine Learning 52, 2003, section 4.1; for repeated folds Bouckaert, Frank, PAKDD 2004.
* conservative Z: m +- z sqrt(sum_i (a_i - b_i)^2 / 2M), where a_i and b_i are the mean scores of J splits
  inside the two halves of pair i of M, whose models are fitted to fewer rows. The same paper, section 4.2.
* Wald: p +- z sqrt(p (1 - p) / n) for a share p of all n scored rows, as if they were independent. Of folds
  Bayle, Bayle, Janson, Mackey, "Cross-validation Confidence Intervals for Test Error", NeurIPS 2020.

* nested CV: e +- z s, from several shuffles of K folds. With the mean loss a of a fold's rows, and the mean
  loss b of all other rows by models that leave out this fold and the row's own, the squared error of a mean
  is mean((b - a)^2 - var(fold) / rows), times (K - 1) / K for all n rows; s is its root, kept within the
  standard error of n independent rows and sqrt(K) times that. e is the mean of b, less the bias
  (1 + (K - 2) / K) (mean of b - mean of a). Bates, Hastie, Tibshirani, "Cross-validation: what does it
  estimate and how well does it do it?", Journal of the American Statistical Association 119, 2024,
  algorithm 1.
* BBC: rows are drawn with replacement, the setting with the best mean among those drawn is scored on the
  rest, and the interval is between quantiles of these scores. Tsamardinos, Greasidou, Borboudakis,
  "Bootstrapping the out-of-sample predictions for efficient and accurate cross-validation", Machine Learning
  107, 2018.

Schulz-Kuempel and others, "Constructing Confidence Intervals for the Generalization Error", arXiv 2409.18836,
compares them and others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.bounds.comparison import compare_scores
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.row_scores import list_row_means
from ckcv_ray.core.scores import CLIPPED
from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote, suggest

MISS = 0.05
LEVEL = 1 - MISS
CORRECTED_T, CONSERVATIVE_Z, WALD = "corrected_t", "conservative_z", "wald"
NESTED_CV, BBC = "nested_cv", "bbc"
SHARES = ("zero_one", "accuracy")
ROW_MEANS = (*dict.fromkeys(name for kind in Kind for name in list_row_means(kind)), CLIPPED.rstrip(":"))
BOOTSTRAPS = 1000


class Limits(NamedTuple):
    """An interval; nan where a score is not known on every split, or there is one split alone."""

    low: float
    high: float


class Scored(NamedTuple):
    """What a study recorded of one score.

    Attributes:
        values: the score of each split, (n_splits,).
        sums: its sums, (n_splits, n_sums).
        counted: which splits have a part in the mean, (n_splits,).
        scored_per_fitted: rows that these score, for each row that they fit on.
    """

    values: Values
    sums: Values
    counted: NDArray[np.bool_]
    scored_per_fitted: float


@dataclass(frozen=True)
class Interval:
    """A kind of approximate interval.

    Attributes:
        name: its name.
        resamplings: names of those whose splits it is defined for.
        scores: names of those it is defined for; empty for all.
        limits: takes what a study recorded of a score.
        about: a phrase that says what it is.
        choosing: whether it is of the best line alone, and allows for its being chosen.
    """

    name: str
    resamplings: Sequence[str]
    scores: Sequence[str]
    limits: Callable[[Scored], Limits]
    about: str
    choosing: bool = False


def _correct_t(found: Scored) -> Limits:
    values = found.values[found.counted]
    compared = compare_scores(values, np.zeros(len(values)), found.scored_per_fitted)
    return Limits(compared.low, compared.high)


def _compute_conservative_z(found: Scored) -> Limits:
    """See ``PairedSubsampling`` for the order of the splits."""
    times = int(found.counted.sum())
    halves = found.values[~found.counted].reshape(-1, 2, times).mean(axis=2)
    error = sqrt(float(np.mean((halves[:, 0] - halves[:, 1]) ** 2)) / 2)
    return _reach_by_z(float(found.values[found.counted].mean()), error)


def _wald(found: Scored) -> Limits:
    total, rows = found.sums[found.counted].sum(axis=0).tolist()
    share = total / rows
    return _reach_by_z(share, sqrt(share * (1 - share) / rows))


def _nest_cv(found: Scored) -> Limits:
    """See ``PairedFolds`` for the order of the splits; the last sum is that of squares."""
    folds = len(found.counted) // int(found.counted.sum())
    total, rows, squares = found.sums[:, [0, 1, -1]].T
    outer, inner = total[found.counted], total[~found.counted].reshape(-1, folds - 1)
    n_outer, n_inner = rows[found.counted], rows[~found.counted].reshape(-1, folds - 1)
    mean = outer / n_outer
    variance = _compute_variance(outer, n_outer, squares[found.counted])
    errors = (inner.sum(axis=1) / n_inner.sum(axis=1) - mean) ** 2 - variance / n_outer
    every, n = inner.sum(), n_outer.sum() * folds / len(outer)
    of_rows = _compute_variance(every, n_inner.sum(), squares[~found.counted].sum())
    least = sqrt(float(of_rows) / n)
    error = sqrt(max(0.0, float(errors.mean()) * (folds - 1) / folds))
    apart = float(every / n_inner.sum() - outer.sum() / n_outer.sum())
    centre = float(every / n_inner.sum()) - (1 + (folds - 2) / folds) * apart
    return _reach_by_z(centre, min(max(error, least), sqrt(folds) * least))


def _compute_variance(total: Values, rows: Values, squares: Values) -> Values:
    """Return the variance (n - 1) of rows from their sum, their number and the sum of their squares."""
    return np.maximum(0.0, squares - total**2 / rows) / (rows - 1)


def _leave_open(found: Scored) -> Limits:
    """Return no limits: those of BBC are of several lines together (``correct_best``)."""
    return Limits(nan, nan)


def correct_best(losses: Values, values: Values, draws: Draws) -> Limits:
    """Return the BBC interval of what is best among the columns.

    Args:
        losses: by which one is chosen, (rows, columns); a column with nan is not chosen.
        values: what is estimated, of the same shape.
        draws: of the rows.
    """
    rng, n = draws.make_generator(), len(losses)
    losses = np.where(np.isnan(losses), np.inf, losses)
    found: list[float] = []
    while len(found) < BOOTSTRAPS:
        drawn = rng.integers(n, size=n)
        rest = np.bincount(drawn, minlength=n) == 0
        if rest.any():
            best = int(losses[drawn].sum(axis=0).argmin())
            found.append(float(values[rest, best].mean()))
    return Limits(*map(float, np.quantile(found, [MISS / 2, 1 - MISS / 2])))


def _reach_by_z(mean: float, error: float) -> Limits:
    reach = float(scipy.special.ndtri((1 + LEVEL) / 2)) * error
    return Limits(mean - reach, mean + reach)


INTERVALS = {
    interval.name: interval
    for interval in (
        Interval(
            CORRECTED_T,
            ("subsampling", "kfold", "repeated_kfold", "learning_curve"),
            (),
            _correct_t,
            "corrected t around the mean (Nadeau, Bengio 2003), for models fitted to as many rows",
        ),
        Interval(
            CONSERVATIVE_Z,
            ("paired_subsampling",),
            (),
            _compute_conservative_z,
            "conservative Z around the mean (Nadeau, Bengio 2003), for models fitted to as many rows",
        ),
        Interval(
            WALD,
            ("holdout", "kfold", "loo"),
            SHARES,
            _wald,
            "Wald around the pooled share, as if all scored rows were independent",
        ),
        Interval(
            NESTED_CV,
            ("paired_folds",),
            ROW_MEANS,
            _nest_cv,
            "nested cross validation (Bates, Hastie, Tibshirani 2024), for the model of all rows",
        ),
        Interval(
            BBC,
            ("kfold", "drawn_folds", "loo"),
            ROW_MEANS,
            _leave_open,
            "BBC (Tsamardinos, Greasidou, Borboudakis 2018) of the line that is best by the first measure, "
            "chosen again in each of 1,000 bootstrap draws of the rows",
            choosing=True,
        ),
    )
}


def compute_interval(name: str, found: Scored) -> Limits:
    """Return an approximate interval at 95 %; it may leave the range of the score."""
    return Limits(nan, nan) if np.isnan(found.values).any() else INTERVALS[name].limits(found)


def check_interval(name: str, resampling: str, scores: Sequence[str]) -> None:
    """Raise InputError unless there is such an interval for these splits and every one of these scores."""
    if name not in INTERVALS:
        raise InputError(f"interval={quote(name)}: expected {', '.join(INTERVALS)}{suggest(name, INTERVALS)}")
    interval = INTERVALS[name]
    if resampling not in interval.resamplings:
        raise InputError(
            f"interval={name} is for resampling {', '.join(interval.resamplings)}, not {resampling}: choose "
            f"one of them{_suggest_interval(resampling)}"
        )
    named = [score for score in scores if score.partition(":")[0] not in interval.scores]
    if interval.scores and named:
        kind = "shares of" if interval.scores == SHARES else "means over"
        able = f"{', '.join(interval.scores[:-1])} or {interval.scores[-1]}"
        raise InputError(
            f"interval={name} is for {kind} rows, measure {able}, not "
            f"{', '.join(named)}: leave these out{_suggest_interval(resampling, scores)}"
        )


def _suggest_interval(resampling: str, scores: Sequence[str] = ()) -> str:
    able = [
        interval.name
        for interval in INTERVALS.values()
        if resampling in interval.resamplings and not (interval.scores and scores)
    ]
    return f", or interval={' or '.join(able)}" if able else ""
