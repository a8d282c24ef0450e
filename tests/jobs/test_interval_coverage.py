"""The job that counts misses of approximate intervals: its truths, its figures, and that runs repeat."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ckcv_ray.core.arrays import Limits
from jobs.paper import interval_coverage
from jobs.paper.interval_coverage import Line, Run, compute_run, main, summarize
from jobs.paper.sources import Setting


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    few = (
        Line("holdout:0.3", "clopper_pearson", 0.7),
        Line("kfold:10", "corrected_t", 0.9),
        Line("kfold:5", "bbc", 0.9, (1e-9, 100.0)),
    )
    monkeypatch.setattr(interval_coverage, "PROCEDURES", few)


def test_a_run_depends_on_its_setting_and_number_alone() -> None:
    first = compute_run(Setting("noise", 60), 0)
    assert compute_run(Setting("noise", 60), 0) == first
    assert compute_run(Setting("noise", 60), 1) != first
    assert list(first.errors.values()) == pytest.approx([0.5] * 3)  # a coin decides the labels
    assert all(low < high for low, high in first.intervals.values())


def test_misses_are_of_the_mean_and_of_the_model() -> None:
    name = "holdout:0.3 clopper_pearson"
    errors = [{0.7: 0.2, 0.9: 0.2, 1.0: 0.1}, {0.7: 0.4, 0.9: 0.4, 1.0: 0.35}]  # means of 0.3
    limits = [Limits(0.25, 0.35), Limits(0.31, 0.36)]
    names = [one.name for one in interval_coverage.PROCEDURES]
    runs = [
        Run({key: at if key == name else Limits(0.0, 1.0) for key in names}, error, error)
        for at, error in zip(limits, errors, strict=True)
    ]
    found = summarize(runs)
    assert found[name] == pytest.approx({"mean": 50.0, "model": 50.0, "width": 7.5})
    assert found["kfold:10 corrected_t"] == pytest.approx({"mean": 0.0, "model": 0.0, "width": 100.0})


def test_settings_are_told_apart(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def in_this_process(workers: int, mp_context: object) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(interval_coverage, "ProcessPoolExecutor", in_this_process)
    main("noise:60,eight:60", runs=2, workers=1, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["noise:60", "eight:60"]
    assert all(0 <= cell["mean"] <= 100 for one in found.values() for cell in one.values())
    main("noise:60", runs=1, workers=1, as_json=False)
    assert "missed model, %" in capsys.readouterr().out
