"""Runs on disk: read back, opened again after failures, refitted; what is measured on test rows."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from alike import SMALL, breaking, same
from conftest import blobs, snapshot
from doubles import Failing, k_of, run_with
from finished import CLOUDS, SERIAL, Finished

from ckcv_ray import InputError, Job, RunError, Study, TestRows, load_run
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.runs.finished import is_finished, measure, reopen
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem

KINDS = {
    "paper": SMALL,
    "holdout": SMALL.replace(certify="holdout", claim="vote"),
    "rotation": SMALL.replace(resampling="rotation", report_k=4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_read_back_whole(kind: str, tmp_path: Path) -> None:
    made = run_job(Job(KINDS[kind], blobs(60), tmp_path / "run"), SERIAL)
    before = snapshot(tmp_path)
    for found in (load_run(tmp_path / "run"), load_run(str(tmp_path / "run"), allow_pickle=True)):
        assert found.certificate == made.certificate
        assert found.candidates.equals(made.candidates)
        assert found.study == made.study
        assert found.execution == json.loads(json.dumps(made.execution))
        assert found.problem.sizes == made.problem.sizes
        for a, b in ((found.ensemble, made.ensemble), (found.models.refit, made.models.refit)):
            assert (a is None) == (b is None)
            for one, other in zip(a.members if a else (), b.members if b else (), strict=True):
                assert (one.k, one.split, one.errors) == (other.k, other.split, other.errors)
                assert made.problem.learner.codec.same(one.model, other.model)
        assert found.summary() == made.summary()
    assert snapshot(tmp_path) == before


# Whose folder it is


def test_a_run_is_found_by_its_study_in_any_form_that_asks_the_same(finished: Finished) -> None:
    held = {"certify": "holdout", "holdout_share": "0.5", "claim": ["refit", "vote"]}
    spelt = Study.paper(C="10,0.1,1", gamma=[1, 0.1], k="3:5", n_splits=5, seed=1, **held)
    assert is_finished(Problem.of(spelt, CLOUDS), RunFolder(finished("held")))


# What failed, and where


def test_a_run_with_failures_is_opened_again_and_one_without_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, manifest = Job(SMALL, blobs(60), tmp_path / "run"), tmp_path / "run" / "manifest.json"
    problem = Problem.of(SMALL, job.task)
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: (unit.size, unit.split) == (1, 2))
        result = run_job(job, SERIAL)
    assert result.certificate.provisional
    assert {tuple(failure[1:3]) for failure in result.execution["failures"]} == {(4, 2)}
    reopen(problem, job.out)
    assert not manifest.exists()
    assert not run_job(job, SERIAL).certificate.provisional
    reopen(problem, job.out)
    assert manifest.exists()
    reopen(problem, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("search", ["race", "budget"])
@pytest.mark.parametrize("stage", [Stage.SELECT, Stage.REFIT])
def test_what_fails_once_is_tried_again_before_rows_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: Stage, search: str
) -> None:
    """A run in which units fail at first, as for want of memory, ends as one in which nothing failed."""
    study = SMALL.replace(certify="holdout", holdout_share=0.3, search=search)
    tried = Counter[int]()

    def broken(unit: Unit) -> bool:
        if unit.stage is not stage or unit.split != 2:
            return False
        tried[unit.size] += 1
        return tried[unit.size] == 1

    calm = run_job(Job(study, blobs(60), tmp_path / "calm"), SERIAL)
    breaking(monkeypatch, broken)
    found = run_job(Job(study, blobs(60), tmp_path / "run"), SERIAL)
    assert max(tried.values()) > 1
    assert found.execution["failures"] == []
    assert found.certificate == calm.certificate
    assert found.candidates.equals(calm.candidates)


def test_nothing_is_tried_again_once_rows_were_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, out = Counter[int](), tmp_path / "run"
    job = Job(SMALL.replace(certify="holdout"), blobs(60), out)

    def broken(unit: Unit) -> bool:
        found = unit.stage is Stage.SELECT and (unit.size, unit.split) == (1, 2)
        tried.update(path for path, _ in unit.paths if found)
        return found

    breaking(monkeypatch, broken)
    assert run_job(job, SERIAL).execution["failures"]
    assert min(tried.values()) > 1
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(InputError, match=r"its holdout has judged its rows: .* was tried twice"):
        reopen(Problem.of(job.study, job.task), out)
    assert (out / "manifest.json").read_bytes() == before


# What fails


def test_a_winner_that_cannot_be_refitted_on_every_split_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was selected is kept: once it can be refitted, nothing is selected again."""
    job = Job(SMALL, blobs(60), tmp_path / "run")
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: unit.stage is Stage.REFIT and unit.split == 3)
        with pytest.raises(RunError, match=r"(?s)could not be refitted on every split.*split 3:.*no room"):
            run_job(job, SERIAL)
    assert not RunFolder(job.out).finished
    stages: set[Stage] = set()
    breaking(monkeypatch, lambda unit: bool(stages.add(unit.stage)))
    result = run_job(job, SERIAL)
    assert stages == {Stage.REFIT}
    assert result.certificate.claims == run_job(job._replace(out=None), SERIAL).certificate.claims
    assert not result.certificate.provisional


def test_a_reported_candidate_that_cannot_be_refitted_is_a_failure_that_is_told(tmp_path: Path) -> None:
    """And the winner's claim stands; taken up again, the run is what it would have been."""
    job = Job(SMALL.replace(k=(3, 10), report_k=(3, 10)), blobs(60), tmp_path)
    whole = run_job(job._replace(out=None), SERIAL)
    other = 10 if whole.k == 3 else 3

    def doomed(unit: Unit, problem: Problem) -> bool:
        return unit.stage is Stage.REFIT and k_of(problem, unit) == other and unit.split == 1

    result = run_with(Failing(doomed), job.study, job.task, tmp_path)
    assert result.certificate.claims == whole.certificate.claims
    assert [(failure[1], failure[2]) for failure in result.execution["failures"]] == [(other, 1)]
    lacking = {row["k_first"]: row["l_ee"] is None for row in result.to_json()["per_k"]}
    assert lacking == {whole.k: False, other: True}
    (tmp_path / "manifest.json").unlink()
    assert same(run_job(job, SERIAL), whole)


# Test rows


def test_test_rows_are_measured_for_every_reported_k() -> None:
    other = blobs(40, seed=3)
    rows = TestRows(other.X, other.y)
    study = SMALL.replace(C=1.0, gamma=0.1, report_k=(3, 4, 5))  # one setting: models differ by their k alone
    result = run_job(Job(study, blobs(60), test=rows), SERIAL)
    assert {member.k for member in result.ensemble.members} == {result.k}
    messages = result.execution["test"]
    assert (messages["rows"], messages["digest"]) == (40, rows.digest)
    assert set(messages["reported"]) == {"3", "4", "5"}
    assert messages["reported"][str(result.k)] == {name: messages[name] for name in ("error", "vote_error")}
    labels = np.array([member.model.predict(rows.X).label for member in result.ensemble.members])
    assert messages["error"] == pytest.approx(np.mean(labels != rows.y), rel=1e-12)
    vote = (labels == 1).sum(axis=0) * 2 > 5
    assert messages["vote_error"] == np.mean(vote != rows.y)
    assert measure(result.ensemble, None, {}) is None
