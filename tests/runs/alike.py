"""What the tests of runs share.

Small studies, when two results are equal, units that fail, and the paper's plain loop with scikit-learn.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Result, Study, Task
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.complete import split_complete, split_rotation
from ckcv_ray.core.schedule import Unit
from ckcv_ray.engine import evaluate

SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5)
STUDIES = [SMALL.replace(seed=seed) for seed in range(6)]
Found = tuple[float, tuple[float, float, int], float, list[int]]


def same(a: Result, b: Result) -> bool:
    """Whether two results are equal but for what depends on the run."""
    models = all(
        a.problem.learner.codec.same(one.model, other.model)
        for one, other in zip(a.ensemble.members, b.ensemble.members, strict=True)
    )
    return models and a.certificate.claims == b.certificate.claims and a.candidates.equals(b.candidates)


def breaking(monkeypatch: pytest.MonkeyPatch, broken: Callable[[Unit], bool]) -> None:
    """Have some units raise."""
    real = evaluate._prepare

    def prepare(unit: Unit, inputs: evaluate.Inputs) -> evaluate.PreparedSplit:
        if broken(unit):
            raise MemoryError("no room")
        return real(unit, inputs)

    monkeypatch.setattr(evaluate, "_prepare", prepare)


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


def judge(
    study: Study, task: Task, C: float, gamma: float, fit: np.ndarray, score: np.ndarray
) -> tuple[float, int]:
    """What a machine of LIBSVM costs on other rows than it is fitted on, and how many it has wrong."""
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
    """L_MS of the winner, its C, gamma and k, its L_EE, and how many rows each of its members has wrong."""
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
                    l_ms += judge(study, task, C, gamma, split.train, split.select)[0]
                    both = np.sort(np.concatenate([split.train, split.select]))
                    estimate, errors = judge(study, task, C, gamma, both, split.estimate)
                    l_ee += estimate
                    counts.append(errors)
                found = (l_ms / splits, (C, gamma, k), l_ee / splits, counts)
                best = min(best, found, key=lambda f: (round(f[0], 10), f[1]))
    return best
