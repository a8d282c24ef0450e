"""Paths of estimators: settings that share work on a split, with the predictions of fresh fits.

Scikit-learn's own fit at a setting decides what is right: ``Path.model`` is always that, and the labels that
a path derives from shared work equal its labels. Where they could differ (tied distances), or where there is
nothing to share, every setting is fitted by itself.
"""

import copy
import json
from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index, Values
from ckcv_ray.core.draws import draw_seeds, make_seed_sequence
from ckcv_ray.core.measures import Measure
from ckcv_ray.learners.base import CONVERGED, Setting, Space
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.sklearn import store as models
from ckcv_ray.learners.sklearn.spec import LIBRARIES, find_library, shares_rounds
from ckcv_ray.learners.sklearn.store import SAMPLE_WEIGHT, FittedEstimator, Template, last_step, wrap
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task


class Estimators(Protocol):
    """What a split needs of its learner: the estimators to fit."""

    @property
    def space(self) -> Space:
        """The settings."""

    @property
    def sharing(self) -> "type[EstimatorPath]":
        """How the settings of a path share work where they can."""

    @property
    def foreign(self) -> bool:
        """Whether their fits call code of another package than scikit-learn."""

    def template(self, setting: Setting) -> Template:
        """Return the estimator at a setting, to be copied."""

    def class_weights(self, task: Task, y: Classes) -> Mapping[int, float] | str | None:
        """Return what they take as ``class_weight`` for training rows y [n]; None for their own."""


class Head(NamedTuple):
    """The fitted steps of a pipeline before its last, and what they make of the rows."""

    pipeline: Any
    X: Rows  # the training rows as the last step sees them
    status: int  # position of the status of their fit
    scored: list[Rows]  # the rows to score as the last step sees them; empty until they are needed


class Fit(NamedTuple):
    """A fitted estimator."""

    estimator: Any  # the whole of it
    status: int  # position of its status
    head: Head | None = None  # the steps before the last, if they are shared


class SplitFits:
    """The rows of a split, on which any path of a learner can be fitted.

    Args:
        estimators: what is fitted.
        task: the rows.
        train, score: numbers of the rows to fit to and to score.

    Attributes:
        y: class numbers of the training rows, (n,).
        weights: of the training rows, (n,); None if all weigh the same.
        seeds: source of seeds, from the numbers of the training rows: the same for all settings.
        shared: what paths compute once for several of them, by what it depends on.
    """

    def __init__(self, estimators: Estimators, task: Task, train: Index, score: Index) -> None:
        self.estimators, self.task, self.train, self.score = estimators, task, train, score
        self.y: Classes = task.y[train]
        self.weights: Values | None = task.weighting.take(train)
        self.seeds = make_seed_sequence(train)
        self.shared: dict[Hashable, Any] = {}
        self._heads: dict[str, Head] = {}

    @cached_property
    def constant(self) -> bool:
        """Whether the training rows are of a single class, which most estimators refuse."""
        return bool(self.task.classes) and bool(np.all(self.y == self.y[0]))

    @property
    def X(self) -> Rows:
        """The training rows, (n, d): a copy, which an estimator may keep or overwrite."""
        return self.task.X[self.train]

    @property
    def X_score(self) -> Rows:
        """The rows to score, (n, d): a copy."""
        return self.task.X[self.score]

    def fit(self, path: int, length: int) -> "EstimatorPath":
        """Fit the first ``length`` steps of a path."""
        settings = self.estimators.space.paths[path][:length]
        template = self.estimators.template(settings[-1])
        # the last step is fitted by itself: it is the whole, or the steps before it are shared
        apart = template.head is not None or last_step(template.estimator) is template.estimator
        shares = length > 1 and not self.constant and apart
        sharing = self.estimators.sharing
        return (sharing if shares and sharing.applies(template.estimator) else Plain)(self, settings)

    def fit_alone(self, setting: Setting) -> Fit:
        """Fit the estimator at a setting; the first steps of a pipeline are fitted once for all settings."""
        if self.constant:
            from sklearn.dummy import DummyClassifier

            return Fit(DummyClassifier(strategy="most_frequent").fit(self.X, self.y), CONVERGED)
        template = self.estimators.template(setting)
        estimator = template.copy(draw_seeds(self.seeds, len(template.unseeded)))
        if (weights := self.estimators.class_weights(self.task, self.y)) is not None:
            last_step(estimator).set_params(class_weight=weights)
        estimator = wrap(estimator)
        if template.head is None:
            return Fit(estimator, self._fit_rows(estimator, self.X))
        if template.head not in self._heads:
            steps = estimator[:-1]
            with models.guard(self.estimators.foreign, self._global_seed) as caught:
                X = steps.fit_transform(self.X, self.y.copy())
            self._heads[template.head] = Head(steps, X, models.find_status(caught), [])
        head = self._heads[template.head]
        status = max(head.status, self._fit_rows(last_step(estimator), deepcopy(head.X)))
        estimator.steps = [*head.pipeline.steps, estimator.steps[-1]]
        return Fit(estimator, status, head)

    def transform(self, fit: Fit) -> Rows:
        """Return the rows to score as the last step of a fit sees them: a copy.

        A pipeline whose first steps are not shared sees them as they are.
        """
        head = fit.head
        if head is None:
            return self.X_score
        if not head.scored:
            with models.guard(self.estimators.foreign):
                head.scored.append(head.pipeline.transform(self.X_score))
        return deepcopy(head.scored[0])

    def labels(self, fit: Fit) -> Classes:
        """Return the class numbers that a fit predicts for the rows to score.

        Raises:
            ValueError: it predicts something else.
        """
        predicting, X = fit.estimator if fit.head is None else last_step(fit.estimator), self.transform(fit)
        with models.guard(self.estimators.foreign):
            return models.predict_classes(predicting, X, self.task.n_classes)

    def _fit_rows(self, estimator: Any, X: Rows) -> int:
        """Fit to rows X [n, d], which may be overwritten; return the position of the status of the fit."""
        steps = getattr(estimator, "steps", None)
        name = SAMPLE_WEIGHT if steps is None else f"{steps[-1][0]}__{SAMPLE_WEIGHT}"
        given = {} if self.weights is None else {name: self.weights.copy()}
        with models.guard(self.estimators.foreign, self._global_seed) as caught:
            estimator.fit(X, self.y.copy(), **given)
        return models.find_status(caught)

    @cached_property
    def _global_seed(self) -> int:
        """Seed of the global random numbers that foreign code may draw."""
        return draw_seeds(self.seeds, 1)[0] if self.estimators.foreign else 0


