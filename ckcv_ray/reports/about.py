"""What a person says of a report: its title, its author and what the model is for."""

from typing import NamedTuple

from ckcv_ray.errors import InputError
from ckcv_ray.validation import expect

MAX_LINE, MAX_PURPOSE = 200, 20_000  # characters


class About(NamedTuple):
    """What a person says of a report.

    Attributes:
        title: heading; "" for one with the target and the table.
        author: who answers for the report; "" if it is not said.
        purpose: what the model is for, paragraphs with empty lines between them; "" if it is not said.
        short: whether the report is one page: the number, its conditions, the rows and the performance.
    """

    title: str = ""
    author: str = ""
    purpose: str = ""
    short: bool = False

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the purpose."""
        return [" ".join(part.split()) for part in self.purpose.split("\n\n") if part.strip()]

    def check(self) -> None:
        """Check what was said.

        Raises:
            InputError: a text is too long, or a title or author is no single line.
        """
        for name, most in (("title", MAX_LINE), ("author", MAX_LINE), ("purpose", MAX_PURPOSE)):
            text = getattr(self, name)
            expect(name, text, str, f"text of at most {most:,} characters")
            if len(text) > most:
                raise InputError(f"{name} has {len(text):,} characters: at most {most:,} are allowed")
            if most == MAX_LINE and text and not text.isprintable():
                raise InputError(f"{name}={text!r}: expected one line of printable text")


NOTHING_SAID = About()
