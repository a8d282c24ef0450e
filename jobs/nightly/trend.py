"""Plot of a figure over the nights."""

from typing import NamedTuple

from matplotlib.ticker import MaxNLocator

from ckcv_ray.reports.figures import INK, L_MS, MARK, inline_svg, new_figure

TREND_SIZE = (4.0, 1.7)


class Trend(NamedTuple):
    """One figure over the nights, the oldest first; the last value is this night's.

    Attributes:
        nights, values: names and figures.
        median: what this night's value is compared with, if anything.
        least: the value below which there is an alarm, if any.
        alarm: whether this night's value raised an alarm.
    """

    nights: tuple[str, ...]
    values: tuple[float, ...]
    median: float | None
    least: float | None
    alarm: bool


def draw_trend(trend: Trend, label: str) -> str:
    """Draw a line through the nights as SVG, the median as a dashed line, the range of alarms shaded."""
    with new_figure(label, TREND_SIZE) as figure:
        axes = figure.add_subplot()
        x, colour = range(len(trend.values)), MARK if trend.alarm else L_MS
        axes.plot(x, trend.values, "-", color=L_MS, linewidth=1.2, marker="o", markersize=3)
        axes.plot(x[-1:], trend.values[-1:], "o", color=colour, markersize=7)
        shown = [value for value in (*trend.values, trend.median, trend.least) if value is not None]
        margin = 0.15 * (max(shown) - min(shown)) or 0.1 * abs(shown[0]) or 1.0
        axes.set_ylim(min(shown) - margin, max(shown) + margin)
        axes.set_xlim(-0.5, max(len(x), 2) - 0.5)
        if trend.median is not None:
            axes.axhline(trend.median, color=INK, linestyle="--", linewidth=0.8)
        if trend.least is not None:
            axes.axhspan(min(shown) - margin, trend.least, color=MARK, alpha=0.12, linewidth=0)
        axes.set_xticks([0, len(x) - 1][: len(x)], [trend.nights[0], trend.nights[-1]][: len(x)])
        axes.yaxis.set_major_locator(MaxNLocator(4))
        return inline_svg(figure, label)
