"""Estimators as JSON: the class and the parameters that differ from its defaults, estimators inside included.

    {"class": "sklearn.linear_model:LogisticRegression", "params": {"max_iter": 1000}}

A study that holds this is compared, hashed and stored; the estimator is made from it where it is fitted. It
may come from a stranger's folder, and some parameters are paths, caches, functions or text that is evaluated.
So a class must be exported by a module of ``MODULES``, or belong to a trusted package (``trust``), and
nothing else is imported. Making an estimator only stores its parameters, as scikit-learn asks of estimators.
These are then checked before anything is fitted (``describe``): each must be as scikit-learn declares it, and
be None, a truth value, a number, an estimator, a list or steps of these, or text that scikit-learn names
among the values of this parameter. Names of steps and columns may be any text. Values that JSON cannot
express are written as these words, and selections of columns as this form:

    "inf", "-inf"                   infinity
    "numpy:log1p"                   a function of numbers that reads and writes nothing (``load_words``)
    {"kinds": ["number"]}           the columns of these kinds, as ``make_column_selector`` finds them

A search space holds, for each parameter, a list of values or a distribution.

    max_features=sqrt,0.5       values: numbers, true, false, none, lists such as [50,50], and other text
    C=log:-2:4:13               13 values from 10^-2 to 10^4
    C=loguniform:1e-3:1e2       a distribution, from which ``sample`` settings are drawn; or uniform, randint
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from itertools import product
from math import inf
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import (
    MAX_GRID,
    AbsentError,
    InputError,
    Rows,
    check_count,
    expect,
    parse_grid,
    quote,
    write_install,
)
from ckcv_ray.tables.columns import ColumnKind

LIBRARY = "sklearn"
MODULES = (  # except those that read text or files, and those whose estimators predict several columns
    *("calibration", "cluster", "compose", "covariance", "decomposition", "discriminant_analysis", "dummy"),
    *("ensemble", "feature_selection", "gaussian_process", "impute", "isotonic", "kernel_approximation"),
    *("kernel_ridge", "linear_model", "manifold", "mixture", "model_selection", "multiclass", "naive_bayes"),
    *("neighbors", "neural_network", "pipeline", "preprocessing", "random_projection", "semi_supervised"),
    *("svm", "tree"),
)
KINDS = "kinds"
DTYPES: dict[Any, ColumnKind] = {  # what ``make_column_selector`` takes, and the kind it stands for here
    **dict.fromkeys(("number", np.number), ColumnKind.NUMBER),
    **dict.fromkeys(("category", "object", "string", "O", object, str), ColumnKind.CATEGORY),
    **dict.fromkeys(("datetime", "datetime64", np.datetime64), ColumnKind.DATE),
}
INFINITE = {"inf": inf, "-inf": -inf}
SCORES = ("chi2", "f_classif", "f_regression", "r_regression")
RANDOM_SCORES = ("mutual_info_classif", "mutual_info_regression")  # draw from numpy's global generator
NO_STEP = ("drop", "passthrough")
STEPS = ("estimators", "steps", "transformer_list", "transformers")  # parameters that hold named estimators
GRIDS = ("param_grid", "param_distributions")
MORE_WORDS = {"threshold": {"mean", "median"}}  # where scikit-learn declares any text
# words that turn other values into paths or functions, or the table's columns into anything but features
FORBIDDEN = {"precomputed", "precomputed_nearest_neighbors", "prefit", "pyfunc"}
MAX_DEPTH = 10  # scikit-learn may query an estimator twice as often with each level of nesting
Spec = dict[str, Any]


class Estimator(Protocol):
    """What this package requires of every estimator; a fitted one also has attributes of its own."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters by name."""

    def set_params(self, **params: object) -> object:
        """Change parameters."""

    def predict(self, X: Rows) -> NDArray[np.generic]:
        """Predict rows X [n, d]."""


