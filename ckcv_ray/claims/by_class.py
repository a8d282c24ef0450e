"""Claims by class and of the AUC: sensitivity, specificity, the recall of each class, and pairs in order.

Everything here holds given the labels of all rows: rows of class c are independent draws from its
distribution P_c, whatever the share of c. So the claims remain valid if the shares of the classes change.

``claim_held_out``: given the other rows and the labels, a fixed classifier's wrong rows among the held-out
rows of class c are Bin(m_c, risk on P_c): K Clopper-Pearson bounds at the level d / K hold jointly with
probability 1 - d. Disjoint pairs of a row of each class, drawn without regard to anything but the labels, are
independent, so the pairs that the classifier's score puts in the wrong order, or does not order, are binomial
too.

With ``holdout_bound="stevens"`` the bound on these counts is that of Stevens, by the positions of the wrong
rows or pairs in the order of the draw (``core.bounds.binomial``): given the labels, the orders within the
classes are drawn independently of each other, and so is the order of the pairs.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.claim import (
    BOUND_NAMES,
    MAY_MISS,
    NOTHING,
    ONE_SOURCE,
    Claim,
    describe_claim,
    make_claim,
    name_quantity,
)
from ckcv_ray.claims.cut_offs import ChosenCutOff
from ckcv_ray.claims.percent import floor_percent, format_level
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Index
from ckcv_ray.core.bounds.binomial import bound_in_order, clopper_pearson, find_fewest_rows
from ckcv_ray.core.draws import draw_pairs, order_held_out
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.study import AUC, BY_CLASS, Holdout, Predictive, Problem, parse_predictive
from ckcv_ray.tables.target import Label


class PlannedClaim(NamedTuple):
    """A quantity to claim.

    Attributes:
        name: "sensitivity", "specificity", "recall" or "auc".
        number: number of the class it is about; -1 for auc.
        label: label of that class; None for auc.
        delta: probability with which its claim may fail.
        jointly: what to say of the claims that hold together with it; "" if there are none.
    """

    name: str
    number: int
    label: Label | None
    delta: float
    jointly: str

    @property
    def phrase(self) -> str:
        """A phrase that names the quantity."""
        return name_quantity(self.name, self.label)

    def count_rows(self, sizes: Sequence[int]) -> int:
        """Return the rows of its class, given those of each class; for auc those of the rarer class."""
        return min(sizes) if self.name == AUC else sizes[self.number]


def plan_claims(problem: Problem, name: str) -> list[PlannedClaim]:
    """Return the quantities that a name in the study's claims stands for: "recall" is one for each class."""
    certification = problem.study.certification
    assert isinstance(certification, Holdout)
    delta = problem.study.delta / certification.n_shares
    if name == AUC:
        return [PlannedClaim(AUC, -1, None, delta, "")]
    delta = share_recalls(problem)
    classes, positive = problem.task.classes, problem.positive
    known = {"sensitivity": [positive], "specificity": [1 - positive], "recall": range(len(classes))}
    together = sum(len(known[quantity]) for quantity in certification.claim if quantity in BY_CLASS)
    jointly = f"; jointly for the {together} classes with probability at least {format_level(delta)}"
    return [
        PlannedClaim(name, c, classes[c], delta / together, jointly if together > 1 else "")
        for c in known[name]
    ]


def share_recalls(problem: Problem) -> float:
    """Return the delta of all recalls together: half of their share where a predictive value is required."""
    certification = problem.study.certification
    assert certification is not None
    delta = problem.study.delta / certification.n_shares
    return delta if problem.required is None or parse_predictive(problem.required.name) is None else delta / 2


def leave_out(wrong: int, units: int, copies: int) -> tuple[int, int]:
    """Return counts without ``copies`` of the units, all of them right if there are as many."""
    left = max(0, units - copies)
    return min(wrong, left), left


def bound_held_out(
    problem: Problem, wrong: NDArray[np.bool_], delta: float, copies: int
) -> tuple[float, str]:
    """Return the bound on the probability that a held-out row or pair is wrong, and the name of the bound.

    Args:
        problem: a problem with a holdout certification.
        wrong: which are wrong, in the order of the draw.
        delta: probability that the bound fails.
        copies: how many are not counted; as it is not known which, their positions are not used.
    """
    certification = problem.study.certification
    assert isinstance(certification, Holdout)
    if certification.holdout_bound == "stevens" and not copies:
        return bound_in_order(wrong, delta), f"{BOUND_NAMES['stevens']} by positions in the order of the draw"
    counts = leave_out(int(np.sum(wrong)), len(wrong), copies)
    return clopper_pearson(*counts, delta), BOUND_NAMES["clopper_pearson"]


def order_held_rows(problem: Problem) -> Index:
    """Return the positions among the held-out rows in the order of the draw if the bound depends on it."""
    held, certification = problem.held, problem.study.certification
    assert held is not None
    assert isinstance(certification, Holdout)
    if certification.holdout_bound != "stevens":
        return np.arange(len(held))
    return np.searchsorted(held, order_held_out(problem.all_rows.n, len(held), problem.draws))


