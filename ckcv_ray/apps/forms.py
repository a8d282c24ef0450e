"""Forms of reporting guidelines: their items, filled with facts about a run, or left to a person.

The items of a guideline are a data file in ``frameworks``, in our own words: number, section, what is asked,
the facts about the run that answer it (``facts``), and what only a person knows. A filled form is never a
statement of conformity, and says so.

A filled form is Markdown or HTML. Names, labels and answers come from data and from people: whatever could be
markup is escaped. The same run and answers give the same bytes.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from typing import NamedTuple

from ckcv_ray.errors import InputError, Stored, check_choice, pluralize, quote, read_as, suggest
from ckcv_ray.reports.facts import CAUTION, QUESTION, Fact, Section
from ckcv_ray.reports.render import MARKDOWN, UNNAMED, divide_paragraphs, load_template

GUIDELINES = ("tripod-ai", "annex-iv", "stard-ai", "ts-4213", "model-card")
NO_CONFORMITY = (
    "This form follows the items of the guideline named above, which are given here in our own words. It is "
    "not a statement of conformity: nobody has checked that the run, the study or this form meets the "
    "guideline, and only the guideline's own text is binding."
)
SUFFIXES = (MARKDOWN, ".html")


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
        title, source: those of the guideline.
        note: what to know about the form before using it.
        item: the items in their order.
    """

    title: str
    source: str
    note: str
    item: tuple[Item, ...]


class FilledForm(NamedTuple):
    """A form filled for one run.

    Attributes:
        content: the file: Markdown, or one HTML page that loads nothing.
        sections: for each item in order, what the run and a person say, and what a person still has to.
        open_numbers: numbers of the items that a person has to answer but has not.
        counts: how many items are filled, as a sentence.
    """

    content: bytes
    sections: list[Section]
    open_numbers: list[str]
    counts: str


def read_form(name: str) -> Form:
    """Return the form of a guideline.

    Raises:
        InputError: there is no form of this name.
    """
    file = files("ckcv_ray.apps") / "frameworks" / f"{check_choice('for', name, GUIDELINES)}.toml"
    return read_as(Form, tomllib.loads(file.read_text("utf-8")))


def fill_items(
    form: Form, run_id: str, sections: Sequence[Section], answers: Mapping[str, str], suffix: str
) -> FilledForm:
    """Fill a form with what a run tells, and with a person's answers by the numbers of items, for a file.

    Raises:
        InputError: an answer is for an item that the form does not have.
    """
    numbers = [item.number for item in form.item]
    if unknown := [number for number in answers if number not in numbers]:
        raise InputError(
            f"answers: {form.title} has no item {quote(unknown[0])}{suggest(unknown[0], numbers)}; "
            "ckcv report --for ... --template FILE writes a file with all of them"
        )
    told, left, partly = list[Section](), list[str](), 0
    for item in form.item:
        sentences = list[str]()  # facts of these names, or below them ("packages.numpy"), and tables
        for name, section in product(item.facts, sections):
            for fact in section.facts:
                if fact.name == name or fact.name.startswith(f"{name}."):
                    text = f"{UNNAMED.get(fact.name, f'{fact.name}: ').strip()} {fact.text}".strip()
                    sentences.append(text if text.endswith(".") else f"{text}.")
            for table in [table for table in section.tables if table.title == name and table.rows]:
                for first, *rest in table.rows:
                    cells = map(" ".join, zip(table.heads[1:], rest, strict=True))
                    sentences.append(f"{first}: {', '.join(cells)}.")
                sentences.append(table.note)
        found = [Fact("from the run", text) for text in sentences]
        said = [Fact("by a person", text) for text in divide_paragraphs(answers.get(item.number, ""))]
        kind, title = "item", f"{item.section}, {item.number}: {item.text}"
        if item.ask and not said:
            kind, said = "open", [Fact("for a person to fill", item.ask)]  # the page marks such sections
            left.append(item.number)
            partly += bool(found)
        nothing = Fact("", "the run says nothing about this")
        told.append(Section(f"{kind}-{len(told)}", title, [*found, *said] or [nothing]))
    quoted = [fact for section in sections if section.name == "quote" for fact in section.facts]
    verdict = [fact.text for fact in quoted if fact.name in ("accepted", "verdict")]
    verdict += [f"{fact.name}: {fact.text}" for fact in quoted if fact.name in (CAUTION, QUESTION)]
    filled = f"{pluralize(len(told), 'item')}: {len(told) - len(left)} filled"
    counts = f"{filled}; {len(left)} left to a person, {partly} of them filled in part by the run."
    about = (NO_CONFORMITY, *verdict, f"Source: {form.source}.", form.note, counts)
    values = {"title": f"{form.title}: run {run_id}", "purpose": "\n\n".join(about)}
    if suffix == MARKDOWN:
        text = load_template("markdown.md").render(sections=told, **values)
    else:
        answered = " and a person's answers" * bool(answers)
        values |= {"origin": "ckcv report", "maker": f"ckcv report from the files of run {run_id}{answered}"}
        text = load_template("page.html").render(top=(), rest=told, heading=[], short=False, **values)
    return FilledForm(text.encode(), told, left, counts)
