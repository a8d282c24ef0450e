"""Criteria: what is minimised over candidates, namely the mean over splits of a value per split.

For the x_c wrong rows among the m_c rows of class c in a split's set of m rows, and U(x; m) the
Clopper-Pearson bound, the value of a split is

    error       U(sum of x_c; m), the paper's
    balanced    the mean over the classes of U(x_c; m_c), where U(0; 0) = 1
    cost        U(sum of w_c x_c; m): w_c is the cost of a wrong decision on class c, divided by the largest
    mean_error  (sum of x_c) / m itself, not a bound; its mean is the usual figure of cross validation
    clipped     for numbers to predict: U(sum of min(|error|, clip) / clip over the rows; m)

With groups m counts groups, and ``error`` is U(sum over groups of the share of wrong rows; m). At a total
that is not a count, U is still Clopper-Pearson's formula but not a bound: it is minimised, and nothing is
claimed of it.

Reference: Anguita et al., ESANN 2012, Algorithm 1 (the mean of Clopper-Pearson bounds).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf
from typing import ClassVar, Self, TypeAlias

import numpy as np
import scipy

from ckcv_ray.core import measures
from ckcv_ray.core.bounds.binomial import bound_table, check_delta, clopper_pearson
from ckcv_ray.core.measures import ZERO_ONE, ClippedErrors, Losses
from ckcv_ray.core.options import HasOptions, option
from ckcv_ray.errors import (
    ONE,
    Counts,
    Index,
    InputError,
    Values,
    ceil_percent,
    cut,
    format_level,
    format_number,
    number,
    round_bound,
)

SINGLE = (
    "It would be proven for each individual member if the candidate had been fixed beforehand; it is not "
    "proven for the average member, nor after selection on the same data."
)
ABOUT_ERROR = (
    "What is proven below is about the error rate; it holds whatever criterion selected the candidate."
)
MEAN_ERROR = (
    "the mean error, that is the mean over {{n}} splits of the share of {}. It is what was minimised, "
    "measured on the estimate sets: an estimate of the error rate, not a bound on the error rate, and not "
    f"proven. {ABOUT_ERROR}"
)
MAX_COSTS = 6  # costs that a sentence names
MIN_STUDY_DELTA = 1e-12  # A gives a candidate as little as 1e-22 of it
UnitCounts: TypeAlias = int | Index  # units scored in each split: their number, or the rows of each class
FINEST = 1 << 52  # whole numbers up to this, divided by it, are exact
_table = lru_cache(maxsize=4096)(bound_table)
RATES = np.linspace(0.0, 1.0, 257)  # error rates between which a forecast interpolates
CLIP_IS = (
    "name the error from which a prediction is as wrong as any other, in units of the target, such as "
    "clip=50, chosen by what errors cost and not by these rows"
)


def _delta(name: str, value: object) -> float:
    delta = number(name, value)
    check_delta(delta)
    if delta < MIN_STUDY_DELTA:
        raise InputError(
            f"delta={delta!r} is below {MIN_STUDY_DELTA:g}, the smallest that is divided among candidates"
        )
    return delta


@dataclass(frozen=True)
class Criterion(HasOptions, ABC):
    """A quantity to minimise over candidates: the base of every criterion, a frozen dataclass.

    ``units`` says what is scored in a split: the number of rows or groups, the same in all splits of a fold
    size. The value of a split is U at its total loss, unless ``least`` and ``transfer`` are overridden too.

    Attributes:
        measure: gives the totals from which values are computed; for groups it includes their losses.
        by_class: whether units are the rows of each class in every split, (..., n_classes), instead.
        delta: failure probability of each bound, in (0, 1), or of what is proven where what is minimised does
            not depend on it.
        bound: name of the bound that L_EE is computed with.
        l_ee_is: what L_EE is, with placeholders for the number of splits, the level and the costs.
        minimised, estimated: short descriptions of it on the select sets and on the estimate sets.

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    name: ClassVar[str]
    measure: ClassVar[Losses] = ZERO_ONE
    by_class: ClassVar[bool] = False
    bound: ClassVar[str]
    l_ee_is: ClassVar[str]
    minimised: ClassVar[str]  # with a placeholder for the level
    estimated: ClassVar[str] = "the same mean on the estimate sets; no bound"

    delta: float = option(0.05, _delta, "Failure probability of each bound.", float)

    def on(self, classes: Sequence[object]) -> Self:
        """Return the canonical form for a task with these classes; here itself.

        Raises:
            InputError: it does not apply to these classes.
        """
        return self

    def for_groups(self) -> "Criterion | None":
        """Return the form for groups of rows; None if there is none."""
        return None

    @abstractmethod
    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return the non-negative values of totals (..., columns) on ``units`` each."""

    def table(self, units: UnitCounts) -> Values:
        """Return U(0; units), U(1; units), ... U(units; units)."""
        return _table(int(units), self.delta)

    def least(self, units: UnitCounts) -> float | Values:
        """Return the smallest possible value, that of ``units`` without loss: for all splits, or each."""
        return float(self.table(units)[0])

    def transfer(self, values: Values, units: UnitCounts, target_units: UnitCounts) -> Values:
        """Return the values expected on ``target_units``, given those on ``units``, each of all splits.

        The mean losses are assumed to be the same; values are interpolated between counts.
        """
        here, there = self.table(units), self.table(target_units)
        loss = np.interp(values, here, np.arange(len(here))) / units
        return np.asarray(np.interp(loss * target_units, np.arange(len(there)), there))

    def state_l_ee(self, l_ee: float, n_splits: int, independent: bool = True) -> str:
        """Return the sentence that says what L_EE is, and that it is not proven.

        Args:
            l_ee: the mean over the splits on their estimate sets.
            n_splits: how many splits there are.
            independent: whether rows are independent, rather than groups of rows.
        """
        says = self.l_ee_is.format(n=n_splits, level=format_level(self.delta), costs=self.list_costs())
        return f"L_EE = {ceil_percent(l_ee)}: {says}"

    def describe_minimised(self) -> str:
        """Return what is minimised on the select sets, in a few words."""
        return self.minimised.format(format_level(self.delta))

    def list_costs(self) -> str:
        """Return the cost of an error on each class, the largest first; "" if all errors cost the same."""
        return ""


class MeanBound(Criterion):
    """The mean over the splits of Clopper-Pearson bounds on the error."""

    name = "error"
    bound = "clopper_pearson"
    l_ee_is = f"the paper's figure, the mean over {{n}} splits of {{level}} Clopper-Pearson bounds. {SINGLE}"
    minimised = "mean {} bound on the select sets (minimised)"
    estimated = "the same mean on the estimate sets (the paper's figure)"

    def for_groups(self) -> Criterion:
        """Return the form in which a group's loss is the share of its rows that are wrong."""
        return MeanShare(self.delta)

    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return U(errors; units), counting the errors of all classes together."""
        return np.asarray(self.table(units)[np.sum(totals, axis=-1)])


class MeanShare(MeanBound):
    """The form of ``MeanBound`` for groups: the loss of a group is the share of its rows that are wrong."""

    bound = "loss"
    l_ee_is = (
        "the paper's figure for groups, the mean over {n} splits of Clopper-Pearson's {level} formula at the "
        "sum of the groups' shares of wrong rows. It is what was minimised, measured on the estimate sets: "
        "no bound, and not proven."
    )
    minimised = (
        "mean share of a group's wrong rows with a {} margin, on the select sets (minimised; no bound)"
    )
    estimated = "the same mean on the estimate sets (the paper's figure, for groups; no bound)"

    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return U for totals (..., columns), the last of which is the sum of the units' losses."""
        return _value_losses(np.asarray(totals)[..., -1], units, self.delta)


