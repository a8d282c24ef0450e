"""The claim of a weighted error: how often a rule is wrong where patterns occur as their weights say.

The rows come from a source in which patterns occur otherwise than where the classifier will be used: such as
a sample in which rare cases are as many as common ones. A weight w of each row says how much more often a
pattern like it occurs there, up to a factor that need not be known. The error there is

    r = E(w wrong) / E(w),

over new rows of the source. Let no weight be above W, which the user states: rows cannot show what the
largest one of all new rows is. Given the rule, the pairs (w_t, wrong_t) of the rows held out are independent,
and with a_t = w_t / W the wealth of a gambler who bets that the error is below p,

    e_s(p) = prod over t <= s of (1 + lam_t a_t (p - wrong_t)),

is a martingale of mean 1 at p = r, since E(a (r - wrong)) = r E(a) - E(a wrong) = 0: the bound is that of
``core.bounds.betting``. The mean of the weights cancels, so nothing has to be said of it, and a right row of
great weight counts as much as a wrong one.
"""

import numpy as np

from ckcv_ray.claims.claim import ONE_SOURCE, Claim, describe_claim, make_claim, name_loss_bound
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.claims.percent import ceil_percent, format_number, format_percent
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.study import Problem, parse_largest_weight


def claim_weighted(predictions: HeldOutPredictions, rule: Rule, name: str, copies: int = 0) -> Claim:
    """Return the claim about a rule's error by weight, from rows that nothing used.

    Args:
        predictions: of a problem with a holdout certification, whose rows have weights.
        rule: what classifies the rows held out.
        name: such as "weighted_error:4".
        copies: how many of them are not counted as independent.
    """
    problem, y, largest = predictions.problem, predictions.held.y, _find_largest(name)
    weights, delta = take_held_weights(problem), predictions.delta
    wrong, shares, m = predictions.predict(rule).label != y, weights / largest, len(y)
    order = problem.order_held_units()
    bound = bound_losses(wrong[order], delta, shares[order], copies)
    measured = float(np.sum(weights * wrong) / np.sum(weights))
    says = (
        f"a new pattern, drawn with a chance in proportion to its weight {problem.task.weight!r}, is "
        f"misclassified by {rule.classifier()} with probability at most {ceil_percent(bound)}, if weights "
        f"are known and none is above {format_number(largest)}"
    )
    method = (
        f"holdout: {np.sum(wrong)} of {m} previously unused rows wrong, {format_percent(measured)} by "
        f"weight, {name_loss_bound(m, 'row')}"
    )
    made = make_claim(
        quantity=name,
        classifier=rule.name,
        bound=bound,
        errors=int(np.sum(wrong)),
        rows=m,
        delta=delta,
        statement=describe_claim(ONE_SOURCE, delta, says, method),
    )
    return {**made, "measured": measured}


def take_held_weights(problem: Problem) -> Values:
    """Return the weights of the rows held out, (rows,)."""
    assert problem.held is not None
    weights = problem.all_rows.weighting.take(problem.held)
    assert weights is not None
    return weights


def bound_flawless(problem: Problem, name: str, delta: float) -> float:
    """Return what is proven of the weighted error if no row held out is wrong, before any is looked at.

    Rows held out are taken to weigh as much as rows to learn from.
    """
    assert problem.held is not None
    weights = problem.task.weighting.named
    assert weights is not None
    shares = np.resize(weights, len(problem.held)) / _find_largest(name)
    return bound_losses(np.zeros(len(shares)), delta, shares)


def describe_weights(problem: Problem) -> str:
    """Say what weights of rows are used for; "" if all rows weigh the same."""
    certification = problem.study.certification
    if certification is None or not certification.weighs_rows:
        return problem.all_rows.weighting.describe()
    return (
        f"Rows are weighted by {problem.task.weight!r} in fits and in the weighted error alone, which holds "
        "if weights are known, and not estimated from the rows held out; all else is of unweighted rows."
    )


def _find_largest(name: str) -> float:
    largest = parse_largest_weight(name)
    assert largest is not None
    return largest
