"""What is proven after selection, from counts of errors: occam, holdout, nested.

``occam``, always computed, from the counts behind l_ee: each candidate t = (path, step, k) gets the share
pi(t) = 1 / (learners) * 1 / (settings of its learner) * w(k) / (sum of w over the study's fold sizes) of
delta, where w(k) = 1 / ((k - 2)(k - 1)) and each fold size is represented by its smallest k. The shares
depend only on the study and the number of rows and sum to at most 1 over all candidates, so the
averaging-safe bound at level delta * pi(t) holds for whichever candidate was selected. ``holdout``: nothing
has used the held-out rows, so the errors on them are binomial. ``nested``: for another ensemble than F*, each
member of which was selected and fitted on the training rows of an outer split alone: its errors on the other
rows are binomial given those training rows, and the averaging-safe bound combines them.

With groups of related rows the units are groups, and what is bounded is the mean loss of a new group: the
share of its rows that are wrong. Sums of such losses take the place of counts, and the bounds of
``core.bounds.losses`` that of Clopper-Pearson; the proofs are the same.

The bounds over the first splits of an exchangeable order hold together (``binomial.best_prefix``): occam
and nested claim the one about all members first, and then the smallest, about the members of its splits.

If rows repeat because they have the same origin, the ``Copies`` are not new: every claim holds again with as
many fewer independent units in each set (see the theory page, "Repeated rows").
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims import by_class
from ckcv_ray.claims.answering import claim_answered
from ckcv_ray.claims.better import claim_better
from ckcv_ray.claims.claim import (
    BOUND_NAMES,
    GROUPS_OF_ONE_SOURCE,
    LOSS_NAMES,
    RANDOM,
    RANDOM_SPLITS,
    RANDOM_SPLITS_OF_GROUPS,
    Claim,
    Grounds,
    claim_error,
    format_splits,
)
from ckcv_ray.claims.cut_offs import CutOff, choose_cut_off
from ckcv_ray.claims.judge import Judge
from ckcv_ray.claims.numbers import NUMBER_METHODS, claim_clipped, claim_numbers
from ckcv_ray.claims.predictive_values import claim_value
from ckcv_ray.claims.rules import Rule, prefix
from ckcv_ray.claims.weighted import claim_weighted
from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.bounds.binomial import MOST_CHECKED, Prefix, best_prefix, bound_claim, clopper_pearson
from ckcv_ray.core.bounds.losses import (
    ONE,
    best_loss_prefix,
    bound_loss_claim,
    bound_losses,
    choose_loss_method,
    loss_method,
)
from ckcv_ray.core.measures import GroupShares
from ckcv_ray.learners.ensemble import Ensemble, GroupMember, Prediction
from ckcv_ray.study import (
    ANSWERED,
    OF_TWO,
    Holdout,
    Nested,
    Occam,
    Problem,
    Study,
    choose_judge,
    find_reference,
    is_quantity,
    parse_largest_weight,
    parse_predictive,
)


class Copies(NamedTuple):
    """How many units are not independent if those that repeat have the same origin.

    Attributes:
        units: rows, or groups, of the full table that are left out to keep one of each origin.
        unlabelled: unlabelled rows that are left out to keep one of each, and none of the table.
    """

    units: int = 0
    unlabelled: int = 0


NO_COPIES = Copies()
DIFFERING = 0.2  # share of delta for the rows on which two models differ, which are many and rarely differ


def prove(judge: Judge, k: int, copies: Copies = NO_COPIES) -> list[Claim]:
    """Return the proven claims: those of the certification first, and always that of occam.

    Args:
        judge: the problem that was solved, and the models of the run.
        k: the winner's number of folds.
        copies: units that are not counted as independent.
    """
    problem, best = judge.problem, judge.models.best
    certified = PROOFS[problem.study.certify](judge, copies)
    learner, _ = problem.find_learner(problem.learner.codec.setting(best.members[0].model))
    return [*certified, *occam(problem, k, count_losses(best), learner, count_wrong_rows(best), copies)]


def occam(
    problem: Problem,
    k: int,
    losses: Sequence[int],
    learner: int = 0,
    counts: Sequence[tuple[int, int]] | None = None,
    copies: Copies = NO_COPIES,
) -> Iterator[Claim]:
    """Yield the claims for F*, from the losses on the estimate sets of the winner's splits.

    Args:
        problem: the problem that was solved.
        k, copies: as for ``prove``.
        losses: see ``Averaged``.
        learner: position of the winner's learner among those that are compared.
        counts: see ``Averaged``.
    """
    size, delta = problem.find_size(k), problem.study.delta
    method = f"occam over {problem.settings_per_learner[learner]} x k candidates"
    if len(problem.learners) > 1:
        method += f" of {list(problem.learners)[learner]}, one of {len(problem.learners)} learners"
    level = float(delta * weight(problem, k, learner))
    grouped = problem.task.grouped
    order, u = problem.order(size), by_class.get_u(problem)
    averaged = Averaged(losses, order, size.n_select, grouped, counts, copies.units, u, problem.clip)
    yield from averaged.claims(Occam.name, RANDOM.name, level, delta, method)


def holdout(judge: Judge, copies: Copies = NO_COPIES) -> Iterator[Claim]:
    """Yield a claim for each classifier and quantity requested, from rows that nothing used.

    delta is shared equally (``Certification.n_shares``); quantities are those of the first classifier
    requested.
    """
    problem, study, held = judge.problem, judge.problem.study, judge.held
    assert isinstance(study.certification, Holdout)
    requested = study.certification.claim
    delta = study.delta / study.certification.n_shares
    answer = cache(lambda rule: claim_answered(judge, rule, copies.units))
    of_value = problem.required is not None and parse_predictive(problem.required.name) is not None
    choose = cache(lambda rule: claim_value(judge, rule, copies.units))
    for name in requested:
        rule = make_judge(study, name)
        if problem.clip is not None:
            yield claim_numbers(judge, rule, name, copies.units)
            continue
        predicted = judge.predict(rule)
        if name in ANSWERED:
            yield answer(rule)[name]
        elif find_reference(name):
            yield claim_better(judge, rule, name, copies.units)
        elif parse_largest_weight(name) is not None:
            yield claim_weighted(judge, rule, name, copies.units)
        elif is_quantity(name):
            chosen = choose(rule) if of_value else {}
            yield from _claim_quantity(problem, rule, name, predicted, copies.units, chosen)
        elif problem.task.grouped:
            measure, order = GroupShares(held.units), problem.order_held_units()
            yield claim_group_loss(rule, measure, predicted.label, held.y, delta, order, copies.units)
        else:
            wrong = (predicted.label != held.y)[by_class.order_held_rows(problem)]
            yield _claim_error(problem, rule, wrong, delta, copies.units)
    if problem.every_row.unlabelled is not None:
        yield _claim_full(judge, delta, copies)


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
            next(_claim_quantity(problem, rule, recall, predicted, copies, chosen)) for recall in OF_TWO
        ]
        yield by_class.claim_predictive(problem, make_claimed_rule(problem, recalls[0]), predictive, *recalls)
    elif name in OF_TWO and (condition := problem.required) is not None:
        held = problem.take_held_rows()
        assert held is not None
        delta = by_class.quantities(problem, name)[0].delta
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
        copies: groups that are not counted. Which of them is unknown, so the bound is then one that the total
            of the losses alone decides.
    """
    losses = measure.share_losses(y, predicted)
    m = len(losses)
    left = max(0, m - copies)
    if copies:
        total = min(int(losses.sum()), left * ONE)
        bound = bound_loss_claim([total], left, delta) if left else 1.0
    else:
        bound = bound_losses(losses[order], delta)
    method = (
        f"holdout: {np.sum(predicted != y)} of {len(y)} rows of {m} previously unused groups wrong, "
        f"{LOSS_NAMES[choose_loss_method(m, delta)]}"
    )
    seen = int(np.sum(predicted != y)), len(y)
    grounds = Grounds(rule.name, rule.classifier(), delta, method, given=GROUPS_OF_ONE_SOURCE)
    return claim_error(grounds, bound, seen, grouped=True)


