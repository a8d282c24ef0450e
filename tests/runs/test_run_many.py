"""Many studies side by side: each gives what it gives alone."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from alike import SMALL, STUDIES, same
from conftest import blobs

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.run import Job, run_job, run_many
from ckcv_ray.study.study import Execution

SERIAL = Execution("serial")


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
