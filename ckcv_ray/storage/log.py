"""The log of a run as a table: a row for each cell that was computed, or failed."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.learners.svm import Status
from ckcv_ray.study import Path, Size, Study

STATUSES = tuple(Status)
FIELDS = {
    "estimate": np.bool_,
    "C": np.float64,
    "gamma": np.float64,
    "k": np.int64,
    "mc_index": np.int64,
    "errors_negative": np.int32,
    "errors_positive": np.int32,
    "n_iter": np.int64,
    "status": np.int8,
}
RECORD = np.dtype(list(FIELDS.items()))
Records = NDArray[np.void]

SCHEMA = pa.schema(
    [
        ("stage", pa.string()),
        ("C", pa.float64()),
        ("gamma", pa.float64()),
        ("k", pa.int64()),
        ("mc_index", pa.int64()),
        ("errors_negative", pa.int32()),
        ("errors_positive", pa.int32()),
        ("n_iter", pa.int64()),
        ("status", pa.string()),
        ("traceback", pa.string()),
    ]
)
TRACEBACK = SCHEMA.get_field_index("traceback")
STAGES = ("select", "estimate")
FAILED = "failed"
NAMES = tuple(str(status) for status in STATUSES)


class Failure(NamedTuple):
    """The end of a path that raised: its stage and key, the positions of C lost, and the traceback."""

    estimate: bool
    path: Path
    first: int
    stop: int
    traceback: str


def to_arrow(records: Records, failures: list[Failure], study: Study) -> pa.Table:
    """Rows of SCHEMA: one for each record, and one for each cell of a path that failed."""
    return pa.concat_tables([_recorded(records), _failed(failures, study)])


def from_arrow(log: pa.Table, study: Study, sizes: tuple[Size, ...]) -> tuple[Records, list[Failure]]:
    """Records and failures of a part of the log.

    Args:
        log: rows of SCHEMA.
        study: whose log it is.
        sizes: its fold sizes on its rows.

    Raises:
        ValueError: a row is of another study, or cannot be.
    """
    _check_words(log, study, sizes)
    failed = pc.equal(log["status"], FAILED)
    good, lost = log.filter(pc.invert(failed)), log.filter(failed)
    _check_filled(good, "errors_negative", "errors_positive", "n_iter")
    _check_filled(lost, "traceback")
    _check_splits(log, sizes)
    records = _records(good)
    _check_counts(records, sizes)
    return records, _failures(lost, study)


def _recorded(records: Records) -> pa.Table:
    plain = {name: pa.array(records[name]) for name in SCHEMA.names if name in FIELDS}
    plain["stage"] = pa.array(np.array(STAGES)[records["estimate"].astype(int)])
    plain["status"] = pa.array(np.array(NAMES)[records["status"]])
    plain["traceback"] = pa.nulls(len(records), pa.string())
    return pa.table(plain, schema=SCHEMA)


def _failed(failures: list[Failure], study: Study) -> pa.Table:
    rows = [
        {"stage": STAGES[f.estimate], "C": C, **f.path._asdict(), "status": FAILED, "traceback": f.traceback}
        for f in failures
        for C in study.C[f.first : f.stop]
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _records(good: pa.Table) -> Records:
    records = np.zeros(len(good), RECORD)
    for name in set(FIELDS) & set(SCHEMA.names) - {"status"}:
        records[name] = good[name].to_numpy()
    records["estimate"] = _positions(good["stage"], STAGES)
    records["status"] = _positions(good["status"], NAMES)
    return records


def _positions(column: pa.ChunkedArray, words: tuple[str, ...]) -> NDArray[np.int32]:
    places: NDArray[np.int32] = pc.index_in(column, value_set=pa.array(words)).to_numpy()
    return places


def _failures(lost: pa.Table, study: Study) -> list[Failure]:
    """Rows that differ in C alone are one failure."""
    cells: dict[tuple[bool, Path, str], list[int]] = {}
    for row in lost.to_pylist():
        key = (row["stage"] == STAGES[1], Path(row["gamma"], row["k"], row["mc_index"]), row["traceback"])
        cells.setdefault(key, []).append(study.C.index(row["C"]))
    return [
        Failure(estimate, path, min(places), max(places) + 1, traceback)
        for (estimate, path, traceback), places in cells.items()
    ]


def _check_words(log: pa.Table, study: Study, sizes: tuple[Size, ...]) -> None:
    ks = [size.k for size in sizes]
    known = {"C": study.C, "gamma": study.gamma, "k": ks, "stage": STAGES}
    for name, values in {**known, "status": (*NAMES, FAILED)}.items():
        if strange := set(pc.unique(log[name]).to_pylist()) - set(values):
            raise ValueError(f"{name} {strange.pop()!r} is not the study's")


def _check_filled(rows: pa.Table, *names: str) -> None:
    if empty := [name for name in names if rows[name].null_count]:
        raise ValueError(f"{empty[0]} has empty cells")


def _check_splits(log: pa.Table, sizes: tuple[Size, ...]) -> None:
    _check_filled(log, "mc_index")
    n_splits = {size.k: size.n_splits for size in sizes}
    mc_index, most = log["mc_index"].to_numpy(), [n_splits[k] for k in log["k"].to_pylist()]
    if np.any((mc_index < 0) | (mc_index >= most)):
        raise ValueError("mc_index is outside the splits of the study")


def _check_counts(records: Records, sizes: tuple[Size, ...]) -> None:
    n_select = {size.k: size.n_select for size in sizes}
    negative, positive = (records[name].astype(np.int64) for name in ("errors_negative", "errors_positive"))
    rows = [n_select[k] for k in records["k"].tolist()]
    if np.any((negative < 0) | (positive < 0) | (negative + positive > rows)):
        raise ValueError("there are more errors than rows, or fewer than none")
