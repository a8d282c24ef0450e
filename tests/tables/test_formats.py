"""File formats: of each the same task; what cannot be read is named."""

import gzip
import io
import re
import zipfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from openpyxl import Workbook
from plain import awkward_X
from pyarrow import parquet

from ckcv_ray.cli.data import check_source
from ckcv_ray.errors import InputError
from ckcv_ray.storage.identity import STUDY
from ckcv_ray.tables import read as files
from ckcv_ray.tables.columns import ColumnKind
from ckcv_ray.tables.named import read
from ckcv_ray.tables.read import STUDY_FILE, Reading, read_file
from ckcv_ray.tables.task import Roles, Task


def write_csv(path, X, y):
    header = [*(f"x{i}" for i in range(X.shape[1])), "y"]
    lines = [[repr(float(value)) for value in row] + [str(sign)] for row, sign in zip(X, y, strict=True)]
    path.write_text("\n".join(",".join(line) for line in [header, *lines]) + "\n")


def write_parquet(path, X, y):
    parquet.write_table(files.from_matrix(X, y), path)


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
    task = Task.from_table(columns.learn)
    assert columns.test is None
    assert np.array_equal(task.X, X)  # -0.0 equals 0.0, as the digest has it
    assert np.array_equal(task.y, y > 0)
    assert task.classes == (-1, 1)
    first = 1 if WRITERS[suffix] is write_svmlight else 0  # svmlight names its columns by number, from 1
    assert task.features == tuple(f"x{first + i}" for i in range(3))


def test_the_digest_does_not_tell_csv_parquet_npz_and_arrays_apart(tmp_path):
    X, y = awkward_X(), np.array([3, 5] * 4)
    digests = set()
    for suffix in ("csv", "parquet", "npz"):
        file = tmp_path / f"table.{suffix}"
        WRITERS[suffix](file, X, y)
        digests.add(Task.from_table(read(str(file)).learn, source=str(file)).digest)
    digests.add(replace(Task.of(X, y), target="y").digest)
    assert len(digests) == 1


def test_an_npz_may_hold_other_arrays_and_text_labels(tmp_path):
    file = tmp_path / "table.npz"
    np.savez(file, X=np.arange(8)[:, None], y=np.array(["b", "a"] * 4), more=np.eye(3))
    task = Task.from_table(read(str(file)).learn)
    assert task.classes == ("a", "b")
    assert task.X.dtype == np.float64


def save(write, *arrays, **named):
    """What numpy writes to a file."""
    sink = io.BytesIO()
    write(sink, *arrays, **named)
    return sink.getvalue()


BROKEN = {
    "missing.csv": (None, "there is no file"),
    "table.doc": (b"a,y\n", "is neither a file ending in .csv, .tsv, .txt, .dat, .parquet"),
    "table": (b"a,y\n", "nor a named set (sklearn:NAME"),
    "empty.csv": (b"", "Empty CSV file"),
    "ragged.csv": (b"a,y\n1,2\n1\n", "Expected 2 columns, got 1"),
    "text.parquet": (b"a,y\n1,2\n", "cannot read"),
    "text.npz": (b"a,y\n1,2\n", "cannot read"),
    "empty.npz": (b"", "cannot read"),
    "half.npz": (save(np.savez, X=np.eye(8), y=np.arange(8) % 2)[:300], "cannot read"),
    "array.npz": (save(np.save, np.eye(3)), ""),
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


# Excel workbooks: one sheet of values


CELLS = [
    ["age", "city", "admitted", "y", None],
    *[[i + 0.5 if i % 3 else None, "AB"[i % 2], datetime(2024, 1, 1 + i), i % 2, None] for i in range(8)],
]


@pytest.fixture
def book() -> Workbook:
    made = Workbook()
    for row in CELLS:
        made.active.append(row)
    return made


def test_a_sheet_is_read(book, tmp_path):
    book.save(tmp_path / "a.xlsx")
    task = Task.from_table(read(str(tmp_path / "a.xlsx")).learn, Roles("y"))
    assert [one.kind for one in task.schema] == [ColumnKind.NUMBER, ColumnKind.CATEGORY, ColumnKind.DATE]
    assert (task.n, task.classes) == (8, (0, 1))


def test_a_column_of_several_types_is_text(book, tmp_path):
    book.active["A3"] = "old"
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="'age' holds numbers and in 1 row something else, such as 'old'"):
        Task.from_table(read(str(tmp_path / "a.xlsx")).learn, Roles("y"))


