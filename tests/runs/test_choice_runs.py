"""Runs of several learners: the winner is the best of what each alone selects."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_stump import DecisionStump
from failing_learner import Failing
from nearest_centroid import NearestCentroid

from ckcv_ray import Execution, Result, Study, Task, verify
from ckcv_ray.claims.certify import weight
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import Problem

SVM = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))
CENTROID, STUMP = NearestCentroid((0.5, 2.0)), DecisionStump()
CHOICE = Choice((SVM, CENTROID, STUMP))
SERIALLY = Execution("serial")
OPTIONS: dict[str, Any] = {"k": (3, 5, 8), "n_splits": 5, "seed": 3}
STUDY = Study.paper(**OPTIONS).with_learner(CHOICE)
OTHERS = {
    "error": {},
    "balanced": {"criterion": "balanced"},
    "cost": {"criterion": "cost:0=3,1=1"},
    "rotation": {"resampling": "rotation"},
    "holdout": {"certify": "holdout"},
}


def table(seed: int, n: int = 60) -> Task:
    """Two clouds; where the seed is even, on so few points that many candidates are equal."""
    rng = np.random.default_rng(np.random.SeedSequence(21, spawn_key=(seed,)))
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + y[:, None]
    return Task.of(X if seed % 2 else np.round(X / 2) + 0.1, y)


def solved(study: Study, task: Task, out: Path | None = None) -> Result:
    return run_job(Job(study, task, out), SERIALLY)


# the winner


@pytest.mark.parametrize("criterion", OTHERS)
@pytest.mark.parametrize("seed", range(2))
def test_the_winner_is_the_best_of_what_each_learner_alone_selects(seed: int, criterion: str) -> None:
    task, study = table(seed), STUDY.replace(**OTHERS[criterion])
    alone = {label: solved(study.with_learner(one), task) for label, one in CHOICE.by_label.items()}
    for order in (CHOICE, Choice((STUMP, CENTROID, SVM))):
        together = solved(study.with_learner(order), task)
        best = min(order.by_label, key=lambda label: alone[label].certificate.l_ms)  # of equals the first
        assert together.setting == {"learner": best, **alone[best].setting}
        assert together.k == alone[best].k
        assert together.certificate.l_ms.hex() == alone[best].certificate.l_ms.hex()
        assert together.l_ee.hex() == alone[best].l_ee.hex()
        pairs = zip(together.ensemble.members, alone[best].ensemble.members, strict=True)
        codec = order.by_label[best].codec
        assert all(codec.same(one.model.model, other.model) for one, other in pairs)
        for row in together.to_json()["per_learner"]:
            if row["l_ms"] is not None:
                assert row["l_ms"] == alone[row["learner"]].certificate.l_ms
            assert row["lower_bound"] <= alone[row["learner"]].certificate.l_ms


def find_winner(result: Result) -> tuple[int, int]:
    (row,) = (row for row in result.candidates.to_pylist() if row["state"] == "winner")
    return row["path"], row["step"]


def test_of_equal_learners_the_one_named_first_wins_whatever_its_step() -> None:
    """The first has the winning setting at its second step, the other one at its first."""
    task = table(10)
    learners = NearestCentroid((0.01, 0.5)), NearestCentroid((0.5, 50.0))
    alone = [solved(STUDY.with_learner(one), task) for one in learners]
    assert [*map(find_winner, alone)] == [(0, 1), (0, 0)]
    assert alone[0].certificate.l_ms == alone[1].certificate.l_ms
    result = solved(STUDY.with_learner(Choice(learners, ("first", "second"))), task)
    assert result.setting == {"learner": "first", "metric": "pooled", "shrinkage": 0.5}
    assert find_winner(result) == (0, 1)
    assert [row["state"] for row in result.to_json()["per_learner"]] == ["winner", "tied"]
    assert all(row["l_ms"] == result.certificate.l_ms for row in result.to_json()["per_learner"])
    other = solved(STUDY.with_learner(Choice(learners[::-1], ("first", "second"))), task)
    assert (other.setting, find_winner(other)) == (result.setting, (0, 0))


# paper


@pytest.mark.parametrize("learner", [CHOICE, Choice((NearestCentroid((1.0,)), SVM, STUMP))])
@pytest.mark.parametrize("n", [45, 90])
def test_shares_of_delta_sum_to_at_most_one(learner: Any, n: int) -> None:
    problem = Problem.of(Study(learner=learner), table(1, n))
    shares = [
        weight(problem, size.k, number)
        for number, settings in enumerate(problem.settings_per_learner.tolist())
        for size in problem.sizes
        for _ in range(settings)
    ]
    assert 1 - Fraction(1, 10**30) < sum(shares) <= 1


# failures


def test_a_learner_that_always_fails_leaves_the_others_intact(tmp_path: Path) -> None:
    task, learners = table(1), [SVM, STUMP]
    without = solved(STUDY.with_learner(Choice(tuple(learners))), task)
    learners.insert(1, Failing())
    result = solved(STUDY.with_learner(Choice(tuple(learners))), task, tmp_path / "run")
    for name in ("setting", "k", "l_ms", "errors"):
        assert getattr(result.certificate, name) == getattr(without.certificate, name)
    assert result.certificate.provisional
    rows = {row["learner"]: row for row in result.to_json()["per_learner"]}
    assert rows["failing"]["state"] == "failed"
    assert 0 < rows["failing"]["failed"] <= rows["failing"]["candidates"]
    assert [rows[label] for label in ("svm", "stump")] == without.to_json()["per_learner"]
    assert verify(tmp_path / "run").differences == []
