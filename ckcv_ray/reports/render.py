"""How facts are shown: as lines in a terminal, a card in a notebook, an HTML page, and Markdown.

All are templates over sections of ``facts``. Whatever could be markup is escaped. A page is made from the
run folder alone: nothing is unpickled, downloaded or fitted.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.engine.forecast import Plan
from ckcv_ray.errors import StoreError, ceil_percent, cut, format_level, format_percent, pluralize, printable
from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns, read_outputs
from ckcv_ray.reports.facts import (
    CAUTION,
    DETAILS,
    FIRST,
    FOLDER,
    Fact,
    FactTable,
    Section,
    facts,
    tell_failures,
)
from ckcv_ray.reports.figures import draw_folds, draw_landscape, draw_performance, draw_scores
from ckcv_ray.runs.finished import load, replay
from ckcv_ray.runs.judged import NOT_CLAIMED, SEE, Judged, judge_rows
from ckcv_ray.runs.result import Certified, Result, Scored, find_kept, format_setting
from ckcv_ray.storage.files import read_table
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import check_page, write_report

UNNAMED = {"accepted": "", "verdict": "", "claim": "  ", "": ""}  # what begins these facts instead of a name
LINE_WIDTH = 80  # characters of a line of the first screen
INDENT, WIDE_INDENT = 10, 16  # of texts after names, on the first screen and in details
MAX_LINES = 16
MIN_COLUMN, MAX_CELL = 9, 70  # characters of a table column in a terminal
BLANK = re.compile(r"\n{3,}")
FIGURE = re.compile(r"([-+≥]? ?[\d–]|at (least|most) |nothing|none)[^a-z]{0,24}")
TOP = ("quote", "subject", "voids", "check", "next")  # sections of the first screen of a page
MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")  # in Markdown, and HTML inside it
ROOM = 1.15  # the end of a card's scale, times the largest share
SHORT = {  # the other sections of a short page, with the facts that it takes from them; None for all
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
        details: whether to add what was counted, and every claim.
        folder: where it is kept, for commands to paste, which are left out without one.
    """
    name, sections = shlex.quote(folder), list[Section]()
    for section in facts(result, most=DETAILS if details else FIRST):
        kept = [fact for fact in section.facts if folder or FOLDER not in fact.text]
        named = [replace(fact, text=fact.text.replace(FOLDER, name)) for fact in kept]
        sections.append(replace(section, facts=named))
    command = f"ckcv status {name} --details" if folder else "summary(details=True)"
    return show_text(sections, details, command if result.claims else "")


def make_card(result: Result) -> str:
    """Return what a notebook shows of a study: the first screen with its bound drawn, or the scores."""
    told, bars, text = list[Fact](), list[tuple[str, str, float]](), ""
    if not result.claims:
        text = summarize(result)
    else:
        known = [fact for section in facts(result, most=FIRST) for fact in section.facts]
        told = [fact for fact in known if fact.level == FIRST and FOLDER not in fact.text]
    values = {fact.name: fact.value for fact in told if fact.name in ("verdict", "measured", "baseline")}
    if values.get("verdict") is not None:  # it is an error
        most = max([*values.values(), 1e-9]) * ROOM
        for name, share in values.items():
            proven = name == "verdict"
            figure = ceil_percent(share) if proven else format_percent(share)
            bars.append(("proven" if proven else name, figure, round(100 * share / most, 2)))
    return load_template("card.html").render(told=told, bars=bars, label=f"result {result.run_id}", text=text)


