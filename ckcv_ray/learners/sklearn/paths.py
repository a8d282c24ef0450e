"""Estimators as a learner: their fits, and paths of settings that share work and predict like fresh fits.

Scikit-learn's own fit at a setting is the reference: ``EstimatorPath.model`` is always that fit, and the
labels that a path derives from shared work equal its labels. Where they could differ (tied distances), or
where there is nothing to share, every setting is fitted by itself.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.draws import draw_seeds, make_seed_sequence
from ckcv_ray.core.measures import Kind, Measure, Output
from ckcv_ray.core.options import Option, option, thin_values
from ckcv_ray.errors import Classes, Index, Rows, integer
from ckcv_ray.errors import Values as Numbers
from ckcv_ray.learners.base import CONVERGED, Coded, Learner, Setting, Space, Trainer
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.sklearn import spec as specs
from ckcv_ray.learners.sklearn import store as models
from ckcv_ray.learners.sklearn.spec import Estimator, Spec, Values
from ckcv_ray.tables.task import Task

CLASS_KINDS = frozenset({Kind.BINARY, Kind.MULTICLASS})
NUMBER_KINDS = frozenset({Kind.REGRESSION})
OVERHEAD_ROWS = 500  # the fixed cost of a fit is about that of this many rows
PARAM = Option(
    specs.check_space,
    "Parameter and values to try: max_features=sqrt,0.5, C=log:-2:4:13, or with --sample a distribution: "
    "C=loguniform:1e-3:1e2. May be repeated.",
    list[str],
    "the learner's own",
    "Other learners",
)
SAMPLE = Option(
    partial(integer, least=1, most=100_000),
    "Number of settings to draw at random, such as 60.",
    int,
    panel="Other learners",
)
TIE = 1e-12  # for squared distances, relative to the rows' squares: far above their rounding


@dataclass(frozen=True)
class EstimatorLearner(Learner):
    """A learner whose models are estimators of scikit-learn; a subclass names one and its usual search space.

    Attributes:
        param: search space, values or a distribution by parameter; parameters in ``values`` that are not
            named keep their values.
        sample: number of settings to draw from the search space; None for all of them.

    Raises:
        InputError: a parameter does not exist, or a value is refused by the estimator.
    """

    name: ClassVar[str]
    spec: ClassVar[Spec]
    values: ClassVar[Values] = {}
    defaults: ClassVar[Mapping[str, object]] = MappingProxyType({})
    kinds: ClassVar[frozenset[Kind]] = CLASS_KINDS

    param: Mapping[str, Any] | None = option(None, PARAM)
    sample: int | None = option(None, SAMPLE)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, values in (self.param or {}).items():
            specs.complete_names(self.build(), {name: None})
            for value in () if isinstance(values, str) else values:
                self.template({name: value})
        specs.list_settings(self.all_values, self.sample)

    @property
    def all_values(self) -> Values:
        """The search space, by parameter, sorted by name."""
        return dict(sorted({**self.values, **(self.param or {})}.items()))

    @cached_property
    def sharing(self) -> "type[EstimatorPath]":
        """How the settings of a path share work."""
        estimator = self.build()
        paths = (path for path in SHARING if path.parameter in self.all_values)
        return next((path for path in paths if path.applies(estimator)), Plain)

    @cached_property
    def space(self) -> Space:
        """The settings of each path, in ascending order of the parameter that shares work."""
        settings, shared = specs.list_settings(self.all_values, self.sample), self.sharing.parameter
        if shared is None:
            return Space([setting] for setting in settings)
        groups: dict[str, list[Setting]] = {}
        for setting in settings:
            fixed = {name: value for name, value in setting.items() if name != shared}
            groups.setdefault(json.dumps(fixed), []).append(setting)
        return Space(sorted(group, key=lambda setting: setting[shared]) for group in groups.values())

    @cached_property
    def trainer(self) -> Trainer:
        """The trainer, which fits estimators."""
        return EstimatorTrainer(self)

    @cached_property
    def codec(self) -> models.EstimatorCodec:
        """The codec, which stores estimators in the format of skops."""
        return models.EstimatorCodec(self.spec, set(self.all_values))

    @cached_property
    def outputs(self) -> frozenset[Output]:
        """Probabilities if the estimator has them, and scores that rank rows if it has either."""
        if self.kinds == NUMBER_KINDS:
            return frozenset()
        estimator = self.build()
        if hasattr(estimator, "predict_proba"):
            return frozenset({Output.PROBABILITY, Output.RANK, Output.RANKS})
        return frozenset({Output.RANK, Output.RANKS} if hasattr(estimator, "decision_function") else ())

    @property
    def trees(self) -> bool:
        """Whether the name of the estimator, or of a pipeline's last step, says that its models are trees."""
        steps = self.spec.get("params", {}).get("steps") or [[None, self.spec]]
        name = str(steps[-1][1]["class"]).partition(":")[2]
        return any(word in name for word in ("Tree", "Forest", "Boosting"))

    @cached_property
    def foreign(self) -> bool:
        """Whether its fits call code of a package other than scikit-learn."""
        return models.is_foreign(self.build())

    @cached_property
    def weighs_rows(self) -> bool:
        """Whether the estimator, or a pipeline's last step, and all that it fits take ``sample_weight``."""
        from sklearn.base import is_classifier, is_regressor
        from sklearn.utils.validation import has_fit_parameter

        last = models.last_step(self.build())
        inside = [part for part in last.get_params(deep=True).values() if hasattr(part, "fit")]
        fitted = [last, *(part for part in inside if is_classifier(part) or is_regressor(part))]
        return all(has_fit_parameter(part, models.SAMPLE_WEIGHT) for part in fitted)

    def build(self) -> Estimator:
        """Return a new estimator."""
        return specs.build(self.spec)

    def template(self, setting: Setting) -> models.Template:
        """Return the estimator at a setting, to be copied."""
        return models.make_template(json.dumps(self.spec), json.dumps(dict(setting)))

    def parameter_names(self) -> list[str]:
        """Return the names of the estimator's parameters; for a pipeline's last step also the short ones."""
        return list(specs.list_parameters(self.build()))

    def class_weights(self, task: Task, y: Classes) -> Mapping[int, float] | str | None:
        """Return what the estimator gets as ``class_weight`` for training rows y [n]; None for its own."""
        return None

    def prepare(self, task: Task, encoding: Coded) -> tuple[Self, Coded | None]:
        """Return the learner, and how columns are encoded for trees or for other estimators."""
        return self, None if task.schema.plain else encoding.resolve(self.trees)

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values of each parameter, or ``most`` drawn settings."""
        if self.sample is not None:
            return replace(self, sample=min(self.sample, most))
        lists = {name: v for name, v in self.all_values.items() if not isinstance(v, str)}
        spaced = {name: thin_values(values, most) for name, values in lists.items()}
        fewer = {name: values for name, values in spaced.items() if values != self.values.get(name)}
        return replace(self, param={**(self.param or {}), **fewer})

    def usual(self, task: Task) -> Self:
        """Return the learner with the estimator's default for each parameter whose values are not given."""
        if self.sample is not None:
            return self
        defaults, given = {**specs.list_parameters(self.build()), **self.defaults}, self.param or {}
        return replace(self, param={name: given.get(name, (defaults[name],)) for name in self.all_values})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take the state from another process, in which the packages were trusted."""
        self.__dict__.update(state)
        for package in specs.list_packages(self.spec):
            specs.trust(package)


@dataclass(frozen=True)
class EstimatorTrainer(Trainer):
    """Fits estimators to the rows of each split."""

    learner: EstimatorLearner
    convergence_advice: ClassVar[str] = "raise max_iter, or narrow the search space"

    def prepare(self, shared: Task, train: Index, score: Index) -> "SplitFits":
        """Select the rows of a split."""
        return SplitFits(self.learner, shared, train, score)

    def cost(self, n_train: int) -> float:
        """Return the number of training rows, and a constant."""
        return float(n_train + OVERHEAD_ROWS)

    def load(self) -> None:
        """Import the estimator, and what fitting it takes: its time limit is not meant for imports."""
        self.learner.template(self.learner.space.setting(0, 0))


class Head(NamedTuple):
    """The fitted steps of a pipeline before its last one, and what they turn the rows into."""

    pipeline: Any
    X: Rows  # the training rows as the last step sees them
    status: int  # position of the status of their fit
    scored: list[Rows]  # the rows to score as the last step sees them; empty until needed


class Fit(NamedTuple):
    """A fitted estimator."""

    estimator: Any  # the whole of it
    status: int  # position of its status
    head: Head | None = None  # the steps before the last, if they are shared


class SplitFits:
    """The rows of a split, on which any path of a learner can be fitted.

    Args:
        learner: gives the estimators, and their settings.
        task: the rows.
        train, score: numbers of the rows to fit to and to score.

    Attributes:
        y: class numbers of the training rows, (n,).
        weights: weights of the training rows, (n,); None if all weigh the same.
        seeds: source of seeds, from the numbers of the training rows: the same for all settings.
        global_seed: seed of the global random numbers that foreign code may draw.
        constant: whether all training rows are of a single class, which most estimators refuse.
        shared: what paths compute once for several of them, by what it depends on.
    """

    def __init__(self, learner: EstimatorLearner, task: Task, train: Index, score: Index) -> None:
        self.learner, self.task, self.train, self.score = learner, task, train, score
        self.y: Classes = task.y[train]
        self.weights: Numbers | None = task.weighting.take(train)
        self.seeds = make_seed_sequence(train)
        self.global_seed = draw_seeds(self.seeds, 1)[0] if learner.foreign else 0
        self.constant = bool(task.classes) and bool(np.all(self.y == self.y[0]))
        self.shared: dict[str, tuple[Rows, Classes, NDArray[np.bool_], NDArray[Any]]] = {}
        self._heads: dict[str, Head] = {}

    def fit(self, path: int, length: int) -> "EstimatorPath":
        """Fit the first ``length`` steps of a path."""
        settings = self.learner.space.paths[path][:length]
        template = self.learner.template(settings[-1])
        # the last step is fitted alone: it is the whole, or the steps before it are shared
        apart = template.head is not None or models.last_step(template.estimator) is template.estimator
        shares = length > 1 and not self.constant and apart
        sharing = self.learner.sharing
        return (sharing if shares and sharing.applies(template.estimator) else Plain)(self, settings)

    def fit_alone(self, setting: Setting) -> Fit:
        """Fit the estimator at a setting; the first steps of a pipeline are fitted once for all settings."""
        X, train = self.task.X, self.train  # X[train] is a copy, which an estimator may keep or overwrite
        if self.constant:
            from sklearn.dummy import DummyClassifier

            return Fit(DummyClassifier(strategy="most_frequent").fit(X[train], self.y), CONVERGED)
        template = self.learner.template(setting)
        estimator: Any
        estimator, unseeded = copy.deepcopy((template.estimator, template.unseeded))
        for owner, seed in zip(unseeded, draw_seeds(self.seeds, len(unseeded)), strict=True):
            owner.set_params(random_state=seed)
        if (weights := self.learner.class_weights(self.task, self.y)) is not None:
            models.last_step(estimator).set_params(class_weight=weights)
        if specs.find_library(estimator):
            estimator = models.Booster(estimator)
        elif hasattr(estimator, "steps") and specs.find_library(last := estimator.steps[-1][1]):
            estimator.steps[-1] = (estimator.steps[-1][0], models.Booster(last))
        if template.head is None:
            return Fit(estimator, self._fit_rows(estimator, X[train]))
        if template.head not in self._heads:
            steps = estimator[:-1]
            with models.guard(self.learner.foreign, self.global_seed) as caught:
                fitted = steps.fit_transform(X[train], self.y.copy())
            self._heads[template.head] = Head(steps, fitted, models.find_status(caught), [])
        head = self._heads[template.head]
        status = max(head.status, self._fit_rows(models.last_step(estimator), copy.deepcopy(head.X)))
        estimator.steps = [*head.pipeline.steps, estimator.steps[-1]]
        return Fit(estimator, status, head)

    def transform(self, fit: Fit) -> Rows:
        """Return the rows to score as the last step of a fit sees them: a copy.

        A pipeline whose first steps are not shared sees them as they are.
        """
        head = fit.head
        if head is None:
            return self.task.X[self.score]
        if not head.scored:
            with models.guard(self.learner.foreign):
                head.scored.append(head.pipeline.transform(self.task.X[self.score]))
        return copy.deepcopy(head.scored[0])

    def labels(self, fit: Fit) -> Classes:
        """Return the class numbers that a fit predicts for the rows to score.

        Raises:
            ValueError: it predicts something else.
        """
        X = self.transform(fit)
        predicting = fit.estimator if fit.head is None else models.last_step(fit.estimator)
        with models.guard(self.learner.foreign):
            return models.predict_classes(predicting, X, self.task.n_classes)

    def _fit_rows(self, estimator: Any, X: Rows) -> int:
        """Fit to rows X [n, d], which may be overwritten; return the position of the status of the fit."""
        steps = getattr(estimator, "steps", None)
        name = models.SAMPLE_WEIGHT if steps is None else f"{steps[-1][0]}__{models.SAMPLE_WEIGHT}"
        given = {} if self.weights is None else {name: self.weights.copy()}
        with models.guard(self.learner.foreign, self.global_seed) as caught:
            estimator.fit(X, self.y.copy(), **given)
        return models.find_status(caught)


def fit_model(
    learner: EstimatorLearner, task: Task, train: Index, setting: Setting
) -> tuple[models.FittedEstimator, int]:
    """Fit one setting alone to the rows ``train``; return the model and the position of its status."""
    fit = SplitFits(learner, task, train, train[:0]).fit_alone(setting)
    return models.FittedEstimator(setting, fit.estimator, task.n_classes), fit.status


class EstimatorPath:
    """The fits of some settings on one split, by ascending value of ``parameter``."""

    parameter: ClassVar[str | None] = None  # the one whose values share work; None if none does
    known: ClassVar[str] = ""  # the class of estimators that it is for, by module and name

    def __init__(self, split: SplitFits, settings: Sequence[Setting]) -> None:
        self.split = split
        self.settings = settings

    @classmethod
    def applies(cls, estimator: Estimator) -> bool:
        """Return whether the estimator's settings share work in this way."""
        kind = type(models.last_step(estimator))
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

    def totals(self, measure: Measure) -> NDArray[np.number]:
        """Return the totals of each fit on the scored rows, (steps, columns)."""
        task, y = self.split.task, self.split.task.y[self.split.score]
        if not task.classes:
            X, steps = task.X[self.split.score], range(len(self.settings))
            return np.array([judge(self.model(step), X, y, measure, 0) for step in steps])
        with models.guard(False):
            labels = self.labels()
        return measure.totals(y, labels, task.n_classes)

    def model(self, step: int) -> models.FittedEstimator:
        """Fit the estimator at one setting alone."""
        split = self.split
        return fit_model(split.learner, split.task, split.train, self.settings[step])[0]


