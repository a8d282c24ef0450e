"""Fitted estimators as bytes: the format of skops in canonical form, and checks of what is read.

Unlike a pickle, a skops file names the types it holds and runs none of its content; types that are not known
to be harmless are refused. The canonical form makes equal estimators equal bytes: skops writes addresses of
objects and the time, and leaves padding as it is in memory.
"""

import copy
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import comb
from typing import Any

import numpy as np

from ckcv_ray.learners.sklearn.allowed import is_listed, list_parts, table
from ckcv_ray.learners.sklearn.functions import FUNCTION_TYPES
from ckcv_ray.learners.sklearn.spec import is_trusted, name_type
from ckcv_ray.tables.readers.limits import MOST_TABLE_COLUMNS
from ckcv_ray.validation import quote

SCHEMA_FILE = "schema.json"
SUFFIX = ".npy"
NO_DATE = (1980, 1, 1, 0, 0, 0)
MOST_MODEL_BYTES = 1 << 30
MOST_MODEL_DEPTH = 200
NEIGHBOURS = (
    "sklearn.neighbors._classification.KNeighborsClassifier",
    "sklearn.neighbors._classification.RadiusNeighborsClassifier",
    "sklearn.neighbors._regression.KNeighborsRegressor",
    "sklearn.neighbors._regression.RadiusNeighborsRegressor",
)
TREE = "sklearn.tree._tree.Tree"
TREE_CLASSES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
CONSTANT = "sklearn.dummy:DummyClassifier"  # of training rows of a single class
FUNCTION_NODE = "FunctionNode"
LOADERS = {"SetNode", "BytesNode", "DefaultDictNode", "MaskedArrayNode"}  # of estimators of somebody's own
SUPPORT_OF_NUMBERS = ("sklearn.svm._classes.SVR", "sklearn.svm._classes.NuSVR")
KERNELS = ("linear", "poly", "rbf", "sigmoid")
SEARCH_TREES = {"ball_tree": "BallTree", "kd_tree": "KDTree", "brute": None}


def pack(estimator: Any) -> bytes:
    """Return a fitted estimator as bytes, the same for estimators that are equal.

    Search trees of neighbours are left out, and built again by ``unpack``: nothing could check one.
    """
    import skops.io
    from skops.io import _persist

    _persist.ZipFile = Undated
    return _canonical(skops.io.dumps(_without_search_tree(estimator)))


class Undated(zipfile.ZipFile):
    """An archive without dates, which cannot be before 1980 in one: a computer's clock may be."""

    def writestr(self, zinfo_or_arcname: Any, data: Any, *rest: Any, **options: Any) -> None:
        """Write a file, which skops names by text."""
        if isinstance(zinfo_or_arcname, str):
            zinfo_or_arcname = zipfile.ZipInfo(zinfo_or_arcname, NO_DATE)
        super().writestr(zinfo_or_arcname, data, *rest, **options)


def unpack(content: bytes, n_features: int, classes: Iterable[str] | None = None) -> Any:
    """Return the estimator that ``pack`` wrote.

    Every type that is named is checked before anything is built or imported.

    Args:
        content: may come from anybody.
        n_features: number of columns of the rows it will be given.
        classes: of the estimators that it may hold besides those that their fits create, as "module:Class";
            None for all that are listed.

    Raises:
        ValueError: it is not in canonical form, holds a type that is not allowed, or a wrong tree.
    """
    if len(content) > MOST_MODEL_BYTES or _canonical(content) != content:
        raise ValueError("it is not an estimator in canonical form")
    types = list(_check_types(content, None if classes is None else set(classes)))
    import skops.io

    estimator = skops.io.loads(content, trusted=types)
    for part in _inside(estimator, set(), 0):
        _check_object(part, n_features)
    if _is_neighbours(nearest := last_step(estimator)):
        nearest._tree = _search_tree(nearest)
    return estimator


