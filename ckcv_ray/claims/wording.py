"""The wording of claims: what is proven, and what is not.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each individual
member if the candidate had been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from sys import float_info
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.percent import (
    at_least,
    at_most,
    format_level,
    format_number,
    nearest,
    round_bound,
)
from ckcv_ray.claims.rules import ONE_MODEL, Rule
from ckcv_ray.core.by_label import parse_numbers_by_label
from ckcv_ray.core.criteria import (
    Balanced,
    Criterion,
    MeanClippedError,
    MeanCost,
    MeanError,
    MeanGroupError,
)
from ckcv_ray.errors import cut, pluralize
from ckcv_ray.study import (
    ERROR,
    Argument,
    Holdout,
    Nested,
    find_quantity,
    find_reference,
    is_error,
    is_of_numbers,
    parse_clipped,
    parse_predictive,
    parse_quantity,
    parse_within,
)
from ckcv_ray.tables.target import LEAST_OF_CLASS, Label
from ckcv_ray.validation import check_fraction, check_probability

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
ASSUMPTIONS_OF_GROUPS = (
    "The groups are independent examples from one source, and new groups come from that same source; rows of "
    "one group may be related in any way.",
    "All rows that are related belong to one group.",
    "The splits are plain random splits of whole groups, not stratified.",
    ASSUMPTIONS[-1],
)
NOT_COVERED_OF_GROUPS = (
    "groups that are related to each other, such as patients of one hospital if new ones come from others",
    "how often a row is wrong among all rows, where large groups count more: each group counts once",
    *NOT_COVERED[1:],
)
ONE_SOURCE = "Assuming independent examples from one source"
RANDOM_SPLITS = f"{ONE_SOURCE} and plain random splits"
GROUPS_OF_ONE_SOURCE = "Assuming independent groups of rows from one source"
RANDOM_SPLITS_OF_GROUPS = f"{GROUPS_OF_ONE_SOURCE} and plain random splits of whole groups"
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


def describe_search(effort: int, candidates: int, not_excluded: int, least: float | None) -> str:
    """Return the sentence about what a search within a budget left open, from its ``Searched``."""
    search = f"The search was within an effort of {effort:,} evaluations"
    if least is None:
        return f"{search}, and excluded each of the {candidates:,} candidates that could have been better."
    return (
        f"{search}, and another candidate may be better: {not_excluded:,} of {candidates:,} candidates were "
        f"not excluded, of which the best could still have an L_MS of {at_least(least)}. What is proven "
        "holds for this one, since it allows for any selection."
    )


RANDOM = Rule("random")
BOUND_NAMES = {
    "clopper_pearson": "Clopper-Pearson",
    "stevens": "Stevens",
    "safe": "averaging-safe Clopper-Pearson",
    "catoni": "Catoni",
    "loss": "averaging-safe or Catoni",
}
LOSS_NAMES = {
    "safe": "averaging-safe Clopper-Pearson interpolated between counts",
    "catoni": "Catoni",
    "betting": "betting on the groups in the order drawn",
}
MINIMISED = {  # what the criterion is, on the select sets
    "error": "mean {} bound on the select sets (minimised)",
    "balanced": "mean of the classes' {} bounds on the select sets (minimised)",
    "cost": "mean {} bound on the cost, in % of the largest, on the select sets (minimised)",
    "mean_error": "mean error on the select sets (minimised; no bound)",
    "clipped": "mean {} bound on the mean error, in % of the clip, on the select sets (minimised)",
}
L_EE_IS = {
    "error": {
        "clopper_pearson": "the same mean on the estimate sets (the paper's figure)",
        "stevens": "mean randomised bound (Stevens) on the estimate sets",
        "safe": "averaging-safe bound on the estimate sets",
        "catoni": "Catoni's bound on the estimate sets",
        "loss": "the same mean on the estimate sets (the paper's figure, for groups)",
    },
    "balanced": {"clopper_pearson": "the same mean on the estimate sets; no bound on the error"},
    "cost": {"loss": "bound on the mean cost on the estimate sets; no bound on the error"},
    "mean_error": {"none": "mean error on the estimate sets; no bound"},
    "clipped": {"loss": "the same mean on the estimate sets; not proven after selection"},
}
ABOUT_ERROR = (
    "What is proven below is about the error rate; it holds whatever criterion selected the candidate."
)
MOST_COSTS = 6
MOST_OF_LABEL = 60


UNPROVEN = float_info.max  # a bound on how far off numbers are that says nothing
NOTHING = "Nothing can be claimed for"  # begins the sentence of a claim that lacks rows
LARGEST_BOUND = 1e15  # on 1 less a net benefit, which may be far below 0
ARGUMENT_FORMATS: dict[Argument, Callable[[Any], str]] = {  # of the arguments of a quantity
    Argument.PREVALENCE: nearest,
    Argument.WORTH: nearest,
    Argument.SHARE_OF_ROWS: lambda share: f"{format_number(100 * share)} %",
    Argument.LABEL: str,
    Argument.NUMBER: format_number,
    Argument.WEIGHT: format_number,
}


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
        certification: "occam", "holdout" or "nested".
        classifier: the rule applied ("refit", "full", "keyed", "random", "vote" or "member:7", see
            ``rules.Rule``), or "nested" (a member of the nested ensemble drawn independently for each
            pattern).
        bound: upper bound on its risk, in [0, 1]: on the probability that a new pattern is misclassified; by
            class, a new pattern of this class; for auc, that a new pair of patterns is not in order. For
            "within:0.9" in units of the target, 0 or more, and ``UNPROVEN`` if nothing is proven.
        errors, rows: what was counted for it: wrong rows and all rows, by class those of this class, for auc
            pairs, summed over the estimate sets of the members it is about; at a cut-off that was chosen for
            this class, the rows that it may miss; of a comparison the rows that the classifier alone has
            wrong, and those that one of the two alone has; for "within:0.9" those further off; None for
            "full", which has learned from every row, for what follows from other claims, and for a mean error
            of numbers.
        splits: the splits whose members it is about, ascending; empty if it is about all of them.
        delta: probability, over data and splits, with which the bound may fail.
        statement: the claim in words.
        cut_off: the cut-off of the scores from which on a row is classified as positive, if one was chosen;
            absent otherwise.
        least_confidence: the confidence from which on a row is answered, if something is proven of such rows;
            absent otherwise.
        measured: of a mean error of numbers that of the rows counted, as a share of the clip; of a weighted
            error that of the rows counted; absent otherwise.
    """

    quantity: str
    label: Label | None
    certification: str
    classifier: str
    splits: tuple[int, ...]
    bound: float
    errors: int | None
    rows: int | None
    delta: float
    statement: str
    cut_off: NotRequired[float]
    least_confidence: NotRequired[float]
    measured: NotRequired[float]


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
    if (wrong is None) != (rows is None) or not 0 <= (wrong or 0) <= (rows or 0):
        raise ValueError(f"{name}: {wrong} errors in {rows} rows")


