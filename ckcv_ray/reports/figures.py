"""The figures of a result: each a chart with a caption and the table of its values.

What is drawn of judged rows is of those that the first claim counts, or of kept predictions. ``result.plot``
draws the same charts in notebooks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.criteria import MeanBound, MeanError
from ckcv_ray.core.measures import Score
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import InputError, StoreError, pluralize
from ckcv_ray.reports.charts import (
    BLUE,
    COLOURS,
    INK,
    MAX_NAME,
    ORANGE,
    RED,
    Band,
    Chart,
    Mark,
    Scale,
    Tiles,
    draw_on,
    is_geometric,
    shorten_name,
    write_svg,
)
from ckcv_ray.reports.scores import list_differing, name_entries
from ckcv_ray.runs.judged import (
    BY_BEST,
    BY_PROBABILITY,
    GRID,
    TABLE_GRID,
    Judged,
    calibrate,
    count_scores,
    judge_rows,
    permute_columns,
    trace_net_benefit,
    trace_roc,
)
from ckcv_ray.runs.progress import is_notebook
from ckcv_ray.runs.settings import (
    Grid,
    SettingScores,
    Validation,
    list_validations,
    make_grid,
    shorten_setting,
)
from ckcv_ray.runs.values import ResultValues
from ckcv_ray.study.problem import Candidate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_SIDE, PART_SIDE, FULL_SIDE = 0.12, 0.66, 0.98  # of squares
FAINT, LINE = 0.35, 1.4
MAX_STRIPS, MAX_DRAWN_CLASSES, MAX_BARS = 40, 6, 15
LISTED_BENEFITS = 11  # rows in the table of the decision curve
MAX_IMPORTANT = 50  # columns in the table of importance
LOWEST, HIGHEST = 0.4, 1.45  # of an axis of net benefits, in prevalences
FIVE_NUMBERS = (0.0, 0.25, 0.5, 0.75, 1.0)
QUANTILES = (0.5, 0.75, 0.9, 0.95, 1.0)
SHAPES = "os^Dvx"  # of curves
PARAMETERS = re.compile(r"(?<![^ ])([^ ,=]+) = ")  # in the text of a setting
DASHES = ((), (5, 2), (5, 2, 1, 2), (1, 2))
ABOUT_CUT_OFF = {
    BY_PROBABILITY: "Probabilities are converted from the share of the class in these rows (Bayes). ",
    BY_BEST: "The best cut-off is chosen on the rows it is measured on, so its curve is too good. ",
    "": "",
}
OPEN = " An empty diamond was not excluded: the search within a budget gave it few splits or none."
DOTS = {  # what is drawn for each split
    "error": "the {} Clopper-Pearson bound",
    "balanced": "the mean of the classes' {} Clopper-Pearson bounds",
    "cost": "Clopper-Pearson's {} formula at the cost of the decisions, in % of the largest cost,",
    "mean_error": "the share of wrong rows",
    "groups": "Clopper-Pearson's {} formula at the groups' shares of wrong rows",
}


class Picture(NamedTuple):
    """A figure with its table; or the reason why there is none.

    Attributes:
        title: heading.
        caption: what it shows, or why there is none.
        chart: what is drawn; None if there is nothing.
        heads: names of the columns of its table.
        rows: the table, as text.
    """

    title: str
    caption: str
    chart: Chart | None = None
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    @property
    def svg(self) -> str:
        """The chart as an element of a page; "" if there is none."""
        label = f"{self.title}. The values are in the table below the figure."
        return "" if self.chart is None else write_svg(self.chart, label)


def draw_performance(result: ResultValues, judged: Judged | None) -> Iterator[Picture]:
    """Yield the figures of judged rows; none if none are known.

    Raises:
        StoreError: a stored model cannot classify rows.
    """
    if judged is None:
        return
    if result.task.has_numbers:
        yield _draw_numbers(result, judged)
        return
    for draw in (_draw_roc, _draw_calibration, _draw_net_benefit, _draw_scores, _draw_importance):
        yield draw(result, judged)


def draw_search(result: ResultValues, queue: RaceQueue) -> dict[str, list[Picture]]:
    """Return the figures of all candidates and of all k, and that of the winner's splits, by their sections.

    Raises:
        StoreError: the log does not lead to the certificate's winner.
    """
    leader = queue.selection.winner()
    if leader is None or queue.problem.candidate(leader) != Candidate(result.setting, result.k):
        raise StoreError("the log does not lead to the certificate's winner: see ckcv verify")
    search = [_draw_landscape(result), _draw_folds(result)]
    return {"search": search, "means": [_draw_spread(result, queue, leader)]}


def draw_scores(result: ResultValues, score: Score, settings: Sequence[SettingScores]) -> Iterator[Picture]:
    """Yield the scores of single splits, and each learner's validation curve and heat map."""
    splits = "inner splits" if result.chosen is not None else "splits"
    if result.n_splits > 1:
        yield _draw_strips(result, score)
    for found in list_validations(settings, score):
        if found.curves:
            yield _draw_curves(found, score, splits)
        if found.heat is not None:
            yield _draw_heat(found, found.heat, score, splits)


