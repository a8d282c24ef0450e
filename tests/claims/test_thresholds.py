"""Cut-offs and thresholds of answered rows: chosen, tested and applied; and intervals of what is counted."""

import json
from dataclasses import replace
from math import ceil
from types import SimpleNamespace as Namespace

import numpy as np
import pytest
from claimed import REFIT, SMALL, run
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ckcv_ray import Certified, InputError, Study, Task
from ckcv_ray.claims.predictive import AnsweredError, FixedSequence, Npv, Ppv, Tally
from ckcv_ray.claims.quantity import HeldOutPredictions, read_quantity
from ckcv_ray.claims.rules import CutOff, orient_scores
from ckcv_ray.cli.report import write_model
from ckcv_ray.core.bounds.binomial import bound_both_sides, clopper_pearson, find_fewest_rows
from ckcv_ray.errors import ceil_percent
from ckcv_ray.learners.ensemble import Ensemble, Member, Models
from ckcv_ray.runs.result import find_error_claim, mark_rows
from ckcv_ray.study.parts import parse_condition
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import TestRows

D = 0.05 / 2  # of each of two that hold together
HALF = SMALL.replace(k=(3, 5), certify="holdout", holdout_share=0.5)
ANSWERING = HALF.replace(answer="error<=0.1")
APART, NOISE = blobs(400, seed=3, shift=2.6), blobs(600, shift=0.0)
PPV, NPV = Ppv(0.02), Npv(0.02)
rows = st.tuples(st.integers(-4, 4).map(float), st.integers(0, 1))  # score and class


# Choice


def make_held(score: np.ndarray, y: np.ndarray, condition: str, positive: int = 1) -> HeldOutPredictions:
    """Rows held out, of these classes; the model has these scores on them, and on rows not learned from."""
    asked, model = (
        parse_condition("require", condition),
        Namespace(predict=lambda X: Namespace(score=X[:, 0])),
    )
    recalls = {name: read_quantity(name) for name in ("sensitivity", "specificity")}
    problem = Namespace(required=asked, positive=positive, study=Namespace(delta_of_claim=2 * D))
    problem.task = Namespace(X=score[:, None], y=np.resize(y, len(score)), classes=(0, 1))
    problem.certification = Namespace(answering=asked, quantities=recalls)
    problem.find_estimate_rows = lambda k, split: np.arange(len(score))
    one, judged = Ensemble((Member(3, 0, model, (0, 0), (0, 0)),)), np.resize(score, len(y))
    held = HeldOutPredictions(problem, Models(one, one))
    problem.take_held_rows = lambda: TestRows(judged[:, None], y)
    held.make_once(REFIT, lambda: Namespace(label=y, score=judged))
    return held


@given(st.lists(rows, min_size=40, max_size=90), st.integers(0, 1), st.integers(0, 1))
def test_a_cut_off_misses_at_most_as_many_as_its_bound_allows(listed, positive, number):
    score, y = np.array(listed).T
    quantity = read_quantity("sensitivity" if number == positive else "specificity")
    cut_off, lack, misses = quantity.choose_cut_off(make_held(score, y, f"{quantity}>=0.9", positive), REFIT)
    m = int(np.sum(y == number))
    assert (cut_off is None) == bool(lack) == (m < find_fewest_rows(1 - 0.9, 0, D))
    if cut_off is None:
        return
    wrong = int(np.sum(cut_off.classify(score)[y == number] != number))
    assert wrong <= misses
    assert clopper_pearson(misses, m, D) <= 1 - 0.9 < clopper_pearson(misses + 1, m, D)
    further = CutOff(np.nextafter(cut_off.value, np.inf), positive)  # the next one misses too many
    if number == positive:
        assert np.sum(further.classify(score)[y == number] != number) > misses


@given(st.lists(rows, min_size=1, max_size=90), st.integers(0, 1), st.sampled_from([PPV, NPV]))
def test_cut_offs_flag_more_and_more_of_the_class_that_is_to_be_right(listed, positive, predictive):
    score, y = np.array(listed).T
    tests = predictive.test(make_held(score, y, f"{predictive}>=0.3", positive), REFIT)
    cut_offs = [CutOff(counted.threshold, positive) for counted in tests.counts]
    assert 1 <= len(cut_offs) <= 10
    right = positive if predictive is PPV else 1 - positive
    found = [np.sum(cut_off.classify(score) == right) for cut_off in cut_offs]
    assert np.all(np.diff(found) > 0)
    for cut_off, counted in zip(cut_offs, tests.counts, strict=True):
        flag = cut_off.classify(score) == positive
        assert counted.wrong == (np.sum((y == positive) & ~flag), np.sum((y != positive) & flag))
        assert counted.rows == (np.sum(y == positive), np.sum(y != positive))


