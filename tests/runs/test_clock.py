"""A clock may be wrong, far back, or jump back while a run goes on: the files of the run are the same."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys, time
from itertools import count
from pathlib import Path

localtime, ticks = time.localtime, count()
start, step = map(float, sys.argv[2:])
time.time = lambda: start + step * next(ticks)
time.time_ns = lambda: int(1e9 * time.time())
time.localtime = lambda seconds=None: localtime(time.time() if seconds is None else seconds)

import numpy as np
from ckcv_ray import Execution, Study, evaluate, load_run, run, verify
from ckcv_ray.reports import report

X = np.random.default_rng(0).normal(size=(24, 2)) + (np.arange(24) % 2)[:, None]
y = np.arange(24) % 2
for learner in ("svm", "tree", "naive_bayes"):
    out = Path(sys.argv[1]) / learner
    grid = {"C": (1.0,), "gamma": (0.1,)} if learner == "svm" else {}
    result = run(Study.of(learner=learner, k=(3,), n_splits=2, **grid), X, y, out, Execution("serial"))
    assert 0 < result.execution["seconds"] < 600
    report(out)
    assert load_run(out).predict(X).shape == (24,)
    assert not verify(out).differences
scores = evaluate(X, y, Path(sys.argv[1]) / "scores", Execution("serial"), learner="tree")
assert 0 < scores.execution["seconds"] < 600
"""
CLOCKS = {"1938": (-1e9, 1e-3), "2286": (1e10, 1e-3), "backwards": (1.8e9, -3600.0)}
KEPT = (
    "study.json",
    "data.parquet",
    "certificate.json",
    "candidates.parquet",
    "scores.json",
    "scores.parquet",
)


def run_at(out: Path, start: float, step: float) -> dict[str, bytes]:
    """Run by a clock in a process of its own; return what does not depend on the run."""
    command = [sys.executable, "-c", RUN, str(out), str(start), str(step)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    files = [*out.rglob("ensemble/*"), *(file for name in KEPT for file in out.rglob(name))]
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return run_at(tmp_path_factory.mktemp("usual"), 1.8e9, 1e-3)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_run_does_not_depend_on_the_clock(tmp_path: Path, usual: dict[str, bytes], clock: str) -> None:
    assert "tree/ensemble/models.parquet" in usual
    assert run_at(tmp_path, *CLOCKS[clock]) == usual