@cache
def load_words() -> Mapping[str, object]:
    """Return the words that stand for a value in a study, and what each is: infinity, or a function.

    The functions are numpy's functions of one number, and scikit-learn's scores of columns.
    """
    from sklearn import feature_selection

    numpy_functions = (f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nin == f.nout == 1)
    scores = {f"{feature_selection.__name__}:{name}": name for name in (*SCORES, *RANDOM_SCORES)}
    return {
        **INFINITE,
        **{f"numpy:{function.__name__}": function for function in numpy_functions},
        **{word: getattr(feature_selection, name) for word, name in scores.items()},
    }


def find_word(value: object) -> str | None:
    """Return the word that stands for a value; None if there is none."""
    if isinstance(value, float):
        return next((word for word, known in INFINITE.items() if value == known), None)
    return next((word for word, known in load_words().items() if known is value), None)


def describe(name: str, estimator: Estimator, depth: int = 0) -> Spec:
    """Return the JSON form of an estimator, after checking that a study may hold it and those inside it.

    In an estimator of another package, which is trusted, only estimators inside it are checked.

    Raises:
        InputError: a parameter has a value that a study may not hold, or that scikit-learn refuses.
    """
    if depth > MAX_DEPTH:
        raise InputError(f"{name} is nested too deeply: at most {MAX_DEPTH} estimators in each other")
    kind: Any = type(estimator)
    library, defaults, params = find_library(estimator), _list_defaults(kind), dict[str, Any]()
    for key, value in sorted(estimator.get_params(deep=False).items()):
        label, default = f"{name}.{key}", defaults.get(key)
        alike = type(value) is type(default) and not hasattr(value, "fit")
        same = value is default or (alike and (value == default or (value != value and default != default)))
        if key in defaults and same:
            continue
        if library and _is_outside(key):
            raise InputError(f"{label} cannot be part of a study: it names a file or a host: leave it out")
        if key in STEPS and isinstance(value, list | tuple):
            params[key] = [_describe_step(label, step, depth) for step in value]
        elif key in GRIDS:
            params[key] = _describe_grid(label, estimator, value)
        else:
            params[key] = _describe_value(label, value, _list_words(estimator, key), depth)
    try:
        if hasattr(estimator, "_parameter_constraints"):
            kind._validate_params(estimator)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    if "<locals>" in kind.__qualname__:
        raise InputError(f"{name}: workers cannot import {kind.__qualname__}: define it in a module")
    parts = kind.__module__.split(".")
    for end in range(1, len(parts)):  # imported from the shortest public module that has it
        module = ".".join(parts[:end])
        if parts[end].startswith("_") and getattr(import_module(module), kind.__qualname__, None) is kind:
            parts = parts[:end]
            break
    return {"class": f"{'.'.join(parts)}:{kind.__qualname__}", **({"params": params} if params else {})}


def _list_words(owner: Any, parameter: str) -> Iterable[str] | None:
    """Return the text that scikit-learn names among a parameter's values; None for other packages."""
    if not is_own(type(owner).__module__):
        return None
    rules = getattr(owner, "_parameter_constraints", {}).get(parameter, ())
    named = (getattr(getattr(rule, "constraint", rule), "options", ()) for rule in rules)
    texts = {word for options in named for word in options if isinstance(word, str)}
    return (texts | MORE_WORDS.get(parameter, set())) - FORBIDDEN


def _describe_value(label: str, value: Any, words: Iterable[str] | None, depth: int) -> Any:
    """Return the JSON form of a value that may be one of some words; if None, any that JSON can express."""
    if hasattr(value, "tolist"):  # numpy's, or names of a frame's columns
        value = value.tolist()
    if _is_estimator(value):
        return describe(label, value, depth + 1)
    if isinstance(value, list | tuple):
        return [_describe_value(label, item, words, depth) for item in value]
    if (word := find_word(value)) is not None:
        return word
    if value is None or (isinstance(value, bool | int | float) and value == value):
        return value
    if isinstance(value, str) and (words is None or value in words):
        return value
    if words is None and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _describe_value(f"{label}.{key}", item, None, depth) for key, item in value.items()}
    listed = f", or {', '.join(sorted(words)[:12])}" if words else ""
    raise InputError(f"{label}={quote(value)} cannot be part of a study: expected numbers, lists{listed}")


