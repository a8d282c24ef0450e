"""Many studies side by side: each gives what it gives alone."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from alike import SMALL, STUDIES, same
from conftest import blobs

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.run import Job, run_job, run_many
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import Execution, Study
from ckcv_ray.tables.task import TestRows

SERIAL = Execution("serial")


def many(tmp_path: Path | None) -> list[Job]:
    """Studies of several sizes; one holds rows out, one reports a k."""
    studies = [
        Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), n_splits=4, seed=seed, k=(3, 4, 5), report_k=(5,))
        for seed in range(5)
    ]
    studies[2] = Study.paper(C=(1.0,), gamma=(1.0,), n_splits=3, certify="holdout")
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
            assert mine.certificate.claims.first == theirs.certificate.claims.first
            assert mine.execution["test"] == theirs.execution["test"]
    assert [verify(tmp_path / str(i)).differences for i in range(5)] == [[]] * 5
    messages = alone[0].execution["test"]
    assert set(messages["reported"]) == {"5"}
    assert 0 <= messages["reported"]["5"]["error"] <= 1


@pytest.mark.usefixtures("ray_session")
def test_a_job_that_fails_stops_the_others_and_keeps_what_is_done(tmp_path: Path) -> None:
    jobs = many(tmp_path)
    jobs[1] = jobs[1]._replace(study=Study.paper(k=(99,)))
    with pytest.raises(InputError, match="k=99"):
        list(run_many(iter(jobs), Execution("ray")))
    jobs[1] = many(tmp_path)[1]
    assert [result.run_id for result in run_many(jobs, Execution("ray"))] == [
        run_job(job._replace(out=None), SERIAL).run_id for job in jobs
    ]


def test_many_runs_give_what_each_gives_alone_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    task = blobs(60)
    jobs = [Job(study, task, tmp_path / str(i)) for i, study in enumerate(STUDIES)]
    alone = [run_job(Job(study, task), SERIAL) for study in STUDIES]
    for _ in range(2):  # made, then read
        found = list(run_many(jobs, SERIAL))
        assert [result.study.seed for result in found] == list(range(6))
        assert all(map(same, found, alone))


@pytest.mark.usefixtures("ray_session")
def test_many_runs_on_ray_are_the_same(tmp_path: Path) -> None:
    task = blobs(60)
    jobs = [Job(study, task, tmp_path / str(i)) for i, study in enumerate(STUDIES[:3])]
    found = list(run_many(jobs, Execution("ray")))
    assert all(map(same, found, run_many([job._replace(out=None) for job in jobs], SERIAL)))


def test_a_list_of_jobs_is_checked_before_any_begins(tmp_path: Path) -> None:
    task = blobs(60)
    jobs = [Job(SMALL, task, tmp_path / "run"), Job(SMALL.replace(k=61), task)]
    with pytest.raises(InputError, match="k=61"):
        next(run_many(jobs, SERIAL))
    assert not list(tmp_path.iterdir())


def test_jobs_of_a_generator_are_asked_for_as_they_are_needed() -> None:
    task, asked = blobs(60), []

    def jobs() -> Iterator[Job]:
        for study in [SMALL.replace(seed=seed) for seed in range(40)]:
            asked.append(study.seed)
            yield Job(study, task)

    results = run_many(jobs(), SERIAL)
    assert asked == []
    next(results)
    assert 0 < len(asked) < 10
    results.close()
    assert len(asked) < 10


def test_no_jobs_have_no_results() -> None:
    assert list(run_many([], SERIAL)) == list(run_many(iter(()), SERIAL)) == []


def test_one_job_that_fails_stops_the_others_which_keep_what_is_done(tmp_path: Path) -> None:
    task = blobs(60)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "letter.txt").write_text("not a run")
    jobs = [Job(study, task, tmp_path / str(i)) for i, study in enumerate(STUDIES)]
    results = run_many(jobs, SERIAL)
    assert next(results).study.seed == 0
    with pytest.raises(StoreError, match="not a run folder"):
        next(results)
    (tmp_path / "1" / "letter.txt").unlink()
    assert [result.study.seed for result in run_many(jobs, SERIAL)] == list(range(6))


def test_many_runs_stop_when_asked(tmp_path: Path) -> None:
    task, stop = blobs(60), Event()
    jobs = [Job(study, task, tmp_path / str(i)) for i, study in enumerate(STUDIES)]
    results = run_many(jobs, SERIAL, stop.is_set)
    next(results)
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        list(results)
    finished = {place.parent.name for place in tmp_path.glob("*/manifest.json")}
    assert "0" in finished
    assert "5" not in finished
    assert not list(tmp_path.glob("*/.lock"))


def test_two_jobs_of_one_folder_are_one_run_or_refused(tmp_path: Path) -> None:
    task = blobs(60)
    job = Job(SMALL, task, tmp_path / "run")
    one, other = run_many([job, job], SERIAL)
    assert same(one, other)
    with pytest.raises(StoreError, match="seed: requested 1, in the folder 0"):
        list(run_many([job, job._replace(study=STUDIES[1])], SERIAL))
