"""Command verify."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict

import typer

from ckcv_ray.cli import options
from ckcv_ray.cli.data import check_source, make_reading, read_rows_if_named, say_environment
from ckcv_ray.cli.display import Display
from ckcv_ray.cli.options import Folder, JsonFlag, make_flag, make_option, with_options
from ckcv_ray.cli.output import NOT_YET_PROVEN, console, say, show
from ckcv_ray.cli.process import Signals
from ckcv_ray.errors import InputError, plain
from ckcv_ray.runs.verify import SECONDS, Verification
from ckcv_ray.runs.verify import verify as verify_folder
from ckcv_ray.study.study import Execution
from ckcv_ray.tables.read import Reading

STOP_SECONDS = 10.0  # in which a verification ends by itself, between two fits


@with_options(execution=options.make_execution, reading=make_reading)
def verify(
    folder: Folder,
    execution: Execution,
    reading: Reading,
    rerun: bool = make_flag(
        "--rerun", "Also run the study again, into a temporary folder, and compare the files."
    ),
    test: str | None = make_option(
        "Test rows that F* was measured on: the same file or named set.", check=check_source
    ),
    table: str | None = make_option(
        "The table that the run read, to make its salt again.", check=check_source
    ),
    limit: float = make_option(
        "Seconds until it ends, since the folder decides what is fitted.", f"{SECONDS:g}", value=SECONDS
    ),
    as_json: JsonFlag = False,
) -> None:
    """Check a finished run, and report what was made again and what was taken on trust.

    Candidates, judged rows and certificate, or scores and predictions, are made again from the study, the
    log and the models, and compared; the models are fitted again. The counts of errors in the log, that is
    the search, are taken on trust unless --rerun runs the study again. Nothing is unpickled.

    The first line says what that is worth. "every figure follows from the data" (exit code 0): all was
    computed again. "nothing contradicts the files; taken on trust: ..." (exit code 0): what was computed
    agrees, and the figures also rest on what is named. "not verified: ..." (exit code 6): what a claim rests
    on cannot be computed here, was not looked at within the limit, or comes out otherwise under other
    versions or on another processor. Anything else is a difference (exit code 1); where models differ, with
    the bound that those fitted again give.

        ckcv verify runs/patients --table patients.csv
        ckcv verify runs/patients --rerun --backend ray
    """
    signals = Signals()
    rows = read_rows_if_named(test or None, reading, "the file of --test: name one with it")
    if not 0 < limit < threading.TIMEOUT_MAX:
        raise InputError(f"limit={limit:g} is not a number of seconds above 0, such as 600")
    try:
        with (
            _end_after(limit),
            signals if rerun else nullcontext(),
            Display(console) if rerun else nullcontext() as display,
        ):
            found = verify_folder(folder, rerun, rows, execution, display, signals.stop, limit, say, table)
    except KeyboardInterrupt:
        say("interrupted: a verification changes nothing in the run folder")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None
    say_environment(folder)
    _show(folder, found, as_json)


def _show(folder: str, found: Verification, as_json: bool) -> None:
    """Print what a verification found; end with code 1 if something differs, 6 if it is not verified here."""
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
    """End the process some time after a limit, if a fit goes on inside the context."""

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
