"""Command report."""

from pathlib import Path
from typing import Annotated

from ckcv_ray.cli.options import Folder, make_option
from ckcv_ray.cli.output import say
from ckcv_ray.runs.report import report as write_report


def report(
    folder: Folder,
    out: Annotated[Path | None, make_option("HTML file to write.", "report.html in the folder")] = None,
) -> None:
    """Write an HTML report of a finished run: claims, figures, tables, cost, environment.

    The report is one file, made from the run folder alone. It loads nothing and contains no script; nothing
    is unpickled.

        ckcv report runs/patients
        ckcv report runs/patients --out patients.html
    """
    say(f"report: {write_report(folder, out)}")