def equal_rows(repeats: int, rows: int, grouped: bool = False) -> str:
    """Say how many rows equal another one, as a clause; with groups, one of another group."""
    another = "a row of another group" if grouped else "another row"
    return f"{repeats:,} of {rows:,} rows equal {another} in every column that does not number the rows"


def describe_repeats(repeats: int, rows: int, grouped: bool, first: Claim, without: float) -> list[str]:
    """Return a list of one sentence about rows that equal another row; empty if there are none.

    Args:
        repeats, rows: how many do, and all rows.
        grouped: whether the other row is one of another group.
        first: the first claim.
        without: its bound if one row of each origin is counted.
    """
    origin = "if they have the same origin (one patient, one document)"
    if without >= (1 if parse_within(first["quantity"]) is None else UNPROVEN):
        says = f"{origin}, nothing here is proven"
    else:
        says = f"{origin} and are counted once, the first claim is {_instead(first, without)}"
    return [f"{equal_rows(repeats, rows, grouped)}: {says}."] if repeats else []


def describe_unlabelled(rows: int, known: int, repeated: int, full: Claim, without: float) -> list[str]:
    """Return a sentence for each reason why unlabelled rows may not be new examples.

    Args:
        rows: unlabelled rows.
        known: how many of them equal a row of the table.
        repeated: how many equal another of them.
        full: the claim for the model fitted on all rows.
        without: its bound from the others alone, and one of each that repeat.
    """
    then = "nothing is proven for the model fitted on all rows"
    if without < 1:
        then = f"the claim for the model fitted on all rows is {_instead(full, without)}"
    of_known = (
        f"{known:,} of {rows:,} unlabelled rows equal a row of the table in every feature that does not "
        f"number the rows: if they are the same examples, {then}."
    )
    of_repeated = (
        f"{repeated:,} of {rows:,} unlabelled rows equal another unlabelled row in every feature that does "
        f"not number the rows: if they have the same origin, {then}."
    )
    return [*([of_known] if known else []), *([of_repeated] if repeated else [])]


