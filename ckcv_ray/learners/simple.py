"""A base class for learners that fit models to rows: all of ``base.Learner`` but the paths and the fits.

A model is a frozen dataclass whose fields are the columns of the learner's ``schema``, hyperparameters
included: numbers, strings, and arrays (stored as lists).

Ridge regression: all penalties from one singular value decomposition.

This is a separate learner, not scikit-learn's, because it makes a search over the 15 default penalties 67 to
190 times faster on a few hundred rows (95 on 442 rows of 10 columns; 39 on 2,000 of 20, 5 on 1,000 of 200).

With standardised columns X = U S V' and centred y, the coefficients at a penalty a are
V S (S^2 + a)^-1 U'y (Hoerl, Kennard, Technometrics 12, 1970): one more costs two products with a vector.
With weights, columns are standardised without them, means are weighted, and rows of X and y are multiplied by
the square roots of the weights, as in scikit-learn's ``make_pipeline(StandardScaler(), Ridge())``.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import Kind, Output, Outputs
from ckcv_ray.core.options import option
from ckcv_ray.errors import Index, Rows, Values, grid
from ckcv_ray.learners.base import CONVERGED, Cells, Codec, FitsOf, Learner, Model, Setting, Space, Trainer
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.tables.task import Task


class SimpleLearner(Learner):
    """A learner that leaves only ``paths`` and ``fit`` to implement.

    If a fit is expensive, ``trainer`` should be derived from ``RowTrainer`` and say so in ``cost``.

    Attributes:
        name, kinds, outputs: see ``base.Learner``.
        schema: columns of the table of its models, on any task.
        model: class of its models, constructed from the columns of ``schema`` by name.
        weighs_rows: whether ``fit`` takes weights.
    """

    schema: ClassVar[pa.Schema]
    model: ClassVar[type[Model]]
    weighs_rows: ClassVar[bool] = False

    @property
    @abstractmethod
    def paths(self) -> Sequence[Sequence[Setting]]:
        """The settings of each path; all have the same names."""

    @abstractmethod
    def fit(
        self, X: Rows, y: NDArray[Any], settings: Sequence[Setting], weights: Values | None = None
    ) -> Sequence[Model]:
        """Fit a model at each setting to rows X [n, d] with classes y [n]; a class may have no rows.

        Args:
            X, y: the training rows; for a learner of numbers, y [n] holds these.
            settings: the first steps of a path. The model at one of them must not depend on later ones.
            weights: positive weights of the rows, (n,); a learner without ``weighs_rows`` never gets any.

        Returns:
            Models, with ``predict``; for a learner of numbers with ``predict_outputs`` (``base.Model``).
        """

    @cached_property
    def space(self) -> Space:
        """The settings of ``paths``."""
        return Space(self.paths)

    @cached_property
    def trainer(self) -> Trainer:
        """The trainer, which fits models to the rows of splits."""
        return RowTrainer(self)

    @cached_property
    def codec(self) -> "FieldsCodec":
        """The codec, which stores the fields of models."""
        return FieldsCodec(self)


class FieldsCodec(Codec[Model]):
    """Stores the fields of a learner's models, one per column."""

    def __init__(self, learner: SimpleLearner) -> None:
        self.model, self.schema = learner.model, learner.schema
        self.hyperparameters = tuple(learner.space.setting(0, 0))

    def write(self, model: Model) -> Cells:
        """Return the fields of a model that are columns."""
        return {name: getattr(model, name) for name in self.schema.names}

    def read(self, row: Cells, task: Task) -> Model:
        """Return the model in a row; it must be able to classify a row of the task."""
        fields = dict[str, Any]()
        for name, kind in zip(self.schema.names, self.schema.types, strict=True):
            leaf = kind
            while pa.types.is_list(leaf):
                leaf = leaf.value_type
            array = np.array(row[name], dtype=leaf.to_pandas_dtype())
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError("it has numbers that are not finite")
            fields[name] = row[name] if leaf is kind else array
        model = self.model(**fields)
        model.predict_outputs(task.X[:1], frozenset({task.target.output}))  # fails for a broken one
        label = int(model.predict(task.X[:1]).label[0]) if task.classes else -1
        if not -1 <= label < task.n_classes:
            raise ValueError(f"it predicts class number {label}, but there are {task.n_classes} classes")
        return model


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

    def fit(self, path: int, length: int) -> FitsOf:
        """Fit the first ``length`` steps of a path; all fits converge."""
        settings, weights = self.learner.space.paths[path][:length], self.task.weighting.take(self.train)
        rows = self.task.X[self.train], self.task.y[self.train], settings
        models = self.learner.fit(*rows) if weights is None else self.learner.fit(*rows, weights)
        X, y, n_classes = self.task.X[self.score], self.task.y[self.score], self.task.n_classes
        return FitsOf(
            np.full(len(models), CONVERGED, dtype=np.int8),
            np.ones(len(models), dtype=np.int64),
            lambda measure: np.array([judge(model, X, y, measure, n_classes) for model in models]),
            lambda step: models[step],
        )


PENALTIES = tuple(10.0 ** (e / 2) for e in range(-6, 9))


@dataclass(frozen=True)
class RidgeModel(Model):
    """A ridge regression: the prediction for rows X is X ``coefficients`` + ``intercept``."""

    alpha: float
    coefficients: Values
    intercept: float

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the values predicted for rows X [rows, d]."""
        return Outputs(value=X @ self.coefficients + self.intercept)


@dataclass(frozen=True)
class Ridge(SimpleLearner):
    """Ridge regression on standardised columns; one path over the penalty.

    Attributes:
        alpha: penalties, positive; sorted, made unique, rounded to 12 significant digits.

    Raises:
        InputError: a penalty is not a positive number.
    """

    name: ClassVar[str] = "ridge"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.REGRESSION})
    schema: ClassVar[pa.Schema] = pa.schema(
        [("alpha", pa.float64()), ("coefficients", pa.list_(pa.float64())), ("intercept", pa.float64())]
    )
    model: ClassVar[type[RidgeModel]] = RidgeModel
    weighs_rows: ClassVar[bool] = True

    alpha: tuple[float, ...] = option(
        PENALTIES, grid, "Penalties of ridge, in the same form as C.", inside="param"
    )

    @property
    def paths(self) -> Sequence[Sequence[Setting]]:
        """One path, over the penalty."""
        return [[{"alpha": alpha} for alpha in self.alpha]]

    def usual(self, task: Task) -> Self:
        """Return the learner at a penalty of 1, unless others were given."""
        return replace(self, alpha=(1.0,)) if self == Ridge() else self

    def fit(
        self, X: Rows, y: Values, settings: Sequence[Setting], weights: Values | None = None
    ) -> list[RidgeModel]:
        """Fit a model at each penalty."""
        spread = X.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        means, mean = np.average(X, axis=0, weights=weights), float(np.average(y, weights=weights))
        Z, centred = (X - means) / scale, y - mean
        if weights is not None:
            roots = np.sqrt(weights)
            Z, centred = roots[:, None] * Z, roots * centred
        left, singular, right = np.linalg.svd(Z, full_matrices=False)
        projected, models = left.T @ centred, []
        for setting in settings:
            shrunken = singular / (singular * singular + setting["alpha"])
            coefficients = right.T @ (shrunken * projected) / scale
            models.append(RidgeModel(setting["alpha"], coefficients, float(mean - means @ coefficients)))
        return models
