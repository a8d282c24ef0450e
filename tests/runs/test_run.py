"""Runs, alone, side by side and on disk: made only once, resumed, retried, and what they say."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from alike import SMALL, STUDIES, breaking, same
from conftest import blobs, snapshot
from doubles import Failing, k_of, run_with
from finished import SERIAL
from sklearn.metrics import accuracy_score, r2_score

from ckcv_ray import Execution, InputError, Job, Result, RunError, Study, Task, TestRows, load_run, run
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import backend, forecast
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import WARM_ROWS
from ckcv_ray.errors import CKCVError, StoreError
from ckcv_ray.learners.svm import trainer
from ckcv_ray.runs.finished import measure, reopen
from ckcv_ray.runs.run import run_job, run_many
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem

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
    for name in ("queue.BATCH_SECONDS", "queue.OWN_SECONDS", "race.OWN_SECONDS"):  # a unit in each batch
        monkeypatch.setattr(f"ckcv_ray.engine.{name}", 0.0)
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


def list_jobs(folder: Path) -> list[Job]:
    return [Job(study, blobs(60), folder / str(i)) for i, study in enumerate(STUDIES)]


def test_many_runs_give_what_each_gives_alone_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    alone = [run_job(job._replace(out=None), SERIAL) for job in list_jobs(tmp_path)]
    for _ in range(2):  # made, then read
        found = list(run_many(list_jobs(tmp_path), SERIAL))
        assert [result.study.seed for result in found] == list(range(6))
        assert all(map(same, found, alone))


def test_a_list_of_jobs_is_checked_before_any_begins(tmp_path: Path) -> None:
    first, other = Job(SMALL, blobs(60), tmp_path / "run"), Job(STUDIES[1], blobs(60))
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("not a run")
    refused = {
        "k=61": other._replace(study=SMALL.replace(k=61)),
        "not a run folder": other._replace(out=tmp_path / "letters"),
        "is of two jobs that differ": other._replace(out=first.out),
    }
    for match, job in refused.items():
        with pytest.raises(CKCVError, match=match):
            next(run_many([first, job], SERIAL))
    assert [place.name for place in tmp_path.iterdir()] == ["letters"]
    assert same(*run_many([first, first], SERIAL))


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
    results = run_many(iter(list_jobs(tmp_path)), SERIAL)
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


# On disk


KINDS = {
    "paper": SMALL,
    "holdout": SMALL.replace(certify="holdout", claim="vote"),
    "rotation": SMALL.replace(resampling="rotation", report_k=4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_read_back_whole(kind: str, tmp_path: Path) -> None:
    made = run_job(Job(KINDS[kind], blobs(60), tmp_path / "run"), SERIAL)
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


# What fails, and test rows


def test_a_run_with_failures_is_opened_again_and_one_without_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, manifest = Job(SMALL, blobs(60), tmp_path / "run"), tmp_path / "run" / "manifest.json"
    problem = Problem.of(SMALL, job.task)
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: (unit.size, unit.split) == (1, 2))
        result = run_job(job, SERIAL)
    assert result.certificate.provisional
    assert {tuple(failure[1:3]) for failure in result.execution["failures"]} == {(4, 2)}
    reopen(problem, job.out)
    assert not manifest.exists()
    assert not run_job(job, SERIAL).certificate.provisional
    reopen(problem, job.out)
    assert manifest.exists()
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
    with pytest.raises(InputError, match=r"its holdout has judged its rows: .* was tried twice"):
        reopen(Problem.of(job.study, job.task), out)
    assert (out / "manifest.json").read_bytes() == before


def test_a_winner_that_cannot_be_refitted_on_every_split_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was selected is kept: once it can be refitted, nothing is selected again."""
    job = Job(SMALL, blobs(60), tmp_path / "run")
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: unit.stage is Stage.REFIT and unit.split == 3)
        with pytest.raises(RunError, match=r"(?s)could not be refitted on every split.*split 3:.*no room"):
            run_job(job, SERIAL)
    assert not RunFolder(job.out).finished
    stages: set[Stage] = set()
    breaking(monkeypatch, lambda unit: bool(stages.add(unit.stage)))
    result = run_job(job, SERIAL)
    assert stages == {Stage.REFIT}
    assert result.certificate.claims == run_job(job._replace(out=None), SERIAL).certificate.claims
    assert not result.certificate.provisional


def test_a_reported_candidate_that_cannot_be_refitted_is_a_failure_that_is_told(tmp_path: Path) -> None:
    """And the winner's claim stands; taken up again, the run is what it would have been."""
    job = Job(SMALL.replace(k=(3, 10), report_k=(3, 10)), blobs(60), tmp_path)
    whole = run_job(job._replace(out=None), SERIAL)
    other = 10 if whole.k == 3 else 3

    def doomed(unit: Unit, problem: Problem) -> bool:
        return unit.stage is Stage.REFIT and k_of(problem, unit) == other and unit.split == 1

    result = run_with(Failing(doomed), job.study, job.task, tmp_path)
    assert result.certificate.claims == whole.certificate.claims
    assert [(failure[1], failure[2]) for failure in result.execution["failures"]] == [(other, 1)]
    lacking = {row["k_first"]: row["l_ee"] is None for row in result.to_json()["per_k"]}
    assert lacking == {whole.k: False, other: True}
    (tmp_path / "manifest.json").unlink()
    assert same(run_job(job, SERIAL), whole)


