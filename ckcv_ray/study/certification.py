"""Certifications: sources of claims, as frozen values that declare what they are proven for.

The proofs are in ``claims.proofs``.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.core.resampling import MOST_SPLITS, hold_out
from ckcv_ray.data.schema import Index
from ckcv_ray.errors import InputError
from ckcv_ray.validation import integer, number, quoted, sequence

MOST_DIGITS = 18
OUTER_K = 3
CLAIMS = ("random", "vote")


class Certification(Protocol):
    """A source of claims; its proof is in ``claims.proofs``.

    Attributes:
        name: short name.
        resamplings, criteria: names of the resamplings and criteria it is proven for.
    """

    name: ClassVar[str]
    resamplings: ClassVar[frozenset[str]]
    criteria: ClassVar[frozenset[str]]

    def held_out(self, n: int, seed: int) -> Index | None:
        """Return the rows that nothing uses before the end, ascending; None if there are none."""


@dataclass(frozen=True)
class Occam:
    """Certification from the run's own counts: each candidate gets a share of delta. It costs nothing."""

    name: ClassVar[str] = "occam"
    resamplings: ClassVar[frozenset[str]] = frozenset({"complete", "rotation"})
    criteria: ClassVar[frozenset[str]] = frozenset({"error"})

    def held_out(self, n: int, seed: int) -> Index | None:
        """Return None: no rows are held out."""


def _share(name: str, value: Any) -> float:
    share = number(name, value)
    if not 0.0 < share < 1.0:
        raise InputError(f"{name}={share!r} is outside (0, 1): 0.33 holds out a third of the rows")
    return share


def _claims(name: str, value: Any) -> tuple[str, ...]:
    listed = sequence(name, value.split(",") if isinstance(value, str) else value, least=0, kind="names")
    claims = tuple(dict.fromkeys(str(c) if isinstance(c, str) else quoted(c) for c in listed)) or CLAIMS[:1]
    for claim in claims:
        if claim not in CLAIMS and member_of(claim) < 0:
            raise InputError(
                f"{name}={claim!r} is not known: choose from {', '.join(CLAIMS)}, or member:0 for the "
                "member of split 0"
            )
    return claims


@dataclass(frozen=True)
class Holdout:
    """Certification on a share of the rows held out from selecting and fitting.

    Attributes:
        holdout_share: that share, in (0, 1).
        claim: what these rows certify, with delta shared equally: "random" (the member of F* that ``predict``
            draws for a row, by a hash of its values keyed with the seed), "vote" (the majority), "member:7"
            (the member of split 7).

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    name: ClassVar[str] = "holdout"
    resamplings: ClassVar[frozenset[str]] = Occam.resamplings
    criteria: ClassVar[frozenset[str]] = Occam.criteria

    holdout_share: float = option(
        0.33, Option(_share, "Share of the rows held out by holdout.", float, "0.33", "Certificate")
    )
    claim: tuple[str, ...] = option(
        CLAIMS[:1],
        Option(
            _claims,
            "What holdout certifies, sharing delta: random (the member that ckcv predict draws for a row, by "
            "a hash of its values), vote (the majority vote of F*), member:7; several as a,b.",
            shown="random",
            panel="Certificate",
        ),
    )

    def __post_init__(self) -> None:
        check_options(self)

    def held_out(self, n: int, seed: int) -> Index | None:
        """Draw the rows to hold out."""
        return hold_out(n, self.holdout_share, seed)


@dataclass(frozen=True)
class Nested:
    """Certification of a second ensemble, in addition to F*, with members selected inside outer splits.

    Attributes:
        outer_splits: number of outer splits, each of which estimates on a third of the rows.

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    name: ClassVar[str] = "nested"
    resamplings: ClassVar[frozenset[str]] = frozenset({"complete"})
    criteria: ClassVar[frozenset[str]] = Occam.criteria

    outer_splits: int = option(
        5,
        Option(
            lambda name, value: integer(name, value, least=1, most=MOST_SPLITS),
            "Outer splits of nested; each costs a run on two thirds of the rows.",
            int,
            "5",
            "Certificate",
        ),
    )

    def __post_init__(self) -> None:
        check_options(self)

    def held_out(self, n: int, seed: int) -> Index | None:
        """Return None: no rows are held out."""


def inner_rows(n: int) -> int:
    """Return the size of an inner run of a nested certification on n rows: all but an outer estimate set."""
    return n - n // OUTER_K


def member_of(claim: str) -> int:
    """Return the split whose member ``claim`` is about; -1 if it is about none."""
    kind, _, digits = claim.partition(":")
    known = kind == "member" and digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS
    return int(digits) if known else -1
