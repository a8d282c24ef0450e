"""Calls from Python that are acceptance cases: each returns what is to be recorded."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ckcv_ray
from ckcv_ray import CKCVClassifier, Execution, Job, Study

SERIAL = Execution("serial")
STUDY = Study.of(learner="tree", k=(3, 4), n_splits=4)
FRAME, TARGET = "tumours.csv", "kind"


def read_frame() -> tuple[pd.DataFrame, pd.Series]:
    """Return the columns of the tumours, and their labels."""
    frame = pd.read_csv(FRAME)
    return frame.drop(columns=TARGET), frame[TARGET]


def damage() -> str:
    """Change a figure in the certificate."""
    file = Path("r/certificate.json")
    file.write_text(file.read_text().replace('"l_ee": 0.', '"l_ee": 0.0', 1))
    return "changed"


def classify() -> dict[str, Any]:
    """The classifier, used as in scikit-learn."""
    X, y = read_frame()
    model = CKCVClassifier(learner="tree", k=(3, 4), n_splits=4).fit(X, y)
    return {
        "predicted": model.predict(X[:20]).tolist(),
        "bound": model.error_bound_,
        "k": model.best_k_,
        "setting": model.best_params_,
        "score": model.score(X, y),
        "claims": len(model.certificate_["claims"]),
    }


def run_and_load() -> dict[str, Any]:
    """A run of a frame is the run of its file, and what a folder says about itself."""
    X, y = read_frame()
    result = ckcv_ray.run(STUDY, X, y, out="r", execution=SERIAL)
    task, _ = ckcv_ray.read_task(FRAME, TARGET)
    again = ckcv_ray.load_run("r")
    return {
        "run_id": result.run_id,
        "same table": task.salt == again.task.salt,
        "same predictions": bool(np.array_equal(again.predict(X), result.predict(X))),
        "differences": ckcv_ray.verify("r").differences,
        "report": ckcv_ray.report("r", "page.html"),
        "clopper_pearson": ckcv_ray.clopper_pearson(2, 60, 0.05),
    }


def run_frames() -> dict[str, Any]:
    """Which frames of a table with gaps and categories of numbers have the run and the salt of its file."""
    objects = pd.read_csv("nullable.csv", dtype={"level": "category"}, parse_dates=["seen"])
    nullable, stored = objects.convert_dtypes(), ckcv_ray.load_run("r")
    arrow, y = pa.Table.from_pandas(nullable.drop(columns="outcome")), nullable["outcome"]
    frames = {
        "pandas": objects[arrow.column_names],
        "pandas, nullable": nullable[arrow.column_names],
        "pandas, categories": nullable[arrow.column_names].astype({"ward": "category"}),
        "polars": pl.from_arrow(arrow).with_columns(pl.col("level").cast(pl.String).cast(pl.Categorical)),
        "Arrow": arrow,
    }
    found = {name: ckcv_ray.run(STUDY, X, y, execution=SERIAL) for name, X in frames.items()}
    same = {
        name: [result.run_id == stored.run_id, result.task.salt == stored.task.salt]
        for name, result in found.items()
    }
    return {"run_id": stored.run_id, "same": same, "score": stored.score(arrow, y)}


def run_several() -> dict[str, Any]:
    """Several runs in one session."""
    task, _ = ckcv_ray.read_task(FRAME, TARGET)
    jobs = [Job(STUDY.replace(seed=seed), task, Path(f"seed{seed}")) for seed in (1, 2)]
    return {"run_ids": [result.run_id for result in ckcv_ray.run_many(jobs, SERIAL)]}


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ckcv_ray", *words]


def kill_and_resume() -> dict[str, Any]:
    """A run whose process is killed midway, and the same command again."""
    words = ("run", FRAME, "--target", TARGET, "--paper", "--k", "3:30", "--out", "r", "--backend", "serial")
    first = subprocess.Popen(_command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(Path("r/log").glob("part-*")) and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGKILL)
    killed = first.wait() == -signal.SIGKILL
    again = subprocess.run(_command(*words), capture_output=True, text=True, check=False)
    return {"killed": killed, "code": again.returncode}


def run_on_ray() -> dict[str, Any]:
    """A run on its own Ray, with two workers."""
    words = ("run", FRAME, "--target", TARGET, "--paper", "--k", "3,4", "--n-splits", "4", "--out", "r")
    done = subprocess.run(
        _command(*words, "--backend", "ray", "--workers", "2"), capture_output=True, text=True, check=False
    )
    return {"code": done.returncode}


def run_in_a_store() -> dict[str, Any]:
    """A run whose folder is a prefix of an object store, like one on a disk."""
    from s3_server import S3Server
    from stores import set_environment

    server = S3Server()
    server.buckets["bucket"] = {}
    words = ("run", FRAME, "--target", TARGET, "--learner", "tree", "--k", "3,4", "--n-splits", "4", "--json")
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, server.endpoint)
        commands = (_command(*words, "--out", out) for out in ("s3://bucket/r", "r"))
        shown = [subprocess.run(command, capture_output=True, check=True) for command in commands]
    server.shutdown()
    server.server_close()
    stored, local = (json.loads(done.stdout) for done in shown)
    return {"same": [stored[key] == local[key] for key in ("run_id", "proven", "setting")]}


CALLS: dict[str, Callable[[], Any]] = {
    call.__name__: call
    for call in (
        *(damage, classify, run_and_load, run_frames, run_several),
        *(kill_and_resume, run_on_ray, run_in_a_store),
    )
}
