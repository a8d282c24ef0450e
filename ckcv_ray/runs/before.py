"""Whether rows that a run judges were judged, or seen, by a finished run in the same parent folder.

What was chosen after rows were judged is not covered by what they prove, so a run looks at the folders next
to its own, and says what it found; it refuses nothing. Of each the study is read first, then the names of its
columns, and its table only if it shares names of the target and of columns that are learned from.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np
from pyarrow import parquet

from ckcv_ray.errors import CKCVError, StoreError, plain
from ckcv_ray.storage import formats
from ckcv_ray.storage.execution import Before, EarlierRun
from ckcv_ray.storage.folder import DATA, MANIFEST, RunFolder
from ckcv_ray.storage.places import find_next_to
from ckcv_ray.storage.uses import MOST_TWINS
from ckcv_ray.study import Problem
from ckcv_ray.tables.salt import Words, hash_columns, mix
from ckcv_ray.tables.task import Task

MOST_LOOKED_AT, MOST_ROWS_THERE = 200, 1_000_000
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
    if not folder.finished or (identity := folder.require()).run_id == problem.run_id:
        return None
    task = problem.all_rows
    with formats.guard_reading(folder.files, DATA), folder.files.open(DATA) as stream:
        table = parquet.read_metadata(stream)
        columns = set(table.schema.to_arrow_schema().names)
    if task.target not in columns or columns.isdisjoint(task.features):
        return None
    if table.num_rows > MOST_ROWS_THERE:
        raise StoreError(f"it has {table.num_rows:,} rows, and at most {MOST_ROWS_THERE:,} are looked at")
    there = folder.problem(identity)
    shared = sorted({*task.features} & {*there.all_rows.features})
    if there.all_rows.target != task.target or not shared:
        return None
    rows, judging = _digest_rows(there.all_rows, shared, {}), _digest_rows(task, shared, hashes)
    judging = judging if problem.held is None else judging[problem.held]
    judged = rows[:0] if there.scores else rows if there.held is None else rows[there.held]
    known = np.isin(judging, judged)
    was_judged = bool(known.any())
    known = known if was_judged else np.isin(judging, rows)
    if not known.any():
        return None
    execution, (_, counts) = folder.execution(), np.unique(rows, return_counts=True)
    return {
        "folder": name,
        "command": "evaluate" if there.scores else "run",
        "run_id": identity.run_id,
        "at": execution["before"]["at"] if "before" in execution else execution.get("finished", ""),
        "judged": was_judged,
        "rows": int(known.sum()),
        "twins": bool(counts[counts > 1].sum() > MOST_TWINS * len(rows)),
    }


def _digest_rows(task: Task, shared: Iterable[str], hashes: ColumnHashes) -> Words:
    """Return a digest of each row by its label and some columns, (rows,); see ``_find_rows``."""
    names = [task.target, *shared]
    if lacking := [name for name in names if name not in hashes]:
        hashes |= hash_columns(task.columns(), lacking)
    return mix(np.sum([hashes[name] for name in names], axis=0))
