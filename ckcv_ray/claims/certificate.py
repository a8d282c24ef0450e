"""The certificate of a result: its claims, the figures they rest on, and their conditions."""

from dataclasses import asdict, dataclass
from math import fsum
from typing import Any, ClassVar

from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from ckcv_ray.claims.proofs import prove
from ckcv_ray.claims.wording import (
    ASSUMPTIONS,
    BOUND_NAMES,
    NOT_COVERED,
    PROVISIONAL,
    RANDOM,
    Claim,
    repeats_statement,
    statements,
)
from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.data.schema import Label
from ckcv_ray.data.task import count_repeats
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.study import Candidate, Problem
from ckcv_ray.validation import STRICT, read_as


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
        certification: the study's.
        provisional: whether evaluations failed that might have held a better candidate. Every claim holds
            all the same: each allows for any selection among the candidates.
        n_rows, repeats: rows of the whole table, and how many of them equal another in every column.
        setting, k: the winner.
        n_splits, n_select, n_train: splits at the winner, rows of a select or estimate set, rows of TR.
        n_held: rows held out, 0 where none were.
        bound, delta: of the figure l_ee.
        l_ms, l_ee: the paper's means of bounds on the select and estimate sets.
        errors: wrong rows in each split's estimate set.
        by_class: for each class the rows that were wrong, their number in all estimate sets together, and
            the mean over the splits of Clopper-Pearson bounds of their own.
        proven: the claim to quote.
        claims: every claim that is proven, each on its own with its own delta; the first is ``proven``.
        labels: the original label of each class.
        statements, assumptions, not_covered: the claim in words, and its conditions.
        digests: SHA-256 of the data and of the files with candidates and models.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "forbid"}

    run_id: str
    certification: str
    provisional: bool
    setting: dict[str, Any]
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
    by_class: tuple[Side, ...]
    proven: Claim
    claims: tuple[Claim, ...]
    labels: tuple[Label, ...]
    statements: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    digests: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Certificate":
        """Read what ``to_json`` described.

        Raises:
            ValueError: a field is missing, unknown, of another type, or outside its range, or could steer a
                terminal.
        """
        found = read_as(cls, values)
        _check_printable(found)
        if found.bound not in BOUND_NAMES:
            raise ValueError(f"bound {found.bound!r} is not known")
        sides = found.by_class
        bounds = [found.l_ms, found.l_ee, found.delta, *(part["bound"] for part in (*sides, *found.claims))]
        if not all(0 <= bound <= 1 for bound in bounds):
            raise ValueError("a bound is outside 0..1")
        counts = [(side["errors"], side["rows"]) for side in sides]
        counts += [(errors, found.n_select) for errors in found.errors]
        if not all(0 <= errors <= rows for errors, rows in counts):
            raise ValueError("there are more errors than rows, or fewer than none")
        if len(found.by_class) != len(found.labels):
            raise ValueError(f"by_class: expected {len(found.labels)}, one for each class")
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
    problem: Problem,
    winner: Candidate,
    l_ms: float,
    ensemble: Ensemble,
    nested: Ensemble | None,
    provisional: bool,
    digests: dict[str, str],
) -> Certificate:
    """Make the certificate of a winner, from the counts its members carry, the rows held out, and the
    members of the nested ensemble.
    """
    members, size = ensemble.members, problem.size_of(winner.k)
    errors = tuple(sum(member.errors) for member in members)
    l_ee = problem.study.criterion.reported(errors, size.n_select, problem.study.seed)
    claims = prove(problem, winner.k, ensemble, nested)
    repeats, rows = count_repeats(problem.all_rows), problem.all_rows.n
    bound, delta = problem.study.criterion.bound, problem.study.delta
    return Certificate(
        run_id=problem.run_id,
        certification=problem.study.certification.name,
        provisional=provisional,
        setting=dict(winner.setting),
        k=winner.k,
        n_splits=len(members),
        n_select=size.n_select,
        n_train=size.n_train,
        n_held=rows - problem.task.n,
        n_rows=rows,
        repeats=repeats,
        bound=bound,
        delta=delta,
        l_ms=l_ms,
        l_ee=l_ee,
        errors=errors,
        by_class=tuple(_one_class(ensemble, c, delta) for c in range(problem.task.n_classes)),
        proven=claims[0],
        claims=tuple(claims),
        labels=problem.task.classes,
        statements=(
            *statements(bound, delta, l_ee, len(members), claims),
            *([PROVISIONAL] if provisional else []),
            *repeats_statement(repeats, rows),
        ),
        assumptions=ASSUMPTIONS,
        not_covered=NOT_COVERED,
        digests=digests,
    )


def _one_class(ensemble: Ensemble, number: int, delta: float) -> Side:
    errors = [member.errors[number] for member in ensemble.members]
    sizes = [member.n_estimate[number] for member in ensemble.members]
    bounds = [float(bound) for bound in clopper_pearson(errors, sizes, delta)]
    return Side(errors=sum(errors), rows=sum(sizes), bound=fsum(bounds) / len(bounds))


def _check_printable(certificate: Certificate) -> None:
    """Raise ValueError where words of a certificate could steer a terminal; labels are the user's own."""
    words: list[Any] = [value for name, value in certificate.to_json().items() if name != "labels"]
    while words:
        match words.pop():
            case str() as text if not text.isprintable():
                raise ValueError(f"it holds control characters: {text!r}")
            case dict() as inner:
                words.extend(inner.values())
            case list() | tuple() as inner:
                words.extend(inner)
