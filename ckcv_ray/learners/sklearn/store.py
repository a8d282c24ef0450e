"""Fitted estimators as bytes: the format of skops, the same for equal estimators, and checks of what is read.

Unlike a pickle, a skops file names the types it holds and runs none of its content. The following are
refused: types that are neither on skops's own list nor from a trusted package, estimators of scikit-learn
that the study's learner cannot have, and arrays whose bounds compiled code would overrun.

A model of XGBoost, LightGBM or CatBoost is stored in the same way, with its trees as its library writes them
for a pickle, and read by the code of that library, unchecked. None holds labels: fits are to positions of the
classes that have training rows, which are stored with it. XGBoost refuses classes without training rows.

As a model, a fitted estimator gives a row the same class number and score in any batch. Unfitted estimators
are made from their JSON form once per process, and copied for each fit.
"""

import copy
import io
import json
import random
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import Output, Outputs
from ckcv_ray.errors import Classes, InputError, Numbers, Rows, agree, quote
from ckcv_ray.learners import base
from ckcv_ray.learners.sklearn import spec as specs
from ckcv_ray.learners.sklearn.spec import Estimator, Spec
from ckcv_ray.tables.task import Task

SCHEMA_FILE = "schema.json"
NO_DATE = (1980, 1, 1, 0, 0, 0)
MAX_MODEL_BYTES = 1 << 30
CONSTANT = "sklearn.dummy:DummyClassifier"  # for training rows of a single class
PARTS = (  # estimators that fits of others create by themselves
    *(CONSTANT, "sklearn.dummy:DummyRegressor", "sklearn.decomposition:KernelPCA"),
    *("sklearn.impute:MissingIndicator", "sklearn.isotonic:IsotonicRegression"),
    *("sklearn.linear_model:LinearRegression", "sklearn.linear_model:LogisticRegression"),
    "sklearn.linear_model:RidgeCV",
    *("sklearn.multiclass:OneVsOneClassifier", "sklearn.multiclass:OneVsRestClassifier"),
    *("sklearn.neighbors:NearestNeighbors", "sklearn.preprocessing:FunctionTransformer"),
    *("sklearn.preprocessing:KernelCenterer", "sklearn.preprocessing:LabelBinarizer"),
    *("sklearn.preprocessing:LabelEncoder", "sklearn.preprocessing:OneHotEncoder"),
    *("sklearn.preprocessing:StandardScaler", "sklearn.svm:LinearSVC"),
    *("sklearn.tree:DecisionTreeClassifier", "sklearn.tree:DecisionTreeRegressor"),
    *("sklearn.tree:ExtraTreeClassifier", "sklearn.tree:ExtraTreeRegressor"),
)
BOOSTER = f"{__name__}.Booster"
TREE = "sklearn.tree._tree.Tree"
HISTOGRAMS = "sklearn.ensemble._hist_gradient_boosting"
PREDICTOR = f"{HISTOGRAMS}.predictor.TreePredictor"
REVIEWED = (  # types that skops does not trust: arrays of trees are checked, the others hold numbers
    *(TREE, PREDICTOR, "numpy.dtype", "sklearn.utils._bunch.Bunch", "sklearn.multiclass._ConstantPredictor"),
    *(f"sklearn.calibration.{name}" for name in ("_CalibratedClassifier", "_SigmoidCalibration")),
    *(f"sklearn.gaussian_process.kernels.{name}" for name in ("ConstantKernel", "Product", "RBF")),
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    *(f"sklearn.neural_network._stochastic_optimizers.{name}Optimizer" for name in ("Adam", "SGD")),
    "collections.OrderedDict",  # LightGBM's
)
NO_ESTIMATORS = ("sklearn._loss.", "sklearn.linear_model._sgd_fast.", f"{HISTOGRAMS}.binning.")  # in fits
SUPPORT_OF_NUMBERS = ("epsilon_svr", "nu_svr", "one_class")
KERNELS = ("linear", "poly", "rbf", "sigmoid")
NEIGHBOUR_FIELDS = ("_fit_X", "_y", "classes_", "effective_metric_", "effective_metric_params_")
SEARCH_TREES = {"ball_tree": "BallTree", "kd_tree": "KDTree", "brute": None}


