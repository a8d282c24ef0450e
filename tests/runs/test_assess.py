"""Procedures: the numbers of scikit-learn, and what makes the usual figures untrue."""

import json
import warnings
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest
from alike import pairs
from conftest import unwrap
from scipy.stats import beta, t
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, StoreError, evaluate
from ckcv_ray.core.bounds.paired import compare_scores
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.core.selection import select_settings
from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.paths import fit_model
from ckcv_ray.runs.finished import load_scores
from ckcv_ray.runs.result import compare_entries, explain_no_bound
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import INNER, Problem
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
RESAMPLINGS = ["kfold:3:last", "drawn_folds:4", "time:3:2", "subsampling:6:0.25", "bootstrap632:2", "loo"]
X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::6], Y[::6]
TASK = Task.of(X, Y)


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
        splits = pairs(result.problem)
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


@pytest.mark.parametrize("select", ["one", "each"])
def test_a_nested_selection_is_that_of_grid_search(select):
    costs = (0.01, 0.1, 1.0, 10.0)
    study = {"learner": sklearn_linear(), "param": {"C": costs}, "resampling": "nested:4:3", "seed": 5}
    by = {"measure": "accuracy", "select_by": "accuracy", "select": select}
    result = evaluate(X, Y, execution=SERIAL, **study, **by)
    problem = result.problem
    outer, inner = pairs(problem), pairs(problem, INNER)
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
        problem = Problem.of(Procedure.of(resampling=text, select_by="zero_one"), TASK)
        outer, inner, starts = pairs(problem), pairs(problem, INNER), problem.starts.tolist()
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
    for name in ("data.parquet", "scores.parquet", "scores.json"):
        file = tmp_path / "run" / name
        file.write_bytes(file.read_bytes()[:-7])
        with pytest.raises(StoreError):
            load_scores(tmp_path / "run")
        assert same(evaluate(X, Y, tmp_path / "run", SERIAL, **PLAIN), first)
        assert not RunFolder(tmp_path / "run").list_differing()


def test_what_fails_in_some_splits_is_recorded_and_the_score_incomplete(tmp_path):
    """Four neighbours of three training rows: in one of two splits there are too few."""
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
    json.dumps(result.to_json(), allow_nan=False)
    (failure,) = result.execution["failures"]
    assert "Expected n_neighbors <= n_samples_fit" in failure[3]
    assert same(load_scores(tmp_path / "run"), result)


def test_pooled_figures_and_bounds_come_from_all_rows():
    result = evaluate(X, Y, resampling="kfold:7", measure="zero_one,f1", execution=SERIAL, learner="tree")
    (entry,) = result.entries
    predicted = np.empty(len(Y), int)
    from sklearn.metrics import f1_score

    for train, scored in pairs(result.problem):
        model = result.problem.learner.trainer.prepare(TASK, train, scored).fit(0, 1).model(0)
        predicted[scored] = model.predict(X[scored]).label
    error, f1 = (result.figures(entry, score) for score in result.scores)
    assert error.pooled == pytest.approx(np.mean(predicted != Y), abs=0)
    assert f1.pooled == pytest.approx(f1_score(Y, predicted))
    rates = result.of_splits(entry, result.scores[0])
    rows = [len(scored) for _, scored in pairs(result.problem)]
    for bound, rate, n in zip(result.bounds(entry, result.scores[0]), rates, rows, strict=True):
        assert bound == pytest.approx(beta.ppf(0.95, round(rate * n) + 1, n - round(rate * n)))
    assert np.isnan(result.bounds(entry, result.scores[1])).all()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"resampling": "bootstrap632:5"}, "rows that they fit on"),
        ({"resampling": "kfold:5", "stratify": True}, "fixed numbers of each class"),
        ({"resampling": "kfold:5", "groups": np.arange(len(Y)) // 3}, "groups"),
        ({"resampling": KFold(5)}, "given"),
        ({"resampling": "nested:3:3", "select_by": "zero_one"}, "rows of all splits"),
    ],
)
def test_no_bound_is_shown_where_none_is_proven(options, reason):
    kind = {"learner": "naive_bayes", "measure": "zero_one,accuracy", "execution": SERIAL}
    result = evaluate(X, Y, **kind, **options)
    assert reason in explain_no_bound(result)
    for entry, score in product(result.entries, result.scores):
        assert np.isnan(result.bounds(entry, score)).all()
        assert set(result.to_json()["entries"][0]["scores"][score.name]["bounds"]) == {None}
    said = unwrap(result.summary())
    assert f"No bound is proven for any model on new rows: {explain_no_bound(result)}." in said


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


