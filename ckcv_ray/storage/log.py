"""The log of a run: records of evaluations and failures, appended in parts.

    log/part-*.parquet      one row, with its position, for each evaluation that was computed or failed

Parts are written once and never changed. Each name contains the part's SHA-256, so that writers who know
nothing of each other replace no part, and a damaged one is noticed. Positions are keys: an evaluation may be
in several parts, and their order means nothing.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import ONE, StoreError
from ckcv_ray.learners.base import STATUSES
from ckcv_ray.records.record import POSITIONS, Failure, Records, divide_records, record_type
from ckcv_ray.storage.files import Files, ask_files, guard_reading, make_table, read_footer, read_table
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.read import MAX_CELLS

LOG = "log/"
PART = re.compile(r"log/part-([0-9a-f]{64})\.parquet")
STAGES = ("select", "estimate")
FAILED_STATUS = "failed"
STATUS_NAMES = tuple(str(status) for status in STATUSES)
MAX_PART_ROWS, MAX_PART_VALUES = 1 << 18, MAX_CELLS // 32
MAX_PART_BYTES = 1 << 28


class Log:
    """The log of one problem's run.

    No part has more rows than can be read back.

    Args:
        files: of the run folder.
        problem: the problem that is solved.
    """

    def __init__(self, files: Files, problem: Problem) -> None:
        self.files = files
        self.problem = problem
        self.n_totals = problem.n_totals
        number = pa.from_numpy_dtype(problem.total_type)
        self.schema = pa.schema(
            [
                ("stage", pa.string()),
                *((name, pa.int32()) for name in POSITIONS),
                *((f"total_{i}", number) for i in range(problem.n_totals)),
                ("n_iter", pa.int64()),
                ("status", pa.string()),
                ("traceback", pa.string()),
            ]
        )
        self._most_rows = min(MAX_PART_ROWS, MAX_PART_VALUES // len(self.schema))

    def append(self, records: Records, failures: list[Failure]) -> None:
        """Append records and failures as a new part, or as several if they are many."""
        columns = {name: pa.array(records[name]) for name in (*POSITIONS, "n_iter")}
        columns |= {f"total_{i}": pa.array(records["totals"][:, i]) for i in range(self.n_totals)}
        columns |= {
            "stage": pa.array(np.array(STAGES)[records["estimate"].astype(int)]),
            "status": pa.array(np.array(STATUS_NAMES)[records["status"]]),
            "traceback": pa.nulls(len(records), pa.string()),
        }
        good = pa.table(columns).select(self.schema.names).cast(self.schema)
        lost = [
            {
                "stage": STAGES[failure.estimate],
                **{name: getattr(failure, name) for name in POSITIONS[:3]},
                "step": step,
                "status": FAILED_STATUS,
                "traceback": failure.traceback,
            }
            for failure in failures
            for step in range(failure.first, failure.stop)
        ]
        rows = pa.concat_tables([good, pa.Table.from_pylist(lost, schema=self.schema)])
        for first in range(0, len(rows), self._most_rows):
            content = make_table(rows.slice(first, self._most_rows), self.problem.run_id)
            part = name_part(hashlib.sha256(content).hexdigest())
            self.files.write(part, content)  # an existing one has the same content

    def read(self, damaged: list[str] | None = None) -> Iterator[tuple[Records, list[Failure]]]:
        """Yield records and failures, part by part.

        Args:
            damaged: if given, parts that cannot be read are deleted and listed here, instead of raising.

        Raises:
            StoreError: a part is damaged, or not this run's.
        """
        request = partial(self.files.read, most=MAX_PART_BYTES)
        for part, answer in ask_files(self.files, self.parts(), request):
            try:
                with guard_reading(self.files, part):
                    content = answer()
                    if name_part(hashlib.sha256(content).hexdigest()) != part:
                        raise ValueError("it is not what was written: its SHA-256 is not that of its name")
                    run_id, schema = self.problem.run_id, self.schema
                    rows = read_table(self.files, part, run_id, schema, content=content)
                    found = self.from_arrow(rows)
            except StoreError:
                if damaged is None:
                    raise
                self.files.delete(part)  # what it held will be computed again
                damaged.append(part)
            else:
                yield found

    def count_rows(self) -> int:
        """Return the number of rows that all parts declare; damaged parts count as none."""
        rows = 0
        for part in self.parts():
            with suppress(StoreError):
                rows += read_footer(self.files, part).num_rows
        return rows

    def parts(self) -> list[str]:
        """Return the names of the parts; a copy under another name is not a part."""
        return [name for name in self.files.list(f"{LOG}part-") if PART.fullmatch(name)]

    def from_arrow(self, rows: pa.Table) -> tuple[Records, list[Failure]]:
        """Return the records and failures of a part.

        Raises:
            ValueError: a row belongs to another study, or is impossible.
        """
        self._check_positions(rows)
        failed = pc.equal(rows["status"], FAILED_STATUS)
        good, lost = rows.filter(pc.invert(failed)), rows.filter(failed)
        _check_filled(good, *(f"total_{i}" for i in range(self.n_totals)), "n_iter")
        _check_filled(lost, "traceback")
        records = np.zeros(len(good), record_type(self.problem))
        for name in (*POSITIONS, "n_iter"):
            records[name] = good[name].to_numpy()
        for i in range(self.n_totals):
            records["totals"][:, i] = good[f"total_{i}"].to_numpy()
        records["estimate"] = pc.equal(good["stage"], STAGES[True]).to_numpy()
        records["status"] = pc.index_in(good["status"], value_set=pa.array(STATUS_NAMES)).to_numpy()
        if not self.problem.scores:
            self._check_totals(records)
        elif np.isinf(records["totals"]).any():
            raise ValueError("a score is infinite")
        steps_of: dict[tuple[Any, ...], list[int]] = {}  # rows that differ only in the step are one failure
        for row in lost.to_pylist():
            key = (row["stage"] == STAGES[True], *(row[name] for name in POSITIONS[:3]), row["traceback"])
            steps_of.setdefault(key, []).append(row["step"])
        return records, [
            Failure(estimate, size, split, path, min(steps), max(steps) + 1, traceback)
            for (estimate, size, split, path, traceback), steps in steps_of.items()
        ]

    def _check_positions(self, rows: pa.Table) -> None:
        for name, known in (("stage", STAGES), ("status", (*STATUS_NAMES, FAILED_STATUS))):
            if unknown := set(pc.unique(rows[name]).to_pylist()) - set(known):
                raise ValueError(f"{name} {unknown.pop()!r} is not known")
        _check_filled(rows, *POSITIONS)
        size, split, path, step = (rows[name].to_numpy() for name in POSITIONS)
        lengths = np.array(self.problem.learner.space.lengths)
        folds = self.problem.folds
        screen = size >= len(self.problem.sizes)
        if np.any(screen & (rows["stage"].to_numpy(zero_copy_only=False) != STAGES[False])):
            raise ValueError("size is outside the study")
        for name, position, limit in (("size", size, len(folds)), ("path", path, len(lengths))):
            if np.any((position < 0) | (position >= limit)):
                raise ValueError(f"{name} is outside the study")
        n_splits = np.array([fold.n_splits for fold in folds])
        for name, position, limits in (("split", split, n_splits[size]), ("step", step, lengths[path])):
            if np.any((position < 0) | (position >= limits)):
                raise ValueError(f"{name} is outside the study")

    def _check_totals(self, records: Records) -> None:
        totals, problem = records["totals"].astype(np.int64), self.problem
        rows = problem.most_rows_in([size.n_select for size in problem.folds])[records["size"]]
        errors = totals[:, : problem.task.n_classes]
        beyond = np.any(totals < 0) or np.any(errors > rows[:, None])  # their sum may exceed any integer type
        if beyond or np.any(errors.sum(axis=1) > rows):
            raise ValueError("there are more errors than rows, or a negative number of them")
        units = np.array([size.n_select for size in problem.folds])[records["size"], None]
        if np.any(totals[:, problem.task.n_classes :] > ONE * units):
            raise ValueError("the share of wrong rows, summed over groups, exceeds the number of groups")
        for estimate, size, here in divide_records(records) if problem.criterion.by_class else ():
            of_class = np.asarray(problem.units(Stage.ESTIMATE if estimate else Stage.SELECT, size))
            if np.any(totals[here] > of_class[records["split"][here]]):
                raise ValueError("there are more errors on a class than rows of it")


def name_part(digest: str) -> str:
    """Return the name of the part with this SHA-256."""
    return f"{LOG}part-{digest}.parquet"


def _check_filled(rows: pa.Table, *names: str) -> None:
    if empty := [name for name in names if rows[name].null_count]:
        raise ValueError(f"{empty[0]} has empty cells")
