"""A fitted estimator as a model, with class numbers and scores that are the same for a row in any batch.

Unfitted estimators are made from their JSON form once in a process, and copied for each fit.
"""

import copy
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, agree
from ckcv_ray.core.measures import Output, Outputs
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import STATUSES, Codec, Model, Predicted, Setting, Status, try_model
from ckcv_ray.learners.foreign import contain, preserve_state
from ckcv_ray.learners.sklearn.spec import (
    LIBRARY,
    Spec,
    build,
    check_setting,
    complete_names,
    draws_globally,
    list_classes,
    make_value,
    prepare,
)
from ckcv_ray.learners.sklearn.store import Booster, pack, read_values, unpack
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

MAX_KEPT = 4096
OTHER_PARAMETERS = ("memory", "transform_input", "verbose")  # of a pipeline: each changes how it is fitted


class Template(NamedTuple):
    """An estimator at a setting, which is never fitted itself.

    Attributes:
        estimator: the estimator, whose fits use one thread.
        unseeded: for each ``random_state`` that is None, sorted by full name, the estimator that has it:
            itself or one inside.
        head: of a pipeline whose steps but the last can be fitted once for several settings, what of the
            setting they may depend on; None of anything else.
    """

    estimator: Any
    unseeded: tuple[Any, ...]
    head: str | None

    def copy(self, seeds: list[int]) -> Any:
        """Return a new estimator with these seeds for each ``random_state`` that is None."""
        estimator, unseeded = copy.deepcopy((self.estimator, self.unseeded))
        for owner, seed in zip(unseeded, seeds, strict=True):
            owner.set_params(random_state=seed)
        return estimator


@lru_cache(maxsize=MAX_KEPT)
def make_template(spec: str, setting: str) -> Template:
    """Return the estimator of a JSON form at a setting, both given as text."""
    from sklearn.pipeline import Pipeline

    described, values = json.loads(spec), json.loads(setting)
    estimator = build(described)
    names = complete_names(estimator, values)
    for name, value in names.items():
        check_setting("param", described, name, value)
    estimator.set_params(**{name: make_value(value) for name, value in names.items()})
    for part in (estimator, *estimator.get_params(deep=True).values()):
        prepare(part)
    every = estimator.get_params(deep=True)
    short = {name: name.rpartition("__")[2] for name in every}
    threads = {name: 1 for name in every if short[name] == "n_jobs" and every[name] is not None}
    estimator.set_params(**threads)
    unseeded = sorted(name for name in every if short[name] == "random_state" and every[name] is None)
    owners = tuple(every[owner] if (owner := name.rpartition("__")[0]) else estimator for name in unseeded)
    head = None
    if type(estimator) is Pipeline and len(estimator) > 1 and not any(map(every.get, OTHER_PARAMETERS)):
        last = f"{estimator.steps[-1][0]}__"
        head_values = {name: value for name, value in names.items() if not name.startswith(last)}
        head = json.dumps([head_values, unseeded])
    return Template(estimator, owners, head)


BATCH = 256
SAMPLE_WEIGHT = "sample_weight"  # of fit, in scikit-learn
CONVERGED, NOT_CONVERGED = STATUSES.index(Status.CONVERGED), STATUSES.index(Status.NOT_CONVERGED)


