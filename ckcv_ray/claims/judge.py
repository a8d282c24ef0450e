"""The models of a run and the rows that certify: what each rule makes of them, asked once for all claims."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Index
from ckcv_ray.core.draws import order_within
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, Prediction
from ckcv_ray.study import Problem, find_reference
from ckcv_ray.tables.task import TestRows


@dataclass(frozen=True)
class Judge:
    """What judges the rows that certify.

    Attributes:
        problem: the problem that was solved.
        models: those of the run.
    """

    problem: Problem
    models: Models

    @cached_property
    def held(self) -> TestRows:
        """The rows held out, which must exist."""
        held = self.problem.take_held_rows()
        assert held is not None
        return held

    def predict(self, rule: Rule) -> Prediction:
        """Return what a rule makes of the rows held out."""
        if rule not in self._by_rule:
            self._by_rule[rule] = rule.predict(self.models, self.held.X)
        return self._by_rule[rule]

    def find_reference_model(self, name: str) -> Member | None:
        """Return the model that a claim such as "better:svm" compares the winner with; None without one."""
        label, references = find_reference(name), self.models.references
        members = () if references is None else references.members
        setting = self.problem.learner.codec.setting
        return next((member for member in members if setting(member.model)[LABEL] == label), None)

    def predict_by_reference(self, name: str) -> Prediction:
        """Return what the model that a claim compares the winner with makes of the rows held out."""
        if name not in self._by_reference:
            member = self.find_reference_model(name)
            assert member is not None
            self._by_reference[name] = Ensemble((member,)).alone(self.held.X)
        return self._by_reference[name]

    def find_estimate_rows(self, number: int, nested: bool) -> Index:
        """Return the rows of the estimate set of a split of F*, or if ``nested`` of an outer split."""
        if nested:
            return self.problem.outer.rows(Stage.REFIT, 0, number)[1]
        size = self.problem.find_size(self.models.best.members[0].k)
        return self.problem.rows(Stage.REFIT, self.problem.sizes.index(size), number)[1]

    def predict_estimate(self, number: int, nested: bool) -> Prediction:
        """Return what the member of a split of F*, or of an outer split, makes of its estimate set."""
        if (number, nested) not in self._by_split:
            ensemble = self.models.nested if nested else self.models.best
            assert ensemble is not None
            alone, rows = Ensemble((ensemble.members[number],)), self.find_estimate_rows(number, nested)
            self._by_split[number, nested] = alone.alone(self.problem.task.X[rows])
        return self._by_split[number, nested]

    def measure_units(self, number: int, nested: bool) -> NDArray[np.int64]:
        """Return the losses of a split's units in units of 1 / ``ONE``, in the order drawn within it, (m,).

        They are those of whole groups, or of numbers that are predicted.
        """
        problem, rows = self.problem, self.find_estimate_rows(number, nested)
        y, predicted = problem.task.y[rows], self.predict_estimate(number, nested).label
        losses = problem.make_loss_measure(problem.task.groups[rows]).measure_losses(y, predicted)
        return losses[order_within(len(losses), problem.draws, number)]

    @cached_property
    def _by_rule(self) -> dict[Rule, Prediction]:
        return {}

    @cached_property
    def _by_reference(self) -> dict[str, Prediction]:
        return {}

    @cached_property
    def _by_split(self) -> dict[tuple[int, bool], Prediction]:
        return {}
