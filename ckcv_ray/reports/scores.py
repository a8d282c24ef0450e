"""Sections of the page about the scores of every split, of a study without a certification."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.scores import Score
from ckcv_ray.reports.figures import Curve, draw_curve, draw_curves, draw_strips
from ckcv_ray.reports.summary import (
    describe_interval,
    describe_permutations,
    describe_score,
    list_doubts,
    round_bound,
)
from ckcv_ray.reports.values import Entry, ResultValues

LEAST_VALUES = 3  # of a hyperparameter, for its curve
FEW_SPLITS = 40  # of which every score is listed


def describe_scores(result: ResultValues) -> dict[str, Any]:
    """Return what the page shows of the scores of a study without a certification."""
    return {
        "entries": list(enumerate(result.entries, start=1)),
        "sections": [_describe_score(result, score) for score in result.scores],
        "listed": result.n_splits <= FEW_SPLITS,
        "settings": _list_settings(result),
        "doubts": list_doubts(result),
        "about_intervals": describe_interval(result),
    }


def _describe_score(result: ResultValues, score: Score) -> dict[str, Any]:
    """Return what the page shows of one score."""
    study = result.study
    values = [result.of_splits(entry, score) for entry in result.entries]
    drawn = [splits[result.counted] for splits in values]
    strips = [splits[~np.isnan(splits)] for splits in drawn]
    curve, learning = _make_curve(result, score), _make_learning_curves(result, score)
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
        "curve": "" if curve is None else draw_curve(curve, f"{score.name} over {curve.parameter}"),
        "parameter": "" if curve is None else curve.parameter,
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


def _make_curve(result: ResultValues, score: Score) -> Curve | None:
    """Return a score over the one hyperparameter in which the settings of a single learner differ."""
    entries = result.entries
    learners = {entry.learner for entry in entries}
    if result.chosen is not None or len(learners) > 1 or len(entries) < LEAST_VALUES:
        return None
    settings = [dict(entry.settings[0] or {}) for entry in entries]
    differing = [name for name in settings[0] if len({str(setting.get(name)) for setting in settings}) > 1]
    values: list[Any] = [setting[differing[0]] for setting in settings] if len(differing) == 1 else [None]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    found = [result.figures(entry, score) for entry in entries]
    known = [i for i, figures in enumerate(found) if figures.mean == figures.mean]
    order = sorted(known, key=values.__getitem__)
    return Curve(
        differing[0],
        score.name,
        np.array([values[i] for i in order], np.float64),
        np.array([found[i].mean for i in order]),
        np.nan_to_num(np.array([found[i].deviation for i in order])),
    )


def _format_bounds(result: ResultValues, entry: Entry, score: Score) -> list[str]:
    """Return the bound for each split's model as text."""
    bounds = _list_known(result.bounds(entry, score))
    return ["–" if bound is None else round_bound(bound, up=not score.greater) for bound in bounds]


def _list_known(values: NDArray[np.float64]) -> list[float | None]:
    """Return values of which nan are None."""
    return [None if value != value else value for value in values.tolist()]


def _list_settings(result: ResultValues) -> list[tuple[int, str, list[str]]]:
    """Return for each entry whose settings were selected what was selected on each split."""
    if result.chosen is None:
        return []
    entries = enumerate(result.entries, start=1)
    return [(i, entry.learner, result.list_settings(entry)) for i, entry in entries]
