"""How many rows a claim by class needs before it says anything, and how many there will be.

For a required predictive value these are the rows of the positive class, with as many others as their share
leaves; the recalls at its cut-off are then what they are.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from ckcv_ray.claims.baseline import compute_baselines
from ckcv_ray.claims.by_class import PlannedClaim, plan_claims, share_recalls
from ckcv_ray.claims.claim import name_quantity
from ckcv_ray.claims.percent import ceil_percent, format_level, format_number
from ckcv_ray.claims.weighted import bound_flawless
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import (
    MAX_CHECKED,
    bound_table,
    clopper_pearson,
    find_fewest_rows,
    find_first,
)
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.ensemble import count_classes
from ckcv_ray.study import (
    ANSWERED_ERROR,
    AUC,
    BY_CLASS,
    Holdout,
    Predictive,
    Problem,
    is_quantity,
    parse_largest_weight,
    parse_predictive,
    parse_within,
)
from ckcv_ray.tables.target import Label

WANTED = (0.8, 0.9, 0.95)
USUAL_MISS = 0.2  # share of wrong rows of the class that a predictive value depends on least


@dataclass(frozen=True)
class Needed:
    """What a claim needs to say "at least ``at_least``".

    Attributes:
        at_least: the value to claim, in (0, 1).
        rows: the fewest rows of the class (auc: of the rarer class) with which it can be claimed: without a
            miss.
        rows_with_misses, misses: the fewest rows, with misses at half the rate that the value allows. For a
            predictive value one recall is ``1 - USUAL_MISS``, and the other errs half as often as the value
            allows at that.
        rows_in_all: size of a table of which ``rows`` are expected there.
    """

    at_least: float
    rows: int
    rows_with_misses: int
    misses: int
    rows_in_all: int


@dataclass(frozen=True)
class Requirement:
    """What a claim by class needs, and what there will be.

    Attributes:
        quantity, label: as in ``Claim``; label is None for auc alone.
        delta: probability with which the claim may fail.
        rows: rows of the class (auc: of the rarer class) to expect, by the whole table, among those held
            out.
        of: rows of all classes there.
        needed: for each of ``WANTED``.
    """

    quantity: str
    label: Label | None
    delta: float
    rows: int
    of: int
    needed: tuple[Needed, ...]

    @property
    def of_value(self) -> bool:
        """Whether it is about a predictive value that is required."""
        return parse_predictive(self.quantity) is not None

    def lines(self) -> list[str]:
        """Return the requirement in words."""
        of_class = "the rarer class" if self.label is None else f"class {self.label!r}"
        first = (
            f"{name_quantity(self.quantity, self.label)}, with probability {format_level(self.delta)}: "
            f"about {self.rows:,} of the {self.of:,} held-out rows {'is' if self.rows == 1 else 'are'} of "
            f"{of_class}, by its share in the table"
        )
        shares = (format_number(100 * needed.at_least) for needed in self.needed)
        pairs = zip(shares, self.needed, strict=True)
        return [first, *(f"  at least {share} %: {self._needs(needed)}" for share, needed in pairs)]

    def _needs(self, needed: Needed) -> str:
        of_class = "of the rarer class" if self.label is None else f"of class {self.label!r}"
        miss = "pair out of order" if self.label is None else "miss"
        without = "no row of any class wrong" if self.of_value else f"those without a {miss}"
        plural = "pairs out of order" if self.label is None else "misses"
        others = ", and the others wrong half as often as that allows" * self.of_value
        words = [
            f"not before {needed.rows:,} held-out rows {of_class}, and {without}",
            f"{needed.rows_with_misses:,} with {pluralize(needed.misses, miss, plural)}{others}",
        ]
        if needed.rows > self.rows:
            words.append(f"expected in a table of {needed.rows_in_all:,} rows")
        return "; ".join(words)


@dataclass(frozen=True)
class Prospect:
    """What rows held out can prove at best, for a claim that is about no class.

    Attributes:
        quantity: as in ``Claim``.
        delta: probability with which the claim may fail.
        rows: rows held out.
        needed: the fewest with which anything is proven.
        beyond: of a distance, how many of them may be further off; None for other claims.
        at_most: of an error, the share that is proven if none of them is wrong (of numbers, of the clip); of
            a weighted one, where rows held out weigh as much as rows to learn from. None for other claims.
        unit: of an error "row" or "group", of which ``rows`` are held out and ``needed``, none of them wrong,
            prove that it is less than that of every constant; "" for other claims.
        outside: of rows, how many to expect outside the commonest class; None for other claims.
        of_clip: whether ``at_most`` is a share of the clip of numbers, and not of rows.
    """

    quantity: str
    delta: float
    rows: int
    needed: int
    beyond: int | None = None
    at_most: float | None = None
    unit: str = ""
    outside: int | None = None
    of_clip: bool = False

    def __str__(self) -> str:
        level = format_level(self.delta)
        if self.unit:
            of, bad = (" of the clip", "off") if self.of_clip else ("", "wrong")
            first = (
                f"{self.quantity}, with probability {level}: at most {ceil_percent(self.at_most or 0)}{of} "
                f"if none of the {self.rows:,} held-out {self.unit}s is {bad}; better than a constant takes"
            )
            if self.outside is None:
                return f"{first} about {self.needed:,} of them, none {bad}"
            return (
                f"{first} {self.needed:,} rows outside each class, none of them wrong, and about "
                f"{self.outside:,} are outside the commonest"
            )
        first = f"{name_quantity(self.quantity, None)}, with probability {level}:"
        if self.quantity == ANSWERED_ERROR:
            return (
                f"{first} takes {self.needed:,} held-out rows that are answered, and none of them wrong; "
                f"{self.rows:,} are held out"
            )
        if self.at_most is not None:
            return (
                f"{first} at most {ceil_percent(self.at_most)} if none of the {self.rows:,} held-out rows is "
                "wrong, by the weights of the rows to learn from"
            )
        return (
            f"{first} takes {self.needed:,} held-out rows at least; of {self.rows:,} at most "
            f"{self.beyond:,} are further off than what is proven"
        )


def list_prospects(problem: Problem) -> tuple[Prospect, ...]:
    """Return what rows held out can prove at best of errors, of rows answered, of numbers, and by weight.

    It is read before the run, so it depends on no row held out.
    """
    certification, made = problem.study.certification, list[Prospect]()
    if certification is None or problem.held is None:
        return ()
    delta, rows = problem.study.delta / certification.n_shares, len(problem.held)
    for name in certification.claim:
        if (share := parse_within(name)) is not None:
            beyond = int(np.count_nonzero(bound_table(rows, delta) <= 1 - share)) - 1
            made.append(Prospect(name, delta, rows, find_fewest_rows(1 - share, 0, delta), beyond=beyond))
        elif parse_largest_weight(name) is not None:
            bound = bound_flawless(problem, name, delta)
            made.append(Prospect(name, delta, rows, 1, at_most=bound))
        elif name == ANSWERED_ERROR and certification.answering is not None:
            of_both = delta / 2  # the other half is that of the share answered
            needed = find_fewest_rows(certification.answering.value, 0, of_both)
            made.append(Prospect(name, of_both, rows, needed))
        elif not is_quantity(name):
            made.append(_foresee_gate(problem, name, delta))
    return tuple(made)


def _foresee_gate(problem: Problem, name: str, delta: float) -> Prospect:
    """Return what it takes to prove that a rule is better than every constant, by the units to learn from."""
    task = problem.task
    if not problem.has_losses:
        table, held = problem.all_rows, len(problem.order_held_units())
        needed = find_fewest_rows(float(np.nextafter(0.5, 0)), 0, delta)
        outside = round(held * (1 - max(count_classes(table.y, table.n_classes)) / table.n))
        best = float(clopper_pearson(0, held, delta))
        return Prospect(name, delta, held, needed, at_most=best, unit="row", outside=outside)
    value = compute_baselines(problem)[0].get("value")
    constants = range(task.n_classes) if value is None else (value,)
    measure = problem.make_loss_measure(task.groups)
    losses = [measure.measure_losses(task.y, np.full(task.n, constant)) / ONE for constant in constants]

    def passes(units: int) -> bool:
        return all(bound_losses((1 - np.resize(of, units)) / 2, delta) < 0.5 for of in losses)

    needed = find_first(passes, 1, MAX_CHECKED)
    held = len(problem.order_held_units())
    best = bound_losses(np.zeros(held), delta)
    unit, of_clip = problem.all_rows.unit, task.has_numbers
    return Prospect(name, delta, held, needed, at_most=best, unit=unit, of_clip=of_clip)


def list_requirements(problem: Problem) -> tuple[Requirement, ...]:
    """Return what each claim by class, or of the AUC, needs; those with the fewest rows first.

    It is read before the run, so it depends on how many rows each class has, and not on those drawn.
    """
    certification = problem.study.certification
    if not isinstance(certification, Holdout):
        return ()
    names = [name for name in certification.claim if name in (*BY_CLASS, AUC)]
    made = []
    condition = problem.required
    if condition is not None and (predictive := parse_predictive(condition.name)) is not None:
        names = [name for name in names if name == AUC]
        made = [_require_value(problem, predictive, condition.value)]
    made += [_requirement(problem, quantity) for name in names for quantity in plan_claims(problem, name)]
    return tuple(sorted(made, key=lambda requirement: requirement.rows))


def _requirement(problem: Problem, quantity: PlannedClaim) -> Requirement:
    task, held = problem.all_rows, problem.held
    assert held is not None
    of_class = quantity.count_rows(count_classes(task.y, task.n_classes)) / task.n
    rows, share, delta = round(len(held) * of_class), len(held) / task.n * of_class, quantity.delta
    needed = tuple(_compute_needed(at_least, delta, share) for at_least in WANTED)
    return Requirement(quantity.name, quantity.label, delta, rows, len(held), needed)


def _require_value(problem: Problem, predictive: Predictive, least: float) -> Requirement:
    task, held = problem.all_rows, problem.held
    assert held is not None
    share, delta = float(np.mean(task.y == problem.positive)), share_recalls(problem)
    rows = predictive.count_rows(least, share, delta)
    missed, flagged = _choose_usual_errors(predictive, least)
    usual = predictive.count_rows(least, share, delta, missed, flagged)
    in_all = ceil(rows * task.n / len(held))
    with_misses = round(share * usual), round(missed * share * usual)
    needed = Needed(least, round(share * rows), *with_misses, in_all)
    label = task.classes[problem.positive]
    expected = round(len(held) * share)
    return Requirement(str(predictive), label, delta, expected, len(held), (needed,))


def _choose_usual_errors(predictive: Predictive, least: float) -> tuple[float, float]:
    """Return shares missed and wrongly flagged: one usual, the other half of what a value allows at that."""
    q, right = predictive.prevalence, 1 - USUAL_MISS
    if predictive.name == "npv":
        allowed = (1 - q) * right * (1 - least) / (q * least)
        return min(USUAL_MISS, allowed / 2), USUAL_MISS
    allowed = q * right * (1 - least) / ((1 - q) * least)
    return USUAL_MISS, min(USUAL_MISS, allowed / 2)


def _compute_needed(at_least: float, delta: float, share: float) -> Needed:
    """Return what it takes to claim a value; ``share`` of all rows are held out and of the class."""
    allowed, misses = 1 - at_least, 1
    rows = find_fewest_rows(allowed, 0, delta)
    while misses < find_fewest_rows(allowed, misses, delta) * allowed / 2:
        misses += 1
    return Needed(at_least, rows, find_fewest_rows(allowed, misses, delta), misses, ceil(rows / share))
