"""Predictive values, and the error of answered rows: what holds at a threshold that is tested.

Both recalls together prove the PPV, NPV and net benefit where a stated share of rows is positive: these
increase in both, and the bounds on both hold together.

**Required.** A PPV or NPV of at least v is tested at cut-offs that are fixed without the held-out rows, in
order until the first one fails; the last that passed is used. A test passes if the value at the
Clopper-Pearson bounds of both recalls, each at half of its level, is at least v. What is proven of the value
is v, and of the recalls their bounds for all cut-offs together (docs/theory/bounds.md, "A cut-off for a
predictive value").

Cut-offs come from the scores of F*'s members on the rows of their estimate sets, from which they have not
learned. The first is the one most likely to pass if as many rows are missed as in these, and
``FLAGGED_BEYOND`` more wrongly flagged; the others flag more rows of the class that is to be right, up to the
last at which the value measured in these is large enough.

**Answered.** A row is answered if the rule's confidence in it is at least t: with two classes, the distance
of its score from the rule's own cut-off; with several, the margin between its two largest scores. Thresholds
are tested from the most cautious one down, as above. What is proven of the error is the allowed value, and of
the share answered its bound for all thresholds together (docs/theory/bounds.md, "Answering only confident
rows"). They are quantiles of the confidence of F*'s members on the rows of their estimate sets: on rows that
a model has learned from, it is more confident than on new ones. The first is the most cautious useful one: it
is expected to answer the fewest held-out rows that pass with ``ALLOWED`` wrong ones. The last answers all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import ceil
from typing import ClassVar, NamedTuple

import numpy as np

from ckcv_ray.claims.quantity import (
    SAME_RATE,
    Claim,
    Counts,
    HeldOutPredictions,
    Need,
    Quantity,
    Shares,
    bound_count,
)
from ckcv_ray.claims.recalls import Sensitivity, Specificity, share_recalls
from ckcv_ray.claims.rules import CutOff, Rule, orient_scores
from ckcv_ray.core.bounds.binomial import MAX_ROWS, clopper_pearson, find_fewest_rows, find_first
from ckcv_ray.core.quantities import BINARY_RECALLS, SHARE, argument, register_quantity
from ckcv_ray.errors import Mask, Values, floor_percent, format_about, format_level, format_percent
from ckcv_ray.study.problem import Problem

N_THRESHOLDS = 10  # most that are tested
ALLOWED = 2  # wrong rows at the first threshold: with none, a single one by chance would end the sequence
N_CONSIDERED = 100  # cut-offs, evenly spaced among the scores of the class
FLAGGED_BEYOND = 2  # wrongly flagged rows beyond those expected: the first test should not fail by chance
STATES = Quantity.states
LARGEST_BOUND = 1e15  # on 1 minus a net benefit, which may be far below 0


class Tally(NamedTuple):
    """What was counted at a threshold of scores, for each kind of rows that a statement depends on."""

    threshold: float
    wrong: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, threshold: float, wrong: Mask, *kinds: Mask) -> "Tally":
        """Count the rows of each kind, and the wrong ones of these."""
        wrong_of_each = tuple(int(np.sum(wrong & kind)) for kind in kinds)
        return cls(threshold, wrong_of_each, tuple(int(np.sum(kind)) for kind in kinds))


@dataclass(frozen=True)
class FixedSequence:
    """Tests of one statement at each of several thresholds, in an order that is fixed beforehand.

    They end at the first failure, and the last test that passed counts. Each is made at the full level: a
    false statement is proven only if the test of the first false statement passes, which is one fixed test.

    Attributes:
        counts: what was counted, in the order of the tests.
        risk: returns the risk that the statement is about if these shares of each kind of rows are wrong.
        most: largest risk allowed.
        delta: delta of each test; bounds on the kinds have equal parts of it.
        copies: number of rows of each kind that are not counted.
    """

    counts: tuple[Tally, ...]
    risk: Callable[[Sequence[float]], float]
    most: float
    delta: float
    copies: int = 0

    @cached_property
    def passed(self) -> int:
        """Number of tests that pass before the first that fails."""
        risks = (self.risk(self.bound(counted)) for counted in self.counts)
        return sum(1 for _ in takewhile(lambda risk: risk <= self.most, risks))

    @property
    def chosen(self) -> Tally:
        """The counts of the last test that passed; of the first if none did."""
        return self.counts[max(0, self.passed - 1)]

    @property
    def least(self) -> float | None:
        """The chosen threshold; None if no test passed."""
        return self.chosen.threshold if self.passed else None

    def bound(self, counted: Tally) -> list[float]:
        """Return the bounds on the shares of wrong rows."""
        each = self.delta / len(counted.rows)
        return [bound_count(*pair, each, self.copies) for pair in zip(*counted[1:], strict=True)]

    def prove(self, copies: int) -> float | None:
        """Return what is proven of the risk; None if nothing is, or less without ``copies`` of the rows."""
        return self.most if 0 < self.passed <= replace(self, copies=copies).passed else None

    def explain(self, quantity: Quantity, n: int, kinds: Sequence[str]) -> str:
        """Return why no test passes, and how many rows a proof may take, as the end of a sentence.

        Args:
            quantity: the quantity that the statement is about.
            n: number of rows of the table.
            kinds: names of the kinds of rows.

        Returns:
            "" if a test passes.
        """
        if self.passed:
            return ""
        threshold, wrong, rows = self.chosen
        if not sum(rows):
            return (
                f"no held-out row has the confidence of the first of {len(self.counts)} thresholds, "
                f"{threshold:.6g}; more new rows, none of these, may help, or a learner whose "
                "scores differ more from row to row."
            )
        rates = [one / max(1, of) for one, of in zip(wrong, rows, strict=True)]

        def passes(rows_in_all: int) -> bool:
            of_first = int(rows[0] / sum(rows) * rows_in_all)
            sizes = (of_first, rows_in_all - of_first)[: len(rows)]
            expected = tuple(ceil(rate * size) for rate, size in zip(rates, sizes, strict=True))
            return self.risk(self.bound(Tally(0.0, expected, sizes))) <= self.most

        more, needed = "as measured, more rows alone are not expected to help", MAX_ROWS
        if self.risk(rates) <= self.most:
            needed = find_first(passes, 1, MAX_ROWS)
        if needed < MAX_ROWS:
            in_all = format_about(n * needed / sum(rows))
            more = f"it takes about {in_all} new rows, none of these, {SAME_RATE}"
        parts = zip(wrong, rows, kinds, strict=True)
        counted = " and ".join(f"{one:,} of {of:,} {kind}" for one, of, kind in parts)
        measured, proven = map(self.risk, (rates, self.bound(self.chosen)))
        share = quantity.format_measured(measured if quantity.at_most else 1 - measured)
        return (
            f"at the first of {len(self.counts)} thresholds {counted} held-out rows are wrong, which is "
            f"{share} measured, and proves {quantity.side} {quantity.format(proven)}, "
            f"not {quantity.format(self.most)}; {more}."
        )


@dataclass(frozen=True)
class Predictive(Quantity):
    """A quantity that follows from both recalls where the positive class has a stated share."""

    prevalence: float = argument(SHARE, "0.02", "a prevalence")

    two_classes = True
    made_of = BINARY_RECALLS
    counted = "judged rows of each of the two classes"
    rows_alone = "rows of a class"
    share = "recalls"

    def find_risk(self, shares: Sequence[float]) -> float:
        """Return 1 minus its value, given the shares of wrong rows of the positive class and of the other."""
        missed, flagged = shares
        return 1 - self.compute(1 - missed, 1 - flagged)

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim that follows from both recalls, at no delta of its own; see ``Quantity``."""
        pair = [next(recall.claim(held, rule)) for recall in (Sensitivity(), Specificity())]
        recalls, delta = [1 - recall.risk for recall in pair], share_recalls(held.problem)[0]
        bound, label = 1 - self.compute(*recalls), held.problem.task.classes[held.problem.positive]
        claim = Claim(self, rule.name, bound, delta, "", label=label, cut_off=pair[0].cut_off)
        lack = "" if min(recalls) > 0 else "nothing is proven for a recall it follows from."
        method = (
            f"from a sensitivity of at least {floor_percent(recalls[0])} and a specificity of at least "
            f"{floor_percent(recalls[1])}, which hold together"
        )
        yield self.conclude(claim, held, method, lack)

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows a value takes if it is required, with the table's share of positive ones."""
        if self.find_asked(problem) is None:
            return
        label, delta = problem.task.classes[problem.positive], share_recalls(problem)[0]
        share = float(np.mean(problem.all_rows.y == problem.positive))

        def prove(n: int) -> float:
            positives = int(share * n)
            return self.find_risk(clopper_pearson([0, 0], [positives, n - positives], delta / 2).tolist())

        yield self.need(problem, prove, delta, of=f" ({format_percent(share)} of class {label!r})")

    def doubt(self, claim: Claim) -> str:
        """Return a sentence if a constant reaches what is proven."""
        reached = max(self.compute(1.0, 0.0), self.compute(0.0, 1.0))  # flagging every row, or none
        if claim.bound is None or 1 - claim.bound > reached:
            return ""
        says = f"A {claim.name} of {claim.says} says nothing beyond a constant"
        return f"{says}, which reaches {format_percent(reached)}."