def _describe_step(label: str, step: Any, depth: int) -> list[Any]:
    """Return a step: its name, an estimator or a word, and in a ColumnTransformer the columns.

    Columns are selected by their kinds, as a list, or as one number or name.
    """
    from sklearn.compose import make_column_selector

    named = isinstance(step, list | tuple) and len(step) in (2, 3) and isinstance(step[0], str)
    if not named or not (_is_estimator(step[1]) or step[1] in (*NO_STEP, None)):
        raise InputError(
            f"{label}={quote(step)} is not a step: expected its name and an estimator, {' or '.join(NO_STEP)}"
        )
    name, part, *selections = step
    described = [name, describe(f"{label}.{name}", part, depth + 1) if _is_estimator(part) else part]
    for columns in selections:
        if isinstance(columns, make_column_selector):
            found = list[list[ColumnKind | None]]()
            for given, all_or_none in ((columns.dtype_include, [*ColumnKind]), (columns.dtype_exclude, [])):
                dtypes = given if isinstance(given, list | tuple) else [given]
                known = [DTYPES.get(dtype) if isinstance(dtype, str | type) else None for dtype in dtypes]
                found.append([*all_or_none] if given is None else known)
            chosen, without = found
            if columns.pattern is not None or None in (*chosen, *without):
                raise InputError(
                    "make_column_selector: columns are numbers, categories or dates: take one or more of "
                    "number, category and datetime, and no pattern, or name the columns in a list"
                )
            kept = [str(kind) for kind in ColumnKind if kind in chosen and kind not in without]
            described.append({KINDS: kept})
            continue
        kinds = columns.get(KINDS) if isinstance(columns, Mapping) and len(columns) == 1 else None
        listed = columns.tolist() if hasattr(columns, "tolist") else columns
        each = [*map(_as_plain, listed)] if isinstance(listed, list | tuple) else [listed]
        if isinstance(kinds, list) and {*map(str, kinds)} <= {*ColumnKind}:
            described.append({KINDS: kinds})
        elif all(isinstance(column, bool | int | str | None) for column in each):
            described.append(each if isinstance(listed, list | tuple) else listed)
        else:
            raise InputError(
                f"{label}.{name}={quote(columns)} are not columns: expected their numbers or names, or a "
                f"list of the kinds {', '.join(ColumnKind)}"
            )
    return described


def _is_estimator(value: object) -> TypeGuard[Estimator]:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _describe_grid(label: str, search: Any, grid: Any) -> Any:
    """Return the JSON form of the grids of a search, once its estimator may be fitted at each value."""
    from sklearn.base import clone

    inner: Any = getattr(search, "estimator", None)
    every = inner.get_params(deep=True) if hasattr(inner, "get_params") else {}
    for lists in grid if isinstance(grid, list | tuple) else [grid]:
        if not (isinstance(lists, Mapping) and set(lists) <= set(every)):
            raise InputError(f"{label}={quote(grid)}: expected lists of values by parameter of its estimator")
        for key, values in lists.items():
            for value in values if isinstance(values, list | tuple | np.ndarray) else [values]:
                if callable(value) or hasattr(value, "get_params"):
                    raise InputError(f"{label}: {key} of a grid takes no function: score each by itself")
                describe(label, clone(inner).set_params(**{key: value}))
    return _describe_value(label, grid, None, 0)


def list_classes(spec: object) -> Iterator[str]:
    """Yield the classes of an estimator in its JSON form and of those inside it, as "module:Class"."""
    yield from (each["class"] for each in find_mappings(spec, "class") if isinstance(each["class"], str))


