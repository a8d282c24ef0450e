"""Procedures: the numbers of scikit-learn, the same on every backend and after any interruption."""

import json
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import beta, t
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold as KFoldOfSklearn
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution
from ckcv_ray.core.bounds.paired import compare_scores
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import select_settings
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.learners.sklearn.paths import fit_model
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.finished import load_run, load_scores
from ckcv_ray.runs.run import evaluate
from ckcv_ray.runs.scored import compare_entries, explain_no_bound
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import INNER, OUTER, Problem
from ckcv_ray.study.study import Procedure
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
RESAMPLINGS = [
    "holdout:0.3",
    "kfold:5",
    "repeated_kfold:4x2",
    "kfold:3:last",
    "drawn_folds:4",
    "time:3:2",
    "subsampling:6:0.25",
    "bootstrap:6",
    "bootstrap632:2",
    "optimism:2",
    "loo",
]
X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::6], Y[::6]
TASK = Task.of(X, Y)


def pairs(procedure, task=TASK, size=OUTER):
    """The splits of a procedure as scikit-learn takes them."""
    problem = Problem.of(procedure, task)
    return [problem.rows(Stage.SELECT, size, number) for number in range(problem.sizes[size].n_splits)]


def sklearn_linear(C=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000))


def score_linear(C, train, scored):
    return sklearn_linear(C).fit(X[train], Y[train]).score(X[scored], Y[scored])


