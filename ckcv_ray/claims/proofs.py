"""What is proven after selection, from counts of errors: occam, holdout, nested.

``occam``, always computed, from the counts behind l_ee: each candidate t = (path, step, k) gets the share
pi(t) = 1 / (settings) * w(k) / (sum of w over the study's fold sizes) of delta, where w(k) = 1 / ((k - 2)(k
- 1)) and each fold size is represented by its smallest k. The shares depend only on the study and the number
of rows and sum to at most 1 over all candidates, so the averaging-safe bound at level delta * pi(t) holds
for whichever candidate was selected. ``holdout``: nothing has used the held-out rows, so the errors on them
are binomial. ``nested``: for another ensemble than F*, each member of which was selected and fitted on the
training rows of an outer split alone: its errors on the other rows are binomial given those training rows,
and the averaging-safe bound combines them.

The bounds over the first splits of an exchangeable order hold together (``core.bounds.best_prefix``): occam
and nested claim the smallest of them, about the members of these splits, and the one about all members.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ckcv_ray.claims.rules import ENSEMBLE, NESTED, Rule
from ckcv_ray.claims.wording import BOUND_NAMES, ONE_SOURCE, RANDOM, RANDOM_SPLITS, Claim, claim
from ckcv_ray.core.bounds import MOST_CHECKED, Prefix, best_prefix, clopper_pearson, reported_bound
from ckcv_ray.data.schema import Index
from ckcv_ray.errors import counted
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.study import Holdout, Nested, Occam, Problem, Study


def prove(problem: Problem, k: int, ensemble: Ensemble, nested: Ensemble | None) -> list[Claim]:
    """Return the proven claims: those of the certification first, and always that of occam.

    Args:
        problem: the problem that was solved.
        k: the winner's number of folds.
        ensemble: F*.
        nested: the ensemble of a nested certification.
    """
    certified = PROOFS[problem.study.certification.name](problem, ensemble, nested)
    return [*certified, *occam(problem, k, _errors(ensemble))]


def occam(problem: Problem, k: int, errors: Sequence[int]) -> Iterator[Claim]:
    """Yield the claims for F*, from the errors on the estimate sets of the winner's splits."""
    size, delta = problem.size_of(k), problem.study.delta
    order = problem.study.resampling.order(problem.task.n, size, problem.study.seed)
    method = f"occam over {problem.n_settings} x k candidates"
    level = float(delta * weight(problem, k))
    averaged = Averaged(errors, order, size.n_select)
    yield from averaged.claims(Occam.name, RANDOM.name, ENSEMBLE, level, delta, method)


def holdout(problem: Problem, ensemble: Ensemble, nested: Ensemble | None = None) -> Iterator[Claim]:
    """Yield a claim for each classifier requested, from rows that nothing used; delta is shared equally."""
    study, held = problem.study, problem.held_rows()
    assert held is not None
    assert isinstance(study.certification, Holdout)
    requested, rows = study.certification.claim, len(held.y)
    delta = study.delta / len(requested)
    for name in requested:
        rule = keyed(study) if name == "random" else Rule(name)
        wrong = int(np.sum(rule.predict(ensemble, held.X).label != held.y))
        bound = clopper_pearson(wrong, rows, delta)
        method = f"holdout: {wrong} of {rows} previously unused rows wrong, Clopper-Pearson"
        yield claim("holdout", ONE_SOURCE, rule.name, rule.classifier(), bound, delta, method)


def outer(problem: Problem, ensemble: Ensemble, nested: Ensemble | None) -> Iterator[Claim]:
    """Yield the claim for the nested ensemble, from its members' errors on the outer splits."""
    assert nested is not None
    size, delta = problem.outer.sizes[0], problem.study.delta
    order = problem.outer.study.resampling.order(problem.task.n, size, problem.study.seed)
    method = f"nested: selection repeated from scratch in each of {size.n_splits} outer splits"
    averaged = Averaged(_errors(nested), order, size.n_select)
    yield from averaged.claims(Nested.name, Nested.name, NESTED, delta, delta, method)


class Averaged(NamedTuple):
    """Claims from bounds that may be averaged over splits.

    Attributes:
        errors: wrong rows of each split's estimate set.
        order: the splits in an exchangeable order.
        m: rows in each estimate set.
    """

    errors: Sequence[int]
    order: Index
    m: int

    def claims(
        self, certification: str, classifier: str, of: str, level: float, delta: float, method: str
    ) -> Iterator[Claim]:
        """Yield the claim for the best prefix of the members, and the one for all of them.

        Both hold on one event, of probability at least 1 - delta.

        Args:
            certification, classifier, delta: as in ``Claim``.
            of: names the ensemble.
            level: the share of delta that the bound is computed with.
            method: where the errors come from.
        """
        errors = [self.errors[i] for i in self.order]
        name = "safe" if self.m <= MOST_CHECKED else "catoni"
        best = best_prefix(name, errors, self.m, level)
        every = Prefix(reported_bound(name, errors, self.m, level), len(errors))
        for bound, length in dict.fromkeys((best, every)):  # one claim if the best prefix is all splits
            splits = tuple(sorted(self.order[:length].tolist())) if length < len(errors) else ()
            how = f"{method}, {BOUND_NAMES[name]}, {_counted(length, len(errors))}, m = {self.m}"
            who = Rule(RANDOM.name, splits=splits).classifier(of)
            yield claim(certification, RANDOM_SPLITS, classifier, who, bound, delta, how, splits)


def keyed(study: Study) -> Rule:
    """Return the rule evaluated on held-out rows for the claim "random"; the study fixes its key."""
    return Rule("keyed", study.seed)


def weight(problem: Problem, k: int) -> Fraction:
    """Return pi(t), the share of delta of a candidate; k is the smallest number of folds of its fold size.

    The shares sum to at most 1 over all candidates: in the sum over fold sizes each term is rounded up to a
    multiple of 2**-128, since the exact sum of many fractions is slow.
    """
    one = 1 << 128
    total = sum(-(-one // ((size.k - 2) * (size.k - 1))) for size in problem.sizes)
    return Fraction(one, total * problem.n_settings * (k - 2) * (k - 1))


def _errors(ensemble: Ensemble) -> list[int]:
    return [sum(member.errors) for member in ensemble.members]


def _counted(length: int, n_splits: int) -> str:
    """Say how many splits a bound is over."""
    if length < n_splits:
        return f"best prefix: {length} of {counted(n_splits, 'split')}"
    return counted(n_splits, "split")


def _nothing_more(problem: Problem, ensemble: Ensemble, nested: Ensemble | None) -> Iterator[Claim]:
    """Yield nothing: the claim of occam is made for every study."""
    return iter(())


PROOFS: dict[str, Callable[[Problem, Ensemble, Ensemble | None], Iterator[Claim]]] = {
    Occam.name: _nothing_more,
    Holdout.name: holdout,
    Nested.name: outer,
}
