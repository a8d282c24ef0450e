"""The picture of the coverage study: bounds and true errors, and how often the bounds failed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ckcv_ray.reports.figures import as_svg, new_figure
from jobs.paper.sources import DELTA, SOURCES, Setting

Summaries = Mapping[Setting, Mapping[str, Mapping[str, Any]]]
COLOURS = ("#7f7f7f", "#9467bd", "#1f77b4", "#2ca02c", "#ff7f0e", "#d62728", "#8c564b")
MARKERS = "ovsD^Px"
ROW = 0.42  # inches
SPREAD = 0.66  # of a row, over the claims


def picture(summaries: Summaries, claims: Mapping[str, str], file: Path) -> None:
    """Draw a row for each setting: on the left bounds and truths, on the right the share of failures.

    Args:
        summaries: cells of each setting by claim, in percent.
        claims: the claims to draw, and their labels.
        file: SVG file to write; on white, since black ink is used.
    """
    with new_figure("coverage", (9.5, 1.4 + ROW * len(summaries))) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.25, 1))
        _bounds(left, summaries, claims)
        _failures(right, summaries, claims)
        left.set_yticks(range(len(summaries)), [_label(setting) for setting in summaries])
        left.set_ylim(len(summaries) - 0.5, -0.5)
        for axes in (left, right):
            axes.hlines([i + 0.5 for i in range(len(summaries) - 1)], 0, 1, "0.9", lw=0.6, zorder=0,
                        transform=axes.get_yaxis_transform())  # fmt: skip
        _legend(figure, left)
        file.write_text(as_svg(figure, background="white"))


def _bounds(axes: Axes, summaries: Summaries, claims: Mapping[str, str]) -> None:
    for i, (claim, label) in enumerate(claims.items()):
        rows, cells = _cells(summaries, claim)
        at = [row + _offset(i, len(claims)) for row in rows]
        truth, bound = [cell["truth"] for cell in cells], [cell["bound"] for cell in cells]
        axes.hlines(at, truth, bound, color=COLOURS[i], lw=1, alpha=0.6)
        axes.plot(bound, at, MARKERS[i], color=COLOURS[i], markersize=4, label=label)
        axes.plot(truth, at, "|", color="black", markersize=5, label="true error" if not i else None)
    axes.set_xlim(left=0)
    axes.set_xlabel("mean bound and mean true error, %")


def _failures(axes: Axes, summaries: Summaries, claims: Mapping[str, str]) -> None:
    for i, claim in enumerate(claims):
        rows, cells = _cells(summaries, claim)
        at = [row + _offset(i, len(claims)) for row in rows]
        share = [100 * cell["failures"] / cell["runs"] for cell in cells]
        axes.hlines(at, share, [cell["at_most"] for cell in cells], color=COLOURS[i], lw=1, alpha=0.6)
        axes.plot(share, at, MARKERS[i], color=COLOURS[i], markersize=4)
    axes.axvline(100 * DELTA, color="black", lw=0.8, ls="--")
    axes.set_xscale("symlog", linthresh=5, linscale=1.5)
    ticks = (0, 1, 2, 3, 4, 5, 10, 20, 50, 100)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(-0.2, 110)
    axes.set_xlabel("truth above the bound, % of runs, with 95 % limit")


def _cells(summaries: Summaries, claim: str) -> tuple[list[int], list[Mapping[str, Any]]]:
    """Return the rows in which a claim was made, and its cells there."""
    found = [(row, cells[claim]) for row, cells in enumerate(summaries.values()) if claim in cells]
    return [row for row, _ in found], [cell for _, cell in found]


def _offset(i: int, n: int) -> float:
    return SPREAD * (i / max(1, n - 1) - 0.5)


def _label(setting: Setting) -> str:
    star = "" if SOURCES[setting.source].holds == "all" else "* "
    return f"{star}{setting.source}, n = {setting.n}"


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
