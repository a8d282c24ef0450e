"""Verification of models: each is compared with its split, its setting and the rows that it was fitted on.

A model that no log speaks of (nested, refit, full) is always fitted again: its claim rests on it alone, how
its fit ended is not recorded, and one chosen for its errors on the held-out rows can pass for a fit that was
stopped early.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Leader
from ckcv_ray.data.schema import Index
from ckcv_ray.data.task import Task, TestRows
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.engine.nested import nested_ensemble
from ckcv_ray.engine.refit import one_model
from ckcv_ray.learners.base import Learner, Setting
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, class_sizes, judge
from ckcv_ray.study import Candidate, Problem


class Fit(NamedTuple):
    """How a model was fitted, as the study gives it.

    Attributes:
        name: of the model, for messages.
        setting: of its learner.
        task, train: the rows it was fitted on.
        scored: the rows it is judged on.
        converged: whether a log says that the fit converged.
    """

    name: str
    setting: Setting
    task: Task
    train: Index
    scored: TestRows
    converged: bool


def ensemble_differences(
    ensemble: Ensemble, aggregator: Aggregator, leader: Leader, trusted: list[str]
) -> Iterator[str]:
    """Yield how the members of F* differ from what the log and the data give.

    Args:
        trusted: what cannot be checked is appended here.
    """
    problem, ledger = aggregator.problem, aggregator.ledger
    setting = problem.learner.setting(leader.path, leader.step)
    for member in ensemble.members:
        name = f"model of split {member.split}"
        at = leader.size, member.split, leader.path, leader.step
        converged = not ledger.is_not_converged(*at)
        fit = _of_split(name, setting, problem, leader.size, member.split, converged)
        yield from _differences(member, problem, fit, trusted)
        if member.totals != ledger.totals(True, *at):
            yield f"{name}: its errors are not those in the log"


def nested_differences(
    member: Member, problem: Problem, setting: Setting, trusted: list[str]
) -> Iterator[str]:
    """Yield how the model of an outer split differs from what that split and its selection give."""
    name = f"nested model of outer split {member.split}"
    fit = _of_split(name, setting, problem.outer, 0, member.split, converged=False)
    return _differences(member, problem, fit, trusted)


def refitted_differences(
    nested: Ensemble, problem: Problem, winners: list[Setting], trusted: list[str], exact: bool
) -> Iterator[str]:
    """Yield how the models of the outer splits differ from those that fitting again gives.

    Args:
        trusted: what cannot be compared is appended here.
        exact: whether this environment gives the same bits as the run's.
    """
    again = nested_ensemble(problem, winners)
    for stored, computed in zip(nested.members, again.members, strict=True):
        name = f"nested model of outer split {stored.split}"
        yield from _bits(name, stored, computed, problem.learner, trusted, exact)


def one_model_differences(
    models: Models, problem: Problem, leader: Leader, trusted: list[str], exact: bool
) -> Iterator[str]:
    """Yield how the models refit and full, if there are any, differ from those that fitting again gives."""
    held = problem.held_rows()
    if held is None or models.refit is None or models.full is None:
        return
    setting = problem.learner.setting(leader.path, leader.step)
    refit, full = one_model(problem, leader)
    fits = (
        ("model refit", models.refit, refit, problem.task, held),
        ("model full", models.full, full, problem.every_row, held.none()),
    )
    for name, stored, computed, task, scored in fits:
        assert computed is not None
        fit = Fit(name, setting, task, np.arange(task.n), scored, converged=False)
        yield from _differences(stored.members[0], problem, fit, trusted)
        yield from _bits(name, stored.members[0], computed.members[0], problem.learner, trusted, exact)


def _of_split(name: str, setting: Setting, problem: Problem, size: int, split: int, converged: bool) -> Fit:
    train, score = problem.rows(Stage.REFIT, size, split)
    return Fit(name, setting, problem.task, train, problem.task.scored(score), converged)


def _differences(member: Member, problem: Problem, fit: Fit, trusted: list[str]) -> Iterator[str]:
    """Yield how a model differs from its fit; what cannot be checked is appended to ``trusted``."""
    learner, name, scored, n_classes = problem.learner, fit.name, fit.scored, fit.task.n_classes
    if (fitted := learner.setting_of(member.model)) != fit.setting:
        stored, winner = Candidate(fitted, member.k), Candidate(fit.setting, member.k)
        yield f"{name}: fitted at {stored}, the winner is {winner}"
    checked = learner.check(member.model, fit.task, fit.train, fit.converged)
    yield from (f"{name}: {sentence}" for sentence in checked.differences)
    trusted += [f"{name}: {sentence}" for sentence in checked.trusted]
    totals = judge(member.model, scored.X, scored.y, problem.measure(scored.groups), n_classes)
    if totals != member.totals:
        yield f"{name}: makes {totals} errors on its estimate set, not those recorded"
    if member.n_estimate != class_sizes(scored.y, n_classes):
        yield f"{name}: the sizes of the classes in its estimate set differ"


def _bits(
    name: str, stored: Member, computed: Member, learner: Learner, trusted: list[str], exact: bool
) -> Iterator[str]:
    if not exact:
        trusted.append(f"{name}: its last bits, as execution.json records another environment")
    elif not learner.same(stored.model, computed.model):
        yield f"{name}: fitted again, it is different"
