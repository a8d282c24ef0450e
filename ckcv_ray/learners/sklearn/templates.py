"""Unfitted estimators: made from their JSON form once in a process, and copied for each fit."""

import copy
import json
from functools import lru_cache
from typing import Any, NamedTuple

from ckcv_ray.learners.sklearn.allowed import check_setting
from ckcv_ray.learners.sklearn.functions import make_value
from ckcv_ray.learners.sklearn.libraries import prepare
from ckcv_ray.learners.sklearn.packing import last_step
from ckcv_ray.learners.sklearn.spec import build, complete_names

MOST_KEPT = 4096
OTHER_PARAMETERS = ("memory", "transform_input", "verbose")  # of a pipeline: each changes how it is fitted


class Template(NamedTuple):
    """An estimator at a setting, which is never fitted itself.

    Attributes:
        estimator: the estimator, whose fits use one thread.
        unseeded: for each ``random_state`` that is None, sorted by full name, the estimator that has it:
            itself or one inside.
        head: of a pipeline whose steps but the last can be fitted once for several settings, what of the
            setting they may depend on; None of anything else.
    """

    estimator: Any
    unseeded: tuple[Any, ...]
    head: str | None

    @property
    def is_taken_apart(self) -> bool:
        """Whether its last step is fitted by itself: it is the whole, or the steps before it are shared."""
        return self.head is not None or last_step(self.estimator) is self.estimator

    def copy(self, seeds: list[int]) -> Any:
        """Return a new estimator with these seeds for each ``random_state`` that is None."""
        estimator, unseeded = copy.deepcopy((self.estimator, self.unseeded))
        for owner, seed in zip(unseeded, seeds, strict=True):
            owner.set_params(random_state=seed)
        return estimator


@lru_cache(maxsize=MOST_KEPT)
def make_template(spec: str, setting: str) -> Template:
    """Return the estimator of a JSON form at a setting, both given as text."""
    from sklearn.pipeline import Pipeline

    described, values = json.loads(spec), json.loads(setting)
    estimator = build(described)
    names = complete_names(estimator, values)
    for name, value in names.items():
        check_setting("param", described, name, value)
    estimator.set_params(**{name: make_value(value) for name, value in names.items()})
    for part in (estimator, *estimator.get_params(deep=True).values()):
        prepare(part)
    every = estimator.get_params(deep=True)
    estimator.set_params(
        **{name: 1 for name in every if _last_name(name) == "n_jobs" and every[name] is not None}
    )
    unseeded = sorted(name for name in every if _last_name(name) == "random_state" and every[name] is None)
    owners = tuple(every[owner] if (owner := name.rpartition("__")[0]) else estimator for name in unseeded)
    head = None
    if type(estimator) is Pipeline and len(estimator) > 1 and not any(map(every.get, OTHER_PARAMETERS)):
        last = f"{estimator.steps[-1][0]}__"
        head_values = {name: value for name, value in names.items() if not name.startswith(last)}
        head = json.dumps([head_values, unseeded])
    return Template(estimator, owners, head)


def _last_name(name: str) -> str:
    return name.rpartition("__")[2]
