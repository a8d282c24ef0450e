"""Cells: how they are written and interpreted, which are gaps, labels in several forms, and new cells.

A new cell is read as it was learned: it has the same value, or it cannot be judged, or is asked about.
"""

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import limit_examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from ckcv_ray import CKCVClassifier, Execution, Job, Study, load_run, verify
from ckcv_ray.errors import InputError, write_option
from ckcv_ray.runs.later import compare, watch
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.columns import (
    FIRST_DAY,
    NOTHING_ASKED,
    Cells,
    DeclaredTypes,
    cast_numbers,
    declare_cells,
    parse_date,
    parse_number,
    read_moments,
)
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.read import read_file
from ckcv_ray.tables.roles import ClassTarget, Roles
from ckcv_ray.tables.task import Task, make_test_rows, read_cell_values, read_distinct

N = 24
NAN, DAY = np.nan, 86_400_000
CATEGORICAL, NUMERIC, DATE = (DeclaredTypes(**{kind: ("x",)}) for kind in ("categorical", "numeric", "date"))
COMMAS, POINTS = DeclaredTypes(thousands=","), DeclaredTypes(thousands=".")
EITHER = "whose ',' may mark decimals or thousands: say --thousands ,"
PLAIN = ("3", "4")
TIMES = ("2026-01-01 10:00", "2026-02-01 11:00")
NAME = "the patient's, first"  # which is quoted after an option


class Case(NamedTuple):
    """A column x, its cells in turn: text of a CSV file, or the content of an Arrow column."""

    cells: Sequence[Any]
    expected: list[float] | tuple[str, ...] | str  # numbers; levels; a part of the refusal
    asked: DeclaredTypes = NOTHING_ASKED
    other: Sequence[str] = PLAIN  # cells of another column, which may say what a mark is


AMOUNTS = {  # how 1234.5, 12.25 and 7000 are written
    "() $": ["($1,234.50)", "($12.25)", "($7,000.00)"],
    "€ after": ["1.234,50 €", "12,25 €", "7.000,00 €"],
    "€ with spaces": ["1 234,50 €", "12,25 €", "7\u202f000,00 €"],
    "CHF": ["CHF 1'234.50", "CHF 12.25", "CHF 7’000"],
}
CASES = {
    "decimal commas": Case(pa.array(["1,5", "?", "1.000,25", " -3,0 "]), [1.5, NAN, 1000.25, -3]),
    "to the base 16": Case(["0x1F", "7", "0x00"], [31, 7, 0]),
    "exponents of commas": Case(["1,5e3", "2", "0,5"], [1500, 2, 0.5]),
    "typed days as numbers": Case([19700102, 19691231], [DAY, -DAY], DATE),
    # what is said of them
    "categories with gaps": Case([3.0, None, 10.0], ("10", "3"), CATEGORICAL),
    "days as numbers": Case(["19700102", "19691231"], [DAY, -DAY], DATE),
    "points of thousands": Case(["6.732", "5.100"], [6732, 5100], POINTS),
    # a comma beside decimal points is of thousands; where nothing says so it is asked about
    "beside gaps": Case(["28,773", "1,250"], [28773, 1250], other=["0.125", "NA"]),
    "beside doubt": Case(["$28,773", "$1,250"], f"'28,773', {EITHER}", other=["3.142", "5.125"]),
    "beside nothing": Case(["28,773", "1,250"], f"'28,773', {EITHER}"),
    "said": Case(["28,773", "1,250"], [28773, 1250], COMMAS),
    # a minus of its own sign, and scientific numbers
    "minus": Case(["\u22121234.5", "0.25"], [-1234.5, 0.25]),
    "codes or numbers": Case(["12E03", " 700", "1E5"], "or codes, such as '12E03' in row 1: say --numeric"),
    "no codes": Case(["12E03", "700", "1E5"], [12000, 700, 1e5], NUMERIC),
    # amounts
    **{name: Case(cells, [-1234.5, -12.25, -7000] if name[0] in "-(" else [1234.5, 12.25, 7000])
       for name, cells in AMOUNTS.items()},
    "several units": Case(["$5", "7 €", "$9"], "units or forms, such as '$5' and '7 €'"),
    "several ways": Case(["$1.234,50", "$1,234.50", "$7,000.25"], "as '$1,234.50' and '$1.234,50': write"),
    "odd ways": Case(["$0,123,456", "$1,234,5"], "forms, such as '$0,123,456' and '$1,234,5': write all"),
    # numbers and times as other programs write them
    **{cells[0]: Case(cells, f"numbers or times, such as {cells[0]!r} in row 1: write") for cells in (
        ["0.126D+00", "0.5D+01"], ["0.25D-3", "7", "0.5"], ["'12", "'13", "'15.5"],
        [f"{TIMES[0]} CET", f"{TIMES[1]} Europe/Rome"])},
    "some zones": Case([*TIMES, f"{TIMES[0]} CET"], "in 8 rows something else, such as '2026-01-01 10:00 C"),
    "years among words": Case(["'98", "old", "new"], ("'98", "new", "old")),
    "12 hours": Case([f"{time} AM" for time in TIMES], tuple(f"{time} AM" for time in TIMES)),
    # what is no number, no amount and no date
    "no amounts": Case(["$", "(5", "12 kg", "5 USDX"], ("$", "(5", "12 kg", "5 USDX")),
    "nan of Arrow": Case(["nan(1)", "2", "3"], "something else, such as"),
    "numbers that are no days": Case(["1", "2", "3"], "not all dates such as 20261123", DATE),
    "small numbers": Case([1e-200, 7e-200], "has 7e-200 in row 2, the largest: fix it (mag"),
    "small numbers and gaps": Case([1e-200, None, 7e-200], "has 7e-200 in row 3, the largest: fix it (mag"),
}  # fmt: skip


