"""The run folders below a folder, and what is in each, from their files alone: nothing is written."""

from datetime import datetime
from os import PathLike
from typing import NamedTuple

from ckcv_ray.claims.claim import quantity, state_limit
from ckcv_ray.errors import CKCVError, LackingError, UnreachableError
from ckcv_ray.reports.answer import make_answer
from ckcv_ray.runs.load import COMMAND_NAMES, load
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.identity import STUDY
from ckcv_ray.storage.places import find_run_folders


class ListedRun(NamedTuple):
    """What is known of a run folder."""

    folder: str  # its path
    command: str | None  # which command made it, "run" or "evaluate"; None if that cannot be read
    target: str | None  # name of the column that is predicted; None if it cannot be read
    rows: int | None  # of the table; None if it cannot be read
    # "finished", "provisional" (something failed), "running", "unfinished", "damaged", or "unreadable" where
    # a package that it needs is not here, or its store does not answer
    state: str
    result: str  # what may be quoted, or the scores; "" if nothing is known yet
    date: str  # when it was written last, in local time, such as 2026-03-01 12:30
    problem: str  # what is wrong with it; "" if nothing is


def list_runs(place: str | PathLike[str]) -> list[ListedRun]:
    """Return what is in the run folders in a folder and below it, those written last first.

    Folders inside a run folder are parts of it. Links are not followed.

    Args:
        place: the folder, or an address such as s3://bucket/runs; a run folder is listed itself.

    Raises:
        InputError: there is no such folder.
    """
    listed = [_describe_folder(folder, date) for folder, date in find_run_folders(place, STUDY)]
    return sorted(listed, key=lambda run: run.date, reverse=True)


def _describe_folder(address: str, written: float) -> ListedRun:
    folder = RunFolder(address)
    command, target, rows, result = None, None, None, ""
    date, state = datetime.fromtimestamp(written).isoformat(" ", "minutes"), "unfinished"
    try:
        state = "running" if folder.files.lock.busy else state
        identity = folder.require()
        command = COMMAND_NAMES[identity.study.kind]
        task = folder.problem(identity).all_rows
        target, rows = task.target, task.n
        if folder.finished:
            found = load(address)
            state = "finished" if _is_complete(found) else "provisional"
            result = describe_outcome(found)
    except CKCVError as error:
        state = "unreadable" if isinstance(error, LackingError | UnreachableError) else "damaged"
        return ListedRun(address, command, target, rows, state, "", date, str(error))
    return ListedRun(address, command, target, rows, state, result, date, "")


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
