"""Whether rows that a run judges were judged, or seen, by a finished run in the same parent folder.

What was chosen after rows were judged is not covered by what they prove, so a run looks at the folders next
to its own, and says what it found; it refuses nothing. Of each the study is read first, then the names of its
columns, and its table only if it shares names of the target and of columns that are learned from.
"""

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from pyarrow import parquet

from ckcv_ray.core.arrays import Index
from ckcv_ray.errors import CKCVError, StoreError, plain
from ckcv_ray.storage import formats
from ckcv_ray.storage.execution import Before, EarlierRun
from ckcv_ray.storage.folder import DATA, MANIFEST, RunFolder
from ckcv_ray.storage.places import find_next_to
from ckcv_ray.storage.uses import MOST_TWINS
from ckcv_ray.study import Problem
from ckcv_ray.tables.salt import Words, hash_columns, mix

MOST_LOOKED_AT, MOST_ROWS_THERE = 200, 1_000_000
MOST_CELLS_KEPT = 50_000  # of a table whose rows are kept for the next run
ColumnHashes = dict[str, Words]


def find_before(problem: Problem, folder: str) -> Before:
    """Return which finished runs next to a folder judged, or saw, rows that the run of a problem judges.

    Nothing is fitted, imported or written on the word of a folder. One that cannot be read, or has more than
    ``MOST_ROWS_THERE`` rows, is passed over, and so are all but the ``MOST_LOOKED_AT`` finished last.

    Args:
        problem: one with a certification.
        folder: address of its run folder, which need not exist.
    """
    hashes, runs, passed_over = ColumnHashes(), list[EarlierRun](), dict[str, str]()
    try:
        places = find_next_to(folder, MANIFEST)
    except (CKCVError, OSError) as error:
        places, passed_over = {}, {"..": plain(str(error))}
    for name, address in list(places.items())[:MOST_LOOKED_AT]:
        try:
            found = _find_rows(name, RunFolder(address), problem, hashes)
        except (CKCVError, OSError) as error:
            passed_over[name] = plain(str(error))
        else:
            runs += [] if found is None else [found]
    return {
        "at": datetime.now(UTC).isoformat(),
        "rows": problem.all_rows.n if problem.held is None else len(problem.held),
        "runs": sorted(runs, key=lambda run: run["at"]),
        "passed_over": passed_over,
        "older": max(0, len(places) - MOST_LOOKED_AT),
    }


class _Table(NamedTuple):
    """What a data file says of itself: which run it is of, and what it holds."""

    run_id: str
    columns: frozenset[str]
    n_rows: int


class _Rows(NamedTuple):
    """The rows of a finished run: hashes of its columns, and which rows it has judged."""

    target: str
    features: frozenset[str]
    hashes: ColumnHashes
    judged: Index
    scored: bool


def _find_rows(name: str, folder: RunFolder, problem: Problem, hashes: ColumnHashes) -> EarlierRun | None:
    """Return the run in a folder if it has rows that the run of the problem judges, else None.

    Args:
        name: of the folder, for display.
        folder: of a run; one that is not finished has judged nothing.
        problem: of the run that looks.
        hashes: of its columns, as far as they were made; more are added.

    Raises:
        StoreError: the folder cannot be read, or has too many rows.
    """
    if not folder.finished:
        return None
    place = str(folder), json.dumps(folder.manifest())
    table, task = _read_table(*place), problem.all_rows
    if table.run_id == problem.run_id:
        return None
    if task.target not in table.columns or table.columns.isdisjoint(task.features):
        return None
    if table.n_rows > MOST_ROWS_THERE:
        raise StoreError(f"it has {table.n_rows:,} rows, and at most {MOST_ROWS_THERE:,} are looked at")
    small = table.n_rows * len(table.columns) <= MOST_CELLS_KEPT
    there = (_read_rows if small else _read_rows.__wrapped__)(*place)
    shared = sorted({*task.features} & there.features)
    if there.target != task.target or not shared:
        return None
    rows = _digest_rows([task.target, *shared], there.hashes)
    if lacking := {task.target, *shared} - hashes.keys():
        hashes |= hash_columns(task.columns(), lacking)
    judging = _digest_rows([task.target, *shared], hashes)
    judging = judging if problem.held is None else judging[problem.held]
    known = np.isin(judging, rows[there.judged])
    was_judged = bool(known.any())
    known = known if was_judged else np.isin(judging, rows)
    if not known.any():
        return None
    execution, (_, counts) = folder.execution(), np.unique(rows, return_counts=True)
    return {
        "folder": name,
        "command": "evaluate" if there.scored else "run",
        "run_id": table.run_id,
        "at": execution["before"]["at"] if "before" in execution else execution["finished"],
        "judged": was_judged,
        "rows": int(known.sum()),
        "twins": bool(counts[counts > 1].sum() > MOST_TWINS * len(rows)),
    }


@lru_cache(maxsize=MOST_LOOKED_AT)  # many runs in one process look at the same folders
def _read_table(address: str, manifest: str) -> _Table:
    """Return what the data file of a finished run, which its manifest identifies, says of itself."""
    folder = RunFolder(address)
    run_id = folder.require().run_id
    with formats.guard_reading(folder.files, DATA), folder.files.open(DATA) as stream:
        said = parquet.read_metadata(stream)
        return _Table(run_id, frozenset(said.schema.to_arrow_schema().names), said.num_rows)


@lru_cache(maxsize=MOST_LOOKED_AT)
def _read_rows(address: str, manifest: str) -> _Rows:
    folder = RunFolder(address)
    problem = folder.problem(folder.require())
    task, every = problem.all_rows, np.arange(problem.all_rows.n)
    judged = every[:0] if problem.scores else every if problem.held is None else problem.held
    hashes = hash_columns(task.columns(), [task.target, *task.features])
    return _Rows(task.target, frozenset(task.features), hashes, judged, bool(problem.scores))


def _digest_rows(names: list[str], hashes: ColumnHashes) -> Words:
    """Return a digest of each row by its label and some columns, (rows,); see ``_find_rows``."""
    return mix(np.sum([hashes[name] for name in names], axis=0))