def _claim_error(problem: Problem, rule: Rule, wrong: NDArray[np.bool_], delta: float, copies: int) -> Claim:
    """Return the claim about a rule's error, from which of the held-out rows, as drawn, are wrong."""
    bound, name = by_class.bound_held_out(problem, wrong, delta, copies)
    seen = int(np.sum(wrong)), len(wrong)
    method = f"holdout: {seen[0]} of {seen[1]} previously unused rows wrong, {name}"
    return claim_error(Grounds(rule.name, rule.classifier(), delta, method), bound, seen)


def _claim_full(judge: Judge, delta: float, copies: Copies) -> Claim:
    """Return the claim for the model fitted on all rows, from how often it differs from the refit.

    It errs where the refit errs, which is counted on the held-out rows, or where the two differ;
    both are bounded, at shares of delta. It has no count of its own: it has learned from every row. Both
    bounds are Clopper-Pearson, whatever ``holdout_bound``: the order of unlabelled rows is not drawn.
    """
    problem, models = judge.problem, judge.models
    unlabelled, certification = problem.every_row.unlabelled, problem.study.certification
    assert unlabelled is not None
    assert isinstance(certification, Holdout)
    by_positions = certification.holdout_bound != Holdout.holdout_bound
    reason = " (the order of unlabelled rows is not drawn)" if by_positions else ""
    refit, full = Rule("refit"), Rule("full")
    wrong, rows = int(np.sum(judge.predict(refit).label != judge.held.y)), len(judge.held.y)
    otherwise = full.predict(models, unlabelled).label != refit.predict(models, unlabelled).label
    differ, among = int(np.sum(otherwise)), len(unlabelled)
    erring = clopper_pearson(*by_class.leave_out(wrong, rows, copies.units), (1 - DIFFERING) * delta)
    apart = by_class.leave_out(differ, among, copies.unlabelled)
    differing = clopper_pearson(*apart, DIFFERING * delta)
    method = (
        f"holdout: {wrong} of {rows} previously unused rows wrong by {refit.classifier()}, and {differ} of "
        f"{among} unlabelled rows classified otherwise, Clopper-Pearson for both{reason}"
    )
    bound = min(1.0, erring + differing)
    return claim_error(Grounds(full.name, full.classifier(), delta, method), bound, None)


