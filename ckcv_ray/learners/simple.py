"""A base class for learners that fit models to rows: all of ``base.Learner`` except the paths and the fits.

A model is a frozen dataclass whose fields are the columns of the learner's ``schema``, hyperparameters
included: numbers, strings, and arrays (stored as lists).
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index, Values, agree
from ckcv_ray.core.measures import Measure
from ckcv_ray.learners.base import (
    STATUSES,
    Codec,
    Learner,
    Model,
    Setting,
    Space,
    Status,
    Trainer,
    try_model,
)
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Target, Task


class SimpleLearner(Learner):
    """A learner that leaves only ``paths`` and ``fit`` to implement.

    If a fit is expensive, ``trainer`` is one derived from ``RowTrainer`` that says so in ``cost``.

    Attributes:
        name, kinds, outputs, convergence_advice: see ``base.Learner``.
        schema: columns of the table of its models, on any task.
        model: class of its models, constructed from the columns of ``schema`` by name.
        weighs_rows: whether there is ``fit_weighted``.
    """

    schema: ClassVar[pa.Schema]
    model: ClassVar[type[Model]]
    weighs_rows: ClassVar[bool] = False

    @property
    @abstractmethod
    def paths(self) -> Sequence[Sequence[Setting]]:
        """The settings of each path; all have the same names."""

    @abstractmethod
    def fit(self, X: Rows, y: Target, settings: Sequence[Setting]) -> Sequence[Any]:
        """Fit a model at each setting to rows X [n, d] with classes y [n]; a class may have no rows.

        Args:
            X, y: the training rows; of a learner of numbers, y [n] are these.
            settings: the first steps of a path. The model at one of them must not depend on later ones.

        Returns:
            Models, with ``predict``; of a learner of numbers with ``predict_outputs`` (``base.Model``).
        """

    def fit_weighted(self, X: Rows, y: Target, settings: Sequence[Setting], weights: Values) -> Sequence[Any]:
        """Fit a model at each setting, as ``fit`` does, to rows with positive weights [n]."""
        raise NotImplementedError(f"{type(self).__name__} takes no weights")

    def fit_rows(self, task: Task, train: Index, settings: Sequence[Setting]) -> Sequence[Any]:
        """Fit a model at each setting to the training rows of a task, with their weights if there are any."""
        X, y, weights = task.X[train], task.y[train], task.weighting.take(train)
        if weights is None:
            return self.fit(X, y, settings)
        return self.fit_weighted(X, y, settings, weights)

    @cached_property
    def space(self) -> Space:
        """The settings of ``paths``."""
        return Space(self.paths)

    @cached_property
    def trainer(self) -> Trainer:
        """What fits models to the rows of splits."""
        return RowTrainer(self)

    @cached_property
    def codec(self) -> "FieldsCodec":
        """What stores the fields of models."""
        return FieldsCodec(self)


class FieldsCodec(Codec):
    """Stores the fields of a learner's models, one in each column."""

    def __init__(self, learner: SimpleLearner) -> None:
        self.model, self.schema = learner.model, learner.schema
        self.hyperparameters = tuple(learner.space.setting(0, 0))

    def columns(self, task: Task) -> pa.Schema:
        """Return ``schema``, whatever the task."""
        return self.schema

    def table(self, models: Sequence[Any], task: Task) -> pa.Table:
        """Return a table with a row of ``schema`` for each model."""
        names = self.schema.names
        rows = [{name: np.asarray(getattr(model, name)).tolist() for name in names} for model in models]
        return pa.Table.from_pylist(rows, schema=self.schema)

    def from_table(self, table: pa.Table, task: Task) -> list[Any]:
        """Return the models stored in a table; each must be able to classify a row of the task."""
        rows = table.select(self.schema.names).to_pylist()
        models = [
            self.model(**{field.name: _parse_value(row[field.name], field.type) for field in self.schema})
            for row in rows
        ]
        for model in models:
            if task.has_numbers:
                try_model(model, task)
                continue
            (label,) = model.predict(task.X[:1]).label
            if not -1 <= label < task.n_classes:
                raise ValueError(f"it predicts class number {label}, but there are {task.n_classes} classes")
        return models

    def max_row_values(self, task: Task) -> int:
        """Allow two numbers per class, or output, for each row and feature, and one more per column."""
        return 2 * max(1, task.n_classes) * sum(task.X.shape) + len(self.schema)

    def setting(self, model: Any) -> Setting:
        """Return the hyperparameters a model was fitted at, which are among its fields."""
        return {name: getattr(model, name) for name in self.hyperparameters}

    def same(self, a: Any, b: Any, rounding: float = 0.0) -> bool:
        """Return whether the fields of two models are equal."""
        return all(agree(getattr(a, name), getattr(b, name), rounding) for name in self.schema.names)


class RowTrainer(Trainer):
    """Fits a learner to the rows of each split."""

    def __init__(self, learner: SimpleLearner) -> None:
        self.learner = learner

    def prepare(self, shared: Task, train: Index, score: Index) -> "RowBlock":
        """Select the rows of a split."""
        return RowBlock(self.learner, shared, train, score)


class RowBlock(NamedTuple):
    """The rows of a split."""

    learner: SimpleLearner
    task: Task
    train: Index
    score: Index

    def fit(self, path: int, length: int) -> "ModelFits":
        """Fit the first ``length`` steps of a path."""
        models = self.learner.fit_rows(self.task, self.train, self.learner.space.paths[path][:length])
        return ModelFits(models, self.task, self.score)


class ModelFits(NamedTuple):
    """Fits that are already models, all of them converged."""

    models: Sequence[Any]
    task: Task
    score: Index

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return np.full(len(self.models), STATUSES.index(Status.CONVERGED), dtype=np.int8)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit: one."""
        return np.ones(len(self.models), dtype=np.int64)

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals of each model on the scored rows."""
        X, y, n_classes = self.task.X[self.score], self.task.y[self.score], self.task.n_classes
        return np.array([judge(model, X, y, measure, n_classes) for model in self.models])

    def model(self, step: int) -> Model:
        """Return one model."""
        model: Model = self.models[step]
        return model


def _parse_value(value: Any, kind: pa.DataType) -> Any:
    """Convert a table cell to a field of a model: a list to an array of finite numbers."""
    leaf = kind
    while pa.types.is_list(leaf):
        leaf = leaf.value_type
    array = np.array(value, dtype=leaf.to_pandas_dtype())
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("it has numbers that are not finite")
    return value if leaf is kind else array
