"""The learner interface: all that the engine, storage, claims and reports know about what is fitted.

A learner has three parts. Its ``Space`` lists the settings, as paths: settings that share work, in ascending
order of cost, of which the engine requests the first steps. Its ``Trainer`` fits them to the splits of a
task, and its ``Codec`` turns fitted models into a table and back.

Everything is addressed by position, (path, step); only the space knows the values, which people see. A fit
depends only on the learner, its training rows and its position.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from enum import StrEnum
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core import options
from ckcv_ray.core.measures import Kind, Measure, Output, Outputs
from ckcv_ray.core.options import HasOptions
from ckcv_ray.errors import MOST, Classes, Index, Rows, agree, register_part
from ckcv_ray.tables.task import Task

COPIES = 4  # copies of a split's rows that a fit may hold at once
Cells = dict[str, Any]  # the cells of a row in a table of models, by column
Setting = Mapping[str, Any]  # hyperparameters by name: JSON values, strings of printable characters


class Status(StrEnum):
    """How a fit ended."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"


STATUSES = tuple(Status)
CONVERGED, NOT_CONVERGED = map(STATUSES.index, STATUSES)


class Predicted(NamedTuple):
    """Per row: the class number, or -1 if the model is undecided, and the score, nan if there is none."""

    label: Classes
    score: NDArray[np.float64]


class Model:
    """A fitted model: ``predict`` for classes, ``predict_outputs`` for its other outputs."""

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d]; the result for one row does not depend on the others."""
        raise NotImplementedError(f"{type(self).__name__} does not predict classes")

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the outputs for rows X [rows, d], at least those in ``needs``."""
        label, rank = self.predict(X)
        return Outputs(label, rank if Output.RANK in needs else None)


class Fits(Protocol):
    """The fits of a path's first steps."""

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status in ``STATUSES``, (steps,)."""

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit, (steps,)."""

    def totals(self, measure: Measure) -> NDArray[np.number]:
        """Return the totals of a measure on the scored rows, (steps, columns)."""

    def model(self, step: int) -> Model:
        """Return one fit as a self-contained model."""


class FitsOf(NamedTuple):
    """Fits with their parts given; see ``Fits``."""

    status: NDArray[np.int8]
    n_iter: NDArray[np.int64]
    totals: Callable[[Measure], NDArray[np.number]]
    model: Callable[[int], Model]


class Block(Protocol):
    """One split, prepared for fitting any path."""

    def fit(self, path: int, length: int) -> Fits:
        """Fit the first ``length`` steps of a path, from scratch."""


class Coding(Protocol):
    """How columns become numbers; see ``steps.Encoding``."""

    @property
    def onehot(self) -> bool:
        """Whether each category has a column of its own."""

    def resolve(self, trees: bool, scaled: bool | None = None) -> Self:
        """Return what suits a learner: tree-based or not, with numbers standardised or not."""


Coded = TypeVar("Coded", bound=Coding)


class Path(Sequence[Setting]):
    """The settings of a path, made on request: a study from a file may have very many.

    Args:
        length: number of steps.
        make: takes a step; returns its setting.
    """

    def __init__(self, length: int, make: Callable[[int], Setting]) -> None:
        self._steps, self._make = range(length), make

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, step: Any) -> Any:
        return self._make(self._steps[step])


class Space:
    """A search space.

    Attributes:
        paths: the settings of each path, in ascending order of cost.
        lengths: number of steps of each path.
    """

    def __init__(self, paths: Iterable[Sequence[Setting]]) -> None:
        self.paths = tuple(paths)
        self.lengths = tuple(map(len, self.paths))

    def setting(self, path: int, step: int) -> Setting:
        """Return the hyperparameters at a position."""
        return self.paths[path][step]

    def settings(self) -> dict[str, NDArray[np.generic]]:
        """Return the hyperparameters of all positions by name, path by path; None where one is absent."""
        every = [setting for path in self.paths for setting in path]
        names = dict.fromkeys(name for setting in every for name in setting)
        columns = dict[str, NDArray[Any]]()
        for name in names:
            values = [setting.get(name) for setting in every]
            alike = len(set(map(type, values))) == 1 and not isinstance(values[0], list | type(None))
            columns[name] = np.array(values) if alike else np.fromiter(values, object)
        return columns


