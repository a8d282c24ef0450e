"""Scatter plot of the bounds of Table 1 against the test errors, ours and the paper's."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

from ckcv_ray.core.arrays import Values
from ckcv_ray.reports.figures import BLUE
from jobs.svg import as_svg, new_figure

SET_SIZE = (7.2, 5.6)
PAPER, MIN_SHOWN = "#808080", 1e-3
LEADER = {"arrowstyle": "-", "color": PAPER, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 3}


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


def bounds_against_errors(rows: Sequence[SetErrors]) -> str:
    """Plot mean L_EE against mean test error of every set as SVG, with one standard deviation on either side.

    Hollow marks are the paper's, joined to ours by thin lines. On the diagonal, bound and error are equal.
    Names stand beside the axes, by L_EE. Axes are logarithmic if every mean is above 0.
    """
    with new_figure("sets", SET_SIZE) as figure:
        axes = figure.add_subplot()
        test, l_ee, test_sd, l_ee_sd, paper_test, paper_l_ee = (
            100 * np.array([getattr(row, name) for row in rows])
            for name in ("test", "l_ee", "test_sd", "l_ee_sd", "paper_test", "paper_l_ee")
        )
        ours, paper = np.stack([test, l_ee], axis=1), np.stack([paper_test, paper_l_ee], axis=1)
        for pair in zip(ours, paper, strict=True):
            axes.plot(*np.transpose(pair), "-", color=PAPER, linewidth=0.7, zorder=1)
        axes.plot(*paper.T, "o", color=PAPER, markerfacecolor="white", markersize=5, label="the paper's")
        axes.errorbar(
            test, l_ee, l_ee_sd, test_sd,
            fmt="o", color=BLUE, markersize=5, elinewidth=0.9, label="ours, mean ± sd",
        )  # fmt: skip
        _scale_alike(axes, np.vstack([ours, paper]), ours + np.stack([test_sd, l_ee_sd], axis=1))
        for at, i in zip(np.linspace(0.02, 0.98, len(rows)), np.argsort(l_ee), strict=True):
            axes.annotate(
                rows[i].name, ours[i], (1.04, at), textcoords="axes fraction",
                va="center", fontsize=8, parse_math=False, arrowprops=LEADER,
            )  # fmt: skip
        axes.set_xlabel("test error of F*, in %")
        axes.set_ylabel("L_EE, in %")
        axes.legend(loc="upper left")
        return as_svg(figure)


def _scale_alike(axes: Axes, means: Values, highest: Values) -> None:
    """Scale both axes alike, logarithmically if all ``means`` [points, 2] are above 0; draw the diagonal."""
    low, high = means.min(axis=0) / 1.4, 1.4 * np.maximum(means.max(axis=0), highest.max(axis=0))
    if low.min() > 0:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FormatStrFormatter("%g"))
            axis.set_minor_locator(NullLocator())
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")
    ends = [max(float(low.min()), MIN_SHOWN), float(high.max())]
    axes.plot(ends, ends, "--", color=PAPER, linewidth=0.8, zorder=0, scalex=False, scaley=False)
