"""Measures: the losses of rows as totals that can be added over sets of rows, and scores of splits.

A prediction of -1 is undecided and counts as wrong in every measure. Where rows belong to groups, the loss of
a group is the mean loss of its rows: for classes, the share that is wrong. A measure of groups knows the
group of each scored row; its totals, for one model on one split, are never added over splits.

Numbers by class label, such as weights and costs, are given as ``sick=10,well=1``, or as a mapping. Their
canonical form is text, sorted by label, with numbers to 12 significant digits: hashable, the same for every
order, and the same in JSON, in TOML and on the command line. It is a row of a CSV file, with labels as
``str`` writes them; blanks around a label do not count.

The score of a split is the number that scikit-learn's function gives for a model's outputs on the scored
rows. For all splits together there is the mean over splits and, for a score that can be pooled, the same
figure for all scored rows as if they were one set, from sums that are added over splits. The two differ where
a score is not a mean over rows, since the root of a mean is not the mean of roots, and where splits differ in
size. Some scores cannot be pooled: models of different splits score rows on different scales, so that ranking
them together says nothing (AUC). Scores that are means over rows have one more sum, for estimates that are
corrected by it. Scores that a user's function gives are known by its name and the digest of its source.
"""

import csv
import hashlib
import inspect
import pickle
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, nan, sqrt
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.options import HasOptions, option
from ckcv_ray.errors import (
    ONE,
    Classes,
    Index,
    InputError,
    Numbers,
    Values,
    cut,
    number,
    quote,
    suggest,
    write_row,
)

UNDECIDED = -1
GRAIN = 1 << 12  # grain of the losses of numbers: 2**-20 of the largest one


class Kind(StrEnum):
    """The kind of target to predict."""

    BINARY = "two classes"
    MULTICLASS = "three or more classes"
    REGRESSION = "numbers"


class Measure(Protocol):
    """A loss that is totalled over predictions.

    Attributes:
        kinds: the kinds of task that it is defined for.
    """

    kinds: ClassVar[frozenset[Kind]]

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""

    def totals(self, y: Numbers, predicted: Numbers, n_classes: int) -> Numbers:
        """Return the totals over rows.

        Args:
            y: classes 0 .. n_classes - 1, or numbers, (rows,).
            predicted: classes, or -1 for undecided, or numbers, (..., rows).
            n_classes: number of classes of the task; 0 with numbers.

        Returns:
            Shape (..., columns).
        """


