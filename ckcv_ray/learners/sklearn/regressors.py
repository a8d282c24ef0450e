"""Regressors of scikit-learn by short names, with search spaces that are a good start."""

from dataclasses import dataclass
from typing import ClassVar

from ckcv_ray.core.measures import Kind
from ckcv_ray.learners.sklearn.learner import NUMBER_KINDS, EstimatorLearner, NeighborsLearner, ScaledLearner
from ckcv_ray.learners.sklearn.space import Values
from ckcv_ray.learners.sklearn.spec import Spec

TENTHS = tuple(10.0 ** (e / 2) for e in range(-6, 3))


@dataclass(frozen=True)
class Regressor(EstimatorLearner):
    """A base class for learners of numbers."""

    kinds: ClassVar[frozenset[Kind]] = NUMBER_KINDS


@dataclass(frozen=True)
class Mean(Regressor):
    """The mean, or the median, of the training rows."""

    name = "mean"
    spec: ClassVar[Spec] = {"class": "sklearn.dummy:DummyRegressor"}
    values: ClassVar[Values] = {"strategy": ("mean", "median")}


@dataclass(frozen=True)
class LinearRegression(Regressor):
    """Least squares, without a penalty."""

    name = "linear_regression"
    spec: ClassVar[Spec] = {"class": "sklearn.linear_model:LinearRegression"}
    values: ClassVar[Values] = {"fit_intercept": (True,)}


@dataclass(frozen=True)
class Lasso(ScaledLearner, Regressor):
    """Least squares with an absolute penalty, on standardised columns."""

    name = "lasso"
    unscaled: ClassVar[Spec] = {"class": "sklearn.linear_model:Lasso", "params": {"max_iter": 10_000}}
    values: ClassVar[Values] = {"alpha": TENTHS}


@dataclass(frozen=True)
class NeighborsRegressor(NeighborsLearner, Regressor):
    """The mean of the nearest neighbours, on standardised columns."""

    name = "neighbors_regressor"
    unscaled: ClassVar[Spec] = {"class": "sklearn.neighbors:KNeighborsRegressor"}
    values: ClassVar[Values] = {"n_neighbors": (1, 3, 5, 9, 15, 25), "weights": ("uniform", "distance")}


@dataclass(frozen=True)
class TreeRegressor(Regressor):
    """A regression tree."""

    name = "tree_regressor"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {"class": "sklearn.tree:DecisionTreeRegressor"}
    values: ClassVar[Values] = {"min_samples_leaf": (1, 5, 20), "max_depth": (None, 3, 6)}


@dataclass(frozen=True)
class ForestRegressor(Regressor):
    """A random forest of regression trees."""

    name = "forest_regressor"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {"class": "sklearn.ensemble:RandomForestRegressor"}
    values: ClassVar[Values] = {
        "max_features": ("sqrt", 0.5, 1.0),
        "min_samples_leaf": (1, 3, 10),
        "n_estimators": (100,),
    }


@dataclass(frozen=True)
class BoostingRegressor(Regressor):
    """Gradient boosting of regression trees on histograms."""

    name = "boosting_regressor"
    trees: ClassVar[bool] = True
    spec: ClassVar[Spec] = {
        "class": "sklearn.ensemble:HistGradientBoostingRegressor",
        "params": {"early_stopping": False},
    }
    values: ClassVar[Values] = {
        "learning_rate": (0.03, 0.1, 0.3),
        "max_iter": (25, 50, 100, 200),
        "max_leaf_nodes": (7, 31),
    }


@dataclass(frozen=True)
class SVR(ScaledLearner, Regressor):
    """Support vector regression with a Gaussian kernel, on standardised columns."""

    name = "svr"
    unscaled: ClassVar[Spec] = {"class": "sklearn.svm:SVR"}
    values: ClassVar[Values] = {"C": (0.1, 1.0, 10.0, 100.0), "gamma": ("scale", 0.01, 0.1, 1.0)}


REGRESSORS: tuple[type[Regressor], ...] = (
    LinearRegression,
    Lasso,
    NeighborsRegressor,
    TreeRegressor,
    ForestRegressor,
    BoostingRegressor,
    SVR,
    Mean,
)
