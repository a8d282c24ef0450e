"""Claims by class and of the AUC: sensitivity, specificity, the recall of each class, and pairs in order.

Everything here holds given the labels of all rows: rows of a class are independent draws from its
distribution, whatever its share. So the claims remain valid if the shares of the classes change. The number
of wrong rows of a class, or of wrong disjoint pairs of a row of each class, is binomial.

A cut-off of scores with a guarantee, sensitivity at least tau, is chosen on the rows that certify. A row is
flagged, that is, classified as positive, if its score is at least t. Let n+ held-out rows be positive, U_d
Clopper-Pearson's bound, k the largest count with U_d(k; n+) <= 1 - tau, and t the (k + 1)-th smallest of
their scores. There is no grid, the choice costs nothing, and ties are allowed (docs/theory/bounds.md, "A
cut-off with a guarantee"). For a specificity, the same is done on the negatives, from above: t is just beyond
the (k + 1)-th largest.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from ckcv_ray.claims.quantity import (
    CLOPPER_PEARSON,
    Claim,
    Counts,
    HeldOutPredictions,
    Need,
    Quantity,
    bound_count,
    read_quantity,
)
from ckcv_ray.claims.rules import CutOff, Rule, orient_scores
from ckcv_ray.core.bounds.binomial import bound_table, find_fewest_rows
from ckcv_ray.core.draws import draw_pairs
from ckcv_ray.core.measures import Output
from ckcv_ray.core.quantities import BINARY_RECALLS, register_quantity
from ckcv_ray.errors import format_level
from ckcv_ray.learners.ensemble import count_classes
from ckcv_ray.study.problem import Problem

USUAL = (0.2, 0.1, 0.05)  # bounds for which the rows needed are counted before a run


class Recall(Quantity):
    """The share of a class's rows that a rule classifies correctly, one claim for each class."""

    name = phrase = "recall"
    counted = "judged rows of its class"
    by_class = is_binomial = True
    usual = USUAL
    rows_alone = "rows of a class"
    share = "recalls"
    states = (
        "the {claim.name} of {who} is {claim.says}: the probability that a new row of class {claim.label!r} "
        "is classified correctly, whatever the share of this class"
    )

    def list_classes(self, problem: Problem) -> list[int]:
        """Return the numbers of the classes for which it is claimed."""
        return list(range(problem.task.n_classes))

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield a claim for each class, at the cut-off that the study requires; see ``Quantity``."""
        required, predicted = held.problem.required, held.predict(rule)
        chosen: tuple[CutOff | None, str, int] = None, "", 0
        if required is not None:
            quantity = read_quantity(required.name)
            chosen = held.make_once(("cut-off", rule), partial(quantity.choose_cut_off, held, rule))
        cut_off, none, count = chosen
        if cut_off is not None:
            rule = replace(rule, cut_off=cut_off)
            predicted = predicted._replace(label=cut_off.classify(predicted.score))
        (of_all, together), y = share_recalls(held.problem), held.rows.y[held.order]
        delta = of_all / together
        jointly = f"; jointly for the {together} classes with probability at least {format_level(of_all)}"
        for number in self.list_classes(held.problem):
            label = held.problem.task.classes[number]
            wrong = predicted.label[held.order][y == number] != number
            errors, of, n = 0 if none else int(np.sum(wrong)), "wrong", len(wrong)
            guaranteed = required is not None and required.name == str(self) and not none
            if guaranteed:
                errors, of = count, "may be missed by the cut-off chosen"
                bound, name = bound_count(errors, n, delta, held.copies), CLOPPER_PEARSON
            elif required is not None and required.kind.made_of:
                bound = bound_count(errors, n, delta / count, held.copies)
                name = f"{CLOPPER_PEARSON} for {count} cut-offs together"
            else:
                bound, name = held.bound_wrong(wrong, delta)
            claim = Claim(self, rule.name, bound, delta, "", label=label, errors=errors, rows=n)
            claim = replace(claim, cut_off=rule.cut_off and rule.cut_off.value, guaranteed=guaranteed)
            method = f"holdout: {errors} of {n} previously unused rows of class {label!r} {of}, {name}"
            lack = none or ("" if n else f"there are no held-out rows of class {label!r}.")
            method += jointly * (together > 1)
            yield self.conclude(claim, held, method, lack)

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows of each class it takes; nothing where a predictive value says this."""
        if problem.required is not None and problem.required.kind.made_of:
            return
        table, (of_all, together) = problem.all_rows, share_recalls(problem)
        sizes = count_classes(table.y, table.n_classes)
        for number in self.list_classes(problem):
            label, share = table.classes[number], sizes[number] / table.n
            yield self.need(problem, delta=of_all / together, label=label, share=share)


