"""What a study may hold of scikit-learn: classes of estimators, and for each parameter which values.

A study may come from a stranger's folder, and some parameters are paths, caches, functions or text that is
evaluated. So a study holds estimators of listed classes with listed parameters; whatever is not in the table
``allowed.json`` is refused. ``jobs/estimators.py`` makes the table from every class of scikit-learn and what
it declares of its parameters. Nothing is imported here.

A parameter takes None, truth values, numbers, and lists of these; besides these the words that are listed
for it, and what the following entries stand for. A parameter without a list takes nothing: it keeps its
default.

    <estimator>     an estimator
    <steps>         a list of named estimators, as of a Pipeline or a ColumnTransformer
    <function>      a function, from a closed list (``functions``)
    <grid>          lists of values by parameter of the estimator inside, as of GridSearchCV
"""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.functions import FUNCTION, INFINITE, check_columns, check_function
from ckcv_ray.validation import quote

LIBRARY = "sklearn"
ESTIMATOR, STEPS, GRID, CALLABLE = "<estimator>", "<steps>", "<grid>", "<function>"
NO_STEP = ("drop", "passthrough")
MOST_DEPTH = 20
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
    if depth > MOST_DEPTH:
        raise InputError(f"{name} is nested too deeply: at most {MOST_DEPTH} estimators in each other")
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


def list_parts(paths: Iterator[str]) -> set[str]:
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
    if depth > MOST_DEPTH:
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