class PredictiveValue(Predictive):
    """PPV or NPV: how often rows that are classified as one class belong to it."""

    brings = BINARY_RECALLS
    of_positive: ClassVar[bool]  # whether rows classified as positive are to be right

    def compute(self, sensitivity: Shares, specificity: Shares) -> Shares:
        """Return it for two recalls in [0, 1], elementwise; it increases in both."""
        q = self.prevalence
        right, wrong = q * sensitivity, (1 - q) * (1 - specificity)
        if not self.of_positive:
            right, wrong = (1 - q) * specificity, q * (1 - sensitivity)
        value: Shares = right / (right + wrong + (right == 0))  # 0 where nothing is right
        return value

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim; from the tests of cut-offs where the study requires it."""
        if self.find_asked(held.problem) is None:
            yield from super().claim(held, rule)
            return
        tests = self.test(held, rule)
        bound, (_, (missed, flagged), (positives, negatives)) = tests.prove(held.copies), tests.chosen
        label, second = held.problem.task.classes[:: -1 if held.problem.positive else 1]
        claim = Claim(self, rule.name, bound, tests.delta, "", label=label, cut_off=tests.least)
        method = (
            f"holdout: {missed} of {positives} previously unused rows of class {label!r} and {flagged} of "
            f"{negatives} of class {second!r} wrong, Clopper-Pearson for both; {tests.passed} of "
            f"{len(tests.counts)} cut-offs passed in a fixed sequence; jointly with the recalls with "
            f"probability at least {format_level(held.delta)}"
        )
        lack = tests.explain(self, held.problem.all_rows.n, ["positive", "other"])
        yield self.conclude(claim, held, method, lack)

    def choose_cut_off(self, held: HeldOutPredictions, rule: Rule) -> tuple[CutOff | None, str, int]:
        """Return the cut-off of the last test that passed."""
        tests, lack = self.test(held, rule), ""
        cut_off = None if tests.least is None else CutOff(tests.least, held.problem.positive)
        if cut_off is None:
            lack = f"no cut-off is chosen, since for none the {self.title} that is required is proven."
        return cut_off, lack, len(tests.counts)

    def test(self, held: HeldOutPredictions, rule: Rule) -> FixedSequence:
        """Return the tests of the value that the study requires, on a rule's scores; they are made once."""
        problem, required, y = held.problem, held.problem.required, held.rows.y
        assert required is not None
        delta, positive, X, least = held.delta / 2, problem.positive, problem.task.X, required.value
        right, way = (positive, 1) if self.of_positive else (1 - positive, -1)  # the class to be right

        def make() -> FixedSequence:
            members, score = held.models.best.members, held.predict(rule).score
            sets = [problem.find_estimate_rows(member.k, member.split) for member in members]
            scores = [one.model.predict(X[rows]).score for one, rows in zip(members, sets, strict=True)]
            classes = np.concatenate([problem.task.y[rows] for rows in sets])
            oriented = orient_scores(np.concatenate(scores), right)
            of_class, _ = parts = [np.sort(oriented[(classes == right) == own]) for own in (True, False)]
            values = np.unique(of_class if len(of_class) else oriented)[::-1]
            values = values[np.unique(np.linspace(0, len(values) - 1, N_CONSIDERED).round().astype(int))]
            reached = [(len(of) - np.searchsorted(of, values)) / max(1, len(of)) for of in parts]
            shares = np.array([1 - reached[0], reached[1]])  # of wrong rows
            expected = round(len(y) * len(of_class) / len(classes))
            rows = np.array([[expected], [len(y) - expected]])
            wrong = np.ceil(shares * rows).astype(int)
            wrong[1] = np.minimum(wrong[1] + FLAGGED_BEYOND, rows[1])
            both = shares, clopper_pearson(wrong, rows, delta / 2)
            measured, proven = (self.compute(*(1 - of)[::way]) for of in both)  # the positive class first
            first, enough = int(np.argmax(proven)), np.flatnonzero(measured >= least)
            last = max(first, int(enough[-1])) if len(enough) else first
            tested = values[np.unique(np.linspace(first, last, N_THRESHOLDS).round().astype(int))]
            # at these, rows get class ``right`` if their score for it is at least a value
            chosen = tested if right == positive else np.nextafter(-tested, np.inf)
            cut_offs = [CutOff(value, positive) for value in chosen.tolist()]
            kinds = y == positive, y != positive
            counts = [Tally.of(one.value, one.classify(score) != y, *kinds) for one in cut_offs]
            return FixedSequence(tuple(counts), self.find_risk, self.scale(least), delta)

        return held.make_once((str(self), rule), make)


