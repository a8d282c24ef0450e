"""What a study will take, without running it."""

import json
import os
import subprocess
import sys

import pytest
from conftest import blobs

from ckcv_ray.engine.plan import plan, thinned, work
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_table
from ckcv_ray.study import Execution, Study

SMALL = Study(C=(0.1, 1.0), gamma=(0.1, 1.0), n_splits=4)
KEYS = {"cells", "splits", "sizes", "bytes_per_worker", "seconds_at_most", "seconds_by_workers"}


@pytest.mark.parametrize(
    "study",
    [
        SMALL,
        Study(C=(1.0,), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=7),
        Study(C=(0.1, 1.0), gamma=(1.0,), k=(3, 5), resampling="rotation"),
        Study(C=(0.1, 1.0), gamma=(1.0,), n_splits=3, protocol="holdout"),
    ],
    ids=["every k", "some k", "rotation", "holdout"],
)
def test_the_cells_planned_are_those_of_the_run(study):
    planned, result = plan(study, blobs(36)), run_table(study, blobs(36), execution=Execution("serial"))
    assert planned.cells == result.execution["cells"]["planned"]
    assert planned.cells == planned.splits * len(study.C) * len(study.gamma)
    assert 0 < planned.sizes <= planned.splits


def test_nested_counts_the_inner_runs():
    study = Study(C=(0.1, 1.0), gamma=(1.0,), k=(3, 4), n_splits=3, protocol="nested", outer_splits=2)
    whole, inner = plan(study, blobs(60)), plan(study.inner(), blobs(40))
    assert whole.cells == plan(study.inner(), blobs(60)).cells + 2 * inner.cells


def test_more_workers_take_no_longer_until_the_driver_is_what_all_wait_for():
    study = Study(n_splits=20_000)
    seconds = plan(study, blobs(60), (1, 2, 8, 64)).seconds_by_workers
    assert seconds[1] > seconds[2] > seconds[8] > seconds[64] > 0


@pytest.mark.parametrize("n_splits", [20, 5000])
def test_a_thinned_study_stands_for_the_whole(n_splits):
    study = Study(n_splits=n_splits).for_rows(400)
    tried = thinned(study, 400)
    assert (tried == study) == (n_splits == 20)
    assert work(tried, 400) <= work(study, 400)
    assert set(tried.C) <= set(study.C)
    assert {study.C[0], study.C[-1]} <= set(tried.C)


def test_a_study_that_does_not_go_with_the_table_is_refused():
    with pytest.raises(InputError, match="k=99"):
        plan(Study(k=(99,)), blobs(30))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc to tell memory")
def test_hundred_million_cells_take_seconds_and_no_more_memory():
    """Against the same study in small: what is listed anywhere would show."""
    code = (
        "from ckcv_ray.cli import main as cli\ntry: cli.main()\nexcept SystemExit: pass\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(next(int(line.split()[1]) >> 10 for line in lines if line.startswith('VmHWM')))"
    )
    peaks, cells = [], []
    for n_splits in ("20", "19000"):
        words = ["plan", "twonorm:400:0", "--n-splits", n_splits, "--json"]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        told, peak = done.stdout.splitlines()
        assert set(json.loads(told)) == KEYS
        peaks.append(int(peak))
        cells.append(json.loads(told)["cells"])
    assert cells[1] > 10**8 > 10**6 > cells[0]
    assert peaks[1] < peaks[0] + 150


def test_workers_are_whole_numbers(capfd, monkeypatch):
    from ckcv_ray.cli import main as cli

    for text in ("0", "1,", "many", "²", "1.5", "-1"):
        monkeypatch.setattr(sys, "argv", ["ckcv", "plan", "twonorm:60:0", f"--workers={text}"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        assert "expected whole numbers from 1" in capfd.readouterr().err
