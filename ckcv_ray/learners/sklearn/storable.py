"""Whether the models of an estimator can be stored: tried before the fits, at each kind of setting."""

import json
import os
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.foreign import ask_child, contain
from ckcv_ray.learners.sklearn.allowed import is_listed, list_classes
from ckcv_ray.learners.sklearn.packing import unpack
from ckcv_ray.learners.sklearn.spec import Spec
from ckcv_ray.learners.sklearn.split import Estimators, fit_model
from ckcv_ray.tables.task import Task

FEW_ROWS = (12, 60)  # rows of each class: on few a fit may fail that succeeds on more
MOST_TRIED = 16  # settings
MOST_SECONDS = 10.0  # of one fit and store
NUMBER = "a number"
STORED, FAILED = "stored", "failed"
_tried: set[tuple[str, str, int]] = set()  # estimator, setting and rows that were tried in this process


def check_storable(estimators: Estimators, spec: Spec, settings: Iterable[Setting], task: Task) -> None:
    """Fit an estimator to a few rows of each class, at each kind of setting, and store the models in memory.

    Args:
        estimators, spec: the estimator, and its JSON form.
        settings: of the search space.
        task: gives the rows.

    Raises:
        InputError: a model cannot be stored.
    """
    text = json.dumps(spec)
    for setting in choose_settings(settings):
        for count in FEW_ROWS:
            few = _rows_of_each(task, count)
            key = text, json.dumps(dict(setting)), len(few)
            if key in _tried:
                break
            if _try_to_store(estimators, spec, task, few, setting):
                _tried.add(key)
                break
            if len(few) == task.n:
                break


def choose_settings(settings: Iterable[Setting], most: int = MOST_TRIED) -> list[Setting]:
    """Return at most ``most`` settings that differ in kind.

    Every word, list and truth value of a parameter is a kind of its own, and so are its least and its largest
    number; all other numbers are one. Settings with a kind that none before has come first, then those with
    another combination of kinds.
    """
    every = list(settings)
    extremes = {name: _extremes(setting[name] for setting in every) for name in every[0]}
    kinds: set[tuple[str, str]] = set()
    combinations: set[tuple[tuple[str, str], ...]] = set()
    first, later = list[Setting](), list[Setting]()
    for setting in every:
        combination = tuple((name, _kind(value, extremes[name])) for name, value in setting.items())
        if not kinds.issuperset(combination):
            first.append(setting)
        elif combination not in combinations:
            later.append(setting)
        kinds.update(combination)
        combinations.add(combination)
    return [*first, *later][:most]


def _extremes(values: Iterable[Any]) -> tuple[Any, ...]:
    numbers = [value for value in values if _is_number(value)]
    return (min(numbers), max(numbers)) if numbers else ()


def _kind(value: Any, extremes: tuple[Any, ...]) -> str:
    return NUMBER if _is_number(value) and value not in extremes else json.dumps(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rows_of_each(task: Task, count: int) -> Index:
    if task.has_numbers:
        return np.arange(min(count, task.n))
    return np.concatenate([np.flatnonzero(task.y == c)[:count] for c in range(task.n_classes)])


def _try_to_store(estimators: Estimators, spec: Spec, task: Task, few: Index, setting: Setting) -> bool:
    """Return whether there is nothing more to try: False if a fit to more rows may succeed.

    Foreign code is tried in a child, as it may crash or never end; evaluations will meet that again.

    Raises:
        InputError: the model cannot be stored.
    """
    tried = partial(_store, estimators, spec, task, few, setting)
    outside = not all(map(is_listed, list_classes(spec)))
    answer = ask_child(tried, MOST_SECONDS) if outside and hasattr(os, "fork") else tried()
    if answer not in (STORED, FAILED, None):
        at = ", ".join(f"{name} = {value}" for name, value in setting.items())
        raise InputError(
            f"models of estimator {spec['class']} cannot be stored{at and f' at {at}'}: {answer}"
        )
    return answer != FAILED


def _store(estimators: Estimators, spec: Spec, task: Task, few: Index, setting: Setting) -> str:
    """Return STORED, FAILED if the fit fails, or why the model cannot be stored."""
    try:
        with contain():
            model, _ = fit_model(estimators, task, few, setting)
    except Exception:  # any error of the estimator: evaluations will meet it again, and record it
        return FAILED
    try:
        with contain():
            unpack(model.content, task.X.shape[1], list_classes(spec))
    except Exception as error:  # skops raises errors of all kinds
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return STORED
