"""The models of a run: read as written, and checked before anything is made of them."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from conftest import blobs
from forgery import MODELS, PROBLEM, SERIAL, STUDY, check_refused, column, first, run_in

from ckcv_ray import load_run
from ckcv_ray.errors import StoreError
from ckcv_ray.runs.load import read_certified
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import models
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import RunFolder

SEALED = {
    "no centre": (first("centre", None), "centre has empty cells"),
    "a hole in the centre": (first("centre", [0.0, None]), "centre has empty cells"),
    "half a centre": (first("centre", [0.0]), "do not have 2 features"),
    "a scale of 0": (first("scale", [1.0, 0.0]), "must be positive"),
    "an endless offset": (first("offset", float("inf")), "not finite"),
    "too few coefficients": (first("dual_coef", [1.0]), "one coefficient each"),
    "support of no row": (first("support", [99]), "in ascending order"),
    "support from the end": (first("support", [-1]), "in ascending order"),
    "split before the first": (first("split", -1), "each of the 3 splits"),
    "another k": (first("k", 5), "each of the 3 splits"),
    "no model": (lambda t: t.slice(0, 0), "each of the 3 splits"),
    "more errors than rows": (first("errors", [99, 0]), "more errors than rows"),
    "errors below 0": (first("errors", [-1, 0]), "more errors than rows"),
    "errors of one class": (first("errors", [0]), "more errors than rows"),
    "counts of three classes": (
        lambda t: column("errors", lambda v: [[0, 0, 0]] * 3)(
            column("n_estimate", lambda v: [[9, 9, 9]] * 3)(t)
        ),
        "counts for 2 classes",
    ),
}


@pytest.mark.parametrize("name", SEALED)
def test_what_readers_rely_on_is_checked_though_the_manifest_agrees(run: Path, name: str) -> None:
    check_refused(run, MODELS, *SEALED[name])


def test_models_of_an_earlier_winner_do_not_stay(run: Path) -> None:
    stray = run / "ensemble" / "model-00099.pkl"
    stray.write_bytes((run / "ensemble" / "model-00000.pkl").read_bytes())
    folder = RunFolder(run)
    finished = read_certified(folder, PROBLEM)
    folder.write_manifest(folder.execution(), {})
    assert verify(run).differences == [
        "ensemble/model-00099.pkl is not the pickle of any model in models.parquet"
    ]
    assert len(load_run(run, allow_pickle=True).ensemble.members) == len(finished.models.best.members)
    folder.reopen()
    run_in(run)
    assert not stray.exists()
    assert verify(run).differences == []


def test_they_are_read_as_they_were_written(tmp_path: Path) -> None:
    study = STUDY.replace(certify="holdout", holdout_share=0.33)
    result = run_job(Job(study, blobs(40), tmp_path / "run"), SERIAL)
    read = models.read_models(LocalFiles(tmp_path / "run"), result.problem, result.k)
    for name in ("best", "refit", "full"):
        kept, made = getattr(read, name), getattr(result.models, name)
        for mine, theirs in zip(kept.members, made.members, strict=True):
            assert (mine.k, mine.split, mine.errors) == (theirs.k, theirs.split, theirs.errors)
            assert mine.n_estimate == theirs.n_estimate
            assert study.learner.codec.same(mine.model, theirs.model)


def test_pickles_are_opened_with_the_right_digest_alone(run: Path) -> None:
    files, ensemble = LocalFiles(run), load_run(run).ensemble
    names = models.pickles_in(files)
    assert names == [f"ensemble/model-{i:05d}.pkl" for i in range(3)]
    digests = {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in names}
    opened = models.read_pickles(files, PROBLEM, ensemble, digests)
    X = PROBLEM.task.X
    assert np.array_equal(opened.predict(X)[1], ensemble.predict(X)[1])
    for wrong in ({}, digests | {names[1]: digests[names[0]]}):
        with pytest.raises(StoreError, match="does not match the manifest: it is not opened"):
            models.read_pickles(files, PROBLEM, ensemble, wrong)
    with (run / names[0]).open("ab") as stream:
        stream.truncate(1 << 20)
    with pytest.raises(StoreError, match="is damaged: it is larger than"):
        models.read_pickles(files, PROBLEM, ensemble, digests)
