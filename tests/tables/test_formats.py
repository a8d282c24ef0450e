"""Readers: every format, separator, encoding and compression; lines that are not rows; what is refused."""

import bz2
import gzip
import io
import re
import zipfile
from collections.abc import Callable
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import feather

from ckcv_ray.errors import InputError
from ckcv_ray.storage.folder import STUDY
from ckcv_ray.tables.columns import ColumnKind
from ckcv_ray.tables.named import read
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task


def save(write, *arrays, **named):
    """What numpy writes to a file."""
    sink = io.BytesIO()
    write(sink, *arrays, **named)
    return sink.getvalue()


REFUSED = {
    "missing.csv": (None, "there is no file"),
    "table.doc": (b"a,y\n", "is neither a file ending in .csv, .tsv, .txt, .dat, .parquet"),
    "table": (b"a,y\n", "nor a named set (sklearn:NAME"),
    "empty.csv": (b"", "Empty CSV file"),
    "ragged.csv": (b"a,y\n1,2\n1\n", "Expected 2 columns, got 1"),
    "ends.csv": (b"a,y\n1,2,\n3,4,\n", "lines of different lengths"),
    "zeros.csv": (b"a,y\n1\x000,0\n", "zero bytes"),
    "array.npz": (save(np.save, np.eye(3)), "as npz: File is not a zip file"),
    "other.npz": (save(np.savez, y=np.eye(8), data=np.eye(8)), "X is not a file in the archive"),
    "vector.npz": (save(np.savez, X=np.ones(8), y=np.ones(8)), "(8,) and y (8,): expected (n, d)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    content, expected = REFUSED[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        read(str(tmp_path / name))
    assert str(tmp_path / name) in str(refused.value)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_file_does_not_say_is_said_for_some_formats(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()
    of_text = ("csv", "txt.gz")
    said = {"separator": (";", of_text), "encoding": ("cp1251", of_text), "sheet": ("2", ("xlsx",))}
    for option, (value, suffixes) in (said | {"skip_rows": ("2", (*of_text, "xlsx"))}).items():
        reading = Reading(**{option: value})
        for suffix in (*of_text, "xlsx", "parquet"):
            assert reading.adapt(f"a.{suffix}") == (reading if suffix in suffixes else Reading())
        with pytest.raises(InputError, match=rf"{option} is for \..* leave it out"):
            read(tmp_path / "a.parquet", reading)


@pytest.fixture
def book() -> Workbook:
    made = Workbook()
    made.active.append(["age", "city", "admitted", "y", None])
    for i in range(8):
        made.active.append([i + 0.5 if i % 3 else None, "AB"[i % 2], datetime(2024, 1, 1 + i), i % 2, None])
    return made


def test_a_sheet_is_read_with_its_types(book, tmp_path):
    book.save(tmp_path / "a.xlsx")
    task = Task.from_table(read(str(tmp_path / "a.xlsx")).learn, Roles("y"))
    assert [one.kind for one in task.schema] == [ColumnKind.NUMBER, ColumnKind.CATEGORY, ColumnKind.DATE]
    assert (task.n, task.classes) == (8, (0, 1))
    with pytest.raises(InputError, match="has no sheet 'Third': there are 'Sheet'"):
        read(str(tmp_path / "a.xlsx"), reading=Reading(sheet="Third"))
    Workbook().save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="an empty sheet"):
        read(str(tmp_path / "a.xlsx"))


def save_computed(book: Workbook, path: Path) -> None:
    """Save a workbook as a spreadsheet program does, with a value of each formula."""
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, re.sub(rb"</f><v ?/?>(</v>)?", b"</f><v>7.5</v>", content))


def test_the_values_stored_with_formulas_are_read_and_a_line_says_so(book, tmp_path):
    book.active["A4"] = book.active["A6"] = "=A3*2"
    save_computed(book, tmp_path / "a.xlsx")
    told: list[str] = []
    ages = read(str(tmp_path / "a.xlsx"), say=told.append).learn["age"].to_pylist()
    assert ages == [None, 1.5, 7.5, None, 7.5, 5.5, None, 7.5]
    said = "has 2 formulas, the first in cell A4: the value stored with a formula is read"
    assert [said in line for line in told] == [True]


def test_a_last_row_with_formulas_alone_is_asked_about(book, tmp_path):
    book.active["A10"] = "=SUM(A2:A9)"
    save_computed(book, tmp_path / "a.xlsx")
    said = "cell A10 of the last row.* say --skip-rows last to leave the row out; .* --skip-rows none"
    with pytest.raises(InputError, match=said):
        read(str(tmp_path / "a.xlsx"))
    assert read(str(tmp_path / "a.xlsx"), Reading(skip_rows="last")).learn.num_rows == 8
    assert read(str(tmp_path / "a.xlsx"), Reading(skip_rows="none"), str).learn["age"][8].as_py() == 7.5


HEADS = ("größe", "stadt", "y")
TOWNS = [("1.5", "Zürich", "no"), ("2.25", "a, b; c", "yes"), ("", "two\nlines", "no"), ("4.0", "", "no")] * 2
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def digest(path: Path) -> str:
    return Task.from_table(read(path, say=str).learn, Roles("y")).digest


ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", "   "])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "dat", "csv.gz", "txt.bz2", "dat.zst"])
def test_the_digest_is_of_what_is_written_and_not_of_how(suffix: str, separator: str, tmp_path: Path) -> None:
    """Each encoding is tried with a comma and a point, and each of these with another end of lines."""
    if (suffix == "tsv" and separator != "\t") or (suffix[:3] == "csv" and separator[0] == " "):
        return
    towns = [[cell.replace("\n", "" if separator[0] == " " else "\n") for cell in row] for row in TOWNS]
    columns: dict[str, Any] = dict(zip(HEADS, zip(*towns, strict=True), strict=True))
    columns["größe"] = [float(cell) if cell else None for cell in columns["größe"]]
    expected = Task.from_table(pa.table(columns), Roles("y")).digest
    path = tmp_path / f"table.{suffix}"
    for number, (encoding, decimal) in enumerate(product(ENCODINGS, ".,"), len(suffix + separator)):
        rows = [HEADS, *((a.replace(".", decimal), *rest) for a, *rest in towns)]
        lines = (separator.join(f'"{cell}"' for cell in row) for row in rows)
        text = [*ENDS.values()][number % 3].join(lines)
        path.write_bytes(PACKERS.get(path.suffix, bytes)(text.encode(encoding)))
        assert digest(path) == expected
    for compression in ("uncompressed", "zstd", "lz4"):
        feather.write_feather(read(path, say=str).learn, str(tmp_path / "t.feather"), compression=compression)
        assert digest(tmp_path / "t.feather") == expected


def test_a_run_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / STUDY).write_text("{}")
    with pytest.raises(InputError, match=r"is a run folder, not a table: .*ckcv predict"):
        read(tmp_path)


