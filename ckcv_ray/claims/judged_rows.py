"""Judged rows: what each rule that is claimed makes of the rows that certify (``records.judged``)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.claims.held_out import find_rule
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.core.arrays import ONE, Classes, Values
from ckcv_ray.core.measures import ClippedErrors, Output
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.records.judged import count_judged, make_judged_schema
from ckcv_ray.study import Problem, find_reference


def tabulate_judged(predictions: HeldOutPredictions) -> pa.Table | None:
    """Return the judged rows of a study; None if none are judged, or too many for a file.

    Args:
        predictions: the problem that was solved, and the models of the run.
    """
    if not count_judged(predictions.problem):
        return None
    return pa.concat_tables(_tabulate_rules(predictions)).combine_chunks()


def _tabulate_rules(predictions: HeldOutPredictions) -> Iterator[pa.Table]:
    """Yield the held-out rows as each rule that is claimed judges them, and each model to compare with."""
    problem, models, held = predictions.problem, predictions.models, predictions.held
    certification, study = problem.study.certification, problem.study
    assert problem.held is not None
    assert certification is not None
    rules = dict.fromkeys(find_rule(study, name) for name in certification.claim)
    judges = [(rule.name, predictions.predict(rule), rule.ensemble(models)) for rule in rules]
    for name in filter(find_reference, certification.claim):
        if (member := predictions.find_reference_model(name)) is not None:
            judges.append((name, predictions.predict_by_reference(name), Ensemble((member,))))
    unit = problem.all_rows.groups[problem.held]
    places = dict(zip(np.unique(unit).tolist(), problem.order_held_units().argsort().tolist(), strict=True))
    order = [places[number] for number in unit.tolist()]
    for name, predicted, ensemble in judges:
        setting = problem.learner.codec.setting(ensemble.members[0].model)
        ranks = problem.task.n_classes == 2 and Output.RANK in problem.find_learner(setting)[1].outputs
        score = predicted.score if ranks else None
        same = {"classifier": name, "row": problem.held, "unit": unit, "order": order}
        yield _tabulate(problem, same, held.y, predicted.label, score)


def _tabulate(
    problem: Problem,
    same: dict[str, Any],
    y: Classes | Values,
    predicted: Classes | Values,
    score: Values | None,
) -> pa.Table:
    """Return the rows of one classifier; ``same`` has columns, or one value for all rows."""
    n, schema = len(y), make_judged_schema(problem)
    if problem.clip is None:
        loss = (predicted != y).astype(np.float64)
    else:
        loss = ClippedErrors(problem.clip).measure_losses(y.astype(float), predicted.astype(float)) / ONE
    columns = {name: np.broadcast_to(values, n) for name, values in same.items()}
    columns |= {"label": y, "predicted": predicted, "loss": loss}
    if (weights := problem.all_rows.weighting.take(same["row"])) is not None:
        columns["weight"] = weights
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["score"] = pa.nulls(n, pa.float64()) if score is None else pa.array(score)
    return pa.table([arrays[field.name].cast(field.type) for field in schema], schema=schema)
