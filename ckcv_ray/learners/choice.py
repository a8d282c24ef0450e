"""Several learners as one: its paths are those of its learners, one learner after the other.

Every learner is compared by the same criterion on the same splits, so what is selected is a learner, its
setting and a number of folds. A setting names its learner first, ``{"learner": "svm", "C": 1.0, ...}``. Each
learner is known by a label: its name, unless the choice has labels of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.measures import Kind, Output, Outputs
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import (
    Block,
    Codec,
    Fits,
    Learner,
    Model,
    Path,
    Predicted,
    Setting,
    Space,
    Trainer,
    WrappedFits,
    check_filled,
)
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import MOST, integer, quote, sequence

LABEL = "learner"  # the hyperparameter, and the column, that names a learner
LONGEST = 100


def _learners(name: str, values: Any) -> tuple[Learner, ...]:
    listed = sequence(name, values, least=1, kind="learners, at least two")
    if len(listed) == 1:
        raise InputError(f"{name}: there is a single one: give it itself, without {Choice.__name__}")
    for value in listed:
        if isinstance(value, Choice) or not isinstance(value, Learner):
            raise InputError(f"{name}: {quote(value)} is not a single learner, such as GaussianSVM()")
    return listed


def _labels(name: str, values: Any) -> tuple[str, ...] | None:
    if values is None:
        return None
    labels = sequence(name, values, least=1, kind="labels, one for each learner")
    for label in labels:
        printable = isinstance(label, str) and label.isprintable() and label.strip() == label
        if not printable or not 0 < len(label) <= LONGEST or "," in label:
            raise InputError(
                f"{name}={quote(label)}: a label is text of at most {LONGEST} printable characters, without "
                "commas, and without spaces around it"
            )
    return labels


def _most_rows(name: str, values: Any) -> tuple[int, ...] | None:
    if values is None:
        return None
    listed = sequence(name, values, least=1, kind="numbers of rows, one for each learner")
    return tuple(integer(name, value, least=1, most=MOST) for value in listed)


@dataclass(frozen=True)
class Choice(Learner):
    """A choice among several learners, by the criterion of the study.

    Attributes:
        learners: at least two learners; of equals the one named first wins.
        labels: what each is called in settings, tables and files; None for their names, which then have to
            differ.
        most_rows: number of rows up to which each is compared, on larger tables it is left out; None if all
            are, whatever the table's size.

    Raises:
        InputError: a learner is named twice, or another value does not fit.
    """

    name: ClassVar[str] = "choice"

    learners: tuple[Learner, ...] = option((), Option(_learners, "Learners to choose from."))
    labels: tuple[str, ...] | None = option(None, Option(_labels, "What the learners are called."))
    most_rows: tuple[int, ...] | None = option(
        None, Option(_most_rows, "Number of rows up to which each is compared.")
    )

    def __post_init__(self) -> None:
        check_options(self)
        names = tuple(learner.name for learner in self.learners)
        labels = names if self.labels is None else self.labels
        for name, given in (("labels", labels), ("most_rows", self.most_rows or names)):
            if len(given) != len(names):
                raise InputError(
                    f"{name}: there {'is' if len(given) == 1 else 'are'} {len(given)} for "
                    f"{len(names)} learners: give one for each"
                )
        for i, label in enumerate(labels):
            if label in labels[:i]:
                raise InputError(
                    f"learners: {label} is named twice: leave one out, or tell them apart by labels"
                )
            if self.learners[i] in self.learners[:i]:
                raise InputError(
                    f"learners: {label} is the same as another one, options included: leave it out"
                )
        if self.labels == names:
            object.__setattr__(self, "labels", None)
        for label, learner in zip(labels, self.learners, strict=True):
            if LABEL in learner.space.setting(0, 0):
                raise InputError(f"learners: a hyperparameter of {label} is called {LABEL}: rename it")

    @property
    def names(self) -> tuple[str, ...]:
        """The label of each learner."""
        return self.labels or tuple(learner.name for learner in self.learners)

    @property
    def by_label(self) -> dict[str, Learner]:
        """The learners by label."""
        return dict(zip(self.names, self.learners, strict=True))

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of task that every learner can learn."""
        return frozenset.intersection(*(learner.kinds for learner in self.learners))

    @property
    def outputs(self) -> frozenset[Output]:
        """What the models of every learner give."""
        return frozenset.intersection(*(learner.outputs for learner in self.learners))

    @property
    def weighs_rows(self) -> bool:
        """Whether the fits of every learner use weights."""
        return all(learner.weighs_rows for learner in self.learners)

    @property
    def convergence_advice(self) -> str:
        """What to do about fits that did not converge, learner by learner."""
        advice = {label: learner.convergence_advice for label, learner in self.by_label.items()}
        return "; ".join(f"{label}: {text}" for label, text in advice.items() if text)

    @cached_property
    def space(self) -> Space:
        """The paths of all learners; a setting names its learner first."""

        def add_label(label: str, path: Sequence[Setting]) -> Path:
            return Path(len(path), lambda step: {LABEL: label, **path[step]})

        by_label = self.by_label.items()
        return Space(add_label(label, path) for label, learner in by_label for path in learner.space.paths)

    @cached_property
    def trainer(self) -> Trainer:
        """What fits each path by its learner."""
        return ChoiceTrainer(self.by_label)

    @cached_property
    def codec(self) -> Codec:
        """What stores each model by its learner."""
        return ChoiceCodec(self.by_label)

    def canonical(self, task: Task) -> Self:
        """Return the choice among the canonical forms of the learners for a table of this size.

        Raises:
            InputError: fewer than two are for it, or see ``base.Learner``.
        """
        choice = self
        if self.most_rows is not None:
            kept = [i for i, most in enumerate(self.most_rows) if task.n <= most]
            if len(kept) < 2:
                raise InputError(
                    f"most_rows leaves {len(kept)} learners for {task.n:,} rows: at least 2 are needed"
                )
            learners = tuple(self.learners[i] for i in kept)
            choice = replace(
                self, learners=learners, labels=tuple(self.names[i] for i in kept), most_rows=None
            )
        return choice.change_each(lambda learner: learner.canonical(task))

    def thinned(self, most: int) -> Self:
        """Return the choice among thinned learners."""
        return self.change_each(lambda learner: learner.thinned(most))

    def usual(self, task: Task) -> Self:
        """Return the choice among the learners at their usual settings."""
        return self.change_each(lambda learner: learner.usual(task))

    def change_each(self, change: Callable[[Learner], Learner]) -> Self:
        """Return the choice among changed learners."""
        return replace(self, learners=tuple(map(change, self.learners)))


