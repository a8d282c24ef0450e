"""The contract suite on the learners of scikit-learn."""

import pytest
from learner_contract import LearnerContract, ShortContract, clouds

from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.learner import AnyEstimator

pytestmark = pytest.mark.filterwarnings("error")


class TestLinear(ShortContract):
    learner = LEARNERS["linear"]({"C": (0.1, 10.0)})
    task = clouds(30, 2)


class TestBoosting(ShortContract):
    learner = LEARNERS["boosting"](
        {"learning_rate": 0.1, "max_iter": (2, 5), "max_leaf_nodes": 4, "min_samples_leaf": (1, 3)}
    )
    task = clouds(30, 3)


class TestForest(ShortContract):
    learner = LEARNERS["forest"](
        {"max_features": ("sqrt", 0.5), "min_samples_leaf": 1, "n_estimators": (3, 6)}
    )
    task = clouds(30, 2)


class TestNeighbors(ShortContract):
    learner = LEARNERS["neighbors"]({"n_neighbors": (1, 3, 4)})
    task = clouds(30, 3)


class TestTree(LearnerContract):
    learner = LEARNERS["tree"](
        {"ccp_alpha": (0.0, 0.02, 0.1), "criterion": ("gini",), "min_samples_leaf": (1, 3)}
    )
    task = clouds(30, 3)


class TestNaiveBayes(ShortContract):
    learner = LEARNERS["naive_bayes"]({"var_smoothing": (1e-9, 0.1, 1.0)})
    task = clouds(30, 3)


class TestLDA(ShortContract):
    learner = LEARNERS["lda"]({"shrinkage": ("auto", 0.5, None)})
    task = clouds(30, 3)


class TestAnyEstimator(ShortContract):
    learner = AnyEstimator(
        param={"reg_param": (0.1, 0.5)},
        estimator="sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis",
    )
    task = clouds(40, 2)
