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


def plain(words, task=TASK, /, **options):
    """A case: what is said of options on a table."""
    return words, task, options


def held(words, task=TASK, /, **options):
    """A case of rows held out."""
    return plain(words, task, certify="holdout", **options)


def accepts(words, condition, claim="refit,within:0.9"):
    """A case of a condition on what is claimed."""
    return held(words, accept=condition, claim=claim)


REFUSED = [
    plain("criterion=clipped needs a clip", clip=None, criterion="clipped"),
    plain("criterion=error is for classes, and the target 'y' has numbers", clip=None, criterion="error"),
    plain("choose one of numbers, such as ridge", learner="forest"),
    plain("balance=up is for classes", balance="up"),
    plain("criterion=clipped is for numbers, and", CLASSES, learner="forest"),
    plain("claim=within:0.5 is for numbers, and", CLASSES, **OF_CLASSES, claim="within:0.5"),
    plain("claim='within:0.9' requires certify holdout", certify="paper", claim="within:0.9"),
    *(plain("is not allowed: name the error from which on", clip=clip) for clip in (0, np.inf, np.nan)),
    held("claim=within:0.5 counts rows as independent", GROUPED, claim="refit,within:0.5"),
    held("subgroups=x0 counts rows of a subgroup as", GROUPED, subgroups="x0"),
    held("claim=vote is for classes, and the target 'y' has numbers: leave it out", claim="vote"),
    held("claim=auc is for two classes", claim="auc"),
    held("require=sensitivity>=0.9 is for two classes", require="sensitivity>=0.9"),
    held("answer=error<=0.1 is for classes", answer="error<=0.1"),
    held("holdout_bound=stevens is for classes", holdout_bound="stevens"),
    held("takes 299 held-out rows at least, and 45 are expected: hold out more", claim="within:0.99"),
    *(held("write within:0.9", claim=f"within{share}") for share in ("", ":", ":0", ":1", ":x")),
    accepts("the clip is an option of its own: write clipped<=2", "clipped:5<=2"),
    accepts("accept=clipped<=0: '0' is no positive number: write clipped<=20", "clipped<=0"),
    accepts("is that it is at most a value: write within:0.9<=3", "within:0.9>=3"),
    accepts("is about what is not claimed: add refit", "clipped<=3", claim="within:0.9"),
    accepts("mean is not known here: choose from error, answered_error, answered", "mean<=3"),
]


@pytest.mark.parametrize(("words", "task", "options"), REFUSED)
def test_what_does_not_go_with_numbers_is_refused(words, task, options):
    with pytest.raises(InputError) as refused:
        make_problem(task, **options)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        (" error:0.05 ", "error<=0.05"),
        ("ppv:0.02:0.3", "ppv:0.02>=0.3"),
        ("within:0.8:5", "within:0.8<=5"),
        ("clipped:2.5", "clipped<=2.5"),
    ],
)
def test_a_condition_without_its_sign_means_the_same(text, means):
    """A shell takes signs for itself where they are not quoted."""
    assert str(parse_condition("accept", text)) == str(parse_condition("accept", means)) == means
    for wrong in (re.split("[<>]=", means)[0], f"{text}:", f"{means}:1", "speed:0.9"):
        with pytest.raises(InputError):
            parse_condition("accept", wrong)


def test_as_many_rows_as_a_share_takes_are_enough():
    for share, rows in ((0.9, 29), (0.8, 14)):  # share**rows is at most 0.05 for the first time
        assert share**rows <= 0.05 < share ** (rows - 1)
        assert make_problem(
            certify="holdout", holdout_share=rows / N + 1e-9, claim=f"within:{share}"
        ).held.size
        with pytest.raises(InputError, match=f"takes {rows} held-out rows at least, and {rows - 1} are"):
            make_problem(certify="holdout", holdout_share=(rows - 1) / N + 1e-9, claim=f"within:{share}")