def claim_held_out(
    problem: Problem,
    rule: Rule,
    name: str,
    predicted: Prediction,
    copies: int = 0,
    chosen: ChosenCutOff | None = None,
) -> Iterator[Claim]:
    """Yield the claims that a name stands for, from a fixed classifier's predictions of the held-out rows.

    ``copies`` of the rows are not counted; ``chosen`` is the cut-off of the rule, if one is chosen.
    """
    held, who, drawn = problem.take_held_rows(), rule.classifier(), order_held_rows(problem)
    assert held is not None
    for quantity in plan_claims(problem, name):
        if name == AUC:
            low, high = draw_pairs(held.y, problem.draws)
            wrong = ~(predicted.score[high] > predicted.score[low])
            what = "disjoint pairs of previously unused rows not in order of score"
        else:
            wrong = predicted.label[drawn][held.y[drawn] == quantity.number] != quantity.number
            what = f"previously unused rows of class {quantity.label!r} wrong"
        errors, units = int(np.sum(wrong)), len(wrong)
        if chosen is not None and quantity.number == chosen.number:
            errors = chosen.misses
            what = f"previously unused rows of class {quantity.label!r} {MAY_MISS}"
            bound = clopper_pearson(*leave_out(errors, units, copies), quantity.delta)
            bound_name = BOUND_NAMES["clopper_pearson"]
        else:
            bound, bound_name = bound_held_out(problem, wrong, quantity.delta, copies)
        method = f"holdout: {errors} of {units} {what}, {bound_name}{quantity.jointly}"
        says = _phrase_quantity(problem, quantity, who, bound)
        sentence = describe_claim(ONE_SOURCE, quantity.delta, says, method)
        of = "of one of the classes" if name == AUC else f"of class {quantity.label!r}"
        lack = f"{NOTHING} the {quantity.phrase} of {who}: there are no held-out rows {of}."
        made = make_claim(
            quantity=quantity.name,
            label=quantity.label,
            classifier=rule.name,
            bound=bound,
            errors=errors,
            rows=units,
            delta=quantity.delta,
            statement=sentence if units else lack,
        )
        yield made if rule.cut_off is None else {**made, "cut_off": rule.cut_off.value}


def claim_no_cut_off(problem: Problem, rule: Rule, name: str) -> Iterator[Claim]:
    """Yield the claim about a recall where the rows held out are too few for the cut-off to be chosen."""
    held, condition = problem.take_held_rows(), problem.required
    assert held is not None
    assert condition is not None
    number, (quantity,) = condition.find_class(problem.positive), plan_claims(problem, name)
    there, needed = int(np.sum(held.y == number)), find_fewest_rows(1 - condition.value, 0, quantity.delta)
    lack = (
        f"a cut-off with {condition} takes {needed:,} held-out rows of class "
        f"{problem.task.classes[number]!r}, and there are {there:,}."
    )
    yield from claim_nothing(problem, rule, name, lack)


def claim_nothing(problem: Problem, rule: Rule, name: str, lack: str) -> Iterator[Claim]:
    """Yield the claim about a recall of which nothing is proven, with the reason."""
    held = problem.take_held_rows()
    assert held is not None
    for quantity in plan_claims(problem, name):
        of_class = int(np.sum(held.y == quantity.number))
        yield make_claim(
            quantity=quantity.name,
            label=quantity.label,
            classifier=rule.name,
            bound=1.0,
            errors=0,
            rows=of_class,
            delta=quantity.delta,
            statement=f"{NOTHING} the {quantity.phrase} of {rule.classifier()}: {lack}",
        )


def claim_predictive(
    problem: Problem, rule: Rule, predictive: Predictive, sensitivity: Claim, specificity: Claim
) -> Claim:
    """Return the claim that follows from both recalls where the positive class has a stated share.

    It is true wherever both claims are, which hold together: it takes no delta of its own.
    """
    delta = share_recalls(problem)
    recalls = 1 - sensitivity["bound"], 1 - specificity["bound"]
    value, label = predictive.compute(*recalls), problem.task.classes[problem.positive]
    phrase, who = name_quantity(str(predictive), None), rule.classifier()
    method = (
        f"from a sensitivity of at least {floor_percent(recalls[0])} and a specificity of at least "
        f"{floor_percent(recalls[1])}, which hold together"
    )
    says = (
        f"the {phrase} of {who} is at least {floor_percent(value)}: {describe_predictive(predictive, label)}"
    )
    lack = f"{NOTHING} the {phrase} of {who}: nothing is proven for a recall it follows from."
    return {
        **sensitivity,
        "quantity": str(predictive),
        "label": label,
        "bound": 1 - value,
        "errors": None,
        "rows": None,
        "delta": delta,
        "statement": describe_claim(ONE_SOURCE, delta, says, method) if min(recalls) > 0 else lack,
    }


def describe_predictive(predictive: Predictive, label: Label) -> str:
    """Return what a predictive quantity is, as a clause; ``label`` is that of the positive class."""
    return {
        "ppv": f"the probability that a pattern classified as {label!r} is of this class",
        "npv": f"the probability that a pattern classified otherwise is not of class {label!r}",
        "net_benefit": f"the share of patterns rightly classified as {label!r}, less that of those wrongly, "
        f"each of which counts as {predictive.worth} / (1 - {predictive.worth})",
    }[predictive.name]


def describe_recall(quantity: PlannedClaim, who: str, bound: float) -> str:
    """Return what is proven of a recall, as a clause."""
    return (
        f"the {quantity.phrase} of {who} is at least {floor_percent(1 - bound)}: the probability that a new "
        f"pattern of class {quantity.label!r} is classified correctly, whatever the share of this class"
    )


def _phrase_quantity(problem: Problem, quantity: PlannedClaim, who: str, bound: float) -> str:
    if quantity.name != AUC:
        return describe_recall(quantity, who, bound)
    high, low = (problem.task.classes[number] for number in (problem.positive, 1 - problem.positive))
    return (
        f"the {quantity.phrase} of {who} is at least {floor_percent(1 - bound)}: the probability that the "
        f"score of a new pattern of class {high!r} is larger than that of one of class {low!r} (a tie counts "
        "as an error), whatever the shares of the classes"
    )