class Plain(EstimatorPath):
    """Settings that share nothing except the first steps of a pipeline."""

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return np.array([fit.status for fit in self._fits], np.int8)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit; 1 if the estimator does not say."""
        said = [getattr(models.last_step(fit.estimator), "n_iter_", None) for fit in self._fits]
        return np.array([1 if n is None else max(1, int(np.max(n))) for n in said], np.int64)

    def labels(self) -> Classes:
        """Return the labels of every fit."""
        return np.array([self.split.labels(fit) for fit in self._fits])

    def model(self, step: int) -> models.FittedEstimator:
        """Return one model."""
        estimator, n_classes = self._fits[step].estimator, self.split.task.n_classes
        return models.FittedEstimator(self.settings[step], estimator, n_classes)

    @cached_property
    def _fits(self) -> list[Fit]:
        return [self.split.fit_alone(setting) for setting in self.settings]


class Rounds(EstimatorPath):
    """Rounds of gradient boosting: the first rounds of a long fit are a short fit."""

    parameter: ClassVar[str] = "max_iter"
    known = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting:HistGradientBoostingClassifier"

    @classmethod
    def applies(cls, estimator: Estimator) -> bool:
        """Return whether no rows are set aside to stop early."""
        last = models.last_step(estimator)
        return super().applies(estimator) and last.early_stopping is False and last.warm_start is False

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Rounds of each fit."""
        return np.array([setting[self.parameter] for setting in self.settings], np.int64)

    def labels(self) -> Classes:
        """Return the labels after each number of rounds."""
        fit = self.split.fit_alone(self.settings[-1])
        last = models.last_step(fit.estimator)
        rounds = enumerate(last.staged_predict(self.split.transform(fit)), start=1)
        wanted = set(self.n_iter.tolist())
        return np.array([labels for count, labels in rounds if count in wanted], np.int32)


