"""What is proven after selection, from counts of errors: occam, holdout, nested.

``occam``, always made, from the counts that give l_ee: each candidate t = (path, step, k) is given the share
pi(t) = 1 / (settings) * w(k) / (sum of w over the study's fold sizes) of delta, where w(k) = 1 / ((k - 2)(k
- 1)) and each fold size goes by its smallest k. These depend on the study and the number of rows alone and
sum to at most 1 over all candidates, so the averaging-safe bound at level delta * pi(t) holds for whichever
candidate was selected. ``holdout``: the held-out rows were touched by nothing, so errors on them are
binomial. ``nested``: of another ensemble than F*, each member of which was selected and fitted on the
training rows of an outer split alone: its errors on the rest are binomial given those rows, and the
averaging-safe bound joins them.
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
    """Return what is proven: what the certification produces first, and occam always.

    Args:
        problem: what was solved.
        k: the winner's number of folds.
        ensemble: F*.
        nested: the ensemble of a nested certification.
    """
    errors = [sum(member.errors) for member in ensemble.members]
    certified = PROOFS[problem.study.certification.name](problem, ensemble, nested)
    return [*certified, occam(problem, k, errors)]


def occam(problem: Problem, k: int, errors: Sequence[int]) -> Claim:
    """Claim from the run's own counts of errors on the estimate sets, one for each split of the winner."""
    m, delta = problem.size_of(k).n_select, problem.study.delta
    name = _averaged(m)
    bound = reported_bound(name, errors, m, float(delta * weight(problem, k)))
    method = (
        f"occam over {problem.n_settings} x k candidates, {BOUND_NAMES[name]}, {len(errors)} splits, m = {m}"
    )
    return claim("occam", RANDOM_SPLITS, RANDOM.name, RANDOM.classifier(), bound, delta, method)


def holdout(problem: Problem, ensemble: Ensemble, nested: Ensemble | None = None) -> Iterator[Claim]:
    """Claim for each classifier asked for, from rows that nothing touched; delta is shared equally."""
    study, held = problem.study, problem.held_rows()
    assert held is not None
    assert isinstance(study.certification, Holdout)
    asked, rows = study.certification.claim, len(held.y)
    delta = study.delta / len(asked)
    for name in asked:
        rule = keyed(study) if name == "random" else Rule(name)
        wrong = int(np.sum(rule.predict(ensemble, held.X).label != held.y))
        bound = clopper_pearson(wrong, rows, delta)
        method = f"holdout: {wrong} of {rows} rows wrong that nothing had touched, Clopper-Pearson"
        yield claim("holdout", ONE_SOURCE, rule.name, rule.classifier(), bound, delta, method)


def outer(problem: Problem, ensemble: Ensemble, nested: Ensemble | None) -> Iterator[Claim]:
    """Claim for the nested ensemble, from its members' errors on the outer splits."""
    assert nested is not None
    errors, m = [sum(member.errors) for member in nested.members], problem.outer.sizes[0].n_select
    name, delta = _averaged(m), problem.study.delta
    bound = reported_bound(name, errors, m, delta)
    method = f"nested: selected anew in each of {len(errors)} outer splits, {BOUND_NAMES[name]}, m = {m}"
    yield claim("nested", RANDOM_SPLITS, "nested", RANDOM.classifier(NESTED), bound, delta, method)


def keyed(study: Study) -> Rule:
    """Return the rule that held-out rows judge for the claim "random": its key is fixed with the study."""
    return Rule("keyed", study.seed)


def weight(problem: Problem, k: int) -> Fraction:
    """Return pi(t), the share of delta that a candidate has whose fold size goes by k, its smallest k.

    These sum to at most 1 over all candidates: in the sum over fold sizes each term is rounded up to a
    multiple of 2**-128, since the exact sum of many fractions takes long.
    """
    one = 1 << 128
    total = sum(-(-one // ((size.k - 2) * (size.k - 1))) for size in problem.sizes)
    return Fraction(one, total * problem.n_settings * (k - 2) * (k - 1))


def _averaged(m: int) -> str:
    """The bound that may be averaged over splits of m rows."""
    return "safe" if m <= MOST_CHECKED else "catoni"


def _nothing_more(problem: Problem, ensemble: Ensemble, nested: Ensemble | None) -> Iterator[Claim]:
    """Occam's claim is always made."""
    return iter(())


PROOFS: dict[str, Callable[[Problem, Ensemble, Ensemble | None], Iterator[Claim]]] = {
    Occam.name: _nothing_more,
    Holdout.name: holdout,
    Nested.name: outer,
}
