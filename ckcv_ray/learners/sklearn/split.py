"""One split: its rows, the fits of single settings on them, and what these share."""

from collections.abc import Hashable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ckcv_ray.core.arrays import Classes, Index, Values
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.seeds import draw_seeds, make_seed_sequence
from ckcv_ray.learners.sklearn import model as models
from ckcv_ray.learners.sklearn.boosters import wrap
from ckcv_ray.learners.sklearn.model import SAMPLE_WEIGHT, FittedEstimator
from ckcv_ray.learners.sklearn.packing import last_step
from ckcv_ray.learners.sklearn.templates import Template
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task


class Estimators(Protocol):
    """What a split needs of its learner: the estimators to fit."""

    @property
    def foreign(self) -> bool:
        """Whether their fits call code of another package than scikit-learn."""

    def template(self, setting: Setting) -> Template:
        """Return the estimator at a setting, to be copied."""

    def class_weights(self, task: Task, y: Classes) -> Mapping[int, float] | str | None:
        """Return what they take as ``class_weight`` for training rows y [n]; None for their own."""


class Head(NamedTuple):
    """The fitted steps of a pipeline before its last, and what they make of the rows."""

    pipeline: Any
    X: Rows  # the training rows as the last step sees them
    status: int  # position of the status of their fit
    scored: list[Rows]  # the rows to score as the last step sees them; empty until they are needed


class Fit(NamedTuple):
    """A fitted estimator."""

    estimator: Any  # the whole of it
    last: Any  # its last step if it is a pipeline, else itself
    status: int  # position of its status
    X: Rows  # the training rows as ``last`` sees them
    head: Head | None  # the steps before the last, if they are shared


class SplitFits:
    """The rows of a split, and the fits of single settings on them.

    Args:
        estimators: what is fitted.
        task: the rows.
        train, score: numbers of the rows to fit to and to score.

    Attributes:
        shared: what paths compute once for several of them, by what it depends on.
    """

    def __init__(self, estimators: Estimators, task: Task, train: Index, score: Index) -> None:
        self.estimators, self.task, self.train, self.score = estimators, task, train, score
        self.shared: dict[Hashable, Any] = {}
        self._heads: dict[str, Head] = {}

    @cached_property
    def y(self) -> Classes:
        """The class numbers of the training rows, (n,)."""
        return self.task.y[self.train]

    @cached_property
    def weights(self) -> Values | None:
        """The weights of the training rows, (n,); None if all weigh the same."""
        return self.task.weighting.take(self.train)

    @cached_property
    def constant(self) -> bool:
        """Whether the training rows are of a single class, which most estimators refuse."""
        return not self.task.has_numbers and bool(np.all(self.y == self.y[0]))

    @property
    def X(self) -> Rows:
        """The training rows, (n, d): a copy, which an estimator may keep or overwrite."""
        return self.task.X[self.train]

    @property
    def X_score(self) -> Rows:
        """The rows to score, (n, d): a copy."""
        return self.task.X[self.score]

    @cached_property
    def seeds(self) -> np.random.SeedSequence:
        """Source of seeds, from the numbers of the training rows: the same for all settings."""
        return make_seed_sequence(self.train)

    def fit(self, setting: Setting) -> Fit:
        """Fit the estimator at a setting; the first steps of a pipeline are fitted once for all settings."""
        if self.constant:
            from sklearn.dummy import DummyClassifier

            X = self.X
            only = DummyClassifier(strategy="most_frequent").fit(X, self.y)
            return Fit(only, only, models.CONVERGED, X, None)
        template = self.estimators.template(setting)
        estimator = self._new(template)
        if template.head is None:
            X = self.X
            return Fit(estimator, last_step(estimator), self._fit_rows(estimator, X), X, None)
        if template.head not in self._heads:
            steps = estimator[:-1]
            with (
                models.collect_warnings() as caught,
                models.guard(self.estimators.foreign, self._global_seed),
            ):
                X = steps.fit_transform(self.X, self.y.copy())
            self._heads[template.head] = Head(steps, X, models.find_status(caught), [])
        head = self._heads[template.head]
        name, last = estimator.steps[-1]
        X = deepcopy(head.X)
        status = max(head.status, self._fit_rows(last, X))
        estimator.steps = [*head.pipeline.steps, (name, last)]
        return Fit(estimator, last, status, X, head)

    def transform(self, fit: Fit) -> Rows:
        """Return the rows to score as the last step of a fit sees them: a copy.

        A pipeline whose first steps are not shared sees them as they are.
        """
        head = fit.head
        if head is None:
            return self.X_score
        if not head.scored:
            with models.guard(self.estimators.foreign):
                head.scored.append(head.pipeline.transform(self.X_score))
        return deepcopy(head.scored[0])

    def labels(self, fit: Fit) -> Classes:
        """Return the class numbers that a fit predicts for the rows to score.

        Raises:
            ValueError: it predicts something else.
        """
        predicting, X = fit.estimator if fit.head is None else fit.last, self.transform(fit)
        with models.guard(self.estimators.foreign):
            return models.predict_classes(predicting, X, self.task.n_classes)

    def _new(self, template: Template) -> Any:
        estimator = template.copy(draw_seeds(self.seeds, len(template.unseeded)))
        if (weights := self.estimators.class_weights(self.task, self.y)) is not None:
            last_step(estimator).set_params(class_weight=weights)
        return wrap(estimator)

    def _fit_rows(self, estimator: Any, X: Rows) -> int:
        foreign, seed = self.estimators.foreign, self._global_seed
        return models.fit(estimator, X, self.y, foreign, seed, self.weights)

    @cached_property
    def _global_seed(self) -> int:
        """Seed of the global random numbers that foreign code may draw."""
        return draw_seeds(self.seeds, 1)[0] if self.estimators.foreign else 0


def takes_weights(estimator: Any) -> bool:
    """Return whether an estimator, of a pipeline its last step, and what it fits take ``sample_weight``."""
    from sklearn.base import is_classifier, is_regressor
    from sklearn.utils.validation import has_fit_parameter

    last = last_step(estimator)
    inside = [part for part in last.get_params(deep=True).values() if hasattr(part, "fit")]
    fitted = [last, *(part for part in inside if is_classifier(part) or is_regressor(part))]
    return all(has_fit_parameter(part, SAMPLE_WEIGHT) for part in fitted)


def fit_model(
    estimators: Estimators, task: Task, train: Index, setting: Setting
) -> tuple[FittedEstimator, int]:
    """Fit one setting by itself to the rows ``train``; return the model and the position of its status."""
    fit = SplitFits(estimators, task, train, train[:0]).fit(setting)
    return FittedEstimator(setting, fit.estimator, task.n_classes, estimators.foreign), fit.status
