"""Every type of column that pandas, polars and Arrow have: it is read as its CSV is, or refused by name.

A line in ``MADE`` or ``REFUSED`` is all that a new type needs. Those read hold the values of ``VALUES``.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, feather, parquet

from ckcv_ray import CKCVClassifier, InputError, Task
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.named import read
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import make_rows

Column = Any
Make = Callable[[list[Any]], Column]

N = 40
AT = [7 * i % 11 for i in range(N)]
Y = np.array(["no", "yes"])[[int(at > 5) for at in AT]]
NUMBERS = np.linspace(0.0, 1.0, N) ** 2
WORDS = ["red", "green", "blue", "white", "black"]
START = datetime(2024, 3, 1, 12)


def lay_gaps(values: list[Any]) -> list[Any]:
    return [None if i % 9 == 3 else value for i, value in enumerate(values)]


VALUES: dict[str, list[Any]] = {
    "whole": AT,
    "quarters": [at / 4 for at in AT],
    "cents": [Decimal(7 * at + 1) / 100 for at in AT],
    "words": [WORDS[at % 5] for at in AT],
    "truths": [at % 2 == 0 for at in AT],
    "days": [date(2024, 3, 1) + timedelta(at) for at in AT],
    "moments": [START + timedelta(hours=at) for at in AT],
    "zoned": [pd.Timestamp(START + timedelta(hours=at), tz="UTC").to_pydatetime() for at in AT],
}
VALUES |= {f"{name} with gaps": lay_gaps(values) for name, values in VALUES.items()}
STORED_AS_LABELS = ("arrow json", "arrow bool8")  # as text and whole numbers
CATEGORIES = "categories of "  # as which values are to be read


def of_pandas(kind: Any) -> Make:
    return lambda values: pd.Series(values, dtype=kind)


def of_arrow(kind: pa.DataType) -> Make:
    return lambda values: pa.array(values, kind)


def of_polars(kind: Any) -> Make:
    return lambda values: pl.Series(values, dtype=kind, strict=False)


def encode_runs(kind: pa.DataType) -> Make:
    def make(values: list[Any]) -> Column:
        return pa.RunEndEncodedArray.from_arrays(
            pa.array(range(1, len(values) + 1), pa.int32()), pa.array(values, kind)
        )

    return make


def encode_levels(kind: pa.DataType) -> Make:
    """Make two chunks of a dictionary that list its values in different orders."""

    def make(values: list[Any]) -> Column:
        chunks = []
        for part in (values[: N // 2], values[N // 2 :]):
            levels = [value for i, value in enumerate(part) if value is not None and value not in part[:i]]
            numbers = [None if value is None else levels.index(value) for value in part]
            indices = pa.array(numbers, pa.int32())
            chunks.append(pa.DictionaryArray.from_arrays(indices, pa.array(levels, kind)))
        return pa.chunked_array(chunks)

    return make


def in_unit(unit: str) -> Make:
    return lambda values: pd.Series(pd.to_datetime(values)).dt.as_unit(unit)


WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS, TEXTS = (pa.float16(), pa.float32(), pa.float64()), (pa.string(), pa.large_string(), pa.string_view())
INTEGERS = [getattr(pa, kind)() for kind in WHOLE]
DECIMALS = (pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal128(12, 2), pa.decimal128(38, 10))
ZONED = [pa.timestamp("us", zone) for zone in ("UTC", "Europe/Rome", "+01:00", "Not/Known")]
WAYS: dict[str, Callable[[Any], Make]] = {
    "pandas": of_pandas,
    "pandas in": in_unit,
    "arrow": of_arrow,
    "arrow dictionary of": encode_levels,
    "arrow runs of": encode_runs,
    "polars": of_polars,
}
MADE: list[tuple[Any, ...]] = [  # in which way, the values that are read, and the types that hold them
    ("pandas", "whole", *WHOLE, pd.SparseDtype("int", 0)),
    ("pandas", "whole with gaps", "Int8", "Int64", "UInt64", "object", pd.ArrowDtype(pa.int16())),
    ("pandas", "quarters", "float16", pd.SparseDtype("float", 0.0)),
    ("pandas", "quarters with gaps", "float32", "Float32", "Float64", pd.SparseDtype("float", np.nan)),
    ("pandas", "cents with gaps", "float64", "object", pd.ArrowDtype(pa.decimal128(38, 4))),
    ("pandas", "truths", "bool", pd.SparseDtype(bool, False)),
    ("pandas", "truths with gaps", "boolean", "object"),
    ("pandas", "words", pd.CategoricalDtype(WORDS, ordered=True)),
    ("pandas", "words with gaps", "object", "str", "string[python]", "string[pyarrow]", "category"),
    ("pandas", "days with gaps", "object", pd.ArrowDtype(pa.date32())),
    ("pandas", "moments with gaps", "object"),
    (
        "pandas",
        "zoned with gaps",
        pd.DatetimeTZDtype("us", "Europe/Rome"),
        pd.ArrowDtype(pa.timestamp("us", "UTC")),
    ),
    *(("pandas", f"{CATEGORIES}{values}", "category") for values in ("whole with gaps", "cents", "truths")),
    ("pandas in", "moments with gaps", "s", "ms", "us", "ns"),
    ("arrow", "whole with gaps", *INTEGERS, pa.decimal32(9, 0), pa.decimal128(38, 0)),
    ("arrow", "quarters with gaps", *FLOATS),
    ("arrow", "cents with gaps", *DECIMALS, pa.decimal256(76, 40)),
    ("arrow", "truths with gaps", pa.bool_()),
    ("arrow", "words with gaps", *TEXTS),
    ("arrow", "days with gaps", pa.date32(), pa.date64()),
    ("arrow", "moments with gaps", pa.timestamp("s"), pa.timestamp("ns")),
    ("arrow", "zoned with gaps", *ZONED),
    ("arrow dictionary of", f"{CATEGORIES}whole with gaps", pa.uint8(), pa.int64(), pa.decimal32(9, 0)),
    ("arrow dictionary of", f"{CATEGORIES}quarters with gaps", *FLOATS),
    ("arrow dictionary of", f"{CATEGORIES}truths with gaps", pa.bool_()),
    ("arrow dictionary of", "words with gaps", *TEXTS),
    ("arrow dictionary of", "zoned with gaps", pa.timestamp("s", "UTC")),
    ("arrow runs of", "whole with gaps", pa.int64()),
    ("arrow runs of", "quarters with gaps", pa.float16()),
    ("arrow runs of", "cents with gaps", pa.decimal128(9, 2)),
    ("arrow runs of", "words with gaps", pa.string()),
    ("polars", "whole with gaps", pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    ("polars", "quarters with gaps", pl.Float32, pl.Float64),
    ("polars", "cents with gaps", pl.Decimal(38, 10)),
    ("polars", "truths with gaps", pl.Boolean),
    ("polars", "words with gaps", pl.String, pl.Categorical, pl.Enum(WORDS)),
    ("polars", "days with gaps", pl.Date),
    ("polars", "moments with gaps", *map(pl.Datetime, ("ms", "us", "ns"))),
    ("polars", "zoned with gaps", pl.Datetime("us", "Europe/Rome")),
]
READ = {  # the values, and what makes a column of them
    f"{way} {kind}: {values}": (values, WAYS[way](kind)) for way, values, *kinds in MADE for kind in kinds
}

LISTS, CLOCKS = [[at] for at in AT], [(START + timedelta(hours=at)).time() for at in AT]
SPANS, BYTES = [timedelta(at) for at in AT], [word.encode() for word in VALUES["words"]]
MIXED = [word if i % 2 else i for i, word in enumerate(VALUES["words"])]
PERIODS = pd.PeriodIndex(VALUES["moments"], freq="h")


def wrap(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def of_types(values: list[Any], *kinds: pa.DataType) -> dict[str, tuple[str, pa.Array]]:
    """Return entries of ``REFUSED`` that Arrow holds as each of the types."""
    return {f"arrow {kind}": (str(kind), pa.array(values, kind)) for kind in kinds}


CODES, PARTS = pa.array([at % 2 for at in AT], pa.int8()), [pa.array(AT), pa.array(VALUES["words"])]
REFUSED: dict[str, tuple[str, Column]] = {  # the type that is named, and the column
    "pandas objects of mixed types": ("object", pd.Series(MIXED, dtype=object)),
    "pandas objects of None": ("empty", pd.Series([None] * N, dtype=object)),
    "pandas objects of UUID": ("uuid", pd.Series([UUID(int=at) for at in AT], dtype=object)),
    "pandas objects of large int": ("object", pd.Series([10**30 + at for at in AT], dtype=object)),
    "pandas Period": ("period", pd.Series(PERIODS)),
    "pandas Interval": ("interval", pd.Series(pd.interval_range(0, N))),
    "pandas longdouble": ("float128", pd.Series(np.array(AT, np.longdouble))),
    "pandas category of mixed types": ("category", pd.Series(MIXED, dtype=object).astype("category")),
    "pandas category of Interval": ("interval", pd.cut(pd.Series(VALUES["quarters"]), 4)),
    **of_types(CLOCKS, pa.time32("s"), pa.time64("us")),
    **of_types(SPANS, pa.duration("s")),
    "arrow interval": ("interval", pa.array([pa.MonthDayNano([1, at, 0]) for at in AT])),
    **of_types(BYTES, pa.binary(), pa.binary_view()),
    **of_types([text[:3] for text in BYTES], pa.binary(3)),
    **of_types(LISTS, pa.list_(pa.int64()), pa.list_(pa.int8(), 1), pa.list_view(pa.int8())),
    "arrow struct": ("struct<a: int64>", pa.array([{"a": at} for at in AT])),
    "arrow map": ("map<string, int8>", pa.array([[("a", at)] for at in AT], pa.map_(pa.string(), pa.int8()))),
    "arrow null": ("empty", pa.nulls(N)),
    "arrow sparse union": ("sparse_union", pa.UnionArray.from_sparse(CODES, PARTS)),
    "arrow dictionary of binary": ("values=binary", encode_levels(pa.binary())(BYTES)),
    "arrow dictionary of lists": ("values=list", encode_levels(pa.list_(pa.int8()))(LISTS)),
    "arrow dictionary of null": (
        "empty",
        pa.DictionaryArray.from_arrays(pa.array(range(N), pa.int32()), pa.nulls(N)),
    ),
    "arrow runs of lists": ("run_end_encoded", encode_runs(pa.list_(pa.int8()))(LISTS)),
    "arrow uuid": ("arrow.uuid", wrap(pa.uuid(), [UUID(int=at).bytes for at in AT])),
    "arrow json": ("arrow.json", wrap(pa.json_(), [f'{{"a": {at}}}' for at in AT])),
    "arrow bool8": ("arrow.bool8", wrap(pa.bool8(), [at % 2 for at in AT])),
    "arrow tensor": ("fixed_shape_tensor", wrap(pa.fixed_shape_tensor(pa.int32(), [1]), LISTS)),
    "polars Int128": ("Int128", pl.Series(AT, dtype=pl.Int128)),
    "polars Object": ("binary", pl.Series([{at} for at in AT], dtype=pl.Object)),
}
COLUMNS = {name: make(VALUES[values.removeprefix(CATEGORIES)]) for name, (values, make) in READ.items()}
EVERY = COLUMNS | {name: column for name, (_, column) in REFUSED.items()}


def make_frame(column: Column, name: str = "col") -> Any:
    library = type(column).__module__.partition(".")[0]
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(library, pa.table)
    return make({"num": NUMBERS, name: column})


@cache
def learn_csv(values: str, tmp: str) -> Task:
    """Return what is learned from the CSV of some values."""
    texts = ["" if value is None else str(value) for value in VALUES[values.removeprefix(CATEGORIES)]]
    file = f"{tmp}/{values}.csv"
    with open(file, "w") as stream:
        stream.write("num,col,y\n")
        stream.writelines(f"{a!r},{b},{c}\n" for a, b, c in zip(NUMBERS.tolist(), texts, Y, strict=True))
    categorical = ("col",) if values.startswith(CATEGORIES) else ()
    return Task.from_table(read(file).learn, Roles("y"), DeclaredTypes(categorical=categorical))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("columns"))


def check_same(task: Task, other: Task) -> None:
    assert task.X.tobytes() == other.X.tobytes()
    one, two = ([(c.name, c.kind, c.levels, c.zoned) for c in of.schema] for of in (task, other))
    assert one == two
    assert (task.salt, task.digest) == (other.salt, other.digest)


def list_stored(name: str, folder: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield a table with a column of Arrow, and the same from each kind of file that can hold it."""
    if not name.startswith("arrow"):
        return
    table = make_frame(EVERY[name]).append_column("y", pa.array(Y))
    yield "", table
    for suffix, write in ((".parquet", parquet.write_table), (".feather", feather.write_feather)):
        try:
            write(table, f"{folder}/table{suffix}")
        except (pa.ArrowException, OSError):
            continue
        yield suffix, read(f"{folder}/table{suffix}").learn


