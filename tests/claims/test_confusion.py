"""The confusion matrix: counted as it is defined, checked when it is read, and shown to people."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from claimed import read_again, run

from ckcv_ray import Result, Study, Task
from ckcv_ray.claims.certify import count_confusion
from ckcv_ray.errors import RunError
from ckcv_ray.learners.base import Predicted
from ckcv_ray.learners.ensemble import Ensemble

STUDY = Study.paper(C=(1.0,), gamma=(0.3,), k=(3,), n_splits=4)


def clouds(n_classes: int) -> Task:
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(n_classes,)))
    y = np.arange(12 * n_classes) % n_classes
    centres = 2.5 * rng.normal(size=(n_classes, 2))
    return Task.of(rng.normal(size=(len(y), 2)) + centres[y], [f"kind {i:02d}" for i in y])


@pytest.fixture(scope="module")
def three() -> Result:
    return run(STUDY, clouds(3))


def test_it_counts_the_rows_of_all_estimate_sets(three: Result) -> None:
    problem, expected = three.problem, np.zeros((3, 3), int)
    for member in three.ensemble.members:
        _, estimate = problem.split(0, member.split).merge_select()
        predicted = member.model.predict(problem.task.X[estimate]).label
        for actual, label in zip(problem.task.y[estimate], predicted, strict=True):
            expected[actual, label] += 1
    assert np.array_equal(three.certificate.confusion, expected)
    assert three.to_json()["confusion"] == expected.tolist()
    for number, side in enumerate(three.certificate.by_class):
        assert side["rows"] - side["errors"] == expected[number, number]
        assert side["rows"] == expected[number].sum()
    assert not three.certificate.tabulate()[:, -1].any()


def with_model(result: Result, label: int) -> Ensemble:
    """F* whose first model gives every row the same label."""
    first, *others = result.ensemble.members
    same = SimpleNamespace(
        predict=lambda X: Predicted(np.full(len(X), label, np.int32), np.full(len(X), np.nan))
    )
    return Ensemble((replace(first, model=same), *others))


def test_undecided_rows_are_in_no_column_and_are_mistakes(three: Result) -> None:
    matrix = count_confusion(three.problem, with_model(three, -1), 3)
    rows = [side["rows"] for side in three.certificate.by_class]
    size = three.problem.sizes[0].n_select
    assert sum(rows) - sum(map(sum, matrix)) == size
    counts = replace(three.certificate, confusion=matrix).tabulate()
    assert counts[:, -1].sum() == size
    assert counts.sum(axis=1).tolist() == rows


def test_a_class_that_does_not_exist_is_an_error_that_names_the_split(three: Result) -> None:
    with pytest.raises(RunError, match="model of split 0 predicts class number 3, but there are 3 classes"):
        count_confusion(three.problem, with_model(three, 3), 3)


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (lambda m: m[:2], "expected a row and a column for each of 3 classes"),
        (lambda m: [[m[0][0], m[0][1] + 1, m[0][2]], *m[1:]], "more rows than there are"),
        (lambda m: None, "expected a row and a column"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(three: Result, change, messages: str) -> None:  # type: ignore[no-untyped-def]
    values = json.loads(json.dumps(three.certificate.to_json()))
    assert read_again(values, three) == three.certificate
    with pytest.raises(ValueError, match=messages):
        read_again(values | {"confusion": change(values["confusion"])}, three)
