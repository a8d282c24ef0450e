"""The rows that certify, and what each rule makes of them: asked once for all claims, and kept as a table.

The judged rows (``records.judged``) are the held-out rows as each rule that is claimed classifies them, and
each model that the winner is compared with.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE, Index, Values
from ckcv_ray.core.measures import ClippedErrors, Output
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, Prediction
from ckcv_ray.records.judged import count_judged, make_judged_schema
from ckcv_ray.study.parts import Certification
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import TestRows

Made = TypeVar("Made")


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions for the rows that certify, by each rule that is claimed.

    Attributes:
        problem: the problem that was solved.
        models: those of the run.
    """

    problem: Problem
    models: Models
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def make_once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns, which is called at the first request by this key alone."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @cached_property
    def rows(self) -> TestRows:
        """The rows held out, which must exist."""
        held = self.problem.take_held_rows()
        assert held is not None
        return held

    @property
    def certification(self) -> Certification:
        """The certification of the study, which must have one."""
        assert self.problem.study.certification is not None
        return self.problem.study.certification

    @property
    def delta(self) -> float:
        """The delta of each of the claims that share that of the study."""
        return self.problem.study.delta_of_claim

    @property
    def grouped(self) -> bool:
        """Whether the independent units are groups of rows."""
        return self.problem.task.grouped

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

    def measure_loss(self, predicted: NDArray[Any]) -> Values:
        """Return the loss of each row held out: 1 if it is wrong, or the clipped error by the clip."""
        y, clip = self.rows.y, self.problem.clip
        if clip is None:
            return np.asarray(predicted != y, float)
        losses = ClippedErrors(clip).measure_losses(y.astype(float), predicted.astype(float))
        return np.asarray(losses / ONE)

    def find_rule(self, claim: str) -> Rule:
        """Return the rule that a claim by this name is about: of a quantity, the first rule that is named."""
        named = claim not in self.certification.quantities
        return Rule(claim if named else self.certification.rule_of_quantities)

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

    def find_reference_model(self, label: str) -> Member | None:
        """Return the model of a learner that the winner is compared with; None without one."""
        references = self.models.references
        members = () if references is None else references.members
        setting = self.problem.learner.codec.setting
        return next((member for member in members if setting(member.model)[LABEL] == label), None)

    def predict_by_reference(self, label: str) -> Prediction:
        """Return what the model of a learner that the winner is compared with makes of the rows held out."""
        member = self.find_reference_model(label)
        assert member is not None
        return self.make_once(("reference", label), lambda: Ensemble((member,)).alone(self.rows.X))


def tabulate_judged(held: HeldOutPredictions) -> pa.Table | None:
    """Return the judged rows of a study; None if none are judged, or too many for a file."""
    if not count_judged(held.problem):
        return None
    return pa.concat_tables(_tabulate_rules(held)).combine_chunks()


def _tabulate_rules(held: HeldOutPredictions) -> Iterator[pa.Table]:
    """Yield the held-out rows as each rule that is claimed judges them, and each model to compare with."""
    problem, certification, rows = held.problem, held.certification, held.rows
    assert problem.held is not None
    rules = dict.fromkeys(map(held.find_rule, certification.claim))
    judges = [(rule.name, held.predict(rule), rule.ensemble(held.models)) for rule in rules]
    for name, quantity in certification.quantities.items():
        if quantity.reference and (member := held.find_reference_model(quantity.reference)) is not None:
            judges.append((name, held.predict_by_reference(quantity.reference), Ensemble((member,))))
    unit = problem.all_rows.groups[problem.held]
    places = dict(zip(np.unique(unit).tolist(), held.order.argsort().tolist(), strict=True))
    order = [places[number] for number in unit.tolist()]
    for name, predicted, ensemble in judges:
        setting = problem.learner.codec.setting(ensemble.members[0].model)
        ranks = problem.task.n_classes == 2 and Output.RANK in problem.find_learner(setting)[1].outputs
        columns: dict[str, Any] = {
            "classifier": np.full(len(unit), name),
            "row": problem.held,
            "unit": unit,
            "order": order,
            "label": rows.y,
            "predicted": predicted.label,
            "loss": held.measure_loss(predicted.label),
            "score": predicted.score if ranks else [None] * len(unit),
            "weight": problem.all_rows.weighting.take(problem.held),  # a column of weighted rows alone
        }
        schema = make_judged_schema(problem)
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
        yield pa.table(arrays, schema=schema)
