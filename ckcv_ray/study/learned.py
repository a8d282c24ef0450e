"""What a study on a task knows of its learner: settings, sizes in rows, and relative costs of fits."""

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.measures import Measure
from ckcv_ray.core.resampling import FoldSize
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.errors import InputError, RunError
from ckcv_ray.learners import Learner
from ckcv_ray.learners.base import Fits, Setting
from ckcv_ray.learners.choice import learner_of_paths, learners_of, number_of
from ckcv_ray.learners.encoded import encoded
from ckcv_ray.learners.encoder import expanded
from ckcv_ray.learners.encoding import Categories, Encoding
from ckcv_ray.tables.columns.types import ColumnKind
from ckcv_ray.tables.target import Index
from ckcv_ray.tables.task import Task

Costs = NDArray[np.float64]


class Learned(ABC):
    """A base class for what has a study, its learning rows, and fold sizes in units.

    Attributes:
        study: has ``learner`` and ``encoding``.
        task: the learning rows.
        sizes: fold sizes in units.
        run_id: identifier of study and data.
    """

    study: Any
    task: Task
    sizes: tuple[FoldSize, ...]
    run_id: str

    @property
    def outer_splits(self) -> int:
        """Number of outer splits that are used; 0 without a nested certification."""
        return 0

    @property
    @abstractmethod
    def n_totals(self) -> int:
        """Number of totals of an evaluation."""

    @property
    @abstractmethod
    def total_type(self) -> type[Any]:
        """Type of a total."""

    @abstractmethod
    def rows(self, stage: Stage, size: int, number: int) -> tuple[Index, Index]:
        """Return the training rows and the scored rows of a split."""

    @abstractmethod
    def measure_of(self, rows: Index) -> Measure:
        """Return what is totalled over some of the rows."""

    def totals_of(self, fits: Fits, measure: Any, length: int) -> NDArray[Any]:
        """Return the totals of each fit, (length, ``n_totals``)."""
        return fits.totals(measure)

    @cached_property
    def learner(self) -> Learner:
        """What is fitted: the study's learner, on a table that is not of plain numbers after an encoder."""
        return encoded(self.study.learner, self.study.encoding, self.task)

    @cached_property
    def n_settings(self) -> int:
        """Number of settings of the learner, or of all learners that are compared."""
        return int(self.settings_of.sum())

    @cached_property
    def learners(self) -> dict[str, Learner]:
        """The learners that are compared, by label: of equals the first wins."""
        return learners_of(self.learner)

    @cached_property
    def learner_of_paths(self) -> Index:
        """For each path the position of its learner among those that are compared, (n_paths,)."""
        return learner_of_paths(self.learner)

    @cached_property
    def settings_of(self) -> Index:
        """Number of settings of each learner, (n_learners,)."""
        return np.array([sum(one.lengths) for one in self.learners.values()])

    def learner_of(self, setting: Setting) -> tuple[int, Learner]:
        """Return the learner that a setting is of, after its position."""
        number = number_of(self.learner, setting)
        return number, list(self.learners.values())[number]

    def position(self, setting: Setting) -> tuple[int, int]:
        """Return the path and the step of a setting in the learner's search space.

        Positions are those of one search space: what another problem selected is found by its setting.

        Raises:
            RunError: the search space does not have it.
        """
        if (found := self._positions.get(_key(setting))) is None:
            raise RunError(
                f"{dict(setting)} was selected on a part of the rows, and is no setting of learner "
                f"{self.learner.name} on all of them: its on_part has to keep the settings"
            )
        return found

    @cached_property
    def _positions(self) -> dict[str, tuple[int, int]]:
        """The position of each setting."""
        lengths, setting = enumerate(self.learner.lengths), self.learner.setting
        return {_key(setting(path, step)): (path, step) for path, length in lengths for step in range(length)}

    def rows_in(self, units: int) -> int:
        """Return the number of rows that this many units have on average, rounded."""
        return round(units * self.task.n / self.task.n_units)

    def most_rows_in(self, units: int) -> int:
        """Return the largest number of rows that this many units can have."""
        return int(self._largest[units]) if self.task.grouped else units

    @cached_property
    def _largest(self) -> Index:
        """The number of rows of the largest groups, one for each number of groups from 0."""
        largest_first = np.sort(np.bincount(self.task.groups))[::-1]
        return np.append(0, np.cumsum(largest_first))

    def cost(self, stage: Stage, size: int) -> Costs:
        """Return the relative cost of a fit by each learner, (n_learners,).

        Costs of different learners cannot be compared.
        """
        refit = stage is not Stage.SELECT
        if (refit, size) not in self._costs:
            fold = self.sizes[size]
            self._costs[refit, size] = self.cost_of(fold.n_train + refit * fold.n_select)
        return self._costs[refit, size]

    def cost_of(self, units: int) -> Costs:
        """Return the relative cost of a fit by each learner on this many units, (n_learners,)."""
        rows = self.rows_in(units)
        return np.array([one.cost(rows) for one in self.learners.values()], dtype=np.float64)

    def cost_of_fits(self, stage: Stage, size: int, paths: ArrayLike, fits: ArrayLike) -> Costs:
        """Return the summed cost of fits by each learner, (n_learners,), given how many on which paths."""
        learners = self.learner_of_paths[np.asarray(paths, dtype=np.intp)]
        return np.asarray(self.cost(stage, size) * np.bincount(learners, fits, len(self.learners)))

    def cost_of_unit(self, unit: Unit) -> Costs:
        """Return the cost of a unit by each learner, all steps of its paths included, (n_learners,)."""
        if len(self.learners) == 1:  # a batch has hundreds of units
            return self.cost(unit.stage, unit.size) * sum(length for _, length in unit.paths)
        return self.cost_of_fits(unit.stage, unit.size, *zip(*unit.paths, strict=True))

    @cached_property
    def _costs(self) -> dict[tuple[bool, int], Costs]:
        """Costs of fits that were asked for, by whether MS is trained on, and fold size."""
        return {}