def check_scores(estimator, X, y, scorers, **options):
    """Compare the scores of every split with those of cross_validate, to the last digit."""
    measures = ["brier" if "brier" in name else name.removeprefix("neg_") for name in scorers]
    result = evaluate(X, y, learner=estimator, measure=measures, execution=SERIAL, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        splits = pairs(result.study, Task.of(X, y))
        found = cross_validate(estimator, X, y, cv=splits, scoring=scorers)
    for score, name in zip(result.scores, scorers, strict=True):
        sign = -1 if name.startswith("neg_") else 1
        assert np.array_equal(result.of_splits(result.entries[0], score), sign * found[f"test_{name}"]), name


@pytest.mark.parametrize("resampling", RESAMPLINGS)
def test_scores_are_those_of_cross_validate(resampling):
    scorers, estimator = ["accuracy", "balanced_accuracy", "f1", "matthews_corrcoef"], GaussianNB()
    if resampling != "loo":  # a single row has none of these
        scorers, estimator = [*scorers, "roc_auc", "neg_log_loss", "neg_brier_score"], sklearn_linear()
    check_scores(estimator, X, Y, scorers, resampling=resampling)


def test_probabilities_of_three_classes_are_scored_as_by_scikit_learn():
    scorers = ["accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro"]
    check_scores(GaussianNB(), *load_iris(return_X_y=True), scorers, stratify=True)


@pytest.mark.parametrize("select", ["one", "each"])
def test_a_nested_selection_is_that_of_grid_search(select):
    costs = (0.01, 0.1, 1.0, 10.0)
    study = {"learner": sklearn_linear(), "param": {"C": costs}, "resampling": "nested:4:3", "seed": 5}
    by = {"measure": "accuracy", "select_by": "accuracy", "select": select}
    result = evaluate(X, Y, execution=SERIAL, **study, **by)
    problem = result.problem
    outer, inner = pairs(problem.asked), pairs(problem.asked, size=INNER)
    scores = np.array([[score_linear(C, *split) for split in inner] for C in costs])
    means = np.array([scores[:, a:b].mean(axis=1) for a, b in pairwise(problem.starts)])
    if select == "one":
        means = np.tile(means.mean(axis=0), (len(outer), 1))
    best = means.argmax(axis=1)
    (entry,) = result.entries
    assert [one["C"] for one in entry.settings] == [costs[i] for i in best]
    expected = [score_linear(costs[i], *split) for i, split in zip(best, outer, strict=True)]
    assert np.array_equal(result.of_splits(entry, result.scores[0]), expected)


def test_inner_splits_divide_the_training_sets():
    for text in ("nested_halves:5", "nested:3:4"):
        procedure = Procedure.of(resampling=text, select_by="zero_one")
        outer, inner = pairs(procedure), pairs(procedure, size=INNER)
        starts = Problem.of(procedure, TASK).starts.tolist()
        for (train, _), (a, b) in zip(outer, pairwise(starts), strict=True):
            assert all(np.array_equal(np.sort(np.concatenate(split)), train) for split in inner[a:b])


PLAIN = {"learner": "svm,linear", "measure": "zero_one,auc"}


def same(one, other) -> bool:
    mine, theirs = one.to_json(), other.to_json()
    return {**mine, "seconds": 0, "fits": 0} == {**theirs, "seconds": 0, "fits": 0}


def test_a_finished_procedure_is_read_and_what_is_damaged_computed_again(tmp_path, monkeypatch):
    first = evaluate(X, Y, tmp_path / "run", SERIAL, **PLAIN)
    with monkeypatch.context() as patch:
        patch.setattr("ckcv_ray.engine.evaluate.evaluate", None)
        patch.setattr("ckcv_ray.engine.backend.evaluate_apart", None)
        assert evaluate(X, Y, tmp_path / "run", SERIAL, **PLAIN).to_json() == first.to_json()
    with pytest.raises(StoreError, match=r"another procedure \(seed: requested 1, in the folder 0\)"):
        evaluate(X, Y, tmp_path / "run", SERIAL, seed=1, **PLAIN)
    with pytest.raises(StoreError, match="data: another table"):
        evaluate(X[:-1], Y[:-1], tmp_path / "run", SERIAL, **PLAIN)
    with pytest.raises(StoreError, match="holds the scores of a procedure"):
        load_run(tmp_path / "run")
    for name in ("data.parquet", "study.json", "scores.parquet", "scores.json", "execution.json"):
        file = tmp_path / "run" / name
        file.write_bytes(file.read_bytes()[:-7])
        with pytest.raises(StoreError):
            load_scores(tmp_path / "run")
        assert same(evaluate(X, Y, tmp_path / "run", SERIAL, **PLAIN), first)
        assert not RunFolder(tmp_path / "run").list_differing()


def test_what_fails_in_some_splits_is_recorded_and_the_score_incomplete(tmp_path):
    """Two neighbours of one training row: in half of the splits there are too few rows."""
    rows = np.arange(6.0)[:, None]
    options = {
        "learner": "neighbors",
        "param": {"n_neighbors": (4,)},
        "resampling": Splits.of([([0, 1, 2, 3, 4], [5]), ([0, 1, 2], [3, 4, 5])], 6),
    }
    result = evaluate(rows, [0, 1] * 3, tmp_path / "run", SERIAL, measure="accuracy", **options)
    figures = result.figures(result.entries[0], result.scores[0])
    assert (figures.missing, np.isnan(figures.mean), np.isnan(figures.pooled)) == (1, True, True)
    assert "1 failed" in result.summary()
    assert not result.complete
    assert result.to_json()["entries"][0]["scores"]["accuracy"]["splits"][1] is None
    json.dumps(result.to_json(), allow_nan=False)
    (failure,) = result.execution["failures"]
    assert "Expected n_neighbors <= n_samples_fit" in failure[3]
    again = load_scores(tmp_path / "run")
    assert same(again, result)


def test_a_score_that_is_not_defined_in_a_split_is_incomplete():
    result = evaluate(X, Y, resampling="loo", measure="auc,accuracy", execution=SERIAL, learner="naive_bayes")
    auc, accuracy = (result.figures(result.entries[0], score) for score in result.scores)
    assert (auc.undefined, auc.pooled) == (len(Y), None)
    assert accuracy.mean == pytest.approx(accuracy.pooled)
    assert "95 not defined" in result.summary()


def test_pooled_figures_and_bounds_come_from_all_rows():
    result = evaluate(X, Y, resampling="kfold:7", measure="zero_one,f1", execution=SERIAL, learner="tree")
    (entry,) = result.entries
    predicted = np.empty(len(Y), int)
    from sklearn.metrics import f1_score

    for train, scored in pairs(result.study):
        model = result.problem.learner.trainer.prepare(TASK, train, scored).fit(0, 1).model(0)
        predicted[scored] = model.predict(X[scored]).label
    error, f1 = (result.figures(entry, score) for score in result.scores)
    assert error.pooled == pytest.approx(np.mean(predicted != Y), abs=0)
    assert f1.pooled == pytest.approx(f1_score(Y, predicted))
    rates = result.of_splits(entry, result.scores[0])
    rows = [len(scored) for _, scored in pairs(result.study)]
    for bound, rate, n in zip(result.bounds(entry, result.scores[0]), rates, rows, strict=True):
        assert bound == pytest.approx(beta.ppf(0.95, round(rate * n) + 1, n - round(rate * n)))
    assert np.isnan(result.bounds(entry, result.scores[1])).all()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"resampling": "bootstrap632:5"}, "rows that they fit on"),
        ({"resampling": "kfold:5", "stratify": True}, "fixed numbers of each class"),
        ({"resampling": "kfold:5", "groups": np.arange(len(Y)) // 3}, "groups"),
        ({"resampling": KFoldOfSklearn(5)}, "given"),
        ({"resampling": "nested:3:3", "select_by": "zero_one"}, "rows of all splits"),
    ],
)
def test_no_bound_is_shown_where_none_is_proven(options, reason, tmp_path):
    kind = {"learner": "naive_bayes", "measure": "zero_one,accuracy", "execution": SERIAL}
    result = evaluate(X, Y, out=tmp_path / "run", **kind, **options)
    assert reason in explain_no_bound(result)
    for entry, score in product(result.entries, result.scores):
        assert np.isnan(result.bounds(entry, score)).all()
        assert set(result.to_json()["entries"][0]["scores"][score.name]["bounds"]) == {None}
    said = " ".join(result.summary().split())
    assert f"No bound is proven for any model on new rows: {explain_no_bound(result)}." in said
    assert result.to_json()["unbounded"] == explain_no_bound(result)
    if "groups" in options:
        assert explain_no_bound(result) in make_page(tmp_path / "run")


