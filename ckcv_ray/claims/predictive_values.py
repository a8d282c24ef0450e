"""A cut-off for a predictive value: PPV or NPV at least v where a stated share of patterns is positive.

Let t_1, .., t_J be cut-offs fixed without the held-out rows, s_j and c_j the recalls of the positive class
and of the other at t_j, and V_j the value that follows from them at the stated share: it increases in both.
Given the labels, the rows missed and those wrongly flagged at t_j are binomial and independent. Test j
passes if V at the Clopper-Pearson bounds of both recalls, each at d / 2, is at least v: if V_j < v, one of
the two bounds has failed, which has a probability of at most d. The tests go from t_1 on to the
first that fails; the last that passed, T, is used. P(V_T < v) <= d, and d is not divided by J: if V_T < v,
then the test of the first j with V_j < v, which is fixed, has passed. Nothing is assumed of how V_j depends
on j.

What is proven of the value is v. Of the recalls at T it is their bounds for all J cut-offs together, each at
1 / J of its level, since T depends on the same counts; they hold with probability 1 - d as well.

Cut-offs come from the scores of F*'s members in the rows of their estimate sets, from which they have not
learned. The first is the one with the best prospects of passing, if as many rows as there were missed, and
``FLAGGED_BEYOND`` more than there wrongly flagged; the others flag more rows of the class that is to be
right, to the last at which the value measured there is large enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ckcv_ray.claims.by_class import (
    claim_nothing,
    describe_predictive,
    describe_recall,
    leave_out,
    plan_claims,
)
from ckcv_ray.claims.claim import NOTHING, ONE_SOURCE, Claim, describe_claim, make_claim, name_quantity
from ckcv_ray.claims.cut_offs import CutOff, orient_scores
from ckcv_ray.claims.fixed_sequence import FixedSequence
from ckcv_ray.claims.held_out_predictions import HeldOutPredictions
from ckcv_ray.claims.percent import floor_percent, format_level, format_percent
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Classes, Values
from ckcv_ray.core.bounds.binomial import MAX_ROWS, clopper_pearson
from ckcv_ray.study import BINARY_RECALLS, Predictive, Problem, parse_predictive

N_CUT_OFFS = 10
N_CONSIDERED = 100  # cut-offs, evenly spaced among the scores of the class
FLAGGED_BEYOND = 2  # rows wrongly flagged beyond those expected: the first test should not fail by chance


class CountedCutOff(NamedTuple):
    """What was counted at a cut-off.

    Attributes:
        cut_off: the cut-off.
        missed: held-out rows of the positive class that are not flagged.
        flagged: held-out rows of the other class that are.
    """

    cut_off: CutOff
    missed: int
    flagged: int


@dataclass(frozen=True)
class ValueTests(FixedSequence[CountedCutOff]):
    """Tests of a predictive value at cut-offs in a fixed order.

    Attributes:
        counts: at each cut-off, in the order of the tests.
        rows: held-out rows of the positive class, and of the other.
        predictive: the value.
        least: what it has to be at least, in (0, 1).
        delta: of each test, and of the recalls at all cut-offs together.
    """

    counts: tuple[CountedCutOff, ...]
    rows: tuple[int, int]
    predictive: Predictive
    least: float
    delta: float

    def passes(self, counted: CountedCutOff, copies: int) -> bool:
        """Return whether the value at a cut-off is proven to be as large as required."""
        return self.bound_value(counted, copies) >= self.least

    def bound_value(self, counted: CountedCutOff, copies: int = 0) -> float:
        """Return the lower bound on the value at a cut-off; ``copies`` of the rows are not counted."""
        wrong = self._bound_wrong(counted, self.delta / len(BINARY_RECALLS), copies)
        return self.predictive.compute(1 - wrong[0], 1 - wrong[1])

    def bound_recalls(self, copies: int = 0) -> tuple[float, float]:
        """Return upper bounds on the shares missed and wrongly flagged at the chosen cut-off."""
        each = self.delta / len(BINARY_RECALLS) / len(self.counts)
        return self._bound_wrong(self.chosen, each, copies)

    def measure(self) -> float:
        """Return the value at the chosen cut-off as it was counted, without a bound."""
        missed, flagged = (
            wrong / max(1, rows) for wrong, rows in zip(self.chosen[1:], self.rows, strict=True)
        )
        return self.predictive.compute(1 - missed, 1 - flagged)

    def _bound_wrong(self, counted: CountedCutOff, delta: float, copies: int) -> tuple[float, float]:
        left = [leave_out(*pair, copies) for pair in zip(counted[1:], self.rows, strict=True)]
        missed, flagged = (float(clopper_pearson(*pair, delta)) for pair in left)
        return missed, flagged


def fix_cut_offs(
    score: Values, y: Classes, positive: int, predictive: Predictive, least: float, held: int, delta: float
) -> tuple[CutOff, ...]:
    """Return the cut-offs to test, in their order.

    Args:
        score: larger for rows of class 1, in rows that the models have not learned from, none of them held
            out, (rows,).
        y: their classes, 0 or 1.
        positive: number of the class of the rows that are flagged.
        predictive, least, delta: as in ``ValueTests``.
        held: number of rows held out.
    """
    right = positive if predictive.name == "ppv" else 1 - positive  # the class that is to be right
    oriented = orient_scores(score, right)
    of_class, outside = np.sort(oriented[y == right]), np.sort(oriented[y != right])
    values = np.unique(of_class if len(of_class) else oriented)[::-1]
    values = values[np.unique(np.linspace(0, len(values) - 1, N_CONSIDERED).round().astype(int))]
    shares = np.array([1 - _share_from(of_class, values), _share_from(outside, values)])  # wrong ones
    expected = round(held * len(of_class) / len(y))
    rows = np.array([[expected], [held - expected]])
    wrong = np.ceil(shares * rows).astype(int)
    wrong[1] = np.minimum(wrong[1] + FLAGGED_BEYOND, rows[1])
    bounds = clopper_pearson(wrong, rows, delta / len(BINARY_RECALLS))
    way = 1 if predictive.name == "ppv" else -1  # recalls of the positive class first
    measured, proven = (
        np.array([predictive.compute(*recalls[::way]) for recalls in (1 - wrongs.T).tolist()])
        for wrongs in (shares, bounds)
    )
    first = int(np.argmax(proven))
    enough = np.flatnonzero(measured >= least)
    last = max(first, int(enough[-1])) if len(enough) else first
    tested = np.unique(np.linspace(first, last, N_CUT_OFFS).round().astype(int))
    # those at which rows get class ``right`` if their score for it is at least a value
    chosen = values[tested] if right == positive else np.nextafter(-values[tested], np.inf)
    return tuple(CutOff(value, positive) for value in chosen.tolist())


def count_cut_offs(
    score: Values, y: Classes, positive: int, cut_offs: tuple[CutOff, ...]
) -> tuple[CountedCutOff, ...]:
    """Return the counts at each cut-off, from scores and classes of the rows held out."""
    flags = [(cut_off, cut_off.flag(score)) for cut_off in cut_offs]
    return tuple(
        CountedCutOff(cut_off, int(np.sum(~flag & (y == positive))), int(np.sum(flag & (y != positive))))
        for cut_off, flag in flags
    )


def claim_value(predictions: HeldOutPredictions, rule: Rule, copies: int = 0) -> dict[str, Claim]:
    """Return the claims about a required predictive value and about both recalls, by their quantity.

    Args:
        predictions: of a problem whose study requires the value.
        rule: what gives rows their score, without a cut-off.
        copies: held-out rows that are not counted as independent.
    """
    problem, tests = predictions.problem, _test_cut_offs(predictions, predictions.predict(rule).score)
    if not tests.passed:
        return _explain_lacks(problem, rule, tests)
    cut_off = tests.chosen.cut_off
    rule = Rule(rule.name, rule.seed, cut_off=cut_off)
    required = make_claim(
        quantity=str(tests.predictive),
        label=problem.task.classes[problem.positive],
        classifier=rule.name,
        bound=1 - tests.least if tests.count_passed(copies) >= tests.passed else 1.0,
        delta=tests.delta,
        statement=_state_value(problem, rule, tests),
    )
    made = [required, *_claim_recalls(problem, rule, tests, copies)]
    return {claim["quantity"]: {**claim, "cut_off": cut_off.value} for claim in made}


def _claim_recalls(problem: Problem, rule: Rule, tests: ValueTests, copies: int) -> Iterator[Claim]:
    """Yield the claims about both recalls at the cut-off that was chosen."""
    found = zip(BINARY_RECALLS, tests.chosen[1:], tests.rows, tests.bound_recalls(copies), strict=True)
    for name, wrong, rows, bound in found:
        (quantity,) = plan_claims(problem, name)
        method = (
            f"holdout: {wrong} of {rows} previously unused rows of class {quantity.label!r} wrong, "
            f"Clopper-Pearson for {len(tests.counts)} cut-offs together{quantity.jointly}"
        )
        says = describe_recall(quantity, rule.classifier(), bound)
        yield make_claim(
            quantity=name,
            label=quantity.label,
            classifier=rule.name,
            bound=bound,
            errors=wrong,
            rows=rows,
            delta=quantity.delta,
            statement=describe_claim(ONE_SOURCE, quantity.delta, says, method),
        )


def _test_cut_offs(predictions: HeldOutPredictions, score: Values) -> ValueTests:
    """Return the tests of the value that a study requires, given the scores of the rows held out."""
    problem, held, condition = predictions.problem, predictions.held, predictions.problem.required
    assert condition is not None
    predictive = parse_predictive(condition.name)
    assert predictive is not None
    delta, positive = predictions.delta / 2, problem.positive
    members, task = predictions.models.best.members, problem.task
    sets = [problem.find_estimate_rows(member.k, member.split) for member in members]
    scores = [member.model.predict(task.X[rows]).score for member, rows in zip(members, sets, strict=True)]
    classes = np.concatenate([task.y[rows] for rows in sets])
    cut_offs = fix_cut_offs(
        np.concatenate(scores), classes, positive, predictive, condition.value, len(held.y), delta
    )
    positives = int(np.sum(held.y == positive))
    rows = positives, len(held.y) - positives
    counts = count_cut_offs(score, held.y, positive, cut_offs)
    return ValueTests(counts, rows, predictive, condition.value, delta)


def _share_from(ordered: Values, values: Values) -> Values:
    """Return the share of ascending scores that are at least each value; 0 of no scores."""
    return np.asarray((len(ordered) - np.searchsorted(ordered, values)) / max(1, len(ordered)))


def _state_value(problem: Problem, rule: Rule, tests: ValueTests) -> str:
    label, second = (problem.task.classes[number] for number in (problem.positive, 1 - problem.positive))
    phrase = name_quantity(str(tests.predictive), None)
    says = (
        f"the {phrase} of {rule.classifier()} is at least {floor_percent(tests.least)}: "
        f"{describe_predictive(tests.predictive, label)}"
    )
    (missed, flagged), (positives, negatives) = tests.chosen[1:], tests.rows
    method = (
        f"holdout: {missed} of {positives} previously unused rows of class {label!r} and {flagged} of "
        f"{negatives} of class {second!r} wrong, Clopper-Pearson for both; {tests.passed} of "
        f"{len(tests.counts)} cut-offs passed in a fixed sequence; jointly with the recalls with "
        f"probability at least {format_level(2 * tests.delta)}"
    )
    return describe_claim(ONE_SOURCE, tests.delta, says, method)


def _explain_lacks(problem: Problem, rule: Rule, tests: ValueTests) -> dict[str, Claim]:
    """Return claims that say that no cut-off qualifies, and what it would take."""
    name = str(tests.predictive)
    phrase = name_quantity(name, None)
    of_value = f"{NOTHING} the {phrase} of {rule.classifier()}: {_explain_lack(problem.all_rows.n, tests)}"
    of_recall = f"no cut-off is chosen, since for none the {phrase} that is required is proven."
    recalls = {each: next(claim_nothing(problem, rule, each, of_recall)) for each in BINARY_RECALLS}
    value: Claim = {**recalls[BINARY_RECALLS[0]], "quantity": name, "errors": None, "rows": None}
    return {name: {**value, "delta": tests.delta, "statement": of_value}, **recalls}


def _explain_lack(n: int, tests: ValueTests) -> str:
    """Return what the first cut-off proves, and how many of n rows in all it would take."""
    (missed, flagged), (positives, negatives) = tests.chosen[1:], tests.rows
    needed = _count_rows_needed(tests)
    advice = "more rows alone do not help, since what is measured there is too small"
    if needed is not None:
        in_all = float(f"{n * needed / sum(tests.rows):.2g}")
        advice = f"it takes about {in_all:,.0f} new rows, none of these, if as many are wrong as were here"
    return (
        f"at the first of {len(tests.counts)} cut-offs {positives - missed:,} of {positives:,} positive "
        f"held-out rows are flagged, and {flagged:,} of {negatives:,} others, which is "
        f"{format_percent(tests.measure())} measured, proves at least "
        f"{floor_percent(tests.bound_value(tests.chosen))}, and not {floor_percent(tests.least)}; {advice}."
    )


def _count_rows_needed(tests: ValueTests) -> int | None:
    """Return how many held-out rows prove the value if as many are wrong; None if very many do not."""
    if tests.measure() <= tests.least:
        return None
    missed, flagged = (wrong / max(1, rows) for wrong, rows in zip(tests.chosen[1:], tests.rows, strict=True))
    share = tests.rows[0] / sum(tests.rows)
    needed = tests.predictive.count_rows(tests.least, share, tests.delta, missed, flagged)
    return needed if needed < MAX_ROWS else None
