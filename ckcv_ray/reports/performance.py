"""How well rows were judged: by class, over all thresholds, as probabilities, and by which columns.

Everything here is measured and nothing is proven. ROC curves are those of single classifiers, since scores of
different models are on different scales (``core.measures``).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index, Values
from ckcv_ray.core.measures import Outputs
from ckcv_ray.errors import StoreError, cut
from ckcv_ray.tables.target import Rows

BINS, PROBABILITY_BINS = 20, 10
GRID = np.linspace(0.0, 1.0, 101)  # of false positive rates
TABLE_GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
SHUFFLES = 3
MAX_PERMUTED = 60_000  # rows predicted for the importance of columns
MIN_PERMUTED = 50  # rows, with fewer of which there is no importance
SEE = "ckcv verify"
MAX_CLASSIFIERS = 3  # that take part in it


class JudgedPart(NamedTuple):
    """Rows that one classifier judges.

    Attributes:
        predict: gives the classifier's outputs for rows [n, d].
        X: the rows.
        y: their classes.
    """

    predict: Callable[[Rows], Outputs]
    X: Rows
    y: Classes


class Judged(NamedTuple):
    """What classifiers gave for rows that they have not learned from.

    Attributes:
        y: classes, or the numbers to predict, (rows,).
        label: predicted classes, -1 where a classifier is undecided, or predicted numbers, (rows,).
        rank: with two classes, what grows with the positive one, (rows,); None if the learner gives no such
            score.
        probability: of each class, (rows, n_classes); None if the learner gives none.
        classifier: number of the classifier that judged each row, (rows,).
        rows: a phrase that says which rows they are.
        parts: the classifiers with their rows; none if only their predictions are stored.
        positive: number of the positive class of two.
    """

    y: NDArray[Any]
    label: NDArray[Any]
    rank: Values | None
    probability: Values | None
    classifier: Index
    rows: str
    parts: tuple[JudgedPart, ...] = ()
    positive: int = 1


class RowShare(NamedTuple):
    """A count of rows, and of how many it is a part."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """The share; None of no rows."""
        return self.part / self.whole if self.whole else None


class ClassPerformance(NamedTuple):
    """What was measured of one class against all others.

    Attributes:
        number: of the class.
        sensitivity: of its rows, those that are predicted as it (recall).
        specificity: of the other rows, those that are not predicted as it.
        ppv: of the rows predicted as it, those that are of it (precision).
        npv: of the rows not predicted as it, those that are not of it.
    """

    number: int
    sensitivity: RowShare
    specificity: RowShare
    ppv: RowShare
    npv: RowShare


class Roc(NamedTuple):
    """ROC curves on a common grid, of the positive one of two classes.

    Attributes:
        curves: true positive rate of each classifier at ``GRID``, (n, 101).
        areas: area under the curve of each classifier, (n,).
        left_out: classifiers whose rows are all of one class.
        point: false and true positive rate of all rows together, as they are classified: where the models
            work.
    """

    curves: Values
    areas: Values
    left_out: int
    point: tuple[float, float]


class Calibration(NamedTuple):
    """Predicted and observed shares, of rows with similar predictions.

    Attributes:
        low, high: limits of the predictions of each group of rows, (bins,).
        mean: mean prediction of each group.
        observed: share of rows for which the prediction is true.
        rows: number of rows.
        error: mean over the rows of the difference of the two, as an absolute value.
    """

    low: Values
    high: Values
    mean: Values
    observed: Values
    rows: NDArray[np.int64]
    error: float


class ProvenPoint(NamedTuple):
    """A net benefit of which something is proven.

    Attributes:
        worth: the probability from which on a row is worth flagging.
        proven: what it is at least.
        measured: of the judged rows.
    """

    worth: float
    proven: float
    measured: float


class DecisionCurve(NamedTuple):
    """Net benefits at a stated share of the positive class.

    Attributes:
        prevalence: that share.
        worth: probabilities from which on a row is worth flagging, (n,).
        by_rule: measured, of the rows that the rule classifies as positive, (n,).
        by_cut_off: measured, of the rows above a cut-off that depends on ``worth``, (n,); None if there are
            neither probabilities nor scores of a single model.
        cut_off: which cut-off that is, in words; "" if there is none.
        everybody: of flagging all rows, (n,).
        points: what is proven of the rule.
    """

    prevalence: float
    worth: Values
    by_rule: Values
    by_cut_off: Values | None
    cut_off: str
    everybody: Values
    points: tuple[ProvenPoint, ...]


class Histogram(NamedTuple):
    """Shares of the rows of each class, by score.

    Attributes:
        edges: of the bins, (bins + 1,).
        counts: rows of each class in each bin, (n_classes, bins).
    """

    edges: Values
    counts: NDArray[np.int64]


class Importance(NamedTuple):
    """How much larger the share of wrong rows is after the values of a column are permuted.

    Attributes:
        rise: mean over permutations for each column, (d,).
        spread: standard deviation over permutations, (d,).
        rows: number of rows.
    """

    rise: Values
    spread: Values
    rows: int


def predict_part(part: JudgedPart, X: Rows, n_classes: int) -> Outputs:
    """Return the outputs of a classifier for rows X [n, d].

    Raises:
        StoreError: a stored model cannot classify them, or predicts a class that does not exist.
    """
    try:
        outputs = part.predict(X)
        label = take_labels(outputs)
    except Exception as error:  # of a stranger's model, of any kind
        raise StoreError(
            f"a stored model cannot classify rows of its table ({cut(str(error))}): see {SEE}"
        ) from None
    if label.shape != (len(X),) or label.max(initial=0) >= n_classes:
        raise StoreError(f"a stored model predicts what is no class of its table: see {SEE}")
    return outputs


def take_labels(outputs: Outputs) -> Classes:
    """Return the classes among the outputs of a classifier, which has given them."""
    assert outputs.label is not None
    return outputs.label


def tabulate_predictions(y: Classes, label: Classes, n_classes: int) -> NDArray[np.int64]:
    """Return rows by class y and predicted class, the undecided (-1) last, (n_classes, n_classes + 1)."""
    counts = np.zeros((n_classes, n_classes + 1), np.int64)
    np.add.at(counts, (y, np.where(label < 0, n_classes, label)), 1)
    return counts


def measure_classes(counts: NDArray[np.int64]) -> list[ClassPerformance]:
    """Return sensitivity, specificity, PPV and NPV of each class, from a table of predictions."""
    total, rows, predicted = int(counts.sum()), counts.sum(axis=1), counts.sum(axis=0)
    found = []
    for c in range(len(counts)):
        hits, of_class, as_class = int(counts[c, c]), int(rows[c]), int(predicted[c])
        right_outside = total - of_class - as_class + hits
        recalls = RowShare(hits, of_class), RowShare(right_outside, total - of_class)
        values = RowShare(hits, as_class), RowShare(right_outside, total - as_class)
        found.append(ClassPerformance(c, *recalls, *values))
    return found


def trace_roc(judged: Judged) -> Roc | None:
    """Return the ROC curve of each classifier; None if there is no score, or none judged both classes."""
    if judged.rank is None:
        return None
    curves, areas, left_out = [], [], 0
    for number in np.unique(judged.classifier):
        rows = judged.classifier == number
        y = judged.y[rows]
        if len(np.unique(y)) < 2:
            left_out += 1
            continue
        wrong, right = trace_rates(y == judged.positive, judged.rank[rows])
        areas.append(float(np.trapezoid(right, wrong)))
        curves.append(np.interp(GRID, wrong, right))
    if not curves:
        return None
    flagged, is_positive = judged.label == judged.positive, judged.y == judged.positive
    point = float(np.mean(flagged[~is_positive])), float(np.mean(flagged[is_positive]))
    return Roc(np.array(curves), np.array(areas), left_out, point)


def trace_rates(y: Classes | NDArray[np.bool_], rank: Values) -> tuple[Values, Values]:
    """Return false and true positive rates at every threshold, from (0, 0) to (1, 1), of rows of two classes.

    scikit-learn has the same, and takes half a second to import.
    """
    order = np.argsort(-rank, kind="stable")
    last_of_ties = np.append(np.flatnonzero(np.diff(rank[order])), len(rank) - 1)
    right = np.cumsum(y[order])[last_of_ties]
    wrong = 1 + last_of_ties - right
    return np.append(0.0, wrong / wrong[-1]), np.append(0.0, right / right[-1])


def calibrate(judged: Judged) -> Calibration | None:
    """Compare probabilities with what came true; None without probabilities.

    With two classes they are those of the positive one, with more those of the predicted class. Groups have
    equal numbers of rows, as far as ties allow.
    """
    shares = judged.probability
    if shares is None:
        return None
    best = np.full(len(shares), judged.positive) if shares.shape[1] == 2 else np.argmax(shares, axis=1)
    share, true = shares[np.arange(len(best)), best], (judged.y == best).astype(np.float64)
    edges = np.unique(np.quantile(share, np.linspace(0, 1, PROBABILITY_BINS + 1)))
    group = np.clip(np.searchsorted(edges, share, side="right") - 1, 0, max(0, len(edges) - 2))
    rows = np.bincount(group)
    kept = rows > 0
    mean, observed = (np.bincount(group, weights=values)[kept] / rows[kept] for values in (share, true))
    low = np.array([share[group == g].min() for g in np.flatnonzero(kept)])
    high = np.array([share[group == g].max() for g in np.flatnonzero(kept)])
    error = float(np.sum(np.abs(mean - observed) * rows[kept]) / len(share))
    return Calibration(low, high, mean, observed, rows[kept], error)


def count_scores(judged: Judged, n_classes: int) -> Histogram | None:
    """Count the rows of each class by score; of more than two classes, by the probability of their class.

    None if there is neither.
    """
    if judged.rank is not None:
        values = judged.rank
    elif judged.probability is not None:
        values = judged.probability[np.arange(len(judged.y)), judged.y]
    else:
        return None
    edges = np.histogram_bin_edges(values, BINS)
    counts = [np.histogram(values[judged.y == c], edges)[0] for c in range(n_classes)]
    return Histogram(edges, np.array(counts))


def permute_columns(judged: Judged, n_classes: int, seed: int) -> Importance | None:
    """Measure how much larger the share of wrong rows is when the values of a column are permuted.

    Breiman, "Random Forests", Machine Learning 45, 2001, section 10; here on rows that the models have not
    learned from. None if there are no models, or too many columns for the rows that may be predicted.
    """
    parts = judged.parts[:MAX_CLASSIFIERS]
    if not parts:
        return None
    d = parts[0].X.shape[1]
    most = MAX_PERMUTED // (d * SHUFFLES * len(parts))
    if most < min(MIN_PERMUTED, min(len(part.y) for part in parts)):
        return None
    draws = np.random.default_rng(seed)
    rises = [_permute_part(part, most, n_classes, draws) for part in parts]
    mean = np.mean(rises, axis=0)
    rows = sum(min(most, len(part.y)) for part in parts)
    return Importance(mean.mean(axis=0), mean.std(axis=0, ddof=1), rows)


def _permute_part(part: JudgedPart, most: int, n_classes: int, draws: np.random.Generator) -> Values:
    """Return the rise of the share of wrong rows of one classifier, (permutations, d)."""
    rows = np.arange(len(part.y))
    if len(rows) > most:
        rows = np.sort(draws.choice(len(rows), most, replace=False))
    X, y = part.X[rows], part.y[rows]
    (n, d), wrong = X.shape, _count_wrong(part, X, y, n_classes)
    permuted = np.tile(X, (SHUFFLES * d, 1, 1))
    for i in range(SHUFFLES * d):
        permuted[i, :, i % d] = X[draws.permutation(n), i % d]
    after = _count_wrong(part, permuted.reshape(-1, d), np.tile(y, SHUFFLES * d), n_classes)
    return np.asarray(after.reshape(SHUFFLES, d, n).mean(axis=2) - wrong.mean())


def _count_wrong(part: JudgedPart, X: Rows, y: Classes, n_classes: int) -> NDArray[np.bool_]:
    return np.asarray(predict_part(part, X, n_classes).label != y)
