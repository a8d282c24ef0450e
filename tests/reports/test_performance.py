"""Measured performance: the rows of the first claim, judged again, and what is counted and drawn of them."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs
from finished import SERIAL, Finished
from sklearn import metrics

from ckcv_ray import Result, Study, Task, evaluate, load_run
from ckcv_ray.claims.predictive import NetBenefit
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.base import Predicted
from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns
from ckcv_ray.reports.figures import draw_performance
from ckcv_ray.reports.render import make_page, read_judged
from ckcv_ray.runs import judged as judging
from ckcv_ray.runs.result import compute_probabilities
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.storage.files import read_table
from ckcv_ray.storage.folder import RunFolder

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 200).astype(np.int32)
RANK = RNG.normal(size=200) + Y
SHARES = np.column_stack([1 / (1 + np.exp(RANK)), 1 / (1 + np.exp(-RANK))])


def make_judged(**changed: Any) -> judging.Judged:
    label = (RANK > 0).astype(np.int32)
    return judging.Judged(Y, label, RANK, SHARES, np.zeros(200, np.intp), "200 rows")._replace(**changed)


@pytest.mark.parametrize("kind", ["paper", "held", "held vote"])
def test_the_rows_of_the_first_claim_are_judged_as_it_counts_them(kind: str, finished: Finished) -> None:
    result = load_run(finished(kind))
    found, first = judging.judge_rows(result), result.certificate.first
    assert (int(np.sum(found.label != found.y)), len(found.y)) == (first.errors, first.rows)
    assert f"{len(found.y):,} row" in found.rows
    assert (found.rank is None, found.probability is None) == (False, kind != "held vote")


@pytest.mark.parametrize("labels", [[0, 2], [0], None, "an error"], ids=str)
def test_a_model_that_cannot_classify_is_a_damaged_folder(labels: Any) -> None:
    def predict(X: Any) -> Predicted:
        if isinstance(labels, str):
            raise ZeroDivisionError("of a stranger")
        return Predicted(np.array(labels), np.zeros(2))

    part = judging.JudgedPart(predict, np.zeros((2, 1)), np.zeros(2, np.int32))
    with pytest.raises(StoreError, match="see ckcv verify"):
        part.ask(part.X, 2)


def test_curves_are_of_single_classifiers() -> None:
    number = np.arange(200) % 2
    found = judging.trace_roc(make_judged(classifier=number))
    areas = [metrics.roc_auc_score(Y[number == i], RANK[number == i]) for i in range(2)]
    assert found.areas.tolist() == pytest.approx(areas)
    assert (np.diff(found.curves, axis=1) >= 0).all()
    ties = np.round(RANK)
    tied = judging.trace_roc(make_judged(rank=ties))
    assert tied.areas.tolist() == pytest.approx([metrics.roc_auc_score(Y, ties)])
    assert judging.trace_roc(make_judged(rank=None)) is None
    assert judging.trace_roc(make_judged(classifier=Y.astype(np.intp))) is None
    mixed = judging.trace_roc(make_judged(classifier=np.where((number == 1) & (Y == 1), 2, 0)))
    assert mixed.left_out == 1


@pytest.mark.parametrize("kind", ["exact tree", "held vote"])
def test_calibration_is_that_of_the_probabilities_that_predict_writes(kind: str, finished: Finished) -> None:
    """Those of a tree that knows its rows by heart, or of three of noise, are not: it is said first."""
    result = load_run(finished(kind))
    held, rule, found = result.problem.take_held_rows(), result.rule(), judging.calibrate(result)
    shares = compute_probabilities(result, held.X, rule, rule.predict(result.models, held.X))
    given = make_judged(y=held.y, probability=shares, delta=result.certificate.delta)
    assert found.bins == given.calibration.bins
    assert found.n_outside > 0
    assert "calibration: The probabilities are not calibrated: in " in result.summary()
    details, page = result.summary(details=True), make_page(finished(kind))
    for text in (found.note, *chain(*found.tabulate(result.task.classes)[1])):
        assert text in details
        assert text in page
    in_json = result.to_json()["calibration"]["bins"]
    assert [each["side"] for each in in_json] == [each.side for each in found.bins]
    assert {each["label"] for each in in_json} == {result.task.classes[1]}


@pytest.mark.parametrize(
    ("kind", "labels", "reason"),
    [("held better", {1}, "rows of a group are related"), ("three", {0, 1, 2}, "estimate sets share rows")],
)
def test_related_rows_are_refused_intervals_with_the_reason(
    kind: str, labels: set[int], reason: str, finished: Finished
) -> None:
    result = load_run(finished(kind))
    assert {(each.interval, each.side) for each in judging.calibrate(result).bins} == {(None, None)}
    assert {each.label for each in judging.calibrate(result).bins} == labels
    assert f"not judged: {reason}" in result.summary(details=True)
    assert f"Verdict: not judged: {reason}" in make_page(finished(kind))
    assert "the mean is" not in result.summary(details=True)


def test_the_column_that_decides_is_important_and_another_is_not() -> None:
    X = np.column_stack([RANK, RNG.normal(size=200)])
    part = judging.JudgedPart(lambda rows: Predicted((rows[:, 0] > 0).astype(np.int32), RANK), X, Y)
    found = judging.permute_columns(make_judged(parts=(part,)), 2, 0)
    rise, _, rows = found
    assert rise[0] > 0.05
    assert (rise[1], rows) == (0, 200)


def test_stored_predictions_of_numbers_are_drawn_and_of_no_class_are_refused(tmp_path: Path) -> None:
    task = blobs(40)
    options: dict[str, Any] = {"learner": "linear_regression", "measure": "rmse", "save_predictions": True}
    evaluate(task.X, task.X[:, 0], tmp_path / "numbers", SERIAL, **options)
    page = make_page(tmp_path / "numbers")
    assert "Predicted and true numbers" in page
    assert "sensitivity" not in page[page.index("<body") :]
    result = evaluate(task.X, task.y, tmp_path / "run", SERIAL, learner="tree", save_predictions=True)
    files = RunFolder(tmp_path / "run").files
    table = read_table(files, HELD_OUT, result.run_id, list_held_out_columns(result.problem))
    number = table.schema.get_field_index("prediction")
    forged = table.set_column(number, table.schema.field(number), pa.array([7] * len(table), pa.int32()))
    with pytest.raises(StoreError, match="classes that the table does not have"):
        read_judged(result, forged)


def make(claim: str, learner: str = "linear", task: Task | None = None, **options: Any) -> Result:
    small: dict[str, Any] = {"k": (3,), "n_splits": 3, "learner": learner, "certify": "holdout"}
    small |= {"C": (1.0,), "gamma": (0.1,)} if learner == "svm" else {}
    return run_job(Job(Study.paper(**small, claim=claim, **options), task or blobs(240, shift=2.0)), SERIAL)


@pytest.mark.parametrize("learner", ["linear", "tree"])
def test_at_a_cut_off_the_rows_are_classified_as_predict_does_on_any_scale(learner: str) -> None:
    asked = {"holdout_share": 0.5, "require": "sensitivity>=0.6"}
    result = make("sensitivity,specificity", learner, blobs(160), **asked)
    flagging, judged = result.claims[0].make_rule(result.problem), judging.judge_rows(result)
    held = result.problem.take_held_rows()
    assert np.array_equal(judged.label, flagging.predict(result.models, held.X).label)
    specificity = next(c for c in result.certificate.claims if str(c.quantity) == "specificity")
    assert np.sum(judged.label[judged.y == 0] != 0) == specificity.errors


def find_recalls(judged: judging.Judged, flagged: Any) -> tuple[float, float]:
    ill = judged.y == 1
    return float(np.mean(flagged[ill])), float(np.mean(~flagged[~ill]))


def test_curves_are_net_benefits_and_points_are_what_is_claimed_at_the_prevalence() -> None:
    claimed = ("net_benefit:0.02:0.1", "net_benefit:0.02:0.03")
    result = make(f"refit,{','.join(claimed)},net_benefit:0.2:0.1,sensitivity,specificity")
    judged = judging.judge_rows(result)
    found, recalls = judging.trace_net_benefit(result, judged), find_recalls(judged, judged.label == 1)
    assert (found.prevalence, found.cut_off) == (0.02, judging.BY_PROBABILITY)
    proven = {str(claim.quantity): 1 - claim.bound for claim in result.certificate.claims}
    assert [point[:2] for point in found.points] == [
        (float(name.rpartition(":")[2]), proven[name]) for name in claimed
    ]
    for worth, least, measured in found.points:
        assert least < measured == NetBenefit(0.02, worth).compute(*recalls)
    assert found.worth[[0, -1]].tolist() == pytest.approx([0, 0.15])
    share, given = np.mean(judged.y == 1), judged.probability[:, 1]
    odds = given / (1 - given) * (0.02 / 0.98) / (share / (1 - share))
    for i in range(0, len(found.worth), 10):
        w = float(found.worth[i])
        named = NetBenefit(0.02, w)
        assert found.by_rule[i] == pytest.approx(named.compute(*recalls))
        assert found.everybody[i] == pytest.approx(named.compute(1.0, 0.0))
        expected = named.compute(*find_recalls(judged, odds >= w / (1 - w)))
        assert found.by_cut_off[i] == pytest.approx(expected, abs=1e-12)
    one = judged._replace(y=np.zeros_like(judged.y))
    assert judging.trace_net_benefit(result, one) is None
    picture = next(p for p in draw_performance(result, one) if "Decision" in p.title)
    assert picture.caption == "There is none: it takes two classes, and rows of both."


NOISE = Task.of(np.random.default_rng(0).normal(size=(600, 2)), np.arange(600) % 2)


@pytest.mark.parametrize(
    ("claim", "require", "task", "prevalence", "worths"),
    [
        ("refit,net_benefit:0.02:0.1", "sensitivity>=0.8", None, None, []),  # of another rule
        ("net_benefit:0.02:0.1,ppv:0.3", "sensitivity>=0.8", None, 0.02, [0.1]),
        ("net_benefit:0.1:0.2", "ppv:0.1>=0.3", NOISE, 0.1, []),  # nothing is proven
    ],
)
def test_a_point_is_proven_of_this_rule(
    claim: str, require: str, task: Task | None, prevalence: float | None, worths: list[float]
) -> None:
    result = make(claim, task=task, require=require)
    found = judging.trace_net_benefit(result, judging.judge_rows(result))
    assert [point[0] for point in found.points] == worths
    assert prevalence in (None, found.prevalence)
