"""The contract of quantities, run on every quantity."""

from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from claimed import REFIT
from nearest_centroid import NearestCentroid  # registers it
from quantity_contract import Law, QuantityContract, Row

from ckcv_ray import InputError, Study, Task
from ckcv_ray.claims.predictive import FixedSequence, Tally
from ckcv_ray.claims.quantity import Claim, HeldOutPredictions
from ckcv_ray.claims.rules import CutOff
from ckcv_ray.core.quantities import QUANTITIES, list_quantities
from ckcv_ray.learners.choice import PreparedModel
from ckcv_ray.learners.ensemble import Ensemble, Member, Models
from ckcv_ray.study.problem import Problem

HIT, MISS, RIGHT, FLAGGED = (Row(1, 1, 1.0),), (Row(1, 0, -1.0),), (Row(0, 0, -1.0),), (Row(0, 1, 1.0),)
BINARY = (HIT, RIGHT, MISS, FLAGGED)


def make_law(share: float, sensitivity: float, specificity: float) -> Law:
    """Return the chances of ``BINARY`` at a share of the positive class and two recalls."""
    of = (share * sensitivity, (1 - share) * specificity)
    return (*of, share - of[0], 1 - share - of[1])


# Rules as good as "always negative", or a little or much better, and recalls from hardly any to nearly all.
SHARES = [*product((0.2, 0.4), (0.1, 0.5, 0.9), (1, 0.9, 0.3))]
LAWS = [
    *(make_law(q, s, 1 - b * q * s / (1 - q)) for q, s, b in SHARES),
    *(make_law(0.5, *recalls) for recalls in product((0.05, 0.4, 0.75, 0.97), repeat=2)),
]


def measure_recall(contract: QuantityContract, claim: Claim, law: Law, number: int) -> float:
    """Return the true recall of a class by the rule of a claim."""
    of = [(p, row) for p, (row,) in zip(law, contract.kinds, strict=True) if row.y == number]
    return sum(p for p, row in of if row.classify(claim) == number) / sum(p for p, _ in of)


class OfClasses(QuantityContract):
    """What is counted for two classes."""

    kinds = BINARY
    laws = LAWS
    worse = ((0, 2), (1, 3))
    perfect = (0, 0, 0, 0, 1, 1, 1)
    together = "refit,sensitivity,specificity,auc,ppv:0.3,npv:0.3,net_benefit:0.3:0.2"

    def find_risk(self, claim: Claim, law: Law) -> float:
        name = claim.quantity.name
        if claim.quantity.by_class:
            return 1 - measure_recall(self, claim, law, self.problem.task.classes.index(claim.label))
        recalls = measure_recall(self, claim, law, 1), measure_recall(self, claim, law, 0)
        if claim.quantity.made_of:
            return 1 - find_value(name, claim.quantity, *recalls)
        return super().find_risk(claim, law)


def find_value(name: str, quantity: Any, sensitivity: float, specificity: float) -> float:
    """Return a predictive value or net benefit by Bayes's formula."""
    q = quantity.prevalence
    found, flagged = q * sensitivity, (1 - q) * (1 - specificity)
    if name == "net_benefit":
        return found - flagged * quantity.worth / (1 - quantity.worth)
    if name == "npv":
        return (1 - q) * specificity / ((1 - q) * specificity + q * (1 - sensitivity))
    return found / (found + flagged)


class TestError(OfClasses):
    claim = "refit"


class TestErrorByPositions(OfClasses):
    """By the order of the draw, in which wrong rows come at random."""

    claim = together = "refit"
    options: ClassVar = {"holdout_bound": "stevens"}
    laws = LAWS[::3]
    units = 4
    ordered = True
    perfect = (0, 0, 1, 1)


class TestErrorOfGroups(QuantityContract):
    """Groups of two rows, of which none, one or both are wrong."""

    claim = "refit"
    kinds = ((*HIT, *HIT), (*RIGHT, *RIGHT), (*MISS, *RIGHT), (*FLAGGED, *MISS))
    laws = ((25, 25, 25, 25), (40, 47, 0, 13), (30, 40, 20, 10), (35, 38, 0, 27), (40, 30, 30, 0))
    worse = ((0, 2), (1, 3), (2, 3))
    units = 4
    perfect = (0, 0, 1, 1)


class TestErrorOfRows(TestErrorOfGroups):
    """Groups of two rows, that a group of four could outweigh."""

    claim = "row_error:4"
    is_known = False

    def find_risk(self, claim: Claim, law: Law) -> float:
        return self.measure_error(claim, law)


class TestPrecision(OfClasses):
    claim = together = "precision"
    lack = "and nothing can be counted"
    worse = ((0, 3),)

    def find_risk(self, claim: Claim, law: Law) -> float:
        return law[3] / (law[0] + law[3])


