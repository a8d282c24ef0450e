"""Classifiers that misbehave, one each in its own way; imported by name, as a user's own are."""

import atexit
import ctypes
import io
import os
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

FEW = 24  # rows on which an estimator is tried before the evaluations


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


class Refusing(Constant):
    """Misbehaves at dummy = 1, in every fit or in every prediction."""

    where = "fit"

    def misbehave(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> "Constant":
        if self.dummy and self.where == "fit":
            self.misbehave(X, y)
        return super().fit(X, y)

    def predict(self, X: Any) -> Any:
        if self.dummy and self.where == "predict":
            self.misbehave(X, None)
        return super().predict(X)


class ExitsInFit(Refusing):
    def misbehave(self, X: Any, y: Any) -> None:
        sys.exit(0)


class ExitsInPredict(ExitsInFit):
    where = "predict"


class Interrupts(Refusing):
    def misbehave(self, X: Any, y: Any) -> None:
        raise KeyboardInterrupt


class Strange(BaseException):
    """An exception that is no Exception."""


class RaisesStrange(Refusing):
    def misbehave(self, X: Any, y: Any) -> None:
        raise Strange("not to be caught")


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
    """Writes into all that it is given; then predicts by its first column, as it should be."""

    def fit(self, X: Any, y: Any) -> "Constant":
        super().fit(X, y)
        self.share_ = float(np.mean(y))
        X[:], y[:] = 0, 1 - y
        return self

    def predict(self, X: Any) -> Any:
        found = (X[:, 1] > self.share_ - 0.5).astype(int)
        X[:] = 99
        return found

    def predict_proba(self, X: Any) -> Any:
        share = (X[:, 1] > self.share_ - 0.5).astype(float)
        X[:] = 99
        return np.column_stack([1 - share, share])


class Forks(Refusing):
    """Its child goes on as if it were the program."""

    def misbehave(self, X: Any, y: Any) -> None:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            self.code_ = os.waitstatus_to_exitcode(status)


class ForksInPredict(Forks):
    where = "predict"


class ForksAndExits(Refusing):
    def misbehave(self, X: Any, y: Any) -> None:
        child = os.fork()
        if not child:
            sys.exit(0)
        os.waitpid(child, 0)


class InOneSplit(Refusing):
    """Misbehaves in splits, not where it is tried on a few rows, and only in those of which row 0 says so."""

    def fit(self, X: Any, y: Any) -> "Constant":
        if self.dummy and len(X) < FEW and X[0, 0] > 0:
            self.misbehave(X, y)
        return Constant.fit(self, X, y)


class Crashes(InOneSplit):
    """Ends the process by a segmentation fault."""

    def misbehave(self, X: Any, y: Any) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class ExitsAtOnce(InOneSplit):
    """Ends the process as if all were well."""

    def misbehave(self, X: Any, y: Any) -> None:
        os._exit(0)


class HangsInOneSplit(InOneSplit):
    """Never returns, and heeds no signal: as compiled code may."""

    def misbehave(self, X: Any, y: Any) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        sys.setswitchinterval(1e6)
        while True:
            pass


class HangsWithANote(HangsInOneSplit):
    """Says so in a file."""

    def misbehave(self, X: Any, y: Any) -> None:
        Path(os.environ["CKCV_NOTE"]).touch()
        super().misbehave(X, y)


class HoldsAFunctionAtTimes(Constant):
    """Only at some settings does it hold what cannot be stored."""

    def __init__(self, dummy: float = 0.0, kind: str = "plain", flag: bool = False) -> None:
        self.dummy, self.kind, self.flag = dummy, kind, flag

    def fit(self, X: Any, y: Any) -> "Constant":
        if self.kind == "odd" or self.flag or self.dummy == 9:
            self.function = lambda x: x
        return super().fit(X, y)


class Prints(Constant):
    """Writes to standard output in every way, and later."""

    def fit(self, X: Any, y: Any) -> "Constant":
        print_everywhere()
        return super().fit(X, y)

    def predict(self, X: Any) -> Any:
        print("printed by a prediction")  # noqa: T201
        return super().predict(X)


class PrintsAndHangs(HangsInOneSplit):
    """Writes to standard output in every way, and never returns in one split."""

    def fit(self, X: Any, y: Any) -> "Constant":
        print_everywhere()
        return super().fit(X, y)


def print_everywhere() -> None:
    print("printed by a fit")  # noqa: T201
    sys.stdout.write("written by a fit\n")
    os.write(1, b"written to descriptor 1\n")
    ctypes.CDLL(None).puts(b"written by C")
    subprocess.run(["echo", "written by a child"], check=True)
    atexit.register(print, "printed at the end")
