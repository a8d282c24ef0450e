"""Rows answered and not: thresholds, their tests, and what a run makes of them."""

from math import ceil

import numpy as np
import pytest
from claimed import REFIT, SMALL, run
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import Certified, InputError, Study, Task
from ckcv_ray.claims.predictive import AnsweredError, FixedSequence, Tally, fix_thresholds
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.errors import ceil_percent
from ckcv_ray.runs.result import bound_error, mark_rows
from ckcv_ray.study.problem import Problem

confidences = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=60)


@given(confidences, st.integers(10, 500), st.sampled_from([0.02, 0.1, 0.3]))
def test_thresholds_descend_to_one_that_answers_every_row(values, held, most):
    thresholds = fix_thresholds(np.array(values), held, most, 0.025)
    assert np.all(np.diff(thresholds) < 0)
    assert thresholds[-1] == 0.0
    assert len(thresholds) <= 10
    assert set(thresholds) <= {0.0, *values}


def make_tests(*counts: tuple[float, int, int]) -> FixedSequence:
    """Tests of an error of at most 5 % among rows that are answered."""
    listed = tuple(Tally(threshold, (wrong,), (rows,)) for threshold, wrong, rows in counts)
    return FixedSequence(listed, lambda shares: shares[0], 0.05, 0.025)


def test_the_sequence_stops_at_its_first_failure():
    counts = ((3.0, 0, 100), (2.0, 40, 150), (1.0, 0, 1000))
    tests = make_tests(*counts)
    assert (tests.passed, tests.chosen.threshold) == (1, 3.0)
    assert tests.count_passed(copies=60) == 0
    assert make_tests(*counts[1:]).chosen.threshold == 2.0
    assert make_tests(*counts[2:]).passed == 1
    assert make_tests((9.0, 0, 0)).passed == 0


def test_what_it_takes_is_said_where_nothing_passes():
    """No other seed is advised: one chosen for its result would void what is proven."""

    def explain(*counts: tuple[float, int, int]) -> str:
        return make_tests(*counts).explain(AnsweredError(), 400, ["answered"])

    said = explain((1.0, 2, 60))
    proven = ceil_percent(clopper_pearson(2, 60, 0.025))
    assert "2 of 60 answered held-out rows are wrong, which is 3.33 % measured" in said
    assert f"proves at most {proven}, not 5.00 %" in said
    assert "it takes about 4,700 new rows" in said  # of which 60 in 400 are answered
    assert any(clopper_pearson(ceil(n / 30), n, 0.025) <= 0.05 for n in range(698, 713))
    for counts in ((1.0, 10, 60), (1.0, 4999, 100_000), (0.9, 0, 0)):  # too many, as good as, none
        assert "more rows alone are not expected to help" in explain(counts)


def draw_rows(apart: float) -> Task:
    y = np.arange(400) % 2
    X = np.random.default_rng(3).normal(size=(400, 2)) + apart * y[:, None]
    return Task.of(X, np.where(y, "sick", "well"))


TASK = draw_rows(2.6)  # most are far from those of the other class


def study(**options: str | float) -> Study:
    asked = {"answer": "error<=0.1", "holdout_share": 0.5}
    return SMALL.replace(k=(3, 5), certify="holdout", **asked, **options)


def mark(result: Certified, X: np.ndarray) -> tuple[Rule, np.ndarray]:
    """Return the rule that answers, and which rows it does."""
    claim = next(claim for claim in result.claims if str(claim.quantity) == "answered_error")
    rule = claim.make_rule(result.problem)
    return rule, mark_rows(result, X, rule, rule.predict(result.models, X))[0]["answered"]


def test_a_run_answers_what_it_has_proven():
    result = run(study(claim="vote", accept="answered_share>=0.3,answered_error<=0.1"), TASK)
    by_name = {str(claim.quantity): claim for claim in result.certificate.claims}
    error, share = by_name["answered_error"], by_name["answered_share"]
    held = result.problem.take_held_rows()
    rule, answered = mark(result, held.X)
    score = np.abs(rule.predict(result.models, held.X).score)
    assert np.all(score[answered] >= error.least_confidence * (1 - 1e-11))
    assert np.all(score[~answered] <= error.least_confidence)
    wrong = rule.predict(result.models, held.X).label != held.y
    assert (error.errors, error.rows) == (int(np.sum(wrong & answered)), int(np.sum(answered)))
    assert (share.errors, share.rows) == (int(np.sum(~answered)), len(held.y))
    assert error.bound == 0.1
    assert "; jointly with probability at least 97.5 %)" in error.statement
    assert share.bound >= clopper_pearson(share.errors, share.rows, share.delta)
    assert result.summary().startswith("ACCEPTED: answered_share>=0.3: proven share of rows answered")
    assert "error of the rows answered at most 10.00 %" in result.claim_for(rule)
    other = result.rule("refit")
    marks, told = mark_rows(result, held.X, other, other.predict(result.models, held.X))
    assert marks == {}
    assert told[-1].startswith("no column answered: it is about the predictions by ")


def test_the_claim_about_the_error_is_not_taken_for_that_of_the_rows_answered():
    with_error = run(study(), TASK)
    assert bound_error(with_error.claims, REFIT) == with_error.certificate.first.bound
    alone = run(study(claim="answered_error"), TASK)
    assert str(alone.certificate.first.quantity) == "answered_error"
    assert bound_error(alone.claims, REFIT) is None
    assert alone.certificate.first.delta == 0.025
    assert alone.summary().startswith("Quote with CAUTION: error of the rows answered is at most 10.00 %")


def test_several_classes_are_answered_by_the_margin():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 2)) + np.array([[0, 0], [4, 0], [0, 4]])[y]
    task = Task.of(X, y)
    of_linear = Study.paper(learner="linear", n_splits=3, k=(3,), certify="holdout", holdout_share=0.5)
    result = run(of_linear.replace(answer="error<=0.1", claim="vote"), task)
    held = result.problem.take_held_rows()
    assert mark(result, held.X)[1].sum() == result.certificate.claims[1].rows
    with pytest.raises(
        InputError, match=r"a score for each of several classes, and learner svm gives none: leave one of"
    ):
        Problem.of(study(), task)


def test_nothing_is_quoted_where_nothing_is_proven_of_what_alone_is_claimed():
    noise = Task.of(np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2)
    alone = run(study(claim="answered_error"), noise)
    assert alone.certificate.first.least_confidence is None
    assert not mark(alone, noise.X)[1].any()
    assert alone.summary().startswith("Nothing can be quoted yet. Nothing can be claimed for the error of")