def _draw_landscape(result: ResultValues) -> Picture:
    problem, n_splits = result.problem, result.certificate.winner.n_splits
    number, _ = problem.find_learner(result.setting)
    rows = [
        row
        for row in result.candidates.to_pylist()
        if row["k_first"] <= result.k <= row["k_last"] and problem.learner_of_paths[row["path"]] == number
    ]
    value = np.array([row["lower_bound"] if row["l_ms"] is None else row["l_ms"] for row in rows])
    state, splits = (np.array([row[name] for row in rows]) for name in ("state", "splits"))
    settings = [problem.learner.space.setting(row["path"], row["step"]) for row in rows]
    winner = int(np.flatnonzero(state == "winner")[0])
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
        f"Each square is a candidate{', the best at the values of its axes' if grid.joined else ''}. A full "
        f"square has all {n_splits} splits and is coloured by its L_MS; a smaller one was dropped as beaten, "
        "the smaller the earlier, and is coloured by a lower bound. The star is the winner"
        f"{'; a cross marks failed evaluations' if failed.any() else ''}."
        f"{OPEN if left_open.any() else ''} In the table, ≥ marks a lower bound; the splits that prove it "
        "are in brackets."
    )
    over = " and ".join(axis.name for axis in (grid.x, grid.y) if axis.name)
    table = _tabulate_grid(grid, [_format_candidate(row, n_splits) for row in rows])
    title = f"L_MS{' over ' * bool(over)}{over} at k = {result.k}"
    return Picture(title, caption, _chart_grid(grid, winner, parts), *table)


def _format_candidate(row: Mapping[str, Any], n_splits: int) -> str:
    """Return L_MS of a candidate, or a lower bound and the number of splits that prove it."""
    if row["state"] == "failed":
        return "failed"
    if row["splits"] == n_splits:
        return ceil_percent(row["lower_bound"] if row["l_ms"] is None else row["l_ms"])
    left = "open, " if row["state"] == "open" else ""
    return f"{left}≥ {floor_percent(row['lower_bound'])} ({row['splits']})"


def _chart_grid(grid: Grid, best: int, parts: Sequence[Mark | Tiles]) -> Chart:
    """Return a chart of settings over two hyperparameters, with a star at the best."""
    y, x = np.nonzero(grid.best == best)
    star = Mark(x, y, "white", shape="*", size=11, edge="black")
    across, up = (Scale(axis.name, names=axis.values) for axis in (grid.x, grid.y))
    return Chart(across, up, [*parts, star])


