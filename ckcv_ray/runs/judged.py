"""How well models judge rows they have not learned from: measured, never proven.

These are the rows that the first claim of a study counts: those held out, or the estimate sets of the
winner's splits. Without a certification, they are in the folder if the study keeps predictions. Nothing is
fitted: stored models predict, for at most ``MAX_JUDGED`` rows. ROC curves are those of single classifiers,
since scores of different models are on different scales (``core.measures``).

Calibrated probabilities: of the rows that are given about 30 %, about 30 % are of the class.

If probabilities are calibrated, each row is of a class with the probability given, independently of the other
rows. How many of n rows are, chosen by these probabilities alone, is then a sum of events of mean probability
p, and its tails are no heavier than those of Bin(n, p) (Hoeffding, Annals of Mathematical Statistics 27,
1956); at the counts 1 and n - 1, where that does not hold, only one tail can miss. So the exact interval of
the share found, at level 1 - delta/b, misses p with probability at most delta/b, and any of b at most delta.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray import errors
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.intervals import MISS
from ckcv_ray.core.measures import PROBABILITY, RANK, Output, Outputs
from ckcv_ray.errors import Index, Rows, StoreError, Values, cut, format_level, format_number, pluralize
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.ensemble import Ensemble, Prediction
from ckcv_ray.runs.result import Certified, Result
from ckcv_ray.study.parts import Holdout

GRID = np.linspace(0.0, 1.0, 101)  # of false positive rates
SHUFFLES = 3
MAX_PERMUTED = 60_000  # rows that may be predicted for the importance of columns
MIN_PERMUTED = 50  # rows; with fewer, no importance is computed
SEE = "ckcv verify"
MAX_CLASSIFIERS = 3  # that take part in it
RELATED = "rows of a group are related, and exact intervals need independent ones"
SHARED = "estimate sets share rows, and exact intervals need independent ones: --certify holdout"
NOT_CLAIMED = "intervals are for a rule that is claimed: ckcv run"
TENTHS = np.arange(1, 10) / 10  # where bins may end
MIN_ROWS = 10  # of a bin
HEADS = ("probability of", "found", "share", "mean", "interval", "the mean is")
MAX_JUDGED = 5_000
N_WORTHS = 101  # of the curves
BY_PROBABILITY = "rows with at least this probability"
BY_BEST = "best cut-off for these rows"
LARGEST_WORTH = 0.9
BEYOND_SHARE, BEYOND_LAST = 3.0, 1.5  # how far the curves go: times the prevalence, and the last point


class JudgedPart(NamedTuple):
    """The rows that one classifier judges."""

    predict: Callable[[Rows], Predicted | Prediction]  # what it predicts for rows [n, d]
    X: Rows  # the rows
    y: NDArray[Any]  # their classes, or numbers
    models: tuple[Model, ...] = ()  # those that decide; they may give ranks and probabilities

    def ask(self, X: Rows, n_classes: int, needs: frozenset[Output] = frozenset()) -> Outputs:
        """Return the labels of rows X [n, d], or numbers, with ranks and probabilities if they are needed.

        Where several models decide together, these are the means of their scores and probabilities.

        Raises:
            StoreError: a stored model cannot classify them, or predicts a class that does not exist.
        """
        try:
            predicted = self.predict(X)
            label = predicted.label
            if label.shape != (len(X),) or (n_classes and label.max(initial=0) >= n_classes):
                raise ValueError("it predicts what is no class of it")
            given = Outputs(rank=predicted.score)
            if len(self.models) == 1:
                given = self.models[0].predict_outputs(X, needs) if needs else Outputs()
            elif self.models and PROBABILITY in needs:
                shares = [model.predict_outputs(X, needs).probability for model in self.models]
                given = given._replace(probability=np.array(shares, np.float64).mean(axis=0))
        except Exception as error:  # a stranger's model may raise anything
            says = f"a stored model cannot classify rows of its table ({cut(str(error))})"
            raise StoreError(f"{says}: see {SEE}") from None
        return given._replace(label=label)

    def sample(self, most: int, draws: np.random.Generator) -> "JudgedPart":
        """Return it with at most ``most`` of its rows, drawn at random."""
        if len(self.y) <= most:
            return self
        rows = np.sort(draws.choice(len(self.y), most, replace=False))
        return self._replace(X=self.X[rows], y=self.y[rows])


class Bin(NamedTuple):
    """Rows with similar probabilities of a class, and how many of them are of that class."""

    label: int  # number of the class
    edges: tuple[float, float]  # of the tenths that have rows: from the first to below the second, or to 1
    rows: int
    found: int  # rows of the class
    mean: float  # of the probabilities
    interval: tuple[float, float] | None = None  # of the share found; None without intervals
    side: str | None = None  # where the mean lies: "inside", or else "too low" or "too high"


class Calibration(NamedTuple):
    """Predicted probabilities and the shares found, of the positive one of two classes or of each of more."""

    bins: tuple[Bin, ...]
    rows: str  # a phrase that says which rows these are
    delta: float  # probability that any mean is outside its interval if the probabilities are calibrated
    refusal: str = ""  # why there are no intervals; "" if there are

    @property
    def n_outside(self) -> int:
        """The number of means outside their intervals."""
        return sum(each.side not in ("inside", None) for each in self.bins)

    @property
    def verdict(self) -> str:
        """What follows for the probabilities, in words."""
        if self.refusal:
            return f"not judged: {self.refusal}"
        if not self.n_outside:
            return "deviations as large as these can be noise: calibration is not shown either"
        some = f"{self.n_outside} of {pluralize(len(self.bins), 'bin')}"
        return (
            f"The probabilities are not calibrated: in {some} their mean lies outside the interval of the "
            f"share found; if they were, this would happen in at most {format_number(100 * self.delta)} % of "
            "such tables"
        )

    @property
    def note(self) -> str:
        """What bins and intervals are, in sentences."""
        said = f"Of {self.rows}. Bins are tenths, joined until each has {MIN_ROWS} rows."
        each, joint = format_level(self.delta / len(self.bins)), format_level(self.delta)
        exact = f" Intervals are exact (Clopper-Pearson), each at {each}, all together at {joint}."
        return said + exact * (not self.refusal)

    def tabulate(self, names: Sequence[object]) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Return the heads and rows of a table, using the names of the classes."""
        rows = []
        for label, edges, n, found, mean, interval, side in self.bins:
            of = " to ".join(f"{format_number(100 * edge)} %" for edge in edges)
            first = f"{names[label]}: {of}", f"{found:,} of {n:,}"
            ends = interval and f"{errors.floor_percent(interval[0])} to {errors.ceil_percent(interval[1])}"
            rows.append(errors.format_row(*first, found / n, mean, ends, side))
        return HEADS, rows


