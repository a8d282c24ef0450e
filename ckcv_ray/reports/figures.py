"""The figures of a result: each a chart with a caption and the table of its values.

A chart is a value: marks and tiles on two axes, drawn by matplotlib, as SVG for a page or in notebooks
(``result.plot``). On a page, text and lines have the colour of the surrounding text, in a light and in a dark
scheme; the same chart gives the same bytes. Figures of judged rows show those that the first claim counts, or
those of kept predictions.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from html import escape
from io import StringIO
from math import ceil
from textwrap import fill
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.core.intervals import MISS
from ckcv_ray.core.measures import Score
from ckcv_ray.core.process import is_notebook
from ckcv_ray.errors import (
    NOT_SET,
    Index,
    InputError,
    Values,
    ceil_percent,
    floor_percent,
    format_level,
    format_percent,
    format_row,
    pluralize,
    printable,
)
from ckcv_ray.learners.base import Setting
from ckcv_ray.records.candidates import per_k
from ckcv_ray.runs import result as results
from ckcv_ray.runs.judged import (
    BY_BEST,
    BY_PROBABILITY,
    GRID,
    Judged,
    judge_rows,
    permute_columns,
    trace_net_benefit,
    trace_roc,
)
from ckcv_ray.runs.result import Certified, Result, Scored
from ckcv_ray.study.problem import describe_setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # stands for the colour of the surrounding text: "currentColor" on a page, black elsewhere
BLUE, ORANGE, RED = "#2f80d8", "#d9730d", "#e5484d"
COLOURS = (BLUE, ORANGE, "#2b9a66", "#8e4ec6", "#c2298a", "#8d6e4a")  # for curves and for classes
WIDTH, HEIGHT, FONT = 330, 230, 9  # in points of 1/72 inch: text is large enough on a phone
LETTER, LINE_HEIGHT = 0.6 * FONT, 14  # roughly the width of a letter, and the height of a line
STYLE = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **{"svg.fonttype": "none", "font.size": FONT, "font.sans-serif": ["DejaVu Sans"]},
}
# what would apply to all of a page, or occur twice on it, and more digits than can be seen
NOT_OF_A_PAGE = re.compile('(?<=<g) id="[^"]*"|(?<=<use )xlink:|(?<=\\.\\d\\d)\\d+')
DRAWING = Lock()  # matplotlib has one style per process
MAX_NAME, MAX_KEY = 24, 40  # characters of a name at an axis, and in a legend
MIN_SIDE, PART_SIDE, FULL_SIDE = 0.12, 0.66, 0.98  # sides of squares
FAINT, LINE, N_SHADES, MAX_DECADES = 0.35, 1.4, 16, 2.5
BINS, MAX_STRIPS, MAX_DRAWN_CLASSES, MAX_BARS = 20, 40, 6, 15
LISTED_BENEFITS, MAX_IMPORTANT = 11, 50  # rows in the tables of the decision curve and of importance
LISTED_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)  # in the table of the ROC curve
LOWEST, HIGHEST = 0.4, 1.45  # of an axis of net benefits, in prevalences
DASHES = ((), (5, 2), (5, 2, 1, 2), (1, 2))
ABOUT_CUT_OFF = {
    BY_PROBABILITY: "Probabilities are converted from the share of the class in these rows (Bayes). ",
    BY_BEST: "The best cut-off is chosen on the rows it is measured on, so its curve is too optimistic. ",
}
JOINED = ", at the best values of the others"
MIN_VALUES, MAX_SIDE = 3, 40  # of a hyperparameter that has a curve, and of one in a grid


class Mark(NamedTuple):
    """Points that are drawn alike: joined by a line, or marked, or both. nan breaks a line."""

    x: ArrayLike
    y: ArrayLike
    colour: str = INK  # of line and markers
    name: str = ""  # in the legend; "" if it is not listed
    width: float = 0.0  # of the line; 0 for no line
    dash: tuple[float, ...] = ()  # lengths of its dashes and gaps
    shape: str = ""  # of the markers, as matplotlib names them; "" for no markers
    size: float = 5.0  # of the markers
    hollow: bool = False  # whether only their outline is drawn
    edge: str = ""  # colour of an outline
    alpha: float = 1.0  # how opaque it is, from 0 to 1


class Tiles(NamedTuple):
    """Squares that are coloured by values."""

    x: Index  # of their centres
    y: Index
    side: Values  # of each square
    values: Values
    label: str  # what the values are
    power: float = 1.0  # for a value's place on the scale: below 1, colours are finest near its start


class Scale(NamedTuple):
    """One axis of a chart."""

    label: str = ""
    low: float | None = None  # its ends; None for those of what is drawn, plus a margin
    high: float | None = None
    names: Sequence[str] | None = None  # of the positions 0, 1, ..., if these have names
    log: bool = False
    down: bool = False  # whether it grows downward
    whole: bool = False  # whether its values are whole numbers


class Chart(NamedTuple):
    """What is drawn on two axes, in this order."""

    x: Scale
    y: Scale
    parts: Sequence[Mark | Tiles]
    height: float = HEIGHT  # in points


def _shorten_name(name: object, most: int = MAX_NAME) -> str:
    """Return a name as written at an axis: on one line, printable, and cut in its middle if long."""
    text = " ".join(printable(str(name)).split())
    half = most // 2 - 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def write_svg(chart: Chart, label: str) -> str:
    """Return a chart as an element of an HTML page, with ``label`` as its text for screen readers."""
    from matplotlib import figure, style

    file, salt = StringIO(), f"{label} {chart.x.label} {chart.y.label}"
    with DRAWING, warnings.catch_warnings(), style.context(["default", STYLE | {"svg.hashsalt": salt}]):
        warnings.simplefilter("ignore")  # about letters that its font lacks: a page uses the reader's fonts
        drawn = figure.Figure((WIDTH / 72, chart.height / 72), facecolor="none", layout="constrained")
        draw_on(drawn.add_subplot(facecolor="none"), chart, INK)
        drawn.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    _, svg = file.getvalue().split("</defs>", 1)  # the first is for the style of a whole document
    svg = re.sub("<[^>]*>", lambda tag: NOT_OF_A_PAGE.sub("", tag[0]).replace(INK, "currentColor"), svg)
    return f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {chart.height:g}">{svg}'


def draw_on(axes: "Axes", chart: Chart, ink: str = "black") -> None:
    """Draw a chart on matplotlib axes."""
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    colours: Any = {"cmap": colormaps["viridis"].resampled(N_SHADES)}
    for part in chart.parts:
        if isinstance(part, Mark):
            colour = ink if part.colour == INK else part.colour
            (line,) = axes.plot(
                *np.broadcast_arrays(part.x, part.y), color=colour, alpha=part.alpha, lw=part.width,
                ls=((0, part.dash) if part.dash else "-") if part.width else "none", solid_capstyle="butt",
                marker=part.shape or "none", markersize=part.size, label="named" if part.name else None,
            )  # fmt: skip
            line.set_markeredgecolor(part.edge or colour)
            line.set_markerfacecolor("none" if part.hollow else colour)
        else:
            corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
            squares = np.column_stack([part.x, part.y])[:, None] + part.side[:, None, None] * corners
            drawn = PolyCollection(squares, array=part.values, norm=PowerNorm(part.power), **colours)
            assert axes.figure is not None
            bar = axes.figure.colorbar(axes.add_collection(drawn), ax=axes)
            bar.set_label(part.label, parse_math=False)
    scales = {"y": chart.y, "x": chart.x}
    named = {name: [_shorten_name(text) for text in scale.names or ()] for name, scale in scales.items()}
    longest = {name: max(map(len, texts), default=0) for name, texts in named.items()}
    beside = longest["y"] + (16 if any(isinstance(part, Tiles) for part in chart.parts) else 8)
    lengths = {"x": WIDTH - LETTER * beside, "y": chart.height}
    rooms = {"x": lengths["x"] / (LETTER * (longest["x"] + 2)), "y": chart.height / LINE_HEIGHT}
    for name, scale in scales.items():
        axis = getattr(axes, f"{name}axis")
        axis.set_label_text(fill(printable(scale.label), int(lengths[name] / LETTER)), parse_math=False)
        getattr(axes, f"set_{name}scale")("log" if scale.log else "linear")
        getattr(axes, f"set_{name}lim")(scale.low, scale.high)
        if scale.log:
            many = np.ptp(np.log10(axis.get_view_interval())) > MAX_DECADES
            axis.set_major_locator(LogLocator(subs=(1,) if many else (1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        elif scale.whole:
            axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if scale.names is not None:
            texts = named[name]
            every = ceil(len(texts) / max(1.0, rooms[name])) or 1
            getattr(axes, f"set_{name}lim")(-0.6, len(texts) - 0.4)
            axis.set_ticks(range(0, len(texts), every), texts[::every], parse_math=False)
        axis.set_inverted(scale.down)
    listed = [part.name for part in chart.parts if isinstance(part, Mark) and part.name]
    names = [_shorten_name(name, MAX_KEY) for name in listed]
    above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
    above["ncols"] = 2 - any(len(name) > MAX_KEY / 2 for name in names)
    # names are not given as labels, where a first "_" would hide them
    for text, name in zip(axes.legend(**above).get_texts() if names else (), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


class Picture(NamedTuple):
    """A figure with the table of its values; or the reason why there is none."""

    title: str
    caption: str  # what it shows, or why there is none
    chart: Chart | None = None  # None if there is nothing to draw
    heads: Sequence[str] = ()  # of the table
    rows: Sequence[Sequence[str]] = ()

    @property
    def svg(self) -> str:
        """The chart as an element of a page; "" if there is none."""
        label = f"{self.title}. The values are in the table below the figure."
        return "" if self.chart is None else write_svg(self.chart, label)


def draw_performance(result: Result, judged: Judged | None) -> Iterator[Picture]:
    """Yield the figures of judged rows; none if none are known.

    Raises:
        StoreError: a stored model cannot classify rows.
    """
    of_classes = _draw_roc, _draw_calibration, _draw_net_benefit, _draw_scores, _draw_importance
    if judged is not None:
        yield from (draw(result, judged) for draw in (of_classes if result.task.classes else [_draw_numbers]))


def draw_scores(result: Scored, score: Score) -> Iterator[Picture]:
    """Yield the scores of single splits, and for each learner its means, over two hyperparameters or one."""
    splits = "inner splits" if result.computed.chosen is not None else "splits"
    if result.computed.n_splits > 1:
        yield _draw_strips(result, score)
    ranked = [row for row in result.settings if row.places[score.name].rank is not None]
    for learner in dict.fromkeys(row.learner for row in ranked):
        rows = [row for row in ranked if row.learner == learner]
        settings, places = [row.setting for row in rows], [row.places[score.name] for row in rows]
        means, differing = np.array([place.mean for place in places]), results.list_differing(settings)
        grid = make_grid(settings, score.loss * means)
        order = np.argsort(score.loss * means, kind="stable")[::-1].tolist()  # the best last
        best, parameter = order[-1], grid.numeric
        at_best = describe_setting({name: settings[best].get(name) for name in differing})
        said = f"best mean {means[best]:.4g} at {at_best}."
        if grid.names[1]:
            y, x = np.nonzero(grid.best >= 0)
            tiles = Tiles(x, y, np.full(len(x), FULL_SIDE), means[grid.best[y, x]], f"mean {score.name}")
            over = f"Mean over {splits} at each pair of values{JOINED * grid.joined}"
            caption = f"{over}; the star marks the best: {said}"
            title = f"{score.name} of {learner} over {' and '.join(grid.names)}"
            yield _draw_grid(title, caption, grid, best, [tiles], [f"{mean:.4f}" for mean in means.tolist()])
        elif parameter:
            points = {settings[i][parameter]: places[i][:2] for i in order}
            curve = np.nan_to_num([(value, *points[value]) for value in sorted(points)]).T
            x, mean, deviation = curve
            bars = np.column_stack([mean - deviation, mean + deviation, x * np.nan])
            parts = [Mark(np.repeat(x, 3), bars.ravel(), BLUE, width=0.8)]
            parts.append(Mark(x, mean, BLUE, width=LINE, shape="o", size=4.5))
            at = f"Mean over {splits} at each value of {parameter}{JOINED * (len(differing) > 1)}"
            caption = f"{at}, and a standard deviation around it; {said}"
            log = bool(x[0] > 0 and np.median(x) < (x[0] + x[-1]) / 4)  # more evenly spaced in ratios
            chart = Chart(Scale(_shorten_name(parameter), log=log), Scale(score.name), parts, 195)
            listed = [(f"{value:g}", *map("{:.4f}".format, rest)) for value, *rest in curve.T.tolist()]
            yield Picture(f"Validation curve of {learner}", caption, chart, (parameter, "mean", "sd"), listed)


class Grid(NamedTuple):
    """Settings over two hyperparameters: the best at each pair of values."""

    names: Sequence[str]  # the hyperparameters; "" where there is none; it then has one value
    values: Sequence[Sequence[str]]  # of each, as text
    best: Index  # position of the setting, (values of the second, of the first); -1 where there is none
    joined: bool  # whether settings also differ in others
    numeric: str  # the first hyperparameter of several numbers, which can have a curve; "" if none has


def make_grid(settings: Sequence[Setting], losses: Values) -> Grid:
    """Return settings of one learner over the two hyperparameters with most values; ``losses`` decide.

    One of several numbers comes first. With more than ``MAX_SIDE`` values of one, settings are numbered.
    """
    differing = results.list_differing(settings)
    order = sorted(differing, key=lambda name: -len(differing[name]))
    many = [name for name in order if len(differing[name]) >= MIN_VALUES]
    numeric = next((name for name in many if results.is_numeric(differing[name])), "")
    pair = sorted(order, key=lambda name: name != numeric)[:2]
    if any(len(differing[name]) > MAX_SIDE for name in pair):
        settings = [{"setting": i + 1} for i in range(len(settings))]
        differing, pair = results.list_differing(settings), ["setting"]
    names = [*pair, "", ""][:2]
    values = [differing.get(name, [None]) for name in names]
    best = np.full([*map(len, values)], -1)
    known = [[*map(repr, of_name)] for of_name in values]
    for i in np.argsort(losses, kind="stable")[::-1].tolist():
        first, second = (of.index(repr(settings[i].get(name))) for name, of in zip(names, known, strict=True))
        best[first, second] = i
    shown = [[*map(results.shorten_value, of_name)] for of_name in values]
    return Grid(names, shown, best.T, len(differing) > 2, numeric)


def draw_landscape(result: Certified) -> Picture:
    """Return the figure of all candidates at the winner's k."""
    problem, n_splits = result.problem, result.certificate.n_splits
    number, _ = problem.find_learner(result.setting)
    at_k = [row for row in result.candidates.to_pylist() if row["k_first"] <= result.k <= row["k_last"]]
    rows = [row for row in at_k if problem.learner_of_paths[row["path"]] == number]
    value = np.array([row["lower_bound"] if row["l_ms"] is None else row["l_ms"] for row in rows])
    state, splits = (np.array([row[name] for row in rows]) for name in ("state", "splits"))
    settings = [problem.learner.space.setting(row["path"], row["step"]) for row in rows]
    grid = make_grid(settings, np.where(state == "winner", -1.0, value))
    y, x = np.nonzero(grid.best >= 0)
    shown = grid.best[y, x]
    side = np.where(splits == n_splits, FULL_SIDE, np.maximum(MIN_SIDE, PART_SIDE * splits / n_splits))[shown]
    failed, left_open = state[shown] == "failed", state[shown] == "open"
    at = ~failed & ~left_open
    parts: list[Mark | Tiles] = [
        Tiles(x[at], y[at], side[at], 100 * value[shown[at]], "L_MS or its lower bound, in %", 0.5),
        Mark(x[failed], y[failed], RED, shape="x"),
        Mark(x[left_open], y[left_open], shape="D", hollow=True),
    ]
    caption = (
        f"Each square is a candidate, the best at the values of its axes. A full square has all {n_splits} "
        "splits and is coloured by its L_MS; a smaller one was dropped as beaten, the smaller the earlier, "
        "and is coloured by a lower bound. The star is the winner; a cross marks failed evaluations, and an "
        "empty diamond what a search within a budget did not exclude. In the table, ≥ marks a lower bound; "
        "the splits that prove it are in brackets."
    )
    over = " and ".join(filter(None, grid.names))
    title, winner = f"L_MS{' over ' * bool(over)}{over} at k = {result.k}", int(np.argmax(state == "winner"))
    texts = [
        "failed" if of == "failed"
        else ceil_percent(mean) if n == n_splits
        else f"{'open, ' * (of == 'open')}≥ {floor_percent(mean)} ({n})"
        for of, n, mean in zip(state.tolist(), splits.tolist(), value.tolist(), strict=True)
    ]  # fmt: skip
    return _draw_grid(title, caption, grid, winner, parts, texts)


