"""Learners behind one interface (``base``), the models they fit, and ensembles of those models."""

from typing import Any

from ckcv_ray.core.options import register_part
from ckcv_ray.learners.base import Learner
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.nystroem.learner import NystroemSVM
from ckcv_ray.learners.ridge import Ridge
from ckcv_ray.learners.sklearn import BOOSTING, NAMED, REGRESSORS, AnyEstimator
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.validation import MOST

BUILT_IN: tuple[Any, ...] = (GaussianSVM, NystroemSVM, *NAMED, Ridge, *REGRESSORS, AnyEstimator)
LEARNERS: dict[str, Any] = {learner.name: learner for learner in (*BUILT_IN, *BOOSTING, Choice)}
DEFAULT = GaussianSVM
ALL = "all"  # the learners of ZOO that suit the table's size
ZOO = {  # number of rows up to which each is among all; of equals the simplest, which comes first, wins
    "constant": MOST,
    "naive_bayes": MOST,
    "lda": MOST,
    "linear": MOST,
    "tree": MOST,
    "neighbors": 20_000,
    "svm": 5_000,
    "extra_trees": 10_000,
    "forest": 10_000,
    "boosting": MOST,
}
LEARNER_GROUP = "ckcv_ray.learners"  # entry points under which packages list their learners


def register(learner: type[Any]) -> type[Any]:
    """Register a learner class under its name, by which studies in files refer to it; a decorator.

    Raises:
        InputError: another learner has that name.
    """
    return register_part(learner, LEARNERS)


def register_instance(learner: Learner) -> None:
    """Register the classes of a learner unless their names are taken: an actor may not know them."""
    for single in learner.by_label.values():
        LEARNERS.setdefault(single.name, type(single))


def register_installed() -> list[str]:
    """Register the learners of installed packages, which the command line offers like the built-in ones.

    Returns:
        A sentence for each learner that could not be loaded; the others are not affected.
    """
    from importlib.metadata import entry_points  # takes 40 ms, and workers do not need it

    broken = []
    for point in entry_points(group=LEARNER_GROUP):
        try:
            register(point.load())
        except Exception as error:  # a third-party module may raise anything
            broken.append(f"the learner {point.name} of {point.value} cannot be loaded: {error!r}")
    return broken


__all__ = [
    "ALL",
    "DEFAULT",
    "LEARNERS",
    "ZOO",
    "AnyEstimator",
    "Choice",
    "Learner",
    "register",
    "register_installed",
]
