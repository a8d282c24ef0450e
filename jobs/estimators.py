"""The table of what a study may hold of scikit-learn (``learners/sklearn/allowed.py``), made from all of it.

Every class is looked at: what it declares of its parameters gives the words that each takes, and fits of
small tables with each word give the types that fitted estimators hold. Read the difference before it is
committed: a new word may name a file or be evaluated.

    python jobs/estimators.py            # compare with the table, exit code 1 if it differs
    python jobs/estimators.py --write    # replace it
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import inspect
import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Annotated, Any

import numpy as np
import sklearn
import typer
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import all_estimators
from sklearn.utils._param_validation import HasMethods, Hidden, Options, StrOptions
from skops.io import get_untrusted_types

from ckcv_ray.learners.sklearn import spec
from ckcv_ray.learners.sklearn.spec import CALLABLE, ESTIMATOR, GRID, STEPS, find_path
from ckcv_ray.learners.sklearn.store import pack

FILE = Path(spec.__file__).with_name("allowed.json")
FITS = {"fit", "transform", "fit_transform"}
KEPT = {"memory", "pre_dispatch", "callback", "importance_getter"}  # paths, caches, evaluated text, functions
# Words that make other values paths or functions, or of the table's columns something else than features.
FORBIDDEN = {"filename", "file", "precomputed", "precomputed_nearest_neighbors", "prefit", "pyfunc"}
SELECTING = (
    "GenericUnivariateSelect",
    "SelectFdr",
    "SelectFpr",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
)
MARKS = {
    ("Pipeline", "steps"): STEPS,
    ("FeatureUnion", "transformer_list"): STEPS,
    ("ColumnTransformer", "transformers"): STEPS,
    **{(name, "score_func"): CALLABLE for name in SELECTING},
    ("FunctionTransformer", "func"): CALLABLE,
    ("FunctionTransformer", "inverse_func"): CALLABLE,
    ("GridSearchCV", "param_grid"): GRID,
    ("RandomizedSearchCV", "param_distributions"): GRID,
}
EXPERIMENTAL = {"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"}
WORDS = {("SelectFromModel", "threshold"): ["mean", "median"]}  # read as text, and declared as such
MODULES = {
    "sklearn.feature_extraction": "it reads text, or files",
    "sklearn.frozen": "it holds an estimator that was fitted before",
    "sklearn.cross_decomposition": "it predicts several columns",
    "sklearn.multioutput": "it predicts several columns",
}
# Types that skops does not trust by itself. Trees are compiled and follow their indices unchecked, which
# ``packing.check_trees`` checks; the others are Python's, and hold numbers alone.
REVIEWED = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.gaussian_process.kernels.",
    "sklearn.gaussian_process._gpc.",
    "sklearn.multiclass._ConstantPredictor",
    "numpy.dtype",  # read from an empty array
    "sklearn.utils._bunch.Bunch",  # a mapping
)
FUNCTIONS = {"FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode", "ConstructorFromReduceNode"}
GIVEN = {
    "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
    "sklearn.linear_model:LinearRegression",
    "sklearn.preprocessing:MinMaxScaler",
}
SCALARS = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)


@cache
def list_estimators() -> dict[str, type[Any]]:
    """Return every class of scikit-learn by its path, but those that have to be enabled first."""
    return dict(
        sorted(
            (find_path("class", kind), kind) for name, kind in all_estimators() if name not in EXPERIMENTAL
        )
    )


def list_refused() -> dict[str, str]:
    """Return the classes that no study holds, and why."""
    return {
        path: why for path in list_estimators() for start, why in MODULES.items() if path.startswith(start)
    }


def list_parameters(kind: type[Any]) -> dict[str, list[str] | None]:
    """Return what each parameter of a class takes, besides numbers; see ``learners/sklearn/allowed.py``."""
    declared = getattr(kind, "_parameter_constraints", {})
    given = list(inspect.signature(kind).parameters.values())
    named = [one for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return {one.name: _list_values(kind, one, declared.get(one.name)) for one in named}


def _list_values(kind: type[Any], parameter: inspect.Parameter, constraints: Any) -> list[str] | None:
    name = parameter.name
    if name in KEPT:
        return None
    found = {parameter.default} if isinstance(parameter.default, str) else set()
    found |= set(WORDS.get((kind.__name__, name), ()))
    if (kind.__name__, name) in MARKS:
        found.add(MARKS[kind.__name__, name])
    for one in constraints if isinstance(constraints, list) else ():
        rule = one.constraint if isinstance(one, Hidden) else one
        if isinstance(rule, StrOptions | Options):
            found |= {word for word in rule.options if isinstance(word, str)}
        elif isinstance(rule, HasMethods) and FITS & set(rule.methods):
            found.add(ESTIMATOR)
        elif rule is list and name == "estimators":
            found.add(STEPS)
    return sorted(found - FORBIDDEN)


def make_rows(n_classes: int) -> tuple[Any, Any]:
    """Return 60 rows of four positive columns, and their classes; without classes numbers to predict."""
    X = np.random.default_rng(0).gamma(2.0, size=(60, 4))
    difference = X[:, 0] + X[:, 1] - X[:, 2] - X[:, 3]
    if not n_classes:
        return X, difference - difference.min() + 1.0
    return X, np.digitize(difference, [0.0, 1.5][: n_classes - 1]).astype(np.int32)


def list_variants(kind: type[Any]) -> Iterator[dict[str, Any]]:
    """Yield parameters with which a class is fitted: one word or truth value of one parameter at a time."""
    parameters, signature = list_parameters(kind), inspect.signature(kind).parameters
    needs: dict[str, Any] = {}
    for name, values in parameters.items():
        if signature[name].default is not inspect.Parameter.empty:
            continue
        inside = LinearRegression() if issubclass(kind, RegressorMixin) else LinearDiscriminantAnalysis()
        inside = MinMaxScaler() if kind in (ColumnTransformer, FeatureUnion) else inside
        columns = ([0, 1],) if kind is ColumnTransformer else ()
        if GRID in (values or ()):
            needs[name] = {"tol": [1e-4]}
        else:
            needs[name] = [("one", inside, *columns)] if STEPS in (values or ()) else inside
    yield needs
    for name, values in parameters.items():
        for word in values or ():
            if not word.startswith("<") and name != "scoring":
                yield {**needs, name: word}
        if isinstance(signature[name].default, bool) and name != "verbose":
            yield {**needs, name: not signature[name].default}


def list_types(kind: type[Any]) -> tuple[set[str], set[str]]:
    """Return the types that a fitted estimator of a class holds, and the kinds of nodes of its file."""
    types, loaders = set[str](), set[str]()
    for variant, n_classes in product(
        list_variants(kind), (0,) if issubclass(kind, RegressorMixin) else (2, 3)
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                content = pack(kind(**variant).fit(*make_rows(n_classes)))
            except Exception:  # words that exclude each other, or a class that needs other rows
                continue
        unknown = [one for one in get_untrusted_types(data=content) if not one.startswith(REVIEWED)]
        nodes = list(list_nodes(json.loads(zipfile.ZipFile(io.BytesIO(content)).read("schema.json"))))
        kinds = {node["__loader__"] for node in nodes}
        if not (unknown or kinds & FUNCTIONS):
            types |= {f"{node['__module__']}.{node['__class__']}" for node in nodes}
            loaders |= kinds
    return types, loaders


def list_nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a skops file."""
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for one in schema:
            yield from list_nodes(one)


