"""The contract suite on LightGBM, and at night on XGBoost and CatBoost."""

from boosting import make, marks
from learner_contract import LearnerContract, clouds


class TestLightGBM(LearnerContract):
    learner = make("lightgbm", learning_rate=0.2, min_child_samples=(2, 5), n_estimators=(2, 5), num_leaves=4)
    task = clouds(30, 3)


class TestXGBoost(LearnerContract):
    pytestmark = marks("xgboost")
    learner = make("xgboost", learning_rate=0.2, max_depth=(1, 3), n_estimators=(2, 5))
    task = clouds(30, 3)


class TestCatBoost(LearnerContract):
    pytestmark = marks("catboost")
    learner = make("catboost", learning_rate=0.2, depth=(1, 3), iterations=(2, 5))
    task = clouds(30, 3)