def _clip(name: str, value: object) -> float:
    clip = float(f"{number(name, value):.12g}")  # as in the name of what is claimed
    if not 0.0 < clip < inf:
        raise InputError(f"{name}={value!r} is not allowed: {CLIP_IS}")
    return clip


@dataclass(frozen=True)
class MeanClippedError(MeanShare):
    """The mean over the splits of U at the total absolute error of numbers, each as a share of a clip.

    A larger error counts as the clip: without it, a row that is very far off could outweigh all others.

    Attributes:
        clip: the error beyond which a prediction counts as no more wrong, positive, in units of the target;
            it must be given.
    """

    name = "clipped"
    measure = ClippedErrors(1.0)
    minimised = "mean error with a {} margin, in % of the clip, on the select sets (minimised; no bound)"
    estimated = Criterion.estimated

    clip: float | None = option(None, _clip, "For numbers: the largest error that counts.", float)

    def for_groups(self) -> Self:
        """Return itself: numbers have losses in any case."""
        return self

    def state_l_ee(self, l_ee: float, n_splits: int, independent: bool = True) -> str:
        """Return the sentence that says what L_EE is, in units of the target."""
        assert self.clip is not None, "on requires one"
        each = "," if independent else ", each group counted once,"
        return (
            f"On the estimate sets the mean error{each} of which at most {format_number(self.clip)} counts, "
            f"is with a {format_level(self.delta)} margin {round_bound(self.clip * l_ee)} on average over "
            f"{n_splits} splits. It is what was minimised on the select sets: no bound, and not proven."
        )

    def on(self, classes: Sequence[object]) -> Self:
        """Return itself.

        Raises:
            InputError: no clip is given.
        """
        if self.clip is None:
            raise InputError(f"criterion={self.name} needs a clip: {CLIP_IS}")
        return self