@dataclass(frozen=True)
class FittedEstimator(Model):
    """A fitted estimator."""

    setting: Mapping[str, Any]  # the hyperparameters it was fitted at
    estimator: Any  # fitted on class numbers
    n_classes: int  # of the task; 0 if it predicts numbers
    foreign: bool = field(default=False, compare=False)  # whether it is not scikit-learn's

    def predict(self, X: Rows) -> Predicted:
        """Classify rows, in batches of one size: in another batch sums may be rounded in another way.

        Raises:
            ValueError: the estimator predicts something else than a class number.
            InputError: a row has a gap, and the estimator takes none.
        """
        if not len(X):
            return Predicted(np.zeros(0, np.int32), np.zeros(0))
        padded = np.concatenate([X, np.repeat(X[-1:], -len(X) % BATCH, axis=0)])
        batches = [padded[i : i + BATCH] for i in range(0, len(padded), BATCH)]
        estimator, n_classes = self.estimator, self.n_classes
        with collect_warnings(), guard(self.foreign), explain_gaps(X):
            label = np.concatenate([predict_classes(estimator, rows.copy(), n_classes) for rows in batches])
            score = np.concatenate([_predict_score(estimator, rows, n_classes) for rows in batches])
        return Predicted(label[: len(X)], score[: len(X)])

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the estimator's outputs for rows X [rows, d], all at once; each call gets a copy of them."""
        with collect_warnings(), guard(self.foreign), explain_gaps(X):
            if not self.n_classes:
                return Outputs(value=predict_values(self.estimator, X.copy()))
            label = predict_classes(self.estimator, X.copy(), self.n_classes)
            ranked = not needs.isdisjoint({Output.RANK, Output.RANKS})
            rank = _predict_rank(self.estimator, X.copy(), self.n_classes) if ranked else None
            asked = Output.PROBABILITY in needs
            shares = _predict_probability(self.estimator, X.copy(), self.n_classes) if asked else None
        return Outputs(label, rank, shares)

    @classmethod
    def of(
        cls,
        setting: Mapping[str, Any],
        content: bytes,
        n_classes: int,
        n_features: int,
        known: Iterable[str] | None = None,
    ) -> Self:
        """Return the model whose estimator is given as bytes; ``known`` are the classes that it may hold.

        Raises:
            ValueError: see ``store.unpack``.
        """
        with collect_warnings():  # such as that a class is deprecated
            estimator = unpack(content, n_features, known)
        return cls(setting, estimator, n_classes, is_foreign(estimator))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the estimator in its canonical form: equal models are equal bytes."""
        if isinstance(self.estimator, Booster):
            return FittedEstimator, (self.setting, self.estimator, self.n_classes, True)
        return FittedEstimator.of, (self.setting, self.content, self.n_classes, self.n_features)

    @property
    def n_features(self) -> int:
        """Number of columns of the rows it was fitted to."""
        return int(self.estimator.n_features_in_)

    @cached_property
    def content(self) -> bytes:
        """The estimator as bytes; see ``store``."""
        return self.estimator.content if isinstance(self.estimator, Booster) else pack(self.estimator)

    def read_values(self) -> Any:
        """Return what ``content`` says, as words and numbers that can be compared with others."""
        return (
            self.estimator.read_values() if isinstance(self.estimator, Booster) else read_values(self.content)
        )


class EstimatorCodec(Codec):
    """Estimators as bytes, with their settings as JSON.

    Args:
        spec: the estimator, which says what classes may be read.
        parameters: names in each setting.
    """

    schema: ClassVar[pa.Schema] = pa.schema([("setting", pa.string()), ("estimator", pa.binary())])

    def __init__(self, spec: Spec, parameters: set[str]) -> None:
        self.spec, self.parameters = spec, parameters

    def columns(self, task: Task) -> pa.Schema:
        """Return ``schema``, whatever the task."""
        return self.schema

    def table(self, models: Sequence[FittedEstimator], task: Task) -> pa.Table:
        """Return a table with a row of ``schema`` for each model."""
        rows = [(json.dumps(dict(model.setting)), *self._describe(model)) for model in models]
        named = [dict(zip(self.schema.names, row, strict=True)) for row in rows]
        return pa.Table.from_pylist(named, schema=self.schema)

    def from_table(self, table: pa.Table, task: Task) -> list[FittedEstimator]:
        """Return the models stored in a table; each must be able to predict a row of the task."""
        models = []
        for row in table.select(self.schema.names).to_pylist():
            setting = json.loads(row["setting"])
            if not isinstance(setting, dict) or set(setting) != self.parameters:
                raise ValueError("its setting does not name the learner's parameters")
            models.append(self._read(setting, row, task))
        return models

    def max_row_values(self, task: Task) -> int:
        """Return the number of columns."""
        return len(self.schema)

    def setting(self, model: FittedEstimator) -> Setting:
        """Return the hyperparameters of a model."""
        return model.setting

    def same(self, a: FittedEstimator, b: FittedEstimator, rounding: float = 0.0) -> bool:
        """Return whether two models are equal in content, as skops or their library writes it."""
        (*ours, content), (*theirs, other) = self._describe(a), self._describe(b)
        if a.setting != b.setting or ours != theirs:
            return False
        return bool(content == other) or (rounding > 0 and agree(a.read_values(), b.read_values(), rounding))

    def _describe(self, model: FittedEstimator) -> tuple[Any, ...]:
        """Return a row of ``schema`` without the setting; its content is the last."""
        return (model.content,)

    def _read(self, setting: Setting, row: Mapping[str, Any], task: Task) -> FittedEstimator:
        known, n_features = tuple(list_classes(self.spec)), task.X.shape[1]
        model = FittedEstimator.of(setting, row["estimator"], task.n_classes, n_features, known)
        try_model(model, task)
        return model


class BoosterCodec(EstimatorCodec):
    """Models of XGBoost, LightGBM or CatBoost in the format of their library, with settings and classes.

    A model of training rows of a single class has no content: it predicts this class.
    """

    schema: ClassVar[pa.Schema] = pa.schema(
        [("setting", pa.string()), ("classes", pa.list_(pa.int64())), ("model", pa.binary())]
    )

    def max_row_values(self, task: Task) -> int:
        """Return the number of columns, and of classes."""
        return len(self.schema) + task.n_classes

    def _describe(self, model: FittedEstimator) -> tuple[Any, ...]:
        classes = np.asarray(model.estimator.classes_).tolist()
        return classes, b"" if len(classes) == 1 else model.content

    def _read(self, setting: Setting, row: Mapping[str, Any], task: Task) -> FittedEstimator:
        classes = row["classes"]
        known = bool(classes) == bool(task.n_classes) and all(0 <= c < task.n_classes for c in classes)
        if not known or classes != sorted(set(classes)):
            raise ValueError("its classes are not those of the task, in ascending order")
        n_features = task.X.shape[1]
        if len(classes) == 1:
            if row["model"]:
                raise ValueError("it has a model, and a single class")
            from sklearn.dummy import DummyClassifier

            constant = DummyClassifier(strategy="most_frequent").fit(np.zeros((1, n_features)), classes)
            return FittedEstimator(setting, constant, task.n_classes)
        template = make_template(json.dumps(self.spec), row["setting"])
        estimator = template.copy([0] * len(template.unseeded))
        with collect_warnings(), guard(True):
            booster = Booster.load(estimator, classes, n_features, row["model"])
            if classes and booster.predict_proba(task.X[:1]).shape != (1, len(classes)):
                raise ValueError(f"it is no model of {len(classes)} classes")
        model = FittedEstimator(setting, booster, task.n_classes, foreign=True)
        model.predict_outputs(task.X[:1], frozenset())
        return model


def is_foreign(estimator: Any) -> bool:
    """Return whether an estimator, or one inside it, is of another package, or draws globally."""
    parts = [estimator, *estimator.get_params(deep=True).values()] if hasattr(estimator, "get_params") else []
    classes = (type(part) for part in parts if hasattr(part, "get_params"))
    outside = any(kind.__module__.partition(".")[0] != LIBRARY for kind in classes)
    return outside or any(map(draws_globally, parts))


@contextmanager
def guard(foreign: bool, seed: int = 0) -> Iterator[None]:
    """Contain the code of an estimator; see ``foreign``.

    Scikit-learn's own needs none of it, and it would take as long as a fifth of a small fit.
    """
    if not foreign:
        yield
        return
    with contain(), preserve_state(seed):
        yield


def find_status(caught: list[warnings.WarningMessage]) -> int:
    """Return the position of the status of a fit with these warnings."""
    from sklearn.exceptions import ConvergenceWarning

    capped = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return NOT_CONVERGED if capped else CONVERGED


def predict_classes(estimator: Any, X: Rows, n_classes: int) -> Classes:
    """Return the class numbers that an estimator predicts.

    Raises:
        ValueError: it predicts something else.
    """
    predicted = np.asarray(estimator.predict(X))
    if predicted.shape != (X.shape[0],) or predicted.dtype.kind not in "iufb":
        raise ValueError(f"it predicts an array of shape {predicted.shape} and type {predicted.dtype}")
    number = predicted.astype(np.int32) if np.all(np.isfinite(predicted)) else np.full(len(X), -1, np.int32)
    wrong = predicted[(number != predicted) | (number < 0) | (number >= n_classes)]
    if len(wrong):
        raise ValueError(f"it predicts {wrong[0]}, which is not one of the classes 0 to {n_classes - 1}")
    return number


def predict_values(estimator: Any, X: Rows) -> NDArray[np.float64]:
    """Return the numbers that an estimator predicts.

    Raises:
        ValueError: it predicts something else.
    """
    predicted = np.asarray(estimator.predict(X))
    if predicted.shape != (X.shape[0],) or predicted.dtype.kind not in "iuf":
        raise ValueError(f"it predicts an array of shape {predicted.shape} and type {predicted.dtype}")
    if not np.all(np.isfinite(predicted)):
        raise ValueError(f"it predicts {predicted[~np.isfinite(predicted)][0]}")
    return predicted.astype(np.float64)


@contextmanager
def collect_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings instead of printing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextmanager
def explain_gaps(X: Rows) -> Iterator[None]:
    """Say that rows have gaps where an estimator that selects columns by name, and so sees them, fails.

    Raises:
        InputError: it does.
    """
    try:
        yield
    except ValueError as error:
        if not np.isnan(X).any():
            raise
        raise InputError(
            f"rows have gaps, which the estimator does not take ({str(error).splitlines()[0]}): fill them, "
            "or put an imputer into the estimator, such as sklearn.impute:SimpleImputer"
        ) from error


def _predict_probability(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return the probability of each class, (rows, n_classes); 0 for classes without training rows."""
    found = np.asarray(estimator.predict_proba(X), np.float64)
    known = np.asarray(estimator.classes_, np.intp)
    if len(known) == n_classes:
        return found
    shares = np.zeros((len(X), n_classes))
    shares[:, known] = found
    return shares


