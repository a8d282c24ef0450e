"""Runs with weights of rows are stored, verified and read like others, and say what their claims are of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs, unwrap

from ckcv_ray import CKCVClassifier, Execution, Study, Task, load_run, plan, run, verify
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError
from ckcv_ray.reports.render import make_page
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
ROWS = blobs(60, shift=0.7)
WEIGHTS = np.random.default_rng(0).uniform(0.2, 5.0, 60)
SMALL: dict[str, Any] = {"learner": "linear", "param": {"C": (0.1, 10.0)}, "k": (3, 4), "n_splits": 3}
SENTENCE = "Rows are weighted by 'weight' in fits alone: measures and claims are unweighted."


@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_a_weighted_run_is_verified_and_says_so(certify: str, tmp_path: Path) -> None:
    study = Study.of(**SMALL, certify=certify)
    result = run(study, ROWS.X, ROWS.y, tmp_path, SERIAL, sample_weight=WEIGHTS)
    assert result.certificate.statements.count(SENTENCE) == 1
    assert [unwrap(result.summary(details=each)).count(SENTENCE) for each in (False, True)] == [1, 1]
    assert unwrap(make_page(tmp_path)).count("Rows are weighted by") == 1
    assert verify(tmp_path, rerun=True).ok
    again = load_run(tmp_path)
    assert np.array_equal(again.problem.all_rows.weighting.named, WEIGHTS)
    assert np.array_equal(again.predict(ROWS.X, by="vote"), result.predict(ROWS.X, by="vote"))
    plain = run(study, ROWS.X, ROWS.y)
    assert plain.run_id != result.run_id
    assert not any("weighted by" in sentence for sentence in plain.certificate.statements)
    options = {"learner": "linear", "params": SMALL["param"], "k": (3, 4), "n_splits": 3}
    fitted = CKCVClassifier(**options, certify=certify).fit(ROWS.X, ROWS.y, sample_weight=WEIGHTS)
    assert fitted.result_.run_id == result.run_id
    assert SENTENCE in fitted.certificate_["statements"]


def test_a_plan_refuses_weights_that_are_not_used() -> None:
    with pytest.raises(InputError, match="learner svm does not use weights of rows"):
        plan(Study.of(k=3), ROWS.X, ROWS.y, sample_weight=WEIGHTS)


def test_members_and_the_refit_are_fitted_with_the_weights_of_their_rows() -> None:
    result = run(Study.of(**SMALL, certify="holdout"), ROWS.X, ROWS.y, sample_weight=WEIGHTS)
    learned = np.delete(np.arange(60), result.problem.held)
    assert np.array_equal(result.task.weighting.named, WEIGHTS[learned])
    member = result.ensemble.members[0]
    size = result.problem.sizes.index(result.problem.find_size(member.k))
    (row,) = (row for row in result.candidates.to_pylist() if row["state"] == "winner")
    path, step = row["path"], row["step"]
    train, score = result.problem.rows(Stage.ESTIMATE, size, member.split)
    block = result.problem.learner.trainer.prepare(result.task, train, score)
    assert member.model.content == block.fit(path, step + 1).model(step).content


def test_balanced_rows_keep_their_weights() -> None:
    task = Task.of(ROWS.X[:45], ROWS.y[:45], sample_weight=WEIGHTS[:45])
    trainer = Problem.of(Study.of(**SMALL, balance="up"), task).learner.trainer
    split = trainer.prepare(trainer.share(task), np.arange(30), np.arange(30, 45)).prepare(0)[1]
    assert len(split.train) >= 30
    assert np.array_equal(split.weights, WEIGHTS[split.train])