def _tabulate_grid(grid: Grid, texts: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of a table with the text of each setting that is shown."""
    corner = " \\ ".join(axis.name for axis in (grid.y, grid.x) if axis.name) or "setting"
    rows = [
        (name, *("–" if i < 0 else texts[i] for i in line))
        for name, line in zip(grid.y.values, grid.best.tolist(), strict=True)
    ]
    return (corner, *grid.x.values), rows


def _draw_folds(result: ResultValues) -> Picture:
    spans, unit = result.per_k(), "rows" if result.certificate.sample.groups is None else "groups"
    reported = [span for span in spans if span["l_ms"] is not None]
    best = next(span for span in spans if span["state"] == "winner")
    low: dict[str, list[dict[str, Any]]] = {"beaten": [], "open": [], "failed": []}
    for span in spans:
        if span["l_ms"] is None:
            low[span["state"] if span["state"] in ("open", "failed") else "beaten"].append(span)
    parts = []
    for (state, found), shape, colour in zip(low.items(), "^Dx", (INK, INK, RED), strict=True):
        x = np.array([(span["k_first"], span["k_last"], np.nan) for span in found], np.float64).ravel()
        y = np.array([100 * (span["lower_bound"] or 0.0) for span in found])
        name = f"lower bound ({state})" if found else ""
        parts += [Mark(x, np.repeat(y, 3), colour, width=0.8)]
        parts += [Mark(x[::3], y, colour, name, shape=shape, hollow=True)]
    for column, colour, shape in (("l_ms", BLUE, "o"), ("l_ee", ORANGE, "s")):
        known = [span for span in reported if span[column] is not None]
        x, y = (np.array([span[name] for span in known], np.float64) for name in ("k_first", column))
        parts.append(Mark(x, 100 * y, colour, column.upper(), shape=shape, size=6))
    parts.append(
        Mark([best["k_first"]], [100 * best["l_ms"]], RED, "winner", shape="o", size=11, hollow=True)
    )
    ks = np.array([spans[0]["k_first"], spans[-1]["k_last"]], np.float64)
    many = ks[1] > 8 * ks[0]
    caption = (
        "L_MS and L_EE of the best candidate at the winner's and each reported k. At every other k a lower "
        "bound of L_MS for all its candidates: above the winner's where they are beaten"
        f"{'; open ones were not excluded' if low['open'] else ''}"
        f"{'; where evaluations failed it may be below' if low['failed'] else ''}. Unseen, in the table, "
        f"needed no fit. Values of k with as many {unit} in a fold are one procedure, joined by a line."
    )
    rows = [
        (
            " to ".join(map(str, sorted({span["k_first"], span["k_last"]}))),
            str(span["n_select"]), span["state"], _format(floor_percent, span["lower_bound"]),
            _format(ceil_percent, span["l_ms"]), _format(ceil_percent, span["l_ee"]),
            shorten_setting(span["setting"]) or "–",
        )
        for span in spans
    ]  # fmt: skip
    heads = ("k", f"{unit} in a fold", "state", "lower bound of L_MS", "L_MS", "L_EE", "setting")
    ends = (ks[0] / 1.15, ks[1] * 1.1) if many else (ks[0] - 0.8, ks[1] + 0.8)
    chart = Chart(Scale("k", *ends, log=many), Scale("%"), parts)
    return Picture("L_MS and L_EE against k", caption, chart, heads, rows)


def _format(formatted: Callable[[float], str], value: float | None) -> str:
    return "–" if value is None else formatted(value)


def _draw_spread(result: ResultValues, queue: RaceQueue, leader: Leader) -> Picture:
    """Draw the winner's splits: what the means L_MS and L_EE are of."""
    certificate = result.certificate
    winner, sample = certificate.winner, certificate.sample
    fold, n_classes = queue.selection.sizes[leader.size], len(sample.labels)
    totals = np.array([member.totals for member in result.ensemble.members])
    units = result.problem.units(Stage.ESTIMATE, leader.size)
    estimate = result.problem.criterion.value(totals, units).tolist()
    select = fold.prefix_values(leader.path, leader.step)
    places = [(False, leader.size, split, leader.path, leader.step) for split in range(fold.n_splits)]
    errors = [sum((queue.ledger.totals(*place) or ())[:n_classes]) for place in places]
    parts, means = [], (float(np.mean(estimate)), result.l_ms)
    for y, (name, values, colour) in enumerate((("L_EE", estimate, ORANGE), ("L_MS", select, BLUE))):
        x, offset = _stack(100 * np.asarray(values))
        parts.append(Mark(x, y + offset, colour, shape="o", size=4.5, alpha=0.75))
        at = [100 * means[y]] * 2
        parts.append(Mark(at, [y - 0.36, y + 0.36], colour, f"{name} {ceil_percent(means[y])}", LINE))
    value = "bound"
    if winner.criterion == MeanError.name or winner.bound == "loss":
        value = "error rate" if winner.criterion == MeanError.name else "value"
    grouped = sample.groups is not None and winner.criterion == MeanBound.name
    dot = DOTS["groups" if grouped else winner.criterion].format(format_level(winner.delta))
    caption = (
        f"Each dot is {dot} of one split of the winner, on {winner.n_select:,} "
        f"{'rows' if sample.groups is None else 'groups'}; the lines are their means. The splits share rows: "
        "their spread is not an error bar of the mean."
    )
    columns = zip(errors, select, certificate.counts.errors, estimate, strict=True)
    rows = [
        (str(i), f"{a}", ceil_percent(b), f"{c}", ceil_percent(d)) for i, (a, b, c, d) in enumerate(columns)
    ]
    rows.append(("mean", "", ceil_percent(means[1]), "", ceil_percent(means[0])))
    heads = ("split", "errors, select", value, "errors, estimate", value)
    scale = Scale(names=("estimate sets", "select sets"))
    chart = Chart(Scale(f"{value} of one split, in %"), scale, parts, 190)
    return Picture(f"{value.capitalize()}s of the single splits", caption, chart, heads, rows)


def _stack(values: Values) -> tuple[Values, Values]:
    """Return values in ascending order, and offsets in -0.3 .. 0.3 that separate equal ones."""
    x, count = np.unique(values, return_counts=True)
    step = min(0.1, 0.6 / max(1, int(count.max()) - 1))
    return np.repeat(x, count), np.array([step * (i - (c - 1) / 2) for c in count for i in range(c)])


def _draw_strips(result: ResultValues, score: Score) -> Picture:
    """Draw the scores of single splits; the table has their quartiles."""
    names, more = name_entries(result), ""
    values = (result.of_splits(entry, score)[result.counted] for entry in result.entries)
    known = [splits[~np.isnan(splits)] for splits in values]
    if not result.one_each:
        more = f" Lines are named by {', '.join(list_differing(result))}."
    if len(known) > MAX_STRIPS:
        more += f" The first {MAX_STRIPS} of {len(known):,} lines are drawn."
    parts, shown = [], known[:MAX_STRIPS]
    for y, splits in enumerate(shown):
        parts.append(Mark(splits, y, BLUE, shape="o", size=4.5, alpha=0.5))
        if len(splits):
            parts.append(Mark([float(np.mean(splits))] * 2, [y - 0.36, y + 0.36], width=LINE))
    rows = [
        (name, f"{len(splits):,}", *(f"{value:.4f}" for value in np.quantile(splits, FIVE_NUMBERS)))
        for name, splits in zip(names, known, strict=True)
        if len(splits)
    ]
    scale = Scale(names=names[:MAX_STRIPS], down=True)
    chart = Chart(Scale(f"{score.name} of one split"), scale, parts, 58 + 20 * len(shown))
    heads = ("line", "splits", "least", "lower quartile", "median", "upper quartile", "largest")
    return Picture(
        "Single splits", f"Each dot is a split, and the bar is the mean.{more}", chart, heads, rows
    )


def _draw_curves(found: Validation, score: Score, splits: str) -> Picture:
    lines, parameters = [curve.line for curve in found.curves], PARAMETERS.findall(found.curves[0].line)
    several, more = len(lines) > 1, ""
    if several and max(map(len, lines)) > MAX_NAME:
        lines = [PARAMETERS.sub("", line) for line in lines]
        more = f" Lines are named by {', '.join(parameters)}."
    if found.left_out:
        more += f" {pluralize(found.left_out, 'line')} with worse means not drawn."
    parts: list[Mark | Band] = []
    for curve, name, colour, shape in zip(found.curves, lines, COLOURS, SHAPES, strict=False):
        low, high = curve.mean - curve.deviation, curve.mean + curve.deviation
        parts.append(Band(curve.x, low, high, colour, 0.2 / len(lines)))
        named = name if several else ""
        parts.append(Mark(curve.x, curve.mean, colour, named, LINE, shape=shape, size=4.5))
    rows = [
        (*([curve.line] if several else []), f"{x:g}", f"{mean:.4f}", f"{deviation:.4f}")
        for curve in found.curves
        for x, mean, deviation in zip(curve.x, curve.mean, curve.deviation, strict=True)
    ]
    caption = (
        f"Mean over {splits} at each value of {found.parameter}, and a standard deviation around it; "
        f"{found.best}.{more}"
    )
    log = is_geometric(np.unique(np.concatenate([curve.x for curve in found.curves])))
    chart = Chart(Scale(shorten_name(found.parameter), log=log), Scale(score.name), parts, 195)
    heads = (*(["line"] if several else []), found.parameter, "mean", "sd")
    return Picture(f"Validation curve of {found.learner}", caption, chart, heads, rows)


def _draw_heat(found: Validation, grid: Grid, score: Score, splits: str) -> Picture:
    y, x = np.nonzero(grid.best >= 0)
    means = found.means[grid.best[y, x]]
    tiles = Tiles(x, y, np.full(len(x), FULL_SIDE), means, f"mean {score.name}")
    joined = ", at the best values of the others" if grid.joined else ""
    return Picture(
        f"{score.name} of {found.learner} over {grid.x.name} and {grid.y.name}",
        f"Mean over {splits} at each pair of values{joined}; the star marks the best: {found.best}.",
        _chart_grid(grid, int(np.argmin(score.loss * found.means)), [tiles]),
        *_tabulate_grid(grid, [f"{mean:.4f}" for mean in found.means.tolist()]),
    )


def _draw_roc(result: ResultValues, judged: Judged) -> Picture:
    title, found = "ROC curve", trace_roc(judged) if result.task.n_classes == 2 else None
    if found is None:
        return Picture(title, "There is none: it takes two classes, and models that give scores.")
    area, several = float(found.areas.mean()), len(found.areas) > 1
    parts = [Mark([0, 100], [0, 100], name="guessing", width=1, dash=(1, 3))]
    for i, curve in enumerate(found.curves):
        name = "single models" if several and i == 0 else ""
        width, alpha = (0.8, FAINT) if several else (2.0, 1.0)
        parts.append(_line([0, *GRID], [0, *curve], BLUE, name, width)._replace(alpha=alpha))
    mean = found.curves.mean(axis=0)
    if several:
        parts.append(_line([0, *GRID], [0, *mean], BLUE, "their mean", 2))
    false, true = found.point
    parts.append(Mark([100 * false], [100 * true], RED, shape="*", size=11, edge="black"))
    of = f"mean AUC of {len(found.areas)} models" if several else "AUC"
    caption = (
        f"{of} {area:.4f}, measured. A row counts as positive if it is of the class "
        f"‘{result.task.classes[judged.positive]}’. The star is where the rows are classified: "
        f"{format_percent(false)} false and {format_percent(true)} true positive."
        f"{' Curves are of single models, whose scores are on different scales.' if several else ''}"
    )
    if found.left_out:
        caption += f" {pluralize(found.left_out, 'model')} judged rows of one class alone."
    rows = [(format_percent(x), format_percent(float(np.interp(x, GRID, mean)))) for x in TABLE_GRID]
    heads = ("false positive rate", "true positive rate")
    x, y = (Scale(f"{head}, in %", -2, 102) for head in heads)
    return Picture(title, caption, Chart(x, y, parts, 245), heads, rows)


def _line(
    x: ArrayLike, y: ArrayLike, colour: str = INK, name: str = "", width: float = LINE, *dash: float
) -> Mark:
    """Return a line of shares, in percent."""
    return Mark(100 * np.asarray(x, np.float64), 100 * np.asarray(y, np.float64), colour, name, width, dash)


def _draw_calibration(result: ResultValues, judged: Judged) -> Picture:
    title, found = "Calibration", calibrate(judged)
    if found is None:
        return Picture(title, "There is none: the models give no probabilities.")
    two = result.task.n_classes == 2
    of = f"of ‘{result.task.classes[judged.positive]}’" if two else "of the predicted class"
    caption = (
        f"Each dot is about a tenth of the rows, by the predicted probability {of}. Mean difference of "
        f"predicted and observed: {format_percent(found.error)}."
    )
    columns = (found.low, found.high, found.mean, found.observed)
    rows = [
        (f"{low} to {high}", mean, observed, f"{n:,}")
        for low, high, mean, observed, n in zip(
            *(map(format_percent, column.tolist()) for column in columns), found.rows.tolist(), strict=True
        )
    ]
    parts = [
        Mark([0, 100], [0, 100], name="predicted = observed", width=1, dash=(1, 3)),
        _line(found.mean, found.observed, BLUE, "", 1.2)._replace(shape="o"),
    ]
    x, y = (Scale(f"{name}, in %", -2, 102) for name in ("predicted probability", "observed share"))
    chart = Chart(x, y, parts, 245)
    return Picture(title, caption, chart, ("predicted", "mean", "observed", "rows"), rows)


def _draw_net_benefit(result: ResultValues, judged: Judged) -> Picture:
    title, found = "Decision curve", trace_net_benefit(result, judged)
    if found is None:
        return Picture(title, "There is none: it takes two classes, and rows of both.")
    claims = () if result.finished is None else result.certificate.claims.claims
    benefits = [claim for claim in claims if str(claim.quantity).startswith("net_benefit:")]
    if found.points:
        of_proven = "The points are proven, and a line leads from each to what was measured there."
    elif any(not claim.shares_rule(claims[0]) for claim in benefits):
        of_proven = "What is proven of net benefits is of another cut-off, and not drawn."
    else:
        such = f"net_benefit:{found.prevalence:.2g}:0.1"
        of_proven = f"Nothing in it is proven: a claim such as {such} would prove a point."
    caption = (
        f"Net benefit where {format_percent(found.prevalence)} are positive, in percent of all rows, by the "
        "probability from which on a row is worth flagging. All curves are measured. "
        f"{ABOUT_CUT_OFF[found.cut_off]}{of_proven}"
    )
    parts = [
        _line(found.worth[[0, -1]], [0, 0], INK, "flag no row", 1),
        _line(found.worth, found.everybody, INK, "flag all rows", 1.2, 1, 3),
        _line(found.worth, found.by_rule, BLUE, "this rule, measured", 2),
    ]
    if found.by_cut_off is not None:
        parts.append(_line(found.worth, found.by_cut_off, ORANGE, found.cut_off, LINE, 5, 2))
    for i, point in enumerate(found.points):
        name = "" if i else "proven: at least"
        parts.append(_line([point.worth] * 2, [point.proven, point.measured], RED, "", 1.2))
        parts.append(_line([point.worth], [point.proven], RED, name, 0)._replace(shape="^", size=7))
    listed = np.unique(np.linspace(0, len(found.worth) - 1, LISTED_BENEFITS).astype(int)).tolist()
    columns = (found.worth, found.by_rule, found.by_cut_off, found.everybody)
    rows = [
        (*("–" if column is None else format_percent(float(column[i])) for column in columns), "–")
        for i in listed
    ]
    for point in found.points:
        worth, measured = format_percent(point.worth), format_percent(point.measured)
        rows.append((worth, measured, "–", "–", f"at least {floor_percent(point.proven)}"))
    heads = ("worth flagging from", "this rule", found.cut_off or "–", "all rows", "proven of this rule")
    x = Scale("worth flagging from a probability of, in %", 0, 100 * float(found.worth[-1]))
    ends = -LOWEST * 100 * found.prevalence, HIGHEST * 100 * found.prevalence
    return Picture(
        title, caption, Chart(x, Scale("net benefit, in % of the rows", *ends), parts, 245), heads, rows
    )


def _draw_scores(result: ResultValues, judged: Judged) -> Picture:
    title, two = "Distribution of scores by class", result.task.n_classes == 2
    found = count_scores(judged, result.task.n_classes)
    if found is None:
        return Picture(title, f"There is none: the models give no {'scores' if two else 'probabilities'}.")
    classes = [str(label) for label in result.task.classes]
    x, where = "probability given to the class of the row", "The further right, the better."
    if two:
        x = f"score (larger: {shorten_name(classes[judged.positive])})"
        where = f"A larger score speaks for ‘{classes[judged.positive]}’."
        if len(np.unique(judged.classifier)) > 1:
            where += " Scores of different models, on scales of their own, are in one picture."
    if len(classes) > MAX_DRAWN_CLASSES:
        where += f" The first {MAX_DRAWN_CLASSES} classes are drawn."
    shown, edges = classes[:MAX_DRAWN_CLASSES], np.repeat(found.edges, 2)
    parts = [
        Mark(
            edges, [0, *np.repeat(100 * counts / max(1, counts.sum()), 2), 0], COLOURS[i], name, 1.6,
            DASHES[i % len(DASHES)],
        )
        for i, (name, counts) in enumerate(zip(shown, found.counts, strict=False))
    ]  # fmt: skip
    rows = [
        (f"{low:.3g} to {high:.3g}", *(f"{n:,}" for n in column))
        for low, high, column in zip(
            found.edges[:-1], found.edges[1:], found.counts[: len(shown)].T.tolist(), strict=True
        )
    ]
    chart = Chart(Scale(x), Scale("% of the class", 0), parts, 190)
    caption = f"Share of the rows of each class, by score. {where}"
    return Picture(title, caption, chart, ("score", *shown), rows)


def _draw_importance(result: ResultValues, judged: Judged) -> Picture:
    title = "Permutation importance"
    found = permute_columns(judged, result.task.n_classes, result.study.seed)
    if found is None:
        why = "there are too many columns" if judged.parts else "the folder keeps no models of single splits"
        return Picture(title, f"There is none: {why}.")
    names, order = result.task.features, np.argsort(-found.rise, kind="stable").tolist()
    caption = (
        "Measured, not proven: how much the share of wrong rows rises when the values of one column are "
        f"shuffled, on {found.rows:,} of the judged rows; lines are standard deviations over shuffles. "
        "Columns that say the same share their importance, and nothing here says what causes what."
    )
    if len(names) > MAX_BARS:
        caption += f" The first {MAX_BARS} of {len(names):,} are drawn."
    rows = [
        (
            str(names[i]),
            *(format_percent(value[i]).removesuffix(" %") for value in (found.rise, found.spread)),
        )
        for i in order[:MAX_IMPORTANT]
    ]
    shown = order[:MAX_BARS]
    rise, spread = 100 * found.rise[shown], 100 * found.spread[shown]
    parts = [_draw_bars(np.zeros(len(shown)), rise), _draw_bars(rise - spread, rise + spread, INK, 1)]
    parts.append(Mark([0, 0], [-0.6, len(shown) - 0.4], width=0.8))
    scale = Scale("rise of the share of wrong rows, in points")
    chart = Chart(scale, Scale(names=[str(names[i]) for i in shown], down=True), parts, 45 + 17 * len(shown))
    return Picture(title, caption, chart, ("column", "rise, in points", "sd"), rows)


def _draw_bars(start: Values, stop: Values, colour: str = BLUE, width: float = 8.0) -> Mark:
    """Return a horizontal bar at each of the positions 0, 1, ..."""
    x = np.column_stack([start, stop, np.full(len(start), np.nan)])
    return Mark(x.ravel(), np.repeat(np.arange(len(start)), 3), colour, width=width)


def _draw_numbers(result: ResultValues, judged: Judged) -> Picture:
    truth, predicted = judged.y.astype(np.float64), judged.label.astype(np.float64)
    both, errors = np.concatenate([truth, predicted]), np.abs(predicted - truth)
    ends = [float(both.min()), float(both.max())]
    parts = [
        Mark(ends, ends, width=1, dash=(1, 3)),
        Mark(predicted, truth, BLUE, shape="o", size=3, alpha=FAINT),
    ]
    return Picture(
        "Predicted and true numbers",
        "Each dot is a judged row; on the dotted line the two are equal.",
        Chart(Scale("predicted"), Scale(shorten_name(result.task.target)), parts, 245),
        ("share of the rows", "absolute error at most"),
        [(format_percent(q), f"{np.quantile(errors, q):.4g}") for q in QUANTILES],
    )


class Plots(NamedTuple):
    """What can be drawn of a result: each method returns the axes of matplotlib it has drawn on.

    They can be changed further. Each method raises an InputError where there is nothing to draw, as of an
    evaluation, which has no claims.

    Attributes:
        result: the finished study.
    """

    result: ResultValues

    def bounds(self, axes: "Axes | None" = None) -> "Axes":
        """Draw what each claim proves of the error, next to L_EE, what was measured, and the baseline."""
        self._require_claims()
        certificate = self.result.certificate
        claims = [claim for claim in certificate.claims if claim.quantity.is_error]
        of_numbers, ends = certificate.sample.numbers is not None, [-0.6, len(claims) - 0.4]
        bounds = np.array([100 * claim.risk for claim in claims])
        parts = [_draw_bars(np.zeros(len(bounds)), bounds, width=20)]
        for value, name, colour in (
            (certificate.sample.baseline.error, "baseline", INK),
            (certificate.counts.error, "measured (mean of F*)", RED),
            (certificate.winner.l_ee, "minimised, on estimate sets" if of_numbers else "L_EE", ORANGE),
        ):
            parts.append(Mark([100 * value] * 2, ends, colour, name, 1.2, (5, 2)))
        names = [f"{claim.certification}: {claim.classifier}" for claim in claims]
        what = "mean error, in % of the clip" if of_numbers else "error, in %"
        chart = Chart(Scale(f"upper bound on the {what}", 0), Scale(names=names, down=True), parts)
        return _plot(axes, chart)

    def surface(self, axes: "Axes | None" = None) -> "Axes":
        """Draw L_MS, or its lower bound, of the winner's learner at its k over its hyperparameters."""
        self._require_claims()
        return _plot(axes, _draw_landscape(self.result).chart)

    def roc(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the ROC curves of the models on the rows that the first claim counts, and where they work."""
        return self._plot_rows(_draw_roc, axes)

    def calibration(self, axes: "Axes | None" = None) -> "Axes":
        """Draw observed shares against predicted probabilities, on the rows that the first claim counts."""
        return self._plot_rows(_draw_calibration, axes)

    def decision_curve(self, axes: "Axes | None" = None) -> "Axes":
        """Draw net benefits over the probability from which on a row is worth flagging, and what is proven.

        Curves are measured on the rows that the first claim counts; points are proven, if the study claims
        net benefits such as ``net_benefit:0.02:0.1``.
        """
        return self._plot_rows(_draw_net_benefit, axes)

    def scores(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the distribution of the scores of each class, on the rows that the first claim counts."""
        return self._plot_rows(_draw_scores, axes)

    def _plot_rows(self, draw: Callable[[ResultValues, Judged], Picture], axes: "Axes | None") -> "Axes":
        self._require_claims()
        picture = draw(self.result, judge_rows(self.result))
        if picture.chart is None:
            raise InputError(
                f"{picture.title} of this result: {picture.caption[0].lower()}{picture.caption[1:]}"
            )
        return _plot(axes, picture.chart)

    def _require_claims(self) -> None:
        if self.result.finished is None:
            raise InputError(
                "this is an evaluation, which has no claims: ckcv_ray.run makes a study that has"
            )


def _plot(axes: "Axes | None", chart: Chart | None) -> "Axes":
    """Draw on the axes that are given, or on new ones, which a notebook shows below their cell."""
    assert chart is not None
    if axes is None and is_notebook():
        from matplotlib import pyplot

        axes = pyplot.figure(layout="constrained").add_subplot()
    elif axes is None:
        from matplotlib.figure import Figure

        axes = Figure(layout="constrained").add_subplot()
    draw_on(axes, chart)
    return axes