def test_of_several_sheets_one_is_named(book, tmp_path):
    book.create_sheet("Second").append(["a", "y"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="has 2 sheets: name one with --sheet; there are 'Sheet', 'Second'"):
        read(str(tmp_path / "a.xlsx"))
    with pytest.raises(InputError, match="has no sheet 'Third'"):
        read(str(tmp_path / "a.xlsx"), reading=Reading(sheet="Third"))
    assert read(str(tmp_path / "a.xlsx"), reading=Reading(sheet="Sheet")).learn.num_rows == 8


def save_computed(book: Workbook, path: Path, value: float) -> None:
    """Save a workbook as a spreadsheet program does, with a value of each formula."""
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, re.sub(rb"</f><v ?/?>(</v>)?", b"</f><v>%g</v>" % value, content))


def test_the_values_stored_with_formulas_are_read_and_a_line_says_so(book, tmp_path):
    book.active["A4"] = book.active["A6"] = "=A3*2"
    save_computed(book, tmp_path / "a.xlsx", 7.5)
    told: list[str] = []
    ages = read(str(tmp_path / "a.xlsx"), say=told.append).learn["age"].to_pylist()
    assert ages == [None, 1.5, 7.5, None, 7.5, 5.5, None, 7.5]
    said = "has 2 formulas, the first in cell A4: the value stored with a formula is read"
    assert [line for line in told if said in line] == told
    assert len(told) == 1


def test_a_formula_without_a_value_is_refused(book, tmp_path):
    book.active["A4"] = "=A3*2"
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="has a formula in cell A4 without a stored value: open it in a"):
        read(str(tmp_path / "a.xlsx"))


def test_a_last_row_with_formulas_alone_is_asked_about(book, tmp_path):
    book.active["A10"] = "=SUM(A2:A9)"
    save_computed(book, tmp_path / "a.xlsx", 7.5)
    said = "cell A10 of the last row.* say --skip-rows last to leave the row out; .* --skip-rows none"
    with pytest.raises(InputError, match=said):
        read(str(tmp_path / "a.xlsx"))
    assert read(str(tmp_path / "a.xlsx"), Reading(skip_rows="last")).learn.num_rows == 8
    assert read(str(tmp_path / "a.xlsx"), Reading(skip_rows="none"), str).learn["age"][8].as_py() == 7.5


def test_an_empty_sheet_and_no_workbook_are_refused(tmp_path):
    Workbook().save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="an empty sheet"):
        read(str(tmp_path / "a.xlsx"))
    (tmp_path / "b.xlsx").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"cannot read .* as xlsx"):
        read(str(tmp_path / "b.xlsx"))