class TestSensitivity(OfClasses):
    claim = "sensitivity"
    lack = "there are no held-out rows of class 1."


class TestSpecificity(OfClasses):
    claim = "specificity"
    lack = "there are no held-out rows of class 0."


class TestRecall(OfClasses):
    """Of three classes; predictions of the third are wrong half of the time."""

    claim = together = "recall"
    kinds = (HIT, RIGHT, MISS, FLAGGED, (Row(2, 2),), (Row(2, 1),))
    laws = ((30, 30, 2, 2, 30, 6), (20, 10, 20, 10, 20, 20), (50, 10, 10, 10, 2, 18))
    worse = ((0, 2), (1, 3), (4, 5))
    units = 6
    perfect = (0, 0, 1, 1, 4, 4)
    lack = "there are no held-out rows of class "


class TestSensitivityRequired(OfClasses):
    """A cut-off is chosen by the rows of the class; both recalls are at this cut-off."""

    claim = together = "sensitivity"
    options: ClassVar = {"require": "sensitivity>=0.4"}
    kinds = ((Row(1, 1, 2.0),), (Row(1, 1, 1.0),), (Row(1, 0, -1.0),), (Row(0, 0, -2.0),), (Row(0, 1, 1.5),))
    laws = ((20, 20, 20, 20, 20), (32, 4, 44, 10, 10), (10, 40, 0, 25, 25), (31, 0, 49, 10, 10))
    worse = ((0, 1), (1, 2), (3, 4))
    units = 6
    perfect = (0, 0, 0, 0, 3, 3)
    lack = "a cut-off with sensitivity>=0.4 takes 3 "
    refused = r"^require=sensitivity>=0.4 takes at least [0-9]+ held-out rows of class 1"


class TestAuc(OfClasses):
    claim = "auc"
    kinds = ((Row(1, 1, 2.0),), (Row(0, 0, 0.0),), (Row(1, 1, 1.0),), (Row(0, 1, 1.0),))
    laws = LAWS[::3]
    units = 5
    ordered = True
    perfect = (0, 0, 0, 1, 1)
    lack = "there are no held-out rows of one of the classes."

    def find_risk(self, claim: Claim, law: Law) -> float:
        of = [
            [(p, row.score) for p, (row,) in zip(law, self.kinds, strict=True) if row.y == c] for c in (0, 1)
        ]
        pairs = [(p * q, high > low) for (p, low), (q, high) in product(*of)]
        return sum(p for p, in_order in pairs if not in_order) / sum(p for p, _ in pairs)


class TestPpv(OfClasses):
    claim = "ppv:0.3"
    lack = "nothing is proven for a recall it follows from."


class TestNpv(TestPpv):
    claim = "npv:0.3"


class TestNetBenefit(TestPpv):
    claim = "net_benefit:0.3:0.2"


class TestPpvRequired(OfClasses):
    """Two cut-offs are tested in order; the second flags more rows of both classes."""

    claim, together = "ppv:0.5", "refit"
    options: ClassVar = {"require": "ppv:0.5>=0.55", "claim": "refit", "delta": 0.9}
    kinds = ((Row(1, 1, 2.0),), (Row(1, 1, 1.0),), (Row(0, 0, -2.0),), (Row(0, 1, 1.0),), (Row(0, 1, 2.0),))
    laws = (
        (25, 25, 5, 40, 5),
        (20, 20, 20, 20, 20),
        (40, 10, 41, 5, 4),
        (10, 50, 10, 30, 0),
        (5, 45, 40, 5, 5),
    )
    worse = ((3, 4),)
    units = 8
    perfect = (0, 0, 0, 0, 2, 2, 2, 2)
    lack = "of 2 thresholds "
    refused = r"^require=ppv:0.5>=0.55 takes at least [0-9,]+ held-out rows \([0-9.]+ % of class 1\)"

    def add(self, held: HeldOutPredictions, rows: Sequence[Row]) -> None:
        score, y = (np.array(values) for values in zip(*((row.score, row.y) for row in rows), strict=True))
        wrong = [CutOff(least, 1).classify(score) != y for least in (2.0, 1.0)]
        counts = [Tally.of(least, of, y == 1, y == 0) for least, of in zip((2.0, 1.0), wrong, strict=True)]
        tests = FixedSequence(tuple(counts), self.quantity.find_risk, 0.45, held.delta / 2)
        held.make_once((str(self.quantity), REFIT), lambda: tests)


