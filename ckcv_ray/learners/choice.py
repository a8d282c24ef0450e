"""Several learners as one: its paths are those of its learners, one learner after the other.

Every learner is compared by the same criterion on the same splits, so what is selected is a learner, its
setting and a number of folds. A setting names its learner first, ``{"learner": "svm", "C": 1.0, ...}``. Each
learner is known by a label: its name, unless the choice has labels of its own.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.measures import Kind, Measure
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.core.scores import Answers
from ckcv_ray.errors import InputError
from ckcv_ray.learners.answers import answers_of
from ckcv_ray.learners.base import Block, Checked, Fits, Learner, Model, Predicted, Setting
from ckcv_ray.learners.ensemble import check_filled
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import MOST, integer, quote, sequence

LABEL = "learner"  # the hyperparameter, and the column, that names a learner
LONGEST = 100


def _learners(name: str, values: Any) -> tuple[Learner, ...]:
    listed = sequence(name, values, least=1, kind="learners, at least two")
    if len(listed) == 1:
        raise InputError(f"{name}: there is a single one: give it itself, without {Choice.__name__}")
    for one in listed:
        if isinstance(one, Choice | type) or not isinstance(getattr(one, "name", None), str):
            raise InputError(f"{name}: {quote(one)} is not a single learner, such as GaussianSVM()")
    return listed


def _labels(name: str, values: Any) -> tuple[str, ...] | None:
    if values is None:
        return None
    labels = sequence(name, values, least=1, kind="labels, one for each learner")
    for one in labels:
        fits = isinstance(one, str) and one.isprintable() and one.strip() == one and 0 < len(one) <= LONGEST
        if not fits or "," in one:
            raise InputError(
                f"{name}={quote(one)}: a label is text of at most {LONGEST} printable characters, without "
                "commas, and without spaces around it"
            )
    return labels


def _most_rows(name: str, values: Any) -> tuple[int, ...] | None:
    if values is None:
        return None
    listed = sequence(name, values, least=1, kind="numbers of rows, one for each learner")
    return tuple(integer(name, value, least=1, most=MOST) for value in listed)


@dataclass(frozen=True)
class Choice:
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
    labels: tuple[str, ...] | None = option(
        None, Option(_labels, "What the learners are called.", omit_default=True)
    )
    most_rows: tuple[int, ...] | None = option(
        None, Option(_most_rows, "Number of rows up to which each is compared.", omit_default=True)
    )

    def __post_init__(self) -> None:
        check_options(self)
        names = tuple(one.name for one in self.learners)
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
        for label, one in zip(labels, self.learners, strict=True):
            if LABEL in one.setting(0, 0):
                raise InputError(f"learners: a hyperparameter of {label} is called {LABEL}: rename it")

    @property
    def names(self) -> tuple[str, ...]:
        """The label of each learner."""
        return self.labels or tuple(one.name for one in self.learners)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of task that every learner can learn."""
        return frozenset.intersection(*(one.kinds for one in self.learners))

    @property
    def ranks(self) -> bool:
        """Whether the scores of every learner rank rows."""
        return all(one.ranks for one in self.learners)

    @property
    def probabilities(self) -> bool:
        """Whether the models of every learner give probabilities."""
        return all(one.probabilities for one in self.learners)

    @property
    def convergence_advice(self) -> str:
        """What to do about fits that did not converge, learner by learner."""
        advice = zip(self.names, (one.convergence_advice for one in self.learners), strict=True)
        return "; ".join(f"{label}: {text}" for label, text in advice if text)

    def columns(self, task: Task) -> pa.Schema:
        """Return the label of a model's learner, and the columns of every learner, named after its label."""
        columns = [
            (f"{label}.{field.name}", field.type)
            for label, one in zip(self.names, self.learners, strict=True)
            for field in one.columns(task)
        ]
        return pa.schema([(LABEL, pa.string()), *columns])

    @property
    def gaps(self) -> bool:
        """A model leaves the columns of other learners empty."""
        return True

    @cached_property
    def lengths(self) -> Sequence[int]:
        """Number of steps of each path."""
        return [length for one in self.learners for length in one.lengths]

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """Position of each learner's first path, and the number of paths."""
        return tuple(accumulate((len(one.lengths) for one in self.learners), initial=0))

    def number_of(self, label: str) -> int:
        """Return the position of the learner with this label.

        Raises:
            ValueError: there is none.
        """
        return self.names.index(label)

    def at(self, path: int) -> tuple[int, int]:
        """Return the position of a path's learner, and that of the path among the learner's own."""
        number = bisect_right(self.firsts, path) - 1
        return number, path - self.firsts[number]

    def setting(self, path: int, step: int) -> Setting:
        """Return the hyperparameters at a position, with the label of their learner."""
        number, own = self.at(path)
        return {LABEL: self.names[number], **self.learners[number].setting(own, step)}

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return the hyperparameters of all positions by name, None where a learner has no such one."""
        tables = [
            {LABEL: [label] * sum(one.lengths)} | {name: c.tolist() for name, c in one.settings().items()}
            for label, one in zip(self.names, self.learners, strict=True)
        ]
        rows = [len(table[LABEL]) for table in tables]
        names = dict.fromkeys(name for table in tables for name in table)
        columns = {
            name: [v for table, n in zip(tables, rows, strict=True) for v in table.get(name, [None] * n)]
            for name in names
        }
        return {name: _column(values) for name, values in columns.items()}

    def canonical(self, task: Task) -> Self:
        """Return the choice among the canonical forms of the learners for a table of this size.

        Raises:
            InputError: fewer than two are for it, or see ``base.Learner``.
        """
        return self._of_size(task.n)._each(lambda one: one.canonical(task))

    def on_part(self, task: Task) -> Self:
        """Return the choice among the same learners, each with the same settings."""
        return self._each(lambda one: one.on_part(task))

    def thinned(self, most: int) -> Self:
        """Return the choice among thinned learners."""
        return self._each(lambda one: one.thinned(most))

    def usual(self, task: Task) -> Self:
        """Return the choice among the learners at their usual settings."""
        return self._each(lambda one: one.usual(task))

    def share(self, task: Task) -> tuple[Any, ...]:
        """Compute what each learner shares; arrays that are the same object are sent once."""
        return tuple(one.share(task) for one in self.learners)

    def prepare(self, shared: tuple[Any, ...], train: Index, score: Index) -> "ChoiceBlock":
        """Return the split; it is prepared for a learner when one of its paths is fitted."""
        return ChoiceBlock(self, shared, train, score)

    def cost(self, n_train: int) -> float:
        """Return the cost of a fit by each learner; for forecasts costs are taken learner by learner."""
        return sum(one.cost(n_train) for one in self.learners)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split prepared for the learner that needs most: it is kept for one only."""
        return max(one.memory(n_train, n_score, d) for one in self.learners)

    def check(self, model: "ChosenModel", task: Task, train: Index, converged: bool) -> Checked:
        """Check a model as its learner does."""
        return self._of(model).check(model.model, task, train, converged)

    def setting_of(self, model: "ChosenModel") -> Setting:
        """Return the hyperparameters a model was fitted at, with the label of its learner."""
        return {LABEL: model.learner, **self._of(model).setting_of(model.model)}

    def table(self, models: Sequence["ChosenModel"], task: Task) -> pa.Table:
        """Return a row of ``columns`` for each model, empty in the columns of other learners."""
        labels = [model.learner for model in models]
        columns = [pa.array(labels, pa.string())]
        for label, one in zip(self.names, self.learners, strict=True):
            own = one.table([model.model for model in models if model.learner == label], task)
            among = np.cumsum([other == label for other in labels]) - 1
            rows = pa.array(among, pa.int64(), mask=np.array([other != label for other in labels], np.bool_))
            columns += [own[field.name].combine_chunks().take(rows) for field in own.schema]
        return pa.table(columns, schema=self.columns(task))

    def from_table(self, table: pa.Table, task: Task) -> list["ChosenModel"]:
        """Return the models stored in a table; see ``base.Learner``."""
        labels = table[LABEL].to_pylist()
        if unknown := [label for label in labels if label not in self.names]:
            raise ValueError(f"{LABEL} {quote(unknown[0])} is none of {', '.join(self.names)}")
        models: dict[int, ChosenModel] = {}
        for label, one in zip(self.names, self.learners, strict=True):
            own = pc.equal(table[LABEL], label)
            columns = table.select([f"{label}.{field.name}" for field in one.columns(task)])
            _check_empty(columns.filter(pc.invert(own)), label)
            columns = columns.filter(own)
            check_filled(columns)
            if label not in labels:
                continue
            read = one.from_table(columns.rename_columns(one.columns(task).names), task)
            rows = (i for i, other in enumerate(labels) if other == label)
            models |= {i: ChosenModel(label, model) for i, model in zip(rows, read, strict=True)}
        return [models[i] for i in range(len(labels))]

    def most_values(self, task: Task) -> int:
        """Return the largest number of values in a row: those of one learner, and empty ones of others."""
        return max(one.most_values(task) for one in self.learners) + len(self.columns(task))

    def same(self, a: "ChosenModel", b: "ChosenModel") -> bool:
        """Return whether two models are of one learner and equal in every bit."""
        return a.learner == b.learner and self._of(a).same(a.model, b.model)

    def load(self) -> None:
        """Prepare the process for every learner."""
        for one in self.learners:
            one.load()

    def state(self) -> dict[str, str]:
        """Return what else may change the bits of a result, by label and name."""
        labelled = zip(self.names, self.learners, strict=True)
        return {f"{label}.{name}": text for label, one in labelled for name, text in one.state().items()}

    def _of(self, model: "ChosenModel") -> Learner:
        return self.learners[self.number_of(model.learner)]

    def _of_size(self, n: int) -> Self:
        """Return the choice among the learners for tables of n rows."""
        if self.most_rows is None:
            return self
        kept = [i for i, most in enumerate(self.most_rows) if n <= most]
        if len(kept) < 2:
            raise InputError(f"most_rows leaves {len(kept)} learners for {n:,} rows: at least 2 are needed")
        learners = tuple(self.learners[i] for i in kept)
        return replace(self, learners=learners, labels=tuple(self.names[i] for i in kept), most_rows=None)

    def _each(self, change: Callable[[Learner], Learner]) -> Self:
        return replace(self, learners=tuple(map(change, self.learners)))


