"""What may be claimed for a result, in numbers and in words.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each single
member had the triple been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.

Proven after selection are three claims. ``occam``, always made, from the counts that give l_ee: each triple
t = (C, gamma, k) is given the share pi(t) = 1 / ((C, gamma) pairs) * w(k) / (sum of w over the study's fold
sizes) of delta, where w(k) = 1 / ((k - 2)(k - 1)) and each fold size goes by its smallest k. These depend on
the study and the number of rows alone and sum to at most 1 over all triples, so the averaging-safe bound at
level delta * pi(t) holds for whichever triple was selected. ``holdout``: the held-out rows were touched by
nothing, so errors on them are binomial. ``nested``: of another ensemble than F*, each member of which was
selected and fitted on the training rows of an outer split alone: its errors on the rest are binomial given
those rows, and the averaging-safe bound joins them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from math import ceil, floor, fsum, log10
from typing import Any, ClassVar

import numpy as np
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from ckcv_ray.claims.rules import NESTED, Rule
from ckcv_ray.core.bounds import MOST_CHECKED, clopper_pearson, reported_bound
from ckcv_ray.data.task import Label, Table, TestRows, count_repeats
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.study import OUTER_K, Study, Triple
from ckcv_ray.validation import STRICT, read_as

ASSUMPTIONS = (
    "The rows are independent examples of one source, and new patterns come from that same source.",
    "The splits were drawn plainly at random, neither stratified nor grouped.",
    "The study was run once: not repeated with other seeds, grids or data until it looked good.",
)
NOT_COVERED = (
    "repeated measurements of one subject, or rows otherwise related to each other",
    "scaling or feature selection made on the whole table before the run",
    "a source that changes after the data were collected",
)
ONE_SOURCE = "Assuming independent examples from one source"
RANDOM_SPLITS = f"{ONE_SOURCE} and plain random splits"
SINGLE = (
    "It would be proven for each single member had (C, gamma, k) been fixed beforehand; it is not proven for "
    "the average member, nor after selection on the same data."
)
AVERAGE = (
    "It would be proven for the average member had (C, gamma, k) been fixed beforehand; it is not proven "
    "after selection on the same data."
)
PROVISIONAL = (
    "Provisional: cells failed that might have held a better triple. What is proven holds for this one all "
    "the same, since it allows for any selection."
)
RANDOM = Rule("random")
BOUND_NAMES = {
    "clopper_pearson": "Clopper-Pearson",
    "stevens": "Stevens",
    "safe": "averaging-safe Clopper-Pearson",
    "catoni": "Catoni",
}


class Claim(TypedDict):
    """A bound on the risk of one classifier that holds with probability 1 - delta, selection included.

    Attributes:
        protocol: "occam", "holdout" or "nested".
        classifier: of F*, the rule ("keyed", "random", "vote" or "member:7", see ``rules.Rule``); or "nested"
            (a member of the nested ensemble drawn afresh for each pattern).
        bound: upper bound on its risk, in [0, 1].
        delta: probability, over data and splits, with which the bound may fail.
        statement: the claim in words.
    """

    protocol: str
    classifier: str
    bound: float
    delta: float
    statement: str


class Side(TypedDict):
    """Wrong rows of one class and all rows of it, in all estimate sets together, and the mean bound."""

    errors: int
    rows: int
    bound: float


@dataclass(frozen=True)
class Certificate:
    """A result's claim; equal in every value wherever and however the run was made.

    Attributes:
        run_id: study and data this speaks of.
        protocol: the study's.
        provisional: whether cells failed that might have held a better triple. Every claim holds all the
            same: each allows for any selection among the triples.
        n_rows, repeats: rows of the whole table, and how many of them equal another in every column.
        C, gamma, k: the winner.
        n_splits, n_select, n_train: splits at the winner, rows of a select or estimate set, rows of TR.
        n_held: rows held out, 0 where none were.
        bound, delta: of the figure l_ee.
        l_ms, l_ee: the paper's means of bounds on the select and estimate sets.
        errors: wrong rows in each split's estimate set.
        false_positives, false_negatives: rows of class -1 and +1 that were wrong, their number in all
            estimate sets together, and the mean over the splits of Clopper-Pearson bounds of their own.
        proven: the claim to quote.
        claims: every claim that is proven, each on its own with its own delta; the first is ``proven``.
        labels: what -1 and +1 stand for.
        statements, assumptions, not_covered: the claim in words, and its conditions.
        digests: SHA-256 of the data and of the files with triples and models.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "forbid"}

    run_id: str
    protocol: str
    provisional: bool
    C: float
    gamma: float
    k: int
    n_splits: int
    n_select: int
    n_train: int
    n_held: int
    n_rows: int
    repeats: int
    bound: str
    delta: float
    l_ms: float
    l_ee: float
    errors: tuple[int, ...]
    false_positives: Side
    false_negatives: Side
    proven: Claim
    claims: tuple[Claim, ...]
    labels: tuple[Label, Label]
    statements: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    digests: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Certificate":
        """The certificate that ``to_json`` described.

        Raises:
            ValueError: a field is missing, unknown, of another type, or outside its range.
        """
        found = read_as(cls, values)
        if found.bound not in BOUND_NAMES:
            raise ValueError(f"bound {found.bound!r} is not known")
        sides = found.false_positives, found.false_negatives
        bounds = [found.l_ms, found.l_ee, found.delta, *(part["bound"] for part in (*sides, *found.claims))]
        if not all(0 <= bound <= 1 for bound in bounds):
            raise ValueError("a bound is outside 0..1")
        counts = [(side["errors"], side["rows"]) for side in sides]
        counts += [(errors, found.n_select) for errors in found.errors]
        if not all(0 <= errors <= rows for errors, rows in counts):
            raise ValueError("there are more errors than rows, or fewer than none")
        if len(found.errors) != found.n_splits:
            raise ValueError(f"errors: expected {found.n_splits}, one for each split")
        if not 0 <= found.repeats <= found.n_rows:
            raise ValueError(f"repeats: {found.repeats} of {found.n_rows} rows")
        if (found.claims[-1:] and found.claims[-1]["classifier"]) != RANDOM.name:
            raise ValueError("claims: the last one is not of a random member")
        if found.proven != next(iter(found.claims), None):
            raise ValueError("proven is not the first of the claims")
        return found