def write(place: Path, columns: dict[str, Sequence[str]], n: int = N) -> Path:
    """Write a table of n rows with columns of these cells in turn, whole numbers and labels."""
    every = {**columns, "z": [str(i) for i in range(5)], "y": ["p", "q", "p"]}
    rows = [";".join(cells[i % len(cells)] for cells in every.values()) for i in range(n)]
    place.write_text("\n".join([";".join(every), *rows, ""]), encoding="utf-8")
    return place


def tabulate(place: Path, cells: Sequence[str] | pa.Array) -> pa.Table:
    """Return a table with a column x of these cells; those that have a type keep it, others are read."""
    if isinstance(cells, pa.Array):
        return tabulate(place, [""] * len(cells)).set_column(0, "x", cells)
    return read(write(place, {"x": cells}, len(cells))).learn


def make(folder: Path, case: Case) -> pa.Table:
    if isinstance(case.cells, list) and all(isinstance(cell, str) for cell in case.cells):
        return read(write(folder / "a.csv", {"x": case.cells, "other": case.other})).learn
    column = pa.concat_arrays([pa.array(case.cells)] * N).slice(0, N)
    return pa.table({"x": column, "z": np.arange(N) % 5, "y": ["p", "q", "p"] * (N // 3)})


@pytest.mark.parametrize("name", CASES)
def test_a_column_is_understood_or_refused_with_the_way_out(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    columns = make(tmp_path, case)
    if isinstance(case.expected, str):
        with pytest.raises(InputError, match=r"^column 'x' ") as refused:
            Task.from_table(columns, Roles("y"), case.asked)
        assert case.expected in str(refused.value)
        assert any(f"--{option} x" in str(refused.value) for option in ("drop", "date"))
        dropped = Task.from_table(columns, Roles("y", drop=["x"]))
        assert "x" not in dropped.features
        advised = re.findall(r"--(\w+) x\b", str(refused.value))
        asked = DeclaredTypes(*((NAME,) if value == ("x",) else value for value in case.asked))
        named = columns.rename_columns([NAME, *columns.column_names[1:]])
        with pytest.raises(InputError) as refused:
            Task.from_table(named.replace_schema_metadata(columns.schema.metadata), Roles("y"), asked)
        assert all(write_option(option, NAME) in str(refused.value) for option in advised)
        return
    task = Task.from_table(columns, Roles("y"), case.asked)
    if isinstance(case.expected, tuple):
        assert task.schema[0].levels == case.expected
    else:
        assert task.schema[0].levels == ()
        assert np.array_equal(task.X[:, 0], np.resize(case.expected, N), equal_nan=True)
    new = columns.select(["x", *task.features[1:]])
    parts = [new, *(new.slice(i, 1) for i in range(min(N, len(case.cells))))]
    for rows, start in zip(parts, [0, *range(N)], strict=False):  # all of them, and each alone
        found = task.read(declare_cells(rows, thousands=case.asked.thousands))
        assert np.array_equal(found.X, task.X[start : start + len(rows)], equal_nan=True)
        assert not found.bad.any()
        assert not found.unseen


def test_marks_hold_for_a_target_of_numbers_and_a_minus_has_no_part_in_the_salt(tmp_path: Path) -> None:
    cells = {"x": ["$28,773", "$1,250"], "other": ["22.4%", "5.1%"]}
    columns = read(write(tmp_path / "a.csv", cells)).learn
    numbers = Task.from_table(columns, Roles("x", features=["other", "z"], numbers=True))
    assert numbers.y[:2].tolist() == [28773, 1250]
    rows = read(write(tmp_path / "a.csv", {"x": ["1.500", "2.750"], "w": ["3.000", "4.000"]})).learn
    said = Task.from_table(rows, Roles("x", ["z"], weight="w", numbers=True), DeclaredTypes(thousands="."))
    assert (said.y[:2].tolist(), said.weighting.named[:2].tolist()) == ([1500, 2750], [3000, 4000])
    plain, own = (Task.from_table(make(tmp_path, Case([f"{sign}1234.5", "0.25"], ""))) for sign in "-\u2212")
    assert (plain.salt, plain.digest) == (own.salt, own.digest)


def test_codes_stay_as_they_are_in_labels(tmp_path: Path) -> None:
    task = read_task(write(tmp_path / "a.csv", {"label": ["12E03", "3E10"]}), "label", drop=["y"])[0]
    assert task.classes == ("12E03", "3E10")


def test_a_name_that_begins_with_a_dash_can_be_pasted_as_an_option() -> None:
    assert shlex.split(write_option("group", "-a b")) == ["--group=-a b"]


NAMIBIA = DeclaredTypes(keep_values=("Na",))  # in any case of letters
COUNTRIES = ["NA", "ZA", "", "DE"] * 10
DRINKS = ["none", "some", "much", "some", "none"] * 8


def frame(y: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(40) % 7 / 2, "country": COUNTRIES, "drink": DRINKS, "y": y})


def write_frame(rows: pd.DataFrame, name: str, folder: Path) -> Path:
    path = folder / name
    {".csv": rows.to_csv, ".parquet": rows.to_parquet, ".xlsx": rows.to_excel}[path.suffix](path, index=False)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.xlsx"])
def test_each_reader_hands_over_the_words_and_they_are_gaps_unless_they_are_kept(name, tmp_path):
    path = write_frame(frame(["yes", "no"] * 20), name, tmp_path)
    cells = read_file(path)["country"].to_pylist()
    assert [cell or "" for cell in cells] == COUNTRIES
    task, _ = read_task(path)
    assert task.schema[1].levels == ("DE", "ZA")
    assert [found.describe() for found in task.gap_words] == [
        "20 of 40 rows (50 %), with 'NA' in 10 of them (to keep such text, say --keep-values NA)",
        "16 of 40 rows (40 %), with 'none' in 16 of them (to keep such text, say --keep-values none)",
    ]
    kept, _ = read_task(path, asked=NAMIBIA)
    assert kept.schema[1].levels == ("DE", "NA", "ZA")
    assert np.isnan(kept.X[:, 1]).tolist() == [country == "" for country in COUNTRIES]
    assert kept.schema[2].levels == ("much", "some")
    assert kept.salt == task.salt
    assert kept.digest != task.digest


def test_a_kept_word_among_numbers_is_asked_about(tmp_path: Path) -> None:
    rows = frame(["yes", "no"] * 20)
    rows.loc[3, "x"] = None
    rows.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    with pytest.raises(InputError, match="'x' holds numbers and in 1 row something else, such as 'NA' in"):
        read_task(tmp_path / "t.csv", asked=NAMIBIA)
    for asked in (NAMIBIA, NAMIBIA._replace(drop_unlabelled=True)):
        with pytest.raises(InputError, match="'x' has something that is not a number, such as 'NA' in"):
            Task.from_table(read_file(tmp_path / "t.csv"), Roles("x", numbers=True), asked)


def test_labels_that_are_words_are_counted_and_may_be_kept() -> None:
    columns = pa.Table.from_pandas(frame(y=["yes", "no", "NA", "no", ""] * 8))
    with pytest.raises(InputError, match=r"16 of 40 rows \(40 %\), with 'NA' in 8 of them .*in row 3: fix"):
        Task.from_table(columns)
    dropped = DeclaredTypes(drop_unlabelled=True)
    task = Task.from_table(columns, asked=dropped._replace(keep_values=("NA",)))
    assert (task.classes, task.n) == (("NA", "no", "yes"), 32)
    less = Task.from_table(columns, asked=dropped)
    assert (less.classes, less.n) == (("no", "yes"), 24)
    assert less.make_salt(columns) == less.salt != task.salt == task.make_salt(columns)


@pytest.mark.slow
def test_later_tables_are_read_as_the_one_that_was_learned_from(tmp_path: Path) -> None:
    labels = ["NA" if country == "NA" else "yes" if country == "ZA" else "no" for country in COUNTRIES]
    table = write_frame(frame(y=labels), "t.csv", tmp_path)
    task, _ = read_task(table, asked=NAMIBIA, drop=["drink"])
    run = tmp_path / "run"
    run_job(Job(Study.of(learner="tree", k=(3,), n_splits=3), task, run), Execution("serial"))
    assert verify(run, table=table).ok
    rows = frame(y=labels).assign(id=[f"p{i}" for i in range(40)], prediction=labels)
    new = read_file(write_frame(rows.assign(x=rows["x"] + 0.1), "n.csv", tmp_path))
    loaded = load_run(run)
    assert loaded.predict(new, by="full").tolist() == labels
    assert loaded.task.find_labelled(new).all()
    assert [found["units"] for found in watch(run, new).to_json()["findings"]] == [40, 10, 20, 10]
    assert compare(run, new, predictions="prediction").to_json()["rows"] == 40


JOIN, APART = DeclaredTypes(labels="join"), DeclaredTypes(labels="apart")


WAYS = {  # labels, two that are named, and the classes if they are joined
    "ties": (["no", "NO", "yes", "yes"], ("NO", "no"), ("NO", "yes")),
    "numbers": (["01", "1", "1", "2"], ("1", "01"), (1, 2)),
    "points": ([">50K", ">50K.", ">50K", "b"], (">50K", ">50K."), (">50K", "b")),
    "unseen": (["a\u200bb", "ab", "ab", "c"], ("ab", "a\u200bb"), ("ab", "c")),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("file", ["table.csv", "table.parquet"])
def test_labels_of_several_forms_are_asked_about_joined_or_kept(name: str, file: str, tmp_path: Path) -> None:
    labels, named, classes = WAYS[name]
    forms = [label.strip(" ") for label in labels * 3]
    source = write_frame(pd.DataFrame({"x": np.arange(len(forms)) / 2, "y": labels * 3}), file, tmp_path)
    with pytest.raises(InputError) as refused:
        read_task(source)
    counted = (f"{form!r} ({forms.count(form)} rows)" for form in named)
    assert all(part in str(refused.value) for part in (*counted, "--labels join", "--labels apart"))
    task = read_task(source, asked=JOIN)[0]
    assert list(map(str, task.classes)) == list(map(str, classes)) or file.endswith("parquet")
    kept = read_task(source, asked=APART)[0]
    assert set(map(str, kept.classes)) == set(forms)
    assert task.n_classes == len(kept.classes) - 1 == 2
    assert [kept.classes[number] for number in kept.y] == forms
    restored = Task.restore(kept.columns(), Roles("y"), kept.schema, salt=kept.salt)
    assert (restored.classes, restored.digest) == (kept.classes, kept.digest)
    for known in (task, kept):  # new rows are read as these were
        assert np.array_equal(make_test_rows(read(source).learn, known).y, known.y)


def test_an_estimator_takes_labels_as_they_are() -> None:
    X, y = np.random.default_rng(0).normal(size=(24, 2)), np.array(["a", "A"] * 12)
    fitted = CKCVClassifier(k=(3,), n_splits=2, learner="tree", backend="serial").fit(X, y)
    assert fitted.classes_.tolist() == ["A", "a"]


def test_in_python_labels_are_asked_about_too() -> None:
    X, y = np.arange(12.0)[:, None], ["a", "A", "b"] * 4
    assert Task.of(X, y, asked=JOIN).classes == ("A", "b")
    with pytest.raises(InputError, match="keep_values='unknown': expected words that are taken for empty"):
        Task.of(X, y, asked=DeclaredTypes(keep_values=("NA", "unknown")))
    with pytest.raises(InputError, match="labels=join is for classes, and numbers are predicted"):
        Task.of(X, X[:, 0] ** 2, asked=JOIN, numbers=True)
    with pytest.raises(InputError, match="the target 'y' is 2 in every row: there is nothing to learn"):
        Task.of(X, [2.0] * 12, numbers=True)


SPELT = st.sampled_from(["a", "A", " a", "a a", "b", "1", "1.0", "01", "NA", ""])


@given(st.lists(SPELT, min_size=8, max_size=30))
def test_rows_with_a_label_are_learned_from_and_keep_their_class(labels: list[str]) -> None:
    """Whatever is joined, no row changes its class but to one that is written alike."""
    columns = pa.table({"x": np.arange(len(labels)) / 2, "y": labels})
    asked = DeclaredTypes(labels="join", drop_unlabelled=True)
    try:
        task = Task.from_table(columns, Roles("y"), asked, allow_singletons=True)
    except InputError:
        return
    kept = [label.strip() for label in labels if label.strip() not in ("", "NA")]
    assert task.n == len(kept)
    ways = {"A": "a", "a a": "aa", "1.0": "1", "01": "1"}
    for label, number in zip(kept, task.y.tolist(), strict=True):
        name = str(task.classes[number])
        assert ways.get(label, label) == ways.get(name, name)


@pytest.mark.parametrize("numbers", [False, True])
def test_rows_without_a_label_are_refused_or_left_out(numbers: bool) -> None:
    labels = ["?", *"1122", " null ", *"3311"]
    columns = pa.table({"x": np.arange(10) / 2, "y": labels})
    with pytest.raises(InputError, match=r"empty cells.*, the first in row 1.*--drop-unlabelled"):
        Task.from_table(columns, Roles("y", numbers=numbers))
    task = Task.from_table(columns, Roles("y", numbers=numbers), DeclaredTypes(drop_unlabelled=True))
    assert task.X[:, 0].tolist() == [i / 2 for i, label in enumerate(labels) if label.isdigit()]
    odd = columns.append_column("z", pa.array([*"1234567", "x", *"89"]))  # in row 8, row 6 of those labelled
    with pytest.raises(InputError, match=r"'x' in row 6.*\(rows without a label are not numbered\)"):
        Task.from_table(odd, Roles("y", numbers=numbers), DeclaredTypes(drop_unlabelled=True))


@pytest.mark.parametrize(
    ("cells", "new"),
    [
        (["1", "2", "A3", "A1"] * 2, pa.array([1.0, 2.0, None, 1.0])),
        (["True", "False", "no", "True"] * 2, pa.array([True, False, None, True])),
        (["S\u00e4ugling", "\u00c5", "x", "y"] * 2, pa.array(["Sa\u0308ugling", "\u212b", "y", "x"])),
        (["08:00", "10:30", "late", "08:00"] * 2, pa.array([28800, 37800, None, 28800], pa.time32("s"))),
    ],
)
def test_a_category_is_known_however_it_is_written(cells: list[str], new: pa.Array, tmp_path: Path) -> None:
    task = Task.from_table(tabulate(tmp_path / "a.csv", cells * 6), Roles("y"), CATEGORICAL)
    found = task.read(pa.table({"z": range(4), "x": new}))
    known = new.is_valid().to_numpy(zero_copy_only=False)
    assert np.array_equal(found.X[known, 0][:2], task.X[:4, 0][known][:2])
    assert not found.unseen


def test_categories_never_seen_are_told_and_two_ways_are_not_mixed_up(tmp_path: Path) -> None:
    task = Task.from_table(tabulate(tmp_path / "a.csv", ["1", "01", "x", "y"] * 6), Roles("y"), CATEGORICAL)
    found = task.read(pa.table({"z": range(4), "x": ["1", "01", "1.0", "Z"]}))
    assert found.X[:2, 0].tolist() == task.X[:2, 0].tolist()
    assert found.unseen.startswith("2 rows have a category that was never seen, such as '1.0' in column 'x'")
    assert not found.bad.any()


@pytest.mark.parametrize("labels", [["1", "2", "1.0"], pa.array([1, 2, 1]), ["01", " 2", "1"]])
def test_labels_are_known_however_they_are_written(labels):
    columns = pa.table({"y": labels})
    assert ClassTarget("y", ("1", "2", "3a")).read(columns).tolist() == [0, 1, 0]
    assert ClassTarget("y", (1, 2, 3)).read(columns).tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["pid", None])
def test_the_index_of_a_frame_and_its_file_is_learned_from_on_request_alone(name, tmp_path):
    frame = pd.DataFrame({"x": np.arange(8.0), "y": [0, 1] * 4}, index=pd.Index(range(8, 16), name=name))
    frame = frame.iloc[[3, 1, 0, 2, 7, 5, 4, 6]]  # no range
    assert Task.of(frame[["x"]], frame["y"]).features == ("x",)
    assert Task.of(frame[["x"]].reset_index(), frame["y"].tolist()).features == (name or "index", "x")
    for write_file, suffix in ((parquet.write_table, "parquet"), (feather.write_feather, "feather")):
        write_file(pa.Table.from_pandas(frame), str(tmp_path / f"t.{suffix}"))
        columns = read(tmp_path / f"t.{suffix}").learn
        assert Task.from_table(columns, Roles("y")).features == ("x",)
        if name:
            assert Task.from_table(columns, Roles("y", ["x", "pid"])).features == ("x", "pid")


WHOLE = st.from_regex(r"[+-]?\d{1,25}", fullmatch=True)
POINT = st.from_regex(r"[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][+-]?\d{1,3})?", fullmatch=True)
ODD = st.sampled_from(
    ["inf", "-Infinity", "nan", "-nan", "nan(1)", "0x1F", "1_0", "1e", "+", ".", " 1", "1 ", "1d5", "١"]
)
NUMBERS = WHOLE | POINT | st.floats().map(repr) | ODD | st.text(max_size=4)
MOMENTS = st.datetimes().map(str) | st.datetimes().map(lambda moment: moment.isoformat(timespec="minutes"))
DATES = (
    st.dates().map(str)
    | st.tuples(MOMENTS, st.sampled_from(["Z", "+01:00", "-0330", "+24", ""])).map("".join)
    | st.from_regex(r"\d{4}-[01]\d-[0-3]\d[ T][0-2]\d(:[0-6]\d(:[0-6]\d(\.\d{1,10})?)?)?Z?", fullmatch=True)
    | st.sampled_from(
        ["0000-01-01", "2024", "2024-02", "20240101", "2024-02-30", "10:00", "2024-01-01 24:00"]
    )
)


@given(st.lists(NUMBERS | DATES, min_size=1, max_size=8))
def test_a_cell_has_one_value_in_the_salt_however_its_column_is_read(cells: list[str]) -> None:
    column = pa.chunked_array([pa.array(cells)])
    for together, alone in zip(read_cell_values(column), read_distinct(column), strict=True):
        assert together.tolist() == alone.tolist()


@pytest.mark.slow
@settings(max_examples=limit_examples(300), deadline=None)
@given(texts=st.lists(NUMBERS, min_size=1, max_size=4), comma=st.booleans())
@example(texts=["nan"], comma=False)
@example(texts=["1e400", "5e-324", "-0", "0.1e1"], comma=False)
def test_what_arrow_casts_are_the_numbers_that_the_parser_reads(texts: list[str], comma: bool) -> None:
    texts = [text.replace(".", ",") for text in texts] if comma else texts
    cast = cast_numbers(pa.chunked_array([pa.array([*texts, None], pa.string())]), comma)
    if cast is not None:
        for form in ("comma",) if comma else ("", "point"):
            expected = np.array([*(parse_number(text, form) for text in texts), np.nan], np.float64)
            assert np.array_equal(cast.view(np.int64)[:-1], expected.view(np.int64)[:-1])
        assert np.isnan(cast[-1])


@pytest.mark.slow
@settings(max_examples=limit_examples(300), deadline=None)
@given(texts=st.lists(DATES, min_size=1, max_size=3))
@example(texts=["2024-01-01 10:00:00.9999", "1969-12-31 23:59:59.9999"])
@example(texts=["2262-01-01 00:00:00.999"])
@example(texts=["0000-12-31", "2024-01-01"])
@example(texts=["0001-01-01 00:00:00+01:00"])
def test_what_arrow_casts_are_the_moments_that_the_parser_reads(texts: list[str]) -> None:
    cells = Cells(pa.table({"x": [*texts, None]}).replace_schema_metadata({"decimal": ""}), "x")
    if cells.are_dates:
        *cast, gap = read_moments(cells.infer()).tolist()
        known = [None if moment < FIRST_DAY else moment for moment in cast]
        assert known == [parse_date(text) for text in texts]
        assert np.isnan(gap)


def test_what_hinders_is_named(tmp_path: Path) -> None:
    for learned, new, reason in (
        ("2026-11-{} 10:00:00", "2026-11-01 15:00:00+05:00", "date such as 2026-11-23, without a time zone"),
        ("{}.25", "1e200", "number up to 1e+150"),
    ):
        task = Task.from_table(tabulate(tmp_path / "a.csv", [learned.format(10 + i % 15) for i in range(N)]))
        found = task.read(tabulate(tmp_path / "b.csv", [new] * 3))
        assert found.reason == f"column 'x' has {new!r} in row 1, not a {reason}: fix it"


DAYS = [i % 28 + 1 for i in range(N)]
EIGHTHS = [i / 8 + 0.125 for i in range(N)]
BITS = [float(i % 2) for i in range(N)]
TEN = [datetime(2026, 11, day, 10) for day in DAYS]
MIDNIGHT = [datetime(2026, 11, day) for day in DAYS]


class Form(NamedTuple):
    """How a cell of each row is written, what it means there, and of which kind that is."""

    kind: str
    values: list[Any]
    cells: list[str] | pa.Array


FORMS = {
    "point": Form("number", EIGHTHS, [f"{x:.3f}" for x in EIGHTHS]),
    "comma": Form("number", EIGHTHS, [f"{x:.3f}".replace(".", ",") for x in EIGHTHS]),
    "percent": Form("percent", EIGHTHS, [f"{x:.3f}%" for x in EIGHTHS]),
    "dollars": Form("dollars", EIGHTHS, [f"${x:.3f}" for x in EIGHTHS]),
    "truth": Form("number", BITS, [("False", "True")[i % 2] for i in range(N)]),
    "words": Form("words", BITS, ["ab"[i % 2] for i in range(N)]),
    "naive": Form("clock", TEN, [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in TEN]),
    "zoned": Form("moment", TEN, [f"{moment:%Y-%m-%d} 15:00:00+05:00" for moment in TEN]),
    "days": Form("clock", MIDNIGHT, [f"{day:%Y-%m-%d}" for day in MIDNIGHT]),
    "dotted": Form("clock", MIDNIGHT, [f"{day:%d.%m.%Y}" for day in MIDNIGHT]),
    "floats": Form("number", EIGHTHS, pa.array(EIGHTHS)),
    "booleans": Form("number", BITS, pa.array(BITS).cast(pa.bool_())),
    "typed naive": Form("clock", TEN, pa.array(TEN)),
    "typed utc": Form("moment", TEN, pa.array(TEN, pa.timestamp("ms", "UTC"))),
    "declared": Form("words", BITS, pa.array(["ab"[i % 2] for i in range(N)]).dictionary_encode()),
}
JUDGED = [  # forms of which each is read in a column of each other
    ("floats", "booleans", "truth"),
    ("words", "declared"),
    ("zoned", "typed utc"),
    ("days", "naive", "typed naive"),
]
ONE_WAY = {("dollars", "point"), ("dollars", "floats"), ("point", "floats")}
ALL_JUDGED = {(name, name) for name in FORMS} | ONE_WAY | {p for one in JUDGED for p in product(one, one)}


@pytest.mark.slow
@pytest.mark.parametrize("learned", FORMS)
@pytest.mark.parametrize("later", FORMS)
def test_a_cell_has_the_value_that_it_had_or_cannot_be_judged(learned, later, tmp_path):
    there, here = FORMS[learned], FORMS[later]
    task = Task.from_table(tabulate(tmp_path / "a.csv", there.cells), Roles("y"))
    columns = tabulate(tmp_path / "b.csv", here.cells)
    try:
        rows = task.read(columns)
    except InputError as error:
        assert "'x'" in str(error)  # noqa: PT017
        assert (learned, later) not in ALL_JUDGED
        return
    assert not ((learned, later) in ALL_JUDGED and rows.bad.any())
    if there.kind == here.kind or (there.kind, here.kind) == ("dollars", "number"):  # in the column's unit
        dates = isinstance(here.values[0], datetime)
        values = [1000 * x.replace(tzinfo=UTC).timestamp() for x in here.values] if dates else here.values
        assert np.array_equal(rows.X[~rows.bad, 0], np.array(values)[~rows.bad])
    elif there.kind == "words":
        assert f"{N} rows have a category that was never seen" in rows.unseen
    else:
        assert rows.bad.all()


@pytest.mark.parametrize("unit", ["%", "\u2030"])
def test_a_number_without_its_unit_is_refused_with_the_cure_in_a_run_folder_too(unit, tmp_path):
    columns = tabulate(tmp_path / "a.csv", [f"{x:.3f}{unit}" for x in EIGHTHS])
    task, study = Task.from_table(columns, Roles("y")), Study.of(learner="tree", k=(3,), n_splits=3)
    result = run_job(Job(study, task, tmp_path / "run"), Execution("serial"))
    again = load_run(tmp_path / "run")
    assert again.predict(columns).tolist() == result.predict(columns).tolist()
    frame = pd.DataFrame({"x": EIGHTHS, "z": np.arange(N) % 5})
    with pytest.raises(InputError, match=f"'x' holds double, which may be .* text, such as '12.5{unit}'"):
        again.predict(frame)
    assert np.isnan(task.read(pa.table(frame.assign(x=np.nan))).X[:, 0]).all()


MANY = 40
DOUBTFUL = {  # cells learned from, and new ones: doubtful, the same number as decimals, and as thousands
    "point": ([f"{i}.{i % 10}5" for i in range(MANY)], "1.250", 1.25, 1250.0),
    "with gaps": (["1.5", "-", "", *[f"{i}.75" for i in range(MANY - 3)]], "1.250", 1.25, 1250.0),
    "dollars": ([f"${i}.50" for i in range(MANY)], "$1.250", 1.25, 1250.0),
    "euros": ([f"{i},50 €" for i in range(MANY)], "1,250 €", 1.25, 1250.0),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_cell_that_may_have_thousands_is_asked_about(name: str, tmp_path: Path) -> None:
    cells, new, decimals, thousands = DOUBTFUL[name]
    task = Task.from_table(tabulate(tmp_path / "a.csv", cells))
    assert task.schema[0].short_decimals
    rows = tabulate(tmp_path / "b.csv", [*cells, new])
    found = task.read(rows)
    assert found.bad[-1]
    if "gap" not in name:  # of which the first row is what cannot be judged
        assert f"has {new!r} in row {MANY + 1}, not a number with one or two decimals; say" in found.reason
    assert np.array_equal(found.X[:-1], task.X, equal_nan=True)
    mark = "," if "," in new else "."
    for said, value in ((mark, thousands), (",.".replace(mark, ""), decimals)):
        known = task.read(declare_cells(rows, thousands=said))
        assert known.X[-1, 0] == value
        assert np.array_equal(known.X[:-1], task.X, equal_nan=True)


def test_a_doubtful_cell_is_no_gap_of_a_lenient_column(tmp_path: Path) -> None:
    cells = [*DOUBTFUL["point"][0], "high"]
    task = Task.from_table(tabulate(tmp_path / "a.csv", cells), asked=DeclaredTypes(numeric=["x"]))
    assert task.schema[0].lenient
    assert task.schema[0].short_decimals
    found = task.read(tabulate(tmp_path / "b.csv", ["1.250", "low", "1.5"]))
    assert found.bad.tolist() == [True, False, False]
    assert np.isnan(found.X[1, 0])
