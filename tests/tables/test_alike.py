"""Two names of classes, groups or categories that would become one value are not joined unasked."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import csv, feather, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import DeclaredTypes, infer_column
from ckcv_ray.tables.limits import DECIMAL, decimal_mark
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.questions import ask_about_groups
from ckcv_ray.tables.read import read_file
from ckcv_ray.tables.task import Roles, Task

PAIRS = [
    ("01", "1"),
    ("1.0", "1"),
    ("1e3", "1000"),
    ("+7", "7"),
    ("-0", "0"),
    ("true", "TRUE"),
    ("2024-01-01 10:00", "2024-01-01 10:00:00"),
]


def write(path: Path, cells: list[str], name: str = "y") -> Path:
    """Write a table with a column of these cells, by turns, and the others that a table has."""
    columns = {"x": [str(2 * i) for i in range(24)], "y": ["0", "2"] * 12}
    columns |= {name: [cells[i % len(cells)] for i in range(24)]}
    lines = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(line) for line in lines)]) + "\n")
    return path


@pytest.mark.parametrize("pair", PAIRS[:-1], ids=str)
def test_two_labels_do_not_become_one_class(tmp_path: Path, pair: tuple[str, str]) -> None:
    other = "false" if "true" in pair else "5"
    for cells in (*pair, other), (other, *pair[::-1]):
        source = write(tmp_path / "a.csv", list(cells))
        for target in ("y", None):
            with pytest.raises(InputError) as refused:
                read_task(source, target)
            assert "the target 'y' has" in str(refused.value)
            assert all(repr(text) in str(refused.value) for text in pair)
        named = write(tmp_path / "b.csv", list(cells), "outcome")
        with pytest.raises(InputError, match="the target 'outcome' has"):
            read_task(named, "outcome")


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_two_names_do_not_become_one_group_or_category(tmp_path: Path, pair: tuple[str, str]) -> None:
    dates = "2024" in pair[0]
    others = [f"2024-02-0{i} 10:00" for i in range(1, 7)] if dates else [str(10 + i) for i in range(6)]
    source = write(tmp_path / "a.csv", [*pair, *others] if "true" not in pair else [*pair, "false"], "code")
    for asked in ({"group": "code"}, {"asked": DeclaredTypes(categorical=["code"])}):
        with pytest.raises(InputError, match="column 'code' has") as refused:
            read_task(source, "y", **asked)
        assert all(repr(text) in str(refused.value) for text in pair)


LONG = [9_300_000_000_000_000_000, 1_300_000_000_000_000_000, 93 * 10**30]


@pytest.mark.parametrize("first", LONG)
def test_names_of_many_digits_are_told_apart_to_the_last_one(tmp_path: Path, first: int) -> None:
    """Doubles would make one of a thousand of them."""
    names = [str(first + i) for i in range(8)]
    source = write(tmp_path / "a.csv", names, "code")
    task = read_task(source, "y", group="code")[0]
    assert task.groups.tolist() == [i % 8 for i in range(24)]
    task = read_task(source, "y", asked=DeclaredTypes(categorical=["code"]))[0]
    assert task.schema[1].levels == tuple(names)
    assert np.array_equal(task.rows_from(read(source).learn), task.X)
    typed = pa.table({"x": np.arange(0, 48, 2), "code": pa.array(names * 3).cast(pa.decimal128(38, 0))})
    assert np.array_equal(task.rows_from(typed), task.X)
    labels = read_task(write(tmp_path / "b.csv", names[:2]), "y")[0]
    assert [int(label) for label in labels.classes] == [first, first + 1]
    with pytest.raises(InputError, match=f"'code' has '{first}' and '0{first}'"):
        read_task(write(tmp_path / "c.csv", [*names, f"0{first}"], "code"), "y", group="code")


def test_names_of_many_digits_that_repeat_are_asked_about() -> None:
    rng = np.random.default_rng(0)
    names = [str(LONG[0] + int(i)) for i in [*range(60), *rng.integers(0, 60, 40)]]
    columns = pa.table({"value": names}).replace_schema_metadata({DECIMAL: b""})
    assert "'value' repeats: 60 values in 100 rows" in ask_about_groups(columns, ())


def test_as_a_number_they_are_one(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", ["01", "1", "5"], "code")
    assert read_task(source, "y")[0].X[:3, 1].tolist() == [1, 1, 5]
    table = read(write(tmp_path / "b.csv", ["01", "1", "5"])).learn
    assert Task.from_table(table, Roles("y", numbers=True)).y[:3].tolist() == [1, 1, 5]


def test_spaces_and_gaps_do_not_count(tmp_path: Path) -> None:
    assert read_task(write(tmp_path / "a.csv", ["1", " 1", "5 "]), "y")[0].classes == (1, 5)
    with pytest.raises(InputError, match="has empty cells"):
        read_task(write(tmp_path / "a.csv", ["1", "NA", "5", "nan"]), "y")


COLUMNS = {
    "whole numbers": ["1", "2", "", "30"],
    "numbers": ["1", "2.5", "NA", "1e5"],
    "text": ["1", "b", "", "a,b", 'a "quoted" b'],
    "truth": ["true", "False", ""],
    "days": ["2024-01-01", "2024-02-01"],
    "moments": ["2024-01-01 10:00", "2024-02-01 10:00:00"],
    "fractions": ["2024-01-01 10:00:00.5", "2024-02-01 10:00:00"],
    "times": ["10:00", "11:00:01"],
    "nothing": ["", "NA"],
    "large": ["9223372036854775807", "1"],
    "comma": ["1,5", "2"],
    "lines": ["a\nb", "c"],
    "zeros": ["01", "02"],
    "spaces": [" 1", "2 ", "3"],
}


@pytest.mark.parametrize("cells", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("separator", [",", ";"])
def test_cells_are_together_what_arrow_takes_them_for(
    tmp_path: Path, cells: list[str], separator: str
) -> None:
    source = tmp_path / "a.csv"
    table = pa.table({"x": [f"{2 * i}" for i in range(24)], " code ": (cells * 24)[:24]})
    csv.write_csv(table, source, csv.WriteOptions(delimiter=separator, quoting_style="needed"))
    columns = read_file(source)
    assert {str(kind) for kind in columns.schema.types} == {"string"}
    options = {"strings_can_be_null": True, "decimal_point": decimal_mark(columns) or "."}
    parsing = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    expected = csv.read_csv(source, None, parsing, csv.ConvertOptions(**options))
    for name in columns.column_names:
        found = infer_column(columns, name)
        arrows = expected[f" {name} " if name == "code" else name]
        assert (found.type, found.to_pylist()) == (arrows.type, arrows.to_pylist())


def test_typed_sources_keep_text_apart(tmp_path: Path) -> None:
    texts = ["01", "1"] * 12
    table = pa.table({"x": np.arange(0.0, 48, 2), "y": texts})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.feather")
    book = Workbook()
    for row in [("x", "y"), *((2 * i, "01" if i % 2 else 1) for i in range(24))]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    apart = DeclaredTypes(labels="apart")
    for name in ("a.parquet", "a.feather", "a.xlsx"):
        with pytest.raises(InputError, match=r"'01' .* and '1' .* are one value"):
            read_task(tmp_path / name, "y")
        assert read_task(tmp_path / name, "y", asked=apart)[0].classes == ("01", "1")
    assert Task.of(np.arange(24.0)[:, None], texts, asked=apart).classes == ("01", "1")


def test_true_is_no_number_in_a_workbook(tmp_path: Path) -> None:
    book = Workbook()
    for row in [("x", "y"), *((2 * i, [1.5, 1.0, True][i % 3]) for i in range(24))]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert read_task(tmp_path / "a.xlsx", "y")[0].classes == ("1", "1.5", "True")
