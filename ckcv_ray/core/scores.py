"""Scores: what a model's outputs for the scored rows of a split are worth, one number for each split.

A score of a split is the number that scikit-learn's function gives. Of all splits together there are the mean
over splits, and for a score that can be pooled the same figure of all scored rows as if they were one set,
from sums that are added over splits. The two differ where a score is no mean over rows: the root of a mean is
not the mean of roots, and splits differ in size. Some scores cannot be pooled: the scores of rows by models
of different splits are on different scales, so that ranking them together says nothing (AUC).
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from math import inf, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.bounds.losses import ONE, mean_loss_bound
from ckcv_ray.core.measures import Kind
from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote, suggest

CLASSES = frozenset({Kind.BINARY, Kind.MULTICLASS})
TWO, NUMBERS = frozenset({Kind.BINARY}), frozenset({Kind.REGRESSION})
OF_SECOND = frozenset({"f1", "precision", "recall", "jaccard", "average_precision"})
BY_TWO = frozenset({"roc_auc", "precision", "recall", "jaccard"})  # scorers of scikit-learn of two classes
CLIPPED = "clipped:"  # before the limit of an absolute error


class Output(StrEnum):
    """What a model gives for each row."""

    LABEL = "labels"
    RANK = "scores"
    RANKS = "scores of each class"
    PROBABILITY = "probabilities"
    VALUE = "values"


LABEL, RANK, RANKS, PROBABILITY, VALUE = Output


class Outputs(NamedTuple):
    """What a model gives for some rows; what it does not give is None.

    Attributes:
        label: class numbers, -1 for undecided, (rows,).
        rank: with two classes, what grows with the second, (rows,); with more, what grows with each class,
            (rows, n_classes).
        probability: of each class, (rows, n_classes).
        value: for numbers to predict, (rows,).
    """

    label: NDArray[np.int32] | None = None
    rank: Values | None = None
    probability: Values | None = None
    value: Values | None = None


@dataclass(frozen=True)
class Score:
    """A score.

    Attributes:
        name: its name.
        kinds: kinds of task it is defined for.
        needs: what it is computed from.
        greater: whether a larger one is better.
        of: takes y (rows,) and the outputs; the score of a split, nan where it is not defined.
        sums: takes the same and the number of classes; numbers to be added over splits. None if it cannot be
            pooled.
        n_sums: takes the number of classes; how many sums there are.
        pooled: takes the sums of all splits, (n_splits, n_sums); the score of all their rows.
        rows: takes y (rows,) and the outputs; the value of each row, (rows,), of which the score is the mean.
            None if it is no mean over rows.
        bound: takes the sums of one split, whose rows are independent, and the probability to fail; what the
            score of one model is at most on new rows, or at least where a larger one is better. None if
            nothing is proven.
    """

    name: str
    kinds: frozenset[Kind]
    needs: Output
    greater: bool
    of: Callable[[Any, Outputs], float]
    sums: Callable[[Any, Outputs, int], Sequence[float]] | None = None
    n_sums: Callable[[int], int] = lambda n_classes: 2
    pooled: Callable[[Values], float] = lambda sums: float(sums[:, 0].sum() / sums[:, 1].sum())
    bound: Callable[[Values, float], float] | None = None
    rows: Callable[[Any, Outputs], Values] | None = None

    def width(self, n_classes: int) -> int:
        """Return the number of totals: the score of a split, and its sums."""
        return 1 + (0 if self.sums is None else self.n_sums(n_classes))

    @property
    def of_second(self) -> bool:
        """Whether it is, of two classes, about the second alone, as in scikit-learn."""
        return self.name in OF_SECOND

    @property
    def loss(self) -> int:
        """1 if the smallest is best, else -1: what to multiply it by to minimise it."""
        return -1 if self.greater else 1


def _metric(name: str, select: Callable[[Outputs], Any], **options: Any) -> Callable[[Any, Outputs], float]:
    """Return a score that a function of ``sklearn.metrics`` gives."""

    def of(y: Any, outputs: Outputs) -> float:
        from sklearn import metrics

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not defined is recorded as nan
            return float(getattr(metrics, name)(y, select(outputs), **options))

    return of


def _probable(name: str) -> Callable[[Any, Outputs], float]:
    def of(y: Any, outputs: Outputs) -> float:
        from sklearn import metrics

        shares = _identity(outputs.probability)
        every = range(shares.shape[1])
        return float(getattr(metrics, name)(y, shares, labels=list(every)))

    return of


def _identity(answer: Any) -> Any:
    assert answer is not None
    return answer


def _wrong(y: Any, outputs: Outputs, n_classes: int) -> tuple[float, float]:
    return float(np.sum(_identity(outputs.label) != y)), float(len(y))


def _right(y: Any, outputs: Outputs, n_classes: int) -> tuple[float, float]:
    return float(np.sum(_identity(outputs.label) == y)), float(len(y))


def _recalls(y: Any, outputs: Outputs, n_classes: int) -> list[float]:
    """Return the right rows of each class, and then its rows."""
    right = np.bincount(y[_identity(outputs.label) == y], minlength=n_classes)
    return [*right.astype(float), *np.bincount(y, minlength=n_classes).astype(float)]


def _mean_recall(sums: Values) -> float:
    right, rows = np.split(sums.sum(axis=0), 2)
    return float(np.mean(right[rows > 0] / rows[rows > 0]))


def _confusion(y: Any, outputs: Outputs, n_classes: int) -> tuple[float, float, float]:
    """Return the true positives, the false positives, and the false negatives."""
    said, true = _identity(outputs.label) == 1, y == 1
    return float(np.sum(said & true)), float(np.sum(said & ~true)), float(np.sum(~said & true))


def _f1(sums: Values) -> float:
    right, wrong, missed = sums.sum(axis=0).tolist()
    return 2 * right / total if (total := 2 * right + wrong + missed) else 0.0


def _sum_mean(of: Callable[[Any, Outputs], float]) -> Callable[[Any, Outputs, int], Sequence[float]]:
    """Return the sum over rows of a score that is a mean over rows, and their number."""
    return lambda y, outputs, n_classes: (of(y, outputs) * len(y), float(len(y)))


def _sum_explained(y: Any, outputs: Outputs, n_classes: int) -> Sequence[float]:
    """Return the sum of squared errors, the mean value, the sum of squares about it, and the rows."""
    mean = float(np.mean(y))
    errors = float(np.sum((y - _identity(outputs.value)) ** 2))
    return errors, mean, float(np.sum((y - mean) ** 2)), float(len(y))


def _cor2(y: Any, outputs: Outputs) -> float:
    """Return the squared correlation of target and predictions, nan if either is constant."""
    return _squared_correlation(np.array([_sum_products(y, outputs, 0)]))


def _sum_products(y: Any, outputs: Outputs, n_classes: int) -> Sequence[float]:
    """Return both means, the sums of squares and products about them, and the rows."""
    value = _identity(outputs.value)
    means = float(np.mean(y)), float(np.mean(value))
    true, predicted = y - means[0], value - means[1]
    return *means, float(true @ true), float(predicted @ predicted), float(true @ predicted), float(len(y))


def _squared_correlation(sums: Values) -> float:
    """Return the squared correlation about the means of all rows, which those of the splits give."""
    rows = sums[:, 5]
    y, value = (sums[:, :2] - np.average(sums[:, :2], axis=0, weights=rows)).T
    apart = np.column_stack([rows * y * y, rows * value * value, rows * y * value])
    true, predicted, product = (sums[:, 2:5] + apart).sum(axis=0).tolist()
    return product * product / (true * predicted) if true * predicted > 0 else nan


def _r2(sums: Values) -> float:
    """Return the share that is explained, about the mean of all rows, which those of the splits give."""
    errors, mean, spread, rows = sums.T
    about = mean - np.average(mean, weights=rows)
    all_spread = float(np.sum(spread) + np.sum(rows * about**2))
    return 1.0 - float(np.sum(errors)) / all_spread if all_spread > 0 else nan


def _label(outputs: Outputs) -> Any:
    return _identity(outputs.label)


def _value(outputs: Outputs) -> Any:
    return _identity(outputs.value)


def _log_losses(y: Any, outputs: Outputs) -> Values:
    """Return minus the logarithm of the probability of each row's class, within scikit-learn's limits."""
    shares = _identity(outputs.probability)
    least = np.finfo(shares.dtype).eps
    return np.asarray(-np.log(np.clip(shares[np.arange(len(y)), y], least, 1 - least)), np.float64)


def _brier_losses(y: Any, outputs: Outputs) -> Values:
    """Return the squared distance of the probabilities from the class; half of it for two classes."""
    shares = _identity(outputs.probability)
    squares: Values = ((shares - np.eye(shares.shape[1])[y]) ** 2).sum(axis=1)
    return squares / 2 if shares.shape[1] == 2 else squares


def _relative_errors(y: Any, outputs: Outputs) -> Values:
    return np.asarray(np.abs(y - _value(outputs)) / np.maximum(np.abs(y), np.finfo(np.float64).eps))


_squared, _absolute = _metric("mean_squared_error", _value), _metric("mean_absolute_error", _value)
_relative = _metric("mean_absolute_percentage_error", _value)
_log_loss, _brier = _probable("log_loss"), _probable("brier_score_loss")

OWN = (
    Score(
        "zero_one",
        CLASSES,
        LABEL,
        False,
        lambda y, a: float(np.mean(_label(a) != y)),
        _wrong,
        rows=lambda y, a: np.asarray(_label(a) != y, np.float64),
        bound=lambda sums, delta: float(clopper_pearson(int(sums[0]), int(sums[1]), delta)),
    ),
    Score(
        "accuracy",
        CLASSES,
        LABEL,
        True,
        _metric("accuracy_score", _label),
        _right,
        rows=lambda y, a: np.asarray(_label(a) == y, np.float64),
        bound=lambda sums, delta: 1.0 - float(clopper_pearson(int(sums[1] - sums[0]), int(sums[1]), delta)),
    ),
    Score(
        "balanced_accuracy",
        CLASSES,
        LABEL,
        True,
        _metric("balanced_accuracy_score", _label),
        _recalls,
        lambda n_classes: 2 * n_classes,
        _mean_recall,
    ),
    Score(
        "f1",
        TWO,
        LABEL,
        True,
        _metric("f1_score", _label, average="macro", labels=[1]),
        _confusion,
        lambda _: 3,
        _f1,
    ),
    Score("auc", TWO, RANK, True, _metric("roc_auc_score", lambda a: _identity(a.rank))),
    Score("cross_entropy", CLASSES, PROBABILITY, False, _log_loss, _sum_mean(_log_loss), rows=_log_losses),
    Score("log_loss", CLASSES, PROBABILITY, False, _log_loss, _sum_mean(_log_loss), rows=_log_losses),
    Score("brier", CLASSES, PROBABILITY, False, _brier, _sum_mean(_brier), rows=_brier_losses),
    Score(
        "squared",
        NUMBERS,
        VALUE,
        False,
        _squared,
        _sum_mean(_squared),
        rows=lambda y, a: np.asarray((y - _value(a)) ** 2),
    ),
    Score(
        "absolute",
        NUMBERS,
        VALUE,
        False,
        _absolute,
        _sum_mean(_absolute),
        rows=lambda y, a: np.asarray(np.abs(y - _value(a))),
    ),
    Score(
        "rmse",
        NUMBERS,
        VALUE,
        False,
        _metric("root_mean_squared_error", _value),
        _sum_mean(_squared),
        pooled=lambda sums: sqrt(sums[:, 0].sum() / sums[:, 1].sum()),
    ),
    Score("mape", NUMBERS, VALUE, False, _relative, _sum_mean(_relative), rows=_relative_errors),
    Score("r2", NUMBERS, VALUE, True, _metric("r2_score", _value), _sum_explained, lambda _: 4, _r2),
    Score("cor2", NUMBERS, VALUE, True, _cor2, _sum_products, lambda _: 6, _squared_correlation),
)
SCORE_NAMES = (*(score.name for score in OWN), f"{CLIPPED}VALUE")
_SQUARED_OF_CLASSES = Score(
    "squared", CLASSES, PROBABILITY, False, _brier, _sum_mean(_brier), rows=_brier_losses
)


def _make_clipped(name: str) -> Score:
    """Return the absolute error, at most the limit in its name: it is bounded, so that a bound is proven.

    Its sums are the errors, the rows, and the errors as ``core.bounds.losses`` counts them.
    """
    limit = _limit(name)

    def errors(y: Any, outputs: Outputs) -> Values:
        return np.asarray(np.minimum(np.abs(y - _identity(outputs.value)), limit), np.float64)

    def sums(y: Any, outputs: Outputs, n_classes: int) -> tuple[float, float, float]:
        found = errors(y, outputs)
        counted = np.minimum(ONE, np.ceil(found / limit * ONE))
        return float(np.sum(found)), float(len(y)), float(np.sum(counted))

    return Score(
        name,
        NUMBERS,
        VALUE,
        False,
        lambda y, outputs: float(np.mean(errors(y, outputs))),
        sums,
        lambda n_classes: 3,
        rows=errors,
        bound=lambda sums, delta: limit * mean_loss_bound([int(sums[2])], int(sums[1]), delta),
    )


def make_score(name: str, kind: Kind) -> Score:
    """Return the score of a name, for a kind of task: ``squared`` has one for classes too, Brier's.

    Raises:
        InputError: there is none.
    """
    found = [score for score in (*OWN, _SQUARED_OF_CLASSES) if score.name == name]
    for score in found:
        if kind in score.kinds:
            return score
    usable = sorted({score.name for score in (*OWN, _SQUARED_OF_CLASSES) if kind in score.kinds})
    usable += [f"{CLIPPED}50"] if kind is Kind.REGRESSION else []
    if name.startswith(CLIPPED) and kind is Kind.REGRESSION:
        return _make_clipped(name)
    if found:
        raise InputError(f"measure={name} is not for {kind}: choose {', '.join(usable)}")
    return _scorer(name, kind, usable)


def check_score_name(name: str, kinds: Iterable[Kind]) -> None:
    """Raise InputError if no score has a name, for tasks of any kind; what is not ours is looked up."""
    listed = (*OWN, _SQUARED_OF_CLASSES)
    if name.startswith(CLIPPED) or any(score.name == name for score in listed):
        return
    _find_scorer(name, sorted({score.name for score in listed if score.kinds & {*kinds}}))


def list_score_names() -> frozenset[str]:
    """Return the names of all scores."""
    from sklearn.metrics import get_scorer_names

    return frozenset((*(score.name for score in OWN), *get_scorer_names()))


def _limit(name: str) -> float:
    """Return the limit in the name of a clipped error, such as clipped:50."""
    try:
        limit = float(name.removeprefix(CLIPPED))
    except ValueError:
        limit = nan
    if not 0.0 < limit < inf:
        raise InputError(
            f"measure={quote(name)}: expected {CLIPPED} and the largest error that counts, such as "
            "clipped:50 or clipped:0.5"
        )
    return limit


def _find_scorer(name: str, usable: Sequence[str]) -> Any:
    from sklearn.metrics import get_scorer, get_scorer_names

    if name not in get_scorer_names():
        raise InputError(
            f"measure={quote(name)} is not known: choose {', '.join(usable)}, or a scorer of scikit-learn "
            f"such as roc_auc_ovr{suggest(name, [*usable, *get_scorer_names()])}"
        )
    return get_scorer(name)


def _scorer(name: str, kind: Kind, usable: Sequence[str]) -> Score:
    scorer = _find_scorer(name, usable)
    defined = NUMBERS if scorer._score_func.__module__.endswith("._regression") else CLASSES
    if kind not in defined or (kind is Kind.MULTICLASS and name in BY_TWO):
        such = {Kind.BINARY: "roc_auc", Kind.MULTICLASS: "roc_auc_ovr", Kind.REGRESSION: "neg_max_error"}[
            kind
        ]
        raise InputError(
            f"measure={name} is not for {kind}: choose {', '.join(usable)}, or a scorer of scikit-learn such "
            f"as {such}"
        )
    method = scorer._response_method
    methods = {method} if isinstance(method, str) else set(method)

    def of(y: Any, outputs: Outputs) -> float:
        with warnings.catch_warnings(), suppress(Exception):  # it is not defined, as where a class is missing
            warnings.simplefilter("ignore")
            return float(scorer(_as_estimator(outputs), None, y))
        return nan

    return Score(name, frozenset({kind}), _needs(methods, kind), True, of)


def _needs(methods: set[str], kind: Kind) -> Output:
    """Return what a scorer asks for that calls one of these methods of an estimator."""
    if kind is Kind.REGRESSION:
        return VALUE
    if "predict" in methods:
        return LABEL
    if "decision_function" not in methods:
        return PROBABILITY
    return RANK if kind is Kind.BINARY else RANKS


def _as_estimator(outputs: Outputs) -> Any:
    """Return outputs as an object that a scorer of scikit-learn can ask, like a fitted estimator."""
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def __init__(self) -> None:
            several = outputs.rank if outputs.rank is not None and outputs.rank.ndim == 2 else None
            shares = outputs.probability if several is None else several
            known = shares.shape[1] if shares is not None else int(_identity(outputs.label).max()) + 1
            self.classes_ = np.arange(max(2, known))

        def predict(self, X: Any) -> Any:
            return outputs.label

    class Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:
            return outputs.value

    def predict_proba(self: Any, X: Any) -> Any:
        return outputs.probability

    def decision_function(self: Any, X: Any) -> Any:
        return outputs.rank

    if outputs.value is not None:
        return Regressor()
    if outputs.probability is not None:
        Classifier.predict_proba = predict_proba
    if outputs.rank is not None:
        Classifier.decision_function = decision_function
    return Classifier()
