"""Approximate intervals, written again from their papers, and scores that are not what they seem."""

import json
from math import isnan, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from ckcv_ray import Execution, evaluate, load_scores, verify
from ckcv_ray.core.intervals import INTERVALS, Scored, compute_interval
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.report import make_page
from ckcv_ray.study import Study
from ckcv_ray.study.problem import OUTER

SERIAL = Execution("serial")
X, Y = (part[:120] for part in load_breast_cancer(return_X_y=True))
Z = NormalDist().inv_cdf(0.975)
BAYES = {"learner": GaussianNB(), "execution": SERIAL}


def accuracies(result):
    """The accuracy of a model of scikit-learn on each split, and the rows fitted on and scored."""
    parts = [result.problem.rows(Stage.SELECT, OUTER, split) for split in range(result.n_splits)]
    models = [GaussianNB().fit(X[train], Y[train]) for train, _ in parts]
    found = [
        accuracy_score(Y[rows], one.predict(X[rows])) for one, (_, rows) in zip(models, parts, strict=True)
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


def test_conservative_z_is_that_of_nadeau_and_bengio():
    J, M = 4, 3
    options = {"resampling": f"paired_subsampling:{J}:{M}:0.1", "interval": "conservative_z"}
    result = evaluate(X, Y, measure="accuracy", **options, **BAYES)
    found, _ = accuracies(result)
    squares = []
    for pair in range(M):
        first = J * (1 + 2 * pair)
        squares.append((found[first : first + J].mean() - found[first + J : first + 2 * J].mean()) ** 2)
    mean, reach = found[:J].mean(), Z * sqrt(sum(squares) / (2 * M))
    assert interval(result) == pytest.approx((mean - reach, mean + reach), rel=1e-12)
    assert result.figures(result.entries[0], result.scores[0]).mean == pytest.approx(mean)
    assert "rows fitted on" not in result.summary(details=True)


@pytest.mark.parametrize("resampling", ["holdout:0.3", "kfold:7", "loo"])
def test_wald_is_of_all_scored_rows(resampling):
    result = evaluate(X, Y, resampling=resampling, measure="accuracy,zero_one", interval="wald", **BAYES)
    found, sizes = accuracies(result)
    rows = [n for _, n in sizes]
    share = float(found @ rows / sum(rows))
    reach = Z * sqrt(share * (1 - share) / sum(rows))
    assert interval(result) == pytest.approx((share - reach, share + reach), rel=1e-12)
    low, high = result.interval(result.entries[0], result.scores[1])
    assert (1 - high, 1 - low) == pytest.approx(interval(result), rel=1e-12)


@pytest.mark.parametrize("name", INTERVALS)
@given(seed=st.integers(0, 2**32))
def test_an_interval_follows_the_scale_of_the_score_and_needs_every_split(name, seed):
    rng = np.random.default_rng(seed)
    counted = np.repeat([True, False], [4, 16])
    rows = np.full(20, 10.0)
    wrong = rng.integers(0, 11, 20).astype(float)
    found = Scored(wrong / rows, np.column_stack([wrong, rows]), counted, 0.25)
    other = found._replace(values=1 - found.values, sums=np.column_stack([rows - wrong, rows]))
    low, high = compute_interval(name, found)
    assert compute_interval(name, other) == pytest.approx((1 - high, 1 - low), abs=1e-12)
    assert low <= found.values[counted].mean() <= high
    incomplete = found._replace(values=np.where(np.arange(20) == 19, np.nan, found.values))
    assert all(map(isnan, compute_interval(name, incomplete)))


def test_an_interval_is_shown_as_approximate_wherever_it_is(tmp_path):
    options = {"resampling": "kfold:4", "measure": "accuracy,log_loss"}
    plain = evaluate(X, Y, **options, **BAYES)
    result = evaluate(X, Y, tmp_path / "run", interval="corrected_t", **options, **BAYES)
    assert result.run_id != plain.run_id
    assert "approximate" not in plain.summary()
    assert "approximate" not in json.dumps(plain.to_json())
    assert "interval" not in json.dumps(plain.study.to_json())
    low, high = interval(result)
    assert f"{low:.4f} to {high:.4f}" in result.summary(details=True)
    assert "Approximate 95 % intervals: corrected t" in result.summary(details=True)
    assert "proven" not in result.summary(details=True)
    assert interval(plain, "corrected_t") == (low, high)
    shown = result.to_json()["entries"][0]["scores"]["accuracy"]["approximate_interval"]
    assert shown == {"name": "corrected_t", "level": 0.95, "low": low, "high": high}
    page = make_page(tmp_path / "run")
    assert "approx. from" in page
    assert f"{low:.4f}" in page
    again = load_scores(tmp_path / "run")
    assert again.summary_json() == result.summary_json()
    assert Study.from_json(result.study.to_json()) == result.study
    assert not verify(tmp_path / "run").differences
    with pytest.raises(StoreError, match='interval: requested "", in the folder "corrected_t"'):
        evaluate(X, Y, tmp_path / "run", **options, **BAYES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": "bbc"}, "interval='bbc': expected corrected_t, conservative_z, wald"),
        ({"interval": 3}, "interval"),
        ({"interval": "wald", "measure": "auc"}, "measure zero_one or accuracy, not auc"),
        ({"interval": "wald", "resampling": "bootstrap:3"}, "resampling holdout, kfold, loo, not bootstrap"),
        ({"interval": "corrected_t", "resampling": "loo"}, "not loo: choose one of them, or interval=wald"),
        ({"interval": "corrected_t", "resampling": KFold(3)}, "not given"),
        ({"interval": "corrected_t", "resampling": "subsampling:1:0.3"}, "requires two splits or more"),
        ({"interval": "conservative_z"}, "resampling paired_subsampling, not kfold"),
        (
            {"interval": "corrected_t", "resampling": "nested:3:2", "select_by": "accuracy"},
            "with select=each, or without a selection",
        ),
        ({"interval": "wald", "groups": np.arange(120) // 2}, "rows of a group are not"),
    ],
)
def test_an_interval_that_does_not_fit_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        evaluate(X, Y, **{"measure": "accuracy", **options}, **BAYES)


def test_an_interval_that_was_not_asked_for_is_refused_alike():
    result = evaluate(X, Y, resampling="kfold:3", measure="auc", **BAYES)
    with pytest.raises(InputError, match="this study has no interval: name one"):
        interval(result)
    with pytest.raises(InputError, match="not auc"):
        interval(result, "wald")


def test_scores_that_mislead_are_named():
    inputs, values = (part[:60] for part in load_diabetes(return_X_y=True))
    options = {"learner": "ridge", "resampling": "kfold:5", "execution": SERIAL}
    plain = evaluate(inputs, values, measure="rmse,mape", **options).summary()
    assert "CAUTION" not in plain
    zeros = np.where(np.arange(60) < 2, 0.0, values)
    said = evaluate(inputs, zeros, measure="mape,r2", **options).summary()
    assert "mape divides by the target, which is 0 in 2 rows" in said
    assert "r2: a split is compared with the mean of the rows that it scores, 12 in the smallest" in said
    groups = evaluate(inputs, values, measure="r2", groups=np.arange(60) // 6, **options).summary()
    assert "explains what differs between groups" in groups
    assert (
        "CAUTION"
        not in evaluate(inputs, values, measure="r2", **{**options, "resampling": "kfold:2"}).summary()
    )


def infinite(y, predicted):
    return np.inf


def test_an_infinite_score_is_said_to_count_as_not_defined():
    result = evaluate(X, Y, resampling="kfold:3", measure=infinite, **BAYES)
    assert "incomplete: 3 not defined" in result.summary(details=True)
    assert "infinite on a split counts as not defined" in result.summary(details=True)