def find_mappings(value: object, key: str) -> Iterator[Mapping[str, object]]:
    """Yield every mapping with a key that a JSON value holds, outer ones first; estimators have a "class"."""
    if isinstance(value, Mapping):
        if key in value:
            yield value
        value = list(value.values())
    for part in value if isinstance(value, list | tuple) else ():
        yield from find_mappings(part, key)


def is_own(path: str) -> bool:
    """Return whether a class is scikit-learn's own, given as "module:Class" or by where it is defined."""
    return path.partition(":")[0].partition(".")[0] == LIBRARY


INSTALL = write_install("boosting")
FILE_WORDS = ("file", "dir", "snapshot", "machine")  # in names of parameters for files or hosts
XGBOOST, LIGHTGBM, CATBOOST = "xgboost", "lightgbm", "catboost"


class BoostingLibrary(NamedTuple):
    """What differs between the libraries.

    Attributes:
        forced: parameters that every estimator gets, each with all its spellings: the spellings that are
            given are set, or else the first. They ask for one thread, no output and no files.
        usual: parameters that it gets unless they are given.
        rounds: the parameter for the number of rounds.
        count: takes a fitted estimator; returns the number of its rounds.
        limit: takes a number of rounds; returns what limits predictions to that many first rounds.
        stop: parameters any of which asks to stop early.
        sharing: parameters, besides those above, with which the first rounds of a long fit are a short fit.
    """

    forced: tuple[Mapping[str, object], ...]
    usual: Mapping[str, object]
    rounds: str
    count: Callable[[Any], int]
    limit: Callable[[int], Mapping[str, object]]
    stop: tuple[str, ...]
    sharing: tuple[str, ...]


LIBRARIES = {
    XGBOOST: BoostingLibrary(
        forced=({"n_jobs": 1, "nthread": 1}, {"verbosity": 0}),
        usual={},
        rounds="n_estimators",
        count=lambda estimator: int(estimator.get_booster().num_boosted_rounds()),
        limit=lambda rounds: {"iteration_range": (0, rounds)},
        stop=("early_stopping_rounds",),
        sharing=(
            *("colsample_bylevel", "colsample_bynode", "colsample_bytree", "enable_categorical", "gamma"),
            *("grow_policy", "learning_rate", "max_bin", "max_depth", "max_leaves", "min_child_weight"),
            *("missing", "n_estimators", "objective", "random_state", "reg_alpha", "reg_lambda"),
            *("scale_pos_weight", "subsample"),
        ),
    ),
    LIGHTGBM: BoostingLibrary(
        forced=(
            dict.fromkeys(("n_jobs", "num_threads", "num_thread", "nthread", "nthreads"), 1),
            {"verbose": -1, "verbosity": -1},
        ),
        usual={"deterministic": True, "force_col_wise": True},  # else it times two ways, and takes the faster
        rounds="n_estimators",
        count=lambda estimator: int(estimator.n_iter_),
        limit=lambda rounds: {"num_iteration": rounds},
        stop=("early_stopping", "early_stopping_round", "early_stopping_rounds", "n_iter_no_change"),
        sharing=(
            *("boosting_type", "class_weight", "colsample_bytree", "importance_type", "learning_rate"),
            *("max_bin", "max_depth", "min_child_samples", "min_child_weight", "min_split_gain"),
            *("n_estimators", "num_leaves", "objective", "random_state", "reg_alpha", "reg_lambda"),
            *("subsample", "subsample_for_bin", "subsample_freq"),
        ),
    ),
    CATBOOST: BoostingLibrary(
        forced=(
            {"thread_count": 1},
            {"logging_level": "Silent", "verbose": False, "verbose_eval": False, "silent": True},
            {"allow_writing_files": False},
        ),
        usual={},
        rounds="iterations",
        count=lambda estimator: int(estimator.tree_count_),
        limit=lambda rounds: {"ntree_end": rounds},
        stop=("early_stopping_rounds", "od_pval", "od_type", "od_wait"),
        sharing=(
            *("border_count", "depth", "iterations", "l2_leaf_reg", "learning_rate", "random_seed"),
            *("random_state", "random_strength", "rsm"),
        ),
    ),
}
BOOSTERS = {  # classes of estimators, where each is defined
    **dict.fromkeys(("xgboost.sklearn:XGBClassifier", "xgboost.sklearn:XGBRegressor"), XGBOOST),
    **dict.fromkeys(("lightgbm.sklearn:LGBMClassifier", "lightgbm.sklearn:LGBMRegressor"), LIGHTGBM),
    **dict.fromkeys(("catboost.core:CatBoostClassifier", "catboost.core:CatBoostRegressor"), CATBOOST),
}


