"""Learners on tables with categories, dates or gaps: an encoder is fitted in every split, then the learner.

The encoder sees the training rows of the split alone, as the learner does, and is a part of each model. So
nothing of the rows that are scored can reach it, and what is proven covers it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ckcv_ray.core.arrays import Index, agree
from ckcv_ray.core.scores import Output, Outputs
from ckcv_ray.learners.base import (
    Block,
    Checked,
    Codec,
    Fits,
    Learner,
    Model,
    Predicted,
    Setting,
    Trainer,
    WrappedFits,
    WrappedLearner,
)
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.encoding.encoder import Encoder
from ckcv_ray.learners.encoding.encoding import Categories, Encoding
from ckcv_ray.tables.columns.schema import Schema
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

ENCODER = "encoder"
ROWS = 1 << 16


def encode(learner: Learner, encoding: Encoding, task: Task) -> Learner:
    """Return what fits a learner to a task.

    That is the learner itself if the columns are numbers without gaps, unless it wants them standardised, or
    if it selects columns by name, as the table has them.
    """
    if isinstance(learner, Choice):
        return learner.change_each(lambda single: encode(single, encoding, task))
    if (found := learner.on_columns(task.schema)) is not None:
        return found
    if task.schema.plain and not learner.scaling:
        return learner
    suited = encoding.resolve(learner.trees, learner.scaling)
    learner = learner.on_encoded() if suited.categories is Categories.ONEHOT else learner
    return Encoded(learner, suited, task.schema, task.n_classes)


def settle_scaling(learner: Learner, encoding: Encoding, task: Task) -> Learner:
    """Return the canonical form of a learner on a task whose numbers an encoder may or may not scale."""
    if isinstance(learner, Choice):
        return learner.change_each(lambda single: settle_scaling(single, encoding, task))
    ordinal = encoding.resolve(learner.trees).categories is Categories.ORDINAL
    return learner.on_unscaled() if task.schema.plain or ordinal else learner


def describe_scaling(learner: Learner, encoding: Encoding, task: Task) -> list[str]:
    """Say how numbers are scaled for each learner whose options say so."""
    sentences = []
    for label, single in learner.by_label.items():
        if not single.has_scaling:
            continue
        ordinal = encoding.resolve(single.trees).categories is Categories.ORDINAL
        if not (task.schema.plain or ordinal) if single.scaling is None else single.scaling:
            sentences.append(f"numbers are standardised in each split for {label}; --scale none leaves them")
        else:
            sentences.append(
                f"numbers are given to {label} as they are; --scale standard standardises them in each split"
            )
    return sentences


@dataclass(frozen=True)
class Encoded(WrappedLearner):
    """A learner whose rows are encoded first, in every split."""

    encoding: Encoding  # how columns are encoded
    schema: Schema  # the columns of the table
    n_classes: int

    @cached_property
    def trainer(self) -> Trainer:
        """What fits an encoder, and the learner to encoded rows."""
        return EncodedTrainer(self)

    @cached_property
    def codec(self) -> Codec:
        """What stores the learner's models with their encoders."""
        return EncodedCodec(self)

    @cached_property
    def width(self) -> int:
        """The largest number of columns that the table can become."""
        return self.encoding.width(self.schema, self.n_classes)


class EncodedTrainer(Trainer):
    """Fits an encoder to the training rows of each split, and the learner to encoded rows."""

    def __init__(self, encoded: Encoded) -> None:
        self.encoding, self.width, self.inner = encoded.encoding, encoded.width, encoded.learner.trainer

    def prepare(self, shared: Task, train: Index, score: Index) -> "EncodedBlock":
        """Fit an encoder to the training rows, and prepare the learner on encoded rows."""
        encoder = self.encoding.fit(shared, train)
        task = encoder.task(shared)
        return EncodedBlock(encoder, self.inner.prepare(self.inner.share(task), train, score))

    def cost(self, n_train: int) -> float:
        """Return the relative cost of a fit by the learner."""
        return self.inner.cost(n_train)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of the learner with as many columns as there can be, and of the rows."""
        return self.inner.memory(n_train, n_score, self.width) + 8 * (n_train + n_score) * self.width

    def check(self, model: "EncodedModel", task: Task, train: Index, converged: bool) -> Checked:
        """Fit the encoder again, and check the model as its learner does if it is the same in every bit."""
        if self.encoding.fit(task, train).text != model.encoder.text:
            return Checked([], ["its encoder: only a fit tells"])
        return self.inner.check(model.model, model.encoder.task(task), train, converged)

    def load(self) -> None:
        """Prepare the process for the learner."""
        self.inner.load()

    def state(self) -> dict[str, str]:
        """Return what else may change the bits of the learner's results."""
        return self.inner.state()


class EncodedCodec(Codec):
    """The learner's table, and a column with the encoder of each model."""

    def __init__(self, encoded: Encoded) -> None:
        self.schema, self.width, self.inner = encoded.schema, encoded.width, encoded.learner.codec

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns of the learner's table, and that of the encoder."""
        return self.inner.columns(task).append(pa.field(ENCODER, pa.string()))

    def table(self, models: Sequence["EncodedModel"], task: Task) -> pa.Table:
        """Return a table with a row for each model."""
        inner = self.inner.table([encoded.model for encoded in models], task)
        texts = pa.array([encoded.encoder.text for encoded in models], pa.string())
        return inner.append_column(ENCODER, texts)

    def from_table(self, table: pa.Table, task: Task) -> list["EncodedModel"]:
        """Return the models stored in a table; see ``base.Codec``."""
        inner = table.select(self.inner.columns(task).names)
        models = []
        for i, text in enumerate(table[ENCODER].to_pylist()):
            encoder = Encoder.from_json(text, self.schema, task.n)
            (model,) = self.inner.from_table(inner.slice(i, 1), encoder.task(task))
            models.append(EncodedModel(encoder, model))
        return models

    def max_row_values(self, task: Task) -> int:
        """Return the largest number of values in a row: of the learner on as many columns as there can be."""
        X = np.broadcast_to(0.0, (task.n, self.width))
        return self.inner.max_row_values(task.with_numbers(X, (f"x{i}" for i in range(self.width)))) + 1

    def setting(self, model: "EncodedModel") -> Setting:
        """Return the hyperparameters a model was fitted at."""
        return self.inner.setting(model.model)

    def same(self, a: "EncodedModel", b: "EncodedModel", rounding: float = 0.0) -> bool:
        """Return whether two models are equal in content, with their encoders."""
        first, second = (json.loads(model.encoder.text) for model in (a, b))
        return agree(first, second, rounding) and self.inner.same(a.model, b.model, rounding)


@dataclass(frozen=True)
class EncodedModel(Model):
    """A model of encoded rows, and its encoder."""

    encoder: Encoder
    model: Any

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d] of the table, some at a time: encoded, they take more memory."""
        parts = [X[i : i + ROWS] for i in range(0, max(1, len(X)), ROWS)]
        predicted = [self.model.predict(self.encoder.transform(part)) for part in parts]
        label, score = (np.concatenate(columns) for columns in zip(*predicted, strict=True))
        return Predicted(label, score)

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the model's outputs for rows X [rows, d] of the table."""
        outputs: Outputs = self.model.predict_outputs(self.encoder.transform(X), needs)
        return outputs


class EncodedBlock(NamedTuple):
    """One split, encoded and prepared for the learner."""

    encoder: Encoder
    block: Block

    def fit(self, path: int, length: int) -> Fits:
        """Fit the first ``length`` steps of a path."""
        return WrappedFits(self.block.fit(path, length), lambda model: EncodedModel(self.encoder, model))
