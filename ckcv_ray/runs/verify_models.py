"""Verification of models: each is compared with its split, its setting and the rows that it was fitted on.

A model that no log speaks of (refit, full) is always fitted again: its claim rests on it alone. So is
whatever the check of its learner leaves open, such as the optimality of a fit that the log calls not
converged. The stored model has to be the one fitted again: equal in content but for rounding, and alike on
every row of the table. Another model is a difference where versions and processor are those of the run;
elsewhere they may be why, and the run is not verified here.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.core.arrays import Index
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.evaluate import evaluate, fit_references, one_model, share
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import RunError, cut, pluralize
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, count_classes, judge, make_member
from ckcv_ray.runs.verification import LONGEST_REASON, MODEL_ROUNDING, Limit, describe_difference, note_other
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.tables.task import Task, TestRows

BEST, REFIT, FULL, REFERENCES = Models.__annotations__  # the names of the ensembles
MODEL_NAMES = {
    BEST: "model of split {}",
    REFIT: "model refit",
    FULL: "model full",
    REFERENCES: "model {} to compare with",
}


class StoredFit(NamedTuple):
    """How a model was fitted, as the study gives it.

    Attributes:
        setting: of its learner.
        task, train: the rows it was fitted on.
        scored: the rows it is judged on.
        converged: whether a log says that the fit converged.
    """

    setting: Setting
    task: Task
    train: Index
    scored: TestRows
    converged: bool


class ModelChecks:
    """The models of a finished run, checked, and compared with those that fitting again gives.

    Args:
        problem: that of the run.
        models: those in its folder.
        limit: how long it may take; every fit may raise a LackingError.
        elsewhere: whether versions or processor are not those of the run.

    Attributes:
        differences, unverified: as in ``verification.Verification``.
        compared: names of the models that were compared with their fits.
        last_bits: number of those that are equal but for rounding.
    """

    def __init__(self, problem: Problem, models: Models, limit: Limit, elsewhere: bool) -> None:
        self.problem, self.models, self.limit, self.elsewhere = problem, models, limit, elsewhere
        self.differences, self.unverified = list[str](), list[str]()
        self.compared, self.last_bits = set[str](), 0
        self._computed: dict[tuple[str, int], Member] = {}

    def check_ensemble(self, queue: RaceQueue, leader: Leader) -> list[int]:
        """Check the members of F*, and return the splits of those that only a fit can tell more about."""
        problem, ledger = self.problem, queue.ledger
        setting, left = problem.learner.space.setting(leader.path, leader.step), list[int]()
        for member in self.models.best.members:
            key = leader.size, member.split, leader.path, leader.step
            train, score = problem.rows(Stage.REFIT, leader.size, member.split)
            scored, converged = problem.task.take_test_rows(score), not ledger.is_not_converged(*key)
            fit = StoredFit(setting, problem.task, train, scored, converged)
            if self._check(BEST, member, fit):
                left.append(member.split)
            if member.totals != ledger.totals(True, *key):
                self.differences.append(
                    f"{MODEL_NAMES[BEST].format(member.split)}: its errors are not those in the log"
                )
        return left

    def fit_ensemble(self, leader: Leader, splits: list[int]) -> None:
        """Fit the members of F* on some splits again."""
        path = (leader.path, leader.step + 1)
        if not splits:
            return
        inputs = share(self.problem)
        for split in splits:
            self.limit.check()
            outcome = evaluate([Unit(Stage.REFIT, leader.size, split, (path,))], inputs)
            for member in outcome.members:
                self.compare(BEST, member)
            for failure in outcome.failures:
                self._note_failure(MODEL_NAMES[BEST].format(failure.split), failure.traceback)

    def check_one_model(self, leader: Leader) -> None:
        """Check the models refit and full, if there are any, and fit them again."""
        problem, held = self.problem, self.problem.take_held_rows()
        if held is None or self.models.refit is None or self.models.full is None:
            return
        setting = problem.learner.space.setting(leader.path, leader.step)
        for name, stored, task, scored in (
            (REFIT, self.models.refit, problem.task, held),
            (FULL, self.models.full, problem.every_row, held.none()),
        ):
            self._check(name, stored.members[0], StoredFit(setting, task, np.arange(task.n), scored, False))
        self.limit.check()
        try:
            refit, full = one_model(problem, leader)
        except RunError as error:
            self._note_failure("the models refit and full", str(error))
            return
        assert refit is not None
        assert full is not None
        self.compare(REFIT, refit.members[0])
        self.compare(FULL, full.members[0])

    def check_references(self, leader: Leader, table: pa.Table) -> None:
        """Check the models that the winner is compared with, and fit them again; ``table``: candidates."""
        stored = () if self.models.references is None else self.models.references.members
        self.limit.check()
        try:
            again = fit_references(self.problem, leader, table)
        except RunError as error:
            self._note_failure("the models to compare with", str(error))
            return
        computed, held = () if again is None else again.members, self.problem.take_held_rows()
        if len(computed) != len(stored):
            self.differences.append(
                f"there are {len(stored)} models to compare with, and the log gives {len(computed)}"
            )
            return
        for before, after in zip(stored, computed, strict=True):
            assert held is not None
            setting = self.problem.learner.codec.setting(after.model)
            train = np.arange(self.problem.task.n)
            self._check(REFERENCES, before, StoredFit(setting, self.problem.task, train, held, False))
            if before.k != after.k:
                name = MODEL_NAMES[REFERENCES].format(after.split)
                self.differences.append(f"{name}: its k is {before.k}, and the log gives {after.k}")
            self.compare(REFERENCES, after)

    def compare(self, kind: str, computed: Member) -> None:
        """Compare a stored model with the one that fitting again gives: on every row of the table, once."""
        name, stored = MODEL_NAMES[kind].format(computed.split), self._find_stored(kind, computed.split)
        if name in self.compared:
            return
        self.compared.add(name)
        self._computed[kind, computed.split] = computed
        if self.problem.learner.codec.same(stored.model, computed.model):
            return
        X = self.problem.every_row.X
        try:
            difference = describe_difference(self.problem, stored.model, computed.model, X)
        except Exception as error:  # of a stranger's model, of any kind
            self.differences.append(f"{name}: it cannot predict the rows of the table: {_show_error(error)}")
            return
        if not difference:
            self.last_bits += 1
            return
        if computed.errors != stored.errors:
            errors = pluralize(sum(computed.errors), "error")
            difference += f", and makes {errors} on the rows that judge it (stored: {sum(stored.errors):,})"
        self.note(f"{name}: fitted again, {difference}")

    def note(self, sentence: str) -> None:
        """Note that another model, or another bound, is computed than the run has."""
        note_other(sentence, self.elsewhere, self.differences, self.unverified)

    def compare_bounds(self, winner: Candidate, l_ms: float, stored: Certificate) -> Iterator[str]:
        """Yield what the models that were computed again prove, where a certificate says something else.

        Args:
            winner: of the run.
            l_ms: its criterion on the select sets.
            stored: the certificate.
        """
        pairs = ((self._find_stored(*key), member) for key, member in self._computed.items())
        same = self.problem.learner.codec.same
        if all(a.totals == b.totals and same(a.model, b.model, MODEL_ROUNDING) for a, b in pairs):
            return
        changed: dict[str, Ensemble] = {}
        for (kind, split), member in self._computed.items():
            members = (changed.get(kind) or getattr(self.models, kind)).members
            changed[kind] = Ensemble((*members[:split], member, *members[split + 1 :]))
        models = replace(self.models, **changed)  # as they were computed again
        again = certify(HeldOutPredictions(self.problem, models), winner, l_ms, False, {})
        computed, l_ee = again.winner.l_ee, stored.winner.l_ee
        if not np.isclose(computed, l_ee, 1e-9, 0.0):
            says = f"certificate.json says {ceil_percent(l_ee)}"
            yield f"computed again, L_EE is {ceil_percent(computed)}; {says}"
        earlier = {_identify(claim): claim for claim in stored.claims}
        for claim in again.claims:
            before = earlier.get(_identify(claim))
            if before is not None and np.isclose(claim.risk, before.risk, 1e-9, 0.0):
                continue
            says = "has none" if before is None else f"says {before.limit}"
            label, quantity = claim.label, claim.quantity
            of = quantity if label is None else f"{quantity} of {label!r}"
            name = f"the bound of {claim.certification}, {claim.classifier}, on the {of}"
            yield f"computed again, {name} is {claim.limit}; certificate.json {says}"

    def _check(self, kind: str, member: Member, fit: StoredFit) -> bool:
        """Check a model against its fit; return whether a fit can tell more."""
        problem, name, scored = self.problem, MODEL_NAMES[kind].format(member.split), fit.scored
        learner, n_classes = problem.learner, fit.task.n_classes
        if (fitted := learner.codec.setting(member.model)) != fit.setting:
            stored, winner = Candidate(fitted, member.k), Candidate(fit.setting, member.k)
            self.differences.append(f"{name}: fitted at {stored}, the winner is {winner}")
        left = True
        self.limit.check()  # the learner may fit it
        try:
            checked = learner.trainer.check(member.model, fit.task, fit.train, fit.converged)
        except Exception as error:  # a learner's check may fit, which may raise anything
            self.unverified.append(f"{name}: it cannot be checked here: {_show_error(error)}")
        else:
            self.differences += [f"{name}: {sentence}" for sentence in checked.differences]
            left = bool(checked.differences or checked.trusted)
        sizes = count_classes(scored.y, n_classes)
        try:
            totals = judge(member.model, scored.X, scored.y, problem.measure(scored.units), n_classes)
        except Exception as error:  # of a stranger's model, of any kind
            self.differences.append(
                f"{name}: it cannot classify the rows that judge it: {_show_error(error)}"
            )
            return left
        if totals != member.totals:
            self.differences.append(f"{name}: makes {totals} errors on its estimate set, not those recorded")
            self._computed[kind, member.split] = make_member(
                member.k, member.split, member.model, totals, sizes
            )
        if member.n_estimate != sizes:
            self.differences.append(f"{name}: the sizes of the classes in its estimate set differ")
        return left

    def _note_failure(self, name: str, reason: str) -> None:
        last = (reason.strip().splitlines() or [""])[-1]
        self.unverified.append(f"{name} could not be fitted again here: {cut(last, LONGEST_REASON)}")

    def _find_stored(self, kind: str, split: int) -> Member:
        ensemble: Ensemble = getattr(self.models, kind)
        return ensemble.members[split]


def _show_error(error: Exception) -> str:
    return cut(f"{type(error).__name__}: {error}", LONGEST_REASON)


def _identify(claim: Claim) -> tuple[Any, ...]:
    return claim.certification, claim.classifier, claim.quantity, claim.label
