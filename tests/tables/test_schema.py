"""Which columns give classes and which can be learned from; what is refused, in which words."""

from datetime import date, time
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from plain import awkward_X, digest_learned, plain_columns, refusal
from pyarrow import parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables import task as schema
from ckcv_ray.tables.columns import Schema, list_distinct
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Grouping, Roles, Task, number_classes

LABELS = {
    "text": ("no", "yes"),
    "digits as text": ("9", "10"),
    "int": (-7, 3),
    "large int": (2**62, 2**62 + 1),
    "float": (-0.25, 1e18),
    "bool": (False, True),
}


# Labels


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("larger_first", [False, True])
def test_labels_are_sorted_and_numbered_in_that_order(kind, larger_first):
    smaller, larger = LABELS[kind]
    values = [larger, smaller] * 4 if larger_first else [smaller, larger] * 4
    expected = [int(value == larger) for value in values]
    for task in (
        Task.from_table(plain_columns(y=values)),
        Task.of(np.eye(8), values),
        Task.of(np.eye(8), np.array(values)),
        Task.of(np.eye(8), np.array(values, dtype=object)),
        Task.from_table(plain_columns(y=pa.array(values).dictionary_encode())),
    ):
        assert task.classes == (smaller, larger)
        assert [type(label) for label in task.classes] == [type(smaller)] * 2
        assert task.y.tolist() == expected
        assert task.y.dtype == np.int32


@pytest.mark.parametrize("kind", LABELS)
def test_columns_written_to_parquet_and_read_again_have_the_same_digest(tmp_path, kind):
    y = np.array([0, 1, 1, 0, 1, 0, 0, 1], dtype=np.int32)
    names = ("a b", "ünï", "x,1")
    task = Task(awkward_X(), y, LABELS[kind], Schema.of_numbers(names), "the target", Grouping(len(y)))
    file = tmp_path / "data.parquet"
    parquet.write_table(task.columns(), file)
    again = Task.from_table(parquet.read_table(file), Roles("the target"))
    assert digest_learned(again) == task.digest
    assert again.classes == task.classes
    assert again.features == names
    assert again.X.tobytes() == task.X.tobytes()
    assert np.array_equal(again.y, y)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1] * 8, "'y' has 1 class (1): expected 2 to 1,000"),
        ([1, 2, 2, 2, 2, 2, 2, 2], "class 1 has 1 row: each needs at least 2 (score it by ckcv evaluate,"),
        (["b"] * 7 + ["a"], "class 'a' has 1 row"),
        ([0.5 * i for i in range(8)], "classes 0.0, 0.5, 1.0, ... (8 in all) have 1 row each: each needs"),
        ([0.5 * i for i in range(8)], "the target 'y' has 8 classes (0.0, 0.5, 1.0"),
        ([date(2020, 1, 1), date(2020, 1, 2)] * 4, "'y' has type date32[day]: labels are text or numbers"),
        ([b"a", b"b"] * 4, "'y' has type binary"),
        ([[1], [2]] * 4, "'y' has type list"),
        ([{"v": 1}, {"v": 2}] * 4, "'y' has type struct"),
        (pa.nulls(8), "'y' has empty cells"),
        ([1, 2, None, 1, 2, 1, 2, 1], "'y' has empty cells in 1 of 8 rows (12.5 %), the first in row 3"),
        (["a", "b", None, "a", "b", "a", "b", "a"], "'y' has empty cells"),
        ([1.0, 2.0, float("nan"), 1.0, 2.0, 1.0, 2.0, 1.0], "'y' has empty cells"),
        ([float("-inf"), float("inf")] * 4, "'y'"),
        ([1.0, float("inf")] * 4, "'y'"),
    ],
    ids=str,
)
def test_targets_that_are_no_classes(values, expected):
    messages = refusal(plain_columns(y=values))
    assert "target" in messages or "class" in messages
    assert expected in messages


@pytest.mark.parametrize(
    ("changed", "target", "expected"),
    [
        ({"label": [1, 2] * 4}, None, "columns y, label could all be the target"),
        ({"y": None}, None, "none of target, y, label, class is the target"),
        ({"y": None}, "b ", "there is no column 'b ' for the target: the columns are a, b"),
        ({"y": None}, "Y", "there is no column 'Y' for the target"),
    ],
)
def test_a_target_that_cannot_be_found(changed, target, expected):
    messages = refusal(plain_columns(**changed), target)
    assert expected in messages
    assert "the columns are a, b" in messages
    assert target is not None or "--target" in messages


