"""Formulas as MathML, made from LaTeX at build time: browsers show it without a script or a font of ours."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

LONG = 30  # characters of LaTeX


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line; on a narrow screen a long one scrolls."""
    formula = convert(node.astext(), display="inline")
    long = len(node.astext()) > LONG
    translator.body.append(f'<span class="long-formula" tabindex="0">{formula}</span>' if long else formula)
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    keys = {"tabindex": "0"} if len(node.astext()) > LONG else {}  # where it scrolls, keys have to reach it
    translator.body.append(translator.starttag(node, "div", CLASS="math", **keys))
    translator.body.append(convert(node.astext(), display="block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer it as ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
