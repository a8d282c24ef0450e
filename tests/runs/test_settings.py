"""Settings by their scores: means, ranks and pictures; which is chosen and kept, and kept predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alike import pairs
from finished import SERIAL
from forgery import LOG, column, rewrite
from pyarrow import parquet
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import evaluate, load_scores, verify
from ckcv_ray.core.selection import choose_setting
from ckcv_ray.errors import StoreError
from ckcv_ray.records.judged import HELD_OUT
from ckcv_ray.reports.figures import draw_scores, make_grid
from ckcv_ray.runs.result import find_kept, list_short_names
from ckcv_ray.storage.folder import FULL, SETTINGS, RunFolder, make_model_table

X, Y = (part[::8] for part in load_breast_cancer(return_X_y=True))
X = X[:, :5]
FOUR = {"learner": "svm", "C": (0.1, 1, 10, 100), "gamma": (0.01, 0.1, 1)}


def compute(out: Any = None, **options: Any) -> Any:
    return evaluate(X, Y, out, SERIAL, **options)


def test_settings_are_ranked_by_the_means_of_their_splits(tmp_path: Path) -> None:
    result = compute(tmp_path / "run", **FOUR, resampling="kfold:4", measure="zero_one,auc")
    splits = parquet.read_table(tmp_path / "run" / "scores.parquet").to_pandas()
    table = parquet.read_table(tmp_path / "run" / SETTINGS).to_pandas()
    assert len(table) == 2 * 12
    assert not table["inner"].any()
    for name, sign in (("zero_one", 1), ("auc", -1)):
        of_one = table[table["measure"] == name].set_index("setting")
        grouped = splits.groupby("setting")[name]
        assert np.allclose(of_one["mean"], grouped.mean()[of_one.index], rtol=1e-14, atol=0)
        assert np.allclose(of_one["deviation"], grouped.std()[of_one.index], rtol=1e-12, atol=0)
        ranks = (sign * of_one["mean"]).rank(method="min")
        assert np.array_equal(of_one["rank"], ranks)
    assert result.to_json()["settings"][0]["setting"] == {"C": 0.1, "gamma": 0.01}


def test_settings_that_fail_have_no_rank_and_come_last(tmp_path: Path) -> None:
    rows, out = slice(0, 12), tmp_path / "run"
    options = {"learner": "neighbors", "param": {"n_neighbors": [1, 3, 7]}, "measure": "zero_one"}
    result = evaluate(X[rows], Y[rows], out, SERIAL, resampling="nested:2:2", seed=1, **options)
    assert [one.places["zero_one"].rank is None for one in result.settings[:3]] == [False, False, True]
    assert result.to_json()["settings"][2]["scores"]["zero_one"]["mean"] is None
    (entry,), (measure,) = result.entries, result.scores
    assert result.figures(entry, measure).deviation == np.std(result.of_splits(entry, measure), ddof=1) > 0
    assert verify(out).ok


def test_two_parameters_have_a_heat_map_and_one_has_a_curve() -> None:
    result = compute(**FOUR, resampling="kfold:3")
    _, picture = draw_scores(result, *result.scores)
    means = {(s.setting["C"], s.setting["gamma"]): s.places["zero_one"].mean for s in result.settings}
    chart, values = picture.chart, picture.chart.parts[0].values
    assert [chart.x.names, chart.y.names] == [["0.1", "1", "10", "100"], ["0.01", "0.1", "1"]]
    assert values.tolist() == [means[C, g] for g in (0.01, 0.1, 1) for C in (0.1, 1, 10, 100)]
    assert list_short_names(result)[1] == "1.0, 0.01"
    one = compute(learner="svm", C=(1, 10, 100), gamma=0.1, resampling="kfold:3")
    _, curve = draw_scores(one, *one.scores)
    line, found = curve.chart.parts[1], [(s.setting["C"], *s.places["zero_one"][:2]) for s in one.settings]
    assert (line.x.tolist(), line.y.tolist()) == ([1, 10, 100], [mean for _, mean, _ in found])
    assert curve.rows == [(f"{C:g}", f"{mean:.4f}", f"{sd:.4f}") for C, mean, sd in found]


def test_of_more_parameters_a_picture_has_the_best_means() -> None:
    param = {"max_depth": [1, 2, 4], "min_samples_leaf": [1, 4], "criterion": ["gini", "entropy"]}
    result = compute(learner="tree", measure="accuracy", resampling="kfold:3", param=param)
    _, picture = draw_scores(result, result.scores[0])
    assert ", at the best values of the others; the star marks the best" in picture.caption
    assert picture.chart.parts[0].values.max() == max(one.places["accuracy"].mean for one in result.settings)


def test_of_equally_good_settings_the_first_is_drawn() -> None:
    """It is the one that is named, and has the star."""
    settings = [{"C": C, "gamma": g, "kernel": k} for C in (1, 2, 3) for g in (1, 2) for k in ("a", "b")]
    assert make_grid(settings, np.zeros(12)).best.T.ravel().tolist() == [0, 2, 4, 6, 8, 10]


def test_a_log_with_infinite_scores_is_refused(tmp_path: Path) -> None:
    compute(tmp_path, learner="naive_bayes", resampling="kfold:3", measure="auc")
    rewrite(tmp_path, LOG, column("total_0", lambda values: [-np.inf] * len(values)))
    with pytest.raises(StoreError, match="is damaged: a score is infinite"):
        load_scores(tmp_path)
    assert verify(tmp_path).differences


IRIS, SPECIES = (values[::3] for values in load_iris(return_X_y=True))
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def score(out: Path | None = None, **options: Any) -> Any:
    """Score a linear model on flowers, and fit it on all rows."""
    asked = {"resampling": "kfold:3", "refit": "best", "learner": "linear"} | options
    return evaluate(IRIS, SPECIES, out=out, execution=SERIAL, **asked)


def test_the_setting_and_the_model_are_those_of_a_grid_search() -> None:
    C = [0.01, 0.1, 1.0, 10.0]
    result = score(param={"C": C}, measure="log_loss", resampling="kfold:5")
    search = GridSearchCV(
        LOGISTIC, {"logisticregression__C": C}, scoring="neg_log_loss", cv=pairs(result.problem)
    )
    search.fit(IRIS, SPECIES)
    assert result.setting["C"] == search.best_params_["logisticregression__C"]
    assert np.array_equal(result.predict(IRIS), search.predict(IRIS))
    assert result.figures(find_kept(result), result.scores[0]).mean == pytest.approx(
        -search.best_score_, abs=1e-15
    )


def test_a_model_at_another_setting_is_not_taken_for_the_chosen_one(tmp_path: Path) -> None:
    """Its digest agrees, as a forger would see to: the setting is compared with what the log gives."""
    out = tmp_path / "scores"
    one, chosen = score(param={"C": [0.001]}), score(out=out, param={"C": [0.001, 10.0]})
    folder = RunFolder(out)
    folder.write_end(folder.execution(), {FULL: make_model_table(chosen.problem, one.models.full)})
    with pytest.raises(StoreError, match="another setting"):
        load_scores(out)
    assert verify(out).differences


MEANS = np.array([0.30, 0.20, 0.21, 0.19, np.nan, 0.25])
ERRORS = np.array([0.01, 0.01, 0.01, 0.02, np.nan, 0.01])
SIX = [{"C": C, "kernel": "rbf"} for C in (0.1, 1.0, 10.0, 100.0, 1e-3, 0.5)]


def test_the_simplest_of_those_that_are_about_as_good() -> None:
    chosen = {"best": 3, "one_se": 1, "tolerance:0%": 3, "tolerance:6%": 1, "tolerance:40%": 5}
    assert {choose: choose_setting(choose, MEANS, ERRORS, SIX) for choose in chosen} == chosen


# Predictions


def keep(out: Path, X: Any = IRIS, y: Any = SPECIES, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Score with predictions kept; the result, and the columns of the file."""
    result = evaluate(X, y, out=out, save_predictions=True, execution=SERIAL, **options)
    table = parquet.read_table(out / HELD_OUT)
    return result, {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def test_predictions_of_classes_are_those_of_scikit_learn(tmp_path: Path) -> None:
    result, kept = keep(tmp_path / "scores", learner=LOGISTIC, resampling="kfold:5")
    order, splits = np.argsort(kept["row"]), pairs(result.problem)
    theirs = cross_val_predict(LOGISTIC, IRIS, SPECIES, cv=splits)
    shares = cross_val_predict(LOGISTIC, IRIS, SPECIES, cv=splits, method="predict_proba")
    assert np.array_equal(kept["row"][order], np.arange(len(IRIS)))
    assert np.array_equal(kept["prediction"][order], theirs)
    assert np.array_equal(np.stack(kept["probability"])[order], shares)
    assert np.array_equal(kept["truth"][order], SPECIES)


@pytest.mark.parametrize(
    "options",
    [
        {"learner": "tree,svm", "resampling": "nested:3:2", "select_by": "zero_one", "select": "each"},
        {"learner": "tree", "resampling": "kfold:3", "refit": "best", "measure": "log_loss,accuracy"},
    ],
)
def test_the_file_agrees_with_the_log_and_is_written_again_alike(
    options: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "scores"
    result, kept = keep(out, **options)
    entries = 1 if "refit" in options else len(result.entries)
    assert len(kept["row"]) == entries * sum(len(scored) for _, scored in pairs(result.problem))
    assert verify(out).differences == []
    lost = [HELD_OUT, *([FULL] if "refit" in options else [])]
    names = (*lost, "splits.parquet", "scores.json")
    before = [(out / name).read_bytes() for name in names]
    for name in ("manifest.json", *lost):
        (out / name).unlink()
    keep(out, **options)
    assert [(out / name).read_bytes() for name in names] == before
