"""Answer the rows that a classifier is confident of, and no others: what is proven of them, and how many.

A row is answered if the confidence of the rule in it is at least t: of two classes the distance of its score
from the rule's own cut-off, of several the margin between its two largest scores. Thresholds that are fixed
without the held-out rows are tested from the most cautious one down. What is proven of the error is what is
allowed, and of the share answered its bound for all thresholds together (docs/theory/bounds.md, "Answering
only confident rows").

Thresholds are quantiles of the confidence of F*'s members in the rows of their estimate sets, from which they
have not learned: in rows that a model has learned from it is more confident than in new ones. The first is
the most cautious useful one: as many held-out rows are expected there as pass with ``ALLOWED`` wrong ones.
The last answers every row.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Claim, FixedSequence, Need, Quantity, Tally, bound_count, foresee_rows
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.binomial import find_fewest_rows
from ckcv_ray.core.quantities import register_quantity
from ckcv_ray.errors import ceil_percent, format_level, format_percent
from ckcv_ray.study.problem import Problem
from ckcv_ray.validation import Mask, Values

N_THRESHOLDS = 10
ALLOWED = 2  # wrong rows at the first threshold: if none were, one by chance would end the sequence


class OfAnswered(Quantity):
    """A quantity of the rows that are confident enough to be answered; both have one share of delta."""

    answers = True
    share = "answered"

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim at the last threshold that passed; see ``Quantity``."""
        most = self.find_asked(held.problem)[1]
        tests = held.make_once(("answered", rule), lambda: try_thresholds(held, rule, most))
        least = tests.chosen.threshold if tests.passed else None
        claim = Claim(self, rule.name, None, tests.delta, "", least_confidence=least)
        yield self.conclude(claim, rule.classifier(), tests, held)

    def conclude(self, claim: Claim, who: str, tests: FixedSequence, held: HeldOutPredictions) -> Claim:
        """Return the claim with what the tests prove."""
        raise NotImplementedError

    def find_asked(self, problem: Problem) -> tuple[str, float]:
        """Return the option that says what the error may be."""
        answering = problem.certification.answering
        assert answering is not None
        return f"answer={answering}", answering.value

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield nothing: how many rows are answered is not known."""
        yield from ()


@register_quantity
class AnsweredError(OfAnswered):
    """The error among the rows answered."""

    name, phrase = "answered_error", "error of the rows answered"
    at_most = True
    measured_as = "{rate} wrong ({part:,} of {rows:,} {on} that are answered)"

    def conclude(self, claim: Claim, who: str, tests: FixedSequence, held: HeldOutPredictions) -> Claim:
        """Return the claim with the error that is allowed; where no test passes, with what it would take."""
        threshold, (wrong,), (rows,) = tests.chosen
        most = self.find_asked(held.problem)[1]
        bound = most if tests.count_passed(held.copies) >= tests.passed else None
        claim = replace(claim, bound=bound, errors=wrong, rows=rows)
        if not tests.passed:
            lack = explain_few_answers(held.problem.all_rows.n, len(held.rows.y), most, tests)
            return claim.give_up(f"the rows that {who} answers", lack)
        return claim.state(
            f"a new row that {who} answers, since its confidence is at least {threshold:.6g}, is "
            f"misclassified with probability at most {ceil_percent(most)}",
            f"holdout: {wrong} of {rows} previously unused rows answered wrong, Clopper-Pearson; "
            f"{tests.passed} of {len(tests.counts)} thresholds passed in a fixed sequence; {_join(tests)}",
            held.state_premise(self.of_counts),
        )

    def doubt(self, claim: Claim) -> str:
        """Return a sentence: it is not compared with constants."""
        if claim.bound is None:
            return ""
        return (
            "That the rows answered are wrong less often than by always predicting any one class is not "
            "proven."
        )

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows have to be answered; the other half of delta is that of the share answered."""
        yield foresee_rows(problem, self, problem.study.delta_of_claim / 2)


@register_quantity
class AnsweredShare(OfAnswered):
    """The share of rows that are answered."""

    name, phrase = "answered_share", "share of rows answered"
    measured_as = "{rate} ({part:,} of {rows:,} {on} answered)"

    def conclude(self, claim: Claim, who: str, tests: FixedSequence, held: HeldOutPredictions) -> Claim:
        """Return the claim with the share that is answered; nothing where no test passes."""
        (threshold, _, (rows,)), every = tests.chosen, len(held.rows.y)
        bound = bound_count(every - rows, every, tests.delta / len(tests.counts), held.copies)
        claim = replace(claim, bound=bound, errors=every - rows, rows=every)
        if not tests.passed:
            return claim.give_up(f"the share of rows that {who} answers", "nothing is proven of their error.")
        return claim.state(
            f"{who} answers {claim.says} of new rows: a row if its confidence is at least {threshold:.6g}",
            f"holdout: {rows} of {every} previously unused rows answered, Clopper-Pearson for "
            f"{len(tests.counts)} thresholds together; {_join(tests)}",
            held.state_premise(self.of_counts),
        )


def try_thresholds(held: HeldOutPredictions, rule: Rule, most: float) -> FixedSequence:
    """Return the tests of the rows that a rule answers, from the most cautious threshold down."""
    X, rows, delta = held.problem.task.X, held.rows, held.delta / 2
    confidence = [  # of each member of F* in the rows of its estimate set
        Rule(f"member:{member.split}").measure_confidence(held.models, X[unlearned])
        for member, unlearned in held.list_unlearned()
    ]
    thresholds = fix_thresholds(np.concatenate(confidence), len(rows.y), most, delta)
    wrong = held.predict(rule).label != rows.y
    counts = count_answered(rule.measure_confidence(held.models, rows.X), wrong, thresholds)
    return FixedSequence(counts, lambda shares: shares[0] <= most, delta)


def explain_few_answers(n: int, held: int, most: float, tests: FixedSequence) -> str:
    """Return why no test passes, and how many rows it would take, as the end of a sentence.

    Args:
        n, held: rows of the table, and those held out.
        most: largest error allowed of the rows answered.
        tests: of which none passes.
    """
    threshold, (wrong,), (rows,) = tests.chosen
    if not rows:
        return (
            f"none of {held:,} held-out rows has the confidence of those that the first test would "
            f"answer, {threshold:.6g}; on new rows, none of these, more of them may help, or a learner "
            "whose scores differ more from row to row."
        )
    (bound,) = tests.bound(tests.chosen)
    return (
        f"of the {rows:,} most confident of {held:,} held-out rows {wrong:,} are wrong "
        f"({format_percent(wrong / rows)}), which proves at most {ceil_percent(bound)} and not "
        f"{ceil_percent(most)}; {tests.advise(n, 'too many of them are wrong')}."
    )


def _join(tests: FixedSequence) -> str:
    return f"jointly with probability at least {format_level(2 * tests.delta)}"


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


def count_answered(confidence: Values, wrong: Mask, thresholds: Values) -> tuple[Tally, ...]:
    """Return the counts at each threshold, of held-out rows with their confidence and whether it is wrong."""
    chosen = ((float(t), confidence >= t) for t in thresholds)
    return tuple(Tally(t, (int(np.sum(wrong & rows)),), (int(np.sum(rows)),)) for t, rows in chosen)
