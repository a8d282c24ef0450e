"""What is proven after selection, from the run's own counts of errors, or from rows held out.

``paper``, from the counts behind l_ee: each candidate t = (path, step, k) gets the share pi(t) = 1 /
(learners) * 1 / (settings of its learner) * w(k) / (sum of w over the study's fold sizes) of delta, where
w(k) = 1 / ((k - 2)(k - 1)) and each fold size is represented by its smallest k. The shares depend only on the
study and the number of rows and sum to at most 1 over all candidates, so the averaging-safe bound at level
delta * pi(t) holds for whichever candidate was selected, and however its splits depend on each other.

``holdout``: nothing has used the held-out rows; each quantity proves its own claims. delta is shared equally
(``Certification.n_shares``).

With groups of related rows the units are groups, and what is bounded is the mean loss of a new group: the
share of its rows that are wrong. Sums of such losses take the place of counts, and the bounds of
``core.bounds.betting`` and betting that of Clopper-Pearson; the proofs are the same.

If rows repeat because they have the same origin, the ``Copies`` are not new: every claim holds again with as
many fewer independent units in each set (see the theory page, "Repeated rows").

Of subgroups named beforehand, such as women, or patients above 60, error and recalls are claimed.
Given which held-out rows belong to a subgroup, they are independent draws from its distribution: the wrong
ones of a fixed rule are binomial. delta is divided equally among the columns, then among the subgroups of a
column that are claimed, then among the error and the recalls of a subgroup: all hold jointly. Which subgroups
are claimed is decided by how many rows belong to each, never by labels; edges of bins come from the learning
rows. The rule decides by its own cut-off: one that was chosen on the same rows would depend on their labels.

Where numbers are predicted, what is claimed of a subgroup is its mean error, of which at most the clip
counts, by its rows in the order in which they were drawn.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from ckcv_ray.claims.better import add_gate, foresee_gate
from ckcv_ray.claims.error import Error
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.numbers import Clipped
from ckcv_ray.claims.quantity import (
    GROUPS_OF_ONE_SOURCE,
    MIN_OF_SUBGROUP,
    ONE_SOURCE,
    Claim,
    Need,
    Quantity,
    bound_count,
)
from ckcv_ray.claims.recalls import Recall
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import average_safe, bound_losses
from ckcv_ray.core.bounds.binomial import MAX_CHECKED
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.ensemble import Ensemble, GroupMember
from ckcv_ray.study.parts import Holdout, Paper
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.subgroups import divide_rows, parse_subgroup

RANDOM = Rule("random")


def prove(held: HeldOutPredictions, k: int) -> list[Claim]:
    """Return the proven claims.

    Args:
        held: the problem that was solved, and the models of the run.
        k: the winner's number of folds.
    """
    problem, best = held.problem, held.models.best
    if isinstance(problem.certification, Holdout):
        return [
            add_gate(held, claim) if quantity.guarded else claim
            for name, quantity in list_claimed(problem).items()
            for claim in quantity.claim(held, held.find_rule(name))
        ]
    learner, _ = problem.find_learner(problem.learner.codec.setting(best.members[0].model))
    return [claim_random_member(problem, k, best, learner, held.copies)]


def list_claimed(problem: Problem) -> dict[str, Quantity]:
    """Return what is claimed, by name: the errors of rules, and quantities."""
    certification, of_rule = problem.certification, make_error(problem)
    names = certification.claim if isinstance(certification, Holdout) else (RANDOM.name,)
    found = {name: certification.quantities.get(name, of_rule) for name in names}
    return cast(dict[str, Quantity], found)


def make_error(problem: Problem) -> Quantity:
    """Return the error that is claimed of a rule: of predicted numbers their mean error."""
    return Error() if problem.clip is None else Clipped(problem.clip)


def list_needs(problem: Problem) -> list[Need]:
    """Return what each claim by held-out rows needs, and what there will be.

    It is read before the run, so it depends on the rows to learn from and on how many rows each class has,
    and not on those drawn.
    """
    if not isinstance(problem.certification, Holdout) or problem.held is None:
        return []
    delta, needs = problem.study.delta_of_claim, list[Need]()
    for name, quantity in list_claimed(problem).items():
        needs += [foresee_gate(problem, name, delta)] if quantity.is_error else []
        needs += quantity.foresee(problem)
    return needs


def claim_subgroups(held: HeldOutPredictions) -> Iterator[Claim]:
    """Yield what is claimed of each subgroup of the study: of one with too few rows, without bounds."""
    problem, certification = held.problem, held.problem.certification
    if not certification.subgroups:
        return
    y, classes, rule = held.rows.y, problem.task.classes, Rule(certification.rule_of_quantities)
    of_all, losses = make_error(problem), held.measure_loss(held.predict(rule).label)
    for subgroups in map(parse_subgroup, certification.subgroups):
        parts = divide_rows(subgroups, problem.task, held.rows.X)
        claimed = sum(int(part.rows.sum()) >= MIN_OF_SUBGROUP for part in parts)
        delta = held.delta / len(certification.subgroups) / max(1, claimed) / (1 + len(classes))
        for part in parts:
            of_classes = [(Recall(), label, y == number) for number, label in enumerate(classes)]
            for quantity, label, rows in [(of_all, None, np.ones(len(y), bool)), *of_classes]:
                drawn = losses[held.order][(part.rows & rows)[held.order]]
                n, wrong, measured = len(drawn), int(np.sum(drawn)), None
                bound: float | None = bound_count(wrong, n, delta)
                if quantity.is_mean:
                    wrong, bound, measured = 0, bound_losses(drawn, delta), float(np.sum(drawn)) / max(1, n)
                bound = bound if int(part.rows.sum()) >= MIN_OF_SUBGROUP else None
                claim = Claim(quantity, rule.name, bound, delta, "", label=label, errors=wrong, rows=n)
                yield replace(claim, measured=measured, subgroup=part.name)


def claim_random_member(
    problem: Problem,
    k: int,
    best: Ensemble,
    learner: int = 0,
    copies: int = 0,
) -> Claim:
    """Return the claim for a random member of F*, from the losses on the estimate sets of its splits.

    Args:
        problem: the problem that was solved.
        k: the winner's number of folds.
        best: F*, with its counts.
        learner: position of the winner's learner among those that are compared.
        copies: units that are not counted as independent.
    """
    size, units, losses = problem.find_size(k), problem.task.units, count_losses(best)
    m, unit = size.n_select - copies, ONE if problem.has_losses else 1
    bound, name = 1.0, "no bound"  # if no unit is left that is independent, or there are too many
    if 1 <= m <= MAX_CHECKED:
        level = float(problem.study.delta * weight(problem, k, learner))
        bound = average_safe(np.minimum(losses, m * unit) / unit, m, level)
        name = "averaging-safe Clopper-Pearson"
        if problem.clip is not None:
            name = "averaging-safe bound on losses"
        else:
            name += units.word("", " interpolated between counts")
    method = f"A over {problem.settings_per_learner[learner]} x k candidates"
    if len(problem.learners) > 1:
        method += f" of {list(problem.learners)[learner]}, one of {len(problem.learners)} learners"
    m_is = f"m = {size.n_select}{units.word('', ' groups')}"
    method += f", {name}, {pluralize(len(losses), 'split')}, {m_is}"
    given = units.word(
        f"{ONE_SOURCE} and plain random splits",
        f"{GROUPS_OF_ONE_SOURCE} and plain random splits of whole groups",
    )
    claim = Claim(make_error(problem), RANDOM.name, bound, problem.study.delta, "", certification=Paper.name)
    if claim.quantity.is_mean:
        claim = replace(claim, measured=sum(losses) / (ONE * size.n_select * len(losses)))
    else:
        errors, rows = (
            sum(map(sum, counts))
            for counts in zip(*((one.errors, one.n_estimate) for one in best.members), strict=True)
        )
        claim = replace(claim, errors=errors, rows=rows)
        method += f", {errors} of {rows} scored rows wrong"
    return claim.state(claim.quantity.state(claim, RANDOM.classifier(), problem.task), method, given)


def weight(problem: Problem, k: int, learner: int = 0) -> Fraction:
    """Return pi(t), the share of delta of a candidate; k is the smallest number of folds of its fold size.

    The shares are equal for each learner, ``learner`` being the position of the candidate's, and then for
    each of its settings. They sum to at most 1 over all candidates: in the sum over fold sizes each term is
    rounded up to a multiple of 2**-128, since the exact sum of many fractions is slow.
    """
    unity = 1 << 128
    total = sum(-(-unity // ((size.k - 2) * (size.k - 1))) for size in problem.sizes)
    settings = len(problem.learners) * int(problem.settings_per_learner[learner])
    return Fraction(unity, total * settings * (k - 2) * (k - 1))


def count_losses(ensemble: Ensemble) -> list[int]:
    """Return the number of wrong rows of each member on its estimate set; with groups, the groups' loss."""
    return [
        member.loss if isinstance(member, GroupMember) else sum(member.errors) for member in ensemble.members
    ]
