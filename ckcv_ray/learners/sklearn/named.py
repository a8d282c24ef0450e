"""Learners by short names: an estimator of scikit-learn and a search space that is a good start.

A search space depends on nothing but the learner: never on the labels.
"""

from dataclasses import dataclass
from typing import ClassVar

from ckcv_ray.learners.sklearn.learner import (
    EstimatorLearner,
    NeighborsLearner,
    ScaledLearner,
    WeightedLearner,
)
from ckcv_ray.learners.sklearn.space import Values
from ckcv_ray.learners.sklearn.spec import Spec


@dataclass(frozen=True)
class Linear(ScaledLearner, WeightedLearner):
    """Logistic regression on standardised columns."""

    name = "linear"
    unscaled: ClassVar[Spec] = {
        "class": "sklearn.linear_model:LogisticRegression",
        "params": {"max_iter": 1000},
    }
    values: ClassVar[Values] = {"C": tuple(10.0 ** (e / 2) for e in range(-6, 5))}


@dataclass(frozen=True)
class Boosting(WeightedLearner):
    """Gradient boosting of trees on histograms; a path over the number of rounds."""

    name = "boosting"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {
        "class": "sklearn.ensemble:HistGradientBoostingClassifier",
        "params": {"early_stopping": False},
    }
    values: ClassVar[Values] = {
        "learning_rate": (0.03, 0.1, 0.3),
        "max_iter": (25, 50, 100, 200),
        "max_leaf_nodes": (7, 31),
        "min_samples_leaf": (5, 20),
    }


@dataclass(frozen=True)
class Forest(WeightedLearner):
    """A random forest."""

    name = "forest"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {"class": "sklearn.ensemble:RandomForestClassifier"}
    values: ClassVar[Values] = {
        "max_features": ("sqrt", 0.5, 1.0),
        "min_samples_leaf": (1, 3, 10),
        "n_estimators": (50, 100, 200),
    }


@dataclass(frozen=True)
class ExtraTrees(WeightedLearner):
    """A forest of extremely randomised trees."""

    name = "extra_trees"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {"class": "sklearn.ensemble:ExtraTreesClassifier"}
    values: ClassVar[Values] = Forest.values


@dataclass(frozen=True)
class Neighbors(NeighborsLearner):
    """The nearest neighbours of standardised columns; a path over their number."""

    name = "neighbors"
    unscaled: ClassVar[Spec] = {"class": "sklearn.neighbors:KNeighborsClassifier"}
    values: ClassVar[Values] = {"n_neighbors": (1, 3, 5, 7, 9, 11, 15), "weights": ("uniform", "distance")}


@dataclass(frozen=True)
class Tree(WeightedLearner):
    """A decision tree; a path over the cost of complexity at which it is pruned."""

    name = "tree"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {"class": "sklearn.tree:DecisionTreeClassifier"}
    values: ClassVar[Values] = {
        "ccp_alpha": (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
        "criterion": ("gini", "entropy"),
        "min_samples_leaf": (1, 5, 20),
    }


@dataclass(frozen=True)
class NaiveBayes(EstimatorLearner):
    """Naive Bayes with normal distributions; a path over the smoothing of their variances."""

    name = "naive_bayes"
    spec: ClassVar[Spec] = {"class": "sklearn.naive_bayes:GaussianNB"}
    values: ClassVar[Values] = {"var_smoothing": tuple(10.0**e for e in range(-12, 1))}


@dataclass(frozen=True)
class MLP(ScaledLearner):
    """A neural network with one or two hidden layers on standardised columns."""

    name = "mlp"
    unscaled: ClassVar[Spec] = {"class": "sklearn.neural_network:MLPClassifier", "params": {"max_iter": 300}}
    values: ClassVar[Values] = {"alpha": (0.0001, 0.01, 1.0), "hidden_layer_sizes": ([16], [64], [32, 32])}


@dataclass(frozen=True)
class LDA(EstimatorLearner):
    """Linear discriminant analysis with shrunken covariances."""

    name = "lda"
    spec: ClassVar[Spec] = {
        "class": "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        "params": {"solver": "lsqr"},
    }
    values: ClassVar[Values] = {"shrinkage": (None, "auto", 0.1, 0.5, 0.9)}


@dataclass(frozen=True)
class Constant(EstimatorLearner):
    """The commonest class of the training rows."""

    name = "constant"
    spec: ClassVar[Spec] = {"class": "sklearn.dummy:DummyClassifier"}
    values: ClassVar[Values] = {"strategy": ("most_frequent",)}


NAMED: tuple[type[EstimatorLearner], ...] = (
    Linear,
    Boosting,
    Forest,
    ExtraTrees,
    Neighbors,
    Tree,
    NaiveBayes,
    MLP,
    LDA,
    Constant,
)
