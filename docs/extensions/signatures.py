"""Signatures as they are written: NumPy's type aliases by their names, not by the unions they stand for.

Fields of named tuples have no text but what their class says of them. What is before a colon in the sentence
of a property is no type, for which Napoleon takes it: the colon is hidden from it. Parameters on lines of
their own are a list; Sphinx makes descriptions of them, of nothing, over which screen readers stumble.
"""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

ARRAY_LIKE = [stringify_annotation(ArrayLike, mode) for mode in ("smart", "fully-qualified-except-typing")]
COLON = "\ue000"
PARAMETERS = re.compile(r"<dl>\n((?:<dd><em class=\"sig-param\">.*</dd>\n)+)</dl>")
ND_ARRAY = re.compile(
    r"~?numpy\.ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[([^\[\]]*)\]\]"
)


def named(text: str | None) -> str | None:
    """Replace the unions of a signature by the names of their aliases."""
    for union in ARRAY_LIKE:
        text = text and text.replace(union, "~numpy.typing.ArrayLike")
    text = text and text.replace("<factory>", "...")  # a default that is made: the other is no expression
    return text and ND_ARRAY.sub(r"~numpy.typing.NDArray[\1]", text)


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str) -> Any:
    """Name the aliases of one signature."""
    return named(signature), named(returned)


def without_numbers(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Leave out what Python says of a named tuple's field by itself: its number."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()


def hide_colon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Hide the colons of a property's first line."""
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(":", COLON)


def show_colon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show them again."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def list_parameters(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Write parameters on lines of their own as a list."""
    context["body"] = PARAMETERS.sub(_make_list, context.get("body", ""))


def _make_list(found: re.Match[str]) -> str:
    items = found[1].replace("<dd>", "<li>").replace("</dd>", "</li>")
    return f'<ul class="sig-parameters">\n{items}</ul>'


def setup(app: Sphinx) -> dict[str, Any]:
    """Do so for every signature."""
    app.connect("autodoc-process-signature", process)
    app.connect("autodoc-process-docstring", without_numbers)
    app.connect("autodoc-process-docstring", hide_colon, priority=400)  # Napoleon has 500
    app.connect("autodoc-process-docstring", show_colon, priority=600)
    app.connect("html-page-context", list_parameters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