def test_of_equal_settings_the_smaller_step_then_path_is_selected():
    losses = np.array([[[0.3, 0.1, np.nan], [0.1, 0.1, 0.2], [0.1, np.nan, np.nan]]])
    chosen = select_settings(losses, np.array([0, 1]), np.array([0, 0, 1]), each=False)
    assert chosen.tolist() == [[[1, 0], [2, 0]]]


def cost(y, predicted):
    """A user's loss: a missed positive costs five times as much."""
    return float(np.mean(np.where(y == 1, 5.0, 1.0) * (y != predicted)))


def broken(y, predicted):
    return "bad"


def test_a_function_may_measure_and_select(tmp_path):
    options = {"learner": "linear", "resampling": "nested:3:3", "measure": [cost, "accuracy"]}  # by the first
    result = evaluate(X, Y, tmp_path / "run", SERIAL, **options)
    (entry,) = result.entries
    costs = result.of_splits(entry, result.scores[0])
    for (train, scored), found, setting in zip(pairs(result.problem), costs, entry.settings, strict=True):
        model, _ = fit_model(result.problem.learner, TASK, train, setting)
        assert found == cost(Y[scored], model.predict(X[scored]).label)
    assert same(load_scores(tmp_path / "run"), result)
    assert same(evaluate(X, Y, tmp_path / "run", SERIAL, **options), result)


def test_a_function_that_fails_is_recorded():
    options = {"learner": "tree", "resampling": "kfold:3", "measure": ["accuracy", broken]}
    result = evaluate(X, Y, execution=SERIAL, **options)
    assert not result.complete
    assert len(result.execution["failures"]) == 3
    assert "returned 'bad': expected a number" in result.execution["failures"][0][3]


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


# What makes usual figures untrue, and procedures that do not go together


@pytest.mark.parametrize(
    ("measure", "splitter"), [("auc", TimeSeriesSplit(4)), ("average_precision", KFold(5))]
)
def test_rows_are_ranked_as_scikit_learn_ranks_them(measure, splitter):
    """By the probability of the second class: a difference of two makes ties of those near 1."""
    result = evaluate(X, Y, learner=GaussianNB(), resampling=splitter, measure=measure, execution=SERIAL)
    scoring = "roc_auc" if measure == "auc" else measure
    found = cross_validate(GaussianNB(), X, Y, cv=splitter, scoring=scoring)["test_score"]
    assert np.array_equal(result.to_frame()[measure].to_numpy(), found, equal_nan=True)


def test_dates_that_do_not_ascend_are_a_caution_where_rows_are_taken_in_their_order():
    """One date by which the table is sorted is enough: others may be dates of birth."""
    seen = np.datetime64("2020-01-01") + np.arange(60)
    both = {"born": seen[np.random.default_rng(3).permutation(60)], "seen": seen}
    for names, resampling, said in (["born"], "time:3", 1), (["born"], "kfold:3", 0), (both, "time:3", 0):
        inputs = pa.table({"size": X[:60, 0]} | {name: both[name] for name in names})
        result = evaluate(inputs, Y[:60], learner="tree", resampling=resampling, execution=SERIAL)
        assert unwrap(result.summary()).count("not in ascending order of 'born'") == said


