"""Placement of names next to the points of a scatter plot, without overlaps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox, BboxBase

from ckcv_ray.core.arrays import Values

PAPER = "#808080"
MARK_POINTS, NAME_SIZE, LEAST_SHOWN, OUTSIDE = 6.0, 8, 1e-3, 9
LEADER = {"arrowstyle": "-", "color": PAPER, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
DIAGONAL_BOXES = 400
GAPS = (5, 11, 18, 27, 38, 52)


def name_points(axes: Axes, names: Sequence[str], points: Values, spread: Values, others: Values) -> None:
    """Place a name next to each of ``points`` [points, 2], with a line, avoiding marks, bars and other names.

    Greedy: each name takes the first of a list of positions with the least overlap.
    """
    at, unit = axes.transData.transform, axes.figure.dpi / 72
    marks = [_box(pixel, MARK_POINTS * unit) for pixel in at(np.vstack([points, others]))]
    taken = marks + _bars(at, points, spread, unit)
    named: list[Bbox] = []
    for i, (name, point, pixel) in enumerate(zip(names, points, at(points), strict=True)):
        text = axes.text(0, 0, name, fontsize=NAME_SIZE, parse_math=False)
        size = np.array(text.get_window_extent().size)
        text.remove()
        offsets, obstacles = _offsets(size / unit), [*marks[:i], *marks[i + 1 : len(points)], *named]
        boxes = [_box(pixel + np.array(offset) * unit, size) for offset in offsets]
        cost = [
            box.count_overlaps(taken)
            + OUTSIDE * (not _within(box, axes.bbox))
            + _crossed(pixel, pixel + np.array(offset) * unit, obstacles)
            for box, offset in zip(boxes, offsets, strict=True)
        ]
        best = int(np.argmin(cost))
        taken.append(boxes[best])
        named.append(boxes[best])
        axes.annotate(
            name, (point[0], point[1]), offsets[best], textcoords="offset points", ha="center", va="center",
            fontsize=NAME_SIZE, parse_math=False, in_layout=False, arrowprops=LEADER,
        )  # fmt: skip


def _bars(at: Any, points: Values, spread: Values, width: float) -> list[Bbox]:
    """Return boxes that cover the error bars and the diagonal, in pixels."""
    steps = [np.array([1, 0]) * spread, np.array([0, 1]) * spread]
    ends = [(at(np.maximum(points - step, LEAST_SHOWN)), at(points + step)) for step in steps]
    bars = [Bbox(list(pair)).padded(width) for low, high in ends for pair in zip(low, high, strict=True)]
    shown = np.geomspace(LEAST_SHOWN, 100, DIAGONAL_BOXES)
    return bars + [_box(pixel, 2 * width) for pixel in at(np.stack([shown, shown], axis=1))]


def _crossed(start: Values, end: Values, boxes: Sequence[Bbox]) -> int:
    """Count how often the line from start to end, in 20 points, is in one of the boxes."""
    steps = [start + share * (end - start) for share in np.linspace(0, 1, 20)]
    return sum(any(box.contains(x, y) for x, y in steps) for box in boxes)


def _offsets(size: Values) -> list[tuple[float, float]]:
    """List offsets of the centre of a name of this size from its mark, nearest first; all in points."""
    angles = [2 * np.pi * i / 16 for i in range(16)]
    return [
        (float(np.cos(a) * (gap + size[0] / 2)), float(np.sin(a) * (gap + size[1] / 2)))
        for gap in GAPS
        for a in angles
    ]


def _box(middle: Values, size: Values | float) -> Bbox:
    return Bbox([middle - np.divide(size, 2), middle + np.divide(size, 2)])


def _within(box: Bbox, frame: BboxBase) -> bool:
    return bool(frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1))