def _draw_grid(
    title: str, caption: str, grid: Grid, best: int, parts: Sequence[Mark | Tiles], texts: Sequence[str]
) -> Picture:
    """Draw settings over two hyperparameters, with a star at the best; the table has a text for each."""
    y, x = np.nonzero(grid.best == best)
    star = Mark(x, y, "white", shape="*", size=11, edge="black")
    (first, second), corner = grid.values, " \\ ".join(filter(None, grid.names[::-1])) or "setting"
    across, up = Scale(grid.names[0], names=first), Scale(grid.names[1], names=second)
    cells = np.append(texts, NOT_SET)[grid.best].tolist()  # where there is no setting, -1 is the last
    rows = [(name, *line) for name, line in zip(second, cells, strict=True)]
    return Picture(title, caption, Chart(across, up, [*parts, star]), (corner, *first), rows)


def draw_folds(result: Certified) -> Picture:
    """Return the figure of all k."""
    spans, unit = per_k(result.candidates, result.problem), f"{result.task.unit}s"
    best = next(span for span in spans if span["state"] == "winner")
    bounded = [span for span in spans if span["l_ms"] is None]
    x = np.array([(span["k_first"], span["k_last"], np.nan) for span in bounded], np.float64).ravel()
    y = np.array([100 * (span["lower_bound"] or 0.0) for span in bounded])
    parts = [Mark(x, np.repeat(y, 3), width=0.8)]
    parts.append(Mark(x[::3], y, name="lower bound" * bool(bounded), shape="^", hollow=True))
    for column, colour, shape in (("l_ms", BLUE, "o"), ("l_ee", ORANGE, "s")):
        known = [span for span in spans if span["l_ms"] is not None and span[column] is not None]
        x, y = (np.array([span[name] for span in known], np.float64) for name in ("k_first", column))
        parts.append(Mark(x, 100 * y, colour, column.upper(), shape=shape, size=6))
    winner = [best["k_first"]], [100 * best["l_ms"]]
    parts.append(Mark(*winner, RED, "winner", shape="o", size=11, hollow=True))
    first, last = float(spans[0]["k_first"]), float(spans[-1]["k_last"])
    many = last > 8 * first
    caption = (
        "L_MS and L_EE of the best candidate at the winner's and each reported k. At every other k a lower "
        "bound of L_MS for all its candidates: above the winner's where they are beaten; where the table "
        "says open or failed it may be below. Unseen, in the table, needed no fit. Values of k with as many "
        f"{unit} in a fold are one procedure, joined by a line."
    )
    columns = ("lower_bound", floor_percent), ("l_ms", ceil_percent), ("l_ee", ceil_percent)
    rows = [
        (
            " to ".join(map(str, sorted({span["k_first"], span["k_last"]}))),
            str(span["n_select"]), span["state"],
            *(NOT_SET if span[name] is None else write(span[name]) for name, write in columns),
            results.shorten_setting(span["setting"]) or NOT_SET,
        )
        for span in spans
    ]  # fmt: skip
    heads = ("k", f"{unit} in a fold", "state", "lower bound of L_MS", "L_MS", "L_EE", "setting")
    ends = (first / 1.15, last * 1.1) if many else (first - 0.8, last + 0.8)
    chart = Chart(Scale("k", *ends, log=many, whole=True), Scale("%"), parts)
    return Picture("L_MS and L_EE against k", caption, chart, heads, rows)