class RefusedSplit(TypedDict):
    """The first outer split that is refused, since it leaves too few rows of a class to learn from.

    Attributes:
        split: its number; claims are about members of the splits before it.
        splits: outer splits of the study.
        label: label of the class.
        rows: rows of this class that it leaves to learn from.
    """

    split: int
    splits: int
    label: Label
    rows: int


def check_refusal(refused: RefusedSplit, claims: Sequence[Claim], labels: Sequence[Label]) -> None:
    """Raise ValueError if an outer split cannot be refused so, or a claim is about it or a later one."""
    known = refused["label"] in labels and 0 <= refused["rows"] < LEAST_OF_CLASS
    if not known or not 0 < refused["split"] < refused["splits"]:
        raise ValueError(f"refused: {refused} is no outer split of this run")
    nested = [claim for claim in claims if claim["certification"] == Nested.name]
    if not nested or any(split >= refused["split"] for claim in nested for split in claim["splits"]):
        raise ValueError("refused: a claim is about a split that is not before the one refused, or none is")


def describe_refusal(refused: RefusedSplit | None) -> list[str]:
    """Return a list of one sentence if an outer split is refused, else none."""
    if refused is None:
        return []
    before, label = refused["split"], cut(repr(refused["label"]), MOST_OF_LABEL)
    of_class = f"{pluralize(refused['rows'], 'row')} of class {label}"
    return [
        f"{before} of {pluralize(refused['splits'], 'outer split')} certify: split {before} leaves "
        f"{of_class} to learn from, which is too few, so it counts as one without an ensemble member, and "
        "only what nested proves from the splits before it is claimed. More splits, or another seed, do not "
        "help: more rows of this class do."
    ]


def describe_held_share(held: int, units: int, unit: str) -> list[str]:
    """Return a list of one sentence if more than two thirds of the rows or groups are held out, else none."""
    sentence = (
        f"{held:,} of {units:,} {unit}s are held out, more than two thirds: few are left to learn from, and "
        "it is likelier that a class has no rows among them, which only the rows held out can show."
    )
    return [sentence] if 3 * held > 2 * units else []


def _instead(claim: Claim, without: float) -> str:
    """Say what a claim is with another bound."""
    instead: Claim = {**claim, "bound": without}
    return f"{state_limit(instead)} instead of {limit(claim)}"


def limit(claim: Claim) -> str:
    """Format the number that a claim gives, on the safe side: at most this error, at least this quantity."""
    if (clip := parse_clipped(claim["quantity"])) is not None:
        return round_bound(clip * claim["bound"])
    if parse_within(claim["quantity"]) is not None:
        return round_bound(claim["bound"]) if claim["bound"] < UNPROVEN else "any amount"
    return at_most(claim["bound"]) if _is_at_most(claim) else at_least(1 - claim["bound"])


def name_side(claim: Claim) -> str:
    """Return on which side of its limit what is claimed is: "at most", or "at least"."""
    return "at most" if _is_at_most(claim) else "at least"


def _is_at_most(claim: Claim) -> bool:
    quantity = find_quantity(claim["quantity"])
    return quantity is not None and quantity.at_most


def state_limit(claim: Claim) -> str:
    """Return what is proven of a quantity, without its name: "at most 5.00 %"."""
    return f"{name_side(claim)} {limit(claim)}"


def quantity(claim: Claim) -> str:
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


def is_proven_better(claim: Claim) -> bool:
    """Return whether a comparison with another learner proves that the classifier errs less often."""
    return claim["bound"] < 0.5


def describe_comparison(claim: Claim) -> str:
    """Say what a comparison with another learner proves, and what was counted, in a few words."""
    label, lost, rows = find_reference(claim["quantity"]), claim["errors"] or 0, claim["rows"] or 0
    if claim["statement"].startswith(NOTHING):
        return claim["statement"]
    proven = "proven" if is_proven_better(claim) else "not yet proven"
    counts = f"{rows - lost:,} held-out rows won, {lost:,} lost"
    return f"{proven} better than {label}: {counts}; share of wins {state_limit(claim)}"