@pytest.mark.parametrize("name", ["target", "y", "label", "class"])
def test_the_target_is_found_by_its_name(name):
    columns = plain_columns(y=None).append_column(name, pa.array([1, 2] * 4))
    task = Task.from_table(columns)
    assert task.target == name
    assert task.features == ("a", "b")
    assert task.digest == Task.from_table(columns, Roles(name)).digest


def test_class_numbers_are_by_the_labels_given_and_not_by_those_that_occur():
    assert number_classes(pa.chunked_array([["b", "b"], ["b"]]), ("a", "b"), "y").tolist() == [1, 1, 1]
    assert number_classes(pa.chunked_array([[1, 1]]), (1, 2), "y").tolist() == [0, 0]
    assert number_classes(pa.chunked_array([pa.array([], pa.int64())]), (1, 2), "y").tolist() == []


@pytest.mark.parametrize(
    ("classes", "said", "unknown"),
    [
        *product([(1, 2)], ["1 and 2"], [3, -1, 0, None]),
        *product([("no", "yes")], ["'no' and 'yes'"], ["maybe", "", None]),
        *product([("a", "b", "c")], ["'a', 'b', 'c'"], ["d", "", None]),
    ],
)
def test_a_label_that_is_none_of_them_is_named_even_if_it_is_nothing(classes, said, unknown):
    with pytest.raises(InputError, match=rf"column 'y' holds {unknown!r}: the labels are {said}"):
        number_classes(pa.chunked_array([pa.array([*classes, unknown])]), classes, "y")


def test_labels_that_unfold_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(schema, "MAX_TABLE_BYTES", 8 * 300)
    sound, long = (plain_columns(y=["no", "y" * letters] * 4) for letters in (300, 301))
    assert Task.from_table(sound).classes == ("no", "y" * 300)
    assert "the labels of 'y' take more than" in refusal(long)


# Features


@pytest.mark.parametrize("values", [[b"\x00\xff"] * 8, [b"a"] * 8, [date(2020, 1, 1)] * 8, [[1.0]] * 8])
def test_a_parquet_column_that_is_not_learned_from_may_hold_anything(tmp_path, values):
    file = tmp_path / "table.parquet"
    parquet.write_table(plain_columns(odd=values), file)
    expected = digest_learned(Task.from_table(plain_columns()))
    for roles in (Roles(drop=["odd"]), Roles(features=["a", "b"])):
        assert digest_learned(Task.from_table(read(str(file)).learn, roles)) == expected
    if pa.types.is_date(pa.array(values).type):  # a kind that can be learned from
        assert not Task.from_table(read(str(file)).learn).schema.plain
    else:
        assert "--drop odd" in refusal(read(str(file)).learn)


def test_features_and_drop_choose_columns():
    columns = plain_columns(c=list("abcdefgh"))
    assert Task.from_table(columns, Roles(drop=["c"])).features == ("a", "b")
    assert Task.from_table(columns, Roles(features=["b", "a"])).features == ("b", "a")
    assert Task.from_table(columns, Roles(features=["b", "c"], drop=["c"])).features == ("b",)
    assert Task.from_table(columns, Roles(features=["b", "y"])).features == ("b",)
    assert "column 'y' is the target" in refusal(columns, drop=["y"])
    assert Task.from_table(columns, Roles(features=["b"])).X[:, 0].tolist() == [2, 7, 1, 8, 2, 8, 1, 8]


@pytest.mark.parametrize("option", ["features", "drop"])
def test_a_column_that_is_not_there_is_named_with_those_that_are(option):
    messages = refusal(plain_columns(), **{option: ["a", "nowhere"]})
    assert "there is no column 'nowhere': the columns are a, b, y" in messages


@pytest.mark.parametrize(
    "options", [{"drop": ["a", "b"]}, {"features": ["a"], "drop": ["a"]}, {"features": ["y"]}]
)
def test_no_feature_left(options):
    messages = refusal(plain_columns(), **options)
    assert "no feature is left besides the target 'y'" in messages
    assert "--features" in messages
    assert "--drop" in messages


def test_a_feature_asked_for_twice_is_refused_or_comes_once():
    """A run folder could not hold it: its columns are known by their names."""
    try:
        task = Task.from_table(plain_columns(), Roles(features=["a", "a"]))
    except InputError as error:
        assert "'a'" in str(error)  # noqa: PT017
    else:
        assert digest_learned(Task.from_table(task.columns(), Roles("y"))) == digest_learned(task)


