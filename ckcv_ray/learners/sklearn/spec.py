"""Estimators as JSON: the class and the parameters that differ from its defaults, estimators inside included.

    {"class": "sklearn.linear_model:LogisticRegression", "params": {"max_iter": 1000}}

A study that holds this is compared, hashed and stored; the estimator is made from it where it is fitted. It
may come from a stranger's folder, and some parameters are paths, caches, functions or text that is evaluated.
So a study holds estimators of listed classes with listed parameters; whatever is not in the table
``allowed.json`` is refused. ``jobs/estimators.py`` makes the table from every class of scikit-learn and what
it declares of its parameters. Nothing is imported here but what is listed, and nothing of XGBoost, LightGBM,
CatBoost or another package before one of its estimators is made, which takes trust (``trust``).

A parameter takes None, truth values, numbers, and lists of these; besides these the words that are listed
for it, and what the following entries stand for. A parameter without a list takes nothing: it keeps its
default.

    <estimator>     an estimator
    <steps>         a list of named estimators, as of a Pipeline or a ColumnTransformer
    <function>      a function, from a closed list
    <grid>          lists of values by parameter of the estimator inside, as of GridSearchCV

Values that JSON has no form for are written as follows. A function that a folder names is code, so the list
holds only functions of numbers that write, read and call nothing: numpy's of one argument, and scikit-learn's
scores of columns. A study that names another one is refused.

    {"function": "numpy:log1p"}     a function
    {"slice": [0, 3, null]}         columns of a ColumnTransformer
    {"kinds": ["number"]}           the columns of these kinds, as ``make_column_selector`` finds them
    "inf", "-inf"                   infinity

A search space has for each parameter a list of values or a distribution.

    max_features=sqrt,0.5       values: numbers, true, false, none, lists such as [50,50], and other text
    C=log:-2:4:13               13 values from 10^-2 to 10^4
    C=loguniform:1e-3:1e2       a distribution, of which ``sample`` settings are drawn; or uniform, randint
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from inspect import Parameter, signature
from itertools import product
from math import inf, isinf, isnan, nan
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.errors import InputError, write_install
from ckcv_ray.tables.columns import ColumnKind
from ckcv_ray.validation import MAX_GRID, check_count, expect, parse_grid, quote, suggest

FUNCTION, SLICE, KINDS = "function", "slice", "kinds"
INFINITE = {"inf": inf, "-inf": -inf}
UFUNCS = (
    *("absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos"),
    *("cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "log", "log10", "log1p"),
    *("log2", "negative", "positive", "rad2deg", "radians", "reciprocal", "rint", "sign", "sin", "sinh"),
    *("sqrt", "square", "tan", "tanh", "trunc"),
)
DTYPES = {  # what ``make_column_selector`` takes, by the kind of column that it stands for here
    ColumnKind.NUMBER: ("number", np.number),
    ColumnKind.CATEGORY: ("category", "object", "string", "O", object, str),
    ColumnKind.DATE: ("datetime", "datetime64", np.datetime64),
}
RANDOM_SCORES = ("mutual_info_classif", "mutual_info_regression")  # draw from numpy's global generator
COLUMN_SCORES = {
    "chi2": "sklearn.feature_selection._univariate_selection",
    "f_classif": "sklearn.feature_selection._univariate_selection",
    "f_regression": "sklearn.feature_selection._univariate_selection",
    "r_regression": "sklearn.feature_selection._univariate_selection",
    **dict.fromkeys(RANDOM_SCORES, "sklearn.feature_selection._mutual_info"),
}
FUNCTIONS = {  # by the name in a study, the name in a skops file
    **{f"numpy:{name}": f"numpy.{name}" for name in UFUNCS},
    **{f"sklearn.feature_selection:{name}": f"{module}.{name}" for name, module in COLUMN_SCORES.items()},
}
FUNCTION_TYPES = frozenset(FUNCTIONS.values())


def check_function(label: str, value: Mapping[str, Any]) -> None:
    """Raise InputError unless a value names one of the functions that a study may hold."""
    named = value.get(FUNCTION)
    if set(value) != {FUNCTION} or not isinstance(named, str) or named not in FUNCTIONS:
        raise InputError(
            f"{label}={quote(named)} is not a function that a study may hold: expected one of numpy, such as "
            f"numpy:log1p, or of sklearn.feature_selection, {', '.join(COLUMN_SCORES)}"
            f"{suggest(named, FUNCTIONS) if isinstance(named, str) else ''}"
        )


def check_columns(label: str, value: Mapping[str, Any]) -> None:
    """Raise InputError unless a value describes a slice, or kinds of columns."""
    if KINDS in value:
        named = value[KINDS]
        listed = isinstance(named, list | tuple) and all(kind in list(ColumnKind) for kind in named)
        if set(value) != {KINDS} or not listed:
            raise InputError(
                f"{label}={quote(value)} are not kinds of columns: expected a list of {', '.join(ColumnKind)}"
            )
        return
    ends: Any = value.get(SLICE)
    listed = isinstance(ends, list | tuple) and len(ends) == 3
    plain = listed and all(isinstance(end, int | str | None) and not isinstance(end, bool) for end in ends)
    if set(value) != {SLICE} or not plain or ends[2] == 0:
        raise InputError(
            f"{label}={quote(value)} is not a slice: expected its start, stop and step, each a whole number "
            "or None, and the step not 0"
        )


def describe_value(value: Any) -> Any:
    """Return the form in JSON of a listed function, columns or infinity; None of anything else.

    Raises:
        InputError: it selects columns otherwise than by name, position or kind.
    """
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        whole = [isinstance(end, Integral) and not isinstance(end, bool) for end in ends]  # also of numpy
        return {SLICE: [int(end) if is_int else end for end, is_int in zip(ends, whole, strict=True)]}
    if isinstance(value, float) and isinf(value):
        return "inf" if value > 0 else "-inf"
    if callable(value) and not isinstance(value, type):
        from sklearn.compose import make_column_selector

        if isinstance(value, make_column_selector):
            return {KINDS: _list_kinds(value)}
        return next(({FUNCTION: name} for name, known in _load().items() if known is value), None)
    return None


def make_value(value: Any) -> Any:
    """Return what one of these forms stands for; any other value as it is."""
    if isinstance(value, str):
        return INFINITE.get(value, value)
    if isinstance(value, Mapping) and FUNCTION in value:
        check_function(FUNCTION, value)
        return _load()[value[FUNCTION]]
    if isinstance(value, Mapping) and SLICE in value:
        check_columns(SLICE, value)
        return slice(*value[SLICE])
    if isinstance(value, Mapping) and KINDS in value:
        from sklearn.compose import make_column_selector

        check_columns(KINDS, value)
        return make_column_selector(dtype_include=[DTYPES[ColumnKind(kind)][0] for kind in value[KINDS]])
    return value


def draws_globally(value: Any) -> bool:
    """Return whether a value is a listed function that draws from numpy's global generator."""
    return callable(value) and any(
        value is _load()[f"sklearn.feature_selection:{name}"] for name in RANDOM_SCORES
    )


