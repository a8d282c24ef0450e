"""Winner, bounds, candidates, ensemble and certificate in the same bytes however the work was divided: into
batches of what length, and whatever the environment says of threads.

For Ray, any order of arrival and interruptions see ``test_same_bytes``.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import blobs
from stores import results

from ckcv_ray import Execution, Job, Study
from ckcv_ray.engine import queue
from ckcv_ray.engine.backend import SERIAL, SerialBackend
from ckcv_ray.runs.run import check_job, run_job, run_work

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5, 10), n_splits=6, report_k=5)
TASK = blobs(200, d=3)
ALL_FREE = Study.paper(C=(10.0, 100.0), gamma=(10.0, 30.0), k=10, n_splits=3)  # factors large enough to share
CLOUD = blobs(150, d=3)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

SERIAL_RUN = """
import sys
from pathlib import Path
from ckcv_ray import Execution, Job
from ckcv_ray.runs.run import run_job
from test_identical_bits import ALL_FREE, CLOUD

run_job(Job(ALL_FREE, CLOUD, Path(sys.argv[1])), Execution("serial"))
"""


def python(script, *words, **variables):
    """Run a script in a process of its own, in which the tests can be imported."""
    path = os.pathsep.join(
        [str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    environment = os.environ | {"PYTHONPATH": path} | variables
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", script, *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The files of a serial run in this process."""
    out = tmp_path_factory.mktemp("expected") / "run"
    run_job(Job(STUDY, TASK, out), Execution("serial"))
    return results(out)


class Counting(SerialBackend):
    """Keeps some batches waiting, and counts the units of each that were computed."""

    def __init__(self, window, least):
        self.window, self.least_seconds, self.lengths = window, least, []

    def wait(self):
        units = len(self.queue[0].units)
        (outcome,) = super().wait()
        self.lengths.append(units - len(outcome.left))
        return [outcome]


@pytest.mark.parametrize("window", [1, 20])
@pytest.mark.parametrize(
    ("most", "left", "least"),
    [(0.0, 50, 0.0), (1e9, 1, 0.02), (1.0, 50, 1e9)],
)
def test_the_length_of_a_batch(expected, tmp_path, monkeypatch, window, most, left, least):
    monkeypatch.setattr(queue, "BATCH_SECONDS", most)
    monkeypatch.setattr(queue, "BATCHES_LEFT", left)
    monkeypatch.setattr(queue, "OWN_SECONDS", 0.0)
    backend = Counting(window, least)
    run_work(check_job(Job(STUDY, TASK, tmp_path / "run")), opened=SERIAL._replace(backend=lambda: backend))
    assert results(tmp_path / "run") == expected
    if most == 0.0:
        assert max(backend.lengths) == 1
    if least == 1e9:
        assert max(backend.lengths) > 10


def test_variables_that_speak_of_threads(tmp_path):
    """Where BLAS may use two threads, a factor differs in its last bits."""
    run_job(Job(ALL_FREE, CLOUD, tmp_path / "here"), Execution("serial"))
    asked = {name: str(n) for name, n in zip(THREADS, (2, 13, 1, 2), strict=True)}
    python(SERIAL_RUN, tmp_path / "there", **asked)
    assert results(tmp_path / "there") == results(tmp_path / "here")
