"""The learner interface: all that the engine, storage, claims and reports know of what is fitted.

The search space of a learner consists of paths: settings that share work, in ascending order of cost. The
engine asks for the first steps of a path. Everything is addressed by position, (path, step); only the learner
knows the values, and people see them. A fit depends only on the learner, its training rows and its position.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.measures import Kind, Measure
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

Setting = Mapping[str, Any]  # hyperparameters by name: JSON values, strings of printable characters


class Status(StrEnum):
    """How a fit ended."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"


STATUSES = tuple(Status)


class Predicted(NamedTuple):
    """Per row: the class number, or -1 if the model is undecided, and the score, nan if there is none."""

    label: Classes
    score: NDArray[np.float64]


class Checked(NamedTuple):
    """The result of checking a model against its training rows.

    Attributes:
        differences: what is wrong, a sentence each.
        trusted: what could not be checked, a sentence each. If there is any, the model is fitted again, and
            has to classify every row of the table as the new one does.
    """

    differences: list[str]
    trusted: list[str]


class Model(Protocol):
    """A fitted classifier."""

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d]; the result for one row does not depend on the others."""


class Fits(Protocol):
    """The fits of a path's first steps.

    Attributes:
        status: position of each fit's status in ``STATUSES``, (steps,).
        n_iter: iterations of each fit, (steps,).
    """

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status in ``STATUSES``, (steps,)."""

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit, (steps,)."""

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals of a measure on the scored rows, (steps, columns)."""

    def model(self, step: int) -> Model:
        """Return one fit as a self-contained model."""


class Block(Protocol):
    """One split, prepared for fitting any path."""

    def fit(self, path: int, length: int) -> Fits:
        """Fit the first ``length`` steps of a path, from scratch."""


class Learner(Protocol):
    """What is fitted: a frozen value that is part of a study; its fields are its options.

    Attributes:
        name: short name, used in files and on the command line.
        kinds, ranks, probabilities, convergence_advice, gaps, lengths: see below; a class may have constants.
    """

    name: ClassVar[str]

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of task it can learn."""

    @property
    def ranks(self) -> bool:
        """Whether, with two classes, a row with a larger score is more likely of the second class."""

    @property
    def probabilities(self) -> bool:
        """Whether its models give the probability of each class; see ``learners.answers``."""

    @property
    def convergence_advice(self) -> str:
        """What to do about fits that did not converge."""

    @property
    def gaps(self) -> bool:
        """Whether cells of that table may be empty; ``from_table`` then checks which."""

    @property
    def lengths(self) -> Sequence[int]:
        """Number of steps of each path."""

    def setting(self, path: int, step: int) -> Setting:
        """Return the hyperparameters at a position."""

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return the hyperparameters of all positions by name, path by path; None where there is none."""

    def canonical(self, task: Task) -> Self:
        """Return the canonical form on a task, the same for all learners that are equal on it.

        Raises:
            InputError: an option does not fit the task, such as one that names a label.
        """

    def on_part(self, task: Task) -> "Learner":
        """Return the canonical form on a part of the rows that this canonical form is for.

        It has the same settings in the same order, however few rows there are.
        """
        return self

    def thinned(self, most: int) -> "Learner":
        """Return a learner of the same kind with a smaller search space: lists of at most ``most`` values."""

    def usual(self, task: Task) -> "Learner":
        """Return the learner at the setting that is usual without a search, unless values were asked for."""
        return self

    def on_encoded(self) -> "Learner":
        """Return the learner for numbers that an encoder has scaled, and columns of zeros and ones."""
        return self

    def share(self, task: Task) -> Any:
        """Compute what all splits of a task share; it is kept in the object store, read-only."""

    def prepare(self, shared: Any, train: Index, score: Index) -> Block:
        """Prepare one split; ``train`` and ``score`` are row numbers of the task."""

    def cost(self, n_train: int) -> float:
        """Return the relative cost of a fit on ``n_train`` rows."""

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the memory of one split in bytes, not counting what is shared."""

    def check(self, model: Any, task: Task, train: Index, converged: bool) -> Checked:
        """Check a model against the rows it was fitted on, as far as that costs less than a fit.

        Args:
            model: a model of this learner.
            task: the learning rows.
            train: numbers of the rows the model was fitted on.
            converged: whether its fit is known to have converged.
        """

    def setting_of(self, model: Any) -> Setting:
        """Return the hyperparameters a model was fitted at."""

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns of the table of its models on a task."""

    def table(self, models: Sequence[Any], task: Task) -> pa.Table:
        """Return a table with a row of ``columns`` for each model on a task."""

    def from_table(self, table: pa.Table, task: Task) -> list[Any]:
        """Return the models stored in a table.

        Raises:
            ValueError: a row does not describe a model on this task.
            IndexError: a row number does not exist in the task.
        """

    def most_values(self, task: Task) -> int:
        """Return the largest number of values in a row of ``columns``; a file with more is refused."""

    def same(self, a: Any, b: Any) -> bool:
        """Return whether two models are equal in every bit."""

    def load(self) -> None:
        """Prepare the process, for example by loading compiled code; safe to call repeatedly."""

    def state(self) -> dict[str, str]:
        """Return, by name, what else on this machine may change the bits of a result."""


@runtime_checkable
class ChecksModels(Protocol):
    """A learner whose models may not be storable, which is better known before the fits of a run."""

    def check_models(self, task: Task) -> None:
        """Check that its models can be stored; it may fit one to a few rows.

        Raises:
            InputError: they cannot.
        """
