"""What previously unused rows prove of a winner against another learner of the study, or against constants.

The other learner is represented by one model, at the learner's own best setting and number of folds by the
criterion of the study, fitted on all rows that were not held out: what would be used had the learner been the
only one. Its setting is chosen by the learning rows alone, so given these both classifiers are fixed, and
each held-out row or group is an independent comparison. For rows this is a sign test, with Clopper-Pearson's
bound on the share that the winner loses of the rows on which only one of the two is wrong; otherwise a bet on
(1 + x) / 2, x being the winner's loss minus the other's. Either way, what is claimed is a share of wins.

A constant is a classifier too, and a bound on the error is quoted only if the rule is proven better than
every constant, at the delta of the bound (docs/theory/bounds.md, "Better than a constant").
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ckcv_ray.claims.quantity import Claim, Gate, HeldOutPredictions, Quantity, bound_count, name_loss_bound
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.paired import Differences, expect_units
from ckcv_ray.core.measures import GRAIN, average_by_group
from ckcv_ray.core.quantities import LABEL, argument, register_quantity
from ckcv_ray.errors import ONE, InputError, Numbers, Values, format_about
from ckcv_ray.learners.choice import LABEL as LEARNER
from ckcv_ray.study.parts import Race
from ckcv_ray.study.problem import Problem

PairedCounts = tuple[int, int, Differences]  # see ``compare_rows``


@register_quantity
@dataclass(frozen=True)
class Better(Quantity):
    """The share of wins against another learner, among the rows that only one of the two gets right."""

    reference: str = argument(LABEL, "svm", "the label of a learner that the winner is compared with")

    name = "better"
    phrase = "share of wins against {0}"
    measured_as = "{rate} won ({part:,} of {rows:,} {on} that only one gets right)"
    counted = "judged rows that only one of the two gets right"
    rows_alone = ""
    is_binomial = True
    usual = (float(np.nextafter(0.5, 0)),)

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim that a rule errs less often than another learner of the study; see ``Quantity``."""
        other, delta = held.find_reference(self.reference), held.delta * held.part_of_wins
        if other is None:
            winner = held.problem.learner.codec.setting(held.models.best.members[0].model)[LEARNER]
            own = winner == self.reference
            why = "is the learner that was selected" if own else "has no candidate that could be completed"
            claim = Claim(self, rule.name, None, delta, "", errors=0, rows=0)
            yield self.conclude(claim, held, "", f"{self.reference} {why}.")
            return
        problem, who, against = held.problem, rule.classifier(), other[0]
        wrong, missed = (each.label != held.rows.y for each in (held.predict(rule), other[1]))
        won, lost, differences = compared = compare_rows(held, wrong, missed)
        bound = bound_share(held, compared, delta)
        claim = Claim(self, rule.name, bound, delta, "", errors=lost, rows=won + lost)
        of, tie, proven_by = "new rows", "", "exact sign test"
        if problem.has_losses:
            of, tie = "of a new group's rows, on average,", " (by a fair coin where both or neither are)"
            proven_by = name_loss_bound(len(differences), "group", held.drawn)
        wins = f"where one of the two alone is right{tie}, it is the former with probability {claim.says}"
        says = f"{who} misclassifies fewer {of} than {against}: {wins}"
        if bound >= 0.5:
            more = "as measured, more rows alone are not expected to prove it"
            # ``expect_units`` proves one of two statements, at half of the delta that it is given
            expected = expect_units(differences, 2 * delta, None, problem.has_losses)
            if expected is not None:
                in_all = format_about(problem.all_rows.n_units * expected / len(differences))
                units = f"about {in_all} new {problem.all_rows.unit}s"
                more = f"{units}, like these but none of them, are expected to prove it"
            says = f"of {who} and {against}: {wins}; not yet proven that the former misclassifies fewer {of}"
            says += f" than the latter: {more}"
        method = (
            f"holdout: of {len(held.rows.y)} previously unused rows {won} wrong by the latter alone "
            f"and {lost} by the former alone, {proven_by}"
        )
        yield claim.state(says, method, held.state_premise(of_counts=False))

    def check(self, problem: Problem) -> None:
        """Raise InputError if the search does not find the best setting of the learner to compare with."""
        known, other = problem.study.learner.by_label, self.reference
        if other not in known or len(known) == 1:
            second = "svm" if other == "linear" else "linear"
            raise InputError(
                f"claim={self} compares the winner with {other}, and the learners of the study are "
                f"{', '.join(known)}: name several, such as learner={other},{second}, or leave the claim out"
            )
        if not isinstance(problem.study.search, Race):
            raise InputError(
                f"claim={self} needs the best setting of {other}, which a search within a budget may "
                "leave open: choose search=race, or leave the claim out"
            )


def add_gate(held: HeldOutPredictions, claim: Claim) -> Claim:
    """Return a claim about a rule's error with its gate: whether it is proven better than every constant.

    Args:
        held: the held-out rows, and the models.
        claim: a claim that is ``guarded``.
    """
    y, rule = held.rows.y, Rule(claim.classifier)
    shares = claim.quantity.count(held, rule).shares
    loss, gates = held.measure_loss(held.predict(rule).label), list[Gate]()
    for number, constant in enumerate(held.constants):
        of_constant = held.measure_loss(np.full(len(y), constant))
        both = [compare_rows(held, of, of_constant) for of in (loss, np.zeros(len(loss)))]
        won, lost, _ = both[0]
        gates.append(Gate(number, lost, won, *(bound_share(held, of, claim.delta, shares) for of in both)))
    if not gates:
        return claim
    hardest = max(gates, key=lambda gate: gate.bound)
    return replace(claim, gate=replace(hardest, least=max(gate.least for gate in gates)))


def compare_rows(held: HeldOutPredictions, loss: Numbers, against: Numbers) -> PairedCounts:
    """Compare the winner with another model on the held-out rows, from the loss of both on each row.

    Returns:
        The rows that the other one alone gets wrong, those that the winner alone does, and for each unit the
        share of its rows that the winner gets wrong, minus that of the other one, in the order of the draw,
        (units,); for numbers, clipped errors instead.
    """
    of_rows = np.subtract(loss, against, dtype=np.float64)
    _, units = np.unique(held.rows.row_units, return_inverse=True)
    rounding = 0.0 if held.problem.clip is None else GRAIN / ONE  # both losses are rounded up
    differences = average_by_group(np.minimum(of_rows + rounding, 1), units)[held.order]
    return int(np.sum(of_rows < 0)), int(np.sum(of_rows > 0)), differences


def bound_share(
    held: HeldOutPredictions, compared: PairedCounts, delta: float, shares: Values | None = None
) -> float:
    """Return the upper bound on the share of losses; ``shares`` is as for ``betting.bound_losses``."""
    won, lost, differences = compared
    if held.problem.has_losses or shares is not None:
        return held.bound_losses((1 + differences) / 2, delta, shares)
    return bound_count(lost, won + lost, delta, held.copies)