def _draw_strips(result: Scored, score: Score) -> Picture:
    names, caption = results.list_short_names(result), "Each dot is a split, and the bar is the mean."
    rows, parts, (shown, _) = list[tuple[str, ...]](), list[Mark](), results.find_shown(result)
    if results.lists_settings(result):
        differing = results.list_differing([entry.settings[0] or {} for entry in result.entries])
        caption += f" Lines are named by {', '.join(differing)}."
    if len(names) > MAX_STRIPS:
        caption += f" The first {MAX_STRIPS} of {len(names):,} lines are drawn."
    for y, (name, entry) in enumerate(zip(names, result.entries, strict=True)):
        values = result.of_splits(entry, score)[shown]
        if not len(values := values[~np.isnan(values)]):
            continue
        quartiles, mean = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist(), float(np.mean(values))
        rows.append((name, f"{len(values):,}", *(f"{value:.4f}" for value in quartiles)))
        if y < MAX_STRIPS:
            parts.append(Mark(values, y, BLUE, shape="o", size=4.5, alpha=0.5))
            parts.append(Mark([mean, mean], [y - 0.36, y + 0.36], width=LINE))
    if name := result.study.interval:
        low, high = np.array([result.interval(entry, score) for entry in result.entries[:MAX_STRIPS]]).T
        bars = _draw_bars(low, high, ORANGE, LINE)
        parts.append(bars._replace(y=np.add(bars.y, 0.25), name=f"interval {name}, {format_level(MISS)}"))
    if not rows:
        return Picture("Single splits", f"There is none: {score.name} is not defined on any single split.")
    scale, height = Scale(names=names[:MAX_STRIPS], down=True), 58 + 20 * min(len(names), MAX_STRIPS)
    heads = ("line", "splits", "least", "lower quartile", "median", "upper quartile", "largest")
    chart = Chart(Scale(f"{score.name} of one split"), scale, parts, height)
    return Picture("Single splits", caption, chart, heads, rows)