@cache
def _load() -> dict[str, Any]:
    parts = {name: name.split(":") for name in FUNCTIONS}
    return {name: getattr(import_module(module), attribute) for name, (module, attribute) in parts.items()}


def _list_kinds(selector: Any) -> list[str]:
    if selector.pattern is not None:
        raise InputError(
            f"make_column_selector(pattern={quote(selector.pattern)}) cannot be part of a study: name the "
            "columns in a list"
        )
    include, exclude = (_find_kinds(given) for given in (selector.dtype_include, selector.dtype_exclude))
    chosen = list(ColumnKind) if include is None else include
    return [str(kind) for kind in ColumnKind if kind in chosen and kind not in (exclude or ())]


def _find_kinds(given: Any) -> list[ColumnKind] | None:
    if given is None:
        return None
    listed = given if isinstance(given, list | tuple) else [given]
    kinds = {dtype: kind for kind, dtypes in DTYPES.items() for dtype in dtypes}
    for dtype in listed:
        if not isinstance(dtype, str | type) or dtype not in kinds:
            raise InputError(
                f"make_column_selector: columns are numbers, categories or dates, and {quote(dtype)} is none "
                f"of number, category and datetime: take one of these, or name the columns in a list"
            )
    return [kinds[dtype] for dtype in listed]


LIBRARY = "sklearn"
ESTIMATOR, STEPS, GRID, CALLABLE = "<estimator>", "<steps>", "<grid>", "<function>"
NO_STEP = ("drop", "passthrough")
MAX_DEPTH = 20
EstimatorSpec = Mapping[str, Any]


class AllowedTable(NamedTuple):
    """What is allowed."""

    version: str  # of scikit-learn, of which the table was made
    # for each class as "module:Class", what each parameter takes; None for its default alone
    parameters: dict[str, dict[str, list[str] | None]]
    refused: dict[str, str]  # classes that are not allowed, and why
    parts: dict[str, list[str]]  # for each class, the classes that its fits create by themselves
    types: frozenset[str]  # names of all other types that fitted estimators hold, as skops writes them
    loaders: frozenset[str]  # the kinds of nodes of a skops file that these need


