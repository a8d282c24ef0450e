"""Answer the rows that a classifier is confident of, and no others: what is proven of them, and how many.

A row is answered if the confidence of the rule in it is at least t: of two classes the distance of its score
from the rule's own cut-off, of several the margin between its two largest scores. Let t_1 > ... > t_J be
fixed without the held-out rows, r_j the error among patterns answered at t_j, and y what it may be. The tests
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

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.by_class import leave_out
from ckcv_ray.claims.claim import NOTHING, ONE_SOURCE, Claim, describe_claim, make_claim
from ckcv_ray.claims.fixed_sequence import FixedSequence
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.claims.percent import ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.bounds.binomial import MAX_ROWS, clopper_pearson, find_fewest_rows
from ckcv_ray.study import ANSWERED, ANSWERED_ERROR

N_THRESHOLDS = 10
ALLOWED = 2  # wrong rows at the first threshold: if none were, one by chance would end the sequence
STEP = 1.05  # as many rows as there are, in the search for how many it takes


class Answered(NamedTuple):
    """What was counted at a threshold.

    Attributes:
        threshold: least confidence of a row that is answered.
        wrong, rows: held-out rows answered that are wrong, and all that are answered.
    """

    threshold: float
    wrong: int
    rows: int


@dataclass(frozen=True)
class AnsweredTests(FixedSequence[Answered]):
    """Tests of the rows answered, from the most cautious threshold down.

    Attributes:
        counts: at each threshold, which descend.
        held: rows held out.
        most: largest error allowed of the rows answered, in (0, 1).
        delta: of each test, and of the bounds on the share answered together.
    """

    counts: tuple[Answered, ...]
    held: int
    most: float
    delta: float

    def passes(self, counted: Answered, copies: int) -> bool:
        """Return whether few enough of the rows answered at a threshold are wrong."""
        left = leave_out(counted.wrong, counted.rows, copies)
        return bool(clopper_pearson(*left, self.delta) <= self.most)

    def bound_left_out(self, copies: int = 0) -> float:
        """Return the upper bound on the share of patterns that are not answered at the chosen threshold."""
        left = leave_out(self.held - self.chosen.rows, self.held, copies)
        return float(clopper_pearson(*left, self.delta / len(self.counts)))


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


def count_answered(confidence: Values, wrong: NDArray[np.bool_], thresholds: Values) -> tuple[Answered, ...]:
    """Return the counts at each threshold, of held-out rows with their confidence and whether it is wrong."""
    chosen = ((float(t), confidence >= t) for t in thresholds)
    return tuple(Answered(t, int(np.sum(wrong & rows)), int(np.sum(rows))) for t, rows in chosen)


def claim_answered(predictions: HeldOutPredictions, rule: Rule, copies: int = 0) -> dict[str, Claim]:
    """Return the claims about the rows answered, by their quantity.

    Args:
        predictions: of a problem whose study says how many of them may be wrong.
        rule: what classifies the rows.
        copies: held-out rows that are not counted as independent.
    """
    problem, models, held = predictions.problem, predictions.models, predictions.held
    certification = problem.study.certification
    assert certification is not None
    assert certification.answering is not None
    most, delta = certification.answering.value, predictions.delta / 2
    of_members = [  # of each member of F* in the rows of its estimate set
        Rule(f"member:{member.split}").measure_confidence(models, problem.task.X[rows])
        for member in models.best.members
        for rows in [problem.find_estimate_rows(member.k, member.split)]
    ]
    thresholds = fix_thresholds(np.concatenate(of_members), len(held.y), most, delta)
    wrong = predictions.predict(rule).label != held.y
    counts = count_answered(rule.measure_confidence(models, held.X), wrong, thresholds)
    tests = AnsweredTests(counts, len(held.y), most, delta)
    if not tests.passed:
        of_share = f"{NOTHING} the share of rows that {rule.classifier()} answers"
        lacks = (
            _explain_lack(rule, tests, problem.all_rows.n),
            f"{of_share}: nothing is proven of their error.",
        )
        pairs = zip(ANSWERED, lacks, strict=True)
        return {name: {**_make_claim(name, rule, tests), "statement": lack} for name, lack in pairs}
    bounds = most if tests.count_passed(copies) >= tests.passed else 1.0, tests.bound_left_out(copies)
    return {
        name: {
            **_make_claim(name, rule, tests),
            "bound": bound,
            "statement": describe_claim(ONE_SOURCE, delta, *sentence),
            "least_confidence": tests.chosen.threshold,
        }
        for name, bound, sentence in zip(ANSWERED, bounds, _describe_tests(rule, tests), strict=True)
    }


def _make_claim(name: str, rule: Rule, tests: AnsweredTests) -> Claim:
    """Return a claim with its counts, which says nothing yet."""
    wrong, rows = tests.chosen.wrong, tests.chosen.rows
    return make_claim(
        quantity=name,
        classifier=rule.name,
        bound=1.0,
        errors=wrong if name == ANSWERED_ERROR else tests.held - rows,
        rows=rows if name == ANSWERED_ERROR else tests.held,
        delta=tests.delta,
        statement="",
    )


def _describe_tests(rule: Rule, tests: AnsweredTests) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return what is proven of the error and of the share answered, and how, as clauses."""
    (threshold, wrong, rows), who = tests.chosen, rule.classifier()
    from_on = f"its confidence is at least {threshold:.6g}"
    jointly = f"jointly with probability at least {format_level(2 * tests.delta)}"
    n_tests, share = len(tests.counts), floor_percent(1 - tests.bound_left_out())
    return (
        (
            f"a new pattern that {who} answers, since {from_on}, is misclassified with probability at most "
            f"{ceil_percent(tests.most)}",
            f"holdout: {wrong} of {rows} previously unused rows answered wrong, Clopper-Pearson; "
            f"{tests.passed} of {n_tests} thresholds passed in a fixed sequence; {jointly}",
        ),
        (
            f"{who} answers at least {share} of new patterns: a pattern if {from_on}",
            f"holdout: {rows} of {tests.held} previously unused rows answered, Clopper-Pearson for "
            f"{n_tests} thresholds together; {jointly}",
        ),
    )


