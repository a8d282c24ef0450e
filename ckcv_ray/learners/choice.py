"""What is fitted to a table: learners with the steps that their rows go through, several of them as one.

In every split, before a learner is fitted, the rows are encoded and the training rows balanced as it asks; a
model keeps its encoder. The paths of several learners are those of each, one learner after the other. They
are compared by the same criterion on the same splits, so what is selected is a learner, its setting and a
number of folds. A setting names its learner first, ``{"learner": "svm", "C": 1.0, ...}``. Each learner is
known by a label: its name, unless the choice has labels of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from ckcv_ray.core.measures import Kind, Output, Outputs
from ckcv_ray.core.options import option
from ckcv_ray.errors import MOST, Index, InputError, Rows, agree, integer, quote, sequence
from ckcv_ray.learners import base
from ckcv_ray.learners.steps import Balance, Encoder, Encoding, draw_balanced
from ckcv_ray.tables.task import Task

LABEL = "learner"  # the hyperparameter, and the column, that names a learner
ENCODER = "encoder"
LONGEST = 100
ROWS = 1 << 16  # rows encoded and predicted at once


class Prepared(NamedTuple):
    """A learner for a table, and the steps that its rows go through in every split.

    Attributes:
        learner: the learner.
        encoding: how columns are encoded; None if they are passed on as they are.
        balance: how the classes of the training rows are then made equal in size.
        share: number of rows that balancing all rows of the table would give, relative to their number; the
            same share of the training rows, approximately, is what the learner is fitted to.
        width: the largest number of columns that the table can become when it is encoded.
    """

    learner: base.Learner
    encoding: Encoding | None = None
    balance: Balance = Balance.NONE
    share: float = 1.0
    width: int = 0

    @classmethod
    def of(cls, learner: base.Learner, encoding: Encoding, balance: Balance, task: Task) -> Self:
        """Return a learner with its steps on a task; see ``base.Learner.prepare``."""
        learner, suited = learner.prepare(task, encoding)
        share = 1.0
        if balance is not Balance.NONE:
            _, counts = np.unique(task.y, return_counts=True)
            size = counts.min() if balance is Balance.DOWN else counts.max()
            share = float(size * len(counts) / task.n)
        width = 0 if suited is None else suited.width(task.schema, task.n_classes)
        return cls(learner, suited, balance, share, width)

    def encode(self, task: Task) -> Task:
        """Return the task with its rows as the learner gets them, if it is fitted to all of them."""
        return task if self.encoding is None else self.encoding.fit(task, np.arange(task.n)).task(task)

    def count_rows(self, n_train: int) -> int:
        """Return about how many of the training rows there are after balancing."""
        return max(1, ceil(n_train * self.share))


class Combined(base.Learner):
    """Learners with their steps, as one.

    Attributes:
        prepared: the learners by label; None is the label of a single one.
    """

    prepared: Mapping[str | None, Prepared]

    @property
    def by_label(self) -> dict[str, base.Learner]:
        """The learners without their steps, by label."""
        return {label or each.learner.name: each.learner for label, each in self.prepared.items()}

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of task that every learner can learn."""
        return frozenset.intersection(*(each.learner.kinds for each in self.prepared.values()))

    @property
    def outputs(self) -> frozenset[Output]:
        """What the models of every learner output."""
        return frozenset.intersection(*(each.learner.outputs for each in self.prepared.values()))

    @property
    def weighs_rows(self) -> bool:
        """Whether the fits of every learner use weights."""
        return all(each.learner.weighs_rows for each in self.prepared.values())

    @cached_property
    def space(self) -> base.Space:
        """The paths of all learners; with several, a setting names its learner first."""

        def add_label(label: str | None, path: Sequence[base.Setting]) -> Sequence[base.Setting]:
            return path if label is None else base.Path(len(path), lambda step: {LABEL: label, **path[step]})

        every = self.prepared.items()
        return base.Space(
            add_label(label, path) for label, each in every for path in each.learner.space.paths
        )

    @cached_property
    def trainer(self) -> base.Trainer:
        """The trainer, which fits each path by its learner."""
        return PreparedTrainer(self.prepared)

    @cached_property
    def codec(self) -> base.Codec[Any]:
        """The codec, which stores each model by its learner."""
        only = self.prepared.get(None)
        plain = only is not None and only.encoding is None
        return only.learner.codec if only and plain else PreparedCodec(self.prepared)


