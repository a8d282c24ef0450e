"""Conditions on what is proven, fixed in the study before the run: whether its claims meet them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ckcv_ray.claims.claim import Claim, describe_limit, name_claimed
from ckcv_ray.study import CLIPPED_ERROR, Condition, parse_clipped

DECIMAL_TOLERANCE = 1e-12  # of a value that was written in decimals


class Acceptance(NamedTuple):
    """Whether a condition is met.

    Attributes:
        condition: of the study.
        met: whether what is proven meets it.
        proven: what is proven of its quantity, in words.
    """

    condition: Condition
    met: bool
    proven: str

    def to_json(self) -> dict[str, str | bool]:
        """Return the fields as JSON values."""
        return {"condition": str(self.condition), "met": self.met, "proven": self.proven}


def decide(conditions: Iterable[Condition], claims: Sequence[Claim]) -> tuple[Acceptance, ...]:
    """Return for each condition whether it is met by the first claim about its quantity, by every class.

    Args:
        conditions: of the study's certification.
        claims: of the certificate, in their order.
    """
    return tuple(_decide_one(condition, claims) for condition in conditions)


def describe_decisions(decisions: Sequence[Acceptance]) -> str:
    """Return one line that says whether a result is accepted, and why; "" without conditions."""
    if not decisions:
        return ""
    failed = [decision for decision in decisions if not decision.met]
    said = "; ".join(f"{decided.condition}: {decided.proven}" for decided in failed or decisions)
    return f"{'NOT ACCEPTED' if failed else 'ACCEPTED'}: {said}"


def _decide_one(condition: Condition, claims: Sequence[Claim]) -> Acceptance:
    about = [
        claim
        for claim in claims
        if claim["quantity"] == condition.name
        or (condition.name == CLIPPED_ERROR and parse_clipped(claim["quantity"]) is not None)
    ]
    first = [claim for claim in about if claim["classifier"] == about[0]["classifier"]]  # one of each class
    allowed = condition.value if not condition.at_least else 1 - condition.value
    met = bool(first) and all(_scale(claim) <= allowed + DECIMAL_TOLERANCE for claim in first)
    proven = ", ".join(f"{name_claimed(claim)} {describe_limit(claim)}" for claim in first)
    return Acceptance(condition, met, f"proven {proven}" if proven else "nothing is proven of it")


def _scale(claim: Claim) -> float:
    """Return the bound of a claim, for a mean error of numbers in units of the target."""
    clip = parse_clipped(claim["quantity"])
    return claim["bound"] if clip is None else clip * claim["bound"]
