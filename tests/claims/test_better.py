"""Better than another learner, and the gate: better than a constant, jointly with all that is claimed."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claimed import run
from conftest import unwrap
from forgery import rewrite_run

from ckcv_ray import Study, Task, load_run
from ckcv_ray.claims.better import Better
from ckcv_ray.claims.certificate import Compared
from ckcv_ray.claims.certify import list_needs, prove
from ckcv_ray.claims.quantity import Claim, HeldOutPredictions, read_quantity
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.evaluate import fit_references
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.ensemble import Ensemble, predict_numbers
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.problem import Problem

N = 150
RNG = np.random.default_rng(np.random.SeedSequence(31))
RING = RNG.normal(size=(N, 2))
INSIDE = (np.sum(RING**2, axis=1) < 1.4).astype(int)  # a line cannot tell it, a Gaussian machine can
TASK = Task.of(RING, INSIDE)
LINEAR = Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_share=0.5)
STUDY = Study.paper(
    learner="svm,linear", C=(1.0, 10.0), gamma=(0.1, 1.0), k=(3, 5), n_splits=4,
    certify="holdout", holdout_share=0.5, claim="refit,better:linear",
)  # fmt: skip


# Another learner


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, which is to be copied and not to be changed."""
    out = tmp_path_factory.mktemp("better") / "run"
    run(STUDY, TASK, out)
    return out


def test_the_winner_is_compared_with_the_best_of_the_learner_named(folder: Path) -> None:
    """The setting of the other is the best of an exhaustive search."""
    result = load_run(folder)
    assert result.setting["learner"] == "svm"
    full = run(STUDY.replace(exhaustive=True), TASK)
    (expected,) = [row for row in full.to_json()["per_learner"] if row["learner"] == "linear"]
    (other,) = result.models.references.members
    codec = result.problem.learner.codec
    assert (codec.setting(other.model), other.k) == (expected["setting"], expected["k"])
    assert full.models.references.members[0].errors == other.errors
    (claim,) = [claim for claim in result.certificate.claims if claim.quantity == Better("linear")]
    assert claim.bound < 0.5
    assert "misclassifies fewer new rows than the best of linear (C = " in claim.statement
    won = claim.rows - claim.errors
    counts = f"{won} wrong by the latter alone and {claim.errors} by the former alone, exact sign test"
    assert counts in claim.statement


def test_a_learner_that_is_no_worse_is_not_expected_to_be_beaten_by_more_rows() -> None:
    """A tree of one leaf, and the commoner class, say the same of every row."""
    study = STUDY.replace(learner="tree,constant", claim="better:constant,better:tree", k=(3,))
    result = run(study, Task.of(RING[:60], np.arange(60) % 4 == 0))
    statements = {claim.statement for claim in result.certificate.claims if claim.quantity.reference}
    (own,) = (said for said in statements if said.startswith("Nothing can be claimed for the share of wins"))
    assert own.endswith(" is the learner that was selected.")
    (said,) = statements - {own}
    assert "as measured, more rows alone are not expected to prove it" in said


def test_of_a_learner_whose_candidates_failed_nothing_is_claimed(folder: Path) -> None:
    result = load_run(folder)
    predictions = HeldOutPredictions(result.problem, replace(result.models, references=None))
    (claim,) = [c for c in prove(predictions, result.k) if str(c.quantity) == "better:linear"]
    assert claim.statement.endswith(" has no candidate that could be completed.")
    assert (claim.bound, claim.rows) == (None, 0)
    table = result.candidates
    assert fit_references(result.problem, Leader(0.0, 0, 0, 0), table.filter(table["l_ms"].is_null())) is None


