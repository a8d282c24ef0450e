"""Claims by class and of the AUC: exact coverage, what they are about, and what is refused."""

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs

from ckcv_ray import Task
from ckcv_ray.study.problem import Problem

TWO = ("sensitivity", "specificity")
HELD = SMALL.replace(certify="holdout", claim=TWO)


# Exact coverage of held-out rows


# Runs


def test_the_positive_class_is_named_in_every_sentence():
    task = blobs(60)
    named = Task.of(task.X, np.array(["sick", "healthy"])[task.y])  # sick is 0, and last in sorted order
    one = run(HELD, named).certificate.claims
    other = run(HELD.replace(positive="healthy"), named).certificate.claims
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
