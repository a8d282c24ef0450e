"""Answer the rows that a classifier is confident of, and no others: what is proven of them, and how many.

A row is answered if the confidence of the rule in it is at least t: of two classes the distance of its score
from the rule's own cut-off, of several the margin between its two largest scores. Let t_1 > ... > t_J be
fixed without the held-out rows, r_j the error among rows answered at t_j, and y what it may be. The tests
of r_j > y go from t_1 down: test j passes if U_d(x_j; m_j) <= y, where x_j of the m_j held-out rows answered
at t_j are wrong. The first that fails ends them, and the last that passed, T, is used.

P(r_T > y) <= d, and no division of d by J is needed: let j be the first with r_j > y, which is fixed. If
r_T > y then T is j or comes after it, so test j has passed, which given m_j has a probability of at most d.
(The bound at t_T itself is not proven, only y: T depends on the counts.) Nothing is assumed of how r_j
depends on j. The share answered at t_j is binomial over all held-out rows; its lower bounds at d / J hold for
all j together, so at T too, which is why this one is divided.

Thresholds are quantiles of the confidence of F*'s members in the rows of their estimate sets, from which they
have not learned: in rows that a model has learned from it is more confident than in new ones. The first is
the most cautious useful one: as many held-out rows are expected there as pass with ``ALLOWED`` wrong ones.
The last answers every row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import (
    Claim,
    Need,
    Quantity,
    advise_rows,
    bound_count,
    check_enough,
    make_need,
)
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Mask, Values
from ckcv_ray.core.bounds.binomial import MAX_ROWS, find_fewest_rows
from ckcv_ray.core.bounds.fixed_sequence import FixedSequence
from ckcv_ray.core.percent import ceil_percent, format_level, format_percent
from ckcv_ray.core.quantities import register_quantity
from ckcv_ray.study.problem import Problem

N_THRESHOLDS = 10
ALLOWED = 2  # wrong rows at the first threshold: if none were, one by chance would end the sequence
STEP = 1.05  # as many rows as there are, in the search for how many it takes


class Answered(NamedTuple):
    """What was counted at a threshold."""

    threshold: float  # least confidence of a row that is answered
    wrong: int  # held-out rows answered that are wrong
    rows: int  # all that are answered


@dataclass(frozen=True)
class AnsweredTests(FixedSequence[Answered]):
    """Tests of the rows answered, from the most cautious threshold down.

    Attributes:
        counts: at each threshold, which descend.
        held: rows held out.
        most: largest error allowed of the rows answered, in (0, 1).
        delta: of each test, and of the bounds on the share answered together.
        n: rows of the table.
    """

    counts: tuple[Answered, ...]
    held: int
    most: float
    delta: float
    n: int = 0

    @property
    def jointly(self) -> str:
        """How sure both claims are together, as a clause."""
        return f"jointly with probability at least {format_level(2 * self.delta)}"

    def passes(self, counted: Answered, copies: int) -> bool:
        """Return whether few enough of the rows answered at a threshold are wrong."""
        return bound_count(counted.wrong, counted.rows, self.delta, copies) <= self.most

    def count_needed(self) -> int | None:
        """Return how many answered rows, as many of them wrong as now, prove an error; None if none do."""
        rate, rows = self.chosen.wrong / self.chosen.rows, self.chosen.rows
        if rate >= self.most:
            return None
        while rows <= MAX_ROWS and bound_count(ceil(rate * rows), rows, self.delta) > self.most:
            rows = ceil(rows * STEP)
        return rows if rows <= MAX_ROWS else None

    def explain_lack(self) -> str:
        """Return why no test passes, and what it would take, as the end of a sentence."""
        threshold, wrong, rows = self.chosen
        if not rows:
            return (
                f"none of {self.held:,} held-out rows has the confidence of those that the first test would "
                f"answer, {threshold:.6g}; on new rows, none of these, more of them may help, or a learner "
                "whose scores differ more from row to row."
            )
        bound = bound_count(wrong, rows, self.delta)
        advice = advise_rows(self.n, self.count_needed(), rows, "too many of them are wrong")
        return (
            f"of the {rows:,} most confident of {self.held:,} held-out rows {wrong:,} are wrong "
            f"({format_percent(wrong / rows)}), which proves at most {ceil_percent(bound)} and not "
            f"{ceil_percent(self.most)}; {advice}."
        )


class OfAnswered(Quantity):
    """A quantity of the rows that are confident enough to be answered; both have one share of delta."""

    answers = True
    share = "answered"

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim at the last threshold that passed; see ``Quantity``."""
        tests = held.make_once(("answered", rule), lambda: self._test(held, rule))
        least = tests.chosen.threshold if tests.passed else None
        claim = Claim(self, rule.name, None, tests.delta, "", least_confidence=least)
        yield self.conclude(claim, rule.classifier(), tests, held.copies)

    def _test(self, held: HeldOutPredictions, rule: Rule) -> AnsweredTests:
        condition, X, rows = held.problem.certification.answering, held.problem.task.X, held.rows
        assert condition is not None
        confidence = [  # of each member of F* in the rows of its estimate set
            Rule(f"member:{member.split}").measure_confidence(held.models, X[unlearned])
            for member, unlearned in held.list_unlearned()
        ]
        n, delta = len(rows.y), held.delta / 2
        thresholds = fix_thresholds(np.concatenate(confidence), n, condition.value, delta)
        wrong = held.predict(rule).label != rows.y
        counts = count_answered(rule.measure_confidence(held.models, rows.X), wrong, thresholds)
        return AnsweredTests(counts, n, condition.value, delta, held.problem.all_rows.n)

    def conclude(self, claim: Claim, who: str, tests: AnsweredTests, copies: int) -> Claim:
        """Return the claim with what the tests prove."""
        raise NotImplementedError