def describe_counts(claim: Claim) -> str:
    """Say whose errors were counted for a claim, and how many: "this model: 0 of 139 rows wrong"."""
    rule, splits = claim["classifier"], claim["splits"]
    if (clip := parse_clipped(claim["quantity"])) is not None:
        return f"measured: {format_number(clip * claim.get('measured', 0.0))} on average"
    if claim["errors"] is None or claim["rows"] is None:
        return ""
    quantity = find_quantity(claim["quantity"])
    assert quantity is not None
    of = quantity.counted
    if claim["label"] is not None:
        of = f"scored rows of {claim['label']!r} wrong"
    if quantity.of_numbers:
        return f"measured: {claim['errors']:,} of {claim['rows']:,} {of}"
    who = {"vote": "the vote", "keyed": "the members drawn"}.get(rule, "all members")
    if len(splits) == 1 or rule in ONE_MODEL or rule.startswith("member:"):
        who = "this model"
    elif splits:
        who = "these members"
    by_weight = f", {nearest(claim['measured'])} by weight" if "measured" in claim else ""
    return f"{who}: {claim['errors']:,} of {claim['rows']:,} {of}{by_weight}"


def covers(claim: Claim, rule: Rule) -> bool:
    """Return whether a claim is about the predictions of a rule."""
    if claim.get("cut_off") != (None if rule.cut_off is None else rule.cut_off.value):
        return False
    drawn = claim["classifier"] == (Nested.name if rule.nested else RANDOM.name)
    if rule.name == RANDOM.name:
        return drawn and claim["splits"] == rule.splits
    if drawn and len(claim["splits"]) == 1:
        return rule.name == f"member:{claim['splits'][0]}"
    return not rule.nested and claim["classifier"] == rule.name


def is_about_all_members(claim: Claim) -> bool:
    """Return whether a claim is about the error of a member drawn from all of F*."""
    return (claim["classifier"], claim["splits"]) == (RANDOM.name, ()) and is_error(claim["quantity"])


def find_claim_of_all_members(claims: Iterable[Claim]) -> Claim:
    """Return the claim about the error of a member drawn from all of F*, which every certificate has."""
    return next(filter(is_about_all_members, claims))


def claim(
    certification: str,
    given: str,
    classifier: str,
    who: str,
    bound: float,
    seen: tuple[int, int] | None,
    delta: float,
    method: str,
    splits: tuple[int, ...] = (),
    grouped: bool = False,
) -> Claim:
    """Return a claim about an error, with its sentence.

    Args:
        certification: what produced it.
        given: what it assumes.
        classifier, who: the classifier's short name, and a phrase that names it.
        bound, delta: the bound, and the probability with which it may fail.
        seen: wrong rows and all rows that were counted for it; None if it has none of its own.
        method: how the bound was obtained.
        splits: see ``Claim``.
        grouped: whether it is about the rows of a new group, and not about a new pattern.
    """
    says = f"a new pattern classified by {who} is misclassified with probability at most {at_most(bound)}"
    if grouped:
        share = f"on average at most {at_most(bound)} are misclassified"
        says = f"of a new group's rows, each classified by {who}, {share}"
    errors, rows = seen or (None, None)
    return make_claim(
        quantity=ERROR,
        certification=certification,
        classifier=classifier,
        splits=splits,
        bound=bound,
        errors=errors,
        rows=rows,
        delta=delta,
        statement=state_claim(given, delta, says, method),
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
    splits: tuple[int, ...] = (),
    errors: int | None = None,
    rows: int | None = None,
) -> Claim:
    """Return a claim; by default from rows held out, about no class, and without counts.

    Args:
        quantity, classifier, bound, delta, statement: see ``Claim``, as for all others.
        certification, label, splits, errors, rows: see ``Claim``.
    """
    return Claim(
        quantity=quantity,
        label=label,
        certification=certification,
        classifier=classifier,
        splits=splits,
        bound=bound,
        errors=errors,
        rows=rows,
        delta=delta,
        statement=statement,
    )


def state_claim(given: str, delta: float, says: str, method: str) -> str:
    """Return the sentence of a claim: what it assumes, its delta, what it says, and how it was obtained."""
    level = format_level(delta)
    return f"{given}, with probability at least {level} over data and splits, {says} ({method})."


