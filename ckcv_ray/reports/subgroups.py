"""What is measured and proven of subgroups, as lines of a table."""

from typing import NamedTuple

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.percent import at_least, at_most, nearest
from ckcv_ray.claims.subgroups import LEAST_OF_SUBGROUP, SubgroupClaim
from ckcv_ray.study import ERROR


class SubgroupLine(NamedTuple):
    """A line of the table of subgroups.

    Attributes:
        subgroup: its name.
        quantity: "error", or the class that a recall is about.
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
        about_error, right = claim["quantity"] == ERROR, claim["rows"] - claim["errors"]
        if claim["bound"] is None:
            if about_error:
                lines.append(
                    SubgroupLine(
                        claim["subgroup"], ERROR, claim["rows"], "–", f"takes {LEAST_OF_SUBGROUP} rows"
                    )
                )
            continue
        shown = claim["errors"] if about_error else right
        lines.append(
            SubgroupLine(
                claim["subgroup"],
                ERROR if about_error else f"recall of {claim['label']}",
                claim["rows"],
                nearest(shown / claim["rows"]) if claim["rows"] else "–",
                f"at most {at_most(claim['bound'])}"
                if about_error
                else f"at least {at_least(1 - claim['bound'])}",
            )
        )
    return lines


def describe_worst(certificate: Certificate) -> str:
    """Say of which subgroup the largest error is proven, for the first screen; "" without subgroups."""
    claimed = [claim for claim in certificate.claims.subgroups or () if claim["quantity"] == ERROR]
    known = [claim for claim in claimed if claim["bound"] is not None]
    if not claimed:
        return ""
    small = f"; {len(claimed) - len(known)} too small to say" if len(known) < len(claimed) else ""
    if not known:
        return f"each has fewer than {LEAST_OF_SUBGROUP} held-out rows: nothing is proven of them"
    worst = max(known, key=_read_bound)
    return (
        f"at most {at_most(_read_bound(worst))} wrong in the worst of {len(known)} ({worst['subgroup']}: "
        f"{worst['errors']:,} of {worst['rows']:,} measured){small}"
    )


def _read_bound(claim: SubgroupClaim) -> float:
    assert claim["bound"] is not None
    return claim["bound"]
