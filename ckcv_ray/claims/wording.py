"""The wording of claims: what is proven, and what is not.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each individual
member if the candidate had been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from collections.abc import Sequence

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.claim import (
    BOUND_NAMES,
    MOST_OF_LABEL,
    UNPROVEN,
    Claim,
    find_claim_of_all_members,
    limit,
    state_limit,
)
from ckcv_ray.claims.percent import at_least, at_most, format_level, format_number, round_bound
from ckcv_ray.core.by_label import parse_numbers_by_label
from ckcv_ray.core.criteria import Balanced, Criterion, MeanClippedError, MeanCost, MeanError, MeanGroupError
from ckcv_ray.errors import cut, cut_list, pluralize
from ckcv_ray.study import ERROR, Nested, is_of_numbers, parse_within
from ckcv_ray.tables.target import LEAST_OF_CLASS, Label

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
        f"not excluded, of which the best could still have an L_MS of {show_least(least, clip)}. What is "
        "proven holds for this one, since it allows for any selection."
    )


def show_least(least: float, clip: float | None) -> str:
    """Return the least value that a criterion could still have: in percent, or of numbers in their units."""
    return at_least(least) if clip is None else round_bound(clip * least, up=False)


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


def list_not_covered(grouped: bool, has_numbers: bool) -> tuple[str, ...]:
    """Return what the claims do not cover, of a task with groups or without, of numbers or of classes."""
    if not grouped:
        return NOT_COVERED
    how = "far off a row is" if has_numbers else "often a row is wrong"
    large = f"how {how} among all rows, where large groups count more: each group counts once"
    return (RELATED_GROUPS, large, *NOT_COVERED[1:])


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


def describe_giveaways(names: Sequence[str]) -> list[str]:
    """Return a list of one sentence about columns that give the target away; empty if there are none."""
    listed = ", ".join(cut_list([cut(repr(name), MOST_OF_LABEL) for name in names], "more"))
    it = "it" if len(names) == 1 else "they"
    of = f"Column {listed} gives" if len(names) == 1 else f"Columns {listed} give"
    return [f"{of} the target away: would {it} be known for a new row?"] if names else []


def describe_held_share(held: int, units: int, unit: str) -> list[str]:
    """Return a list of one sentence if more than two thirds of the rows or groups are held out, else none.

    Args:
        held, units: rows or groups held out, and of the full table.
        unit: "row" or "group".
    """
    part = f"{held:,} of {units:,} {unit}s are held out, more than two thirds"
    return [f"{part}: few are left to learn from."] if 3 * held > 2 * units else []


def _instead(claim: Claim, without: float) -> str:
    """Say what a claim is with another bound."""
    instead: Claim = {**claim, "bound": without}
    return f"{state_limit(instead)} instead of {limit(claim)}"


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


def figure(criterion: Criterion, l_ee: float, n_splits: int, grouped: bool = False) -> str:
    """Return the sentence that says what L_EE is, for the criterion and the bound it is computed with.

    Args:
        criterion: what was minimised, in its form for groups if it has one.
        l_ee: its value on the estimate sets.
        n_splits: of the winner.
        grouped: whether the task has groups.
    """
    level, percent = format_level(criterion.delta), f"L_EE = {at_most(l_ee)}"
    match criterion:
        case MeanClippedError():
            return (
                f"On the estimate sets the mean over {n_splits} splits of {level} bounds on the mean error"
                f"{', each group counted once,' if grouped else ','} of which at most "
                f"{format_number(criterion.limit)} counts, is "
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
