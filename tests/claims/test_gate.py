"""The gate: what may be quoted is proven better than a constant, jointly with all that is claimed."""

from typing import Any

import numpy as np
import pytest
from claimed import run
from conftest import unwrap

from ckcv_ray import Study, Task
from ckcv_ray.claims.certificate import Compared
from ckcv_ray.claims.certify import list_needs
from ckcv_ray.claims.quantity import Claim, read_quantity
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.learners.ensemble import predict_numbers
from ckcv_ray.study.problem import Problem

RNG = np.random.default_rng(53)
N = 120
X = RNG.normal(size=(N, 3))
SIGNAL = X[:, 0] + 0.5 * RNG.normal(size=N)
LINEAR = Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_share=0.5)


def test_of_numbers_the_median_of_the_learning_rows_has_to_be_beaten() -> None:
    """Of classes ``jobs/check_certificate`` computes the gate again."""
    result = run(LINEAR.replace(learner="ridge", clip=2), Task.of(X, SIGNAL, numbers=True))
    claim, problem = result.certificate.first, result.problem
    held, model = problem.take_held_rows(), result.models.refit.members[0].model
    mine, constant = (
        np.minimum(np.abs(predicted - held.y), 2) / 2
        for predicted in (predict_numbers(model, held.X), np.median(problem.task.y))
    )
    drawn = order_held_out(N, N // 2, problem.draws)
    order = [problem.held.tolist().index(row) for row in drawn]
    assert (claim.gate.lost, claim.gate.won) == (np.sum(mine > constant), np.sum(mine < constant))
    expected = bound_losses((1 + (mine - constant)[order]) / 2, claim.delta)
    assert claim.gate.bound == pytest.approx(expected, abs=1e-5)
    assert claim.gate.least <= claim.gate.bound < 0.5


def test_a_bound_below_a_constant_that_is_not_proven_better_is_a_figure() -> None:
    """Of these rows a tenth is 'ill': hardly any constant errs less, and five rows are not enough."""
    y = np.where(np.arange(200) < 16, "ill", "well")
    rows = np.random.default_rng(2).normal(size=(200, 2)) + 0.9 * (y == "ill")[:, None]
    result = run(LINEAR, Task.of(rows, y))
    gate = result.certificate.first.gate
    assert gate.bound >= 0.5
    assert unwrap(result.summary()).startswith("Nothing can be quoted yet. The bound ")
    assert "that this is better is not proven" in result.claim_for(result.rule())


def test_a_gate_that_no_rule_can_pass_is_foreseen_and_said() -> None:
    y = np.where(np.arange(40) % 10 == 0, "ill", "well")
    task = Task.of(X[:40], y)
    error, gate = list_needs(Problem.of(LINEAR, task))
    assert ((error.needed, error.rows), (gate.needed, gate.rows)) == ((1, 20), (5, 2))
    assert error.lines[0].endswith(": at most 13.92 % if none of 20 held-out rows is wrong")
    said = "at least 50.00 %: not before 5 held-out rows outside the commonest class, none of them wrong"
    assert said in gate.lines[1]
    result = run(LINEAR, task)
    assert result.certificate.first.gate.least >= 0.5
    assert "these rows cannot prove it, even with none wrong" in unwrap(result.summary())


def guess(*claims: tuple[Any, ...]) -> list[str]:
    """What is said of claims of a quantity, its bound, and its label if it has one."""
    made = [
        Claim(read_quantity(name), "refit", bound, 0.05, "", label=next(iter(label), None))
        for name, bound, *label in claims
    ]
    compared = Compared()
    compared.claims, compared.labels = tuple(made), ("ill", "well")
    return compared.describe_guesses()


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (("sensitivity", 0.1, "ill"), "is reached by always predicting 'ill': quote it with the recalls of"),
        (("ppv:0.3", 0.71), "says nothing beyond a constant, which reaches 30.00 %"),
        (("npv:0.3", 0.31), "which reaches 70.00 %"),
        (("net_benefit:0.3:0.2", 1.0), "which reaches 12.50 %"),
        (("auc", 0.49), ""),
        (("auc", 0.5), "An AUC of at least 50.00 % (holdout) says nothing beyond a guess"),
        (("answered_error", 0.05), "That the rows answered are wrong less often than by always predicting"),
    ],
)
def test_what_a_constant_reaches_too_is_cautioned_against(claim: tuple[Any, ...], words: str) -> None:
    said = guess(claim)
    assert (said == []) if not words else words in said[0]


@pytest.mark.parametrize(("specificity", "words"), [(0.45, "add up to 95.00 %"), (0.3, "")])
def test_recalls_that_a_guess_reaches_are_cautioned_against(specificity: float, words: str) -> None:
    said = guess(("sensitivity", 0.6, "ill"), ("specificity", specificity, "well"))
    assert (said == []) if not words else words in said[0]