class ChoiceTrainer(Trainer):
    """Fits each path by its learner.

    Args:
        learners: the learners, by label.
    """

    def __init__(self, learners: Mapping[str, Learner]) -> None:
        self.labels = list(learners)
        self.trainers = [learner.trainer for learner in learners.values()]
        self.paths = [
            (number, path)  # the learner of each path, and the path among the learner's own
            for number, learner in enumerate(learners.values())
            for path in range(len(learner.space.paths))
        ]

    def share(self, task: Task) -> tuple[Any, ...]:
        """Compute what each learner shares; arrays that are the same object are sent once."""
        return tuple(trainer.share(task) for trainer in self.trainers)

    def prepare(self, shared: tuple[Any, ...], train: Index, score: Index) -> "ChoiceBlock":
        """Return the split; it is prepared for a learner when one of its paths is fitted."""
        return ChoiceBlock(self, shared, train, score)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split prepared for the learner that needs most: it is kept for one only."""
        return max(trainer.memory(n_train, n_score, d) for trainer in self.trainers)

    def load(self) -> None:
        """Prepare the process for every learner."""
        for trainer in self.trainers:
            trainer.load()

    def state(self) -> dict[str, str]:
        """Return what else may change the bits of a result, by label and name."""
        return {
            f"{label}.{name}": text
            for label, trainer in zip(self.labels, self.trainers, strict=True)
            for name, text in trainer.state().items()
        }


class ChoiceCodec(Codec):
    """The label of a model's learner, and the columns of every learner, named after its label.

    A model leaves the columns of other learners empty.

    Args:
        learners: the learners, by label.
    """

    gaps: ClassVar[bool] = True

    def __init__(self, learners: Mapping[str, Learner]) -> None:
        self.codecs = {label: learner.codec for label, learner in learners.items()}

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns."""
        columns = [
            (f"{label}.{field.name}", field.type)
            for label, codec in self.codecs.items()
            for field in codec.columns(task)
        ]
        return pa.schema([(LABEL, pa.string()), *columns])

    def table(self, models: Sequence["ChosenModel"], task: Task) -> pa.Table:
        """Return a row of ``columns`` for each model, empty in the columns of other learners."""
        labels = np.array([model.learner for model in models], object)
        columns = [pa.array(labels, pa.string())]
        for label, codec in self.codecs.items():
            table = codec.table([model.model for model in models if model.learner == label], task)
            rows = pa.array(np.cumsum(labels == label) - 1, pa.int64(), mask=labels != label)
            columns += [table[field.name].combine_chunks().take(rows) for field in table.schema]
        return pa.table(columns, schema=self.columns(task))

    def from_table(self, table: pa.Table, task: Task) -> list["ChosenModel"]:
        """Return the models stored in a table; see ``base.Codec``."""
        labels = table[LABEL].to_pylist()
        if unknown := [label for label in labels if label not in self.codecs]:
            raise ValueError(f"{LABEL} {quote(unknown[0])} is none of {', '.join(self.codecs)}")
        models: dict[int, ChosenModel] = {}
        for label, codec in self.codecs.items():
            chosen, names = pc.equal(table[LABEL], label), codec.columns(task).names
            columns = table.select([f"{label}.{name}" for name in names])
            others = columns.filter(pc.invert(chosen))
            for name in others.column_names:
                if others[name].null_count != len(others):
                    raise ValueError(f"{name} has values in rows of other learners than {label}")
            columns = columns.filter(chosen)
            check_filled(columns)
            if label in labels:
                read = codec.from_table(columns.rename_columns(names), task)
                rows = np.flatnonzero(chosen.to_numpy()).tolist()
                models |= {i: ChosenModel(label, model) for i, model in zip(rows, read, strict=True)}
        return [models[i] for i in range(len(labels))]

    def max_row_values(self, task: Task) -> int:
        """Return the largest number of values in a row: those of one learner, and empty ones of others."""
        return max(codec.max_row_values(task) for codec in self.codecs.values()) + len(self.columns(task))

    def setting(self, model: "ChosenModel") -> Setting:
        """Return the hyperparameters a model was fitted at, with the label of its learner."""
        return {LABEL: model.learner, **self.codecs[model.learner].setting(model.model)}

    def same(self, a: "ChosenModel", b: "ChosenModel", rounding: float = 0.0) -> bool:
        """Return whether two models are of one learner and equal in content."""
        return a.learner == b.learner and self.codecs[a.learner].same(a.model, b.model, rounding)


@dataclass(frozen=True)
class ChosenModel(Model):
    """A model, and the label of the learner that fitted it."""

    learner: str
    model: Model

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d] as the model does."""
        return self.model.predict(X)

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the model's outputs for rows X [rows, d]."""
        return self.model.predict_outputs(X, needs)


class ChoiceBlock:
    """One split, prepared for the learner whose path was fitted last."""

    def __init__(self, trainer: ChoiceTrainer, shared: tuple[Any, ...], train: Index, score: Index) -> None:
        self._trainer, self._shared, self._rows = trainer, shared, (train, score)
        self._prepared: tuple[int, Block] | None = None

    def fit(self, path: int, length: int) -> Fits:
        """Fit the first ``length`` steps of a path; preparing may raise what the learner raises."""
        number, own_path = self._trainer.paths[path]
        if self._prepared is None or self._prepared[0] != number:
            self._prepared = None  # drops the split prepared for another learner first
            block = self._trainer.trainers[number].prepare(self._shared[number], *self._rows)
            self._prepared = number, block
        fits, label = self._prepared[1].fit(own_path, length), self._trainer.labels[number]
        return WrappedFits(fits, lambda model: ChosenModel(label, model))