@cache
def table() -> AllowedTable:
    """Read the table."""
    content = json.loads(files(__package__).joinpath("allowed.json").read_text(encoding="utf-8"))
    content |= {name: frozenset(content[name]) for name in ("types", "loaders")}
    return AllowedTable(**content)


def check_class(name: str, path: str) -> None:
    """Raise InputError unless a class of scikit-learn, as "module:Class", is listed."""
    known = table()
    if path in known.parameters:
        return
    if path in known.refused:
        raise InputError(f"{name}={path!r} cannot be part of a study: {known.refused[path]}")
    near = list_namesakes(path)
    for similar in () if near else get_close_matches(path.partition(":")[2], by_name := _by_name(), n=3):
        near += by_name[similar]
    hint = f": did you mean {' or '.join(near)}?" if near else ""
    raise InputError(f"{name}={quote(path)} is not an estimator of scikit-learn that a study may hold{hint}")


def list_namesakes(path: str) -> list[str]:
    """Return the listed classes with the name of this one, wherever it says that it is."""
    return list(_by_name().get(path.partition(":")[2], ()))


@cache
def _by_name() -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for path in table().parameters:
        named.setdefault(path.partition(":")[2], []).append(path)
    return named


def check_estimator(name: str, spec: EstimatorSpec, depth: int = 0) -> None:
    """Check the JSON form of an estimator and of all inside it.

    Raises:
        InputError: a class of scikit-learn, or a value of one of its parameters, is not allowed.
    """
    if depth > MAX_DEPTH:
        raise InputError(f"{name} is nested too deeply: at most {MAX_DEPTH} estimators in each other")
    path, params = spec.get("class"), spec.get("params", {})
    if not isinstance(path, str) or not isinstance(params, Mapping):
        return  # refused where it is built
    if is_listed(path):
        check_class(name, path)
    for key, value in params.items():
        _check(name, spec, key, value, depth)


def check_setting(name: str, spec: EstimatorSpec, parameter: str, value: Any) -> None:
    """Check a value that is set in an estimator by the parameter's full name, such as "model__C".

    Raises:
        InputError: it is not allowed, or no estimator has such a parameter.
    """
    first, inner, rest = parameter.partition("__")
    if inner:
        found = spec.get("params", {}).get(first) or dict(_steps(spec)).get(first)
        if not isinstance(found, Mapping):
            raise InputError(f"{name} {parameter}: {spec.get('class')} holds no estimator {first!r}")
        check_setting(name, found, rest, value)
    elif first in dict(_steps(spec)):
        if value not in (*NO_STEP, None):
            raise InputError(f"{name} {first}={quote(value)}: expected {' or '.join(NO_STEP)}")
    else:
        _check(name, spec, first, value, 0)


def list_classes(spec: Any) -> Iterator[str]:
    """Yield the classes of an estimator in its JSON form and of those inside it, as "module:Class"."""
    yield from (inside["class"] for inside in list_specs(spec) if isinstance(inside["class"], str))


def list_specs(spec: Any) -> Iterator[EstimatorSpec]:
    """Yield the JSON form of an estimator, and of those inside it."""
    if isinstance(spec, Mapping):
        if "class" in spec:
            yield spec
        spec = list(spec.values())
    if isinstance(spec, list | tuple):
        for value in spec:
            yield from list_specs(value)


def list_parts(paths: Iterable[str]) -> set[str]:
    """Return these classes and those that their fits create."""
    known, found, left = table(), set[str](), list(paths)
    while left:
        if (path := left.pop()) not in found:
            found.add(path)
            left += known.parts.get(path, [])
    return found


def is_listed(path: str) -> bool:
    """Return whether the table decides about a class: all of scikit-learn, and nothing else."""
    module, _, name = path.partition(":")
    return bool(name) and module.partition(".")[0] == LIBRARY


def _steps(spec: EstimatorSpec) -> Iterator[tuple[str, Any]]:
    parameters = table().parameters.get(str(spec.get("class")), {})
    for key, value in spec.get("params", {}).items():
        if STEPS in (parameters.get(key) or ()) and isinstance(value, list | tuple):
            yield from ((step[0], step[1]) for step in value if _is_step(step))


def _is_step(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) >= 2 and isinstance(value[0], str)


