"""Validation curves and heat maps: a score over one hyperparameter or two, from the table of settings."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.core.scores import Score
from ckcv_ray.reports.figures import MOST_CURVES, Axis, Curve, HeatMap
from ckcv_ray.reports.settings import SettingScores
from ckcv_ray.study import describe_setting

LEAST_VALUES = 3  # of a hyperparameter, for its curve
MOST_SIDE = 40  # values of a hyperparameter in a heat map


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
    numeric = [
        name for name in order if len(differing[name]) >= LEAST_VALUES and _is_numeric(differing[name])
    ]
    parameter = numeric[0] if numeric else ""
    rest = [name for name in differing if name != parameter]
    curves = _draw_lines(settings, parameter, rest, score) if parameter else []
    pair = [*numeric[:1], *(name for name in order if name not in numeric[:1])][:2]
    fits = len(pair) == 2 and all(len(differing[name]) <= MOST_SIDE for name in pair)
    heat = _make_heat(settings, [(name, differing[name]) for name in pair], score) if fits else None
    best = min(settings, key=lambda row: row.places[score.name].rank or len(settings))
    return Validation(
        learner,
        parameter,
        [curve for _, curve in curves[:MOST_CURVES]],
        [line for line, _ in curves[:MOST_CURVES]],
        max(0, len(curves) - MOST_CURVES),
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
    across, up = (Axis(name, tuple(map(_shorten, values))) for name, values in pair)
    return HeatMap(across, up, score.name, mean, (int(up_best), int(across_best)))


def _shorten(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
