"""Results in MLflow: by a stand-in that notes what it is given, and at night by a tracking server.

The server is started from the folder that ``CKCV_MLFLOW`` names, else from build/mlflow, since it allows
older versions of other packages only: ``pip install --target build/mlflow mlflow``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import requests
from services import SERIAL, make_model, make_result, make_table

from ckcv_ray import InputError, Result, Study, evaluate, run
from ckcv_ray.integrations.mlflow import MLFLOW, NOTHING_PROVEN, TEXT_LIMIT, log

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(os.environ.get("CKCV_MLFLOW") or ROOT / "build" / "mlflow")
CERTIFIED = ("l_ms", "l_ee", "error", "proven", "baseline")


class Notes(ModuleType):
    """A stand-in for MLflow that notes what is logged, in which run."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.active: str | None = None
        self.params, self.metrics, self.tags = dict[str, Any](), dict[str, Any](), dict[str, Any]()
        self.artifacts: dict[str, Any] = {}
        self.runs = list[str]()

    def active_run(self) -> Any:
        return self.active and SimpleNamespace(info=SimpleNamespace(run_id=self.active))

    @contextmanager
    def start_run(self) -> Iterator[Any]:
        self.active = f"started {len(self.runs)}"
        self.runs.append(self.active)
        yield self.active_run()
        self.active = None

    def log_params(self, params: dict[str, str]) -> None:
        assert self.active
        assert all(isinstance(value, str) and len(value) <= 5000 for value in params.values())
        self.params |= params

    def log_metrics(self, metrics: dict[str, float]) -> None:
        assert self.active
        assert all(np.isfinite(value) for value in metrics.values())
        self.metrics |= metrics

    def set_tags(self, tags: dict[str, str]) -> None:
        assert all(len(value) <= 5000 for value in tags.values())
        self.tags |= tags

    def log_dict(self, content: dict[str, Any], file: str) -> None:
        self.artifacts[file] = json.loads(json.dumps(content, allow_nan=False))

    def log_text(self, text: str, file: str) -> None:
        self.artifacts[file] = text


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    made = Notes()
    monkeypatch.setitem(sys.modules, "mlflow", made)
    return made


def test_what_was_asked_found_and_proven_is_logged(notes: Notes) -> None:
    result = make_result(certify="holdout")
    assert log(result) == "started 0"
    assert notes.active is None
    assert notes.params["certify"] == "holdout"
    assert notes.params["learner"] == "tree"
    assert notes.params["k"] == "[3]"
    assert notes.params["encode"] == "auto"
    assert notes.params["selected.k"] == "3"
    assert {name.removeprefix("selected.") for name in notes.params if name.startswith("selected.")} == {
        *result.setting,
        "k",
    }
    assert notes.metrics == {name: getattr(result, name) for name in CERTIFIED}
    assert notes.tags["ckcv.run_id"] == result.run_id
    assert notes.tags["ckcv.statement"] == result.certificate.claims.first["statement"]
    assert notes.tags["ckcv.data_digest"] == result.problem.data_digest
    assert set(notes.artifacts) == {"result.json", "certificate.json"}
    assert notes.artifacts["certificate.json"]["run_id"] == result.run_id


def test_an_active_run_is_used_and_goes_on(notes: Notes) -> None:
    notes.active = "theirs"
    assert log(make_result()) == "theirs"
    assert (notes.active, notes.runs) == ("theirs", [])


def test_scores_are_logged_as_measured(notes: Notes) -> None:
    result = make_model()
    log(result)
    (score,) = result.scores
    best, figures = result.rank(score)[0]
    assert best.name == result.rank(score)[0][0].name
    assert notes.metrics == {"zero_one": figures.mean}
    assert notes.tags["ckcv.statement"] == NOTHING_PROVEN
    assert json.loads(notes.params["resampling"]) == {"name": "kfold", "folds": 3}
    assert set(notes.artifacts) == {"result.json"}


