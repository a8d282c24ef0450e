"""Any two options of a study go together on a table, or the refusal names both of them."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from conftest import limit_examples

from ckcv_ray import InputError, Study, Task
from ckcv_ray.core.quantities import list_quantities
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import SLOTS

Pair = tuple[str, Any]
BY_NIGHT = 1_000
X = np.random.default_rng(0).normal(size=(120, 3))
Y = np.arange(120) % 2
TABLES: dict[str, tuple[Task, dict[str, Any]]] = {
    "two classes": (Task.of(X, Y), {}),
    "three classes": (Task.of(X, np.arange(120) % 3), {}),
    "numbers": (Task.of(X, X[:, 0], numbers=True), {"learner": "ridge", "clip": 2.0}),
    "groups": (Task.of(X, Y, groups=np.arange(120) // 2), {}),
}
VALUES: dict[str, list[Any]] = {
    **{slot: [*parts] for slot, parts in SLOTS.items()},
    "learner": ["linear", "ridge", "tree", "linear,svm", "sklearn.dummy:DummyClassifier"],
    "criterion": ["balanced", "cost:0=1,1=2", "mean_error", "clipped"],
    "claim": ["refit", "vote", *(quantity.form() for quantity in list_quantities())],
    "require": ["sensitivity>=0.6", "ppv:0.2>=0.3"],
    "accept": ["error<=0.5", "auc>=0.5", "within:0.9<=3"],
    "answer": ["error<=0.2"],
    "subgroups": ["x0"],
    "positive": ["1"],
    "holdout_bound": ["stevens"],
    "holdout_share": [0.5],
    "report_k": ["3"],
    "effort": [100_000],
    "exhaustive": [True],
    "clip": [2.0],
    "C": ["1"],
    "class_weight": ["balanced"],
    "balance": ["equal"],
    "encode": ["onehot"],
    "scale": ["standard"],
    "param": ["max_iter=100"],
    "sample": [3],
    "delta": [0.1],
}


def explain_refusal(table: str, *given: Pair) -> str:
    task, usual = TABLES[table]
    try:
        Problem.of(Study.of(k=3, n_splits=4, **{**usual, **dict(given)}), task)
    except InputError as error:
        return str(error)
    return ""


def list_pairs(table: str) -> Iterator[tuple[Pair, Pair]]:
    """Yield what the table allows of each option by itself, two by two; by day every third pair."""
    every = [(option, value) for option, values in VALUES.items() for value in values]
    alone = {each: explain_refusal(table, each) for each in every}
    for (option, _), refusal in alone.items():
        assert not refusal or option in refusal or "learner" in refusal
    allowed = [each for each, refusal in alone.items() if not refusal]
    pairs = [(one, other) for one, other in combinations(allowed, 2) if one[0] != other[0]]
    assert len(pairs) > 100
    yield from pairs[:: 3 if limit_examples(BY_NIGHT) < BY_NIGHT else 1]


@pytest.mark.parametrize("table", TABLES)
def test_two_options_go_together_or_the_refusal_names_both(table: str) -> None:
    refused = 0
    for one, other in list_pairs(table):
        refusal = explain_refusal(table, one, other)
        refused += bool(refusal)
        for option, value in (one, other) if refusal else ():
            named = option in refusal or (option == "learner" and "Classifier" in refusal)
            assert named, f"{one} and {other} are refused without {option}={value}: {refusal}"
    assert refused
