"""Command export."""

from pathlib import Path
from typing import Annotated

import typer

from ckcv_ray.claims.percent import nearest
from ckcv_ray.cli.options import Folder, flag, make_option
from ckcv_ray.cli.output import say
from ckcv_ray.errors import InputError, plain
from ckcv_ray.runs.export import CHECKED_ROWS
from ckcv_ray.runs.export import export as export_model
from ckcv_ray.runs.load import load
from ckcv_ray.validation import check_choice


def export(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="File to write.", show_default=False)],
    to: Annotated[str, make_option("Format: skops.", "skops")] = "skops",
    refit: Annotated[bool, flag("--refit", "The model fitted on all rows that were not held out.")] = False,
    full: Annotated[bool, flag("--full", "The model fitted on all rows.")] = False,
    member: Annotated[int | None, make_option("The member of F* of split N.")] = None,
) -> None:
    """Write a single model of a finished run or evaluation as a file for other programs.

    That is the model that ckcv predict uses after --certify holdout and after ckcv evaluate --refit best, or
    the one that is named. The file takes the columns that were learned from, as numbers in their order, and
    gives class numbers. It is compared with the model on 10,000 rows. Nothing is proven of what other
    programs make of it.

        ckcv export patients_run --out model.skops
        ckcv export patients_run --full --out model.skops
    """
    check_choice("to", to, ["skops"])
    given = {"refit": refit, "full": full, f"member:{member}": member is not None}
    chosen = [by for by, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} exclude each other: choose one of them")
    result = load(folder)
    exported = export_model(result, out, *chosen)
    say(f"{exported.by}: {out}, in the format {to}")
    if full:
        say(result.claim_for(result.rule("full")))
    say(f"as the model: {nearest(exported.share)} of {CHECKED_ROWS:,} rows like those of the table")
    say(f"columns, in this order: {plain(', '.join(result.task.features))}")
    if exported.labels:
        listed = ", ".join(f"{number} = {label}" for number, label in enumerate(exported.labels))
        say(f"classes: {plain(listed)}")
