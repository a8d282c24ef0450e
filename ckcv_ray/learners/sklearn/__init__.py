"""Estimators of scikit-learn, and others with its interface, as learners."""

from ckcv_ray.learners.sklearn.learner import AnyEstimator, EstimatorLearner
from ckcv_ray.learners.sklearn.named import NAMED
from ckcv_ray.learners.sklearn.spec import UntrustedError, packages, trust

__all__ = ["NAMED", "AnyEstimator", "EstimatorLearner", "UntrustedError", "packages", "trust"]
