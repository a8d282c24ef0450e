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
``core.bounds.losses`` that of Clopper-Pearson; the proofs are the same. Where their number and delta say that
it is closer, the bound is by betting on the losses one by one, in an order drawn within each split.

The bounds over the first splits of an exchangeable order hold together (``binomial.best_prefix``): occam
and nested claim the one about all members first, and then the smallest, about the members of its splits.

If rows repeat because they have the same origin, the ``Copies`` are not new: every claim holds again with as
many fewer independent units in each set (see the theory page, "Repeated rows").
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims import by_class
from ckcv_ray.claims.claim import (
    BOUND_NAMES,
    LOSS_NAMES,
    RANDOM,
    RANDOM_SPLITS,
    RANDOM_SPLITS_OF_GROUPS,
    Claim,
    Grounds,
    claim_error,
    format_splits,
)
from ckcv_ray.claims.held_out import holdout
from ckcv_ray.claims.judge import Judge
from ckcv_ray.claims.numbers import claim_clipped, name_loss_methods
from ckcv_ray.claims.rules import Rule, prefix
from ckcv_ray.core.arrays import Index
from ckcv_ray.core.bounds.betting import bound_mean_by_betting, find_betting_prefix
from ckcv_ray.core.bounds.binomial import MOST_CHECKED, Prefix, best_prefix, bound_claim
from ckcv_ray.core.bounds.losses import (
    ONE,
    best_loss_prefix,
    bound_loss_claim,
    choose_split_method,
    loss_method,
)
from ckcv_ray.learners.ensemble import Ensemble, GroupMember
from ckcv_ray.study import Holdout, Nested, Occam, Problem, is_quantity

SplitLosses: TypeAlias = Callable[[int], NDArray[np.int64]]


def prove(judge: Judge, k: int, copies: int = 0) -> list[Claim]:
    """Return the proven claims: those of the certification first, and always that of occam.

    Args:
        judge: the problem that was solved, and the models of the run.
        k: the winner's number of folds.
        copies: units that are not counted as independent.
    """
    problem, best = judge.problem, judge.models.best
    certified = PROOFS[problem.study.certify](judge, copies)
    learner, _ = problem.find_learner(problem.learner.codec.setting(best.members[0].model))
    units = partial(judge.measure_units, nested=False)
    counts = count_wrong_rows(best)
    return [*certified, *occam(problem, k, count_losses(best), learner, counts, copies, units)]


def occam(
    problem: Problem,
    k: int,
    losses: Sequence[int],
    learner: int = 0,
    counts: Sequence[tuple[int, int]] | None = None,
    copies: int = 0,
    units: SplitLosses | None = None,
) -> Iterator[Claim]:
    """Yield the claims for F*, from the losses on the estimate sets of the winner's splits.

    Args:
        problem: the problem that was solved.
        k, copies: as for ``prove``.
        losses: see ``Averaged``.
        learner: position of the winner's learner among those that are compared.
        counts, units: see ``Averaged``.
    """
    size, delta = problem.find_size(k), problem.study.delta
    method = f"occam over {problem.settings_per_learner[learner]} x k candidates"
    if len(problem.learners) > 1:
        method += f" of {list(problem.learners)[learner]}, one of {len(problem.learners)} learners"
    level = compute_level(problem, k, learner)
    grouped = problem.task.grouped
    order, u = problem.order(size), by_class.get_u(problem)
    averaged = Averaged(losses, order, size.n_select, grouped, counts, copies, u, problem.clip, units)
    yield from averaged.claims(Occam.name, RANDOM.name, level, delta, method)


def outer(judge: Judge, copies: int = 0) -> Iterator[Claim]:
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
            claims = list(by_class.claim_nested(judge, nested, name, length, copies))
        else:
            claims = list(_claim_outer_errors(judge, nested, length, copies))
        yield from claims
        length = length or max(len(claim["splits"]) for claim in claims) or n_splits