@pytest.mark.parametrize("name", READ)
def test_a_column_is_learned_and_predicted_as_its_csv_in_frames_and_files(name: str, folder: str) -> None:
    frame, of_csv = make_frame(COLUMNS[name]), learn_csv(READ[name][0], folder)
    task = Task.of(frame, pd.Series(Y, name="y"))
    check_same(task, of_csv)
    for learned in (task, of_csv):
        assert make_rows(frame, learned).tobytes() == task.X.tobytes()
    for suffix, table in list_stored(name, folder):
        # Arrow writes it wrong if it has two chunks
        if suffix and name.startswith("arrow dictionary of halffloat"):
            continue
        if suffix == ".feather" and "runs" in name:  # a small file could have very many rows
            with pytest.raises(InputError, match=r"^column 'col' holds run_end_encoded"):
                Task.from_table(table, Roles("y"))
            continue
        task = Task.from_table(table, Roles("y"))
        # Parquet keeps categories of text alone
        if suffix != ".parquet" or not READ[name][0].startswith(CATEGORIES):
            check_same(task, of_csv)
        assert task.rows_from(table).tobytes() == task.X.tobytes()


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_is_refused_by_name_and_type_and_where_another_was_learned(name: str, folder: str) -> None:
    kind, column = REFUSED[name]
    with pytest.raises(InputError, match=r"^column 'col' (holds|is) ") as refused:
        Task.of(make_frame(column), Y)
    assert kind in str(refused.value)
    assert str(refused.value).endswith("leave it out with --drop col or --features")
    for values in ("whole with gaps", "words with gaps", "days with gaps", "zoned"):
        answer = find_answer(partial(make_rows, make_frame(column), learn_csv(values, folder)))
        if isinstance(answer, str):
            assert answer.startswith("column 'col' h")
        else:
            assert (kind == "empty") == np.isnan(answer[:, 1]).all()
    for _, table in list_stored(name, folder):
        with pytest.raises(InputError, match=r"^column 'col' (holds|is) .*leave it out with --drop col"):
            Task.from_table(table, Roles("y"))
        for roles in (Roles("y", drop=["col"]), Roles("y", features=["num"])):
            assert np.array_equal(Task.from_table(table, roles).X[:, 0], NUMBERS)


