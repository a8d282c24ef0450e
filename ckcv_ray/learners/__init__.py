"""What is fitted: learners behind one seam (``base``), their models, and ensembles of them."""

from typing import Any

from ckcv_ray.learners.base import Learner
from ckcv_ray.learners.simple import SimpleLearner
from ckcv_ray.learners.svm.learner import GaussianSVM

LEARNERS: dict[str, Any] = {GaussianSVM.name: GaussianSVM}
DEFAULT = GaussianSVM


def register(learner: type[Any]) -> type[Any]:
    """Make a learner known by its name, as a decorator of its class: studies in files name it."""
    LEARNERS[learner.name] = learner
    return learner


__all__ = ["DEFAULT", "LEARNERS", "Learner", "SimpleLearner", "register"]
