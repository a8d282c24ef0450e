"""Figures of measured performance as SVG: ROC curves, calibration, scores by class, importance of columns."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ckcv_ray.core.arrays import Values
from ckcv_ray.reports.figures import INK, L_EE, L_MS, LINES, MARK, WIDTH, inline_svg, new_figure, shorten_name
from ckcv_ray.reports.performance import GRID, Calibration, DecisionCurve, Histogram, Importance, Roc

SQUARE = (WIDTH, 3.4)
LOW = (WIDTH, 2.6)
FAINT = 0.35
LOWEST, HIGHEST = 0.4, 1.45  # of an axis of net benefits, in prevalences
STYLES = ("-", "--", "-.", ":")
MOST_DRAWN_CLASSES = 6
MOST_BARS = 15


def draw_roc(roc: Roc, label: str) -> str:
    """Draw the ROC curve of each classifier, and of several the mean at each false positive rate. As SVG."""
    with new_figure("roc", SQUARE) as figure:
        plot_roc(figure.add_subplot(), roc)
        return inline_svg(figure, label)


def plot_roc(axes: Axes, roc: Roc) -> None:
    """Draw the ROC curve of each classifier, and of several the mean at each false positive rate."""
    several = len(roc.curves) > 1
    axes.plot([0, 100], [0, 100], ":", color=INK, lw=1, label="guessing")
    for number, curve in enumerate(roc.curves):
        name = "single models" if several and number == 0 else None
        width, alpha = (0.8, FAINT) if several else (2.0, 1.0)
        axes.plot([0, *(100 * GRID)], [0, *(100 * curve)], color=L_MS, label=name, lw=width, alpha=alpha)
    if several:
        mean = 100 * roc.curves.mean(axis=0)
        axes.plot([0, *(100 * GRID)], [0, *mean], color=L_MS, lw=2, label="their mean")
        axes.legend(loc="lower right")
    axes.plot(*([100 * rate] for rate in roc.point), "*", color=MARK, markeredgecolor="black", ms=11)
    axes.set_xlabel("false positive rate, in %")
    axes.set_ylabel("true positive rate, in %")
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)


def draw_calibration(found: Calibration, label: str) -> str:
    """Draw observed shares against predicted ones, a dot for each group of rows. As SVG."""
    with new_figure("calibration", SQUARE) as figure:
        plot_calibration(figure.add_subplot(), found)
        return inline_svg(figure, label)


def plot_calibration(axes: Axes, found: Calibration) -> None:
    """Draw observed shares against predicted ones, a dot for each group of rows."""
    axes.plot([0, 100], [0, 100], ":", color=INK, lw=1, label="predicted = observed")
    axes.plot(100 * found.mean, 100 * found.observed, "o-", color=L_MS, markersize=5, lw=1.2)
    axes.set_xlabel("predicted probability, in %")
    axes.set_ylabel("observed share, in %")
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.legend(loc="upper left")


def draw_decision_curve(found: DecisionCurve, label: str) -> str:
    """Draw net benefits over the probability from which on a row is worth flagging. As SVG."""
    with new_figure("decision", SQUARE) as figure:
        plot_decision_curve(figure.add_subplot(), found)
        return inline_svg(figure, label)


def plot_decision_curve(axes: Axes, found: DecisionCurve) -> None:
    """Draw net benefits over the probability from which on a row is worth flagging, and what is proven."""
    x = 100 * found.worth
    axes.axhline(0, color=INK, lw=1, label="flag no row")
    axes.plot(x, 100 * found.everybody, ":", color=INK, lw=1.2, label="flag all rows")
    axes.plot(x, 100 * found.by_rule, color=L_MS, lw=2, label="this rule, measured")
    if found.by_cut_off is not None:
        axes.plot(x, 100 * found.by_cut_off, "--", color=L_EE, lw=1.4, label=f"{found.cut_off}, measured")
    for number, point in enumerate(found.points):
        at, ends = [100 * point.worth] * 2, [100 * point.proven, 100 * point.measured]
        axes.plot(at, ends, color=MARK, lw=1.2)
        axes.plot(
            at[:1], ends[:1], "^", color=MARK, markersize=7, label=None if number else "proven: at least"
        )
    axes.set_xlabel("worth flagging from a probability of, in %")
    axes.set_ylabel("net benefit, in % of the rows")
    axes.set_xlim(0, x[-1])
    axes.set_ylim(-LOWEST * 100 * found.prevalence, HIGHEST * 100 * found.prevalence)
    axes.legend(loc="upper right")


def draw_scores(found: Histogram, classes: Sequence[str], x: str, label: str) -> str:
    """Draw the distribution of a score in each of the first classes, as shares of the class. As SVG."""
    with new_figure("scores", LOW) as figure:
        plot_scores(figure.add_subplot(), found, classes, x)
        return inline_svg(figure, label)


def plot_scores(axes: Axes, found: Histogram, classes: Sequence[str], x: str) -> None:
    """Draw the distribution of a score in each of the first classes, as shares of the class."""
    for number, counts in enumerate(found.counts[:MOST_DRAWN_CLASSES]):
        shares = 100 * counts / max(1, counts.sum())
        axes.stairs(
            shares, found.edges, color=LINES[number], lw=1.6, label=f"class {number}",
            linestyle=STYLES[number % len(STYLES)],
        )  # fmt: skip
    for text, name in zip(axes.legend(loc="best").get_texts(), classes, strict=False):
        text.set_parse_math(False)
        text.set_text(shorten_name(name))  # not as a label, where a first "_" would hide it
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel("% of the class")
    axes.set_ylim(bottom=0)


def draw_importance(found: Importance, names: Sequence[str], order: Sequence[int], label: str) -> str:
    """Draw how much the share of wrong rows rises when a column is permuted: a bar for each column."""
    shown = list(order)[:MOST_BARS]
    with new_figure("importance", (WIDTH, 0.8 + 0.24 * len(shown))) as figure:
        axes = figure.add_subplot()
        values: Values = 100 * found.rise[shown]
        axes.barh(np.arange(len(shown)), values, 0.62, color=L_MS, alpha=0.8)
        spread: Values = 100 * found.spread[shown]
        axes.errorbar(values, np.arange(len(shown)), xerr=spread, fmt="none", ecolor=INK, elinewidth=1)
        axes.axvline(0, color=INK, lw=0.8)
        axes.set_yticks(range(len(shown)), [shorten_name(names[i]) for i in shown], parse_math=False)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        axes.set_xlabel("rise of the share of wrong rows, in percentage points")
        return inline_svg(figure, label)


def draw_predicted_numbers(predicted: Values, truth: Values, target: str, label: str) -> str:
    """Draw predicted numbers against those of the table, a dot for each row."""
    with new_figure("numbers", SQUARE) as figure:
        axes = figure.add_subplot()
        low = float(min(predicted.min(), truth.min()))
        high = float(max(predicted.max(), truth.max()))
        axes.plot([low, high], [low, high], ":", color=INK, lw=1)
        axes.plot(predicted, truth, "o", color=L_MS, markersize=3, alpha=FAINT, markeredgewidth=0)
        axes.set_xlabel("predicted")
        axes.set_ylabel(shorten_name(target), parse_math=False)
        return inline_svg(figure, label)
