"""Certify a winner: make its certificate, from its models and their counts, and the held-out rows."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from ckcv_ray.claims.baseline import compute_baselines, find_scored_constants
from ckcv_ray.claims.certificate import (
    Certificate,
    Claims,
    ClassCounts,
    GroupCounts,
    ModelCounts,
    NumberCounts,
    Origin,
    Sample,
    Winner,
    Wording,
    count_confusion,
    list_statements,
)
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.paper import count_losses, prove
from ckcv_ray.claims.subgroups import claim_subgroups
from ckcv_ray.claims.weighted import describe_weights
from ckcv_ray.claims.wording import (
    ASSUMPTIONS,
    ASSUMPTIONS_OF_GROUPS,
    PROVISIONAL,
    describe_search,
    list_not_covered,
)
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.ensemble import Ensemble, Models, count_classes
from ckcv_ray.records.candidates import Searched
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.tables.questions import find_giveaways, find_repeats


def certify(
    predictions: HeldOutPredictions,
    candidate: Candidate,
    l_ms: float,
    provisional: bool,
    digests: dict[str, str],
    search: Searched | None = None,
) -> Certificate:
    """Return a winner's certificate, from its models and their counts, and the held-out rows.

    Args:
        predictions: what was solved, and the models of the run.
        candidate, l_ms: the winner, and its criterion on the select sets.
        provisional, search, digests: as in ``Winner`` and ``Origin``.
    """
    problem, models = predictions.problem, predictions.models
    claims = prove(predictions, candidate.k)
    repeats = find_repeats(problem.all_rows, problem.held)
    again = prove(predictions, candidate.k, repeats.copies) if repeats.copies else claims
    bounds = [made[0].bound for made in (claims, again)]
    without = max(
        (bound for bound in bounds if bound is not None), default=None
    )  # if equal rows have one origin
    without = None if None in bounds else without
    sample = _describe_sample(problem, repeats.rows, count_losses(models.best))
    grouped = sample.groups is not None
    named = problem.study.certification is not None and problem.study.certification.subgroups
    subgroups = tuple(claim_subgroups(predictions)) if named else None
    certificate = Certificate(
        origin=Origin(problem.run_id, problem.study.certify, *problem.draws[:2], digests),
        winner=_describe_winner(problem, candidate, l_ms, models.best, provisional, search),
        sample=sample,
        counts=_count_models(problem, candidate.k, models),
        claims=Claims(tuple(claims), without, subgroups),
        wording=Wording(
            statements=(),
            assumptions=ASSUMPTIONS_OF_GROUPS if grouped else ASSUMPTIONS,
            not_covered=list_not_covered(grouped, problem.task.has_numbers),
        ),
    )
    winner = certificate.winner
    figure = problem.criterion.state_l_ee(winner.l_ee, winner.n_splits, grouped)
    sentences = (
        *list_statements(figure, claims),
        *([describe_search(**search, clip=problem.clip)] if search is not None else []),
        *filter(None, [describe_weights(problem)]),
        *([PROVISIONAL] if provisional else []),
        *certificate.list_cautions(),
    )
    return replace(certificate, wording=replace(certificate.wording, statements=sentences))


def _describe_winner(
    problem: Problem,
    candidate: Candidate,
    l_ms: float,
    ensemble: Ensemble,
    provisional: bool,
    search: Searched | None,
) -> Winner:
    size, criterion = problem.find_size(candidate.k), problem.criterion
    totals = [member.totals for member in ensemble.members]
    units = problem.units(Stage.ESTIMATE, problem.sizes.index(size))
    return Winner(
        provisional=provisional,
        setting=dict(candidate.setting),
        k=candidate.k,
        n_splits=len(totals),
        n_select=size.n_select,
        n_train=size.n_train,
        criterion=criterion.name,
        bound=criterion.bound,
        delta=problem.study.delta,
        l_ms=l_ms,
        l_ee=criterion.compute_l_ee(totals, units),
        search=search,
    )


def _describe_sample(problem: Problem, repeats: int, counted: Sequence[int]) -> Sample:
    rows, task, groups = problem.all_rows, problem.task, None
    losses = tuple(loss / ONE for loss in counted)
    if rows.group is not None:
        held = rows.n_units - task.n_units
        groups = GroupCounts(column=rows.group, count=rows.n_units, held=held, losses=losses)
    return Sample(
        n_rows=rows.n,
        n_held=rows.n - task.n,
        repeats=repeats,
        labels=task.classes,
        class_rows=count_classes(rows.y, task.n_classes),
        baselines=compute_baselines(problem),
        groups=groups,
        numbers=None if problem.clip is None else NumberCounts(clip=problem.clip, losses=losses),
        giveaways=find_giveaways(task) or None,
    )


def _count_models(problem: Problem, k: int, models: Models) -> ModelCounts:
    """Return the counts of the models; ``k`` is the winner's."""
    task, members, unit = problem.task, models.best.members, ONE if problem.has_losses else 1
    losses = [loss / unit for loss in count_losses(models.best)]
    delta = problem.study.delta if problem.all_rows.group is None else None
    return ModelCounts(
        errors=tuple(sum(member.errors) for member in members),
        error=fsum(losses) / (len(members) * problem.find_size(k).n_select),
        by_class=tuple(_count_class(models.best, number, delta) for number in range(task.n_classes)),
        constants=(None,) * len(members) if task.has_numbers else models.best.constants(task.X),
        refit_constant=(
            None if models.refit is None or task.has_numbers else models.refit.constants(task.X)[0]
        ),
        scored_constants=find_scored_constants(problem, models, k),
        confusion=count_confusion(problem, models.best, k) if task.n_classes > 2 else None,
    )


def _count_class(ensemble: Ensemble, number: int, delta: float | None) -> ClassCounts:
    """Return the counts of a class, with their mean bound at the level ``delta``; None for no bound."""
    errors = [member.errors[number] for member in ensemble.members]
    sizes = [member.n_estimate[number] for member in ensemble.members]
    bound = None if delta is None else fsum(clopper_pearson(errors, sizes, delta)) / len(errors)
    return ClassCounts(errors=sum(errors), rows=sum(sizes), bound=bound)
