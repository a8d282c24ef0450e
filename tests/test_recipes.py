"""The recipes of the guide, each run as it is shown where its program or package is installed."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pytest
from blocks import Block, read_blocks
from conftest import blobs

from ckcv_ray import Execution, Result, Study, run

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "recipes.md"
MAX_LINES = 40
BLOCKS = read_blocks(PAGE)


def find(word: str) -> Block:
    """The block that contains a word."""
    (block,) = [block for block in BLOCKS if word in block.text and block.language in ("python", "console")]
    return block


def run_script(word: str, name: str = "__main__") -> dict[str, Any]:
    Path("recipe.py").write_text(find(word).text)
    return runpy.run_path("recipe.py", run_name=name)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def patients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """A run in runs/patients of the folder that the test is in."""
    monkeypatch.chdir(tmp_path)
    drawn = blobs(40, shift=2.0)
    table = pa.table({"age": drawn.X[:, 0], "dose": drawn.X[:, 1]})
    labels = ["ill" if label == 1 else "well" for label in drawn.y]
    return run(
        Study.of(learner="tree", k=(3,), n_splits=2), table, labels, "runs/patients", Execution("serial")
    )


def test_every_recipe_is_short() -> None:
    assert all(len(block.text.splitlines()) <= MAX_LINES for block in BLOCKS)


@pytest.fixture
def server(patients: Result) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), run_script("BaseHTTPRequestHandler", "recipe")["Predict"]) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_rows_are_answered_over_http_with_what_predict_returns(patients: Result, server: str) -> None:
    rows = [{"age": float(age), "dose": 0.5} for age in range(-2, 5)]
    with urlopen(server, json.dumps(rows).encode()) as answer:
        content = json.load(answer)
    assert content["predictions"] == patients.predict(pa.Table.from_pylist(rows)).tolist()
    assert len({*content["predictions"]}) == 2
    assert content["claim"] == patients.claim_for(patients.rule())


@pytest.mark.parametrize("body", [b"{", b"[]", b'[{"age": 3}]', b"3", b"[3]"])
def test_what_is_no_row_is_refused_over_http(server: str, body: bytes) -> None:
    with pytest.raises(HTTPError) as refused:
        urlopen(server, body)
    with refused.value as answer:
        assert answer.status == 400
        assert "error" in json.load(answer)


def test_a_run_is_logged_to_mlflow(patients: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", Path("tracked").absolute().as_uri())
    run_script("mlflow")
    (logged,) = mlflow.search_runs(output_format="list")
    assert logged.data.metrics["proven"] == patients.proven
    assert logged.data.tags["ckcv.run_id"] == patients.run_id
    assert {*os.listdir(logged.info.artifact_uri.removeprefix("file://"))} == {
        "certificate.json",
        "report.html",
    }


def test_the_pipeline_with_smote_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("imblearn")
    (shown,) = (
        block.text for block in read_blocks(PAGE.with_name("scikit_learn.md")) if "SMOTE()" in block.text
    )
    monkeypatch.chdir(tmp_path)
    exec(shown, scored := dict[str, Any]())
    assert scored["result"].complete


def test_an_exported_model_is_converted_to_onnx(patients: Result, ckcv: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    assert ckcv("export", "runs/patients", "--out", "model.skops")[0] == 0
    run_script("to_onnx")
    session = runtime.InferenceSession("model.onnx")
    X = patients.task.X
    numbers = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})[0]
    assert np.mean(numbers == patients.rule().predict(patients.models, X).label) > 0.98


@pytest.mark.usefixtures("patients")
@needs("pandoc")
def test_a_form_becomes_a_word_document() -> None:
    run_commands(find("pandoc"))
    assert Path("tripod.docx").read_bytes().startswith(b"PK")


@pytest.mark.usefixtures("patients")
@needs("ssh-keygen")
def test_a_signature_is_of_the_whole_run(tmp_path: Path) -> None:
    key = tmp_path / "home" / ".ssh" / "id_ed25519"
    key.parent.mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    Path("signers").write_text(f"jane@example.org {key.with_suffix('.pub').read_text()}")
    run_commands(find("-Y sign"))
    run_commands(find("-Y verify"))
    with Path("runs/patients/manifest.json").open("a") as manifest:
        manifest.write(" ")
    with pytest.raises(subprocess.CalledProcessError):
        run_commands(find("-Y verify"))


def run_commands(block: Block) -> None:
    """Run the commands of a block in a separate home folder."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"HOME": str(Path("home").absolute()), "PATH": programs}
    for command in block.commands:
        command = command.replace("~/", f"{environment['HOME']}/")
        subprocess.run(["bash", "-c", command], env=environment, check=True, capture_output=True)