@register_quantity
class AnsweredError(OfAnswered):
    """The error among the rows answered."""

    name, phrase = "answered_error", "error of the rows answered"
    at_most = True
    counted, measured_as = "rows answered wrong", "{rate} wrong ({part:,} of {rows:,} {on} that are answered)"

    def conclude(self, claim: Claim, who: str, tests: AnsweredTests, copies: int) -> Claim:
        """Return the claim with the error that is allowed; where no test passes, with what it would take."""
        threshold, wrong, rows = tests.chosen
        bound = tests.most if tests.count_passed(copies) >= tests.passed else None
        claim, most = replace(claim, bound=bound, errors=wrong, rows=rows), ceil_percent(tests.most)
        if not tests.passed:
            return claim.give_up(f"the rows that {who} answers", tests.explain_lack())
        return claim.state(
            f"a new row that {who} answers, since its confidence is at least {threshold:.6g}, is "
            f"misclassified with probability at most {most}",
            f"holdout: {wrong} of {rows} previously unused rows answered wrong, Clopper-Pearson; "
            f"{tests.passed} of {len(tests.counts)} thresholds passed in a fixed sequence; {tests.jointly}",
        )

    def doubt(self, claim: Claim) -> str:
        """Return a sentence: it is not compared with constants."""
        if claim.bound is None:
            return ""
        return (
            "That the rows answered are wrong less often than by always predicting any one class is not "
            "proven."
        )

    def check(self, study: Any, task: Any, held: int) -> None:
        """Raise InputError if all rows held out, none of them wrong, do not prove the error allowed."""
        condition = study.certification.answering
        needed = find_fewest_rows(condition.value, 0, study.delta_of_claim / 2)
        takes, instead = " at least, all of them right", "allow more errors"
        check_enough(f"answer={condition}", needed, held, takes, instead)

    def foresee(self, problem: Problem, name: str, delta: float) -> Iterator[Need]:
        """Yield how many rows have to be answered; the other half of delta is that of the share answered."""
        assert problem.certification.answering is not None
        rows, delta = problem.all_rows.n - problem.task.n, delta / 2
        needed = find_fewest_rows(problem.certification.answering.value, 0, delta)
        says = f"takes {needed:,} held-out rows that are answered, and none of them wrong"
        yield make_need(name, self.title, delta, rows, needed, f"{says}; {rows:,} are held out")


@register_quantity
class AnsweredShare(OfAnswered):
    """The share of rows that are answered."""

    name, phrase = "answered_share", "share of rows answered"
    counted, measured_as = "held-out rows not answered", "{rate} ({part:,} of {rows:,} {on} answered)"

    def conclude(self, claim: Claim, who: str, tests: AnsweredTests, copies: int) -> Claim:
        """Return the claim with the share that is answered; nothing where no test passes."""
        (threshold, _, rows), each = tests.chosen, tests.delta / len(tests.counts)
        bound = bound_count(tests.held - rows, tests.held, each, copies)
        claim = replace(claim, bound=bound, errors=tests.held - rows, rows=tests.held)
        if not tests.passed:
            return claim.give_up(f"the share of rows that {who} answers", "nothing is proven of their error.")
        return claim.state(
            f"{who} answers {claim.says} of new rows: a row if its confidence is at least {threshold:.6g}",
            f"holdout: {rows} of {tests.held} previously unused rows answered, Clopper-Pearson for "
            f"{len(tests.counts)} thresholds together; {tests.jointly}",
        )


def fix_thresholds(confidence: Values, held: int, most: float, delta: float) -> Values:
    """Return the thresholds to test, descending; the last is 0, which answers every row.

    Args:
        confidence: in rows that the models have not learned from, none of them held out, (rows,).
        held: number of rows held out.
        most: largest error allowed of the rows answered, in (0, 1).
        delta: of each test.
    """
    ordered = np.sort(confidence)[::-1]
    shares = np.linspace(min(1.0, find_fewest_rows(most, ALLOWED, delta) / held), 1.0, N_THRESHOLDS)[:-1]
    positions = np.ceil(shares * len(ordered)).astype(np.intp) - 1
    return np.unique([0.0, *ordered[positions]])[::-1]


def count_answered(confidence: Values, wrong: Mask, thresholds: Values) -> tuple[Answered, ...]:
    """Return the counts at each threshold, of held-out rows with their confidence and whether it is wrong."""
    chosen = ((float(t), confidence >= t) for t in thresholds)
    return tuple(Answered(t, int(np.sum(wrong & rows)), int(np.sum(rows))) for t, rows in chosen)