def fit_model(
    estimators: Estimators, task: Task, train: Index, setting: Setting
) -> tuple[FittedEstimator, int]:
    """Fit one setting by itself to the rows ``train``; return the model and the position of its status."""
    fit = SplitFits(estimators, task, train, train[:0]).fit_alone(setting)
    return FittedEstimator(setting, fit.estimator, task.n_classes, estimators.foreign), fit.status


TIE = 1e-12  # of squared distances, relative to the squares of the rows: far above their rounding


class EstimatorPath:
    """The fits of some settings on one split, by ascending value of ``parameter``."""

    parameter: ClassVar[str | None] = None  # whose values share work; None if none does
    known: ClassVar[str] = ""  # the class of estimators that it is of, by module and name

    def __init__(self, split: SplitFits, settings: Sequence[Setting]) -> None:
        self.split = split
        self.settings = settings

    @classmethod
    def applies(cls, estimator: Any) -> bool:
        """Return whether the estimator's settings share work in this way."""
        kind = type(last_step(estimator))
        return f"{kind.__module__}:{kind.__qualname__}" == cls.known

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return np.full(len(self.settings), CONVERGED, np.int8)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit."""
        return np.ones(len(self.settings), np.int64)

    def labels(self) -> Classes:
        """Return the class numbers that each fit predicts, (steps, scored rows)."""
        raise NotImplementedError

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals of each fit on the scored rows, (steps, columns)."""
        task, y = self.split.task, self.split.task.y[self.split.score]
        if not task.classes:
            X, steps = self.split.X_score, range(len(self.settings))
            return np.array([judge(self.model(step), X, y, measure, 0) for step in steps])
        with models.guard(False):
            labels = self.labels()
        return measure.totals(y, labels, task.n_classes)

    def model(self, step: int) -> FittedEstimator:
        """Fit the estimator at one setting by itself."""
        split = self.split
        return fit_model(split.estimators, split.task, split.train, self.settings[step])[0]


