"""Learners behind one interface (``base``), the models they fit, and ensembles of those models.

Importing a learner registers those of this package: no lower layer needs to know their classes.
"""

from typing import Any

from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.nystroem import NystroemSVM
from ckcv_ray.learners.simple import Ridge
from ckcv_ray.learners.sklearn.learner import BOOSTING, NAMED, REGRESSORS, AnyEstimator
from ckcv_ray.learners.svm.learner import GaussianSVM

BUILT_IN: tuple[Any, ...] = (GaussianSVM, NystroemSVM, *NAMED, Ridge, *REGRESSORS, AnyEstimator)
LEARNERS |= {learner.name: learner for learner in (*BUILT_IN, *BOOSTING, Choice)}
