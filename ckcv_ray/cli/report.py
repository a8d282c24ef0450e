"""Command report."""

from pathlib import Path
from typing import Annotated

import typer

from ckcv_ray.cli.options import Folder, flag, make_option
from ckcv_ray.cli.output import say
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.runs.report import report as write_report

FORM, SIGNATURE = "Forms", "Signature"


def report(
    folder: Folder,
    out: Annotated[
        Path | None,
        make_option("File to write: HTML; with --for .md, .html or .docx.", "report.html in the folder"),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="GUIDELINE",
            help="Fill the form of a guideline instead: tripod-ai, annex-iv (of the EU AI Act), stard-ai, "
            "ts-4213 (ISO/IEC) or model-card. It is no statement of conformity.",
            show_default=False,
            rich_help_panel=FORM,
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        make_option("Answers to items that only a person can fill: a .toml or .md file.", panel=FORM),
    ] = None,
    template: Annotated[
        Path | None,
        make_option("Write a .toml or .md file with those items, for --answers, and no form.", panel=FORM),
    ] = None,
    strict: Annotated[
        bool, flag("--strict", "End with code 1 if items are left that a person has to fill.", FORM)
    ] = False,
    author: Annotated[
        str | None,
        typer.Option(
            "--sign",
            metavar="NAME",
            help="Store this name, the date and the digest of the manifest in signatures.json, next to the "
            "manifest; ckcv verify says whether the manifest has changed since. It is no cryptographic "
            "signature: anybody who can write to the folder can write any name.",
            show_default=False,
            rich_help_panel=SIGNATURE,
        ),
    ] = None,
) -> None:
    """Write an HTML report of a finished run, or the form of a reporting guideline; sign the run.

    The report is one file, made from the run folder alone: claims, figures, tables, cost, environment. It
    loads nothing and contains no script; nothing is unpickled. A form has the items of a guideline, filled
    from the run or marked as a person's to fill.

        ckcv report runs/patients
        ckcv report runs/patients --out patients.html
        ckcv report runs/patients --for tripod-ai --template answers.toml
        ckcv report runs/patients --for tripod-ai --answers answers.toml --out tripod.docx --strict
        ckcv report runs/patients --sign "Jane Doe"
    """
    _check(form, out, {"answers": answers, "template": template, "strict": strict or None})
    if author is not None:
        from ckcv_ray.runs.sign import sign

        signed = sign(folder, author)
        say(f"signed: {signed.author!r}, {signed.date}, manifest {signed.manifest[:12]} (not cryptographic)")
    if form is None:
        say(f"report: {write_report(folder, out)}")
        return
    from ckcv_ray.runs.forms import fill_form, write_answers

    if template is not None:
        say(f"template: {write_answers(folder, form, template)}")
        return
    assert out is not None
    filled = fill_form(folder, form, out, answers)
    say(f"form: {out}: {filled.counts}")
    if strict and (left := filled.open_numbers):
        say(f"{pluralize(len(left), 'item')} a person has to fill: {', '.join(left)}")
        raise typer.Exit(1)


def _check(form: str | None, out: Path | None, given: dict[str, object]) -> None:
    """Raise InputError unless the options go with each other."""
    named = [name for name, value in given.items() if value is not None]
    if form is None and named:
        raise InputError(f"{named[0]} is about a form: name its guideline, such as --for tripod-ai")
    if form is not None and out is None and given["template"] is None:
        raise InputError(
            f"for={form!r} needs --out, the form to write: a name that ends in .md, .html or .docx"
        )
