"""Charts as values: what is drawn, and on which axes; written as SVG for a page, or on axes of matplotlib.

Text and lines are drawn in ``INK``, the colour of the surrounding text, in a light and in a dark scheme. The
same chart gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "currentColor"
BLUE, ORANGE, RED = "#2f80d8", "#d9730d", "#e5484d"
COLOURS = (BLUE, ORANGE, "#2b9a66", "#8e4ec6", "#c2298a", "#8d6e4a")  # of curves, and of classes
SHADES = (  # viridis, from its smallest value to its largest
    *("#482475", "#463480", "#414487", "#3b528b", "#355f8d", "#2f6c8e", "#2a788e", "#25848e"),
    *("#21918c", "#1e9c89", "#22a884", "#2fb47c", "#44bf70", "#5ec962", "#7ad151", "#bddf26"),
)
WIDTH, HEIGHT, FONT = 330, 230, 9  # in points: small, so that text is large enough on a telephone
LETTER = 0.55 * FONT  # about the width of one
LOG_RATIO = 8  # of the ends of an axis that is logarithmic
MAX_NAME, MAX_KEY = 24, 40  # characters of a name at an axis, and in a legend
ROUND = [m * 10.0**e for e in range(-12, 13) for m in (1, 2, 5)]
SHAPES = {  # corners of markers around 0, of about the size of a circle of radius 1
    "s": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "^": ((0, -1.1), (1, 0.9), (-1, 0.9)),
    "v": ((0, 1.1), (1, -0.9), (-1, -0.9)),
    "D": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "*": tuple(
        (round(r * np.sin(i * np.pi / 5), 2), round(-r * np.cos(i * np.pi / 5), 2))
        for i, r in enumerate([1.3, 0.55] * 5)
    ),
}


class Mark(NamedTuple):
    """Points that are drawn alike: joined by a line, or marked, or both. nan breaks a line.

    Attributes:
        x, y: the points.
        colour: of both.
        name: in the legend; "" if it is not there.
        width: of the line; 0 if there is none.
        dash: lengths of its dashes and gaps; () if it has none.
        shape: of the markers: "o", "x" or one of ``SHAPES``; "" if there are none.
        size: of the markers.
        hollow: whether their outline alone is drawn.
        edge: colour of an outline.
        alpha: how opaque it is, from 0 to 1.
    """

    x: ArrayLike
    y: ArrayLike
    colour: str = INK
    name: str = ""
    width: float = 0.0
    dash: tuple[float, ...] = ()
    shape: str = ""
    size: float = 5.0
    hollow: bool = False
    edge: str = ""
    alpha: float = 1.0


class Band(NamedTuple):
    """The area between two lines."""

    x: Values
    low: Values
    high: Values
    colour: str
    alpha: float


class Tiles(NamedTuple):
    """Squares that are coloured by values.

    Attributes:
        x, y: of their middles; ``side``: of each.
        values: what their colours mean; ``label`` names it.
        power: of a value's place between the ends of the scale: below 1, colours are finest near its start.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    side: Values
    values: Values
    label: str
    power: float = 1.0

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the scale of colours."""
        low, high = float(self.values.min()), float(self.values.max())
        return low, max(high, low + 1e-3 * (abs(low) or 1.0))


Part = Mark | Band | Tiles


class Scale(NamedTuple):
    """One axis of a chart.

    Attributes:
        label: what it shows.
        low, high: its ends; None for those of what is drawn, with a margin.
        names: of the positions 0, 1, ..., if these have names.
        log: whether it is logarithmic.
        down: whether it grows downward.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    names: Sequence[str] | None = None
    log: bool = False
    down: bool = False

    def find_ends(self, values: Values) -> tuple[float, float]:
        """Return the ends of the axis, for the values that are drawn."""
        if self.names is not None:
            return -0.6, len(self.names) - 0.4
        known = np.log10(values[values > 0]) if self.log else values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        margin = 0.05 * (high - low) or 0.05 * abs(low) or 0.5
        ends = low - margin, high + margin
        low, high = (10.0 ** ends[0], 10.0 ** ends[1]) if self.log else ends
        return low if self.low is None else self.low, high if self.high is None else self.high

    def find_ticks(self, ends: tuple[float, float], most: int) -> list[tuple[float, str]]:
        """Return at most ``most`` positions with what is written there: names, or round numbers."""
        low, high = ends
        if self.names is not None:
            thinned = range(0, len(self.names), -(-len(self.names) // max(1, most)))
            return [(i, shorten_name(self.names[i])) for i in thinned]
        if self.log:
            ticks = [tick for tick in ROUND if low <= tick <= high]
            if len(ticks) > most:
                ticks = [tick for tick in ROUND[::3] if low <= tick <= high]
            ticks = ticks[:: -(-len(ticks) // max(1, most)) or 1]
        else:
            step = next((gap for gap in ROUND if (high - low) / gap < most), ROUND[-1])
            ticks = [i * step for i in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
        return [(tick, f"{tick:g}") for tick in ticks]


@dataclass(frozen=True)
class Chart:
    """What is drawn, in this order, on two axes.

    Attributes:
        x, y: the axes.
        parts: what is drawn.
        height: in points.
    """

    x: Scale
    y: Scale
    parts: Sequence[Part]
    height: float = HEIGHT

    def find_ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the ends of both axes."""
        x, y = zip(*map(_list_points, self.parts), strict=True)
        return self.x.find_ends(np.concatenate(x)), self.y.find_ends(np.concatenate(y))


def _list_points(part: Part) -> tuple[Values, Values]:
    """Return the points that have to be on the axes."""
    if isinstance(part, Band):
        return np.tile(part.x, 2), np.concatenate([part.low, part.high])
    return np.ravel(part.x).astype(np.float64), np.ravel(part.y).astype(np.float64)


def is_geometric(values: Values) -> bool:
    """Return whether ascending values are rather equal in their ratios than in their differences.

    Few values that lie close together are not: their picture is the same on either scale.
    """
    if len(values) < 2 or values[0] <= 0 or values[-1] <= LOG_RATIO * values[0]:
        return False
    spreads = [np.std(steps) / np.mean(steps) for steps in (np.diff(np.log(values)), np.diff(values))]
    return len(values) == 2 or bool(spreads[0] < spreads[1])


def shorten_name(name: object, most: int = MAX_NAME) -> str:
    """Return a name as it is written at an axis: on one line, printable, and cut in its middle if long."""
    text = " ".join(printable(str(name)).split())
    half = most // 2 - 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


class _Frame(NamedTuple):
    """Where the axes of a chart are, in points, and which values their ends have."""

    chart: Chart
    left: float
    top: float
    right: float
    bottom: float
    x_ends: tuple[float, float]
    y_ends: tuple[float, float]

    def place(self, x: ArrayLike, y: ArrayLike) -> tuple[Values, Values]:
        """Return where points are; nan outside the axes."""
        low, high = (self.top, self.bottom) if self.chart.y.down else (self.bottom, self.top)
        found = []
        for scale, values, ends, at in (
            (self.chart.x, x, self.x_ends, (self.left, self.right)),
            (self.chart.y, y, self.y_ends, (low, high)),
        ):
            known, limits = np.asarray(values, np.float64), np.array(ends)
            if scale.log:
                known, limits = np.log10(np.where(known > 0, known, np.nan)), np.log10(limits)
            share = (known - limits[0]) / (limits[1] - limits[0])
            share[(share < -1e-3) | (share > 1.001)] = np.nan
            found.append(at[0] + share * (at[1] - at[0]))
        return found[0], found[1]


def write_svg(chart: Chart, label: str) -> str:
    """Return a chart as an element of an HTML page, with ``label`` as its text for screen readers."""
    named = [part for part in chart.parts if isinstance(part, Mark) and part.name]
    rows = list(_lay_out_legend(named))
    x_ends, y_ends = chart.find_ends()
    bars = [part for part in chart.parts if isinstance(part, Tiles)]
    top, bottom = 6 + 14 * (rows[-1][2] + 1 if rows else 0), chart.height - 30
    y_ticks = chart.y.find_ticks(y_ends, int((bottom - top) / 14))
    left = 24 + LETTER * max((len(text) for _, text in y_ticks), default=0)
    right = WIDTH - (52 if bars else 10)
    frame = _Frame(chart, left, top, right, bottom, x_ends, y_ends)
    longest = max((len(text) for _, text in chart.x.find_ticks(x_ends, 8)), default=1)
    x_ticks = chart.x.find_ticks(x_ends, max(1, int((right - left) / (LETTER * longest + 8))))
    parts = [
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {chart.height:g}" '
        f'font-size="{FONT}" fill="{INK}">',
        *(line for part in chart.parts for line in _write_part(part, frame)),
        *_write_axes(frame, x_ticks, y_ticks),
        *(line for part in bars for line in _write_colours(part, frame)),
        *(line for mark, x, row in rows for line in _write_key(mark, x, 10 + 14 * row)),
        "</svg>",
    ]
    return "\n".join(parts)


def _lay_out_legend(named: Sequence[Mark]) -> Iterator[tuple[Mark, float, int]]:
    """Yield each named mark with its place in the rows of a legend."""
    x, row = 20.0, 0
    for mark in named:
        width = 26 + LETTER * len(shorten_name(mark.name, MAX_KEY)) + 10
        if x > 20 and x + width > WIDTH:
            x, row = 20.0, row + 1
        yield mark, x, row
        x += width


def _write_key(mark: Mark, x: float, y: float) -> Iterator[str]:
    at = np.array([x, x + 20]), np.array([y, y])
    yield from _write_line(mark, *at)
    yield from _write_markers(mark, at[0][:1] + 10, at[1][:1])
    yield _write_text(x + 25, y + 3, shorten_name(mark.name, MAX_KEY), "start")


def _write_axes(
    frame: _Frame, x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]]
) -> Iterator[str]:
    _, left, top, right, bottom, x_ends, y_ends = frame
    yield (
        f'<path d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}" fill="none" stroke="{INK}" '
        'stroke-width=".8"/>'
    )
    for value, text in x_ticks:
        x = float(frame.place([value], [y_ends[0]])[0][0])
        yield f'<path d="M{x:.1f} {bottom:.1f}v3" stroke="{INK}" stroke-width=".8"/>'
        yield _write_text(x, bottom + 12, text)
    for value, text in y_ticks:
        y = float(frame.place([x_ends[0]], [value])[1][0])
        yield f'<path d="M{left:.1f} {y:.1f}h-3" stroke="{INK}" stroke-width=".8"/>'
        yield _write_text(left - 5, y + 3, text, "end")
    half = LETTER * len(frame.chart.x.label) / 2
    yield _write_text(min((left + right) / 2, WIDTH - half), bottom + 25, frame.chart.x.label)
    yield _write_text(9, (top + bottom) / 2, frame.chart.y.label, upright=True)


def _write_text(x: float, y: float, text: str, anchor: str = "middle", upright: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upright else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(printable(text))}</text>'


def _write_part(part: Part, frame: _Frame) -> Iterator[str]:
    if isinstance(part, Mark):
        x, y = frame.place(*np.broadcast_arrays(part.x, part.y))
        yield from _write_line(part, x, y)
        yield from _write_markers(part, x, y)
    elif isinstance(part, Band):
        there, back = frame.place(part.x, part.low), frame.place(part.x[::-1], part.high[::-1])
        points = np.column_stack([np.concatenate([a, b]) for a, b in zip(there, back, strict=True)])
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[~np.isnan(points).any(axis=1)])
        yield f'<polygon points="{corners}" fill="{part.colour}" fill-opacity="{part.alpha:g}"/>'
    else:
        x, y = frame.place(part.x - part.side / 2, part.y - part.side / 2)
        to_x, to_y = frame.place(part.x + part.side / 2, part.y + part.side / 2)
        for a, b, c, d, colour in zip(x, y, to_x, to_y, _colour(part), strict=True):
            box = f'x="{a:.1f}" y="{min(b, d):.1f}" width="{c - a:.1f}" height="{abs(d - b):.1f}"'
            yield f'<rect {box} fill="{colour}" stroke="{INK}" stroke-width=".3"/>'


def _colour(part: Tiles) -> list[str]:
    low, high = part.ends
    places = len(SHADES) * ((part.values - low) / (high - low)) ** part.power
    return [SHADES[min(int(place), len(SHADES) - 1)] for place in places]


def _write_colours(part: Tiles, frame: _Frame) -> Iterator[str]:
    """Yield the bar that says what colours mean."""
    (low, high), height, x = part.ends, frame.bottom - frame.top, frame.right + 10
    for i, colour in enumerate(SHADES):
        part_of = height / len(SHADES)
        box = f'x="{x}" y="{frame.bottom - (i + 1) * part_of:.1f}" width="8" height="{part_of + 0.3:.1f}"'
        yield f'<rect {box} fill="{colour}"/>'
    for value, text in Scale().find_ticks((low, high), 5):
        share = ((value - low) / (high - low)) ** part.power
        yield _write_text(x + 11, frame.bottom - height * share + 3, text, "start")
    yield _write_text(WIDTH - 3, (frame.top + frame.bottom) / 2, part.label, upright=True)


def _write_line(mark: Mark, x: Values, y: Values) -> Iterator[str]:
    if not mark.width:
        return
    runs = groupby(zip(x, y, strict=True), key=lambda point: np.isnan(point).any())
    path = "".join(
        "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) for broken, points in runs if not broken
    )
    dash = f' stroke-dasharray="{" ".join(map(str, mark.dash))}"' if mark.dash else ""
    faint = f' stroke-opacity="{mark.alpha:g}"' if mark.alpha < 1 else ""
    yield (
        f'<path d="{path}" fill="none" stroke="{mark.colour}" stroke-width="{mark.width:g}"{dash}{faint}/>'
    )


def _write_markers(mark: Mark, x: Values, y: Values) -> Iterator[str]:
    if not mark.shape:
        return
    edge = mark.edge or (mark.colour if mark.hollow or mark.shape == "x" else "none")
    fill = "none" if mark.hollow else mark.colour
    faint = f' fill-opacity="{mark.alpha:g}"' if mark.alpha < 1 else ""
    yield f'<g fill="{fill}" stroke="{edge}"{faint}>'
    r = mark.size / 2
    for a, b in zip(x, y, strict=True):
        if np.isnan(a + b):
            continue
        if mark.shape == "o":
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{r:g}"/>'
        elif mark.shape == "x":
            yield f'<path d="M{a - r:.1f} {b - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}"/>'
        else:
            corners = " ".join(f"{a + r * dx:.1f},{b + r * dy:.1f}" for dx, dy in SHAPES[mark.shape])
            yield f'<polygon points="{corners}"/>'
    yield "</g>"


def draw_on(axes: "Axes", chart: Chart) -> None:
    """Draw a chart on axes of matplotlib."""
    for part in chart.parts:
        if isinstance(part, Mark):
            _draw_mark(axes, part)
        elif isinstance(part, Band):
            axes.fill_between(part.x, part.low, part.high, color=part.colour, alpha=part.alpha, lw=0)
        else:
            _draw_tiles(axes, part)
    x_ends, y_ends = chart.find_ends()
    for name, scale, ends in (("x", chart.x, x_ends), ("y", chart.y, y_ends)):
        getattr(axes, f"set_{name}label")(scale.label, parse_math=False)
        if scale.log:
            getattr(axes, f"set_{name}scale")("log")
        getattr(axes, f"set_{name}lim")(ends[::-1] if scale.down else ends)
        if scale.names is not None:
            places, texts = zip(*scale.find_ticks(ends, 20), strict=True)
            getattr(axes, f"set_{name}ticks")(places, texts, parse_math=False)
    names = [part.name for part in chart.parts if isinstance(part, Mark) and part.name]
    # names are not given as labels, where a first "_" would hide them
    for text, name in zip(axes.legend().get_texts() if names else (), names, strict=True):
        text.set_parse_math(False)
        text.set_text(shorten_name(name, MAX_KEY))


def _draw_mark(axes: "Axes", mark: Mark) -> None:
    colour = "black" if mark.colour == INK else mark.colour
    dashes = (0, mark.dash) if mark.dash else "-"
    (line,) = axes.plot(
        *np.broadcast_arrays(mark.x, mark.y), color=colour, alpha=mark.alpha, lw=mark.width,
        ls=dashes if mark.width else "none", marker=mark.shape or "none", markersize=mark.size,
        label="named" if mark.name else None,
    )  # fmt: skip
    line.set_markeredgecolor(mark.edge or colour)
    line.set_markerfacecolor("none" if mark.hollow else colour)


def _draw_tiles(axes: "Axes", tiles: Tiles) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import ListedColormap, PowerNorm
    from matplotlib.patches import Rectangle

    corners = zip(tiles.x - tiles.side / 2, tiles.y - tiles.side / 2, tiles.side, strict=True)
    squares = [Rectangle((x, y), side, side) for x, y, side in corners]
    colours: Any = {"cmap": ListedColormap(SHADES), "norm": PowerNorm(tiles.power, *tiles.ends)}
    drawn = axes.add_collection(PatchCollection(squares, array=tiles.values, **colours))
    assert axes.figure is not None
    axes.figure.colorbar(drawn, ax=axes).set_label(tiles.label, parse_math=False)
