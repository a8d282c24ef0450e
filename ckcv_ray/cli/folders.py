"""Commands list, copy and clean: the run folders below a folder, from their files alone; copies, with every
digest checked; what a killed run left.
"""

import hashlib
from datetime import datetime
from os import PathLike
from typing import Annotated, NamedTuple, cast

from ckcv_ray.cli.options import Folder, JsonFlag, check_out, make_argument, normalize_folder
from ckcv_ray.cli.output import show
from ckcv_ray.errors import (
    CKCVError,
    InputError,
    LackingError,
    StoreError,
    UnreachableError,
    cut,
    plain,
    pluralize,
)
from ckcv_ray.reports.facts import find_quoted
from ckcv_ray.runs.load import load
from ckcv_ray.runs.result import Certified, Result
from ckcv_ray.runs.scored import Scored
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import MAX_FILE_BYTES
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.identity import STUDY
from ckcv_ray.storage.places import find_run_folders


def clean(folder: Folder, as_json: JsonFlag = False) -> None:
    """Remove from a run folder what a run that was killed left and no run reads.

    On a disk these are temporary files, on an object store objects that no file has. Files of the run are
    never removed, and nothing is while a run writes there.

        ckcv clean runs/patients
        ckcv clean s3://bucket/runs/patients
    """
    run = RunFolder(folder)
    run.require()
    removed = run.clean()
    lines = [f"removed {pluralize(len(removed), 'object or file', 'objects or files')}", *removed]
    show({"folder": folder, "removed": removed}, "\n".join(lines), as_json)


class Copied(NamedTuple):
    """What was copied."""

    run_id: str  # of the run
    to: str  # where it is now, too
    files: int  # number of files
    bytes: int  # their bytes


def copy_run(source: str | PathLike[str], to: str | PathLike[str]) -> Copied:
    """Copy a run, finished or not; the copy is finished once all of its files are there, and are the same.

    A copy that was interrupted is completed by the same call.

    Args:
        source: run folder, a path or an address such as s3://bucket/runs/patients.
        to: where to copy it: an empty place, or one that holds the same run, which becomes as the source is.

    Raises:
        StoreError: there is no run, it is being written or damaged; or the place holds something else.
        InputError: the place cannot be written, or is the run folder itself.
    """
    origin, target = RunFolder(source), RunFolder(to)
    identity = origin.require()
    if origin.files.is_same(target.files):
        raise InputError(f"{str(origin)!r} is the run folder itself: name another place")
    if origin.files.lock.busy:
        raise StoreError(f"{str(origin)!r} is being written by a run: wait for it, or stop it")
    target.files.check_writable()
    target.holds(identity.run_id)
    finished = origin.finished  # asked once: a run that ends meanwhile is copied as one that goes on
    manifest = origin.manifest() if finished else {}
    names = origin.list_copied()
    target.acquire()
    try:
        target.reopen()
        for name in target.list_copied():
            if name not in names:
                formats.delete(target.files, name)
        written = {name: _copy_file(origin, target, name, manifest.get(name)) for name in names}
        there = RunFolder(str(target))  # read once more from where they are now
        if wrong := [name for name, (digest, _) in written.items() if there.sha256(name) != digest]:
            raise StoreError(f"{target.files.path(wrong[0])} is not what was copied: copy the run again")
        if finished:
            written[MANIFEST] = _copy_file(origin, target, MANIFEST, None)
    finally:
        target.release()
    size = sum(size for _, size in written.values())
    return Copied(identity.run_id, str(target), len(written), size)


def _copy_file(origin: RunFolder, target: RunFolder, name: str, expected: str | None) -> tuple[str, int]:
    """Copy a file; return its SHA-256 and size.

    Raises:
        StoreError: it is damaged, or not as the manifest says.
    """
    with formats.guard_reading(origin.files, name):
        content = origin.files.read(name, MAX_FILE_BYTES)
    digest = hashlib.sha256(content).hexdigest()
    if expected not in (None, digest):
        raise StoreError(
            f"{origin.files.path(name)} does not match the manifest: the copy is not finished; the command "
            "that made the run repairs it"
        )
    formats.write(target.files, name, content)
    return digest, len(content)


def copy(
    folder: Folder,
    to: Annotated[
        str,
        make_argument("TO", "Where to copy it: an empty place, or one that holds the same run.", check_out),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Copy a run to another place, a disk or an object store, and check every digest.

    Each file is compared with the manifest when it is read, and with what was read once it is written; the
    manifest comes last, so that a copy that was interrupted is not finished, and the same command completes
    it. A run that is being written is refused.

        ckcv copy runs/patients s3://bucket/runs/patients
        ckcv copy s3://bucket/runs/patients runs/patients
    """
    copied = copy_run(folder, to)
    text = f"run {copied.run_id}: {pluralize(copied.files, 'file')}, {copied.bytes:,} bytes, in {copied.to}"
    show(copied._asdict(), text, as_json)


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
        command = identity.study.command
        task = folder.problem(identity).all_rows
        target, rows = task.target.name, task.n
        if folder.finished:
            found = load(address)
            state = "finished" if found.complete else "provisional"
            result = describe_outcome(found)
    except CKCVError as error:
        state = "unreadable" if isinstance(error, LackingError | UnreachableError) else "damaged"
        return ListedRun(address, command, target, rows, state, "", date, str(error))
    return ListedRun(address, command, target, rows, state, result, date, "")


def describe_outcome(result: Result) -> str:
    """Return in a few words what may be quoted of a finished study, or its best scores."""
    if not isinstance(result, Certified):
        scored = cast(Scored, result)
        entry, figures = scored.rank(scored.scores[0])[0]
        return f"{figures.name} {figures.mean:.4g} ({entry.name})"
    if find_quoted(result)[0] is None:
        return "nothing can be quoted"
    first = result.claims[0]
    return f"{first.name} {first.says}"


HEADINGS = ("folder", "made by", "target", "rows", "state", "result", "last written")
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
    rows = [HEADINGS, *map(_format_run, runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    wrong = [f"{plain(run.folder)}: {run.problem}" for run in runs if run.problem]
    lines += [pluralize(len(runs), "run folder"), *wrong]
    text = "\n".join(lines) if runs else f"no run folder in {folder} or below"
    show({"runs": [run._asdict() for run in runs]}, text, as_json)


def _format_run(run: ListedRun) -> tuple[str, ...]:
    rows = "" if run.rows is None else f"{run.rows:,}"
    made_by = "" if run.command is None else f"ckcv {run.command}"
    cells = (run.folder, made_by, run.target or "", rows, run.state, run.result, run.date)
    return tuple(cut(plain(cell), LONGEST_CELL) for cell in cells)
