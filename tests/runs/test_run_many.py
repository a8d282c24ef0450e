"""Many studies side by side: each gives what it gives alone."""

from pathlib import Path

import pytest
from conftest import blobs

from ckcv_ray.data.task import TestRows
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import Job, run_job, run_many
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import Execution, Study

SERIAL = Execution("serial")


def many(tmp_path: Path | None) -> list[Job]:
    """Studies of several sizes; one holds rows out, one reports a k."""
    studies = [
        Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), n_splits=4, seed=seed, k=(3, 4, 5), report_k=(5,))
        for seed in range(5)
    ]
    studies[2] = Study.of(C=(1.0,), gamma=(1.0,), n_splits=3, certify="holdout")
    tasks = [blobs(30 + 4 * seed, seed=seed) for seed in range(5)]
    rows = [TestRows(task.X[::2], task.y[::2]) for task in tasks]
    outs = [tmp_path / str(i) if tmp_path else None for i in range(5)]
    return [Job(*job) for job in zip(studies, tasks, outs, rows, strict=True)]


@pytest.mark.usefixtures("ray_session")
def test_many_studies_give_what_each_gives_alone(tmp_path: Path) -> None:
    alone = [run_job(job, SERIAL) for job in many(None)]
    serial = list(run_many(many(None), SERIAL))
    together = list(run_many(many(tmp_path), Execution("ray")))
    again = list(run_many(many(tmp_path), Execution("ray")))
    for results in (serial, together, again):
        for mine, theirs in zip(results, alone, strict=True):
            assert mine.candidates.equals(theirs.candidates)
            assert mine.certificate.proven == theirs.certificate.proven
            assert mine.execution["test"] == theirs.execution["test"]
    assert [verify(tmp_path / str(i)).differences for i in range(5)] == [[]] * 5
    told = alone[0].execution["test"]
    assert set(told["reported"]) == {"5"}
    assert 0 <= told["reported"]["5"]["error"] <= 1


@pytest.mark.usefixtures("ray_session")
def test_a_job_that_fails_stops_the_others_and_keeps_what_is_done(tmp_path: Path) -> None:
    jobs = many(tmp_path)
    jobs[1] = jobs[1]._replace(study=Study.of(k=(99,)))
    with pytest.raises(InputError, match="k=99"):
        list(run_many(iter(jobs), Execution("ray")))
    jobs[1] = many(tmp_path)[1]
    assert [result.run_id for result in run_many(jobs, Execution("ray"))] == [
        run_job(job._replace(out=None), SERIAL).run_id for job in jobs
    ]
