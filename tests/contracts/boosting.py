"""The boosting libraries in tests: LightGBM in all of them, the others where they are installed."""

from importlib.util import find_spec
from typing import Any

import pytest

from ckcv_ray import trust
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.spec import BOOSTERS

ALWAYS = "lightgbm"
NAMES = ("lightgbm", "xgboost", "catboost")


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Marks of the tests of a library."""
    missing = pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed: extra boosting")
    return [] if name == ALWAYS else [missing]


LIBRARIES = [pytest.param(name, marks=marks(name)) for name in NAMES]


def make(name: str, **param: Any) -> Any:
    """Return the learner of a short name; None where its library is not installed."""
    package = BOOSTERS[LEARNERS[name].spec["class"]]
    if find_spec(package) is None:
        return None
    trust(package)
    return LEARNERS[name](param=param or None)
