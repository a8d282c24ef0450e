"""Tasks: the digest that names one, the arrays it is made of, its classes and its parts."""

import numpy as np
import pyarrow as pa
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import plain_columns, plain_task, refusal

from ckcv_ray.core.measures import Kind
from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import MAX_CLASSES
from ckcv_ray.tables.questions import count_known, find_repeats
from ckcv_ray.tables.task import Roles, Task, TestRows, check_test_rows, encode_classes, make_test_rows


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


# Two and more classes: numbers and labels, parts of the rows, and rows to test on


repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(60))
LABELS = {"text": ("b", "a", "c"), "int": (10, -7, 9), "float": (0.5, -0.25, 1e18)}


def three(n=12, kind="text", seed=0):
    """Rows of three classes in turn."""
    labels = LABELS[kind]
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return Task.of(X, [labels[i % 3] for i in range(n)])


# Classes


@pytest.mark.parametrize("kind", LABELS)
def test_three_classes_are_sorted_and_numbered_in_that_order(kind):
    task, labels = three(kind=kind), LABELS[kind]
    assert task.classes == tuple(sorted(labels))
    assert task.y.tolist() == [sorted(labels).index(labels[i % 3]) for i in range(12)]
    assert task.y.dtype == np.int32
    assert (task.n, task.n_classes, task.kind) == (12, 3, Kind.MULTICLASS)
    assert task.labelled(task.y).tolist() == [labels[i % 3] for i in range(12)]


def test_two_classes_are_binary():
    assert (plain_task().kind, plain_task().n_classes) == (Kind.BINARY, 2)
    assert plain_task().labelled(np.array([1, 0, 1])).tolist() == ["yes", "no", "yes"]


@given(st.lists(st.integers(0, 20), min_size=6, max_size=60))
@repeatable
def test_any_number_of_classes(drawn):
    values = drawn + drawn  # each at least twice
    if len(set(values)) < 2:
        return
    task = Task.of(np.arange(len(values))[:, None], values)
    assert task.classes == tuple(sorted(set(values)))
    assert [task.classes[number] for number in task.y] == values


def test_there_are_at_most_so_many_classes():
    def columns(n):
        return pa.table({"a": range(0, 4 * n, 2), "y": list(range(n)) * 2})

    assert Task.from_table(columns(MAX_CLASSES)).n_classes == MAX_CLASSES
    messages = refusal(columns(MAX_CLASSES + 1))
    assert f"has {MAX_CLASSES + 1:,} classes (0, 1, 2" in messages
    assert f"expected 2 to {MAX_CLASSES:,}" in messages


def test_classes_of_a_single_row_are_named_with_what_works():
    score, least = "by ckcv evaluate, which proves nothing", "each needs at least 2"
    one = refusal(plain_columns(y=list("aacccbaa")))
    assert f"class 'b' has 1 row: {least} (leave it out, or score it {score}); the" in one
    two = refusal(plain_columns(y=list("aaccabda")))
    assert f"classes 'b', 'd' have 1 row each: {least} (leave them out, or score them {score})" in two
    with pytest.raises(InputError, match=r"'b', 'c', 'd' have 1 row each: most classes need at least 2; the"):
        Task.from_table(plain_columns(y=list("aaaaabcd")), allow_singletons=True)


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (pa.array([0.0, -0.0, 1.0, 0.0, 1.0, 0.0]), (0.0, 1.0)),
        (pa.array([-0.0, 0.0, 1.0, 0.0, 1.0, 0.0]), (0.0, 1.0)),
        (pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 0, 1, 2]), pa.array(["a", "b", "a"])), ("a", "b")),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0, 0, 2]), pa.array(["a", "b", "a"])), ("a", "b")),
        (pa.DictionaryArray.from_arrays(pa.array([0, 2, 2, 0]), pa.array(["a", "none", "c"])), ("a", "c")),
    ],
)
def test_a_label_that_is_held_twice_is_one_class(column, classes):
    found, y = encode_classes(pa.chunked_array([column]), "y")
    assert found == classes
    assert not any(np.signbit(label) for label in found if isinstance(label, float))
    assert [classes[number] for number in y] == column.to_pylist()


# Parts of the rows


def test_without_leaves_the_other_rows_in_their_order():
    task = three(15)
    left = task.without(np.array([0, 4, 8]))
    kept = [i for i in range(15) if i not in (0, 4, 8)]
    assert np.array_equal(left.X, task.X[kept])
    assert left.X.flags.c_contiguous
    assert np.array_equal(left.y, task.y[kept])
    assert (left.classes, left.features, left.target) == (task.classes, task.features, task.target)
    assert left.digest != task.digest


def test_what_is_held_out_leaves_enough_rows_and_may_leave_none_of_a_class():
    with pytest.raises(InputError, match="7 of 12 rows held out leave 5: leave at least 6 to learn from"):
        three().without(np.arange(7))
    task = three()
    left = task.without(np.flatnonzero(task.y == 0))
    assert (set(left.y.tolist()), left.classes) == ({1, 2}, task.classes)


def test_some_rows_keep_every_class():
    task = three(15)
    chosen = np.array([0, 1, 2, 6, 7, 8])
    part = task.take_part(chosen)
    assert np.array_equal(part.X, task.X[chosen])
    assert part.y.tolist() == task.y[chosen].tolist()
    assert part.classes == task.classes


# Rows to test on


def test_rows_to_test_on_are_matched_by_name_and_may_lack_a_class():
    task = Task.from_table(plain_columns(y=list("aabbccab")))
    rows = make_test_rows(pa.table({"y": ["c", "a"], "b": [1, 2], "other": ["u", "v"], "a": [3, 4]}), task)
    assert rows.X.tolist() == [[3, 1], [4, 2]]
    assert rows.y.tolist() == [2, 0]
    assert make_test_rows(None, task) is None
    assert check_test_rows(rows, task).y.tolist() == [2, 0]
    assert check_test_rows(None, task) is None


def test_the_digest_of_rows_to_test_on_tells_classes_apart():
    X = np.zeros((2, 2))
    digests = {TestRows(X, np.array(y, dtype=np.int32)).digest for y in ([0, 1], [1, 0], [0, 2])}
    assert len(digests) == 3
    assert TestRows(-X, np.array([0, 1], dtype=np.int32)).digest in digests


def test_known_and_repeated_rows_are_counted():
    X = np.array([[0.0, 1], [0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [6, 7]])
    task = Task.of(X, ["a", "a", "b", "b", "c", "c", "a"])
    assert find_repeats(task).rows == 2  # two rows are alike in every column and the label
    assert count_known(np.array([[-0.0, 1], [1, 0], [6, 7]]), task) == 2
