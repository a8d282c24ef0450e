"""Command watch."""

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from ckcv_ray.cli.data_options import SOURCES, check_source, make_reading, read_new_rows
from ckcv_ray.cli.exits import PROVEN_WORSE
from ckcv_ray.cli.options import Folder, JsonFlag, make_option, with_options
from ckcv_ray.cli.output import say, show
from ckcv_ray.cli.predict import choose_rule
from ckcv_ray.errors import InputError
from ckcv_ray.runs.watch import LiveColumns
from ckcv_ray.runs.watch import watch as watch_run
from ckcv_ray.tables.readers.files import AS_IT_IS, Reading

LIVE = f"Live rows with their labels; leave it out to look at the stream alone. {SOURCES}"


@with_options(choice=choose_rule, reading=make_reading)
def watch(
    folder: Folder,
    choice: tuple[str, int | None],
    reading: Reading,
    source: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help=LIVE, show_default=False, callback=check_source),
    ] = None,
    row_id: Annotated[str, typer.Option("--id", help="Column that names the rows.")] = "id",
    prediction: Annotated[
        str,
        typer.Option(
            "--prediction",
            help="Column with what was predicted. Without it, rows with all features are predicted here.",
        ),
    ] = "prediction",
    label: Annotated[str | None, make_option("Column with the true labels.", "the target of the run")] = None,
    delta: Annotated[
        float | None,
        make_option(
            "Probability with which anything that is said may ever be false, fixed with the first rows.",
            "that of the study",
        ),
    ] = None,
    stream: Annotated[
        Path | None,
        make_option("File of the stream, outside of run folders.", "stream.jsonl in the run folder"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare live rows, once their labels are known, with what a finished run has certified.

    Rows are appended to the stream of the run, a file that only grows and in which each row counts once. What
    is said holds at all times, however often it is looked at: the error measured with its limits, whether the
    certificate still holds, and the error on each class. delta is shared: half of it is that of the error,
    the classes share the rest. With groups, a group counts once, and only the error is watched.

    An alarm says that the error is larger than certified (exit code 5). The options that choose what
    classifies rows, such as --vote, are those of ckcv predict.

        ckcv watch runs/patients labels.csv --id patient
        ckcv watch runs/patients march.csv --id patient --prediction answer
        ckcv watch runs/patients --json

    DATA may be - for CSV on standard input.
    """
    by, seed = choice
    if seed is not None:
        raise InputError("seed is for ckcv predict: a stream has no draws to repeat")
    found = watch_run(
        folder, _read(source, reading), LiveColumns(row_id, prediction, label), by, delta, stream
    )
    for sentence in found.notes:
        say(sentence)
    show(found.to_json(), found.summary(), as_json)
    if found.alarm:
        raise typer.Exit(PROVEN_WORSE)


def _read(source: str | None, reading: Reading) -> pa.Table | None:
    if source is not None:
        return read_new_rows(source, reading)
    if reading != AS_IT_IS:
        raise InputError("separator, sheet, skip_rows and encoding are for a file of rows: name one")
    return None
