"""The models of a run and the rows that certify: what each rule makes of them, asked once for all claims."""

from dataclasses import dataclass, field
from functools import cached_property

from ckcv_ray.claims.claim import Claim
from ckcv_ray.claims.cut_offs import CutOff
from ckcv_ray.claims.rules import Rule
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, Prediction
from ckcv_ray.study import Problem, find_reference
from ckcv_ray.tables.task import TestRows


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions for the rows that certify, by each rule that is claimed.

    Attributes:
        problem: the problem that was solved.
        models: those of the run.
    """

    problem: Problem
    models: Models
    _by_rule: dict[Rule, Prediction] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_reference: dict[str, Prediction] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def held(self) -> TestRows:
        """The rows held out, which must exist."""
        held = self.problem.take_held_rows()
        assert held is not None
        return held

    @property
    def delta(self) -> float:
        """The delta of each of the claims that share that of the study."""
        certification = self.problem.study.certification
        assert certification is not None
        return self.problem.study.delta / certification.n_shares

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


def make_claimed_rule(problem: Problem, claim: Claim) -> Rule:
    """Return the rule that a claim from held-out rows is about, with the cut-off that was chosen for it."""
    cut_off = CutOff(claim["cut_off"], problem.positive) if "cut_off" in claim else None
    return Rule(claim["classifier"], cut_off=cut_off)