class Balanced(Criterion):
    """The mean over the splits, and in each over the classes, of Clopper-Pearson bounds on a class's error.

    A class without rows in a split has the bound 1 there, whatever the candidate.
    """

    name = "balanced"
    by_class = True
    bound = "clopper_pearson"
    minimised = "mean of the classes' {} bounds on the select sets (minimised)"
    estimated = "the same mean on the estimate sets; no bound on the error"
    l_ee_is = (
        "the mean over {n} splits, and in each over the classes, of {level} Clopper-Pearson bounds on the "
        "error rate of a class. It is what was minimised, measured on the estimate sets: not a bound on the "
        f"error rate, and not proven. {ABOUT_ERROR}"
    )

    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return the mean of U(x_c; m_c) of each split; ``units`` is of the shape of ``totals``."""
        return _mean_of_classes(np.asarray(clopper_pearson(totals, units, self.delta)))

    def least(self, units: UnitCounts) -> Values:
        """Return the mean of U(0; m_c) for each split of ``units`` (n_splits, n_classes)."""
        rows = np.asarray(units)
        return self.value(np.zeros_like(rows), rows)

    def transfer(self, values: Values, units: UnitCounts, target_units: UnitCounts) -> Values:
        """Return the bounds on splits of ``target_units`` at the same error rate, one for all classes."""
        rates = np.interp(values, self._at_rates(units), RATES)
        return np.asarray(np.interp(rates, RATES, self._at_rates(target_units)))

    def _at_rates(self, units: UnitCounts) -> Values:
        """Return the values at ``RATES`` on a split with the mean number of rows of each class."""
        rows = np.asarray(units, dtype=np.float64).mean(axis=0)
        errors = RATES[:-1, None] * rows
        inside = scipy.special.betainccinv(errors + 1.0, np.maximum(rows - errors, 1e-9), self.delta)
        bounds = np.where(rows > 0, inside, 1.0)
        return np.append(_mean_of_classes(bounds), 1.0)


def _costs(name: str, value: object) -> str:
    """Return costs by label as canonical text; if there are none, which no task accepts, empty text."""
    if isinstance(value, str) and not value:
        return ""
    costs = measures.canonicalize(name, value, zero=True)
    if not any(cost for _, cost in measures.parse_pairs(costs)):
        raise InputError(f"{name} are all 0: at least one error must cost something")
    return costs


@dataclass(frozen=True)
class MeanCost(Criterion):
    """The mean over the splits of U at the total cost of the decisions, each as a share of the largest cost.

    Attributes:
        costs: the cost of a wrong decision on a row of each class, as canonical text (``core.measures``);
            given as text or as a mapping, such as {"sick": 10, "healthy": 1}. A cost may be 0: errors on that
            class do not count.
        losses: each class's cost in units of 1 / ``ONE`` of the largest, rounded up; set by ``on``.
    """

    name = "cost"
    bound = "loss"
    minimised = "mean cost with a {} margin, in % of the largest, on the select sets (minimised; no bound)"
    l_ee_is = (
        "the mean over {n} splits of Clopper-Pearson's {level} formula at the total cost of the decisions, "
        "in percent of the largest cost ({costs}). It is what was minimised, measured on the estimate sets: "
        f"not a bound on the error rate, nor on the cost, and not proven. {ABOUT_ERROR}"
    )

    costs: str = option("", _costs, "Costs, such as sick=10,healthy=1.", inside="criterion")
    losses: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def list_costs(self) -> str:
        """Return the cost of an error on each class, the largest first."""
        ordered = sorted(measures.parse_pairs(self.costs), key=lambda pair: -pair[1])
        shown = [f"{label!r} = {cost:g}" for label, cost in ordered[:MAX_COSTS]]
        return ", ".join(shown) + (", ..." if len(ordered) > MAX_COSTS else "")

    def on(self, classes: Sequence[object]) -> Self:
        """Return the criterion with labels spelled as in ``classes``, and with their losses.

        Raises:
            InputError: a label is not one of the classes, or a class has no cost, or two costs.
        """
        given = measures.of_classes("costs", self.costs, classes)
        if absent := [label for label, cost in zip(classes, given, strict=True) if cost is None]:
            example = cut(measures.to_text({str(label): 1 for label in classes[:2]}), 100)
            raise InputError(
                f"costs: no cost is given for {measures.some_labels(absent)}: give one for each class, such "
                f"as --criterion cost:{example}, where 0 is allowed"
            )
        costs = [cost for cost in given if cost is not None]
        largest = Fraction(max(costs))
        losses = tuple(ceil(ONE * Fraction(cost) / largest) for cost in costs)
        spelled = measures.to_text(dict(zip(map(str, classes), costs, strict=True)))
        return replace(self, costs=spelled, losses=losses)

    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return U at the cost of the decisions on ``units`` rows, given errors by class (..., n_classes)."""
        losses = np.asarray(totals, np.int64) @ np.array(self.losses, np.int64)
        return _value_losses(losses, units, self.delta)


