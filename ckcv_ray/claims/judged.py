"""The rows that certify, and what each rule makes of them: asked once for all claims."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, Prediction
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.tables.task import TestRows
from ckcv_ray.validation import ONE, Index, Numbers, Values

Made = TypeVar("Made")


class Premise(NamedTuple):
    """What claims take for granted of the rows that they rest on, in the words of their statements."""

    given: str  # begins them
    over: str = "data and splits"  # what their probability is over
    limits: str = ""  # ends them: what they do not say


MOST_OF_UNLIKE = 0.25  # levels at which Clopper-Pearson bounds the mean of unlike probabilities
LIKE_THESE = (
    " A new row is one like these, of the same source, period and way of collection: nothing is said of rows "
    "that do not meet the condition, of later periods if the source changes, or of rows that are related."
)
ONE_SOURCE = Premise("Assuming independent examples from one source")
GROUPS_OF_ONE_SOURCE = Premise("Assuming independent groups of rows from one source")


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions for the rows that certify, by each rule that is claimed.

    Attributes:
        problem: the problem that was solved.
        models: those of the run.
        copies: rows held out, or groups, that are not counted as independent, not known which.
    """

    problem: Problem
    models: Models
    copies: int = 0
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def without(self, copies: int) -> "HeldOutPredictions":
        """Return the same predictions, made once for both, with so many copies."""
        others = replace(self, copies=copies)
        others._made.update(self._made)
        return others

    def make_once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns, which is called at the first request by this key alone."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @property
    def rows(self) -> TestRows:
        """The rows held out, which must exist."""
        held = self.make_once("rows", self.problem.take_held_rows)
        assert held is not None
        return held

    @property
    def delta(self) -> float:
        """The delta of each of the claims that share that of the study."""
        return self.problem.study.delta_of_claim

    @property
    def delta_of_wins(self) -> float:
        """The delta of a share of wins."""
        return self.delta

    @cached_property
    def order(self) -> Index:
        """Positions of the units held out, among these by their numbers, in the order drawn."""
        return self.problem.order_held_units()

    @property
    def weights(self) -> Values:
        """The weights of the rows held out, which must have some, (rows,)."""
        assert self.problem.held is not None
        weights = self.problem.all_rows.weighting.take(self.problem.held)
        assert weights is not None
        return weights

    @property
    def drawn(self) -> bool:
        """Whether the order of the units was drawn, independently of everything else."""
        return self.problem.certification.where is None

    def bound_losses(self, losses: Values, delta: float, shares: Values | None = None) -> float:
        """Return the bound on the mean loss of units held out, (units,); see ``betting.bound_losses``."""
        return bound_losses(losses, delta, shares, self.copies, self.drawn)

    def state_premise(self, of_counts: bool) -> Premise:
        """Return what is assumed of the rows held out; what is ``of_counts`` takes independence alone."""
        units, where = self.problem.task.units, self.problem.certification.where
        if where is None:
            return ONE_SOURCE if units.independent else GROUPS_OF_ONE_SOURCE
        these = f"{pluralize(len(self.order), units.unit)} with {where.column} {where.sign} {where.value!r}"
        independent = "independent of each other and of the learning rows"
        if not (of_counts and units.independent and self.delta <= MOST_OF_UNLIKE):
            independent = "independent draws of one source, drawn independently of the learning rows"
        given = (
            f"Assuming that the {these} are {independent}, and that the condition was named before anything"
        )
        return Premise(f"{given} of them was seen", "the drawing of such rows", LIKE_THESE)

    def measure_loss(self, predicted: Numbers) -> Values:
        """Return the loss of each row held out: 1 if it is wrong, or the clipped error by the clip."""
        y, clip = self.rows.y, self.problem.clip
        if clip is None:
            return np.asarray(predicted != y, float)
        losses = ClippedErrors(clip).measure_losses(y.astype(float), predicted.astype(float))
        return np.asarray(losses / ONE)

    @property
    def constants(self) -> Sequence[float]:
        """What constants predict: each class, or of numbers the median of those to learn from."""
        task = self.problem.task
        if self.problem.clip is None:
            return range(task.n_classes)
        weights = task.units.weigh_rows(task.row_units)
        if weights is None:
            return [float(np.median(task.y))]  # else the least number that half of the groups are up to
        return [float(np.quantile(task.y, 0.5, weights=weights, method="inverted_cdf"))]

    def find_rule(self, claim: str) -> Rule:
        """Return the rule that a claim by this name is about: of a quantity, the first rule that is named."""
        named = claim not in self.problem.certification.quantities
        return Rule(claim if named else self.problem.certification.rule_of_quantities)

    def predict(self, rule: Rule) -> Prediction:
        """Return what a rule makes of the rows held out."""
        return self.make_once(rule, lambda: rule.predict(self.models, self.rows.X))

    def predict_probabilities(self, rule: Rule) -> Values:
        """Return the probability of each class for the rows held out, (rows, n_classes)."""
        member = self.predict(rule).member
        return self.make_once(
            ("probabilities", rule),
            lambda: rule.ensemble(self.models).probabilities(self.rows.X, member),
        )

    def list_unlearned(self) -> list[tuple[Member, Index]]:
        """Return each member of F* with the rows of its estimate set, from which it has not learned."""
        members = self.models.best.members
        return [(member, self.problem.find_estimate_rows(member.k, member.split)) for member in members]

    def find_reference(self, label: str) -> tuple[str, Prediction, Ensemble] | None:
        """Return the model of a learner that the winner is compared with: its name, what it predicts, itself.

        It is None if the learner has none.
        """
        models = () if self.models.references is None else self.models.references.members
        for member in models:
            setting = {**self.problem.learner.codec.setting(member.model)}
            if setting.pop(LABEL) == label:
                one = Ensemble((member,))
                name = f"the best of {label} ({Candidate(setting, member.k)}), fitted on the same rows"
                return name, self.make_once(("reference", label), partial(one.alone, self.rows.X)), one
        return None
