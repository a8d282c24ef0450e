"""Approximate intervals for a mean score, at 95 %, from the scores of splits: none of them is proven.

With J splits, scores s_j with mean m and variance v (n - 1), and n2 scored rows for n1 that are fitted on:

* corrected t: m +- t(J - 1) sqrt((1 / J + n2 / n1) v). Nadeau, Bengio, "Inference for the Generalization
  Error", Machine Learning 52, 2003, section 4.1; for repeated folds Bouckaert, Frank, PAKDD 2004.
* conservative Z: m +- z sqrt(sum_i (a_i - b_i)^2 / 2M), where a_i and b_i are the mean scores of J splits
  inside the two halves of pair i of M, whose models are fitted to fewer rows. The same paper, section 4.2.
* Wald: p +- z sqrt(p (1 - p) / n) for a share p of all n scored rows, as if they were independent. Of folds
  Bayle, Bayle, Janson, Mackey, "Cross-validation Confidence Intervals for Test Error", NeurIPS 2020.

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
from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote, suggest

MISS = 0.05
LEVEL = 1 - MISS
CORRECTED_T, CONSERVATIVE_Z, WALD = "corrected_t", "conservative_z", "wald"
SHARES = ("zero_one", "accuracy")


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
    """

    name: str
    resamplings: Sequence[str]
    scores: Sequence[str]
    limits: Callable[[Scored], Limits]
    about: str


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
    if unfit := [score for score in scores if interval.scores and score not in interval.scores]:
        raise InputError(
            f"interval={name} is for shares of rows, measure {' or '.join(interval.scores)}, not "
            f"{', '.join(unfit)}, whose losses of single rows are not recorded: leave these out"
            f"{_suggest_interval(resampling, scores)}"
        )


def _suggest_interval(resampling: str, scores: Sequence[str] = ()) -> str:
    able = [
        interval.name
        for interval in INTERVALS.values()
        if resampling in interval.resamplings and not (interval.scores and scores)
    ]
    return f", or interval={' or '.join(able)}" if able else ""
