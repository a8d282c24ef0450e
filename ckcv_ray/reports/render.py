"""How facts are shown: lines of a terminal, the card of a notebook, an HTML page, and Markdown.

All are templates over the sections of ``facts``. Whatever could be markup is escaped.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from textwrap import wrap

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.core.percent import ceil_percent, format_level, format_percent
from ckcv_ray.errors import cut, pluralize, printable
from ckcv_ray.reports.about import About
from ckcv_ray.reports.facts import facts
from ckcv_ray.reports.sections import CAUTION, DETAILS, FIRST, FOLDER, Fact, FactTable, Section
from ckcv_ray.runs.values import ResultValues

LINE_WIDTH = 80  # characters of a line of the first screen
INDENT, WIDE_INDENT = 10, 16  # of texts after names, on the first screen and in details
MAX_LINES = 16
MIN_COLUMN, MAX_CELL = 9, 70  # characters of a column of a table in a terminal
UNNAMED = {
    "accepted": "",
    "verdict": "",
    "claim": "  ",
    "": "",
}  # what begins their first line instead of a name
ROOM = 1.15  # of the scale of a card, times the largest share
MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")
BLANK = re.compile(r"\n{3,}")
FIGURE = re.compile(r"([-+≥]? ?[\d–]|at (least|most) |nothing|none)[^a-z]{0,24}")


def summarize(result: ResultValues, details: bool = False, folder: str = "") -> str:
    """Return a finished study as text: what may be quoted and what to do next, or the scores.

    Args:
        result: the study.
        details: whether what was counted, and every claim, follows.
        folder: where it is kept, for commands to paste; "" without one.
    """
    name = shlex.quote(folder)
    sections = [_place(section, name if folder else "") for section in facts(result, most=DETAILS)]
    if not details and result.finished is not None:
        command = f"ckcv status {name} --details" if folder else "summary(details=True)"
        sections = _shorten(sections, command)
    levels = [FIRST, DETAILS] if details else [FIRST]
    text = load_template("terminal.txt").render(sections=sections, levels=levels)
    return BLANK.sub("\n\n", text).strip("\n")


def _place(section: Section, folder: str) -> Section:
    """Return a section whose commands name the folder; without one, commands are left out."""
    kept = [fact for fact in section.facts if folder or FOLDER not in fact.text]
    return replace(section, facts=[replace(fact, text=fact.text.replace(FOLDER, folder)) for fact in kept])


def _shorten(sections: Sequence[Section], command: str) -> list[Section]:
    """Leave out what there is no room for: further advice, then cautions from the last to the second."""
    told = [fact for section in sections for fact in section.facts if fact.level == FIRST]
    lines = sum(len(wrap_fact(fact)) for fact in told)
    cautions, out = [fact for fact in told if fact.name == CAUTION], list[Fact]()
    for fact in [*(fact for fact in told if fact.name == "or"), *reversed(cautions[1:])]:
        if lines > MAX_LINES:
            lines -= len(wrap_fact(fact)) - (fact is cautions[-1] if cautions else 0)
            out.append(fact)
    more = sum(fact.name == CAUTION for fact in out)
    rest = Fact(CAUTION, f"{pluralize(more, 'caution')} more: {command}", FIRST)
    return [
        replace(
            section,
            facts=[
                rest if more and fact is cautions[-1] else fact
                for fact in section.facts
                if fact not in out or fact is cautions[-1]
            ],
        )
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
    rest = " " * min(len(first), width)
    lines = wrap(
        fact.text.replace(" %", "\u00a0%"),
        LINE_WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0%", " %") for line in lines]


def align_columns(table: FactTable) -> str:
    """Return a table as lines of text: names to the left, all else to the right."""
    shown = table.rows[: table.most]
    cells = [[cut(cell, MAX_CELL) for cell in row] for row in (table.heads, *shown)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            [
                f"  {first:<{widths[0]}}",
                *(f"{cell:>{max(MIN_COLUMN, width)}}" for cell, width in zip(rest, widths[1:], strict=True)),
            ]
        ).rstrip()
        for first, *rest in cells
    ]
    if more := len(table.rows) - len(shown):
        lines.append(f"  and {more:,} more (ckcv report)")
    return "\n".join([table.title, *lines, *([f"  {table.note}"] if table.note else [])])


def make_card(result: ResultValues) -> str:
    """Return what a notebook shows of a study: the first screen with its bound drawn, or the scores."""
    if result.finished is None:
        return load_template("card.html").render(
            told=(), bars=(), run_id=result.run_id, text=summarize(result)
        )
    placed = [_place(section, "") for section in facts(result, most=FIRST)]
    told = [fact for section in placed for fact in section.facts if fact.level == FIRST]
    values = {fact.name: fact.value for fact in told if fact.name in ("verdict", "measured", "baseline")}
    bars = []
    if values["verdict"] is not None:  # it is an error
        most = max([*values.values(), 1e-9]) * ROOM
        for name, share in values.items():
            proven = name == "verdict"
            figure = ceil_percent(share) if proven else format_percent(share)
            bars.append(("proven" if proven else name, figure, round(100 * share / most, 2)))
    return load_template("card.html").render(told=told, bars=bars, run_id=result.run_id, text="")


TOP = ("quote", "subject", "voids", "check", "next")  # sections of the first screen of a page
SHORT = {
    "performance": None,
    "data": None,
    "method": ("selection", "proof", "reference"),
    "claims": ("assumption",),
}


def render_page(result: ResultValues, sections: Sequence[Section], about: About) -> str:
    """Return the HTML page of a finished study.

    Args:
        result: what it knows.
        sections: all that it tells.
        about: what a person says of the report.
    """
    by_name = {section.name: section for section in sections}
    rest = [section for section in sections if section.name not in TOP]
    if about.short:
        rest = [_cut_section(by_name[name], names) for name, names in SHORT.items() if name in by_name]
    return load_template("page.html").render(
        title=make_title(result, about),
        heading=[
            f"finished {result.execution['finished']}",
            f"author: {about.author}" if about.author else "author not named",
            f"ckcv {'evaluate' if result.finished is None else 'run'} {result.run_id}",
            f"ckcv_ray {result.execution.get('package', 'of unknown version')}",
        ],
        about=about,
        top=[by_name[name] for name in TOP],
        rest=rest,
        level="" if result.finished is None else format_level(result.study.delta),
        task=result.task,
        run_id=result.run_id,
    )


def _cut_section(section: Section, names: Sequence[str] | None) -> Section:
    """Return a section for a short report: without what is folded, and of its facts those named."""
    kept = [fact for fact in section.facts if names is None or fact.name in names]
    tables = section.tables if section.name == "performance" else ()
    return replace(section, facts=kept, tables=tables, figures=())


def make_title(result: ResultValues, about: About) -> str:
    """Return the title of a report: the one that was asked for, or one with the target and the table."""
    source = result.execution.get("source") or result.task.source
    of_table = f" from {source}" if source and source != "arrays" else ""
    return about.title or f"Prediction of {result.task.target}{of_table}"


def render_markdown(title: str, sections: Sequence[Section], about: About) -> str:
    """Return all facts and tables as Markdown."""
    by_name = {section.name: section for section in sections}
    ordered = [by_name[name] for name in TOP] + [each for each in sections if each.name not in TOP]
    text = load_template("markdown.md").render(title=title, sections=ordered, about=about)
    return BLANK.sub("\n\n", text)


def find_figures(table: FactTable) -> list[bool]:
    """Return for each column of a table whether it has figures, which stand to the right."""
    return [
        all(FIGURE.match(cell) and len(cell) < MAX_CELL // 2 for cell in column)
        for column in zip(*table.rows, strict=True)
    ]


def escape_markdown(text: str) -> str:
    """Return text in which nothing is markup of Markdown, nor HTML inside it."""
    return MARKUP.sub(r"\\\1", text)


@cache
def load_template(name: str, package: str = "ckcv_ray.reports") -> Template:
    """Return a template of a package, compiled once; what it prints is escaped for the format of its name."""
    escaped = {".md": lambda text: escape_markdown(printable(text)), ".html": printable}
    _, dot, suffix = name.rpartition(".")
    finalize = escaped.get(dot + suffix, str)
    environment = Environment(
        loader=PackageLoader(package),
        auto_reload=False,
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        finalize=lambda value: finalize(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["line"] = lambda fact, level: "\n".join(wrap_fact(fact, level))
    environment.filters["columns"] = align_columns
    environment.filters["figures"] = find_figures
    return environment.get_template(name)
