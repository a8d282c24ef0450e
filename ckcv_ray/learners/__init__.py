"""What is fitted: learners behind one seam (``base``), their models, and ensembles of them."""

from typing import Any

from ckcv_ray.learners.base import Learner
from ckcv_ray.learners.simple import SimpleLearner
from ckcv_ray.learners.svm.learner import GaussianSVM

LEARNERS: dict[str, Any] = {GaussianSVM.name: GaussianSVM}
DEFAULT = GaussianSVM
INSTALLED = "ckcv_ray.learners"  # the entry points by which packages name learners of theirs


def register(learner: type[Any]) -> type[Any]:
    """Make a learner known by its name, as a decorator of its class: studies in files name it."""
    LEARNERS[learner.name] = learner
    return learner


def make_known(learner: Learner) -> None:
    """Register the class of a learner where none of that name is: an actor may not know it."""
    LEARNERS.setdefault(learner.name, type(learner))


def register_installed() -> list[str]:
    """Register the learners of installed packages, which the command line offers beside our own.

    Returns:
        A sentence for each that could not be loaded: nothing else depends on it.
    """
    from importlib.metadata import entry_points  # takes 40 ms, which workers need not pay

    broken = []
    for point in entry_points(group=INSTALLED):
        try:
            register(point.load())
        except Exception as error:  # whatever a module of others raises
            broken.append(f"the learner {point.name} of {point.value} cannot be loaded: {error!r}")
    return broken


__all__ = ["DEFAULT", "LEARNERS", "Learner", "SimpleLearner", "make_known", "register", "register_installed"]