def read_values(content: bytes) -> Any:
    """Return what the bytes of an estimator hold, for comparison with others: a schema, and arrays by file.

    A class is the word that names it: nothing is imported.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(SCHEMA_FILE), object_hook=_read_json)
        files = {name: archive.read(name) for name in archive.namelist() if name != SCHEMA_FILE}
    return schema, {
        name: np.load(io.BytesIO(file), allow_pickle=False) if name.endswith(SUFFIX) else file
        for name, file in files.items()
    }


def _read_json(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node of a schema with its number, if it has one, as a number."""
    return {**node, "content": json.loads(node["content"])} if node.get("is_json") else node


def _check_types(content: bytes, classes: set[str] | None) -> Iterator[str]:
    """Yield the types that a file names.

    Raises:
        ValueError: one is neither listed, nor of a package that is trusted.
    """
    known = table()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        nodes = list(_nodes(json.loads(archive.read(SCHEMA_FILE))))
    paths = set(known.parameters) if classes is None else {*list_parts(iter(classes)), CONSTANT}
    if any(not is_listed(path) for path in paths):  # an estimator of somebody's own may hold any
        paths |= set(known.parameters)
    functions = {_name_node(node) for node in nodes if node["__loader__"] == FUNCTION_NODE}
    if unlisted := functions - FUNCTION_TYPES:
        raise ValueError(f"it holds the function {min(unlisted)}, which is not known to be harmless")
    yield from functions
    nodes = [node for node in nodes if node["__loader__"] != FUNCTION_NODE]
    for name in sorted({_name_node(node) for node in nodes}):
        same = (path for path in paths if path.rpartition(":")[2] == name.rpartition(".")[2])
        if not (name in known.types or is_trusted(name) or name in map(name_type, filter(is_listed, same))):
            raise ValueError(f"it holds {name}, a type that is not known to be harmless")
        yield name
    loaders = known.loaders | LOADERS if any(map(is_trusted, paths)) else known.loaders
    if unknown := {str(node["__loader__"]) for node in nodes} - loaders:
        raise ValueError(f"it holds a {min(unknown)}, which no estimator that is listed has")