def _claim_outer_errors(judge: Judge, nested: Ensemble, length: int | None, copies: int) -> Iterator[Claim]:
    """Yield the claims about errors; ``length`` is as for ``Averaged.claims``."""
    problem, certification = judge.problem, judge.problem.study.certification
    assert isinstance(certification, Nested)
    size, delta = problem.outer.sizes[0], problem.study.delta / certification.n_shares
    method = f"nested: {by_class.describe_selection(f'{size.n_splits} outer splits', problem)}"
    order, grouped, u = problem.outer.order(size), problem.task.grouped, by_class.get_u(problem)
    losses, counts = count_losses(nested), count_wrong_rows(nested)
    units = partial(judge.measure_units, nested=True)
    averaged = Averaged(losses, order, size.n_select, grouped, counts, copies, u, problem.clip, units)
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
        units: what measures the losses of a split's units one by one, in units of 1 / ``ONE`` and in the
            order drawn; None if they are not known. They are not asked for but where their sums are losses.
    """

    losses: Sequence[int]
    order: Index
    m: int
    grouped: bool = False
    counts: Sequence[tuple[int, int]] | None = None
    copies: int = 0
    u: float = 1.0
    clip: float | None = None
    units: SplitLosses | None = None

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
                yield claim_clipped(grounds, bound, self._measure(length), self.clip, self.grouped)
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

    def _is_bet_on(self, level: float) -> bool:
        """Return whether the bound is by betting: not of copies, as it is not known which units they are."""
        known = self.has_losses and not self.copies
        return known and choose_split_method(self.m, level) == "betting"

    def _bounds(self, level: float, length: int | None) -> tuple[Prefix, Prefix, str]:
        """Return the bounds over a prefix (by default the best) and all splits, and their method's name."""
        m = self.m - self.copies
        if m < 1:  # nothing is left that is independent
            return Prefix(1.0, length or len(self.losses)), Prefix(1.0, len(self.losses)), "no bound"
        most = m * ONE if self.has_losses else m
        losses: Any = [min(self.losses[i], most) for i in self.order]
        bound: Callable[[Any], float]
        names = LOSS_NAMES if self.clip is None else name_loss_methods(self.grouped)
        if self.units is not None and self._is_bet_on(level):
            losses = np.array([self.units(i) for i in self.order]) / ONE
            name, best = names["betting"], find_betting_prefix(losses, level, self.u)
            bound = partial(bound_mean_by_betting, delta=level, u=self.u)
        elif self.has_losses:
            name = names[loss_method(m, level, claimed=True)]
            bound = partial(bound_loss_claim, m=m, delta=level, u=self.u)
            best = best_loss_prefix(losses, m, level, self.u)
        else:
            method = "safe" if m <= MOST_CHECKED else "catoni"
            name, best = BOUND_NAMES[method], best_prefix(method, losses, m, level, self.u)
            bound = partial(bound_claim, method, m=m, delta=level, u=self.u)
        first = best if length is None else Prefix(bound(losses[:length]), length)
        return first, Prefix(bound(losses), len(losses)), name


def compute_level(problem: Problem, k: int, learner: int = 0) -> float:
    """Compute the share of delta that the bound of a candidate is computed with; arguments of ``weight``."""
    return float(problem.study.delta * weight(problem, k, learner))


def is_winner_bet_on(judge: Judge) -> bool:
    """Return whether the claims for F* are by betting, on the losses of its members one by one."""
    problem, first = judge.problem, judge.models.best.members[0]
    if not problem.has_losses:
        return False
    size = problem.find_size(first.k)
    learner, _ = problem.find_learner(problem.learner.codec.setting(first.model))
    level = compute_level(problem, size.k, learner)
    return choose_split_method(size.n_select, level) == "betting"


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


def _claim_nothing_more(judge: Judge, copies: int) -> Iterator[Claim]:
    """Yield nothing: the claim of occam is made for every study."""
    return iter(())


PROOFS: dict[str, Callable[[Judge, int], Iterator[Claim]]] = {
    Occam.name: _claim_nothing_more,
    Holdout.name: holdout,
    Nested.name: outer,
}