def _line(x: ArrayLike, y: ArrayLike, colour: str, name: str, width: float = LINE, **more: Any) -> Mark:
    """Return a line of shares, in percent."""
    return Mark(100 * np.asarray(x, np.float64), 100 * np.asarray(y, np.float64), colour, name, width, **more)


def _draw_roc(result: Result, judged: Judged) -> Picture:
    title, found = "ROC curve", trace_roc(judged) if result.task.n_classes == 2 else None
    if found is None:
        return Picture(title, "There is none: it takes two classes, and models that give scores.")
    several, mean, (false, true) = len(found.areas) > 1, found.curves.mean(axis=0), found.point
    name, width, alpha = ("single models", 0.8, FAINT) if several else ("", 2.0, 1.0)
    parts = [Mark([0, 100], [0, 100], name="guessing", width=1, dash=(1, 3))]
    for i, curve in enumerate(found.curves):
        parts.append(_line([0, *GRID], [0, *curve], BLUE, "" if i else name, width, alpha=alpha))
    if several:
        parts.append(_line([0, *GRID], [0, *mean], BLUE, "their mean", 2))
    parts.append(Mark([100 * false], [100 * true], RED, shape="*", size=11, edge="black"))
    of = f"mean AUC of {len(found.areas)} models" if several else "AUC"
    caption = (
        f"{of} {float(found.areas.mean()):.4f}, measured. A row counts as positive if it is of the class "
        f"‘{result.task.classes[judged.positive]}’. The star is where the rows are classified: "
        f"{format_percent(false)} false and {format_percent(true)} true positive."
        f"{' Curves are of single models, whose scores are on different scales.' if several else ''}"
    )
    if found.left_out:
        caption += f" {pluralize(found.left_out, 'model')} judged rows of only one class."
    heads = ("false positive rate", "true positive rate")
    x, y = (Scale(f"{head}, in %", -2, 102) for head in heads)
    rows = [format_row(rate, float(np.interp(rate, GRID, mean))) for rate in LISTED_RATES]
    return Picture(title, caption, Chart(x, y, parts, 245), heads, rows)


