"""From what was selected to a result: what failed, and what that does to it."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import blobs
from doubles import Failing, Lying, k_of, run_with

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import queue
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import make_failures
from ckcv_ray.errors import RunError
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study import Execution, Problem, Study
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")


def signature(result: Result) -> tuple[object, ...]:
    """Everything that must be equal in every bit."""
    members = [
        (one.split, one.k, one.errors, m.C, m.gamma, m.offset, m.dual_coef.tobytes(), m.support.tobytes())
        for one in result.ensemble.members
        for m in [one.model]
    ]
    certificate = result.certificate.to_json()
    certificate.pop("digests")
    return result.candidates.to_pydict(), members, certificate


def everything(unit: Unit, problem: Problem) -> bool:
    return True


def refits(unit: Unit, problem: Problem) -> bool:
    return unit.stage is Stage.REFIT


def test_a_record_that_changes_stops_the_run(study: Study, task: Task, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not deterministic"):
        run_with(Lying(), study, task, tmp_path / "run")


def test_a_failed_path_is_recorded_and_the_rest_completes(study: Study, task: Task, tmp_path: Path) -> None:
    def doomed(unit: Unit, problem: Problem) -> bool:
        return unit.stage is Stage.SELECT and unit.split == 2 and k_of(problem, unit) == 3

    result = run_with(Failing(doomed), study, task, tmp_path / "run")
    states = result.candidates.to_pydict()["state"]
    assert result.execution["evaluations"]["failed"] >= 6  # and what can no longer be reached behind them
    assert result.certificate.winner.provisional == ("failed" in states)
    assert "machine caught fire" in result.execution["failures"][0][-1]
    counts = result.execution["evaluations"]
    assert counts["planned"] == counts["computed"] + counts["dropped"] + counts["failed"]
    again = run_job(Job(study, task, tmp_path / "run"))
    assert signature(again) == signature(result)


def test_failures_that_are_provably_beaten_leave_the_certificate_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue, "OWN_SECONDS", 1e9)  # all splits but the first in one batch: none is dropped
    task = blobs(30, shift=4.0)
    study = Study.paper(C=(1.0,), gamma=(1e-6, 1.0), k=(3,), n_splits=5)
    whole = run_job(Job(study, task), SERIAL)
    loser = 1 - whole.position[0]

    class LosesLast(SerialBackend):
        def wait(self) -> Iterable[Outcome]:
            (outcome,) = super().wait()
            records = outcome.records
            last = (records["split"] == 4) & (records["path"] == loser)
            if not last.any():
                return [outcome]
            unit = Unit(Stage.SELECT, 0, 4, ((loser, 1),))
            return [outcome._replace(records=records[~last]), make_failures([unit], 2, "lost")]

    result = run_with(LosesLast(), study, task)
    assert result.execution["failures"]
    assert not result.certificate.winner.provisional
    assert result.l_ms == whole.l_ms


def test_when_everything_fails_the_run_says_why(study: Study, task: Task) -> None:
    with pytest.raises(RunError, match=r"no candidate could be completed(.|\n)*caught fire"):
        run_with(Failing(everything), study, task)


def test_a_reported_candidate_that_cannot_be_refitted_is_a_failure_that_is_told(
    study: Study, task: Task, tmp_path: Path
) -> None:
    """And the winner's claim stands; taken up again, the run is what it would have been."""
    study = study.replace(k=(3, 10), report_k=(3, 10))
    whole = run_job(Job(study, task, tmp_path / "whole"), SERIAL)
    other = 10 if whole.k == 3 else 3

    def doomed(unit: Unit, problem: Problem) -> bool:
        return refits(unit, problem) and k_of(problem, unit) == other and unit.split == 1

    result = run_with(Failing(doomed), study, task, tmp_path / "run")
    assert result.certificate.claims == whole.certificate.claims
    assert [(failure[1], failure[2]) for failure in result.execution["failures"]] == [(other, 1)]
    assert {row["k_first"]: row["l_ee"] is None for row in result.per_k()} == {whole.k: False, other: True}
    (tmp_path / "run" / "manifest.json").unlink()
    assert signature(run_job(Job(study, task, tmp_path / "run"), SERIAL)) == signature(whole)