HEAD = "name,age,dose,y"
WARD = [f"P{i % 4},{40 + i},{i}.5,{'ab'[i % 2]}" for i in range(8)]


def write_sheet(path: Path, lines: list[str]) -> Path:
    """Write lines as a workbook, with numbers in its cells."""
    book = Workbook()
    for line in lines:
        book.active.append([float(x) if x[:1].isdigit() else x or None for x in line.split(",")])
    book.save(path)
    return path


WHOLE, UNITS, TOTAL = [HEAD, *WARD], ",years,mg/dl,", "Total,348,32,"
STRAYS = {  # lines, what is said, and the option that leaves them out
    "units below a title": (["Ward 7,,,", HEAD, UNITS, *WARD], "of line 3", "1,3"),
    "blank lines": ([HEAD, "", UNITS, "", *WARD, "", "Mean,43.5,4,", ""], "of line 3", "3,last"),
}


@pytest.mark.parametrize("name", STRAYS)
def test_what_is_no_row_of_a_sheet_is_asked_about_and_left_out(name, tmp_path):
    lines, said, option = STRAYS[name]
    expected = read(write_sheet(tmp_path / "whole.xlsx", WHOLE)).learn
    path = write_sheet(tmp_path / "a.xlsx", lines)
    title = option.startswith("1,")
    with pytest.raises(InputError, match=said) as refused:
        read(path, Reading(skip_rows="1" if title else None))
    assert f"say --skip-rows {option.removesuffix(',last')}" in str(refused.value)
    assert read(path, Reading(skip_rows=option)).learn.equals(expected)
    assert read(path, Reading(skip_rows="1,none" if title else "none")).learn.num_rows > len(WARD)


