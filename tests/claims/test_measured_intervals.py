"""Exact intervals of what was measured: their coverage, and where there are none."""

import json

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs
from scipy.stats import binom

from ckcv_ray import Task
from ckcv_ray.core.bounds.binomial import bound_both_sides

HALF = SMALL.replace(k=(3, 5), certify="holdout", holdout_share=0.5)


@pytest.mark.parametrize("m", [5, 40])
@pytest.mark.parametrize("p", [0.001, 0.2, 0.5, 0.97])
def test_the_interval_misses_as_rarely_as_it_says(m, p):
    ends = np.array([bound_both_sides(x, m, 0.05) for x in range(m + 1)])
    assert bound_both_sides(0, 0, 0.05) == (0.0, 1.0)
    missed = (p < ends[:, 0]) | (p > ends[:, 1])
    assert float(np.sum(binom.pmf(np.arange(m + 1), m, p)[missed])) <= 0.05


@pytest.fixture(scope="module")
def task() -> Task:
    return blobs(240)


def test_every_count_of_held_out_rows_has_one(task):
    result = run(HALF.replace(claim="refit,vote,sensitivity,specificity,auc"), task)
    listed = [(str(found.quantity), found.label, found.classifier) for found in result.intervals]
    high, low = task.classes[1], task.classes[0]
    assert listed == [
        ("error", None, "refit"),
        ("error", None, "vote"),
        ("sensitivity", high, "refit"),
        ("specificity", low, "refit"),
    ]
    for claim, found in zip(result.certificate.claims, result.intervals, strict=False):
        right = claim.errors if str(claim.quantity) == "error" else claim.rows - claim.errors
        assert (found.part, found.rows) == (right, claim.rows)
        assert (found.low, found.high) == bound_both_sides(right, claim.rows, 0.05)
    error = result.intervals[0]
    said = result.summary(details=True)
    assert f"{error.part} of {error.rows} rows ({100 * error.part / error.rows:.2f} %, " in said
    assert "exact 95 % intervals (Clopper-Pearson, two-sided), each by itself and not jointly" in said
    stored = json.loads(json.dumps(result.to_json()))["measured"]
    assert stored[0]["quantity"] == "error"
    assert stored[0]["level"] == 0.95
    assert [one["low"] for one in stored] == [found.low for found in result.intervals]


@pytest.mark.parametrize(
    ("require", "left"), [("sensitivity>=0.8", ["specificity"]), ("specificity>=0.8", ["sensitivity"])]
)
def test_a_recall_at_a_cut_off_that_its_own_rows_chose_has_none(task, require, left):
    result = run(HALF.replace(require=require), task)
    assert [str(found.quantity) for found in result.intervals] == left


def test_scored_rows_of_cross_validation_and_groups_have_none(task):
    result = run(SMALL.replace(k=(3,)), blobs(60))
    assert result.intervals == []
    assert result.to_json()["measured"] is None
    assert "exact 95 % intervals" not in result.summary(details=True)
    grouped = Task.of(task.X, task.labelled(task.y), groups=np.arange(240) // 2)
    assert run(HALF, grouped).intervals == []
