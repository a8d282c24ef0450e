"""Runs and procedures that predict numbers: what is measured and claimed, and the figures of scikit-learn."""

import numpy as np
import pyarrow as pa
import pytest
from finished import KINDS, SERIAL
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import InputError, Study, evaluate, load_run, run, verify
from ckcv_ray.cli.report import fill_form
from ckcv_ray.core.intervals import bound_score
from ckcv_ray.core.measures import Kind, Outputs, make_score
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import ONE
from ckcv_ray.learners.ensemble import predict_numbers
from ckcv_ray.learners.simple import Ridge
from ckcv_ray.runs.later import watch
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, make_test_rows

N = 120
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 3))
Y = 20 + X @ [1.0, 2.0, 3.0] + RNG.standard_t(2.5, N)
GROUPS = np.repeat(np.arange(N), np.random.default_rng(8).integers(1, 4, N))[:N]  # of one to three rows
BASE = {"clip": 4.0, "k": (3, 4), "n_splits": 3}
RIDGE = Study.of(learner="ridge", param={"alpha": (0.1, 1.0, 10.0)}, **BASE)
CERTIFIED = {
    "paper": RIDGE.replace(certify="paper"),
    "holdout": RIDGE.replace(certify="holdout", holdout_share=0.5, claim="refit,within:0.5,within:0.8"),
}
OF_GROUPS = {"paper": {}, "holdout": {"claim": "refit"}}


for certify, study in CERTIFIED.items():
    KINDS[f"{certify} of numbers"] = study, Task.of(X, Y, numbers=True)
    KINDS[f"{certify} of groups"] = study.replace(**OF_GROUPS[certify]), Task.of(X, Y, GROUPS, numbers=True)


def clipped(y, predicted):
    """The errors of rows as shares of the clip."""
    return np.minimum(np.abs(y - predicted), 4.0) / 4.0


def average(losses, groups):
    """The mean over groups of the mean of their rows."""
    return np.mean([losses[groups == g].mean() for g in np.unique(groups)])


@pytest.mark.parametrize("certify", CERTIFIED)
def test_a_group_counts_once_in_what_is_measured(certify, finished):
    """The errors of F*, of the model that is judged and of the constant, each computed group by group."""
    result = load_run(finished(f"{certify} of groups"))
    problem, certificate = result.problem, result.certificate
    assert certificate.groups["losses"] == certificate.numbers["losses"]
    assert all("new group's rows" in claim.statement for claim in certificate.claims)
    assert verify(finished(f"{certify} of groups"), rerun=True, execution=SERIAL).ok
    size = problem.sizes.index(problem.find_size(result.k))
    for member, loss in zip(result.ensemble.members, certificate.numbers["losses"], strict=True):
        train, scored = problem.rows(Stage.REFIT, size, member.split)
        groups = problem.task.row_units[scored]
        assert not set(problem.task.row_units[train]) & set(groups)
        losses = clipped(problem.task.y[scored], predict_numbers(member.model, problem.task.X[scored]))
        assert loss / problem.sizes[size].n_select == pytest.approx(average(losses, groups), abs=1e-5)
    for baseline, rows in zip(certificate.baselines, (problem.task, problem.take_held_rows()), strict=False):
        groups = rows.row_units
        assert baseline.error == pytest.approx(average(clipped(rows.y, baseline.value), groups), abs=1e-5)
    if problem.held is not None:
        held, first = problem.take_held_rows(), result.certificate.first
        losses = clipped(held.y, predict_numbers(result.models.refit.members[0].model, held.X))
        assert first.measured == pytest.approx(average(losses, held.row_units), abs=1e-5)


def test_the_winner_has_the_smallest_bound_on_the_select_sets():
    result = run(CERTIFIED["paper"].replace(exhaustive=True), X, Y, execution=SERIAL)
    l_ms = [row["l_ms"] for row in result.candidates.to_pylist() if row["l_ms"] is not None]
    assert result.certificate.l_ms == min(l_ms)
    raced = run(CERTIFIED["paper"], X, Y, execution=SERIAL)
    for name in ("setting", "k", "l_ms"):
        assert getattr(raced.certificate, name) == getattr(result.certificate, name)


def test_the_mean_error_of_each_subgroup_is_claimed(tmp_path):
    rng, n = np.random.default_rng(5), 360
    rooms = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    place = [("north", "south", None)[i % 3] for i in range(n)]
    price = 20 + 3 * np.nan_to_num(rooms) + rng.normal(size=n)
    table = pa.table({"rooms": pa.array(rooms, mask=np.isnan(rooms)), "place": place, "price": price})
    task = Task.from_table(table, Roles("price", numbers=True))
    study = Study.of(learner="ridge", certify="holdout", holdout_share=0.5, subgroups="place,rooms:2", **BASE)
    result = run_job(Job(study, task, tmp_path / "run"), SERIAL)
    parts = load_run(tmp_path / "run").certificate.subgroups
    assert parts == result.certificate.subgroups
    held = result.problem.take_held_rows()
    predicted = predict_numbers(result.models.refit.members[0].model, held.X)
    losses = clipped(held.y, predicted)
    place = list(result.task.features).index("place")
    assert [part.subgroup for part in parts[:3]] == ["place = north", "place = south", "place missing"]
    masks = held.X[:, place] == 0, held.X[:, place] == 1, np.isnan(held.X[:, place])
    for part, rows in zip(parts, masks, strict=False):
        assert (str(part.quantity), part.rows, part.errors) == ("clipped:4", rows.sum(), 0)
        assert part.measured == pytest.approx(losses[rows].mean(), abs=1e-5)
        assert part.measured < part.bound < 1
        assert part.delta == pytest.approx(0.05 / 4 / 3)  # of refit and subgroups, then of two columns
    assert sum(part.rows for part in parts) == 2 * len(held.y)
    assert verify(tmp_path / "run", rerun=True, execution=SERIAL).ok


