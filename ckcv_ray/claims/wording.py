"""The wording of claims: what is proven, and what is not.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each individual
member if the candidate had been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from collections.abc import Sequence

from ckcv_ray.claims.baseline import MAX_OF_LABEL
from ckcv_ray.core.criteria import (
    MeanBound,
    MeanShare,
)
from ckcv_ray.core.percent import floor_percent, format_level, round_bound
from ckcv_ray.errors import cut, cut_list

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
