"""Facts, in sections, as text and as markup, by templates of jinja: whatever could be markup is escaped."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.errors import cut, pluralize, printable

FIRST, DETAILS, PAGE = 1, 2, 3  # levels: of the first screen, of --details, of the page alone
CAUTION, QUESTION = "CAUTION", "QUESTION"  # facts that are set off from others
UNNAMED = {"accepted": "", "verdict": "", "claim": "  ", "": ""}  # what begins them instead of a name
LINE_WIDTH = 80  # characters of a line of the first screen
INDENT, WIDE_INDENT = 10, 16  # of texts after names, on the first screen and in details
MAX_LINES = 16
MIN_COLUMN, MAX_CELL = 9, 70  # characters of a column of a table in a terminal
BLANK = re.compile(r"\n{3,}")
FIGURE = re.compile(r"([-+≥]? ?[\d–]|at (least|most) |nothing|none)[^a-z]{0,24}")
TOP = ("quote", "subject", "voids", "check", "next")  # sections of the first screen of a page
MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")


@dataclass(frozen=True, eq=False)
class Fact:
    """One thing worth telling about a result. What stands side by side has one rule and one set of rows."""

    name: str  # in a word or two, unique to facts of one kind; "" for a sentence that needs none
    text: str  # in words, without the name and without a full stop unless it is a sentence
    level: int = PAGE  # ``FIRST``, ``DETAILS`` or ``PAGE``: where it is told first
    value: Any = None  # what the text says, as in ``Result.to_json``; None if that is no single value
    rule: str = ""  # that it is about; "" without one
    rows: str = ""  # that it is counted on; "" without any


@dataclass(frozen=True)
class FactTable:
    """Facts that are told side by side."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of each names it
    note: str = ""  # what to know of it, or a traceback, of several lines
    level: int = PAGE
    folded: bool = False  # whether a reader of the page has to ask for it
    most: int | None = None  # rows that a terminal shows; all of them by default


@dataclass(frozen=True)
class Section:
    """Facts that belong together, but for those without a text, with pictures where these are drawn."""

    name: str  # identifies it
    title: str
    facts: Iterable[Fact] = ()
    tables: Sequence[FactTable] = ()
    figures: Sequence[Any] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", [fact for fact in self.facts if fact.text])


def divide_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines divide, each as one line."""
    parts = text.replace("\r\n", "\n").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip()]


def escape_markdown(text: str) -> str:
    """Return text in which nothing is markup of Markdown, nor HTML inside it."""
    return MARKUP.sub(r"\\\1", text)


@cache
def load_template(name: str, package: str, **filters: Callable[..., object]) -> Template:
    """Return a template of a package, compiled once; what it prints is escaped for the format of its name.

    Args:
        name: of its file.
        package: where the folder of templates is.
        filters: functions that it may call, beside "paragraphs".
    """
    escaped = {".md": lambda text: escape_markdown(printable(text)), ".html": printable}
    finalize = escaped.get(Path(name).suffix, str)
    environment = Environment(
        loader=PackageLoader(package),
        auto_reload=False,
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        finalize=lambda value: finalize(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"paragraphs": divide_paragraphs, **filters}
    return environment.get_template(name)


def show_text(sections: Sequence[Section], details: bool, command: str = "") -> str:
    """Return sections as text; the first screen is cut to its length if a ``command`` shows more."""
    if command and not details:
        sections = _shorten(sections, command)
    levels = [FIRST, DETAILS] if details else [FIRST]
    text = fill_template("terminal.txt", sections=sections, levels=levels)
    return BLANK.sub("\n\n", text).strip("\n")


def list_first_facts(sections: Sequence[Section]) -> list[Fact]:
    """Return the facts of the first screen."""
    return [fact for section in sections for fact in section.facts if fact.level == FIRST]


def _shorten(sections: Sequence[Section], command: str) -> list[Section]:
    """Leave out what there is no room for: further advice, then cautions from the last to the second."""
    told, instead = list_first_facts(sections), dict[Fact, list[Fact]]()
    cautions, lines = [fact for fact in told if fact.name == CAUTION], sum(map(len, map(wrap_fact, told)))
    for fact in [*(fact for fact in told if fact.name == "or"), *reversed(cautions[1:])]:
        if lines > MAX_LINES:
            lines -= len(wrap_fact(fact)) - (fact is cautions[-1] if cautions else 0)
            instead[fact] = []
    if more := sum(fact.name == CAUTION for fact in instead):
        instead[cautions[-1]] = [Fact(CAUTION, f"{pluralize(more, 'caution')} more: {command}", FIRST)]
    return [
        replace(section, facts=[new for fact in section.facts for new in instead.get(fact, [fact])])
        for section in sections
    ]


def wrap_fact(fact: Fact, level: int = FIRST) -> list[str]:
    """Return the lines of a fact, with its name before the first; a percent sign stays with its number."""
    width = INDENT if level == FIRST else WIDE_INDENT
    first = UNNAMED.get(fact.name, f"{fact.name:<{width}}")
    if len(fact.name) >= width:
        first = f"{fact.name}: "
    if level != FIRST:
        return [first + fact.text]
    text, rest = fact.text.replace(" %", "\u00a0%"), " " * min(len(first), width)
    lines = wrap(text, LINE_WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.replace("\u00a0%", " %") for line in lines]


def _align_columns(table: FactTable) -> str:
    """Return a table as lines of text: names to the left, all else to the right."""
    shown = table.rows[: table.most]
    cells = [[cut(cell, MAX_CELL) for cell in row] for row in (table.heads, *shown)]
    name, *widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [table.title]
    for first, *rest in cells:
        right = (f"{cell:>{max(MIN_COLUMN, width)}}" for cell, width in zip(rest, widths, strict=True))
        lines.append("  ".join([f"  {first:<{name}}", *right]).rstrip())
    if more := len(table.rows) - len(shown):
        lines.append(f"  and {more:,} more (ckcv report)")
    return "\n".join([*lines, *([f"  {table.note}"] if table.note else [])])


def fill_card(told: Sequence[Fact], label: str, text: str = "", bars: Sequence[object] = ()) -> str:
    """Return facts, and a text, as a notebook shows them; the label names what they are of."""
    return fill_template("card.html", told=told, bars=bars, label=label, text=text)


def divide_sections(sections: Sequence[Section]) -> tuple[list[Section], list[Section]]:
    """Return the sections of the first screen, in its order, and the others."""
    by_name = {section.name: section for section in sections}
    return [by_name.pop(name) for name in TOP], [*by_name.values()]


def _find_figures(table: FactTable) -> list[bool]:
    """Return for each column of a table whether it has figures, which stand to the right."""
    return [
        all(FIGURE.match(row[column]) and len(row[column]) < MAX_CELL // 2 for row in table.rows)
        for column in range(len(table.heads))
    ]


def fill_template(name: str, **values: object) -> str:
    """Return a template of reports, filled with values."""
    template = load_template(
        name, "ckcv_ray.reports", lines=wrap_fact, columns=_align_columns, figures=_find_figures
    )
    return template.render(**values)
