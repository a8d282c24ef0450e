"""Procedures that do not go together: calls of ``evaluate``, and what each is refused with."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, KFold

from ckcv_ray import Execution, evaluate
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.errors import InputError

X, Y = (part[::6] for part in load_breast_cancer(return_X_y=True))
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


def surprise(y, predicted, probability):
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
    no("cv is called resampling here", cv=3),
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
    no("measure zero_one, accuracy, not auc", EXACT, measure="auc"),
    no("rows of a group are not", EXACT, groups=PAIRS),
    no("is for resampling holdout, not kfold", EXACT, resampling="kfold:3"),
    no("not loo: choose one of them, or interval=bbc", CORRECTED, resampling="loo"),
    no("not given", CORRECTED, resampling=KFold(3)),
    no("requires two splits", CORRECTED, resampling="subsampling:1:0.3"),
    no("with select=each, or without a selection", CORRECTED, resampling="nested:3:2", select_by="accuracy"),
    no("choose=one_se may keep another", BBC, refit="best", choose="one_se"),
    no("resampling kfold, drawn_folds, loo, not repeated_kfold", BBC, resampling="repeated_kfold:3x2"),
    no("is for measure zero_one, .*clipped, not auc", BBC, measure="auc"),
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
    no("choose a learner of numbers such as ridge, in ckcv run with --clip", OF_NUMBERS, learner="forest"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "options"), REFUSED)
def test_what_cannot_be_evaluated_is_refused(message, options):
    with pytest.raises(InputError, match=message):
        evaluate(**{"X": X, "y": Y, "execution": Execution("serial")} | options)
