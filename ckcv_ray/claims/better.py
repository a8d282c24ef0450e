"""What rows that nothing used prove of a winner against another learner of the study, or against constants.

The other learner is represented by one model, at the learner's own best setting and number of folds by the
criterion of the study, fitted on all rows that were not held out: what would be used had the learner been the
only one. Its setting is chosen by the learning rows alone, so given these both classifiers are fixed, and the
rows held out are as many independent comparisons.

Rows: on b held-out rows the other one alone is wrong, and on c the winner alone. Given b + c, c is
Bin(b + c, theta), where theta < 1/2 exactly if the winner errs less often. Clopper-Pearson's bound on theta
at the level d is below 1/2 exactly if the sign test, P(Bin(b + c, 1/2) <= c) < d, says so: "better" is proven
where the bound is below 1/2, with one statement and all of d (``core.bounds.paired``).

Groups: (1 + x) / 2 is a loss in [0, 1], x being the share of a group's rows that the winner has wrong less
that of the other one. Its mean is below 1/2 exactly if the winner errs less often; the bound is by betting.
1 less this mean is the probability that the winner is the one that is right in a row drawn of a new group,
with a fair coin where both are or neither is: in either case what is claimed is a share of wins.

A constant is a classifier too, and a bound on the error is quoted only if the rule is proven better than
every constant, at the delta of the bound. First this gate, then the bound, is a fixed sequence, so together
they fail with probability at most this delta: if the rule is no better than some constant, only the
comparison with this one can be false, and otherwise only the bound. Every class has to be beaten, so none is
chosen. Of numbers the constant is the median of the learning rows, and errors are clipped; by weight the
losses are (1 + x) / 2 in the weighted bet.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.baseline import compute_baselines
from ckcv_ray.claims.claim import (
    GROUPS_OF_ONE_SOURCE,
    NOTHING,
    ONE_SOURCE,
    Claim,
    Gate,
    describe_claim,
    is_proven_better,
    make_claim,
    name_loss_bound,
)
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.claims.percent import floor_percent
from ckcv_ray.claims.rules import Rule
from ckcv_ray.claims.weighted import take_held_weights
from ckcv_ray.core.arrays import ONE, Values
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.bounds.paired import Differences, expect_units
from ckcv_ray.core.measures import GRAIN, ClippedErrors, average_by_group
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Member
from ckcv_ray.study import Candidate, Problem, find_reference, parse_largest_weight
from ckcv_ray.tables.task import TestRows


class PairedCounts(NamedTuple):
    """Two classifiers on the same held-out rows.

    Attributes:
        won, lost: rows that the other one alone has wrong, and those that the winner alone has.
        differences: of each unit the share of its rows that the winner has wrong, less that of the other one,
            in the order of the draw, (units,); of numbers clipped errors instead.
        grouped: whether units have losses, and not right and wrong: groups, and numbers.
        shares: what each unit counts for, in [0, 1], (units,); None if all count the same.
    """

    won: int
    lost: int
    differences: Differences
    grouped: bool
    shares: Values | None = None

    def bound(self, delta: float, copies: int) -> float:
        """Return the upper bound on the share of losses; ``copies`` of the units are not counted."""
        if self.grouped or self.shares is not None:
            return bound_losses((1 + self.differences) / 2, delta, self.shares, copies)
        left = max(0, self.won + self.lost - copies)
        return float(clopper_pearson(min(self.lost, left), left, delta))


def claim_better(predictions: HeldOutPredictions, rule: Rule, name: str, copies: int = 0) -> Claim:
    """Return the claim that a rule errs less often than another learner of the study.

    Args:
        predictions: of a problem with a holdout certification.
        rule: of the winner.
        name: of the claim, such as "better:svm".
        copies: held-out rows, or groups, that are not counted as independent.
    """
    problem, member, label = predictions.problem, predictions.find_reference_model(name), find_reference(name)
    winner = problem.learner.codec.setting(predictions.models.best.members[0].model)[LABEL]
    why = (
        "it is the learner that was selected" if winner == label else "no candidate of it could be completed"
    )
    made = make_claim(
        quantity=name,
        classifier=rule.name,
        bound=1.0,
        errors=0,
        rows=0,
        delta=predictions.delta,
        statement=f"{NOTHING} a comparison with {label}: {why}.",
    )
    if member is None:
        return made
    made_of = (predictions.predict(rule), predictions.predict_by_reference(name))
    wrong, missed = (predicted.label != predictions.held.y for predicted in made_of)
    compared = _compare(problem, predictions.held, wrong, missed)
    bound = compared.bound(predictions.delta, copies)
    counted: Claim = {**made, "bound": bound, "errors": compared.lost, "rows": compared.won + compared.lost}
    return {**counted, "statement": _state(problem, member, rule, compared, counted)}


def add_gate(predictions: HeldOutPredictions, rule: Rule, claim: Claim, copies: int = 0) -> Claim:
    """Return a claim about a rule's error with its gate: whether it is proven better than every constant.

    Args:
        predictions, copies: as for ``claim_better``.
        rule, claim: of the claim, which ``is_guarded``.
    """
    problem, held, shares = predictions.problem, predictions.held, None
    constants: Sequence[float] = range(problem.task.n_classes)
    if problem.clip is not None:
        constants = [compute_baselines(problem)[0]["value"]]
    if (largest := parse_largest_weight(claim["quantity"])) is not None:
        shares = take_held_weights(problem)[problem.order_held_units()] / largest
    loss, gates = _measure_loss(problem, held, predictions.predict(rule).label), list[Gate]()
    for number, constant in enumerate(constants):
        of_constant = _measure_loss(problem, held, np.full(len(held.y), constant))
        compared, flawless = (_compare(problem, held, of, of_constant) for of in (loss, np.zeros(len(loss))))
        bound, least = (
            counts._replace(shares=shares).bound(claim["delta"], copies) for counts in (compared, flawless)
        )
        gates.append(Gate(predicted=number, lost=compared.lost, won=compared.won, bound=bound, least=least))
    hardest = max(gates, key=lambda gate: gate["bound"])
    return {**claim, "gate": {**hardest, "least": max(gate["least"] for gate in gates)}}


def _measure_loss(problem: Problem, held: TestRows, predicted: NDArray[Any]) -> Values:
    """Return the loss of each row held out: 1 if it is wrong, of numbers the clipped error by the clip."""
    if problem.clip is None:
        return np.asarray(predicted != held.y, dtype=np.float64)
    return np.asarray(ClippedErrors(problem.clip).measure_losses(held.y, predicted) / ONE)


def _compare(problem: Problem, held: TestRows, loss: Values, against: Values) -> PairedCounts:
    """Return the winner and a model on the rows held out, from the loss of each row by both."""
    of_rows = np.subtract(loss, against, dtype=np.float64)
    _, units = np.unique(held.units, return_inverse=True)
    rounding = 0.0 if problem.clip is None else GRAIN / ONE  # both losses are rounded up
    differences = average_by_group(np.minimum(of_rows + rounding, 1), units)[problem.order_held_units()]
    won, lost = int(np.sum(of_rows < 0)), int(np.sum(of_rows > 0))
    return PairedCounts(won, lost, differences, problem.has_losses)


def _state(problem: Problem, member: Member, rule: Rule, compared: PairedCounts, claim: Claim) -> str:
    """Return the sentence of a claim: proven, or not yet and about how many rows it would take."""
    who, label = rule.classifier(), find_reference(claim["quantity"])
    setting = dict(problem.learner.codec.setting(member.model))
    del setting[LABEL]
    against = f"the best of {label} ({Candidate(setting, member.k)}), fitted on the same rows"
    of, tie = "new patterns", ""
    if compared.grouped:
        of, tie = "of a new group's rows, on average,", " (by a fair coin where both or neither are)"
    share = floor_percent(1 - claim["bound"])
    wins = f"where one of the two alone is right{tie}, it is the former with probability at least {share}"
    says = f"{who} misclassifies fewer {of} than {against}: {wins}"
    if not is_proven_better(claim):
        more = "as measured, more rows alone are not expected to prove it"
        # ``expect_units`` proves one of two statements at half of the delta that it is given
        expected = expect_units(compared.differences, 2 * claim["delta"], None, compared.grouped)
        if expected is not None:
            in_all = float(f"{problem.all_rows.n_units * expected / len(compared.differences):.2g}")
            units = f"about {in_all:,.0f} new {problem.all_rows.unit}s"
            more = f"{units}, none of these but like them, are expected to prove it"
        says = f"of {who} and {against}: {wins}; not yet proven that the former misclassifies fewer {of}"
        says += f" than the latter: {more}"
    rows = len(problem.held) if problem.held is not None else 0
    proven_by = name_loss_bound(len(compared.differences), "group") if compared.grouped else "exact sign test"
    method = (
        f"holdout: of {rows} previously unused rows {compared.won} wrong by the latter alone and "
        f"{compared.lost} by the former alone, {proven_by}"
    )
    given = GROUPS_OF_ONE_SOURCE if compared.grouped else ONE_SOURCE
    return describe_claim(given, claim["delta"], says, method)
