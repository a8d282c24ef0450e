"""The certificate of a result: its claims, the counts and bounds behind them, and their conditions."""

from dataclasses import asdict, dataclass
from math import fsum
from typing import Any, ClassVar

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

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
    """Wrong rows and all rows of one class, summed over all estimate sets, and the mean bound."""

    errors: int
    rows: int
    bound: float


@dataclass(frozen=True)
class Certificate:
    """The claims of a result; identical in every value wherever and however the run was made.

    Attributes:
        run_id: identifies the study and the data.
        certification: name of the study's certification.
        provisional: whether evaluations failed, so that a better candidate might have been missed. Every
            claim still holds: each allows for any selection among the candidates.
        n_rows, repeats: rows of the full table, and how many of them equal another in every column.
        setting, k: the winner.
        n_splits, n_select, n_train: splits of the winner, rows of a select or estimate set, rows of TR.
        n_held: rows held out, 0 if none.
        bound, delta: the bound that l_ee is computed with, and its delta.
        l_ms, l_ee: the paper's means of bounds on the select and estimate sets.
        errors: wrong rows in each split's estimate set.
        by_class: for each class its wrong rows and all its rows, summed over all estimate sets, and the
            mean over the splits of its Clopper-Pearson bounds.
        proven: the claim to quote.
        claims: every proven claim, each valid by itself with its own delta; the first is ``proven``.
        labels: the original label of each class.
        statements, assumptions, not_covered: the claims in words, and their conditions.
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
        """Create a certificate from the values that ``to_json`` returned.

        Raises:
            ValueError: a field is missing, unknown, of another type, outside its range, or holds control
                characters.
        """
        read = read_as(cls, values)
        _check_printable(read)
        if read.bound not in BOUND_NAMES:
            raise ValueError(f"bound {read.bound!r} is not known")
        sides = read.by_class
        bounds = [read.l_ms, read.l_ee, read.delta, *(part["bound"] for part in (*sides, *read.claims))]
        if not all(0 <= bound <= 1 for bound in bounds):
            raise ValueError("a bound is outside 0..1")
        counts = [(side["errors"], side["rows"]) for side in sides]
        counts += [(errors, read.n_select) for errors in read.errors]
        if not all(0 <= errors <= rows for errors, rows in counts):
            raise ValueError("there are more errors than rows, or a negative number of them")
        if len(read.by_class) != len(read.labels):
            raise ValueError(f"by_class: expected {len(read.labels)}, one for each class")
        if len(read.errors) != read.n_splits:
            raise ValueError(f"errors: expected {read.n_splits}, one for each split")
        if not 0 <= read.repeats <= read.n_rows:
            raise ValueError(f"repeats: {read.repeats} of {read.n_rows} rows")
        last = read.claims[-1] if read.claims else None
        if last is None or last["classifier"] != RANDOM.name or last["splits"]:
            raise ValueError("claims: the last one is not for a random member of F*")
        if read.proven != next(iter(read.claims), None):
            raise ValueError("proven is not the first claim")
        return read


def certify(
    problem: Problem,
    winner: Candidate,
    l_ms: float,
    ensemble: Ensemble,
    nested: Ensemble | None,
    provisional: bool,
    digests: dict[str, str],
) -> Certificate:
    """Return a winner's certificate, from its members' counts, the held-out rows and the nested ensemble."""
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
    """Raise ValueError if a text could control a terminal; labels are the user's and are not checked."""
    values: list[Any] = [value for name, value in certificate.to_json().items() if name != "labels"]
    while values:
        match values.pop():
            case str() as text if not text.isprintable():
                raise ValueError(f"it holds control characters: {text!r}")
            case dict() as inner:
                values.extend(inner.values())
            case list() | tuple() as inner:
                values.extend(inner)
