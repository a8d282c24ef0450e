"""Scatter plot of the bounds of Table 1 against the test errors, ours and the paper's."""

from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ckcv_ray.core.arrays import Values
from ckcv_ray.reports.figures import L_MS, as_svg, new_figure, round_ticks
from jobs.paper.labelling import LEAST_SHOWN, PAPER, name_points

SET_SIZE = (7.2, 5.6)


class SetErrors(NamedTuple):
    """One data set of the paper's Table 1.

    Rates: mean and standard deviation over its realizations of L_EE and of the test error, and the paper's
    means.
    """

    name: str
    l_ee: float
    l_ee_sd: float
    test: float
    test_sd: float
    paper_l_ee: float
    paper_test: float


class Picture(NamedTuple):
    """One figure as SVG and as PNG, dark on white."""

    svg: str
    png: bytes


def bounds_against_errors(rows: Sequence[SetErrors]) -> Picture:
    """Plot mean L_EE against mean test error of every set, with one standard deviation on either side.

    Hollow marks are the paper's, joined to ours by thin lines. On the diagonal, bound and error are equal.
    Axes are logarithmic if every mean is above 0.
    """
    with new_figure("sets", SET_SIZE) as figure:
        axes = figure.add_subplot()
        test, l_ee, test_sd, l_ee_sd, paper_test, paper_l_ee = (
            100 * np.array([getattr(row, name) for row in rows])
            for name in ("test", "l_ee", "test_sd", "l_ee_sd", "paper_test", "paper_l_ee")
        )
        ours, paper = np.stack([test, l_ee], axis=1), np.stack([paper_test, paper_l_ee], axis=1)
        spread = np.stack([test_sd, l_ee_sd], axis=1)
        for pair in zip(ours, paper, strict=True):
            axes.plot(*np.transpose(pair), "-", color=PAPER, linewidth=0.7, zorder=1)
        axes.plot(*paper.T, "o", color=PAPER, markerfacecolor="white", markersize=5, label="the paper's")
        axes.errorbar(
            test, l_ee, l_ee_sd, test_sd,
            fmt="o", color=L_MS, markersize=5, elinewidth=0.9, label="ours, mean ± sd",
        )  # fmt: skip
        _scale_alike(axes, np.vstack([ours, paper]), ours + spread)
        axes.set_xlabel("test error of F*, in %")
        axes.set_ylabel("L_EE, in %")
        axes.legend(loc="lower right")
        figure.draw_without_rendering()  # names are placed in pixels, which are fixed from here on
        name_points(axes, [row.name for row in rows], ours, spread, paper)
        return Picture(as_svg(figure, "white"), _png(figure))


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None}, facecolor="white", dpi=200)
    return buffer.getvalue()


def _scale_alike(axes: Axes, means: Values, highest: Values) -> None:
    """Scale both axes alike, logarithmically if all ``means`` [points, 2] are above 0; draw the diagonal."""
    low, high = means.min(axis=0) / 1.4, 1.4 * np.maximum(means.max(axis=0), highest.max(axis=0))
    if low.min() > 0:
        axes.set_xscale("log")
        axes.set_yscale("log")
        round_ticks(axes.xaxis)
        round_ticks(axes.yaxis)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")
    ends = [max(float(low.min()), LEAST_SHOWN), float(high.max())]
    axes.plot(ends, ends, "--", color=PAPER, linewidth=0.8, zorder=0, scalex=False, scaley=False)
