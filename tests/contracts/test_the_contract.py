"""Learners that break the contract in one way each, and the test of the suite that must fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pytest
from learner_contract import LearnerContract, clouds
from nearest_centroid import Centroids, NearestCentroid

from ckcv_ray.extend import FieldsCodec, Predicted, RowTrainer, option
from ckcv_ray.validation import folds

COUNTER = count()


def refit(change: Callable[[Any, Sequence[Centroids]], Sequence[Centroids]]) -> dict[str, Any]:
    """Fit as it should, then change the models; ``change`` takes the classes of the training rows too."""
    return {"fit": lambda self, X, y, settings: change(y, NearestCentroid.fit(self, X, y, settings))}


def move(by: Callable[[Centroids, int], Any]) -> dict[str, Any]:
    """Fit as it should, then move the centres of each model; ``by`` takes it and the number of models."""
    return refit(lambda _, models: [replace(model, centres=by(model, len(models))) for model in models])


def walk(paths: Callable[[Any], Any]) -> dict[str, Any]:
    """Have other paths, made of the first one."""
    return {"paths": property(lambda self: paths(NearestCentroid((0.1, 0.5)).paths[0]))}


def need_every_class(y: Any, models: Sequence[Centroids]) -> Sequence[Centroids]:
    assert len(np.unique(y)) == 3
    return models


class WritesTrainer(RowTrainer):
    def prepare(self, shared: Any, train: Any, score: Any) -> Any:
        shared.X[0] = shared.X[0] + 1.0
        return super().prepare(shared, train, score)


class CheaperTrainer(RowTrainer):
    def cost(self, n_train: int) -> float:
        return 1.0 / n_train


class ForgetsCodec(FieldsCodec):
    def table(self, models: Sequence[Any], task: Any) -> Any:
        return super().table([replace(m, centres=m.centres.astype(np.float32)) for m in models], task)


class BlindCodec(FieldsCodec):
    def same(self, a: Any, b: Any, rounding: float = 0.0) -> bool:
        return True


class Centred(Centroids):
    """Classifies rows relative to their mean."""

    def predict(self, X: Any) -> Predicted:
        return super().predict(X - X.mean(axis=0))


@dataclass(frozen=True)
class Unweighted(NearestCentroid):
    """Has weights of classes, and does not use them."""

    class_weight: str | None = option(None, lambda name, value: value, "Unweighted.")


@dataclass(frozen=True)
class Neighbours(NearestCentroid):
    """Has an option with the name of another option."""

    k: tuple[int, ...] = option((3,), lambda name, value: folds(name, value, least=1), "Neighbours.")


TOGETHER = {"model": Centred, **refit(lambda _, models: [Centred(**vars(model)) for model in models])}
BROKEN: dict[str, tuple[Any, str]] = {  # what differs from a learner that does as it should, and the test
    "a fit depends on later steps": (
        move(lambda model, n: model.centres * n),
        "test_a_fit_does_not_depend_on_later_steps",
    ),
    "a fit depends on those before it": (
        move(lambda model, n: model.centres + next(COUNTER)),
        "test_a_path_does_not_depend_on_paths_fitted_before",
    ),
    "it changes the task": (
        {"trainer": cached_property(WritesTrainer)},
        "test_its_inputs_may_be_read_only_and_are_not_changed",
    ),
    "it needs every class": (
        refit(need_every_class),
        "test_a_class_may_be_missing_from_the_training_rows",
    ),
    "a row depends on others": (TOGETHER, "test_a_prediction_for_a_row_does_not_depend_on_other_rows"),
    "its name is another's": ({}, "test_it_is_known_by_its_name"),
    "it has a setting twice": (
        walk(lambda path: [path, path]),
        "test_each_position_has_a_distinct_setting",
    ),
    "it has a line break in a setting": (
        walk(lambda path: [[{**setting, "metric": "po\noled"} for setting in path]]),
        "test_each_position_has_a_distinct_setting",
    ),
    "its tables lose bits": (
        {"codec": cached_property(ForgetsCodec)},
        "test_its_models_round_trip_through_parquet",
    ),
    "all are equal to it": (
        {"codec": cached_property(BlindCodec)},
        "test_models_of_other_rows_differ",
    ),
    "its canonical form has another": (
        {"canonical": lambda self, task: replace(self, shrinkage=tuple(v / 2 for v in self.shrinkage))},
        "test_its_canonical_form_is_canonical",
    ),
    "more rows cost less": ({"trainer": cached_property(CheaperTrainer)}, "test_more_rows_cost_no_less"),
    "it has weights without use": (Unweighted, "test_weights_of_classes_are_those_of_the_training_rows"),
    "it has an option of others": (Neighbours, "test_its_names_do_not_clash_with_others"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_learner_fails_the_suite(name: str) -> None:
    changes, test = BROKEN[name]
    broken = changes if isinstance(changes, type) else type("Broken", (NearestCentroid,), changes)
    suite = type("Suite", (LearnerContract,), {"learner": broken((0.1, 0.5)), "task": clouds(30, 3)})()
    with pytest.raises((AssertionError, ValueError)):
        getattr(suite, test)()
