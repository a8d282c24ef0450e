"""Estimators of XGBoost, LightGBM and CatBoost as they are fitted, and stored in their library's own format.

A stored model is what the library writes: UBJSON of XGBoost, LightGBM's text, CatBoost's cbm. Equal models
are equal bytes. None holds labels: fits are to positions of the classes that have training rows, which are
stored with it. XGBoost refuses classes without training rows.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes
from ckcv_ray.learners.sklearn.libraries import CATBOOST, LIBRARIES, LIGHTGBM, XGBOOST, find_library
from ckcv_ray.learners.sklearn.spec import build
from ckcv_ray.tables.target import Rows

HEADS = {XGBOOST: b"{L", LIGHTGBM: b"tree\n", CATBOOST: b"CBM1"}  # of UBJSON, text and cbm
PASSING = ("train_finish_time", "model_guid", "training")  # metadata of a cbm file: times and random numbers
STOP_SHARE = 0.1  # of the training rows, which decide when to stop early


class StoredLightGBM:
    """The part of LightGBM's estimators that predicts, of a model that was read: they cannot read one.

    Args:
        estimator: one that is not fitted, with the parameters of the fitted one.
        content: LightGBM's text.
    """

    def __init__(self, estimator: Any, content: bytes) -> None:
        from lightgbm import Booster as Trees
        from sklearn.base import is_classifier

        self.classifies = is_classifier(estimator)
        self.trees = Trees(model_str=content.decode("utf-8"))
        given = estimator.get_params(deep=False)
        self.options = {name: value for name, value in given.items() if name.startswith("pred_early_stop")}

    def predict(self, X: Rows, num_iteration: int | None = None) -> NDArray[Any]:
        """Predict numbers, or the position of the most probable class."""
        if self.classifies:
            return np.asarray(np.argmax(self.predict_proba(X, num_iteration), axis=1))
        return self._scores(X, num_iteration)

    def predict_proba(self, X: Rows, num_iteration: int | None = None) -> NDArray[np.float64]:
        """Return the probability of each class, (rows, classes)."""
        found = self._scores(X, num_iteration)
        return found if found.ndim == 2 else np.vstack((1.0 - found, found)).transpose()

    def _scores(self, X: Rows, num_iteration: int | None) -> NDArray[np.float64]:
        found = self.trees.predict(X, num_iteration=num_iteration, num_threads=1, **self.options)
        return np.asarray(found, np.float64)


class Booster:
    """An estimator of one of the libraries, with the methods of one of scikit-learn that are used here.

    Args:
        estimator: not fitted yet.

    Attributes:
        classes_: the classes that have training rows, in ascending order; none if it predicts numbers.
        n_features_in_: number of columns of the training rows.
        rounds: number of the first rounds that predictions are limited to; None for all.
    """

    def __init__(self, estimator: Any) -> None:
        from sklearn.base import is_classifier

        self.estimator, self.library = estimator, str(find_library(estimator))
        self.predictor = estimator
        self.classifies = is_classifier(estimator)
        self.classes_: Classes = np.zeros(0, np.int32)
        self.n_features_in_ = 0
        self.rounds: int | None = None

    @classmethod
    def load(cls, estimator: Any, classes: Sequence[int], n_features: int, content: bytes) -> Self:
        """Return the model that a library wrote; its format is read by the code of that library, unchecked.

        Args:
            estimator: not fitted yet, with the parameters of the fitted one.
            classes, n_features: see the attributes.
            content: what it wrote.

        Raises:
            ValueError: it cannot be read, or takes rows of another number of columns.
        """
        booster = cls(estimator)
        booster.classes_, booster.n_features_in_ = np.array(classes, np.int32), n_features
        booster.content = content
        if not content.startswith(HEADS[booster.library]):  # some libraries abort the process
            raise ValueError(f"it is not a model in the format of {booster.library}")
        try:
            booster.predictor = READERS[booster.library](estimator, content)
            found = COLUMN_COUNTS[booster.library](booster.predictor)
        except Exception as error:  # each library has errors of its own
            raise ValueError(f"{booster.library} cannot read it: {error}") from None
        if found != n_features:
            raise ValueError(f"it is a model of {found} columns, and there are {n_features}")
        return booster

    def fit(self, X: Rows, y: NDArray[Any], sample_weight: NDArray[np.float64] | None = None) -> Self:
        """Fit to rows X [n, d] with class numbers, or numbers, y [n], and weights [n] if they have any.

        If it is to stop early, a tenth of the rows, drawn by its seed, says when.
        """
        self.n_features_in_ = X.shape[1]
        X = self._write_categories(X)
        if self.classifies:
            self.classes_, y = np.unique(y, return_inverse=True)
        options: dict[str, Any] = {}
        train = np.arange(len(X))
        if self._stops:
            train, stop = self._divide(y)
            options = {"eval_set": [(X[stop], y[stop])]}
            options |= {"verbose": False} if self.library == XGBOOST else {}
        if sample_weight is not None:
            options["sample_weight"] = sample_weight[train]
        self.estimator.fit(X[train], y[train], **options)
        return self

    @property
    def n_rounds(self) -> int:
        """Number of rounds of the fit."""
        return ROUND_COUNTS[self.library](self.estimator)

    @property
    def n_iter_(self) -> int:
        """Number of rounds that were asked for, or of a fit that may stop early those that it has."""
        asked = self.estimator.get_params(deep=False).get(LIBRARIES[self.library].rounds)
        return self.n_rounds if asked is None or self._stops else asked

    def first(self, rounds: int) -> Self:
        """Return what predicts by the first rounds alone."""
        limited = type(self)(self.estimator)  # a copy would be pickled, and read again
        limited.__dict__.update(self.__dict__, rounds=rounds)
        return limited

    def predict(self, X: Rows) -> NDArray[Any]:
        """Predict classes or numbers for rows X [rows, d]."""
        predicted = np.ravel(self.predictor.predict(self._write_categories(X), **self._limit))
        return self.classes_[predicted.astype(np.intp)] if self.classifies else predicted

    def predict_proba(self, X: Rows) -> NDArray[np.float64]:
        """Return the probability of each of ``classes_``, (rows, classes).

        XGBoost's are of single precision: here they add up to 1 in double precision, in the same order.
        """
        found = self.predictor.predict_proba(self._write_categories(X), **self._limit)
        shares = np.asarray(found, np.float64)
        if found.dtype == np.float64:
            return shares
        if shares.shape[1] == 2:
            return np.column_stack([1.0 - shares[:, 1], shares[:, 1]])
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def __sklearn_tags__(self) -> Any:
        """Return what a pipeline asks its last step for."""
        return self.estimator.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether it was fitted to any rows."""
        return self.n_features_in_ > 0

    @cached_property
    def content(self) -> bytes:
        """The model in its library's format."""
        return WRITERS[self.library](self.estimator)

    def read_values(self) -> Any:
        """Return what ``content`` says, as words and numbers that can be compared with others."""
        return VALUE_READERS[self.library](self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what describes the model: equal models are equal bytes."""
        path = f"{type(self.estimator).__module__}:{type(self.estimator).__qualname__}"
        described = {"class": path, "params": self.estimator.get_params(deep=False)}
        return _restore, (described, self.classes_.tolist(), self.n_features_in_, self.content)

    @property
    def _limit(self) -> Mapping[str, Any]:
        return {} if self.rounds is None else LIBRARIES[self.library].limit(self.rounds)

    def _write_categories(self, X: Rows) -> Rows:
        """Return rows [n, d] with numbers of categories as text for CatBoost, which takes no others.

        A gap is a category of its own.
        """
        if self.library != CATBOOST or not (named := self.estimator.get_params().get("cat_features")):
            return X
        written, cells = X.astype(object), X[:, named]
        whole = np.nan_to_num(cells).astype(np.int64)
        written[:, named] = np.where(np.isnan(cells), "nan", whole.astype(str))
        return written

    @property
    def _stops(self) -> bool:
        given = self.estimator.get_params(deep=False)
        return any(given.get(name) is not None for name in LIBRARIES[self.library].stop)

    def _divide(self, y: NDArray[Any]) -> Any:
        """Return the numbers of the rows to fit to, and of those that say when to stop."""
        from sklearn.model_selection import train_test_split

        given = self.estimator.get_params(deep=False)
        _, counts = np.unique(y, return_counts=True)
        some_of_each = self.classifies and counts.min() > 1 and len(counts) <= STOP_SHARE * len(y)
        return train_test_split(
            np.arange(len(y)),
            test_size=STOP_SHARE,
            random_state=given.get("random_state") or given.get("random_seed") or 0,
            stratify=y if some_of_each else None,
        )


def wrap(estimator: Any) -> Any:
    """Return an estimator, or a pipeline, whose last step is a ``Booster`` if a library has it."""
    if find_library(estimator):
        return Booster(estimator)
    if hasattr(estimator, "steps") and find_library(last := estimator.steps[-1][1]):
        estimator.steps[-1] = (estimator.steps[-1][0], Booster(last))
    return estimator


def _restore(described: dict[str, Any], classes: list[int], n_features: int, content: bytes) -> Booster:
    return Booster.load(build(described), classes, n_features, content)


def _write_xgboost(estimator: Any) -> bytes:
    return bytes(estimator.get_booster().save_raw("ubj"))


def _write_lightgbm(estimator: Any) -> bytes:
    text: str = estimator.booster_.model_to_string()
    return text.encode()


def _write_catboost(estimator: Any) -> bytes:
    metadata = estimator.get_metadata()
    for name in set(PASSING) & {*metadata.keys()}:
        del metadata[name]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.cbm"
        estimator.save_model(str(file), format="cbm")
        return file.read_bytes()


def _read_xgboost(estimator: Any, content: bytes) -> Any:
    estimator.load_model(bytearray(content))
    return estimator


def _read_catboost(estimator: Any, content: bytes) -> Any:
    estimator.load_model(blob=content)
    return estimator


def _read_xgboost_values(booster: Booster) -> Any:
    """Return the JSON of a model, whose numbers are of single precision."""
    text = bytes(booster.predictor.get_booster().save_raw("json"))
    return json.loads(text, parse_float=np.float32)


def _read_lightgbm_values(booster: Booster) -> Any:
    """Return the words and numbers of each line, but for that of the lengths of the trees' texts."""
    lines = booster.content.decode("utf-8").splitlines()
    return [list(map(_read_word, line.split())) for line in lines if not line.startswith("tree_sizes=")]


def _read_word(word: str) -> Any:
    """Return the name before a sign of equality, if there is one, and a number if it has a fraction."""
    name, _, value = word.rpartition("=")
    try:
        return name, value if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        return name, value


def _read_catboost_values(booster: Booster) -> Any:
    """Return the JSON of a model; with categories CatBoost writes none, and the bytes are compared."""
    if booster.estimator.get_params().get("cat_features"):
        return booster.content
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        booster.predictor.save_model(str(file), format="json")
        return json.loads(file.read_bytes())


VALUE_READERS: dict[str, Callable[[Booster], Any]] = {
    XGBOOST: _read_xgboost_values,
    LIGHTGBM: _read_lightgbm_values,
    CATBOOST: _read_catboost_values,
}
WRITERS = {XGBOOST: _write_xgboost, LIGHTGBM: _write_lightgbm, CATBOOST: _write_catboost}
READERS = {XGBOOST: _read_xgboost, LIGHTGBM: StoredLightGBM, CATBOOST: _read_catboost}
ROUND_COUNTS: dict[str, Callable[[Any], int]] = {
    XGBOOST: lambda estimator: estimator.get_booster().num_boosted_rounds(),
    LIGHTGBM: lambda estimator: estimator.booster_.current_iteration(),
    CATBOOST: lambda estimator: estimator.tree_count_,
}
COLUMN_COUNTS: dict[str, Callable[[Any], int]] = {
    XGBOOST: lambda estimator: estimator.n_features_in_,
    LIGHTGBM: lambda stored: stored.trees.num_feature(),
    CATBOOST: lambda estimator: len(estimator.feature_names_),
}
