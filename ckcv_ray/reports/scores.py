"""Sections of the page about the scores of every split, of a study without a certification."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.percent import round_bound
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.scores import Score
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.reports.figures import (
    MOST_NAME,
    MOST_STRIPS,
    HeatMap,
    draw_heat_map,
    draw_strips,
    draw_validation,
)
from ckcv_ray.reports.picture import Picture
from ckcv_ray.reports.settings import SettingScores, rank_settings
from ckcv_ray.reports.summary import (
    describe_interval,
    describe_permutations,
    describe_score,
)
from ckcv_ray.reports.validation import Validation, list_validations
from ckcv_ray.reports.values import Entry, ResultValues, format_setting

FIVE_NUMBERS = (0.0, 0.25, 0.5, 0.75, 1.0)
PARAMETERS = re.compile(r"(?<![^ ])([^ ,=]+) = ")  # in the text of a setting
FEW_SPLITS = 40  # of which every score is listed
MOST_COLUMNS_OF_SPLITS = 8  # lines as columns of such a table; more are rows
MOST_INNER = 50  # settings listed by their inner splits


def describe_scores(result: ResultValues) -> dict[str, Any]:
    """Return what the page shows of the scores of a study without a certification."""
    settings = rank_settings(result)
    return {
        "entries": result.entries,
        "names": name_entries(result),
        "most_columns": MOST_COLUMNS_OF_SPLITS,
        "sections": [_describe_score(result, score, settings) for score in result.scores],
        "inner": _list_inner(result, settings),
        "listed": result.n_splits <= FEW_SPLITS,
        "selected": _list_selected(result),
        "about_intervals": describe_interval(result),
    }


def _describe_score(result: ResultValues, score: Score, settings: Sequence[SettingScores]) -> dict[str, Any]:
    study = result.study
    values = [result.of_splits(entry, score) for entry in result.entries]
    tests = [(entry.name, result.test_by_permutations(entry, score)) for entry in result.entries]
    return {
        "score": score,
        "title": describe_score(result, score),
        "figures": [result.figures(entry, score) for entry in result.entries],
        "permutations": [(name, describe_permutations(test)) for name, test in tests if test is not None],
        "intervals": [result.interval(entry, score) for entry in result.entries] if study.interval else [],
        "values": [_list_known(splits) for splits in values],
        "bounds": [_format_bounds(result, entry, score) for entry in result.entries] if score.bound else [],
        "compared": result.compare_entries(score),
        "ranks": [] if result.chosen is not None else [row.places[score.name].rank for row in settings],
        "pictures": [
            *_draw_pictures(result, score, values),
            *_draw_validations(settings, score, inner=result.chosen is not None),
        ],
    }


def _draw_pictures(result: ResultValues, score: Score, values: Sequence[Values]) -> Iterator[Picture]:
    names = name_entries(result)
    if result.n_splits > 1:
        known = [splits[result.counted] for splits in values]
        finite = [splits[~np.isnan(splits)] for splits in known]
        yield _draw_strips(finite, names, score.name, _explain_names(result))


def _draw_validations(settings: Sequence[SettingScores], score: Score, inner: bool) -> Iterator[Picture]:
    """Yield each learner's validation curve and heat map."""
    splits = "inner splits" if inner else "splits"
    for found in list_validations(settings, score):
        if found.curves:
            yield _draw_curves(found, score, splits)
        if found.heat is not None:
            yield _draw_heat(found, found.heat, splits)


def _draw_curves(found: Validation, score: Score, splits: str) -> Picture:
    of = f"{score.name} of {found.learner} over {found.parameter}: {found.best}"
    more = f" {pluralize(found.left_out, 'line')} with worse means not drawn." if found.left_out else ""
    names, parameters = list(found.lines), PARAMETERS.findall(found.lines[0])
    if len(names) > 1 and max(map(len, names)) > MOST_NAME:
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


def _explain_names(result: ResultValues) -> str:
    if result.one_each:
        return ""
    differing = list_differing([dict(entry.settings[0] or {}) for entry in result.entries])
    return f" Lines are named by {', '.join(differing)}."


def _draw_strips(known: Sequence[Values], names: Sequence[str], score: str, explained: str) -> Picture:
    """Draw the scores of single splits; the table has their quartiles, and another one below every split."""
    rows = [
        (name, f"{len(splits):,}", *(f"{value:.4f}" for value in np.quantile(splits, FIVE_NUMBERS)))
        for name, splits in zip(names, known, strict=True)
        if len(splits)
    ]
    more = f" The first {MOST_STRIPS} of {len(known):,} lines are drawn." if len(known) > MOST_STRIPS else ""
    label = (
        f"{score} of every split, for each line of the table. Quartiles are in the table below the figure."
    )
    return Picture(
        "Single splits",
        draw_strips(known, names, score, label),
        f"Each dot is a split, and the bar is the mean.{explained}{more}",
        ("line", "splits", "least", "lower quartile", "median", "upper quartile", "largest"),
        rows,
    )


def name_entries(result: ResultValues) -> list[str]:
    """Return a short name for each entry in figures: its learner, and its values of what differs."""
    if result.one_each:
        return [entry.name for entry in result.entries]
    settings = [dict(entry.settings[0] or {}) for entry in result.entries]
    differing = list_differing(settings)
    several = len(result.problem.learners) > 1
    names = []
    for entry, setting in zip(result.entries, settings, strict=True):
        values = ", ".join(str(setting[name]) for name in differing if name in setting)
        names.append(f"{entry.learner}: {values}" if several else values)
    return names


def list_differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Return the hyperparameters in which settings differ, in their order."""
    known = dict.fromkeys(name for setting in settings for name in setting if name != LABEL)
    return [name for name in known if len({str(setting.get(name)) for setting in settings}) > 1]


def _list_inner(result: ResultValues, settings: Sequence[SettingScores]) -> list[dict[str, Any]]:
    """Return the best settings of each score by the inner splits of a nested resampling, if it is row."""
    if result.chosen is None:
        return []
    listed = []
    for name in settings[0].places:
        ranked = sorted(settings, key=lambda row: row.places[name].rank or len(settings) + 1)
        rows = [(row.learner, format_setting(row.setting), row.places[name]) for row in ranked[:MOST_INNER]]
        listed.append({"score": name, "rows": rows, "more": len(settings) - len(rows)})
    return listed


def _format_bounds(result: ResultValues, entry: Entry, score: Score) -> list[str]:
    bounds = _list_known(result.bounds(entry, score))
    return ["–" if bound is None else round_bound(bound, up=not score.greater) for bound in bounds]


def _list_known(values: NDArray[np.float64]) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _list_selected(result: ResultValues) -> list[tuple[str, list[str]]]:
    if result.chosen is None:
        return []
    return [(entry.learner, result.list_settings(entry)) for entry in result.entries]
