"""One table of columns: how their cells are written, and the numbers or levels read of them, or a refusal."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ckcv_ray.errors import InputError, write_option
from ckcv_ray.tables.columns import NOTHING_ASKED, DeclaredTypes, declare_cells
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task

N = 24
NAN, DAY = np.nan, 86_400_000
CATEGORICAL, NUMERIC, DATE = (DeclaredTypes(**{kind: ("x",)}) for kind in ("categorical", "numeric", "date"))
COMMAS, POINTS = DeclaredTypes(thousands=","), DeclaredTypes(thousands=".")
EITHER = "whose ',' may be that of decimals or of thousands: say --thousands ,"
PLAIN = ("3", "4")
NAME = "the patient's, first"  # which is quoted after an option


class Case(NamedTuple):
    """A column x, its cells by turns: text of a CSV file, or what is in an Arrow column."""

    cells: Sequence[Any]
    expected: list[float] | tuple[str, ...] | str  # numbers; levels; a part of the refusal
    asked: DeclaredTypes = NOTHING_ASKED
    other: Sequence[str] = PLAIN  # cells of another column, which may say what a mark is


def text(*cells: str | None) -> pa.Array:
    """Text of a source that has types."""
    return pa.array(cells)


AMOUNTS = {  # how 1234.5, 12.25 and 7000 are written
    "%": ["1234.5%", "12.25%", "7000 %"],
    "$": ["$1,234.50", "$12.25", "$7,000.00"],
    "() $": ["($1,234.50)", "($12.25)", "($7,000.00)"],
    "€ after": ["1.234,50 €", "12,25 €", "7.000,00 €"],
    "€ with spaces": ["1 234,50 €", "12,25 €", "7\u202f000,00 €"],
    "CHF": ["CHF 1'234.50", "CHF 12.25", "CHF 7’000"],
    "spaces alone": ["1 234.50", "12.25", "7\u00a0000"],
}
CASES = {
    "numbers as text": Case(text("1.5", "?", " 2 ", "n/a", ""), [1.5, NAN, 2, NAN, NAN]),
    "decimal commas": Case(text("1,5", "2", "1.000,25", "-3,0"), [1.5, 2, 1000.25, -3]),
    "commas of thousands": Case(text("1,000", "2,000,000.5"), [1000, 2000000.5]),
    "words": Case(text("red ", None, "blue", ""), ("blue", "red")),
    "days as text": Case(["1970-01-02", "1969-12-31"], [DAY, -DAY]),
    "days with points": Case(["02.01.1970", "31.12.1969"], [DAY, -DAY]),
    "months first": Case(["01/02/1970", "12/31/1969"], [DAY, -DAY]),
    "hours as text": Case(["1970-01-01 01:00", "1970-01-02 00:00"], [DAY / 24, DAY]),
    "to the base 16": Case(["0x1F", "7", "0x00"], [31, 7, 0]),
    "exponents of commas": Case(["1,5e3", "2", "0,5"], [1500, 2, 0.5]),
    "quotes behind a space": Case([' "1"', ' "2"'], [1, 2]),
    "quoted gaps": Case(['""', '"NA"', "1.5"], [NAN, NAN, 1.5]),
    "typed days as numbers": Case([19700102, 19691231], [DAY, -DAY], DATE),
    "zeros before": Case(["01", "1", "5"], [1, 1, 5]),
    "fractions of seconds": Case(["1970-01-01 00:00:00.5", "1970-01-02"], [500, DAY]),
    "with zones": Case(["1970-01-01T01:00:00Z", "1970-01-02T01:00:00+01:00"], [DAY / 24, DAY]),
    # what is said of them
    "categories": Case([3, 10], ("10", "3"), CATEGORICAL),
    "categories with gaps": Case([3.0, None, 10.0], ("10", "3"), CATEGORICAL),
    "categories that were numbers, with gaps": Case(["01", "2", "NA"], ("1", "2"), CATEGORICAL),
    "categories to the base 16": Case(["0x1F", "7", "0x00"], ("0", "31", "7"), CATEGORICAL),
    "truth among categories": Case(["1", "false", "false"], ("1", "false"), CATEGORICAL),
    "numbers among words": Case(["1", "2", "x", "3"], [1, 2, NAN, 3], NUMERIC),
    "days as numbers": Case(["19700102", "19691231"], [DAY, -DAY], DATE),
    "points of thousands": Case(["6.732", "5.100"], [6732, 5100], POINTS),
    "points of decimals": Case(["6.732", "5.100"], [6.732, 5.1]),
    # a comma beside decimal points is of thousands; where nothing says so it is asked about
    "beside %": Case(["$28,773", "$1,250"], [28773, 1250], other=["22.4%", "5.1%"]),
    "beside points": Case(["28,773", "1,250"], [28773, 1250], other=["3.14", "2"]),
    "beside gaps": Case(["28,773", "1,250"], [28773, 1250], other=["0.125", "NA"]),
    "beside doubt": Case(["$28,773", "$1,250"], f"'28,773', {EITHER}", other=["3.142", "5.125"]),
    "beside nothing": Case(["28,773", "1,250"], f"'28,773', {EITHER}"),
    "beside days": Case(["28,773", "1,250"], f"'28,773', {EITHER}", other=["23.11.2026", "1.1.2025"]),
    "said": Case(["28,773", "1,250"], [28773, 1250], COMMAS),
    # a minus of its own sign, and scientific numbers
    "minus": Case(["\u22121234.5", "0.25"], [-1234.5, 0.25]),
    "minus behind $": Case(["$\u22121,234.50", "$0.25"], [-1234.5, 0.25]),
    "minus in exponents": Case(["\u22121234.5", "2.5e\u22121"], [-1234.5, 0.25]),
    "scientific": Case(["1.2E+03", "3E+4"], [1200, 30000]),
    "to the base 16, with an e": Case(["0x1E5", "0x2E5"], [485, 741]),
    "codes or numbers": Case(["12E03", " 700", "1E5"], "or codes, such as '12E03' in row 1: say --numeric"),
    "codes with gaps": Case(["1E5", "-", "2E5"], "numbers or codes, such as '1E5' in row 1: say --numeric x"),
    "codes": Case(["12E03", "700", "1E5"], ("12E03", "1E5", "700"), CATEGORICAL),
    "no codes": Case(["12E03", "700", "1E5"], [12000, 700, 1e5], NUMERIC),
    # amounts
    **{name: Case(cells, [-1234.5, -12.25, -7000] if name[0] in "-(" else [1234.5, 12.25, 7000])
       for name, cells in AMOUNTS.items()},
    "several units": Case(["$5", "7 €", "$9"], "units or ways, such as '$5' and '7 €'"),
    "a share without %": Case(["5%", "7", "8"], "something else, such as '5%'"),
    # what is no number, no amount and no date
    "no amounts": Case(["$", "(5", "12 kg", "5 USDX"], ("$", "(5", "12 kg", "5 USDX")),
    "a word": Case(["1", "2", "7", "high"], "'high' in row 4: mend it, or say --numeric x"),
    "nan of Arrow": Case(["nan(1)", "2", "3"], "something else, such as"),
    "the year 0": Case(["0000-01-01", "2024-01-02", "2024-01-03"], "what is none, such as '0000-01-01'"),
    "a day that was not": Case(["2020-01-01", "2020-01-02", "2020-02-30"], "is none, such as '2020-02-30'"),
    "days or months": Case(["01/02/2020", "03/04/2020"], "such as '01/02/2020', whose month may come first"),
    "numbers that are no days": Case(["1", "2", "3"], "not all dates such as 20261123", DATE),
    "texts": Case([f"t{i}" for i in range(N)], "another text in each of its 24 rows, such as 't0'"),
    "no number": Case(pa.nulls(1, pa.float64()), "is empty"),
    "inf": Case([1.0, 2.0, float("inf")], "has inf in row 3"),
    "a large number": Case([1.0, 1.7976931348623157e308], "in row 2, the largest: fix it (magnitudes are"),
    "small numbers": Case([1e-200, 7e-200], "has 7e-200 in row 2, the largest: fix it (mag"),
}  # fmt: skip


def write(place: Path, columns: dict[str, Sequence[str]]) -> Path:
    """Write a table with columns of these cells, by turns, whole numbers and labels."""
    every = {**columns, "z": [str(i) for i in range(5)], "y": ["p", "q", "p"]}
    rows = [";".join(cells[i % len(cells)] for cells in every.values()) for i in range(N)]
    place.write_text("\n".join([";".join(every), *rows, ""]), encoding="utf-8")
    return place


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


def test_codes_are_asked_about_in_frames_and_stay_as_they_are_in_labels(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": ["12E03", "1E5", "3e10"] * 8, "z": np.arange(N) % 5})
    with pytest.raises(InputError, match="numbers or codes"):
        Task.of(frame, np.arange(N) % 2)
    task = read_task(write(tmp_path / "a.csv", {"label": ["12E03", "3E10"]}), "label", drop=["y"])[0]
    assert task.classes == ("12E03", "3E10")


def test_columns_of_one_problem_are_named_and_the_first_in_full(tmp_path: Path) -> None:
    cells = {name: ["1", "2", str(i), "k.A."] for i, name in enumerate("abcdefg")}
    with pytest.raises(InputError) as refused:
        read_task(write(tmp_path / "a.csv", cells))
    *said, last, others = str(refused.value).split("; and ")
    assert len(said) == 4
    assert last == (
        "column 'e' holds numbers and in 6 rows something else, such as 'k.A.' in row 4: mend it, or say "
        "--numeric e (what is none is a gap), or say --categorical e, or leave it out with "
        "--drop e or --features"
    )
    assert others == "so on: a, b, c, d, e, f, g"
