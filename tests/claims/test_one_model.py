"""The model fitted on all rows, and what unlabelled rows prove of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from claimed import SMALL
from conftest import blobs
from pyarrow import csv

from ckcv_ray import Execution, Job, load_run, verify
from ckcv_ray import run as run_arrays
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.judge import Judge
from ckcv_ray.claims.judged_rows import tabulate_judged
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.learners.base import Status
from ckcv_ray.learners.class_weight import compute_weights
from ckcv_ray.learners.ensemble import Ensemble, judge
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.problem import Weights, describe
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import RunFolder, hash_results, make_results
from ckcv_ray.study import Problem
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
HELD = SMALL.replace(certify="holdout", holdout_share=0.4)


def task(unlabelled: int = 300) -> Task:
    """Rows of two classes that overlap, and as many more without labels as asked for."""
    rows = blobs(60, shift=0.7)
    others = blobs(unlabelled, seed=9, shift=0.7).columns().drop_columns(["y"])
    return rows.with_unlabelled(others)


def test_unlabelled_rows_certify_the_model_on_all_rows_by_how_often_it_differs() -> None:
    result = run_job(Job(HELD, task()), SERIAL)
    refit, full, *_ = result.certificate.claims
    assert (refit["classifier"], full["classifier"]) == ("refit", "full")
    held, unlabelled = result.problem.take_held_rows(), result.problem.all_rows.unlabelled
    assert held is not None
    assert unlabelled is not None
    wrong = int(np.sum(result.predict(held.X, by="refit") != result.task.labelled(held.y)))
    differ = int(np.sum(result.predict(unlabelled, by="refit") != result.predict(unlabelled, by="full")))
    assert 0 < differ < 300
    bound = clopper_pearson(wrong, len(held.y), 0.04) + clopper_pearson(differ, 300, 0.01)
    assert full["bound"] == pytest.approx(bound, rel=1e-12)
    assert f"{differ} of 300 unlabelled rows" in full["statement"]
    assert "(holdout)" in result.claim_for(result.rule(by="full"))


def test_the_model_on_all_rows_is_fitted_on_all_rows() -> None:
    result = run_job(Job(HELD, task()), SERIAL)
    path, step = result.position
    learner, every = result.study.learner, result.problem.all_rows
    numbers = np.arange(every.n)
    model = (
        learner.trainer.prepare(learner.trainer.share(every), numbers, numbers)
        .fit(path, step + 1)
        .model(step)
    )
    assert result.models.full is not None
    assert learner.codec.same(result.models.full.members[0].model, model)


def test_unlabelled_rows_lie_in_the_folder_and_decide_the_run(tmp_path: Path) -> None:
    made = run_job(Job(HELD, task(), tmp_path / "run"), SERIAL)
    loaded = load_run(tmp_path / "run")
    assert loaded.certificate == made.certificate
    assert np.array_equal(loaded.problem.all_rows.unlabelled, task().unlabelled)
    assert len({run_job(Job(HELD, one), SERIAL).run_id for one in (task(), task(200), blobs(60))}) == 3
    assert verify(tmp_path / "run").differences == []
    assert verify(tmp_path / "run", refit=1.0, execution=SERIAL).differences == []
    (tmp_path / "run" / "unlabelled.parquet").unlink()
    with pytest.raises(StoreError):
        load_run(tmp_path / "run")
    again = run_job(Job(HELD, task(), tmp_path / "run"), SERIAL)
    assert again.certificate == made.certificate
    assert verify(tmp_path / "run").differences == []


def test_a_forged_model_is_found(tmp_path: Path) -> None:
    """With the other certified rule in its place, the errors on the held-out rows differ."""
    run_job(Job(HELD, task(), tmp_path / "run"), SERIAL)
    folder = tmp_path / "run" / "ensemble"
    (folder / "full.parquet").write_bytes((folder / "refit.parquet").read_bytes())
    assert verify(tmp_path / "run").differences


@pytest.mark.parametrize("which", ["refit", "nested"])
def test_a_model_that_is_not_the_fit_of_its_rows_is_found(tmp_path: Path, which: str) -> None:
    """Consistent in itself: a forger may try many, and keep the one with the fewest errors on unused rows."""
    out = tmp_path / "run"
    study = HELD if which == "refit" else SMALL.replace(certify="nested", outer_splits=1)
    run_job(Job(study, blobs(60, shift=0.7), out), SERIAL)
    folder = RunFolder(out)
    problem, execution = folder.problem(), folder.execution()
    made = folder.results(problem).models
    (member,) = getattr(made, which).members
    train, scored = np.arange(problem.task.n), problem.take_held_rows()
    if scored is None:
        train, rows = problem.outer.rows(Stage.REFIT, 0, 0)
        scored = problem.task.take_test_rows(rows)
    forged = halved(problem, member.model, train)
    errors = judge(forged, scored.X, scored.y, problem.measure(None), 2)
    models = replace(made, **{which: Ensemble((replace(member, model=forged, errors=errors),))})
    folder.reopen()
    folder.acquire()
    queue = replay(out)
    leader = queue.selection.winner()
    assert leader is not None
    digests = {"data": problem.all_rows.digest}
    results = make_results(problem, queue.candidates(), models, tabulate_judged(Judge(problem, models)))
    digests |= hash_results(results)
    winner = problem.candidate(leader)
    certificate = certify(Judge(problem, models), winner, leader.l_ms, False, digests)
    folder.write_end(certificate, execution, results)
    folder.release()
    (difference,) = verify(out).differences
    assert "fitted again, it classifies " in difference


def halved(problem: Problem, model: SVMModel, train: np.ndarray) -> SVMModel:
    """Half of its dual variables, with the offset that the KKT conditions give: a fit stopped early."""
    y = np.where(problem.task.y[train] > 0, 1.0, -1.0)
    b = np.zeros(len(train))
    b[np.searchsorted(train, model.support)] = 0.5 * model.dual_coef
    classes, y_train = problem.task.classes, problem.task.y[train]
    weights = Weights(*compute_weights(problem.learner.class_weight, classes, y_train).tolist())
    half = replace(model, dual_coef=0.5 * model.dual_coef, offset=0.0)
    outputs = half.decision(problem.task.X[train])
    return replace(half, offset=float(describe(outputs, y, b, half.C, 0, Status.CONVERGED, weights).offset))


def test_unlabelled_rows_without_a_holdout_are_refused() -> None:
    with pytest.raises(InputError, match=r"300 unlabelled rows.*--certify holdout"):
        run_job(Job(SMALL, task()), SERIAL)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t, "the column 'y' of the labels"),
        (lambda t: t.drop_columns(["y", t.column_names[0]]), "there is no column|missing"),
        (lambda t: t.drop_columns(["y"]).slice(0, 0), "there are no unlabelled rows"),
    ],
)
def test_unlabelled_rows_with_other_columns_or_with_labels_are_refused(change, said: str) -> None:
    with pytest.raises(InputError, match=said):
        blobs(60).with_unlabelled(change(blobs(20).columns()))


def test_unlabelled_rows_among_the_table_are_named() -> None:
    rows = blobs(60)
    same = rows.with_unlabelled(rows.columns().drop_columns([rows.target]))
    result: Result = run_job(Job(HELD, same), SERIAL)
    assert any("60 of 60 unlabelled rows equal a row" in one for one in result.certificate.wording.statements)


def test_unlabelled_rows_that_repeat_are_named() -> None:
    rows = blobs(60)
    one = blobs(50, seed=9).columns().drop_columns([rows.target])
    for others, repeated in ((one, 0), (pa.concat_tables([one, one.slice(0, 20)]), 40)):
        result = run_job(Job(HELD, rows.with_unlabelled(others)), SERIAL)
        statements = result.certificate.wording.statements
        said = [text for text in statements if "equal another unlabelled row" in text]
        assert len(said) == (repeated > 0)
        assert all(text.startswith(f"{repeated} of {len(others)} unlabelled rows") for text in said)


def test_held_out_rows_prove_a_model_that_has_not_learned_from_them() -> None:
    """The model fitted on all rows has a claim too, but learned from the rows held out."""
    for claim, said in (("refit", "which refit has"), ("vote", "which vote has"), ("sensitivity", None)):
        result = run_job(Job(HELD.replace(claim=claim), task()), SERIAL)
        lines = [line for line in result.summary(details=True).splitlines() if line.startswith("held out")]
        assert len(lines) == (said is not None)
        assert all(str(said) in line for line in lines)


def test_the_model_on_all_rows_has_learned_from_the_rows_held_out(tmp_path: Path, ckcv) -> None:
    rows, out = blobs(60, shift=0.7), tmp_path / "run"
    result = run_job(Job(HELD, rows, out), SERIAL)
    csv.write_csv(rows.columns(), tmp_path / "rows.csv")
    for option, learned in (("--full", 60), ("--vote", result.task.n)):
        _, _, said = ckcv("predict", str(out), str(tmp_path / "rows.csv"), option)
        assert f"; {learned} of them are learning rows" in said


def test_arrays_and_the_command_line_take_them(tmp_path: Path, ckcv) -> None:
    made = task()
    result = run_arrays(HELD, made.X, made.labelled(made.y), unlabelled=made.unlabelled, execution=SERIAL)
    assert [claim["classifier"] for claim in result.certificate.claims.claims[:2]] == ["refit", "full"]
    csv.write_csv(made.columns(), tmp_path / "rows.csv")
    features: pa.Table = made.columns().drop_columns([made.target])
    csv.write_csv(features, tmp_path / "new.csv")
    options = "--k 3,4 --n-splits 3 --C 1 --gamma 0.1 --certify holdout --backend serial"
    out = tmp_path / "run"
    code, _, _ = ckcv(
        *f"run {tmp_path}/rows.csv {options} --unlabelled {tmp_path}/new.csv --out {out}".split()
    )
    assert code == 0
    assert "holdout, full" in ckcv(*f"status {out} --details".split())[1]
