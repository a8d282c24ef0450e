"""Learners that break the contract in one way each, and the test of the suite that must fail."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pytest
from learner_contract import LearnerContract, clouds
from nearest_centroid import Centroids, NearestCentroid

from ckcv_ray import Task
from ckcv_ray.extend import FieldsCodec, Predicted, RowTrainer, Setting, option
from ckcv_ray.validation import folds

COUNTER = count()


class LooksAhead(NearestCentroid):
    """A fit depends on how many steps there are."""

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        models = super().fit(X, y, settings)
        return [replace(model, centres=model.centres * len(models)) for model in models]


class Remembers(NearestCentroid):
    """A fit depends on the fits before it."""

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        return [replace(m, centres=m.centres + next(COUNTER)) for m in super().fit(X, y, settings)]


class WritesTrainer(RowTrainer):
    def prepare(self, shared: Task, train: Any, score: Any) -> Any:
        shared.X[0] = shared.X[0] + 1.0
        return super().prepare(shared, train, score)


class Writes(NearestCentroid):
    """Changes the task it is given."""

    trainer = cached_property(WritesTrainer)


class NeedsEveryClass(NearestCentroid):
    """Cannot be fitted if a class has no rows."""

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        assert len(np.unique(y)) == 3
        return super().fit(X, y, settings)


class Centred(Centroids):
    """Classifies rows relative to their mean."""

    def predict(self, X: Any) -> Predicted:
        return super().predict(X - X.mean(axis=0))


class Together(NearestCentroid):
    """The prediction for a row depends on the other rows."""

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


class ForgetsCodec(FieldsCodec):
    def table(self, models: Sequence[Any], task: Any) -> Any:
        return super().table([replace(m, centres=m.centres.astype(np.float32)) for m in models], task)


class Forgets(NearestCentroid):
    """Its tables lose the last bits."""

    codec = cached_property(ForgetsCodec)


class BlindCodec(FieldsCodec):
    def same(self, a: Any, b: Any, rounding: float = 0.0) -> bool:
        return True


class Blind(NearestCentroid):
    """Considers all models equal."""

    codec = cached_property(BlindCodec)


class CheaperTrainer(RowTrainer):
    def cost(self, n_train: int) -> float:
        return 1.0 / n_train


class Cheaper(NearestCentroid):
    """Declares a lower cost for more rows."""

    trainer = cached_property(CheaperTrainer)


class Shrinks(NearestCentroid):
    """Has another canonical form than its canonical form has."""

    def canonical(self, task: Task) -> "Shrinks":
        return replace(self, shrinkage=tuple(value / 2 for value in self.shrinkage))


@dataclass(frozen=True)
class Unweighted(NearestCentroid):
    """Has weights of classes, and does not use them."""

    class_weight: str | None = option(None, lambda name, value: value, "Unweighted.")


@dataclass(frozen=True)
class Neighbours(NearestCentroid):
    """Has an option with the name of another option."""

    k: tuple[int, ...] = option((3,), lambda name, value: folds(name, value, least=1), "Neighbours.")


BROKEN = [
    (LooksAhead, "test_a_fit_does_not_depend_on_later_steps"),
    (Remembers, "test_a_path_does_not_depend_on_paths_fitted_before"),
    (Writes, "test_its_inputs_may_be_read_only_and_are_not_changed"),
    (NeedsEveryClass, "test_a_class_may_be_missing_from_the_training_rows"),
    (Together, "test_a_prediction_for_a_row_does_not_depend_on_other_rows"),
    (Together, "test_it_is_known_by_its_name"),
    (Repeats, "test_each_position_has_a_distinct_setting"),
    (Breaks, "test_each_position_has_a_distinct_setting"),
    (Forgets, "test_its_models_round_trip_through_parquet"),
    (Blind, "test_models_of_other_rows_differ"),
    (Shrinks, "test_its_canonical_form_is_canonical"),
    (Cheaper, "test_more_rows_cost_no_less"),
    (Unweighted, "test_weights_of_classes_are_those_of_the_training_rows"),
    (Neighbours, "test_its_names_do_not_clash_with_others"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN)
def test_a_broken_learner_fails_the_suite(broken: type[NearestCentroid], test: str) -> None:
    suite = type("Suite", (LearnerContract,), {"learner": broken((0.1, 0.5)), "task": clouds(30, 3)})()
    with pytest.raises((AssertionError, ValueError)):
        getattr(suite, test)()
