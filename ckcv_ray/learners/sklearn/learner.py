"""Estimators of scikit-learn, or with its interface, as learners: a base, and one that takes any estimator.

A learner has an estimator and a search space: for each parameter a list of values, or a distribution. A path
consists of the values of one parameter that share work (``paths``), or of a single setting.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import Option, check_options, option, thin_values
from ckcv_ray.core.scores import Output
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Codec, Learner, Setting, Space, Trainer
from ckcv_ray.learners.class_weight import (
    BALANCED,
    CLASS_WEIGHT,
    EQUALLY,
    NAME,
    compute_weights,
    match_labels,
)
from ckcv_ray.learners.sklearn.allowed import list_classes
from ckcv_ray.learners.sklearn.columns import find_columns
from ckcv_ray.learners.sklearn.libraries import BOOSTERS
from ckcv_ray.learners.sklearn.model import BoosterCodec, EstimatorCodec, is_foreign
from ckcv_ray.learners.sklearn.packing import last_step
from ckcv_ray.learners.sklearn.paths import Block, EstimatorPath, Plain, find_sharing
from ckcv_ray.learners.sklearn.space import Values, check_space, list_settings
from ckcv_ray.learners.sklearn.spec import (
    Spec,
    add_scaling,
    as_spec,
    build,
    complete_names,
    list_packages,
    list_parameters,
    trust,
)
from ckcv_ray.learners.sklearn.split import SplitFits, takes_weights
from ckcv_ray.learners.sklearn.storable import check_storable
from ckcv_ray.learners.sklearn.templates import Template, make_template
from ckcv_ray.tables.columns.schema import Schema
from ckcv_ray.tables.target import Label
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import check_choice, integer

LEAST_SHARE = 6  # the smallest training set has one part in six of the rows
CLASS_KINDS = frozenset({Kind.BINARY, Kind.MULTICLASS})
NUMBER_KINDS = frozenset({Kind.REGRESSION})
WEIGHTS_BY_POSITION = ("HistGradientBoostingClassifier",)  # among the classes that have training rows
OVERHEAD_ROWS = 500  # a fit on no rows takes about as long as these many rows more


def _sample(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value, least=1, most=100_000)


PARAM = Option(
    check_space,
    "Parameter and values to try: max_features=sqrt,0.5, C=log:-2:4:13, or with --sample a distribution: "
    "C=loguniform:1e-3:1e2. May be repeated.",
    list[str],
    "the learner's own",
    "Other learners",
)
SAMPLE = Option(
    _sample,
    "Number of settings to draw at random, such as 60.",
    int,
    panel="Other learners",
)
NONE, STANDARD, IF_ENCODED = "none", "standard", "if_encoded"
SCALING = {NONE: False, STANDARD: True, IF_ENCODED: None}
OWN_SCALE = Option(
    lambda name, value: check_choice(name, value, SCALING),
    "Scaling of the numbers that the estimator is given: none; standard (fitted on each split's training "
    "rows alone); or if_encoded, standard in tables with gaps, categories or dates, and else none.",
    default_text=NONE,
)
ESTIMATOR = Option(as_spec, "Class of the estimator, such as sklearn.ensemble:RandomForestClassifier.")


@dataclass(frozen=True)
class EstimatorLearner(Learner):
    """A learner whose models are estimators of scikit-learn; a subclass names one and its usual search space.

    Attributes:
        param: search space, values or a distribution by parameter; those of ``values`` that are not named
            keep their values.
        sample: number of settings to draw from the search space; None for all of them.

    Raises:
        InputError: a parameter does not exist, or a value is refused by the estimator.
    """

    name: ClassVar[str]
    spec: ClassVar[Spec]
    values: ClassVar[Values] = {}
    defaults: ClassVar[Values] = {}
    kinds: ClassVar[frozenset[Kind]] = CLASS_KINDS
    convergence_advice: ClassVar[str] = "raise max_iter, or narrow the search space"

    param: Mapping[str, Any] | None = option(None, PARAM)
    sample: int | None = option(None, SAMPLE)

    def __post_init__(self) -> None:
        check_options(self)
        self._check_values()

    @property
    def all_values(self) -> Values:
        """The search space, by parameter, sorted by name."""
        return dict(sorted({**self.values, **(self.param or {})}.items()))

    @cached_property
    def sharing(self) -> type[EstimatorPath]:
        """How the settings of a path share work."""
        found = find_sharing(self.build())
        return found if found.parameter in self.all_values else Plain

    @cached_property
    def space(self) -> Space:
        """The settings of each path, in ascending order of the parameter that shares work."""
        settings, shared = list_settings(self.all_values, self.sample), self.sharing.parameter
        if shared is None:
            return Space([setting] for setting in settings)
        groups: dict[str, list[Setting]] = {}
        for setting in settings:
            fixed = {name: value for name, value in setting.items() if name != shared}
            groups.setdefault(json.dumps(fixed), []).append(setting)
        return Space(sorted(group, key=lambda setting: setting[shared]) for group in groups.values())

    @cached_property
    def trainer(self) -> Trainer:
        """What fits estimators."""
        return EstimatorTrainer(self)

    @cached_property
    def codec(self) -> Codec:
        """What stores estimators in the format of skops, or of their own library."""
        kind = BoosterCodec if self.spec["class"] in BOOSTERS else EstimatorCodec
        return kind(self.spec, set(self.all_values))

    @cached_property
    def outputs(self) -> frozenset[Output]:
        """Probabilities if the estimator has them, and scores that order rows if it has either."""
        if self.kinds == NUMBER_KINDS:
            return frozenset()
        estimator = self.build()
        if hasattr(estimator, "predict_proba"):
            return frozenset({Output.PROBABILITY, Output.RANK, Output.RANKS})
        return frozenset({Output.RANK, Output.RANKS} if hasattr(estimator, "decision_function") else ())

    @cached_property
    def foreign(self) -> bool:
        """Whether its fits call code of another package than scikit-learn."""
        return is_foreign(self.build())

    @cached_property
    def weighs_rows(self) -> bool:
        """Whether the estimator, of a pipeline its last step, and all that it fits take ``sample_weight``."""
        return takes_weights(self.build())

    def build(self) -> Any:
        """Return a new estimator."""
        return build(self.spec)

    def template(self, setting: Setting) -> Template:
        """Return the estimator at a setting, to be copied."""
        return make_template(self._text, json.dumps(dict(setting)))

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.spec)

    def parameter_names(self) -> list[str]:
        """Return the names of the estimator's parameters; of a pipeline's last step also the short ones."""
        return list(list_parameters(self.build()))

    def class_weights(self, task: Task, y: Classes) -> Mapping[int, float] | str | None:
        """Return what the estimator takes as ``class_weight`` for training rows y [n]; None for its own."""
        return None

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values of each parameter, or ``most`` drawn settings."""
        if self.sample is not None:
            return replace(self, sample=min(self.sample, most))
        lists = {name: v for name, v in self.all_values.items() if not isinstance(v, str)}
        spaced = {name: thin_values(values, most) for name, values in lists.items()}
        fewer = {name: values for name, values in spaced.items() if values != self.values.get(name)}
        return replace(self, param={**(self.param or {}), **fewer})

    def usual(self, task: Task) -> Self:
        """Return the learner with the estimator's default of each parameter whose values are not given."""
        if self.sample is not None:
            return self
        defaults, given = list_parameters(self.build()) | self.defaults, self.param or {}
        return replace(self, param={name: given.get(name, (defaults[name],)) for name in self.all_values})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take the state from another process, in which the packages were trusted."""
        self.__dict__.update(state)
        for package in list_packages(self.spec):
            trust(package)

    def _check_values(self) -> None:
        """Raise InputError with scikit-learn's own words if a value is out of its range."""
        for name, values in (self.param or {}).items():
            complete_names(self.build(), {name: None})
            for value in () if isinstance(values, str) else values:
                self._check_value({name: value}, name, value)
        list_settings(self.all_values, self.sample)

    def _check_value(self, setting: Setting, name: str, value: Any) -> None:
        last = last_step(self.template(setting).estimator)
        if not hasattr(last, "_parameter_constraints"):  # it does not declare them
            return
        try:
            last._validate_params()
        except ValueError as error:
            raise InputError(f"param {name}={value!r}: {error}") from None


