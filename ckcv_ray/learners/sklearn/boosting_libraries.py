"""XGBoost, LightGBM and CatBoost by short names, for classes and numbers; a path over their rounds."""

from dataclasses import dataclass
from typing import ClassVar

from ckcv_ray.learners.sklearn.learner import EstimatorLearner, WeightedLearner
from ckcv_ray.learners.sklearn.libraries import BOOSTERS, check_installed
from ckcv_ray.learners.sklearn.regressors import Regressor
from ckcv_ray.learners.sklearn.space import Values
from ckcv_ray.learners.sklearn.spec import Spec, check_trusted

RATES, ROUNDS = (0.05, 0.2), (25, 50, 100, 150, 200)


class BoostingLearner(EstimatorLearner):
    """A learner of one of the libraries, which is imported only if it is trusted."""

    trees: ClassVar[bool] = True

    def __post_init__(self) -> None:
        package = BOOSTERS[self.spec["class"]]
        check_trusted(f"learner={self.name!r}", package)
        check_installed(package)
        super().__post_init__()


@dataclass(frozen=True)
class XGBoost(BoostingLearner):
    """XGBoost."""

    name = "xgboost"
    spec: ClassVar[Spec] = {"class": "xgboost.sklearn:XGBClassifier"}
    values: ClassVar[Values] = {"learning_rate": RATES, "max_depth": (3, 6), "n_estimators": ROUNDS}
    defaults: ClassVar[Values] = {"learning_rate": 0.3, "max_depth": 6, "n_estimators": 100}


@dataclass(frozen=True)
class LightGBM(BoostingLearner, WeightedLearner):
    """LightGBM."""

    name = "lightgbm"
    spec: ClassVar[Spec] = {"class": "lightgbm.sklearn:LGBMClassifier"}
    values: ClassVar[Values] = {
        "learning_rate": RATES,
        "min_child_samples": (5, 20),
        "n_estimators": ROUNDS,
        "num_leaves": (7, 31),
    }


@dataclass(frozen=True)
class CatBoost(BoostingLearner):
    """CatBoost."""

    name = "catboost"
    spec: ClassVar[Spec] = {"class": "catboost.core:CatBoostClassifier", "params": {"learning_rate": 0.1}}
    values: ClassVar[Values] = {"depth": (4, 6), "iterations": ROUNDS, "learning_rate": RATES}
    defaults: ClassVar[Values] = {"depth": 6, "iterations": 1000, "learning_rate": None}


@dataclass(frozen=True)
class XGBoostRegressor(BoostingLearner, Regressor):
    """XGBoost, for numbers."""

    name = "xgboost_regressor"
    spec: ClassVar[Spec] = {"class": "xgboost.sklearn:XGBRegressor"}
    values: ClassVar[Values] = XGBoost.values
    defaults: ClassVar[Values] = XGBoost.defaults


@dataclass(frozen=True)
class LightGBMRegressor(BoostingLearner, Regressor):
    """LightGBM, for numbers."""

    name = "lightgbm_regressor"
    spec: ClassVar[Spec] = {"class": "lightgbm.sklearn:LGBMRegressor"}
    values: ClassVar[Values] = LightGBM.values


@dataclass(frozen=True)
class CatBoostRegressor(BoostingLearner, Regressor):
    """CatBoost, for numbers."""

    name = "catboost_regressor"
    spec: ClassVar[Spec] = {"class": "catboost.core:CatBoostRegressor", "params": {"learning_rate": 0.1}}
    values: ClassVar[Values] = CatBoost.values
    defaults: ClassVar[Values] = CatBoost.defaults


BOOSTING: tuple[type[BoostingLearner], ...] = (
    *(XGBoost, LightGBM, CatBoost),
    *(XGBoostRegressor, LightGBMRegressor, CatBoostRegressor),
)
