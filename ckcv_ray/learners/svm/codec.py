"""The table of fitted SVMs: a row for each model, whose support vectors are row numbers of the learning set.

Two classes are one pair, of which a cell holds the numbers themselves; of more there is a list of the pairs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import agree
from ckcv_ray.learners.base import Codec, Setting
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.learners.svm.votes import list_pairs
from ckcv_ray.tables.task import Task

OF_PAIR = {"support": pa.list_(pa.int64()), "dual_coef": pa.list_(pa.float64()), "offset": pa.float64()}
COMMON = [(name, pa.float64()) for name in ("C", "gamma")]
COMMON += [(name, pa.list_(pa.float64())) for name in ("centre", "scale")]
TWO_CLASSES = pa.schema([*COMMON, *OF_PAIR.items()])
MORE_CLASSES = pa.schema([*COMMON, *((name, pa.list_(kind)) for name, kind in OF_PAIR.items())])


class SVMCodec(Codec):
    """The models of ``learner.GaussianSVM``: ``SVMModel`` for two classes, else ``PairwiseSVM``."""

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns: for more than two classes, lists for each pair."""
        return TWO_CLASSES if task.n_classes == 2 else MORE_CLASSES

    def table(self, models: Sequence[Any], task: Task) -> pa.Table:
        """Return a table with a row for each model."""
        rows = []
        for model in models:
            row = {"C": model.C, "gamma": model.gamma, "support": model.support}
            if isinstance(model, PairwiseSVM):
                row["support"] = [model.support[used] for used in model.used]
            row |= {"dual_coef": model.dual_coef, "offset": model.offset, **model.scaling._asdict()}
            rows.append(row)
        return pa.Table.from_pylist(rows, schema=self.columns(task))

    def from_table(self, table: pa.Table, task: Task) -> list[Any]:
        """Return the models stored in a table; see ``base.Codec``."""
        return [_read_model(row, task) for row in table.to_pylist()]

    def max_row_values(self, task: Task) -> int:
        """Return the number of values of a model in which every row supports every pair of its class.

        An empty list of a pair counts as a value.
        """
        n, d = task.X.shape
        if task.n_classes == 2:
            return int(2 * (n + d) + len(TWO_CLASSES))
        n_pairs = len(list_pairs(task.n_classes))
        return int(2 * (n * (task.n_classes - 1) + n_pairs + d) + n_pairs + len(MORE_CLASSES))

    def setting(self, model: SVMModel | PairwiseSVM) -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}

    def same(self, a: SVMModel | PairwiseSVM, b: SVMModel | PairwiseSVM, rounding: float = 0.0) -> bool:
        """Return whether two models are equal in content."""
        return type(a) is type(b) and agree(_list_numbers(a), _list_numbers(b), rounding)


def _list_numbers(model: SVMModel | PairwiseSVM) -> list[Any]:
    """Return all numbers of a model, but for what the table has of its support vectors."""
    arrays = [model.C, model.gamma, *model.scaling, model.support, model.offset]
    if isinstance(model, PairwiseSVM):
        return [*arrays, model.n_classes, *model.used, *model.dual_coef]
    return [*arrays, model.dual_coef]


def _read_model(row: dict[str, Any], task: Task) -> SVMModel | PairwiseSVM:
    """Return the model in a row.

    Raises:
        ValueError: its numbers cannot be those of a model that was fitted to the task.
        IndexError: a row number does not exist in the task.
    """
    two, n_pairs = task.n_classes == 2, len(list_pairs(task.n_classes))
    support, dual_coef, offset = ([row[name]] if two else row[name] for name in OF_PAIR)
    if not len(support) == len(dual_coef) == len(offset) == n_pairs:
        raise ValueError(f"expected support vectors and an offset for each of {n_pairs} pairs of classes")
    scaling = Scaling(np.array(row["centre"]), np.array(row["scale"]))
    pairs = [
        (np.array(rows, dtype=np.int64), np.array(numbers, dtype=np.float64))
        for rows, numbers in zip(support, dual_coef, strict=True)
    ]
    setting = row["C"], row["gamma"]
    if two:
        ((rows, coefficients),) = pairs
        vectors = task.X[rows].astype(np.float64)  # one dtype object: the same pickle wherever X came from
        _check_numbers(*setting, scaling, pairs, offset, task.X.shape[1])
        return SVMModel(*setting, scaling, rows, vectors, coefficients, row["offset"])
    _check_numbers(*setting, scaling, pairs, offset, task.X.shape[1])
    offsets = np.array(offset, dtype=np.float64)
    return PairwiseSVM.from_pairs(setting, scaling, task.n_classes, pairs, offsets, task.X)


def _check_numbers(
    C: float,
    gamma: float,
    scaling: Scaling,
    pairs: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
    offset: Sequence[float],
    d: int,
) -> None:
    """Raise ValueError if the numbers of an SVM cannot be those of one that was fitted on d inputs."""
    if scaling.centre.shape != (d,) or scaling.scale.shape != (d,):
        raise ValueError(f"centre and scale do not have {d} features")
    for support, dual_coef in pairs:
        if dual_coef.shape != support.shape or np.any(np.diff(support, prepend=-1) <= 0):
            raise ValueError("its support vectors must be in ascending order, with one coefficient each")
    numbers = [*scaling, np.array([C, gamma, *offset]), *(dual_coef for _, dual_coef in pairs)]
    if not all(np.isfinite(values).all() for values in numbers):
        raise ValueError("it has numbers that are not finite")
    if not (np.all(scaling.scale > 0) and C > 0 and gamma > 0):
        raise ValueError("scale, C and gamma must be positive")