class Judged(NamedTuple):
    """What classifiers gave for rows that they have not learned from."""

    y: NDArray[Any]  # classes, or the numbers to predict, (rows,)
    # predicted classes, -1 where a classifier is undecided, or predicted numbers, (rows,)
    label: NDArray[Any]
    # with two classes, what grows with the positive one, (rows,); None if the learner gives no such score
    rank: Values | None
    probability: Values | None  # of each class, (rows, n_classes); None if the learner gives none
    classifier: Index  # number of the classifier that judged each row, (rows,)
    rows: str  # a phrase that says which rows they are
    # the classifiers with their rows; none if only their predictions are stored
    parts: tuple[JudgedPart, ...] = ()
    positive: int = 1  # number of the positive class of two
    delta: float = MISS  # probability that any interval of what was found misses, all of them together
    refusal: str = ""  # why there are no such intervals; "" if there are

    @property
    def calibration(self) -> Calibration | None:
        """Probabilities against what was found; None without probabilities.

        Bins are tenths, each joined to the next until it has ``MIN_ROWS`` rows, and leftovers to the one
        before: so they depend on numbers of rows, and never on labels.
        """
        if (probability := self.probability) is None:
            return None
        n_classes, bins = probability.shape[1], list[Bin]()
        for label in range(n_classes) if n_classes > 2 else [self.positive]:
            tenth, stops = np.searchsorted(TENTHS, probability[:, label], side="right"), [0]
            for stop in range(1, 11):
                if np.sum((stops[-1] <= tenth) & (tenth < stop)) >= MIN_ROWS:
                    stops.append(stop)
            for first, stop in pairwise([0, *stops[1:-1], 10]):
                rows = np.flatnonzero((first <= tenth) & (tenth < stop))
                edges = float(tenth[rows].min() / 10), float((tenth[rows].max() + 1) / 10)
                found, mean = int(np.sum(self.y[rows] == label)), float(np.mean(probability[rows, label]))
                bins.append(Bin(label, edges, len(rows), found, mean))
        for i, (_, _, n, found, mean, *_) in enumerate(() if self.refusal else bins):
            low, high = interval = bound_both_sides(found, n, self.delta / len(bins))
            side = "too low" if mean < low else "too high" if mean > high else "inside"
            bins[i] = bins[i]._replace(interval=interval, side=side)
        return Calibration(tuple(bins), self.rows, self.delta, self.refusal)


