"""Options of ``ckcv report`` about the form of a guideline."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ckcv_ray.cli.options import flag, make_option
from ckcv_ray.errors import InputError

PANEL = "Forms"


class FormOptions(NamedTuple):
    """What is asked of a form."""

    guideline: str | None  # its name; None for no form
    answers: Path | None  # file with a person's answers
    template: Path | None  # file to write for answers, instead of the form
    strict: bool  # whether items left to a person are a failure

    def check(self, out: Path | None) -> None:
        """Raise InputError unless the options go with each other, and with the file to write."""
        named = [name for name in ("answers", "template", "strict") if getattr(self, name)]
        if self.guideline is None and named:
            raise InputError(f"{named[0]} is about a form: name its guideline, such as --for tripod-ai")
        if self.guideline is not None and out is None and self.template is None:
            raise InputError(
                f"for={self.guideline!r} needs --out, the form to write: a name ending in .md or .html"
            )


def make_form_options(
    form: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="GUIDELINE",
            help="Fill the form of a guideline instead: tripod-ai, annex-iv (of the EU AI Act), stard-ai, "
            "ts-4213 (ISO/IEC) or model-card. It is no statement of conformity.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        make_option("Answers to items that only a person can fill: a .toml or .md file.", panel=PANEL),
    ] = None,
    template: Annotated[
        Path | None,
        make_option("Write a .toml or .md file with those items, for --answers.", panel=PANEL),
    ] = None,
    strict: Annotated[
        bool, flag("--strict", "End with code 1 if items are left that a person has to fill.", PANEL)
    ] = False,
) -> FormOptions:
    """Make what is asked of a form from options."""
    return FormOptions(form, answers, template, strict)
