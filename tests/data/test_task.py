"""Tables: four file formats, one Table; the digest that names it; and what is refused, in which words."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from ckcv_ray.data import files as readers
from ckcv_ray.data import task as data
from ckcv_ray.data.task import Table, fit_scaling, learning_table, matrix, read, signs, table_from_arrays
from ckcv_ray.errors import InputError

# Numbers that a careless reader changes: subnormal, huge, 17 digits, both zeros.
AWKWARD = [0.0, -0.0, 0.1, 1 / 3, -2 / 3, 5e-324, 1e-300, 1.7976931348623157e149, 9007199254740993.0, -1.5]
LABELS = {
    "text": ("no", "yes"),
    "digits as text": ("10", "9"),
    "int": (-7, 3),
    "large int": (2**62, 2**62 + 1),
    "float": (-0.25, 1e18),
    "bool": (False, True),
}


def awkward_X(n=8, d=3):
    return np.random.default_rng(1).choice(AWKWARD, size=(n, d))


def plain_columns(**changed):
    """Columns a, b and y of 8 good rows, some of them replaced; None leaves a column out."""
    columns = {"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [2, 7, 1, 8, 2, 8, 1, 8], "y": [1, 2] * 4, **changed}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def plain_table(**changed):
    fields = {"X": np.arange(16.0).reshape(8, 2), "y": np.array([-1, 1] * 4, dtype=np.int8)}
    return Table(**{**fields, "labels": ("no", "yes"), "features": ("a", "b"), "target": "y", **changed})


def refusal(columns, *args, **options):
    with pytest.raises(InputError) as refused:
        learning_table(columns, *args, **options)
    return str(refused.value)


class Frame:
    """As much of a data frame as is asked for: columns, and a way to become an array."""

    def __init__(self, values, columns):
        self.values = values
        self.columns = columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


# Formats


def write_csv(path, X, y):
    header = [*(f"x{i}" for i in range(X.shape[1])), "y"]
    lines = [[repr(float(value)) for value in row] + [str(sign)] for row, sign in zip(X, y, strict=True)]
    path.write_text("\n".join(",".join(line) for line in [header, *lines]) + "\n")


def write_parquet(path, X, y):
    parquet.write_table(readers.from_matrix(X, y), path)


def write_npz(path, X, y):
    np.savez(path, X=X, y=y)


def write_svmlight(path, X, y):
    """Zeros left out, as svmlight files do; the last feature always stands in the first row."""
    lines = []
    for i, (row, sign) in enumerate(zip(X, y, strict=True)):
        kept = [(j, v) for j, v in enumerate(row, start=1) if v != 0 or (i == 0 and j == len(row))]
        lines.append(" ".join([f"{sign:+d}", *(f"{j}:{float(v)!r}" for j, v in kept)]))
    path.write_text("\n".join(lines) + "\n")


WRITERS = {
    "csv": write_csv,
    "parquet": write_parquet,
    "npz": write_npz,
    "svmlight": write_svmlight,
    "libsvm": write_svmlight,
    "svm": write_svmlight,
    "CSV": write_csv,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same_numbers(tmp_path, suffix):
    X, y = awkward_X(), np.array([-1, 1, 1, -1, 1, -1, -1, 1])
    file = tmp_path / f"table.{suffix}"
    WRITERS[suffix](file, X, y)
    columns = read(str(file))
    table = learning_table(columns.learn)
    assert columns.test is None
    assert np.array_equal(table.X, X)  # -0.0 equals 0.0, as the digest has it
    assert np.array_equal(table.y, y)
    assert table.labels == (-1, 1)
    first = (
        0 if suffix.lower() in ("csv", "parquet", "npz") else 1
    )  # svmlight names its columns by number, from 1
    assert table.features == tuple(f"x{first + i}" for i in range(3))


def test_the_digest_does_not_tell_csv_parquet_npz_and_arrays_apart(tmp_path):
    X, y = awkward_X(), np.array([3, 5] * 4)
    digests = set()
    for suffix in ("csv", "parquet", "npz"):
        file = tmp_path / f"table.{suffix}"
        WRITERS[suffix](file, X, y)
        digests.add(learning_table(read(str(file)).learn, source=str(file)).digest)
    digests.add(replace(table_from_arrays(X, y), target="y").digest)
    assert len(digests) == 1


def test_a_csv_may_begin_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("\ufeffa,y\n" + "1,2\n2,3\n" * 3, encoding="utf-8")
    assert learning_table(read(str(file)).learn).features == ("a",)


def test_an_npz_may_hold_other_arrays_and_text_labels(tmp_path):
    file = tmp_path / "table.npz"
    np.savez(file, X=np.arange(8)[:, None], y=np.array(["b", "a"] * 4), more=np.eye(3))
    table = learning_table(read(str(file)).learn)
    assert table.labels == ("a", "b")
    assert table.X.dtype == np.float64


BROKEN = {
    "missing.csv": (None, "there is no file"),
    "table.txt": (b"a,y\n", "is neither a file ending in .csv, .parquet, .npz"),
    "table": (b"a,y\n", "nor a named set (sklearn:NAME"),
    "empty.csv": (b"", "Empty CSV file"),
    "ragged.csv": (b"a,y\n1,2\n1\n", "Expected 2 columns, got 1"),
    "text.parquet": (b"a,y\n1,2\n", "cannot read"),
    "text.npz": (b"a,y\n1,2\n", "cannot read"),
    "empty.npz": (b"", "cannot read"),
    "words.svmlight": (b"not a number\n", "cannot read"),
    "order.svmlight": (b"1 2:1 1:1\n", "cannot read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    content, expected = BROKEN[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        read(str(tmp_path / name))
    assert str(tmp_path / name) in str(refused.value)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["caf\xe9,y\n1,0\n", "a,y\n1,caf\xe9\n", "caf\xe9,y\n\xe9,0\n"])
def test_a_csv_in_another_encoding_is_refused_with_the_word_utf_8(tmp_path, text):
    file = tmp_path / "latin.csv"
    file.write_bytes((text + text.splitlines()[1] + "\n").encode("latin-1") * 6)
    with pytest.raises(InputError, match=r"(?i)utf-?8"):
        learning_table(read(str(file)).learn, "y")


def test_half_an_npz_is_bad_input(tmp_path):
    file = tmp_path / "half.npz"
    np.savez(file, X=np.eye(8), y=np.arange(8) % 2)
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(InputError, match=r"cannot read .*half\.npz"):
        read(str(file))


def test_an_npy_named_npz_is_bad_input(tmp_path):
    file = tmp_path / "array.npz"
    with file.open("wb") as stream:
        np.save(stream, np.eye(3))
    with pytest.raises(InputError, match=r"array\.npz"):
        read(str(file))


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"y": np.eye(8), "data": np.eye(8)}, "has no array 'X': it holds y, data"),
        ({"X": np.ones(8), "y": np.ones(8)}, "X has shape (8,) and y (8,): expected (n, d) and (n,)"),
        ({"X": np.eye(8), "y": np.ones(7)}, "X has shape (8, 8) and y (7,)"),
        ({"X": np.eye(8), "y": np.ones((8, 1))}, "y (8, 1)"),
        ({"X": np.eye(8, dtype=complex), "y": np.ones(8)}, "cannot read"),
        ({"X": np.array([[None]]), "y": np.ones(1)}, "cannot read"),
    ],
)
def test_an_npz_without_fitting_X_and_y_is_refused(tmp_path, arrays, expected):
    file = tmp_path / "odd.npz"
    np.savez(file, **arrays)
    with pytest.raises(InputError) as refused:
        read(str(file))
    assert "odd.npz" in str(refused.value)
    assert expected in str(refused.value)


# Labels


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("larger_first", [False, True])
def test_labels_are_sorted_and_the_larger_is_plus_1(kind, larger_first):
    smaller, larger = LABELS[kind]
    values = [larger, smaller] * 4 if larger_first else [smaller, larger] * 4
    expected = [1 if value == larger else -1 for value in values]
    for table in (
        learning_table(plain_columns(y=values)),
        table_from_arrays(np.eye(8), values),
        table_from_arrays(np.eye(8), np.array(values)),
        table_from_arrays(np.eye(8), np.array(values, dtype=object)),
        learning_table(plain_columns(y=pa.array(values).dictionary_encode())),
    ):
        assert table.labels == (smaller, larger)
        assert [type(label) for label in table.labels] == [type(smaller)] * 2
        assert table.y.tolist() == expected
        assert table.y.dtype == np.int8


@pytest.mark.parametrize("kind", LABELS)
def test_columns_written_to_parquet_and_read_again_have_the_same_digest(tmp_path, kind):
    y = np.array([-1, 1, 1, -1, 1, -1, -1, 1], dtype=np.int8)
    names = ("a b", "ünï", "x,1")
    table = Table(awkward_X(), y, LABELS[kind], names, "the target")
    file = tmp_path / "data.parquet"
    parquet.write_table(table.columns(), file)
    again = learning_table(parquet.read_table(file), "the target")
    assert again.digest == table.digest
    assert again.labels == table.labels
    assert again.features == names
    assert again.X.tobytes() == table.X.tobytes()
    assert np.array_equal(again.y, y)


def test_unsigned_labels_beyond_int64_are_kept_or_refused(tmp_path):
    """Whatever is accepted has to survive the run folder."""
    try:
        table = table_from_arrays(np.eye(8), np.array([2**63, 2**63 + 2048] * 4, dtype=np.uint64))
    except InputError:
        return
    assert learning_table(table.columns(), table.target).digest == table.digest


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1] * 8, "'y' has 1 class (1): expected 2"),
        (["a", "b", "c", "a"] * 2, "'y' has 3 classes (a, b, c): expected 2"),
        ([1, 2, 2, 2, 2, 2, 2, 2], "class 1 has 1 row: each needs at least 2"),
        (["b"] * 7 + ["a"], "class 'a' has 1 row"),
        ([0.5 * i for i in range(8)], "'y' has 8 classes (0.0, 0.5, 1.0"),
        (
            [date(2020, 1, i % 2 + 1) for i in range(8)],
            "'y' has type date32[day]: labels are text or numbers",
        ),
        ([Decimal(i % 2) for i in range(8)], "'y' has type decimal128"),
        ([b"a", b"b"] * 4, "'y' has type binary"),
        ([[1], [2]] * 4, "'y' has type list"),
        ([{"v": 1}, {"v": 2}] * 4, "'y' has type struct"),
        (pa.nulls(8), "'y' has empty cells"),
        ([1, 2, None, 1, 2, 1, 2, 1], "'y' has empty cells"),
        (["a", "b", None, "a", "b", "a", "b", "a"], "'y' has empty cells"),
        ([1.0, 2.0, float("nan"), 1.0, 2.0, 1.0, 2.0, 1.0], "'y' has empty cells"),
        ([float("-inf"), float("inf")] * 4, "'y'"),
        ([1.0, float("inf")] * 4, "'y'"),
    ],
    ids=str,
)
def test_targets_that_are_no_two_classes(values, expected):
    told = refusal(plain_columns(y=values))
    assert "target" in told or "class" in told
    assert expected in told


def test_an_empty_cell_of_the_target_is_named_by_row():
    assert "row 3" in refusal(plain_columns(y=[1, 2, None, 1, 2, 1, 2, 1]))


@pytest.mark.parametrize("others", [["yes"], ["no", "yes"]])
def test_a_blank_text_label_in_a_csv_is_an_empty_cell_and_no_class(tmp_path, others):
    labels = [*([others[0], others[-1]] * 4), "", ""]
    file = tmp_path / "table.csv"
    file.write_text("a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    assert "empty cells" in refusal(read(str(file)).learn)


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
    told = refusal(plain_columns(**changed), target)
    assert expected in told
    assert "the columns are a, b" in told
    assert target is not None or "--target" in told


@pytest.mark.parametrize("name", ["target", "y", "label", "class"])
def test_the_target_is_found_by_its_name(name):
    columns = plain_columns(y=None).append_column(name, pa.array([1, 2] * 4))
    table = learning_table(columns)
    assert table.target == name
    assert table.features == ("a", "b")
    assert table.digest == learning_table(columns, name).digest


def test_signs_are_by_the_labels_given_and_not_by_those_that_occur():
    assert signs(pa.chunked_array([["b", "b"], ["b"]]), ("a", "b"), "y").tolist() == [1, 1, 1]
    assert signs(pa.chunked_array([[1, 1]]), (1, 2), "y").tolist() == [-1, -1]
    assert signs(pa.chunked_array([pa.array([], pa.int64())]), (1, 2), "y").tolist() == []


@pytest.mark.parametrize("unknown", [3, -1, 0, None])
def test_a_label_that_is_neither_is_named_even_if_it_is_nothing(unknown):
    with pytest.raises(InputError, match=rf"column 'y' holds {unknown!r}: the labels are 1 and 2"):
        signs(pa.chunked_array([pa.array([1, 2, unknown])]), (1, 2), "y")


@pytest.mark.parametrize("unknown", ["maybe", "", None])
def test_a_text_label_that_is_neither_is_named(unknown):
    with pytest.raises(InputError, match=rf"column 'y' holds {unknown!r}: the labels are 'no' and 'yes'"):
        signs(pa.chunked_array([pa.array(["no", unknown, "yes"])]), ("no", "yes"), "y")


# The digest


@given(st.integers(0, 15), st.sampled_from([1e-12, -1.0, 1e300]))
def test_any_value_changes_the_digest(cell, by):
    X = np.arange(16.0).reshape(8, 2)
    X.flat[cell] += by
    assert plain_table(X=X).digest != plain_table().digest


def test_one_bit_changes_the_digest():
    X = np.ones((8, 2))
    other = X.copy()
    other[7, 1] = np.nextafter(1.0, 2.0)
    assert plain_table(X=X).digest != plain_table(X=other).digest


@pytest.mark.parametrize("row", range(8))
def test_any_label_changes_the_digest(row):
    y = plain_table().y.copy()
    y[row] *= -1
    assert plain_table(y=y).digest != plain_table().digest


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": ("no", "yes ")},
        {"labels": (0, 1)},
        {"labels": ("0", "1")},
        {"labels": (False, True)},
        {"features": ("b", "a")},
        {"features": ("a", "b2")},
        {"features": ("a,b", "")},
        {"target": "label"},
    ],
    ids=str,
)
def test_names_change_the_digest(changed):
    assert plain_table(**changed).digest != plain_table().digest


def test_labels_of_different_types_are_different_data():
    kinds = [("0", "1"), (0, 1), (False, True), (0.0, 1.0)]
    assert len({plain_table(labels=labels).digest for labels in kinds}) == len(kinds)


def test_the_order_of_rows_and_columns_changes_the_digest():
    table = plain_table()
    order = [1, 0, 2, 3, 4, 5, 6, 7]
    assert plain_table(X=table.X[order], y=table.y[order]).digest != table.digest
    assert plain_table(X=table.X[:, ::-1]).digest != table.digest


def test_what_does_not_change_the_digest():
    X = np.array([[0.0, 1.0], [2.0, 0.0]] * 4)
    table = plain_table(X=X)
    assert plain_table(X=X * np.where(X == 0, -1, 1)).digest == table.digest  # -0.0
    assert np.signbit(X * np.where(X == 0, -1, 1)).any()
    assert plain_table(X=X, source="elsewhere").digest == table.digest
    assert plain_table(X=np.asfortranarray(X)).digest == table.digest
    assert plain_table(X=np.repeat(X, 2, axis=0)[::2]).digest == table.digest
    assert len(table.digest) == 64


def test_the_digest_is_by_value_and_not_by_type():
    X, y = np.arange(16).reshape(8, 2), [0, 1] * 4
    digests = {table_from_arrays(X.astype(kind), y).digest for kind in ("i1", "u2", "i8", "f2", "f4", "f8")}
    assert len(digests) == 1


# Features


@pytest.mark.parametrize("values", [[b"\x00\xff"] * 8, [b"a"] * 8, [date(2020, 1, 1)] * 8, [[1.0]] * 8])
def test_a_parquet_column_that_is_not_learned_from_may_hold_anything(tmp_path, values):
    file = tmp_path / "table.parquet"
    parquet.write_table(plain_columns(odd=values), file)
    expected = learning_table(plain_columns()).digest
    assert learning_table(read(str(file)).learn, drop=["odd"]).digest == expected
    assert learning_table(read(str(file)).learn, features=["a", "b"]).digest == expected
    assert "--drop odd" in refusal(read(str(file)).learn)


def test_features_and_drop_choose_columns():
    columns = plain_columns(c=list("abcdefgh"))
    assert learning_table(columns, drop=["c"]).features == ("a", "b")
    assert learning_table(columns, features=["b", "a"]).features == ("b", "a")
    assert learning_table(columns, features=["b", "c"], drop=["c"]).features == ("b",)
    assert learning_table(columns, features=["b", "y"]).features == ("b",)
    assert learning_table(columns, features=["b"]).X[:, 0].tolist() == [2, 7, 1, 8, 2, 8, 1, 8]


@pytest.mark.parametrize("option", ["features", "drop"])
def test_a_column_that_is_not_there_is_named_with_those_that_are(option):
    told = refusal(plain_columns(), **{option: ["a", "nowhere"]})
    assert "there is no column 'nowhere': the columns are a, b, y" in told


@pytest.mark.parametrize(
    "options", [{"drop": ["a", "b"]}, {"features": ["a"], "drop": ["a"]}, {"features": ["y"]}]
)
def test_no_feature_left(options):
    told = refusal(plain_columns(), **options)
    assert "no feature is left beside the target 'y'" in told
    assert "--features" in told
    assert "--drop" in told


def test_a_feature_asked_for_twice_is_refused_or_comes_once():
    """A run folder could not hold it: its columns are known by their names."""
    try:
        table = learning_table(plain_columns(), features=["a", "a"])
    except InputError as error:
        assert "'a'" in str(error)  # noqa: PT017
    else:
        assert learning_table(table.columns(), "y").digest == table.digest


NOT_NUMBERS = {
    "text": (list("abcdefgh"), "holds string such as 'a', not numbers"),
    "one word": (["1", "2", "3", "4", "5", "6", "7", "eight"], "holds string such as '"),
    "numerals as text": (list("12345678"), "holds string such as '1', not numbers"),
    "dates": ([date(2020, 1, 1)] * 8, "holds date32[day] such as '2020-01-01'"),
    "decimals": ([Decimal(1)] * 8, "holds decimal128"),
    "lists": ([[1]] * 8, "such as '[1]'"),
    "categories": (pa.array(["u", "v"] * 4).dictionary_encode(), "such as 'u'"),
    "bytes": ([b"a"] * 8, "holds binary"),
    "nothing": (pa.nulls(8), "is empty"),
    "no number": (pa.nulls(8, pa.float64()), "is empty"),
    "a gap": ([1.0, 2, None, 4, 5, None, 7, 8], "has 2 empty cells, the first in row 3"),
    "a gap in whole numbers": ([1, 2, 3, 4, 5, 6, 7, None], "has 1 empty cell, the first in row 8"),
    "a gap in bools": ([None, *[True] * 7], "has 1 empty cell, the first in row 1"),
    "NaN": ([1.0, 2, 3, float("nan"), 5, 6, 7, 8], "has nan in row 4"),
    "inf": ([1.0, 2, 3, 4, float("inf"), 6, float("nan"), 8], "has inf in row 5"),
    "-inf": ([1.0, 2, 3, 4, 5, float("-inf"), 7, 8], "has -inf in row 6"),
    "late NaN": (pa.chunked_array([[1.0, 2, 3, 4], [5, 6, 7, float("nan")]]), "has nan in row 8"),
    "late gap": (pa.chunked_array([[1.0, 2, 3], [4, None, 6, 7, 8]]), "the first in row 5"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_a_column_that_is_not_of_finite_numbers_is_named_with_the_way_out(kind):
    values, expected = NOT_NUMBERS[kind]
    told = refusal(plain_columns(odd=values))
    assert told.startswith("column 'odd' ")
    assert expected in told
    assert "--drop odd" in told
    assert "--features" in told
    assert (
        learning_table(plain_columns(odd=values), drop=["odd"]).digest
        == learning_table(plain_columns()).digest
    )


def test_the_row_of_a_csv_that_is_named_is_the_row_below_the_header(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,y\n" + "1,0\n2,1\n,0\n" + "4,1\n5,0\n6,1\n")
    assert "first in row 3" in refusal(read(str(file)).learn)
    file.write_text("a,y\n" + "1,0\n2,1\n3,0\n" + "inf,1\n5,0\n6,1\n")
    assert "inf in row 4" in refusal(read(str(file)).learn)


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()]
)
def test_every_kind_of_number_will_do(kind):
    values = pa.array(np.array([0, 1, 1, 0, 1, 1, 0, 1]).astype(np.float64)).cast(pa.int64())
    column = values.cast(kind) if kind != pa.float16() else pa.array(np.array(values, dtype=np.float16))
    table = learning_table(plain_columns(a=column, b=None))
    assert table.X[:, 0].tolist() == [0, 1, 1, 0, 1, 1, 0, 1]
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous


def test_two_columns_of_one_name_are_refused():
    columns = plain_columns().append_column("a", pa.array(range(8)))
    assert "two columns are named 'a'" in refusal(columns)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_too_few_rows(n):
    assert f"the table has {n} row{'s' * (n != 1)}: at least 6 are needed" in refusal(
        plain_columns().slice(0, n)
    )
    assert learning_table(plain_columns().slice(0, 6)).n == 6


def test_long_lists_of_columns_are_cut_short():
    wide = pa.table({f"c{i}": range(8) for i in range(100)})
    told = refusal(wide)
    assert "c11, ... (100 in all)" in told
    assert "c12" not in told


def test_matrix_takes_columns_by_name_and_ignores_the_others():
    columns = plain_columns(c=list("abcdefgh"))
    assert matrix(columns, ["b", "a"])[:2].tolist() == [[2, 1], [7, 2]]
    assert matrix(columns.slice(0, 0), ["b"]).shape == (0, 1)
    with pytest.raises(InputError, match=r"there is no column 'z': the columns are a, b, y, c"):
        matrix(columns, ["a", "z"])


# Arrays


def test_arrays_lists_objects_and_frames_are_one_table():
    X, y = np.arange(16.0).reshape(8, 2), ["no", "yes"] * 4
    tables = [
        table_from_arrays(X, y),
        table_from_arrays(X.tolist(), tuple(y)),
        table_from_arrays([tuple(row) for row in X.astype(int).tolist()], np.array(y)),
        table_from_arrays(X.astype(object), np.array(y, dtype=object)),
        table_from_arrays(np.asfortranarray(X), y),
        table_from_arrays(Frame(X, ["x0", "x1"]), y),
    ]
    assert len({table.digest for table in tables}) == 1
    assert tables[0].features == ("x0", "x1")
    assert all(table.X.flags.c_contiguous for table in tables)


def test_a_frame_brings_its_names():
    X, y = np.arange(16.0).reshape(8, 2), [0, 1] * 4
    table = table_from_arrays(Frame(X, np.array(["age", "height"], dtype=object)), y)
    assert table.features == ("age", "height")
    assert table_from_arrays(Frame(X, [0, 1]), y).features == ("0", "1")


@pytest.mark.parametrize("names", [["target", "a"], ["target", "y"]])
def test_a_frame_may_have_columns_named_like_targets(names):
    X = np.arange(16.0).reshape(8, 2)
    table = table_from_arrays(Frame(X, names), [0, 1] * 4)
    assert table.features == tuple(names)
    assert table.target not in names
    assert np.array_equal(table.X, X)
    assert learning_table(table.columns(), table.target).digest == table.digest


@pytest.mark.parametrize("names", [["a", "a"], ["1", 1]])
def test_a_frame_with_two_columns_of_one_name_is_refused(names):
    with pytest.raises(InputError, match=names[0]):
        table_from_arrays(Frame(np.arange(16.0).reshape(8, 2), names), [0, 1] * 4)


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_a_frame_whose_names_do_not_fit_is_refused(names):
    with pytest.raises(InputError):
        table_from_arrays(Frame(np.arange(16.0).reshape(8, 2), names), [0, 1] * 4)


@pytest.mark.parametrize(
    ("X", "y", "expected"),
    [
        (np.ones(8), np.ones(8), "X has shape (8,) and y (8,): expected (n, d) and (n,)"),
        (np.ones((8, 2, 2)), np.ones(8), "X has shape (8, 2, 2)"),
        (np.ones((8, 2)), np.ones(7), "y (7,)"),
        (np.ones((8, 2)), np.ones((8, 1)), "y (8, 1)"),
        (np.ones((8, 2)), 1, "y ()"),
        (None, None, "X has shape ()"),
        (np.ones((8, 0)), [0, 1] * 4, "no feature is left"),
        (np.ones((0, 2)), [], "0 rows"),
        (np.ones((5, 2)), [0, 1, 0, 1, 0], "5 rows"),
        (np.ones((8, 2)) * 1j, [0, 1] * 4, "complex"),
        (np.full((8, 2), "1"), [0, 1] * 4, "column 'x0' holds string"),
        (np.full((8, 2), np.nan), [0, 1] * 4, "column 'x0' has nan in row 1"),
        ([[1.0, 2.0]] * 7 + [[1.0, None]], [0, 1] * 4, "column 'x1' has 1 empty cell, the first in row 8"),
        (np.full((8, 2), "2020-01-01", dtype="M8[D]"), [0, 1] * 4, "column 'x0'"),
        (np.ones((8, 2)), [0, 1, 2, 3] * 2, "4 classes"),
        (np.ones((8, 2)), [None, 1] * 4, "empty cells"),
        (np.ones((8, 2)), [0.0, np.nan] * 4, "empty cells"),
        (np.ones((8, 2)), np.array([1, "a"] * 4, dtype=object), "X or y cannot be read"),
        ([[1, 2], [3]] * 4, [0, 1] * 4, "X"),
        (np.ones((8, 2)), [[0], [1, 2]] * 4, "y"),
        (np.array([[2**70, 1]] * 8, dtype=object), [0, 1] * 4, ""),
        (np.ones((8, 2)), [2**70, 1] * 4, ""),
    ],
)
def test_arrays_that_do_not_fit(X, y, expected):
    with pytest.raises(InputError) as refused:
        table_from_arrays(X, y)
    assert expected in str(refused.value)


def test_read_only_input_is_neither_changed_nor_kept():
    X, y = np.array([[-0.0, 1.0], [2.0, 3.0]] * 4), np.array([5, 7] * 4)
    before = X.tobytes(), y.tobytes()
    X.flags.writeable = y.flags.writeable = False
    table = table_from_arrays(X, y)
    learning_table(table.columns(), table.target)
    fit_scaling(X, "standard").apply(X)
    assert (X.tobytes(), y.tobytes()) == before
    assert not np.shares_memory(table.X, X)
    assert not np.shares_memory(table.y, y)


# Scaling


def test_scaling_is_what_its_name_says():
    X = np.random.default_rng(0).normal(3, 5, size=(50, 3))
    X[:, 1] = 7.0
    scaled = fit_scaling(X, "standard").apply(X)
    assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-14)
    assert scaled.std(axis=0) == pytest.approx([1, 0, 1])
    assert fit_scaling(X, "none").apply(X).tobytes() == X.tobytes()


def test_csv_written_by_arrow_is_read_back(tmp_path):
    table = plain_table(X=awkward_X(8, 2))
    file = tmp_path / "table.csv"
    csv.write_csv(table.columns(), file)
    again = learning_table(read(str(file)).learn, "y")
    assert again.labels == table.labels
    assert np.array_equal(again.X, table.X)


def test_labels_that_unfold_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(data, "MOST_BYTES", 8 * 300)
    sound, long = (plain_columns(y=["no", "y" * letters] * 4) for letters in (300, 301))
    assert learning_table(sound).labels == ("no", "y" * 300)
    assert "the labels of 'y' take more than" in refusal(long)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            [1.0] * 7 + [1.7976931348623157e308],
            "column 'a' has 1.7976931348623157e+308 in row 8: at most 1e+150",
        ),
        ([-1e200] + [1.0] * 7, "column 'a' has -1e+200 in row 1"),
        ([k * 1e-200 for k in range(8)], "column 'a' has no number beyond 7e-200: at least 1e-150"),
    ],
)
def test_numbers_that_cannot_be_squared_are_refused(values, told):
    """The spread of a column would be infinite, or zero, and its scaled values with it."""
    message = refusal(plain_columns(a=values))
    assert message.startswith(told)
    assert "--drop a" in message


@pytest.mark.parametrize("unit", [1e-149, 1.0, 1e149])
def test_the_unit_of_a_column_does_not_matter_to_its_scaled_values(unit):
    X = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(
        fit_scaling(X * unit, "standard").apply(X * unit), fit_scaling(X, "standard").apply(X), rtol=1e-9
    )


def test_a_table_in_which_nothing_varies_is_refused():
    told = refusal(plain_columns(a=[1.0] * 8, b=[2] * 8))
    assert told == "nothing varies from row to row in a, b: there is nothing to learn from"
    assert learning_table(plain_columns(a=[1.0] * 8)).features == ("a", "b")