@dataclass(frozen=True)
class ChosenModel:
    """A model, and the label of the learner that fitted it."""

    learner: str
    model: Any

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d] as the model does."""
        predicted: Predicted = self.model.predict(X)
        return predicted

    def answers(self, X: Rows, needs: frozenset[str]) -> Answers:
        """Return what the model says of rows X [rows, d]."""
        return answers_of(self.model, X, needs)


class ChoiceBlock:
    """One split, prepared for the learner whose path was fitted last."""

    def __init__(self, choice: Choice, shared: tuple[Any, ...], train: Index, score: Index) -> None:
        self._choice, self._shared, self._rows = choice, shared, (train, score)
        self._prepared_for: tuple[int, Block] | None = None

    def fit(self, path: int, length: int) -> "ChosenFits":
        """Fit the first ``length`` steps of a path; preparing may raise what the learner raises."""
        number, own = self._choice.at(path)
        return ChosenFits(self._choice.names[number], self._prepared(number).fit(own, length))

    def _prepared(self, number: int) -> Block:
        """Return the split prepared for a learner; that for another one is dropped first."""
        if self._prepared_for is None or self._prepared_for[0] != number:
            self._prepared_for = None
            block = self._choice.learners[number].prepare(self._shared[number], *self._rows)
            self._prepared_for = number, block
        return self._prepared_for[1]


class ChosenFits(NamedTuple):
    """The fits of one learner."""

    learner: str
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

    def model(self, step: int) -> Model:
        """Return the model at one step, with the label of its learner."""
        return ChosenModel(self.learner, self.fits.model(step))


def learners_of(learner: Learner) -> dict[str, Learner]:
    """Return the learners that are compared, by label: those of a choice, or the learner itself."""
    if isinstance(learner, Choice):
        return dict(zip(learner.names, learner.learners, strict=True))
    return {learner.name: learner}


def learner_of_paths(learner: Learner) -> NDArray[np.intp]:
    """Return for each path the position of its learner among ``learners_of``."""
    counts = [len(one.lengths) for one in learners_of(learner).values()]
    return np.repeat(np.arange(len(counts)), counts)


def number_of(learner: Learner, setting: Setting) -> int:
    """Return the position of the learner that a setting is of, among ``learners_of``."""
    return learner.number_of(setting[LABEL]) if isinstance(learner, Choice) else 0


def _column(values: list[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _check_empty(rows: pa.Table, label: str) -> None:
    for name in rows.column_names:
        if rows[name].null_count != len(rows):
            raise ValueError(f"{name} has values in rows of other learners than {label}")