def find_answer(ask: Callable[[], Any]) -> Any:
    """Return what is answered, or why it is refused."""
    try:
        return ask()
    except InputError as refused:
        return str(refused)


@pytest.mark.parametrize("name", EVERY)
def test_any_column_is_read_or_refused_as_labels(name: str) -> None:
    values = READ[name][0].removeprefix(CATEGORIES).removesuffix(" with gaps") if name in READ else ""
    labels = READ[name][1](VALUES[values]) if values else EVERY[name]
    ways = [partial(Task.of, NUMBERS[:, None], labels)]
    if name.startswith("arrow"):
        ways.append(partial(Task.from_table, make_frame(labels, "y")))
    for task in map(find_answer, ways):
        if values in ("whole", "quarters", "cents", "words", "truths"):
            expected = [float(value) if values == "cents" else value for value in VALUES[values]]
            assert task.labelled(task.y).tolist() == expected
        elif name not in STORED_AS_LABELS or isinstance(task, str):
            assert re.search(r"'y' (has|holds)|^y (cannot|is not|has shape)", task)


@pytest.mark.parametrize("name", [name for name in READ if READ[name][0].endswith("gaps")])
def test_a_gap_is_no_label_group_or_weight(name: str) -> None:
    text = str(find_answer(partial(Task.of, NUMBERS[:, None], EVERY[name])))
    assert "the target 'y' has empty cells in 5 of 40 rows" in text or "'y' has type" in text
    text = str(find_answer(partial(Task.of, NUMBERS[:, None], Y, groups=EVERY[name])))
    assert "'group', which names groups, has empty cells in 5 of 40 rows, the first in row 4" in text
    with pytest.raises(InputError, match=r"empty cells in 5 of 40 rows, the first in row 4|column of w"):
        Task.of(NUMBERS[:, None], Y, sample_weight=EVERY[name])


