"""What was seen before: rows that finished runs in the same folder judged or saw, and a first look."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any, cast

import numpy as np
import pytest
from conftest import blobs, snapshot
from stores import BUCKET

from ckcv_ray import Execution, Job, Procedure, Result, Study, Task, load_run
from ckcv_ray.claims.certify import expect_claims
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.engine.worker import LostError
from ckcv_ray.errors import RunError
from ckcv_ray.reports.render import report
from ckcv_ray.runs import run as running
from ckcv_ray.runs.result import Scored, rank_entries
from ckcv_ray.runs.run import assess, never, run_job, run_work
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
HELD = Study.of(C=(1.0,), gamma=(0.1,), k=(3,), n_splits=2, certify="holdout", holdout_share=0.5)
PAPER = Study.paper(C=(1.0,), gamma=(0.1,), k=(3,), n_splits=2)
SCORED = Procedure.of(C=(1.0,), gamma=(0.1,), resampling="kfold:3")
TASK = blobs(80)
LABELS = TASK.labelled(TASK.y)


def run(out: Path | str, study: Study = HELD, task: Task = TASK) -> Result:
    return run_job(Job(study, task, out), SERIAL)


def say(result: Result) -> str:
    """What the first screen says, in one line."""
    return " ".join(result.summary(details=True).split())


def find(result: Result) -> list[tuple[str, bool, int]]:
    """Which folders have rows that the run judges, whether they judged them, and how many."""
    found = result.execution["before"]["runs"]
    return [(earlier["folder"], earlier["judged"], earlier["rows"]) for earlier in found]


def select(rows: Any) -> Task:
    return Task.of(TASK.X[rows], LABELS[rows])


def share(first: Result, second: Result) -> int:
    """How many rows both hold out."""
    return len(np.intersect1d(first.problem.held, second.problem.held))


def test_another_seed_on_the_same_rows_is_named(tmp_path: Path) -> None:
    first = run(tmp_path / "first")
    assert find(first) == []
    second = run(tmp_path / "second", HELD.replace(seed=1))
    os.utime(tmp_path / "second" / "manifest.json", (1e9, 1e9))  # whichever folder was written last
    third = run(tmp_path / "third", HELD.replace(seed=2))
    assert find(second) == [("first", True, share(first, second))]
    assert find(third) == [("first", True, share(first, third)), ("second", True, share(second, third))]
    copytree(tmp_path / "first", tmp_path / "copy")  # the same run
    copied = say(run(tmp_path / "fourth", HELD.replace(seed=2)))
    said = f"Some of these 40 rows were judged before, by run {first.run_id} ('first')"
    all_of = "This one is covered only if all runs were named before any was seen, and each had delta"
    assert f"{said}. Quote {first.run_id} if it may be. {all_of}/2." in say(second)
    both = f"{said}, run {second.run_id} ('second')"
    assert f"{both}. Quote {first.run_id} if it may be. {all_of}/3." in say(third)
    assert re.search(rf"run {first.run_id} \('(first', 'copy|copy', 'first)'\), run {second.run_id}", copied)
    assert f"{all_of}/3." in copied


def test_what_was_found_is_told_wherever_the_folder_is_and_not_certified(tmp_path: Path) -> None:
    several, alone = tmp_path / "several", tmp_path / "alone"
    run(several / "first")
    made = run(several / "second", HELD.replace(seed=1))
    run(alone / "second", HELD.replace(seed=1))
    for name in ("certificate.json", "study.json", "data.parquet", "judged.parquet"):
        assert (several / "second" / name).read_bytes() == (alone / "second" / name).read_bytes()
    assert find(run(alone / "again", HELD.replace(seed=1))) == []  # the same study is no other one
    (several / "second").rename(tmp_path / "moved")
    assert load_run(tmp_path / "moved").to_json()["before"] == made.execution["before"]
    assert "were judged before, by run" in Path(report(tmp_path / "moved")).read_text()


def test_rows_that_were_scored_or_learned_from_before_are_seen(tmp_path: Path) -> None:
    scores = assess(SCORED, TASK, tmp_path / "scores", SERIAL)
    first = run(tmp_path / "first")
    assert find(first) == [("scores", False, 40)]
    assert (
        f"Some of these 40 rows were seen before, by evaluate {scores.run_id} ('scores'): this bound is not "
        "covered if what was shown led to this study; --learner a,b compares them within the learning rows."
    ) in say(first)
    learned = np.delete(np.arange(80), first.problem.held)
    second = run(tmp_path / "second", task=select(learned))
    assert find(second) == [("scores", False, 20), ("first", False, 20)]


def test_a_paper_run_judges_every_row(tmp_path: Path) -> None:
    run(tmp_path / "paper", PAPER)
    assert find(run(tmp_path / "held")) == [("paper", True, 40)]
    later = run(tmp_path / "other", PAPER.replace(seed=1))
    assert {name: rows for name, _, rows in find(later)} == {"paper": 80, "held": 40}
    assert "Some of these 80 rows were judged before" in say(later)


def test_a_table_that_grew_is_recognised_in_any_order_by_the_columns_that_both_have(tmp_path: Path) -> None:
    run(tmp_path / "small", PAPER, select(slice(60)))
    order = np.random.default_rng(0).permutation(80)
    more = np.column_stack([TASK.X[order], np.random.default_rng(1).normal(size=80)])
    result = run(tmp_path / "grown", PAPER.replace(seed=3), Task.of(more, LABELS[order]))
    assert find(result) == [("small", True, 60)]


def test_other_values_and_labels_are_not_recognised(tmp_path: Path) -> None:
    run(tmp_path / "first", PAPER)
    assert find(run(tmp_path / "second", task=Task.of(TASK.X + 0.5, LABELS))) == []
    assert find(run(tmp_path / "third", task=Task.of(TASK.X, LABELS + 7))) == []


def test_a_folder_that_cannot_be_read_is_passed_over_and_named(tmp_path: Path) -> None:
    run(tmp_path / "first")
    run(tmp_path / "spoilt", HELD.replace(seed=2))
    (tmp_path / "spoilt" / "data.parquet").write_bytes(b"PAR1")
    result = run(tmp_path / "last", HELD.replace(seed=3))
    assert [name for name, _, _ in find(result)] == ["first"]
    assert set(result.execution["before"]["passed_over"]) == {"spoilt"}
    assert "it is not known whether these rows were judged there" in say(result)
    assert "'spoilt' (" in say(result)


def test_a_large_folder_is_passed_over_and_the_oldest_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(4):
        run(tmp_path / f"run-{age}", HELD.replace(seed=age))
        os.utime(tmp_path / f"run-{age}" / "manifest.json", (1e9 - age, 1e9 - age))
    monkeypatch.setattr(running, "MAX_LOOKED_AT", 2)
    result = run(tmp_path / "last", HELD.replace(seed=9))
    assert {name for name, _, _ in find(result)} == {"run-0", "run-1"}
    assert "unread 2 older runs: it is not known whether these rows were judged there" in say(result)
    monkeypatch.setattr(running, "MAX_ROWS_THERE", 79)
    found = running._find_before(Problem.of(HELD, TASK), str(tmp_path / "new"))
    assert found["passed_over"]["last"] == "it has 80 rows, and at most 79 are looked at"


def test_an_earlier_run_is_not_changed_and_needs_no_module(tmp_path: Path) -> None:
    run(tmp_path / "first")
    own = Study.of(learner="sklearn.naive_bayes:GaussianNB", k=3, n_splits=2, holdout_share=0.5)
    for name, study in {"foreign": HELD.replace(seed=1), "own": own}.items():
        run(tmp_path / name, study)
        file = tmp_path / name / "study.json"
        file.write_text(re.sub("svm|sklearn.naive_bayes:GaussianNB", "os:system", file.read_text()))
    before = snapshot(tmp_path)
    result = run(tmp_path / "second", HELD.replace(seed=2))
    assert before.items() <= snapshot(tmp_path).items()
    assert list(result.execution["before"]["passed_over"]) == ["own", "foreign"]
    said = (
        "unread 'own' (ckcv --trust os, or ckcv_ray.trust('os')), 'foreign' (learner='os:system' is not known"
    )
    assert said in say(result)


def test_a_prefix_of_a_store_is_a_parent_folder(memory: Any) -> None:
    first = run(f"s3://{BUCKET}/runs/first")
    run(f"s3://{BUCKET}/others/first", HELD.replace(seed=5))
    with pytest.raises(KeyboardInterrupt):
        run_job(Job(HELD.replace(seed=6), TASK, f"s3://{BUCKET}/runs/stopped"), SERIAL, stop=lambda: True)
    second = run(f"s3://{BUCKET}/runs/second", HELD.replace(seed=1))
    assert find(second) == [("first", True, share(first, second))]


# A first look: what was finished in time, of rows that the run learns from, as a procedure shows it


STUDY = Study.of(learner="naive_bayes,tree,linear", k=(3,), n_splits=2)
CLOUDS = blobs(120)


class Time:
    """A clock that advances by what fits take, in this process: seconds of each path, in order."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.seconds, self.asked = 0.0, seconds, list[tuple[int, int]]()

    def compute(
        self, learner: Any, timeout: float, function: Any, inputs: Any, units: Any, seconds: float
    ) -> Any:
        ((path, _),), split = units[0].paths, units[0].split
        self.asked.append((split, path))
        self.now += min(self.seconds[path], seconds)
        if self.seconds[path] > seconds:
            raise LostError("it did not answer in time")
        return function(inputs, units)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Time]:
    def make(*seconds: float) -> Time:
        time = Time(*seconds)
        monkeypatch.setattr(running, "monotonic", lambda: time.now)
        monkeypatch.setattr(running, "compute_apart", time.compute)
        monkeypatch.setattr(running, "warm_up", lambda inputs: None)
        return time

    return make


