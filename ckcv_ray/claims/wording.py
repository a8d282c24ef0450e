"""The wording of claims: what is proven, and what is not.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each individual
member if the candidate had been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from ckcv_ray.claims.baseline import MAX_OF_LABEL, Baseline, describe_error, name_constant, quote_label
from ckcv_ray.claims.quantity import Claim, Gate
from ckcv_ray.core.criteria import (
    MeanBound,
    MeanShare,
)
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, round_bound
from ckcv_ray.errors import cut, cut_list, pluralize
from ckcv_ray.tables.target import Label

ASSUMPTIONS = (
    "The rows are independent examples from one source, and new patterns come from that same source.",
    "The splits are plain random splits, neither stratified nor grouped.",
    "What is drawn follows from the seed and from which rows the table has. It is as good as chance if the "
    "rows come in random order, if the seed was drawn at random, or if nobody arranged the table or chose "
    "the seed with the draw in view.",
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
    *ASSUMPTIONS[-2:],
)
RELATED_GROUPS = (
    "groups that are related to each other, such as patients of one hospital if new ones come from others"
)
PROVISIONAL = (
    "Provisional: evaluations failed, so a better candidate might have been missed. What is proven still "
    "holds for this one, since it allows for any selection."
)


def describe_search(
    effort: int, candidates: int, not_excluded: int, least: float | None, clip: float | None = None
) -> str:
    """Return the sentence about what a search within a budget left open, from its ``Searched``.

    Of numbers ``least`` is a share of their ``clip``.
    """
    search = f"The search was within an effort of {effort:,} evaluations"
    if least is None:
        return f"{search}, and excluded each of the {candidates:,} candidates that could have been better."
    return (
        f"{search}, and another candidate may be better: {not_excluded:,} of {candidates:,} candidates were "
        f"not excluded, of which the best could still have an L_MS of {describe_least(least, clip)}. What is "
        "proven holds for this one, since it allows for any selection."
    )


def describe_least(least: float, clip: float | None) -> str:
    """Return the least value that a criterion could still have: in percent, or of numbers in their units."""
    return floor_percent(least) if clip is None else round_bound(clip * least, up=False)


MINIMISED = {  # what the criterion is, on the select sets
    "error": "mean {} bound on the select sets (minimised)",
    "groups": "mean share of a group's wrong rows with a {} margin, on the select sets (minimised; no bound)",
    "balanced": "mean of the classes' {} bounds on the select sets (minimised)",
    "cost": "mean cost with a {} margin, in % of the largest, on the select sets (minimised; no bound)",
    "mean_error": "mean error on the select sets (minimised; no bound)",
    "clipped": "mean error with a {} margin, in % of the clip, on the select sets (minimised; no bound)",
}
L_EE_IS = {
    "error": {
        "clopper_pearson": "the same mean on the estimate sets (the paper's figure)",
        "loss": "the same mean on the estimate sets (the paper's figure, for groups; no bound)",
    },
    "balanced": {"clopper_pearson": "the same mean on the estimate sets; no bound on the error"},
    "cost": {"loss": "the same mean on the estimate sets; no bound"},
    "mean_error": {"none": "mean error on the estimate sets; no bound"},
    "clipped": {"loss": "the same mean on the estimate sets; no bound"},
}


def describe_minimised(criterion: str, bound: str, delta: float) -> str:
    """Return what a criterion is, on the select sets; ``bound`` says what L_EE is computed with."""
    grouped = criterion == MeanBound.name and bound == MeanShare.bound
    return MINIMISED["groups" if grouped else criterion].format(format_level(delta))


def describe_equal_rows(repeats: int, rows: int, grouped: bool = False) -> str:
    """Say how many rows equal another one, as a clause; with groups, one of another group."""
    another = "a row of another group" if grouped else "another row"
    return f"{repeats:,} of {rows:,} rows equal {another} in every column that does not number the rows"


def describe_repeats(
    repeats: int, rows: int, grouped: bool, first: Claim, without: float | None
) -> list[str]:
    """Return a list of one sentence about rows that equal another row; empty if there are none.

    Args:
        repeats, rows: how many do, and all rows.
        grouped: whether the other row is one of another group.
        first: the first claim.
        without: its bound if one row of each origin is counted.
    """
    origin = "if they have the same origin (one patient, one document)"
    instead = replace(first, bound=without)
    if not instead.says_something:
        says = f"{origin}, nothing here is proven"
    else:
        limits = f"{instead.says} instead of {first.limit}"
        says = f"{origin} and are counted once, the first claim is {limits}"
    return [f"{describe_equal_rows(repeats, rows, grouped)}: {says}."] if repeats else []


def list_not_covered(grouped: bool, has_numbers: bool) -> tuple[str, ...]:
    """Return what the claims do not cover, of a task with groups or without, of numbers or of classes."""
    if not grouped:
        return NOT_COVERED
    how = "far off a row is" if has_numbers else "often a row is wrong"
    large = f"how {how} among all rows, where large groups count more: each group counts once"
    return (RELATED_GROUPS, large, *NOT_COVERED[1:])


def describe_giveaways(names: Sequence[str]) -> list[str]:
    """Return a list of one sentence about columns that give the target away; empty if there are none."""
    listed = ", ".join(cut_list([cut(repr(name), MAX_OF_LABEL) for name in names], "more"))
    of, it = f"Columns {listed} give", "they"
    if len(names) == 1:
        of, it = f"Column {listed} gives", "it"
    return [f"{of} the target away: would {it} be known for a new row?"] if names else []


def describe_held_share(held: int, units: int, unit: str) -> list[str]:
    """Return a list of one sentence if more than two thirds of the rows or groups are held out, else none.

    Args:
        held, units: rows or groups held out, and of the full table.
        unit: "row" or "group".
    """
    part = f"{held:,} of {units:,} {unit}s are held out, more than two thirds"
    return [f"{part}: few are left to learn from."] if 3 * held > 2 * units else []


def list_statements(first: str, claims: list[Claim]) -> tuple[str, ...]:
    """Return ``first``, what L_EE is, then every claim, and what follows for the majority vote."""
    statements = [first, *(claim.statement for claim in claims)]
    drawn = (
        claim.bound for claim in claims if claim.classifier == "random" and not claim.quantity.of_numbers
    )
    if (bound := next(drawn, None)) is not None:  # the one claim of the paper's certification
        doubled = ceil_percent(2 * bound) if bound < 0.5 else "100 %, which says nothing"
        follows = "By majority vote instead of a random member, what is proven is twice this bound"
        statements.append(f"{follows}: {doubled}.")
    return tuple(statements)


def says_nothing(claim: Claim, baseline: Baseline) -> bool:
    """Return whether a claim about an error says nothing beyond a constant.

    With a gate it does unless the rule is proven better than every constant; without one, unless the bound is
    below the constant's error.
    """
    if claim.gate is not None:
        return not claim.gate.passed
    return claim.bound is None or claim.bound >= baseline["error"]


def compare_with_baseline(claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> str:
    """Return a clause that compares a claim about an error with its baseline."""
    error = describe_error(baseline)
    said = f"wrong on {error} of" if "clip" not in baseline else f"off by {error} on average on"
    clause = f"{name_constant(baseline, labels)} is {said} the {baseline['on']}"
    if not says_nothing(claim, baseline):
        return clause
    if claim.gate is not None:
        return f"{clause}, and that this is better than a constant is not proven"
    return f"{clause}, so this says nothing beyond it"


def describe_gate(claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> str:
    """Say that a claim's rule is proven better than every constant; "" if it is not."""
    if claim.gate is None or not claim.gate.passed:
        return ""
    says, counts = _phrase_gate(claim.gate, claim, baseline, labels)
    return f"{says}: proven, within the same {format_level(claim.delta)} ({counts})"