@register_quantity
class Ppv(PredictiveValue):
    """The share of the rows classified as positive that are."""

    name, phrase = "ppv", "PPV at a prevalence of {0}"
    states = f"{STATES}: the probability that a row classified as {{claim.label!r}} is of this class"
    of_positive = True


@register_quantity
class Npv(PredictiveValue):
    """The share of the rows not classified as positive that are not."""

    name, phrase = "npv", "NPV at a prevalence of {0}"
    states = f"{STATES}: the probability that a row classified otherwise is not of class {{claim.label!r}}"
    of_positive = False


@register_quantity
@dataclass(frozen=True)
class NetBenefit(Predictive):
    """The share of true positives minus that of false ones, each counted as ``worth`` / (1 - ``worth``).

    Vickers and Elkin, Medical Decision Making 26, 2006.
    """

    worth: float = argument(SHARE, "0.1", "the probability from which a row is worth flagging")

    name = "net_benefit"
    phrase = "net benefit at a prevalence of {0} (a row is worth flagging from {1} on)"
    states = (
        f"{STATES}: the share of rows rightly classified as {{claim.label!r}}, less that of those wrongly, "
        "each of which counts as {claim.quantity.worth} / (1 - {claim.quantity.worth})"
    )
    largest = LARGEST_BOUND

    def compute(self, sensitivity: Shares, specificity: Shares) -> Shares:
        """Return it for two recalls in [0, 1], elementwise; it increases in both."""
        right, wrong = self.prevalence * sensitivity, (1 - self.prevalence) * (1 - specificity)
        return right - wrong * self.worth / (1 - self.worth)