def _predict_rank(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return what orders rows by the second of two classes, or by each of more, as scikit-learn takes it.

    A difference of probabilities, which is the score of a prediction, makes ties of the smallest ones.
    """
    if hasattr(estimator, "decision_function"):
        several = n_classes > 2
        return _predict_decisions(estimator, X, n_classes) if several else _predict_score(estimator, X, 2)
    if not hasattr(estimator, "predict_proba"):
        return _predict_score(estimator, X, n_classes)
    shares = _predict_probability(estimator, X, n_classes)
    return shares if n_classes > 2 else shares[:, -1]


def _predict_decisions(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return the decision values of several classes, (rows, n_classes); 0 for classes without training rows.

    What has another number of columns, such as one for each pair of classes, is returned as it is.
    """
    found = np.asarray(estimator.decision_function(X), np.float64)
    known = np.asarray(estimator.classes_, np.intp)
    if found.ndim == 1:
        found = np.column_stack([-found, found])
    if found.shape[1] != len(known) or len(known) == n_classes:
        return found
    decisions = np.zeros((len(X), n_classes))
    decisions[:, known] = found
    return decisions


def _predict_score(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return what grows with the second of two classes; nan for more classes, or if there is none."""
    if n_classes != 2:
        return np.full(len(X), np.nan)
    known = np.asarray(getattr(estimator, "classes_", (0, 1)))
    if len(known) == 1:
        return np.full(len(X), 1.0 if known[0] == 1 else -1.0)
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), np.float64)
    if hasattr(estimator, "predict_proba"):
        shares = np.asarray(estimator.predict_proba(X), np.float64)
        return shares[:, 1] - shares[:, 0]
    return np.full(len(X), np.nan)
