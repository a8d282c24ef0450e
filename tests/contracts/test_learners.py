"""The contract suite, run on the learners of the package and on two that are not part of it."""

from typing import Any

import pytest
from boosting import make, marks
from decision_stump import DecisionStump
from learner_contract import LearnerContract, ShortContract, clouds
from nearest_centroid import NearestCentroid

from ckcv_ray import GaussianSVM
from ckcv_ray.extend import Choice, NystroemSVM
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.learner import AnyEstimator

pytestmark = pytest.mark.filterwarnings("error")

SVM = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))
NYSTROEM = NystroemSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), landmarks=6)
TREE = {"ccp_alpha": (0.0, 0.02, 0.1), "criterion": ("gini",), "min_samples_leaf": (1, 3)}
LIGHT = {"learning_rate": 0.2, "min_child_samples": (2, 5), "n_estimators": (2, 5), "num_leaves": 4}
ROUNDS = {"learning_rate": 0.1, "max_iter": (2, 5), "max_leaf_nodes": 4, "min_samples_leaf": (1, 3)}
FOREST = {"max_features": ("sqrt", 0.5), "min_samples_leaf": 1, "n_estimators": (3, 6)}
QUADRATIC = "sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis"
ALL: dict[str, tuple[Any, int]] = {  # of all the tests: a learner, and the number of classes
    "GaussianSVM": (SVM, 2),
    "NystroemSVM": (NYSTROEM, 2),
    "DecisionStump": (DecisionStump(), 3),
    "Tree": (LEARNERS["tree"](TREE), 3),
    "LightGBM": (make("lightgbm", **LIGHT), 3),
}
SHORT: dict[str, tuple[Any, int]] = {  # of those that share the rest of their code with one of these
    "GaussianSVMOfBalancedClasses": (GaussianSVM(SVM.C, SVM.gamma, class_weight="balanced"), 2),
    "GaussianSVMOfWeightedClasses": (GaussianSVM(SVM.C, SVM.gamma, "none", class_weight={1: 7, 0: 0.5}), 2),
    "GaussianSVMOfThreeClasses": (SVM, 3),
    "NystroemSVMOfThreeClasses": (NYSTROEM, 3),
    "NystroemSVMWithoutScaling": (NystroemSVM((0.1,), (0.1,), "none", landmarks=6, class_weight={1: 7}), 3),
    "ChoiceOfTwoClasses": (Choice((SVM, NearestCentroid((0.5, 2.0)))), 2),
    "ChoiceOfThreeClasses": (Choice((NearestCentroid((0.5,)), SVM)), 3),
    "ChoiceByLabels": (Choice((NearestCentroid((0.5,)), NearestCentroid((0.1, 2.0))), ("large", "small")), 3),
    "Linear": (LEARNERS["linear"]({"C": (0.1, 10.0)}), 2),
    "Boosting": (LEARNERS["boosting"](ROUNDS), 3),
    "Forest": (LEARNERS["forest"](FOREST), 2),
    "Neighbors": (LEARNERS["neighbors"]({"n_neighbors": (1, 3, 4)}), 3),
    "NaiveBayes": (LEARNERS["naive_bayes"]({"var_smoothing": (1e-9, 0.1, 1.0)}), 3),
    "LDA": (LEARNERS["lda"]({"shrinkage": ("auto", 0.5, None)}), 3),
    "XGBoost": (make("xgboost", learning_rate=0.2, max_depth=(1, 3), n_estimators=(2, 5)), 3),
    "CatBoost": (make("catboost", learning_rate=0.2, depth=(1, 3), iterations=(2, 5)), 3),
    "AnyEstimator": (AnyEstimator({"reg_param": (0.1, 0.5)}, estimator=QUADRATIC), 2),
}
for suite, learners in ((LearnerContract, ALL), (ShortContract, SHORT)):
    for name, (learner, n_classes) in learners.items():
        held = {"learner": learner, "task": clouds(40, n_classes), "__module__": __name__}
        if learner is None:
            held["pytestmark"] = marks(name.lower())
        globals()[f"Test{name}"] = type(f"Test{name}", (suite,), held)