class OfAnswered(QuantityContract):
    """Rows of three confidences; too many of those of the second are wrong in some laws."""

    options: ClassVar = {"answer": "error<=0.5", "delta": 0.4}
    together = "refit"
    kinds = (*tuple((Row(1, predicted, score),) for score in (3.0, 2.0, 1.0) for predicted in (1, 0)), RIGHT)
    laws = ((10, 10, 10, 30, 20, 10, 10), (20, 2, 30, 8, 10, 20, 10), (12, 18, 10, 40, 20, 0, 0))
    worse = ((0, 1), (2, 3), (4, 5))
    units = 5
    refused = r"^answer=error<=0.5 takes at least [0-9,]+ held-out rows"

    def add(self, held: HeldOutPredictions, rows: Sequence[Row]) -> None:
        confidence, wrong = np.array([(abs(row.score), row.y != row.predicted) for row in rows]).T
        counts = [Tally.of(least, wrong == 1, confidence >= least) for least in (3.0, 2.0, 0.0)]
        tests = FixedSequence(tuple(counts), lambda shares: shares[0], 0.5, held.delta / 2)
        held.make_once(("answered", REFIT), lambda: tests)

    def find_risk(self, claim: Claim, law: Law) -> float:
        least = claim.least_confidence or 0.0
        answered = [(p, row) for p, (row,) in zip(law, self.kinds, strict=True) if abs(row.score) >= least]
        share = sum(p for p, _ in answered)
        if claim.quantity.name == "answered_share":
            return 1 - share
        return sum(p for p, row in answered if row.y != row.predicted) / share


class TestAnsweredError(OfAnswered):
    claim = "answered_error"
    lack = "it takes about "


class TestAnsweredShare(OfAnswered):
    claim = "answered_share"
    lack = "nothing is proven of their error."


class OfNumbers(QuantityContract):
    """Numbers of which the median of the learning rows predicts some as well as the model."""

    options: ClassVar = {"learner": "ridge", "clip": 4}
    together = "refit,within:0.6"
    kinds = ((Row(0.0, 1.0),), (Row(5.0, 4.0),), (Row(-5.0, -3.0),), (Row(5.0, 0.0),))
    laws = ((25, 25, 25, 25), (5, 45, 45, 5), (50, 0, 0, 50), (10, 50, 30, 10), (58, 0, 0, 42))
    worse = ((0, 2), (1, 3), (2, 3))
    units = 5
    perfect = (1, 1, 1, 2, 2)
    is_known = False

    def find_risk(self, claim: Claim, law: Law) -> float:
        errors = sorted((abs(row.predicted - row.y), p) for p, (row,) in zip(law, self.kinds, strict=True))
        return next(e for i, (e, _) in enumerate(errors) if sum(p for _, p in errors[: i + 1]) >= 0.6 - 1e-12)


class TestClipped(OfNumbers):
    claim = "refit"


class TestWithin(OfNumbers):
    """A sixth order statistic of seven would be too small as often as 15.9 % in the last law."""

    claim = "within:0.6"
    options: ClassVar = OfNumbers.options | {"claim": "within:0.6", "delta": 0.15}
    laws = (*OfNumbers.laws, (599, 0, 0, 401))
    units = 7
    perfect = (1, 1, 1, 1, 2, 2, 2)
    refused = r"^claim=within:0.6 takes at least 41 held-out rows"


class TestWeightedError(OfClasses):
    """A right row of great weight counts as much as a wrong one."""

    claim = together = "weighted_error:2"
    kinds = tuple((row._replace(weight=w),) for (row,), w in zip(BINARY, (2.0, 0.5, 0.5, 2.0), strict=True))
    laws = (*LAWS[::3], (72, 0, 0, 28), (0, 80, 0, 20), (0, 60, 40, 0))
    worse = ((0, 3), (1, 2))
    units = 4
    perfect = (0, 0, 1, 1)


class TestBetter(QuantityContract):
    """Rows that both, one alone, or neither of two models has right."""

    claim = "better:constant"
    options: ClassVar = {"learner": "linear,constant"}
    kinds = (*tuple((Row(1, a, other=b),) for a, b in ((1, 0), (1, 1), (0, 0), (0, 1))), (Row(0, 0),))
    laws = ((20, 20, 20, 20, 20), (30, 10, 10, 5, 45), (30, 20, 0, 30, 20), (5, 10, 10, 40, 35))
    worse = ((0, 1), (0, 2), (1, 3), (2, 3))
    perfect = (0, 0, 0, 0, 0, 4, 4)

    def add(self, held: HeldOutPredictions, rows: Sequence[Row]) -> None:
        other = Member(3, 0, PreparedModel("constant", None, SimpleNamespace(setting={})), (), ())
        object.__setattr__(held, "models", Models(Ensemble(()), references=Ensemble((other,))))
        predicted = held.predict(REFIT)._replace(label=np.array([row.other for row in rows]))
        held.make_once(("reference", "constant"), lambda: predicted)

    def find_risk(self, claim: Claim, law: Law) -> float:
        lost, won = law[3], law[0]
        return lost / (lost + won)


