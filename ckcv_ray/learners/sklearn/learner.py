"""Estimators of scikit-learn, or with its interface, as learners: a base, any estimator, and short names.

A learner has an estimator and a search space: for each parameter a list of values, or a distribution. A path
consists of the values of one parameter that share work (``paths``), or of a single setting. The search space
of a short name is a good start; it depends only on the learner, never on the labels. Whether models can be
stored is tried before the fits, at each kind of setting.

An estimator that selects columns by name gets the columns of the table as they are, one for each: numbers
with gaps (nan), dates in milliseconds, and for a category the number of its level, in sorted order. It
encodes them itself, with scikit-learn's encoders of categories, for which a number is as good as the text.
Any other part of it would take such a number for a quantity, where it would reject the text; so that is
refused. The boosting libraries get categories in the same way if one of their estimators asks for them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import Option, option
from ckcv_ray.errors import AbsentError, Classes, InputError, Label, check_choice, quote, suggest
from ckcv_ray.learners.base import Coded, Setting
from ckcv_ray.learners.sklearn.paths import CLASS_KINDS, NUMBER_KINDS, EstimatorLearner, fit_model
from ckcv_ray.learners.sklearn.spec import (
    BOOSTERS,
    CATBOOST,
    INSTALL,
    KINDS,
    LIGHTGBM,
    NO_STEP,
    XGBOOST,
    Spec,
    Values,
    as_spec,
    check_trusted,
    find_mappings,
    list_classes,
)
from ckcv_ray.learners.sklearn.store import last_step, unpack
from ckcv_ray.learners.steps import BALANCED, CLASS_WEIGHT, EQUALLY, NAME, compute_weights, match_labels
from ckcv_ray.tables.columns import Column, Schema, some
from ckcv_ray.tables.task import Task

COLUMN_TRANSFORMER, PIPELINE = "sklearn.compose:ColumnTransformer", "sklearn.pipeline:Pipeline"
TRANSFORMERS = "transformers"
ENCODERS = {  # encoders of categories, and what they need for one that was never seen
    "sklearn.preprocessing:OneHotEncoder": 'handle_unknown="ignore"',
    "sklearn.preprocessing:OrdinalEncoder": 'handle_unknown="use_encoded_value", unknown_value=-1',
    "sklearn.preprocessing:TargetEncoder": "",
}
FILLS = {"sklearn.impute:SimpleImputer": ("most_frequent", "constant")}  # these return categories again
AROUND = {  # estimators that pass rows on as they are, and the parameter that holds one or more inside
    "sklearn.pipeline:FeatureUnion": "transformer_list",
    "sklearn.ensemble:VotingClassifier": "estimators",
    "sklearn.ensemble:VotingRegressor": "estimators",
    "sklearn.ensemble:StackingClassifier": "estimators",
    "sklearn.ensemble:StackingRegressor": "estimators",
    "sklearn.calibration:CalibratedClassifierCV": "estimator",
    "sklearn.compose:TransformedTargetRegressor": "regressor",
    "sklearn.model_selection:FixedThresholdClassifier": "estimator",
    "sklearn.model_selection:TunedThresholdClassifierCV": "estimator",
    "sklearn.model_selection:GridSearchCV": "estimator",
    "sklearn.model_selection:RandomizedSearchCV": "estimator",
}
NOT_ENCODED = (
    "would be taken for quantities: give them to OneHotEncoder, OrdinalEncoder or TargetEncoder where they "
    "are selected, or leave them out"
)
OWN_CATEGORIES = {XGBOOST: "enable_categorical", LIGHTGBM: "categorical_feature", CATBOOST: "cat_features"}


def find_columns(spec: Spec, schema: Schema) -> Spec | None:
    """Return the JSON form of an estimator, with names and kinds of columns replaced by positions.

    One of a boosting library that asks for categories is told their positions. None for an estimator that
    selects no columns, and takes encoded ones, and for XGBoost's if there are no categories.

    Raises:
        InputError: there is no such column, the columns are not those of the table where they are selected,
            a category is given to a part that would take its number for a quantity, or a boosting library
            is not given all columns of categories and no others.
    """
    library = BOOSTERS.get(spec["class"], "")
    asked = spec.get("params", {}).get(OWN_CATEGORIES.get(library))
    if asked and (library != LIGHTGBM or _is_named(asked)):  # LightGBM's positions are of encoded columns
        every = [i for i, column in enumerate(schema.columns) if column.levels]
        if library == XGBOOST:
            types = ["c" if column.levels else "q" for column in schema.columns]
            return _replace(spec, feature_types=types) if every else None
        label = f"estimator.{OWN_CATEGORIES[library]}"
        named = every if asked == "auto" else np.ravel(_find_positions(label, asked, schema.columns)).tolist()
        if wrong := sorted({*named} ^ {*every}):
            raise InputError(
                f"{label} does not name the columns that hold categories: it differs in "
                f"{some([schema.columns[i].name for i in wrong])}; name all of these and no others "
                "(--categorical makes categories of numbers)"
            )
        return _replace(spec, **{OWN_CATEGORIES[library]: named})
    if not _selects(spec):
        return None
    found: Spec = _find_in("estimator", spec, schema.columns)
    if _selects(found):
        raise InputError(
            "estimator: columns are selected by name where others than those of the table may be given: "
            "select them by position, or in the first step of a Pipeline"
        )
    return found


def _selects(spec: Spec) -> bool:
    """Return whether an estimator, or one inside it, selects columns by name or kind."""
    every: Iterable[Any] = find_mappings(spec, "class")
    selecting = (each["params"] for each in every if each["class"] == COLUMN_TRANSFORMER)
    return any(_is_named(step[2]) for params in selecting for step in params[TRANSFORMERS])


def _find_in(label: str, part: Any, columns: Sequence[Column], whole: bool = True) -> Any:
    """Return a part of an estimator with positions instead of names.

    Args:
        label: label of the part, for messages.
        part: an estimator in its JSON form, or the word that stands for none.
        columns: the columns of the table that it gets.
        whole: whether it gets these as they are in the table, so that no other part may have left some out.
    """
    path, params = (part["class"], part.get("params", {})) if isinstance(part, Mapping) else ("", {})
    why = NOT_ENCODED
    if part in (NO_STEP[0], None):
        return part
    if path == PIPELINE:
        steps = [*params["steps"]]
        for i, (name, step) in enumerate(steps):
            if isinstance(step, Mapping):
                if step.get("params", {}).get("strategy") not in FILLS.get(step["class"], ()):
                    steps[i] = [name, _find_in(f"{label}.{name}", step, columns, whole)]
                    return _replace(part, steps=steps)
                whole = False
    elif path == COLUMN_TRANSFORMER and whole:
        transformers, left = [], set(range(len(columns)))
        for name, inside, selection in params[TRANSFORMERS]:
            places = _find_positions(f"{label}.{name}", selection, columns)
            chosen = np.ravel(places).tolist()
            found = _find_in(f"{label}.{name}", inside, [columns[i] for i in chosen])
            transformers.append([name, found, places])
            left -= set(chosen)
        rest = [columns[i] for i in sorted(left)]
        remainder = _find_in(f"{label}.remainder", params.get("remainder", NO_STEP[0]), rest)
        return _replace(part, **{TRANSFORMERS: transformers, "remainder": remainder})
    elif isinstance(held := params.get(AROUND.get(path)), list):
        parts = [[name, _find_in(f"{label}.{name}", each, columns, whole)] for name, each in held]
        return _replace(part, **{AROUND[path]: parts})
    elif isinstance(held, Mapping):
        return _replace(part, **{AROUND[path]: _find_in(f"{label}.{AROUND[path]}", held, columns, whole)})
    elif (needed := ENCODERS.get(path)) is not None:
        if not needed or params.get("handle_unknown", "error") != "error":
            return part
        why = f"may be new in rows that are scored: give {path.partition(':')[2]} {needed}"
    if categories := {column.name: None for column in columns if column.levels}:
        raise InputError(f"{label}: the categories of {some([*categories])} {why}")
    return part


def _find_positions(label: str, selection: Any, columns: Sequence[Column]) -> Any:
    """Return the positions of a list of columns, or of one, that are selected by name or kind."""
    names = [column.name for column in columns]
    if isinstance(selection, Mapping):
        return [i for i, column in enumerate(columns) if column.kind in selection[KINDS]]
    listed = selection if isinstance(selection, list | tuple) else [selection]
    if missing := [column for column in listed if isinstance(column, str) and column not in names]:
        raise InputError(
            f"{label}: there is no column {quote(missing[0])}: the columns are {some(names)}"
            f"{suggest(missing[0], names)}"
        )
    places = [names.index(column) if isinstance(column, str) else column for column in listed]
    try:
        found = np.arange(len(names))[places].tolist()
    except IndexError:
        raise InputError(
            f"{label}: {quote(selection)} selects no columns: there are {len(names)}, from 0"
        ) from None
    return found if listed is selection else found[0]


def _is_named(selection: Any) -> bool:
    """Return whether columns are selected by name or kind."""
    listed = selection if isinstance(selection, list | tuple) else [selection]
    return any(isinstance(column, str | Mapping) for column in listed)


def _replace(spec: Mapping[str, Any], **params: Any) -> Spec:
    return {**spec, "params": {**spec.get("params", {}), **params}}


FEW_ROWS = 60  # rows of each class, to which a model is fitted to see whether it can be stored
MAX_TRIED = 16  # settings tried
MIN_SHARE = 6  # the smallest training set has one part in six of the rows
WEIGHTS_BY_POSITION = ("HistGradientBoostingClassifier",)  # among classes that have training rows
NONE, STANDARD = "none", "standard"
OWN_SCALE = Option(
    partial(check_choice, allowed=(NONE, STANDARD)),
    "Scaling of the numbers that the estimator is given: none, or standard (fitted only on each split's "
    "training rows).",
)
ESTIMATOR = Option(as_spec, "Class of the estimator, such as sklearn.ensemble:RandomForestClassifier.")


@dataclass(frozen=True)
class WeightedLearner(EstimatorLearner):
    """A learner whose estimator weighs classes.

    Attributes:
        class_weight: weight of each class: "balanced" (n / (K n_c), from the n training rows of each split,
            n_c of class c, K classes), by label, "equal" or None.

    Raises:
        InputError: the estimator has no ``class_weight``, or ``param`` also names it.
    """

    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_weight == EQUALLY:
            return
        if NAME not in self.parameter_names():
            raise InputError(
                f"{NAME}: {type(last_step(self.build())).__name__} has no class weights: leave it out"
            )
        if NAME in self.all_values:
            raise InputError(f"{NAME} is given twice: as an option, and as a parameter of the learner")

    def canonical(self, task: Task) -> Self:
        """Return the learner with class weights as the task's labels; see ``base.Learner``."""
        return replace(self, class_weight=match_labels(str(self.class_weight), task.classes))

    def class_weights(self, task: Task, y: Classes) -> Mapping[int, float] | str | None:
        """Return the weights of the classes that have training rows, or "balanced"."""
        if self.class_weight in (EQUALLY, BALANCED):
            return None if self.class_weight == EQUALLY else BALANCED
        weight = compute_weights(str(self.class_weight), task.classes, y)
        present = np.unique(y).tolist()
        by_position = self.spec["class"] in BOOSTERS
        by_position |= type(last_step(self.build())).__name__ in WEIGHTS_BY_POSITION
        keys = range(len(present)) if by_position else present
        return {key: float(weight[c]) for key, c in zip(keys, present, strict=True)}