def test_bounds_of_a_setting_selected_inside_each_split_and_of_accuracy():
    options = {"resampling": "nested:3:3", "select_by": "zero_one", "select": "each"}
    result = evaluate(X, Y, learner="naive_bayes", measure="zero_one,accuracy", execution=SERIAL, **options)
    (entry,), (error, accuracy) = result.entries, result.scores
    assert np.all(result.bounds(entry, error) > result.of_splits(entry, error))
    assert np.allclose(result.bounds(entry, accuracy), 1 - result.bounds(entry, error), rtol=0, atol=1e-15)


def test_learners_are_compared_on_the_same_splits():
    result = evaluate(
        X, Y, resampling="repeated_kfold:5x3", measure="zero_one", execution=SERIAL, learner="constant,linear"
    )
    ((other, best, test),) = compare_entries(result, result.scores[0])
    assert (other.learner, best.learner) == ("constant", "linear")
    values = [result.of_splits(entry, result.scores[0]) for entry in (other, best)]
    error = np.std(values[0] - values[1], ddof=1) * np.sqrt(1 / 15 + 19 / 76)  # Nadeau, Bengio (2003)
    ends = np.mean(values[0] - values[1]) + np.array([-1, 0, 1]) * t(14).ppf(0.975) * error
    assert (test.low, test.difference, test.high) == pytest.approx(ends, rel=1e-9)
    assert test.p == pytest.approx(2 * t(14).sf(ends[1] / error), rel=1e-9)
    assert np.isnan(compare_scores([1.0], [0.0], 0.5).p)
    assert compare_scores([1.0, 1.0], [1.0, 1.0], 0.5).p == 1.0


def test_a_nested_resampling_selects_by_the_first_measure():
    """The name is resolved, so the run is that of a study that names it."""
    options = {"resampling": "nested:5:5", "measure": [cost, "accuracy"]}
    assert Procedure.of(**options) == Procedure.of(**options, select_by="cost")
    assert Procedure.of(resampling="nested:5:5", learner="ridge").select_by == "rmse"
    assert Procedure.of(resampling="kfold:5").select_by is None


def test_of_equal_settings_the_smaller_step_then_path_is_selected():
    losses = np.array([[[0.3, 0.1, np.nan], [0.1, 0.1, 0.2], [0.1, np.nan, np.nan]]])
    chosen = select_settings(losses, np.array([0, 1]), np.array([0, 0, 1]), each=False)
    assert chosen.tolist() == [[[1, 0], [2, 0]]]
    nothing = select_settings(np.full((2, 1, 1), np.nan), np.array([0, 1, 2]), np.array([0]), each=True)
    assert nothing.tolist() == [[[-1, -1]], [[-1, -1]]]


