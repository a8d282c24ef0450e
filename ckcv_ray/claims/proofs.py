"""What is proven after selection, from the run's own counts of errors, or from rows held out.

``paper``, from the counts behind l_ee: each candidate t = (path, step, k) gets the share pi(t) = 1 /
(learners) * 1 / (settings of its learner) * w(k) / (sum of w over the study's fold sizes) of delta, where
w(k) = 1 / ((k - 2)(k - 1)) and each fold size is represented by its smallest k. The shares depend only on the
study and the number of rows and sum to at most 1 over all candidates, so the averaging-safe bound at level
delta * pi(t) holds for whichever candidate was selected, and however its splits depend on each other.
``holdout``: nothing has used the held-out rows, so the errors on them are binomial.

With groups of related rows the units are groups, and what is bounded is the mean loss of a new group: the
share of its rows that are wrong. Sums of such losses take the place of counts, and the bounds of
``core.bounds.betting`` and betting that of Clopper-Pearson; the proofs are the same.

If rows repeat because they have the same origin, the ``Copies`` are not new: every claim holds again with as
many fewer independent units in each set (see the theory page, "Repeated rows").
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ckcv_ray.claims.claim import RANDOM, RANDOM_SPLITS, RANDOM_SPLITS_OF_GROUPS, Claim, Grounds, claim_error
from ckcv_ray.claims.held_out import holdout
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.claims.numbers import claim_clipped
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import average_safe
from ckcv_ray.core.bounds.binomial import MAX_CHECKED
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.ensemble import Ensemble, GroupMember
from ckcv_ray.study import Holdout, Paper, Problem


def prove(predictions: HeldOutPredictions, k: int, copies: int = 0) -> list[Claim]:
    """Return the proven claims.

    Args:
        predictions: the problem that was solved, and the models of the run.
        k: the winner's number of folds.
        copies: units that are not counted as independent.
    """
    problem, best = predictions.problem, predictions.models.best
    if isinstance(problem.study.certification, Holdout):
        return list(holdout(predictions, copies))
    learner, _ = problem.find_learner(problem.learner.codec.setting(best.members[0].model))
    counts = [(sum(member.errors), sum(member.n_estimate)) for member in best.members]
    return [claim_random_member(problem, k, count_losses(best), learner, counts, copies)]


def claim_random_member(
    problem: Problem,
    k: int,
    losses: Sequence[int],
    learner: int = 0,
    counts: Sequence[tuple[int, int]] | None = None,
    copies: int = 0,
) -> Claim:
    """Return the claim for a random member of F*, from the losses on the estimate sets of its splits.

    Args:
        problem: the problem that was solved.
        k, copies: as for ``prove``.
        losses: of each split's estimate set: the number of wrong rows; with groups or numbers, the sum of the
            losses in units of 1 / ``ONE``.
        learner: position of the winner's learner among those that are compared.
        counts: wrong rows and all rows of each split's estimate set; None if they are the losses.
    """
    size, grouped = problem.find_size(k), problem.task.grouped
    m, unit = size.n_select - copies, ONE if problem.has_losses else 1
    bound, name = 1.0, "no bound"  # if no unit is left that is independent, or there are too many
    if 1 <= m <= MAX_CHECKED:
        level = float(problem.study.delta * weight(problem, k, learner))
        bound = average_safe(np.minimum(losses, m * unit) / unit, m, level)
        name = "averaging-safe Clopper-Pearson"
        if problem.clip is not None:
            name = "averaging-safe bound on losses"
        elif grouped:
            name += " interpolated between counts"
    method = f"A over {problem.settings_per_learner[learner]} x k candidates"
    if len(problem.learners) > 1:
        method += f" of {list(problem.learners)[learner]}, one of {len(problem.learners)} learners"
    m_is = f"m = {size.n_select}{' groups' if grouped else ''}"
    method += f", {name}, {pluralize(len(losses), 'split')}, {m_is}"
    who = RANDOM.classifier("pattern" if problem.clip is None else "row")
    given = RANDOM_SPLITS_OF_GROUPS if grouped else RANDOM_SPLITS
    grounds = Grounds(RANDOM.name, who, problem.study.delta, method, Paper.name, given)
    if problem.clip is not None:
        measured = sum(losses) / (ONE * size.n_select * len(losses))
        return claim_clipped(grounds, bound, measured, problem.clip, grouped)
    wrong, rows = map(sum, zip(*counts or [(loss, size.n_select) for loss in losses], strict=True))
    seen = replace(grounds, method=f"{method}, {wrong} of {rows} scored rows wrong")
    return claim_error(seen, bound, (wrong, rows), grouped)


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
