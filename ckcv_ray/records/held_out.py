"""Predictions for the rows that each split scores, as values and as a table."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ckcv_ray.core.intervals import BBC
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.scores import Output, Outputs
from ckcv_ray.errors import InputError
from ckcv_ray.study.problem import OUTER, Problem, describe_setting
from ckcv_ray.tables.readers.limits import MOST_TABLE_ROWS

HELD_OUT = "predictions.parquet"


class HeldOut(NamedTuple):
    """What a model gives for the rows that a split scores, in their order."""

    path: int
    step: int
    split: int
    outputs: Outputs


def check_held_out_room(problem: Problem) -> None:
    """Raise InputError if there are more held-out predictions, or rows of splits, than a file may have."""
    per_split = problem.task.n * max(1, len(problem.learners))
    rows = problem.sizes[OUTER].n_splits * per_split
    if problem.study.interval == BBC:  # which needs every setting, and scores each row once
        rows = problem.task.n * problem.n_settings
    if rows > MOST_TABLE_ROWS:
        raise InputError(
            f"save_predictions keeps every row of every split, up to {rows:,}: at most {MOST_TABLE_ROWS:,} "
            "can be kept; ask for fewer splits, or leave it out"
        )


def list_held_out_columns(problem: Problem) -> pa.Schema:
    """Return the columns of the table of held-out predictions."""
    value = pa.float64() if problem.task.has_numbers else pa.int32()
    columns = [("learner", pa.string()), ("setting", pa.string()), ("split", pa.int32()), ("row", pa.int64())]
    columns += [("truth", value), ("prediction", value)]
    return pa.schema(
        [*columns, *([] if problem.task.has_numbers else [("probability", pa.list_(pa.float64()))])]
    )


def tabulate_held_out(held: Iterable[HeldOut], problem: Problem) -> pa.Table:
    """Return a row for each prediction, in the order given.

    Rows, splits and classes are numbered from 0; a prediction is empty where the model is undecided, and
    probabilities where the learner gives none.
    """
    schema, names, y = list_held_out_columns(problem), list(problem.learners), problem.task.y
    parts = [pa.table([pa.array([], field.type) for field in schema], schema=schema)]
    for path, step, split, outputs in held:
        _, scored = problem.rows(Stage.SELECT, OUTER, split)
        setting = problem.learner.space.setting(path, step)
        text = describe_setting({name: value for name, value in setting.items() if name != "learner"})
        label, shares = outputs.label, outputs.probability
        columns = {
            "learner": np.repeat(names[int(problem.learner_of_paths[path])], len(scored)),
            "setting": np.repeat(text, len(scored)),
            "split": np.full(len(scored), split),
            "row": scored,
            "truth": y[scored],
            "prediction": pa.array(outputs.value)
            if label is None
            else pa.array(label, mask=np.asarray(label) < 0),
        }
        if not problem.task.has_numbers:
            columns["probability"] = pa.nulls(len(scored)) if shares is None else pa.array(shares.tolist())
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
        parts.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(parts).combine_chunks()


def read_outputs(part: pa.Table) -> Outputs:
    """Return what the rows of one split in the table hold, as a model gave it."""
    if "probability" not in part.column_names:
        return Outputs(value=part["prediction"].to_numpy())
    label = part["prediction"].fill_null(-1).to_numpy().astype(np.int32)
    shares = part["probability"]
    return Outputs(label, None, np.array(shares.to_pylist()) if not shares.null_count else None)


def can_score(needs: Output, outputs: Outputs) -> bool:
    """Return whether a score can be computed from kept predictions: what orders rows is not kept."""
    if needs in (Output.LABEL, Output.VALUE):
        return True
    return needs is Output.PROBABILITY and outputs.probability is not None