def _explain_lack(rule: Rule, tests: AnsweredTests, n: int) -> str:
    """Return the sentence for an error that not even the most confident rows prove; n rows are in all."""
    threshold, wrong, rows = tests.chosen
    if not rows:
        return (
            f"{NOTHING} the rows that {rule.classifier()} answers: none of {tests.held:,} held-out rows has "
            f"the confidence of those that the first test would answer, {threshold:.6g}; on new rows, none "
            "of these, more of them may help, or a learner whose scores differ more from row to row."
        )
    rate, bound = wrong / rows, clopper_pearson(wrong, rows, tests.delta)
    needed = _count_rows_needed(rate, rows, tests.most, tests.delta)
    advice = "more rows alone do not help, since too many of them are wrong"
    if needed is not None:
        in_all = float(f"{n * needed / rows:.2g}")
        advice = f"it takes about {in_all:,.0f} new rows, none of these, if as many are wrong as were here"
    return (
        f"{NOTHING} the rows that {rule.classifier()} answers: of the {rows:,} most "
        f"confident of {tests.held:,} held-out rows {wrong:,} are wrong ({format_percent(rate)}), which "
        f"proves at most {ceil_percent(bound)} and not {ceil_percent(tests.most)}; {advice}."
    )


def _count_rows_needed(rate: float, rows: int, most: float, delta: float) -> int | None:
    """Return how many rows, as many of them wrong as now, prove an error; None if very many do not."""
    if rate >= most:
        return None
    while rows <= MAX_ROWS and clopper_pearson(ceil(rate * rows), rows, delta) > most:
        rows = ceil(max(1, rows) * STEP)
    return rows if rows <= MAX_ROWS else None