def _draw_calibration(result: Result, judged: Judged) -> Picture:
    title, found = "Calibration", judged.calibration
    if found is None:
        return Picture(title, f"There is none: {results.explain_no_probabilities()}.")
    classes, labels = result.task.classes, [*dict.fromkeys(each.label for each in found.bins)]
    parts = [Mark([0, 100], [0, 100], name="mean = share", width=1, dash=(1, 3))]
    for label, colour in zip(labels, COLOURS, strict=False):
        bins = [each for each in found.bins if each.label == label]
        mean, share = [each.mean for each in bins], [each.found / each.rows for each in bins]
        bars = [(*each.interval, np.nan) for each in bins if each.interval]
        parts += [_line(np.repeat(mean, 3), np.ravel(bars), colour, "", 1)] * bool(bars)
        parts.append(_line(mean, share, colour, f"‘{classes[label]}’", 0, shape="o"))
    missed = "" if found.refusal else " The mean is outside where a bar, the interval, misses the diagonal."
    drawn = f" The first {len(COLOURS)} classes are drawn." * (len(labels) > len(COLOURS))
    caption = f"{found.note}{missed} Verdict: {found.verdict}.{drawn}"
    x, y = (Scale(f"{name}, in %", -2, 102) for name in ("mean probability", "share found"))
    return Picture(title, caption, Chart(x, y, parts, 245), *found.tabulate(classes))


