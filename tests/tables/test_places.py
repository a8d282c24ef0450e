"""Text tables called .txt or .dat, folders and addresses."""

import gzip
import re
from pathlib import Path

import pytest

from ckcv_ray.cli.data import check_source
from ckcv_ray.errors import InputError
from ckcv_ray.storage.identity import STUDY
from ckcv_ray.tables.readers.files import STUDY_FILE, Reading, read_file
from ckcv_ray.tables.task import read

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