def _name_node(node: Mapping[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a skops file; its depth was checked by ``_canonical``."""
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        schema = list(schema.values())
    for column in schema if isinstance(schema, list) else ():
        yield from _nodes(column)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _is_neighbours(estimator: Any) -> bool:
    return _type_name(estimator) in NEIGHBOURS


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _search_tree(nearest: Any) -> Any:
    """Return the search tree of a fitted estimator of neighbours, as its fit builds it; None if it has none.

    Raises:
        ValueError: what it is built from are not numbers and words.
    """
    state = vars(nearest)
    metric, options = state.get("effective_metric_"), state.get("effective_metric_params_")
    plain = isinstance(options, dict) and all(
        isinstance(option, int | float | None) for option in options.values()
    )
    if not (state.get("_fit_method") in SEARCH_TREES and isinstance(metric, str) and plain):
        raise ValueError("its neighbours are not described by numbers and words")
    if (tree := SEARCH_TREES[state["_fit_method"]]) is None:
        return None
    from sklearn import neighbors

    return getattr(neighbors, tree)(state["_fit_X"], state.get("leaf_size"), metric=metric, **options)


def _without_search_tree(estimator: Any) -> Any:
    if not _is_neighbours(last_step(estimator)):
        return estimator
    bare = copy.copy(last_step(estimator))
    bare._tree = None
    if hasattr(estimator, "steps"):
        whole = copy.copy(estimator)
        whole.steps = [*estimator.steps[:-1], (estimator.steps[-1][0], bare)]
        return whole
    return bare


def _check_object(part: Any, n_features: int) -> None:
    """Check what compiled code follows unchecked when an estimator predicts, and what predicting would take.

    Raises:
        ValueError: an array does not have the shape that the others require, a tree leads outside its arrays
            or in a circle, or predictions would take threads or memory that nothing in the file takes.
    """
    name, state = _type_name(part), getattr(part, "__dict__", {})
    if name in CHECKS:
        CHECKS[name](part, n_features)
    if not isinstance(part, np.ndarray) and state.get("n_jobs") not in (None, 1):
        raise ValueError(f"n_jobs is {quote(state['n_jobs'])}: predictions take one thread")
    if "_fit_X" in state:
        _check_neighbours(state, n_features)


def _check_tree(tree: Any, n_features: int) -> None:
    state = tree.__getstate__()
    nodes = state["nodes"]
    leaf = nodes["left_child"] == -1
    if state["max_depth"] < 0:
        raise ValueError("a tree has no depth")
    _check_nodes(nodes["left_child"], nodes["right_child"], nodes["feature"], leaf, int(tree.n_features))


def _check_columns_of_tree(owner: Any, n_features: int) -> None:
    """Check a tree against the number of columns that scikit-learn demands of the rows that it is given.

    In a pipeline that may be more than those of the table.
    """
    state = vars(owner)
    if (tree := state.get("tree_")) is None:  # it is not fitted, and holds parameters alone
        return
    if _type_name(tree) != TREE or not _is_demanded(state, int(tree.n_features)):
        raise ValueError("a tree has another number of columns than its estimator")


def _check_columns_of_predictors(boosting: Any, n_features: int) -> None:
    """Check the trees of boosting by histograms as those of others, whose columns it alone knows."""
    state = vars(boosting)
    demanded = state.get("n_features_in_")
    if state.get("_preprocessor") is not None:
        raise ValueError("a tree has categories, and the columns are numbers")
    predictors = [predictor for of_round in state["_predictors"] for predictor in of_round]
    if not isinstance(demanded, int) or {*map(_type_name, predictors)} - {PREDICTOR}:
        raise ValueError("a tree has another number of columns than its estimator")
    for predictor in predictors:
        _check_predictor(predictor, demanded)


def _check_predictor(predictor: Any, n_features: int) -> None:
    nodes, leaf = predictor.nodes, predictor.nodes["is_leaf"] != 0
    if np.any(nodes["is_categorical"]):
        raise ValueError("a tree has categories, and the columns are numbers")
    _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], leaf, n_features)


def _is_demanded(state: Mapping[str, Any], columns: int) -> bool:
    """Return whether an estimator refuses rows of another number of columns."""
    return isinstance(state.get("n_features_in_"), int) and state["n_features_in_"] == columns


def _check_neighbours(state: Mapping[str, Any], n_features: int) -> None:
    X, y, known = state["_fit_X"], state.get("_y"), state.get("classes_")
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and state.get("n_samples_fit_") == len(X)):
        raise ValueError("its neighbours are not rows of numbers")
    if y is None and known is None:  # it only looks for neighbours
        return
    if known is None and isinstance(y, np.ndarray) and y.dtype.kind in "if" and y.shape == (len(X),):
        return  # it predicts numbers
    arrays = isinstance(y, np.ndarray) and isinstance(known, np.ndarray)
    y, known = np.asarray(y), np.asarray(known)
    fits = arrays and y.dtype.kind == "i" and y.shape == (len(X),) and known.ndim == 1
    if not (fits and np.all((y >= 0) & (y < len(known)))):
        raise ValueError("its neighbours are not of its classes")


def _check_support(machine: Any, n_features: int) -> None:
    """Check the arrays that LIBSVM reads: for each class its number of vectors, for each pair an offset."""
    state = vars(machine)
    per_class, vectors = state["_n_support"], state["support_vectors_"]
    if _type_name(machine) in SUPPORT_OF_NUMBERS:  # which LIBSVM counts twice
        per_class = per_class - np.array([0, len(vectors)])
    k = len(per_class)
    pairs = k * (k - 1) // 2
    shapes = {"_dual_coef_": (k - 1, len(vectors)), "support_": (len(vectors),), "_intercept_": (pairs,)}
    given = [np.asarray(state[name]).shape == shape for name, shape in shapes.items()]
    given += [len(state[name]) in (0, pairs) for name in ("_probA", "_probB")]
    given += ["_impl" not in state, state["_sparse"] is False, state["kernel"] in KERNELS]
    if not (all(given) and np.all(per_class >= 0) and np.sum(per_class) == len(vectors)):
        raise ValueError("its support vectors, coefficients and offsets do not belong together")


def _check_stages(boosting: Any, n_features: int) -> None:
    state = vars(boosting)
    stages, per_stage = state["estimators_"], state["n_trees_per_iteration_"]
    if not (isinstance(stages, np.ndarray) and stages.ndim == 2 and stages.shape[1] == per_stage):
        raise ValueError("its trees are not those of its classes")
    if not all(_is_demanded(vars(tree), vars(stages[0, 0]).get("n_features_in_")) for tree in stages.flat):
        raise ValueError("a tree has another number of columns than its estimator")


def _check_powers(powers: Any, n_features: int) -> None:
    degree, demanded = vars(powers)["degree"], vars(powers).get("n_features_in_")
    most = max(degree) if isinstance(degree, tuple | list) else degree
    n_features = max(n_features, demanded) if isinstance(demanded, int) else n_features
    if (
        not isinstance(most, int)
        or comb(n_features + min(most, MOST_TABLE_COLUMNS), n_features) > MOST_TABLE_COLUMNS
    ):
        raise ValueError(f"it makes more than {MOST_TABLE_COLUMNS:,} columns: its degree is {quote(degree)}")


CHECKS: dict[str, Callable[[Any, int], None]] = {  # by exact type
    TREE: _check_tree,
    **{f"sklearn.tree._classes.{name}": _check_columns_of_tree for name in TREE_CLASSES},
    **{
        f"sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoosting{kind}": (
            _check_columns_of_predictors
        )
        for kind in ("Classifier", "Regressor")
    },
    "sklearn.svm._classes.SVC": _check_support,
    "sklearn.svm._classes.NuSVC": _check_support,
    "sklearn.svm._classes.SVR": _check_support,
    "sklearn.svm._classes.NuSVR": _check_support,
    "sklearn.ensemble._gb.GradientBoostingClassifier": _check_stages,
    "sklearn.ensemble._gb.GradientBoostingRegressor": _check_stages,
    "sklearn.preprocessing._polynomial.PolynomialFeatures": _check_powers,
}


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


def _inside(value: Any, seen: set[int], depth: int) -> Iterator[Any]:
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return
    if depth > MOST_MODEL_DEPTH:
        raise ValueError("it is nested too deeply")
    seen.add(id(value))
    yield value
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        parts = list(np.ravel(value)) if isinstance(value, np.ndarray) else list(value)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        parts = list(vars(value).values())
    for part in parts:
        yield from _inside(part, seen, depth + 1)


def _canonical(content: bytes) -> bytes:
    """Return a skops file with objects numbered by first appearance, and without dates and padding."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        if sum(archive.getinfo(name).file_size for name in names) > MOST_MODEL_BYTES:
            raise ValueError("it is too large")
        schema = json.loads(archive.read(SCHEMA_FILE))
        files: dict[str, str] = {}
        _renumber(schema, {}, files)
        if {*files, SCHEMA_FILE} != set(names) or len(names) != len(set(names)):
            raise ValueError("its files are not those that it names")
        arrays = {files[name]: _without_padding(archive.read(name)) for name in files}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name, NO_DATE), array)
        text = json.dumps(schema, separators=(",", ":"))
        archive.writestr(zipfile.ZipInfo(SCHEMA_FILE, NO_DATE), text)
    return sink.getvalue()


def _renumber(node: Any, numbers: dict[Any, int], files: dict[str, str], depth: int = 0) -> None:
    """Renumber the nodes of a schema in place; immutable values are one object or several by chance."""
    if depth > 10 * MOST_MODEL_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(node, dict):
        if "__id__" in node:
            key = (len(numbers),) if node.get("is_json") else node["__id__"]
            node["__id__"] = numbers.setdefault(key, len(numbers))
        file = node.get("file")
        if isinstance(file, str):
            node["file"] = files.setdefault(file, f"{len(files)}.{file.rpartition('.')[2]}")
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(part, dict | list):
            _renumber(part, numbers, files, depth + 1)


def _without_padding(content: bytes) -> bytes:
    if not content.startswith(b"\x93NUMPY"):
        return content
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype.names is None:
        return content
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = array[name]
    sink = io.BytesIO()  # np.save copies through a buffer, and with it padding that is not zero
    np.lib.format.write_array_header_1_0(sink, np.lib.format.header_data_from_array_1_0(clean))
    return sink.getvalue() + clean.tobytes()
