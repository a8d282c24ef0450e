"""Models whose numbers are moved, by a unit in the last place or by more, for tests that compare models."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.learners.sklearn import store
from ckcv_ray.tables.task import Task

Move = Callable[[Any], Any]


def move(values: Any, by: Move) -> Any:
    """Move all numbers of single or double precision in an array, even a structured one."""
    values = np.array(values)
    if values.dtype.names:
        for name in values.dtype.names:
            values[name] = move(values[name], by)
    return by(values) if values.dtype.kind == "f" else values


def last_place(values: Any) -> Any:
    return np.nextafter(values, values.dtype.type(np.inf))


def more(values: Any) -> Any:
    return values + values.dtype.type(1e-5) * np.maximum(1, np.abs(values))


def move_json(value: Any, by: Move) -> Any:
    """Move the numbers in lists and objects."""
    if isinstance(value, dict):
        moved = {name: move_json(part, by) for name, part in value.items()}
        if value.get("is_json"):
            moved["content"] = json.dumps(move_json(json.loads(value["content"]), by))
        return moved
    if isinstance(value, list):
        return [move_json(part, by) for part in value]
    fitted = isinstance(value, float) and not value.is_integer()  # whole numbers are positions, or counts
    return float(by(np.float64(value))) if fitted else value


def move_estimator(content: bytes, by: Move) -> bytes:
    """Move the numbers of a stored estimator."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(sink, "w") as after:
        for info in before.infolist():
            file = before.read(info)
            if info.filename.endswith(".npy"):
                array = io.BytesIO()
                np.save(array, move(np.load(io.BytesIO(file)), by))
                file = array.getvalue()
            else:
                file = json.dumps(move_json(json.loads(file), by), separators=(",", ":")).encode()
            after.writestr(info, file)
    return store._canonical(sink.getvalue())


def moved(learner: Any, task: Task, model: Any, by: Move) -> Any:
    """The model with every fitted number of its row in the table moved."""
    table = learner.codec.table([model], task)
    row = table.to_pylist()[0]
    for name, value in row.items():
        own = name.rpartition(".")[2]
        if own in (*learner.codec.setting(model), "setting") or value is None:
            continue
        if own == "encoder":
            row[name] = json.dumps(move_json(json.loads(value), by))
        elif own == "estimator":
            row[name] = move_estimator(value, by)
        else:
            row[name] = move_json(value, by)
    (changed,) = learner.codec.from_table(pa.Table.from_pylist([row], schema=table.schema), task)
    return changed