def _learners(name: str, values: Any) -> tuple[base.Learner, ...]:
    listed = sequence(name, values, least=1, kind="learners, at least two")
    if len(listed) == 1:
        raise InputError(f"{name}: there is only one: give it directly, without {Choice.__name__}")
    for value in listed:
        if isinstance(value, Combined) or not isinstance(value, base.Learner):
            raise InputError(f"{name}: {quote(value)} is not a single learner, such as GaussianSVM()")
    return listed


def _labels(name: str, values: Any) -> tuple[str, ...]:
    labels = sequence(name, values, least=1, kind="labels, one for each learner")
    for label in labels:
        printable = isinstance(label, str) and label.isprintable() and label.strip() == label
        if not printable or not 0 < len(label) <= LONGEST or "," in label:
            raise InputError(
                f"{name}={quote(label)}: a label is text of at most {LONGEST} printable characters, without "
                "commas, and without spaces around it"
            )
    return labels


def _most_rows(name: str, values: Any) -> tuple[int, ...]:
    listed = sequence(name, values, least=1, kind="numbers of rows, one for each learner")
    return tuple(integer(name, value, least=1, most=MOST) for value in listed)


@dataclass(frozen=True)
class Choice(Combined):
    """A choice among several learners, by the criterion of the study.

    Attributes:
        learners: at least two learners; of equal ones the one named first wins.
        labels: what each is called in settings, tables and files; None for their names, which then have to
            differ.
        most_rows: number of rows up to which each is compared; on larger tables it is left out. None if all
            are compared, whatever the table's size.

    Raises:
        InputError: a learner is named twice, or another value is not allowed.
    """

    name: ClassVar[str] = base.CHOICE

    learners: tuple[base.Learner, ...] = option((), _learners, "Learners to choose from.")
    labels: tuple[str, ...] | None = option(None, _labels, "What the learners are called.")
    most_rows: tuple[int, ...] | None = option(
        None, _most_rows, "Number of rows up to which each is compared."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        names = tuple(learner.name for learner in self.learners)
        labels = names if self.labels is None else self.labels
        for name, given in (("labels", labels), ("most_rows", self.most_rows or names)):
            if len(given) != len(names):
                raise InputError(f"{name}: got {len(given)} for {len(names)} learners: give one for each")
        for i, label in enumerate(labels):
            if label in labels[:i]:
                raise InputError(f"learners: {label} is named twice: leave one out, or give each a label")
        if self.labels == names:
            object.__setattr__(self, "labels", None)
        for label, learner in zip(labels, self.learners, strict=True):
            if LABEL in learner.space.setting(0, 0):
                raise InputError(f"learners: a hyperparameter of {label} is called {LABEL}: rename it")

    @cached_property
    def prepared(self) -> Mapping[str | None, Prepared]:  # type: ignore[override]
        """The learners by label, without steps."""
        labels = self.labels or [learner.name for learner in self.learners]
        return {label: Prepared(learner) for label, learner in zip(labels, self.learners, strict=True)}

    def canonical(self, task: Task) -> Self:
        """Return the choice among the canonical forms of the learners for a table of this size.

        Raises:
            InputError: fewer than two suit it, or see ``base.Learner``.
        """
        choice = self
        if self.most_rows is not None:
            limits = zip(self.by_label.items(), self.most_rows, strict=True)
            kept = dict(labelled for labelled, most in limits if task.n <= most)
            if len(kept) < 2:
                raise InputError(f"most_rows leaves {len(kept)} learners for {task.n:,} rows: 2 are needed")
            choice = replace(self, learners=tuple(kept.values()), labels=tuple(kept), most_rows=None)
        return replace(choice, learners=tuple(learner.canonical(task) for learner in choice.learners))

    def thinned(self, most: int) -> Self:
        """Return the choice among thinned learners."""
        return replace(self, learners=tuple(learner.thinned(most) for learner in self.learners))

    def usual(self, task: Task) -> Self:
        """Return the choice among the learners at their usual settings."""
        return replace(self, learners=tuple(learner.usual(task) for learner in self.learners))


@dataclass(frozen=True)
class PreparedLearner(Combined):
    """What is fitted to a table where a learner, or one of a choice, has steps."""

    name: ClassVar[str] = "prepared"
    prepared: Mapping[str | None, Prepared]


class PreparedTrainer(base.Trainer):
    """Fits each path by its learner, to rows that go through the learner's steps."""

    def __init__(self, prepared: Mapping[str | None, Prepared]) -> None:
        self.labels, self.prepared = list(prepared), list(prepared.values())
        self.trainers = [each.learner.trainer for each in self.prepared]
        self.paths = [
            (number, path)  # the learner of each path, and the path among the learner's own
            for number, each in enumerate(self.prepared)
            for path in range(len(each.learner.space.paths))
        ]

    @property
    def convergence_advice(self) -> str:
        """What to do about fits that did not converge, learner by learner."""
        advice = zip(self.labels, (trainer.convergence_advice for trainer in self.trainers), strict=True)
        return "; ".join(text if label is None else f"{label}: {text}" for label, text in advice if text)

    def share(self, task: Task) -> tuple[Task, tuple[object, ...]]:
        """Return the task, and what splits share for each learner, unless each split encodes the rows.

        Arrays that are the same object are sent once.
        """
        pairs = zip(self.prepared, self.trainers, strict=True)
        return task, tuple(trainer.share(task) if each.encoding is None else None for each, trainer in pairs)

    def prepare(self, shared: tuple[Task, tuple[object, ...]], train: Index, score: Index) -> "PreparedBlock":
        """Return the split; with several learners, it is prepared for one when one of its paths is fitted."""
        block = PreparedBlock(self, shared, train, score)
        if len(self.prepared) == 1:
            block.prepare(0)
        return block

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split prepared for the learner that needs most: it is kept for one only.

        Encoded rows are included, with as many columns as there can be.
        """
        needed = []
        for each, trainer in zip(self.prepared, self.trainers, strict=True):
            columns = d if each.encoding is None else each.width
            fitting = trainer.memory(each.count_rows(n_train), n_score, columns)
            needed.append(fitting + 8 * (n_train + n_score) * each.width)
        return max(needed)

    def load(self) -> None:
        """Prepare the process for every learner."""
        for trainer in self.trainers:
            trainer.load()

    def state(self) -> dict[str, str]:
        """Return what else may change the bits of a result, by name, and with several learners by label."""
        return {
            name if label is None else f"{label}.{name}": text
            for label, trainer in zip(self.labels, self.trainers, strict=True)
            for name, text in trainer.state().items()
        }


class PreparedBlock:
    """One split, prepared for the learner whose path was fitted last."""

    def __init__(
        self, trainer: PreparedTrainer, shared: tuple[Task, tuple[object, ...]], train: Index, score: Index
    ) -> None:
        self._trainer, (self._task, self._shared), self._rows = trainer, shared, (train, score)
        self._block: tuple[int, Encoder | None, base.Block] | None = None

    def prepare(self, number: int) -> tuple[Encoder | None, base.Block]:
        """Return the encoder of a learner's rows, and its split; raises whatever preparing it raises."""
        if self._block is None or self._block[0] != number:
            self._block = None  # drops the split prepared for another learner first
            trainer, each = self._trainer.trainers[number], self._trainer.prepared[number]
            encoder, shared, (train, score) = None, self._shared[number], self._rows
            if each.encoding is not None:
                encoder = each.encoding.fit(self._task, train)
                shared = trainer.share(encoder.task(self._task))
            train = draw_balanced(self._task.y, train, each.balance)
            self._block = number, encoder, trainer.prepare(shared, train, score)
        return self._block[1:]

    def fit(self, path: int, length: int) -> base.Fits:
        """Fit the first ``length`` steps of a path."""
        number, own_path = self._trainer.paths[path]
        encoder, block = self.prepare(number)
        fits, label = block.fit(own_path, length), self._trainer.labels[number]
        if label is None and encoder is None:
            return fits
        complete = partial(PreparedModel, label, encoder)
        return base.FitsOf(fits.status, fits.n_iter, fits.totals, lambda step: complete(fits.model(step)))


@dataclass(frozen=True)
class PreparedModel(base.Model):
    """A model, the encoder of its rows if they are encoded, and its learner's label if there are several."""

    label: str | None
    encoder: Encoder | None
    model: base.Model

    def predict(self, X: Rows) -> base.Predicted:
        """Classify rows X [rows, d] of the table, some at a time: they take more memory when encoded."""
        if self.encoder is None:
            return self.model.predict(X)
        parts = [X[i : i + ROWS] for i in range(0, max(1, len(X)), ROWS)]
        predicted = [self.model.predict(self.encoder.transform(part)) for part in parts]
        label, score = (np.concatenate(columns) for columns in zip(*predicted, strict=True))
        return base.Predicted(label, score)

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the model's outputs for rows X [rows, d] of the table."""
        return self.model.predict_outputs(X if self.encoder is None else self.encoder.transform(X), needs)


class PreparedCodec(base.Codec[PreparedModel]):
    """The columns of a learner, and one with the encoder of each model where rows are encoded.

    With several learners, the first column names a model's learner, and the names of a learner's columns
    include its label. A model leaves the columns of other learners empty.
    """

    def __init__(self, prepared: Mapping[str | None, Prepared]) -> None:
        self.prepared, self.several = prepared, None not in prepared
        self.codecs = {label: each.learner.codec for label, each in prepared.items()}

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns."""
        first = [pa.field(LABEL, pa.string())] if self.several else []
        fields = (self._name_columns(label, task).items() for label in self.codecs)
        return pa.schema([*first, *(field.with_name(name) for own in fields for name, field in own)])

    def write(self, model: PreparedModel) -> base.Cells:
        """Return the cells of a model in the columns of its learner."""
        cells = self.codecs[model.label].write(model.model)
        if model.encoder is not None:
            cells = {**cells, ENCODER: model.encoder.text}
        if not self.several:
            return cells
        return {LABEL: model.label, **{f"{model.label}.{name}": value for name, value in cells.items()}}

    def from_table(self, table: pa.Table, task: Task) -> list[base.Model]:
        """Return the models stored in a table; see ``base.Codec``."""
        return [self.read(row, task) for row in table.select(self.columns(task).names).to_pylist()]

    def read(self, row: base.Cells, task: Task) -> PreparedModel:
        """Return the model in a row, which is empty in the columns of other learners; see ``base.Codec``."""
        label = row[LABEL] if self.several else None
        if label not in self.codecs:
            raise ValueError(f"{LABEL} {quote(label)} is none of {', '.join(map(str, self.codecs))}")
        fields = self._name_columns(label, task)
        for name, value in row.items():
            if name not in (LABEL, *fields) and value is not None:
                raise ValueError(f"{name} has a value in a row of {label}")
        base.check_filled({name: row[name] for name in fields})
        own, encoder = {field.name: row[name] for name, field in fields.items()}, None
        if self.prepared[label].encoding is not None:
            encoder = Encoder.from_json(own.pop(ENCODER), task.schema, task.n)
        given = task if encoder is None else encoder.task(task)
        return PreparedModel(label, encoder, self.codecs[label].read(own, given))

    def setting(self, model: PreparedModel) -> base.Setting:
        """Return the hyperparameters a model was fitted at; with its learner's label if there are several."""
        own = self.codecs[model.label].setting(model.model)
        return {LABEL: model.label, **own} if self.several else own

    def same(self, a: PreparedModel, b: PreparedModel, rounding: float = 0.0) -> bool:
        """Return whether two models are of one learner and equal in content, including their encoders."""
        first, second = (
            None if model.encoder is None else json.loads(model.encoder.text) for model in (a, b)
        )
        alike = a.label == b.label and agree(first, second, rounding)
        return alike and self.codecs[a.label].same(a.model, b.model, rounding)

    def _name_columns(self, label: str | None, task: Task) -> dict[str, pa.Field]:
        """Return the columns of a learner by their name in the table."""
        columns = list(self.codecs[label].columns(task))
        if self.prepared[label].encoding is not None:
            columns.append(pa.field(ENCODER, pa.string()))
        return {field.name if label is None else f"{label}.{field.name}": field for field in columns}
