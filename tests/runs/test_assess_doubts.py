"""What makes usual figures untrue, such as rows that repeat, and procedures that do not go together."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, StoreError, evaluate
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import assess
from ckcv_ray.study.problem import OUTER
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
X, Y = (part[::6] for part in load_breast_cancer(return_X_y=True))


@pytest.mark.parametrize(
    ("measure", "splitter"), [("auc", TimeSeriesSplit(4)), ("average_precision", KFold(5))]
)
def test_rows_are_ranked_as_scikit_learn_ranks_them(measure, splitter):
    """By the probability of the second class: a difference of two makes ties of those near 1."""
    result = evaluate(X, Y, learner=GaussianNB(), resampling=splitter, measure=measure, execution=SERIAL)
    scoring = "roc_auc" if measure == "auc" else measure
    found = cross_validate(GaussianNB(), X, Y, cv=splitter, scoring=scoring)["test_score"]
    assert np.array_equal(result.to_frame()[measure].to_numpy(), found, equal_nan=True)


@pytest.mark.parametrize("resampling", ["time:3", "kfold:3"])
def test_dates_that_do_not_ascend_are_a_caution_where_rows_are_taken_in_their_order(resampling):
    """One date by which the table is sorted is enough: others may be dates of birth."""
    n = 60
    ascending = np.datetime64("2020-01-01") + np.arange(n)
    shuffled = ascending[np.random.default_rng(3).permutation(n)]
    for columns, expected in (({"seen": ascending, "born": shuffled}, False), ({"born": shuffled}, True)):
        inputs = pa.table({"size": X[:n, 0], **columns})
        result = evaluate(inputs, Y[:n], learner="tree", resampling=resampling, execution=SERIAL)
        said = "not in ascending order of 'born'" in " ".join(result.summary().split())
        assert said == (expected and resampling == "time:3")


def test_rows_that_repeat_and_columns_that_look_like_groups_are_pointed_out():
    result = evaluate(np.tile(X[:30], (3, 1)), np.tile(Y[:30], 3), learner="tree", resampling="holdout:0.3",
                      execution=SERIAL)  # fmt: skip
    assert result.to_json()["repeats"] == 90
    assert "CAUTION 90 of 90 rows equal another row in every column" in " ".join(result.summary().split())
    table = pa.table({"patient": np.arange(60) // 3, "x": X[:60, 0], "y": Y[:60]})
    study = Procedure.of(resampling="holdout:0.3", learner="tree")
    asked = assess(study, Task.from_table(table, Roles("y")), None, SERIAL)
    assert "QUESTION column 'patient' repeats" in " ".join(asked.summary().split())


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


# Classes with a single row: scored without a certification, and refused with one


ROWS = np.random.default_rng(7).normal(size=(40, 3))
SINGLE = np.array(["a"] * 20 + ["b"] * 19 + ["c"])


def test_a_row_of_a_class_that_was_not_learned_is_wrong():
    """Its probability is 0, as scikit-learn's cross_val_predict has it; AUC is not defined there."""
    options = {"learner": "linear", "measure": "accuracy,log_loss,roc_auc_ovr", "resampling": "kfold:4"}
    result = evaluate(ROWS, SINGLE, execution=SERIAL, **options)
    (entry,), estimator = result.entries, make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = []
    for number in range(4):
        train, scored = result.problem.rows(Stage.SELECT, OUTER, number)
        fitted = clone(estimator).fit(ROWS[train], SINGLE[train])
        shares = np.zeros((len(scored), 3))
        shares[:, np.searchsorted(["a", "b", "c"], fitted.classes_)] = fitted.predict_proba(ROWS[scored])
        y = SINGLE[scored]
        expected.append(
            (accuracy_score(y, fitted.predict(ROWS[scored])), log_loss(y, shares, labels=list("abc")))
        )
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


def own_loss(y, predicted):
    return 0.0


class Own:
    def __init__(self, *pairs):
        self.pairs = pairs

    def split(self, X, y=None, groups=None):
        yield from self.pairs


def no(message, base=None, **options):
    return message, (base or {}) | options


