"""From what was selected to a result: what failed, and what that does to it."""

from pathlib import Path

import pytest
from doubles import Failing, k_of, run_with

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.errors import RunError
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study
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