class EstimatorTrainer(Trainer):
    """Fits estimators to the rows of each split.

    Args:
        learner: gives the estimators and their settings.
    """

    def __init__(self, learner: EstimatorLearner) -> None:
        self.learner = learner

    def prepare(self, shared: Task, train: Index, score: Index) -> Block:
        """Select the rows of a split."""
        learner = self.learner
        return Block(SplitFits(learner, shared, train, score), learner.space.paths, learner.sharing)

    def cost(self, n_train: int) -> float:
        """Return the number of training rows, and a constant."""
        return float(n_train + OVERHEAD_ROWS)

    def check_storable(self, task: Task) -> None:
        """Check that models can be stored; see ``storable``.

        Raises:
            InputError: they cannot.
        """
        spec = self.learner.spec
        if inside := [path for path in list_classes(spec) if path in BOOSTERS]:
            raise InputError(
                f"models of estimator {spec['class']} cannot be stored: {inside[0]} has the format of its "
                "library, for itself alone: give it without other steps, or score the whole by ckcv evaluate"
            )
        check_storable(self.learner, self.learner.spec, chain(*self.learner.space.paths), task)

    def load(self) -> None:
        """Import the estimator."""
        self.learner.build()


@dataclass(frozen=True)
class WeightedLearner(EstimatorLearner):
    """A learner whose estimator weighs classes.

    Attributes:
        class_weight: weight of each class: "balanced" (n / (K n_c), from the n training rows of each split,
            n_c of class c, K classes), by label, "equal" or None.

    Raises:
        InputError: the estimator has no ``class_weight``, or it is also among ``param``.
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
        return replace(self, class_weight=match_labels(self._class_weight, task.classes))

    def class_weights(self, task: Task, y: Classes) -> Mapping[int, float] | str | None:
        """Return the weights of the classes that have training rows, or "balanced"."""
        if self._class_weight in (EQUALLY, BALANCED):
            return None if self._class_weight == EQUALLY else BALANCED
        weight = compute_weights(self._class_weight, task.classes, y)
        present = np.unique(y).tolist()
        by_position = self.spec["class"] in BOOSTERS
        by_position |= type(last_step(self.build())).__name__ in WEIGHTS_BY_POSITION
        keys = range(len(present)) if by_position else present
        return {key: float(weight[c]) for key, c in zip(keys, present, strict=True)}

    @property
    def _class_weight(self) -> str:
        assert isinstance(self.class_weight, str)
        return self.class_weight


@dataclass(frozen=True)
class ScaledLearner(EstimatorLearner):
    """A learner whose estimator needs columns of one scale; a subclass names it by ``unscaled``."""

    unscaled: ClassVar[Spec]
    # whether columns are standardised first. Of a table that is encoded, the encoder has scaled the numbers,
    # and to scale the columns of rare categories and gaps would give these too much weight
    scales: bool = True

    @property
    def spec(self) -> Spec:  # type: ignore[override]
        """The estimator, after standardisation or by itself."""
        return add_scaling(self.unscaled) if self.scales else self.unscaled

    def on_encoded(self) -> Self:
        """Return the learner without standardisation."""
        return replace(self, scales=False)


@dataclass(frozen=True)
class NeighborsLearner(ScaledLearner):
    """A learner of the nearest neighbours; unless numbers of them are given, none that few rows lack."""

    def canonical(self, task: Task) -> Self:
        """Return the learner with the numbers of neighbours that the smallest training sets have.

        These are taken to be a sixth of the rows: half of them held out, and three folds of the others.
        """
        param = self.param or {}
        numbers = tuple(n for n in self.values["n_neighbors"] if n <= max(1, task.n // LEAST_SHARE))
        if "n_neighbors" in param or numbers == self.values["n_neighbors"]:
            return self
        return replace(self, param={**param, "n_neighbors": numbers})


@dataclass(frozen=True)
class AnyEstimator(WeightedLearner):
    """Any estimator with the interface of scikit-learn, or a Pipeline of them.

    Attributes:
        estimator: its class as "module:Class", an object, or its JSON form (``spec``).
        scale: "none" for numbers as they are, "standard" (fitted only on the training rows of each split), or
            "if_encoded": "standard" for tables with gaps, categories or dates unless the estimator fits
            trees, and else "none", which is what studies mean that do not say it.
    """

    name = "estimator"
    estimator: Mapping[str, Any] | str | None = option(None, ESTIMATOR)
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

    @property
    def has_scaling(self) -> bool:
        """Whether its options say how its numbers are scaled."""
        return True

    @property
    def scaling(self) -> bool | None:
        """Whether its numbers are standardised; None if that depends on the table."""
        return SCALING[self.scale]

    def on_unscaled(self) -> Self:
        """Return the form that scales nothing, on a table of which no encoder scales numbers."""
        return replace(self, scale=NONE) if self.scale == IF_ENCODED else self

    @property
    def storable(self) -> bool:
        """Whether its library has a format for its models; of others some are tried."""
        return self.spec["class"] in BOOSTERS

    @property
    def trees(self) -> bool:
        """Whether the estimator's name says that its models are trees."""
        name = type(last_step(self.build())).__name__
        return any(word in name for word in ("Tree", "Forest", "Boosting"))

    def canonical(self, task: Task) -> Self:
        """Return the canonical form; nothing is fitted."""
        return self if task.has_numbers else super().canonical(task)

    def on_columns(self, schema: Schema) -> Self | None:
        """Return the learner with positions of columns for their names; see ``columns``."""
        if (found := find_columns(self.spec, schema)) is None:
            return None
        if self.scale == STANDARD:
            raise InputError(
                "scale=standard has no effect: the estimator selects columns by name, and is given them as "
                "they are; leave it out, and put sklearn.preprocessing:StandardScaler into the estimator"
            )
        return replace(self, estimator=found)