def describe_worthless_bound(claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> list[str]:
    """Return a list of one sentence if a bound on an error says nothing beyond a constant, else none."""
    if not claim.quantity.guarded or not says_nothing(claim, baseline):
        return []
    if claim.gate is None:
        return [
            f"The bound {claim.limit} is not below {describe_error(baseline)}, the "
            f"{'mean error' if 'clip' in baseline else 'error'} of {name_constant(baseline, labels)} on the "
            f"{baseline['on']}: it says nothing beyond that."
        ]
    says, counts = _phrase_gate(claim.gate, claim, baseline, labels)
    unable = ", and these rows cannot prove it, even with none wrong" * (claim.gate.least >= 0.5)
    return [
        f"The bound {claim.limit} ({claim.classifier}) is a figure, not to be quoted alone: that "
        f"it {says} is not proven{unable} ({counts})."
    ]


def describe_lack_of_gate(claim: Claim, baseline: Baseline) -> list[str]:
    """Return a list of one sentence if a bound on an error says something, but has no gate, else none."""
    if claim.gate is not None or not claim.quantity.is_error or says_nothing(claim, baseline):
        return []
    return ["That this is better than a constant is not proven: it takes rows held out (--certify holdout)."]


def _phrase_gate(gate: Gate, claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> tuple[str, str]:
    lost, won = pluralize(gate.lost, "row"), f"{gate.won:,}"
    if "value" in baseline:
        constant = name_constant(baseline, labels)
        return f"is off by less than {constant}", f"further off: {lost}; {constant}: {won}"
    by_weight = ", by weight," if claim.quantity.weighs else ""
    return (
        f"errs less often{by_weight} than always predicting any one class",
        f"wrong alone: {lost}; always {quote_label(labels[gate.predicted])} alone: {won}",
    )


def describe_guesses(claims: Sequence[Claim], labels: Sequence[Label]) -> list[str]:
    """Return a sentence for each quantity that a constant, or a guess, would reach as well.

    A guess has an AUC of one half, and recalls that add up to 1 whatever the shares it guesses with; one
    recall alone is reached by always predicting its class.
    """
    statements = [said for claim in claims if (said := claim.quantity.doubt(claim))]
    recalls = dict[str, list[Claim]]()
    for claim in claims:
        if claim.quantity.by_class and claim.bound is not None:
            recalls.setdefault(claim.classifier, []).append(claim)
    for made in recalls.values():
        proven = fsum(1 - (claim.bound or 0.0) for claim in made)
        if len(made) < len(labels):
            statements += [
                f"A {claim.name} is reached by always predicting {quote_label(claim.label)}: quote it "
                "with the recalls of all other classes."
                for claim in made
            ]
        elif proven <= 1:
            statements.append(
                f"The recalls proven by {made[0].certification} add up to {floor_percent(proven)}: "
                "together they say nothing beyond a guess, whose recalls add up to 100 %."
            )
    return statements
