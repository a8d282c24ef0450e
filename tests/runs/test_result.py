"""What a result says: its figures, its tables, and itself in words and in a notebook."""

import numpy as np
import pandas as pd
import pytest
from alike import SMALL
from conftest import blobs
from sklearn.metrics import accuracy_score, r2_score

import ckcv_ray
from ckcv_ray import Execution, InputError, Job, Result, Study, Task, TestRows
from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.schedule import Stage
from ckcv_ray.reports.facts import list_edges
from ckcv_ray.runs.run import check_job, compute, run_job

SERIAL = Execution("serial")


def run(study: Study = SMALL, task: Task | None = None, test: TestRows | None = None) -> Result:
    return run_job(Job(study, task or blobs(60), test=test), SERIAL)


@pytest.fixture(scope="module")
def result() -> Result:
    return run()


# Figures


def test_the_error_is_the_mean_over_splits_of_what_members_do_on_their_estimate_sets(result: Result) -> None:
    """Estimated, where the bounds are proven: it lies below each of them."""
    problem, rates = result.problem, []
    (size,) = (j for j, size in enumerate(problem.sizes) if size.holds(result.k))
    for member in result.ensemble.members:
        _, score = problem.rows(Stage.REFIT, size, member.split)
        rates.append(np.mean(member.model.predict(result.task.X[score]).label != result.task.y[score]))
    assert result.certificate.error == pytest.approx(np.mean(rates), rel=1e-12)
    assert result.certificate.error == result.to_json()["error"]
    assert 0 < result.certificate.error < result.l_ee < result.proven


# Tables


def test_every_fold_size_has_one_row_with_its_own_best_where_it_is_reported() -> None:
    result = run(SMALL.replace(k=(3, 4, 5, 40, 41), report_k=41))
    rows = {row["k_first"]: row for row in result.to_json()["per_k"]}
    places = {k: (row["k_last"], row["n_select"]) for k, row in rows.items()}
    assert places == {3: (3, 20), 4: (4, 15), 5: (5, 12), 40: (41, 1)}
    shown = {k for k, row in rows.items() if row["setting"] is not None}
    assert shown == {result.k, 40}
    assert (rows[result.k]["state"], rows[result.k]["setting"]) == ("winner", result.setting)
    assert all(row["lower_bound"] <= (row["l_ms"] or 1) for row in rows.values())


def test_a_winner_on_the_edge_of_a_grid_is_pointed_out() -> None:
    inner = run(SMALL.replace(C=(1e-3, 1.0, 1e6), gamma=0.1, seed=1))
    outer = run(SMALL.replace(C=(1e-3, 1e-2), gamma=0.1))
    assert inner.setting["C"] == 1.0
    assert list_edges(inner.problem, inner.setting) == []  # nor on that of a grid of one value
    value = f"{outer.setting['C']:g}"
    advice = f"on new rows, none of these, widen --C beyond {value}"
    said = f"C = {value} is on the edge of its grid: {advice}"
    assert list_edges(outer.problem, outer.setting) == [said]
    assert said in outer.summary(details=True)


# Words


LABELS = {
    "markup": ("<script>alert(1)</script>", '"it\'s" & <b>'),
    "truth": (False, True),
    "numbers": (0.5, 2.5),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_are_told_as_they_are_and_are_no_markup(kind: str) -> None:
    task = blobs(60)
    result = run(task=Task.of(task.X, np.array(LABELS[kind])[task.y]))
    assert all(f"{label!r} " in result.summary(details=True) for label in result.task.classes)
    assert set(result.predict(task.X).tolist()) == set(LABELS[kind])
    assert "<script" not in result._repr_html_()


# Predictions


def test_a_score_is_that_of_scikit_learn() -> None:
    rows, new = blobs(90), blobs(40, seed=4)
    result = ckcv_ray.run(SMALL.replace(certify="holdout"), rows.X, np.array(["no", "yes"])[rows.y])
    y = pd.Series(np.array(["no", "yes"])[new.y], dtype="category")
    for by in ("auto", "vote", "full"):
        assert result.score(new.X, y, by) == accuracy_score(y, result.predict(new.X, by)) < 1
    for labels, said in (
        (y[:9], r"has shape \(9,\)"),
        (y.astype(str) + "?", "holds '(no|yes)[?]': the labels are 'no'"),
    ):
        with pytest.raises(InputError, match=said):
            result.score(new.X, labels)
    ridge = Study.of(learner="ridge", k=3, n_splits=2, clip=4.0)
    result = ckcv_ray.run(ridge, rows.X, rows.X @ (1, 2) + rows.y)
    y = new.X @ (1, 2) + new.y
    assert result.score(new.X, y) == pytest.approx(r2_score(y, result.predict(new.X)), abs=1e-15)
    with pytest.raises(InputError, match="is 1 in every row: there is nothing to learn"):
        result.score(new.X, np.ones(40))


def test_what_a_race_says_of_a_beaten_candidate_is_the_shortest_proof() -> None:
    """Over the first of its splits, the others taken for flawless, its mean is above the winner's."""
    job, criterion, some_are_short = Job(SMALL.replace(exhaustive=True), blobs(60)), MeanBound(), False
    raced, whole = run(), compute(check_job(job)._replace(keep=True), SERIAL)
    winner = raced.certificate.l_ms
    for row in raced.candidates.filter(np.array(raced.candidates["state"]) == "beaten").to_pylist():
        (size,) = (j for j, size in enumerate(raced.problem.sizes) if size.holds(row["k_first"]))
        fold, splits = raced.problem.sizes[size], row["splits"]
        at = {"size": size, "path": row["path"], "step": row["step"], "estimate": False}
        found = whole.records[np.all([whole.records[name] == value for name, value in at.items()], axis=0)]
        values = criterion.value(found[np.argsort(found["split"])]["totals"], fold.n_select)
        flawless = np.full(len(values), criterion.least(fold.n_select))
        known = np.tri(len(values) + 1, len(values), -1, dtype=bool).T  # of the first 0, 1, 2 ... splits
        means = np.where(known, values[:, None], flawless[:, None]).mean(axis=0)
        assert row["lower_bound"] == pytest.approx(means[splits])
        assert means[max(0, splits - 1)] <= winner + 1e-12 or splits == 0
        some_are_short |= 0 < splits < len(values)
    assert some_are_short