REFUSED = [
    no("measure=''|measure is empty", measure=""),
    no("names one twice", measure="accuracy,accuracy"),
    no("needs probabilities, and learner svm gives none", measure="log_loss"),
    no("measure='rmse' is not for two classes", measure="rmse"),
    no("a function of yours is a loss", measure=[accuracy_score]),
    no("measure=", measure=[lambda y, p: 0.0]),
    no("measure=", measure=[3]),
    no("measure=surprise needs probabilities, and learner svm gives none", measure=surprise),
    no("measure=surprise has a parameter probability, of classes, and the", OF_NUMBERS, measure=surprise),
    # resamplings and selections
    no("more folds than the 63 units", resampling="nested:3:80", select_by="f1"),
    no("select_by=zero_one requires a resampling that selects", select_by="zero_one"),
    no("requires a resampling that selects", select="each"),
    no("name row 200, and there are 95 rows", resampling=Splits.of([([0, 1], [200])], 300)),
    no("leave groups out", resampling=Splits.of([([0, 1], [2])], 3), groups=PAIRS),
    no("a splitter such as", resampling=KFold),
    no("or pairs of rows to fit and rows to score", resampling=Own((1, 2, 3))),
    no("rows to score .ValueError", resampling=GroupKFold(3)),
    # options
    no("seed=-1", seed=-1),
    # strata
    no("stratify", resampling="nested:2:2", select_by="f1", stratify="yes"),
    no("stratify is for holdout, kfold", resampling="loo", stratify=True),
    no("keeps groups whole in kfold and repeated_kfold, not in subsampling", STRATIFIED,
       resampling="subsampling:5:0.3", groups=THREES),
    no("not in nested", STRATIFIED, resampling="nested_halves:5", groups=THREES, select_by="zero_one"),
    no("stratify is for .*, not kfold:4:last", STRATIFIED, resampling="kfold:4:last"),
    no("stratify is for .*, not drawn_folds", STRATIFIED, resampling="drawn_folds:4"),
    # estimates that need means over rows
    no("means over rows, and auc is none: choose from zero", PLUS, measure="auc"),
    no("means over rows, and own_loss is none: choose from zero", PLUS, measure=own_loss),
    no("rmse is none: choose from squared, absolute, mape, or", PLUS | OF_NUMBERS, measure="rmse"),
    # intervals
    no("interval='t' is not known: choose from corrected_t, clopper_pearson, bbc", interval="t"),
    no("measure zero_one, accuracy, not for .* and auc", EXACT, measure="auc"),
    no("rows of a group are not", EXACT, groups=PAIRS),
    no("is for resampling holdout .*, not for kfold", EXACT, resampling="kfold:3"),
    no("not for loo and", CORRECTED, resampling="loo"),
    no("not for given and", CORRECTED, resampling=KFold(3)),
    no("requires two splits", CORRECTED, resampling="subsampling:1:0.3"),
    no("with select=each, or without a selection", CORRECTED, resampling="nested:3:2", select_by="accuracy"),
    no("choose=one_se may keep another", BBC, refit="best", choose="one_se"),
    no("resampling kfold, drawn_folds, loo .*, not for repeated_kfold", BBC, resampling="repeated_kfold:3x2"),
    no("and measure zero_one, .*clipped, not for .* and auc", BBC, measure="auc"),
    no("rows of a group are not", BBC, groups=PAIRS),
    # the model that is kept
    no("refit='all' is not known: choose from best", KEPT, refit="all"),
    no("add refit=best", KEPT, refit=None, choose="one_se"),
    no("choose='median': expected best", KEPT, choose="median"),
    no("tolerance:2%", KEPT, choose="tolerance:2"),
    no("needs the standard error of several splits, and .* has none", KEPT, choose="one_se",
       resampling="holdout:0.3"),
    no("and bootstrap632:5 has none", KEPT, choose="one_se", resampling="bootstrap632:5"),
    no("refit=best requires a resampling that scores every setting", KEPT, resampling="nested:3:3",
       select_by="accuracy"),
    no("it is not known which value of strategy", KEPT | OF_NUMBERS, learner="mean", choose="one_se"),
    # permutations
    no("permutes targets within groups, and each group has a single one", groups=THREES, permutations=3,
       y=THREES % 3),
    no("permutations=3 requires a resampling that scores every", resampling="nested:3:3", permutations=3),
    no("permutations=-1", permutations=-1),
    # numbers
    no("choose absolute, cor2, mape, r2, rmse, squared, clipped:50", OF_NUMBERS, measure="zero_one"),
    no("clipped:", OF_NUMBERS, measure="clipped:0"),
    no("such as clipped:50", OF_NUMBERS, measure="clipped:inf"),
    no("stratify", OF_NUMBERS, stratify=True),
    no("compare those of one kind", OF_NUMBERS, learner="ridge,forest"),
    no("alpha", OF_NUMBERS, param={"alpha": (0.0,)}),
    no("choose a learner of numbers such as ridge", OF_NUMBERS, learner="forest"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "options"), REFUSED)
def test_what_cannot_be_evaluated_is_refused(message, options):
    with pytest.raises(InputError, match=message):
        evaluate(**{"X": X, "y": Y, "execution": Execution("serial")} | options)