def test_rows_that_repeat_are_pointed_out():
    options = {"learner": "tree", "resampling": "holdout:0.3", "execution": SERIAL}
    result = evaluate(np.tile(X[:30], (3, 1)), np.tile(Y[:30], 3), **options)
    assert result.to_json()["repeats"] == 90
    assert "CAUTION 90 of 90 rows equal another row in every column" in unwrap(result.summary())


def loss_of(value):
    def loss(y, predicted):
        return value

    return loss


def test_a_function_is_known_by_what_it_encloses(tmp_path):
    options = {"learner": "tree", "resampling": "kfold:3", "execution": SERIAL}
    first, again = (evaluate(X, Y, tmp_path / "a", measure=loss_of(0.25), **options) for _ in range(2))
    assert first.to_frame()["loss"].tolist() == [0.25] * 3
    assert again.run_id == first.run_id
    with pytest.raises(StoreError, match="measure: requested"):
        evaluate(X, Y, tmp_path / "a", measure=loss_of(0.75), **options)


ROWS = np.random.default_rng(7).normal(size=(40, 3))
SINGLE = np.array(["a"] * 20 + ["b"] * 19 + ["c"])


def test_a_row_of_a_class_that_was_not_learned_is_wrong():
    """Its probability is 0, as scikit-learn's cross_val_predict has it; AUC is not defined there."""
    options = {"learner": "linear", "measure": "accuracy,log_loss,roc_auc_ovr", "resampling": "kfold:4"}
    result = evaluate(ROWS, SINGLE, execution=SERIAL, **options)
    (entry,), estimator = result.entries, make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = []
    for train, scored in pairs(result.problem):
        fitted = clone(estimator).fit(ROWS[train], SINGLE[train])
        shares = np.zeros((len(scored), 3))
        shares[:, np.searchsorted(["a", "b", "c"], fitted.classes_)] = fitted.predict_proba(ROWS[scored])
        y, predicted = SINGLE[scored], fitted.predict(ROWS[scored])
        expected.append((accuracy_score(y, predicted), log_loss(y, shares, labels=list("abc"))))
    found = [result.of_splits(entry, score) for score in result.scores]
    np.testing.assert_allclose(np.transpose(found[:2]), expected, rtol=1e-9)
    assert np.isnan(found[2]).sum() == 3  # splits that do not score the row


# Functions of the user that see probabilities: those of the model, in the order of the sorted labels


FLOWERS, KINDS = load_iris(return_X_y=True)
FLOWERS, SPECIES = FLOWERS[::3], np.array(["setosa", "versicolor", "virginica"])[KINDS[::3]]


def surprise(y, predicted, probability):
    return log_loss(y, probability, labels=["setosa", "versicolor", "virginica"])


def alter(y, predicted, *, probability):
    probability[:] = 0  # its own copy
    return 1.0


def test_a_function_sees_the_probabilities_and_selects_by_them():
    options = {"learner": "neighbors", "param": {"n_neighbors": (1, 5, 9)}, "resampling": "nested_halves:3"}
    own = evaluate(FLOWERS, SPECIES, measure=[surprise, alter, "log_loss"], execution=SERIAL, **options)
    named = evaluate(FLOWERS, SPECIES, measure="log_loss", execution=SERIAL, **options)
    assert own.entries[0].settings == named.entries[0].settings
    by_function, _, by_name = (own.of_splits(own.entries[0], score) for score in own.scores)
    np.testing.assert_array_equal(by_function, by_name)


