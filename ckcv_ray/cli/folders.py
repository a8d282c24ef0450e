"""Commands status, list and verify: what run folders hold."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime
from os import PathLike
from typing import Annotated, Any, cast

import typer

from ckcv_ray import errors
from ckcv_ray.cli import data, options
from ckcv_ray.cli.output import NOT_YET_PROVEN, console, say, show
from ckcv_ray.engine.queue import Queue
from ckcv_ray.errors import CKCVError, InputError, LackingError, UnreachableError, cut, plain, pluralize
from ckcv_ray.runs.finished import load, replay
from ckcv_ray.runs.later import find_alarm
from ckcv_ray.runs.result import Certified, Scored, find_quoted, find_verdict, rank_entries
from ckcv_ray.runs.verify import SECONDS
from ckcv_ray.runs.verify import verify as verify_folder
from ckcv_ray.storage.files import STUDY, find_run_folders
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.study import Execution
from ckcv_ray.tables.read import Reading

HEADINGS = ("folder", "made by", "target", "rows", "state", "verdict", "result", "last written")
LONGEST_CELL = 60
STOP_SECONDS = 10.0  # in which a verification ends by itself, between two fits


def status(
    folder: options.Folder, details: options.DetailsFlag = False, as_json: options.JsonFlag = False
) -> None:
    """Show the result of a finished run, or the progress of an unfinished one.

    Reads only the run folder. Can be used while the run is in progress.

        ckcv status runs/patients
    """
    run_folder = RunFolder(folder)
    if run_folder.files.lock.busy and not run_folder.files.exists(STUDY):
        return show({"state": "starting"}, "a run is starting: nothing has been computed yet", as_json)
    run_folder.require()
    if run_folder.finished:
        result = load(folder)
        return show(result.to_json(), result.summary(details, folder), as_json)
    queue = cast(Queue, replay(folder))
    at, problem, execution = queue.progress(), queue.problem, run_folder.execution()
    content: dict[str, Any] = {
        "run_id": problem.run_id,
        "state": "unfinished",
        "evaluations": {name: getattr(at, name) for name in ("planned", "computed", "dropped", "failed")},
        "fits": execution.get("fits"),
        "not_converged": at.not_converged,
        "seconds": execution.get("seconds"),
    }
    done = f"{at.computed:,} of {at.planned:,} evaluations computed, {at.dropped:,} dropped"
    lines = [f"run {problem.run_id} is not finished: {done}, {at.failed:,} failed"]
    if failures := queue.failures():
        lines.append(f"the first failure: {errors.name_reason(failures[0].traceback)}")
    if at.best is not None:
        best, l_ms = at.best
        content |= {"setting": dict(best.setting), "k": best.k, "l_ms": l_ms}
        lines.append(f"best so far: {best}, L_MS {errors.ceil_percent(l_ms)}")
    resume = f"resume it with the same ckcv {problem.asked.command} command"
    running = run_folder.files.lock.busy
    lines.append("it is running" if running else f"{resume}, unless it is running on another machine")
    return show(content, "\n".join(lines), as_json)


def list_runs(place: str | PathLike[str]) -> list[dict[str, object]]:
    """Return what is in the run folders in a folder and below it, last written first.

    Folders inside a run folder are part of it. Links are not followed. What cannot be read is None; "verdict"
    and "result" are "" if nothing is known yet, and "problem" if nothing is wrong and there is no alarm.

    Args:
        place: the folder, or an address such as s3://bucket/runs; a run folder is listed itself.

    Raises:
        InputError: there is no such folder.
    """
    listed = list[dict[str, object]]()
    for address, written in find_run_folders(place):
        folder, date = RunFolder(address), datetime.fromtimestamp(written).isoformat(" ", "minutes")
        run: dict[str, object] = {"folder": address, "command": None, "target": None, "rows": None}
        run |= {"state": "unfinished", "verdict": "", "result": "", "date": date, "problem": ""}
        listed.append(run)
        try:
            run["state"] = "running" if folder.files.lock.busy else "unfinished"
            identity = folder.require()
            run["command"] = identity.study.command
            task = folder.problem(identity).all_rows
            run |= {"target": task.target.name, "rows": task.n}
            if not folder.finished:
                continue
            result = cast(Certified | Scored, load(address))
            run["state"] = "finished" if result.complete else "provisional"  # something failed
            if isinstance(result, Scored):
                score = result.scores[0]
                entry, figures = rank_entries(result, score)[0]
                run["result"] = f"{score.name} {figures.mean:.4g} ({entry.name})"
                continue
            claim, _ = find_quoted(result)
            says = "nothing can be quoted" if claim is None else f"{claim.name} {claim.says}"
            run |= {"verdict": find_verdict(result), "result": says, "problem": find_alarm(result)}
        except CKCVError as error:
            # unreadable: a package that it needs is not available, or its store does not answer
            unreadable = isinstance(error, LackingError | UnreachableError)
            run |= {"state": "unreadable" if unreadable else "damaged", "problem": str(error)}
    return sorted(listed, key=lambda run: str(run["date"]), reverse=True)


def list_folders(
    folder: Annotated[
        str,
        options.make_argument(
            "[FOLDER]",
            "Folder to look in, or an address such as s3://bucket/runs. [default: .]",
            options.normalize_folder,
        ),
    ] = ".",
    as_json: options.JsonFlag = False,
) -> None:
    """List the run folders in a folder and below it: what they are about, and what may be quoted.

    The last written come first. Reads only the run folders; damaged ones are listed as damaged.

        ckcv list runs
        ckcv list --json
    """
    runs = list_runs(folder)
    rows: list[tuple[str, ...]] = [HEADINGS]
    for run in runs:
        cells = {name: "" if value is None else str(value) for name, value in run.items()}
        cells["command"] = cells["command"] and f"ckcv {cells['command']}"
        cells["rows"] = cells["rows"] and f"{int(cells['rows']):,}"
        del cells["problem"]
        rows.append(tuple(cut(plain(cell), LONGEST_CELL) for cell in cells.values()))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    wrong = [f"{plain(str(run['folder']))}: {run['problem']}" for run in runs if run["problem"]]
    lines += [pluralize(len(runs), "run folder"), *wrong]
    text = "\n".join(lines) if runs else f"no run folder in {folder} or below"
    show({"runs": runs}, text, as_json)


@options.with_options(execution=options.make_execution, reading=data.make_reading)
def verify(
    folder: options.Folder,
    execution: Execution,
    reading: Reading,
    rerun: bool = options.make_flag(
        "--rerun", "Also run the study again, into a temporary folder, and compare the files."
    ),
    test: str | None = options.make_option(
        "Test rows that F* was measured on: the same file or named set.", check=data.check_source
    ),
    table: str | None = options.make_option(
        "The table that the run read, to recompute its salt.", check=data.check_source
    ),
    limit: float = options.make_option(
        "Limit in seconds, since the folder decides what is fitted.", f"{SECONDS:g}", value=SECONDS
    ),
    as_json: options.JsonFlag = False,
) -> None:
    """Check a finished run, and report what was recomputed and what was taken on trust.

    Candidates, judged rows and certificate, or scores and predictions, are recomputed from the study, the log
    and the models, and compared; the models are fitted again. The counts of errors in the log, that is the
    search, are taken on trust unless --rerun runs the study again. Nothing is unpickled.

    The first line says what that is worth. "every figure follows from the data" (exit code 0): everything was
    recomputed. "nothing contradicts the files; taken on trust: ..." (exit code 0): what was recomputed
    agrees, and the figures also rest on what is named. "not verified: ..." (exit code 6): what a claim rests
    on cannot be computed here, was not looked at within the limit, or comes out differently under other
    versions or on another processor. Anything else is a difference (exit code 1); where models differ, with
    the bound given by those fitted again.

        ckcv verify runs/patients --table patients.csv
        ckcv verify runs/patients --rerun --backend ray
    """
    rows = data.read_rows_if_named(test or None, reading, "the file of --test: name one as well")
    if not 0 < limit < threading.TIMEOUT_MAX:
        raise InputError(f"limit={limit:g} is not a number of seconds above 0, such as 600")
    with (
        data.end_if_interrupted(None, "a verification changes nothing in the run folder") as signals,
        _end_after(limit),
        signals if rerun else nullcontext(),
        data.Display(console) if rerun else nullcontext() as display,
    ):
        found = verify_folder(folder, rerun, rows, execution, display, signals.stop, limit, say, table)
    data.say_environment(folder)
    name, verdict = options.find_run_id(folder), found.verdict if found.ok else None
    differences, unverified = ([*map(plain, one)] for one in (found.differences, found.unverified))
    content = {"run_id": name, "ok": found.ok, "verdict": verdict, **asdict(found)}
    content |= {"differences": differences, "unverified": unverified}
    lines = differences + [f"not verified: {sentence}" for sentence in unverified]
    lines = lines or [f"run {name}: {found.verdict}"]
    lines += [f"  recomputed: {item}" for item in found.recomputed]
    lines += [f"  taken on trust: {item}" for item in found.trusted]
    show(content, "\n".join(lines), as_json)
    if not found.ok:
        raise typer.Exit(1 if differences else NOT_YET_PROVEN)


@contextmanager
def _end_after(seconds: float) -> Iterator[None]:
    """End the process some time after a limit, if a fit is still going on inside the context."""

    def end() -> None:
        say(f"not verified: a fit did not end in {seconds:g} s, the limit: allow more with --limit")
        os._exit(NOT_YET_PROVEN)

    timer = threading.Timer(seconds + STOP_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
