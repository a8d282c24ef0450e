"""The command verify."""

import signal
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from ckcv_ray.cli.display import Display
from ckcv_ray.cli.options import IdaFile, execution_of, option, taking
from ckcv_ray.cli.output import console, say, say_environment, show
from ckcv_ray.cli.run import Folder, JsonFlag
from ckcv_ray.cli.signals import Signals
from ckcv_ray.data.task import read
from ckcv_ray.errors import StoreError, plain
from ckcv_ray.runs.verify import verify as verify_folder
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution


@taking(execution=execution_of)
def verify(
    folder: Folder,
    execution: Execution,
    refit: Annotated[
        float,
        option(
            "Compute again the evaluations that the result rests on: all of them, or a random share such as "
            "0.1, another one each time.",
            "nothing is fitted",
        ),
    ] = 0.0,
    test: Annotated[
        str | None,
        option("The rows the run was measured on: a file, or a named set, of which those to test on."),
    ] = None,
    ida_file: IdaFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Check a finished run, and say what was computed again and what was taken on trust.

    From the Parquet files: digests, sums, bounds, drops, winner, splits, certificate; and from the data each
    model's errors and KKT conditions. The counts of errors on the select sets are taken on trust, unless
    --refit computes them again. Nothing is unpickled. Exit code 1 with the differences, if there are any.

        ckcv verify runs/patients

        ckcv verify runs/patients --refit

        ckcv verify runs/patients --refit 0.1 --backend ray
    """
    signals = Signals()
    rows = rows_to_test_of(test, ida_file) if test else None
    try:
        with signals if refit else nullcontext(), Display(console) if refit else nullcontext() as display:
            found = verify_folder(folder, refit, rows, execution, display, signals.stop)
    except KeyboardInterrupt:
        say("interrupted: nothing is changed by a verification")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None
    say_environment(folder)
    name, differences = _run_id(folder), [plain(sentence) for sentence in found.differences]
    content = {"run_id": name, "ok": not differences, **asdict(found), "differences": differences}
    lines = differences or [f"run {name}: every figure follows from the data and the log"]
    lines += [f"  computed again: {what}" for what in found.recomputed]
    lines += [f"  taken on trust: {what}" for what in found.trusted]
    show(content, "\n".join(lines), as_json)
    if differences:
        raise typer.Exit(1)


def rows_to_test_of(source: str, ida_file: Path | None) -> pa.Table:
    """Read rows to measure on: those of a named set that are to test on, or all of a file."""
    columns = read(source, ida_file)
    return columns.learn if columns.test is None else columns.test


def _run_id(folder: Path) -> str | None:
    with suppress(StoreError):
        identity = RunFolder(folder).identity()
        return identity.run_id if identity else None
    return None