def outer(judge: Judge, copies: Copies = NO_COPIES) -> Iterator[Claim]:
    """Yield the claims for the nested ensemble, from its members' errors on the outer splits.

    All are about all members, and about those of one prefix of the splits: the best one for the first name.
    There are members of the splits before the first that is refused alone: a refused split counts as one that
    fails nothing, which is a function of its own rows, so the other prefixes keep their proof.
    """
    problem, nested = judge.problem, judge.models.nested
    assert nested is not None
    certification, n_splits = problem.study.certification, len(nested.members)
    assert isinstance(certification, Nested)
    length: int | None = None
    for name in certification.claim:
        if is_quantity(name):
            claims = list(by_class.claim_nested(judge, nested, name, length, copies.units))
        else:
            claims = list(_claim_outer_errors(problem, nested, length, copies.units))
        yield from claims
        length = length or max(len(claim["splits"]) for claim in claims) or n_splits


def _claim_outer_errors(
    problem: Problem, nested: Ensemble, length: int | None, copies: int
) -> Iterator[Claim]:
    """Yield the claims about errors; ``length`` is as for ``Averaged.claims``."""
    certification = problem.study.certification
    assert isinstance(certification, Nested)
    size, delta = problem.outer.sizes[0], problem.study.delta / certification.n_shares
    method = f"nested: {by_class.describe_selection(f'{size.n_splits} outer splits', problem)}"
    order, grouped, u = problem.outer.order(size), problem.task.grouped, by_class.get_u(problem)
    losses, counts = count_losses(nested), count_wrong_rows(nested)
    averaged = Averaged(losses, order, size.n_select, grouped, counts, copies, u, problem.clip)
    yield from averaged.claims(Nested.name, Nested.name, delta, delta, method, length)


