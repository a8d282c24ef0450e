"""Classifiers that misbehave, one each in its own way; imported by name, as a user's own are."""

import sys
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts the first class."""

    value: Any = 0

    def __init__(self, dummy: float = 0.0) -> None:
        self.dummy = dummy

    def fit(self, X: Any, y: Any) -> "Constant":
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.value)


class PredictsNaN(Constant):
    value = np.nan


class PredictsWords(Constant):
    value = "sick"


class PredictsSeven(Constant):
    value = 7


class PredictsTooFew(Constant):
    def predict(self, X: Any) -> Any:
        return np.zeros(1)


class FailsInSomeSplits(Constant):
    def fit(self, X: Any, y: Any) -> "Constant":
        if X[0, 0] > 0:
            raise ValueError("no luck\nwith these rows")
        return super().fit(X, y)


class HangsInSomeSplits(Constant):
    """Never returns, nor lets another thread of Python run: as compiled code may."""

    def fit(self, X: Any, y: Any) -> "Constant":
        if self.dummy and X[0, 0] > 0:
            sys.setswitchinterval(1e6)
            while True:
                pass
        return super().fit(X, y)


class NeedsThreeClasses(Constant):
    def fit(self, X: Any, y: Any) -> "Constant":
        if len(np.unique(y)) < 3:
            raise ValueError("three classes are needed")
        return super().fit(X, y)


class NeedsAnArgument(Constant):
    def __init__(self, needed: Any) -> None:
        self.needed = needed


class HoldsAFunction(Constant):
    def fit(self, X: Any, y: Any) -> "Constant":
        self.function = lambda x: x
        return super().fit(X, y)