def look(study: Study = STUDY, task: Task = CLOUDS, rows: int | None = None) -> Scored:
    return cast(Scored, run_work(running.look(study, Problem.of(study, task), 30.0, rows, never), SERIAL))


def list_values(result: Any) -> list[Any]:
    """Learners and settings, with the score on each split."""
    return [(e.name, *result.of_splits(e, result.scores[0])) for e in result.entries]


@pytest.mark.parametrize(
    ("seconds", "kept", "n_splits"),
    [
        ((2, 4, 4), ["naive_bayes", "tree", "linear"], 3),
        ((20, 1, 1), ["tree", "linear"], 5),  # each has its share
        ((99, 99, 7), ["linear"], 1),
    ],
)
def test_time_decides_how_much_is_shown_and_each_figure_is_that_of_the_procedure(
    seconds: tuple[float, ...], kept: list[str], n_splits: int, clock: Callable[..., Time]
) -> None:
    time = clock(*seconds)
    found = look()
    assert list(found.problem.learners) == kept
    assert found.computed.n_splits == n_splits
    assert time.now <= 30
    assert list_values(found) == list_values(assess(found.study, found.task))


def test_what_was_begun_in_a_split_that_did_not_end_is_not_shown(clock: Callable[..., Time]) -> None:
    time = clock(1, 1, 1)

    def slower(*given: Any, **more: Any) -> Any:
        time.seconds = (1, 1, 99) if len(time.asked) > 7 else time.seconds
        return time.compute(*given, **more)

    running.compute_apart = slower  # undone with the clock
    found = look()
    assert time.asked[-1] == (2, 2)
    assert (found.computed.n_splits, len(found.problem.learners)) == (2, 3)


