"""Estimates that combine splits, intervals, permutation tests: the numbers of scikit-learn or of papers."""

from itertools import product
from math import isnan, sqrt

import numpy as np
import pytest
from alike import pairs
from conftest import unwrap
from finished import SERIAL
from forgery import column, rewrite
from pyarrow import parquet
from scipy.stats import beta, t
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
    zero_one_loss,
)
from sklearn.model_selection import _validation, permutation_test_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from ckcv_ray import evaluate, load_scores, verify
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.result import compare_entries, judge_by_permutations, rank_entries
from ckcv_ray.study.problem import OUTER

X, Y = (part[::6] for part in load_breast_cancer(return_X_y=True))
NUMBERS, TARGET = (part[::4] for part in load_diabetes(return_X_y=True))
CLASSES = {
    "zero_one": lambda y, labels, shares: zero_one_loss(y, labels),
    "accuracy": lambda y, labels, shares: accuracy_score(y, labels),
    "f1": lambda y, labels, shares: f1_score(y, labels),
    "auc": lambda y, labels, shares: roc_auc_score(y, shares[:, 1]),
    "log_loss": lambda y, labels, shares: log_loss(y, shares, labels=[0, 1]),
}
VALUES = {
    "rmse": lambda y, values, _: root_mean_squared_error(y, values),
    "r2": lambda y, values, _: r2_score(y, values),
}
TABLES = {"classes": (X, Y, GaussianNB(), CLASSES), "numbers": (NUMBERS, TARGET, Ridge(), VALUES)}


def score(table, measure, train, scored):
    """The score, on some rows, of a model that is fitted on others."""
    A, y, model, measures = TABLES[table]
    fitted = clone(model).fit(A[train], y[train])
    shares = fitted.predict_proba(A[scored]) if measures is CLASSES else None
    return measures[measure](y[scored], fitted.predict(A[scored]), shares)


def compute(table, resampling, **options):
    A, y, model, measures = TABLES[table]
    return evaluate(
        A, y, learner=model, resampling=resampling, measure=list(measures), execution=SERIAL, **options
    )


@pytest.mark.parametrize("table", TABLES)
def test_the_632_estimate_is_that_of_efron(table):
    result = compute(table, "bootstrap632:7", seed=1)
    every, drawn = np.arange(len(TABLES[table][1])), [train for train, _ in pairs(result.problem)[:7]]
    for one in result.scores:
        out = [score(table, one.name, train, np.setdiff1d(every, train)) for train in drawn]
        expected = 0.368 * score(table, one.name, every, every) + 0.632 * np.mean(out)
        assert result.figures(result.entries[0], one).mean == pytest.approx(expected, rel=1e-12, abs=0)


def correct(err, out, gamma):
    """The .632+ estimate of a loss, as weights of both parts: Efron, Tibshirani (1997), 28 to 32."""
    capped = min(out, gamma)
    R = (capped - err) / (gamma - err) if capped > err and gamma > err else 0.0
    weight = 0.632 / (1 - 0.368 * R)
    return (1 - weight) * err + weight * capped + 0.632 * (out - capped)


def predict_all(model, A, y, train, losses):
    """The loss of each prediction of a model with each target: for all rows, (targets, predictions)."""
    fitted = clone(model).fit(A[train], y[train])
    if "log" in losses:
        eps = np.finfo(float).eps
        return -np.log(np.clip(fitted.predict_proba(A)[:, y].T, eps, 1 - eps))
    predicted = fitted.predict(A)
    if "zero" in losses:
        return (y[:, None] != predicted[None, :]).astype(float)
    return (y[:, None] - predicted[None, :]) ** 2