def pack(estimator: object) -> bytes:
    """Return a fitted estimator as bytes, the same for estimators that are equal.

    Search trees of neighbours are left out, and rebuilt by ``unpack``: there is no way to check one.
    """
    import skops.io

    every = [*_inside(estimator, set())]
    for metadata in [part.get_metadata() for part in every if specs.find_library(part) == specs.CATBOOST]:
        for name in {*PASSING} & {*metadata.keys()}:
            del metadata[name]
    nearest = [part for part in every if _finds_neighbours(part)]
    trees = [part._tree for part in nearest]
    try:
        for part in nearest:
            part._tree = None
        return _canonical(skops.io.dumps(estimator))
    finally:
        for part, tree in zip(nearest, trees, strict=True):
            part._tree = tree


def unpack(content: bytes, classes: Sequence[str] | None = None) -> Estimator:
    """Return the estimator that ``pack`` wrote.

    Every type that is named is compared with those of the learner, of skops and of trusted packages before
    anything is built.

    Args:
        content: the bytes, which may come from anybody.
        classes: its class, and those of the estimators that it may hold besides those that fits create, as
            "module:Class"; None for any.

    Raises:
        ValueError: it holds another estimator, or an array whose bounds compiled code would overrun.
        TypeError: it holds a type that is not known to be harmless.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(file.file_size for file in archive.infolist()) > MAX_MODEL_BYTES:
            raise ValueError("it is too large")
        named = [
            f"{node['__module__']}.{node['__class__']}"
            for node in specs.find_mappings(json.loads(archive.read(SCHEMA_FILE)), "__loader__")
        ]
    functions = (value for value in specs.load_words().values() if isinstance(value, FunctionType))
    known = {*REVIEWED, *(f"{f.__module__}.{f.__name__}" for f in functions)}
    known |= {BOOSTER} if any(map(specs.is_trusted, specs.LIBRARIES)) else set()
    if classes is not None:
        whole = BOOSTER if classes[0] in specs.BOOSTERS else specs.name_type(classes[0])
        strange = [name for name in named[:1] if name not in (whole, specs.name_type(CONSTANT))]
        if all(map(specs.is_own, classes)):  # a custom estimator may hold any
            known |= {*map(specs.name_type, (*classes, *PARTS))}
            of_others = (name for name in named if specs.is_own(name) and not name.startswith(NO_ESTIMATORS))
            strange += [name for name in of_others if name not in known]
        if strange:
            raise ValueError(f"it holds {strange[0]}, which no fit of {classes[0]} makes")
    import skops.io

    # besides what skops trusts
    trusted = [name for name in {*named} if name in known or specs.is_trusted(name)]
    estimator: Estimator = skops.io.loads(content, trusted=trusted)
    for part in _inside(estimator, set()):
        _check_object(part)
        if _finds_neighbours(part):
            part._tree = _build_search_tree(vars(part))
    return estimator


def last_step(estimator: object) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _finds_neighbours(part: Any) -> bool:
    return type(part).__module__.startswith("sklearn.neighbors.") and hasattr(part, "_fit_X")


def _build_search_tree(state: Any) -> Any:
    """Return the search tree of a fitted estimator of neighbours, as its fit builds it; None if it has none.

    Raises:
        ValueError: what it is built from is not rows, numbers and words.
    """
    X, y, known, metric, options = map(state.get, NEIGHBOUR_FIELDS)
    plain = isinstance(options, dict) and all(
        isinstance(given, int | float | None) for given in options.values()
    )
    if not (state.get("_fit_method") in SEARCH_TREES and isinstance(metric, str) and plain):
        raise ValueError("its neighbours are not described by numbers and words")
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and state.get("n_samples_fit_") == len(X)):
        raise ValueError("its neighbours are not rows of numbers")
    if known is not None:
        of_rows = isinstance(y, np.ndarray) and y.dtype.kind == "i" and y.shape == (len(X),)
        if not (of_rows and np.ndim(known) == 1 and np.all((y >= 0) & (y < len(known)))):
            raise ValueError("its neighbours are not of its classes")
    if (tree := SEARCH_TREES[state["_fit_method"]]) is None:
        return None
    from sklearn import neighbors

    return getattr(neighbors, tree)(X, state.get("leaf_size"), metric=metric, **options)


def _check_object(part: Any) -> None:
    """Check what compiled code follows unchecked when an estimator predicts, and what predicting would need.

    An estimator that is not fitted holds only parameters.

    Raises:
        ValueError: an array does not have the shape that the others require, a tree leads outside its arrays
            or in a circle, or predictions would use threads that nothing in the file uses.
    """
    kind, state = type(part), getattr(part, "__dict__", {})
    if _type_name(part) == TREE:
        tree = part.__getstate__()
        if tree["max_depth"] < 0:
            raise ValueError("a tree has no depth")
        left, right, feature = (tree["nodes"][name] for name in ("left_child", "right_child", "feature"))
        _check_nodes(left, right, feature, left == -1, int(part.n_features))
    elif kind.__module__.startswith("sklearn."):  # by attributes that a fitted one needs to predict
        if "tree_" in state:  # in a pipeline, the rows that it gets may have more columns than the table
            _check_demanded(part, int(part.tree_.n_features) if _type_name(part.tree_) == TREE else None)
        if "init_" in state:
            stages, per_stage = part.estimators_, part.n_trees_per_iteration_
            if not (isinstance(stages, np.ndarray) and stages.ndim == 2 and stages.shape[1] == per_stage):
                raise ValueError("its trees are not those of its classes")
            for tree in stages.flat:
                _check_demanded(tree, vars(stages[0, 0]).get("n_features_in_"))
        if "_predictors" in state:
            demanded: Any = state.get("n_features_in_")  # only the estimator knows the columns of its trees
            predictors = [predictor for of_round in part._predictors for predictor in of_round]
            _check_demanded(part, demanded if {*map(_type_name, predictors)} <= {PREDICTOR} else None)
            every = [predictor.nodes for predictor in predictors]
            if state.get("_preprocessor") is not None or any(np.any(one["is_categorical"]) for one in every):
                raise ValueError("a tree has categories, and the columns are numbers")
            for nodes in every:
                leaf = nodes["is_leaf"] != 0
                _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], leaf, demanded)
        if "_n_support" in state:  # LIBSVM reads a number of vectors for each class, an offset for each pair
            per_class, n = state["_n_support"], len(state["support_vectors_"])
            if kind._impl in SUPPORT_OF_NUMBERS:  # LIBSVM counts these twice
                per_class = per_class - np.array([0, n])
            k = len(per_class)
            pairs = k * (k - 1) // 2
            shapes = {"_dual_coef_": (k - 1, n), "support_": (n,), "_intercept_": (pairs,)}
            given = [np.asarray(state[name]).shape == shape for name, shape in shapes.items()]
            given += [len(state[name]) in (0, pairs) for name in ("_probA", "_probB")]
            given += ["_impl" not in state, state["_sparse"] is False, state["kernel"] in KERNELS]
            if not (all(given) and np.all(per_class >= 0) and np.sum(per_class) == n):
                raise ValueError("its support vectors, coefficients and offsets do not belong together")
    elif kind.__module__.startswith("scipy.sparse"):
        raise ValueError("it holds a sparse matrix, whose indices nothing checks")
    if not isinstance(part, np.ndarray) and state.get("n_jobs") not in (None, 1):
        raise ValueError(f"n_jobs is {quote(state['n_jobs'])}: predictions take one thread")


def _check_demanded(part: Any, columns: object) -> None:
    """Check that an estimator refuses rows with a number of columns other than its trees have."""
    demanded = vars(part).get("n_features_in_")
    if not isinstance(demanded, int) or demanded != columns:
        raise ValueError("a tree has another number of columns than its estimator")


def _check_nodes(left: Any, right: Any, feature: Any, leaf: Any, n_features: int) -> None:
    """Check that every child comes after its parent, and every feature exists."""
    if not len(left):
        raise ValueError("a tree has no nodes")
    at = np.arange(len(left))[~leaf]
    for child in (left[~leaf].astype(np.int64), right[~leaf].astype(np.int64)):
        if np.any((child <= at) | (child >= len(left))):
            raise ValueError("a tree has a node whose child is not a later node")
    tested = feature[~leaf].astype(np.int64)
    if np.any((tested < 0) | (tested >= n_features)):
        raise ValueError("a tree tests a column that does not exist")


def _inside(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield an object and everything it holds, each once; very deep nesting raises RecursionError."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type | None):
        return
    seen.add(id(value))
    yield value
    parts: Iterable[Any] = getattr(value, "__dict__", {}).values()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif isinstance(value, np.ndarray):
        parts = value.flat if value.dtype == object else ()
    for part in list(parts):
        yield from _inside(part, seen)


def _canonical(content: bytes) -> bytes:
    """Return a skops file with objects numbered by first appearance, and without dates and padding.

    Skops writes the addresses of objects and the time, and leaves padding as it is in memory.
    """
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(sink, "w") as again:
        schema, files = json.loads(archive.read(SCHEMA_FILE)), dict[str, str]()
        _renumber(schema, {}, files)
        for name, number in files.items():
            if (written := archive.read(name)).startswith(b"\x93NUMPY"):
                array = np.load(io.BytesIO(written), allow_pickle=False)
                if array.dtype.names is not None:
                    clean = np.zeros(array.shape, array.dtype)
                    for field in array.dtype.names:
                        clean[field] = array[field]
                    # np.save copies through a buffer, including padding that is not zero
                    written = written[: len(written) - clean.nbytes] + clean.tobytes()
            again.writestr(zipfile.ZipInfo(number, NO_DATE), written)
        again.writestr(zipfile.ZipInfo(SCHEMA_FILE, NO_DATE), json.dumps(schema, separators=(",", ":")))
    return sink.getvalue()


def _renumber(node: Any, numbers: dict[Any, int], files: dict[str, str]) -> None:
    """Renumber the nodes of a schema in place; immutable values are one object or more by chance."""
    if isinstance(node, dict):
        if "__id__" in node:
            key = (len(numbers),) if node.get("is_json") else node["__id__"]
            node["__id__"] = numbers.setdefault(key, len(numbers))
        if isinstance(file := node.get("file"), str):
            node["file"] = files.setdefault(file, f"{len(files)}.{file.rpartition('.')[2]}")
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _renumber(part, numbers, files)


PASSING = ("train_finish_time", "model_guid", "training")  # metadata of CatBoost: times and random numbers
STOP_SHARE = 0.1  # share of the training rows that decide when to stop early


class Booster:
    """An estimator of one of the libraries, with those methods of a scikit-learn estimator used here.

    Args:
        estimator: the estimator, not yet fitted.

    Attributes:
        classes_: the classes that have training rows, in ascending order; none if it predicts numbers. Only a
            fit sets it.
        limit: arguments of predictions that limit them to the first rounds of the fit.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.library = estimator, str(specs.find_library(estimator))
        self.limit: Mapping[str, object] = {}

    def fit(self, X: Rows, y: Numbers, sample_weight: NDArray[np.float64] | None = None) -> Self:
        """Fit to rows X [n, d] with class numbers, or numbers, y [n], and weights [n] if there are any.

        If it is to stop early, a tenth of the rows, drawn with its seed, decides when.
        """
        from sklearn.base import is_classifier

        X, self.classes_ = self._write_categories(X), np.zeros(0, np.int32)
        if is_classifier(self.estimator):
            self.classes_, y = np.unique(y, return_inverse=True)
        options: dict[str, Any] = {}
        train = np.arange(len(X))
        if self._stops:
            from sklearn.model_selection import train_test_split

            given, (_, counts) = self.estimator.get_params(deep=False), np.unique(y, return_counts=True)
            some_of_each = len(self.classes_) and counts.min() > 1 and len(counts) <= STOP_SHARE * len(y)
            train, stop = train_test_split(
                train,
                test_size=STOP_SHARE,
                random_state=given.get("random_state") or given.get("random_seed") or 0,
                stratify=y if some_of_each else None,
            )
            options = {"eval_set": [(X[stop], y[stop])]}
            options |= {"verbose": False} if self.library == specs.XGBOOST else {}
        if sample_weight is not None:
            options["sample_weight"] = sample_weight[train]
        self.estimator.fit(X[train], y[train], **options)
        return self

    @property
    def n_rounds(self) -> int:
        """Number of rounds of the fit."""
        return specs.LIBRARIES[self.library].count(self.estimator)

    @property
    def n_iter_(self) -> int:
        """Number of rounds requested, or if the fit may stop early, the number that it has."""
        asked = self.estimator.get_params(deep=False).get(specs.LIBRARIES[self.library].rounds)
        return self.n_rounds if asked is None or self._stops else asked

    def first(self, rounds: int) -> Self:
        """Return an estimator that predicts with only the first rounds."""
        limited = copy.copy(self)
        limited.limit = specs.LIBRARIES[self.library].limit(rounds)
        return limited

    def predict(self, X: Rows) -> Numbers:
        """Predict classes or numbers for rows X [rows, d]."""
        predicted = np.ravel(self.estimator.predict(self._write_categories(X), **self.limit))
        return self.classes_[predicted.astype(np.intp)] if len(self.classes_) else predicted

    def predict_proba(self, X: Rows) -> NDArray[np.float64]:
        """Return the probability of each of ``classes_``, (rows, classes).

        XGBoost's are of single precision: here they add up to 1 in double precision, in the same order.
        """
        found = self.estimator.predict_proba(self._write_categories(X), **self.limit)
        shares = np.ascontiguousarray(found, np.float64)
        if found.dtype == np.float64:
            return shares
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - shares[:, 1], shares[:, 1]])
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def __sklearn_tags__(self) -> Any:
        """Return the tags that a pipeline requests from its last step."""
        return self.estimator.__sklearn_tags__()

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters of the estimator."""
        return dict(self.estimator.get_params(deep=deep))

    def _write_categories(self, X: Rows) -> Rows:
        """Return rows [n, d] with category numbers as text for CatBoost, which takes no others.

        A gap is a category of its own.
        """
        if self.library != specs.CATBOOST or not (named := self.estimator.get_params().get("cat_features")):
            return X
        written, cells = X.astype(object), X[:, named]
        whole = np.nan_to_num(cells).astype(np.int64)
        written[:, named] = np.where(np.isnan(cells), "nan", whole.astype(str))
        return written

    @property
    def _stops(self) -> bool:
        given = self.estimator.get_params(deep=False)
        return any(given.get(name) is not None for name in specs.LIBRARIES[self.library].stop)


MAX_KEPT = 4096
OTHER_PARAMETERS = ("memory", "transform_input", "verbose")  # each changes how a pipeline is fitted


class Template(NamedTuple):
    """An estimator at a setting, which is never fitted itself.

    Attributes:
        estimator: the estimator, whose fits use one thread.
        unseeded: the parts, itself included, with a ``random_state`` that is None, in order of full names.
        head: for a pipeline whose steps before the last can be fitted once for several settings, the part of
            the setting that they may depend on; None for anything else.
    """

    estimator: Any
    unseeded: list[Any]
    head: str | None


@lru_cache(maxsize=MAX_KEPT)
def make_template(spec: str, setting: str) -> Template:
    """Return the estimator for a JSON form at a setting, both given as text."""
    from sklearn.pipeline import Pipeline

    values = json.loads(setting)
    estimator: Any = specs.build(json.loads(spec), values)
    for part in (estimator, *estimator.get_params(deep=True).values()):
        specs.prepare(part)
    every = estimator.get_params(deep=True)
    short = {name: name.rpartition("__")[2] for name in every}
    threads = {name: 1 for name in every if short[name] == "n_jobs" and every[name] is not None}
    estimator.set_params(**threads)
    unseeded = sorted(name for name in every if short[name] == "random_state" and every[name] is None)
    head = None
    if type(estimator) is Pipeline and len(estimator) > 1 and not any(map(every.get, OTHER_PARAMETERS)):
        last, named = f"{estimator.steps[-1][0]}__", specs.complete_names(estimator, values)
        of_head = {name: value for name, value in named.items() if not name.startswith(last)}
        head = json.dumps([of_head, unseeded])
    owners = [every[name.rpartition("__")[0]] if "__" in name else estimator for name in unseeded]
    return Template(estimator, owners, head)


BATCH = 256
ROUNDED = 1e-3  # by which the sum of a row's probabilities may be off
SAMPLE_WEIGHT = "sample_weight"  # argument of fit in scikit-learn


@dataclass(frozen=True)
class FittedEstimator(base.Model):
    """A fitted estimator."""

    setting: base.Setting  # the hyperparameters it was fitted at
    estimator: Any  # fitted on class numbers
    n_classes: int  # number of classes of the task; 0 if it predicts numbers

    @cached_property
    def foreign(self) -> bool:
        """Whether it is, or holds, an estimator of a package other than scikit-learn."""
        return is_foreign(self.estimator)

    def predict(self, X: Rows) -> base.Predicted:
        """Classify rows, in batches of one size: in other batches, sums may be rounded differently.

        Raises:
            ValueError: the estimator predicts something other than a class number.
            InputError: a row has a gap, and the estimator accepts none.
        """
        if not len(X):
            return base.Predicted(np.zeros(0, np.int32), np.zeros(0))
        padded = np.concatenate([X, np.repeat(X[-1:], -len(X) % BATCH, axis=0)])
        batches = [padded[i : i + BATCH] for i in range(0, len(padded), BATCH)]
        estimator, n_classes = self.estimator, self.n_classes
        with guard(self.foreign), explain_gaps(X):
            label = np.concatenate([predict_classes(estimator, rows.copy(), n_classes) for rows in batches])
            score = np.concatenate([_predict_score(estimator, rows, n_classes) for rows in batches])
        return base.Predicted(label[: len(X)], score[: len(X)])

    def predict_outputs(self, X: Rows, needs: frozenset[Output]) -> Outputs:
        """Return the estimator's outputs for rows X [rows, d], all at once; each call gets a copy of them.

        Raises:
            ValueError: the estimator predicts something other than class numbers, or finite numbers.
            InputError: see ``predict``.
        """
        with guard(self.foreign), explain_gaps(X):
            if not self.n_classes:
                values = _predict(self.estimator, X.copy(), "iuf")
                if not np.all(np.isfinite(values)):
                    raise ValueError(f"it predicts {values[~np.isfinite(values)][0]}")
                return Outputs(value=values.astype(np.float64))
            label = predict_classes(self.estimator, X.copy(), self.n_classes)
            ranked = not needs.isdisjoint({Output.RANK, Output.RANKS})
            rank = _predict_rank(self.estimator, X.copy(), self.n_classes) if ranked else None
            asked = Output.PROBABILITY in needs
            shares = _predict_probability(self.estimator, X.copy(), self.n_classes) if asked else None
        return Outputs(label, rank, shares)

    @classmethod
    def of(
        cls, setting: base.Setting, content: bytes, n_classes: int, classes: Sequence[str] | None = None
    ) -> Self:
        """Return the model whose estimator is given as bytes; ``classes`` lists those that it may hold.

        Raises:
            ValueError: see ``store.unpack``.
        """
        with guard(False):  # warnings such as that a class is deprecated
            estimator = unpack(content, classes)
        return cls(setting, estimator, n_classes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the estimator in its canonical form: equal models are equal bytes."""
        return FittedEstimator.of, (self.setting, self.content, self.n_classes)

    @cached_property
    def content(self) -> bytes:
        """The estimator as bytes; see ``store``."""
        return pack(self.estimator)


