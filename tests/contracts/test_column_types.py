"""Every type of column that pandas, polars and Arrow have: it is read as its CSV is, or refused by name.

A line in ``READ`` or ``REFUSED`` is all that a new type needs. Those read hold the values of ``VALUES``.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from functools import cache, partial
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, feather, parquet

from ckcv_ray import CKCVClassifier, InputError, Study, Task, evaluate, run
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Roles, make_rows

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


def encode_levels(kind: pa.DataType, codes: pa.DataType | None = None, ordered: bool = False) -> Make:
    """Make two chunks of a dictionary, which list its values in another order."""

    def make(values: list[Any]) -> Column:
        chunks = []
        for part in (values[: N // 2], values[N // 2 :]):
            levels = [value for i, value in enumerate(part) if value is not None and value not in part[:i]]
            numbers = [None if value is None else levels.index(value) for value in part]
            indices = pa.array(numbers, codes or pa.int32())
            chunks.append(pa.DictionaryArray.from_arrays(indices, pa.array(levels, kind), ordered=ordered))
        return pa.chunked_array(chunks)

    return make


def in_unit(unit: str, zone: str | None = None) -> Make:
    return lambda values: pd.Series(pd.to_datetime(values, utc=zone is not None)).dt.as_unit(unit)


def alike(library: str, values: str, make: Callable[[Any], Make], *kinds: Any) -> dict[str, tuple[str, Make]]:
    """Return entries of ``READ`` for types that are made alike, and read as the same values."""
    return {f"{library} {kind}": (values, make(kind)) for kind in kinds}


WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = (pa.float16(), pa.float32(), pa.float64())
TEXTS = (pa.string(), pa.large_string(), pa.string_view())
READ: dict[str, tuple[str, Make]] = {  # the values that are read, and what makes a column of them
    **alike("pandas", "whole", of_pandas, *WHOLE),
    **alike("pandas", "whole with gaps", of_pandas, "Int8", "Int64", "UInt64"),
    "pandas float16": ("quarters", of_pandas("float16")),
    **alike("pandas", "quarters with gaps", of_pandas, "float32", "Float32", "Float64"),
    "pandas float64": ("cents with gaps", of_pandas("float64")),
    "pandas bool": ("truths", of_pandas("bool")),
    "pandas boolean": ("truths with gaps", of_pandas("boolean")),
    **{
        f"pandas objects of {values}": (f"{values} with gaps", of_pandas(object))
        for values in ("truths", "whole", "words", "cents", "days", "moments")
    },
    "pandas objects of words, nan": (
        "words with gaps",
        lambda values: pd.Series([value or np.nan for value in values], dtype=object),
    ),
    **alike("pandas", "words with gaps", of_pandas, "str", "string[python]", "string[pyarrow]", "category"),
    "pandas category in order": ("words", of_pandas(pd.CategoricalDtype(WORDS, ordered=True))),
    **{
        f"pandas category of {values}": (f"{CATEGORIES}{values}", of_pandas("category"))
        for values in ("whole with gaps", "quarters", "cents", "truths")
    },
    "pandas category of moments": ("moments", of_pandas("category")),
    **alike("pandas datetime64 in", "moments with gaps", in_unit, "s", "ms", "us", "ns"),
    **alike("pandas datetime64 of UTC in", "zoned with gaps", partial(in_unit, zone="UTC"), "s", "ns"),
    "pandas datetime64 of Rome": ("zoned", of_pandas(pd.DatetimeTZDtype("us", "Europe/Rome"))),
    "pandas Sparse of float": ("quarters", of_pandas(pd.SparseDtype("float", 0.0))),
    "pandas Sparse with gaps": ("quarters with gaps", of_pandas(pd.SparseDtype("float", np.nan))),
    "pandas Sparse of int": ("whole", of_pandas(pd.SparseDtype("int", 0))),
    "pandas Sparse of bool": ("truths", of_pandas(pd.SparseDtype(bool, False))),
    "pandas ArrowDtype of int": ("whole with gaps", of_pandas(pd.ArrowDtype(pa.int16()))),
    "pandas ArrowDtype of decimal": ("cents with gaps", of_pandas(pd.ArrowDtype(pa.decimal128(38, 4)))),
    "pandas ArrowDtype of date": ("days with gaps", of_pandas(pd.ArrowDtype(pa.date32()))),
    "pandas ArrowDtype of text": ("words with gaps", of_pandas(pd.ArrowDtype(pa.large_string()))),
    "pandas ArrowDtype of time": ("zoned with gaps", of_pandas(pd.ArrowDtype(pa.timestamp("us", "UTC")))),
    **alike("arrow", "whole with gaps", of_arrow, *(getattr(pa, kind)() for kind in WHOLE)),
    **alike("arrow", "quarters with gaps", of_arrow, *FLOATS),
    "arrow bool": ("truths with gaps", of_arrow(pa.bool_())),
    **alike("arrow", "cents with gaps", of_arrow, pa.decimal32(9, 2), pa.decimal64(18, 3)),
    **alike("arrow", "cents with gaps", of_arrow, pa.decimal128(12, 2), pa.decimal128(38, 10)),
    **alike("arrow", "cents with gaps", of_arrow, pa.decimal256(76, 40)),
    **alike("arrow", "whole with gaps", of_arrow, pa.decimal32(9, 0), pa.decimal128(38, 0)),
    **alike("arrow", "days with gaps", of_arrow, pa.date32(), pa.date64()),
    **alike("arrow", "moments with gaps", of_arrow, pa.timestamp("s"), pa.timestamp("ns")),
    **{
        f"arrow timestamp of {zone}": ("zoned with gaps", of_arrow(pa.timestamp("us", zone)))
        for zone in ("UTC", "Europe/Rome", "+01:00", "Not/Known")
    },
    **alike("arrow", "words with gaps", of_arrow, *TEXTS),
    **{
        f"arrow dictionary of {kind} by {codes}": ("words with gaps", encode_levels(kind, codes))
        for kind in TEXTS
        for codes in (pa.int8(), pa.uint32())
    },
    "arrow dictionary in order": ("words", encode_levels(pa.string_view(), ordered=True)),
    **alike("arrow dictionary of", f"{CATEGORIES}quarters with gaps", encode_levels, *FLOATS),
    **alike("arrow dictionary of", f"{CATEGORIES}whole with gaps", encode_levels, pa.uint8(), pa.int64()),
    **alike("arrow dictionary of", f"{CATEGORIES}whole with gaps", encode_levels, pa.decimal32(9, 0)),
    "arrow dictionary of bool": (f"{CATEGORIES}truths with gaps", encode_levels(pa.bool_())),
    "arrow dictionary of decimal": (f"{CATEGORIES}cents with gaps", encode_levels(pa.decimal64(18, 6))),
    "arrow dictionary of date": ("days with gaps", encode_levels(pa.date32())),
    "arrow dictionary of timestamp": ("zoned with gaps", encode_levels(pa.timestamp("s", "UTC"))),
    "arrow runs of int64": ("whole with gaps", encode_runs(pa.int64())),
    "arrow runs of float16": ("quarters with gaps", encode_runs(pa.float16())),
    "arrow runs of decimal": ("cents with gaps", encode_runs(pa.decimal128(9, 2))),
    "arrow runs of text": ("words with gaps", encode_runs(pa.string())),
    "arrow runs of bool": ("truths with gaps", encode_runs(pa.bool_())),
    "arrow runs of date": ("days with gaps", encode_runs(pa.date32())),
    **alike("polars", "whole with gaps", of_polars, pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    **alike("polars", "whole with gaps", of_polars, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    **alike("polars", "quarters with gaps", of_polars, pl.Float32, pl.Float64),
    "polars Decimal": ("cents with gaps", of_polars(pl.Decimal(38, 10))),
    "polars Boolean": ("truths with gaps", of_polars(pl.Boolean)),
    **alike("polars", "words with gaps", of_polars, pl.String, pl.Categorical, pl.Enum(WORDS)),
    "polars Date": ("days with gaps", of_polars(pl.Date)),
    **alike("polars", "moments with gaps", of_polars, *map(pl.Datetime, ("ms", "us", "ns"))),
    "polars Datetime of Rome": ("zoned with gaps", of_polars(pl.Datetime("us", "Europe/Rome"))),
}
if hasattr(pl, "Float16"):
    READ["polars Float16"] = ("quarters with gaps", of_polars(pl.Float16))

LISTS, CLOCKS = [[at] for at in AT], [(START + timedelta(hours=at)).time() for at in AT]
SPANS, BYTES = [timedelta(at) for at in AT], [word.encode() for word in VALUES["words"]]
MIXED = [word if i % 2 else i for i, word in enumerate(VALUES["words"])]
PERIODS = pd.PeriodIndex(VALUES["moments"], freq="h")


def wrap(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def of_types(values: list[Any], *kinds: pa.DataType) -> dict[str, tuple[str, pa.Array]]:
    """Return entries of ``REFUSED`` that Arrow holds as each of the types."""
    return {f"arrow {kind}": (str(kind), pa.array(values, kind)) for kind in kinds}


def unite(join: Callable[..., pa.Array], *offsets: pa.Array) -> pa.Array:
    return join(
        pa.array([at % 2 for at in AT], pa.int8()), *offsets, [pa.array(AT), pa.array(VALUES["words"])]
    )


REFUSED: dict[str, tuple[str, Column]] = {  # the type that is named, and the column
    "pandas objects of mixed types": ("object", pd.Series(MIXED, dtype=object)),
    "pandas objects of None": ("empty", pd.Series([None] * N, dtype=object)),
    "pandas objects of nan": ("empty", pd.Series([np.nan] * N, dtype=object)),
    "pandas objects of bytes": ("binary", pd.Series(BYTES, dtype=object)),
    "pandas objects of lists": ("list", pd.Series(LISTS, dtype=object)),
    "pandas objects of dicts": ("struct", pd.Series([{"a": at} for at in AT], dtype=object)),
    "pandas objects of sets": ("list", pd.Series([{at} for at in AT], dtype=object)),
    "pandas objects of UUID": ("uuid", pd.Series([UUID(int=at) for at in AT], dtype=object)),
    "pandas objects of time": ("time64", pd.Series(CLOCKS, dtype=object)),
    "pandas objects of complex": ("object", pd.Series([complex(at) for at in AT], dtype=object)),
    "pandas objects of large int": ("object", pd.Series([10**30 + at for at in AT], dtype=object)),
    "pandas timedelta": ("duration", pd.Series(SPANS)),
    "pandas Period": ("period", pd.Series(PERIODS)),
    "pandas Interval": ("interval", pd.Series(pd.interval_range(0, N))),
    "pandas complex": ("complex128", pd.Series(AT, dtype=complex)),
    "pandas longdouble": ("float128", pd.Series(np.array(AT, np.longdouble))),
    "pandas category of mixed types": ("category", pd.Series(MIXED, dtype=object).astype("category")),
    "pandas category of Interval": ("interval", pd.cut(pd.Series(VALUES["quarters"]), 4)),
    "pandas category of Period": ("period", pd.Series(PERIODS).astype("category")),
    "pandas category of timedelta": ("duration", pd.Series(SPANS).astype("category")),
    "pandas ArrowDtype of list": ("list", pd.Series(LISTS, dtype=pd.ArrowDtype(pa.list_(pa.int8())))),
    **of_types(CLOCKS, pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    **of_types(SPANS, pa.duration("s"), pa.duration("ns")),
    "arrow interval": ("interval", pa.array([pa.MonthDayNano([1, at, 0]) for at in AT])),
    **of_types(BYTES, pa.binary(), pa.large_binary(), pa.binary_view()),
    **of_types([text[:3] for text in BYTES], pa.binary(3)),
    **of_types(LISTS, pa.list_(pa.int64()), pa.list_(pa.int8(), 1), pa.large_list(pa.int8())),
    **of_types(LISTS, pa.list_view(pa.int8()), pa.large_list_view(pa.int8())),
    "arrow struct": ("struct<a: int64>", pa.array([{"a": at} for at in AT])),
    "arrow map": ("map<string, int8>", pa.array([[("a", at)] for at in AT], pa.map_(pa.string(), pa.int8()))),
    "arrow null": ("empty", pa.nulls(N)),
    "arrow sparse union": ("sparse_union", unite(pa.UnionArray.from_sparse)),
    "arrow dense union": ("dense_union", unite(pa.UnionArray.from_dense, pa.array(range(N), pa.int32()))),
    "arrow dictionary of binary": ("values=binary", encode_levels(pa.binary())(BYTES)),
    "arrow dictionary of views": ("values=binary_view", encode_levels(pa.binary_view())(BYTES)),
    "arrow dictionary of duration": ("values=duration", encode_levels(pa.duration("s"))(SPANS)),
    "arrow dictionary of lists": ("values=list", encode_levels(pa.list_(pa.int8()))(LISTS)),
    "arrow dictionary of null": (
        "empty",
        pa.DictionaryArray.from_arrays(pa.array([0] * N, pa.int8()), pa.nulls(1)),
    ),
    "arrow runs of lists": ("run_end_encoded", encode_runs(pa.list_(pa.int8()))(LISTS)),
    "arrow runs of views": ("run_end_encoded", encode_runs(pa.string_view())(VALUES["words"])),
    "arrow uuid": ("arrow.uuid", wrap(pa.uuid(), [UUID(int=at).bytes for at in AT])),
    "arrow json": ("arrow.json", wrap(pa.json_(), [f'{{"a": {at}}}' for at in AT])),
    "arrow bool8": ("arrow.bool8", wrap(pa.bool8(), [at % 2 for at in AT])),
    "arrow tensor": ("fixed_shape_tensor", wrap(pa.fixed_shape_tensor(pa.int32(), [1]), LISTS)),
    "polars Int128": ("Int128", pl.Series(AT, dtype=pl.Int128)),
    "polars Duration": ("duration", pl.Series(SPANS)),
    "polars Time": ("time64", pl.Series(CLOCKS)),
    "polars List": ("list", pl.Series(LISTS)),
    "polars Array": ("list", pl.Series(LISTS, dtype=pl.Array(pl.Int8, 1))),
    "polars Struct": ("struct", pl.Series([{"a": at} for at in AT])),
    "polars Binary": ("binary", pl.Series(BYTES)),
    "polars Object": ("binary", pl.Series([{at} for at in AT], dtype=pl.Object)),
    "polars Null": ("empty", pl.Series([None] * N)),
}
if hasattr(pl, "UInt128"):
    REFUSED["polars UInt128"] = ("UInt128", pl.Series(AT, dtype=pl.UInt128))

COLUMNS = {name: make(VALUES[values.removeprefix(CATEGORIES)]) for name, (values, make) in READ.items()}
EVERY = COLUMNS | {name: column for name, (_, column) in REFUSED.items()}
ARROW_READ = [name for name in READ if name.startswith("arrow")]


def make_frame(column: Column, name: str = "col") -> Any:
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(
        type(column).__module__.split(".")[0], pa.table
    )
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
    assert task.salt == other.salt


@pytest.mark.parametrize("name", READ)
def test_a_column_is_learned_and_predicted_as_its_csv(name: str, folder: str) -> None:
    frame, of_csv = make_frame(COLUMNS[name]), learn_csv(READ[name][0], folder)
    task = Task.of(frame, pd.Series(Y, name="y"))
    check_same(task, of_csv)
    for learned in (task, of_csv):
        assert make_rows(frame, learned).tobytes() == task.X.tobytes()


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


def find_answer(ask: Callable[[], Any]) -> Any:
    """Return what is answered, or why it is refused."""
    try:
        return ask()
    except InputError as refused:
        return str(refused)


@pytest.mark.parametrize("name", ARROW_READ)
def test_a_column_of_arrow_is_read_in_files_too(name: str, folder: str) -> None:
    of_csv = learn_csv(READ[name][0], folder)
    for suffix, table in list_stored(name, folder):
        # Arrow writes it wrong if it has two chunks
        if suffix and name == "arrow dictionary of halffloat":
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


@pytest.mark.parametrize("name", [name for name in REFUSED if name.startswith("arrow")])
def test_a_column_of_arrow_is_refused_in_files_too(name: str, folder: str) -> None:
    for suffix, table in list_stored(name, folder):
        if suffix == ".parquet" and name == "arrow dictionary of duration":  # which it stores as numbers
            continue
        with pytest.raises(InputError, match=r"^column 'col' (holds|is) .*leave it out with --drop col"):
            Task.from_table(table, Roles("y"))
        for roles in (Roles("y", drop=["col"]), Roles("y", features=["num"])):
            assert np.array_equal(Task.from_table(table, roles).X[:, 0], NUMBERS)


def list_stored(name: str, folder: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield a table with a column, and the same as it is read from each kind of file that can hold it."""
    table = make_frame(EVERY[name]).append_column("y", pa.array(Y))
    yield "", table
    for suffix, write in ((".parquet", parquet.write_table), (".feather", feather.write_feather)):
        try:
            write(table, f"{folder}/table{suffix}")
        except (pa.ArrowException, OSError):
            continue
        yield suffix, read(f"{folder}/table{suffix}").learn


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
    assert "'group' has no group in 5 of 40 rows, the first in row 4" in text
    with pytest.raises(InputError, match=r"empty cells, the first in row 4|column of w"):
        Task.of(NUMBERS[:, None], Y, sample_weight=EVERY[name])