STUDY = {"learner": "tree", "k": (3,), "n_splits": 2}
PLAIN = pa.table({"num": NUMBERS, "col": VALUES["quarters"]})


@pytest.mark.parametrize(
    "X",
    [
        lambda: pl.from_arrow(PLAIN).lazy(),
        lambda: PLAIN.to_reader(),
        lambda: dataset.dataset(PLAIN).scanner(),
        lambda: PLAIN.to_pandas().astype(pd.SparseDtype("float", 0.0)),
        lambda: PLAIN.set_column(1, "col", PLAIN["col"].cast(pa.decimal128(38, 2))),
    ],
)
def test_rows_are_the_same_by_every_entrance(X: Callable[[], Any]) -> None:
    plain, fitted = Task.of(PLAIN, Y), CKCVClassifier(**STUDY).fit(X(), Y)
    check_same(Task.of(X(), Y), plain)
    assert np.array_equal(make_rows(X(), plain), plain.X)
    assert np.array_equal(fitted.predict(X()), fitted.predict(PLAIN))


@pytest.mark.parametrize("role", ["y", "groups", "sample_weight"])
def test_another_order_of_the_index_is_refused(role: str) -> None:
    X, order = PLAIN.to_pandas(), np.random.default_rng(0).permutation(N)
    y, groups, weight = pd.Series(Y), pd.Series(np.arange(N) // 4), pd.Series(NUMBERS + 1)
    asked = {"y": y, role: {"y": y, "groups": groups, "sample_weight": weight}[role].iloc[order]}
    with pytest.raises(InputError, match=rf"the index of {role} .* another order: give {role}\.loc\[X"):
        CKCVClassifier(**STUDY).fit(X, **asked)