class Plain(EstimatorPath):
    """Settings that share nothing, but the first steps of a pipeline."""

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return np.array([fit.status for fit in self._fits], np.int8)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit; 1 if the estimator does not say."""
        said = [getattr(last_step(fit.estimator), "n_iter_", None) for fit in self._fits]
        return np.array([1 if n is None else max(1, int(np.max(n))) for n in said], np.int64)

    def labels(self) -> Classes:
        """Return the labels of every fit."""
        return np.array([self.split.labels(fit) for fit in self._fits])

    def model(self, step: int) -> FittedEstimator:
        """Return one model."""
        task, foreign = self.split.task, self.split.estimators.foreign
        return FittedEstimator(self.settings[step], self._fits[step].estimator, task.n_classes, foreign)

    @cached_property
    def _fits(self) -> list[Fit]:
        return [self.split.fit_alone(setting) for setting in self.settings]


class Rounds(EstimatorPath):
    """Rounds of gradient boosting: the first rounds of a long fit are a short fit."""

    parameter: ClassVar[str] = "max_iter"
    known = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting:HistGradientBoostingClassifier"

    @classmethod
    def applies(cls, estimator: Any) -> bool:
        """Return whether no rows are set aside to stop early."""
        last = last_step(estimator)
        return super().applies(estimator) and last.early_stopping is False and last.warm_start is False

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Rounds of each fit."""
        return np.array([setting[self.parameter] for setting in self.settings], np.int64)

    def labels(self) -> Classes:
        """Return the labels after each number of rounds."""
        fit = self.split.fit_alone(self.settings[-1])
        last = last_step(fit.estimator)
        rounds = enumerate(last.staged_decision_function(self.split.transform(fit)), start=1)
        wanted = set(self.n_iter.tolist())
        number = [
            (decision > 0).astype(int) if decision.ndim == 1 else np.argmax(decision, axis=1)
            for count, decision in rounds
            if count in wanted
        ]
        return np.asarray(last.classes_[np.array(number)], np.int32)


class LibraryRounds(Rounds):
    """Rounds of XGBoost or LightGBM, of which predictions may use the first."""

    parameter = "n_estimators"

    @classmethod
    def applies(cls, estimator: Any) -> bool:
        """Return whether an estimator's first rounds do not depend on their number."""
        library = LIBRARIES.get(str(find_library(estimator)))
        return library is not None and library.rounds == cls.parameter and shares_rounds(estimator)

    def labels(self) -> Classes:
        """Return the labels of one fit after each number of rounds, unless it has fewer than were asked for.

        LightGBM leaves out rounds in which no split was found, and others take their numbers.
        """
        longest, counts = self.split.fit_alone(self.settings[-1]), self.n_iter.tolist()
        if longest.estimator.n_rounds < counts[-1]:
            fits = [*map(self.split.fit_alone, self.settings[:-1]), longest]
        else:
            fits = [longest._replace(estimator=longest.estimator.first(count)) for count in counts]
        return np.array([*map(self.split.labels, fits)])


class CatBoostRounds(LibraryRounds):
    """Rounds of CatBoost."""

    parameter = "iterations"


class Nearest(NamedTuple):
    """The nearest training rows of each scored row, nearest first, and one more if there is one."""

    distance: Rows  # distances, (scored rows, neighbours)
    number: Classes  # class of each, by position in ``classes``, (scored rows, neighbours)
    tied: NDArray[np.bool_]  # whether a neighbour may be as far away as the next, (neighbours - 1,)
    classes: NDArray[Any]  # classes of the training rows