@dataclass(frozen=True)
class AnyEstimator(WeightedLearner):
    """Any estimator with the interface of scikit-learn, or a Pipeline of them.

    Attributes:
        estimator: its class as "module:Class", an object, or its JSON form (``spec``).
        scale: "none" for numbers as they are, or "standard" (fitted only on the training rows of each split).
    """

    name = "estimator"
    estimator: Mapping[str, Any] | str = option("", ESTIMATOR)
    scale: str = option(NONE, OWN_SCALE)

    @property
    def spec(self) -> Spec:  # type: ignore[override]
        """The estimator in its JSON form."""
        assert isinstance(self.estimator, dict)
        return self.estimator

    @property
    def kinds(self) -> frozenset[Kind]:  # type: ignore[override]
        """Kinds of task: a regressor predicts numbers."""
        from sklearn.base import is_regressor

        return NUMBER_KINDS if is_regressor(self.build()) else CLASS_KINDS

    def check_storable(self, encode: Callable[[], Task]) -> None:
        """Fit to a few rows of each class, at the ends of each kind of setting; store the models in memory.

        Models of the boosting libraries can always be stored.

        Raises:
            InputError: a model cannot be stored.
        """
        kind = self.spec["class"]
        if kind in BOOSTERS:
            return
        task = encode()
        each = [np.flatnonzero(task.y == c)[:FEW_ROWS] for c in range(task.n_classes)]
        few = np.concatenate(each or [np.arange(min(FEW_ROWS, task.n))])
        alike: dict[str, list[Setting]] = {}  # settings with the same words and lists
        for setting in chain(*self.space.paths):
            kinds = {name: None if type(v) in (int, float) else v for name, v in setting.items()}
            alike.setdefault(json.dumps(kinds), []).append(setting)
        ends = (each for same in alike.values() for each in (same[0], same[-1]))
        for setting in [*{json.dumps(setting): setting for setting in ends}.values()][:MAX_TRIED]:
            try:
                model, _ = fit_model(self, task, few, setting)
            except (Exception, SystemExit):  # evaluations will run into the error again, and record it
                continue
            try:
                unpack(model.content, [*list_classes(self.spec)])
            except Exception as error:  # skops raises errors of all kinds
                at = ", ".join(f"{name} = {value}" for name, value in setting.items())
                raise InputError(
                    f"models of estimator {kind} cannot be stored{at and f' at {at}'}: "
                    f"{(str(error) or type(error).__name__).splitlines()[0]}"
                ) from None

    def prepare(self, task: Task, encoding: Coded) -> tuple[Self, Coded | None]:
        """Return the learner with columns by position instead of name, which it encodes by itself.

        Raises:
            InputError: see ``find_columns``.
        """
        scaled = self.scale == STANDARD
        if (found := find_columns(self.spec, task.schema)) is None:
            return self, None if task.schema.plain and not scaled else encoding.resolve(self.trees, scaled)
        if scaled:
            raise InputError(
                "scale=standard has no effect: the estimator selects columns by name, and is given them as "
                "they are; leave it out, and put sklearn.preprocessing:StandardScaler into the estimator"
            )
        return replace(self, estimator=found), None