@pytest.mark.parametrize(
    ("table", "measure", "losses", "model"),
    [
        ("classes", "zero_one", "zero", GaussianNB()),
        ("classes", "accuracy", "zero", KNeighborsClassifier(1)),
        ("classes", "log_loss", "log", GaussianNB(var_smoothing=0.1)),
        ("numbers", "squared", "square", Ridge()),
    ],
)
@pytest.mark.parametrize("rows", [slice(None), slice(0, 24)])
def test_the_632_plus_estimate_is_that_of_efron_and_tibshirani(table, measure, losses, model, rows):
    A, y = (part[rows] for part in TABLES[table][:2])
    options = {"resampling": "bootstrap632plus:7", "measure": measure, "execution": SERIAL}
    result = evaluate(A, y, learner=model, **options)
    every, drawn = np.arange(len(y)), [train for train, _ in pairs(result.problem)[:7]]
    crossed = predict_all(model, A, y, every, losses)
    out = [np.diag(predict_all(model, A, y, train, losses)) for train in drawn]
    left = [np.setdiff1d(every, train) for train in drawn]
    means = [part[rest].mean() for part, rest in zip(out, left, strict=True)]
    pooled = np.concatenate([part[rest] for part, rest in zip(out, left, strict=True)]).mean()
    found = result.figures(result.entries[0], result.scores[0])
    for estimate, of_draws in ((found.mean, np.mean(means)), (found.pooled, pooled)):
        expected = correct(np.diag(crossed).mean(), of_draws, crossed.mean())
        loss = 1 - estimate if measure == "accuracy" else estimate
        assert loss == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("table", TABLES)
def test_the_optimism_is_that_of_harrell(table):
    result = compute(table, "optimism:6", seed=1)
    every, drawn = np.arange(len(TABLES[table][1])), [train for train, _ in pairs(result.problem)[:6]]
    for one in result.scores:
        on_drawn = [score(table, one.name, train, train) for train in drawn]
        on_all = [score(table, one.name, train, every) for train in drawn]
        expected = score(table, one.name, every, every) - np.mean(np.subtract(on_drawn, on_all))
        assert result.figures(result.entries[0], one).mean == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("resampling", ["bootstrap632plus:5", "optimism:5"])
def test_an_estimate_that_combines_splits_has_no_deviation_and_no_test(resampling, tmp_path):
    options = {"learner": "naive_bayes,constant", "measure": "zero_one,log_loss", "execution": SERIAL}
    result = evaluate(X, Y, tmp_path / "run", resampling=resampling, **options)
    for entry, one in product(result.entries, result.scores):
        assert np.isnan(result.figures(entry, one)[1:3]).all()
    assert result.complete
    assert not compare_entries(result, result.scores[0])
    assert result.study.resampling.note in unwrap(result.summary())
    assert verify(tmp_path / "run", rerun=True, execution=SERIAL).ok


def test_an_estimate_is_incomplete_if_any_of_its_splits_is():
    def fail_on_all(y, predicted):
        return float("nan") if len(y) == len(Y) and np.array_equal(y, Y) else 0.0

    options = {"learner": "naive_bayes", "resampling": "bootstrap632:4", "execution": SERIAL}
    result = evaluate(X, Y, measure=fail_on_all, **options)
    found = result.figures(result.entries[0], result.scores[0])
    assert (found.missing, found.undefined, isnan(found.mean)) == (0, 1, True)


@pytest.mark.parametrize("resampling", ["repeated_kfold:3x2", "nested:3:2"])
def test_stratified_groups_stay_whole_and_share_classes(resampling):
    groups = np.random.default_rng(0).integers(0, 30, len(Y))
    options = {"learner": "naive_bayes", "execution": SERIAL, "resampling": resampling}
    result = evaluate(X, Y, groups=groups, stratify=True, **options)
    assert result.complete
    for size in range(len(result.problem.sizes)):
        for train, scored in pairs(result.problem, size):
            assert not np.intersect1d(groups[train], groups[scored]).size
            if size == OUTER:
                assert len(scored) < len(train)
                assert abs(Y[scored].mean() - Y.mean()) < 0.08


# Approximate intervals, written again from their papers, and scores that are not what they seem


BAYES = {"learner": GaussianNB(), "execution": SERIAL}
EXACT = {"interval": "clopper_pearson", "resampling": "holdout:0.3"}


def accuracies(result):
    """The accuracy of a model of scikit-learn on each split, and the rows fitted on and scored."""
    parts = pairs(result.problem)
    found = [
        accuracy_score(Y[rows], GaussianNB().fit(X[train], Y[train]).predict(X[rows]))
        for train, rows in parts
    ]
    return np.array(found), [(len(train), len(rows)) for train, rows in parts]


def interval(result, name=""):
    return result.interval(result.entries[0], result.scores[0], name)


