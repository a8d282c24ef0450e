"""Studies with a certification that predict numbers: what they need, and what they refuse in a sentence."""

import re
from typing import Any

import numpy as np
import pytest

from ckcv_ray import InputError, Study, Task
from ckcv_ray.study.parts import parse_condition
from ckcv_ray.study.problem import Problem

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, 2.0] + RNG.normal(size=N)
TASK = Task.of(X, Y, numbers=True)
GROUPED = Task.of(X, Y, numbers=True, groups=[f"g{i // 3}" for i in range(N)])
CLASSES = Task.of(X, np.greater(Y, 0))
OF_CLASSES = {"learner": "forest", "clip": None, "criterion": "error", "certify": "holdout"}


def make_problem(task: Task = TASK, /, **options: Any) -> Problem:
    """A problem of numbers in which ``options`` replace the usual ones."""
    usual = {"learner": "ridge", "clip": 5.0, "k": (3,), "n_splits": 3}
    given = {name: value for name, value in (usual | options).items() if value is not None}
    return Problem.of(Study.of(**given), task)


def test_a_clip_alone_chooses_the_criterion_of_numbers():
    for asked in ({"clip": 5.0}, {"criterion": "clipped", "clip": 5}):
        assert Study.of(learner="ridge", **asked) == Study.of(learner="ridge", clip=5.0)
    assert make_problem().clip == 5.0
    assert make_problem(clip=1 / 3).clip == float(f"{1 / 3:.12g}")


HOLD = {"certify": "holdout"}
NOT_OF_NUMBERS = [
    (TASK, {"clip": None, "criterion": "clipped"}, "criterion=clipped needs a clip"),
    (
        TASK,
        {"clip": None, "criterion": "error"},
        "criterion=error is for classes, and the target 'y' has numbers: name",
    ),
    (TASK, {"learner": "forest"}, "choose one of numbers, such as ridge"),
    (
        GROUPED,
        HOLD | {"claim": "refit,within:0.5"},
        "claim=within:0.5 counts rows as independent, which rows of groups are not",
    ),
    (GROUPED, HOLD | {"subgroups": "x0"}, "subgroups=x0 counts rows of a subgroup as"),
    (
        TASK,
        HOLD | {"claim": "vote"},
        "claim=vote is for classes, and the target 'y' has numbers: leave it out",
    ),
    (TASK, HOLD | {"claim": "auc"}, "claim=auc is for two classes"),
    (TASK, HOLD | {"claim": "recall"}, "claim=recall is for classes"),
    (TASK, HOLD | {"claim": "ppv:0.1"}, "claim=ppv:0.1 is for two classes"),
    (TASK, HOLD | {"require": "sensitivity>=0.9"}, "require=sensitivity>=0.9 is for two classes"),
    (TASK, HOLD | {"answer": "error<=0.1"}, "answer=error<=0.1 is for classes"),
    (TASK, HOLD | {"accept": "error<=0.1"}, "accept=error<=0.1 is for classes"),
    (TASK, HOLD | {"holdout_bound": "stevens"}, "holdout_bound=stevens is for classes"),
    (TASK, {"balance": "up"}, "balance=up is for classes"),
    (
        TASK,
        HOLD | {"claim": "within:0.99"},
        "claim=within:0.99 takes 299 held-out rows at least, and 45 are expected: hold out more",
    ),
    (TASK, HOLD | {"holdout_share": 0.97}, "leave 3: leave at least 6 to learn from"),
    (CLASSES, {"learner": "forest"}, "criterion=clipped is for numbers, and"),
    (
        CLASSES,
        OF_CLASSES | {"claim": "within:0.5"},
        "claim=within:0.5 is for numbers, and the target 'y' has 2 classes (",
    ),
    (CLASSES, OF_CLASSES | {"accept": "clipped<=3"}, "accept=clipped<=3 is for numbers, and the target"),
]


@pytest.mark.parametrize(("task", "options", "words"), NOT_OF_NUMBERS)
def test_what_does_not_go_with_numbers_is_refused(task, options, words):
    with pytest.raises(InputError) as refused:
        make_problem(task, **options)
    assert words in str(refused.value)


