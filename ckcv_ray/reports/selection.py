"""Figures of what was compared, with captions and tables.

They are the candidates and the winner's splits of a study with a certification, and else the scores of every
split, with validation curves and heat maps: a score over one hyperparameter or two.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.claims.certificate import Winner
from ckcv_ray.core.criteria import MeanBound, MeanError
from ckcv_ray.core.measures import Score
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import ABSENT, Leader
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import StoreError, pluralize
from ckcv_ray.learners.base import Space
from ckcv_ray.reports.figures import (
    MAX_CURVES,
    MAX_NAME,
    MAX_STRIPS,
    Axis,
    Curve,
    HeatMap,
    Landscape,
    Picture,
    Span,
    draw_folds,
    draw_heat_map,
    draw_landscape,
    draw_spread,
    draw_strips,
    draw_validation,
)
from ckcv_ray.reports.scores import list_differing, name_entries
from ckcv_ray.reports.sections import shorten_setting, shorten_value
from ckcv_ray.runs.settings import SettingScores
from ckcv_ray.runs.values import ResultValues
from ckcv_ray.study.problem import Candidate, describe_setting

STEP, PATH = "setting of a series", "series of settings"  # of a search space whose axes have no names
MAX_PAGE_COLUMNS = 30  # of a confusion matrix; of more classes, as many mistakes are listed
DOTS = {  # what is drawn for each split
    "error": "the {} Clopper-Pearson bound",
    "balanced": "the mean of the classes' {} Clopper-Pearson bounds",
    "cost": "Clopper-Pearson's {} formula at the cost of the decisions, in % of the largest cost,",
    "mean_error": "the share of wrong rows",
    "groups": "Clopper-Pearson's {} formula at the groups' shares of wrong rows",
}


class OneSplit(NamedTuple):
    """Errors of the winner on the select and the estimate set of one split, and their bounds."""

    split: int
    select_errors: int
    select_bound: float
    estimate_errors: int
    estimate_bound: float


def draw_search(result: ResultValues, queue: RaceQueue) -> dict[str, list[Picture]]:
    """Return the figures of all candidates and of all k, and that of the winner's splits, by their sections.

    Raises:
        StoreError: the log does not lead to the certificate's winner.
    """
    leader = queue.selection.winner()
    if leader is None or queue.problem.candidate(leader) != Candidate(result.setting, result.k):
        raise StoreError("the log does not lead to the certificate's winner: see ckcv verify")
    at = make_landscape(result.candidates, queue, leader)
    splits = _list_splits(result, queue, leader)
    search = [_draw_landscape(result, at), _draw_folds(result)]
    return {"search": search, "means": [_draw_spread(result, splits)]}


def make_landscape(candidates: pa.Table, queue: RaceQueue, leader: Leader) -> Landscape:
    """Return L_MS, or its lower bound from the log, over all settings of the winner's learner at its k.

    The log can hold more splits of a beaten candidate than the table of candidates, which keeps only a proof.
    """
    fold, problem = queue.selection.sizes[leader.size], queue.problem
    number, learner = problem.find_learner(problem.candidate(leader).setting)
    paths = np.flatnonzero(problem.learner_of_paths == number)
    first, here = int(paths[0]), np.s_[int(paths[0]) : int(paths[-1]) + 1, : max(learner.space.lengths)]
    exists = fold.values[0] != ABSENT
    value = np.full(exists.shape, np.nan)
    for path, step in np.argwhere(exists):
        if path in paths:
            value[path, step] = fold.exact_low(path, step)
    of_size = pc.equal(candidates["k_first"], problem.sizes[leader.size].k_first)
    failed, left_open = (np.zeros(exists.shape, np.bool_) for _ in range(2))
    for state, mask in (("failed", failed), ("open", left_open)):
        rows = candidates.filter(pc.and_(of_size, pc.equal(candidates["state"], state)))
        mask[rows["path"].to_numpy(), rows["step"].to_numpy()] = True
    axes, best = name_axes(learner.space), (leader.path - first, leader.step)
    return Landscape(
        *axes, value[here], fold.prefix[here], failed[here], left_open[here], fold.n_splits, best
    )


def name_axes(space: Space) -> tuple[Axis, Axis]:
    """Return the axes of a search space: that of its steps and that of its paths.

    An axis is named by the hyperparameters that determine the step, or the path; if there are none, settings
    are counted.
    """
    lengths = list(space.lengths)
    ends = np.cumsum(lengths)
    columns = {name: np.split(values, ends[:-1]) for name, values in space.settings().items()}
    longest = int(np.argmax(lengths))
    steps = {
        name: parts[longest]
        for name, parts in columns.items()
        if all(np.array_equal(part, parts[longest][: len(part)]) for part in parts)
    }
    step = _find_axis(steps, STEP, max(lengths))
    paths = {
        name: np.array([part[0] for part in parts])
        for name, parts in columns.items()
        if name != step.name and all((part == part[0]).all() for part in parts)
    }
    return step, _find_axis(paths, PATH, len(lengths))


def list_spans(rows: Sequence[dict[str, Any]]) -> list[Span]:
    """Convert the rows of ``Result.per_k`` to spans."""
    return [
        Span(
            row["k_first"],
            row["k_last"],
            row["n_select"],
            row["state"],
            row["lower_bound"],
            shorten_setting(row["setting"]),
            row["l_ms"],
            row["l_ee"],
        )
        for row in rows
    ]


def _list_splits(result: ResultValues, queue: RaceQueue, leader: Leader) -> list[OneSplit]:
    fold, certificate = queue.selection.sizes[leader.size], result.certificate
    at = [(False, leader.size, split, leader.path, leader.step) for split in range(fold.n_splits)]
    n_classes = len(certificate.sample.labels)
    counts = [sum((queue.ledger.totals(*place) or ())[:n_classes]) for place in at]
    totals = np.array([member.totals for member in result.ensemble.members])
    bounds = result.problem.criterion.value(
        totals, result.problem.units(Stage.ESTIMATE, leader.size)
    ).tolist()
    select = fold.prefix_values(leader.path, leader.step)
    rows = zip(counts, select, certificate.counts.errors, bounds, strict=True)
    return [OneSplit(i, *row) for i, row in enumerate(rows)]


def _find_axis(known: dict[str, NDArray[Any]], name: str, count: int) -> Axis:
    """Return the axis of the first hyperparameter with distinct values, or of those that have them together.

    If there are none it is an axis of positions, called ``name``.
    """
    for hyperparameter, values in known.items():
        if len({str(value) for value in values.tolist()}) == count:
            return Axis(hyperparameter, tuple(map(shorten_value, values)))
    differing = [column for column, values in known.items() if len(set(map(str, values.tolist()))) > 1]
    together = [
        ", ".join(map(shorten_value, row))
        for row in zip(*(known[column] for column in differing), strict=True)
    ]
    if len(set(together)) == count:
        return Axis(", ".join(differing), tuple(together))
    return Axis(name, tuple(str(i + 1) for i in range(count)), counted=True)


def _name_value(winner: Winner) -> str:
    if winner.criterion == MeanError.name:
        return "error rate"
    return "value" if winner.bound == "loss" else "bound"


def name_landscape(at: Landscape) -> str:
    """Name what is drawn over all settings: L_MS over the hyperparameters that are axes."""
    axes = " and ".join(axis.name for axis in (at.steps, at.paths) if not axis.absent)
    return f"L_MS over {axes}" if axes else "L_MS"


def _draw_landscape(result: ResultValues, at: Landscape) -> Picture:
    exists = ~np.isnan(at.value)
    complete, over = int(np.sum((at.splits == at.n_splits) & exists)), name_landscape(at)
    left_open = int(np.sum(at.left_open))
    more = f"; {left_open} were not excluded" if left_open else ""
    label = (
        f"{over} at k = {result.k}. Minimum: {ceil_percent(result.l_ms)} at "
        f"{shorten_setting(result.setting)}. {complete} of {int(np.sum(exists))} candidates have all "
        f"{at.n_splits} splits; for the others a lower bound is drawn{more}. All values are in the table "
        "below the figure."
    )
    caption = (
        f"Each square is a candidate. A full square has all {at.n_splits} splits, and its colour is its "
        "L_MS. A smaller square was dropped as beaten after some of its splits: the smaller the square, the "
        "fewer splits, and its colour is a lower bound of L_MS."
    )
    if left_open:
        caption += (
            " An empty diamond is an open candidate: it was not excluded that its L_MS is below the "
            "winner's, because the search within a budget gave it few splits at this k, or none."
        )
    caption += " The star is the winner"
    caption += "; a cross is a candidate with failed evaluations." if at.failed.any() else "."
    for axis in (at.steps, at.paths):
        if axis.counted and not axis.absent:
            caption += f" The {axis.name} is a position in the learner's search space, counted from 1."
    rows = [
        (value, *(_format_candidate(at, path, step) for step in range(len(at.steps.values))))
        for path, value in enumerate(at.paths.values)
    ]
    name = "setting" if at.paths.absent else at.paths.name
    heads = (name if at.steps.absent else f"{name} \\ {at.steps.name}", *at.steps.values)
    return Picture(f"{over} at k = {result.k}", draw_landscape(at, label), caption, heads, rows)


def _format_candidate(at: Landscape, path: int, step: int) -> str:
    """Return L_MS of a candidate, or a lower bound and the number of splits that prove it."""
    value = float(at.value[path, step])
    if value != value:
        return "–"
    if at.failed[path, step]:
        return "failed"
    if at.splits[path, step] == at.n_splits:
        return ceil_percent(value)
    left_open = "open, " if at.left_open[path, step] else ""
    return f"{left_open}≥ {floor_percent(value)} ({at.splits[path, step]})"


def _draw_folds(result: ResultValues) -> Picture:
    spans = list_spans(result.per_k())
    units = "rows" if result.certificate.sample.groups is None else "groups"
    states = {span.state for span in spans}
    label = (
        f"L_MS or its lower bound, and L_EE, against k from {spans[0].first} to {spans[-1].last}. The winner "
        f"is k = {result.k} with L_MS {ceil_percent(result.l_ms)} and L_EE {ceil_percent(result.l_ee)}. All "
        "values are in the table below the figure."
    )
    left_open = " (an empty diamond where a candidate is open: there it may be below, and was not excluded)"
    failed = " (a cross where evaluations failed: there it may be below)"
    caption = (
        "For the winner and each reported k: L_MS and L_EE of its best candidate. For every other k a "
        "triangle: a lower bound of L_MS for all its candidates, which is above the winner's "
        f"L_MS{left_open if 'open' in states else ''}{failed if 'failed' in states else ''}. In the table, "
        "unseen means that this needed no fit: not even splits without errors could have won. Values of k "
        f"with the same number of {units} in a fold are one procedure, and joined by a line."
    )
    rows = [
        (
            f"{span.first} to {span.last}" if span.last > span.first else f"{span.first}",
            f"{span.n_select}", span.state,
            *("–" if value is None else show(value) for value, show in (
                (span.lower_bound, floor_percent), (span.l_ms, ceil_percent), (span.l_ee, ceil_percent)
            )),
            span.setting or "–",
        )
        for span in spans
    ]  # fmt: skip
    heads = ("k", f"{units} in a fold", "state", "lower bound of L_MS", "L_MS", "L_EE", "setting")
    return Picture("L_MS and L_EE against k", draw_folds(spans, label), caption, heads, rows)


def _draw_spread(result: ResultValues, splits: Sequence[OneSplit]) -> Picture:
    winner, sample = result.certificate.winner, result.certificate.sample
    grouped = sample.groups is not None
    value, select, estimate = (
        _name_value(winner),
        [s.select_bound for s in splits],
        [s.estimate_bound for s in splits],
    )
    ranges = [f"from {ceil_percent(min(of))} to {ceil_percent(max(of))}, mean" for of in (select, estimate)]
    mean = ceil_percent(sum(estimate) / len(estimate))
    label = (
        f"{value.capitalize()}s of the {len(splits)} splits. On the select sets {ranges[0]} L_MS "
        f"{ceil_percent(result.l_ms)}; on the estimate sets {ranges[1]} {mean}. All values are in the table "
        "below the figure."
    )
    kind = "groups" if grouped and winner.criterion == MeanBound.name else winner.criterion
    caption = (
        f"Each dot is {DOTS[kind].format(format_level(winner.delta))} of one split of the winner, on "
        f"{winner.n_select:,} {'groups' if grouped else 'rows'}. The lines are their means, L_MS and L_EE. "
        "The splits share rows: their spread is not an error bar of the mean."
    )
    rows = [
        (
            f"{s.split}", f"{s.select_errors}", ceil_percent(s.select_bound),
            f"{s.estimate_errors}", ceil_percent(s.estimate_bound),
        )
        for s in splits
    ]  # fmt: skip
    heads = ("split", "errors, select", value, "errors, estimate", value)
    last = ("mean", "", ceil_percent(result.l_ms), "", mean)
    return Picture(
        f"{value.capitalize()}s of the single splits",
        draw_spread(select, estimate, label, value),
        caption,
        heads,
        [*rows, last],
    )


MIN_VALUES = 3  # of a hyperparameter, for its curve
MAX_SIDE = 40  # values of a hyperparameter in a heat map


class Validation(NamedTuple):
    """A score of one learner over its hyperparameters.

    Attributes:
        learner: its label.
        parameter: the hyperparameter of the curves; "" where none has three numbers or more.
        curves: one for each combination of the others, those with the best means, the best first.
        lines: the values of the others on each curve, as text.
        left_out: number of combinations without a curve.
        heat: the score over two hyperparameters; None where fewer differ, or they have very many values.
        joined: whether others differ as well, so that the heat map has the best mean over them.
        best: the setting with the best mean, and that mean, as text.
    """

    learner: str
    parameter: str
    curves: Sequence[Curve]
    lines: Sequence[str]
    left_out: int
    heat: HeatMap | None
    joined: bool
    best: str


def list_validations(settings: Iterable[SettingScores], score: Score) -> list[Validation]:
    """Return the curves and heat maps of every learner of which several settings have a mean."""
    by_learner: dict[str, list[SettingScores]] = {}
    for row in settings:
        if row.places[score.name].rank is not None:
            by_learner.setdefault(row.learner, []).append(row)
    made = [_validate(learner, found, score) for learner, found in by_learner.items()]
    return [row for row in made if row.parameter or row.heat is not None]


def _validate(learner: str, settings: Sequence[SettingScores], score: Score) -> Validation:
    values = {name: _list_values(settings, name) for name in settings[0].setting if name != "learner"}
    differing = {name: found for name, found in values.items() if len(found) > 1}
    order = sorted(differing, key=lambda name: -len(differing[name]))
    numeric = [name for name in order if len(differing[name]) >= MIN_VALUES and _is_numeric(differing[name])]
    parameter = numeric[0] if numeric else ""
    rest = [name for name in differing if name != parameter]
    curves = _draw_lines(settings, parameter, rest, score) if parameter else []
    pair = [*numeric[:1], *(name for name in order if name not in numeric[:1])][:2]
    fits = len(pair) == 2 and all(len(differing[name]) <= MAX_SIDE for name in pair)
    heat = _make_heat(settings, [(name, differing[name]) for name in pair], score) if fits else None
    best = min(settings, key=lambda row: row.places[score.name].rank or len(settings))
    return Validation(
        learner,
        parameter,
        [curve for _, curve in curves[:MAX_CURVES]],
        [line for line, _ in curves[:MAX_CURVES]],
        max(0, len(curves) - MAX_CURVES),
        heat,
        len(differing) > 2,
        f"best mean {best.places[score.name].mean:.4g} at {describe_setting(_take(best, differing))}",
    )


def _list_values(settings: Sequence[SettingScores], name: str) -> list[Any]:
    """Return the distinct values of a hyperparameter: numbers ascending, others as they first appear."""
    found = list({repr(row.setting.get(name)): row.setting.get(name) for row in settings}.values())
    return sorted(found) if _is_numeric(found) else found


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(
        isinstance(value, int | float) and type(value) is not bool and isfinite(value) for value in values
    )


def _take(row: SettingScores, names: Iterable[str]) -> dict[str, Any]:
    return {name: row.setting.get(name) for name in names}


def _draw_lines(
    settings: Sequence[SettingScores], parameter: str, rest: Sequence[str], score: Score
) -> list[tuple[str, Curve]]:
    """Return a curve over a hyperparameter for each combination of others, that with the best mean first."""
    lines: dict[str, list[SettingScores]] = {}
    for row in settings:
        lines.setdefault(describe_setting(_take(row, rest)), []).append(row)
    made = []
    for line, found in lines.items():
        found.sort(key=lambda row: row.setting[parameter])
        columns = [
            (row.setting[parameter], row.places[score.name].mean, row.places[score.name].deviation)
            for row in found
        ]
        x, mean, deviation = np.array(columns, np.float64).T
        made.append((line, Curve(parameter, score.name, x, mean, np.nan_to_num(deviation))))
    return sorted(made, key=lambda pair: float(np.min(score.loss * pair[1].mean)))


def _make_heat(
    settings: Sequence[SettingScores], pair: Sequence[tuple[str, list[Any]]], score: Score
) -> HeatMap:
    (x, xs), (y, ys) = pair
    places = [{repr(value): i for i, value in enumerate(values)} for values in (xs, ys)]
    mean = np.full((len(ys), len(xs)), np.nan)
    for row in settings:
        at = places[1][repr(row.setting.get(y))], places[0][repr(row.setting.get(x))]
        mean[at] = score.loss * np.fmin(score.loss * mean[at], score.loss * row.places[score.name].mean)
    up_best, across_best = np.unravel_index(np.nanargmin(score.loss * mean), mean.shape)
    shown = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in values] for values in (xs, ys)]
    across, up = Axis(x, tuple(shown[0])), Axis(y, tuple(shown[1]))
    return HeatMap(across, up, score.name, mean, (int(up_best), int(across_best)))


FIVE_NUMBERS = (0.0, 0.25, 0.5, 0.75, 1.0)
PARAMETERS = re.compile(r"(?<![^ ])([^ ,=]+) = ")  # in the text of a setting


def draw_scores(result: ResultValues, score: Score, settings: Sequence[SettingScores]) -> Iterator[Picture]:
    """Yield the scores of single splits, and each learner's validation curve and heat map."""
    splits = "inner splits" if result.chosen is not None else "splits"
    if result.n_splits > 1:
        yield _draw_strips(result, score)
    for found in list_validations(settings, score):
        if found.curves:
            yield _draw_curves(found, score, splits)
        if found.heat is not None:
            yield _draw_heat(found, found.heat, splits)


