"""The same bytes wherever, in whatever order and however often interrupted a study runs: one matrix.

For any order that hypothesis draws see ``test_fault_double``, for any moment of death ``test_recorder``.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alike import SMALL, same
from conftest import blobs
from doubles import run_with
from finished import Finished
from learner_contract import Unruly, clouds
from stores import RUN, results
from untidy import untidy

from ckcv_ray import Execution, Job, Procedure, Study, Task, run_many, verify
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.run import assess, run_job
from ckcv_ray.tables.roles import Roles

RNG = np.random.default_rng(np.random.SeedSequence(4))
GROUPS = RNG.permutation(np.repeat(np.arange(24), RNG.integers(1, 5, size=24)))
GRIDS: dict[str, Any] = {"C": (0.1, 1.0, 10.0), "gamma": (0.1, 1.0), "n_splits": 4}
PLAIN = blobs(len(GROUPS))
GROUPED, UNTIDY = Task.of(PLAIN.X, PLAIN.y, groups=GROUPS), Task.from_table(untidy(80), Roles("outcome"))
BY_CLASS: dict[str, Any] = {"criterion": "cost:-1=10,1=1", "claim": "sensitivity,specificity,auc"}
NESTED: dict[str, Any] = {"resampling": "nested_halves:4", "select_by": "zero_one", "select": "each"}
STUDIES: dict[str, tuple[Study | Procedure, Task]] = {
    "rotations, weighted": (
        Study.paper(C=(0.1, 10.0), gamma=1.0, k=(3, 5), resampling="rotation", class_weight="balanced"),
        PLAIN,
    ),
    "holdout of groups": (
        Study.paper(**GRIDS, k=(3, 4), certify="holdout", holdout_share=0.5, claim="refit,vote"),
        GROUPED,
    ),
    "holdout, costs, by class": (Study.paper(**GRIDS, k=(3, 4), certify="holdout", **BY_CLASS), blobs(60)),
    "learners on a table": (Study.paper(**GRIDS, k=(3, 5), learner="svm,tree", encode="target"), UNTIDY),
    "within a budget": (
        Study.paper(**GRIDS, k=(3, 4, 5), search="budget:survivors=2", effort=150, report_k=4),
        PLAIN,
    ),
    "machines of three classes": (Study.paper(**GRIDS, k=(3, 5)), clouds(45, 3)),
    "scores of a nested selection": (
        Procedure.of(learner="svm,tree", C="0.1,1", gamma="0.01,0.1", measure="accuracy", **NESTED),
        PLAIN,
    ),
    "scores of permutations": (
        Procedure.of(learner="naive_bayes,tree", resampling="kfold:3", measure="accuracy", permutations=4),
        PLAIN,
    ),
}
SERIAL = Execution("serial")
Folder = Path | str
Content = Callable[[str], dict[str, bytes]]


def compute(name: str, out: Folder, execution: Execution = SERIAL, **more: Any) -> object:
    study, task = STUDIES[name]
    if isinstance(study, Procedure):
        return assess(study, task, out, execution, **more)
    return run_job(Job(study, task, out), execution, **more)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The files of a serial run of a study, made once."""

    @cache
    def make(name: str) -> dict[str, bytes]:
        folder = tmp_path_factory.mktemp("serial") / "run"
        compute(name, folder)
        return results(folder)

    return make


def run_unruly(name: str, out: Folder) -> None:
    """In random order, path by path, and some outcomes twice."""
    run_with(Unruly, *STUDIES[name], out)


def kill_twice(name: str, out: Folder) -> None:
    for most in (1, 2):
        calls = iter(range(10**6))
        with pytest.raises(KeyboardInterrupt):
            compute(name, out, stop=lambda calls=calls, most=most: next(calls) >= most)
    compute(name, out)


