"""Runs on groups of rows, and on weighted rows: what is fitted and counted, and stored of judged rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs, unwrap
from finished import Finished

from ckcv_ray import CKCVClassifier, Execution, Job, Result, Study, Task, load_run, run, verify
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.core.schedule import Stage
from ckcv_ray.records import judged
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
RNG = np.random.default_rng(np.random.SeedSequence(4))
GROUPS = RNG.permutation(np.repeat(np.arange(24), RNG.integers(1, 5, size=24)))
N = len(GROUPS)
TASK = Task.of(blobs(N).X, blobs(N).y, groups=GROUPS)
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 6), n_splits=4, report_k=4)


def test_a_mean_error_is_that_of_the_groups() -> None:
    certificate = run_job(Job(SMALL.replace(criterion="mean_error"), TASK), SERIAL).certificate
    assert certificate.groups is not None
    losses = np.array(certificate.groups["losses"])
    assert certificate.l_ee == pytest.approx(np.mean(losses / certificate.n_select), rel=1e-12)
    assert certificate.l_ee == pytest.approx(certificate.error, rel=1e-12)
    assert "a group, each group counted once" in certificate.statements[0]
    assert "of a new group's rows" in certificate.first.statement


ROWS = blobs(60, shift=0.7)
WEIGHTS = np.random.default_rng(0).uniform(0.2, 5.0, 60)
LINEAR: dict[str, Any] = {"learner": "linear", "param": {"C": (0.1, 10.0)}, "k": (3, 4), "n_splits": 3}
SENTENCE = "Rows are weighted by 'weight' only in fits: measures and claims are unweighted."


@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_a_weighted_run_is_verified_and_says_so(certify: str, tmp_path: Path) -> None:
    study = Study.of(**LINEAR, certify=certify)
    result = run(study, ROWS.X, ROWS.y, tmp_path, SERIAL, sample_weight=WEIGHTS)
    assert result.certificate.statements.count(SENTENCE) == 1
    assert unwrap(result.summary()).count(SENTENCE) == 1
    assert verify(tmp_path, rerun=True).ok
    again = load_run(tmp_path)
    assert np.array_equal(again.problem.all_rows.weighting.named, WEIGHTS)
    assert np.array_equal(again.predict(ROWS.X, by="vote"), result.predict(ROWS.X, by="vote"))
    plain = run(study, ROWS.X, ROWS.y)
    assert plain.run_id != result.run_id
    options = {"learner": "linear", "params": LINEAR["param"], "k": (3, 4), "n_splits": 3}
    fitted = CKCVClassifier(**options, certify=certify).fit(ROWS.X, ROWS.y, sample_weight=WEIGHTS)
    assert fitted.result_.run_id == result.run_id
    assert SENTENCE in fitted.certificate_["statements"]


def test_members_and_the_refit_are_fitted_with_the_weights_of_their_rows() -> None:
    result = run(Study.of(**LINEAR, certify="holdout"), ROWS.X, ROWS.y, sample_weight=WEIGHTS)
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
    trainer = Problem.of(Study.of(**LINEAR, balance="up"), task).learner.trainer
    split = trainer.prepare(trainer.share(task), np.arange(30), np.arange(30, 45)).prepare(0)[1]
    assert len(split.train) >= 30
    assert np.array_equal(split.weights, WEIGHTS[split.train])


HELD = Study.of(C=(1.0,), gamma=(1.0,), k=(3,), n_splits=3, certify="holdout", holdout_share=0.5)


def take(result: Result, name: str) -> dict[str, np.ndarray]:
    """The columns with what one judge says."""
    rows = result.judged.to_pandas()
    return {column: values.to_numpy() for column, values in rows[rows.classifier == name].items()}


@pytest.mark.parametrize(("name", "classifiers"), [("held", ["refit", "vote"]), ("held better", ["refit"])])
def test_every_claimed_rule_judges_the_rows_held_out(name: str, classifiers: Any, finished: Finished) -> None:
    """Rows, and groups of them."""
    result = load_run(finished(name))
    problem, claims = result.problem, result.certificate.claims
    rows, units = problem.held, problem.all_rows.row_units
    drawn = order_held_out(problem.all_rows.n_units, len(np.unique(units[rows])), problem.draws).tolist()
    for classifier in classifiers:
        table = take(result, classifier)
        np.testing.assert_array_equal(table["row"], rows)
        np.testing.assert_array_equal(table["unit"], units[rows])
        assert table["order"].tolist() == [drawn.index(unit) for unit in units[rows]]
        np.testing.assert_array_equal(table["label"], problem.all_rows.y[rows])
        np.testing.assert_array_equal(table["loss"], table["predicted"] != table["label"])
        (claim,) = [c for c in claims if (c.classifier, str(c.quantity)) == (classifier, "error")]
        assert claim.errors == table["loss"].sum()


def test_a_learner_that_is_compared_judges_them_too() -> None:
    task = blobs(60, shift=0.7)
    study = HELD.replace(learner="svm,tree", claim="refit,better:svm,better:tree")
    result = run_job(Job(study, task), SERIAL)
    (compared,) = [c for c in result.certificate.claims if c.quantity.reference and c.rows]
    assert compared.quantity.reference != result.setting["learner"]
    lost = take(result, "refit")["loss"] - take(result, str(compared.quantity))["loss"]
    assert (compared.errors, compared.rows) == (np.sum(lost > 0), np.sum(lost != 0))


def test_neither_what_the_run_counts_nor_more_rows_than_a_file_may_have_are_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, finished: Finished
) -> None:
    assert load_run(finished("paper")).judged is None
    monkeypatch.setattr(judged, "MAX_TABLE_ROWS", 20)
    run_job(Job(HELD, blobs(60), tmp_path / "run"), SERIAL)
    assert not (tmp_path / "run" / JUDGED_ROWS).exists()
    assert "bounds" in make_page(tmp_path / "run")  # all that needs no rows
    assert verify(tmp_path / "run").ok
