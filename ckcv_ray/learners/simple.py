"""A base class for learners that fit models to rows: all of ``base.Learner`` except the paths and the fits.

A model is a frozen dataclass whose fields are the columns of the learner's ``schema``, hyperparameters
included: numbers, strings, and arrays (stored as lists).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.measures import Kind, Measure
from ckcv_ray.core.options import thin
from ckcv_ray.learners.base import STATUSES, Checked, Learner, Model, Setting, Status
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Target, Task

MODEL_ROUNDING = 1e-9  # relative to the largest number: other processors round differently
COPIES = 4  # copies of a split's rows that a fit may hold at once


class SimpleLearner(Learner):
    """A learner that leaves only ``paths`` and ``fit`` to implement, and ``check`` if fits are expensive.

    Attributes:
        name, kinds, ranks, probabilities, convergence_advice: see ``base.Learner``.
        schema: columns of the table of its models, on any task.
        model: class of its models, constructed from the columns of ``schema`` by name.
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[Kind]]
    ranks: ClassVar[bool] = False
    probabilities: ClassVar[bool] = False
    convergence_advice: ClassVar[str] = ""
    schema: ClassVar[pa.Schema]
    gaps: ClassVar[bool] = False
    model: ClassVar[type[Any]]

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
            Models, with ``predict``; of a learner of numbers with ``answers`` (``learners.answers``).
        """

    @property
    def lengths(self) -> Sequence[int]:
        """The number of steps of each path."""
        return [len(path) for path in self.paths]

    def setting(self, path: int, step: int) -> Setting:
        """Return the hyperparameters at a position."""
        return self.paths[path][step]

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return the hyperparameters of all positions by name, path by path."""
        every = [setting for path in self.paths for setting in path]
        return {name: np.array([setting[name] for setting in every]) for name in every[0]}

    def canonical(self, task: Task) -> Self:
        """Return the learner itself: no option depends on the task."""
        return self

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values in each list of its options."""
        return thin(self, most)

    def share(self, task: Task) -> Task:
        """Return the task itself."""
        return task

    def prepare(self, shared: Task, train: Index, score: Index) -> "RowBlock":
        """Select the rows of a split."""
        return RowBlock(self, shared, train, score)

    def cost(self, n_train: int) -> float:
        """Return the number of training rows."""
        return float(n_train)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the size of a few copies of the rows in bytes."""
        return COPIES * 8 * (n_train + n_score) * (d + 1)

    def check(self, model: Any, task: Task, train: Index, converged: bool) -> Checked:
        """Refit the model and compare the two up to rounding, which is left open."""
        setting = self.setting_of(model)
        path = next((path for path in self.paths if setting in path), None)
        if path is None:
            return Checked([f"it was fitted at {setting}, which is not a setting of the study"], [])
        settings = path[: path.index(setting) + 1]
        again = self.fit(task.X[train], task.y[train], settings)[-1]
        if not self._equal(model, again, MODEL_ROUNDING):
            return Checked(["it is not the model fitted to its training rows"], [])
        return Checked([], [] if self.same(model, again) else ["its last bits"])

    def setting_of(self, model: Any) -> Setting:
        """Return the hyperparameters a model was fitted at, which are among its fields."""
        return {name: getattr(model, name) for name in self.paths[0][0]}

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
        models = [self._of_row(row) for row in table.select(self.schema.names).to_pylist()]
        for model in models:
            (label,) = model.predict(task.X[:1]).label
            if not -1 <= label < task.n_classes:
                raise ValueError(f"it predicts class number {label}, but there are {task.n_classes} classes")
        return models

    def most_values(self, task: Task) -> int:
        """Allow two numbers per class for each row and each feature, and one more per column."""
        return 2 * task.n_classes * sum(task.X.shape) + len(self.schema)

    def same(self, a: Any, b: Any) -> bool:
        """Return whether two models are equal in every bit."""
        return self._equal(a, b, 0.0)

    def load(self) -> None:
        """Do nothing: no preparation is needed."""

    def state(self) -> dict[str, str]:
        """Return an empty dictionary: package versions are recorded anyway."""
        return {}

    def _of_row(self, row: dict[str, Any]) -> Any:
        fields = {field.name: _value(row[field.name], field.type) for field in self.schema}
        return self.model(**fields)

    def _equal(self, a: Any, b: Any, rounding: float) -> bool:
        pairs = ((np.asarray(getattr(a, name)), np.asarray(getattr(b, name))) for name in self.schema.names)
        return all(_alike(one, other, rounding) for one, other in pairs)


class RowBlock(NamedTuple):
    """The rows of a split."""

    learner: SimpleLearner
    task: Task
    train: Index
    score: Index

    def fit(self, path: int, length: int) -> "ModelFits":
        """Fit the first ``length`` steps of a path."""
        X, y = self.task.X[self.train], self.task.y[self.train]
        models = self.learner.fit(X, y, self.learner.paths[path][:length])
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


def _value(value: Any, kind: pa.DataType) -> Any:
    """Convert a table cell to a field of a model: a list to an array of finite numbers."""
    leaf = kind
    while pa.types.is_list(leaf):
        leaf = leaf.value_type
    array = np.array(value, dtype=leaf.to_pandas_dtype())
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("it has numbers that are not finite")
    return value if leaf is kind else array


def _alike(a: NDArray[Any], b: NDArray[Any], rounding: float) -> bool:
    """Return whether two arrays differ at most by ``rounding``, relative to the largest number."""
    if a.dtype.kind != "f" or not rounding or a.shape != b.shape:
        return np.array_equal(a, b)
    return bool(np.all(np.abs(a - b) <= rounding * np.abs(b).max(initial=0.0)))