class Trainer(ABC):
    """Fits a learner. The defaults suit models that are fitted to rows directly."""

    @property
    def convergence_advice(self) -> str:
        """What to do about fits that did not converge."""
        return ""

    def share(self, task: Task) -> object:
        """Compute what all splits of a task share; it is kept read-only in the object store."""
        return task

    @abstractmethod
    def prepare(self, shared: Any, train: Index, score: Index) -> Block:
        """Prepare one split; ``train`` and ``score`` are row numbers of the task."""

    def cost(self, n_train: int) -> float:
        """Return the relative cost of a fit on ``n_train`` rows."""
        return float(n_train)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the memory in bytes of one split with d columns, not counting what is shared."""
        return COPIES * 8 * (n_train + n_score) * (d + 1)

    def load(self) -> None:
        """Prepare the process, for example by loading compiled code; safe to call repeatedly."""
        return

    def state(self) -> dict[str, str]:
        """Return, by name, whatever else on this machine may change the bits of a result."""
        return {}


Fitted = TypeVar("Fitted", bound=Model)


class Codec(ABC, Generic[Fitted]):
    """Turns models into rows of a table and back, and compares them.

    Attributes:
        schema: the columns, unless they depend on the task.
        hyperparameters: the attributes of models that make up their setting.
        stores_repeats: whether models can be stored if a training row occurs several times.
    """

    schema: pa.Schema
    hyperparameters: tuple[str, ...] = ()
    stores_repeats: ClassVar[bool] = True

    @abstractmethod
    def write(self, model: Fitted) -> Cells:
        """Return the cells of a model's row, by column: JSON values, arrays, and lists of arrays."""

    @abstractmethod
    def read(self, row: Cells, task: Task) -> Model:
        """Return the model on a task that is stored in a row, which has no empty cell.

        Raises:
            ValueError: the row does not describe a model on this task.
            IndexError: a row number does not exist in the task.
        """

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns of the table of models on a task."""
        return self.schema

    def table(self, models: Sequence[Fitted], task: Task) -> pa.Table:
        """Return a table with the ``columns`` and a row for each model on a task."""
        rows = [
            {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in self.write(model).items()}
            for model in models
        ]
        return pa.Table.from_pylist(rows, schema=self.columns(task))

    def from_table(self, table: pa.Table, task: Task) -> list[Model]:
        """Return the models stored in a table; raises what ``read`` does, and ValueError for empty cells."""
        rows = table.select(self.columns(task).names).to_pylist()
        check_filled(*rows)
        return [self.read(row, task) for row in rows]

    def setting(self, model: Fitted) -> Setting:
        """Return the hyperparameters a model was fitted at."""
        return {name: getattr(model, name) for name in self.hyperparameters}

    def same(self, a: Fitted, b: Fitted, rounding: float = 0.0) -> bool:
        """Return whether two models are equal in content, judged by their rows.

        Args:
            a, b: the models.
            rounding: how far apart their numbers may be, see ``errors.agree``; at 0, every bit has to be
                equal.
        """
        return agree(self.write(a), self.write(b), rounding)


class Learner(HasOptions, ABC):
    """What is fitted: a frozen dataclass that is part of a study; its fields are its options.

    The parts are made from the fields on first request, and kept: they play no part in equality or pickles.

    Attributes:
        name: short name, used in files and on the command line.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def kinds(self) -> frozenset[Kind]:
        """Kinds of task that it can learn."""

    @property
    def outputs(self) -> frozenset[Output]:
        """What its models output besides class numbers, or numbers.

        With ``Output.RANK``, given two classes, a row with a larger score is more likely to be of the second;
        with ``Output.RANKS``, given several, there is such a score for each; with ``Output.PROBABILITY``,
        ``Model.predict_outputs`` gives the probability of each class.
        """
        return frozenset()

    @property
    def weighs_rows(self) -> bool:
        """Whether its fits use the weights of rows, ``Task.weighting``; if not, weights are refused."""
        return False

    @property
    @abstractmethod
    def space(self) -> Space:
        """The settings."""

    @property
    @abstractmethod
    def trainer(self) -> Trainer:
        """The trainer, which fits them."""

    @property
    @abstractmethod
    def codec(self) -> Codec[Any]:
        """The codec, which stores and compares the models."""

    @property
    def by_label(self) -> "Mapping[str, Learner]":
        """The learners that are compared, by label: itself, or those of a choice."""
        return {self.name: self}

    def canonical(self, task: Task) -> Self:
        """Return the canonical form on a task, the same for all learners that are equal on it.

        Raises:
            InputError: an option does not suit the task, such as one that names a label.
        """
        return self

    def check_rows(self, n_train: int) -> None:
        """Check that it can be fitted to this many training rows, the fewest that a split may have.

        Raises:
            InputError: an option needs more rows.
        """
        return

    def check_storable(self, encode: Callable[[], Task]) -> None:
        """Check that its models can be stored; this may fit some of the rows that ``encode`` returns, as is.

        Raises:
            InputError: they cannot.
        """
        return

    def prepare(self, task: Task, encoding: Coded) -> tuple[Self, Coded | None]:
        """Return the learner for a table, and how columns are encoded for it; None if they are not.

        Args:
            task: the rows.
            encoding: the study's encoding, to ``resolve`` to what suits the learner.

        Raises:
            InputError: the table lacks columns that the learner names.
        """
        return self, None if task.schema.plain else encoding.resolve(trees=False)

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values in each list of its options, evenly spaced."""
        lists = {name: value for name, value in options.get_values(self).items() if isinstance(value, tuple)}
        return replace(self, **{name: options.thin_values(value, most) for name, value in lists.items()})  # type: ignore[type-var]

    def usual(self, task: Task) -> Self:
        """Return the learner at the setting that is usual without a search, unless values were given."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return only the fields: what is made from them is made again where it is used."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}


