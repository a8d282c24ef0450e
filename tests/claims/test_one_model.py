"""The models fitted on all rows that were not held out, and on all rows, of which nothing is proven."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from claimed import SMALL, run
from conftest import blobs
from forgery import rewrite_run
from pyarrow import csv

from ckcv_ray import load_run, verify
from ckcv_ray.learners.base import Status
from ckcv_ray.learners.ensemble import Ensemble, judge
from ckcv_ray.learners.steps import compute_weights
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.problem import Weights
from ckcv_ray.records.candidates import find_winner
from ckcv_ray.study.problem import Problem
from jobs.benchmarks import libsvm

HELD = SMALL.replace(certify="holdout", holdout_share=0.4)
ROWS = blobs(60, shift=0.7)  # of two classes that overlap


def test_the_model_on_all_rows_is_fitted_on_all_rows() -> None:
    result = run(HELD, ROWS)
    path, step = find_winner(result.candidates)
    learner, every = result.study.learner, result.problem.all_rows
    numbers = np.arange(every.n)
    fits = learner.trainer.prepare(learner.trainer.share(every), numbers, numbers)
    model = fits.fit(path, step + 1).model(step)
    assert learner.codec.same(result.models.full.members[0].model, model)


def test_a_model_that_is_not_the_fit_of_its_rows_is_found(tmp_path: Path) -> None:
    """Consistent in itself: a forger may try many, and keep the one with the fewest errors on unused rows."""
    out = tmp_path / "run"
    run(HELD, ROWS, out)
    result = load_run(out)
    problem, made = result.problem, result.models
    (member,) = made.refit.members
    train, scored = np.arange(problem.task.n), problem.take_held_rows()
    forged = halved(problem, member.model, train)
    errors = judge(forged, scored.X, scored.y, problem.measure(None), 2)
    models = replace(made, refit=Ensemble((replace(member, model=forged, errors=errors),)))
    rewrite_run(out, models=models)
    (difference,) = verify(out).differences
    assert "fitted again, it predicts all 60 rows alike" in difference


def halved(problem: Problem, model: SVMModel, train: np.ndarray) -> SVMModel:
    """Half of its dual variables, with the offset that the KKT conditions give: a fit stopped early."""
    y = np.where(problem.task.y[train] > 0, 1.0, -1.0)
    b = np.zeros(len(train))
    b[np.searchsorted(train, model.support)] = 0.5 * model.dual_coef
    classes, y_train = problem.task.classes, problem.task.y[train]
    weights = Weights(*compute_weights(problem.learner.class_weight, classes, y_train).tolist())
    half = replace(model, dual_coef=0.5 * model.dual_coef, offset=0.0)
    outputs = half.decision(problem.task.X[train])
    fit = libsvm.describe(outputs, y, b, half.C, 0, Status.CONVERGED, weights)
    return replace(half, offset=fit.offset)


def test_held_out_rows_prove_a_model_that_has_not_learned_from_them() -> None:
    for claim, rule in (("refit", "refit"), ("vote", "vote"), ("sensitivity", "refit")):
        result = run(HELD.replace(claim=claim), ROWS)
        assert f"operating point held-out rows, by {rule}\n" in result.summary(details=True)


def test_the_model_on_all_rows_has_learned_from_the_rows_held_out(tmp_path: Path, ckcv) -> None:
    out = tmp_path / "run"
    result = run(HELD, ROWS, out)
    csv.write_csv(ROWS.columns(), tmp_path / "rows.csv")
    for option, learned in (("--full", 60), ("--vote", result.task.n)):
        _, _, said = ckcv("predict", str(out), str(tmp_path / "rows.csv"), option)
        assert f"; {learned} of them are learning rows" in said
        assert ("nothing is proven of this model; the bound is of the one" in said) == (option == "--full")
