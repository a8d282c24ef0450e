"""Runs, alone and side by side: what they make only once, where they go on, and what they tell."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from alike import SMALL, STUDIES, same
from conftest import blobs, snapshot

from ckcv_ray import Execution, Job, TestRows, run
from ckcv_ray.engine import backend, forecast, queue
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import WARM_ROWS
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.learners.svm import trainer
from ckcv_ray.runs.run import run_job, run_many
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")


# What is made once


def count(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[Any]:
    """The calls of a function from now on."""
    function = Mock(wraps=getattr(owner, name))
    monkeypatch.setattr(owner, name, function)
    return function.call_args_list


@pytest.mark.parametrize("name", ["serial", "auto"])
def test_a_run_makes_its_problem_its_hash_and_its_distances_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a trial came first or not: all of it goes on with what the first step made."""
    posed = count(monkeypatch, Problem, "of")
    hashed = count(monkeypatch, vars(Task)["digest"], "func")
    measured = count(monkeypatch, trainer, "compute_distances")
    study, task = SMALL.replace(scale="none", certify="holdout"), blobs(60)
    result = run(study, task.X, task.labelled(task.y), tmp_path / "run", Execution(name))
    rows = [call.args[0] for call in measured if len(call.args[0]) > WARM_ROWS]  # without a warm-up
    assert [len(calls) for calls in (posed, hashed, rows)] == [1, 1, 3]  # two models at the end
    assert hashed[0].args[0] is result.problem.all_rows
    assert rows[0] is result.problem.task.X


def test_what_a_trial_found_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fits of a run that began with a trial are those of one that did not."""
    calls = [count(monkeypatch, module, "evaluate_apart") for module in (forecast, backend)]
    study = SMALL.replace(exhaustive=True)
    result = run_job(Job(study, blobs(60)), Execution("auto"))
    tried, fitted = ([unit for call in each for unit in call.args[0]] for each in calls)
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

    def measure(out: str | None, test: TestRows | None) -> Any:
        folder = None if out is None else tmp_path / out
        return run_job(Job(SMALL, blobs(60), folder, test), SERIAL).execution["test"]

    rows, others = (TestRows(task.X, task.y) for task in (blobs(40, seed=3), blobs(30, seed=4)))
    assert measure("plain", None) is None
    before = snapshot(tmp_path)
    first = measure("plain", rows)
    assert first == measure(None, rows) == measure("tested", rows) == measure("tested", None)
    assert first["digest"] == rows.digest
    assert before.items() <= snapshot(tmp_path).items()
    assert measure("tested", others) != first


def test_every_argument_that_is_an_array_is_left_as_it_was() -> None:
    X, y = blobs(60).X.copy(), blobs(60).labelled(blobs(60).y)
    X.flags.writeable = y.flags.writeable = False
    before = X.tobytes(), y.tobytes()
    assert same(run(SMALL, X, y, execution=SERIAL), run(SMALL, np.array(X), np.array(y), execution=SERIAL))
    assert (X.tobytes(), y.tobytes()) == before


def list_jobs(folder: Path) -> list[Job]:
    return [Job(study, blobs(60), folder / str(i)) for i, study in enumerate(STUDIES)]


def test_many_runs_give_what_each_gives_alone_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    alone = [run_job(job._replace(out=None), SERIAL) for job in list_jobs(tmp_path)]
    for _ in range(2):  # made, then read
        found = list(run_many(list_jobs(tmp_path), SERIAL))
        assert [result.study.seed for result in found] == list(range(6))
        assert all(map(same, found, alone))


def test_a_list_of_jobs_is_checked_before_any_begins(tmp_path: Path) -> None:
    jobs = [Job(SMALL, blobs(60), tmp_path / "run"), Job(SMALL.replace(k=61), blobs(60))]
    with pytest.raises(InputError, match="k=61"):
        next(run_many(jobs, SERIAL))
    assert not list(tmp_path.iterdir())


def test_jobs_of_a_generator_are_asked_for_as_they_are_needed() -> None:
    asked = []

    def jobs() -> Iterator[Job]:
        for seed in range(40):
            asked.append(seed)
            yield Job(SMALL.replace(seed=seed), blobs(60))

    results = run_many(jobs(), SERIAL)
    assert asked == []
    next(results)
    results.close()
    assert 0 < len(asked) < 10


def test_one_job_that_fails_stops_the_others_which_keep_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "letter.txt").write_text("not a run")
    results = run_many(list_jobs(tmp_path), SERIAL)
    assert next(results).study.seed == 0
    with pytest.raises(StoreError, match="not a run folder"):
        next(results)
    (tmp_path / "1" / "letter.txt").unlink()
    assert [result.study.seed for result in run_many(list_jobs(tmp_path), SERIAL)] == list(range(6))


def test_many_runs_stop_when_asked(tmp_path: Path) -> None:
    stop = Event()
    results = run_many(list_jobs(tmp_path), SERIAL, stop.is_set)
    next(results)
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        list(results)
    finished = {place.parent.name for place in tmp_path.glob("*/manifest.json")}
    assert ("0" in finished, "5" in finished) == (True, False)
    assert not list(tmp_path.glob("*/.lock"))


def test_two_jobs_of_one_folder_are_one_run_or_refused(tmp_path: Path) -> None:
    job = Job(SMALL, blobs(60), tmp_path / "run")
    assert same(*run_many([job, job], SERIAL))
    with pytest.raises(StoreError, match="seed: requested 1, in the folder 0"):
        list(run_many([job, job._replace(study=STUDIES[1])], SERIAL))