def find_library(estimator: object) -> str | None:
    """Return the package of an estimator of one of these libraries; None for any other."""
    return BOOSTERS.get(f"{type(estimator).__module__}:{type(estimator).__qualname__}")


@cache
def _list_defaults(kind: Any) -> Mapping[str, Any]:
    declared = signature(kind.__init__).parameters
    # XGBoost's declare no parameters, but list all
    listed = kind().get_params(deep=False) if f"{kind.__module__}:{kind.__qualname__}" in BOOSTERS else {}
    return listed | {
        name: each.default for name, each in declared.items() if each.default is not Parameter.empty
    }


def prepare(estimator: Estimator) -> None:
    """Make an estimator of these libraries silent and reproducible; leave any other as it is."""
    if (package := find_library(estimator)) is None:
        return
    library, given = LIBRARIES[package], estimator.get_params(deep=False)
    changes = {name: value for name, value in library.usual.items() if name not in given}
    if "force_row_wise" in given:  # the other of the two ways
        changes.pop("force_col_wise", None)
    for spellings in library.forced:
        named = {name: value for name, value in spellings.items() if name in given}
        changes |= named or dict([*spellings.items()][:1])
    if package == CATBOOST and not {"random_seed", "random_state"} & set(given):
        changes["random_state"] = None  # lists it, so that it is given a seed
    estimator.set_params(**changes)


def _is_outside(parameter: str) -> bool:
    return "allow" not in parameter and any(word in parameter for word in FILE_WORDS)


HERE = "__main__"  # the module of a script or a notebook, which no other process can import
OF_SCRIPT = "if you trust it, call trust('__main__') and load_run in the script that defines this class"
CLASS_FORM = "module:Class, such as sklearn.ensemble:RandomForestClassifier"
_trusted: set[str] = {LIBRARY}


def trust(package: str) -> None:
    """Allow estimators of a package to be imported and read from run folders, in this process.

    Importing a module runs its code, so somebody else's run folder must not decide what is imported. Packages
    that you name yourself in a study are allowed anyway.

    Args:
        package: its name for import, such as "xgboost".
    """
    expect("package", package, str, "the name of a package, such as 'xgboost'")
    _trusted.add(package.partition(".")[0])


def check_trusted(name: str, package: str) -> None:
    """Raise AbsentError unless a package may be imported for what is named."""
    if package not in _trusted:
        of_package = (
            f"importing {package} runs its code, which a run folder must not decide: if you trust it, "
            f"ckcv --trust {package}, or ckcv_ray.trust({package!r})"
        )
        raise AbsentError(f"{name}: {OF_SCRIPT if package == HERE else of_package}")


def is_trusted(path: str) -> bool:
    """Return whether a type is from a package, other than scikit-learn itself, that may be imported."""
    return path.partition(".")[0] in _trusted - {LIBRARY}


def list_packages(spec: object) -> Iterator[str]:
    """Yield the packages that an estimator, as text or in its JSON form, and those inside it come from."""
    for path in list_classes({"class": spec} if isinstance(spec, str) else spec):
        if ":" in path:
            yield path.partition(":")[0].partition(".")[0]