def format_splits(length: int, n_splits: int) -> str:
    """Format how many splits a bound is over: "best prefix: 3 of 20 splits", or "20 splits"."""
    every = pluralize(n_splits, "split")
    return f"best prefix: {length} of {every}" if length < n_splits else every


def statements(first: str, claims: list[Claim]) -> tuple[str, ...]:
    """Return ``first``, what L_EE is, then every claim, and what follows for the majority vote."""
    proven = [claim["statement"] for claim in claims]
    if any(is_of_numbers(claim["quantity"]) for claim in claims) or any(
        claim["classifier"] == "vote" and claim["quantity"] == ERROR for claim in claims
    ):
        return (first, *proven)
    random = find_claim_of_all_members(claims)
    return (
        first,
        *proven,
        _vote(random["certification"], random["bound"]),
    )


def figure(criterion: Criterion, l_ee: float, n_splits: int) -> str:
    """Return the sentence that says what L_EE is, for the criterion and the bound it is computed with."""
    level, percent = format_level(criterion.delta), f"L_EE = {at_most(l_ee)}"
    match criterion:
        case MeanClippedError():
            return (
                f"On the estimate sets the mean over {n_splits} splits of {level} bounds on the mean error, "
                f"of which at most {format_number(criterion.limit)} counts, is "
                f"{round_bound(criterion.limit * l_ee)}. It is what was minimised on the select sets: it is "
                "not proven after selection on the same data."
            )
        case Balanced():
            return (
                f"{percent}: the mean over {n_splits} splits, and in each over the classes, of {level} "
                "Clopper-Pearson bounds on the error rate of a class. It is what was minimised, measured on "
                f"the estimate sets: not a bound on the error rate, and not proven. {ABOUT_ERROR}"
            )
        case MeanCost():
            return (
                f"{percent}: the {level} bound on the mean cost of a decision over {n_splits} splits, in "
                f"percent of the largest cost ({list_costs(criterion)}): not a bound on the error rate. "
                f"{AVERAGE} {ABOUT_ERROR}"
            )
        case MeanError():
            return f"{percent}: {_mean_error('wrong rows', n_splits)}"
        case MeanGroupError():
            return f"{percent}: {_mean_error('the wrong rows of a group, each group counted once', n_splits)}"
    return _paper_figure(criterion.bound, criterion.delta, l_ee, n_splits)


def _mean_error(wrong: str, n_splits: int) -> str:
    return (
        f"the mean error, that is the mean over {n_splits} splits of the share of {wrong}. It is what was "
        "minimised, measured on the estimate sets: an estimate of the error rate, not a bound on the error "
        f"rate, and not proven. {ABOUT_ERROR}"
    )


def list_costs(criterion: MeanCost) -> str:
    """Format the cost of an error on each class, the largest first."""
    ordered = sorted(parse_numbers_by_label(criterion.costs).items(), key=lambda pair: -pair[1])
    shown = [f"{label!r} = {cost:g}" for label, cost in ordered[:MOST_COSTS]]
    return ", ".join(shown) + (", ..." if len(ordered) > MOST_COSTS else "")


def _paper_figure(bound: str, delta: float, l_ee: float, n_splits: int) -> str:
    level, name = format_level(delta), BOUND_NAMES[bound]
    definition, proven = {
        "clopper_pearson": (
            f"the paper's figure, the mean over {n_splits} splits of {level} {name} bounds",
            SINGLE,
        ),
        "stevens": (
            f"the mean over {n_splits} splits of {level} {name} bounds, which are randomised",
            SINGLE,
        ),
        "loss": (
            f"the paper's figure for groups, the mean over {n_splits} splits of {level} bounds on the share "
            "of a new group's rows that are wrong",
            SINGLE,
        ),
    }.get(bound, (f"the {level} {name} bound on the mean over {n_splits} splits", AVERAGE))
    return f"L_EE = {at_most(l_ee)}: {definition}. {proven}"


def _vote(certification: str, bound: float) -> str:
    """Return the sentence that says what a claim for a random member proves for the majority vote."""
    doubled = at_most(2 * bound) if bound < 0.5 else "100 %, which says nothing"
    return (
        f"By majority vote instead of a random member, what is proven is twice the {certification} bound "
        f"for all members: {doubled}."
    )