@dataclass(frozen=True)
class EstimatorCodec(base.Codec[FittedEstimator]):
    """Estimators as bytes, with their settings as JSON.

    Attributes:
        spec: the estimator, which says which classes may be read.
        parameters: the names in each setting.
    """

    spec: Spec
    parameters: set[str]
    schema = pa.schema([("setting", pa.string()), ("estimator", pa.binary())])

    def write(self, model: FittedEstimator) -> base.Cells:
        """Return the setting of a model, and its bytes."""
        return {"setting": json.dumps(dict(model.setting)), "estimator": model.content}

    def read(self, row: base.Cells, task: Task) -> FittedEstimator:
        """Return the model in a row, which must be able to predict a row of the task.

        Raises:
            ValueError: its parameters are not the learner's, or see ``unpack``.
        """
        setting = json.loads(row["setting"])
        if not isinstance(setting, dict) or set(setting) != self.parameters:
            raise ValueError("its setting does not name the learner's parameters")
        classes = [*specs.list_classes(self.spec)]
        model = FittedEstimator.of(setting, row["estimator"], task.n_classes, classes)
        model.predict_outputs(task.X[:1], frozenset({task.target.output}))  # fails for a broken one
        return model

    def setting(self, model: FittedEstimator) -> base.Setting:
        """Return the hyperparameters of a model."""
        return model.setting

    def same(self, a: FittedEstimator, b: FittedEstimator, rounding: float = 0.0) -> bool:
        """Return whether two models are equal in content, as skops writes it."""
        one, two = self.write(a), self.write(b)
        if one == two or not rounding:
            return bool(one == two)
        held = list[tuple[object, dict[str, object]]]()
        for row in (one, two):  # a class is represented by its name: nothing is imported
            with zipfile.ZipFile(io.BytesIO(row.pop("estimator"))) as archive:
                schema = json.loads(
                    archive.read(SCHEMA_FILE),  # a node's number, which is text, becomes a number
                    object_hook=lambda node: (
                        {**node, "content": json.loads(node["content"])} if node.get("is_json") else node
                    ),
                )
                files = {name: archive.read(name) for name in archive.namelist() if name != SCHEMA_FILE}
            arrays = {
                name: np.load(io.BytesIO(file), allow_pickle=False) if name.endswith(".npy") else file
                for name, file in files.items()
            }
            held.append((schema, arrays))
        first, second = held
        return one == two and agree(first, second, rounding)


