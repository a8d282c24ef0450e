"""Certifications as values: which rows they hold out, what they claim, what they go with."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from conftest import blobs, unwrap

from ckcv_ray import Execution, Job, clopper_pearson, verify
from ckcv_ray.core.draws import Draws
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.parts import Holdout
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study
from ckcv_ray.tables.task import Task


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, nan, inf, "1.3", "most", "", True, None])
def test_a_share_lies_strictly_between_0_and_1(share):
    with pytest.raises(InputError, match=r"^holdout_share="):
        Holdout(share)


@pytest.mark.parametrize(("n", "share"), [(20, 0.5), (400, 0.5), (401, 0.33), (5_000, 0.33)])
def test_auto_holds_out_half_of_few_rows_and_a_third_of_many(n, share):
    auto = Holdout("auto")
    assert auto.canonical(n) == Holdout(share)
    assert np.array_equal(auto.draw_held_out(n, Draws(7)), Holdout(share).draw_held_out(n, Draws(7)))
    assert Holdout() == auto
    assert Holdout(claim=("vote", "auc")).canonical(n) == Holdout(share, ("vote", "auc"))
    assert Holdout("0.25") == Holdout(0.25) == Holdout(0.25).canonical(n)


@pytest.mark.parametrize(("n", "share"), [(19, "auto"), (30, 0.33), (99, 0.1)])
def test_too_few_to_hold_out_is_refused_with_what_they_could_prove_and_what_to_do(n, share):
    with pytest.raises(InputError) as refused:
        Problem.of(Study.of(holdout_share=share), blobs(n))
    words = str(refused.value)
    assert words.startswith(f"9 rows of {n} held out would prove an error of at most 29 in 100 if none")
    for part in (
        "takes 5 of them outside each class",
        "hold out at least 10, which are half of 20",
        "--paper",
    ):
        assert part in words
    assert clopper_pearson(0, 9, 0.05) == pytest.approx(0.2832, abs=1e-4)


def test_what_the_refusal_names_runs_on_six_rows():
    task = Task.of(np.arange(12.0).reshape(6, 2), [0, 1] * 3)
    study = Study.paper(C=(1.0,), gamma=(1.0,), k=3, n_splits=90)
    assert [size.n_splits for size in Problem.of(study, task).sizes] == [90]


@pytest.mark.parametrize("learner", ["svm", "linear", "tree", "naive_bayes"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_that_is_held_out_whole_is_never_predicted_and_a_caution(learner, classes, tmp_path):
    """It is no reason to draw again: the draw would depend on labels."""
    task = blobs(40)
    held = Problem.of(Study.of(), task).held[:2]
    y = task.y.copy() if classes == 3 else np.zeros(40, int)
    y[held] = classes - 1
    study = Study.of(learner=learner, k=(3,), n_splits=3)
    other = replace(Task.of(task.X, y), salt=task.salt)
    result = run_job(Job(study, other, tmp_path / "run"), Execution("serial"))
    wrong = result.predict(task.X, by="refit") != y
    assert wrong[held].all()
    assert result.certificate.first.errors == np.sum(wrong[Problem.of(study, other).held])
    said = f"All rows held out, so never predicted, and all count as wrong: {classes - 1} (2 rows)."
    assert said in unwrap(result.summary())
    assert verify(tmp_path / "run").ok
    for asked in ({"claim": "refit,recall"}, {"claim": "auc"}):
        if classes == 2 or "recall" in str(asked):
            assert plan_problem(Problem.of(study.replace(**asked), other)).evaluations > 0


@pytest.mark.parametrize(
    ("asked", "claims"),
    [
        ("vote", ("vote",)),
        ("vote,refit", ("vote", "refit")),
        (["vote", "vote", "refit"], ("vote", "refit")),
        ((), ("refit",)),
    ],
)
def test_claims_are_names_in_their_order_each_once(asked, claims):
    assert Holdout(claim=asked).claim == claims
    assert Holdout(claim=claims) == Holdout(claim=asked)


@pytest.mark.parametrize(
    "claim",
    ["best", "Vote", "", " vote", "9" * 19, "full"],
)
def test_a_claim_that_is_not_known_is_answered_with_those_that_are(claim):
    for asked in (claim, [claim], ["vote", claim]):
        with pytest.raises(InputError) as refused:
            Holdout(claim=asked)
        messages = str(refused.value)
        assert messages.startswith(f"claim={claim!r} is not known: choose from refit, vote, answered_error,")


@pytest.mark.parametrize("claim", [1, {"vote": 1}, [1], [None], b"vote"])
def test_claims_are_text(claim):
    with pytest.raises(InputError, match=r"^claim="):
        Holdout(claim=claim)