def make_state() -> dict[str, Any]:
    """Return parts, types and loaders, from fits."""
    estimators, refused = list_estimators(), list_refused()
    by_name = {f"{kind.__module__}.{kind.__qualname__}": path for path, kind in estimators.items()}
    parts, kinds = dict[str, list[str]](), set[str]()
    others = {f"numpy.{name}" for name in SCALARS} | {f"builtins.{name}" for name in ("bool", "float", "int")}
    for path, kind in estimators.items():
        predicts = issubclass(kind, ClassifierMixin | RegressorMixin)
        if path in refused or not (predicts or hasattr(kind, "transform")):
            continue
        types, loaders = list_types(kind)
        inside = {by_name[name] for name in types if name in by_name} - {path} - GIVEN
        if inside:
            parts[path] = sorted(inside)
        others |= {name for name in types if name not in by_name}
        kinds |= loaders
    return {"parts": parts, "types": sorted(others), "loaders": sorted(kinds)}


def make_table() -> dict[str, Any]:
    """Return the table but for what fits give."""
    estimators, refused = list_estimators(), list_refused()
    parameters = {path: list_parameters(kind) for path, kind in estimators.items() if path not in refused}
    return {"version": sklearn.__version__, "parameters": parameters, "refused": refused}


def main(write: Annotated[bool, typer.Option(help="Replace the table.")] = False) -> None:
    """Compare the table with the installed scikit-learn, or replace it."""
    made = make_table() | make_state()
    text = json.dumps(made, separators=(",", ":")).replace('},"', '},\n"').replace('":{"', '":\n{"') + "\n"
    if write:
        FILE.write_text(text, encoding="utf-8")
    elif json.loads(FILE.read_text(encoding="utf-8")) != made:
        print(f"{FILE.name} differs from scikit-learn {sklearn.__version__}: look at --write and git diff")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
