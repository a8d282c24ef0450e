"""Tasks: the digest that names one, the arrays it is made of, its classes and its parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import plain_task

from ckcv_ray.errors import InputError
from ckcv_ray.tables.task import Task
from ckcv_ray.tables.units import Roles


class Frame:
    """As much of a data frame as is asked for: columns, and a way to become an array."""

    def __init__(self, values, columns):
        self.values = values
        self.columns = columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


# The digest


@given(st.integers(0, 15), st.sampled_from([1e-12, -1.0, 1e300]))
def test_any_value_changes_the_digest(cell, by):
    X = np.arange(16.0).reshape(8, 2)
    X.flat[cell] += by
    assert plain_task(X=X).digest != plain_task().digest


def test_one_bit_changes_the_digest():
    X = np.ones((8, 2))
    other = X.copy()
    other[7, 1] = np.nextafter(1.0, 2.0)
    assert plain_task(X=X).digest != plain_task(X=other).digest


@pytest.mark.parametrize("row", range(8))
def test_any_label_changes_the_digest(row):
    y = plain_task().y.copy()
    y[row] = 1 - y[row]
    assert plain_task(y=y).digest != plain_task().digest


@pytest.mark.parametrize(
    "changed",
    [
        {"classes": ("no", "yes ")},
        {"features": ("b", "a")},
        {"features": ("a", "b2")},
        {"features": ("a,b", "")},
        {"target": "label"},
    ],
    ids=str,
)
def test_names_change_the_digest(changed):
    assert plain_task(**changed).digest != plain_task().digest


def test_labels_of_different_types_are_different_data():
    kinds = [("0", "1"), (0, 1), (False, True), (0.0, 1.0)]
    assert len({plain_task(classes=labels).digest for labels in kinds}) == len(kinds)


def test_the_order_of_rows_and_columns_changes_the_digest():
    task = plain_task()
    order = [1, 0, 2, 3, 4, 5, 6, 7]
    assert plain_task(X=task.X[order], y=task.y[order]).digest != task.digest
    assert plain_task(X=task.X[:, ::-1]).digest != task.digest


def test_what_does_not_change_the_digest():
    X = np.array([[0.0, 1.0], [2.0, 0.0]] * 4)
    task = plain_task(X=X)
    assert plain_task(X=X * np.where(X == 0, -1, 1)).digest == task.digest  # -0.0
    assert np.signbit(X * np.where(X == 0, -1, 1)).any()
    assert plain_task(X=X, source="elsewhere").digest == task.digest
    assert plain_task(X=np.asfortranarray(X)).digest == task.digest
    assert plain_task(X=np.repeat(X, 2, axis=0)[::2]).digest == task.digest
    assert len(task.digest) == 64


def test_the_digest_is_by_value_and_not_by_type():
    X, y = np.arange(16).reshape(8, 2), [0, 1] * 4
    digests = {Task.of(X.astype(kind), y).digest for kind in ("i1", "u2", "i8", "f2", "f4", "f8")}
    assert len(digests) == 1


# Arrays


def test_arrays_lists_objects_and_frames_are_one_task():
    X, y = np.arange(16.0).reshape(8, 2), ["no", "yes"] * 4
    tasks = [
        Task.of(X, y),
        Task.of(X.tolist(), tuple(y)),
        Task.of([tuple(row) for row in X.astype(int).tolist()], np.array(y)),
        Task.of(X.astype(object), np.array(y, dtype=object)),
        Task.of(np.asfortranarray(X), y),
        Task.of(Frame(X, ["x0", "x1"]), y),
    ]
    assert len({task.digest for task in tasks}) == 1
    assert tasks[0].features == ("x0", "x1")
    assert all(task.X.flags.c_contiguous for task in tasks)


def test_a_frame_brings_its_names():
    X, y = np.arange(16.0).reshape(8, 2), [0, 1] * 4
    task = Task.of(Frame(X, np.array(["age", "height"], dtype=object)), y)
    assert task.features == ("age", "height")
    assert Task.of(Frame(X, [0, 1]), y).features == ("0", "1")


@pytest.mark.parametrize("names", [["target", "a"], ["target", "y"]])
def test_a_frame_may_have_columns_named_like_targets(names):
    X = np.arange(16.0).reshape(8, 2)
    task = Task.of(Frame(X, names), [0, 1] * 4)
    assert task.features == tuple(names)
    assert task.target not in names
    assert np.array_equal(task.X, X)
    assert Task.from_table(task.columns(), Roles(task.target)).digest == task.digest


def test_names_of_a_frame_are_texts():
    with pytest.raises(InputError, match="two columns are named '1'"):
        Task.of(Frame(np.arange(16.0).reshape(8, 2), ["1", 1]), [0, 1] * 4)


def test_read_only_input_is_neither_changed_nor_kept():
    X, y = np.array([[-0.0, 1.0], [2.0, 3.0]] * 4), np.array([5, 7] * 4)
    before = X.tobytes(), y.tobytes()
    X.flags.writeable = y.flags.writeable = False
    task = Task.of(X, y)
    Task.from_table(task.columns(), Roles(task.target))
    assert (X.tobytes(), y.tobytes()) == before
    assert not np.shares_memory(task.X, X)
    assert not np.shares_memory(task.y, y)
