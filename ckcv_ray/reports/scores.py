"""Sections of the page about the scores of every split, of a study without a certification."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.scores import Score
from ckcv_ray.reports.figures import Curve, draw_curves, draw_heat_map, draw_strips, draw_validation
from ckcv_ray.reports.settings import SettingScores, rank_settings
from ckcv_ray.reports.summary import (
    describe_interval,
    describe_permutations,
    describe_score,
    list_doubts,
    round_bound,
)
from ckcv_ray.reports.validation import Validation, list_validations
from ckcv_ray.reports.values import Entry, ResultValues, format_setting

FEW_SPLITS = 40  # of which every score is listed
MOST_INNER = 50  # settings listed by their inner splits


def describe_scores(result: ResultValues) -> dict[str, Any]:
    """Return what the page shows of the scores of a study without a certification."""
    settings = rank_settings(result)
    return {
        "entries": list(enumerate(result.entries, start=1)),
        "sections": [_describe_score(result, score, settings) for score in result.scores],
        "inner": _list_inner(result, settings),
        "listed": result.n_splits <= FEW_SPLITS,
        "selected": _list_selected(result),
        "doubts": list_doubts(result),
        "about_intervals": describe_interval(result),
    }


def _describe_score(result: ResultValues, score: Score, settings: Sequence[SettingScores]) -> dict[str, Any]:
    """Return what the page shows of one score."""
    study = result.study
    values = [result.of_splits(entry, score) for entry in result.entries]
    drawn = [splits[result.counted] for splits in values]
    strips = [splits[~np.isnan(splits)] for splits in drawn]
    learning = _make_learning_curves(result, score)
    return {
        "score": score,
        "title": describe_score(result, score),
        "figures": [result.figures(entry, score) for entry in result.entries],
        "permutations": _list_permutations(result, score),
        "intervals": [result.interval(entry, score) for entry in result.entries] if study.interval else [],
        "values": [_list_known(splits) for splits in values],
        "bounds": [_format_bounds(result, entry, score) for entry in result.entries] if score.bound else [],
        "compared": result.compare_entries(score),
        "strips": draw_strips(strips, score.name, f"{score.name} of every split, for each line of the table"),
        "ranks": [] if result.chosen is not None else [row.places[score.name].rank for row in settings],
        "validations": [_draw(row, score) for row in list_validations(settings, score)],
        "learning": draw_curves(learning, f"{score.name} over numbers of rows") if learning else "",
    }


def _list_permutations(result: ResultValues, score: Score) -> list[tuple[str, str]]:
    """Return the name of each entry and its permutation test as text, if there are any."""
    tests = [(entry.name, result.test_by_permutations(entry, score)) for entry in result.entries]
    return [(name, describe_permutations(test)) for name, test in tests if test is not None]


def _make_learning_curves(result: ResultValues, score: Score) -> list[tuple[str, Curve]]:
    """Return the learning curve of each entry, after its number."""
    found = []
    for number, entry in enumerate(result.entries, start=1):
        points = np.array(result.learning_curve(entry, score)).reshape(-1, 3)
        x, mean, deviation = points[~np.isnan(points).any(axis=1)].T
        if len(x):
            found.append((str(number), Curve("rows", score.name, x, mean, deviation)))
    return found


def _draw(found: Validation, score: Score) -> dict[str, Any]:
    """Return a learner's validation curve and heat map as SVG, and what the page says of them."""
    drawn, heat, name = "", found.heat, score.name
    if found.curves:
        drawn = draw_validation(
            found.curves, f"{name} of {found.learner} over {found.parameter}: {found.best}"
        )
    over = "" if heat is None else f"{name} of {found.learner} over {heat.x.name} and {heat.y.name}"
    return {
        "found": found,
        "curve": drawn,
        "heat": "" if heat is None else draw_heat_map(heat, f"{over}: {found.best}"),
    }


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
    """Return the bound for each split's model as text."""
    bounds = _list_known(result.bounds(entry, score))
    return ["–" if bound is None else round_bound(bound, up=not score.greater) for bound in bounds]


def _list_known(values: NDArray[np.float64]) -> list[float | None]:
    """Return values of which nan are None."""
    return [None if value != value else value for value in values.tolist()]


def _list_selected(result: ResultValues) -> list[tuple[int, str, list[str]]]:
    """Return for each entry whose settings were selected what was selected on each split."""
    if result.chosen is None:
        return []
    entries = enumerate(result.entries, start=1)
    return [(i, entry.learner, result.list_settings(entry)) for i, entry in entries]