def share_recalls(problem: Problem) -> tuple[float, int]:
    """Return the delta of all recalls together, and the number of classes for which they are claimed.

    The delta is half of their share where a predictive value is required.
    """
    delta = problem.study.delta_of_claim
    recalls = [each for each in problem.certification.quantities.values() if isinstance(each, Recall)]
    followed = problem.required is not None and problem.required.kind.made_of
    return delta / 2 if followed else delta, sum(len(recall.list_classes(problem)) for recall in recalls)


class BinaryRecall(Recall):
    """The recall of one of two classes."""

    two_classes = True
    brings = BINARY_RECALLS
    of_positive: ClassVar[bool]

    def list_classes(self, problem: Problem) -> list[int]:
        """Return the number of its class."""
        return [problem.positive if self.of_positive else 1 - problem.positive]

    def choose_cut_off(self, held: HeldOutPredictions, rule: Rule) -> tuple[CutOff | None, str, int]:
        """Return the cut-off at which the recall is at least what the study requires."""
        problem, condition = held.problem, held.problem.required
        assert condition is not None
        (number,), (of_all, together) = self.list_classes(problem), share_recalls(problem)
        delta, positive = of_all / together, problem.positive
        ordered = np.sort(orient_scores(held.predict(rule).score, positive)[held.rows.y == number])
        within = bound_table(len(ordered), delta) <= 1 - condition.value
        if not within[0]:
            needed = find_fewest_rows(1 - condition.value, 0, delta)
            lack = (
                f"a cut-off with {condition} takes {needed:,} held-out rows of class "
                f"{problem.task.classes[number]!r}, and there are {len(ordered):,}."
            )
            return None, lack, 0
        misses = int(np.count_nonzero(within)) - 1  # the bound increases with the count
        value = ordered[misses] if number == positive else np.nextafter(ordered[-1 - misses], np.inf)
        return CutOff(float(value), positive), "", misses


@register_quantity
class Sensitivity(BinaryRecall):
    """The recall of the positive class."""

    name = phrase = "sensitivity"
    counted = "judged rows of the positive class"
    of_positive = True


@register_quantity
class Specificity(BinaryRecall):
    """The recall of the class that is not the positive one."""

    name = phrase = "specificity"
    counted = "judged rows of the other class"
    of_positive = False


register_quantity(Recall)


@register_quantity
class Auc(Quantity):
    """The probability that a row of one class has a larger score than one of the other."""

    name, phrase = "auc", "AUC"
    counted = "judged rows of the rarer class"
    two_classes = is_binomial = True
    usual = USUAL
    needs = Output.RANK
    rows_alone = "rows of a class"
    states = (
        "the AUC of {who} is {claim.says}: the probability that the score of a new row of class "
        "{two[1]!r} is larger than that of one of class {two[0]!r} (a tie counts as an error), whatever the "
        "shares of the classes"
    )
    seen = (
        "{claim.errors} of {claim.rows} disjoint pairs of previously unused rows not in order of score, "
        "{bound}"
    )
    measured_as = "{rate} ({part:,} of {rows:,} pairs in order)"
    lack = "there are no held-out rows of one of the classes."

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return which disjoint pairs of a row of each class are not in order, in the order drawn."""
        score = held.predict(rule).score
        low, high = draw_pairs(held.rows.y, held.problem.draws)
        wrong = ~(score[high] > score[low])
        return Counts(wrong.astype(float), int(np.sum(wrong)), len(wrong))

    def doubt(self, claim: Claim) -> str:
        """Return a sentence if a guess, whose AUC is one half, reaches what is proven."""
        if claim.bound is not None and claim.bound < 0.5:
            return ""
        proven = f"An AUC of {claim.says} ({claim.certification})"
        return f"{proven} says nothing beyond a guess, whose AUC is 50 %."

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows of the rarer class it takes."""
        table = problem.all_rows
        share = min(count_classes(table.y, table.n_classes)) / table.n
        yield self.need(problem, of=" of the rarer class", share=share)