def canonical_learner(study: Any, task: Task, held: Index | None) -> Learner:
    """Return the canonical form of a study's learner on a task; see ``learners.base``.

    Args:
        study: has ``learner`` and ``encoding``.
        task: all rows.
        held: those held out, on which it does not depend; None if there are none.

    Raises:
        InputError: it is said how columns are encoded that are plain numbers.
    """
    learning = np.arange(task.n) if held is None else np.delete(np.arange(task.n), held)
    return study.learner.canonical(as_numbers(study.encoding, task, learning))  # type: ignore[no-any-return]


def on_part(study: Any, task: Task) -> Any:
    """Return a study in canonical form on a table with its learner for a part of the rows of that table."""
    return study.with_learner(study.learner.on_part(as_numbers(study.encoding, task, np.arange(task.n))))


def _key(setting: Setting) -> str:
    """Return a setting as text: in Python, True equals 1.0."""
    return json.dumps(dict(setting), sort_keys=True)


def as_numbers(encoding: Encoding, task: Task, learning: Index) -> Task:
    """Return a task of numbers: itself, or as it is encoded for learners that need numbers alone.

    Args:
        encoding: how columns are encoded.
        task: all rows.
        learning: the rows to which the encoder is fitted.

    Raises:
        InputError: all columns are plain numbers, and it is said how to encode them.
    """
    if not task.schema.plain:
        _check_effect(encoding, {one.kind for one in task.schema})
        return encoding.suited(trees=False).fit(task, learning).task(task)
    if task.fills is not None:  # there are gaps, in other rows
        _check_effect(encoding, {ColumnKind.NUMBER})
        return task
    for option, (name, default) in zip(("encode", "fill", "rare"), asdict(Encoding()).items(), strict=True):
        if (value := getattr(encoding, name)) != default:
            raise InputError(
                f"{option}={value} has no effect: all columns are numbers without gaps, and are taken as "
                "they are; leave it out"
            )
    return task


def expand(task: Task) -> Task:
    """Return a task with each date replaced by its parts: as many columns as their kinds say.

    How many columns an encoder makes depends on the rows that it is fitted to, and what is decided for all
    splits must not depend on the rows of any.
    """
    return task if task.schema.plain else replace(task, X=expanded(task.X, task.schema))


def _check_effect(encoding: Encoding, kinds: set[ColumnKind]) -> None:
    """Raise InputError if an option says how to encode what the table does not have."""
    default, reason = Encoding(), ""
    option, value = "rare", f"{encoding.rare:g}"
    if encoding.rare != default.rare and encoding.categories is Categories.TARGET:
        reason = "encode=target joins no categories, but draws those of few rows towards the mean of all"
    elif encoding.rare != default.rare and ColumnKind.CATEGORY not in kinds:
        reason = "no column holds categories"
    elif encoding.gaps != default.gaps and kinds == {ColumnKind.CATEGORY}:
        option, value, reason = "fill", str(encoding.gaps), "no column holds numbers or dates"
    if reason:
        raise InputError(f"{option}={value} has no effect: {reason}; leave it out")
