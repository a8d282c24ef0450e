"""The value of every held-out row by every score, at every setting, from the predictions that are kept."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.intervals import BBC
from ckcv_ray.core.schedule import Stage
from ckcv_ray.records.judged import read_outputs
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study.problem import OUTER

AnyResult = TypeVar("AnyResult", bound=ResultValues)


def add_row_values(result: AnyResult, held_out: pa.Table | None) -> AnyResult:
    """Return a result with the values of rows, if its interval needs them.

    Args:
        result: of a study without a certification.
        held_out: its predictions, entry by entry and split by split; None if none are kept.

    Raises:
        ValueError: these are not predictions of the study.
    """
    if result.study.interval != BBC or held_out is None:
        return result
    y, problem, first = result.task.y, result.problem, 0
    shape = result.task.n, len(result.entries)
    values: dict[str, Values] = {score.name: np.full(shape, np.nan) for score in result.scores}
    for number, entry in enumerate(result.predicted):
        for split in np.flatnonzero(entry.known).tolist():
            _, scored = problem.rows(Stage.SELECT, OUTER, split)
            part, first = held_out.slice(first, len(scored)), first + len(scored)
            if part["row"].to_pylist() != scored.tolist():
                raise ValueError(f"its rows are not those that split {split} scores for {entry.name}")
            outputs = read_outputs(part)
            for score in result.scores:
                assert score.rows is not None
                values[score.name][scored, number] = score.rows(y[scored], outputs)
    return replace(result, row_values=values)