def is_foreign(estimator: object) -> bool:
    """Return whether an estimator, or one inside it, is from another package, or draws globally."""
    parts = [estimator, *estimator.get_params(deep=True).values()] if hasattr(estimator, "get_params") else []
    if not all(specs.is_own(type(part).__module__) for part in parts if hasattr(part, "get_params")):
        return True
    words = (str(specs.find_word(part)) for part in parts if callable(part))
    return any(word.partition(":")[2] in specs.RANDOM_SCORES for word in words)


@contextmanager
def guard(foreign: bool, seed: int = 0) -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of an estimator instead of printing them.

    Global random numbers that foreign code draws follow from a seed. Their state is restored, and so is
    numpy's error handling. Scikit-learn's own code needs none of this, which would take a fifth of the time
    of a small fit.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not foreign:
            yield caught
            return
        numbers, own_numbers = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        try:
            with np.errstate(), base.end_forks():
                yield caught
        finally:
            np.random.set_state(numbers)  # noqa: NPY002
            random.setstate(own_numbers)


def find_status(caught: list[warnings.WarningMessage]) -> int:
    """Return the position of the status of a fit with these warnings."""
    from sklearn.exceptions import ConvergenceWarning

    capped = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return base.NOT_CONVERGED if capped else base.CONVERGED