def _check(name: str, spec: EstimatorSpec, key: str, value: Any, depth: int) -> None:
    path, label = str(spec.get("class")), f"{name}.{key}"
    if not is_listed(path):  # of a package that is trusted: only what is inside is looked at
        for inside in _list_inside(value):
            check_estimator(label, inside, depth + 1)
        return
    parameters = table().parameters[path]
    if key not in parameters:
        near = get_close_matches(key, parameters, n=3, cutoff=0.4) or sorted(parameters)[:8]
        raise InputError(f"{label}: {path} has no such parameter: did you mean {' or '.join(near)}?")
    allowed = parameters[key]
    if allowed is None:
        raise InputError(
            f"{label}={quote(value)}: a study keeps the default of this parameter, which may name a file, a "
            "cache or a function: leave it out"
        )
    if isinstance(value, Mapping) and FUNCTION in value:
        if CALLABLE not in allowed:
            raise InputError(f"{label} takes no function: {_say(allowed)}")
        check_function(label, value)
    elif isinstance(value, Mapping) and "class" in value:
        if ESTIMATOR not in allowed:
            raise InputError(f"{label} takes no estimator: {_say(allowed)}")
        check_estimator(label, value, depth + 1)
    elif STEPS in allowed and isinstance(value, list | tuple):
        for step in value:
            _check_step(label, step, depth)
    elif GRID in allowed and isinstance(value, Mapping | list | tuple):
        _check_grid(label, spec, value)
    elif not all(_is_plain(item) or item in allowed for item in _flatten(label, value)):
        raise InputError(f"{label}={quote(value)} cannot be part of a study: {_say(allowed)}")


def _check_step(label: str, step: Any, depth: int) -> None:
    """Check a step: its name, an estimator or a word, and of a ColumnTransformer the columns."""
    if not (_is_step(step) and len(step) <= 3):
        raise InputError(f"{label}={quote(step)} is not a step: expected its name and an estimator")
    estimator, *columns = step[1:]
    if isinstance(estimator, Mapping):
        check_estimator(f"{label}.{step[0]}", estimator, depth + 1)
    elif estimator not in (*NO_STEP, None):
        raise InputError(f"{label}.{step[0]}={quote(estimator)} is neither an estimator nor {_say(NO_STEP)}")
    for column in _flatten(label, columns):
        if isinstance(column, Mapping):
            check_columns(f"{label}.{step[0]}", column)
        elif not (_is_plain(column) or isinstance(column, str)):
            raise InputError(
                f"{label}.{step[0]}: {quote(column)} is neither the number nor the name of a column"
            )


def _check_grid(label: str, spec: EstimatorSpec, grid: Any) -> None:
    inside = spec.get("params", {}).get("estimator")
    for lists in grid if isinstance(grid, list | tuple) else [grid]:
        if not (isinstance(lists, Mapping) and isinstance(inside, Mapping)):
            raise InputError(f"{label}={quote(grid)}: expected lists of values by parameter of its estimator")
        for key, values in lists.items():
            for value in values if isinstance(values, list | tuple) else [values]:
                if isinstance(value, Mapping) and FUNCTION in value:
                    raise InputError(
                        f"{label}: {key} of a grid takes no function: score one estimator for each"
                    )
                check_setting(label, inside, key, value)