def test_lines_that_are_not_there_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(WHOLE))
    for path in (tmp_path / "a.csv", write_sheet(tmp_path / "a.xlsx", WHOLE)):
        with pytest.raises(InputError, match=r"skip_rows='2-30': .* has 9 lines, and no line 30"):
            read(path, Reading(skip_rows="2-30"))
        with pytest.raises(InputError, match="mpty"):
            read(path, Reading(skip_rows="1-9"))
    for skip in ("0", "3-2", "first"):
        with pytest.raises(InputError, match="expected line numbers, counted from 1"):
            read(path, Reading(skip_rows=skip))


ROWS = [  # whose first or last is one of them
    WHOLE,
    [HEAD, "P1,old,1.5,a", *WARD],  # a word in a row, of which other cells are those of other rows
    [HEAD, *WARD, "Total,1,2,a", *WARD, "Total,3,4,b"],  # a name that others have
    [HEAD, *WARD, "Alligator,1,2,a"],
    [HEAD, UNITS, *WARD[:4]],  # too few to tell
    ["a,b,y", "u,v,w", *(f"x{i % 3},z{i % 3},{'ab'[i % 2]}" for i in range(9))],  # no numbers at all
    [*WHOLE, "P9,,,"],
]
SEPARATED = ["sep=;", *(line.replace(",", ";") for line in (HEAD, UNITS, *WARD))]
TAILS = [[",,,", "", " ", ";"], ["", ",,,", "\x1a\x1a"], [",,,"] * 2_000]
JOINED = ["\ufeffWard 7", *WHOLE, "", f"\ufeff{HEAD}", *WARD, *WHOLE]
READINGS = [  # lines, those that are left out, and how many rows are read, or what is said
    *((lines, None, len(lines) - 1) for lines in ROWS),
    *((SEPARATED, skip, expected) for skip, expected in ((None, "of line 3"), ("3", 8), ("1,3", 8))),
    *((WHOLE + tail, None, 8) for tail in TAILS),
    *(([*WHOLE, *tail, ""], "10", 8) for tail in TAILS),  # which is there, if it is no row
    *(([*WHOLE, TOTAL, *tail], None, "line 10 of .*, the last, begins with 'Total'") for tail in TAILS),
    *(([*WHOLE, TOTAL, *tail], "last", 8) for tail in TAILS),
    ([*WHOLE, ",,,", *WARD, WARD[0] + "\x1a"], None, 18),
    *(
        (JOINED, skip, expected)
        for skip, expected in (
            ("1", "line 12 of .* repeats line 2, .*: if files were joined, say --skip-rows 1,12,21; if"),
            ("1,21", "repeats line 2, .* say --skip-rows 1,21,12;"),
            ("1,12,21", 24),
            ("1,none", 26),
        )
    ),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("lines", "skip", "expected"), READINGS)
def test_every_row_is_read_and_what_may_be_none_is_asked_about(end, lines, skip, expected, tmp_path):
    if lines is SEPARATED and end == "cr":  # in which no program writes such a line
        return
    path = tmp_path / "table.csv"
    path.write_bytes(ENDS[end].join(lines).encode())
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            read(path, Reading(skip_rows=skip))
    else:
        columns = read(path, Reading(skip_rows=skip)).learn
        assert columns.num_rows == expected
        assert "\x1a" not in "".join(columns.column(-1).drop_null().to_pylist())


def test_names_inside_a_line_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckcv_ray.tables.read._number_lines", pytest.fail)
    (tmp_path / "a.csv").write_text("x,y\n" + "xx,y\nz,xy\n" * 8)
    assert read(tmp_path / "a.csv").learn.num_rows == 16


