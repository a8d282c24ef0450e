"""Good columns and tasks that tests change a little, and how a refusal reads."""

from dataclasses import replace

import pyarrow as pa
import pytest

from ckcv_ray.errors import InputError
from ckcv_ray.tables.task import Roles, Task


def plain_columns(**changed):
    """Columns a, b and y of 8 good rows, some of them replaced; None leaves a column out."""
    columns = {"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [2, 7, 1, 8, 2, 8, 1, 8], "y": [1, 2] * 4, **changed}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def digest_learned(task):
    """The digest of what is learned from, whatever other columns the table had."""
    return replace(task, salt="").digest


def refusal(columns, *args, **options):
    with pytest.raises(InputError) as refused:
        Task.from_table(columns, Roles(*args, **options))
    return str(refused.value)