class Roc(NamedTuple):
    """ROC curves on a common grid, of the positive one of two classes."""

    curves: Values  # true positive rate of each classifier at ``GRID``, (n, 101)
    areas: Values  # area under the curve of each classifier, (n,)
    left_out: int  # classifiers whose rows are all of one class
    # false and true positive rate of all rows together, as they are classified: where the models operate
    point: tuple[float, float]


class DecisionCurve(NamedTuple):
    """Net benefits at a stated share of the positive class."""

    prevalence: float  # that share
    worth: Values  # from which probability on a row is worth flagging, (n,)
    by_rule: Values  # measured, for the rows that the rule classifies as positive, (n,)
    # measured, for the rows above a cut-off that depends on ``worth``, (n,); None if there are neither
    # probabilities nor scores of a single model
    by_cut_off: Values | None
    cut_off: str  # which cut-off that is, in words; "" if there is none
    everybody: Values  # for flagging all rows, (n,)
    # for each proven net benefit: its ``worth``, what it is at least, and what was measured
    points: tuple[tuple[float, float, float], ...]


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
        wrong, right = _trace_rates(y == judged.positive, judged.rank[rows])
        areas.append(float(np.trapezoid(right, wrong)))
        curves.append(np.interp(GRID, wrong, right))
    if not curves:
        return None
    flagged, is_positive = judged.label == judged.positive, judged.y == judged.positive
    point = float(np.mean(flagged[~is_positive])), float(np.mean(flagged[is_positive]))
    return Roc(np.array(curves), np.array(areas), left_out, point)


def _trace_rates(y: errors.Classes | NDArray[np.bool_], rank: Values) -> tuple[Values, Values]:
    """Return false and true positive rates at every threshold, from (0, 0) to (1, 1), for two classes.

    scikit-learn has the same function, but takes half a second to import.
    """
    order = np.argsort(-rank, kind="stable")
    last_of_ties = np.append(np.flatnonzero(np.diff(rank[order])), len(rank) - 1)
    right = np.cumsum(y[order])[last_of_ties]
    wrong = 1 + last_of_ties - right
    return np.append(0.0, wrong / wrong[-1]), np.append(0.0, right / right[-1])


