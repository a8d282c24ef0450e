"""Dashes between parameters and their descriptions, and figures in tables that are not broken over lines."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

NO_BREAK = "\N{NO-BREAK SPACE}"


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


def adjust(app: Sphinx, doctree: nodes.document) -> None:
    """Set the type of one page."""
    set_dashes(doctree)
    keep_figures(doctree)


def setup(app: Sphinx) -> dict[str, Any]:
    """Do so for every page."""
    app.connect("doctree-read", adjust)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
