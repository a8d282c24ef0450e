"""The wording of claims: numbers rounded to the safe side, what is proven, and what is not.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each individual
member if the candidate had been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from decimal import ROUND_FLOOR, Decimal
from math import ceil, floor, log10

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.rules import Rule

ASSUMPTIONS = (
    "The rows are independent examples from one source, and new patterns come from that same source.",
    "The splits are plain random splits, neither stratified nor grouped.",
    "The study was run once: it was not repeated with other seeds, grids or data until it looked good.",
)
NOT_COVERED = (
    "repeated measurements of the same subject, or rows otherwise related to each other",
    "scaling or feature selection performed on the full table before the run",
    "a source that changes after the data were collected",
)
ONE_SOURCE = "Assuming independent examples from one source"
RANDOM_SPLITS = f"{ONE_SOURCE} and plain random splits"
SINGLE = (
    "It would be proven for each individual member if the candidate had been fixed beforehand; it is not "
    "proven for the average member, nor after selection on the same data."
)
AVERAGE = (
    "It would be proven for the average member if the candidate had been fixed beforehand; it is not proven "
    "after selection on the same data."
)
PROVISIONAL = (
    "Provisional: evaluations failed, so a better candidate might have been missed. What is proven still "
    "holds for this one, since it allows for any selection."
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
        certification: "occam", "holdout" or "nested".
        classifier: the rule applied to F* ("keyed", "random", "vote" or "member:7", see ``rules.Rule``), or
            "nested" (a member of the nested ensemble drawn independently for each pattern).
        bound: upper bound on its risk, in [0, 1].
        splits: the splits whose members it is about, ascending; empty if it is about all of them.
        delta: probability, over data and splits, with which the bound may fail.
        statement: the claim in words.
    """

    certification: str
    classifier: str
    splits: tuple[int, ...]
    bound: float
    delta: float
    statement: str


def repeats_statement(repeats: int, rows: int) -> list[str]:
    """Return a list of one sentence about rows that equal another row; empty if there are none."""
    sentence = (
        f"{repeats:,} of {rows:,} rows equal another row in every column: if they have the same origin (one "
        "patient, one document), nothing here is proven."
    )
    return [sentence] if repeats else []


def at_most(bound: float, digits: int = 1) -> str:
    """Format a bound in percent, rounded up: rounded down it would say more than was proven."""
    scale = 10**digits
    return f"{ceil(100 * scale * bound - 1e-9) / scale:.{digits}f} %"


def level_of(delta: float) -> str:
    """Format 1 - delta in percent, rounded down: rounded up it would say more than was proven."""
    digits = max(2, -floor(log10(delta)) - 1)
    level = (100 * (1 - Decimal(repr(delta)))).quantize(Decimal(10) ** -digits, ROUND_FLOOR)
    return f"{level.normalize():f} %"


def claim(
    certification: str,
    given: str,
    classifier: str,
    who: str,
    bound: float,
    delta: float,
    method: str,
    splits: tuple[int, ...] = (),
) -> Claim:
    """Return a claim with its sentence.

    Args:
        certification: what produced it.
        given: what it assumes.
        classifier, who: the classifier's short name, and a phrase that names it.
        bound, delta: the bound, and the probability with which it may fail.
        method: how the bound was obtained.
        splits: see ``Claim``.
    """
    sentence = (
        f"{given}, with probability at least {level_of(delta)} over data and splits, a new pattern "
        f"classified by {who} is misclassified with probability at most {at_most(bound)} ({method})."
    )
    return Claim(
        certification=certification,
        classifier=classifier,
        splits=splits,
        bound=bound,
        delta=delta,
        statement=sentence,
    )


def statements(bound: str, delta: float, l_ee: float, n_splits: int, claims: list[Claim]) -> tuple[str, ...]:
    """Return what L_EE is, every claim, and what follows for the majority vote."""
    first = figure(bound, delta, l_ee, n_splits)
    proven = [claim["statement"] for claim in claims]
    if any(claim["classifier"] == "vote" for claim in claims):
        return (first, *proven)
    random = claims[-1]
    return (
        first,
        *proven,
        _vote(random["certification"], random["bound"]),
    )


def figure(bound: str, delta: float, l_ee: float, n_splits: int) -> str:
    """Return the sentence that says what L_EE is, for the bound it is computed with."""
    level, name = level_of(delta), BOUND_NAMES[bound]
    definition, proven = {
        "clopper_pearson": (
            f"the paper's figure, the mean over {n_splits} splits of {level} {name} bounds",
            SINGLE,
        ),
        "stevens": (
            f"the mean over {n_splits} splits of {level} {name} bounds, which are randomised",
            SINGLE,
        ),
    }.get(bound, (f"the {level} {name} bound on the mean over {n_splits} splits", AVERAGE))
    return f"L_EE = {100 * l_ee:.1f} %: {definition}. {proven}"


def _vote(certification: str, bound: float) -> str:
    """Return the sentence that says what a claim for a random member proves for the majority vote."""
    doubled = at_most(2 * bound) if bound < 0.5 else "100 %, which says nothing"
    return (
        f"By majority vote instead of a random member, what is proven is twice the {certification} bound "
        f"for all members: {doubled}."
    )
