"""Plot of a figure over the nights."""

from typing import NamedTuple

import numpy as np

from ckcv_ray.reports.figures import BLUE, INK, RED, Chart, Mark, Scale, write_svg


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
    """Draw a line through the nights as SVG, the median dashed, the limit of alarms in red."""
    x, values = np.arange(len(trend.values)), np.array(trend.values)
    shown = [value for value in (*trend.values, trend.median, trend.least) if value is not None]
    margin = 0.15 * (max(shown) - min(shown)) or 0.1 * abs(shown[0]) or 1.0
    low, ends = min(shown) - margin, np.array([-0.6, len(x) - 0.4])
    parts = list[Mark]()
    for level, colour in ((trend.least, RED), (trend.median, INK)):
        if level is not None:
            parts.append(Mark(ends, level, colour, width=0.8, dash=(4, 2)))
    parts.append(Mark(x, values, BLUE, width=1.2, shape="o", size=3))
    parts.append(Mark(x[-1:], values[-1:], RED if trend.alarm else BLUE, shape="o", size=7))
    return write_svg(Chart(Scale(names=trend.nights), Scale("", low, max(shown) + margin), parts, 140), label)