def predict_classes(estimator: Estimator, X: Rows, n_classes: int) -> Classes:
    """Return the class numbers that an estimator predicts.

    Raises:
        ValueError: it predicts something else.
    """
    predicted = _predict(estimator, X, "iufb")
    number = predicted.astype(np.int32) if np.all(np.isfinite(predicted)) else np.full(len(X), -1, np.int32)
    wrong = predicted[(number != predicted) | (number < 0) | (number >= n_classes)]
    if len(wrong):
        raise ValueError(f"it predicts {wrong[0]}, which is not one of the classes 0 to {n_classes - 1}")
    return number


def _predict(estimator: Estimator, X: Rows, kinds: str) -> NDArray[Any]:
    predicted = np.asarray(estimator.predict(X))
    if predicted.shape != (X.shape[0],) or predicted.dtype.kind not in kinds:
        raise ValueError(f"it predicts an array of shape {predicted.shape} and type {predicted.dtype}")
    return predicted


@contextmanager
def explain_gaps(X: Rows) -> Iterator[None]:
    """Raise InputError where an estimator that selects columns by name, and so sees gaps, accepts none."""
    try:
        yield
    except ValueError as error:
        if not np.isnan(X).any():
            raise
        raise InputError(
            f"rows have gaps, which the estimator does not take ({str(error).splitlines()[0]}): fill them, "
            "or put an imputer into the estimator, such as sklearn.impute:SimpleImputer"
        ) from error