def test_groups_that_one_float_would_be_are_told_apart() -> None:
    names = [Decimal(10**30 + i // 4).scaleb(-2, Context(prec=40)) for i in range(N)]
    table = pa.table({"num": NUMBERS, "y": Y, "g": pa.array(names, pa.decimal128(38, 2))})
    assert Task.from_table(table, Roles("y", group="g")).row_units.tolist() == [i // 4 for i in range(N)]


def test_what_is_no_column_is_no_target_group_or_weight(folder: str) -> None:
    table = pa.table({"num": NUMBERS, "y": Y, "col": LISTS})
    parquet.write_table(table, f"{folder}/held.parquet")
    held = read(f"{folder}/held.parquet").learn
    for roles in (Roles("col"), Roles("y", group="col"), Roles("y", weight="col")):
        with pytest.raises(InputError, match="column 'col' holds list<element: int64>, which cannot be read"):
            Task.from_table(held, roles)


STUDY = {"learner": "tree", "k": (3,), "n_splits": 2}
PLAIN = pa.table({"num": NUMBERS, "col": VALUES["quarters"]})


@cache
def learn_plain() -> tuple[Any, CKCVClassifier]:
    return run(Study.of(**STUDY), PLAIN, Y), CKCVClassifier(**STUDY).fit(PLAIN, Y)


def use(X: Callable[[], Any]) -> list[Callable[[], Any]]:
    """Return the ways in which X is learned from and predicted."""
    result, fitted = learn_plain()
    return [
        lambda: run(Study.of(**STUDY), X(), Y).predict(PLAIN),
        lambda: CKCVClassifier(**STUDY).fit(X(), Y).predict(PLAIN),
        lambda: evaluate(X(), Y, learner="tree", resampling="kfold:2").entries[0].totals,
        lambda: result.predict(X()),
        lambda: fitted.predict(X()),
    ]


@pytest.mark.parametrize(
    "X",
    [
        lambda: pl.from_arrow(PLAIN),
        lambda: pl.from_arrow(PLAIN).lazy(),
        lambda: PLAIN.to_batches()[0],
        lambda: PLAIN.to_reader(),
        lambda: dataset.dataset(PLAIN),
        lambda: dataset.dataset(PLAIN).scanner(),
        lambda: PLAIN.to_pandas().astype(pd.SparseDtype("float", 0.0)),
        lambda: PLAIN.set_column(1, "col", PLAIN["col"].cast(pa.float16())),
        lambda: PLAIN.set_column(1, "col", PLAIN["col"].cast(pa.decimal128(38, 2))),
    ],
)
def test_rows_are_the_same_by_every_entrance(X: Callable[[], Any]) -> None:
    for way, plain in zip(use(X), use(lambda: PLAIN), strict=True):
        assert np.array_equal(way(), plain())


@pytest.mark.parametrize(
    "name", ["pandas objects of mixed types", "pandas category of Interval", "polars Int128", "arrow map"]
)
def test_a_refusal_is_the_same_by_every_entrance(name: str) -> None:
    for way in use(lambda: make_frame(EVERY[name])):
        with pytest.raises(InputError, match=r"^column 'col' holds "):
            way()


@pytest.mark.parametrize("role", ["y", "groups", "sample_weight"])
def test_another_order_of_the_index_is_refused_by_every_entrance(role: str) -> None:
    X, order = PLAIN.to_pandas(), np.random.default_rng(0).permutation(N)
    given = {
        "y": pd.Series(Y),
        "groups": pd.Series(np.arange(N) // 4),
        "sample_weight": pd.Series(NUMBERS + 1),
    }
    asked = {"y": given["y"], role: given[role].iloc[order]}
    for learn in (
        lambda **asked: run(Study.of(**STUDY), X, **asked),
        lambda **asked: evaluate(X, learner="tree", **asked),
        lambda **asked: CKCVClassifier(**STUDY).fit(X, **asked),
        lambda **asked: Task.of(X, **asked),
    ):
        with pytest.raises(InputError, match=rf"the index of {role} has .*: give {role}\.loc\[X\.index\]"):
            learn(**asked)
