"""Command list."""

from typing import Annotated

import typer

from ckcv_ray.cli.options import JsonFlag, normalize_folder
from ckcv_ray.cli.output import show
from ckcv_ray.errors import cut, plain, pluralize
from ckcv_ray.runs.listing import ListedRun, list_runs

HEADINGS = ("folder", "made by", "target", "rows", "state", "result", "last written")
LONGEST_CELL = 60


def list_folders(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="[FOLDER]",
            help="Folder to look in, or an address such as s3://bucket/runs. [default: .]",
            show_default=False,
            callback=normalize_folder,
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
    show({"runs": [run._asdict() for run in runs]}, "\n".join(_tabulate(runs, folder)), as_json)


def _tabulate(runs: list[ListedRun], folder: str) -> list[str]:
    if not runs:
        return [f"no run folder in {folder} or below"]
    rows = [HEADINGS, *map(_format_run, runs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    wrong = [f"{plain(run.folder)}: {run.problem}" for run in runs if run.problem]
    return [*(line.rstrip() for line in lines), pluralize(len(runs), "run folder"), *wrong]


def _format_run(run: ListedRun) -> tuple[str, ...]:
    rows = "" if run.rows is None else f"{run.rows:,}"
    made_by = "" if run.command is None else f"ckcv {run.command}"
    cells = (run.folder, made_by, run.target or "", rows, run.state, run.result, run.date)
    return tuple(cut(plain(cell), LONGEST_CELL) for cell in cells)