def permute_columns(judged: Judged, n_classes: int, seed: int) -> tuple[Values, Values, int] | None:
    """Measure how much larger the share of wrong rows is when the values of a column are permuted.

    Return the mean over permutations for each column, (d,), their standard deviation, and the number of rows.

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
    rises = list[Values]()  # of each classifier, (permutations, d)
    for part in parts:
        _, X, y, *_ = sampled = part.sample(most, draws)
        n, wrong = len(y), np.asarray(sampled.ask(X, n_classes).label != y)
        permuted = np.tile(X, (SHUFFLES * d, 1, 1))
        for i in range(SHUFFLES * d):
            permuted[i, :, i % d] = X[draws.permutation(n), i % d]
        after = np.asarray(part.ask(permuted.reshape(-1, d), n_classes).label != np.tile(y, SHUFFLES * d))
        rises.append(after.reshape(SHUFFLES, d, n).mean(axis=2) - wrong.mean())
    mean = np.mean(rises, axis=0)
    return mean.mean(axis=0), mean.std(axis=0, ddof=1), sum(min(most, len(part.y)) for part in parts)


def judge_rows(result: Certified) -> Judged:
    """Return the rows that the first claim counts, judged by the models that it is about."""
    problem, task, first = result.problem, result.task, result.certificate.first
    if (held := problem.take_held_rows()) is not None and first.certification == Holdout.name:
        rule = first.make_rule(problem)
        models = tuple(member.model for member in rule.ensemble(result.models).members)
        whole = [JudgedPart(partial(rule.predict, result.models), held.X, held.y, models)]
        phrase = f"{pluralize(len(held.y), 'row')} held out"
    else:
        whole, sets = list[JudgedPart](), list[Index]()
        for member in result.ensemble.members:
            rows = problem.find_estimate_rows(member.k, member.split)
            predict = member.model.predict if task.classes else Ensemble((member,)).alone
            whole.append(JudgedPart(predict, task.X[rows], task.y[rows], (member.model,)))
            sets.append(rows)
        all_sets, distinct = pluralize(len(sets), "estimate set"), len(np.unique(np.concatenate(sets)))
        phrase = f"{sum(map(len, sets)):,} rows of {all_sets} ({distinct:,} different rows)"
    draws, n_classes = np.random.default_rng(result.study.seed), task.n_classes
    parts = [part.sample(-(-MAX_JUDGED // len(whole)), draws) for part in whole]
    kept, total = (sum(len(part.y) for part in some) for some in (parts, whole))
    sampled = f"a random sample of {kept:,} of " if kept < total else ""
    needs = problem.find_learner(result.setting)[1].outputs & {RANK, PROBABILITY}
    outputs = [part.ask(part.X, n_classes, needs) for part in parts]
    y = np.concatenate([part.y for part in parts])
    label = np.concatenate([np.asarray(given.label) for given in outputs])
    rank = _join([given.rank for given in outputs]) if RANK in needs and n_classes == 2 else None
    rank = -rank if rank is not None and not problem.positive else rank
    probability = _join([given.probability for given in outputs])
    classifier = np.repeat(np.arange(len(parts)), [len(part.y) for part in parts])
    refusal = task.units.word("" if first.held_out else SHARED, RELATED)
    about = f"{sampled}{phrase}", tuple(parts), problem.positive, result.certificate.delta, refusal
    return Judged(y, label, rank, probability, classifier, *about)


def calibrate(result: Certified) -> Calibration | None:
    """Return the calibration of the rule of the first claim; None if the learner gives no probabilities."""
    _, learner = result.problem.find_learner(result.setting)
    return judge_rows(result).calibration if PROBABILITY in learner.outputs else None


def _join(values: list[Values | None]) -> Values | None:
    """Return the outputs of all classifiers, stacked; None if some are missing or not finite."""
    known = [value for value in values if value is not None and np.isfinite(value).all()]
    return np.concatenate(known) if len(known) == len(values) else None


def trace_net_benefit(result: Result, judged: Judged) -> DecisionCurve | None:
    """Return net benefits against the probability from which a row is worth flagging.

    Whoever flags rows from a probability w on counts a wrongly flagged row as w / (1 - w) of a rightly
    flagged one. The curves are measured, at one stated share of the positive class; what the study proves of
    net benefits at this share is shown as points. None without two classes, or rows of both. Vickers, Elkin,
    "Decision Curve Analysis", Medical Decision Making 26, 2006.
    """
    if result.task.n_classes != 2 or len(np.unique(judged.y)) < 2:
        return None
    is_positive, flagged = judged.y == judged.positive, judged.label == judged.positive
    recalls = float(np.mean(flagged[is_positive])), float(np.mean(~flagged[~is_positive]))
    claims = result.claims
    known = [claim for claim in claims if claim.shares_rule(claims[0]) and claim.quantity.prevalence]
    known.sort(key=lambda claim: claim.quantity.worth is None)  # net benefits first
    prevalence = (known[0].quantity.prevalence if known else None) or float(np.mean(is_positive))
    points = tuple(
        (at, 1 - claim.bound, claim.quantity.compute(*recalls))
        for claim in known
        if (at := claim.quantity.worth) is not None
        and claim.quantity.prevalence == prevalence
        and claim.bound is not None
    )
    last = max([BEYOND_SHARE * prevalence, *(BEYOND_LAST * point[0] for point in points)])
    worth = np.linspace(0.0, min(LARGEST_WORTH, last), N_WORTHS)
    by_cut_off, cut_off = None, ""
    if judged.probability is not None:
        share, given = float(np.mean(is_positive)), judged.probability[:, judged.positive]
        right = given * prevalence * (1 - share)
        wrong = (1 - given) * (1 - prevalence) * share
        flags = right * (1 - worth[:, None]) >= wrong * worth[:, None]
        of_flags = flags[:, is_positive].mean(axis=1), (~flags[:, ~is_positive]).mean(axis=1)
        by_cut_off, cut_off = _compute_benefits(prevalence, worth, *of_flags), BY_PROBABILITY
    elif judged.rank is not None and len(np.unique(judged.classifier)) == 1:
        false, true = _trace_rates(is_positive, judged.rank)
        curves = _compute_benefits(prevalence, worth[:, None], true, 1 - false)
        by_cut_off, cut_off = np.asarray(curves.max(axis=1)), BY_BEST
    by_rule = _compute_benefits(prevalence, worth, *recalls)
    everybody = _compute_benefits(prevalence, worth, 1.0, 0.0)
    return DecisionCurve(prevalence, worth, by_rule, by_cut_off, cut_off, everybody, points)


def _compute_benefits(prevalence: float, worth: Values, sensitivity: Any, specificity: Any) -> Values:
    wrong = (1 - prevalence) * (1 - specificity) * worth / (1 - worth)
    return np.asarray(prevalence * sensitivity - wrong)