def _predict_probability(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return the probability of each class, (rows, n_classes).

    Raises:
        ValueError: those of a row do not add up to 1.
    """
    shares = _spread(estimator.predict_proba(X), estimator, n_classes)
    if not np.allclose(total := shares.sum(axis=1), 1.0, atol=ROUNDED):
        raise ValueError(f"its probabilities add up to {total[np.argmax(abs(total - 1))]:.6g}, not to 1")
    return shares


def _spread(found: Any, estimator: Any, n_classes: int) -> NDArray[np.float64]:
    """Return a column for each class, with 0 for those without training rows; any others stay as they are.

    Others are, for example, a column for each pair of classes.
    """
    columns, known = np.asarray(found, np.float64), np.asarray(estimator.classes_, np.intp)
    if columns.shape[1] != len(known) or len(known) == n_classes:
        return columns
    spread = np.zeros((len(columns), n_classes))
    spread[:, known] = columns
    return spread


def _predict_rank(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return what ranks rows by the second of two classes, or by each of more, as scikit-learn expects it.

    A difference of probabilities, which is the score of a prediction, makes the smallest ones tie.
    """
    decides, shares = hasattr(estimator, "decision_function"), hasattr(estimator, "predict_proba")
    if n_classes > 2 and decides:
        found = estimator.decision_function(X)
        return _spread(np.column_stack([-found, found]) if found.ndim == 1 else found, estimator, n_classes)
    if decides or not shares:
        return _predict_score(estimator, X, n_classes)
    probability = _predict_probability(estimator, X, n_classes)
    return probability if n_classes > 2 else probability[:, -1]


def _predict_score(estimator: Any, X: Rows, n_classes: int) -> NDArray[np.float64]:
    """Return a score that is larger the more likely the second of two classes; nan for more, or if absent."""
    known = getattr(estimator, "classes_", (0, 1))
    if n_classes == 2 and len(known) == 1:
        return np.full(len(X), 1.0 if known[0] == 1 else -1.0)
    if n_classes == 2 and hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), np.float64)
    if n_classes == 2 and hasattr(estimator, "predict_proba"):
        shares = np.asarray(estimator.predict_proba(X), np.float64)
        return shares[:, 1] - shares[:, 0]
    return np.full(len(X), np.nan)