def certify(
    study: Study,
    table: Table,
    run_id: str,
    winner: Triple,
    l_ms: float,
    ensemble: Ensemble,
    nested: Ensemble | None,
    provisional: bool,
    digests: dict[str, str],
) -> Certificate:
    """The certificate of a winner, from the counts its members carry, the rows held out, and the members of
    the nested ensemble.
    """
    members = ensemble.members
    m = table.n // winner.k
    errors = tuple(sum(member.errors) for member in members)
    l_ee = study.mean_bound(errors, m)
    claims = _claims(study, table, winner, ensemble, nested)
    whole = table.whole or table
    repeats = count_repeats(whole)
    return Certificate(
        run_id=run_id,
        protocol=study.protocol,
        provisional=provisional,
        C=winner.C,
        gamma=winner.gamma,
        k=winner.k,
        n_splits=len(members),
        n_select=m,
        n_train=table.n - 2 * m,
        n_held=0 if table.held is None else len(table.held.y),
        n_rows=whole.n,
        repeats=repeats,
        bound=study.bound,
        delta=study.delta,
        l_ms=l_ms,
        l_ee=l_ee,
        errors=errors,
        false_positives=_one_class(ensemble, 0, study.delta),
        false_negatives=_one_class(ensemble, 1, study.delta),
        proven=claims[0],
        claims=tuple(claims),
        labels=table.labels,
        statements=(
            *_statements(study, l_ee, len(members), claims),
            *([PROVISIONAL] if provisional else []),
            *repeats_told(repeats, whole.n),
        ),
        assumptions=ASSUMPTIONS,
        not_covered=NOT_COVERED,
        digests=digests,
    )


def repeats_told(repeats: int, rows: int) -> list[str]:
    """A sentence on rows that equal another row; none where there are none."""
    told = (
        f"{repeats:,} of {rows:,} rows equal another row in every column: if they come from one source (one "
        "patient, one document), nothing here is proven."
    )
    return [told] if repeats else []


def keyed(study: Study) -> Rule:
    """The rule that held-out rows judge for the claim "random": its key is fixed with the study."""
    return Rule("keyed", study.seed)


def at_most(bound: float, digits: int = 1) -> str:
    """A bound in percent, rounded up: rounded down it would say more than was proven."""
    scale = 10**digits
    return f"{ceil(100 * scale * bound - 1e-9) / scale:.{digits}f} %"