@given(st.lists(rows, min_size=1, max_size=90), st.integers(10, 500), st.sampled_from([0.02, 0.1, 0.3]))
def test_thresholds_descend_to_one_that_answers_every_row(listed, n, most):
    score, y = np.array(listed).T
    tests = AnsweredError().test(make_held(score, np.resize(y, n), f"error<={most}"), REFIT)
    thresholds = [counted.threshold for counted in tests.counts]
    assert np.all(np.diff(thresholds) < 0)
    assert thresholds[-1] == 0.0
    assert len(thresholds) <= 10
    assert set(thresholds) <= {0.0, *np.abs(score)}


@given(st.floats(-1e6, 1e6).filter(lambda score: score == 0 or abs(score) > 1e-100), st.integers(0, 1))
def test_last_bits_of_a_score_do_not_matter(score, positive):
    near = np.array([score, np.nextafter(score, np.inf)])
    rounded = orient_scores(near, positive)
    assert abs(rounded[0] - rounded[1]) <= 1.01e-11 * max(abs(score), 1e-300)  # a step of the 12th digit
    assert np.allclose(np.abs(rounded), np.abs(near), rtol=1e-11, atol=1e-200)
    assert np.array_equal(orient_scores(rounded if positive else -rounded, positive), rounded)


# Tests in order


def make_tests(*counts: tuple[float, int, int]) -> FixedSequence:
    """Tests of an error of at most 5 % among rows that are answered."""
    listed = tuple(Tally(threshold, (wrong,), (rows,)) for threshold, wrong, rows in counts)
    return FixedSequence(listed, lambda shares: shares[0], 0.05, 0.025)


def test_the_sequence_stops_at_its_first_failure():
    counts = ((3.0, 0, 100), (2.0, 40, 150), (1.0, 0, 1000))
    tests = make_tests(*counts)
    assert (tests.passed, tests.chosen.threshold) == (1, 3.0)
    assert replace(tests, copies=60).passed == 0
    assert make_tests(*counts[1:]).chosen.threshold == 2.0
    assert make_tests((9.0, 0, 0)).passed == 0


def test_what_it_takes_is_said_where_nothing_passes():
    """No other seed is advised: one chosen for its result would void what is proven."""
    said, hopeless, empty = (
        make_tests(counts).explain(AnsweredError(), 400, ["answered"])
        for counts in ((1.0, 2, 60), (1.0, 4999, 100_000), (0.9, 0, 0))
    )
    proven = ceil_percent(clopper_pearson(2, 60, 0.025))
    assert "2 of 60 answered held-out rows are wrong, which is 3.33 % measured" in said
    assert f"proves at most {proven}, not 5.00 %" in said
    assert "it takes about 4,700 new rows" in said  # of which 60 in 400 are answered
    assert any(clopper_pearson(ceil(n / 30), n, 0.025) <= 0.05 for n in range(698, 713))
    assert "more rows alone are not expected to help" in hopeless
    assert empty.startswith(
        "no held-out row has the confidence of the first of 1 thresholds, 0.9; more new rows"
    )
    tests = FixedSequence((Tally(0.0, (60, 20), (200, 1000)),), PPV.find_risk, 0.7, 0.025)
    said = tests.explain(PPV, 2400, ["positive", "other"])
    assert "at the first of 1 thresholds 60 of 200 positive and 20 of 1,000 other held-out rows are" in said
    assert "new rows, none of these, assuming the same error rate" in said


def test_labels_of_rows_held_out_have_no_part_in_the_cut_offs():
    """Cut-offs are functions of the rows to learn from: other held-out labels change the counts alone."""
    asked = HALF.replace(require="npv:0.05>=0.99", positive=1)
    held = Problem.of(asked, APART).held
    y, result = APART.y.copy(), run(asked, APART)
    y[held] = 1 - y[held]
    other = Problem.of(asked, replace(Task.of(APART.X, APART.labelled(y)), salt=APART.salt))
    judged = (HeldOutPredictions(problem, result.models) for problem in (result.problem, other))
    tested = [read_quantity("npv:0.05").test(held, REFIT) for held in judged]
    cut_offs = [[counted.threshold for counted in tests.counts] for tests in tested]
    assert cut_offs[0] == cut_offs[1]
    assert tested[0].counts != tested[1].counts


# Runs


def mark(result: Certified, X: np.ndarray) -> np.ndarray:
    """Return which rows the rule that answers does."""
    claim = next(claim for claim in result.claims if str(claim.quantity) == "answered_error")
    rule = claim.make_rule(result.problem)
    return mark_rows(result, X, rule, rule.predict(result.models, X))[0]["answered"]


def test_a_run_answers_what_it_has_proven():
    result = run(ANSWERING.replace(claim="vote", accept="answered_share>=0.3,answered_error<=0.1"), APART)
    by_name = {str(claim.quantity): claim for claim in result.certificate.claims}
    error, share = by_name["answered_error"], by_name["answered_share"]
    held, rule = result.problem.take_held_rows(), error.make_rule(result.problem)
    predicted, answered = rule.predict(result.models, held.X), mark(result, held.X)
    score, wrong = np.abs(predicted.score), predicted.label != held.y
    assert np.all(score[answered] >= error.least_confidence * (1 - 1e-11))
    assert np.all(score[~answered] <= error.least_confidence)
    assert (error.errors, error.rows) == (int(np.sum(wrong & answered)), int(np.sum(answered)))
    assert (share.errors, share.rows) == (int(np.sum(~answered)), len(held.y))
    assert result.summary().startswith("ACCEPTED: answered_share>=0.3: proven share of rows answered")
    other = result.rule("refit")
    marks, told = mark_rows(result, held.X, other, other.predict(result.models, held.X))
    assert marks == {}
    assert told[-1].startswith("no column answered: it is about the predictions by ")