@pytest.mark.parametrize("resampling", ["kfold:5", "repeated_kfold:4x2", "subsampling:6:0.25"])
def test_corrected_t_is_that_of_nadeau_and_bengio(resampling):
    result = evaluate(X, Y, resampling=resampling, measure="accuracy", interval="corrected_t", **BAYES)
    found, sizes = accuracies(result)
    J, (n1, n2) = len(found), np.mean(sizes, axis=0)
    reach = t(J - 1).ppf(0.975) * sqrt((1 / J + n2 / n1) * np.sum((found - found.mean()) ** 2) / (J - 1))
    assert interval(result) == pytest.approx((found.mean() - reach, found.mean() + reach), rel=1e-12)


def test_a_single_split_has_the_exact_interval_of_its_rows():
    result = evaluate(X, Y, measure="accuracy,zero_one", **EXACT, **BAYES)
    (found,), ((_, rows),) = accuracies(result)
    right = round(found * rows)
    low, high = beta.ppf(0.025, right, rows - right + 1), beta.ppf(0.975, right + 1, rows - right)
    assert interval(result) == pytest.approx((low, high), rel=1e-12)
    wrong = result.interval(result.entries[0], result.scores[1])
    assert wrong == pytest.approx((1 - high, 1 - low), rel=1e-12)


NEAR = {"learner": "neighbors", "param": {"n_neighbors": [1, 3, 9, 27]}, "execution": SERIAL}
ASKED = {"interval": "bbc", "resampling": "kfold:5"}


def choose_again(found, scored, task, seed):
    """The quantiles of bootstrap estimates of the best column, where the drawn rows choose it."""
    words = np.frombuffer(bytes.fromhex(task.salt) + seed.to_bytes(16, "little"), "<u4").tolist()
    rng = np.random.default_rng(np.random.SeedSequence(words, spawn_key=(0, 0, 9)))
    n, estimates = len(found), []
    for _ in range(1000):
        drawn = rng.integers(n, size=n)
        out = np.setdiff1d(np.arange(n), drawn)
        best = np.argmin([np.mean(column[drawn]) for column in found.T])
        estimates.append(np.mean(scored[out, best]))
    return np.quantile(estimates, [0.025, 0.975])


@pytest.mark.parametrize("refit", [None, "best"])
def test_bbc_is_that_of_tsamardinos(refit, tmp_path):
    options = {**NEAR, **ASKED, "measure": "zero_one,brier", "refit": refit, "seed": 4}
    result = evaluate(X, Y, tmp_path / "run", **options)
    (best, figures), *rest = rank_entries(result, result.scores[0])
    predictions = parquet.read_table(tmp_path / "run" / "predictions.parquet").to_pandas()
    shape = len(Y), len(result.entries)
    assert len(predictions) == np.prod(shape)
    wrong, squares = np.empty(shape), np.empty(shape)
    for number, (_, part) in enumerate(predictions.groupby("setting", sort=False)):
        wrong[part["row"], number] = part["prediction"] != part["truth"]
        squares[part["row"], number] = (np.stack(part["probability"])[:, 1] - part["truth"]) ** 2
    low, high = result.interval(best, result.scores[0])
    assert (low, high) == pytest.approx(choose_again(wrong, wrong, result.task, 4), rel=1e-9)
    assert low <= figures.mean <= high
    other = result.interval(best, result.scores[1])
    assert other == pytest.approx(choose_again(wrong, squares, result.task, 4), rel=1e-9)
    assert all(isnan(limit) for entry, _ in rest for limit in result.interval(entry, result.scores[0]))
    assert load_scores(tmp_path / "run").to_json() == result.to_json()
    assert verify(tmp_path / "run").ok


def test_bbc_of_lines_that_fail_is_of_the_others_and_of_none_if_all_do():
    result = evaluate(X[:45], Y[:45], **NEAR | {"param": {"n_neighbors": [1, 40, 3]}}, **ASKED)
    failed = [not entry.known.any() for entry in result.entries]
    assert sum(failed) == 1
    best, _ = rank_entries(result, result.scores[0])[0]
    assert all(0 <= limit <= 1 for limit in result.interval(best, result.scores[0]))
    none = evaluate(X[:30], Y[:30], **NEAR | {"param": {"n_neighbors": [40, 50]}}, **ASKED)
    assert all(isnan(limit) for entry in none.entries for limit in none.interval(entry, none.scores[0]))


