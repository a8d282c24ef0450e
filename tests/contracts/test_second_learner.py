"""Nearest centroids on three classes: nothing between a table and its certificate depends on the learner."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from forgery import rewrite_run
from learner_contract import same_files
from nearest_centroid import NearestCentroid
from pyarrow import csv, parquet

import ckcv_ray
from ckcv_ray import Execution, Result, RunError, StoreError, Study, Task, load_run, verify
from ckcv_ray.learners.ensemble import Ensemble, to_arrow
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.storage.folder import MODELS

HERE = Path(__file__).parent
SERIAL = Execution("serial")
NAMES = np.array(["red", "green", "blue"])
OPTIONS = {"k": (3, 5, 8), "n_splits": 6, "report_k": (5,), "seed": 4}
STUDY = Study.paper(learner="centroid", shrinkage=(0.1, 0.5, 2.0), **OPTIONS)
RNG = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(90,)))
CENTRES = np.array([[0, 0, 0, 0], [1.5, 0, 0, 0], [0, 1.5, 1, 0]])
TASK = Task.of(RNG.normal(size=(90, 4)) + CENTRES[np.arange(90) % 3], NAMES[np.arange(90) % 3])


def make_run(out: Path, execution: Execution = SERIAL) -> Result:
    return run_job(Job(STUDY, TASK, out), execution)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    make_run(tmp_path / "run")
    return tmp_path / "run"


def test_a_model_that_predicts_an_unknown_class_far_away_is_refused(out: Path) -> None:
    """It does not predict that class on the learning rows."""
    first, *others = load_run(out).ensemble.members
    centres, classes = np.vstack([first.model.centres, np.full((1, 4), 90.0)]), [*first.model.classes, 7]
    far = replace(first, model=replace(first.model, classes=np.array(classes), centres=centres))
    rewrite_run(out, lambda records: None, Ensemble((far, *others)))
    assert any(
        s.startswith("model of split 0: fitted again, its content differs") for s in verify(out).differences
    )
    result, far_away = load_run(out), np.full((2, 4), 90.0)
    for rule in ({"by": "member:0"}, {"by": "vote"}, {"seed": 1}):
        with pytest.raises(RunError, match="split 0 predicts class number 7, but there are 3 classes"):
            result.predict(far_away, **rule)
    assert set(result.predict(TASK.X)) <= set(NAMES)


@pytest.mark.parametrize("column", ["classes", "centres", "scale"])
def test_a_model_that_cannot_classify_a_row_is_damaged(out: Path, column: str) -> None:
    first = load_run(out).ensemble.members[0]
    values = getattr(first.model, column)
    model = replace(first.model, **{column: values + 7 if column == "classes" else values[..., :3]})
    table = parquet.read_table(out / MODELS)
    rows = to_arrow(Ensemble((replace(first, model=model),)), NearestCentroid(), TASK)
    forged = pa.concat_tables([rows.replace_schema_metadata(table.schema.metadata), table[1:]])
    parquet.write_table(forged, out / MODELS)
    with pytest.raises(StoreError, match=r"models.parquet is damaged"):
        load_run(out)
    assert [sentence for sentence in verify(out).differences if "models.parquet is damaged" in sentence]


# on a cluster, on the command line


FAR = """
import sys
sys.path.append({folder!r})  # for this process only: workers do not have it
import ray, test_second_learner as t
options = {{"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}}
here = {{"address": "local", "_node_ip_address": "127.0.0.1"}}
ray.init(runtime_env={{"py_modules": [{folder!r} + "/nearest_centroid.py"]}}, **here, **options)
t.make_run(t.Path({out!r}), execution=t.Execution("ray"))
"""


def test_a_learner_is_sent_to_a_cluster_with_the_connection(out: Path, tmp_path: Path) -> None:
    package = str(Path(ckcv_ray.__file__).parents[1])
    content = FAR.format(folder=str(HERE), out=str(tmp_path / "far"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, str(HERE.parent)])}
    options = {"env": environment, "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 180}
    done = subprocess.run([sys.executable, "-c", content], **options)
    assert done.returncode == 0, done.stderr
    assert same_files(out, tmp_path / "far")


def installed(folder: Path, target: str = "nearest_centroid:NearestCentroid") -> dict[str, str]:
    """Return the environment of a process in which a package lists the learner as an entry point."""
    info = folder / "centroids-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: centroids\nVersion: 1\n")
    entry = f"[ckcv_ray.learners]\ncentroid = {target}\n"
    (info / "entry_points.txt").write_text(entry)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])}


def call(environment: dict[str, str], *words: object) -> Any:
    command = [sys.executable, "-m", "ckcv_ray", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def test_the_command_line_knows_an_installed_learner(tmp_path: Path) -> None:
    environment, table, out = installed(tmp_path / "site"), tmp_path / "table.csv", tmp_path / "run"
    csv.write_csv(TASK.columns(), table)
    learner = ("--learner", "centroid", "--shrinkage", "0.1,0.5,2")
    study = ("--k", "3,5,8", "--n-splits", "6", "--report-k", "5", "--seed", "4", "--certify", "paper")
    done = call(environment, "run", table, *learner, *study, "--backend", "serial", "--json", "--out", out)
    assert json.loads(done.stdout)["setting"] == load_run(out).setting
    assert load_run(out).study == STUDY
    call(environment, "verify", out, "--rerun", "--backend", "serial")
    call(environment, "predict", out, table, "--vote", "--out", tmp_path / "predicted.csv")
    call(environment, "report", out)
    predicted = csv.read_csv(tmp_path / "predicted.csv")["prediction"]
    assert predicted.equals(pa.chunked_array([load_run(out).predict(TASK.X, by="vote").tolist()]))
    assert (out / "report.html").exists()


def test_an_installed_learner_that_cannot_be_loaded_is_reported_and_skipped(tmp_path: Path) -> None:
    environment = installed(tmp_path / "site", "no_such_module:Centroid")
    done = call(environment, "plan", "twonorm:30:0", "--C", "1", "--gamma", "1", "--k", "3")
    said = "the learner centroid of no_such_module:Centroid cannot be loaded: ModuleNotFoundError"
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "20 evaluations" in done.stdout