class Neighbours(EstimatorPath):
    """Numbers of neighbours: the nearest few are the first of the nearest many, unless distances are tied."""

    parameter = "n_neighbors"
    known = "sklearn.neighbors._classification:KNeighborsClassifier"

    @classmethod
    def applies(cls, estimator: Any) -> bool:
        """Return whether votes are counted or weighted by distance."""
        return super().applies(estimator) and last_step(estimator).weights in ("uniform", "distance")

    def labels(self) -> Classes:
        """Return the labels for each number of neighbours."""
        nearest, counts = self._find_nearest(), [setting["n_neighbors"] for setting in self.settings]
        if counts[-1] > nearest.distance.shape[1]:
            alone = map(self.split.fit_alone, self.settings)
            return np.array([*map(self.split.labels, alone)])  # raises, as it would alone
        template = self.split.estimators.template(self.settings[0])
        weighted = last_step(template.estimator).weights == "distance"
        votes = _weight_votes(nearest, counts, weighted)
        found = nearest.classes[np.argmax(votes, axis=1)].astype(np.int32)
        for step, count in enumerate(counts):
            if nearest.tied[0 if weighted else count - 1 : count].any():
                found[step] = self.split.labels(self.split.fit_alone(self.settings[step]))
        return np.asarray(found)

    def _find_nearest(self) -> Nearest:
        """Return the nearest rows, found once for all ways to weight them."""
        setting = self.settings[-1]
        fixed = {name: value for name, value in setting.items() if name != "weights"}
        key = json.dumps(fixed, sort_keys=True)
        if key not in self.split.shared:
            fit = self.split.fit_alone(setting)
            last, X = last_step(fit.estimator), self.split.transform(fit)
            distance, index = last.kneighbors(X, min(setting["n_neighbors"] + 1, last.n_samples_fit_))
            squares = max(map(_find_largest_square, (X, last._fit_X)))
            gap = np.diff(distance, axis=1) * (distance[:, 1:] + distance[:, :-1])
            tied = np.any(gap <= TIE * (distance[:, 1:] ** 2 + squares), axis=0)
            self.split.shared[key] = Nearest(distance, last._y[index], tied, last.classes_)
        nearest: Nearest = self.split.shared[key]
        return nearest


def _find_largest_square(rows: Any) -> float:
    """Return the largest squared length of a row; steps of a pipeline may make sparse rows."""
    from scipy.sparse import issparse

    squares = rows.multiply(rows) if issparse(rows) else rows * rows
    return float(np.max(np.sum(squares, axis=1)))


class Pruning(EstimatorPath):
    """Costs of complexity: all pruned trees come from one full tree."""

    parameter = "ccp_alpha"
    known = "sklearn.tree._classes:DecisionTreeClassifier"

    def labels(self) -> Classes:
        """Return the labels of each pruned tree."""
        fit = self.split.fit_alone({**self.settings[0], "ccp_alpha": 0.0})
        full = last_step(fit.estimator)
        X = full._validate_X_predict(self.split.transform(fit), check_input=True)
        found = []
        for setting in self.settings:
            tree = copy.copy(full)
            tree.ccp_alpha = setting["ccp_alpha"]
            tree._prune_tree()
            found.append(full.classes_[np.argmax(tree.tree_.predict(X), axis=1)])
        return np.array(found).astype(np.int32)


class Smoothing(EstimatorPath):
    """Smoothing of naive Bayes: means and variances are computed once."""

    parameter = "var_smoothing"
    known = "sklearn.naive_bayes:GaussianNB"

    def labels(self) -> Classes:
        """Return the labels with each share of the largest variance added."""
        fit = self.split.fit_alone({**self.settings[0], "var_smoothing": 0.0})
        bare, found = last_step(fit.estimator), []
        largest = np.var(self.split.X if fit.head is None else fit.head.X, axis=0).max()
        X = bare._check_X(self.split.transform(fit))
        for setting in self.settings:
            smooth = copy.copy(bare)
            smooth.var_ = bare.var_ + setting["var_smoothing"] * largest
            found.append(bare.classes_[np.argmax(smooth._joint_log_likelihood(X), axis=1)])
        return np.array(found).astype(np.int32)


SHARING = (Rounds, Neighbours, Pruning, Smoothing, LibraryRounds, CatBoostRounds)


def _weight_votes(nearest: Nearest, counts: Sequence[int], weighted: bool) -> NDArray[Any]:
    """Return the votes for each class among the first neighbours, (counts, classes, rows).

    Weights are 1 / distance, or only neighbours at distance 0 vote if there are any; or all are 1.
    """
    votes = [nearest.number == c for c in range(len(nearest.classes))]
    with np.errstate(divide="ignore"):
        weights = 1.0 / nearest.distance if weighted else np.ones(nearest.distance.shape)
    exact, each = np.isinf(weights), list[Any]()
    for count in counts:
        here = exact[:, :count]
        first = np.where(np.any(here, axis=1, keepdims=True), here, weights[:, :count])
        each.append([np.sum(np.where(of_class[:, :count], first, 0.0), axis=1) for of_class in votes])
    return np.array(each)
