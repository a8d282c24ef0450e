"""The notebooks of the documentation: run cell by cell, as its site runs them; nothing is stored in them."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "docs" / "extensions"))

from notebooks import read_cells, run_cells, to_markdown  # noqa: E402

NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
CARD = 'aria-label="result '
CODE = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}


@each_notebook
def test_a_notebook_runs_and_shows_cards_and_plots(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = list(run_cells(read_cells(path.read_text())))
    assert [output for output in outputs if CARD in output.html]
    assert [output for output in outputs if output.html.startswith("<img alt=")]
    assert not [output for output in outputs if "object at 0x" in output.text]


@each_notebook
def test_a_notebook_is_one_that_jupyter_opens(path: Path) -> None:
    """Format 4.5: cells with identifiers, each its own; what code shows is not stored."""
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["language"] == "python"
    identifiers = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    for cell in notebook["cells"]:
        own = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | own
    assert notebook["cells"][0]["source"][0].startswith("# ")


def make_cell(source: str, **more: object) -> dict[str, object]:
    return CODE | {"source": source} | more


def test_cells_share_names_and_the_last_expression_is_shown() -> None:
    cells = [make_cell("x = 2\nprint('two')"), make_cell("x + 1"), make_cell("x = None\nx"), make_cell("")]
    assert list(run_cells(cells)) == [("two\n", "", ""), ("", "3", ""), ("", "", ""), ("", "", "")]


def test_a_page_has_the_cells_what_they_show_and_the_file() -> None:
    shown = "class Shown:\n    def _repr_html_(self): return '<b>3</b>'\nShown()"
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# A title"]}
    page = to_markdown([text, make_cell("print(1)\n2"), make_cell(shown)], "one.ipynb")
    blocks = ["# A title", "~~~~python\nprint(1)\n2\n~~~~", "~~~~text\n1\n~~~~", "~~~~text\n2\n~~~~"]
    html = '<div class="notebook-output"><b>3</b></div>'
    blocks += [f"~~~~python\n{shown}\n~~~~", f"~~~~{{raw}} html\n{html}\n~~~~"]
    blocks += ["{download}`Download this page as a notebook <one.ipynb>`"]
    assert page == "\n\n".join(blocks) + "\n"


def test_a_cell_that_fails_stops_the_page() -> None:
    with pytest.raises(ZeroDivisionError):
        to_markdown([make_cell("1 / 0")], "one.ipynb")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (make_cell("1", outputs=[{"output_type": "stream"}]), "cell 1 has outputs"),
        (make_cell("1", execution_count=3), "cell 1 has outputs"),
        (make_cell("1", cell_type="raw"), "cell 1 is raw"),
    ],
    ids=["outputs", "a count", "a kind"],
)
def test_what_would_be_stored_or_not_shown_is_refused(cell: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_cells(json.dumps({"cells": [cell]}))


def test_a_plot_without_a_text_alternative_is_refused() -> None:
    plot = "from matplotlib.figure import Figure\nFigure().add_subplot()"
    with pytest.raises(ValueError, match="no text alternative"):
        list(run_cells([make_cell(plot)]))
    (output,) = run_cells([make_cell(plot, metadata={"alt": 'A "plot"'})])
    assert output.html.startswith('<img alt="A &quot;plot&quot;" src="data:image/svg+xml;base64,')