@pytest.mark.parametrize(("n", "cure"), [(120, "allow more time"), (3200, "--rows 1000")])
def test_where_nothing_is_finished_it_says_so(n: int, cure: str, clock: Callable[..., Time]) -> None:
    clock(99, 99, 99)
    with pytest.raises(RunError, match=f"^nothing finished in 30 s: {cure}$"):
        look(task=blobs(n))


def test_fewer_rows_are_among_more(clock: Callable[..., Time]) -> None:
    clock(1, 1, 1)
    taken = [{*map(tuple, look(rows=rows).task.X)} for rows in (20, 40, None)]
    assert [len(rows) for rows in taken] == [20, 40, 60]
    assert taken[0] < taken[1] < taken[2] == {*map(tuple, Problem.of(STUDY, CLOUDS).task.X)}


def test_what_is_expected_are_the_bounds_on_as_many_wrong_rows() -> None:
    study = STUDY.replace(claim="refit,recall,auc", holdout_share=0.5)
    problem = Problem.of(study, CLOUDS)
    error, *recalls = expect_claims(problem, [0.1, 0.2])
    n = np.bincount(problem.task.y).tolist()  # as many are held out
    wrong = [round(0.1 * n[0]), round(0.2 * n[1])]
    assert (error.errors, error.rows) == (sum(wrong), 60)
    assert error.bound == clopper_pearson(sum(wrong), 60, 0.05 / 3)
    assert [(claim.label, claim.errors, claim.rows) for claim in recalls] == [
        *zip((-1, 1), wrong, n, strict=True)
    ]
    assert [claim.bound for claim in recalls] == [*map(clopper_pearson, wrong, n, (0.05 / 6, 0.05 / 6))]
    assert error.gate is not None
    assert error.gate.passed


def test_numbers_are_compared_by_the_clipped_error(clock: Callable[..., Time]) -> None:
    clock(1, 1)
    X = np.random.default_rng(0).normal(size=(120, 3))
    task = Task.of(X, X[:, 0] + 5, numbers=True)
    study = Study.of(learner="forest_regressor,ridge", clip=2, k=(3,), n_splits=2)
    found = look(study, task)
    (score,), problem = found.scores, Problem.of(study, task)
    (best, figures), _ = rank_entries(found, score)
    assert (best.learner, score.name) == ("ridge", "clipped:2.0")
    (claim,), constant = running.expect_run(found, problem)
    assert figures.mean < 0.1 < constant < 2
    assert figures.mean / 2 < (claim.bound or 1.0) < 0.2
