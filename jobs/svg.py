"""Figures of matplotlib as SVG: the same values give the same bytes, whatever the user's settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import matplotlib
from matplotlib import style
from matplotlib.figure import Figure

STYLE = {
    "font.size": 9,
    "svg.fonttype": "none",
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@contextmanager
def new_figure(salt: str, size: tuple[float, float]) -> Iterator[Figure]:
    """Make an empty figure; ``salt`` is for its ids."""
    with style.context(STYLE, after_reset=True), matplotlib.rc_context({"svg.hashsalt": salt}):
        yield Figure(figsize=size, layout="constrained")


def as_svg(figure: Figure) -> str:
    """Return a figure, on white, as the text of an SVG file."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata=NO_METADATA, facecolor="white")
    return text.getvalue()
