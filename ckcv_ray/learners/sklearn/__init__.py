"""Estimators of scikit-learn, and others with its interface, as learners.

Importing scikit-learn and skops takes a second, which commands that do not need them and every worker would
wait for: so the modules here import them in the functions that use them.
"""

from ckcv_ray.learners.sklearn.boosting_libraries import BOOSTING
from ckcv_ray.learners.sklearn.learner import AnyEstimator, EstimatorLearner
from ckcv_ray.learners.sklearn.named import NAMED
from ckcv_ray.learners.sklearn.regressors import REGRESSORS
from ckcv_ray.learners.sklearn.spec import UntrustedError, trust

__all__ = ["BOOSTING", "NAMED", "REGRESSORS", "AnyEstimator", "EstimatorLearner", "UntrustedError", "trust"]
