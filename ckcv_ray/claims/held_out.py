"""What rows held out prove: of rules, and of quantities of a rule.

Nothing has used the rows held out, so the errors of a rule on them are binomial. With groups of related rows
the units are groups, and what is bounded is the mean loss of a new group: its share of wrong rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from ckcv_ray.claims import by_class
from ckcv_ray.claims.answering import claim_answered
from ckcv_ray.claims.better import add_gate, claim_better
from ckcv_ray.claims.claim import (
    GROUPS_OF_ONE_SOURCE,
    Claim,
    Grounds,
    claim_error,
    is_guarded,
    name_loss_bound,
)
from ckcv_ray.claims.cut_offs import choose_cut_off
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions, make_claimed_rule
from ckcv_ray.claims.numbers import claim_numbers
from ckcv_ray.claims.predictive_values import claim_value
from ckcv_ray.claims.rules import Rule
from ckcv_ray.claims.weighted import claim_weighted
from ckcv_ray.core.arrays import ONE, Classes, Index
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.measures import GroupShares
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.study import (
    ANSWERED,
    BINARY_RECALLS,
    Holdout,
    Problem,
    Study,
    choose_rule_of_quantities,
    find_reference,
    is_quantity,
    parse_largest_weight,
    parse_predictive,
)


def holdout(predictions: HeldOutPredictions, copies: int = 0) -> Iterator[Claim]:
    """Yield a claim for each classifier and quantity requested, from rows that nothing used.

    delta is shared equally (``Certification.n_shares``); quantities are those of the first classifier
    requested. A claim about an error has its gate.
    """
    for claim in _claim_all(predictions, copies):
        rule = Rule(claim["classifier"])
        yield add_gate(predictions, rule, claim, copies) if is_guarded(claim) else claim


def _claim_all(predictions: HeldOutPredictions, copies: int) -> Iterator[Claim]:
    """Yield the claims of ``holdout``, without gates."""
    problem, study, held = predictions.problem, predictions.problem.study, predictions.held
    assert isinstance(study.certification, Holdout)
    answer = cache(lambda rule: claim_answered(predictions, rule, copies))
    of_value = problem.required is not None and parse_predictive(problem.required.name) is not None
    choose = cache(lambda rule: claim_value(predictions, rule, copies))
    for name in study.certification.claim:
        rule = find_rule(study, name)
        if problem.clip is not None:
            yield claim_numbers(predictions, rule, name, copies)
            continue
        predicted = predictions.predict(rule)
        if name in ANSWERED:
            yield answer(rule)[name]
        elif find_reference(name):
            yield claim_better(predictions, rule, name, copies)
        elif parse_largest_weight(name) is not None:
            yield claim_weighted(predictions, rule, name, copies)
        elif is_quantity(name):
            chosen = choose(rule) if of_value else {}
            yield from _claim_quantity(problem, rule, name, predicted, copies, chosen)
        elif problem.task.grouped:
            measure, order = GroupShares(held.units), problem.order_held_units()
            yield claim_group_loss(rule, measure, predicted.label, held.y, predictions.delta, order, copies)
        else:
            wrong = (predicted.label != held.y)[by_class.order_held_rows(problem)]
            seen = int(np.sum(wrong)), len(wrong)
            bound, bound_name = by_class.bound_held_out(problem, wrong, predictions.delta, copies)
            method = f"holdout: {seen[0]} of {seen[1]} previously unused rows wrong, {bound_name}"
            grounds = Grounds(rule.name, rule.classifier(), predictions.delta, method)
            yield claim_error(grounds, bound, seen)


def _claim_quantity(
    problem: Problem, rule: Rule, name: str, predicted: Prediction, copies: int, chosen: dict[str, Claim]
) -> Iterator[Claim]:
    """Yield the claims that a quantity of a rule stands for; ``copies`` of the held-out rows are not counted.

    Where a cut-off is required, recalls and what follows from them are of the rule with this cut-off. For a
    predictive value it is already chosen: its claims are then given as ``chosen``, by their quantity.
    """
    if name in chosen:
        yield chosen[name]
    elif (predictive := parse_predictive(name)) is not None:
        recalls = [
            next(_claim_quantity(problem, rule, recall, predicted, copies, chosen))
            for recall in BINARY_RECALLS
        ]
        yield by_class.claim_predictive(problem, make_claimed_rule(problem, recalls[0]), predictive, *recalls)
    elif name in BINARY_RECALLS and (condition := problem.required) is not None:
        held = problem.take_held_rows()
        assert held is not None
        delta = by_class.plan_claims(problem, name)[0].delta
        found = choose_cut_off(predicted.score, held.y, problem.positive, condition, delta)
        if found is None:
            yield from by_class.claim_no_cut_off(problem, rule, name)
        else:
            rule = replace(rule, cut_off=found.cut_off)
            predicted = predicted._replace(label=found.cut_off.classify(predicted.score))
            yield from by_class.claim_held_out(problem, rule, name, predicted, copies, found)
    else:
        yield from by_class.claim_held_out(problem, rule, name, predicted, copies)


def claim_group_loss(
    rule: Rule,
    measure: GroupShares,
    predicted: Classes,
    y: Classes,
    delta: float,
    order: Index,
    copies: int = 0,
) -> Claim:
    """Return the claim for a rule, from its predictions for the rows of groups that nothing used.

    Args:
        rule, measure, predicted, y, delta: of the claim.
        order: positions of the groups of ``measure`` in the order drawn.
        copies: groups that are not counted; which of them is unknown.
    """
    losses, seen = measure.measure_losses(y, predicted), (int(np.sum(predicted != y)), len(y))
    m, bound = len(losses), bound_losses(losses[order] / ONE, delta, copies=copies)
    method = (
        f"holdout: {seen[0]} of {seen[1]} rows of {m} previously unused groups wrong, "
        f"{name_loss_bound(m, 'group')}"
    )
    grounds = Grounds(rule.name, rule.classifier(), delta, method, given=GROUPS_OF_ONE_SOURCE)
    return claim_error(grounds, bound, seen, grouped=True)


def find_rule(study: Study, name: str) -> Rule:
    """Return the rule that a claim by this name is about: of a quantity, the first rule that is named."""
    assert study.certification is not None
    return Rule(choose_rule_of_quantities(study.certification.claim) if is_quantity(name) else name)
