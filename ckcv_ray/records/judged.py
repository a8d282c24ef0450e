"""The table of judged rows: what a certification counts, row by row, and what all its claims follow from.

They are the held-out rows, judged by each rule that is claimed and by each model that the winner is compared
with. Likewise, predictions for the rows that each split scores, as values and as a table.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ckcv_ray.core.measures import PROBABILITY, Outputs
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.read import MAX_TABLE_ROWS

JUDGED_ROWS = "judged.parquet"
HELD_OUT = "predictions.parquet"


def make_judged_schema(problem: Problem) -> pa.Schema:
    """Return the columns of judged rows: label and prediction are class numbers, or numbers.

    Weights are among them if an error by weight is claimed.
    """
    value = problem.task.target.type
    weighted = problem.certification.weighs_rows
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
    """Return the largest number of judged rows that a study can have; 0 if none are judged, or too many."""
    if problem.held is None:
        return 0
    most = len(problem.held) * len(problem.certification.claim)
    return most if most <= MAX_TABLE_ROWS else 0


def check_judged(table: pa.Table, problem: Problem) -> pa.Table:
    """Return a table of judged rows that was read from a file, if its values are possible.

    Raises:
        ValueError: a cell is empty that may not be, or names a row, a class or a loss that does not exist.
    """
    if empty := [name for name in table.column_names if name != "score" and table[name].null_count]:
        raise ValueError(f"{empty[0]} has empty cells")
    rows = table["row"].to_numpy()
    if len(rows) and not 0 <= rows.min() <= rows.max() < problem.all_rows.n:
        raise ValueError(f"row has values outside 0..{problem.all_rows.n - 1}")
    if "weight" in table.column_names and not (table["weight"].to_numpy() > 0).all():
        raise ValueError("weight has values that are not positive")
    losses, n_classes = table["loss"].to_numpy(), problem.task.n_classes
    for name, least in (("label", 0), ("predicted", -1)) if n_classes else ():  # -1: undecided
        values = table[name].to_numpy()
        if len(values) and not least <= values.min() <= values.max() < n_classes:
            raise ValueError(f"{name} has values outside {least}..{n_classes - 1}")
    if n_classes and not np.isin(losses, (0.0, 1.0)).all():
        raise ValueError("loss has values other than 0 and 1")
    if not ((losses >= 0) & (losses <= 1)).all():
        raise ValueError("loss has values outside 0..1")
    return table


class HeldOut(NamedTuple):
    """What a model outputs for the rows that a split scores, in their order."""

    path: int
    step: int
    split: int
    outputs: Outputs


def list_held_out_columns(problem: Problem) -> pa.Schema:
    """Return the columns of the table of held-out predictions."""
    value, outputs = problem.task.target.type, problem.task.target.outputs
    columns = [("learner", pa.string()), ("setting", pa.string()), ("split", pa.int32()), ("row", pa.int64())]
    columns += [("truth", value), ("prediction", value)]
    columns += [("probability", pa.list_(pa.float64()))] if PROBABILITY in outputs else []
    return pa.schema(columns)


def read_outputs(part: pa.Table) -> Outputs:
    """Return what the rows of one split in the table hold, as a model's outputs."""
    if "probability" not in part.column_names:
        return Outputs(value=part["prediction"].to_numpy())
    label = part["prediction"].fill_null(-1).to_numpy().astype(np.int32)
    shares = part["probability"]
    return Outputs(label, None, np.array(shares.to_pylist()) if not shares.null_count else None)