def make_plan_card(plan: Plan) -> str:
    """Return what a notebook shows of a plan: what it takes, and the rows that claims need."""
    told = [Fact("verdict", plan.counts, FIRST), *(Fact(*cost, FIRST) for cost in plan.costs.items())]
    needs = "\n".join(plan.list_needs())
    return load_template("card.html").render(told=told, bars=(), label="plan", text=needs)


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
        out: file to write; by default report.html in the folder. A name that ends in .md gives Markdown,
            without figures.
        title: heading; by default, one with the target and the table.
        author: who answers for the report.
        purpose: what the model is for, in paragraphs separated by empty lines.
        short: make a single page: the number, its conditions, the rows and the performance.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
        InputError: the report cannot be written, or would replace a file that is not a report.
    """
    run = RunFolder(folder)
    run.require()
    if out is not None:
        check_page(run.files, out, "a report")
    if out is None or Path(out).suffix.lower() != MARKDOWN:
        return write_report(run.files, make_page(folder, title, author, purpose, short), out)
    result = load(folder)
    top, rest = divide_sections(facts(result, manifest={MANIFEST: run.sha256(MANIFEST)}))
    told = {"title": _make_title(result, title), "purpose": purpose, "sections": [*top, *rest]}
    return write_report(run.files, BLANK.sub("\n\n", load_template("markdown.md").render(**told)), out)


def make_page(
    folder: str | PathLike[str], title: str = "", author: str = "", purpose: str = "", short: bool = False
) -> str:
    """Return the HTML page of a finished run; see ``report``.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
    """
    result, run = load(folder), RunFolder(folder)
    if isinstance(result, Certified):
        failures = tuple(replay(folder, result.problem).failures()) if result.execution["failures"] else ()
        judged: Judged | None = judge_rows(result)
        level = format_level(result.study.delta) if result.claims else ""
        pictures = {"search": [draw_landscape(result), draw_folds(result)]} if result.task.classes else {}
    else:
        scored, judged, level = cast(Scored, result), None, ""
        failures = scored.computed.failures
        if scored.study.save_predictions:
            columns = list_held_out_columns(result.problem)
            judged = read_judged(scored, read_table(run.files, HELD_OUT, result.run_id, columns))
        pictures = {f"score-{score.name}": [*draw_scores(scored, score)] for score in scored.scores}
    pictures["performance"] = [*draw_performance(result, judged)]
    told = facts(result, judged, {MANIFEST: run.sha256(MANIFEST)}) + tell_failures(failures, result.problem)
    top, rest = divide_sections([replace(each, figures=pictures.get(each.name, ())) for each in told])
    if short:
        by_name, rest = {section.name: section for section in rest}, []
        for name, names in SHORT.items():
            if (section := by_name.get(name)) is not None:
                kept = [fact for fact in section.facts if names is None or fact.name in names]
                tables = section.tables if name == "performance" else ()  # nothing that is folded
                rest.append(replace(section, facts=kept, tables=tables, figures=()))
    origin = f"ckcv {result.study.command} {result.run_id}"
    who, made = f"author: {author}" if author else "author not named", result.execution
    heading = [f"finished {made['finished']}", who, origin, f"ckcv_ray {made['package']}"]
    head = {"title": _make_title(result, title), "heading": heading, "purpose": purpose, "short": short}
    foot = {"origin": origin, "maker": f"ckcv report from the files of run {result.run_id}", "level": level}
    return load_template("page.html").render(top=top, rest=rest, task=result.task, **head, **foot)


def _make_title(result: Result, title: str) -> str:
    source = result.execution["source"] or result.task.source
    of_table = f" from {source}" if source and source != "arrays" else ""
    return title or f"Prediction of {result.task.target.name}{of_table}"


def read_judged(result: Scored, held_out: pa.Table) -> Judged | None:
    """Return the stored predictions of the entry that is kept, or else of the first; None without any."""
    entry, task, n_splits = find_kept(result) or result.entries[0], result.task, result.computed.n_splits
    settings = {format_setting(setting) for setting in entry.settings if setting is not None}
    of_setting = pc.is_in(held_out["setting"], pa.array(sorted(settings)))
    rows = held_out.filter(pc.and_(pc.equal(held_out["learner"], entry.learner), of_setting))
    if not rows.num_rows:
        return None
    outputs, truth = read_outputs(rows), rows["truth"].to_numpy()
    if outputs.label is not None:
        label = np.concatenate([outputs.label, truth])
        if label.min(initial=0) < -1 or label.max(initial=0) >= task.n_classes:
            raise StoreError(f"the stored predictions name classes that the table does not have: see {SEE}")
    probability = outputs.probability
    return Judged(
        truth,
        np.asarray(outputs.label if outputs.value is None else outputs.value),
        probability[:, 1] if probability is not None and task.n_classes == 2 else None,
        probability,
        np.unique(rows["split"].to_numpy(), return_inverse=True)[1],
        f"{pluralize(len(rows), 'prediction')} for the rows that {pluralize(n_splits, 'split')} "
        f"score{'s' * (n_splits == 1)}, by {entry.name}",
        refusal=NOT_CLAIMED,
    )


def divide_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, separated by empty lines, each as one line."""
    parts = text.replace("\r\n", "\n").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip()]


@cache
def load_template(name: str) -> Template:
    """Return a template, compiled once; what it prints is escaped for the format that its name tells."""
    escaped = {".md": lambda text: MARKUP.sub(r"\\\1", printable(text)), ".html": printable}
    finalize = escaped.get(Path(name).suffix, str)
    environment = Environment(
        loader=PackageLoader("ckcv_ray.reports"),
        auto_reload=False,
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        finalize=lambda value: finalize(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"paragraphs": divide_paragraphs, "lines": _wrap_fact}
    environment.filters |= {"columns": _align_columns, "figures": _find_figures}
    return environment.get_template(name)


def show_text(sections: Sequence[Section], details: bool, command: str = "") -> str:
    """Return sections as text; the first screen is cut to length if a ``command`` shows more."""
    if command and not details:
        # there is no room for further advice, nor for cautions from the last to the second
        told = [fact for section in sections for fact in section.facts if fact.level == FIRST]
        lines, instead = sum(map(len, map(_wrap_fact, told))), dict[Fact, list[Fact]]()
        cautions = [fact for fact in told if fact.name == CAUTION]
        for fact in [*(fact for fact in told if fact.name == "or"), *reversed(cautions[1:])]:
            if lines > MAX_LINES:
                lines -= len(_wrap_fact(fact)) - (fact is cautions[-1] if cautions else 0)
                instead[fact] = []
        if more := sum(fact.name == CAUTION for fact in instead):
            instead[cautions[-1]] = [Fact(CAUTION, f"{pluralize(more, 'more caution')}: {command}", FIRST)]
        sections = [
            replace(section, facts=[new for fact in section.facts for new in instead.get(fact, [fact])])
            for section in sections
        ]
    levels = [FIRST, DETAILS] if details else [FIRST]
    text = load_template("terminal.txt").render(sections=sections, levels=levels)
    return BLANK.sub("\n\n", text).strip("\n")


def _wrap_fact(fact: Fact, level: int = FIRST) -> list[str]:
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


def divide_sections(sections: Sequence[Section]) -> tuple[list[Section], list[Section]]:
    """Return the sections of the first screen, in its order, and the others."""
    by_name = {section.name: section for section in sections}
    return [by_name.pop(name) for name in TOP], [*by_name.values()]


def _find_figures(table: FactTable) -> list[bool]:
    """Return for each column of a table whether it has figures, which are aligned right."""
    return [
        all(FIGURE.match(row[column]) and len(row[column]) < MAX_CELL // 2 for row in table.rows)
        for column in range(len(table.heads))
    ]
