"""Permutation tests: the p of scikit-learn's permutation_test_score, the same after any interruption."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import _validation, permutation_test_score
from sklearn.naive_bayes import GaussianNB

from ckcv_ray import Execution, evaluate
from ckcv_ray.core.schedule import Stage
from ckcv_ray.runs.scored import judge_by_permutations
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.problem import OUTER

SERIAL = Execution("serial")
X, Y = load_breast_cancer(return_X_y=True)
X, Y = np.round(X[::8, 3:6] + 80 * np.random.default_rng(0).normal(size=(72, 3))), Y[::8]
GROUPS = np.arange(72) // 3


def ask_sklearn(monkeypatch, result, estimator, scoring, groups=None):
    """The test by scikit-learn with our permutations, on our splits of each."""
    problem = result.problem
    numbers = iter(range(result.study.permutations))
    permuted = [problem.permute(number) for number in range(result.study.permutations)]
    monkeypatch.setattr(_validation, "_shuffle", lambda y, g, state: permuted[next(numbers)].task.y)

    class Splits:
        """Called first for the targets as they are, then for each permutation."""

        calls = iter([problem, *permuted])

        def split(self, X, y=None, groups=None):
            of = next(self.calls)
            return (of.rows(Stage.SELECT, OUTER, i) for i in range(of.sizes[OUTER].n_splits))

        def get_n_splits(self, *_):
            return problem.sizes[OUTER].n_splits

    asked = {"groups": groups, "cv": Splits(), "scoring": scoring, "n_permutations": len(permuted)}
    return permutation_test_score(estimator, X, problem.task.y, **asked)


@pytest.mark.parametrize(
    ("options", "scoring"),
    [
        ({"measure": "accuracy"}, "accuracy"),
        ({"measure": "log_loss,auc"}, "neg_log_loss"),
        ({"measure": "auc", "resampling": "kfold:4", "stratify": True}, "roc_auc"),
        ({"measure": "accuracy", "groups": GROUPS}, "accuracy"),
        ({"learner": "linear_regression", "y": X[:, 0] + X[:, 1]}, "neg_root_mean_squared_error"),
    ],
)
def test_p_is_that_of_scikit_learn(options, scoring, monkeypatch):
    asked = {"y": Y, "learner": "naive_bayes", "resampling": "kfold:3", "permutations": 19} | options
    result = evaluate(X, execution=SERIAL, **asked)
    (entry,), score = result.entries, result.scores[0]
    test = judge_by_permutations(result, entry, score)
    estimator = LinearRegression() if "y" in options else GaussianNB()
    mean, _, p = ask_sklearn(monkeypatch, result, estimator, scoring, options.get("groups"))
    assert test.p == p
    np.testing.assert_allclose(result.figures(entry, score).mean, -score.loss * mean, rtol=1e-14)
    assert test.n == 19
    assert f"p {test.p:.4g}: {test.as_good} of 19 permutations" in result.summary()


def test_a_permutation_without_a_mean_counts_as_good():
    """A scored part may lack a class of the permuted labels; without it p would be too small."""
    y = np.array([1] * 4 + [0] * 20)
    rows = np.column_stack([y * 4.0, np.arange(24.0)])
    split = [(np.delete(np.arange(24), part), np.array(part)) for part in ([0, 4, 8, 12], [1, 5, 9, 13])]
    options = {"learner": "naive_bayes", "resampling": split, "measure": "auc", "execution": SERIAL}
    result = evaluate(rows, y, permutations=30, **options)
    means = [evaluate(rows, result.problem.permute(i).task.y, **options) for i in range(30)]
    means = [np.mean(other.of_splits(other.entries[0], other.scores[0])) for other in means]
    test = judge_by_permutations(result, result.entries[0], result.scores[0])
    assert test.undefined == np.isnan(means).sum() > 0
    assert test.as_good == np.sum(np.array(means) >= 1.0)
    assert test.p == (1 + test.undefined + test.as_good) / 31
    assert "without a mean count as if they were" in " ".join(result.summary().split())


def test_a_folder_keeps_them(tmp_path):
    options = {"learner": "naive_bayes", "resampling": "kfold:3", "measure": "accuracy", "permutations": 5}
    result = evaluate(X, Y, tmp_path / "run", SERIAL, **options)
    stored = json.loads((tmp_path / "run" / "scores.json").read_text())
    test = stored["entries"][0]["scores"]["accuracy"]["permutations"]
    assert test == judge_by_permutations(result, result.entries[0], result.scores[0])._asdict()
    assert verify(tmp_path / "run", rerun=True, execution=SERIAL).verdict.startswith("every figure")
    plain = evaluate(X, Y, execution=SERIAL, **options | {"permutations": 0})
    assert plain.run_id != result.run_id
    assert plain.to_frame()["accuracy"].equals(result.to_frame()["accuracy"])