def _draw_net_benefit(result: Result, judged: Judged) -> Picture:
    title, found = "Decision curve", trace_net_benefit(result, judged)
    if found is None:
        return Picture(title, "There is none: it takes two classes, and rows of both.")
    of_proven = "Nothing in it is proven."
    if found.points:
        of_proven = "The points are proven, and a line leads from each to what was measured there."
    caption = (
        f"Net benefit where {format_percent(found.prevalence)} are positive, in percent of all rows, by the "
        "probability from which a row is worth flagging. All curves are measured. "
        f"{ABOUT_CUT_OFF.get(found.cut_off, '')}{of_proven}"
    )
    parts = [
        _line(found.worth[[0, -1]], [0, 0], INK, "flag no row", 1),
        _line(found.worth, found.everybody, INK, "flag all rows", 1.2, dash=(1, 3)),
        _line(found.worth, found.by_rule, BLUE, "this rule, measured", 2),
    ]
    if found.by_cut_off is not None:
        parts.append(_line(found.worth, found.by_cut_off, ORANGE, found.cut_off, dash=(5, 2)))
    at = np.unique(np.linspace(0, len(found.worth) - 1, LISTED_BENEFITS).astype(int))
    curves = found.worth, found.by_rule, found.by_cut_off, found.everybody
    rows = [format_row(*(None if curve is None else curve[i] for curve in curves), None) for i in at]
    for i, (worth, proven, measured) in enumerate(found.points):
        name = "" if i else "proven: at least"
        parts.append(_line([worth] * 2, [proven, measured], RED, "", 1.2))
        parts.append(_line([worth], [proven], RED, name, 0, shape="^", size=7))
        rows.append(format_row(worth, measured, None, None, f"at least {floor_percent(proven)}"))
    heads = ("worth flagging from", "this rule", found.cut_off or NOT_SET, "all rows", "proven of this rule")
    x = Scale("worth flagging from a probability of, in %", 0, 100 * float(found.worth[-1]))
    ends = -LOWEST * 100 * found.prevalence, HIGHEST * 100 * found.prevalence
    chart = Chart(x, Scale("net benefit, in % of the rows", *ends), parts, 245)
    return Picture(title, caption, chart, heads, rows)


