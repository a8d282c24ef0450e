"""Command report."""

from pathlib import Path
from typing import Annotated

import typer

from ckcv_ray.cli.form_options import FormOptions, make_form_options
from ckcv_ray.cli.options import Folder, make_option, with_options
from ckcv_ray.cli.output import say
from ckcv_ray.cli.page_options import PageOptions, make_page_options, read_purpose
from ckcv_ray.errors import pluralize
from ckcv_ray.runs.report import report as write_report


@with_options(page=make_page_options, form=make_form_options)
def report(
    folder: Folder,
    page: PageOptions,
    form: FormOptions,
    out: Annotated[
        Path | None,
        make_option("File to write: HTML; with --for .md or .html.", "report.html in the folder"),
    ] = None,
) -> None:
    """Write an HTML report of a finished run, or the form of a reporting guideline.

    The report is one file, made from the run folder alone: the number to quote, data, performance, claims,
    figures, time. It loads nothing and contains no script; nothing is unpickled or fitted. A form has the
    items of a guideline, filled from the run or marked as a person's to fill.

        ckcv report runs/patients
        ckcv report runs/patients --author 'Dr. A. Meier' --purpose aim.txt
        ckcv report runs/patients --short --out summary.html
        ckcv report runs/patients --for tripod-ai --template answers.toml
        ckcv report runs/patients --for tripod-ai --answers answers.toml --strict
    """
    form.check(out)
    page.check(form.guideline)
    if form.guideline is not None:
        _fill(folder, form.guideline, form, out)
        return
    written = write_report(
        folder,
        out,
        title=page.title,
        author=page.author,
        purpose=read_purpose(page.purpose),
        short=page.short,
    )
    say(f"report: {written}")


def _fill(folder: str, guideline: str, form: FormOptions, out: Path | None) -> None:
    """Write a form, or the file for its answers; end with code 1 if items are left, and that is a failure."""
    from ckcv_ray.runs.forms import fill_form, write_answers

    if form.template is not None:
        say(f"template: {write_answers(folder, guideline, form.template)}")
    if out is None:
        return
    filled = fill_form(folder, guideline, out, form.answers)
    say(f"form: {out}: {filled.counts}")
    if form.strict and (left := filled.open_numbers):
        say(f"{pluralize(len(left), 'item')} that a person has to fill: {', '.join(left)}")
        raise typer.Exit(1)
