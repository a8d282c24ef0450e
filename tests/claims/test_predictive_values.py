"""Cut-offs for a predictive value: how they are chosen and tested, and what a run makes of them."""

from dataclasses import replace

import numpy as np
from claimed import REFIT, SMALL, run
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import Study, Task
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.predictive import (
    FixedSequence,
    Npv,
    Ppv,
    Tally,
    count_cut_offs,
    fix_cut_offs,
)
from ckcv_ray.claims.quantity import read_quantity
from ckcv_ray.study.problem import Problem

PPV, NPV = Ppv(0.02), Npv(0.02)
scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=80)


def make_tests(missed: int, flagged: int, rows: tuple[int, int] = (200, 1000)) -> FixedSequence:
    """A test of a PPV of at least 30 % at one cut-off."""
    counts = (Tally(0.0, (missed, flagged), rows),)
    return FixedSequence(counts, PPV.find_risk, 0.7, 0.025)


@given(scores, st.integers(0, 1), st.sampled_from([PPV, NPV]), st.randoms(use_true_random=False))
def test_cut_offs_flag_more_and_more_of_the_class_that_is_to_be_right(values, positive, predictive, random):
    score = np.array(values)
    y = np.array([random.randint(0, 1) for _ in values], np.int32)
    cut_offs = fix_cut_offs(score, y, positive, predictive, 0.3, 100, 0.025)
    assert 1 <= len(cut_offs) <= 10
    assert {cut_off.positive for cut_off in cut_offs} == {positive}
    right = positive if predictive is PPV else 1 - positive
    found = [np.sum(cut_off.classify(score) == right) for cut_off in cut_offs]
    assert np.all(np.diff(found) > 0)
    for cut_off, counted in zip(cut_offs, count_cut_offs(score, y, cut_offs), strict=True):
        flag, sizes = cut_off.flag(score), (np.sum(y == positive), np.sum(y != positive))
        assert counted.wrong == (np.sum((y == positive) & ~flag), np.sum((y != positive) & flag))
        assert (counted.threshold, counted.rows) == (cut_off.value, sizes)


def test_what_it_takes_is_said_where_nothing_passes():
    def explain(missed: int, flagged: int) -> str:
        return make_tests(missed, flagged).explain(PPV, 2400, ["positive", "other"])

    said = explain(60, 20)
    assert "at the first of 1 thresholds 60 of 200 positive and 20 of 1,000 other held-out rows are" in said
    assert "new rows, none of these, assuming the same error rate" in said
    assert "more rows alone are not expected to help" in explain(60, 90)
    assert explain(60, 5) == ""


ILL = np.arange(900) % 3 == 0
X = np.random.default_rng(3).normal(size=(900, 2)) + 2.6 * ILL[:, None]  # most are far from the others
TASK = Task.of(X, np.where(ILL, "ill", "well"))


def study(**options: str | float | None) -> Study:
    asked = {"positive": "ill", "holdout_share": 0.5} | options
    return SMALL.replace(k=(3, 5), certify="holdout", **asked)


def test_nothing_is_flagged_where_nothing_is_proven():
    rng = np.random.default_rng(0)
    noise = Task.of(rng.normal(size=(900, 2)), np.arange(900) % 2)
    asked = study(require="ppv:0.05>=0.2", claim="npv:0.05", positive=None)
    result = run(asked, noise)
    first, ppv, sensitivity, specificity = result.certificate.claims[:4]
    assert {claim.bound for claim in (first, ppv, sensitivity, specificity)} == {None}
    assert "no cut-off is chosen, since for none the PPV at" in sensitivity.statement
    assert "more rows alone are not expected to help" in ppv.statement


def test_labels_of_rows_held_out_have_no_part_in_the_cut_offs():
    """Cut-offs are functions of the rows to learn from: other held-out labels change the counts alone."""
    asked = study(require="npv:0.05>=0.99")
    held = Problem.of(asked, TASK).held
    y, result = TASK.y.copy(), run(asked, TASK)
    y[held] = 1 - y[held]
    other = Problem.of(asked, replace(Task.of(TASK.X, TASK.labelled(y)), salt=TASK.salt))
    judged = (HeldOutPredictions(problem, result.models) for problem in (result.problem, other))
    tested = [read_quantity("npv:0.05").test(held, REFIT) for held in judged]
    cut_offs = [[counted.threshold for counted in tests.counts] for tests in tested]
    assert cut_offs[0] == cut_offs[1]
    assert tested[0].counts != tested[1].counts