def _draw_scores(result: Result, judged: Judged) -> Picture:
    title, two = "Distribution of scores by class", result.task.n_classes == 2
    if judged.rank is not None:
        values = judged.rank
    elif judged.probability is not None:  # with more than two classes, that of the row's own class
        values = judged.probability[np.arange(len(judged.y)), judged.y]
    else:
        return Picture(title, f"There is none: the models give no {'scores' if two else 'probabilities'}.")
    edges = np.histogram_bin_edges(values, BINS)
    counts = np.array([np.histogram(values[judged.y == c], edges)[0] for c in range(result.task.n_classes)])
    classes = [str(label) for label in result.task.classes]
    x, where = "probability given to the class of the row", "The further right, the better."
    if two:
        x = f"score (larger: {_shorten_name(classes[judged.positive])})"
        where = f"A larger score speaks for ‘{classes[judged.positive]}’."
        if len(np.unique(judged.classifier)) > 1:
            where += " Scores of different models, on scales of their own, are in one picture."
    if len(classes) > MAX_DRAWN_CLASSES:
        where += f" The first {MAX_DRAWN_CLASSES} classes are drawn."
    shown, parts = classes[:MAX_DRAWN_CLASSES], list[Mark]()
    for i, (name, of_class) in enumerate(zip(shown, counts, strict=False)):
        steps = [0, *np.repeat(100 * of_class / max(1, of_class.sum()), 2), 0]
        parts.append(Mark(np.repeat(edges, 2), steps, COLOURS[i], name, 1.6, DASHES[i % len(DASHES)]))
    bins = zip(edges[:-1], edges[1:], counts[: len(shown)].T.tolist(), strict=True)
    rows = [format_row(f"{low:.3g} to {high:.3g}", *column) for low, high, column in bins]
    chart = Chart(Scale(x), Scale("% of the class", 0), parts, 190)
    caption = f"Share of the rows of each class, by score. {where}"
    return Picture(title, caption, chart, ("score", *shown), rows)


def _draw_importance(result: Result, judged: Judged) -> Picture:
    title = "Permutation importance"
    found = permute_columns(judged, result.task.n_classes, result.study.seed)
    if found is None:
        why = "there are too many columns" if judged.parts else "the folder keeps no models of single splits"
        return Picture(title, f"There is none: {why}.")
    (rise, spread, used), names = found, [*map(str, result.task.features)]
    order = np.argsort(-rise, kind="stable").tolist()
    caption = (
        "Measured, not proven: how much the share of wrong rows rises when the values of one column are "
        f"shuffled, on {used:,} of the judged rows; lines are standard deviations over shuffles. Columns "
        "that carry the same information share their importance, and nothing here says what causes what."
    )
    if len(names) > MAX_BARS:
        caption += f" The first {MAX_BARS} of {len(names):,} are drawn."
    points = [[format_percent(share).removesuffix(" %") for share in (rise[i], spread[i])] for i in order]
    rows = [(names[i], *texts) for i, texts in zip(order[:MAX_IMPORTANT], points, strict=False)]
    shown = order[:MAX_BARS]
    rise, spread = 100 * rise[shown], 100 * spread[shown]
    parts = [_draw_bars(np.zeros(len(shown)), rise), _draw_bars(rise - spread, rise + spread, INK, 1)]
    parts.append(Mark([0, 0], [-0.6, len(shown) - 0.4], width=0.8))
    scale = Scale("rise of the share of wrong rows, in points")
    chart = Chart(scale, Scale(names=[names[i] for i in shown], down=True), parts, 45 + 17 * len(shown))
    return Picture(title, caption, chart, ("column", "rise, in points", "sd"), rows)


def _draw_bars(start: Values, stop: Values, colour: str = BLUE, width: float = 8.0) -> Mark:
    x = np.column_stack([start, stop, np.full(len(start), np.nan)])
    return Mark(x.ravel(), np.repeat(np.arange(len(start)), 3), colour, width=width)


def _draw_numbers(result: Result, judged: Judged) -> Picture:
    truth, predicted = judged.y.astype(np.float64), judged.label.astype(np.float64)
    both, errors = np.concatenate([truth, predicted]), np.abs(predicted - truth)
    ends = [float(both.min()), float(both.max())]
    parts = [Mark(ends, ends, width=1, dash=(1, 3))]
    parts.append(Mark(predicted, truth, BLUE, shape="o", size=3, alpha=FAINT))
    chart = Chart(Scale("predicted"), Scale(_shorten_name(result.task.target.name)), parts, 245)
    rows = [(format_percent(q), f"{np.quantile(errors, q):.4g}") for q in (0.5, 0.75, 0.9, 0.95, 1.0)]
    caption = "Each dot is a judged row; on the dotted line the two are equal."
    heads = ("share of the rows", "absolute error at most")
    return Picture("Predicted and true numbers", caption, chart, heads, rows)