def list_foreign(learners: Iterable[object]) -> list[str]:
    """Return the packages, other than scikit-learn, that the estimators of some learners come from."""
    specs = (getattr(learner, "spec", None) for learner in learners)
    return sorted({name for spec in specs for name in list_packages(spec)} - {LIBRARY})


def as_spec(name: str, value: object) -> Spec:
    """Return the JSON form of an estimator given as text, as its JSON form, or as an object.

    Raises:
        InputError: it is none of these, its class does not exist, or it holds what a study may not hold.
    """
    from sklearn.base import is_classifier, is_regressor

    if value is None or value == "":
        raise InputError(f"{name} is not given: name one as {CLASS_FORM}")
    if isinstance(value, str):
        value = {"class": value}
    made = _make(name, value) if isinstance(value, Mapping) else value
    spec = describe(name, made) if _is_estimator(made) else {}
    if not (spec and (is_classifier(made) or is_regressor(made))):
        shown = value.get("class") if isinstance(value, Mapping) else value
        raise InputError(f"{name}={quote(shown)} predicts neither classes nor numbers: expected {CLASS_FORM}")
    if made is value:
        for package in list_packages(spec):
            trust(package)
    return spec


def build(spec: Mapping[str, object], setting: Mapping[str, object] | None = None) -> Estimator:
    """Return a new estimator, at a setting of a search space if one is given.

    Raises:
        InputError: its class, or a value of a parameter, may not be part of a study.
    """
    name = "estimator"
    made: Estimator = _make(name, spec)
    if setting:
        name, named = "param", complete_names(made, setting)
        try:
            made.set_params(**named)
        except (ValueError, AttributeError) as error:
            raise InputError(f"param: {str(error).splitlines()[0]}") from None
    describe(name, made)
    return made


@cache
def name_type(path: str) -> str:
    """Import a class, and return where it is defined: "sklearn.svm._classes.SVC" for "sklearn.svm:SVC"."""
    module, _, name = path.partition(":")
    kind = getattr(import_module(module), name)
    return f"{kind.__module__}.{kind.__qualname__}"


def list_parameters(estimator: Estimator) -> dict[str, object]:
    """Return the parameters of an estimator by name; for a pipeline's last step also by short name.

    Parameters that estimators of the boosting libraries take without listing them are added, with defaults:
    CatBoost's list only what they were given, and LightGBM's take any keyword, ignoring unknown ones.
    """
    every = estimator.get_params(deep=True)
    steps, last, short = every.get("steps"), estimator, dict[str, object]()
    if isinstance(steps, list) and steps:
        prefix, last = f"{steps[-1][0]}__", steps[-1][1]
        short = {name.removeprefix(prefix): v for name, v in every.items() if name.startswith(prefix)}
    declared = dict[str, object]()
    if library := find_library(last):
        declared |= _list_defaults(type(last))
        if library == LIGHTGBM:
            from lightgbm import basic

            known = basic._ConfigAliases._get_all_param_aliases().values()
            declared |= dict.fromkeys(sorted({name for names in known for name in names}))
    return {name: default for name, default in declared.items() if not _is_outside(name)} | short | every


def complete_names(estimator: Estimator, setting: Mapping[str, object]) -> dict[str, object]:
    """Return a setting with the names and numbers that ``set_params`` takes.

    Raises:
        InputError: the estimator has no such parameter.
    """
    known, every = estimator.get_params(deep=True), list_parameters(estimator)
    steps = known.get("steps")
    last = f"{steps[-1][0]}__" if isinstance(steps, list) and steps else ""
    named = dict[str, object]()
    for name, value in setting.items():
        if name not in every:
            near = get_close_matches(name, every, n=3, cutoff=0.4) or sorted(every)[:8]
            raise InputError(
                f"param {name!r} is not a parameter of {type(estimator).__name__}: did you mean "
                f"{' or '.join(near)}?"
            )
        full = name if name in known else f"{last}{name}"
        named[full] = INFINITE.get(value, value) if isinstance(value, str) else value
    return named


