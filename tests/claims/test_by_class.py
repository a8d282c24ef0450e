"""Claims by class and of the AUC: exact coverage, what they are about, and what is refused."""

from itertools import product
from math import fsum

import numpy as np
import pytest
from claimed import REFIT, SMALL, hold_out_rows, predict_held, run
from conftest import blobs
from scipy.stats import binom

from ckcv_ray import Task
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.claims.recalls import Auc, Recall
from ckcv_ray.core.draws import Draws, draw_pairs
from ckcv_ray.core.percent import floor_percent
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

TWO = ("sensitivity", "specificity")
HELD = SMALL.replace(certify="holdout", claim=TWO)


def hold_out_classes(study: Study, sizes: tuple[int, ...]) -> Problem:
    """The problem of a study of which as many rows of each class are held out as ``sizes`` says."""
    task = blobs(60)
    rows = (np.flatnonzero(task.y == c)[:m] for c, m in enumerate(sizes))
    return hold_out_rows(study, task, np.concatenate([*rows]))


def judge_wrong(problem: Problem, wrong: tuple[int, ...]) -> HeldOutPredictions:
    """Predictions of the held-out rows with so many of each class wrong."""
    y = problem.take_held_rows().y
    label = y.copy()
    for c, count in enumerate(wrong):
        label[np.flatnonzero(y == c)[:count]] = (c + 1) % problem.task.n_classes
    return predict_held(problem, label)


def bound_recalls(problem: Problem, wrong: tuple[int, ...]) -> list[float]:
    return [claim.risk for claim in Recall().claim(judge_wrong(problem, wrong), REFIT)]


def claim_auc(problem: Problem, score: np.ndarray) -> Claim:
    (claim,) = Auc().claim(predict_held(problem, problem.take_held_rows().y, score), REFIT)
    return claim


def probability(wrong: tuple[int, ...], sizes: tuple[int, ...], risks: tuple[float, ...]) -> float:
    return float(np.prod(binom.pmf(wrong, sizes, risks)))


# Exact coverage of held-out rows


@pytest.mark.parametrize("sizes", [(6, 4), (1, 9), (0, 5)])
def test_two_recalls_hold_jointly_and_each_uses_up_its_half(sizes):
    """The largest probability that one of two independent ones fails, a finite sum just above each bound."""
    problem = hold_out_classes(SMALL.replace(certify="holdout", claim="recall", delta=0.2), sizes)
    counts = list(product(*(range(m + 1) for m in sizes)))
    found = {wrong: bound_recalls(problem, wrong) for wrong in counts}
    ends = [sorted({found[wrong][c] for wrong in counts}) for c in range(2)]
    points = [[p * (1 + 1e-12) for p in ends[c] if p < 1] or [1.0] for c in range(2)]
    failing = [
        fsum(
            probability(wrong, sizes, risks)
            for wrong in counts
            if any(risk > bound for risk, bound in zip(risks, found[wrong], strict=True))
        )
        for risks in product(*points)
    ]
    assert max(failing) <= 0.2 * (1 + 1e-9)
    if min(sizes):
        assert max(failing) == pytest.approx(1 - (1 - 0.1) ** 2, rel=1e-9)


def test_pairs_are_disjoint_and_do_not_depend_on_anything_but_the_labels():
    y = np.array([0, 1, 1, 0, 1, 1, 1, 0])
    low, high = draw_pairs(y, Draws(7))
    assert sorted(low.tolist()) == [0, 3, 7]
    assert len(set(high.tolist())) == 3
    assert set(y[high]) == {1}
    again = draw_pairs(y, Draws(7))
    assert all(np.array_equal(a, b) for a, b in zip((low, high), again, strict=True))
    others = {tuple(draw_pairs(y, Draws(seed))[1].tolist()) for seed in range(20)}
    assert len(others) > 10
    assert [len(part) for part in draw_pairs(np.zeros(4, int), Draws(7))] == [0, 0]


def test_a_score_that_is_missing_is_out_of_order():
    problem = hold_out_classes(SMALL.replace(certify="holdout", claim="auc"), (3, 3))
    claim = claim_auc(problem, np.full(6, np.nan))
    assert claim.bound == 1.0
    assert "at least 0.00 %" in claim.statement
    assert "3 of 3 disjoint pairs" in claim.statement


# Runs


def test_without_a_rule_the_claims_are_about_the_one_model_and_so_is_predict():
    result = run(SMALL.replace(certify="holdout", claim="auc,sensitivity"), blobs(60))
    auc, sensitivity = result.certificate.claims
    assert [str(c.quantity) for c in (auc, sensitivity)] == ["auc", "sensitivity"]
    assert {c.classifier for c in (auc, sensitivity)} == {"refit"}
    assert result.rule() == REFIT
    assert result.proven == auc.bound
    messages = result.claim_for(REFIT)
    assert f"AUC at least {floor_percent(1 - auc.bound)}, with probability 97.5 % (holdout)" in messages
    assert f"sensitivity (recall of {result.task.classes[1]!r}) at least" in messages
    assert "wrong" not in messages  # no error was claimed


def test_the_positive_class_is_named_in_every_sentence():
    task = blobs(60)
    named = Task.of(task.X, np.array(["sick", "healthy"])[task.y])  # sick is 0, and last in sorted order
    one = run(HELD, named).certificate.claims.claims
    other = run(HELD.replace(positive="healthy"), named).certificate.claims.claims
    assert (str(one[0].quantity), one[0].label) == ("sensitivity", "sick")
    assert (str(other[0].quantity), other[0].label) == ("sensitivity", "healthy")
    assert [c.bound for c in one[:2]] == [c.bound for c in other[:2]][::-1]
    assert "the specificity (recall of 'healthy') of the model" in one[1].statement
    assert "the probability that a new row of class 'sick' is classified correctly" in one[0].statement


@pytest.mark.parametrize(
    ("labels", "positive", "number"),
    [
        ((0, 1), "1", None),
        ((0, 1), 0, "0"),
        ((0.5, 2.0), "2", None),
        ((False, True), "False", "False"),
        (("healthy", "sick"), "sick", None),
        (("healthy", "sick"), None, None),
    ],
)
def test_a_positive_class_has_one_form_in_the_study(labels, positive, number):
    """Naming the default is the same study, with the same run_id."""
    task = blobs(60)
    task = Task.of(task.X, np.array(labels)[task.y])
    problem = Problem.of(HELD.replace(positive=positive), task)
    assert problem.study.certification.positive == number
    assert problem.positive == (1 if number is None else 0)
    if number is None:
        assert problem.run_id == Problem.of(HELD, task).run_id
