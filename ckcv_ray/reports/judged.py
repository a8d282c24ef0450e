"""Rows judged by models that have not learned from them, again from the models and the table of a folder.

They are the rows that the first claim of a study counts: those held out, or the estimate sets of the winner's
splits. Without a certification they are in the folder if its study keeps predictions. Nothing is fitted:
stored models predict, for at most ``MAX_JUDGED`` rows.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.claims.held_out_predictions import make_claimed_rule
from ckcv_ray.claims.rules import ONE_MODEL
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.measures import LABEL, PROBABILITY, RANK, VALUE, Output, Outputs
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import StoreError, pluralize
from ckcv_ray.learners.base import Model
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.records.judged import read_outputs
from ckcv_ray.reports.performance import SEE, Judged, JudgedPart, predict_part, take_labels
from ckcv_ray.reports.values import ResultValues, format_setting
from ckcv_ray.study import Holdout
from ckcv_ray.tables.target import Rows

MAX_JUDGED = 5_000


def judge_rows(result: ResultValues) -> Judged:
    """Return the rows that the first claim counts, judged by the models that it is about."""
    whole, phrase = _list_parts(result)
    parts, total = _sample(whole, result.study.seed), sum(len(part.y) for part in whole)
    kept = sum(len(part.y) for part in parts)
    sampled = f"a random sample of {kept:,} of " if kept < total else ""
    if result.task.has_numbers:
        found = [part.predict(part.X) for part in parts]
        label = np.concatenate([outputs.value for outputs in found if outputs.value is not None])
    else:
        found = [predict_part(part, part.X, result.task.n_classes) for part in parts]
        label = np.concatenate([take_labels(outputs) for outputs in found])
    rank = _join([outputs.rank for outputs in found]) if result.task.n_classes == 2 else None
    positive = result.problem.positive
    return Judged(
        np.concatenate([part.y for part in parts]),
        label,
        -rank if rank is not None and not positive else rank,
        _join([outputs.probability for outputs in found]),
        np.repeat(np.arange(len(parts)), [len(part.y) for part in parts]),
        f"{sampled}{phrase}",
        tuple(parts),
        positive,
    )


def read_judged(result: ResultValues, held_out: pa.Table | None) -> Judged | None:
    """Return what is stored of the predictions for scored rows, of one entry; None if nothing is.

    It is the entry that is kept, or else the first.
    """
    entry = result.kept or result.entries[0]
    if held_out is None:
        return None
    texts = {"" if setting is None else format_setting(setting) for setting in entry.settings}
    of_setting = pc.is_in(held_out["setting"], pa.array(sorted(texts)))
    rows = held_out.filter(pc.and_(pc.equal(held_out["learner"], entry.learner), of_setting))
    if not rows.num_rows:
        return None
    outputs, splits = read_outputs(rows), rows["split"].to_numpy()
    values, truth = outputs.value, rows["truth"].to_numpy()
    if outputs.label is not None:
        label = np.concatenate([outputs.label, truth])
        if label.min(initial=0) < -1 or label.max(initial=0) >= result.task.n_classes:
            raise StoreError(f"the stored predictions name what is no class of the table: see {SEE}")
    of = f"{pluralize(len(truth), 'prediction')} for the rows that {pluralize(result.n_splits, 'split')} "
    ranked = outputs.probability is not None and result.task.n_classes == 2
    return Judged(
        truth,
        take_labels(outputs) if values is None else values,
        outputs.probability[:, 1] if ranked and outputs.probability is not None else None,
        outputs.probability,
        np.unique(splits, return_inverse=True)[1],
        f"{of}{'score' if result.n_splits > 1 else 'scores'}, by {entry.name}",
    )


def _list_parts(result: ResultValues) -> tuple[list[JudgedPart], str]:
    """Return the classifiers of the first claim with the rows that it counts, and a phrase for these."""
    problem, task, first = result.problem, result.task, result.certificate.claims.first
    needs = frozenset({VALUE})
    if not task.has_numbers:  # what models give besides classes, as far as it is shown
        _, learner = problem.find_learner(result.setting)
        needs = frozenset({LABEL, RANK, PROBABILITY} & {LABEL, *learner.outputs})
    if first["certification"] == Holdout.name:
        held = problem.take_held_rows()
        assert held is not None
        part = JudgedPart(_make_rule(result, needs), held.X, held.y)
        return [part], f"{pluralize(len(held.y), 'row')} held out"
    size = next(i for i, size in enumerate(problem.sizes) if size.holds(result.k))
    members = result.ensemble.members
    sets = [problem.rows(Stage.REFIT, size, member.split)[1] for member in members]
    parts = [
        JudgedPart(_ask(member.model, needs), task.X[rows], task.y[rows])
        for member, rows in zip(members, sets, strict=True)
    ]
    total, distinct = sum(map(len, sets)), len(np.unique(np.concatenate(sets)))
    return parts, f"{total:,} rows of {pluralize(len(sets), 'estimate set')} ({distinct:,} different rows)"


def _make_rule(result: ResultValues, needs: frozenset[Output]) -> Callable[[Rows], Outputs]:
    """Return what classifies held-out rows: the rule of the first claim."""
    rule = make_claimed_rule(result.problem, result.certificate.claims.first)
    ensemble: Ensemble = rule.ensemble(result.models)
    if rule.name in ONE_MODEL:
        ask = _ask(ensemble.members[0].model, needs)
        if rule.cut_off is None:
            return ask
        # A model's ranks need not be on the scale of its scores, which the cut-off is on.
        return lambda X: ask(X)._replace(label=rule.predict(result.models, X).label)

    def predict(X: Rows) -> Outputs:
        predicted = rule.predict(result.models, X)
        if VALUE in needs:
            return Outputs(value=predicted.label)
        return Outputs(predicted.label, predicted.score if RANK in needs else None)

    return predict


def _ask(model: Model, needs: frozenset[Output]) -> Callable[[Rows], Outputs]:
    """Return what asks a model for its outputs, and for its classes where these lack them."""

    def predict(X: Rows) -> Outputs:
        outputs = model.predict_outputs(X, needs)
        if outputs.label is not None or outputs.value is not None:
            return outputs
        return outputs._replace(label=model.predict(X).label)

    return predict


def _sample(parts: list[JudgedPart], seed: int) -> list[JudgedPart]:
    """Return at most ``MAX_JUDGED`` rows, as many of each classifier as far as there are."""
    most, sampled = -(-MAX_JUDGED // len(parts)), list[JudgedPart]()
    draws = np.random.default_rng(seed)
    for part in parts:
        if len(part.y) > most:
            rows = np.sort(draws.choice(len(part.y), most, replace=False))
            part = part._replace(X=part.X[rows], y=part.y[rows])
        sampled.append(part)
    return sampled


def _join(values: list[Values | None]) -> Values | None:
    """Return the outputs of all classifiers one below the other; None if some are missing or not finite."""
    known = [value for value in values if value is not None and np.isfinite(value).all()]
    return np.concatenate(known) if len(known) == len(values) else None