def _make(name: str, value: Any, depth: int = 0) -> Any:
    """Return what JSON stands for: a list of name and estimator is a step, a mapping to lists is a grid.

    The name of a step is text, even if it is "inf".
    """
    if depth > 10 * MAX_DEPTH:
        raise InputError(f"{name[:200]} is nested too deeply")
    if isinstance(value, str):
        return load_words().get(value, value)
    if isinstance(value, list):
        part = value[1] if len(value) > 1 and isinstance(value[0], str) else None
        named = "class" in part if isinstance(part, Mapping) else part in NO_STEP
        if named:  # names of columns are text as well
            step = [value[0], _make(f"{name}.{value[0]}", part, depth + 1), *value[2:]]
            return tuple(step) if isinstance(part, Mapping) else step
        return [_make(name, item, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "class" not in value:
        return {key: _make(name, item, depth + 1) for key, item in value.items()}
    if unknown := set(value) - {"class", "params"}:
        raise InputError(f"{name}: {quote(min(unknown))} is not known: give class and params")
    params = value.get("params", {})
    expect(f"{name}.params", params, Mapping, "a mapping of parameters")
    kind = _import_class(name, value["class"])
    try:
        return kind(**{key: _make(f"{name}.{key}", item, depth + 1) for key, item in params.items()})
    except TypeError as error:
        raise InputError(f"{name}: {error}") from None


def _import_class(name: str, path: Any) -> Any:
    if not (isinstance(path, str) and path.count(":") == 1 and all(path.split(":"))):
        raise InputError(f"{name}={quote(path)}: expected {CLASS_FORM}")
    module, _, attribute = path.partition(":")
    check_trusted(f"{name}={path!r}", package := module.partition(".")[0])
    if own := package == LIBRARY:
        module = module.partition("._")[0]
        if module.partition(".")[2] not in MODULES:
            raise InputError(
                f"{name}={quote(path)} cannot be part of a study: estimators of scikit-learn that predict a "
                f"column from numbers are in its modules {', '.join(MODULES)}"
            )
    try:
        found = import_module(module)
        kind = getattr(found, attribute, None)
    except ImportError as error:
        mend = INSTALL if package in LIBRARIES else "install it, or correct the name"
        raise AbsentError(f"{name}={path!r}: {error}: {mend}") from None
    elsewhere = own and not str(getattr(kind, "__module__", "")).startswith(module)
    if elsewhere or not (isinstance(kind, type) and hasattr(kind, "fit") and hasattr(kind, "get_params")):
        near = get_close_matches(attribute, dir(found), n=3) if kind is None else []
        expected = " or ".join(f"{module}:{each}" for each in near) or CLASS_FORM
        mend = OF_SCRIPT if kind is None and package == HERE else f"expected {expected}"
        refusal = AbsentError if kind is None else InputError
        raise refusal(f"{name}={path!r} is not the class of an estimator: {mend}")
    return kind


Values = dict[str, Any]  # by parameter: a tuple of values, or a distribution as text
Params = dict[str, Any]
DISTRIBUTIONS = ("loguniform", "uniform", "randint")
WORDS = {"true": True, "false": False, "none": None, "null": None}
MAX_SETTINGS = 100_000


def check_space(name: str, value: object) -> Values | None:
    """Return a search space in canonical form; None if it is empty.

    Args:
        name: name of the option, for messages.
        value: lists of values or texts by parameter; or texts such as "C=0.1,1".

    Raises:
        InputError: it is not a search space.
    """
    if value is None or value in ((), [], {}):
        return None
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Mapping):
        expect(name, value, Sequence, 'a mapping of lists, such as {"max_features": ["sqrt", 0.5]}')
        assert isinstance(value, Sequence)
        given = dict[str, str]()
        for text in value:
            key, _, values = map(str.strip, text.partition("=") if isinstance(text, str) else ("", "", ""))
            if not (key and values):
                raise InputError(f"{name}={quote(text)}: expected a parameter and its values, such as C=1,10")
            if key in given:
                raise InputError(f"{name} {quote(key)} is given twice: give its values at once, {key}=1,2")
            given[key] = values
        value = given
    return {key: _parse_values(f"{name} {key}", value[key]) for key in sorted(value)}


def list_settings(space: Values, sample: int | None) -> list[Params]:
    """Return the settings of a space: all combinations in order, or a random sample of them.

    The sample depends only on the space and on its own size.

    Raises:
        InputError: the space has distributions and no sample size, or too many settings.
    """
    drawn = [key for key, values in space.items() if isinstance(values, str)]
    if sample is None:
        if drawn:
            raise InputError(f"param {drawn[0]}={space[drawn[0]]} is a distribution: give sample, such as 60")
        count = int(np.prod([len(values) for values in space.values()], dtype=float))
        if count > MAX_SETTINGS:
            raise InputError(f"there are {count:,} settings, at most {MAX_SETTINGS:,}: give sample, or fewer")
        return [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    choices = {k: _make_distribution(v) if isinstance(v, str) else list(v) for k, v in space.items()}
    if not drawn and len(ParameterGrid(choices)) <= sample:
        return list_settings(space, None)
    sampler = ParameterSampler(choices, sample, random_state=0)
    found = [
        {key: float(f"{v:.12g}") if isinstance(v := _as_plain(setting[key]), float) else v for key in space}
        for setting in sampler
    ]
    texts = {json.dumps(setting, sort_keys=True): setting for setting in reversed(found)}
    return list(reversed(texts.values()))


def _make_distribution(text: str) -> Any:
    from scipy import stats

    kind, low, high = text.split(":")
    if kind == "uniform":
        return stats.uniform(float(low), float(high) - float(low))
    if kind == "randint":
        return stats.randint(int(low), int(high))
    return stats.loguniform(float(low), float(high))


def _as_plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _parse_values(name: str, given: Any) -> Any:
    """Return the values of a parameter, as a tuple, or a distribution as text."""
    if isinstance(given, str):
        if given.count(":") == 2 and given.partition(":")[0] in DISTRIBUTIONS:
            try:
                low, high = _make_distribution(given).support()
                if not (np.isfinite([low, high]).all() and low < high + (given[0] == "r")):
                    raise ValueError
            except (ValueError, TypeError):
                raise InputError(
                    f"{name}={given!r}: expected loguniform:1e-3:1e2, uniform:0:1 or randint:1:100, the "
                    "smaller first"
                ) from None
            return given
        if given.startswith("log:"):
            given = parse_grid(given, name)
        else:
            try:
                given = list(json.loads(f"[{given}]"))
            except ValueError:  # words and values, with commas in brackets kept
                given = [*map(_read_word, re.split(r",(?![^\[]*\])", given))]
    if isinstance(given, bool | int | float | type(None)):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise InputError(f"{name}={quote(given)} is neither a list of values nor text such as loguniform:1:9")
    values = [_read_value(name, value) for value in given]
    check_count(name, len(values), MAX_GRID)
    if not values:
        raise InputError(f"{name} is empty: give at least one value")
    texts = [json.dumps(value) for value in values]
    if len(set(texts)) < len(texts):
        raise InputError(f"{name}={quote(given)} has a value twice")
    return tuple(values)


def _read_value(name: str, value: Any) -> Any:
    value = _as_plain(value)
    if isinstance(value, list | tuple):
        return [_read_value(name, item) for item in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, float) and (word := find_word(value)):
        return word
    if isinstance(value, str) and value.isprintable():
        return value
    raise InputError(f"{name}={quote(value)}: values are numbers, inf, text, true, false, none, or lists")


def _read_word(text: str) -> Any:
    try:
        return json.loads(text.strip())
    except ValueError:
        return WORDS.get(text.strip().lower(), text.strip())
