"""Command list: the run folders below a folder, from their files alone."""

from datetime import datetime
from os import PathLike
from typing import Annotated, NamedTuple, cast

from ckcv_ray.cli.options import JsonFlag, make_argument, normalize_folder
from ckcv_ray.cli.output import show
from ckcv_ray.errors import CKCVError, LackingError, UnreachableError, cut, plain, pluralize
from ckcv_ray.runs.load import load
from ckcv_ray.runs.result import Certified, Result, find_quoted
from ckcv_ray.runs.scored import Scored, rank_entries
from ckcv_ray.storage.files import find_run_folders
from ckcv_ray.storage.folder import RunFolder


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
    listed = [_describe_folder(folder, date) for folder, date in find_run_folders(place)]
    return sorted(listed, key=lambda run: run.date, reverse=True)


def _describe_folder(address: str, written: float) -> ListedRun:
    folder = RunFolder(address)
    command, target, rows, result = None, None, None, ""
    date, state = datetime.fromtimestamp(written).isoformat(" ", "minutes"), "unfinished"
    try:
        state = "running" if folder.files.lock.busy else state
        identity = folder.require()
        command = identity.study.command
        task = folder.problem(identity).all_rows
        target, rows = task.target.name, task.n
        if folder.finished:
            found = load(address)
            state = "finished" if found.complete else "provisional"
            result = _describe_result(found)
    except CKCVError as error:
        state = "unreadable" if isinstance(error, LackingError | UnreachableError) else "damaged"
        return ListedRun(address, command, target, rows, state, "", date, str(error))
    return ListedRun(address, command, target, rows, state, result, date, "")


def _describe_result(result: Result) -> str:
    """Return in a few words what may be quoted of a finished study, or its best scores."""
    if isinstance(result, Scored):
        score = result.scores[0]
        entry, figures = rank_entries(result, score)[0]
        return f"{score.name} {figures.mean:.4g} ({entry.name})"
    claim = find_quoted(cast(Certified, result))[0]
    return "nothing can be quoted" if claim is None else f"{claim.name} {claim.says}"


HEADINGS: tuple[str, ...] = ("folder", "made by", "target", "rows", "state", "result", "last written")
LONGEST_CELL = 60


def list_folders(
    folder: Annotated[
        str,
        make_argument(
            "[FOLDER]",
            "Folder to look in, or an address such as s3://bucket/runs. [default: .]",
            normalize_folder,
        ),
    ] = ".",
    as_json: JsonFlag = False,
) -> None:
    """List the run folders in a folder and below it: what they are about, and what may be quoted.

    Those written last come first. Reads the run folders only; damaged ones are listed as damaged.

        ckcv list runs
        ckcv list --json
    """
    runs = list_runs(folder)
    rows = [HEADINGS]
    for run in runs:
        made_by = "" if run.command is None else f"ckcv {run.command}"
        n_rows = "" if run.rows is None else f"{run.rows:,}"
        cells = run.folder, made_by, run.target or "", n_rows, run.state, run.result, run.date
        rows.append(tuple(cut(plain(cell), LONGEST_CELL) for cell in cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    wrong = [f"{plain(run.folder)}: {run.problem}" for run in runs if run.problem]
    lines += [pluralize(len(runs), "run folder"), *wrong]
    text = "\n".join(lines) if runs else f"no run folder in {folder} or below"
    show({"runs": [run._asdict() for run in runs]}, text, as_json)
