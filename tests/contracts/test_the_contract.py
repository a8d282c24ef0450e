"""Each way in which a learner may break the contract is caught by the test that is about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from learner_contract import LearnerContract, clouds
from nearest_centroid import Centroids, NearestCentroid

from ckcv_ray.core.options import Option, option
from ckcv_ray.data.task import Task
from ckcv_ray.learners.base import Checked, Predicted, Setting
from ckcv_ray.validation import folds

COUNTER = count()


class LooksAhead(NearestCentroid):
    """What it fits at a step depends on how many follow."""

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        models = super().fit(X, y, settings)
        return [replace(model, centres=model.centres * len(models)) for model in models]


class Remembers(NearestCentroid):
    """A fit depends on those before it."""

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        return [replace(m, centres=m.centres + next(COUNTER)) for m in super().fit(X, y, settings)]


class Writes(NearestCentroid):
    """Changes the task it is given."""

    def prepare(self, shared: Task, train: Any, score: Any) -> Any:
        shared.X[0] = shared.X[0] + 1.0
        return super().prepare(shared, train, score)


class NeedsEveryClass(NearestCentroid):
    """Cannot be fitted without rows of a class."""

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        assert len(np.unique(y)) == 3
        return super().fit(X, y, settings)


class Centred(Centroids):
    """Classifies rows by how they lie to each other."""

    def predict(self, X: Any) -> Predicted:
        return super().predict(X - X.mean(axis=0))


class Together(NearestCentroid):
    """Its models say of a row what depends on the others."""

    model = Centred

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        return [Centred(**vars(model)) for model in super().fit(X, y, settings)]


class Repeats(NearestCentroid):
    """Has a setting twice."""

    @property
    def paths(self) -> Sequence[Sequence[Setting]]:
        return [super().paths[0], super().paths[0]]


class Breaks(NearestCentroid):
    """Has a line break in a setting."""

    @property
    def paths(self) -> Sequence[Sequence[Setting]]:
        return [[{**setting, "metric": "po\noled"} for setting in super().paths[0]]]


class Forgets(NearestCentroid):
    """Its tables lose the last bits."""

    def table(self, models: Sequence[Any]) -> Any:
        return super().table([replace(m, centres=m.centres.astype(np.float32)) for m in models])


class Trusts(NearestCentroid):
    """Has nothing to say of any model."""

    def check(self, model: Any, task: Task, train: Any, converged: bool) -> Checked:
        return Checked([], [])


class Blind(NearestCentroid):
    """Takes all models for the same."""

    def same(self, a: Any, b: Any) -> bool:
        return True


class Tight(NearestCentroid):
    """Says that its models take less than they do."""

    def most_values(self, task: Task) -> int:
        return 3


class Cheaper(NearestCentroid):
    """Says that more rows cost less."""

    def cost(self, n_train: int) -> float:
        return 1.0 / n_train


@dataclass(frozen=True)
class Neighbours(NearestCentroid):
    """Has an option of the name of another."""

    k: tuple[int, ...] = option((3,), Option(lambda name, value: folds(name, value, least=1), "Neighbours."))


BROKEN = [
    (LooksAhead, "test_a_path_equals_its_beginnings"),
    (Remembers, "test_a_path_does_not_depend_on_those_before_it"),
    (Writes, "test_it_takes_what_is_read_only_and_leaves_it_alone"),
    (NeedsEveryClass, "test_a_class_may_be_missing_from_the_training_rows"),
    (Together, "test_what_is_said_of_a_row_does_not_depend_on_the_others"),
    (Together, "test_it_is_known_by_its_name"),
    (Repeats, "test_its_settings_have_a_position_each"),
    (Breaks, "test_its_settings_have_a_position_each"),
    (Forgets, "test_its_models_come_back_from_parquet"),
    (Trusts, "test_a_model_is_held_against_its_training_rows"),
    (Blind, "test_models_of_other_rows_are_others"),
    (Tight, "test_its_models_take_no_more_values_than_it_says"),
    (Cheaper, "test_more_rows_cost_no_less"),
    (Neighbours, "test_no_name_of_its_own_has_another_meaning"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN)
def test_what_breaks_the_contract_is_caught(broken: type[NearestCentroid], test: str) -> None:
    suite = type("Suite", (LearnerContract,), {"learner": broken((0.1, 0.5)), "task": clouds(30, 3)})()
    with pytest.raises((AssertionError, ValueError)):
        getattr(suite, test)()