def weight(study: Study, n: int, k: int) -> Fraction:
    """pi(t), the share of delta that a triple has whose fold size on n rows goes by k, its smallest k.

    These sum to at most 1 over all triples: in the sum over fold sizes each term is rounded up to a multiple
    of 2**-128, since the exact sum of many fractions takes long.
    """
    one = 1 << 128
    total = sum(-(-one // ((size.k - 2) * (size.k - 1))) for size in study.sizes(n))
    return Fraction(one, total * len(study.C) * len(study.gamma) * (k - 2) * (k - 1))


def outer(study: Study, nested: Ensemble, n: int) -> Claim:
    """The claim for the nested ensemble, from its members' errors on the outer splits of n rows."""
    errors, m = [sum(member.errors) for member in nested.members], n // OUTER_K
    name = _averaged(m)
    bound = reported_bound(name, errors, m, study.delta)
    method = f"nested: selected anew in each of {len(errors)} outer splits, {BOUND_NAMES[name]}, m = {m}"
    return _claim("nested", RANDOM_SPLITS, "nested", RANDOM.classifier(NESTED), bound, study.delta, method)


def occam(study: Study, winner: Triple, errors: Sequence[int], n: int) -> Claim:
    """The claim from the run's own counts of errors on the estimate sets of n rows, one for each split."""
    m = n // winner.k
    name = _averaged(m)
    bound = reported_bound(name, errors, m, float(study.delta * weight(study, n, winner.k)))
    pairs = len(study.C) * len(study.gamma)
    method = f"occam over {pairs} x k triples, {BOUND_NAMES[name]}, {len(errors)} splits, m = {m}"
    return _claim("occam", RANDOM_SPLITS, RANDOM.name, RANDOM.classifier(), bound, study.delta, method)


def holdout(study: Study, ensemble: Ensemble, held: TestRows) -> Iterator[Claim]:
    """A claim for each classifier asked for, from rows that nothing touched; delta is shared equally."""
    delta, rows = study.delta / len(study.claims), len(held.y)
    for claim in study.claims:
        rule = keyed(study) if claim == "random" else Rule(claim)
        wrong = int(np.sum(rule.predict(ensemble, held.X).sign != held.y))
        bound = clopper_pearson(wrong, rows, delta)
        method = f"holdout: {wrong} of {rows} rows wrong that nothing had touched, Clopper-Pearson"
        yield _claim("holdout", ONE_SOURCE, rule.name, rule.classifier(), bound, delta, method)


def _claims(
    study: Study, table: Table, winner: Triple, ensemble: Ensemble, nested: Ensemble | None
) -> list[Claim]:
    """What is proven: what was asked for first, and occam always."""
    held = list(holdout(study, ensemble, table.held)) if table.held is not None else []
    inside = [outer(study, nested, table.n)] if nested is not None else []
    errors = [sum(member.errors) for member in ensemble.members]
    return [*held, *inside, occam(study, winner, errors, table.n)]


def _averaged(m: int) -> str:
    """The bound that may be averaged over splits of m rows."""
    return "safe" if m <= MOST_CHECKED else "catoni"


def _one_class(ensemble: Ensemble, side: int, delta: float) -> Side:
    errors = [member.errors[side] for member in ensemble.members]
    sizes = [member.n_estimate[side] for member in ensemble.members]
    bounds = [float(bound) for bound in clopper_pearson(errors, sizes, delta)]
    return Side(errors=sum(errors), rows=sum(sizes), bound=fsum(bounds) / len(bounds))


def _claim(
    protocol: str, given: str, classifier: str, who: str, bound: float, delta: float, method: str
) -> Claim:
    told = (
        f"{given}, with probability at least {level_of(delta)} over data and splits, a new pattern "
        f"classified by {who} is misclassified with probability at most {at_most(bound)} ({method})."
    )
    return Claim(protocol=protocol, classifier=classifier, bound=bound, delta=delta, statement=told)


def _statements(study: Study, l_ee: float, n_splits: int, claims: list[Claim]) -> tuple[str, ...]:
    figure = _figure(study, l_ee, n_splits)
    told = [claim["statement"] for claim in claims]
    if any(claim["classifier"] == "vote" for claim in claims):
        return (figure, *told)
    random = next(claim for claim in claims if claim["classifier"] == RANDOM.name)
    return (figure, *told, _vote(f"what is proven is twice the {random['protocol']} bound", random["bound"]))


def _figure(study: Study, l_ee: float, n_splits: int) -> str:
    """What L_EE is, under each bound it may be the mean of."""
    level, name = level_of(study.delta), BOUND_NAMES[study.bound]
    what, proven = {
        "clopper_pearson": (
            f"the paper's figure, the mean over {n_splits} splits of {level} {name} bounds",
            SINGLE,
        ),
        "stevens": (
            f"the mean over {n_splits} splits of {level} {name} bounds, which are randomised",
            SINGLE,
        ),
    }.get(study.bound, (f"the {level} {name} bound on the mean over {n_splits} splits", AVERAGE))
    return f"L_EE = {100 * l_ee:.1f} %: {what}. {proven}"


def _vote(told: str, bound: float) -> str:
    doubled = at_most(2 * bound) if bound < 0.5 else "100 %, which says nothing"
    return f"By majority vote instead of a random member, {told} = {doubled}."


def level_of(delta: float) -> str:
    """The confidence 1 - delta in percent, rounded down: rounded up it would say more than was proven."""
    digits = max(2, -floor(log10(delta)) - 1)
    level = (100 * (1 - Decimal(repr(delta)))).quantize(Decimal(10) ** -digits, ROUND_FLOOR)
    return f"{level.normalize():f} %"