def _flatten(label: str, value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield what lists hold; a mapping, which no parameter takes, is yielded as it is."""
    if depth > MAX_DEPTH:
        raise InputError(f"{label} is nested too deeply")
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flatten(label, item, depth + 1)
    else:
        yield value


def _list_inside(value: Any) -> Iterator[EstimatorSpec]:
    """Yield the estimators in a value of a parameter, not those inside them."""
    if isinstance(value, Mapping) and isinstance(value.get("class"), str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _list_inside(item)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or value in tuple(INFINITE)


def _say(allowed: Any) -> str:
    listed = [word for word in allowed if word not in (ESTIMATOR, STEPS, GRID, CALLABLE)]
    words = f", or {', '.join(listed[:12])}{' ...' if len(listed) > 12 else ''}" if listed else ""
    return f"expected numbers or lists of them{words}"


INSTALL = write_install("boosting")
FILE_WORDS = ("file", "dir", "snapshot", "machine")  # in names of parameters that are files or hosts
XGBOOST, LIGHTGBM, CATBOOST = "xgboost", "lightgbm", "catboost"


class BoostingLibrary(NamedTuple):
    """What differs between the libraries.

    Attributes:
        forced: parameters that every estimator gets, each in all its spellings: those that are given are set,
            or the first. They ask for one thread, no output and no files.
        usual: parameters that it gets unless they are given.
        rounds: parameter that is the number of rounds.
        limit: takes a number of rounds; returns what limits predictions to the first of them.
        stop: parameters of which any asks to stop early.
        sharing: parameters, besides those above, with which the first rounds of a long fit are a short fit.
    """

    forced: tuple[Mapping[str, Any], ...]
    usual: Mapping[str, Any]
    rounds: str
    limit: Callable[[int], Mapping[str, Any]]
    stop: tuple[str, ...]
    sharing: tuple[str, ...]


LIBRARIES = {
    XGBOOST: BoostingLibrary(
        forced=({"n_jobs": 1, "nthread": 1}, {"verbosity": 0}),
        usual={},
        rounds="n_estimators",
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


def find_library(estimator: Any) -> str | None:
    """Return the package of an estimator of one of these libraries; None of any other."""
    return BOOSTERS.get(f"{type(estimator).__module__}:{type(estimator).__qualname__}")


def check_parameters(name: str, estimator: Any, parameters: Iterable[str]) -> None:
    """Raise InputError if a parameter of an estimator of these libraries names a file or a host."""
    named = [parameter for parameter in parameters if _is_outside(parameter)]
    if named and find_library(estimator):
        raise InputError(
            f"{name}.{named[0]} cannot be part of a study: it names a file or a host: leave it out"
        )


def list_declared(estimator: Any) -> dict[str, Any]:
    """Return the parameters that an estimator of these libraries takes besides those it lists, and defaults.

    CatBoost's estimators list what they were given. LightGBM's take any keyword, and ignore unknown ones.
    """
    if (library := find_library(estimator)) is None:
        return {}
    found = _list_defaults(type(estimator))
    if library == LIGHTGBM:
        from lightgbm import basic

        known = basic._ConfigAliases._get_all_param_aliases().values()
        found |= dict.fromkeys(sorted({name for names in known for name in names}))
    return {parameter: default for parameter, default in found.items() if not _is_outside(parameter)}


def _list_defaults(kind: Any) -> dict[str, Any]:
    declared = signature(kind.__init__).parameters
    return {name: each.default for name, each in declared.items() if each.default is not Parameter.empty}


def prepare(estimator: Any) -> None:
    """Make an estimator of these libraries silent and reproducible; leave any other as it is."""
    if (package := find_library(estimator)) is None:
        return
    library, given = LIBRARIES[package], estimator.get_params(deep=False)
    changes = {name: value for name, value in library.usual.items() if name not in given}
    if "force_row_wise" in given:  # the other of two ways
        changes.pop("force_col_wise", None)
    for spellings in library.forced:
        named = {name: value for name, value in spellings.items() if name in given}
        changes |= named or dict([*spellings.items()][:1])
    if given.get("missing") == "nan":  # as the command line gives it
        changes["missing"] = nan
    if package == CATBOOST and not {"random_seed", "random_state"} & set(given):
        changes["random_state"] = None  # lists it, so that it is given a seed
    estimator.set_params(**changes)


def shares_rounds(estimator: Any) -> bool:
    """Return whether the first rounds of a long fit of an estimator of these libraries are a short fit.

    Only parameters count that are known to allow it. CatBoost's learning rate depends on the number of rounds
    unless it is given.
    """
    package = str(find_library(estimator))
    library, defaults = LIBRARIES[package], type(estimator)().get_params()
    forced = {name for spellings in library.forced for name in spellings}
    params = estimator.get_params()
    given = {name for name, value in params.items() if name not in defaults or value != defaults[name]}
    if package == CATBOOST and params.get("learning_rate") is None:
        return False
    known = {*library.sharing, *library.usual, *forced}
    return given <= known and params.get("boosting_type", "gbdt") == "gbdt"


def _is_outside(parameter: str) -> bool:
    return "allow" not in parameter and any(word in parameter for word in FILE_WORDS)


Spec = dict[str, Any]
CLASS_FORM = "module:Class, such as sklearn.ensemble:RandomForestClassifier"
_trusted: set[str] = {LIBRARY}


class UntrustedError(InputError):
    """A study names a package that may not be imported."""


def trust(package: str) -> None:
    """Allow estimators of a package to be imported and read from run folders, in this process.

    Importing a module runs its code, so a run folder of somebody else's must not decide what is imported.
    Packages that you name yourself in a study are allowed anyway.

    Args:
        package: the name that is imported, such as "xgboost".
    """
    expect("package", package, str, "the name of a package, such as 'xgboost'")
    _trusted.add(package.partition(".")[0])


def check_trusted(name: str, package: str) -> None:
    """Raise UntrustedError unless a package may be imported for what is named."""
    if package not in _trusted:
        raise UntrustedError(
            f"{name}: importing {package} runs its code, which a run folder must not decide: if you "
            f"trust it, ckcv --trust {package}, or ckcv_ray.trust({package!r})"
        )


def is_trusted(path: str) -> bool:
    """Return whether the package of a type may be imported, other than scikit-learn itself."""
    return path.partition(".")[0] in _trusted - {LIBRARY}


def list_packages(spec: Any) -> Iterator[str]:
    """Yield the packages that an estimator, as text or in its JSON form, and those inside it come from."""
    for path in list_classes({"class": spec} if isinstance(spec, str) else spec):
        if ":" in path:
            yield path.partition(":")[0].partition(".")[0]


def list_foreign(learner: Any) -> list[str]:
    """Return the packages, other than scikit-learn, that a learner's estimators, or its learners', are of."""
    specs = (getattr(single, "spec", None) for single in learner.by_label.values())
    return sorted({name for spec in specs for name in list_packages(spec)} - {LIBRARY})


def as_spec(name: str, value: Any) -> Spec:
    """Return the JSON form of an estimator given as text, as its JSON form, or as an object.

    Raises:
        InputError: it is none of these, has no such class, or holds what JSON cannot.
    """
    if value is None:
        raise InputError(f"{name} is not given: name one as {CLASS_FORM}")
    if isinstance(value, str):
        value = {"class": value}
    if isinstance(value, Mapping):
        value = {**value, "class": _find_public(value.get("class"))}
        check_estimator(name, value)
        built = _build(name, value)
        if not _predicts(built):
            raise InputError(
                f"{name}={value.get('class')!r} predicts neither classes nor numbers: expected {CLASS_FORM}"
            )
        return _describe(name, built)
    if isinstance(value, type) or not (hasattr(value, "get_params") and _predicts(value)):
        raise InputError(
            f"{name}={quote(value)} predicts neither classes nor numbers: give an object, or {CLASS_FORM}"
        )
    spec = _describe(name, value)
    check_estimator(name, spec)
    for package in list_packages(spec):
        trust(package)
    return spec


def _predicts(estimator: Any) -> bool:
    from sklearn.base import is_classifier, is_regressor

    return bool(is_classifier(estimator) or is_regressor(estimator))


def build(spec: Mapping[str, Any]) -> Any:
    """Return a new estimator.

    Raises:
        InputError: it is not listed, or has a parameter or a value that is not; see ``table``.
    """
    check_estimator("estimator", spec)
    return _build("estimator", spec)


def _find_public(path: Any) -> Any:
    """Return the listed class that a private module of scikit-learn defines under this path, or the path."""
    if not isinstance(path, str):
        return path
    same = (namesake for namesake in list_namesakes(path) if name_type(namesake) == path.replace(":", "."))
    return next(same, path)


@cache
def name_type(path: str) -> str:
    """Return where a class is defined, such as "sklearn.svm._classes.SVC" of "sklearn.svm:SVC".

    Args:
        path: a listed class; it is imported.
    """
    module, _, name = path.partition(":")
    kind = getattr(import_module(module), name, None)  # other versions of scikit-learn may lack it
    return path if kind is None else f"{kind.__module__}.{kind.__qualname__}"


def list_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator by name; of a pipeline's last step also by short name."""
    every: dict[str, Any] = estimator.get_params(deep=True)
    steps = every.get("steps")
    if not isinstance(steps, list) or not steps:
        return list_declared(estimator) | every
    last = f"{steps[-1][0]}__"
    short = {name.removeprefix(last): value for name, value in every.items() if name.startswith(last)}
    return list_declared(steps[-1][1]) | short | every


def complete_names(estimator: Any, setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting with the names that ``set_params`` takes.

    Raises:
        InputError: the estimator has no such parameter.
    """
    known, every = estimator.get_params(deep=True), list_parameters(estimator)
    last = f"{known['steps'][-1][0]}__" if isinstance(known.get("steps"), list) and known["steps"] else ""
    for name in setting:
        if name not in every:
            near = get_close_matches(name, every, n=3, cutoff=0.4) or sorted(every)[:8]
            raise InputError(
                f"param {name!r} is not a parameter of {type(estimator).__name__}: did you mean "
                f"{' or '.join(near)}?"
            )
    check_parameters("param", steps[-1][1] if (steps := known.get("steps")) else estimator, setting)
    return {name if name in known else f"{last}{name}": value for name, value in setting.items()}


def _describe(name: str, estimator: Any) -> Spec:
    kind = type(estimator)
    defaults = _list_defaults(kind)
    if find_library(estimator):  # XGBoost's declare no parameters, and list all
        defaults = kind().get_params(deep=False) | defaults
    given = estimator.get_params(deep=False)
    changed = {key: value for key, value in given.items() if not _is_default(value, defaults, key)}
    check_parameters(name, estimator, changed)
    spec: Spec = {"class": find_path(name, kind)}
    if changed:
        spec["params"] = {key: _to_json(f"{name}.{key}", value) for key, value in sorted(changed.items())}
    return spec


def _is_default(value: Any, defaults: Mapping[str, Any], key: str) -> bool:
    if key not in defaults:
        return False
    default = defaults[key]
    if isinstance(value, float) and isinstance(default, float) and isnan(value) and isnan(default):
        return True
    return value is default or (
        type(value) is type(default) and not hasattr(value, "fit") and value == default
    )


def find_path(name: str, kind: type) -> str:
    """Return where a class is imported from: the shortest public module that has it."""
    parts = kind.__module__.split(".")
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise InputError(
            f"{name}: workers cannot import {kind.__qualname__} of {kind.__module__}: define it in a module"
        )
    for end in range(1, len(parts)):
        module = ".".join(parts[:end])
        if parts[end].startswith("_") and getattr(import_module(module), kind.__qualname__, None) is kind:
            parts = parts[:end]
            break
    return f"{'.'.join(parts)}:{kind.__qualname__}"


def _to_json(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if (described := describe_value(value)) is not None:
        return described
    if isinstance(value, np.generic):
        return _to_json(name, value.item())
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_to_json(name, item) for item in value]
    if not isinstance(value, type) and hasattr(value, "tolist"):  # an array, or names of a frame's columns
        return _to_json(name, value.tolist())
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _to_json(f"{name}.{key}", item) for key, item in value.items()}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _describe(name, value)
    raise InputError(
        f"{name}={quote(value)} cannot be part of a study, which is stored as JSON: give a number, text, a "
        "list of these, an estimator, or a function of numpy such as np.log1p"
    )


def _build(name: str, spec: Mapping[str, Any]) -> Any:
    if unknown := set(spec) - {"class", "params"}:
        raise InputError(f"{name}: {quote(min(unknown))} is not known: give class and params")
    params = spec.get("params", {})
    expect(f"{name}.params", params, Mapping, "a mapping of parameters")
    kind = _import_class(name, spec.get("class"))
    try:
        built = kind(**{key: _build_value(f"{name}.{key}", value) for key, value in params.items()})
    except TypeError as error:
        raise InputError(f"{name}: {error}") from None
    check_parameters(name, built, params)
    return built


def _build_value(name: str, value: Any) -> Any:
    """Return the value that a parameter's JSON stands for; lists of pairs are steps of a pipeline.

    The name of a step is text, even if it is "inf". A mapping of lists is the grid of a search.
    """
    if isinstance(value, Mapping) and "class" in value:
        return _build(name, value)
    if isinstance(value, list):
        names = value[:1] if _is_named(value) else []
        listed = [*names, *(_build_value(name, item) for item in value[len(names) :])]
        is_pair = len(listed) >= 2 and isinstance(listed[0], str) and hasattr(listed[1], "get_params")
        return tuple(listed) if is_pair else listed
    if isinstance(value, Mapping) and {FUNCTION, SLICE, KINDS}.isdisjoint(value):
        return {
            key: [make_value(part) for part in item] if isinstance(item, list) else item
            for key, item in value.items()
        }
    return make_value(value)


def _is_named(value: list[Any]) -> bool:
    if len(value) < 2 or not isinstance(value[0], str):
        return False
    return "class" in value[1] if isinstance(value[1], Mapping) else value[1] in NO_STEP


def _import_class(name: str, path: Any) -> Any:
    if not (isinstance(path, str) and path.count(":") == 1 and all(path.split(":"))):
        raise InputError(f"{name}={quote(path)}: expected {CLASS_FORM}")
    module, _, attribute = path.partition(":")
    check_trusted(f"{name}={path!r}", package := module.partition(".")[0])
    if is_listed(path):
        check_class(name, path)
    try:
        found = import_module(module)
    except ImportError as error:
        mend = INSTALL if package in LIBRARIES else "install it, or correct the name"
        raise InputError(f"{name}={path!r}: {error}: {mend}") from None
    kind = getattr(found, attribute, None)
    if kind is None:
        near = get_close_matches(attribute, dir(found), n=3)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"{name}={path!r}: {module} has no {attribute}{hint}")
    if not (isinstance(kind, type) and hasattr(kind, "fit") and hasattr(kind, "get_params")):
        raise InputError(f"{name}={path!r} is not the class of an estimator: expected {CLASS_FORM}")
    return kind


Values = dict[str, Any]  # by parameter: a tuple of values, or a distribution as text
Params = dict[str, Any]
DISTRIBUTIONS = ("loguniform", "uniform", "randint")
WORDS = {"true": True, "false": False, "none": None, "null": None}
MAX_SETTINGS = 100_000


def check_space(name: str, value: Any) -> Values | None:
    """Return a search space in canonical form; None if it is empty.

    Args:
        name: of the option, for messages.
        value: lists of values, texts or distributions by parameter; or texts such as "C=0.1,1".

    Raises:
        InputError: it is not one.
    """
    if value is None or value in ((), [], {}):
        return None
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Mapping):
        expect(name, value, Sequence, 'a mapping of lists, such as {"max_features": ["sqrt", 0.5]}')
        pairs = list[tuple[str, str]]()
        for text in value:
            key, _, values = map(str.strip, text.partition("=") if isinstance(text, str) else ("", "", ""))
            if not (key and values):
                raise InputError(
                    f"{name}={quote(text)}: expected a parameter and its values, such as C=0.1,1,10"
                )
            pairs.append((key, values))
        value = dict(pairs)
        if len(value) < len(pairs):
            twice = next(repeated for repeated in value if sum(key == repeated for key, _ in pairs) > 1)
            raise InputError(
                f"{name} {quote(twice)} is given twice: give all its values at once, {twice}=1,2"
            )
    return {key: _parse_values(f"{name} {key}", value[key]) for key in sorted(value)}


def list_settings(space: Values, sample: int | None) -> list[Params]:
    """Return the settings of a space: all combinations in order, or a random sample of them.

    The sample depends on the space and its size alone.

    Raises:
        InputError: it has distributions and no sample size, or too many settings.
    """
    drawn = [key for key, values in space.items() if isinstance(values, str)]
    if sample is None:
        if drawn:
            raise InputError(
                f"param {drawn[0]}={space[drawn[0]]} is a distribution: give sample, the number of settings "
                "to draw, such as 60"
            )
        count = int(np.prod([len(values) for values in space.values()], dtype=float))
        if count > MAX_SETTINGS:
            raise InputError(
                f"the search space has {count:,} settings: at most {MAX_SETTINGS:,}: give sample, or fewer"
            )
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
    if hasattr(given, "dist") and hasattr(given, "rvs"):
        given = _write_distribution(name, given)
    if isinstance(given, str):
        if given.count(":") == 2 and given.partition(":")[0] in DISTRIBUTIONS:
            return _check_distribution(name, given)
        if given.startswith("log:"):
            return tuple(parse_grid(given, name))
        given = [_parse_word(part) for part in _split(given)]
    if isinstance(given, bool | int | float | type(None)):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise InputError(f"{name}={quote(given)} is not a list of values")
    values = [_check_value(name, value) for value in given]
    check_count(name, len(values), MAX_GRID)
    if not values:
        raise InputError(f"{name} is empty: give at least one value")
    texts = [json.dumps(value) for value in values]
    if len(set(texts)) < len(texts):
        raise InputError(f"{name}={quote(given)} has a value twice")
    return tuple(values)


def _check_value(name: str, value: Any) -> Any:
    value = _as_plain(value)
    if isinstance(value, list | tuple):
        return [_check_value(name, item) for item in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, float) and np.isinf(value):
        return describe_value(value)
    if isinstance(value, str) and value.isprintable():
        return value
    raise InputError(f"{name}={quote(value)}: values are numbers, inf, text, true, false, none, or lists")


def _check_distribution(name: str, text: str) -> str:
    try:
        low, high = _make_distribution(text).support()
        if not (np.isfinite([low, high]).all() and low < high + (text[0] == "r")):
            raise ValueError
    except (ValueError, TypeError):
        raise InputError(
            f"{name}={text!r}: expected loguniform:1e-3:1e2, uniform:0:1 or randint:1:100, the smaller first"
        ) from None
    return text


def _write_distribution(name: str, distribution: Any) -> str:
    kind, args = distribution.dist.name, distribution.args
    names = {name: name for name in DISTRIBUTIONS} | {"reciprocal": "loguniform"}
    if kind not in names or distribution.kwds or not 1 <= len(args) <= 2:
        raise InputError(f"{name}: a distribution is one of {', '.join(DISTRIBUTIONS)}, given by position")
    low, high = distribution.support()
    high = high + 1 if kind == "randint" else high
    return f"{names[kind]}:{low.item() if hasattr(low, 'item') else low}:{high}"


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _parse_word(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text
