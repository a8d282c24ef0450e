"""The baseline: exact errors of the constant, and what is said where a bound or the winner is no better."""

from dataclasses import replace

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import unwrap

from ckcv_ray import Result, Study, Task
from ckcv_ray.errors import ceil_percent

CONSTANT = SMALL.replace(C=(1e-3,), gamma=(1e-3,), k=3)  # too little weight on the rows to learn anything


def noise(n: int, rare: int, seed: int = 0) -> Task:
    """Rows that say nothing of their labels: the first ``rare`` are 'ill', the others 'well'."""
    X = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, rare))).normal(size=(n, 2))
    return Task.of(X, np.where(np.arange(n) < rare, "ill", "well"))


@pytest.fixture(scope="module")
def constant() -> Result:
    """A run whose winner is a constant."""
    return run(CONSTANT, noise(60, rare=12))


WORTHLESS = "is not below 20.00 %, the error of always predicting 'well' on the learning rows"
NOTHING_LEARNED = (
    "5 of 5 members of F* are right about rows of one class alone ('well': 5): they are no better than a "
    "constant."
)


def test_a_constant_winner_and_a_worthless_bound_are_pointed_out_once(constant: Result) -> None:
    shown = unwrap(constant.summary(details=True))
    assert f"The bound {ceil_percent(constant.proven)} {WORTHLESS}" in shown
    assert shown.count(NOTHING_LEARNED) == shown.count(WORTHLESS) == 1
    assert constant.summary().startswith("Nothing can be quoted yet. The bound")
    assert constant.summary().count("CAUTION") == 1
    assert constant.certificate.constants["members"] == [1] * 5
    assert constant.certificate.constant


def test_a_bound_equal_to_the_baseline_says_nothing(constant: Result) -> None:
    claim = replace(constant.certificate.first, bound=0.2)
    less = replace(claim, bound=float(np.nextafter(0.2, 0)))
    assert [constant.certificate.is_worthless(each) for each in (claim, less)] == [True, False]


def test_models_that_are_no_better_than_a_constant_are_pointed_out(constant: Result) -> None:
    for members, said in (
        ((1, None, None), []),  # by chance
        ((1, None, 1), ["2 of 3 members of F* are right about rows of one class alone ('well': 2)"]),
        ((1, 0, 1), ["3 of 3 members of F* are right about rows of one class alone ('ill': 1, 'well'"]),
    ):
        of_models = {"members": members, "refit": None}
        found = replace(constant.certificate, constants=of_models).describe_constants()
        assert [one[: len(start)] for one, start in zip(found, said, strict=True)] == said


def test_members_that_know_their_rows_by_heart_are_no_better_elsewhere() -> None:
    """On every split rows of one class alone are right, though the learning rows are all right."""
    rng, n_classes = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(90, 3))), 3
    task = Task.of(rng.normal(size=(90, 30)), rng.permutation(np.arange(90) % n_classes))
    study = Study.paper(C=1000.0, gamma=100.0, k=3, n_splits=6)  # a narrow kernel knows its rows by heart
    result = run(study.replace(certify="holdout"), task)
    certificate, members = result.certificate, result.ensemble.members
    for member, number in zip(members, certificate.constants["members"], strict=True):
        right = [c for c in range(n_classes) if member.errors[c] < member.n_estimate[c]]
        assert right in ([number], [])  # none: it is undecided, and the first class is predicted
    sentence, *of_refit = certificate.describe_constants()
    assert bool(of_refit) == (certificate.constants["refit"] is not None)
    assert f"CAUTION {sentence}" in unwrap(result.summary(details=True))
