"""Runs: what they make only once, where they go on, and what they tell on the way."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from alike import SMALL, STUDIES, same
from conftest import blobs

from ckcv_ray import Execution, Job, Study, TestRows, run
from ckcv_ray import run_many as many
from ckcv_ray.engine import evaluate, forecast, queue
from ckcv_ray.engine.backend import SERIAL as ONE
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import WARM_ROWS
from ckcv_ray.learners.svm import trainer
from ckcv_ray.runs import run as driver
from ckcv_ray.runs.run import check_job, run_job, run_work
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


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The tasks that are hashed."""
    return Counted(monkeypatch, vars(Task)["digest"], "func").calls


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The rows between which all distances are computed."""
    return Counted(monkeypatch, trainer, "compute_distances").calls


@pytest.fixture
def posed(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The studies and tasks that problems are made of."""
    return Counted(monkeypatch, Problem, "of").calls


ONCE = {
    "plain": SMALL.replace(scale="none"),
    "reported": SMALL.replace(scale="none", report_k=(4, 5)),
    "exhaustive": SMALL.replace(scale="none", exhaustive=True),
    "holdout": SMALL.replace(scale="none", certify="holdout", claim="vote"),
    "holdout, rotation": SMALL.replace(scale="none", certify="holdout", resampling="rotation"),
}


@pytest.mark.parametrize("backend", ["serial", "auto"])
@pytest.mark.parametrize("study", ONCE.values(), ids=ONCE.keys())
@pytest.mark.parametrize("stored", [False, True])
def test_a_run_makes_its_problem_its_hash_and_its_distances_once(
    study: Study,
    backend: str,
    stored: bool,
    tmp_path: Path,
    hashed: list[tuple],
    measured: list[tuple],
    posed: list[tuple],
) -> None:
    """Whether a trial came first or not: all of it goes on with what the first step made."""
    task = blobs(60)
    result = run(
        study, task.X, task.labelled(task.y), tmp_path / "run" if stored else None, Execution(backend)
    )
    single = 2 if result.models.refit else 0  # fitted at the end: on these rows and on all
    measured = [rows for rows in measured if len(rows[0]) > WARM_ROWS]  # without those of a warm-up
    assert [len(calls) for calls in (posed, hashed, measured)] == [1, 1, 1 + single]
    ((whole,),) = hashed
    assert whole is result.problem.all_rows
    assert measured[0][0] is result.problem.task.X


def test_a_finished_run_is_recognised_without_another_hash_or_distance(
    tmp_path: Path, hashed: list[tuple], measured: list[tuple], posed: list[tuple]
) -> None:
    job = Job(SMALL.replace(scale="none", certify="holdout"), blobs(60), tmp_path / "run")
    first = run_job(job, SERIAL)
    assert (len(hashed), len(measured)) == (1, 3)
    posed.clear()
    assert same(run_job(job, SERIAL), first)
    assert (len(posed), len(hashed), len(measured)) == (1, 1, 3)
    assert [result.run_id for result in many([job], SERIAL)] == [first.run_id]
    assert (len(hashed), len(measured)) == (1, 3)


def test_a_finished_run_begins_no_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(SMALL, blobs(60), tmp_path / "run")
    first = run_job(job, SERIAL)
    monkeypatch.setattr(driver, "session", lambda *_, **__: pytest.fail("a session was opened"))
    monkeypatch.setattr(driver, "estimate", lambda *_: pytest.fail("a trial was made"))
    assert same(run_job(job), first)


def test_many_studies_of_one_task_hash_it_once(hashed: list[tuple]) -> None:
    task = blobs(60)
    found = list(many([Job(study, task) for study in STUDIES], SERIAL))
    assert len({result.run_id for result in found}) == len(STUDIES)
    assert hashed == [(task,)]


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
    assert run_job(plain, SERIAL).test_error is None
    before = (tmp_path / "run" / "execution.json").read_bytes()
    first = run_job(measured, SERIAL)
    assert first.test_error == run_job(measured._replace(out=None), SERIAL).test_error
    assert first.execution["test"]["digest"] == measured.test.digest
    assert (tmp_path / "run" / "execution.json").read_bytes() == before
    other = plain._replace(out=tmp_path / "other", test=measured.test)
    run_job(other, SERIAL)
    assert run_job(other._replace(test=None), SERIAL).test_error == first.test_error
    again = run_job(other._replace(test=TestRows(others.X, others.y)), SERIAL)
    assert again.test_error != first.test_error


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


def test_the_seconds_of_the_trial_are_those_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study that the trial finishes took its time there."""
    trials = []
    real = forecast.estimate

    def estimate(problem: Problem, **limits: float | None) -> forecast.Estimate:
        trial = real(problem, **limits)
        trials.append(trial.outcome._replace(seconds=100.0))
        return replace(trial, outcome=trials[-1])

    monkeypatch.setattr(driver, "estimate", estimate)
    result = run(SMALL, blobs(60).X, blobs(60).y)
    assert trials
    assert result.execution["seconds"] >= 100.0


def test_every_argument_that_is_an_array_is_left_as_it_was() -> None:
    task = blobs(60)
    X, y = task.X.copy(), task.labelled(task.y)
    X.flags.writeable = y.flags.writeable = False
    before = X.tobytes(), y.tobytes()
    assert same(run(SMALL, X, y, execution=SERIAL), run(SMALL, np.array(X), np.array(y), execution=SERIAL))
    assert (X.tobytes(), y.tobytes()) == before
