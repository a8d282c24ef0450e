"""Approximate intervals, written again from their papers, and scores that are not what they seem."""

from math import isnan, sqrt

import numpy as np
import pytest
from conftest import unwrap
from finished import SERIAL
from forgery import column, rewrite
from pyarrow import parquet
from scipy.stats import beta, t
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import GaussianNB

from ckcv_ray import evaluate, load_scores, verify
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.scored import rank_entries
from ckcv_ray.study.problem import OUTER

X, Y = (part[:120] for part in load_breast_cancer(return_X_y=True))
BAYES = {"learner": GaussianNB(), "execution": SERIAL}
EXACT = {"interval": "clopper_pearson", "resampling": "holdout:0.3"}


def accuracies(result):
    """The accuracy of a model of scikit-learn on each split, and the rows fitted on and scored."""
    parts = [result.problem.rows(Stage.SELECT, OUTER, split) for split in range(result.computed.n_splits)]
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
    assert "Clopper-Pearson around the share of the scored rows, exact" in unwrap(result.summary())
    assert "They may fail more often" not in result.summary()


NEAR = {"learner": "neighbors", "param": {"n_neighbors": [1, 3, 9, 27]}, "execution": SERIAL}
ASKED = {"interval": "bbc", "resampling": "kfold:5"}


def choose_again(found, scored, task, seed):
    """The quantiles of bootstrap estimates of the best column, in which it is chosen by the drawn rows."""
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
    assert "chosen again in each of 1,000 bootstrap draws" in unwrap(result.summary())


def test_bbc_of_lines_that_fail_is_of_the_others_and_of_none_if_all_do():
    few = {**NEAR, "param": {"n_neighbors": [1, 40, 3]}}
    result = evaluate(X[:45], Y[:45], **few, **ASKED, measure="accuracy")
    failed = [not entry.known.any() for entry in result.entries]
    assert sum(failed) == 1
    assert np.array_equal(np.isnan(result.computed.row_values["accuracy"]).all(axis=0), failed)
    best, _ = rank_entries(result, result.scores[0])[0]
    assert all(0 <= limit <= 1 for limit in result.interval(best, result.scores[0]))
    none = evaluate(X[:30], Y[:30], **{**NEAR, "param": {"n_neighbors": [40, 50]}}, **ASKED)
    assert all(isnan(limit) for entry in none.entries for limit in none.interval(entry, none.scores[0]))


@pytest.mark.parametrize(
    ("options", "name", "words"),
    [
        ({}, "bbc", "interval=bbc: evaluate with interval=bbc"),
        ({"measure": "auc", "resampling": "holdout:0.3"}, "", "this study has no interval: name one"),
        ({"measure": "auc", "resampling": "holdout:0.3"}, "clopper_pearson", "not for holdout and auc"),
    ],
)
def test_an_interval_that_was_not_asked_for_is_refused(options, name, words):
    result = evaluate(X, Y, **{"resampling": "kfold:3", **BAYES} | options)
    with pytest.raises(InputError, match=words):
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
    assert result.run_id != plain.run_id
    assert "approximate" not in plain.summary()
    low, high = interval(result)
    assert "Approximate 95 % intervals: corrected t" in result.summary(details=True)
    assert interval(plain, "corrected_t") == (low, high)
    shown = result.to_json()["entries"][0]["scores"]["accuracy"]["approximate_interval"]
    assert shown == {"name": "corrected_t", "level": 0.95, "low": low, "high": high}
    assert f"{low:.4f}" in make_page(tmp_path / "run")
    assert not verify(tmp_path / "run").differences


def test_scores_that_mislead_are_named():
    inputs, values = (part[:60] for part in load_diabetes(return_X_y=True))

    def say(y=values, **options):
        asked = {"learner": "ridge", "resampling": "kfold:5", "execution": SERIAL} | options
        return unwrap(evaluate(inputs, y, **asked).summary())

    assert "CAUTION" not in say(measure="rmse,mape") + say(measure="r2", resampling="kfold:2")
    said = say(np.where(np.arange(60) < 2, 0.0, values), measure="mape,r2")
    assert "mape divides by the target, which is 0 in 2 rows" in said
    assert "r2: a split is compared with the mean of the rows that it scores, 12 in the smallest" in said
    assert "explains what differs between groups" in say(measure="r2", groups=np.arange(60) // 6)


def infinite(y, predicted):
    return np.inf


def test_an_infinite_score_is_said_to_count_as_not_defined():
    result = evaluate(X, Y, resampling="kfold:3", measure=infinite, **BAYES)
    assert "3 not defined" in result.summary()
    assert "infinite on a split counts as not defined" in unwrap(result.summary())
