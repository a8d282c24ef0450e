"""What the writer leaves undone: dashes, figures kept on one line, and classes for what may be too wide."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

NO_BREAK = "\N{NO-BREAK SPACE}"
PROSE, LONG_PROSE = 30, 160  # characters of a table's cell
LONG_WORD = 26  # characters
LONG_FORMULA = 60  # characters of LaTeX


def set_dashes(doctree: nodes.document) -> None:
    """Write a dash where Sphinx leaves two hyphens for smart quotes to join."""
    for content in doctree.findall(addnodes.desc_content):
        for text in list(content.findall(nodes.Text)):
            if text.startswith(" -- ") and text.parent is not None:
                text.parent.replace(text, nodes.Text(text.replace(" -- ", " \N{EN DASH} ", 1)))


def keep_figures(doctree: nodes.document) -> None:
    """Keep "3.7 ± 0.9" and "(-0.4, -0.9)" on one line each."""
    for entry in doctree.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            kept = re.sub(r"(?<=\d) ± (?=\d)", f"{NO_BREAK}±{NO_BREAK}", text)
            kept = re.sub(r"\([-+\d., ]+\)", lambda found: found[0].replace(" ", NO_BREAK), kept)
            if kept != text and text.parent is not None:
                text.parent.replace(text, nodes.Text(kept))


def keep_punctuation(doctree: nodes.document) -> None:
    """Keep a formula and the punctuation after it on one line, unless it may need the width of a line."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(siblings=True, descend=False)
        marks = re.match(r"[,.;:)]+", after) if isinstance(after, nodes.Text) else None
        if marks and formula.parent is not None and len(formula.astext()) <= LONG_FORMULA:
            formula.parent.replace(after, nodes.Text(after[marks.end() :]))
            together = nodes.inline(classes=["unbroken"])
            formula.parent.replace(formula, together)
            together += [formula, nodes.Text(marks[0])]


def mark_prose(doctree: nodes.document) -> None:
    """Mark the cells that hold a sentence: on a narrow screen they keep a width at which it can be read."""
    for entry in doctree.findall(nodes.entry):
        if len(entry.astext()) > PROSE:
            entry["classes"].append("long-prose" if len(entry.astext()) > LONG_PROSE else "prose")


def mark_long_words(doctree: nodes.document) -> None:
    """Mark code with a word that may be wider than a narrow screen."""
    for literal in doctree.findall(nodes.literal):
        if max(map(len, literal.astext().split()), default=0) > LONG_WORD:
            literal["classes"].append("long-word")


def reach_figures(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let keys reach figures, which scroll on a narrow screen."""
    context["body"] = context.get("body", "").replace("<figure class=", '<figure tabindex="0" class=')


def adjust(app: Sphinx, doctree: nodes.document) -> None:
    """Set the type of one page."""
    set_dashes(doctree)
    keep_figures(doctree)
    keep_punctuation(doctree)
    mark_prose(doctree)
    mark_long_words(doctree)


def setup(app: Sphinx) -> dict[str, Any]:
    """Do so for every page."""
    app.connect("doctree-read", adjust)
    app.connect("html-page-context", reach_figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
