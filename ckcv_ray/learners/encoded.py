"""Learners on tables with categories, dates or gaps: an encoder is fitted in every split, then the learner.

The encoder sees the training rows of the split alone, as the learner does, and is a part of each model. So
nothing of the rows that are scored can reach it, and what is proven covers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.measures import Kind, Measure
from ckcv_ray.core.scores import Answers
from ckcv_ray.learners.answers import answers_of
from ckcv_ray.learners.base import Block, Checked, Fits, Learner, Predicted, Setting
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.encoder import Encoder
from ckcv_ray.learners.encoding import Categories, Encoding
from ckcv_ray.tables.columns.schema import Schema
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

ENCODER = "encoder"
ROWS = 1 << 16


def encoded(learner: Learner, encoding: Encoding, task: Task) -> Learner:
    """Return what fits a learner to a task: the learner itself if its columns are numbers without gaps."""
    if task.schema.plain:
        return learner
    if isinstance(learner, Choice):
        return replace(learner, learners=tuple(encoded(one, encoding, task) for one in learner.learners))
    suited = encoding.suited(getattr(learner, "trees", False))
    learner = learner.on_encoded() if suited.categories is Categories.ONEHOT else learner
    return Encoded(learner, suited, task.schema, task.n_classes)


@dataclass(frozen=True)
class Encoded(Learner):
    """A learner whose rows are encoded first, in every split.

    Attributes:
        learner: what is fitted to encoded rows.
        encoding: how columns are encoded.
        schema: the columns of the table.
        n_classes: number of classes.
    """

    learner: Learner
    encoding: Encoding
    schema: Schema
    n_classes: int

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the learner."""
        return self.learner.name

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of task of the learner."""
        return self.learner.kinds

    @property
    def ranks(self) -> bool:
        """Whether the learner's scores order rows."""
        return self.learner.ranks

    @property
    def probabilities(self) -> bool:
        """Whether the learner's models give probabilities."""
        return self.learner.probabilities

    @property
    def convergence_advice(self) -> str:
        """The learner's advice."""
        return self.learner.convergence_advice

    @property
    def gaps(self) -> bool:
        """Whether cells of the learner's table may be empty."""
        return self.learner.gaps

    @property
    def lengths(self) -> Sequence[int]:
        """Number of steps of each path."""
        return self.learner.lengths

    def setting(self, path: int, step: int) -> Setting:
        """Return the hyperparameters at a position."""
        return self.learner.setting(path, step)

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return the hyperparameters of all positions by name, path by path."""
        return self.learner.settings()

    def canonical(self, task: Task) -> "Encoded":
        """Return the same: a study has learners in canonical form, which it encodes."""
        return self

    def thinned(self, most: int) -> "Encoded":
        """Return the thinned learner, encoded in the same way."""
        return replace(self, learner=self.learner.thinned(most))

    def usual(self, task: Task) -> "Encoded":
        """Return the same: a study has learners at their settings, which it encodes."""
        return self

    def on_encoded(self) -> "Encoded":
        """Return the same: it encodes by itself."""
        return self

    def share(self, task: Task) -> Task:
        """Return the task itself: what else there is depends on the split."""
        return task

    def prepare(self, shared: Task, train: Index, score: Index) -> "EncodedBlock":
        """Fit an encoder to the training rows, and prepare the learner on encoded rows."""
        encoder = self.encoding.fit(shared, train)
        task = encoder.task(shared)
        return EncodedBlock(encoder, self.learner.prepare(self.learner.share(task), train, score))

    def cost(self, n_train: int) -> float:
        """Return the relative cost of a fit by the learner."""
        return self.learner.cost(n_train)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of the learner with as many columns as there can be, and of the rows."""
        width = self.encoding.width(self.schema, self.n_classes)
        return self.learner.memory(n_train, n_score, width) + 8 * (n_train + n_score) * width

    def check(self, model: "EncodedModel", task: Task, train: Index, converged: bool) -> Checked:
        """Fit the encoder again, and check the model as its learner does."""
        again = self.encoding.fit(task, train)
        if again.text != model.encoder.text:
            return Checked(["its encoder is not the one fitted to its training rows"], [])
        return self.learner.check(model.model, model.encoder.task(task), train, converged)

    def setting_of(self, model: "EncodedModel") -> Setting:
        """Return the hyperparameters a model was fitted at."""
        return self.learner.setting_of(model.model)

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns of the learner's table, and that of the encoder."""
        return self.learner.columns(task).append(pa.field(ENCODER, pa.string()))

    def table(self, models: Sequence["EncodedModel"], task: Task) -> pa.Table:
        """Return a table with a row for each model."""
        inner = self.learner.table([one.model for one in models], task)
        return inner.append_column(ENCODER, pa.array([one.encoder.text for one in models], pa.string()))

    def from_table(self, table: pa.Table, task: Task) -> list["EncodedModel"]:
        """Return the models stored in a table; see ``base.Learner``."""
        inner = table.select(self.learner.columns(task).names)
        return [
            self._of_row(inner.slice(i, 1), one, task) for i, one in enumerate(table[ENCODER].to_pylist())
        ]

    def most_values(self, task: Task) -> int:
        """Return the largest number of values in a row: of the learner on as many columns as there can be."""
        X = np.broadcast_to(0.0, (task.n, self.encoding.width(self.schema, self.n_classes)))
        names = (f"x{i}" for i in range(X.shape[1]))
        return self.learner.most_values(task.with_numbers(X, names)) + 1

    def same(self, a: "EncodedModel", b: "EncodedModel") -> bool:
        """Return whether two models are equal in every bit, with their encoders."""
        return a.encoder.text == b.encoder.text and self.learner.same(a.model, b.model)

    def load(self) -> None:
        """Prepare the process for the learner."""
        self.learner.load()

    def state(self) -> dict[str, str]:
        """Return what else may change the bits of the learner's results."""
        return self.learner.state()

    def _of_row(self, row: pa.Table, text: str, task: Task) -> "EncodedModel":
        encoder = Encoder.of(text, self.schema, task.n)
        (model,) = self.learner.from_table(row, encoder.task(task))
        return EncodedModel(encoder, model)


@dataclass(frozen=True)
class EncodedModel:
    """A model of encoded rows, and its encoder."""

    encoder: Encoder
    model: Any

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d] of the table, some at a time: encoded, they take more memory."""
        parts = [X[i : i + ROWS] for i in range(0, max(1, len(X)), ROWS)]
        predicted = [self.model.predict(self.encoder.transform(part)) for part in parts]
        label, score = (np.concatenate(columns) for columns in zip(*predicted, strict=True))
        return Predicted(label, score)

    def answers(self, X: Rows, needs: frozenset[str]) -> Answers:
        """Return what the model says of rows X [rows, d] of the table."""
        return answers_of(self.model, self.encoder.transform(X), needs)


class EncodedBlock(NamedTuple):
    """One split, encoded and prepared for the learner."""

    encoder: Encoder
    block: Block

    def fit(self, path: int, length: int) -> "EncodedFits":
        """Fit the first ``length`` steps of a path."""
        return EncodedFits(self.encoder, self.block.fit(path, length))


class EncodedFits(NamedTuple):
    """The fits of the learner, and the encoder of their split."""

    encoder: Encoder
    fits: Fits

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return self.fits.status

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit."""
        return self.fits.n_iter

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals that the learner counts."""
        return self.fits.totals(measure)

    def model(self, step: int) -> EncodedModel:
        """Return the model at one step, with the encoder."""
        return EncodedModel(self.encoder, self.fits.model(step))
