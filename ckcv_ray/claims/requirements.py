"""How many rows a claim by class needs before it says anything, and how many there will be."""

from dataclasses import dataclass
from math import ceil

from ckcv_ray.claims.by_class import Quantity, quantities, typical_units
from ckcv_ray.claims.percent import format_level
from ckcv_ray.claims.wording import name_quantity
from ckcv_ray.core.bounds.binomial import MOST_CHECKED, fewest_rows, safe_table
from ckcv_ray.core.search import find_first
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.ensemble import class_sizes
from ckcv_ray.study import AUC, BY_CLASS, Holdout, Nested, Problem
from ckcv_ray.tables.target import Label

WANTED = (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Needed:
    """What a claim needs to say "at least ``at_least``".

    Attributes:
        at_least: the value to claim, in (0, 1).
        rows: the fewest rows of the class (auc: of the rarer class) with which it can be claimed: without a
            miss.
        rows_with_misses, misses: the fewest rows, with misses at half the rate that the value allows; None
            for nested.
        rows_in_all: size of a table of which ``rows`` are expected there.
    """

    at_least: float
    rows: int
    rows_with_misses: int | None
    misses: int | None
    rows_in_all: int


@dataclass(frozen=True)
class Requirement:
    """What a claim by class needs, and what there will be.

    Attributes:
        quantity, label: as in ``Claim``.
        delta: probability with which the claim may fail.
        rows: rows of the class (auc: of the rarer class) to expect, by the learning rows, among those held
            out, or in an outer estimate set.
        of: rows of all classes there.
        certification: "holdout" or "nested".
        needed: for each of ``WANTED``.
    """

    quantity: str
    label: Label | None
    delta: float
    rows: int
    of: int
    certification: str
    needed: tuple[Needed, ...]

    def lines(self) -> list[str]:
        """Return the requirement in words."""
        of_class = "the rarer class" if self.label is None else f"class {self.label!r}"
        held = self.certification == Holdout.name
        place = "held-out rows" if held else "rows of each outer estimate set"
        share = f"{'about ' if held else ''}{self.rows:,} of the {self.of:,} {place}"
        share += "" if held else ", on average,"
        first = (
            f"{name_quantity(self.quantity, self.label)}, with probability {format_level(self.delta)}: "
            f"{share} {'is' if self.rows == 1 else 'are'} of {of_class}"
            + (", by its share in the rows to learn from" if held else "")
        )
        return [
            first,
            *(
                f"  at least {round(100 * needed.at_least)} %: {self._needs(needed)}"
                for needed in self.needed
            ),
        ]

    def _needs(self, needed: Needed) -> str:
        of_class = "of the rarer class" if self.label is None else f"of class {self.label!r}"
        rows = "held-out rows" if self.certification == Holdout.name else "rows"
        miss = "pair out of order" if self.label is None else "miss"
        words = [f"not before {needed.rows:,} {rows} {of_class}, and those without a {miss}"]
        if needed.rows_with_misses is not None and needed.misses is not None:
            plural = "pairs out of order" if self.label is None else "misses"
            words.append(f"{needed.rows_with_misses:,} with {pluralize(needed.misses, miss, plural)}")
        if needed.rows > self.rows:
            words.append(f"expected in a table of {needed.rows_in_all:,} rows")
        return "; ".join(words)


def requirements(problem: Problem) -> tuple[Requirement, ...]:
    """Return what each claim by class, or of the AUC, needs; those with the fewest rows first.

    It is read before the run, so it depends on no label of a row held out.
    """
    certification = problem.study.certification
    if not isinstance(certification, Holdout | Nested):
        return ()
    names = [name for name in certification.claim if name in (*BY_CLASS, AUC)]
    made = [_requirement(problem, quantity) for name in names for quantity in quantities(problem, name)]
    return tuple(sorted(made, key=lambda requirement: requirement.rows))


def fewest_rows_averaged(allowed: float, delta: float) -> int:
    """Return the fewest rows whose averaging-safe bound, without a miss, is at most ``allowed``."""
    return find_first(lambda m: bool(safe_table(m, delta)[0] <= allowed), 1, MOST_CHECKED)


def _requirement(problem: Problem, quantity: Quantity) -> Requirement:
    task, held = problem.task, problem.held
    sizes = class_sizes(task.y, task.n_classes)  # nobody counts held-out labels
    of_class = quantity.count_rows(sizes) / task.n
    if held is not None:
        of, rows = len(held), round(len(held) * of_class)
    else:
        of, rows = problem.outer.sizes[0].n_select, typical_units(problem, quantity)
    share = of / problem.all_rows.n * of_class  # of all rows: there, and of this class
    needed = tuple(_compute_needed(at_least, quantity.delta, share, held is not None) for at_least in WANTED)
    name = problem.study.certify
    return Requirement(quantity.name, quantity.label, quantity.delta, rows, of, name, needed)


def _compute_needed(at_least: float, delta: float, share: float, held_out: bool) -> Needed:
    allowed = 1 - at_least
    if not held_out:
        rows = fewest_rows_averaged(allowed, delta)
        return Needed(at_least, rows, None, None, ceil(rows / share))
    rows, misses = fewest_rows(allowed, 0, delta), 1
    while misses < fewest_rows(allowed, misses, delta) * allowed / 2:
        misses += 1
    return Needed(at_least, rows, fewest_rows(allowed, misses, delta), misses, ceil(rows / share))