@register_quantity
class Precision(Quantity):
    """The share of the rows classified as positive that are, with classes as frequent as in their source."""

    name = phrase = "precision"
    counted = "judged rows classified as positive"
    two_classes = is_binomial = of_flagged = True
    caution = "A precision holds where as many rows are positive: quote it with their share."
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

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows it takes, if as many are classified as positive as are positive."""
        share = float(np.mean(problem.all_rows.y == problem.positive))
        yield self.need(problem, of=" classified as positive", share=share)


class OfAnswered(Quantity):
    """A quantity of the rows confident enough to be answered; both kinds have one share of delta together."""

    answers = True
    share = "answered"

    def test(self, held: HeldOutPredictions, rule: Rule) -> FixedSequence:
        """Return the tests of the rows that a rule answers, the most cautious first; made once for both."""
        (_, most), X, rows = self.find_asked(held.problem), held.problem.task.X, held.rows
        delta = held.delta / 2

        def make() -> FixedSequence:
            unlearned = list[Values]()  # confidence of each member of F* on the rows of its estimate set
            for member in held.models.best.members:
                scored = X[held.problem.find_estimate_rows(member.k, member.split)]
                unlearned.append(Rule(f"member:{member.split}").measure_confidence(held.models, scored))
            ordered = np.sort(np.concatenate(unlearned))[::-1]
            fewest = min(1.0, find_fewest_rows(most, ALLOWED, delta) / len(rows.y))
            shares = np.linspace(fewest, 1.0, N_THRESHOLDS)[:-1]
            positions = np.ceil(shares * len(ordered)).astype(np.intp) - 1
            thresholds = np.unique([0.0, *ordered[positions]])[::-1]
            confidence = rule.measure_confidence(held.models, rows.X)
            wrong = held.predict(rule).label != rows.y
            counts = [Tally.of(least, wrong, confidence >= least) for least in thresholds.tolist()]
            return FixedSequence(tuple(counts), lambda shares: shares[0], most, delta)

        return held.make_once(("answered", rule), make)

    def find_asked(self, problem: Problem) -> tuple[str, float]:
        """Return the option that says how large the error may be."""
        answering = problem.certification.answering
        assert answering is not None
        return f"answer={answering}", answering.value

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield nothing: how many rows are answered is not known beforehand."""
        yield from ()


