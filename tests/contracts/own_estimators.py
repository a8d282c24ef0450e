"""Classifiers that misbehave, each in its own way; imported by name, like a user's own."""

import atexit
import ctypes
import io
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

FEW = 24  # rows: an estimator is tried on more before the evaluations


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


class PredictsSeven(Constant):
    value = 7


class TooSure(Constant):
    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), 0.9)


class PredictsTooFew(Constant):
    def predict(self, X: Any) -> Any:
        return np.zeros(1)


class FailsInSomeSplits(Constant):
    def fit(self, X: Any, y: Any) -> "Constant":
        if X[0, 0] > 0:
            raise ValueError("no luck\nwith these rows")
        return super().fit(X, y)


class Misbehaving(Constant):
    """Misbehaves at dummy = 1: in fits to these rows, or in every prediction."""

    in_fit: Callable[[Any], bool] | None
    misbehave: Callable[[], object]
    prints = False

    def fit(self, X: Any, y: Any) -> "Constant":
        if self.prints:
            print_everywhere()
        if self.dummy and self.in_fit and self.in_fit(X):
            self.misbehave()
        return super().fit(X, y)

    def predict(self, X: Any) -> Any:
        if self.dummy and not self.in_fit:
            self.misbehave()
        return super().predict(X)


def fork() -> None:
    """Fork a child that continues as if it were the program."""
    if child := os.fork():
        os.waitpid(child, 0)


def fork_and_exit() -> None:
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        sys.exit(0)


def hang() -> None:
    """Never return, as compiled code may, nor heed a signal or let threads run; note it in a named file."""
    if "CKCV_NOTE" in os.environ:
        Path(os.environ["CKCV_NOTE"]).touch()
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    sys.setswitchinterval(1e6)
    while True:
        pass


def in_one(X: Any) -> bool:
    """Row 0 says in which splits; not where an estimator is tried on more rows."""
    return len(X) < FEW and bool(X[0, 0] > 0)


WAYS: dict[str, tuple[Callable[[Any], bool] | None, Callable[[], object]]] = {
    "ExitsInFit": (lambda X: True, lambda: sys.exit(0)),
    "ExitsInPredict": (None, lambda: sys.exit(0)),
    "Forks": (lambda X: True, fork),
    "ForksInPredict": (None, fork),
    "ForksAndExits": (lambda X: True, fork_and_exit),
    "Crashes": (in_one, lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "HangsInOneSplit": (in_one, hang),
    "PrintsAndHangs": (in_one, hang),
}
for name, (place, way) in WAYS.items():
    held = {"in_fit": place and staticmethod(place), "misbehave": staticmethod(way), "__module__": __name__}
    globals()[name] = type(name, (Misbehaving,), {**held, "prints": name.startswith("Prints")})


class TouchesEverything(Constant):
    """Changes all that belongs to the process, and predicts what the global random numbers say."""

    def fit(self, X: Any, y: Any) -> "Constant":
        self.drawn_ = [float(np.random.rand()), random.random()]  # noqa: NPY002
        np.seterr(all="raise")
        np.random.seed(7)  # noqa: NPY002
        random.seed(7)
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 1000.0)
        os.environ["CKCV_TOUCHED"] = "1"
        os.environ.pop("CKCV_TESTS", None)
        os.chdir("/")
        sys.stdout = io.StringIO()
        return super().fit(X, y)

    def predict(self, X: Any) -> Any:
        return (np.arange(len(X)) * self.drawn_[0] * 10 % 2).astype(int)


class Overwrites(Constant):
    """Writes into all it is given, then predicts by its first column, as it should."""

    def fit(self, X: Any, y: Any) -> "Constant":
        super().fit(X, y)
        self.share_ = float(np.mean(y))
        X[:], y[:] = 0, 1 - y
        return self

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X)[:, 1].astype(int)

    def predict_proba(self, X: Any) -> Any:
        share = (X[:, 1] > self.share_ - 0.5).astype(float)
        X[:] = 99
        return np.column_stack([1 - share, share])


class HoldsAFunctionAtTimes(Constant):
    """Holds what cannot be stored, but only at some settings."""

    def __init__(self, dummy: float = 0.0, kind: str = "plain", flag: bool = False) -> None:
        self.dummy, self.kind, self.flag = dummy, kind, flag

    def fit(self, X: Any, y: Any) -> "Constant":
        if self.kind == "odd" or self.flag or self.dummy == 9:
            self.function = lambda x: x
        return super().fit(X, y)


def print_everywhere() -> None:
    """Write to standard output in every way, and later."""
    print("printed by a fit")  # noqa: T201
    sys.stdout.write("written by a fit\n")
    os.write(1, b"written to descriptor 1\n")
    ctypes.CDLL(None).puts(b"written by C")
    subprocess.run(["echo", "written by a child"], check=True)
    atexit.register(print, "printed at the end")
