"""PPV, NPV and net benefit where a stated share of rows is positive, and cut-offs for a required value.

Both recalls prove what follows from them: the value increases in both, and they hold together.

A required value, PPV or NPV at least v, is tested at cut-offs that are fixed without the held-out rows, from
the first on to the first that fails; the last that passed is used. A test passes if the value at the
Clopper-Pearson bounds of both recalls, each at half of its level, is at least v. What is proven of the value
is v, and of the recalls their bounds for all cut-offs together (docs/theory/bounds.md, "A cut-off for a
predictive value").

Cut-offs come from the scores of F*'s members in the rows of their estimate sets, from which they have not
learned. The first is the one with the best prospects of passing, if as many rows as there were missed, and
``FLAGGED_BEYOND`` more than there wrongly flagged; the others flag more rows of the class that is to be
right, to the last at which the value measured there is large enough.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import (
    Claim,
    Counts,
    FixedSequence,
    Need,
    Quantity,
    Shares,
    Tally,
    foresee_rows,
)
from ckcv_ray.claims.recalls import (
    ChosenCutOff,
    Requirable,
    Sensitivity,
    Specificity,
    share_recalls,
)
from ckcv_ray.claims.rules import CutOff, Rule, orient_scores
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.quantities import BINARY_RECALLS, SHARE, argument, register_quantity
from ckcv_ray.errors import floor_percent, format_level, format_percent
from ckcv_ray.study.problem import Problem
from ckcv_ray.validation import Classes, Values

N_CUT_OFFS = 10
N_CONSIDERED = 100  # cut-offs, evenly spaced among the scores of the class
FLAGGED_BEYOND = 2  # rows wrongly flagged beyond those expected: the first test should not fail by chance
LARGEST_BOUND = 1e15  # on 1 less a net benefit, which may be far below 0


@dataclass(frozen=True)
class Predictive(Quantity):
    """A quantity that follows from both recalls where the positive class has a stated share."""

    prevalence: float = argument(SHARE, "0.02", "a prevalence")

    two_classes = True
    made_of = BINARY_RECALLS
    counted = "judged rows of each of the two classes"
    rows_alone = "rows of a class"
    share = "recalls"
    meaning: ClassVar[str]  # what it is, as a clause; {label} is the positive class

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim that follows from both recalls, at no delta of its own; see ``Quantity``."""
        pair = [next(recall.claim(held, rule)) for recall in (Sensitivity(), Specificity())]
        recalls = [0.0 if recall.bound is None else 1 - recall.bound for recall in pair]
        value, (delta, _) = self.compute(*recalls), share_recalls(held.problem)
        who = pair[0].make_rule(held.problem).classifier()
        label, bound = (
            held.problem.task.classes[held.problem.positive],
            1 - value if min(recalls) > 0 else None,
        )
        claim = Claim(self, rule.name, bound, delta, "", label=label, cut_off=pair[0].cut_off)
        if bound is None:
            lack = "nothing is proven for a recall it follows from."
            yield claim.give_up(f"the {self.title} of {who}", lack)
            return
        method = (
            f"from a sensitivity of at least {floor_percent(recalls[0])} and a specificity of at least "
            f"{floor_percent(recalls[1])}, which hold together"
        )
        yield self._write(claim, who, method, held)

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield nothing: it takes what the recalls take."""
        yield from ()

    def _write(self, claim: Claim, who: str, method: str, held: HeldOutPredictions) -> Claim:
        meaning = self.meaning.format(label=claim.label, **vars(self))
        says = f"the {self.title} of {who} is {claim.says}: {meaning}"
        return claim.state(says, method, held.state_premise(self.of_counts))

    def doubt(self, claim: Claim) -> str:
        """Return a sentence if a constant reaches what is proven."""
        reached = max(self.compute(1.0, 0.0), self.compute(0.0, 1.0))  # every row is flagged, or none
        if claim.bound is None or 1 - claim.bound > reached:
            return ""
        says = f"A {claim.name} of {claim.says} says nothing beyond a constant"
        return f"{says}, which reaches {format_percent(reached)}."


@dataclass(frozen=True)
class PredictiveValue(Predictive, Requirable):
    """PPV or NPV: how often rows that are classified as one class are of it."""

    of_positive: ClassVar[bool]  # whether rows classified as positive are to be right

    def compute(self, sensitivity: Shares, specificity: Shares) -> Shares:
        """Return it for two recalls in [0, 1], elementwise; it increases in both."""
        q = self.prevalence
        right, wrong = q * sensitivity, (1 - q) * (1 - specificity)
        if not self.of_positive:
            right, wrong = (1 - q) * specificity, q * (1 - sensitivity)
        value: Shares = right / (right + wrong + (right == 0))  # 0 where nothing is right
        return value

    def compute_wrong(self, shares: Sequence[float]) -> float:
        """Return it for the shares of wrong rows of the positive class and of the other."""
        missed, flagged = shares
        return self.compute(1 - missed, 1 - flagged)

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim; where the study requires it, from the tests of cut-offs."""
        required = held.problem.required
        if required is None or required.name != str(self):
            yield from super().claim(held, rule)
            return
        tests, least = self._test(held, rule), required.value
        positive, classes = held.problem.positive, held.problem.task.classes
        label, second = classes[positive], classes[1 - positive]
        claim = Claim(self, rule.name, None, tests.delta, "", label=label)
        if not tests.passed:
            lack = explain_lack(held.problem.all_rows.n, self, least, tests)
            yield claim.give_up(f"the {self.title} of {rule.classifier()}", lack)
            return
        cut_off, (missed, flagged), (positives, negatives) = tests.chosen
        bound = 1 - least if tests.count_passed(held.copies) >= tests.passed else None
        claim = replace(claim, bound=bound, cut_off=cut_off)
        method = (
            f"holdout: {missed} of {positives} previously unused rows of class {label!r} and {flagged} of "
            f"{negatives} of class {second!r} wrong, Clopper-Pearson for both; {tests.passed} of "
            f"{len(tests.counts)} cut-offs passed in a fixed sequence; jointly with the recalls with "
            f"probability at least {format_level(2 * tests.delta)}"
        )
        yield self._write(claim, claim.make_rule(held.problem).classifier(), method, held)

    def choose_cut_off(self, held: HeldOutPredictions, rule: Rule) -> ChosenCutOff:
        """Return the cut-off of the last test that passed."""
        tests = self._test(held, rule)
        if tests.passed:
            cut_off = CutOff(tests.chosen.threshold, held.problem.positive)
            return ChosenCutOff(cut_off, n_tested=len(tests.counts))
        lack = f"no cut-off is chosen, since for none the {self.title} that is required is proven."
        return ChosenCutOff(None, lack, n_tested=len(tests.counts))

    def _test(self, held: HeldOutPredictions, rule: Rule) -> FixedSequence:
        return held.make_once((str(self), rule), lambda: try_cut_offs(held, self, held.predict(rule).score))

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows a required value takes, of which as many are positive as in the table."""
        if self.find_asked(problem) is None:
            return
        label, delta = problem.task.classes[problem.positive], share_recalls(problem)[0]
        share = float(np.mean(problem.all_rows.y == problem.positive))

        def prove(n: int) -> float:
            positives = int(share * n)
            bounds = clopper_pearson([0, 0], [positives, n - positives], delta / 2)
            return 1 - self.compute_wrong(bounds.tolist())

        yield foresee_rows(problem, self, delta, prove, of=f" ({format_percent(share)} of class {label!r})")


@register_quantity
@dataclass(frozen=True)
class Ppv(PredictiveValue):
    """The share of the rows classified as positive that are."""

    name, phrase = "ppv", "PPV at a prevalence of {0}"
    meaning = "the probability that a row classified as {label!r} is of this class"
    of_positive = True


@register_quantity
@dataclass(frozen=True)
class Npv(PredictiveValue):
    """The share of the rows not classified as positive that are not."""

    name, phrase = "npv", "NPV at a prevalence of {0}"
    meaning = "the probability that a row classified otherwise is not of class {label!r}"
    of_positive = False


@register_quantity
@dataclass(frozen=True)
class NetBenefit(Predictive):
    """The share of true positives less that of false ones, which count as ``worth`` / (1 - ``worth``) of one.

    Vickers and Elkin, Medical Decision Making 26, 2006.
    """

    worth: float = argument(SHARE, "0.1", "the probability from which on a row is worth flagging")

    name = "net_benefit"
    phrase = "net benefit at a prevalence of {0} (a row is worth flagging from {1} on)"
    meaning = (
        "the share of rows rightly classified as {label!r}, less that of those wrongly, each of which counts "
        "as {worth} / (1 - {worth})"
    )
    largest = LARGEST_BOUND

    def compute(self, sensitivity: Shares, specificity: Shares) -> Shares:
        """Return it for two recalls in [0, 1], elementwise; it increases in both."""
        right, wrong = self.prevalence * sensitivity, (1 - self.prevalence) * (1 - specificity)
        return right - wrong * self.worth / (1 - self.worth)


@register_quantity
class Precision(Quantity):
    """The share of the rows classified as positive that are, as often as classes occur in their source."""

    name = phrase = "precision"
    counted = "judged rows classified as positive"
    two_classes = is_binomial = True
    states = (
        "the {claim.name} of {who} is {claim.says}: the probability that a new row that is classified as "
        "positive is, where classes occur as often as in the source of these rows"
    )
    seen = "{claim.errors} of {claim.rows} previously unused rows classified as positive wrong, {bound}"
    measured_as = "{rate} ({part:,} of {rows:,} {on} classified as positive)"

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return which of the rows classified as positive are not."""
        positive = held.problem.positive
        flagged = held.predict(rule).label[held.order] == positive
        wrong = held.rows.y[held.order][flagged] != positive
        return Counts(wrong.astype(float), int(np.sum(wrong)), len(wrong))

    def doubt(self, claim: Claim) -> str:
        """Return a sentence: a constant reaches the share of the positive class."""
        if claim.bound is None:
            return ""
        return "A precision is that where so many rows are positive: quote it with their share."

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows it takes, if as many are classified as positive as are."""
        share = float(np.mean(problem.all_rows.y == problem.positive))
        delta, of = problem.study.delta_of_claim, " classified as positive"
        yield foresee_rows(problem, self, delta, of=of, share=share)


def try_cut_offs(held: HeldOutPredictions, predictive: PredictiveValue, score: Values) -> FixedSequence:
    """Return the tests of the value that a study requires, given the scores of the rows held out."""
    problem, required, y = held.problem, held.problem.required, held.rows.y
    assert required is not None
    least = required.value
    delta, positive, X = held.delta / 2, problem.positive, problem.task.X
    sets = held.list_unlearned()
    scores = np.concatenate([member.model.predict(X[rows]).score for member, rows in sets])
    classes = np.concatenate([problem.task.y[rows] for _, rows in sets])
    cut_offs = fix_cut_offs(scores, classes, positive, predictive, least, len(y), delta)
    counts = count_cut_offs(score, y, cut_offs)
    return FixedSequence(counts, lambda wrong: predictive.compute_wrong(wrong) >= least, delta)


def fix_cut_offs(
    score: Values,
    y: Classes,
    positive: int,
    predictive: PredictiveValue,
    least: float,
    held: int,
    delta: float,
) -> tuple[CutOff, ...]:
    """Return the cut-offs to test, in their order.

    Args:
        score: larger for rows of class 1, in rows that the models have not learned from, none of them held
            out, (rows,).
        y: their classes, 0 or 1.
        positive: number of the class of the rows that are flagged.
        predictive, least: the value, and what it has to be at least, in (0, 1).
        held: number of rows held out.
        delta: of each test.
    """
    right = positive if predictive.of_positive else 1 - positive  # the class that is to be right
    oriented = orient_scores(score, right)
    of_class, outside = np.sort(oriented[y == right]), np.sort(oriented[y != right])
    values = np.unique(of_class if len(of_class) else oriented)[::-1]
    values = values[np.unique(np.linspace(0, len(values) - 1, N_CONSIDERED).round().astype(int))]
    shares = np.array([1 - _share_from(of_class, values), _share_from(outside, values)])  # wrong ones
    expected = round(held * len(of_class) / len(y))
    rows = np.array([[expected], [held - expected]])
    wrong = np.ceil(shares * rows).astype(int)
    wrong[1] = np.minimum(wrong[1] + FLAGGED_BEYOND, rows[1])
    bounds = clopper_pearson(wrong, rows, delta / 2)
    way = 1 if predictive.of_positive else -1  # recalls of the positive class first
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


def count_cut_offs(score: Values, y: Classes, cut_offs: tuple[CutOff, ...]) -> tuple[Tally, ...]:
    """Return what is wrong of each class at each cut-off, the positive one first, of rows held out."""
    counts = list[Tally]()
    for cut_off in cut_offs:
        wrong, positive = cut_off.classify(score) != y, y == cut_off.positive
        of_each = [(int(np.sum(wrong[part])), int(np.sum(part))) for part in (positive, ~positive)]
        counts.append(Tally(cut_off.value, *zip(*of_each, strict=True)))
    return tuple(counts)


def _share_from(ordered: Values, values: Values) -> Values:
    """Return the share of ascending scores that are at least each value; 0 of no scores."""
    return np.asarray((len(ordered) - np.searchsorted(ordered, values)) / max(1, len(ordered)))


def explain_lack(n: int, predictive: PredictiveValue, least: float, tests: FixedSequence) -> str:
    """Return what the first cut-off proves, and how many rows it would take, as the end of a sentence.

    Args:
        n: rows of the table.
        predictive, least: the value, and what it has to be at least.
        tests: of which none passes.
    """
    _, (missed, flagged), (positives, negatives) = tests.chosen
    measured, proven = map(predictive.compute_wrong, (tests.rates, tests.bound(tests.chosen)))
    return (
        f"at the first of {len(tests.counts)} cut-offs {positives - missed:,} of {positives:,} positive "
        f"held-out rows are flagged, and {flagged:,} of {negatives:,} others, which is "
        f"{format_percent(measured)} measured, proves at least {floor_percent(proven)}, and not "
        f"{floor_percent(least)}; {tests.advise(n, 'what is measured there is too small')}."
    )
