"""How facts are shown: lines of a terminal, the card of a notebook, an HTML page, and Markdown.

All are templates over the sections of ``facts``. Whatever could be markup is escaped. A page is made from the
run folder alone: nothing is unpickled, downloaded or fitted.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import cast

from ckcv_ray.core.percent import ceil_percent, format_level, format_percent
from ckcv_ray.engine.forecast import Plan
from ckcv_ray.errors import cut, pluralize
from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns
from ckcv_ray.reports.facts import (
    CAUTION,
    DETAILS,
    FIRST,
    FOLDER,
    UNNAMED,
    Fact,
    FactTable,
    Section,
    facts,
    tell_failures,
)
from ckcv_ray.reports.figures import draw_performance, draw_scores, draw_search
from ckcv_ray.reports.templates import load_template
from ckcv_ray.runs.certified import Certified
from ckcv_ray.runs.judged import Judged, judge_rows, read_judged
from ckcv_ray.runs.load import load, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.scored import Scored
from ckcv_ray.storage import formats
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import check_page, write_report
from ckcv_ray.tables.task import Task

LINE_WIDTH = 80  # characters of a line of the first screen
INDENT, WIDE_INDENT = 10, 16  # of texts after names, on the first screen and in details
MAX_LINES = 16
MIN_COLUMN, MAX_CELL = 9, 70  # characters of a column of a table in a terminal
ROOM = 1.15  # of the scale of a card, times the largest share
BLANK = re.compile(r"\n{3,}")
FIGURE = re.compile(r"([-+≥]? ?[\d–]|at (least|most) |nothing|none)[^a-z]{0,24}")
TOP = ("quote", "subject", "voids", "check", "next")  # sections of the first screen of a page
SHORT = {  # the others of a short page, with the facts that it tells of them; None for all
    "performance": None,
    "data": None,
    "method": ("selection", "reference"),
    "claims": ("proven", "assumption"),
}
MARKDOWN = ".md"


def summarize(result: Result, details: bool = False, folder: str = "") -> str:
    """Return a finished study as text: what may be quoted and what to do next, or the scores.

    Args:
        result: the study.
        details: whether what was counted, and every claim, follows.
        folder: where it is kept, for commands to paste; "" without one.
    """
    name = shlex.quote(folder)
    told = facts(result, most=DETAILS if details else FIRST)
    sections = [_place(section, name if folder else "") for section in told]
    command = f"ckcv status {name} --details" if folder else "summary(details=True)"
    return show_text(sections, details, command if result.claims else "")


def show_text(sections: Sequence[Section], details: bool, command: str = "") -> str:
    """Return sections as text; the first screen is cut to its length if a ``command`` shows more."""
    if command and not details:
        sections = _shorten(sections, command)
    levels = [FIRST, DETAILS] if details else [FIRST]
    text = _fill("terminal.txt", sections=sections, levels=levels)
    return BLANK.sub("\n\n", text).strip("\n")


def _place(section: Section, folder: str) -> Section:
    """Return a section whose commands name the folder; without one, commands are left out."""
    kept = [fact for fact in section.facts if folder or FOLDER not in fact.text]
    return replace(section, facts=[replace(fact, text=fact.text.replace(FOLDER, folder)) for fact in kept])


def _list_first(sections: Sequence[Section]) -> list[Fact]:
    return [fact for section in sections for fact in section.facts if fact.level == FIRST]


def _shorten(sections: Sequence[Section], command: str) -> list[Section]:
    """Leave out what there is no room for: further advice, then cautions from the last to the second."""
    told, instead = _list_first(sections), dict[Fact, list[Fact]]()
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


def make_card(result: Result) -> str:
    """Return what a notebook shows of a study: the first screen with its bound drawn, or the scores."""
    told, bars, text = list[Fact](), list[tuple[str, str, float]](), ""
    if not result.claims:
        text = summarize(result)
    else:
        told = _list_first([_place(section, "") for section in facts(result, most=FIRST)])
    values = {fact.name: fact.value for fact in told if fact.name in ("verdict", "measured", "baseline")}
    if values.get("verdict") is not None:  # it is an error
        most = max([*values.values(), 1e-9]) * ROOM
        for name, share in values.items():
            proven = name == "verdict"
            figure = ceil_percent(share) if proven else format_percent(share)
            bars.append(("proven" if proven else name, figure, round(100 * share / most, 2)))
    return _fill("card.html", told=told, bars=bars, label=f"result {result.run_id}", text=text)


def make_plan_card(plan: Plan) -> str:
    """Return what a notebook shows of a plan: what it takes, and the rows that claims need."""
    told = [Fact("verdict", plan.counts, FIRST), *(Fact(*cost, FIRST) for cost in plan.costs.items())]
    return fill_card(told, "plan", "\n".join(plan.list_needs()))


def fill_card(told: Sequence[Fact], label: str, text: str = "") -> str:
    """Return facts, and a text, as a notebook shows them; the label names what they are of."""
    return _fill("card.html", told=told, bars=(), label=label, text=text)


def report(
    folder: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    title: str = "",
    author: str = "",
    purpose: str = "",
    short: bool = False,
) -> str:
    """Write a report of a finished run, or of the scores of a procedure, as HTML; return its path.

    The report is made from the run folder alone. Nothing is unpickled or fitted; the page loads nothing and
    contains no script.

    Args:
        folder: run folder.
        out: file to write; by default report.html in the folder. A name that ends in .md is one of Markdown,
            without figures.
        title: heading; by default one with the target and the table.
        author: who answers for the report.
        purpose: what the model is for, paragraphs with empty lines between them.
        short: make a single page: the number, its conditions, the rows and the performance.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
        InputError: the report cannot be written, or would replace a file that is no report.
    """
    run = RunFolder(folder)
    run.require()
    if out is not None:
        check_page(run.files, out, "a report")
    if out is not None and Path(out).suffix.lower() == MARKDOWN:
        return write_report(run.files, make_markdown(folder, title, purpose), out)
    return write_report(run.files, make_page(folder, title, author, purpose, short), out)


def make_markdown(folder: str | PathLike[str], title: str = "", purpose: str = "") -> str:
    """Return all that a finished run in a folder tells as Markdown, without figures; see ``report``."""
    result = load(folder)
    top, rest = _divide(facts(result, manifest={MANIFEST: RunFolder(folder).sha256(MANIFEST)}))
    heading = _make_title(result, title)
    return BLANK.sub("\n\n", _fill("markdown.md", title=heading, sections=[*top, *rest], purpose=purpose))


def make_page(
    folder: str | PathLike[str], title: str = "", author: str = "", purpose: str = "", short: bool = False
) -> str:
    """Return the HTML page of a finished run; see ``report``.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
    """
    result, run = load(folder), RunFolder(folder)
    if isinstance(result, Certified):
        failed = result.execution["evaluations"]["failed"]
        failures = tuple(replay(folder, result.problem).failures()) if failed else ()
        judged: Judged | None = judge_rows(result)
        level = format_level(result.study.delta) if result.claims else ""
        pictures = {"search": draw_search(result)} if result.task.classes else {}
    else:
        scored, judged, level = cast(Scored, result), None, ""
        failures = scored.computed.failures
        if scored.study.save_predictions:
            columns = list_held_out_columns(result.problem)
            held_out = formats.read_table(run.files, HELD_OUT, result.run_id, columns)
            judged = read_judged(scored, held_out)
        pictures = {f"score-{score.name}": [*draw_scores(scored, score)] for score in scored.scores}
    pictures["performance"] = [*draw_performance(result, judged)]
    told = facts(result, judged, {MANIFEST: run.sha256(MANIFEST)}) + tell_failures(failures, result.problem)
    top, rest = _divide([replace(each, figures=pictures.get(each.name, ())) for each in told])
    if short:
        by_name = {section.name: section for section in rest}
        rest = [_cut_section(by_name[name], names) for name, names in SHORT.items() if name in by_name]
    origin = f"ckcv {result.study.command} {result.run_id}"
    heading = [
        f"finished {result.execution['finished']}",
        f"author: {author}" if author else "author not named",
        origin,
        f"ckcv_ray {result.execution.get('package', 'of unknown version')}",
    ]
    return fill_page(
        _make_title(result, title),
        heading,
        [*top, *rest],
        result.task,
        origin,
        f"ckcv report from the files of run {result.run_id}",
        level=level,
        purpose=purpose,
        short=short,
    )


def fill_page(
    title: str,
    heading: Sequence[str],
    sections: Sequence[Section],
    task: Task,
    origin: str,
    maker: str,
    level: str = "",
    purpose: str = "",
    short: bool = False,
) -> str:
    """Return a page of sections, of which those of the first screen are named in ``TOP``.

    Args:
        title, heading: what stands above them.
        sections: what it tells.
        task: what rows are like.
        origin: names what it is of, in the title of the window.
        maker: made it, and of what.
        level: of what is proven; "" if nothing is.
        purpose: paragraphs that say what the model is for.
        short: whether it is a single page.
    """
    top, rest = _divide(sections)
    return _fill(
        "page.html",
        title=title,
        heading=heading,
        purpose=purpose,
        short=short,
        top=top,
        rest=rest,
        level=level,
        task=task,
        origin=origin,
        maker=maker,
    )


def _divide(sections: Sequence[Section]) -> tuple[list[Section], list[Section]]:
    """Return the sections of the first screen, in its order, and the others."""
    by_name = {section.name: section for section in sections}
    return [by_name.pop(name) for name in TOP], [*by_name.values()]


def _cut_section(section: Section, names: Sequence[str] | None) -> Section:
    """Return a section for a short report: without what is folded, and of its facts those named."""
    kept = [fact for fact in section.facts if names is None or fact.name in names]
    tables = section.tables if section.name == "performance" else ()
    return replace(section, facts=kept, tables=tables, figures=())


def _make_title(result: Result, title: str) -> str:
    source = result.execution.get("source") or result.task.source
    of_table = f" from {source}" if source and source != "arrays" else ""
    return title or f"Prediction of {result.task.target.name}{of_table}"


def _find_figures(table: FactTable) -> list[bool]:
    """Return for each column of a table whether it has figures, which stand to the right."""
    return [
        all(FIGURE.match(row[column]) and len(row[column]) < MAX_CELL // 2 for row in table.rows)
        for column in range(len(table.heads))
    ]


def _fill(name: str, **values: object) -> str:
    template = load_template(
        name, "ckcv_ray.reports", lines=wrap_fact, columns=_align_columns, figures=_find_figures
    )
    return template.render(**values)
