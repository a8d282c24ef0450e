"""The table of judged rows: what a certification counts, row by row, which every claim from it follows from.

They are the rows held out, judged by each rule that is claimed and by each model that the winner is compared
with.
"""

import numpy as np
import pyarrow as pa

from ckcv_ray.errors import pluralize
from ckcv_ray.study import Holdout, Problem
from ckcv_ray.tables.readers.limits import MOST_TABLE_ROWS

JUDGED_ROWS = "judged.parquet"


def make_judged_schema(problem: Problem) -> pa.Schema:
    """Return the columns of judged rows: label and prediction are numbers of classes, or numbers.

    Weights are among them if an error by weight is claimed.
    """
    value = pa.float64() if problem.task.has_numbers else pa.int32()
    weighted = problem.study.certification is not None and problem.study.certification.weighs_rows
    return pa.schema(
        [
            ("classifier", pa.string()),
            ("row", pa.int64()),
            ("unit", pa.int64()),
            ("order", pa.int64()),
            ("label", value),
            ("predicted", value),
            ("score", pa.float64()),
            ("loss", pa.float64()),
            *([("weight", pa.float64())] if weighted else []),
        ]
    )


def count_judged(problem: Problem) -> int:
    """Return the largest number of judged rows that a study can have; 0 if nothing is judged, or too much."""
    certification = problem.study.certification
    if not isinstance(certification, Holdout) or problem.held is None:
        return 0
    most = len(problem.held) * len(certification.claim)
    return most if most <= MOST_TABLE_ROWS else 0


def check_judged(table: pa.Table, problem: Problem) -> pa.Table:
    """Return a table of judged rows that was read from a file, if its values can be.

    Raises:
        ValueError: a cell is empty that may not be, or names a row, a class or a loss that there is not.
    """
    for name in (name for name in table.column_names if name != "score"):
        if table[name].null_count:
            raise ValueError(f"{name} has empty cells")
    ranges, n_classes = [("row", 0, problem.all_rows.n)], problem.task.n_classes
    if not problem.task.has_numbers:
        ranges += [("label", 0, n_classes), ("predicted", -1, n_classes)]
    for name, least, end in ranges:
        values = table[name].to_numpy()
        if len(values) and not least <= values.min() <= values.max() < end:
            raise ValueError(f"{name} has values outside {least}..{end - 1}")
    if "weight" in table.column_names and not (table["weight"].to_numpy() > 0).all():
        raise ValueError("weight has values that are not positive")
    loss = table["loss"].to_numpy()
    if problem.task.has_numbers:
        if not ((loss >= 0) & (loss <= 1)).all():
            raise ValueError("loss has values outside 0..1")
    elif not np.isin(loss, (0.0, 1.0)).all():
        raise ValueError("loss has values other than 0 and 1")
    return table


def describe_judged(table: pa.Table) -> str:
    """Say how many rows are judged, and by what: "60 rows, by refit and better:svm"."""
    rows = len(np.unique(table["row"].to_numpy()))
    names = dict.fromkeys(table["classifier"].to_pylist())
    return f"{pluralize(rows, 'row')}, by {' and '.join(names)}"
