"""Algorithm 1 written as the paper's plain loop with scikit-learn, on the same splits, agrees in all."""

import math
from itertools import product

import numpy as np
import pytest
from conftest import blobs
from scipy.stats import beta
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Execution, Job, Study, Task
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.complete import split_complete, split_rotation
from ckcv_ray.runs.run import run_job

Found = tuple[float, tuple[float, float, int], float, list[int]]


def upper(errors: int, m: int, delta: float) -> float:
    return 1.0 if errors == m else float(beta.ppf(1 - delta, errors + 1, m - errors))


def wrong(study: Study, task: Task, C: float, gamma: float, fit: np.ndarray, score: np.ndarray) -> int:
    standard, signs = study.learner.scale == "standard", 2 * task.y - 1
    scaler = StandardScaler(with_mean=standard, with_std=standard)
    X, y = scaler.fit_transform(task.X[fit]), signs[fit]
    if len(set(y)) == 1:
        return int(np.sum(signs[score] != y[0]))
    machine = SVC(C=C, gamma=gamma, tol=study.learner.tolerance).fit(X, y)
    decision = machine.decision_function(scaler.transform(task.X[score]))
    return int(np.sum(signs[score] * decision <= 1e-9))


def algorithm_1(study: Study, task: Task) -> Found:
    best: Found = (math.inf, (0.0, 0.0, 0), math.inf, [])
    for k in study.resampling.k or range(3, task.n + 1):
        for gamma in study.learner.gamma:
            for C in study.learner.C:
                l_ms = l_ee = 0.0
                counts = []
                turns = study.resampling.name == "rotation"
                splits = k if turns else study.resampling.n_splits
                for i in range(splits):
                    given = (i,) if turns else (i, study.resampling.n_splits)
                    split = (split_rotation if turns else split_complete)(
                        task.n, k, *given, Draws(study.seed, task.salt)
                    )
                    m = len(split.select)
                    l_ms += upper(wrong(study, task, C, gamma, split.train, split.select), m, study.delta)
                    both = np.sort(np.concatenate([split.train, split.select]))
                    counts.append(wrong(study, task, C, gamma, both, split.estimate))
                    l_ee += upper(counts[-1], m, study.delta)
                found = (l_ms / splits, (C, gamma, k), l_ee / splits, counts)
                best = min(best, found, key=lambda f: (round(f[0], 12), f[1]))
    return best


@pytest.mark.parametrize(("seed", "scale"), [*product((0, 1), ("standard", "none"))])
def test_the_plain_loop_gives_the_same_answer(seed: int, scale: str) -> None:
    study = Study.paper(
        C=(0.1, 1.0, 10.0, 100.0),
        gamma=(0.01, 0.1, 1.0),
        k=(3, 4, 5, 10),
        n_splits=4,
        seed=seed,
        scale=scale,
        tolerance=1e-6,
    )
    task = blobs(60, d=3, seed=seed, shift=1.5)
    l_ms, winner, l_ee, counts = algorithm_1(study, task)
    result = run_job(Job(study, task), Execution("serial"))
    assert (result.setting["C"], result.setting["gamma"], result.k) == winner
    assert result.l_ms == pytest.approx(l_ms, rel=1e-12)
    assert result.l_ee == pytest.approx(l_ee, rel=1e-12)
    assert list(result.certificate.counts.errors) == counts


def test_the_conventional_rotation_gives_the_same_answer() -> None:
    study = Study.paper(
        C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0), k=(5, 7), resampling="rotation", tolerance=1e-6
    )
    task = blobs(62, d=3, shift=1.5)
    l_ms, winner, l_ee, counts = algorithm_1(study, task)
    result = run_job(Job(study, task), Execution("serial"))
    assert (result.setting["C"], result.setting["gamma"], result.k) == winner
    assert (result.l_ms, result.l_ee) == pytest.approx((l_ms, l_ee), rel=1e-12)
    assert list(result.certificate.counts.errors) == counts
    assert len(counts) == result.k
