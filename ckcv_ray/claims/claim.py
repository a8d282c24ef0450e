"""One claim: what it is, what may be said of it, and what it is called.

A claim is made here alone, with its sentence: what it assumes, how sure it is, what is proven, and how.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from sys import float_info
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.percent import (
    ceil_percent,
    floor_percent,
    format_level,
    format_number,
    format_percent,
    round_bound,
)
from ckcv_ray.claims.rules import ONE_MODEL, Rule
from ckcv_ray.core.bounds.betting import MAX_OPTIMISED
from ckcv_ray.study.parts import Holdout
from ckcv_ray.study.quantities import (
    ERROR,
    Argument,
    find_quantity,
    find_reference,
    is_error,
    parse_clipped,
    parse_largest_weight,
    parse_predictive,
    parse_quantity,
    parse_within,
)
from ckcv_ray.tables.target import Label
from ckcv_ray.validation import check_fraction, check_probability

ONE_SOURCE = "Assuming independent examples from one source"
RANDOM_SPLITS = f"{ONE_SOURCE} and plain random splits"
GROUPS_OF_ONE_SOURCE = "Assuming independent groups of rows from one source"
RANDOM_SPLITS_OF_GROUPS = f"{GROUPS_OF_ONE_SOURCE} and plain random splits of whole groups"
RANDOM = Rule("random")
BOUND_NAMES = {"clopper_pearson": "Clopper-Pearson", "stevens": "Stevens"}
MAX_OF_LABEL = 60
UNPROVEN = float_info.max  # a bound on how far off numbers are that says nothing
NOTHING = "Nothing can be claimed for"  # begins the sentence of a claim that lacks rows
MAY_MISS = "may be missed by the cut-off chosen"  # of rows that a recall it guarantees counts
LARGEST_BOUND = 1e15  # on 1 less a net benefit, which may be far below 0
ARGUMENT_FORMATS: dict[Argument, Callable[[Any], str]] = {  # of the arguments of a quantity
    Argument.PREVALENCE: format_percent,
    Argument.WORTH: format_percent,
    Argument.SHARE_OF_ROWS: lambda share: f"{format_number(100 * share)} %",
    Argument.LABEL: str,
    Argument.NUMBER: format_number,
    Argument.WEIGHT: format_number,
}


def name_loss_bound(m: int, unit: str) -> str:
    """Return what bounds the mean of the losses of m units held out, each a "row" or a "group"."""
    if m <= MAX_OPTIMISED:
        return f"optimised bet on the {unit}s"
    return f"betting on the {unit}s in the order drawn"


class Gate(TypedDict):
    """Whether a rule is proven better than every constant: its bound is a figure unless it is.

    Attributes:
        predicted: number of the class that the least favourable constant predicts; 0 with numbers, of which
            there is one constant, the median of the learning rows.
        lost, won: rows that the rule alone has wrong, and those that the constant alone has; of numbers, rows
            on which the rule, and on which the constant is further off.
        bound: upper bound on the share of losses against this constant, at the delta of the claim: the rule
            is proven better than every constant if it is below 1/2.
        least: what it would be for the least favourable constant if the rule had no row wrong.
    """

    predicted: int
    lost: int
    won: int
    bound: float
    least: float


class Claim(TypedDict):
    """A bound on the risk of one classifier that holds with probability 1 - delta, selection included.

    Attributes:
        quantity: what is claimed: "error", or "answered_error" of the rows that are answered, at most
            ``bound``; "answered_share", of rows answered, or "sensitivity", "specificity", "recall",
            "auc", or one that follows where the positive class has a stated share, such as "ppv:0.02", at
            least 1 - ``bound``. "better:svm" is the share of wins against another learner: of the rows on
            which the classifier or one model of that learner is right, and not both, those on which the
            classifier is. It errs less often than that model if this is above 1/2. "weighted_error:4",
            at most ``bound``, is the error where patterns occur in proportion to weights of at most 4. Of
            numbers "clipped:50", the mean absolute error of which at most 50 counts, at most ``bound`` times
            50; or "within:0.9", how far off nine in ten new rows are at most.
        label: label of the class that it is about; None for error, auc and comparisons.
        certification: "paper" or "holdout".
        classifier: the rule applied ("refit", "vote" or "random", see ``rules.Rule``).
        bound: upper bound on its risk, in [0, 1]: on the probability that a new pattern is misclassified; by
            class, a new pattern of this class; for auc, that a new pair of patterns is not in order. For
            "within:0.9" in units of the target, 0 or more, and ``UNPROVEN`` if nothing is proven.
        errors, rows: what was counted for it: wrong rows and all rows, by class those of this class, for auc
            pairs, summed over the estimate sets of all members; at a cut-off that was chosen for
            this class, the rows that it may miss; of a comparison the rows that the classifier alone has
            wrong, and those that one of the two alone has; for "within:0.9" those further off; None for what
            follows from other claims, and for a mean error of numbers.
        delta: probability, over data and splits, with which the bound may fail.
        statement: the claim in words.
        cut_off: the cut-off of the scores from which on a row is classified as positive, if one was chosen;
            absent otherwise.
        least_confidence: the confidence from which on a row is answered, if something is proven of such rows;
            absent otherwise.
        measured: of a mean error of numbers that of the rows counted, as a share of the clip; of a weighted
            error that of the rows counted; absent otherwise.
        gate: of an error that rows held out bound; absent otherwise.
    """

    quantity: str
    label: Label | None
    certification: str
    classifier: str
    bound: float
    errors: int | None
    rows: int | None
    delta: float
    statement: str
    cut_off: NotRequired[float]
    least_confidence: NotRequired[float]
    measured: NotRequired[float]
    gate: NotRequired[Gate]


def is_guarded(claim: Claim) -> bool:
    """Return whether a claim may be quoted only if its rule is proven better than every constant."""
    of_error = is_error(claim["quantity"]) or parse_largest_weight(claim["quantity"]) is not None
    return of_error and claim["certification"] == Holdout.name


def check_claim(name: str, claim: Claim, labels: Sequence[Label]) -> None:
    """Raise ValueError if a claim is about no known quantity or class, or its numbers cannot be."""
    quantity, label, wrong, rows = claim["quantity"], claim["label"], claim["errors"], claim["rows"]
    named = parse_quantity(quantity)  # raises a ValueError
    if named is None:
        raise ValueError(f"{name}: the quantity {quantity!r} is not known")
    declared = named.quantity
    if declared.of_numbers != (not labels):
        raise ValueError(f"{name}: the {quantity} is not of a target with {len(labels)} classes")
    if declared.of_label != (label is not None) or (label is not None and label not in labels):
        raise ValueError(f"{name}: the {quantity} of {label!r} is none of the {len(labels)} classes")
    predictive = parse_predictive(quantity)
    if declared.is_mean:
        check_fraction(f"{name}.measured", claim.get("measured", -1.0))
    elif "measured" in claim:
        raise ValueError(f"{name}.measured: the {quantity} is no mean of losses")
    if parse_within(quantity) is not None:
        if not 0 <= claim["bound"] <= UNPROVEN:
            raise ValueError(f"{name}.bound: {claim['bound']} is negative, or not finite")
    elif predictive is None or predictive.worth is None:
        check_fraction(f"{name}.bound", claim["bound"])
    elif not 0 <= claim["bound"] <= LARGEST_BOUND:
        raise ValueError(f"{name}.bound: {claim['bound']} is outside 0..{LARGEST_BOUND:g}")
    if not isfinite(claim.get("cut_off", 0.0)):
        raise ValueError(f"{name}.cut_off: it is not finite")
    if not 0 <= claim.get("least_confidence", 0.0) < inf:
        raise ValueError(f"{name}.least_confidence: it is not finite, or negative")
    check_probability(f"{name}.delta", claim["delta"])
    if is_guarded(claim) != ("gate" in claim):
        raise ValueError(f"{name}.gate: it is given for an error that rows held out bound, and only there")
    if "gate" in claim:
        gate = claim["gate"]
        if not 0 <= gate["predicted"] < max(1, len(labels)) or min(gate["lost"], gate["won"]) < 0:
            raise ValueError(f"{name}.gate: {gate['predicted']} is no class, or a count is negative")
        check_fraction(f"{name}.gate.bound", gate["bound"])
        check_fraction(f"{name}.gate.least", gate["least"])
    if (wrong is None) != (rows is None) or not 0 <= (wrong or 0) <= (rows or 0):
        raise ValueError(f"{name}: {wrong} errors in {rows} rows")


def format_limit(claim: Claim) -> str:
    """Format the number that a claim gives, on the safe side: at most this error, at least this quantity."""
    if (clip := parse_clipped(claim["quantity"])) is not None:
        return round_bound(clip * claim["bound"])
    if parse_within(claim["quantity"]) is not None:
        return round_bound(claim["bound"]) if claim["bound"] < UNPROVEN else "any amount"
    return ceil_percent(claim["bound"]) if _is_at_most(claim) else floor_percent(1 - claim["bound"])


def name_side(claim: Claim) -> str:
    """Return on which side of its limit what is claimed is: "at most", or "at least"."""
    return "at most" if _is_at_most(claim) else "at least"


def _is_at_most(claim: Claim) -> bool:
    quantity = find_quantity(claim["quantity"])
    return quantity is not None and quantity.at_most


def describe_limit(claim: Claim) -> str:
    """Return what is proven of a quantity, without its name: "at most 5.00 %"."""
    return f"{name_side(claim)} {format_limit(claim)}"


def name_claimed(claim: Claim) -> str:
    """Return a phrase that names what is claimed: "error", "sensitivity (recall of 'sick')", "AUC"."""
    return name_quantity(claim["quantity"], claim["label"])


def name_quantity(name: str, label: Label | None) -> str:
    """Return a phrase that names a quantity, of a class if it is about one."""
    named = parse_quantity(name)
    assert named is not None
    quantity, given = named
    pairs = zip(quantity.arguments, given, strict=True)
    phrase = quantity.phrase.format(*(ARGUMENT_FORMATS[argument](value) for argument, value in pairs))
    if label is None or not quantity.by_class:
        return phrase
    return f"{phrase} of {label!r}" if not quantity.two_classes else f"{phrase} (recall of {label!r})"


def claims_nothing(claim: Claim) -> bool:
    """Return whether a claim says that nothing can be claimed, and why."""
    return claim["statement"].startswith(NOTHING)


def is_proven_better(claim: Claim) -> bool:
    """Return whether a comparison with another learner proves that the classifier errs less often."""
    return claim["bound"] < 0.5


def describe_comparison(claim: Claim) -> str:
    """Say what a comparison with another learner proves, and what was counted, in a few words."""
    label, lost, rows = find_reference(claim["quantity"]), claim["errors"] or 0, claim["rows"] or 0
    if claims_nothing(claim):
        return claim["statement"]
    proven = "proven" if is_proven_better(claim) else "not yet proven"
    counts = f"{rows - lost:,} held-out rows won, {lost:,} lost"
    return f"{proven} better than {label}: {counts}; share of wins {describe_limit(claim)}"


def explain_lack_of_cut_off(claims: Iterable[Claim], required: str) -> str:
    """Return the sentence that says why no cut-off was chosen; "" if one was.

    Args:
        claims: of a certificate.
        required: what the cut-off is chosen for: a recall, or a predictive value without its prevalence.
    """
    made = [*claims]
    if any("cut_off" in claim for claim in made):
        return ""
    about = (claim for claim in made if claim["quantity"].partition(":")[0] == required)
    return next((claim["statement"] for claim in about if claims_nothing(claim)), "")


def describe_counts(claim: Claim) -> str:
    """Say whose errors were counted for a claim, and how many: "this model: 0 of 139 rows wrong"."""
    if (clip := parse_clipped(claim["quantity"])) is not None:
        return f"measured: {format_number(clip * claim.get('measured', 0.0))} on average"
    if claim["errors"] is None or claim["rows"] is None:
        return ""
    if claim["label"] is not None and claims_nothing(claim):
        return ""
    if MAY_MISS in claim["statement"]:
        return f"this model: {claim['errors']:,} of {claim['rows']:,} rows of {claim['label']!r} {MAY_MISS}"
    quantity = find_quantity(claim["quantity"])
    assert quantity is not None
    of = quantity.counted if claim["label"] is None else f"scored rows of {claim['label']!r} wrong"
    if quantity.of_numbers:
        return f"measured: {claim['errors']:,} of {claim['rows']:,} {of}"
    names = dict.fromkeys(ONE_MODEL, "this model") | {"vote": "the vote"}
    who = names.get(claim["classifier"], "all members")
    by_weight = f", {format_percent(claim['measured'])} by weight" if "measured" in claim else ""
    return f"{who}: {claim['errors']:,} of {claim['rows']:,} {of}{by_weight}"


def covers(claim: Claim, rule: Rule) -> bool:
    """Return whether a claim is about the predictions of a rule."""
    cut_off = None if rule.cut_off is None else rule.cut_off.value
    return claim["classifier"] == rule.name and claim.get("cut_off") == cut_off


def share_rule(claim: Claim, first: Claim) -> bool:
    """Return whether two claims are about one rule: figures of two stand together only if that is said."""
    return len({(each["classifier"], each.get("cut_off")) for each in (claim, first)}) == 1


@dataclass(frozen=True)
class Grounds:
    """What a claim is about, and what it rests on.

    Attributes:
        rule: short name of the rule, as ``classifier`` of ``Claim``.
        who: a phrase that names it.
        delta: probability with which the bound may fail.
        method: how the bound was obtained.
        certification: what produced it.
        given: what it assumes.
    """

    rule: str
    who: str
    delta: float
    method: str
    certification: str = Holdout.name
    given: str = ONE_SOURCE

    def state(self, says: str) -> str:
        """Return the sentence of a claim that says this."""
        return describe_claim(self.given, self.delta, says, self.method)


def claim_error(grounds: Grounds, bound: float, seen: tuple[int, int], grouped: bool = False) -> Claim:
    """Return a claim about an error, with its sentence.

    Args:
        grounds: what it is about, and what it rests on.
        bound: the bound.
        seen: wrong rows and all rows that were counted for it.
        grouped: whether it is about the rows of a new group, and not about a new pattern.
    """
    who, (errors, rows) = grounds.who, seen
    says = (
        f"a new pattern classified by {who} is misclassified with probability at most {ceil_percent(bound)}"
    )
    if grouped:
        share = f"on average at most {ceil_percent(bound)} are misclassified"
        says = f"of a new group's rows, each classified by {who}, {share}"
    return make_claim(
        quantity=ERROR,
        certification=grounds.certification,
        classifier=grounds.rule,
        bound=bound,
        errors=errors,
        rows=rows,
        delta=grounds.delta,
        statement=grounds.state(says),
    )


def make_claim(
    *,
    quantity: str,
    classifier: str,
    bound: float,
    delta: float,
    statement: str,
    certification: str = Holdout.name,
    label: Label | None = None,
    errors: int | None = None,
    rows: int | None = None,
) -> Claim:
    """Return a claim; by default from rows held out, about no class, and without counts.

    Args:
        quantity, classifier, bound, delta, statement: see ``Claim``, as for all others.
        certification, label, errors, rows: see ``Claim``.
    """
    return Claim(
        quantity=quantity,
        label=label,
        certification=certification,
        classifier=classifier,
        bound=bound,
        errors=errors,
        rows=rows,
        delta=delta,
        statement=statement,
    )


def describe_claim(given: str, delta: float, says: str, method: str) -> str:
    """Return the sentence of a claim: what it assumes, its delta, what it says, and how it was obtained."""
    level = format_level(delta)
    return f"{given}, with probability at least {level} over data and splits, {says} ({method})."
