"""Estimators as JSON: the class and the parameters that differ from its defaults, estimators inside included.

    {"class": "sklearn.linear_model:LogisticRegression", "params": {"max_iter": 1000}}

A study that holds this is compared, hashed and stored; the estimator is made from it where it is fitted.
"""

import inspect
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from math import isnan
from typing import Any

import numpy as np

from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.allowed import (
    LIBRARY,
    NO_STEP,
    check_class,
    check_estimator,
    is_listed,
    list_classes,
    list_namesakes,
)
from ckcv_ray.learners.sklearn.functions import describe_value, is_form, make_value
from ckcv_ray.learners.sklearn.libraries import (
    INSTALL,
    LIBRARIES,
    check_parameters,
    find_library,
    list_declared,
)
from ckcv_ray.validation import expect, quote

Spec = dict[str, Any]
CLASS_FORM = "module:Class, such as sklearn.ensemble:RandomForestClassifier"
_trusted: set[str] = {LIBRARY}


def add_scaling(last: Spec) -> Spec:
    """Return the form of an estimator of standardised columns."""
    steps = [["scale", {"class": "sklearn.preprocessing:StandardScaler"}], ["model", last]]
    return {"class": "sklearn.pipeline:Pipeline", "params": {"steps": steps}}


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
        InputError: it is not listed, or has a parameter or a value that is not; see ``allowed``.
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
    if isinstance(steps, list) and steps:
        last = f"{steps[-1][0]}__"
        every = {n.removeprefix(last): v for n, v in every.items() if n.startswith(last)} | every
        return list_declared(steps[-1][1]) | every
    return list_declared(estimator) | every


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
    defaults = {
        key: parameter.default
        for key, parameter in inspect.signature(kind.__init__).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
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
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        if (
            end < len(parts)
            and parts[end].startswith("_")
            and getattr(import_module(module), kind.__qualname__, None) is kind
        ):
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
    if not isinstance(value, type) and hasattr(
        value, "tolist"
    ):  # an array, or the names of a frame's columns
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
    if isinstance(value, Mapping) and not is_form(value):
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
