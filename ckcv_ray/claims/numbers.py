"""Claims about predicted numbers: how far off they are on average, and how far off most of them are.

**On average.** The loss of a row is min(|y - f(x)|, clip) / clip, in [0, 1]: the row takes the place of a
group, and its loss that of a group's share of wrong rows, in every bound of ``core.bounds.betting`` and in
betting. Of groups of rows the loss is the mean of their rows' losses.

**A share tau of new rows.** Let h rows be held out, judged by one fixed model, and k the least number with
P(Bin(h, tau) >= k) <= d; w is the k-th smallest of their absolute errors. Then "P(|y - f(x)| <= w) >= tau"
fails with probability at most d: with w0 = inf{w : P(|y - f(x)| <= w) >= tau} it fails only if w < w0, for
which k errors at least are below w0, each with a probability of at most tau. Nothing is clipped, ties are
allowed, and no k is enough below ln(d) / ln(tau) rows. With x = h - k this is U_d(x; h) <= 1 - tau, U being
Clopper-Pearson's bound, for the largest such count x.

Of rows that have the same origin one counts, and it is not known which: those of the smallest errors are left
out.
"""

import numpy as np

from ckcv_ray.claims.claim import (
    GROUPS_OF_ONE_SOURCE,
    NOTHING,
    ONE_SOURCE,
    UNPROVEN,
    Claim,
    Grounds,
    describe_claim,
    make_claim,
    name_loss_bound,
)
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.claims.percent import format_number, round_bound
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE, Values
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import bound_table
from ckcv_ray.study import name_clipped, parse_within


def claim_numbers(predictions: HeldOutPredictions, rule: Rule, name: str, copies: int = 0) -> Claim:
    """Return what rows held out prove of the numbers that a rule predicts.

    Args:
        predictions: of a problem with a holdout certification.
        rule: what predicts.
        name: of a rule, for its mean error, or such as "within:0.9".
        copies: how many of the rows are not counted.
    """
    problem, held, delta = predictions.problem, predictions.held, predictions.delta
    clip = problem.clip
    assert clip is not None
    predicted = predictions.predict(rule).label
    if (share := parse_within(name)) is not None:
        return claim_within(rule, name, share, np.abs(predicted - held.y), delta, copies)
    losses = problem.make_loss_measure(held.units).measure_losses(held.y, predicted)
    m = len(losses)
    bound = bound_losses(losses[problem.order_held_units()] / ONE, delta, copies=copies)
    measured, grouped = int(losses.sum()) / (ONE * m), problem.task.grouped
    unused = f"{m:,} previously unused {'groups' if grouped else 'rows'}"
    on = f"{len(held.y):,} rows of {unused}" if grouped else unused
    method = (
        f"holdout: {format_number(clip * measured)} on {on}, "
        f"{name_loss_bound(m, 'group' if grouped else 'row')}"
    )
    given = GROUPS_OF_ONE_SOURCE if grouped else ONE_SOURCE
    grounds = Grounds(rule.name, rule.classifier(each="row"), delta, method, given=given)
    return claim_clipped(grounds, bound, measured, clip, grouped)


def claim_clipped(
    grounds: Grounds, bound: float, measured: float, clip: float, grouped: bool = False
) -> Claim:
    """Return a claim about a mean clipped error, with its sentence.

    Args:
        grounds: what it is about, and what it rests on.
        bound, measured: the bound, and the mean of the rows counted, as shares of the clip.
        clip: the largest error that counts.
        grouped: whether it is about the rows of a new group, and not about a new row.
    """
    of_what = "numbers predicted for a new group's rows" if grouped else "number predicted for a new row"
    says = (
        f"the {of_what} by {grounds.who} {'are' if grouped else 'is'} off by at most "
        f"{round_bound(clip * bound)} on average, where an error above {format_number(clip)} counts as "
        f"{format_number(clip)}"
    )
    made = make_claim(
        quantity=name_clipped(clip),
        certification=grounds.certification,
        classifier=grounds.rule,
        bound=bound,
        delta=grounds.delta,
        statement=grounds.state(says),
    )
    return {**made, "measured": measured}


def claim_within(rule: Rule, name: str, share: float, errors: Values, delta: float, copies: int) -> Claim:
    """Return how far off at most a share of new rows is, from the absolute errors of rows held out."""
    m, left = len(errors), max(0, len(errors) - copies)
    few = bound_table(left, delta) <= 1 - share  # counts of rows that may be further off
    beyond = int(np.count_nonzero(few)) - 1  # the bound increases with the count
    width = float(np.sort(errors)[m - 1 - beyond]) if few[0] else UNPROVEN
    width = width if width < UNPROVEN else UNPROVEN  # of predictions that are not finite too
    further = int(np.sum(~(errors <= width)))
    says = (
        f"at least {format_number(100 * share)} % of new rows are predicted to within {round_bound(width)} "
        f"by {rule.classifier(each='row')}"
    )
    method = f"holdout: {further:,} of {m:,} previously unused rows are further off, order statistic"
    statement = describe_claim(ONE_SOURCE, delta, says, method)
    if width == UNPROVEN:
        statement = f"{NOTHING} how far off {format_number(100 * share)} % of new rows are: {method}."
    return make_claim(
        quantity=name,
        classifier=rule.name,
        bound=width,
        errors=further,
        rows=m,
        delta=delta,
        statement=statement,
    )
