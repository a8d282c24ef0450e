"""Amounts: units, spaces, apostrophes, brackets and marks between thousands."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import Amount, DeclaredTypes, split_amount
from ckcv_ray.tables.task import read, read_task

FORMS = {  # how 1234.5, 12.25 and 7000 are written
    "%": ["1234.5%", "12.25%", "7000 %"],
    "$": ["$1,234.50", "$12.25", "$7,000.00"],
    "-$": ["-$1,234.50", "$-12.25", "-$7,000.00"],
    "() $": ["($1,234.50)", "($12.25)", "($7,000.00)"],
    "€ after": ["1.234,50 €", "12,25 €", "7.000,00 €"],
    "€ with spaces": ["1 234,50 €", "12,25 €", "7\u202f000,00 €"],
    "EUR": ["EUR 1234.50", "EUR 12.25", "EUR 7000"],
    "CHF": ["CHF 1'234.50", "CHF 12.25", "CHF 7’000"],
    "spaces alone": ["1 234.50", "12.25", "7\u00a0000"],
}


def write(folder: Path, cells: list[str], name: str = "table.csv", separator: str = ";") -> Path:
    """Write a table with a column of these cells, twice over, and a column of numbers."""
    every = cells * 4
    labels = ["no", "yes"] * (len(every) // 2)
    lines = [f"x{separator}amount{separator}label"]
    rows = enumerate(zip(every, labels, strict=True))
    lines += [separator.join((str(i), cell, label)) for i, (cell, label) in rows]
    path = folder / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMS)
def test_amounts_of_one_unit_are_numbers(name: str, tmp_path: Path) -> None:
    task = read_task(write(tmp_path, FORMS[name]), target="label")[0]
    sign = -1.0 if name[0] in "-(" else 1.0
    assert task.X[:3, 1].tolist() == [sign * 1234.5, sign * 12.25, sign * 7000.0]
    read_again = task.read(read(write(tmp_path, FORMS[name], "new.csv")).learn)
    assert np.array_equal(read_again.X, task.X)


@pytest.mark.parametrize(
    ("cell", "bad"), [("€ 5", True), ("5%", True), ("$5", False), ("5", False), ("$", True)]
)
def test_a_new_row_in_another_unit_cannot_be_judged(cell: str, bad: bool, tmp_path: Path) -> None:
    task = read_task(write(tmp_path, FORMS["$"]), target="label")[0]
    rows = task.read(read(write(tmp_path, [cell, "$7,000.00"], "new.csv")).learn)
    assert rows.bad[:2].tolist() == [bad, False]
    assert bad or rows.X[0, 1] == 5.0


def test_several_units_are_asked_about(tmp_path: Path) -> None:
    path = write(tmp_path, ["$5", "7 €", "$9"])
    why = r"amounts in several units, such as '\$9' and '7 €'.*--categorical amount"
    with pytest.raises(InputError, match=why):
        read_task(path, target="label")
    asked = DeclaredTypes(categorical=("amount",))
    assert len(read_task(path, target="label", asked=asked)[0].schema[1].levels) == 3


@pytest.mark.parametrize("cells", [["6,732", "5,100", "1,999"], ["$6,732", "$5,100", "$1,999"]])
def test_a_mark_that_does_not_tell_is_asked_about_and_said(cells: list[str], tmp_path: Path) -> None:
    path = write(tmp_path, cells, "table.tsv", separator="\t")
    with pytest.raises(InputError, match="say --thousands , if it is that of thousands"):
        read_task(path, target="label")
    task = read_task(path, target="label", asked=DeclaredTypes(thousands=","))[0]
    assert task.X[:3, 1].tolist() == [6732.0, 5100.0, 1999.0]
    assert np.array_equal(task.read(read(path).learn).X, task.X)


def test_points_between_thousands_are_said_where_a_table_would_read_decimals(tmp_path: Path) -> None:
    path = write(tmp_path, ["6.732", "5.100", "1.999"])
    assert read_task(path, target="label")[0].X[0, 1] == 6.732
    task = read_task(path, target="label", asked=DeclaredTypes(thousands="."))[0]
    assert task.X[:3, 1].tolist() == [6732.0, 5100.0, 1999.0]
    assert np.array_equal(task.read(read(path).learn).X, task.X)


@pytest.mark.parametrize(
    "text",
    [
        *("A12", "12A", "12-13", "1 2 3", "1'23", "$", "%", "12 kg", "$5$", "3,4,5", "(5", "--5", "5 USDX"),
        *("12:30", "1/2", "ICU 12", "#5", "LHR101", "5", "1,5"),
    ],
)
def test_what_is_no_amount(text: str) -> None:
    assert split_amount(text) is None


@given(st.floats(-1e9, 1e9), st.sampled_from(["$", "€", "%", "EUR", "£"]), st.booleans())
def test_a_unit_before_or_behind_changes_nothing(value: float, unit: str, before: bool) -> None:
    number = f"{abs(value):.2f}"
    sign = "-" if value < 0 else ""
    text = f"{sign}{unit}{number}" if before else f"{sign}{number} {unit}"
    assert split_amount(text) == Amount(unit, f"{sign}{number}", False)
    assert split_amount(number) is None


def test_categories_stay_categories(tmp_path: Path) -> None:
    """Codes that begin or end with letters are no amounts."""
    task = read_task(write(tmp_path, ["LHR 100", "JFK 200", "LHR 100"]), target="label")[0]
    assert task.schema[1].levels == ("JFK 200", "LHR 100")


def test_some_cells_with_a_unit_are_what_is_no_number_here(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds numbers and in 4 rows something else, such as '5%'"):
        read_task(write(tmp_path, ["5%", "7", "8"]), target="label")


def test_amounts_written_in_two_ways_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"points and commas differ in meaning.*--categorical amount"):
        read_task(write(tmp_path, ["$1,234.5", "$1.234,5", "$7"]), target="label")
