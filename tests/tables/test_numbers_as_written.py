"""Text that may be numbers: a mark or a minus of several forms, codes, and cells that are none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import Amount, DeclaredTypes, split_amount
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.task import Roles, Task

N = 24
AMOUNTS = ["$28,773", "$1,250", "$3,999"]


def write(place: Path, columns: dict[str, list[str]]) -> Path:
    """Write a table with columns of these cells, by turns, whole numbers and labels."""
    every = {**columns, "z": [str(i) for i in range(5)], "y": ["p", "q", "p"]}
    rows = [";".join(cells[i % len(cells)] for cells in every.values()) for i in range(N)]
    place.write_text("\n".join([";".join(every), *rows, ""]), encoding="utf-8")
    return place


def learn(folder: Path, cells: list[str], asked: DeclaredTypes | None = None) -> Task:
    return read_task(write(folder / "a.csv", {"x": cells}), asked=asked or DeclaredTypes())[0]


def refuse(folder: Path, cells: list[str], asked: DeclaredTypes | None = None) -> str:
    with pytest.raises(InputError) as refused:
        learn(folder, cells, asked)
    return str(refused.value)


@pytest.mark.parametrize("other", [["22.4%", "5.1%"], ["3.14", "2"], ["$1,234.50", "$0.99"], ["0.125", "NA"]])
@pytest.mark.parametrize("cells", [AMOUNTS, [text[1:] for text in AMOUNTS]])
def test_a_comma_beside_decimal_points_is_of_thousands(
    cells: list[str], other: list[str], tmp_path: Path
) -> None:
    task = read_task(write(tmp_path / "a.csv", {"x": cells, "other": other}))[0]
    assert task.X[:3, 0].tolist() == [28773, 1250, 3999]
    alone = read(
        write(tmp_path / "b.csv", {"x": [*cells, "12"], "other": ["7%" if "%" in other[0] else "7"]})
    )
    assert task.read(alone.learn).X[:4, 0].tolist() == [28773, 1250, 3999, 12]  # whatever the others are
    numbers = Task.from_table(
        read(tmp_path / "a.csv").learn, Roles("x", features=["other", "z"], numbers=True)
    )
    assert numbers.y[:3].tolist() == [28773, 1250, 3999]


@pytest.mark.parametrize(
    "other", [["3.142", "5.125"], ["7", "8"], ["a.b", "1.5"], ["23.11.2026", "1.1.2025"]]
)
def test_where_nothing_else_says_what_a_comma_is_it_is_asked(other: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'28,773', whose comma may be .* say --thousands ,"):
        read_task(write(tmp_path / "a.csv", {"x": AMOUNTS, "other": other}))


@pytest.mark.parametrize(
    "cells",
    [["-1234.5", "0.25"], ["-1,234.50", "0.25"], ["-1234,5", "0,25"], ["-1234.5%", "0.25%"],
     ["-$1,234.50", "$0.25"], ["$-1,234.50", "$0.25"], ["-1234.5", "2.5e-1"]],
)  # fmt: skip
def test_a_minus_of_its_own_sign_is_a_minus(cells: list[str], tmp_path: Path) -> None:
    task = learn(tmp_path, [text.replace("-", "\u2212") for text in cells])
    assert task.X[:2, 0].tolist() == [-1234.5, 0.25]
    plain = learn(tmp_path, cells)
    assert np.array_equal(plain.X, task.X)
    assert (plain.salt, plain.digest) == (task.salt, task.digest)
    later = read(write(tmp_path / "a.csv", {"x": [text.replace("-", "\u2212") for text in cells]})).learn
    assert np.array_equal(plain.rows_from(later), plain.X)


@pytest.mark.parametrize("asked", [DeclaredTypes(), DeclaredTypes(numeric=("x",))])
@pytest.mark.parametrize(
    ("cells", "cure"),
    [
        (["0.126D+00", "0.5D-01", "0.25"], "such as '0.126D+00' in row 1: write E for D, as in 0.126E+00"),
        (["1.5", "-.5d2"], "such as '-.5d2' in row 2: write E for D"),
        (["'0123", "'0456", "'7"], 'such as "\'0123" in row 1: write them without the apostrophe'),
        (["12", "'3,5'"], "such as \"'3,5'\" in row 2: write them without the apostrophe"),
    ],
)
def test_numbers_of_other_programs_are_asked_about(
    cells: list[str], cure: str, asked: DeclaredTypes, tmp_path: Path
) -> None:
    said = refuse(tmp_path, cells, asked)
    assert cure in said
    assert "--categorical x" in said
    assert learn(tmp_path, cells, DeclaredTypes(categorical=("x",))).schema[0].levels == tuple(sorted(cells))


@pytest.mark.parametrize(
    "cells", [["12E03", "1E5", "3e10"], ["12E03", " 700", "1E5"], ["1E5", "-", "2E5"], ["1E5", "NA"]]
)
def test_codes_with_an_e_are_asked_about(cells: list[str], tmp_path: Path) -> None:
    said = refuse(tmp_path, cells)
    assert f"what may be numbers or codes, such as '{cells[0]}' in row 1: say --numeric x" in said
    assert "--categorical x" in said
    numbers = learn(tmp_path, cells, DeclaredTypes(numeric=("x",)))
    assert numbers.X[0, 0] == float(cells[0])
    known = {text.strip() for text in cells} - {"-", "NA"}
    codes = learn(tmp_path, cells, DeclaredTypes(categorical=("x",)))
    assert codes.schema[0].levels == tuple(sorted(known))
    frame = pd.DataFrame({"x": (cells * N)[:N], "z": np.arange(N) % 5})
    with pytest.raises(InputError, match="numbers or codes"):
        Task.of(frame, np.arange(N) % 2)


@pytest.mark.parametrize(
    "cells",
    [["1.2E+03", "3E+4"], ["1e-5", "3e-4"], ["1e-05", "0.5", "2e5"], ["2e+05", "100"], ["-1E5", "2E5"],
     ["1,5", "2e5"], ["0x1E5", "0x2E5"], ["1.0E5", "2E5"]],
)  # fmt: skip
def test_scientific_numbers_are_numbers(cells: list[str], tmp_path: Path) -> None:
    assert learn(tmp_path, cells).schema[0].levels == ()


def test_labels_that_are_codes_stay_as_they_are(tmp_path: Path) -> None:
    task = read_task(write(tmp_path / "a.csv", {"label": ["12E03", "3E10"]}), "label", drop=["y"])[0]
    assert task.classes == ("12E03", "3E10")


@pytest.mark.parametrize(
    ("cell", "cure", "numeric"),
    [
        (
            "x",
            "such as 'x' in row 4, its name, as in a second header: skip that line with --skip-rows",
            False,
        ),
        (
            "#DIV/0!",
            "such as '#DIV/0!' in row 4, an error in a spreadsheet: mend it there, or, only if",
            True,
        ),
        ("#WERT!", "an error in a spreadsheet", True),
        (
            "\u2014",
            "such as '\u2014' in row 4, a dash alone: write 0 if it is zero, or, if it is a gap,",
            True,
        ),
        ("high", "such as 'high' in row 4: mend it, or say --numeric x (what is none is a gap)", True),
    ],
)
def test_a_cell_that_is_no_number_is_called_what_it_is(
    cell: str, cure: str, numeric: bool, tmp_path: Path
) -> None:
    said = refuse(tmp_path, ["1", "2", "7", cell])
    assert cure in said
    assert ("--numeric x" in said) == numeric
    assert "--drop x" in said


def test_one_word_in_several_columns_is_one_question(tmp_path: Path) -> None:
    cells = {name: ["1", "2", str(i), "k.A."] for i, name in enumerate(["a", "b,c", "d"])}
    cells["other"] = ["1", "2", "n.b."]
    with pytest.raises(InputError) as refused:
        read_task(write(tmp_path / "a.csv", cells))
    said, rest = str(refused.value).split("; and ")
    assert said == (
        "columns a, b,c, d hold numbers and in some rows something else, such as 'k.A.' in row 4 of 'a': "
        "mend it, or say --numeric 'a,\"b,c\",d' (what is none is a gap), or --categorical or --drop as well"
    )
    assert rest.startswith("column 'other' holds numbers and in 8 rows something else, such as 'n.b.'")
    asked = DeclaredTypes(numeric=("a", "b,c", "d", "other"))
    assert np.isnan(read_task(tmp_path / "a.csv", asked=asked)[0].X[3, :3]).all()


# Amounts: units, spaces, apostrophes, brackets and marks between thousands


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


def write_amounts(folder: Path, cells: list[str], name: str = "table.csv", separator: str = ";") -> Path:
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
    task = read_task(write_amounts(tmp_path, FORMS[name]), target="label")[0]
    sign = -1.0 if name[0] in "-(" else 1.0
    assert task.X[:3, 1].tolist() == [sign * 1234.5, sign * 12.25, sign * 7000.0]
    read_again = task.read(read(write_amounts(tmp_path, FORMS[name], "new.csv")).learn)
    assert np.array_equal(read_again.X, task.X)


def test_points_between_thousands_are_said_where_a_table_would_read_decimals(tmp_path: Path) -> None:
    path = write_amounts(tmp_path, ["6.732", "5.100", "1.999"])
    assert read_task(path, target="label")[0].X[0, 1] == 6.732
    task = read_task(path, target="label", asked=DeclaredTypes(thousands="."))[0]
    assert task.X[:3, 1].tolist() == [6732.0, 5100.0, 1999.0]
    assert np.array_equal(task.read(read(path).learn).X, task.X)


@pytest.mark.parametrize("cells", [["6,732", "5,100", "1,999"], ["$6,732", "$5,100", "$1,999"]])
def test_a_mark_that_does_not_tell_is_asked_about_and_said(cells: list[str], tmp_path: Path) -> None:
    path = write_amounts(tmp_path, cells, "table.tsv", separator="\t")
    with pytest.raises(InputError, match="say --thousands , if it is that of thousands"):
        read_task(path, target="label")
    task = read_task(path, target="label", asked=DeclaredTypes(thousands=","))[0]
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


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["$5", "7 €", "$9"], r"amounts in several units, such as '\$9' and '7 €'.*--categorical amount"),
        (["$1,234.5", "$1.234,5", "$7"], r"points and commas differ in meaning.*--categorical amount"),
        (["5%", "7", "8"], "holds numbers and in 4 rows something else, such as '5%'"),
    ],
)
def test_amounts_that_are_asked_about(cells: list[str], why: str, tmp_path: Path) -> None:
    path = write_amounts(tmp_path, cells)
    with pytest.raises(InputError, match=why):
        read_task(path, target="label")
    asked = DeclaredTypes(categorical=("amount",))
    assert len(read_task(path, target="label", asked=asked)[0].schema[1].levels) == 3


@given(st.floats(-1e9, 1e9), st.sampled_from(["$", "€", "%", "EUR", "£"]), st.booleans())
def test_a_unit_before_or_behind_changes_nothing(value: float, unit: str, before: bool) -> None:
    number = f"{abs(value):.2f}"
    sign = "-" if value < 0 else ""
    text = f"{sign}{unit}{number}" if before else f"{sign}{number} {unit}"
    assert split_amount(text) == Amount(unit, f"{sign}{number}", False)
    assert split_amount(number) is None