@dataclass(frozen=True, eq=False)
class Losses(Measure):
    """The base of the measures of each unit's loss; units are rows, or groups of them.

    A group's loss is the mean loss of its rows, rounded up, so that totals are exact in any order and bounds
    hold for the loss.

    Attributes:
        groups: number of the group of each scored row, (rows,); None where units are rows.
    """

    groups: Index | None = field(default=None, kw_only=True)

    @abstractmethod
    def measure_rows(self, y: Numbers, predicted: Numbers) -> NDArray[np.int64]:
        """Return the loss of each row, 0 .. ``ONE``, in the shape of ``predicted``."""

    def measure_losses(self, y: Numbers, predicted: Numbers) -> NDArray[np.int64]:
        """Return the loss of each unit, 0 .. ``ONE``, groups ordered by their numbers, (..., units)."""
        losses = self.measure_rows(y, predicted)
        if self.groups is None:
            return losses
        order = np.argsort(self.groups, kind="stable")
        starts = np.flatnonzero(np.diff(self.groups[order], prepend=-1))
        rows = np.diff(np.append(starts, len(order)))
        return np.asarray(-(-np.add.reduceat(losses[..., order], starts, axis=-1) // rows))  # rounded up

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""
        return 1

    def totals(self, y: Numbers, predicted: Numbers, n_classes: int) -> NDArray[np.int64]:
        """Add up the losses of units; see ``Measure``."""
        return np.asarray(self.measure_losses(y, predicted).sum(axis=-1, keepdims=True))


class ZeroOne(Losses):
    """Wrong rows by their class: one total for each class; with groups the sum of their losses comes last."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})

    def columns(self, n_classes: int) -> int:
        """Return the number of classes, and with groups one more."""
        return n_classes + (self.groups is not None)

    def totals(self, y: Numbers, predicted: Numbers, n_classes: int) -> NDArray[np.int64]:
        """Count wrong rows by class; see ``Measure``."""
        wrong = predicted != y
        counts = np.stack([np.sum(wrong & (y == c), axis=-1) for c in range(n_classes)], axis=-1)
        if self.groups is None:
            return counts
        return np.append(counts, super().totals(y, predicted, n_classes), axis=-1)

    def measure_rows(self, y: Numbers, predicted: Numbers) -> NDArray[np.int64]:
        """Return ``ONE`` for each row that is wrong, else 0."""
        return np.asarray(np.multiply(predicted != y, ONE, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class ClippedErrors(Losses):
    """The sum over units of the absolute error, at most ``clip`` and divided by it, in units of 1 / ``ONE``.

    Each row's loss is rounded up to a multiple of ``GRAIN`` of these units: totals are exact in any order,
    bounds hold for the error itself, and the last bits of a prediction hardly ever matter. A prediction that
    is not a number counts as the largest error.
    """

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.REGRESSION})

    clip: float  # the error beyond which a prediction counts as no more wrong, positive

    def measure_rows(self, y: Numbers, predicted: Numbers) -> NDArray[np.int64]:
        """Return the loss of each row, 0 .. ``ONE``, in the shape of ``predicted``."""
        with np.errstate(invalid="ignore", over="ignore"):  # predictions that are not finite
            shares: Values = np.abs(predicted - y) / self.clip
        shares = np.where(shares < 1, shares, 1.0)  # nan too counts as 1
        return np.ceil(shares * (ONE // GRAIN)).astype(np.int64) * GRAIN


ZERO_ONE = ZeroOne()


def average_by_group(wrong: ArrayLike, group: Index) -> Values:
    """Return the share of wrong rows in each group, (groups,), given the number of each row's group."""
    return np.asarray(np.bincount(group, wrong) / np.bincount(group))


MAX_LABELS = 1_000
MAX_TEXT = 400
LABEL_FORM = "LABEL=NUMBER for one label or more, such as sick=10,well=1"


def canonicalize(name: str, values: object, form: str = LABEL_FORM, zero: bool = False) -> str:
    """Return the canonical text of numbers by label, given as text or as a mapping.

    Args:
        name: name of the option, for messages.
        values: the numbers.
        form: what is allowed, for messages.
        zero: whether a number may be 0; else all must be positive.

    Raises:
        InputError: the value is neither, is empty, names a label twice, or has a number out of range.
    """
    pairs: list[tuple[str, float]] = []
    with suppress(ValueError, csv.Error):
        if isinstance(values, str):
            pairs = parse_pairs(values)
        elif isinstance(values, Mapping):
            pairs = [(str(label).strip(), number(name, value)) for label, value in values.items()]
    given = dict(pairs)
    sound = all(label and 0 <= value < inf and (value or zero) for label, value in pairs)
    if not (sound and 0 < len(given) == len(pairs) <= MAX_LABELS):
        raise InputError(
            f"{name}={quote(values)}: expected {form}, or a mapping of at most {MAX_LABELS:,} labels to "
            f"numbers; each label once, and each number {'0 or more' if zero else 'positive'} and finite"
        )
    return to_text(given)


def parse_pairs(text: str) -> list[tuple[str, float]]:
    """Return the labels and numbers of LABEL=NUMBER,LABEL=NUMBER, in order; a label may contain "=".

    Raises:
        ValueError or csv.Error: the text is not of this form, as no canonical text is.
    """
    (cells,) = csv.reader([text], skipinitialspace=True, strict=True)
    pairs = (cell.rpartition("=") for cell in cells)
    return [(label.strip(), float(value)) for label, _, value in pairs]


def to_text(numbers: Mapping[str, float]) -> str:
    """Return numbers by label as canonical text."""
    return write_row(f"{label.strip()}={abs(value):.12g}" for label, value in sorted(numbers.items()))


def of_classes(name: str, text: str, classes: Sequence[object]) -> list[float | None]:
    """Return the number of each class from canonical text; None for a class that is not named.

    Raises:
        InputError: a name is not a label of these classes, or two names refer to one label.
    """
    pairs = parse_pairs(text)
    found = {find_class(name, label, classes): value for label, value in pairs}
    if len(found) < len(pairs):
        raise InputError(f"{name}={quote(text)} names a label of the target twice: name each label once")
    return [found.get(i) for i in range(len(classes))]


def find_class(name: str, label: str, classes: Sequence[object]) -> int:
    """Return the number of the class with a label.

    A label is named by its text; a number also by an equal one, as 1 and 1.0; True and False in any case.

    Raises:
        InputError: there is no such class.
    """
    value = nan  # equal to no class, as a label is that is no number
    with suppress(ValueError):
        value = float(label)
    for i, known in enumerate(classes):
        if str(known).strip() == label.strip():
            return i
    for i, known in enumerate(classes):
        if isinstance(known, bool) and label.casefold() == str(known).casefold():
            return i
        if not isinstance(known, bool | str) and known == value:
            return i
    raise InputError(
        f"{name} names {quote(label)}, not a label of the target: the labels are {some_labels(classes)}"
    )


def some_labels(classes: Sequence[object]) -> str:
    """Format the labels of classes for a message, limited in number and length."""
    more = f", ... ({len(classes)} in all)" if len(classes) > 12 else ""
    return cut(", ".join(quote(str(known)) for known in classes[:12]), MAX_TEXT) + more


CLASSES = frozenset({Kind.BINARY, Kind.MULTICLASS})
TWO, NUMBERS = frozenset({Kind.BINARY}), frozenset({Kind.REGRESSION})
BY_TWO = frozenset({"roc_auc", "f1", "precision", "recall", "jaccard"})  # for two classes
OF_SECOND = frozenset({"f1", "precision", "recall", "jaccard", "average_precision"})  # of two, as in sklearn
CLIPPED = "clipped:"  # followed by the limit of an absolute error


class Output(StrEnum):
    """What a model outputs for each row."""

    LABEL = "labels"
    RANK = "scores"
    RANKS = "scores of each class"
    PROBABILITY = "probabilities"
    VALUE = "values"


LABEL, RANK, RANKS, PROBABILITY, VALUE = Output


class Outputs(NamedTuple):
    """What a model outputs for some rows; what it does not output is None.

    Attributes:
        label: class numbers, -1 for undecided, (rows,).
        rank: with two classes, a score that is larger the more likely the second, (rows,); with more, one
            such score for each class, (rows, n_classes).
        probability: probability of each class, (rows, n_classes).
        value: for numbers to predict, (rows,).
    """

    label: NDArray[np.int32] | None = None
    rank: Values | None = None
    probability: Values | None = None
    value: Values | None = None


# functions of y and the ``Outputs``, which hold at least what the score needs
OfSplit = Callable[[Any, Any], float]
OfRows = Callable[[Any, Any], Values]
Sums = Callable[[Any, Any, int], Sequence[float]]


def _divide(sums: Values) -> float:
    return float(sums[:, 0].sum() / sums[:, 1].sum())


@dataclass(frozen=True)
class Score:
    """A score.

    Attributes:
        name: its name.
        kinds: the kinds of task that it is defined for.
        needs: what it is computed from.
        greater: whether a larger score is better.
        of: takes y (rows,) and the outputs; returns the score of a split, nan where it is not defined.
        sums: takes the same and the number of classes; returns numbers to be added over splits. None if the
            score cannot be pooled.
        n_sums: takes the number of classes; returns how many sums there are.
        pooled: takes the sums of all splits, (n_splits, n_sums); returns the score of all their rows.
        rows: takes y (rows,) and the outputs; returns the values, (rows,), whose mean is the score. None if
            it is not a mean over rows.
        bound: what a bound on new rows follows from (``core.intervals.bound_score``): "wrong" or "right" if
            the sums are the numbers of such rows and of all rows; "losses" if the third sum is that of losses
            in units of 1 / ``ONE``. Empty if nothing is proven.
        largest: the largest value of a row, where there is one.
    """

    name: str
    kinds: frozenset[Kind]
    needs: Output
    greater: bool
    of: OfSplit
    sums: Sums | None = None
    n_sums: Callable[[int], int] = lambda n_classes: 2
    pooled: Callable[[Values], float] = _divide
    bound: str = ""
    largest: float = 1.0
    rows: OfRows | None = None

    def width(self, n_classes: int) -> int:
        """Return the number of totals: the score of a split, and its sums."""
        return 1 + (0 if self.sums is None else self.n_sums(n_classes))

    @property
    def loss(self) -> int:
        """1 if the smallest score is best, else -1: the factor by which it becomes something to minimise."""
        return -1 if self.greater else 1


def _metric(name: str, needs: Output, **options: Any) -> OfSplit:
    """Return a score that a function of ``sklearn.metrics`` computes from a part of the outputs."""

    def of(y: Any, outputs: Any) -> float:
        from sklearn import metrics

        given = getattr(outputs, needs.name.lower())
        labels = {"labels": list(range(given.shape[1]))} if needs is PROBABILITY else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an undefined score is recorded as nan
            return float(getattr(metrics, name)(y, given, **labels, **options))

    return of


def _wrong(y: Any, outputs: Any) -> Values:
    return np.asarray(outputs.label != y, np.float64)


def _right(y: Any, outputs: Any) -> Values:
    return np.asarray(outputs.label == y, np.float64)


def _average(rows: OfRows) -> OfSplit:
    return lambda y, outputs: float(np.mean(rows(y, outputs)))


def _count(rows: OfRows) -> Sums:
    """Return the number of wrong rows, or of right ones, and of all rows."""
    return lambda y, outputs, n_classes: (float(np.sum(rows(y, outputs))), float(len(y)))


def _recalls(y: Any, outputs: Any, n_classes: int) -> list[float]:
    """Return the numbers of right rows of each class, followed by those of all its rows."""
    right = np.bincount(y[outputs.label == y], minlength=n_classes)
    return [*right.astype(float), *np.bincount(y, minlength=n_classes).astype(float)]


def _mean_recall(sums: Values) -> float:
    right, rows = np.split(sums.sum(axis=0), 2)
    return float(np.mean(right[rows > 0] / rows[rows > 0]))


def _confusion(y: Any, outputs: Any, n_classes: int) -> tuple[float, float, float]:
    """Return the numbers of true positives, false positives, and false negatives."""
    said, true = outputs.label == 1, y == 1
    return float(np.sum(said & true)), float(np.sum(said & ~true)), float(np.sum(~said & true))


def _f1(sums: Values) -> float:
    right, wrong, missed = sums.sum(axis=0).tolist()
    return 2 * right / total if (total := 2 * right + wrong + missed) else 0.0


def _sum_explained(y: Any, outputs: Any, n_classes: int) -> Sequence[float]:
    """Return the sum of squared errors, the mean value, the sum of squares about it, and the row count."""
    mean = float(np.mean(y))
    errors = float(np.sum((y - outputs.value) ** 2))
    return errors, mean, float(np.sum((y - mean) ** 2)), float(len(y))


def _cor2(y: Any, outputs: Any) -> float:
    return _squared_correlation(np.array([_sum_products(y, outputs, 0)]))


def _sum_products(y: Any, outputs: Any, n_classes: int) -> Sequence[float]:
    """Return both means, the sums of squares and products about them, and the row count."""
    value = outputs.value
    means = float(np.mean(y)), float(np.mean(value))
    true, predicted = y - means[0], value - means[1]
    return *means, float(true @ true), float(predicted @ predicted), float(true @ predicted), float(len(y))


def _squared_correlation(sums: Values) -> float:
    """Return r^2 about the means of all rows, computed from the splits' means; nan if either is constant."""
    rows = sums[:, 5]
    y, value = (sums[:, :2] - np.average(sums[:, :2], axis=0, weights=rows)).T
    apart = np.column_stack([rows * y * y, rows * value * value, rows * y * value])
    true, predicted, product = (sums[:, 2:5] + apart).sum(axis=0).tolist()
    return product * product / (true * predicted) if true * predicted > 0 else nan


def _r2(sums: Values) -> float:
    """Return the explained share, about the mean of all rows, computed from the splits' means."""
    errors, mean, spread, rows = sums.T
    about = mean - np.average(mean, weights=rows)
    all_spread = float(np.sum(spread) + np.sum(rows * about**2))
    return 1.0 - float(np.sum(errors)) / all_spread if all_spread > 0 else nan


def _log_losses(y: Any, outputs: Any) -> Values:
    """Return minus the logarithm of the probability of each row's class, clipped as by scikit-learn."""
    shares = outputs.probability
    least = np.finfo(shares.dtype).eps
    return np.asarray(-np.log(np.clip(shares[np.arange(len(y)), y], least, 1 - least)), np.float64)


def _brier_losses(y: Any, outputs: Any) -> Values:
    """Return the squared distance between the probabilities and the class; half of it for two classes."""
    shares = outputs.probability
    squares: Values = ((shares - np.eye(shares.shape[1])[y]) ** 2).sum(axis=1)
    return squares / 2 if shares.shape[1] == 2 else squares


def _mean_loss(name: str, needs: Output, metric: str, rows: OfRows) -> Score:
    """Return a loss that is a mean over rows; its sums are that of the losses and the number of rows."""
    of, kinds = _metric(metric, needs), NUMBERS if needs is VALUE else CLASSES
    return Score(name, kinds, needs, False, of, lambda y, a, _: (of(y, a) * len(y), float(len(y))), rows=rows)


def _absolute_errors(y: Any, outputs: Any) -> Values:
    return np.asarray(np.abs(y - outputs.value))


def _relative_errors(y: Any, outputs: Any) -> Values:
    return np.asarray(_absolute_errors(y, outputs) / np.maximum(np.abs(y), np.finfo(np.float64).eps))


_balanced = _metric("balanced_accuracy_score", LABEL)
_f1_score = _metric("f1_score", LABEL, average="macro", labels=[1])
_root = _metric("root_mean_squared_error", VALUE)
_squares = _mean_loss("squared", VALUE, "mean_squared_error", lambda y, a: (y - a.value) ** 2)

OWN = (
    Score("zero_one", CLASSES, LABEL, False, _average(_wrong), _count(_wrong), rows=_wrong, bound="wrong"),
    Score("accuracy", CLASSES, LABEL, True, _average(_right), _count(_right), rows=_right, bound="right"),
    Score("balanced_accuracy", CLASSES, LABEL, True, _balanced, _recalls, lambda n: 2 * n, _mean_recall),
    Score("f1", TWO, LABEL, True, _f1_score, _confusion, lambda _: 3, _f1),
    Score("auc", TWO, RANK, True, _metric("roc_auc_score", RANK)),
    _mean_loss("cross_entropy", PROBABILITY, "log_loss", _log_losses),
    _mean_loss("log_loss", PROBABILITY, "log_loss", _log_losses),
    _mean_loss("brier", PROBABILITY, "brier_score_loss", _brier_losses),
    _squares,
    _mean_loss("absolute", VALUE, "mean_absolute_error", _absolute_errors),
    replace(_squares, name="rmse", of=_root, pooled=lambda sums: sqrt(_divide(sums)), rows=None),
    _mean_loss("mape", VALUE, "mean_absolute_percentage_error", _relative_errors),
    Score("r2", NUMBERS, VALUE, True, _metric("r2_score", VALUE), _sum_explained, lambda _: 4, _r2),
    Score("cor2", NUMBERS, VALUE, True, _cor2, _sum_products, lambda _: 6, _squared_correlation),
)
SCORE_NAMES = (*(score.name for score in OWN), f"{CLIPPED}VALUE")
ALL = (*OWN, _mean_loss("squared", PROBABILITY, "brier_score_loss", _brier_losses))  # Brier's, for classes


def _make_clipped(name: str) -> Score:
    """Return the absolute error clipped at the limit in its name: it is bounded, so that a bound is proven.

    Its sums are the errors, the rows, and the errors as ``core.bounds.betting`` counts them.
    """
    limit = nan
    with suppress(ValueError):
        limit = float(name.removeprefix(CLIPPED))
    if not 0.0 < limit < inf:
        raise InputError(
            f"measure={quote(name)}: expected {CLIPPED} and the largest error that counts, such as "
            "clipped:50 or clipped:0.5"
        )

    def errors(y: Any, outputs: Any) -> Values:
        return np.asarray(np.minimum(_absolute_errors(y, outputs), limit), np.float64)

    def sums(y: Any, outputs: Any, n_classes: int) -> tuple[float, float, float]:
        found = errors(y, outputs)
        counted = np.minimum(ONE, np.ceil(found / limit * ONE))
        return float(np.sum(found)), float(len(y)), float(np.sum(counted))

    split = _average(errors)
    return Score(
        name, NUMBERS, VALUE, False, split, sums, lambda _: 3, rows=errors, bound="losses", largest=limit
    )


def make_score(name: str, kind: Kind) -> Score:
    """Return the score with a name, for a kind of task: for classes ``squared`` is Brier's score.

    Raises:
        InputError: there is no such score.
    """
    able = {score.name: score for score in ALL if kind in score.kinds}
    if name in able:
        return able[name]
    if name.startswith(CLIPPED) and kind is Kind.REGRESSION:
        return _make_clipped(name)
    from sklearn.metrics import get_scorer, get_scorer_names  # takes a second

    if name in get_scorer_names() and not (kind is Kind.MULTICLASS and name in BY_TWO):
        scorer = get_scorer(name)
        if (kind is Kind.REGRESSION) == scorer._score_func.__module__.endswith("._regression"):
            return _take_scorer(name, scorer, kind)
    usable = [*sorted(able), f"{CLIPPED}50"] if kind is Kind.REGRESSION else sorted(able)
    such = {Kind.BINARY: "roc_auc", Kind.MULTICLASS: "roc_auc_ovr", Kind.REGRESSION: "neg_max_error"}
    raise InputError(
        f"measure={quote(name)} is not for {kind}: choose {', '.join(usable)}, or a scorer of "
        f"scikit-learn such as {such[kind]}{suggest(name, [*usable, *get_scorer_names()])}"
    )


def _take_scorer(name: str, scorer: Any, kind: Kind) -> Score:
    method = scorer._response_method
    methods = {method} if isinstance(method, str) else set(method)
    if kind is Kind.REGRESSION:
        needs = VALUE
    elif "predict" in methods:
        needs = LABEL
    elif "decision_function" not in methods:
        needs = PROBABILITY
    else:
        needs = RANK if kind is Kind.BINARY else RANKS

    def of(y: Any, outputs: Any) -> float:
        answers = {VALUE: outputs.value, LABEL: outputs.label, PROBABILITY: outputs.probability}
        answer = answers.get(needs, outputs.rank)
        if needs is PROBABILITY and kind is Kind.BINARY:
            answer = answer[:, 1]
        with warnings.catch_warnings(), suppress(Exception):  # it is undefined, as where a class is missing
            warnings.simplefilter("ignore")
            return float(scorer._sign * scorer._score_func(y, answer, **scorer._kwargs))
        return nan

    return Score(name, frozenset({kind}), needs, True, of)


def extend_score(score: Score) -> Score:
    """Return a score with one more sum, that without information; itself if it is not a mean over rows.

    Without information, targets have nothing to do with the outputs: the sum is the mean over all pairs of
    the target of one row and the output of another or the same one, which is gamma in Efron, Tibshirani,
    "Improvements on cross-validation: the .632+ bootstrap method", Journal of the American Statistical
    Association 92 (1997), equation 24.
    """
    rows, sums = score.rows, score.sums
    if rows is None or sums is None:
        return score

    def extend(y: Any, outputs: Any, n_classes: int) -> Sequence[float]:
        found = sums(y, outputs, n_classes)
        targets, counts = np.unique(y, return_counts=True)  # each distinct target meets all outputs once
        means = [float(rows(np.full(len(y), target), outputs).mean()) for target in targets]
        return *found, float(np.average(means, weights=counts))

    return replace(
        score,
        sums=extend,
        n_sums=lambda n_classes: score.n_sums(n_classes) + 1,
        pooled=lambda found: score.pooled(found[:, :-1]),
    )


PARAMETER = "probability"


def _check_digest(name: str, value: object) -> str:
    if not (isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)):
        raise InputError(f"{name}={quote(value)} of a measure: expected a SHA-256 in hexadecimal digits")
    return value


@dataclass(frozen=True)
class OwnScore(HasOptions):
    """A function of the true labels and the predicted ones, each (rows,), that returns a number: a loss.

    If it has a parameter ``probability``, that receives the probability of each class, (rows, n_classes), in
    the order of the sorted labels of the table, 0 for a class without training rows.

    Attributes:
        name: name of the function.
        digest: SHA-256 of its source, and of the values that it holds: defaults, and its closure.
        function: the function itself; None where a folder is read, which does not keep it.
    """

    name: str
    digest: str = option("", _check_digest, "Digest of the function.")
    function: Callable[..., Any] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, function: object) -> "OwnScore":
        """Take a function, or what a folder holds of one.

        Raises:
            InputError: it is not one, has no name or no readable source, or has the name of another score.
        """
        given: Any = function
        kept = isinstance(function, Mapping) and set(function) == {"name", "digest"}
        name = given["name"] if kept else getattr(given, "__name__", "")
        if not (isinstance(name, str) and name.isidentifier() and (kept or callable(given))):
            raise InputError(
                f"measure={quote(function)} is neither the name of a measure nor a function with a name: "
                "write def my_loss(y, predicted): ..."
            )
        from sklearn.metrics import get_scorer_names

        known = name in (*SCORE_NAMES, *get_scorer_names())
        if known or str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
            raise InputError(
                f"measure={name}: your function is taken as a loss, whose smallest value is best, and needs "
                "a name of its own; name a measure of scikit-learn by text, such as 'f1_macro'"
            )
        if kept:
            return cls(name, given["digest"])
        try:
            content = _take_source(given)
        except Exception as error:  # pickling raises errors of all kinds
            raise InputError(
                f"measure={name} is known by its source and the values that it keeps, which cannot be read "
                f"({error}): define it in a file or a notebook, with values that can be pickled"
            ) from None
        return cls(name, hashlib.sha256(content).hexdigest(), given)

    def score(self, kind: Kind, labelled: Callable[[Classes], NDArray[np.generic]]) -> Score:
        """Return the score of the function on a task; ``labelled`` gives the original labels of classes.

        Raises:
            InputError: it takes probabilities, and numbers are predicted.
        """
        function = self.function  # None where a folder is read
        takes_probability = function is not None and PARAMETER in inspect.signature(function).parameters
        if takes_probability and kind is Kind.REGRESSION:
            raise InputError(
                f"measure={self.name} has a parameter {PARAMETER}, of classes, and the learner predicts "
                "numbers: leave the parameter out"
            )

        def of(y: Any, outputs: Any) -> float:
            if function is None:
                raise InputError(
                    f"the function {self.name} is not kept in the folder: pass it again as a measure"
                )
            if kind is Kind.REGRESSION:
                result = function(y, outputs.value)
            else:
                given = {PARAMETER: np.array(outputs.probability)} if takes_probability else {}
                predicted = np.maximum(outputs.label, 0)
                result = function(labelled(y), labelled(predicted), **given)
            if not isinstance(result, Real | np.number) or isinstance(result, bool):
                raise ValueError(f"measure {self.name} returned {str(result)[:60]!r}: expected a number")
            return float(result)

        needs = VALUE if kind is Kind.REGRESSION else PROBABILITY if takes_probability else LABEL
        return Score(self.name, frozenset({kind}), needs, False, of)


def _take_source(function: Any) -> bytes:
    """Return the source of a function, and the values that it holds: functions among them likewise."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    defaults = getattr(function, "__defaults__", None) or ()
    named = sorted((getattr(function, "__kwdefaults__", None) or {}).items())
    content = inspect.getsource(function).encode()
    for value in [*cells, *defaults, *(value for _, value in named)]:
        if inspect.isfunction(value):
            content += _take_source(value)
        else:
            content += value.__name__.encode() if inspect.ismodule(value) else pickle.dumps(value, protocol=5)
    return content
