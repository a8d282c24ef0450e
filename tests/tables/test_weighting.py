"""Weights of rows: read like other columns, part of the data, no feature; refused unless positive."""

import numpy as np
import pyarrow as pa
import pytest

from ckcv_ray import InputError, Task
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.task import UNWEIGHTED, Roles

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = np.arange(24) % 2
WEIGHTS = RNG.uniform(0.5, 3.0, 24)
TASK = Task.of(X, Y, sample_weight=WEIGHTS)


def make_task(values: object, weight: str = "w", **roles: object) -> Task:
    columns = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": values})
    return Task.from_table(columns, Roles(weight=weight, **roles))


def test_a_column_of_weights_is_read_in_any_form_and_is_no_feature() -> None:
    whole = np.arange(1, 25)
    for values in (whole, whole.astype(float), [f"{w}.0" for w in whole], [f"{w},00" for w in whole]):
        task = make_task(values)
        assert task.weighting.named.tolist() == whole.tolist()
        assert (task.weight, task.features, task.question) == ("w", ("a", "b"), "")


def test_the_mark_between_thousands_holds_for_weights_and_for_a_target_of_numbers() -> None:
    amounts = pa.array([f"$1,{i:03d}" for i in range(24)])
    table = pa.table({"a": X[:, 0], "y": Y, "w": amounts})
    for roles in (Roles("y", weight="w"), Roles("w", numbers=True)):
        with pytest.raises(InputError, match="say --thousands ,"):
            Task.from_table(table, roles)
        task = Task.from_table(table, roles, DeclaredTypes(thousands=","))
        values = task.y if roles.numbers else task.weighting.named
        assert values.tolist() == [1000.0 + i for i in range(24)]


def test_weights_are_part_of_the_data_where_there_are_any() -> None:
    plain = Task.of(X, Y)
    digests = {plain.digest, TASK.digest, Task.of(X, Y, sample_weight=2 * WEIGHTS).digest}
    assert len(digests) == 3
    assert plain.weighting == UNWEIGHTED
    assert (plain.weight, plain.weighting.describe()) == (None, "")
    assert "'weight'" in TASK.weighting.describe()


def test_parts_and_stored_columns_keep_the_weights() -> None:
    rows = np.array([3, 3, 7, *range(10, 20)])
    part = TASK.take_part(rows)
    assert np.array_equal(part.weighting.named, WEIGHTS[rows])
    for task in (TASK, part, TASK.without(np.arange(6))):
        again = Task.restore(task.columns(), Roles(task.target, weight=task.weight), None, salt=task.salt)
        assert again.digest == task.digest


def test_columns_of_arrays_do_not_clash_with_the_weights() -> None:
    frame = pa.table({"weight": X[:, 0], "sample_weight": X[:, 1]})
    task = Task.of(frame, Y, sample_weight=WEIGHTS)
    assert (task.features, task.weight) == (("weight", "sample_weight"), "weight_of_row")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([0.0, *WEIGHTS[1:]], "has 0 in row 1: weights are positive"),
        ([*WEIGHTS[1:], -2.0], "has -2 in row 24: weights are positive"),
        ([*WEIGHTS[1:], np.inf], "has inf in row 24"),
        ([1e-200, *WEIGHTS[1:]], "from 1e-150 to 1e"),
        ([None, None, *WEIGHTS[2:]], "has 2 empty cells, the first in row 1"),
        (["", *map(str, WEIGHTS[1:])], "has 1 empty cells, the first in row 1"),
        ([*map(str, WEIGHTS[1:]), "much"], "has 'much' in row 24, which is no number"),
        (["much"] * 24, "has type string: name a column of numbers with --weight"),
        ([True] * 24, "has type bool"),
    ],
)
def test_other_weights_are_refused(values: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_task(values)


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ({"weight": "v"}, "no column 'v' for the weights"),
        ({"weight": "y"}, "'y' is the target, and cannot say what rows weigh"),
        ({"features": ["a", "w"]}, "'w' says what rows weigh, and is no feature"),
        ({"group": "w"}, "'w' says which rows belong together, and cannot say what rows weigh"),
        ({"weight": 3}, "weight"),
    ],
)
def test_a_column_has_one_role(roles: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_task(WEIGHTS, **roles)


def test_arrays_of_another_shape_or_kind_are_refused() -> None:
    for weights, says in (
        (WEIGHTS[:3], "shape"),
        (["a"] * 24, "expected numbers"),
        (WEIGHTS[:, None], "shape"),
    ):
        with pytest.raises(InputError, match=says):
            Task.of(X, Y, sample_weight=weights)
