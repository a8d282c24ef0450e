"""That the winner errs less often than another learner of its study: from held-out rows, done again here."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from claimed import run
from conftest import unwrap
from forgery import rewrite_run

from ckcv_ray import Study, Task, load_run
from ckcv_ray.claims.better import Better
from ckcv_ray.claims.certify import prove
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.records.candidates import find_best
from ckcv_ray.runs.verify import verify

RNG = np.random.default_rng(np.random.SeedSequence(31))
N = 150
RING = RNG.normal(size=(N, 2))
INSIDE = (np.sum(RING**2, axis=1) < 1.4).astype(int)  # a line cannot tell it, a Gaussian machine can
TASK = Task.of(RING, INSIDE)
STUDY = Study.paper(
    learner="svm,linear", C=(1.0, 10.0), gamma=(0.1, 1.0), k=(3, 5), n_splits=4,
    certify="holdout", holdout_share=0.5, claim="refit,better:linear",
)  # fmt: skip


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
    result = run(study, Task.of(RNG.normal(size=(60, 2)), np.arange(60) % 4 == 0))
    statements = [claim.statement for claim in result.certificate.claims if claim.quantity.reference]
    own = [said for said in statements if said.startswith("Nothing can be claimed for the share of wins")]
    assert len(own) == 1
    assert own[0].endswith("it is the learner that was selected.")
    (said,) = set(statements) - set(own)
    assert "as measured, more rows alone are not expected to prove it" in said
    assert "it is the learner that was selected" in unwrap(result.summary())


def test_of_a_learner_whose_candidates_failed_nothing_is_claimed(folder: Path) -> None:
    result = load_run(folder)
    models = replace(result.models, references=None)
    predictions = HeldOutPredictions(result.problem, models)
    (claim,) = [c for c in prove(predictions, result.k) if str(c.quantity) == "better:linear"]
    assert claim.statement.endswith("no candidate of it could be completed.")
    assert (claim.bound, claim.rows) == (None, 0)
    table = result.candidates
    none = table.set_column(table.schema.get_field_index("l_ms"), "l_ms", pa.nulls(len(table), pa.float64()))
    assert find_best(none, result.problem, "linear") is None


# Folders


def test_models_to_compare_with_are_fitted_again_and_no_more_than_learners(
    folder: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(folder, tmp_path / "run")
    assert verify(out).differences == []
    models = load_run(out).models
    (member,) = models.references.members
    rewrite_run(out, models=replace(models, references=Ensemble((replace(member, k=4),))))
    assert any(
        "model 0 to compare with: its k or its counts are not" in said for said in verify(out).differences
    )
    rewrite_run(out, models=replace(models, references=Ensemble((member, replace(member, split=1)))))
    with pytest.raises(StoreError, match="it has 2 models of 1 learners at most"):
        load_run(out)