@dataclass(frozen=True)
class ScaledLearner(EstimatorLearner):
    """A learner whose estimator, ``unscaled``, needs columns of one scale."""

    unscaled: ClassVar[Spec]
    # whether columns are standardised first. If a table is encoded, the encoder has scaled the numbers, and
    # scaling the columns of rare categories and gaps would give these too much weight
    scales: bool = True

    @property
    def spec(self) -> Spec:  # type: ignore[override]
        """The estimator, after standardisation or alone."""
        steps = [["scale", {"class": "sklearn.preprocessing:StandardScaler"}], ["model", self.unscaled]]
        return {"class": PIPELINE, "params": {"steps": steps}} if self.scales else self.unscaled

    def prepare(self, task: Task, encoding: Coded) -> tuple[Self, Coded | None]:
        """Return the learner without standardisation if the encoder standardises numbers."""
        learner, suited = super().prepare(task, encoding)
        return replace(learner, scales=suited is None or not suited.onehot), suited


class NeighborsLearner(ScaledLearner):
    """Nearest neighbours: unless their numbers are given, none exceeds what few rows allow."""

    def canonical(self, task: Task) -> Self:
        """Return the learner with the numbers of neighbours that the smallest training sets allow.

        These sets are assumed to be a sixth of the rows: half held out, and three folds of the others.
        """
        param = self.param or {}
        numbers = tuple(n for n in self.values["n_neighbors"] if n <= max(1, task.n // MIN_SHARE))
        if "n_neighbors" in param or numbers == self.values["n_neighbors"]:
            return self
        return replace(self, param={**param, "n_neighbors": numbers})


class BoostingLearner(EstimatorLearner):
    """A learner from one of the libraries, which is imported only if it is trusted."""

    trees: ClassVar[bool] = True

    def __post_init__(self) -> None:
        package = BOOSTERS[self.spec["class"]]
        check_trusted(f"learner={self.name!r}", package)
        if find_spec(package) is None:
            raise AbsentError(f"{package} is not installed: {INSTALL}")
        super().__post_init__()


WEIGHTED, SCALED, NEAREST = (WeightedLearner,), (ScaledLearner,), (NeighborsLearner,)
BOOSTED, BOOSTED_WEIGHTED = (BoostingLearner,), (BoostingLearner, WeightedLearner)


class Row(NamedTuple):
    """A learner with a short name."""

    path: str  # class of the estimator, as "module:Class"
    values: Values  # search space
    bases: tuple[type[EstimatorLearner], ...] = (EstimatorLearner,)
    params: Mapping[str, object] = MappingProxyType({})  # parameters other than the estimator's defaults
    defaults: Mapping[str, object] = MappingProxyType({})  # those that it does not list, by parameter


def _define(rows: Mapping[str, Row], kinds: frozenset[Kind]) -> tuple[Any, ...]:
    """Return the class of each row, which a pickle finds in this module under the short name."""
    for name, row in rows.items():
        spec = {"class": row.path, **({"params": dict(row.params)} if row.params else {})}
        fixed = {"name": name, "values": row.values, "defaults": row.defaults, "kinds": kinds}
        fixed |= {"unscaled" if issubclass(row.bases[0], ScaledLearner) else "spec": spec}
        globals()[name] = dataclass(frozen=True)(type(name, row.bases, {"__module__": __name__, **fixed}))
    return tuple(globals()[name] for name in rows)


WEIGHTS = ("uniform", "distance")  # weights of neighbours
FOREST = {"max_features": ("sqrt", 0.5, 1.0), "min_samples_leaf": (1, 3, 10), "n_estimators": (50, 100, 200)}
HISTOGRAMS = {"learning_rate": (0.03, 0.1, 0.3), "max_iter": (25, 50, 100, 200), "max_leaf_nodes": (7, 31)}
PRUNED = {"ccp_alpha": (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05), "criterion": ("gini", "entropy")}
TO_THE_END = {"early_stopping": False}  # so that the first rounds of a long fit are a short one
LAYERS = {"alpha": (0.0001, 0.01, 1.0), "hidden_layer_sizes": ([16], [64], [32, 32])}
RATES, ROUNDS = (0.05, 0.2), (25, 50, 100, 150, 200)
XGB = {"learning_rate": RATES, "max_depth": (3, 6), "n_estimators": ROUNDS}
XGB_DEFAULTS = {"learning_rate": 0.3, "max_depth": 6, "n_estimators": 100}
LEAVES = {"min_child_samples": (5, 20), "num_leaves": (7, 31)}
LIGHT = {"learning_rate": RATES, "n_estimators": ROUNDS, **LEAVES}
CAT, CAT_PARAMS = {"depth": (4, 6), "iterations": ROUNDS, "learning_rate": RATES}, {"learning_rate": 0.1}
CAT_DEFAULTS = {"depth": 6, "iterations": 1000, "learning_rate": None}
CLASSIFIERS = {
    "linear": Row(
        "sklearn.linear_model:LogisticRegression",
        {"C": tuple(10.0 ** (e / 2) for e in range(-6, 5))},
        (ScaledLearner, WeightedLearner),
        {"max_iter": 1000},
    ),
    "boosting": Row(
        "sklearn.ensemble:HistGradientBoostingClassifier",
        {**HISTOGRAMS, "min_samples_leaf": (5, 20)},
        WEIGHTED,
        TO_THE_END,
    ),
    "forest": Row("sklearn.ensemble:RandomForestClassifier", FOREST, WEIGHTED),
    "extra_trees": Row("sklearn.ensemble:ExtraTreesClassifier", FOREST, WEIGHTED),
    "neighbors": Row(
        "sklearn.neighbors:KNeighborsClassifier",
        {"n_neighbors": (1, 3, 5, 7, 9, 11, 15), "weights": WEIGHTS},
        NEAREST,
    ),
    "tree": Row("sklearn.tree:DecisionTreeClassifier", {**PRUNED, "min_samples_leaf": (1, 5, 20)}, WEIGHTED),
    "naive_bayes": Row(
        "sklearn.naive_bayes:GaussianNB", {"var_smoothing": tuple(10.0**e for e in range(-12, 1))}
    ),
    "mlp": Row("sklearn.neural_network:MLPClassifier", LAYERS, SCALED, {"max_iter": 300}),
    "lda": Row(
        "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        {"shrinkage": (None, "auto", 0.1, 0.5, 0.9)},
        params={"solver": "lsqr"},
    ),
    "constant": Row("sklearn.dummy:DummyClassifier", {"strategy": ("most_frequent",)}),
}
OF_NUMBERS = {
    "linear_regression": Row("sklearn.linear_model:LinearRegression", {"fit_intercept": (True,)}),
    "lasso": Row(
        "sklearn.linear_model:Lasso",
        {"alpha": tuple(10.0 ** (e / 2) for e in range(-6, 3))},
        SCALED,
        {"max_iter": 10_000},
    ),
    "neighbors_regressor": Row(
        "sklearn.neighbors:KNeighborsRegressor",
        {"n_neighbors": (1, 3, 5, 9, 15, 25), "weights": WEIGHTS},
        NEAREST,
    ),
    "tree_regressor": Row(
        "sklearn.tree:DecisionTreeRegressor", {"min_samples_leaf": (1, 5, 20), "max_depth": (None, 3, 6)}
    ),
    "forest_regressor": Row("sklearn.ensemble:RandomForestRegressor", {**FOREST, "n_estimators": (100,)}),
    "boosting_regressor": Row(
        "sklearn.ensemble:HistGradientBoostingRegressor", HISTOGRAMS, params=TO_THE_END
    ),
    "svr": Row("sklearn.svm:SVR", {"C": (0.1, 1.0, 10.0, 100.0), "gamma": ("scale", 0.01, 0.1, 1.0)}, SCALED),
    "mean": Row("sklearn.dummy:DummyRegressor", {"strategy": ("mean", "median")}),
}
LIBRARIES_OF_CLASSES = {
    "xgboost": Row("xgboost.sklearn:XGBClassifier", XGB, BOOSTED, defaults=XGB_DEFAULTS),
    "lightgbm": Row("lightgbm.sklearn:LGBMClassifier", LIGHT, BOOSTED_WEIGHTED),
    "catboost": Row("catboost.core:CatBoostClassifier", CAT, BOOSTED, CAT_PARAMS, CAT_DEFAULTS),
}
LIBRARIES_OF_NUMBERS = {
    "xgboost_regressor": Row("xgboost.sklearn:XGBRegressor", XGB, BOOSTED, defaults=XGB_DEFAULTS),
    "lightgbm_regressor": Row("lightgbm.sklearn:LGBMRegressor", LIGHT, BOOSTED),
    "catboost_regressor": Row("catboost.core:CatBoostRegressor", CAT, BOOSTED, CAT_PARAMS, CAT_DEFAULTS),
}
NAMED, REGRESSORS = _define(CLASSIFIERS, CLASS_KINDS), _define(OF_NUMBERS, NUMBER_KINDS)
BOOSTING = (*_define(LIBRARIES_OF_CLASSES, CLASS_KINDS), *_define(LIBRARIES_OF_NUMBERS, NUMBER_KINDS))
