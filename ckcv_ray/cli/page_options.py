"""Options of ``ckcv report`` about its page."""

from pathlib import Path
from typing import Annotated, NamedTuple

from ckcv_ray.cli.options import flag, make_option
from ckcv_ray.errors import InputError
from ckcv_ray.reports.about import MOST_PURPOSE

PAGE_PANEL = "Page"


class PageOptions(NamedTuple):
    """What is asked of the page."""

    title: str  # of the report; "" if it is not said
    author: str  # "" if it is not said
    purpose: Path | None  # text file that says what the model is for
    short: bool  # whether it is one page

    def check(self, guideline: str | None) -> None:
        """Raise InputError if something is asked of the page, and a form is to be written instead."""
        named = [name for name in self._fields if getattr(self, name)]
        if guideline is not None and named:
            raise InputError(f"{named[0]} is about the HTML report: leave it out, or leave --for out")


def make_page_options(
    title: Annotated[str, make_option("Heading of the report.", "the target and the table", PAGE_PANEL)] = "",
    author: Annotated[
        str, make_option("Who answers for the report, such as 'Dr. A. Meier'.", panel=PAGE_PANEL)
    ] = "",
    purpose: Annotated[
        Path | None,
        make_option(
            "Text file that says what the model is for; an empty line begins a paragraph.", panel=PAGE_PANEL
        ),
    ] = None,
    short: Annotated[
        bool,
        flag(
            "--short", "Make one page: the number, its conditions, the rows and the performance.", PAGE_PANEL
        ),
    ] = False,
) -> PageOptions:
    """Make what is asked of the page from options."""
    return PageOptions(title, author, purpose, short)


def read_purpose(file: Path | None) -> str:
    """Return the text of a file that says what a model is for; "" without a file.

    Raises:
        InputError: it cannot be read, is no UTF-8 text, or is too long.
    """
    if file is None:
        return ""
    try:
        with file.open("rb") as opened:
            content = opened.read(4 * MOST_PURPOSE + 1)
        text = content.decode()
    except OSError as error:
        raise InputError(f"cannot read --purpose {str(file)!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"--purpose {str(file)!r} is no text in UTF-8") from None
    if len(text) > MOST_PURPOSE:
        raise InputError(f"--purpose {str(file)!r} has more than {MOST_PURPOSE:,} characters")
    return text
