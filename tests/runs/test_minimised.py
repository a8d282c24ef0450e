"""The winner is a plain loop's, whatever is minimised, and the best of what each learner selects."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from decision_stump import DecisionStump
from finished import SERIAL
from nearest_centroid import NearestCentroid
from scipy.stats import beta
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Job, Result, Study, Task, verify
from ckcv_ray.claims.certify import weight
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.extend import register
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem

COST = "cost:sick=10,healthy=1"
Found = tuple[float, tuple[float, float, int], float, list[int]]
CRITERIA = ("error", "balanced", COST, "mean_error")


@register
@dataclass(frozen=True)
class Failing(NearestCentroid):
    """Raises in every fit."""

    name = "failing"

    def fit(self, X: Any, y: Any, settings: Any) -> Any:
        raise ArithmeticError("no fit at all")


def clinic(n: int = 60, seed: int = 0, sick: float = 0.3) -> Task:
    """Two overlapping clouds of different sizes."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,)))
    y = np.arange(n) < sick * n
    return Task.of(rng.normal(size=(n, 2)) + 1.2 * y[:, None], np.where(y, "sick", "healthy"))


def upper(errors: float, m: int) -> float:
    return 1.0 if errors == m else float(beta.ppf(0.95, errors + 1, m - errors))


def value(criterion: str, wrong: list[int], rows: list[int]) -> float:
    """The value of a split, by rows of each class; an error on the second costs ten times as much."""
    if criterion == "error":
        return upper(sum(wrong), sum(rows))
    if criterion == "mean_error":
        return sum(wrong) / sum(rows)
    if criterion == "balanced":
        return float(np.mean([upper(x, m) if m else 1.0 for x, m in zip(wrong, rows, strict=True)]))
    return upper(0.1 * wrong[0] + wrong[1], sum(rows))


def judge(study: Study, task: Task, C: float, gamma: float, fit: Any, score: Any) -> tuple[float, int]:
    """What a LIBSVM machine costs on rows other than those it is fitted on, and how many it gets wrong."""
    standard, signs = study.learner.scale == "standard", 2 * task.y - 1
    scaler = StandardScaler(with_mean=standard, with_std=standard)
    X, y = scaler.fit_transform(task.X[fit]), signs[fit]
    if len(set(y)) == 1:
        wrong = signs[score] != y[0]
    else:
        machine = SVC(C=C, gamma=gamma, tol=study.learner.tolerance).fit(X, y)
        wrong = signs[score] * machine.decision_function(scaler.transform(task.X[score])) <= 1e-9
    errors, rows = (np.bincount(task.y[part], minlength=2).tolist() for part in (score[wrong], score))
    return value(study.criterion.name, errors, rows), sum(errors)


def algorithm_1(study: Study, task: Task) -> Found:
    """L_MS of the winner, its C, gamma and k, its L_EE, and how many rows each of its members gets wrong."""
    best: Found = (math.inf, (0.0, 0.0, 0), math.inf, [])
    for k in study.resampling.k or range(3, task.n + 1):
        for gamma in study.learner.gamma:
            for C in study.learner.C:
                l_ms = l_ee = 0.0
                counts = []
                (size,) = replace(study.resampling, k=(k,)).fold_sizes(task.n)
                splits, draws = size.n_splits, Draws(study.seed, task.salt)
                for i in range(splits):
                    split = study.resampling.split(Strata(task.n), size, i, draws)
                    l_ms += judge(study, task, C, gamma, split.train, split.select)[0]
                    both = np.sort(np.concatenate([split.train, split.select]))
                    estimate, errors = judge(study, task, C, gamma, both, split.estimate)
                    l_ee += estimate
                    counts.append(errors)
                found = (l_ms / splits, (C, gamma, k), l_ee / splits, counts)
                best = min(best, found, key=lambda f: (round(f[0], 10), f[1]))
    return best


LOOPS = {
    **{criterion: (clinic(48), {"k": (3, 4), "criterion": criterion}) for criterion in CRITERIA},
    **{
        f"{scale} {seed}": (
            blobs(60, d=3, seed=seed, shift=1.5),
            {"C": (0.1, 1.0, 10.0, 100.0), "k": (3, 4, 5, 10), "seed": seed, "scale": scale},
        )
        for seed, scale in enumerate(("standard", "none"))
    },
    "rotation": (blobs(62, d=3, shift=1.5), {"k": (5, 7), "resampling": "rotation"}),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_papers_plain_loop_with_scikit_learn_gives_the_same_answer(name: str) -> None:
    task, options = LOOPS[name]
    grids = {"C": (0.1, 1.0, 10.0), "gamma": (0.01, 0.1, 1.0), "param": {"tolerance": 1e-6}}
    study = Study.paper(**grids | ({} if name == "rotation" else {"n_splits": 4}) | options)
    l_ms, winner, l_ee, counts = algorithm_1(study, task)
    result = run_job(Job(study, task), SERIAL)
    assert (result.setting["C"], result.setting["gamma"], result.k) == winner
    found = result.certificate.l_ms, result.l_ee
    assert found == pytest.approx((l_ms, l_ee), rel=1e-8 if name == COST else 1e-12)
    assert list(result.certificate.errors) == counts
    assert name != "rotation" or len(counts) == result.k


# Several learners


SVM = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))
CENTROID, STUMP = NearestCentroid((0.5, 2.0)), DecisionStump()
CHOICE = Choice((SVM, CENTROID, STUMP))
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
    return run_job(Job(study, task, out), SERIAL)


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