A, B = (part[::6] for part in load_diabetes(return_X_y=True))
B = B + np.arange(len(B)) / 1e4  # no two are equal
PAIRS = np.arange(len(Y)) // 2
THREES = np.arange(len(Y)) // 3
KEPT = {"learner": "linear", "resampling": "kfold:3", "refit": "best"}
EXACT = {"learner": "naive_bayes", "interval": "clopper_pearson", "resampling": "holdout:0.3"}
CORRECTED = {"learner": "naive_bayes", "interval": "corrected_t", "measure": "accuracy"}
STRATIFIED = {"learner": "naive_bayes", "stratify": True}
PLUS = {"learner": "naive_bayes", "resampling": "bootstrap632plus:3"}
BBC = {"learner": "neighbors", "param": {"n_neighbors": [1, 3]}, "interval": "bbc", "resampling": "kfold:5"}
OF_NUMBERS = {"X": A, "y": B, "learner": "ridge"}


class Own:
    def __init__(self, *pairs):
        self.pairs = pairs

    def split(self, X, y=None, groups=None):
        yield from self.pairs


def no(message, base=None, **options):
    return message, (base or {}) | options


REFUSED = [
    no("measure=''|measure is empty", measure=""),
    no("needs probabilities, and learner svm gives none", measure="log_loss"),
    no("your function is taken as a loss", measure=[accuracy_score]),
    no("measure=", measure=[lambda y, p: 0.0]),
    no("measure=surprise needs probabilities, and learner svm gives none", measure=surprise),
    no("measure=surprise has a parameter probability, of classes, and the", OF_NUMBERS, measure=surprise),
    # resamplings and selections
    no("select_by=zero_one requires a resampling that selects", select_by="zero_one"),
    no("name row 200, and there are 95 rows", resampling=Splits.of([([0, 1], [200])], 300)),
    no("or pairs of rows to fit and rows to score", resampling=Own((1, 2, 3))),
    no("rows to score .ValueError", resampling=GroupKFold(3)),
    # strata
    no("stratify is for holdout, kfold", resampling="loo", stratify=True),
    no("keeps groups whole in kfold and repeated_kfold, not in subsampling", STRATIFIED,
       resampling="subsampling:5:0.3", groups=THREES),
    # estimates that need means over rows
    no("means over rows, and auc is not: choose from zero", PLUS, measure="auc"),
    # intervals
    no("measure zero_one, accuracy, not for .* and auc", EXACT, measure="auc"),
    no("rows of a group are not", EXACT, groups=PAIRS),
    no("is for resampling holdout .*, not for kfold", EXACT, resampling="kfold:3"),
    no("not for loo and", CORRECTED, resampling="loo"),
    no("requires two splits", CORRECTED, resampling="subsampling:1:0.3"),
    no("with select=each, or without a selection", CORRECTED, resampling="nested:3:2", select_by="accuracy"),
    no("choose=one_se may keep another", BBC, refit="best", choose="one_se"),
    no("resampling kfold, drawn_folds, loo .*, not for repeated_kfold", BBC, resampling="repeated_kfold:3x2"),
    no("rows of a group are not", BBC, groups=PAIRS),
    # the model that is kept
    no("add refit=best", KEPT, refit=None, choose="one_se"),
    no("tolerance:2%", KEPT, choose="tolerance:2"),
    no("needs the standard error of several splits, and .* has none", KEPT, choose="one_se",
       resampling="holdout:0.3"),
    no("refit=best requires a resampling that scores every setting", KEPT, resampling="nested:3:3",
       select_by="accuracy"),
    no("it is not known which value of strategy", KEPT | OF_NUMBERS, learner="mean", choose="one_se"),
    # permutations
    no("permutes targets within groups, and each group has a single one", groups=THREES, permutations=3,
       y=THREES % 3),
    no("permutations=3 requires a resampling that scores every", resampling="nested:3:3", permutations=3),
    # numbers
    no("such as clipped:50", OF_NUMBERS, measure="clipped:inf"),
    no("stratify", OF_NUMBERS, stratify=True),
    no("compare those of one kind", OF_NUMBERS, learner="ridge,forest"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "options"), REFUSED)
def test_what_cannot_be_evaluated_is_refused(message, options):
    with pytest.raises(InputError, match=message):
        evaluate(**{"X": X, "y": Y, "execution": Execution("serial")} | options)
