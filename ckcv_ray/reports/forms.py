"""Forms of reporting guidelines: their items, filled with facts about a run, or left to a person.

The items of a guideline are a data file in ``frameworks``, in our own words: number, section, what is asked,
the facts about the run that answer it (``facts``), and what only a person knows. A filled form is never a
statement of conformity, and says so.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple

from ckcv_ray.errors import InputError, pluralize, printable
from ckcv_ray.reports.facts import Stored, tell
from ckcv_ray.validation import STRICT, check_choice, quote, read_as, suggest

GUIDELINES = ("tripod-ai", "annex-iv", "stard-ai", "ts-4213", "model-card")
NO_CONFORMITY = (
    "This form is filled after the items of the guideline named above, which are in our own words here. It "
    "is no statement of conformity: nobody has checked that the run, the study or this form meets the "
    "guideline, whose own text alone is binding."
)


@dataclass(frozen=True)
class Item:
    """One item of a guideline.

    Attributes:
        number: as the guideline numbers it.
        section: what it is part of.
        text: what is asked, in our own words.
        facts: names of the facts about a run that answer it.
        ask: what a person has to say, in a phrase; "" if the run says all of it.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    number: str
    section: str
    text: str
    facts: tuple[str, ...] = ()
    ask: str = ""


@dataclass(frozen=True)
class Form:
    """The items of a guideline.

    Attributes:
        title, source: of the guideline.
        note: what to know of the form before it is used.
        item: the items in their order.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    title: str
    source: str
    note: str
    item: tuple[Item, ...]


class FilledItem(NamedTuple):
    """An item with what the run and a person say.

    Attributes:
        item: what is asked.
        found: sentences from the run.
        answer: paragraphs of a person's answer.
    """

    item: Item
    found: tuple[str, ...]
    answer: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether a person has to answer, and has not."""
        return bool(self.item.ask) and not self.answer

    @property
    def state(self) -> str:
        """Who has filled it, or has to."""
        if self.is_open:
            return (
                "filled in part by the run; a person has to complete it"
                if self.found
                else "for a person to fill"
            )
        by = [name for name, part in (("the run", self.found), ("a person", self.answer)) if part]
        return f"filled by {' and '.join(by)}" if by else "the run has nothing to say here"


class FilledForm(NamedTuple):
    """A form filled for one run.

    Attributes:
        form: the items of the guideline.
        run_id: of the run.
        items: in their order.
    """

    form: Form
    run_id: str
    items: tuple[FilledItem, ...]

    @property
    def open_numbers(self) -> list[str]:
        """Numbers of the items that a person has to answer, and has not."""
        return [filled.item.number for filled in self.items if filled.is_open]

    @property
    def counts(self) -> str:
        """How many items are filled, as a sentence."""
        left = [filled for filled in self.items if filled.is_open]
        part, every = sum(bool(filled.found) for filled in left), pluralize(len(self.items), "item")
        return (
            f"{every}: {len(self.items) - len(left)} filled; {part} filled in part by the run, and "
            f"{len(left) - part} not, which a person has to fill."
        )


def read_form(name: str) -> Form:
    """Return the form of a guideline.

    Raises:
        InputError: there is none of this name.
    """
    file = files("ckcv_ray.reports") / "frameworks" / f"{check_choice('for', name, GUIDELINES)}.toml"
    return read_as(Form, tomllib.loads(file.read_text("utf-8")))


def fill_items(form: Form, run: Stored, answers: Mapping[str, str]) -> FilledForm:
    """Fill a form with facts about a run, and with a person's answers by the numbers of items.

    Raises:
        InputError: an answer is for an item that the form does not have.
    """
    numbers = [item.number for item in form.item]
    if unknown := [number for number in answers if number not in numbers]:
        raise InputError(
            f"answers: {form.title} has no item {quote(unknown[0])}{suggest(unknown[0], numbers)}; "
            "ckcv report --for ... --template FILE writes a file with all of them"
        )
    return FilledForm(
        form,
        run.result.run_id,
        tuple(
            FilledItem(
                item,
                tuple(printable(sentence) for name in item.facts for sentence in tell(run, name)),
                tuple(divide_paragraphs(answers.get(item.number, ""))),
            )
            for item in form.item
        ),
    )


def divide_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines divide, each as one line."""
    parts = text.replace("\r\n", "\n").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip()]