def test_learners_are_fitted_at_their_usual_settings():
    forest = evaluate(X, Y, resampling="holdout:0.3", execution=SERIAL, learner="forest")
    defaults = clone(RandomForestClassifier()).get_params()
    (setting,) = forest.entries[0].settings
    assert setting == {name: defaults[name] for name in setting}
    svm = evaluate(X, Y, resampling="holdout:0.3", execution=SERIAL)
    assert svm.entries[0].settings == ({"C": 1.0, "gamma": pytest.approx(1 / 30)},)
    partly = evaluate(X, Y, resampling="holdout:0.3", execution=SERIAL, C="1,10")
    assert [one.settings[0]["C"] for one in partly.entries] == [1.0, 10.0]


def cost(y, predicted):
    """A loss of the user: a missed positive costs five times as much."""
    return float(np.mean(np.where(y == 1, 5.0, 1.0) * (y != predicted)))


def words(y, predicted):
    return "bad"


def broken(y, predicted):
    raise KeyError("broken on purpose")


def test_a_function_may_measure_and_select(tmp_path):
    options = {
        "learner": "linear",
        "resampling": "nested:3:3",
        "select_by": "cost",
        "measure": [cost, "accuracy"],
    }
    result = evaluate(X, Y, tmp_path / "run", SERIAL, **options)
    (entry,) = result.entries
    costs = result.of_splits(entry, result.scores[0])
    for (train, scored), found, setting in zip(pairs(result.study), costs, entry.settings, strict=True):
        model, _ = fit_model(result.problem.learner, TASK, train, setting)
        assert found == cost(Y[scored], model.predict(X[scored]).label)
    again = load_scores(tmp_path / "run")
    assert same(again, result)
    again = evaluate(X, Y, tmp_path / "run", SERIAL, **options)
    assert same(again, result)


@pytest.mark.parametrize(
    ("function", "messages"), [(words, "returned 'bad': expected a number"), (broken, "KeyError")]
)
def test_a_function_that_fails_is_recorded(function, messages):
    result = evaluate(
        X, Y, resampling="kfold:3", measure=["accuracy", function], execution=SERIAL, learner="tree"
    )
    assert not result.complete
    assert len(result.execution["failures"]) == 3
    assert messages in result.execution["failures"][0][3]


def test_a_function_that_cannot_be_sent_is_refused(ray_session):
    from threading import Lock

    lock = Lock()

    def locked(y, predicted):
        with lock:
            return 0.0

    with pytest.raises(InputError, match="values that can be pickled"):
        evaluate(X, Y, measure=locked, execution=Execution("ray"), learner="tree")


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_the_backend_is_chosen_by_what_is_left(seconds, ray_session, monkeypatch):
    """What a trial in this process did not finish is computed by the backend that suits what is left."""
    monkeypatch.setattr("ckcv_ray.engine.forecast.TRIAL_SECONDS", seconds)
    monkeypatch.setattr("ckcv_ray.engine.backend.SERIAL_SECONDS", seconds)
    seen = []
    options = {"learner": "naive_bayes", "resampling": "kfold:4"}
    result = evaluate(X, Y, execution=Execution(), listen=seen.append, **options)
    assert same(result, evaluate(X, Y, execution=SERIAL, **options))
    assert result.execution["backend"] == ("serial" if seconds else "ray")
    assert seen[-1].computed == 4


UNREADABLE = [
    *(("measure", []), ("measure", [{"name": "broken"}]), ("strange", 1), ("interval", "t")),
    ("measure", [{"name": "zero_one", "digest": "0" * 64}]),
    *(("resampling", None), ("resampling", {"name": "nested", "outer": 3})),
]


@pytest.mark.parametrize(("name", "value"), UNREADABLE)
def test_a_procedure_that_cannot_be_read_is_refused(name, value):
    content = Procedure.of(learner="tree", measure=broken).to_json()
    assert Procedure.from_json(json.loads(json.dumps(content))).to_json() == content
    with pytest.raises(InputError):
        Procedure.from_json(content | {name: value})