def test_every_quantity_keeps_the_contract() -> None:
    list_quantities()
    contracts = [kind for name, kind in globals().items() if name.startswith("Test")]
    assert {str(kind().quantity.name) for kind in contracts} == set(QUANTITIES)


# What a study may not ask for, of a table of two equal classes or of another one.

HELD = {"learner": "linear", "certify": "holdout", "holdout_share": 0.5}
VALUE = {"require": "ppv:0.05>=0.3"}
BETTER = {"learner": "svm,linear"}
X, NUMBER = np.arange(800.0).reshape(400, 2), np.arange(400)
WEIGHTS = np.where(NUMBER % 3 == 1, 3.0, 0.5)
TASKS = {
    "two": Task.of(X, NUMBER % 2),
    "three": Task.of(X, NUMBER % 3),
    "groups": Task.of(X, NUMBER % 2, groups=NUMBER // 2),
    "weights": Task.of(X, NUMBER % 2, sample_weight=WEIGHTS),
    "weighted groups": Task.of(X, NUMBER % 2, groups=NUMBER // 2, sample_weight=WEIGHTS),
}
CHOOSING = VALUE, {"require": "sensitivity>=0.8"}, {"answer": "error<=0.1"}
CENTROID = NearestCentroid()
REFUSED: list[tuple[Any, ...]] = [
    ({"require": "sensitivity>=0.99"}, r"^require=sensitivity>=0.99 takes at least 368 held-out rows of "),
    ({"require": "net_benefit:0.02:0.1>=0.3"}, "is not known here: choose from npv, ppv, sensitivity"),
    ({"require": "sensitivity"}, "lacks its value: .* as 'sensitivity>=0.9', or write sensitivity:0.9"),
    ({"require": "sensitivity<=0.9"}, "is at least a value: write sensitivity>=0.9"),
    ({"require": "sensitivity>=0.9", "claim": "recall"}, "claim=recall is of every class, sensitivity incl"),
    ({"claim": "recall,sensitivity"}, "leave out recall or claim=sensitivity"),
    ({"claim": "sensitivity", "positive": ("sick",)}, "is not a label of the target"),
    ({"claim": "ppv"}, "^claim='ppv' takes a prevalence: write ppv:0.02"),
    ({"claim": "npv:0"}, "^claim=npv:0: '0' is not a number between 0 and 1: write npv:0.02"),
    ({"accept": "auc>=0.9"}, "^accept=auc>=0.9 is about what is not claimed: add auc to the claims"),
    (VALUE | {"answer": "error<=0.1"}, "leave one of them out"),
    ({"claim": "answered_error"}, "nothing says which are: add answer=error<=0.05"),
    ({"accept": "answered_share>=0.5"}, "is about what is not claimed: add answer=error<=0.05"),
    ({"certify": "paper", "holdout_share": 0.3}, "^holdout_share=0.3 requires certify holdout, not paper"),
    ({"holdout_share": "a third"}, "expected a share such as 0.33, or auto"),
    ({"positive": "ill"}, "'ill', not a label of the target: the labels are '0', '1'"),
    ({"positive": "1"}, "^positive='1' is for two classes, and the target 'y' has 3 classes", "three"),
    ({"holdout_bound": "stevens"}, "^holdout_bound=stevens counts rows as independent", "groups"),
    *((option, r"counts rows( of a class)? as independent", "groups") for option in CHOOSING),
    *((option, r"is for two classes.*: leave it out", "three") for option in CHOOSING[:2]),
    *((option, "needs scores that order the rows", "two", CENTROID) for option in CHOOSING[1:]),
    ({"claim": "better:linear"}, "with linear, and the learners of the study are linear: name"),
    (BETTER | {"claim": "better:svm", "search": "budget"}, "a search within a budget may leave open: choose"),
    ({"claim": "weighted_error:3"}, "is about rows that have weights: name their column with --weight"),
    ({"claim": "weighted_error:2"}, "no weight is above 2, and .weight. has one of 3: state", "weights"),
    ({"claim": "weighted_error:3"}, "counts rows as independent, which rows of", "weighted groups"),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_what_does_not_go_together_is_refused(row: tuple[Any, ...]) -> None:
    options, said, *rest = row
    with pytest.raises(InputError, match=said):  # noqa: PT012
        study = Study.of(**HELD | options)
        study = study.with_learner(rest[1]) if rest[1:] else study
        Problem.of(study, TASKS[rest[0] if rest else "two"])
