"""A run says which of its rows were judged, or seen, by finished runs in the same parent folder."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs, snapshot
from stores import BUCKET

from ckcv_ray import Execution, Job, Procedure, Result, Study, Task, load_run
from ckcv_ray.reports.render import report
from ckcv_ray.runs import run as before
from ckcv_ray.runs.run import assess, run_job
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
    said = f"Some of these 40 rows were judged before, by run {first.run_id} ('first')"
    all_of = "This one is covered only if all runs were named before any was seen, and each had delta"
    assert f"{said}. Quote {first.run_id}. {all_of}/2." in say(second)
    assert f"{said}, run {second.run_id} ('second'). Quote {first.run_id}. {all_of}/3." in say(third)


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
    assert "not known is whether these rows were judged there" in say(result)
    assert "'spoilt' (" in say(result)


def test_a_large_folder_is_passed_over_and_the_oldest_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(4):
        run(tmp_path / f"run-{age}", HELD.replace(seed=age))
        os.utime(tmp_path / f"run-{age}" / "manifest.json", (1e9 - age, 1e9 - age))
    monkeypatch.setattr(before, "MAX_LOOKED_AT", 2)
    result = run(tmp_path / "last", HELD.replace(seed=9))
    assert {name for name, _, _ in find(result)} == {"run-0", "run-1"}
    assert "unread 2 older runs: not known is whether these rows were judged there" in say(result)
    monkeypatch.setattr(before, "MAX_ROWS_THERE", 79)
    found = before.find_before(Problem.of(HELD, TASK), str(tmp_path / "new"))
    assert found["passed_over"]["last"] == "it has 80 rows, and at most 79 are looked at"


def test_an_earlier_run_is_not_changed_and_needs_no_module(tmp_path: Path) -> None:
    run(tmp_path / "first")
    run(tmp_path / "foreign", HELD.replace(seed=1))
    study = tmp_path / "foreign" / "study.json"
    study.write_text(study.read_text().replace('"svm"', '"os:system"'))
    before = snapshot(tmp_path)
    result = run(tmp_path / "second", HELD.replace(seed=2))
    assert before.items() <= snapshot(tmp_path).items()
    assert list(result.execution["before"]["passed_over"]) == ["foreign"]


def test_a_prefix_of_a_store_is_a_parent_folder(memory: Any) -> None:
    first = run(f"s3://{BUCKET}/runs/first")
    run(f"s3://{BUCKET}/others/first", HELD.replace(seed=5))
    with pytest.raises(KeyboardInterrupt):
        run_job(Job(HELD.replace(seed=6), TASK, f"s3://{BUCKET}/runs/stopped"), SERIAL, stop=lambda: True)
    second = run(f"s3://{BUCKET}/runs/second", HELD.replace(seed=1))
    assert find(second) == [("first", True, share(first, second))]
