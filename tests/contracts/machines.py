"""Gaussian machines with weights of no particular problem, the task they are of, and their bits."""

from typing import Any

import numpy as np

from ckcv_ray.learners.ensemble import Ensemble, Member
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.problem import Scaling
from ckcv_ray.tables.columns import Schema
from ckcv_ray.tables.target import ClassTarget
from ckcv_ray.tables.task import Task
from ckcv_ray.tables.units import Units


def task_of(X: Any) -> Task:
    """Return a task on these inputs as they are, checked by nothing."""
    y = (np.arange(len(X)) % 2).astype(np.int32)
    schema = Schema.of_numbers(f"x{i}" for i in range(X.shape[1]))
    return Task(X, y, ClassTarget("y", ("no", "yes")), schema, Units(len(y)))


def make_model(rng: np.random.Generator, X: Any, n_support: int | None = None) -> SVMModel:
    n_support = int(rng.integers(1, len(X))) if n_support is None else n_support
    support = np.sort(rng.choice(len(X), size=n_support, replace=False)).astype(np.int64)
    setting = float(rng.uniform(0.1, 10)), float(rng.uniform(0.01, 2))
    scaling = Scaling(rng.normal(size=X.shape[1]), rng.uniform(0.5, 2, size=X.shape[1]))
    pairs = [(support, rng.normal(size=n_support))]
    return SVMModel.from_pairs(setting, scaling, 2, pairs, rng.normal(size=1), X)


def make_constant(value: float, d: int = 3) -> SVMModel:
    """Return a model that gives every row the same decision value."""
    scaling, pairs = Scaling(np.zeros(d), np.ones(d)), [(np.empty(0, np.int64), np.empty(0))]
    return SVMModel.from_pairs((1.0, 1.0), scaling, 2, pairs, np.array([value]), np.empty((0, d)))


def bits(value: Any) -> Any:
    """Return type, shape and every bit of a value, whatever it is made of: so -0.0 is not 0.0."""
    if isinstance(value, (tuple, list)):
        return [bits(part) for part in value]
    if isinstance(value, (Member, Ensemble, SVMModel)):
        return {name: bits(part) for name, part in vars(value).items()}
    array = np.asarray(value)
    return type(value).__name__, array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()