def test_the_claim_about_the_error_is_not_taken_for_that_of_the_rows_answered():
    with_error, alone = (run(ANSWERING.replace(claim=claim), APART) for claim in ("refit", "answered_error"))
    assert find_error_claim(with_error.claims, REFIT).risk == with_error.certificate.first.bound
    assert find_error_claim(alone.claims, REFIT) is None
    assert alone.certificate.first.delta == 0.025
    assert alone.summary().startswith("Quote with CAUTION: error of the rows answered is at most 10.00 %")


def test_several_classes_are_answered_by_the_margin():
    rng, y = np.random.default_rng(0), np.arange(600) % 3
    task = Task.of(rng.normal(size=(600, 2)) + np.array([[0, 0], [4, 0], [0, 4]])[y], y)
    of_linear = Study.paper(learner="linear", n_splits=3, k=(3,), certify="holdout", holdout_share=0.5)
    result = run(of_linear.replace(answer="error<=0.1", claim="vote"), task)
    held = result.problem.take_held_rows()
    assert mark(result, held.X).sum() == result.certificate.claims[1].rows
    with pytest.raises(InputError, match=r"a score for each of several classes, and learner svm gives none"):
        Problem.of(ANSWERING, task)


def test_nothing_is_quoted_flagged_or_answered_where_nothing_is_proven():
    alone = run(ANSWERING.replace(claim="answered_error"), NOISE)
    assert not mark(alone, NOISE.X).any()
    assert alone.summary().startswith("Nothing can be quoted yet. Nothing can be claimed for the error of")
    result = run(HALF.replace(require="ppv:0.05>=0.2", claim="npv:0.05"), NOISE)
    first, ppv, sensitivity, specificity = result.certificate.claims[:4]
    assert {claim.bound for claim in (first, ppv, sensitivity, specificity)} == {None}
    assert "no cut-off is chosen, since for none the PPV at" in sensitivity.statement
    result = run(HALF.replace(claim="sensitivity"), NOISE)
    missed = replace(result.certificate.first, bound=1.0)  # every positive, so that at least 0 is proven
    none = replace(result, certificate=replace(result.certificate, claims=(missed,)))
    assert "is proven to be at least 0.00 %, which says nothing." in " ".join(none.summary().split())


def test_the_rules_own_cut_off_is_not_what_is_claimed_nor_can_the_chosen_one_be_exported(tmp_path):
    required, plain = (run(study, APART) for study in (HALF.replace(require="sensitivity>=0.8"), HALF))
    assert "nothing is proven for its own cut-off" in required.claim_for(required.rule("refit"))
    predicted = required.rule("refit").predict(required.models, APART.X)
    _, (_, flagged, _) = mark_rows(required, APART.X, REFIT, predicted)
    assert flagged.startswith("column flag by the model fitted on the learning rows with cut-off")
    assert mark_rows(plain, APART.X, REFIT, predicted)[0] == {}
    with pytest.raises(InputError, match="a cut-off of the model's scores, which the file would lack"):
        write_model(required, tmp_path / "model.skops")
    # Its own rows chose it: what was measured of them is not binomial
    assert [str(claim.quantity) for claim, *_ in required.intervals] == ["specificity"]


# Intervals


@pytest.mark.parametrize("m", [5, 40])
@pytest.mark.parametrize("p", [0.001, 0.2, 0.5, 0.97])
def test_an_interval_misses_as_rarely_as_it_says(m, p):
    ends = np.array([bound_both_sides(x, m, 0.05) for x in range(m + 1)])
    assert bound_both_sides(0, 0, 0.05) == (0.0, 1.0)
    missed = (p < ends[:, 0]) | (p > ends[:, 1])
    assert float(np.sum(binom.pmf(np.arange(m + 1), m, p)[missed])) <= 0.05


def test_every_count_of_held_out_rows_has_an_interval():
    result = run(HALF.replace(claim="vote,sensitivity,auc"), APART)
    found = [(str(claim.quantity), *ends) for claim, *ends in result.intervals]
    error, recall, _ = result.certificate.claims
    assert found == [
        ("error", *bound_both_sides(error.errors, error.rows, 0.05)),
        ("sensitivity", *bound_both_sides(recall.rows - recall.errors, recall.rows, 0.05)),
    ]
    stored = json.loads(json.dumps(result.to_json()))["measured"]
    assert [(one["quantity"], one["low"], one["high"], one["level"]) for one in stored] == [
        (*one, 0.95) for one in found
    ]
    grouped = Task.of(APART.X, APART.labelled(APART.y), groups=np.arange(400) // 2)
    assert run(HALF, grouped).intervals == []