def check_filled(*rows: Cells) -> None:
    """Raise ValueError if rows of a table have empty cells, or empty entries in a list."""
    for row in rows:
        for name, value in row.items():
            entries = [value]
            while entries:  # all are lists, or none is: a list's entries have one type
                if any(entry is None for entry in entries):
                    raise ValueError(f"{name} has empty cells")
                entries = list(chain(*entries)) if isinstance(entries[0], list) else []


Registered = TypeVar("Registered", bound=Learner)
LEARNERS: dict[str, Any] = {}  # by name: those of this package, of installed ones, and of users
DEFAULT = "svm"  # the learner unless another is chosen
ANY = "estimator"  # any estimator of scikit-learn
CHOICE = "choice"  # several learners, as one
ALL = "all"  # the learners of ZOO that suit the table's size
ZOO = {  # number of rows up to which each is among all; of equal ones the simplest, which is first, wins
    "constant": MOST,
    "naive_bayes": MOST,
    "lda": MOST,
    "linear": MOST,
    "tree": MOST,
    "neighbors": 20_000,
    "svm": 5_000,
    "extra_trees": 10_000,
    "forest": 10_000,
    "boosting": MOST,
}
LEARNER_GROUP = "ckcv_ray.learners"  # entry points under which packages list their learners


def register(learner: type[Registered]) -> type[Registered]:
    """Register a learner class under its name, by which studies in files refer to it; a decorator.

    Raises:
        InputError: another learner has that name.
    """
    return register_part(learner, LEARNERS)


@contextmanager
def end_forks() -> Iterator[None]:
    """End a process that code inside the context forks, if it gets back here: the work is its parent's."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(1)


def register_installed() -> list[str]:
    """Register the learners of installed packages, which the command line offers like the built-in ones.

    Returns:
        A sentence for each learner that could not be loaded; the others are not affected.
    """
    from importlib.metadata import entry_points  # takes 40 ms, and workers do not need it

    broken = []
    for point in entry_points(group=LEARNER_GROUP):
        try:
            register(point.load())
        except Exception as error:  # a third-party module may raise anything
            broken.append(f"the learner {point.name} of {point.value} cannot be loaded: {error!r}")
    return broken
