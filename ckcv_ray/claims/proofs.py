"""What is proven after selection, from counts of errors: occam, holdout, nested.

``occam``, always computed, from the counts behind l_ee: each candidate t = (path, step, k) gets the share
pi(t) = 1 / (settings) * w(k) / (sum of w over the study's fold sizes) of delta, where w(k) = 1 / ((k - 2)(k
- 1)) and each fold size is represented by its smallest k. The shares depend only on the study and the number
of rows and sum to at most 1 over all candidates, so the averaging-safe bound at level delta * pi(t) holds
for whichever candidate was selected. ``holdout``: nothing has used the held-out rows, so the errors on them
are binomial. ``nested``: for another ensemble than F*, each member of which was selected and fitted on the
training rows of an outer split alone: its errors on the other rows are binomial given those training rows,
and the averaging-safe bound combines them.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from ckcv_ray.claims.rules import NESTED, Rule
from ckcv_ray.claims.wording import BOUND_NAMES, ONE_SOURCE, RANDOM, RANDOM_SPLITS, Claim, claim
from ckcv_ray.core.bounds import MOST_CHECKED, clopper_pearson, reported_bound
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
    errors = [sum(member.errors) for member in ensemble.members]
    certified = PROOFS[problem.study.certification.name](problem, ensemble, nested)
    return [*certified, occam(problem, k, errors)]


def occam(problem: Problem, k: int, errors: Sequence[int]) -> Claim:
    """Return the claim from the errors on the estimate sets, one count for each split of the winner."""
    m, delta = problem.size_of(k).n_select, problem.study.delta
    name = _averaged(m)
    bound = reported_bound(name, errors, m, float(delta * weight(problem, k)))
    method = (
        f"occam over {problem.n_settings} x k candidates, {BOUND_NAMES[name]}, {len(errors)} splits, m = {m}"
    )
    return claim("occam", RANDOM_SPLITS, RANDOM.name, RANDOM.classifier(), bound, delta, method)


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
    errors, m = [sum(member.errors) for member in nested.members], problem.outer.sizes[0].n_select
    name, delta = _averaged(m), problem.study.delta
    bound = reported_bound(name, errors, m, delta)
    selected = f"selection repeated from scratch in each of {len(errors)} outer splits"
    method = f"nested: {selected}, {BOUND_NAMES[name]}, m = {m}"
    yield claim("nested", RANDOM_SPLITS, "nested", RANDOM.classifier(NESTED), bound, delta, method)


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


def _averaged(m: int) -> str:
    """Return the name of the bound that may be averaged over splits of m rows."""
    return "safe" if m <= MOST_CHECKED else "catoni"


def _nothing_more(problem: Problem, ensemble: Ensemble, nested: Ensemble | None) -> Iterator[Claim]:
    """Yield nothing: the claim of occam is made for every study."""
    return iter(())


PROOFS: dict[str, Callable[[Problem, Ensemble, Ensemble | None], Iterator[Claim]]] = {
    Occam.name: _nothing_more,
    Holdout.name: holdout,
    Nested.name: outer,
}