def test_a_comment_before_names_loses_its_mark_and_that_is_said(tmp_path: Path) -> None:
    path, said = tmp_path / "table.csv", list[str]()
    path.write_text("\n".join([f"# {HEAD}", *WARD]))
    assert read(path, say=said.append).learn.column_names == HEAD.split(",")
    assert said == [f"'{path}' has a # before its names: it is left out, and the first column is 'name'"]
    for name in ("#", "#name", "# of visits"):  # these are names
        path.write_text("\n".join([HEAD.replace("name", name), *WARD]))
        assert read(path).learn.column_names[0] == name


FOREIGN = {  # two labels, which are text of western Europe in no way
    "cp1250": ("Wałęsa", "Łódź"),
    "cp1251": ("ий", "аи"),
    "shift_jis": ("男性", "女性"),
    "mac_roman": ("Müller", "Größe"),
}
WESTERN = ("GRÖSSE STRAßE", "“so” it’s", "£5 €5")


def write_page(folder: Path, labels: tuple[str, str], encoding: str) -> Path:
    rows = (f"{i % 5}.5,{i},{labels[i % 2]}\n" for i in range(24))
    path = folder / "table.csv"
    path.write_bytes(f"x,z,y\n{''.join(rows)}".encode(encoding))
    return path


@pytest.mark.parametrize("encoding", FOREIGN)
def test_other_code_pages_are_asked_about_and_said(encoding: str, tmp_path: Path) -> None:
    labels = FOREIGN[encoding]
    path = write_page(tmp_path, labels, encoding)
    with pytest.raises(InputError, match=r"is not in utf-8, as line 2 shows: say which --encoding"):
        read(path)
    assert read(path, Reading(encoding=encoding)).learn["y"].unique().to_pylist() == [*labels]


@pytest.mark.parametrize("labels", WESTERN)
def test_text_of_western_europe_is_read_and_said_to_be(labels: str, tmp_path: Path) -> None:
    said: list[str] = []
    path = write_page(tmp_path, labels.split(), "cp1252")
    assert read(path, say=said.append).learn["y"].unique().to_pylist() == labels.split()
    (remark,) = said
    found = re.fullmatch(rf"'{path}' is not UTF-8: read as cp1252, as in (.*); say --encoding .*", remark)
    assert found[1].strip("'\"") in labels


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        *product(["utf-8-sig", "utf-16"], [None, "cp1251"]),  # which say themselves what they are
        *((encoding, encoding) for encoding in ("utf-8", "cp1252", "utf-16-be", "cp500")),
    ],
)
def test_an_encoding_is_what_the_file_says_or_the_user(encoding, said, tmp_path):
    path = write_page(tmp_path, ("Müller", "Größe"), encoding)
    columns = read(path, Reading(encoding=said), pytest.fail).learn
    assert columns.column_names == ["x", "z", "y"]
    assert columns["y"].unique().to_pylist() == ["Müller", "Größe"]


@pytest.mark.parametrize("own", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("encoding", ["rot13", "undefined", "", 1251])
def test_an_unknown_encoding_is_refused(encoding: str, own: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table\.csv'"):
        read(write_page(tmp_path, ("a", "b"), own), Reading(encoding=encoding))


def test_a_separator_is_one_character(tmp_path: Path) -> None:
    path = write_page(tmp_path, ("a", "b"), "utf-8")
    for separator in ("", ",,", "é", '"'):
        with pytest.raises(InputError, match="expected one character"):
            read(path, Reading(separator=separator))


def test_bytes_that_are_not_of_the_encoding_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for content, encoding, line in (
        ("x\nMüller\nGröße\n".encode() + "Zürich\n".encode("cp1252"), "utf-8", 4),
        ("x,y\na,b\n1,男".encode("shift_jis")[:-1], "shift_jis", 3),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"is not in {encoding}, as line {line} shows: say which"):
            read(path, Reading(encoding=None if encoding == "utf-8" else encoding))