class Averaged(NamedTuple):
    """Claims from bounds that may be averaged over splits.

    Attributes:
        losses: of each split's estimate set: the number of wrong rows; with groups or numbers, the sum of
            the losses in units of 1 / ``ONE``.
        order: the splits in an exchangeable order.
        m: rows, or groups, in each estimate set.
        grouped: whether the task has groups.
        counts: wrong rows and all rows of each split's estimate set; None if they are the losses, of m rows.
        copies: units that are not counted as independent.
        u: the U on the first split (``binomial.best_prefix``); 1 for none.
        clip: the largest error of numbers that counts; None with classes.
    """

    losses: Sequence[int]
    order: Index
    m: int
    grouped: bool = False
    counts: Sequence[tuple[int, int]] | None = None
    copies: int = 0
    u: float = 1.0
    clip: float | None = None

    @property
    def has_losses(self) -> bool:
        """Whether the losses are sums of shares, and not counts of rows."""
        return self.grouped or self.clip is not None

    def claims(
        self,
        certification: str,
        classifier: str,
        level: float,
        delta: float,
        method: str,
        length: int | None = None,
    ) -> Iterator[Claim]:
        """Yield the claim for all members, and the one for those of a prefix.

        Both hold on one event, of probability at least 1 - delta.

        Args:
            certification, classifier, delta: as in ``Claim``.
            level: the share of delta that the bound is computed with.
            method: where the losses come from.
            length: of the prefix; None for the best one.
        """
        first, every, name = self._bounds(level, length)
        given = RANDOM_SPLITS_OF_GROUPS if self.grouped else RANDOM_SPLITS
        m = f"m = {self.m}{' groups' if self.grouped else ''}"
        rule = Rule(RANDOM.name, nested=certification == Nested.name)
        for bound, length in dict.fromkeys((every, first)):  # one claim if the prefix is all splits
            splits = prefix(self.order, length)
            rule = replace(rule, splits=splits)
            how = f"{method}, {name}, {format_splits(length, len(self.losses))}, {m}"
            if self.clip is not None:
                how += by_class.describe_u(self.u)
                who = rule.classifier(each="row")
                grounds = Grounds(classifier, who, delta, how, certification, given, splits)
                yield claim_clipped(grounds, bound, self._measure(length), self.clip)
                continue
            seen = self._count(length)
            how += f", {seen[0]} of {seen[1]} scored rows wrong{by_class.describe_u(self.u)}"
            grounds = Grounds(classifier, rule.classifier(), delta, how, certification, given, splits)
            yield claim_error(grounds, bound, seen, self.grouped)

    def _measure(self, length: int) -> float:
        """Return the mean loss on the estimate sets of the first splits."""
        total: int = sum(self.losses[i] for i in self.order[:length])
        return total / (ONE * self.m * length)

    def _count(self, length: int) -> tuple[int, int]:
        """Return the wrong rows and all rows of the first splits."""
        counts = self.counts or [(loss, self.m) for loss in self.losses]
        wrong, rows = zip(*(counts[i] for i in self.order[:length]), strict=True)
        return sum(wrong), sum(rows)

    def _bounds(self, level: float, length: int | None) -> tuple[Prefix, Prefix, str]:
        """Return the bounds over a prefix (by default the best) and all splits, and their method's name."""
        m = self.m - self.copies
        if m < 1:  # nothing is left that is independent
            return Prefix(1.0, length or len(self.losses)), Prefix(1.0, len(self.losses)), "no bound"
        most = m * ONE if self.has_losses else m
        losses = [min(self.losses[i], most) for i in self.order]
        if self.has_losses:
            names = LOSS_NAMES if self.grouped else NUMBER_METHODS
            name = names[loss_method(m, level, claimed=True)]
            bound = partial(bound_loss_claim, m=m, delta=level, u=self.u)
            best = best_loss_prefix(losses, m, level, self.u)
        else:
            method = "safe" if m <= MOST_CHECKED else "catoni"
            name, best = BOUND_NAMES[method], best_prefix(method, losses, m, level, self.u)
            bound = partial(bound_claim, method, m=m, delta=level, u=self.u)
        first = best if length is None else Prefix(bound(losses[:length]), length)
        return first, Prefix(bound(losses), len(losses)), name


def make_rule(study: Study, classifier: str) -> Rule:
    """Return the rule that a claim from held-out rows is about; the study fixes the key of a keyed draw."""
    return Rule(classifier, study.seed if classifier == "keyed" else 0)


def make_judge(study: Study, name: str) -> Rule:
    """Return the rule that a claim by this name is about: of a quantity, the first rule that is named."""
    assert study.certification is not None
    judge = choose_judge(study.certification.claim) if is_quantity(name) else name
    return make_rule(study, "keyed" if judge == "random" else judge)


def make_claimed_rule(problem: Problem, claim: Claim) -> Rule:
    """Return the rule that a claim from held-out rows is about, with the cut-off that was chosen for it."""
    rule = make_rule(problem.study, claim["classifier"])
    if "cut_off" not in claim:
        return rule
    return replace(rule, cut_off=CutOff(claim["cut_off"], problem.positive))


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


def count_wrong_rows(ensemble: Ensemble) -> list[tuple[int, int]]:
    """Return the wrong rows and all rows of each member's estimate set."""
    return [(sum(member.errors), sum(member.n_estimate)) for member in ensemble.members]


def _claim_nothing_more(judge: Judge, copies: Copies) -> Iterator[Claim]:
    """Yield nothing: the claim of occam is made for every study."""
    return iter(())


PROOFS: dict[str, Callable[[Judge, Copies], Iterator[Claim]]] = {
    Occam.name: _claim_nothing_more,
    Holdout.name: holdout,
    Nested.name: outer,
}