class Plots(NamedTuple):
    """What can be drawn of a result: each method returns the matplotlib axes it has drawn on.

    These can be changed further. Each method raises an InputError where there is nothing to draw.

    Attributes:
        result: the finished study.
    """

    result: Certified

    def __call__(self, axes: "Axes | None" = None) -> "Axes":
        """Draw what is proven; see ``bounds``."""
        return self.bounds(axes)

    def bounds(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the range that each claim proves, what was measured with its interval, and the baseline.

        Comparisons, net benefits and what is in units of the target are left out.
        """
        c, nothing = self.result.certificate, (np.nan, np.nan)
        shares = [one for one in c.claims if one.quantity.largest == 1.0 and not one.quantity.reference]
        claims = [claim for claim in shares if claim.quantity.worth is None]
        if not claims:
            return _plot(axes, Picture("Bounds", "There is none: no claim is a share of rows."))
        at_most, is_error = ([getattr(one.quantity, of) for one in claims] for of in ("at_most", "is_error"))
        risks, y = 100 * np.array([claim.risk for claim in claims]), np.arange(len(claims))
        measured = [None if claim.guaranteed else claim.share for claim in claims]
        exact = {claim: ends for claim, *ends in self.result.intervals}
        low, high = 100 * np.array([exact.get(claim, nothing) for claim in claims]).T
        proven = _draw_bars(np.where(at_most, 0, 100 - risks), np.where(at_most, risks, 100), width=10)
        parts = [proven._replace(name="proven")]
        if exact:
            drawn = _draw_bars(low, high, RED, LINE)
            parts.append(drawn._replace(name=f"exact interval, {format_level(c.delta)}"))
        parts.append(Mark(100 * np.array(measured, np.float64), y, RED, "measured", shape="o"))
        if any(is_error):
            across = np.add.outer(y, [-0.4, 0.4, np.nan])[is_error].ravel()
            parts.append(Mark(100 * c.baseline.error, across, INK, "baseline", LINE, (2, 1)))
        rules = [claim.classifier if claim.cut_off is None else "cut-off" for claim in claims]
        once = f", by {rules[0]}" * (len({*rules}) == 1)
        names = list[str]()
        for claim, rule in zip(claims, rules, strict=True):
            of = f" of {claim.label}" * (claim.quantity.by_class and not claim.quantity.two_classes)
            names.append(f"{claim.quantity}{of}{f', {rule}' * (not once)}")
        x = Scale(self.result.task.target.word("in %", "in % of the clip") + once, 0, 102)
        chart = Chart(x, Scale(names=names, down=True), parts, 110 + 22 * len(claims))
        return _plot(axes, Picture("Bounds", "", chart))

    def surface(self, axes: "Axes | None" = None) -> "Axes":
        """Draw L_MS, or its lower bound, for the winner's learner at its k, over its hyperparameters."""
        return _plot(axes, draw_landscape(self.result))

    def roc(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the ROC curves of the models on the rows that the first claim counts, and where they work."""
        return _plot(axes, _draw_roc(self.result, judge_rows(self.result)))

    def calibration(self, axes: "Axes | None" = None) -> "Axes":
        """Draw observed shares against predicted probabilities, on the rows that the first claim counts."""
        return _plot(axes, _draw_calibration(self.result, judge_rows(self.result)))

    def decision_curve(self, axes: "Axes | None" = None) -> "Axes":
        """Draw net benefits over the probability from which a row is worth flagging, and what is proven.

        Curves are measured on the rows that the first claim counts; points are proven, if the study claims
        net benefits such as ``net_benefit:0.02:0.1``.
        """
        return _plot(axes, _draw_net_benefit(self.result, judge_rows(self.result)))

    def scores(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the distribution of the scores of each class, on the rows that the first claim counts."""
        return _plot(axes, _draw_scores(self.result, judge_rows(self.result)))


def plot_scores(result: Scored, score: Score, axes: "Axes | None") -> "Axes":
    """Draw a score on each split, its mean and its interval; see ``Scored.plot``."""
    return _plot(axes, _draw_strips(result, score))


def _plot(axes: "Axes | None", picture: Picture) -> "Axes":
    """Draw on the axes given, or on new ones, which a notebook shows below their cell."""
    if picture.chart is None:
        why = f"{picture.caption[0].lower()}{picture.caption[1:]}"
        raise InputError(f"{picture.title} of this result: {why}")
    if axes is None:
        from matplotlib import figure, pyplot

        make = pyplot.figure if is_notebook() else figure.Figure
        inches = 6.4, 6.4 * picture.chart.height / WIDTH
        axes = make(figsize=inches, layout="constrained").add_subplot()
    draw_on(axes, picture.chart)
    return axes
