"""Good columns and tasks that tests change a little, and how a refusal reads."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import Schema
from ckcv_ray.tables.target import ClassTarget
from ckcv_ray.tables.task import Roles, Task
from ckcv_ray.tables.units import Units


def plain_columns(**changed):
    """Columns a, b and y of 8 good rows, some of them replaced; None leaves a column out."""
    columns = {"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [2, 7, 1, 8, 2, 8, 1, 8], "y": [1, 2] * 4, **changed}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def plain_task(features=("a", "b"), **changed):
    fields = {"X": np.arange(16.0).reshape(8, 2), "y": np.array([0, 1] * 4, dtype=np.int32)}
    target = ClassTarget(changed.pop("target", "y"), changed.pop("classes", ("no", "yes")))
    fields |= {"target": target, "schema": Schema.of_numbers(features), "units": Units(8)}
    return Task(**{**fields, **changed})


def digest_learned(task):
    """The digest of what is learned from, whatever other columns the table had."""
    return replace(task, salt="").digest


def refusal(columns, *args, **options):
    with pytest.raises(InputError) as refused:
        Task.from_table(columns, Roles(*args, **options))
    return str(refused.value)
