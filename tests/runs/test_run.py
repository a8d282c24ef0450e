"""Runs, alone and side by side: what they make only once, where they go on, and what they tell."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from alike import SMALL, STUDIES, same
from conftest import blobs

from ckcv_ray import Execution, Job, TestRows, run
from ckcv_ray.engine import evaluate, forecast, queue
from ckcv_ray.engine.backend import SERIAL as ONE
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import WARM_ROWS
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.learners.svm import trainer
from ckcv_ray.runs.run import check_job, run_job, run_many, run_work
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")


# What is made once


class Counted:
    """Stands for a function, and counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.calls: list[tuple] = []
        self.real = getattr(owner, name)
        monkeypatch.setattr(owner, name, self)

    def __call__(self, *args: object) -> object:
        self.calls.append(args)
        return self.real(*args)


@pytest.mark.parametrize("backend", ["serial", "auto"])
def test_a_run_makes_its_problem_its_hash_and_its_distances_once(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a trial came first or not: all of it goes on with what the first step made."""
    posed = Counted(monkeypatch, Problem, "of").calls
    hashed = Counted(monkeypatch, vars(Task)["digest"], "func").calls
    measured = Counted(monkeypatch, trainer, "compute_distances").calls
    study, task = SMALL.replace(scale="none", certify="holdout"), blobs(60)
    result = run(study, task.X, task.labelled(task.y), tmp_path / "run", Execution(backend))
    measured = [rows for rows in measured if len(rows[0]) > WARM_ROWS]  # without those of a warm-up
    assert [len(calls) for calls in (posed, hashed, measured)] == [1, 1, 3]  # two models at the end
    ((whole,),) = hashed
    assert whole is result.problem.all_rows
    assert measured[0][0] is result.problem.task.X


def test_what_a_trial_found_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fits of a run that began with a trial are those of one that did not."""
    trial, fitted = Counted(monkeypatch, forecast, "evaluate_apart").calls, []
    real = evaluate.evaluate_apart

    def counting(units: tuple, inputs: evaluate.Inputs, seconds: float) -> object:
        fitted.extend(units)
        return real(units, inputs, seconds)

    monkeypatch.setattr("ckcv_ray.engine.backend.evaluate_apart", counting)
    study = SMALL.replace(exhaustive=True)
    result = run_job(Job(study, blobs(60)), Execution("auto"))
    tried = [unit for units, _ in trial for unit in units]
    selecting = [unit for unit in (*tried, *fitted) if unit.stage == "select"]
    paths = [(unit.size, unit.split, path) for unit in selecting for path, _ in unit.paths]
    assert tried
    assert len(paths) == len(set(paths)) == 3 * 5 * 2
    assert same(result, run_job(Job(study, blobs(60)), SERIAL))


# One run


@pytest.mark.parametrize("after", [1, 4, 20, 30])
def test_a_run_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Nothing that was computed is computed again: in all it has as many fits as one that was not stopped."""
    for name in ("BATCH_SECONDS", "OWN_SECONDS"):  # a unit in each batch
        monkeypatch.setattr(queue, name, 0.0)
    monkeypatch.setattr(SerialBackend, "least_seconds", 0.0)
    job = Job(SMALL.replace(exhaustive=True), blobs(60), tmp_path / "run")
    whole = run_job(job._replace(out=None), SERIAL)
    asked = iter([False] * after)
    with pytest.raises(KeyboardInterrupt):
        run_job(job, SERIAL, stop=lambda: next(asked, True))
    assert not (tmp_path / "run" / "manifest.json").exists()
    kept = json.loads((tmp_path / "run" / "execution.json").read_text())
    assert 0 < kept["fits"] < whole.execution["fits"]
    result = run_job(job, SERIAL)
    assert same(result, whole)
    for name in ("evaluations", "fits"):
        assert result.execution[name] == whole.execution[name]


def test_test_rows_are_measured_on_a_finished_run_too(tmp_path: Path) -> None:
    """In what is returned; the folder stays what it is, and tells the rows it was measured on."""
    task, rows, others = blobs(60), blobs(40, seed=3), blobs(30, seed=4)
    plain = Job(SMALL, task, tmp_path / "run")
    measured = plain._replace(test=TestRows(rows.X, rows.y))
    assert run_job(plain, SERIAL).execution["test"] is None
    before = (tmp_path / "run" / "execution.json").read_bytes()
    first = run_job(measured, SERIAL)
    assert first.execution["test"] == run_job(measured._replace(out=None), SERIAL).execution["test"]
    assert first.execution["test"]["digest"] == measured.test.digest
    assert (tmp_path / "run" / "execution.json").read_bytes() == before
    other = plain._replace(out=tmp_path / "other", test=measured.test)
    run_job(other, SERIAL)
    assert run_job(other._replace(test=None), SERIAL).execution["test"] == first.execution["test"]
    again = run_job(other._replace(test=TestRows(others.X, others.y)), SERIAL)
    assert again.execution["test"] != first.execution["test"]


def test_the_folder_of_a_run_is_where_it_was_when_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever directory the process is in later, as where a worker has another one."""
    monkeypatch.chdir(tmp_path)
    work = check_job(Job(SMALL, blobs(60), "run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run_work(work, opened=ONE)
    assert (tmp_path / "run" / "manifest.json").exists()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_every_argument_that_is_an_array_is_left_as_it_was() -> None:
    task = blobs(60)
    X, y = task.X.copy(), task.labelled(task.y)
    X.flags.writeable = y.flags.writeable = False
    before = X.tobytes(), y.tobytes()
    assert same(run(SMALL, X, y, execution=SERIAL), run(SMALL, np.array(X), np.array(y), execution=SERIAL))
    assert (X.tobytes(), y.tobytes()) == before


def test_many_runs_give_what_each_gives_alone_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    task = blobs(60)
    jobs = [Job(study, task, tmp_path / str(i)) for i, study in enumerate(STUDIES)]
    alone = [run_job(Job(study, task), SERIAL) for study in STUDIES]
    for _ in range(2):  # made, then read
        found = list(run_many(jobs, SERIAL))
        assert [result.study.seed for result in found] == list(range(6))
        assert all(map(same, found, alone))


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