def test_a_sheet_is_for_workbooks(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n")
    with pytest.raises(InputError, match=r"sheet is for \.xlsx, not .*: leave it out"):
        read(str(tmp_path / "a.csv"), reading=Reading(sheet="x"))


# Text tables called .txt or .dat, folders and addresses


ROWS = [("x", "city", "y"), *((f"{i}.5", f"c{i % 3}", "ab"[i % 2]) for i in range(8))]


@pytest.mark.parametrize("suffix", ["txt", "dat", "txt.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", "   "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_separator_is_found(suffix: str, separator: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{suffix}"
    content = end.join(separator.join(row) for row in ROWS).encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    columns = read(path).learn
    assert [tuple(columns.column_names), *zip(*columns.to_pydict().values(), strict=True)] == ROWS


def test_columns_of_a_width_are_separated_by_spaces(tmp_path: Path) -> None:
    lines = ["  ".join(cell.rjust(6) for cell in row) + "  " for row in ROWS]
    (tmp_path / "a.dat").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.dat").write_text("\n".join(lines).replace("c1", '"a, b  c"') + "\n")
    (tmp_path / "c.csv").write_text("\n".join(lines) + "\n")
    assert read(tmp_path / "a.dat").learn["x"].to_pylist() == [row[0] for row in ROWS[1:]]
    assert read(tmp_path / "b.dat").learn["city"].to_pylist()[:3] == ["c0", "a, b  c", "c2"]
    assert read(tmp_path / "c.csv").learn.num_columns == 1
    assert read(tmp_path / "c.csv", Reading(" ")).learn.column_names == ["x", "city", "y"]


def test_decimal_commas_among_spaces(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x z y\n" + "".join(f"{i},5  {i},25 {'ab'[i % 2]}\n" for i in range(8)))
    columns = read(tmp_path / "a.txt").learn
    assert (columns.schema.metadata or {})[b"decimal"] == b","
    assert columns["z"].to_pylist()[1] == "1,25"


def test_words_of_one_column_stay_together(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("name\nJohn Smith\nAnn\n")
    assert read_file(tmp_path / "a.txt").to_pydict() == {"name": ["John Smith", "Ann"]}


def test_lines_of_other_lengths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x y\n1 a\n2 b c\n")
    with pytest.raises(InputError, match=r"line 3: Expected 2 columns, got 3"):
        read(tmp_path / "a.txt", Reading(" "))


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "notes.doc").write_text("")
    with pytest.raises(InputError, match=r"is a folder, and no table: name a file: none here ends in \.csv"):
        read(tmp_path)
    for name in ("a.csv", "b.txt", "c.xlsx", "d.csv"):
        (tmp_path / name).write_text("")
    said = r"name a file, such as '[^']*a\.csv' or '[^']*b\.txt' or '[^']*c\.xlsx'$"
    with pytest.raises(InputError, match=said):
        read_file(tmp_path)


def test_a_run_folder_is_no_table(tmp_path: Path) -> None:
    assert STUDY_FILE == STUDY
    (tmp_path / STUDY).write_text("{}")
    with pytest.raises(InputError, match=r"is a run folder, and no table: .*ckcv predict"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://example.org/a.csv", "is an address: download the file first"),
        ("HTTP://example.org/a", "is an address: download the file first"),
        ("s3a://bucket/a.parquet", "is an address: copy the file from its object store"),
        ("gcs://bucket/a.csv", "is an address: copy the file from its object store"),
        ("abfs://bucket/a.csv", "is an address: copy the file from its object store"),
        ("ftp://example.org/a.csv", "is an address: tables are not read from ftp://: name a file"),
        ("file:///tmp/a.csv", "is an address: tables are not read from file://: name a file"),
    ],
)
def test_an_address_is_no_file(address: str, message: str) -> None:
    for call in (read, read_file):
        with pytest.raises(InputError, match=message):
            call(address)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("a.zip", "unpack it first, and name the table in it"),
        ("a.csv.xz", "unpack it first"),
        ("a.json.gz", "unpack it first"),
        ("a.data", "rename it to .csv (.txt if spaces separate its columns"),
        ("a.arff", "copy the lines below @data"),
        ("a.xls", "save it as .xlsx or .csv"),
        ("a.sav", "pandas.read_spss('a.sav').to_csv('a.csv', index=False)"),
        ("a b.dta", "pandas.read_stata('a b.dta').to_csv('a b.csv', index=False)"),
        ("a.rds", "write.csv(readRDS('a.rds'), 'a.csv', row.names=FALSE)"),
        ("a.jsonl", "pandas.read_json('a.jsonl', lines=True).to_csv('a.csv', index=False)"),
        ("a.npy", "numpy.savez('a.npz', X=X, y=y)"),
        ("s3://bucket/a.ods", "save it as .xlsx or .csv"),
    ],
)
def test_other_formats_are_refused_with_what_to_do(name: str, cure: str) -> None:
    for open_file in (read, read_file, check_source):
        with pytest.raises(InputError, match=re.escape(cure)):
            open_file(name)
