"""A clock may be wrong, far back, or jump back while a run goes on: the files of the run are the same."""

import subprocess
import sys
from pathlib import Path

RUN = """
import sys, time
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from ckcv_ray import Execution, Study, evaluate, load_run, run, verify
from ckcv_ray.runs.report import report

CLOCKS = {"usual": (1.8e9, 1e-3), "1938": (-1e9, 1e-3), "2286": (1e10, 1e-3), "backwards": (1.8e9, -3600.0)}
X = np.random.default_rng(0).normal(size=(24, 2)) + (np.arange(24) % 2)[:, None]
y = np.arange(24) % 2
localtime = time.localtime

def tell(start, step, ticks):
    return start + step * next(ticks)

for clock, (start, step) in CLOCKS.items():
    time.time = partial(tell, start, step, count())
    time.time_ns = lambda: int(1e9 * time.time())
    time.localtime = lambda seconds=None: localtime(time.time() if seconds is None else seconds)
    folder = Path(sys.argv[1]) / clock
    for learner in ("svm", "tree"):
        grid = {"C": (1.0,), "gamma": (0.1,)} if learner == "svm" else {}
        study = Study.paper(learner=learner, k=(3,), n_splits=2, **grid)
        result = run(study, X, y, folder / learner, Execution("serial"))
        assert 0 < result.execution["seconds"] < 600
        if learner == "tree":
            report(folder / learner)
        assert load_run(folder / learner).predict(X).shape == (24,)
        assert not verify(folder / learner).differences
    scores = evaluate(X, y, folder / "scores", Execution("serial"), learner="tree")
    assert 0 < scores.execution["seconds"] < 600
"""
KEPT = (
    "study.json",
    "data.parquet",
    "certificate.json",
    "candidates.parquet",
    "scores.json",
    "scores.parquet",
)


def test_a_run_does_not_depend_on_the_clock(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    usual, *others = (read_results(tmp_path / clock) for clock in ("usual", "1938", "2286", "backwards"))
    assert "tree/ensemble/models.parquet" in usual
    for other in others:
        assert other == usual


def read_results(folder: Path) -> dict[str, bytes]:
    """Return the files that do not depend on the run."""
    files = [*folder.rglob("ensemble/*"), *(file for name in KEPT for file in folder.rglob(name))]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