class LibraryRounds(Rounds):
    """Rounds of XGBoost or LightGBM, whose predictions may use only the first."""

    parameter = "n_estimators"

    @classmethod
    def applies(cls, estimator: Estimator) -> bool:
        """Return whether an estimator's first rounds do not depend on the number of rounds.

        Only parameters that are known to allow this are accepted. CatBoost's learning rate depends on the
        number of rounds unless it is given.
        """
        library = specs.LIBRARIES.get(package := str(specs.find_library(estimator)))
        if library is None or library.rounds != cls.parameter:
            return False
        defaults, params = type(estimator)().get_params(), estimator.get_params()
        given = {name for name, value in params.items() if name not in defaults or value != defaults[name]}
        forced = {name for spellings in library.forced for name in spellings}
        if package == specs.CATBOOST and params.get("learning_rate") is None:
            return False
        known = {*library.sharing, *library.usual, *forced}
        return given <= known and params.get("boosting_type", "gbdt") == "gbdt"

    def labels(self) -> Classes:
        """Return the labels of one fit after each number of rounds, unless it has fewer than were asked for.

        LightGBM leaves out rounds in which no split was found, and renumbers the others.
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


class Neighbours(EstimatorPath):
    """Numbers of neighbours: the nearest few are the first of the nearest many, unless distances are tied."""

    parameter = "n_neighbors"
    known = "sklearn.neighbors._classification:KNeighborsClassifier"

    @classmethod
    def applies(cls, estimator: Estimator) -> bool:
        """Return whether votes are counted or weighted by distance."""
        return super().applies(estimator) and models.last_step(estimator).weights in ("uniform", "distance")

    def labels(self) -> Classes:
        """Return the labels for each number of neighbours.

        The nearest training rows of each scored row, nearest first, and one more if there is one, are found
        once for all ways of weighting them.
        """
        from sklearn.utils.extmath import row_norms

        split, longest = self.split, self.settings[-1]
        counts = [each["n_neighbors"] for each in self.settings]
        key = json.dumps({name: v for name, v in longest.items() if name != "weights"}, sort_keys=True)
        if key not in split.shared:
            fit = split.fit_alone(longest)
            last, X = models.last_step(fit.estimator), split.transform(fit)
            distance, index = last.kneighbors(X, min(counts[-1] + 1, last.n_samples_fit_))
            squares = max(row_norms(rows, squared=True).max() for rows in (X, last._fit_X))
            gap = np.diff(distance, axis=1) * (distance[:, 1:] + distance[:, :-1])
            # whether, for any scored row, a neighbour may be as far away as the next
            tied = np.any(gap <= TIE * (distance[:, 1:] ** 2 + squares), axis=0)
            split.shared[key] = distance, last._y[index], tied, last.classes_
        distance, place, tied, classes = split.shared[key]  # place: of each neighbour's class in ``classes``
        if counts[-1] > distance.shape[1]:  # raises as a fit alone would
            return np.array([*map(split.labels, map(split.fit_alone, self.settings))])
        template = split.learner.template(self.settings[0])
        weighted = models.last_step(template.estimator).weights == "distance"
        with np.errstate(divide="ignore"):
            weights = 1.0 / distance if weighted else np.ones(distance.shape)
        exact, found = np.isinf(weights), list[Classes]()
        of_classes = [place == c for c in range(len(classes))]
        for setting, count in zip(self.settings, counts, strict=True):
            if tied[0 if weighted else count - 1 : count].any():
                found.append(split.labels(split.fit_alone(setting)))
                continue
            here = exact[:, :count]  # if any are at distance 0, only these vote
            votes = np.where(np.any(here, axis=1, keepdims=True), here, weights[:, :count])
            sums = [np.sum(np.where(of_class[:, :count], votes, 0.0), axis=1) for of_class in of_classes]
            found.append(classes[np.argmax(sums, axis=0)])
        return np.array(found).astype(np.int32)


class Pruning(EstimatorPath):
    """Cost-complexity pruning: all pruned trees come from one full tree."""

    parameter = "ccp_alpha"
    known = "sklearn.tree._classes:DecisionTreeClassifier"

    def labels(self) -> Classes:
        """Return the labels of each pruned tree."""
        fit = self.split.fit_alone({**self.settings[0], "ccp_alpha": 0.0})
        full = models.last_step(fit.estimator)
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
        bare, found = models.last_step(fit.estimator), []
        trained = self.split.task.X[self.split.train] if fit.head is None else fit.head.X
        largest = np.var(trained, axis=0).max()
        X = bare._check_X(self.split.transform(fit))
        for setting in self.settings:
            smooth = copy.copy(bare)
            smooth.var_ = bare.var_ + setting["var_smoothing"] * largest
            found.append(bare.classes_[np.argmax(smooth._joint_log_likelihood(X), axis=1)])
        return np.array(found).astype(np.int32)


SHARING = (Rounds, Neighbours, Pruning, Smoothing, LibraryRounds, CatBoostRounds)
