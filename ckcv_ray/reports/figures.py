"""Figures as SVG: functions of plain values, using matplotlib's objects without pyplot's state.

Text and lines are drawn in ``INK``, a colour used for nothing else, which is replaced by ``currentColor``: a
figure in a page takes the colour of the surrounding text, in a light and in a dark scheme. The same values
give the same bytes.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from io import BytesIO
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.errors import printable
from ckcv_ray.runs.judged import GRID, Calibration, DecisionCurve, Histogram, Importance, Roc

INK = "#010203"
L_MS, L_EE, MARK = "#2f80d8", "#d9730d", "#e5484d"
COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.1, 0.95, 16)))
WIDTH, HEIGHT = 4.6, 3.2  # small, so that text is large enough on a telephone
MAX_NAME = 24  # characters of a name at an axis
TICKS, MAX_K = 7, 10
ROUND = [m * 10.0**e for e in range(-2, 8) for m in (1, 2, 5)]
LOG_RATIO = 8  # of the ends of an axis of k, or of a hyperparameter
MAX_STRIPS, MAX_CURVES = 40, 6
LINES = (L_MS, L_EE, "#2b9a66", "#8e4ec6", "#c2298a", "#8d6e4a")  # of curves, and of classes
MARKERS = "os^Dvx"
MIN_SIDE, PART_SIDE, FULL_SIDE = 0.12, 0.66, 0.98
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
STYLE = {
    "font.size": 9,
    "svg.fonttype": "none",
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


class Axis(NamedTuple):
    """Axis of a search space: the hyperparameter in which its steps or its paths differ.

    Attributes:
        name: name of the hyperparameter.
        values: its values, as text.
        counted: whether there is no such hyperparameter, so that the values are positions.
    """

    name: str
    values: tuple[str, ...]
    counted: bool = False

    @property
    def absent(self) -> bool:
        """Whether there is a single position, which no hyperparameter names."""
        return self.counted and len(self.values) == 1


class Landscape(NamedTuple):
    """All settings at one k.

    Attributes:
        steps, paths: the axes.
        value: L_MS, or a proven lower bound on it, (n_paths, n_steps); nan where there is no setting.
        splits: number of splits behind the value, (n_paths, n_steps); n_splits where it is L_MS itself.
        failed: whether a split failed, (n_paths, n_steps).
        left_open: whether the candidate was not excluded, (n_paths, n_steps).
        best: path and step of the winner.
    """

    steps: Axis
    paths: Axis
    value: Values
    splits: NDArray[np.int64]
    failed: NDArray[np.bool_]
    left_open: NDArray[np.bool_]
    n_splits: int
    best: tuple[int, int]


class Span(NamedTuple):
    """Adjacent k of one fold size and one state; ``l_ms`` and ``l_ee`` are set only where k was reported."""

    first: int
    last: int
    n_select: int
    state: str
    lower_bound: float | None
    setting: str
    l_ms: float | None
    l_ee: float | None


class Curve(NamedTuple):
    """A score over a hyperparameter.

    Attributes:
        parameter, score: their names.
        x: values of the hyperparameter, ascending.
        mean, deviation: over splits, of the shape of x.
    """

    parameter: str
    score: str
    x: Values
    mean: Values
    deviation: Values


class HeatMap(NamedTuple):
    """A score over two hyperparameters.

    Attributes:
        x, y: the axes.
        score: its name.
        mean: its mean over splits, (values of y, values of x); nan where there is no setting.
        best: row and column of the best.
    """

    x: Axis
    y: Axis
    score: str
    mean: Values
    best: tuple[int, int]


def draw_landscape(at: Landscape, label: str) -> str:
    """Draw L_MS over all settings as SVG.

    A candidate without all its splits is a smaller square; one that was not excluded is an empty diamond,
    which its shape alone tells from a square.
    """
    with new_figure("landscape") as figure:
        axes = figure.add_subplot()
        tiles = _make_tiles(at)
        axes.add_collection(tiles)
        rows, columns = np.nonzero(at.failed)
        axes.plot(columns, rows, "x", color=MARK, markersize=5)
        rows, columns = np.nonzero(at.left_open)
        axes.plot(columns, rows, "D", color=INK, markerfacecolor="none", markersize=4, markeredgewidth=0.9)
        _finish_grid(axes, at.steps, at.paths, at.best)
        figure.colorbar(tiles, ax=axes, pad=0.02).set_label("L_MS or its lower bound, in %")
        return inline_svg(figure, label)


def draw_folds(spans: Sequence[Span], label: str) -> str:
    """Draw L_MS or its lower bound, and L_EE, against k, as SVG."""
    with new_figure("folds") as figure:
        axes = figure.add_subplot()
        known = [span for span in spans if span.l_ms is not None]
        states = {state: [span for span in spans if span.state == state] for state in ("failed", "open")}
        lost, left_open = states["failed"], states["open"]
        beaten = [span for span in spans if span not in [*known, *lost, *left_open]]
        _draw_low(axes, beaten, "^", INK, "lower bound of L_MS (beaten)")
        if left_open:
            _draw_low(axes, left_open, "D", INK, "lower bound (open)")
        if lost:
            _draw_low(axes, lost, "x", MARK, "lower bound (failed)")
        for name, colour, marker in (("l_ms", L_MS, "o"), ("l_ee", L_EE, "s")):
            pairs = ((span.first, getattr(span, name)) for span in known)
            values = [(k, 100 * value) for k, value in pairs if value is not None]
            axes.plot(*zip(*values, strict=True), marker, color=colour, markersize=6, label=name.upper())
        best = next(span for span in spans if span.state == "winner")
        at = [best.first], [100 * (best.l_ms or 0.0)]
        axes.plot(
            *at, "o", color=MARK, markerfacecolor="none", markersize=12, markeredgewidth=2, label="winner"
        )
        first, last = spans[0].first, spans[-1].last
        axes.set_xlabel("k")
        axes.set_xlim(first - 0.8, last + 0.8)
        if last > LOG_RATIO * first:
            axes.set_xscale("log")
            axes.set_xlim(first / 1.15, last * 1.1)
            round_ticks(axes.xaxis, first)
        else:
            ticks = range(first, last + 1, (last - first) // MAX_K + 1)
            axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.set_ylabel("%")
        axes.margins(y=0.12)
        figure.legend(loc="outside upper center", ncols=3, columnspacing=1.0, handletextpad=0.2)
        return inline_svg(figure, label)


def draw_spread(select: Sequence[float], estimate: Sequence[float], label: str, value: str = "bound") -> str:
    """Draw the value of each split as a dot, and their means L_MS and L_EE, as SVG; ``value`` names it."""
    with new_figure("spread", (WIDTH, 2.7)) as figure:
        axes = figure.add_subplot()
        for y, (name, bounds, colour) in enumerate((("L_EE", estimate, L_EE), ("L_MS", select, L_MS))):
            x, offset = _stack(100 * np.asarray(bounds))
            mean = 100 * float(np.mean(bounds))
            axes.plot(x, y + offset, "o", color=colour, markersize=4.5, alpha=0.75, markeredgewidth=0)
            axes.vlines(mean, y - 0.36, y + 0.36, color=INK, lw=1.4, zorder=1)
            axes.annotate(
                f"{name} {ceil_percent(mean / 100)}",
                (mean, y + 0.36),
                (0, 2),
                textcoords="offset points",
                ha="center",
            )
        axes.set_yticks([0, 1], ["estimate\nsets", "select\nsets"])
        axes.set_ylim(-0.5, 1.6)
        axes.set_xlabel(f"{value} of one split, in %")
        return inline_svg(figure, label)


def draw_strips(rows: Sequence[Values], names: Sequence[str], score: str, label: str) -> str:
    """Draw the first rows with their names: a dot for each split, and a line at their mean."""
    shown = rows[:MAX_STRIPS]
    with new_figure("strips", (WIDTH, 0.8 + 0.3 * len(shown))) as figure:
        axes = figure.add_subplot()
        for y, values in enumerate(shown):
            axes.plot(
                values, np.full(len(values), y), "o", color=L_MS, markersize=4.5, alpha=0.5, markeredgewidth=0
            )
            if len(values):
                axes.vlines(float(np.mean(values)), y - 0.36, y + 0.36, color=INK, lw=1.4)
        axes.set_yticks(range(len(shown)), list(map(shorten_name, names[: len(shown)])), parse_math=False)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel(f"{score} of one split", parse_math=False)
        return inline_svg(figure, label)


def draw_validation(curves: Sequence[Curve], lines: Sequence[str], label: str) -> str:
    """Draw means over splits against a hyperparameter, and bands of a standard deviation.

    Several curves have their names in a legend.
    """
    with new_figure("curve", (WIDTH, 2.7)) as figure:
        axes = figure.add_subplot()
        for number, (curve, colour) in enumerate(zip(curves, LINES, strict=False)):
            low, high = curve.mean - curve.deviation, curve.mean + curve.deviation
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.2 / len(curves), lw=0)
            axes.plot(
                curve.x,
                curve.mean,
                f"{MARKERS[number]}-",
                color=colour,
                markersize=4.5,
                label=f"line {number}",
            )
        if len(curves) > 1:
            # names are not given as labels, where a first "_" would hide them
            for text, name in zip(axes.legend(loc="best").get_texts(), lines, strict=False):
                text.set_parse_math(False)
                text.set_text(shorten_name(name))
        if is_geometric(np.unique(np.concatenate([curve.x for curve in curves]))):
            axes.set_xscale("log")
        axes.set_xlabel(shorten_name(curves[0].parameter), parse_math=False)
        axes.set_ylabel(curves[0].score, parse_math=False)
        return inline_svg(figure, label)


def is_geometric(values: Values) -> bool:
    """Return whether ascending values are rather equal in their ratios than in their differences.

    Few values that lie close together are not: their picture is the same on either scale.
    """
    if len(values) < 2 or values[0] <= 0 or values[-1] <= LOG_RATIO * values[0]:
        return False
    spreads = [np.std(steps) / np.mean(steps) for steps in (np.diff(np.log(values)), np.diff(values))]
    return len(values) == 2 or bool(spreads[0] < spreads[1])


def draw_heat_map(heat: HeatMap, label: str) -> str:
    """Draw the mean of a score over two hyperparameters as SVG: a square for each pair of values."""
    with new_figure("heat", (WIDTH, HEIGHT)) as figure:
        axes = figure.add_subplot()
        places = np.argwhere(~np.isnan(heat.mean))
        tiles = PatchCollection(
            [Rectangle((x - 0.5, y - 0.5), 1, 1) for y, x in places.tolist()],
            array=heat.mean[tuple(places.T)],
            cmap=COLOURS,
            edgecolor=INK,
            linewidth=0.4,
        )
        axes.add_collection(tiles)
        _finish_grid(axes, heat.x, heat.y, heat.best)
        figure.colorbar(tiles, ax=axes, pad=0.02).set_label(f"mean {heat.score}", parse_math=False)
        return inline_svg(figure, label)


def shorten_name(name: object) -> str:
    """Return a name as it is written at an axis: on one line, printable, and cut in its middle if long."""
    text = " ".join(printable(str(name)).split())
    half = MAX_NAME // 2 - 2
    return text if len(text) <= MAX_NAME else f"{text[:half]} … {text[-half:]}"


@contextmanager
def new_figure(salt: str, size: tuple[float, float] = (WIDTH, HEIGHT)) -> Iterator[Figure]:
    """Make an empty figure in the report's style, whatever the user's settings; ``salt`` is for its ids."""
    with style.context(STYLE, after_reset=True), matplotlib.rc_context({"svg.hashsalt": salt}):
        yield Figure(figsize=size, layout="constrained")


def inline_svg(figure: Figure, label: str) -> str:
    """Return the figure as an element of an HTML page, with ``label`` as its text for screen readers."""
    svg = as_svg(figure)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    box = re.search(r'viewBox="([^"]*)"', svg)
    start = f'<svg role="img" aria-label="{escape(label)}" viewBox="{box[1] if box else ""}">'
    return re.sub(r'<g id="[^"]*"', "<g", start + svg[svg.index(">") + 1 :])


def as_svg(figure: Figure, background: str = "none") -> str:
    """Return the figure as the text of an SVG file."""
    buffer = BytesIO()
    with warnings.catch_warnings():  # text stays text, which a reader's fonts draw
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(buffer, format="svg", metadata=NO_METADATA, facecolor=background)
    return buffer.getvalue().decode()


def _make_tiles(at: Landscape) -> PatchCollection:
    """Make a square for each candidate that was computed or beaten; colours are finest near the minimum.

    An open candidate has none: its lower bound is far below the minimum, and would take most of the colours.
    """
    part = np.maximum(MIN_SIDE, PART_SIDE * at.splits / at.n_splits)
    side = np.where(at.splits == at.n_splits, FULL_SIDE, part)
    drawn = ~at.failed & ~at.left_open & ~np.isnan(at.value)
    squares = [
        Rectangle((s - side[p, s] / 2, p - side[p, s] / 2), float(side[p, s]), float(side[p, s]))
        for p, s in np.argwhere(drawn)
    ]
    shown = 100 * at.value[drawn]
    norm = PowerNorm(0.5, shown.min(), max(shown.max(), shown.min() + 0.1))
    return PatchCollection(
        squares, array=shown, cmap=COLOURS, norm=norm, edgecolor=INK, linewidth=0.4, joinstyle="miter"
    )


def _finish_grid(axes: Axes, across: Axis, up: Axis, best: tuple[int, int]) -> None:
    """Mark the best square of a grid and name its axes, with at most ``TICKS`` ticks."""
    row, column = best
    corner = column - 0.5, row - 0.5
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=MARK, linewidth=2, zorder=3))
    axes.plot([column], [row], "*", color="white", markeredgecolor="black", markersize=9, zorder=4)
    for axis, values in ((axes.xaxis, across), (axes.yaxis, up)):
        if values.absent:
            axis.set_ticks([])
            continue
        shown = range(0, len(values.values), -(-len(values.values) // TICKS))
        axis.set_ticks(list(shown), [shorten_name(values.values[i]) for i in shown], parse_math=False)
        axis.set_label_text(values.name, parse_math=False)
    axes.set_xlim(-0.6, len(across.values) - 0.4)
    axes.set_ylim(-0.6, len(up.values) - 0.4)


def _draw_low(axes: Axes, spans: Sequence[Span], marker: str, colour: str, label: str) -> None:
    """Draw the lower bounds on L_MS of spans of k that have no L_MS."""
    low, first = [100 * (span.lower_bound or 0.0) for span in spans], [span.first for span in spans]
    axes.hlines(low, first, [span.last for span in spans], color=colour, linewidth=0.8)
    axes.plot(first, low, marker, color=colour, markerfacecolor="none", markersize=5, label=label)


def _stack(values: Values) -> tuple[Values, Values]:
    """Return values in ascending order, and offsets in -0.3 .. 0.3 that separate equal ones."""
    x, count = np.unique(values, return_counts=True)
    step = min(0.1, 0.6 / max(1, int(count.max()) - 1))
    offset = [step * (i - (c - 1) / 2) for c in count for i in range(c)]
    return np.repeat(x, count), np.array(offset)


def round_ticks(axis: Any, first: float = 0.0) -> None:
    """Set plain ticks at ``first`` and at 1, 2, 5, 10, ... above it, as far as the axis reaches."""
    axis.set_major_locator(FixedLocator([first, *(tick for tick in ROUND if tick > first)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


class Picture(NamedTuple):
    """A figure with its table; or the sentence why there is none.

    Attributes:
        title: heading.
        svg: the figure; "" if there is none.
        caption: what it shows, or why there is none.
        heads: names of the columns of its table.
        rows: the table, as text.
    """

    title: str
    svg: str
    caption: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


SQUARE = (WIDTH, 3.4)
LOW = (WIDTH, 2.6)
FAINT = 0.35
LOWEST, HIGHEST = 0.4, 1.45  # of an axis of net benefits, in prevalences
STYLES = ("-", "--", "-.", ":")
MAX_DRAWN_CLASSES = 6
MAX_BARS = 15


def draw_plot(
    salt: str, size: tuple[float, float], label: str, plot: Callable[..., None], *shown: Any
) -> str:
    """Return as SVG what a function such as ``plot_roc`` draws of what is shown."""
    with new_figure(salt, size) as figure:
        plot(figure.add_subplot(), *shown)
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


def plot_calibration(axes: Axes, found: Calibration) -> None:
    """Draw observed shares against predicted ones, a dot for each group of rows."""
    axes.plot([0, 100], [0, 100], ":", color=INK, lw=1, label="predicted = observed")
    axes.plot(100 * found.mean, 100 * found.observed, "o-", color=L_MS, markersize=5, lw=1.2)
    axes.set_xlabel("predicted probability, in %")
    axes.set_ylabel("observed share, in %")
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.legend(loc="upper left")


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


def plot_scores(axes: Axes, found: Histogram, classes: Sequence[str], x: str) -> None:
    """Draw the distribution of a score in each of the first classes, as shares of the class."""
    for number, counts in enumerate(found.counts[:MAX_DRAWN_CLASSES]):
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
    shown = list(order)[:MAX_BARS]
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