def test_an_interval_is_as_wide_as_its_claim_says(finished):
    result = load_run(finished("holdout of numbers"))
    (claim,) = [claim for claim in result.certificate.claims if str(claim.quantity) == "within:0.8"]
    low, high = result.predict_interval(X)
    assert np.allclose((low + high) / 2, result.predict(X))
    assert np.allclose(high - low, 2 * claim.bound)
    assert "error of 80 % of new rows at most" in result.claim_for(result.rule())
    with pytest.raises(InputError, match="no interval is proven for"):
        result.predict_interval(X, by="random", seed=1)


def test_what_is_for_classes_refuses_a_run_of_numbers(finished, tmp_path):
    folder = finished("holdout of numbers")
    table = pa.table({f"x{i}": X[:, i] for i in range(3)} | {"target": Y})
    with pytest.raises(InputError, match="only errors of classes are watched"):
        watch(folder, table)
    with pytest.raises(InputError, match="these forms are about classifiers"):
        fill_form(folder, "model-card", tmp_path / "card.md")
    with pytest.raises(InputError, match="test rows are for classes"):
        make_test_rows(table, load_run(folder).task)


PATIENTS, PROGRESS = load_diabetes(return_X_y=True)
PATIENTS, PROGRESS = PATIENTS[::3], PROGRESS[::3]
TASK = Task.of(PATIENTS, PROGRESS, numbers=True)


THEIRS = {
    "rmse": "neg_root_mean_squared_error",
    "squared": "neg_mean_squared_error",
    "absolute": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
    **{name: name for name in ("r2", "explained_variance", "neg_max_error", "neg_median_absolute_error")},
}


def pairs(procedure, task=TASK):
    problem = Problem.of(procedure, task)
    return [problem.rows(Stage.SELECT, OUTER, number) for number in range(problem.sizes[OUTER].n_splits)]


@pytest.mark.parametrize(
    ("estimator", "resampling"),
    [(make_pipeline(StandardScaler(), Lasso()), "kfold:5"), (KNeighborsRegressor(3), "bootstrap:4")],
)
def test_scores_are_those_of_cross_validate(estimator, resampling):
    """To the last digit, on the same splits, for every score that scikit-learn has."""
    options = {"learner": estimator, "resampling": resampling, "measure": list(THEIRS)}
    result = evaluate(PATIENTS, PROGRESS, execution=SERIAL, **options)
    splits = pairs(result.study)
    found = cross_validate(estimator, PATIENTS, PROGRESS, cv=splits, scoring=list(THEIRS.values()))
    (entry,) = result.entries
    for score in result.scores:
        expected = found[f"test_{THEIRS[score.name]}"]
        sign = 1 if score.greater else -1
        assert np.array_equal(sign * result.of_splits(entry, score), expected), score.name


# Claims


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e4), min_size=1, max_size=60), st.floats(1e-3, 1e4))
def test_a_clipped_error_is_bounded_by_what_is_proven_for_losses(errors, limit):
    score = make_score(f"clipped:{limit!r}", Kind.REGRESSION)
    y, said = np.zeros(len(errors)), Outputs(value=np.array(errors))
    sums = np.array(score.sums(y, said, 0))
    mean = float(np.mean(np.minimum(errors, limit)))
    assert len(sums) == score.n_sums(0)
    assert score.of(y, said) == mean
    assert score.pooled(sums[None]) == pytest.approx(mean)
    assert sums[2] == round(sums[2])
    assert sums[2] * limit / ONE >= np.sum(np.minimum(errors, limit)) * (1 - 1e-12)
    assert mean * (1 - 1e-12) <= bound_score(score, sums, 0.05) <= limit


def relative_error(y, predicted):
    return np.mean(np.abs(predicted - y) / (1 + np.abs(y)))


def test_a_function_of_the_user_sees_the_numbers():
    measure = ["absolute", relative_error]
    result = evaluate(PATIENTS, PROGRESS, learner="ridge", measure=measure, execution=SERIAL)
    found = result.of_splits(result.entries[0], result.scores[1])
    for number, (train, scored) in enumerate(pairs(result.study)):
        (model,) = Ridge((1.0,)).fit(PATIENTS[train], PROGRESS[train], [{"alpha": 1.0}])
        predicted = model.predict_outputs(PATIENTS[scored], frozenset()).value
        assert found[number] == relative_error(PROGRESS[scored], predicted)
