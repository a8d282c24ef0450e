"""Values of parameters that JSON has no form for: functions of a closed list, columns and infinity.

    {"function": "numpy:log1p"}     a function; a study that names another one is refused
    {"slice": [0, 3, null]}         columns of a ColumnTransformer
    {"kinds": ["number"]}           the columns of these kinds, as ``make_column_selector`` finds them
    "inf", "-inf"                   infinity

A function that a folder names is code, so the list holds only functions of numbers that write, read and call
nothing: numpy's of one argument, and scikit-learn's scores of columns. Nothing is imported here but what is
listed.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from math import inf, isinf
from numbers import Integral
from typing import Any

import numpy as np

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.types import ColumnKind
from ckcv_ray.validation import quote, suggest

FUNCTION, SLICE, KINDS = "function", "slice", "kinds"
INFINITE = {"inf": inf, "-inf": -inf}
UFUNCS = (
    *(
        "absolute",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
    ),
    *(
        "deg2rad",
        "degrees",
        "exp",
        "exp2",
        "expm1",
        "fabs",
        "floor",
        "log",
        "log10",
        "log1p",
        "log2",
        "negative",
    ),
    *("positive", "rad2deg", "radians", "reciprocal", "rint", "sign", "sin", "sinh", "sqrt", "square", "tan"),
    *("tanh", "trunc"),
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
    plain = isinstance(ends, list | tuple) and len(ends) == 3 and all(map(_is_end, ends))
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
        return {SLICE: [_simplify(end) for end in (value.start, value.stop, value.step)]}
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


def is_form(value: Mapping[str, Any]) -> bool:
    """Return whether a mapping stands for a function or for columns."""
    return FUNCTION in value or SLICE in value or KINDS in value


def draws_globally(value: Any) -> bool:
    """Return whether a value is a listed function that draws from numpy's global generator."""
    return callable(value) and any(
        value is _load()[f"sklearn.feature_selection:{name}"] for name in RANDOM_SCORES
    )


@cache
def _load() -> dict[str, Any]:
    found = {}
    for name in FUNCTIONS:
        module, _, attribute = name.partition(":")
        found[name] = getattr(import_module(module), attribute)
    return found


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


def _simplify(end: Any) -> Any:
    return int(end) if isinstance(end, Integral) and not isinstance(end, bool) else end


def _is_end(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