def test_what_is_not_known_is_left_out_and_long_texts_are_cut(notes: Notes) -> None:
    table, _ = make_table(20)
    rare = ["ill"] * 19 + ["well"]
    result = evaluate(table, rare, learner="tree", measure="roc_auc", resampling="kfold:3", execution=SERIAL)
    log(result)
    assert notes.metrics == {}
    many = {"min_samples_leaf": tuple(range(1, 9)), "ccp_alpha": tuple(i / 1e6 for i in range(1000))}
    log(run(Study.of(learner="tree", param=many, sample=3, k=3, n_splits=2), *make_table(), execution=SERIAL))
    assert TEXT_LIMIT <= len(notes.params["param"]) <= 5000


def test_a_folder_gives_the_report_and_stays_as_it_is(notes: Notes, tmp_path: Path) -> None:
    study = Study.of(learner="tree", k=3, n_splits=3)
    result = run(study, *make_table(), execution=SERIAL, out=tmp_path / "run")
    files = sorted((file, file.stat().st_mtime_ns) for file in (tmp_path / "run").rglob("*"))
    log(result, tmp_path / "run")
    assert set(notes.artifacts) == {"result.json", "certificate.json", "report.html"}
    assert result.run_id in notes.artifacts["report.html"]
    written = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert notes.artifacts["certificate.json"] == written
    assert sorted((file, file.stat().st_mtime_ns) for file in (tmp_path / "run").rglob("*")) == files
    with pytest.raises(InputError, match="holds another run than the result"):
        log(make_result(certify="holdout"), tmp_path / "run")


def test_what_cannot_be_logged_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'runs/patients' is not a Result, as of run, evaluate or load_run"):
        log("runs/patients")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError) as refused:
        log(make_result())
    assert str(refused.value) == (
        f"log needs MLflow, which is not installed: install the extra mlflow, or pip install '{MLFLOW}'"
    )
    assert f'    "{MLFLOW}",\n' in (ROOT / "pyproject.toml").read_text()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a tracking server on loopback, which has begun to answer."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    words += [
        "--backend-store-uri",
        "sqlite:///runs.db",
        "--artifacts-destination",
        "files",
        "--workers",
        "1",
    ]
    options: dict[str, Any] = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(SERVER)}}
    with (tmp_path / "log").open("wb") as log_file:
        process = subprocess.Popen(words, stdout=log_file, stderr=log_file, start_new_session=True, **options)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(address, process, tmp_path / "log")
        yield address
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)


def wait_for(address: str, process: subprocess.Popen[bytes], log_file: Path) -> None:
    """Ask until the server answers; each refused connection takes as long as a process takes to start."""
    adapter = requests.adapters.HTTPAdapter(
        max_retries=requests.adapters.Retry(60, backoff_factor=0.5, backoff_max=2.0)
    )
    with requests.Session() as session:
        session.mount("http://", adapter)
        answer = session.get(f"{address}/health", timeout=10)
    assert answer.status_code == 200, (process.poll(), log_file.read_text())


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.filterwarnings("default")  # those of MLflow and of what it imports
@pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed: extra mlflow")
@pytest.mark.skipif(not SERVER.is_dir(), reason="no server of MLflow in build/mlflow, nor in CKCV_MLFLOW")
def test_a_tracking_server_keeps_it(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    folder = tmp_path / "run"
    study = Study.of(learner="tree", k=3, n_splits=3)
    result: Result = run(study, *make_table(), execution=SERIAL, out=folder)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    mlflow.set_tracking_uri(server)
    mlflow.set_experiment("patients")
    with mlflow.start_run() as active:
        assert log(result, folder) == active.info.run_id
    assert mlflow.active_run() is None
    kept = mlflow.MlflowClient(server).get_run(active.info.run_id)
    assert kept.data.metrics == {name: pytest.approx(getattr(result, name)) for name in CERTIFIED}
    assert kept.data.params["learner"] == "tree"
    assert kept.data.tags["ckcv.statement"] == result.certificate.claims.first["statement"]
    names = {file.path for file in mlflow.MlflowClient(server).list_artifacts(active.info.run_id)}
    assert names == {"certificate.json", "report.html", "result.json"}
    page = mlflow.artifacts.load_text(f"{active.info.artifact_uri}/report.html")
    assert result.run_id in page
