"""Algorithm 1 written as the paper's plain loop with scikit-learn, on the same splits, agrees in all."""

import math

import numpy as np
import pytest
from conftest import blobs
from scipy.stats import beta
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ckcv_ray.data.task import Table
from ckcv_ray.runs.run import run_table
from ckcv_ray.study import Execution, Study

Found = tuple[float, tuple[float, float, int], float, list[int]]


def upper(errors: int, m: int, delta: float) -> float:
    return 1.0 if errors == m else float(beta.ppf(1 - delta, errors + 1, m - errors))


def wrong(study: Study, table: Table, C: float, gamma: float, fit: np.ndarray, score: np.ndarray) -> int:
    scaler = StandardScaler(with_mean=study.scaling == "standard", with_std=study.scaling == "standard")
    X, y = scaler.fit_transform(table.X[fit]), table.y[fit]
    if len(set(y)) == 1:
        return int(np.sum(table.y[score] != y[0]))
    machine = SVC(C=C, gamma=gamma, tol=study.tolerance).fit(X, y)
    decision = machine.decision_function(scaler.transform(table.X[score]))
    return int(np.sum(table.y[score] * decision <= 1e-9))


def algorithm_1(study: Study, table: Table) -> Found:
    best: Found = (math.inf, (0.0, 0.0, 0), math.inf, [])
    for k in study.k or range(3, table.n + 1):
        for gamma in study.gamma:
            for C in study.C:
                l_ms = l_ee = 0.0
                counts = []
                splits = k if study.resampling == "rotation" else study.n_splits
                for i in range(splits):
                    split = study.split(table.n, k, i)
                    m = len(split.select)
                    l_ms += upper(wrong(study, table, C, gamma, split.train, split.select), m, study.delta)
                    both = np.sort(np.concatenate([split.train, split.select]))
                    counts.append(wrong(study, table, C, gamma, both, split.estimate))
                    l_ee += upper(counts[-1], m, study.delta)
                found = (l_ms / splits, (C, gamma, k), l_ee / splits, counts)
                best = min(best, found, key=lambda f: (round(f[0], 12), f[1]))
    return best


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_plain_loop_gives_the_same_answer(seed: int, scaling: str) -> None:
    study = Study(
        C=(0.1, 1.0, 10.0, 100.0),
        gamma=(0.01, 0.1, 1.0),
        k=(3, 4, 5, 10),
        n_splits=4,
        seed=seed,
        scaling=scaling,
        tolerance=1e-6,
    )
    table = blobs(60, d=3, seed=seed, shift=1.5)
    l_ms, triple, l_ee, counts = algorithm_1(study, table)
    result = run_table(study, table, execution=Execution("serial"))
    assert (result.C, result.gamma, result.k) == triple
    assert result.l_ms == pytest.approx(l_ms, rel=1e-12)
    assert result.l_ee == pytest.approx(l_ee, rel=1e-12)
    assert list(result.certificate.errors) == counts


def test_the_conventional_rotation_gives_the_same_answer() -> None:
    study = Study(C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0), k=(5, 7), resampling="rotation", tolerance=1e-6)
    table = blobs(62, d=3, shift=1.5)
    l_ms, triple, l_ee, counts = algorithm_1(study, table)
    result = run_table(study, table, execution=Execution("serial"))
    assert (result.C, result.gamma, result.k) == triple
    assert (result.l_ms, result.l_ee) == pytest.approx((l_ms, l_ee), rel=1e-12)
    assert list(result.certificate.errors) == counts
    assert len(counts) == result.k