def test_test_rows_are_measured_for_every_reported_k() -> None:
    other = blobs(40, seed=3)
    rows = TestRows(other.X, other.y)
    study = SMALL.replace(C=1.0, gamma=0.1, report_k=(3, 4, 5))  # one setting: models differ by their k alone
    result = run_job(Job(study, blobs(60), test=rows), SERIAL)
    assert {member.k for member in result.ensemble.members} == {result.k}
    messages = result.execution["test"]
    assert (messages["rows"], messages["digest"]) == (40, rows.digest)
    assert set(messages["reported"]) == {"3", "4", "5"}
    assert messages["reported"][str(result.k)] == {name: messages[name] for name in ("error", "vote_error")}
    labels = np.array([member.model.predict(rows.X).label for member in result.ensemble.members])
    assert messages["error"] == pytest.approx(np.mean(labels != rows.y), rel=1e-12)
    vote = (labels == 1).sum(axis=0) * 2 > 5
    assert messages["vote_error"] == np.mean(vote != rows.y)
    assert measure(result.ensemble, None, {}) is None


# What a result says


def compute(study: Study = SMALL, task: Task | None = None) -> Result:
    return run_job(Job(study, task or blobs(60)), SERIAL)


def test_the_error_is_the_mean_over_splits_of_what_members_do_on_their_estimate_sets() -> None:
    """Estimated, where the bounds are proven: it lies below each of them."""
    result = compute()
    problem, rates = result.problem, list[float]()
    (size,) = (j for j, size in enumerate(problem.sizes) if size.holds(result.k))
    for member in result.ensemble.members:
        _, score = problem.rows(Stage.REFIT, size, member.split)
        rates.append(np.mean(member.model.predict(result.task.X[score]).label != result.task.y[score]))
    assert result.certificate.error == pytest.approx(np.mean(rates), rel=1e-12)
    assert result.certificate.error == result.to_json()["error"]
    assert 0 < result.certificate.error < result.l_ee < result.proven


def test_every_fold_size_has_one_row_with_its_own_best_where_it_is_reported() -> None:
    result = compute(SMALL.replace(k=(3, 4, 5, 40, 41), report_k=41))
    rows = {row["k_first"]: row for row in result.to_json()["per_k"]}
    places = {k: (row["k_last"], row["n_select"]) for k, row in rows.items()}
    assert places == {3: (3, 20), 4: (4, 15), 5: (5, 12), 40: (41, 1)}
    shown = {k for k, row in rows.items() if row["setting"] is not None}
    assert shown == {result.k, 40}
    assert (rows[result.k]["state"], rows[result.k]["setting"]) == ("winner", result.setting)
    assert all(row["lower_bound"] <= (row["l_ms"] or 1) for row in rows.values())


def test_a_winner_on_the_edge_of_a_grid_is_pointed_out() -> None:
    inner = compute(SMALL.replace(C=(1e-3, 1.0, 1e6), gamma=0.1, seed=1))
    outer = compute(SMALL.replace(C=(1e-3, 1e-2), gamma=0.1))
    assert inner.setting["C"] == 1.0
    edge = " is on the edge of its grid: on new rows, none of these"
    assert edge not in inner.summary(details=True)  # nor on that of a grid of one value
    (said,) = [line for line in outer.summary(details=True).splitlines() if edge in line]
    assert f"C = {outer.setting['C']:g}{edge}" in said


LABELS = {"markup": ("<script>alert(1)</script>", '"it\'s" & <b>'), "truth": (False, True)}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_any_kind_are_told_as_they_are_and_are_no_markup(labels: tuple[Any, Any]) -> None:
    task = blobs(60)
    result = compute(task=Task.of(task.X, np.array(labels)[task.y]))
    assert all(f"{label!r} " in result.summary(details=True) for label in result.task.classes)
    assert set(result.predict(task.X).tolist()) == set(labels)
    assert "<script" not in result._repr_html_()


def test_a_score_is_that_of_scikit_learn() -> None:
    rows, new = blobs(90), blobs(40, seed=4)
    result = run(SMALL.replace(certify="holdout"), rows.X, np.array(["no", "yes"])[rows.y])
    y = pd.Series(np.array(["no", "yes"])[new.y], dtype="category")
    for by in ("auto", "vote", "full"):
        assert result.score(new.X, y, by) == accuracy_score(y, result.predict(new.X, by)) < 1
    with pytest.raises(InputError, match=r"holds '(no|yes)[?]': the labels are 'no'"):
        result.score(new.X, y.astype(str) + "?")
    ridge = Study.of(learner="ridge", k=3, n_splits=2, clip=4.0)
    result = run(ridge, rows.X, rows.X @ (1, 2) + rows.y)
    y = new.X @ (1, 2) + new.y
    assert result.score(new.X, y) == pytest.approx(r2_score(y, result.predict(new.X)), abs=1e-15)
    assert np.isnan(result.score(new.X[:1], y[:1]))  # of one row R2 is not defined
    assert result.score(new.X, np.full(len(y), 2.0)) == 0
    with pytest.raises(InputError, match="X has no rows: there is nothing to score"):
        result.score(new.X[:0], y[:0])
