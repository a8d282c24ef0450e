"""Fitted estimators as bytes: the format of skops in canonical form, and checks of what is read.

Unlike a pickle, a skops file names the types it holds and runs none of its content; types that are not known
to be harmless are refused. The canonical form makes equal estimators equal bytes: skops writes addresses of
objects and the time, and leaves padding as it is in memory.
"""

import copy
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ckcv_ray.learners.sklearn.spec import is_trusted

SCHEMA = "schema.json"
SUFFIX = ".npy"
NO_DATE = (1980, 1, 1, 0, 0, 0)
MOST_BYTES = 1 << 30
MOST_DEPTH = 200
# Names, or their beginnings, of types that skops does not trust by itself. The first two are compiled and
# follow their indices unchecked: ``check_trees`` checks these. Others are Python's, and hold numbers alone.
TRUSTED = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.gaussian_process.kernels.",
    "sklearn.gaussian_process._gpc.",
    "sklearn.multiclass._ConstantPredictor",
)


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


def unpack(content: bytes, n_features: int) -> Any:
    """Return the estimator that ``pack`` wrote.

    Args:
        content: may come from anybody.
        n_features: number of columns of the rows it will be given.

    Raises:
        ValueError: it is not in canonical form, holds a type that is not trusted, or a wrong tree.
    """
    if len(content) > MOST_BYTES or _canonical(content) != content:
        raise ValueError("it is not an estimator in canonical form")
    import skops.io

    types = skops.io.get_untrusted_types(data=content)
    if unknown := [kind for kind in types if not (kind.startswith(TRUSTED) or is_trusted(kind))]:
        raise ValueError(f"it holds {min(unknown)}, a type that is not known to be harmless")
    estimator = skops.io.loads(content, trusted=types)
    check_trees(estimator, n_features)
    if _is_neighbours(nearest := last_step(estimator)):
        nearest.fit(nearest._fit_X, nearest.classes_[nearest._y])
    return estimator


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _is_neighbours(estimator: Any) -> bool:
    return hasattr(estimator, "_fit_X") and hasattr(estimator, "_tree")


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


def check_trees(estimator: Any, n_features: int) -> None:
    """Raise ValueError if a tree has a node that leads outside its arrays, or in a circle."""
    for one in _inside(estimator, set(), 0):
        name = type(one).__name__
        if name == "Tree":
            state = one.__getstate__()
            nodes = state["nodes"]
            leaf = nodes["left_child"] == -1
            if int(one.n_features) > n_features or state["max_depth"] < 0:
                raise ValueError("a tree has more features than there are columns")
            _check_nodes(nodes["left_child"], nodes["right_child"], nodes["feature"], leaf, n_features)
        elif name == "TreePredictor":
            nodes, leaf = one.nodes, one.nodes["is_leaf"] != 0
            if np.any(nodes["is_categorical"]):
                raise ValueError("a tree has categories, and the columns are numbers")
            _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], leaf, n_features)


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
    """Yield an object and everything it holds."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return
    if depth > MOST_DEPTH:
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
        if sum(archive.getinfo(name).file_size for name in names) > MOST_BYTES:
            raise ValueError("it is too large")
        schema = json.loads(archive.read(SCHEMA))
        files: dict[str, str] = {}
        _renumber(schema, {}, files)
        if {*files, SCHEMA} != set(names) or len(names) != len(set(names)):
            raise ValueError("its files are not those that it names")
        arrays = {files[name]: _without_padding(archive.read(name)) for name in files}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name, NO_DATE), array)
        text = json.dumps(schema, separators=(",", ":"))
        archive.writestr(zipfile.ZipInfo(SCHEMA, NO_DATE), text)
    return sink.getvalue()


def _renumber(node: Any, numbers: dict[Any, int], files: dict[str, str], depth: int = 0) -> None:
    """Renumber the nodes of a schema in place; immutable values are one object or several by chance."""
    if depth > 10 * MOST_DEPTH:
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
