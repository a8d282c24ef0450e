"""Runs on disk, read back: the result, its records played back, and whose folder it is."""

import json
from collections import Counter
from pathlib import Path
from shutil import copytree

import pytest
from alike import SMALL, breaking
from conftest import blobs, snapshot

from ckcv_ray import Execution, InputError, Job, Study, load_run
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.records.candidates import find_winner
from ckcv_ray.runs.load import find_environment_changes, is_finished, reopen, replay
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
KINDS = {
    "paper": SMALL,
    "holdout": SMALL.replace(certify="holdout", claim="vote"),
    "rotation": SMALL.replace(resampling="rotation", report_k=4),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, to read."""
    out = tmp_path_factory.mktemp("finished") / "run"
    run_job(Job(SMALL, blobs(60), out), SERIAL)
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """The folder of a finished run, to do harm to."""
    return copytree(finished, tmp_path / "run")


@pytest.mark.parametrize("study", KINDS.values(), ids=KINDS.keys())
def test_a_result_is_read_back_whole(study: Study, tmp_path: Path) -> None:
    made = run_job(Job(study, blobs(60), tmp_path / "run"), SERIAL)
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


def test_a_run_is_found_by_its_study_in_any_form_that_asks_the_same(out: Path) -> None:
    spelt = Study.paper(C="10,0.1,1", gamma=[1, 0.1], k="3:5", n_splits=5)
    assert is_finished(Problem.of(spelt, blobs(60)), RunFolder(out))


# Records played back


def test_the_records_of_a_run_lead_to_what_it_found(finished: Path) -> None:
    before, result = snapshot(finished), load_run(finished)
    queue = replay(finished)
    assert queue.candidates().equals(result.candidates)
    assert queue.is_decided()
    winner = queue.selection.winner()
    assert winner is not None
    assert (winner.path, winner.step) == find_winner(result.candidates)
    assert winner.l_ms == result.l_ms
    assert snapshot(finished) == before


# What failed, and where


def test_a_run_with_failures_is_opened_again_and_one_without_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    job = Job(SMALL, blobs(60), out)
    problem = Problem.of(SMALL, job.task)
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: (unit.size, unit.split) == (1, 2))
        result = run_job(job, SERIAL)
    assert result.certificate.provisional
    assert {tuple(failure[1:3]) for failure in result.execution["failures"]} == {(4, 2)}
    reopen(problem, out)
    assert not (out / "manifest.json").exists()
    assert not run_job(job, SERIAL).certificate.provisional
    reopen(problem, out)
    assert (out / "manifest.json").exists()
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
    with pytest.raises(InputError, match=r"its holdout has judged its rows: .* was tried twice before"):
        reopen(Problem.of(job.study, job.task), out)
    assert (out / "manifest.json").read_bytes() == before


def test_an_environment_is_compared_with_that_of_the_run(out: Path, tmp_path: Path) -> None:
    assert find_environment_changes(out) == []
    metadata = json.loads((out / "execution.json").read_text())
    metadata["environment"]["packages"]["numpy"] = "1.0"
    metadata["environment"]["learner"]["machine_code"] = "other"
    (out / "execution.json").write_text(json.dumps(metadata))
    messages = find_environment_changes(out)
    assert len(messages) == 2
    assert any(sentence.startswith("numpy was 1.0, here it is ") for sentence in messages)
    assert any(sentence.startswith("machine_code was other, here it is ") for sentence in messages)
    assert find_environment_changes(tmp_path / "new") == []
