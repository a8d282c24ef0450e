"""The table of fitted SVMs on Nyström features: a row for each model, whose landmarks are row numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.core.arrays import agree
from ckcv_ray.learners.base import Codec, Setting
from ckcv_ray.learners.nystroem.model import Landmarks, NystroemModel
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.tables.task import Task

NUMBERS = pa.list_(pa.float64())
SCHEMA = pa.schema(
    [
        ("C", pa.float64()),
        ("gamma", pa.float64()),
        ("centre", NUMBERS),
        ("scale", NUMBERS),
        ("rows", pa.list_(pa.int64())),
        ("dual_coef", pa.list_(NUMBERS)),
        ("offset", NUMBERS),
    ]
)


class NystroemCodec(Codec):
    """The models of ``learner.NystroemSVM``.

    Args:
        n_landmarks: number of landmarks of each.
    """

    def __init__(self, n_landmarks: int) -> None:
        self.n_landmarks = n_landmarks

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns, which are the same for any task."""
        return SCHEMA

    def table(self, models: Sequence[NystroemModel], task: Task) -> pa.Table:
        """Return a table with a row for each model."""
        rows = [
            {
                **{"C": model.C, "gamma": model.gamma, "rows": model.landmarks.rows},
                **{"dual_coef": list(model.dual_coef), "offset": model.offset},
                **model.landmarks.scaling._asdict(),
            }
            for model in models
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def from_table(self, table: pa.Table, task: Task) -> list[NystroemModel]:
        """Return the models stored in a table; see ``base.Codec``."""
        return [self._read_model(row, task) for row in table.select(SCHEMA.names).to_pylist()]

    def max_row_values(self, task: Task) -> int:
        """Return the number of values of a model."""
        outputs, d = count_outputs(task), task.X.shape[1]
        return int(self.n_landmarks * (1 + outputs) + outputs + 2 * d + len(SCHEMA))

    def setting(self, model: NystroemModel) -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}

    def same(self, a: NystroemModel, b: NystroemModel, rounding: float = 0.0) -> bool:
        """Return whether two models are equal in content."""
        return agree(_list_numbers(a), _list_numbers(b), rounding)

    def _read_model(self, row: dict[str, Any], task: Task) -> NystroemModel:
        """Return the model in a row of the table.

        Raises:
            ValueError: its numbers cannot be those of a model that was fitted to the task.
            IndexError: a row number does not exist in the task.
        """
        rows, n_outputs, d = np.array(row["rows"], np.intp), count_outputs(task), task.X.shape[1]
        if len(rows) != self.n_landmarks or np.any(np.diff(rows, prepend=-1) <= 0):
            raise ValueError(f"expected {self.n_landmarks} landmarks, in ascending order")
        if {len(row["centre"]), len(row["scale"])} != {d}:
            raise ValueError(f"centre and scale do not have {d} features")
        lengths = [len(row["offset"]), *map(len, row["dual_coef"])]
        if lengths != [n_outputs, *[self.n_landmarks] * n_outputs]:
            raise ValueError(f"expected {n_outputs} offsets, and as many lists of {len(rows)} coefficients")
        scaling = Scaling(np.array(row["centre"]), np.array(row["scale"]))
        coefficients, offset = np.array(row["dual_coef"]), np.array(row["offset"])
        numbers = [*scaling, coefficients, offset, np.array([row["C"], row["gamma"]])]
        if not all(np.isfinite(values).all() for values in numbers):
            raise ValueError("it has numbers that are not finite")
        if not (np.all(scaling.scale > 0) and row["C"] > 0 and row["gamma"] > 0):
            raise ValueError("scale, C and gamma must be positive")
        vectors = task.X[rows].astype(np.float64)  # one dtype object: the same pickle wherever X came from
        return NystroemModel(row["C"], row["gamma"], Landmarks(rows, vectors, scaling), coefficients, offset)


def count_outputs(task: Task) -> int:
    """Return the number of decision values of a row: one for two classes, else one for each."""
    return 1 if task.n_classes == 2 else task.n_classes


def _list_numbers(model: NystroemModel) -> list[Any]:
    """Return all numbers of a model, but for what the table has of its landmarks."""
    fitted = [*model.landmarks.scaling, model.landmarks.rows, model.dual_coef, model.offset]
    return [model.C, model.gamma, *fitted]
