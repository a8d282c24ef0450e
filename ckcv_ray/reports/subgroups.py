"""What is measured and proven of subgroups, as lines of a table."""

from typing import NamedTuple

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.percent import at_least, at_most, format_number, nearest, round_bound
from ckcv_ray.claims.subgroups import LEAST_OF_SUBGROUP, SubgroupClaim
from ckcv_ray.study import ERROR, parse_clipped


class SubgroupLine(NamedTuple):
    """A line of the table of subgroups.

    Attributes:
        subgroup: its name.
        quantity: "error", "mean error" of numbers, or the class that a recall is about.
        rows: held-out rows of the subgroup, of this class for a recall.
        measured, proven: in words; "–" where there is nothing.
    """

    subgroup: str
    quantity: str
    rows: int
    measured: str
    proven: str


def list_subgroups(certificate: Certificate) -> list[SubgroupLine]:
    """Return a line for the error and each recall of every subgroup; of small ones, one that says so."""
    lines = list[SubgroupLine]()
    for claim in certificate.claims.subgroups or ():
        about_error, clip = claim["label"] is None, parse_clipped(claim["quantity"])
        name = "mean error" if clip is not None else ERROR if about_error else f"recall of {claim['label']}"
        line = SubgroupLine(
            claim["subgroup"], name, claim["rows"], "–", f"nothing: takes {LEAST_OF_SUBGROUP} rows"
        )
        if claim["bound"] is not None:
            proven = f"at most {_limit(claim)}" if about_error else f"at least {at_least(1 - claim['bound'])}"
            proven = "nothing" if claim["bound"] >= 1 else proven
            lines.append(line._replace(measured=_measure(claim), proven=proven))
        elif about_error:
            lines.append(line._replace(measured=_measure(claim)))
    return lines


def describe_worst(certificate: Certificate) -> str:
    """Say of which subgroup the largest error is proven, for the first screen; "" without subgroups."""
    claimed = [claim for claim in certificate.claims.subgroups or () if claim["label"] is None]
    known = [claim for claim in claimed if claim["bound"] is not None]
    if not claimed:
        return ""
    small = f"; {len(claimed) - len(known)} too small to say" if len(known) < len(claimed) else ""
    if not known:
        return f"each has fewer than {LEAST_OF_SUBGROUP} held-out rows: nothing is proven of them"
    worst = max(known, key=_read_bound)
    of = f"in the worst of {len(known)} ({worst['subgroup']}:"
    if parse_clipped(worst["quantity"]) is not None:
        counted = f"{_measure(worst)} measured on {worst['rows']:,} rows"
        return f"off by at most {_limit(worst)} on average {of} {counted}){small}"
    return f"at most {_limit(worst)} wrong {of} {worst['errors']:,} of {worst['rows']:,} measured){small}"


def _limit(claim: SubgroupClaim) -> str:
    clip = parse_clipped(claim["quantity"])
    return at_most(_read_bound(claim)) if clip is None else round_bound(clip * _read_bound(claim))


def _measure(claim: SubgroupClaim) -> str:
    if (clip := parse_clipped(claim["quantity"])) is not None:
        return format_number(clip * claim.get("measured", 0.0))
    right = claim["rows"] - claim["errors"]
    shown = claim["errors"] if claim["quantity"] == ERROR else right
    return nearest(shown / claim["rows"]) if claim["rows"] else "–"


def _read_bound(claim: SubgroupClaim) -> float:
    assert claim["bound"] is not None
    return claim["bound"]
