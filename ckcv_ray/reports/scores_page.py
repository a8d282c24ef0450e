"""HTML page of the scores of a procedure, made from its folder alone; see ``reports.page``."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.scores import Score
from ckcv_ray.reports.page import failure_groups, flat, template
from ckcv_ray.reports.score_figures import Curve, Strip, draw_curve, draw_curves, draw_strips
from ckcv_ray.runs.assessed import Assessed, Entry, rounded
from ckcv_ray.runs.load import load_scores
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import OUTER

LEAST_VALUES = 3  # of a hyperparameter, for its curve
FEW_SPLITS = 40  # of which every score is listed


def scores_page(out: str | PathLike[str], result: Assessed | None = None) -> str:
    """Return the HTML page of the scores in ``out``.

    Raises:
        StoreError: the folder holds no finished procedure, or it is damaged.
    """
    result = result or load_scores(out)
    problem = result.problem
    filled: str = template("scores.html").render(
        result=result,
        task=problem.task,
        n_splits=problem.sizes[OUTER].n_splits,
        entries=list(enumerate(result.entries, start=1)),
        sections=[_section(result, score) for score in result.scores],
        listed=problem.sizes[OUTER].n_splits <= FEW_SPLITS,
        settings=_settings(result),
        failures=failure_groups(result.failures, problem),
        procedure=flat(problem.study.to_json()),
        environment=flat(result.execution.get("environment", {})),
        digests={"manifest.json": RunFolder(out).sha256("manifest.json")},
    )
    return filled


def _section(result: Assessed, score: Score) -> dict[str, Any]:
    """Return what the page shows of one score."""
    values = [result.of_splits(entry, score) for entry in result.entries]
    drawn = [one[result.counted] for one in values]
    strips = [Strip(str(i), one[~np.isnan(one)]) for i, one in enumerate(drawn, start=1)]
    curve, learning = _curve(result, score), _learning(result, score)
    return {
        "score": score,
        "figures": [result.figures(entry, score) for entry in result.entries],
        "values": [_known(one) for one in values],
        "bounds": [_bounds(result, entry, score) for entry in result.entries] if score.bound else [],
        "compared": result.compared(score),
        "strips": draw_strips(strips, score.name, f"{score.name} of every split, for each line of the table"),
        "curve": "" if curve is None else draw_curve(curve, f"{score.name} over {curve.parameter}"),
        "parameter": "" if curve is None else curve.parameter,
        "learning": draw_curves(learning, f"{score.name} over numbers of rows") if learning else "",
    }


def _learning(result: Assessed, score: Score) -> list[tuple[str, Curve]]:
    """Return the learning curve of each entry, after its number."""
    found = []
    for number, entry in enumerate(result.entries, start=1):
        points = np.array(result.learning_curve(entry, score)).reshape(-1, 3)
        x, mean, deviation = points[~np.isnan(points).any(axis=1)].T
        if len(x):
            found.append((str(number), Curve("rows", score.name, x, mean, deviation)))
    return found


def _curve(result: Assessed, score: Score) -> Curve | None:
    """Return a score over the one hyperparameter in which the settings of a single learner differ."""
    entries = result.entries
    if result.chosen is not None or len({one.learner for one in entries}) > 1 or len(entries) < LEAST_VALUES:
        return None
    settings = [dict(entry.settings[0] or {}) for entry in entries]
    differing = [name for name in settings[0] if len({str(one.get(name)) for one in settings}) > 1]
    if len(differing) != 1 or not all(_is_number(one[differing[0]]) for one in settings):
        return None
    found = [result.figures(entry, score) for entry in entries]
    known = [i for i, one in enumerate(found) if one.mean == one.mean]
    order = sorted(known, key=lambda i: settings[i][differing[0]])
    return Curve(
        differing[0],
        score.name,
        np.array([settings[i][differing[0]] for i in order], np.float64),
        np.array([found[i].mean for i in order]),
        np.nan_to_num(np.array([found[i].deviation for i in order])),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounds(result: Assessed, entry: Entry, score: Score) -> list[str]:
    """Return the bound for each split's model as text."""
    bounds = _known(result.bounds(entry, score))
    return ["–" if one is None else rounded(one, up=not score.greater) for one in bounds]


def _known(values: NDArray[np.float64]) -> list[float | None]:
    """Return values of which nan are None."""
    return [None if value != value else value for value in values.tolist()]


def _settings(result: Assessed) -> list[tuple[int, str, list[str]]]:
    """Return for each entry whose settings were selected what was selected on each split."""
    if result.chosen is None:
        return []
    return [(i, one.learner, result.settings_of(one)) for i, one in enumerate(result.entries, start=1)]
