"""Notebooks (``.ipynb``) as pages: their cells are run when the site is built, and what they show is below.

All cells of a notebook are run in order in one namespace, in a scratch folder: no kernel is needed. As in a
notebook, the last expression of a cell is shown: its HTML if it has some, a plot as a picture, else its text.
A cell that draws has the text alternative of its picture in its metadata (``alt``). A cell that fails stops
the build.
"""

import ast
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from html import escape
from io import BytesIO, StringIO
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

from docutils import nodes
from matplotlib import rc_context
from matplotlib.artist import Artist
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

FENCE = "~~~~"


class Output(NamedTuple):
    """What a cell shows: text that it printed, and the value of its last expression as text or as HTML."""

    printed: str
    text: str
    html: str


def read_cells(text: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook.

    Raises:
        ValueError: a cell has outputs, which would be those of somebody's machine, or is of no known kind.
    """
    cells: list[dict[str, Any]] = json.loads(text)["cells"]
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] not in ("markdown", "code"):
            raise ValueError(f"cell {number} is {cell['cell_type']}: expected markdown or code")
        if cell.get("outputs") or cell.get("execution_count"):
            raise ValueError(f"cell {number} has outputs: clear them, they are made when the site is built")
    return cells


def run_cells(cells: list[dict[str, Any]]) -> Iterator[Output]:
    """Run the code cells in the working directory, and yield what each shows."""
    module = ModuleType("notebook")
    for cell in cells:
        if cell["cell_type"] == "code":
            yield run_cell("".join(cell["source"]), module.__dict__, cell["metadata"].get("alt", ""))


def run_cell(source: str, names: dict[str, Any], alternative: str) -> Output:
    """Run one cell in a namespace."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    if isinstance(value, Artist):
        return Output(printed.getvalue(), "", draw(value, alternative))
    if value is None:
        return Output(printed.getvalue(), "", "")
    html = getattr(value, "_repr_html_", None)
    return Output(printed.getvalue(), "" if html else repr(value), html() if html else "")


def draw(drawn: Any, alternative: str) -> str:
    """Return the figure that axes are part of as an image.

    Raises:
        ValueError: it has no text alternative.
    """
    if not alternative:
        raise ValueError('a cell that draws has no text alternative: give it "alt" in its metadata')
    file = BytesIO()
    with rc_context({"svg.hashsalt": "ckcv", "svg.fonttype": "path"}):
        drawn.figure.savefig(file, format="svg", metadata={"Date": None})
    data = b64encode(file.getvalue()).decode()
    return f'<img alt="{escape(alternative)}" src="data:image/svg+xml;base64,{data}">'


def to_markdown(cells: list[dict[str, Any]], name: str) -> str:
    """Return a notebook with what its cells show as a page, with a link to the file."""
    outputs = run_cells(cells)
    lines = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        output = next(outputs)
        lines += [f"{FENCE}python", source, FENCE, ""]
        for text in (output.printed, output.text):
            lines += [f"{FENCE}text", text.rstrip(), FENCE, ""] if text else []
        shown = f'<div class="notebook-output">{output.html}</div>'
        lines += [f"{FENCE}{{raw}} html", shown, FENCE, ""] if output.html else []
    return "\n".join([*lines, f"{{download}}`Download this page as a notebook <{name}>`", ""])


class NotebookParser(MystParser):  # type: ignore[misc]
    """Parser of notebooks, which runs them."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Run the cells and parse the page that they make."""
        name = document.settings.env.docname.rpartition("/")[2] + ".ipynb"
        cells = read_cells(inputstring)
        with TemporaryDirectory() as folder, chdir(folder):
            page = to_markdown(cells, name)
        super().parse(page, document)


def list_notebooks(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Return the pages that are notebooks: what they show depends on the package, so they are always run."""
    return [name for name in env.found_docs if str(env.doc2path(name)).endswith(".ipynb")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the suffix and its parser."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    app.connect("env-get-outdated", list_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
