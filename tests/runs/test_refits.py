"""Refits: their batches and models, what fails of them, recorders that die, and errors on test rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alike import SMALL, breaking, same
from conftest import blobs
from doubles import Failing, k_of, run_with

from ckcv_ray import Execution, Job, RunError, TestRows
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate
from ckcv_ray.engine.backend import SERIAL, SerialBackend
from ckcv_ray.engine.recorder import Decision, Recorder
from ckcv_ray.runs.finish import RefitQueue, finish, measure
from ckcv_ray.runs.run import check_job, never, run_job, run_work
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem


@pytest.fixture
def selected() -> Recorder:
    """A recorder whose selection is decided, with the best of k = 4 to be reported; nothing is refitted."""
    recorder = Recorder(Problem.of(SMALL.replace(report_k=4), blobs(60)))
    inputs = evaluate.share(recorder.problem)
    while units := recorder.plan(1).units:
        recorder.add(evaluate.evaluate(units, inputs))
    return recorder


def leaders(recorder: Recorder) -> list:
    decision = recorder.decision()
    assert decision is not None
    return decision.leaders


# Refits


def test_refits_are_those_of_the_winner_and_of_what_is_reported_each_once(selected: Recorder) -> None:
    found = leaders(selected)
    refits, units = RefitQueue(selected.problem, found, selected), []
    while batch := refits.plan(3).units:
        units += batch
    expected = [
        Unit(Stage.REFIT, leader.size, i, ((leader.path, leader.step + 1),))
        for leader in found
        for i in range(5)
    ]
    assert units == expected
    assert len(found) == len({leader.size for leader in found}) == 2
    assert selected.problem.sizes[found[1].size].k == 4


def test_two_leaders_of_one_size_are_not_taken_for_each_other(selected: Recorder) -> None:
    """As where the winner has k = 4 as well: the models of a split differ in their setting alone."""
    one = leaders(selected)[0]
    other = one._replace(path=1 - one.path)
    refits, inputs = RefitQueue(selected.problem, [other, one], selected), evaluate.share(selected.problem)
    while batch := refits.plan(1).units:
        refits.add(evaluate.evaluate(batch, inputs))
    for leader in (one, other):
        ensemble = refits.ensembles()[leader]
        gammas = {member.model.gamma for member in ensemble.members}
        assert gammas == {selected.problem.candidate(leader).setting["gamma"]}


# What fails


def test_a_winner_that_cannot_be_refitted_on_every_split_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was selected is kept: once it can be refitted, nothing is selected again."""
    job, serial = Job(SMALL, blobs(60), tmp_path / "run"), Execution("serial")
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: unit.stage is Stage.REFIT and unit.split == 3)
        with pytest.raises(RunError, match=r"(?s)could not be refitted on every split.*split 3:.*no room"):
            run_job(job, serial)
    assert not RunFolder(job.out).finished
    stages: set[Stage] = set()
    breaking(monkeypatch, lambda unit: bool(stages.add(unit.stage)))
    result = run_job(job, serial)
    assert stages == {Stage.REFIT}
    assert result.certificate.claims == run_job(job._replace(out=None), serial).certificate.claims
    assert not result.certificate.provisional


def test_when_everything_fails_the_run_says_why() -> None:
    with pytest.raises(RunError, match=r"no candidate could be completed(.|\n)*caught fire"):
        run_with(Failing(lambda unit, problem: True), SMALL, blobs(60))


def test_a_reported_candidate_that_cannot_be_refitted_is_a_failure_that_is_told(tmp_path: Path) -> None:
    """And the winner's claim stands; taken up again, the run is what it would have been."""
    job, serial = Job(SMALL.replace(k=(3, 10), report_k=(3, 10)), blobs(60), tmp_path), Execution("serial")
    whole = run_job(job._replace(out=None), serial)
    other = 10 if whole.k == 3 else 3

    def doomed(unit: Unit, problem: Problem) -> bool:
        return unit.stage is Stage.REFIT and k_of(problem, unit) == other and unit.split == 1

    result = run_with(Failing(doomed), job.study, job.task, tmp_path)
    assert result.certificate.claims == whole.certificate.claims
    assert [(failure[1], failure[2]) for failure in result.execution["failures"]] == [(other, 1)]
    assert {row["k_first"]: row["l_ee"] is None for row in result.per_k()} == {whole.k: False, other: True}
    (tmp_path / "manifest.json").unlink()
    assert same(run_job(job, serial), whole)


def test_refits_stop_when_asked(selected: Recorder) -> None:
    backend = SerialBackend()
    backend.start(evaluate.share(selected.problem))
    with pytest.raises(KeyboardInterrupt):
        finish(selected.problem, backend, selected, None, None, lambda: True)


# Recorders that die


class Forgetful(Recorder):
    """Says what it found, and dies after that: another one begins with what the folder holds."""

    lives = 2

    def conclude(self, refitted: list, failed: list) -> Any:
        """Forget all records, as long as it has lives left."""
        if self.lives:
            self.lives -= 1
            self.queue = type(self.queue)(self.problem)
            self._unsaved = []
        return super().conclude(refitted, failed)


def test_what_died_with_a_recorder_is_computed_again() -> None:
    """Whatever it had said: the table of candidates and the models are of one and the same selection."""
    made: list[Forgetful] = []

    def recorder(problem: Problem, out: Any) -> Forgetful:
        made.append(Forgetful(problem, out))
        return made[-1]

    job = check_job(Job(SMALL.replace(report_k=4), blobs(60)))
    whole = run_work(job, opened=SERIAL)
    again = run_work(job, opened=SERIAL._replace(recorder=recorder))
    assert made[0].lives == 0
    assert again.candidates.equals(whole.candidates)
    assert again.certificate == whole.certificate


def test_a_study_that_is_never_decided_is_an_error_and_no_endless_loop(
    selected: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = SerialBackend()
    backend.start(evaluate.share(selected.problem))
    monkeypatch.setattr(selected, "decision", lambda: None)
    with pytest.raises(RunError, match="nothing is left to compute: please report this"):
        finish(selected.problem, backend, selected, None, None, never)
    monkeypatch.setattr(selected, "decision", lambda: Decision(None, [], "nothing at all"))
    with pytest.raises(RunError, match="no candidate could be completed: nothing at all"):
        finish(selected.problem, backend, selected, None, None, never)


# Test rows


def test_test_rows_are_measured_for_every_reported_k() -> None:
    other = blobs(40, seed=3)
    rows = TestRows(other.X, other.y)
    result = run_job(Job(SMALL.replace(report_k=(3, 4, 5)), blobs(60), test=rows), Execution("serial"))
    messages = result.execution["test"]
    assert (messages["rows"], messages["digest"]) == (40, rows.digest)
    assert set(messages["reported"]) == {"3", "4", "5"}
    winners = {name: messages[name] for name in ("error", "vote_error")}
    assert messages["reported"][str(result.k)] == winners
    labels = np.array([member.model.predict(rows.X).label for member in result.ensemble.members])
    assert messages["error"] == pytest.approx(np.mean(labels != rows.y), rel=1e-12)
    vote = (labels == 1).sum(axis=0) * 2 > 5
    assert messages["vote_error"] == np.mean(vote != rows.y)
    assert measure(result.ensemble, None, {}) is None