VALUES = [
    *(({"clip": clip}, "is not allowed: name the error from which on") for clip in (0, -1, np.inf, np.nan)),
    *(({"clip": clip}, r"clip=.* is not a number") for clip in ("fifty", True, [5])),
    *(
        ({"clip": 5, "claim": f"within{share}"}, r"write within:0\.9")
        for share in ("", ":", ":0", ":1", ":x")
    ),
    (
        {"clip": 5, "certify": "paper", "claim": "within:0.9"},
        "claim='within:0.9' requires certify holdout, not",
    ),
]


@pytest.mark.parametrize(("options", "words"), VALUES)
def test_a_clip_and_a_share_of_rows_are_numbers_in_their_range(options, words):
    with pytest.raises(InputError, match=words):
        Study.of(learner="ridge", **options)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("sensitivity:0.9", "sensitivity>=0.9"),
        (" error:0.05 ", "error<=0.05"),
        ("ppv:0.02:0.3", "ppv:0.02>=0.3"),
        ("recall:0.5", "recall>=0.5"),
        ("within:0.8:5", "within:0.8<=5"),
        ("clipped:20", "clipped<=20"),
    ],
)
def test_a_condition_without_its_sign_means_the_same(text, means):
    """A shell takes signs for itself where they are not quoted."""
    assert parse_condition("accept", text) == parse_condition("accept", means)
    short = re.split("[<>]=", means)[0]
    with pytest.raises(InputError, match=r"lacks its value: a shell takes [<>] for itself, so quote it, as"):
        parse_condition("accept", short)
    for wrong in (f"{text}:", f"{means}:1", "speed:0.9"):
        with pytest.raises(InputError):
            parse_condition("accept", wrong)


@pytest.mark.parametrize("text", ["within:0.8<=5", "clipped<=2.5", "clipped<=100"])
def test_conditions_on_numbers_are_in_units_of_the_target(text):
    assert str(parse_condition("accept", text)) == text
    study = make_problem(certify="holdout", claim="refit,within:0.8", accept=text).study
    assert Study.from_json(study.to_json()) == study


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accept": "clipped:5<=2"}, "the clip is an option of its own: write clipped<=2"),
        ({"accept": "clipped<=0"}, "accept=clipped<=0: '0' is no positive number: write clipped<=20"),
        ({"accept": "within:0.9<=far"}, "'far' is no positive number: write within:0.9<=20"),
        ({"accept": "within:0.9>=3"}, "is that it is at most a value: write within:0.9<=3"),
        ({"accept": "within:0.8<=3"}, "is about what is not claimed: add within:0.8 to the claims"),
        ({"accept": "clipped<=3", "claim": "within:0.9"}, "is about what is not claimed: add refit"),
        ({"accept": "mean<=3"}, "mean is not known here: choose from error, answered_error, answered"),
    ],
)
def test_conditions_on_numbers_that_cannot_be_met_are_refused(options, words):
    with pytest.raises(InputError) as refused:
        make_problem(**{"certify": "holdout", "claim": "refit,within:0.9", **options})
    assert words in str(refused.value)


def test_as_many_rows_as_a_share_takes_are_enough():
    for share, rows in ((0.9, 29), (0.8, 14)):  # share**rows is at most 0.05 for the first time
        assert share**rows <= 0.05 < share ** (rows - 1)
        assert make_problem(
            certify="holdout", holdout_share=rows / N + 1e-9, claim=f"within:{share}"
        ).held.size
        with pytest.raises(InputError, match=f"takes {rows} held-out rows at least, and {rows - 1} are"):
            make_problem(certify="holdout", holdout_share=(rows - 1) / N + 1e-9, claim=f"within:{share}")


def test_every_claim_about_numbers_has_an_equal_share_of_delta():
    shares = {"refit": 1, "within:0.9": 1, "refit,within:0.9": 2, "refit,within:0.5,within:0.9": 3}
    for claim, count in shares.items():
        study = Study.of(learner="ridge", clip=5, certify="holdout", claim=claim)
        assert study.certification.n_shares == count
