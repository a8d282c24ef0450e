"""Every setting of a study without a certification by its scores: mean, standard deviation and rank."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.measures import Score
from ckcv_ray.learners.base import Setting
from ckcv_ray.runs.values import ResultValues, format_setting, to_number

SETTING_COLUMNS = pa.schema(
    [
        ("learner", pa.string()),
        ("setting", pa.string()),
        ("path", pa.int32()),
        ("step", pa.int32()),
        ("inner", pa.bool_()),
        ("measure", pa.string()),
        ("mean", pa.float64()),
        ("deviation", pa.float64()),
        ("rank", pa.int32()),
    ]
)


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


def rank_settings(result: ResultValues) -> list[SettingScores]:
    """Return the scores of every setting, in the order of the learners and their settings.

    With a nested resampling they are those of the inner splits, in which all settings are scored: the mean
    over outer splits of the means over the splits inside, by which one setting for all splits is selected,
    and the deviation over all inner splits.
    """
    inner, problem = result.chosen is not None, result.problem
    scores = problem.scores if inner else result.scores
    columns = {score.name: _list_places(result, score) for score in scores}
    names, space = list(problem.learners), problem.learner.space
    return [
        SettingScores(
            names[int(problem.learner_of_paths[path])],
            space.setting(path, step),
            path,
            step,
            inner,
            {name: places[number] for name, places in columns.items()},
        )
        for number, (path, step) in enumerate(_list_positions(result))
    ]


def tabulate_settings(settings: list[SettingScores]) -> pa.Table:
    """Return a row for each setting and score; what is not known is empty."""
    rows = [
        {
            "learner": row.learner,
            "setting": format_setting(row.setting),
            "path": row.path,
            "step": row.step,
            "inner": row.inner,
            "measure": name,
            **{key: to_number(value) for key, value in place._asdict().items()},
        }
        for row in settings
        for name, place in row.places.items()
    ]
    return pa.Table.from_pylist(rows, SETTING_COLUMNS)


def describe_settings(settings: list[SettingScores]) -> list[dict[str, Any]]:
    """Return the scores of settings as JSON values; what is not known is null."""
    return [
        {
            "learner": row.learner,
            "setting": dict(row.setting),
            "inner": row.inner,
            "scores": {
                name: {key: to_number(value) for key, value in place._asdict().items()}
                for name, place in row.places.items()
            },
        }
        for row in settings
    ]


def _list_positions(result: ResultValues) -> Iterator[tuple[int, int]]:
    for path, length in enumerate(result.problem.learner.space.lengths):
        yield from ((path, step) for step in range(length))


def _list_places(result: ResultValues, score: Score) -> list[Place]:
    if result.chosen is None:
        figures = [result.figures(entry, score) for entry in result.entries]
        means = np.array([found.mean for found in figures])
        deviations = np.array([found.deviation for found in figures])
    else:
        means, deviations = np.array(
            [_average_inner(result, score, *position) for position in _list_positions(result)]
        ).T
    ranks = rank_losses(score.loss * means)
    return [Place(*found) for found in zip(means.tolist(), deviations.tolist(), ranks, strict=True)]


def _average_inner(result: ResultValues, score: Score, path: int, step: int) -> tuple[float, float]:
    """Return mean and standard deviation of a setting's score over inner splits."""
    assert result.computed is not None
    assert result.computed.inner is not None
    values = result.computed.inner[:, path, step, result.problem.columns[score.name].start]
    parts = [values[first:stop] for first, stop in pairwise(result.problem.starts.tolist())]
    mean = float(np.mean([part.mean() for part in parts]))
    return mean, float(values.std(ddof=1)) if len(values) > 1 else nan


def rank_losses(losses: Values) -> list[int | None]:
    """Return ranks from 1 for the smallest; equal ones share the smallest rank, and nan has none."""
    known: NDArray[np.float64] = np.sort(losses[~np.isnan(losses)])
    return [None if loss != loss else 1 + int(np.searchsorted(known, loss)) for loss in losses.tolist()]