def _draw_curves(found: Validation, score: Score, splits: str) -> Picture:
    of = f"{score.name} of {found.learner} over {found.parameter}: {found.best}"
    more = f" {pluralize(found.left_out, 'line')} with worse means not drawn." if found.left_out else ""
    names, parameters = list(found.lines), PARAMETERS.findall(found.lines[0])
    if len(names) > 1 and max(map(len, names)) > MAX_NAME:
        names = [PARAMETERS.sub("", line) for line in names]
        more = f" Lines are named by {', '.join(parameters)}.{more}"
    rows = [
        (*([line] if len(found.lines) > 1 else []), f"{x:g}", f"{mean:.4f}", f"{deviation:.4f}")
        for line, curve in zip(found.lines, found.curves, strict=True)
        for x, mean, deviation in zip(curve.x, curve.mean, curve.deviation, strict=True)
    ]
    heads = (*(["line"] if len(found.lines) > 1 else []), found.parameter, "mean", "sd")
    return Picture(
        f"Validation curve of {found.learner}",
        draw_validation(found.curves, names, f"{of}. Values are in the table below the figure."),
        f"Mean over {splits} at each value of {found.parameter}, and a standard deviation around it; "
        f"{found.best}.{more}",
        heads,
        rows,
    )


def _draw_heat(found: Validation, heat: HeatMap, splits: str) -> Picture:
    of = f"{heat.score} of {found.learner} over {heat.x.name} and {heat.y.name}"
    joined = ", at the best values of the others" if found.joined else ""
    rows = [
        (value, *("–" if mean != mean else f"{mean:.4f}" for mean in line))
        for value, line in zip(heat.y.values, heat.mean.tolist(), strict=True)
    ]
    return Picture(
        of,
        draw_heat_map(heat, f"{of}: {found.best}. Values are in the table below the figure."),
        f"Mean over {splits} at each pair of values{joined}; the star marks the best.",
        (f"{heat.y.name} \\ {heat.x.name}", *heat.x.values),
        rows,
    )


def _draw_strips(result: ResultValues, score: Score) -> Picture:
    """Draw the scores of single splits; the table has their quartiles, and another one below every split."""
    names, more = name_entries(result), ""
    values = (result.of_splits(entry, score)[result.counted] for entry in result.entries)
    known = [splits[~np.isnan(splits)] for splits in values]
    if not result.one_each:
        more = f" Lines are named by {', '.join(list_differing(result))}."
    if len(known) > MAX_STRIPS:
        more += f" The first {MAX_STRIPS} of {len(known):,} lines are drawn."
    rows = [
        (name, f"{len(splits):,}", *(f"{value:.4f}" for value in np.quantile(splits, FIVE_NUMBERS)))
        for name, splits in zip(names, known, strict=True)
        if len(splits)
    ]
    of = f"{score.name} of every split, for each line of the table"
    return Picture(
        "Single splits",
        draw_strips(known, names, score.name, f"{of}. Quartiles are in the table below the figure."),
        f"Each dot is a split, and the bar is the mean.{more}",
        ("line", "splits", "least", "lower quartile", "median", "upper quartile", "largest"),
        rows,
    )
