"""The notebooks of the documentation: run cell by cell, as its site runs them; nothing is stored in them."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "docs" / "extensions"))

from notebooks import read_cells, run_cells  # noqa: E402

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


def make_cell(source: str, **more: object) -> dict[str, object]:
    return CODE | {"source": source} | more


def test_a_plot_without_a_text_alternative_is_refused() -> None:
    plot = "from matplotlib.figure import Figure\nFigure().add_subplot()"
    with pytest.raises(ValueError, match="no text alternative"):
        list(run_cells([make_cell(plot)]))
    (output,) = run_cells([make_cell(plot, metadata={"alt": 'A "plot"'})])
    assert output.html.startswith('<img alt="A &quot;plot&quot;" src="data:image/svg+xml;base64,')