class MeanError(Criterion):
    """The mean over the splits of the share of wrong rows: the usual figure of cross validation, not a bound.

    If two candidates of one fold size have equally many wrong rows over all splits, their means are equal bit
    for bit, however the errors are distributed: a split's value is the number of its errors times 1 / m, with
    1 / m rounded down to a multiple of 1 / ``FINEST``.
    """

    name = "mean_error"
    bound = "none"
    l_ee_is = MEAN_ERROR.format("wrong rows")
    minimised = "mean error on the select sets (minimised; no bound)"
    estimated = "mean error on the estimate sets; no bound"

    def for_groups(self) -> Criterion:
        """Return the form for groups, each counted once."""
        return MeanGroupError(self.delta)

    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return the share of wrong rows, counting the errors of all classes together."""
        weight = (FINEST // units) / FINEST  # 1 / units rounded down: its product with a count is exact
        return np.asarray(np.sum(totals, axis=-1) * weight)

    def least(self, units: UnitCounts) -> float:
        """Return 0."""
        return 0.0

    def transfer(self, values: Values, units: UnitCounts, target_units: UnitCounts) -> Values:
        """Return ``values``: the same ones are expected on any number of units."""
        return values


class MeanGroupError(MeanError):
    """The form of ``MeanError`` for groups: the mean over the splits, and in each over the groups, of the
    share of a group's rows that are wrong.
    """

    l_ee_is = MEAN_ERROR.format("the wrong rows of a group, each group counted once")

    def value(self, totals: Counts, units: UnitCounts) -> Values:
        """Return the mean losses for totals (..., columns), the last of which is the sum of the losses."""
        return np.asarray(np.asarray(totals)[..., -1] / ONE / units)


def _mean_of_classes(bounds: Values) -> Values:
    """Return the mean over the last axis, added class by class: the same bits in a batch of any size."""
    return np.asarray(np.cumsum(bounds, axis=-1)[..., -1] / bounds.shape[-1])


def _value_losses(losses: Counts, units: UnitCounts, delta: float) -> Values:
    """Return U at losses in units of 1 / ``ONE``, of their shape: ascending, and ``_table`` at counts."""
    totals = losses / ONE
    inside = scipy.special.betainccinv(totals + 1.0, np.maximum(units - totals, 1 / ONE), delta)
    return np.where(totals < units, inside, 1.0)