WAYS: dict[str, Callable[[str, Folder], object]] = {
    "unruly": run_unruly,
    "killed twice": kill_twice,
    "in an object store": compute,
    "on Ray": lambda name, out: compute(name, out, Execution("ray", workers=2)),
}


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("way", WAYS)
def test_every_byte_is_that_of_a_serial_run(
    way: str, name: str, content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    expected, out = content(name), tmp_path / "run"
    assert len(expected) >= 5
    if way == "on Ray":
        request.getfixturevalue("ray_session")
    if way == "in an object store":
        request.getfixturevalue("memory")
        out = f"{RUN}/{tmp_path.name}"
    monkeypatch.setattr("ckcv_ray.engine.backend.SerialBackend.least_seconds", 0.0)
    WAYS[way](name, out)
    assert results(out) == expected


class Counting(SerialBackend):
    """Keeps some batches waiting, and counts the units of each that were computed."""

    def __init__(self, window: int, least: float) -> None:
        super().__init__()
        self.window, self.least_seconds, self.lengths = window, least, list[int]()

    def wait(self) -> list[Outcome]:
        units = len(self.queue[0].units)
        (outcome,) = super().wait()
        self.lengths.append(units - len(outcome.left))
        return [outcome]


@pytest.mark.parametrize("window", [1, 20])
@pytest.mark.parametrize("lengths", [(0.0, 50, 0.0), (1e9, 1, 0.02), (1.0, 50, 1e9)])
def test_batches_of_any_length_give_the_same_bytes(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, lengths: Any
) -> None:
    name, (most, left, least) = "holdout of groups", lengths
    constants = {"queue.BATCH_SECONDS": most, "queue.BATCHES_LEFT": left, "queue.OWN_SECONDS": 0.0}
    for constant, value in (constants | {"race.OWN_SECONDS": 0.0}).items():
        monkeypatch.setattr(f"ckcv_ray.engine.{constant}", value)
    backend = Counting(window, least)
    run_with(backend, *STUDIES[name], tmp_path / "run")
    assert results(tmp_path / "run") == content(name)
    assert (max(backend.lengths) == 1) or most > 0.0
    assert (max(backend.lengths) > 1) or least < 1e9


ALL_FREE = Study.paper(C=(10.0, 100.0), gamma=(10.0, 30.0), k=10, n_splits=3)  # factors large enough to share
CLOUD = blobs(150, d=3)
SERIAL_RUN = """
import sys
from test_same_bytes import ALL_FREE, CLOUD, SERIAL, Job, Path, run_job

run_job(Job(ALL_FREE, CLOUD, Path(sys.argv[1])), SERIAL)
"""


def test_variables_that_speak_of_threads(tmp_path: Path) -> None:
    """Where BLAS may use two threads, a factor differs in its last bits."""
    run_job(Job(ALL_FREE, CLOUD, tmp_path / "here"), SERIAL)
    here = Path(__file__).parent
    threads = {"OMP": "2", "OPENBLAS": "13", "MKL": "1", "NUMBA": "2"}
    environment = os.environ | {f"{name}_NUM_THREADS": n for name, n in threads.items()}
    environment["PYTHONPATH"] = os.pathsep.join([str(here), str(here.parent), os.environ["PYTHONPATH"]])
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", SERIAL_RUN, str(tmp_path / "there")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "there") == results(tmp_path / "here")


@pytest.mark.usefixtures("ray_session")
def test_a_verification_on_ray_finds_what_one_process_finds(finished: Finished) -> None:
    one = verify(finished("paper"), rerun=True, execution=SERIAL)
    assert verify(finished("paper"), rerun=True, execution=Execution("ray")) == one


@pytest.mark.usefixtures("ray_session")
def test_many_runs_on_ray_are_the_same() -> None:
    jobs = [Job(SMALL.replace(seed=seed), blobs(60)) for seed in range(3)]
    assert all(map(same, run_many(jobs, Execution("ray")), run_many(jobs, SERIAL)))