def test_an_interval_that_was_not_asked_for_is_refused():
    result = evaluate(X, Y, resampling="holdout:0.3", measure="auc", **BAYES)
    for name, said in (("", "no interval: name one"), ("clopper_pearson", "not for holdout and auc")):
        with pytest.raises(InputError, match=said):
            interval(result, name)


def test_predictions_of_other_rows_are_refused(tmp_path):
    out = tmp_path / "run"
    evaluate(X, Y, out, **NEAR, **ASKED)
    rewrite(out, "predictions.parquet", column("row", lambda rows: rows[::-1]))
    with pytest.raises(StoreError, match="its rows are not those that split 0 scores"):
        load_scores(out)


def test_an_interval_is_shown_as_approximate_wherever_it_is(tmp_path):
    options = {"resampling": "kfold:4", "measure": "accuracy,log_loss", **BAYES}
    plain = evaluate(X, Y, **options)
    result = evaluate(X, Y, tmp_path / "run", interval="corrected_t", **options)
    low, high = interval(result)
    assert "Approximate 95 % intervals: corrected t" in result.summary(details=True)
    assert "approximate" not in plain.summary()
    assert interval(plain, "corrected_t") == (low, high)
    assert f"{low:.4f}" in make_page(tmp_path / "run")
    assert not verify(tmp_path / "run").differences


def test_scores_that_mislead_are_named():
    inputs, values = (part[:60] for part in load_diabetes(return_X_y=True))

    def say(y=values, **options):
        asked = {"learner": "ridge", "resampling": "kfold:5", "execution": SERIAL} | options
        return unwrap(evaluate(inputs, y, **asked).summary())

    assert "CAUTION" not in say(measure="rmse,mape")
    said = say(np.where(np.arange(60) < 2, 0.0, values), measure="mape,r2")
    assert "mape divides by the target, which is 0 in 2 rows" in said
    assert "r2: a split is compared with the mean of the rows that it scores, 12 in the smallest" in said
    assert "explains what differs between groups" in say(measure="r2", groups=np.arange(60) // 6)


# Permutation tests, by scikit-learn's permutation_test_score


CLOUD, LABELS = load_breast_cancer(return_X_y=True)
CLOUD, LABELS = np.round(CLOUD[::8, 3:6] + 80 * np.random.default_rng(0).normal(size=(72, 3))), LABELS[::8]
GROUPS = np.arange(72) // 3


def ask_sklearn(monkeypatch, result, estimator, scoring, groups=None):
    """The test by scikit-learn with our permutations, on our splits of each."""
    problem = result.problem
    numbers = iter(range(result.study.permutations))
    permuted = [problem.permute(number) for number in range(result.study.permutations)]
    if groups is not None:  # each group keeps its targets
        sums = [np.bincount(groups, each.task.y) for each in (problem, *permuted)]
        np.testing.assert_allclose(sums, sums[:1] * len(sums))
    monkeypatch.setattr(_validation, "_shuffle", lambda y, g, state: permuted[next(numbers)].task.y)

    class Splits:
        """Called first for the targets as they are, then for each permutation."""

        calls = iter([problem, *permuted])

        def split(self, X, y=None, groups=None):
            of = next(self.calls)
            return iter(pairs(of))

        def get_n_splits(self, *_):
            return problem.sizes[OUTER].n_splits

    asked = {"groups": groups, "cv": Splits(), "scoring": scoring, "n_permutations": len(permuted)}
    return permutation_test_score(estimator, CLOUD, problem.task.y, **asked)


@pytest.mark.parametrize(
    ("options", "scoring"),
    [
        ({"measure": "accuracy"}, "accuracy"),
        ({"measure": "auc", "resampling": "kfold:4", "stratify": True}, "roc_auc"),
        ({"measure": "accuracy", "groups": GROUPS}, "accuracy"),
        ({"learner": "linear_regression", "y": CLOUD[:, 0] + CLOUD[:, 1]}, "neg_root_mean_squared_error"),
    ],
)
def test_p_is_that_of_scikit_learn(options, scoring, monkeypatch):
    asked = {"y": LABELS, "learner": "naive_bayes", "resampling": "kfold:3", "permutations": 19} | options
    result = evaluate(CLOUD, execution=SERIAL, **asked)
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
    assert "without a mean count as if they were" in unwrap(result.summary())
