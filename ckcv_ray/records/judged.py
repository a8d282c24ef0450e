"""The table of judged rows: what a certification counts, row by row, which every claim from it follows from.

They are the rows held out, judged by each rule that is claimed and by each model that the winner is compared
with, or the rows of the outer estimate sets, each judged by the member of its split. Where claims for F* are
by betting on losses one by one, those of its estimate sets are among them.
"""

import numpy as np
import pyarrow as pa

from ckcv_ray.errors import pluralize
from ckcv_ray.study import Holdout, Nested, Problem
from ckcv_ray.tables.readers.limits import MOST_TABLE_ROWS

JUDGED_ROWS = "judged.parquet"
OF_NO_SPLIT = -1


def make_judged_schema(problem: Problem) -> pa.Schema:
    """Return the columns of judged rows: label and prediction are numbers of classes, or numbers.

    Weights are among them if an error by weight is claimed.
    """
    value = pa.float64() if problem.task.has_numbers else pa.int32()
    weighted = problem.study.certification is not None and problem.study.certification.weighs_rows
    return pa.schema(
        [
            ("classifier", pa.string()),
            ("split", pa.int32()),
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


def count_judged(problem: Problem, of_winner: bool = True) -> int:
    """Return the largest number of judged rows that a study can have; 0 if nothing is judged, or too much.

    Args:
        problem: the problem that is solved.
        of_winner: whether those of the winner's splits count, if they are not too many.
    """
    certification, most = problem.study.certification, 0
    if isinstance(certification, Holdout) and problem.held is not None:
        most = len(problem.held) * len(certification.claim)
    elif isinstance(certification, Nested):
        (size,) = certification.outer.fold_sizes(problem.task.n_units)  # no split is drawn to open a folder
        most = size.n_splits * problem.most_rows_in(size.n_select)
    most = most if most <= MOST_TABLE_ROWS else 0
    if not (of_winner and problem.has_losses):
        return most
    every = most + max(size.n_splits * problem.most_rows_in(size.n_select) for size in problem.sizes)
    return every if every <= MOST_TABLE_ROWS else most


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