REFUSED = {
    "texts": (list("abcdefgh"), "has another text in each of its 8 rows, such as 'a' in row 1"),
    "one word": (["1", "2", "3", "4", "5", "6", "7", "eight"], "in 1 row something else, such as 'eight'"),
    "a day that was not": (["2020-01-01"] * 7 + ["2020-02-30"], "what is none, such as '2020-02-30'"),
    "days or months": (["01/02/2020", "03/04/2020"] * 4, "such as '01/02/2020', whose month may come first"),
    "points or thousands": (["1,250", "3,000"] * 4, "such as '1,250', whose comma may be that of"),
    "lists": ([[1]] * 8, "holds list"),
    "bytes": ([b"a"] * 8, "holds binary"),
    "times of day": ([time(10)] * 8, "holds time"),
    "nothing": (pa.nulls(8), "is empty"),
    "no number": (pa.nulls(8, pa.float64()), "is empty"),
    "no word": (["", "NA", None, "?"] * 2, "is empty"),
    "inf": ([1.0, 2, 3, 4, float("inf"), 6, float("nan"), 8], "has inf in row 5"),
    "-inf": ([1.0, 2, 3, 4, 5, float("-inf"), 7, 8], "has -inf in row 6"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_column_that_nothing_can_be_learned_from_is_named_with_the_way_out(kind):
    values, expected = REFUSED[kind]
    messages = refusal(plain_columns(odd=values))
    assert messages.startswith("column 'odd' ")
    assert expected in messages
    assert "--drop odd" in messages
    assert "--features" in messages
    dropped = Task.from_table(plain_columns(odd=values), Roles(drop=["odd"]))
    assert digest_learned(dropped) == digest_learned(Task.from_table(plain_columns()))


def test_all_columns_that_are_refused_are_named_at_once():
    messages = refusal(plain_columns(odd=list("abcdefgh"), none=pa.nulls(8), late=[1.0] * 7 + [float("inf")]))
    assert all(f"column {name!r}" in messages for name in ("odd", "none", "late"))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_too_few_rows(n):
    assert f"the table has {n} row{'s' * (n != 1)}: at least 6 are needed" in refusal(
        plain_columns().slice(0, n)
    )
    assert Task.from_table(plain_columns().slice(0, 6)).n == 6


def test_long_lists_of_columns_are_cut_short():
    wide = pa.table({f"c{i}": range(8) for i in range(100)})
    messages = refusal(wide)
    assert "c11, ... (100 in all)" in messages
    assert "c12" not in messages


def test_rows_are_taken_by_name_and_other_columns_ignored():
    columns = plain_columns(c=list("abcdefgh"))
    task = Task.from_table(plain_columns(), Roles(features=["b", "a"]))
    assert task.rows_from(columns)[:2].tolist() == [[2, 1], [7, 2]]
    assert task.rows_from(columns.slice(0, 0)).shape == (0, 2)
    with pytest.raises(InputError, match=r"there is no column 'b': the columns are a, y, c"):
        task.rows_from(columns.drop_columns(["b"]))


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        (
            [1.0] * 7 + [1.7976931348623157e308],
            "column 'a' has 1.7976931348623157e+308 in row 8: magnitudes are at most 1e+150",
        ),
        ([-1e200] + [1.0] * 7, "column 'a' has -1e+200 in row 1"),
        ([k * 1e-200 for k in range(8)], "column 'a' has no magnitude above 7e-200: at least 1e-150"),
    ],
)
def test_numbers_that_cannot_be_squared_are_refused(values, messages):
    """The spread of a column would be infinite, or zero, and its scaled values with it."""
    message = refusal(plain_columns(a=values))
    assert message.startswith(messages)
    assert "--drop a" in message


def test_a_table_in_which_nothing_varies_is_refused():
    messages = refusal(plain_columns(a=[1.0] * 8, b=[2] * 8))
    assert messages == "nothing varies from row to row in a, b: there is nothing to learn from"
    assert Task.from_table(plain_columns(a=[1.0] * 8)).features == ("a", "b")


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_an_empty_column_in_pieces_has_one_value(chunks: int) -> None:
    column = pa.chunked_array([pa.nulls(4)] * chunks, pa.null())
    values, codes = list_distinct(column)
    assert (values, codes.tolist()) == ([None], [0] * 4 * chunks)