@register_quantity
class AnsweredError(OfAnswered):
    """The error among the rows answered."""

    name, phrase = "answered_error", "error of the rows answered"
    at_most = True
    caution = (
        "That the rows answered are wrong less often than by always predicting any one class is not proven."
    )
    measured_as = "{rate} wrong ({part:,} of {rows:,} {on} that are answered)"
    states = (
        "a new row that {who} answers, since its confidence is at least {claim.least_confidence:.6g}, is "
        "misclassified with probability {claim.says}"
    )

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim of the allowed error, at the last threshold that passed."""
        tests = self.test(held, rule)
        _, (wrong,), (rows,) = tests.chosen
        claim = Claim(self, rule.name, tests.prove(held.copies), tests.delta, "", errors=wrong, rows=rows)
        claim = replace(claim, least_confidence=tests.least)
        passed = f"{tests.passed} of {len(tests.counts)} thresholds passed in a fixed sequence"
        jointly = f"jointly with probability at least {format_level(held.delta)}"
        seen = f"holdout: {wrong} of {rows} previously unused rows answered wrong, Clopper-Pearson; {passed}"
        lack = tests.explain(self, held.problem.all_rows.n, ["answered"])
        yield self.conclude(claim, held, f"{seen}; {jointly}", lack)

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows have to be answered; the other half of delta is for the share answered."""
        yield self.need(problem, delta=problem.study.delta_of_claim / 2)


@register_quantity
class AnsweredShare(OfAnswered):
    """The share of rows that are answered."""

    name, phrase = "answered_share", "share of rows answered"
    measured_as = "{rate} ({part:,} of {rows:,} {on} answered)"
    states = (
        "{who} answers {claim.says} of new rows: a row if its confidence is at least "
        "{claim.least_confidence:.6g}"
    )

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claim at the last threshold that passed; see ``Quantity``."""
        tests, every = self.test(held, rule), len(held.rows.y)
        (rows,), n = tests.chosen.rows, len(tests.counts)
        bound = bound_count(every - rows, every, tests.delta / n, held.copies)
        claim = Claim(self, rule.name, bound, tests.delta, "", errors=every - rows, rows=every)
        claim = replace(claim, least_confidence=tests.least)
        seen = f"holdout: {rows} of {every} previously unused rows answered, Clopper-Pearson for {n}"
        lack = "" if tests.passed else "nothing is proven of their error."
        method = f"{seen} thresholds together; jointly with probability at least {format_level(held.delta)}"
        yield self.conclude(claim, held, method, lack)
