"""The run folders below a folder, and what is in each, from their files alone: nothing is written."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ckcv_ray.claims.wording import quantity, state_limit
from ckcv_ray.errors import CKCVError, InputError, LackingError
from ckcv_ray.reports.answer import make_answer
from ckcv_ray.runs.load import COMMAND_NAMES, load
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.identity import STUDY
from ckcv_ray.validation import as_path


class ListedRun(NamedTuple):
    """What is known of a run folder.

    Attributes:
        folder: its path.
        command: which command made it, "run" or "evaluate"; None if that cannot be read.
        target: name of the column that is predicted, and
        rows: number of rows of the table; None if they cannot be read.
        state: "finished", "provisional" (something failed), "running", "unfinished", "damaged", or
            "unreadable" where a package that it needs is not here.
        result: what may be quoted, or the scores; "" if nothing is known yet.
        date: when it was written last, in local time, such as 2026-03-01 12:30.
        problem: what is wrong with it; "" if nothing is.
    """

    folder: str
    command: str | None
    target: str | None
    rows: int | None
    state: str
    result: str
    date: str
    problem: str


def list_runs(place: str | Path) -> list[ListedRun]:
    """Return what is in the run folders in a folder and below it, those written last first.

    Folders inside a run folder are parts of it. Links are not followed.

    Args:
        place: the folder; a run folder is listed itself.

    Raises:
        InputError: there is no such folder.
    """
    root = as_path("folder", place)
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r}: name one that has run folders in it")
    listed = [_describe_folder(path) for path in _find_run_folders(root)]
    return sorted(listed, key=lambda run: run.date, reverse=True)


def _find_run_folders(root: Path) -> Iterator[Path]:
    for folder, inner, files in os.walk(root):
        inner.sort()
        if STUDY in files:
            inner.clear()
            yield Path(folder)


def _describe_folder(path: Path) -> ListedRun:
    """Return what is in a run folder; what is wrong with it becomes part of that."""
    folder = RunFolder(path)
    command, target, rows, result = None, None, None, ""
    state = "running" if folder.files.lock.busy else "unfinished"
    try:
        identity = folder.require()
        command = COMMAND_NAMES[identity.study.kind]
        task = folder.problem(identity).all_rows
        target, rows = task.target, task.n
        if folder.finished:
            found = load(path)
            state = "finished" if _is_complete(found) else "provisional"
            result = describe_outcome(found)
    except CKCVError as error:
        state = "unreadable" if isinstance(error, LackingError) else "damaged"
        return ListedRun(str(path), command, target, rows, state, "", _find_date(path), str(error))
    return ListedRun(str(path), command, target, rows, state, result, _find_date(path), "")


def _is_complete(result: Result) -> bool:
    return result.complete if result.finished is None else not result.certificate.winner.provisional


def describe_outcome(result: Result) -> str:
    """Return in a few words what may be quoted of a finished study, or its best scores."""
    if result.finished is None:
        entry, figures = result.rank(result.scores[0])[0]
        return f"{figures.name} {figures.mean:.4g} ({entry.name})"
    if not make_answer(result).sentence:
        return "nothing can be quoted"
    first = result.certificate.claims.first
    return f"{quantity(first)} {state_limit(first)}"


def _find_date(path: Path) -> str:
    """Return when a file of a folder was written last."""
    times = [0.0]
    with suppress(OSError):
        times += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(path)]
    return datetime.fromtimestamp(max(times)).isoformat(" ", "minutes")