def test_models_to_compare_with_are_fitted_again_and_no_more_than_learners(
    folder: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(folder, tmp_path / "run")
    assert verify(out).differences == []
    models = load_run(out).models
    (member,) = models.references.members
    rewrite_run(out, models=replace(models, references=Ensemble((replace(member, k=4),))))
    said = "model 0 to compare with: its k or its counts are not"
    assert any(said in difference for difference in verify(out).differences)
    rewrite_run(out, models=replace(models, references=Ensemble((member, replace(member, split=1)))))
    with pytest.raises(StoreError, match="it has 2 models of 1 learners at most"):
        load_run(out)


# Constants: of classes ``jobs/check_certificate`` computes the gate again


def test_of_numbers_the_median_of_the_learning_rows_has_to_be_beaten() -> None:
    task = Task.of(RING, RING[:, 0] + 0.5 * RNG.normal(size=N), numbers=True)
    result = run(LINEAR.replace(learner="ridge", clip=2), task)
    claim, problem = result.certificate.first, result.problem
    held, model = problem.take_held_rows(), result.models.refit.members[0].model
    mine, constant = (
        np.minimum(np.abs(predicted - held.y), 2) / 2
        for predicted in (predict_numbers(model, held.X), np.median(problem.task.y))
    )
    order = [problem.held.tolist().index(row) for row in order_held_out(N, N // 2, problem.draws)]
    assert (claim.gate.lost, claim.gate.won) == (np.sum(mine > constant), np.sum(mine < constant))
    expected = bound_losses((1 + (mine - constant)[order]) / 2, claim.delta)
    assert claim.gate.bound == pytest.approx(expected, abs=1e-5)
    assert claim.gate.least <= claim.gate.bound < 0.5


def test_a_bound_below_a_constant_that_is_not_proven_better_is_a_figure() -> None:
    """Of these rows a tenth is 'ill': hardly any constant errs less, and five rows are not enough."""
    y = np.where(np.arange(200) < 16, "ill", "well")
    rows = np.random.default_rng(2).normal(size=(200, 2)) + 0.9 * (y == "ill")[:, None]
    result = run(LINEAR, Task.of(rows, y))
    assert result.certificate.first.gate.bound >= 0.5
    assert unwrap(result.summary()).startswith("Nothing can be quoted yet. The bound ")
    assert "that this is better is not proven" in result.claim_for(result.rule())


def test_a_gate_that_no_rule_can_pass_is_foreseen_and_said() -> None:
    task = Task.of(RING[:40], np.where(np.arange(40) % 10 == 0, "ill", "well"))
    error, gate = list_needs(Problem.of(LINEAR, task))
    assert ((error.needed, error.rows), (gate.needed, gate.rows)) == ((1, 20), (5, 2))
    assert error.lines[0].endswith(": at most 13.92 % if none of 20 held-out rows is wrong")
    said = "at least 50.00 %: not before 5 held-out rows outside the commonest class, none of them wrong"
    assert said in gate.lines[1]
    result = run(LINEAR, task)
    assert result.certificate.first.gate.least >= 0.5
    assert "these rows cannot prove it, even with none wrong" in unwrap(result.summary())


OF_WELL = ("specificity", 0.45, "well")


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([("sensitivity", 0.1, "ill")], "Always predicting 'ill' reaches any"),
        ([("sensitivity", 0.6, "ill"), OF_WELL], "add up to 95.00 %"),
        ([("sensitivity", 0.5, "ill"), OF_WELL], ""),
        ([("ppv:0.3", 0.71)], "says nothing beyond a constant, which reaches 30.00 %"),
        ([("npv:0.3", 0.31)], "which reaches 70.00 %"),
        ([("net_benefit:0.3:0.2", 1.0)], "which reaches 12.50 %"),
        ([("auc", 0.49)], ""),
        ([("auc", 0.5)], "An AUC of at least 50.00 % (holdout) says nothing beyond a guess"),
        ([("answered_error", 0.05)], "That the rows answered are wrong less often than by always predicting"),
    ],
)
def test_what_a_constant_or_a_guess_reaches_too_is_cautioned_against(claims: Any, words: str) -> None:
    compared = Compared()
    compared.labels = ("ill", "well")
    compared.claims = tuple(
        Claim(read_quantity(name), "refit", bound, 0.05, "", label=next(iter(label), None))
        for name, bound, *label in claims
    )
    said = compared.describe_guesses()
    assert (said == []) if not words else words in said[0]
