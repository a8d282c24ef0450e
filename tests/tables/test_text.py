"""Text tables: every usual separator, encoding and compression gives the same columns."""

import bz2
import gzip
from contextlib import suppress
from itertools import product

import pyarrow as pa
import pytest
from pyarrow import feather

from ckcv_ray.errors import InputError
from ckcv_ray.tables.named import read
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.task import Roles, Task

ROWS = [("1.5", "Zürich", "no"), ("2.25", "Genève", "yes"), ("", "a, b; c", "no"), ("4.0", "", "yes")] * 2
NAMES = ("größe", "stadt", "y")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1")


def table(separator: str = ",", decimal: str = ".", end: str = "\n") -> str:
    quoted = [(a.replace(".", decimal), f'"{b}"' if b else "", c) for a, b, c in ROWS]
    return end.join(separator.join(row) for row in [NAMES, *quoted]) + end


def digest(path) -> str:
    return Task.from_table(read(str(path), say=str).learn, Roles("y")).digest


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    file = tmp_path_factory.mktemp("plain") / "table.csv"
    file.write_text(table())
    return digest(file)


@pytest.mark.parametrize(("separator", "encoding"), [*product(",;\t|", ENCODINGS)])
def test_separators_and_encodings(separator, encoding, tmp_path, expected):
    file = tmp_path / "table.csv"
    file.write_bytes(table(separator).encode(encoding))
    assert digest(file) == expected


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_decimal_commas(separator, end, tmp_path, expected):
    file = tmp_path / "table.csv"
    file.write_bytes(table(separator, ",", end).encode())
    assert digest(file) == expected


def test_decimal_commas_in_quotes_among_commas(tmp_path, expected):
    rows = [NAMES, *((f'"{a.replace(".", ",")}"', f'"{b}"', c) for a, b, c in ROWS)]
    (tmp_path / "table.csv").write_text("\n".join(",".join(row) for row in rows))
    assert digest(tmp_path / "table.csv") == expected


@pytest.mark.parametrize("kind", ["gz", "bz2", "zst"])
def test_compressed_tables(kind, tmp_path, expected):
    content = table("\t").encode()
    compressed = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "zst": lambda raw: pa.compress(raw, codec="zstd", asbytes=True),
    }[kind](content)
    (tmp_path / f"table.tsv.{kind}").write_bytes(compressed)
    assert digest(tmp_path / f"table.tsv.{kind}") == expected


def test_feather(tmp_path, expected):
    (tmp_path / "table.csv").write_text(table())
    columns = read(str(tmp_path / "table.csv")).learn
    for compression in ("uncompressed", "zstd", "lz4"):
        feather.write_feather(columns, str(tmp_path / "table.feather"), compression=compression)
        assert digest(tmp_path / "table.feather") == expected


def test_a_newline_within_quotes_is_part_of_the_text(tmp_path):
    (tmp_path / "table.csv").write_text("a,b,y\n" + '1,"two\nlines",no\n2,one,yes\n' * 4)
    assert Task.from_table(read(str(tmp_path / "table.csv")).learn).schema[1].levels == ("one", "two\nlines")


def test_a_separator_that_cannot_be_guessed_is_asked_for(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a;b,y\n" + "1;2,0\n3;4,1\n" * 4)
    with pytest.raises(InputError, match=r"may be separated by commas and semicolons, .* --separator ','"):
        read(str(file))
    assert read(str(file), reading=Reading(";")).learn.column_names == ["a", "b,y"]


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (b"a,y\n1\x000,0\n", "zero bytes"),
        (b"\xff\xfea,y\n1", "begins as text in UTF-16, and is none"),
    ],
)
def test_what_is_no_text_is_refused(content, messages, tmp_path):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(InputError, match=messages):
        read(str(tmp_path / "table.csv"))


@pytest.mark.slow
def test_a_compressed_file_that_expands_too_far_is_refused(tmp_path):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"1,2\n" * (1 << 22) * 40, 1))
    with pytest.raises(InputError, match="at most 10,000,000 rows"):
        read(str(tmp_path / "bomb.csv.gz"))


def test_a_damaged_feather_file_is_refused(tmp_path):
    columns = pa.table({"a": ["x", "yy", "z"] * 3, "y": [0, 1, 0] * 3})
    feather.write_feather(columns, str(tmp_path / "a.feather"), compression="uncompressed")
    content = bytearray((tmp_path / "a.feather").read_bytes())
    for at in range(8, len(content), 3):
        broken = bytearray(content)
        broken[at] ^= 0xFF
        (tmp_path / "b.feather").write_bytes(bytes(broken))
        with suppress(InputError):
            Task.from_table(read(str(tmp_path / "b.feather")).learn, Roles("y"))
