"""What may be claimed for a result, in numbers and in words.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each single
member had the triple been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.data import Table
from ckcv_ray.ensemble import Ensemble
from ckcv_ray.study import Study, Triple

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


@dataclass(frozen=True)
class Certificate:
    """A result's claim; equal in every value wherever and however the run was made.

    Attributes:
        run_id: study and data this speaks of.
        protocol: "paper": the figures of Algorithm 1.
        provisional: whether cells failed that might have held a better triple.
        C, gamma, k: the winner.
        n_splits, n_select, n_train: splits at the winner, rows of a select or estimate set, rows of TR.
        bound, delta: of each split's bound.
        l_ms, l_ee: the paper's means of bounds on the select and estimate sets.
        errors: wrong rows in each split's estimate set.
        false_positives, false_negatives: rows of class -1 and +1 that were wrong, their number in all
            estimate sets together, and the mean over the splits of bounds of their own.
        proven: a bound that is proven after selection; None under the protocol "paper".
        labels: what -1 and +1 stand for.
        statements, assumptions, not_covered: the claim in words, and its conditions.
        digests: SHA-256 of the data and of the files with triples and models.
    """

    run_id: str
    protocol: str
    provisional: bool
    C: float
    gamma: float
    k: int
    n_splits: int
    n_select: int
    n_train: int
    bound: str
    delta: float
    l_ms: float
    l_ee: float
    errors: tuple[int, ...]
    false_positives: dict[str, float]
    false_negatives: dict[str, float]
    proven: dict[str, Any] | None
    labels: tuple[Any, Any]
    statements: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    digests: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Certificate":
        """The certificate that ``to_json`` described."""
        fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return cls(**fields)


def mean_bound(errors: Sequence[int], sizes: Sequence[int], delta: float) -> float:
    """Mean over the splits of the Clopper-Pearson bound on errors among ``sizes`` rows."""
    bounds = [float(bound) for bound in clopper_pearson(list(errors), list(sizes), delta)]
    return fsum(bounds) / len(bounds)


def certify(
    study: Study,
    table: Table,
    run_id: str,
    winner: Triple,
    l_ms: float,
    ensemble: Ensemble,
    provisional: bool,
    digests: dict[str, str],
) -> Certificate:
    """The certificate of a winner, from the counts its members carry."""
    members = ensemble.members
    m = table.n // winner.k
    errors = tuple(sum(member.errors) for member in members)
    l_ee = mean_bound(errors, [m] * len(members), study.delta)
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
        bound=study.bound,
        delta=study.delta,
        l_ms=l_ms,
        l_ee=l_ee,
        errors=errors,
        false_positives=_one_class(ensemble, 0, study.delta),
        false_negatives=_one_class(ensemble, 1, study.delta),
        proven=None,
        labels=table.labels,
        statements=_statements(l_ee, study.delta, len(members), provisional),
        assumptions=ASSUMPTIONS,
        not_covered=NOT_COVERED,
        digests=digests,
    )


def _one_class(ensemble: Ensemble, side: int, delta: float) -> dict[str, float]:
    errors = [member.errors[side] for member in ensemble.members]
    sizes = [member.n_estimate[side] for member in ensemble.members]
    return {"errors": sum(errors), "rows": sum(sizes), "bound": mean_bound(errors, sizes, delta)}


def _statements(l_ee: float, delta: float, n_splits: int, provisional: bool) -> tuple[str, ...]:
    level = f"{100 * (1 - delta):g} %"
    claim = (
        f"L_EE = {100 * l_ee:.1f} %: the paper's figure, the mean over {n_splits} splits of {level} "
        "Clopper-Pearson bounds. It would be proven for each single member had (C, gamma, k) been fixed "
        "beforehand; it is not proven for the average member, nor after selection on the same data."
    )
    doubled = f"{200 * l_ee:.1f} %" if l_ee < 0.5 else "100 %, which says nothing"
    vote = f"By majority vote instead of a random member, the figure to set beside it is 2 L_EE = {doubled}."
    doubt = "Provisional: cells failed that might have held a better triple; no certificate is given."
    return (claim, vote, doubt) if provisional else (claim, vote)
