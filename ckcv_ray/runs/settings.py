"""Settings by their scores, and where they are among the hyperparameters.

A validation curve is a score over one hyperparameter; a grid has settings over two.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.core.measures import Score
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.study.problem import describe_setting

MIN_VALUES = 3  # of a hyperparameter, for its curve
MAX_SIDE = 40  # values of a hyperparameter in a grid


class Place(NamedTuple):
    """A setting in the table of settings by one score.

    Attributes:
        mean, deviation: over splits, of which the second is nan for a single split or an estimate that
            combines splits; both are nan where a split has no score.
        rank: 1 for the best mean among the settings of all learners; equal means share the smallest rank.
            None where there is no mean.
    """

    mean: float
    deviation: float
    rank: int | None


class SettingScores(NamedTuple):
    """The scores of one setting.

    Attributes:
        learner: label of the learner.
        setting: its hyperparameters by name.
        path, step: its position in the search space.
        inner: whether the splits are those inside training sets, in which a nested resampling selects.
        places: its place by each score, by the name of the score.
    """

    learner: str
    setting: Setting
    path: int
    step: int
    inner: bool
    places: Mapping[str, Place]


class Grid(NamedTuple):
    """Settings over two hyperparameters: at each pair of values the best of them."""

    names: Sequence[str]  # the hyperparameters; "" where there is none, which then has one value
    values: Sequence[Sequence[str]]  # of each, as text
    best: Index  # position of the setting, (values of the second, of the first); -1 where there is none
    joined: bool  # whether settings differ in more than these


def make_grid(settings: Sequence[Setting], losses: Values) -> Grid:
    """Return settings of one learner over the hyperparameters of most values; ``losses`` says which is best.

    Settings that have more than ``MAX_SIDE`` values of one are numbered instead.
    """
    differing = list_differing(settings)
    pair = _order_names(differing)[0][:2]
    if any(len(differing[name]) > MAX_SIDE for name in pair):
        settings = [{"setting": i + 1} for i in range(len(settings))]
        differing, pair = list_differing(settings), ["setting"]
    names = [*pair, "", ""][:2]
    values = [differing.get(name, [None]) for name in names]
    places = [
        [[*map(repr, of_name)].index(repr(setting.get(name))) for setting in settings]
        for name, of_name in zip(names, values, strict=True)
    ]
    best = np.full([*map(len, values)], -1)
    for i in np.argsort(losses, kind="stable")[::-1].tolist():
        best[places[0][i], places[1][i]] = i
    return Grid(names, [[*map(shorten_value, of_name)] for of_name in values], best.T, len(differing) > 2)


def list_differing(settings: Sequence[Setting]) -> dict[str, list[object]]:
    """Return the distinct values of each hyperparameter that has several.

    Numbers are in ascending order, other values as they first appear; without a value it is None.
    """
    found = dict[str, list[object]]()
    for name in dict.fromkeys(name for setting in settings for name in setting if name != LABEL):
        values: list[Any] = [*{repr(setting.get(name)): setting.get(name) for setting in settings}.values()]
        if len(values) > 1:
            found[name] = sorted(values) if _is_numeric(values) else values
    return found


def _order_names(differing: Mapping[str, Sequence[Any]]) -> tuple[list[str], str]:
    """Return hyperparameters by how many values they have, after one of several numbers; and that one."""
    order = sorted(differing, key=lambda name: -len(differing[name]))
    numeric = [name for name in order if len(differing[name]) >= MIN_VALUES and _is_numeric(differing[name])]
    first = numeric[0] if numeric else ""
    return sorted(order, key=lambda name: name != first), first


class Validation(NamedTuple):
    """A score of one learner over its hyperparameters: over two as a grid, else over one as a curve."""

    learner: str  # its label
    parameter: str  # the hyperparameter of the curve; "" where none has three numbers or more
    # the values of the hyperparameter, ascending, and mean and deviation over splits of the best setting at
    # each, (3, values)
    curve: Values
    means: Values  # mean of each setting
    # the settings over two hyperparameters; None where fewer differ, or they have very many values
    heat: Grid | None
    joined: bool  # whether settings differ in more than the parameter
    best: str  # the setting with the best mean, and that mean, as text


def list_validations(settings: Iterable[SettingScores], score: Score) -> list[Validation]:
    """Return the curve or grid of every learner of which several settings have a mean."""
    by_learner: dict[str, list[SettingScores]] = {}
    for row in settings:
        if row.places[score.name].rank is not None:
            by_learner.setdefault(row.learner, []).append(row)
    made = []
    for learner, rows in by_learner.items():
        of_rows, places = [row.setting for row in rows], [row.places[score.name] for row in rows]
        means, differing = np.array([place.mean for place in places]), list_differing(of_rows)
        losses, (_, parameter) = score.loss * means, _order_names(differing)
        order = np.argsort(losses, kind="stable")[::-1].tolist()  # the best comes last
        best = {of_rows[i][parameter]: places[i][:2] for i in order} if parameter else {}
        curve = np.nan_to_num([(value, *best[value]) for value in sorted(best)]).reshape(-1, 3).T
        grid, shown = make_grid(of_rows, losses), {n: of_rows[order[-1]].get(n) for n in differing}
        heat = grid if grid.names[1] else None
        says = f"best mean {means[order[-1]]:.4g} at {describe_setting(shown)}"
        if parameter or heat is not None:
            made.append(Validation(learner, parameter, curve, means, heat, len(differing) > 1, says))
    return made


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(
        isinstance(value, int | float) and type(value) is not bool and isfinite(value) for value in values
    )


def shorten_setting(setting: Setting | None) -> str:
    """Format hyperparameters with three digits; "" if there are none."""
    return ", ".join(f"{name} = {shorten_value(value)}" for name, value in (setting or {}).items())


def shorten_value(value: object) -> str:
    """Format a hyperparameter with three digits; "" for None."""
    if value is None:
        return ""
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, float | np.floating) else str(value)
