"""Forms of reporting guidelines: their items, filled with facts about a run, or left to a person.

The items of a guideline are a data file in ``frameworks``, in our own words: number, section, what is asked,
the facts about the run that answer it (``facts``), and what only a person knows. A filled form is never a
statement of conformity, and says so.

A person answers in TOML, with one text for each number: ``"5a" = "..."``. An empty answer is none.

A filled form is Markdown or HTML. Names, labels and answers come from data and from people: whatever could be
markup is escaped. The same run and answers give the same bytes.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from ckcv_ray.errors import InputError, convert_errors, pluralize
from ckcv_ray.reports.facts import Section
from ckcv_ray.reports.render import UNNAMED, divide_paragraphs, load_template
from ckcv_ray.validation import Stored, check_choice, quote, read_as, suggest

GUIDELINES = ("tripod-ai", "annex-iv", "stard-ai", "ts-4213", "model-card")
NO_CONFORMITY = (
    "This form is filled after the items of the guideline named above, which are in our own words here. It "
    "is no statement of conformity: nobody has checked that the run, the study or this form meets the "
    "guideline, whose own text alone is binding."
)


@dataclass(frozen=True)
class Item(Stored):
    """One item of a guideline.

    Attributes:
        number: as the guideline numbers it.
        section: what it is part of.
        text: what is asked, in our own words.
        facts: names of the facts about a run that answer it.
        ask: what a person has to say, in a phrase; "" if the run says all of it.
    """

    number: str
    section: str
    text: str
    facts: tuple[str, ...] = ()
    ask: str = ""


@dataclass(frozen=True)
class Form(Stored):
    """The items of a guideline.

    Attributes:
        title, source: of the guideline.
        note: what to know of the form before it is used.
        item: the items in their order.
    """

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
            return "for a person to complete"
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
    file = files("ckcv_ray.apps") / "frameworks" / f"{check_choice('for', name, GUIDELINES)}.toml"
    return read_as(Form, tomllib.loads(file.read_text("utf-8")))


def fill_items(
    form: Form, run_id: str, sections: Sequence[Section], answers: Mapping[str, str]
) -> FilledForm:
    """Fill a form with what a run tells, and with a person's answers by the numbers of items.

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
        run_id,
        tuple(
            FilledItem(
                item,
                tuple(text for name in item.facts for text in list_sentences(sections, name)),
                tuple(divide_paragraphs(answers.get(item.number, ""))),
            )
            for item in form.item
        ),
    )


def list_sentences(sections: Sequence[Section], name: str) -> Iterator[str]:
    """Yield as sentences the facts of a name, or below it ("packages.numpy"), and rows of such a table."""
    for section in sections:
        for fact in section.facts:
            if fact.name == name or fact.name.startswith(f"{name}."):
                text = f"{UNNAMED.get(fact.name, f'{fact.name}: ').strip()} {fact.text}".strip()
                yield text if text.endswith(".") else f"{text}."
        for table in section.tables:
            for first, *rest in table.rows if table.title == name else ():
                cells = ", ".join(f"{head} {cell}" for head, cell in zip(table.heads[1:], rest, strict=True))
                yield f"{first}: {cells}."


SUFFIXES = (".md", ".html")


def parse_answers(name: str, text: str) -> dict[str, str]:
    """Return answers by the numbers of items; empty ones are left out.

    Args:
        name: of the file.
        text: its content.

    Raises:
        InputError: the text is not TOML, or an answer is no text.
    """
    with convert_errors(InputError, f"answers={name!r} is no TOML with a text in quotes for each item"):
        found = read_as(dict[str, str], tomllib.loads(text))
    return {number: answer for number, answer in found.items() if answer.strip()}


def write_template(form: Form) -> str:
    """Return a file for the answers to every item that asks a person, with what is asked as comments."""
    head = f"# Answers to items of {form.title}. An empty answer leaves an item open.\n"
    return head + "".join(
        f'\n# {item.text}\n# {item.ask}\n"{item.number}" = ""\n' for item in form.item if item.ask
    )


def render_form(filled: FilledForm, suffix: str) -> bytes:
    """Return a filled form as Markdown, or as one HTML page that loads nothing, by the suffix of its file."""
    grouped = groupby(filled.items, key=lambda found: found.item.section)
    sections = [(section, list(items)) for section, items in grouped]
    page = load_template(f"form{suffix}", "ckcv_ray.apps").render(
        filled=filled, sections=sections, no_conformity=NO_CONFORMITY
    )
    return page.encode()
