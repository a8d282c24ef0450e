"""The learner's seam: what the engine, the storage, claims and reports know of whatever is fitted.

A learner has a search space of paths: settings that share work, in ascending order of cost, of which the
engine asks for a beginning. Everything is named by position, (path, step); values are known to the learner
alone, and shown to people. A fit depends on the learner, the rows it is given and its position alone.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import Kind, Measure
from ckcv_ray.data.schema import Classes, Index, Rows
from ckcv_ray.data.task import Task

Setting = Mapping[str, Any]  # hyperparameters by name: JSON values, text of printable characters


class Status(StrEnum):
    """How a fit ended."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"


STATUSES = tuple(Status)


class Predicted(NamedTuple):
    """Per row: class number, or -1 where the model is undecided; and its score, nan where it has none."""

    label: Classes
    score: NDArray[np.float64]


class Checked(NamedTuple):
    """What can be said of a model without fitting it again.

    Attributes:
        differences: what is not as it should be, a sentence each.
        trusted: what cannot be said, a sentence each.
    """

    differences: list[str]
    trusted: list[str]


class Model(Protocol):
    """A fitted classifier."""

    def predict(self, X: Rows) -> Predicted:
        """Classify rows X [rows, d]; what is said of one row does not depend on the others."""


class Fits(Protocol):
    """The fits of a path's first steps.

    Attributes:
        status: position of each fit's status in ``STATUSES``, (steps,).
        n_iter: iterations each took, (steps,).
    """

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status in ``STATUSES``, (steps,)."""

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations each fit took, (steps,)."""

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals of a measure on the scored rows, (steps, columns)."""

    def model(self, step: int) -> Model:
        """Return one fit as a model that stands alone."""


class Block(Protocol):
    """One split made ready for all its paths."""

    def fit(self, path: int, length: int) -> Fits:
        """Fit the first ``length`` steps of a path, from nothing."""


class Learner(Protocol):
    """What is fitted: a frozen value, part of a study, with options as its fields.

    Attributes:
        name: short name, by which files and the command line know it.
        kinds: tasks it can learn.
        convergence_advice: what to do about fits that did not converge.
        schema: columns of its models' table.
        lengths: number of steps of each path.
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[Kind]]
    convergence_advice: ClassVar[str]
    schema: ClassVar[pa.Schema]

    @property
    def lengths(self) -> Sequence[int]:
        """Number of steps of each path."""

    def setting(self, path: int, step: int) -> Setting:
        """Return the hyperparameters at a position."""

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return the hyperparameters of all positions by name, path by path."""

    def thinned(self, most: int) -> "Learner":
        """Return a learner of the same kind with a smaller search space, of at most ``most`` values each."""

    def share(self, task: Task) -> Any:
        """Make what all splits of a task share; it lies in the object store, read-only."""

    def prepare(self, shared: Any, train: Index, score: Index) -> Block:
        """Make one split ready: ``train`` and ``score`` are rows of the task."""

    def cost(self, n_train: int) -> float:
        """Return the relative cost of a fit on so many rows."""

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes that one split takes, what is shared aside."""

    def check(self, model: Any, task: Task, train: Index, converged: bool) -> Checked:
        """Check a model against the rows it was fitted on.

        Args:
            model: one of this learner's.
            task: the learning rows.
            train: those the model was fitted on.
            converged: whether its fit is known to have converged.
        """

    def setting_of(self, model: Any) -> Setting:
        """Return the hyperparameters a model was fitted at."""

    def table(self, models: Sequence[Any]) -> pa.Table:
        """Return a row of ``schema`` for each model."""

    def from_table(self, table: pa.Table, task: Task) -> list[Any]:
        """Return the models of a table.

        Raises:
            ValueError: a row is not that of a model on this task.
            IndexError: a row of the task is named that there is none.
        """

    def most_values(self, task: Task) -> int:
        """Return the most values that a model's row of ``schema`` holds: a file with more is refused."""

    def same(self, a: Any, b: Any) -> bool:
        """Tell whether two models are equal in every bit."""

    def load(self) -> None:
        """Prepare the process, such as by loading compiled code; safe to call again."""

    def state(self) -> dict[str, str]:
        """Return what else may change bits on this machine, by name."""
