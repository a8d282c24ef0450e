"""Inputs of ``fuzz``: files that are nearly valid.

A nearly valid file is built to its format from odd parts, or is a valid one with damaged bytes. Where a
checksum would refuse the damage before the reader sees it, the checksum is computed again afterwards. Files
that are expensive to read, or lie about their sizes, are in ``tests/tables/test_bombs.py``.
"""

import csv
import io
import json
import struct
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyarrow import parquet

from ckcv_ray import Study

ROWS = 8
SEEN = [i * 0.5 for i in range(ROWS)]
CLASSES = ["no", "yes"] * (ROWS // 2)
TOKENS = [
    *b"nan inf -1 0 1e999 1e308 5e-324 null true None NaN y X \0 \" ' , : # = }".split(b" "),
    *(b"\n", b"\r", b"9" * 25, b"9" * 5000, b"0x" + b"f" * 5000),
    *(b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", "é".encode(), "\u2028".encode(), b"\x1b[31m"),
    *(b"[" * 5000, b"{" * 5000, b'{"a":' * 5000, b"[[", b"]]"),
    *(struct.pack("<q", value) for value in (-1, 1 << 31, 1 << 40, 2**63 - 1)),
    *(struct.pack("<i", value) for value in (-1, 1 << 30, 2**31 - 1)),
]
WORDS = ["", "y", "x", "0", "1", "nan", "inf", "a\nb", "\0", "\x1b[31m", "é", "\u2028", "x" * 3000, '"', ","]
NUMBERS: list[Any] = [0, -0.0, 1, -1, 2, 3, 7, 0.5, 1e-320, 1e308, -1e308, 2**31, 2**53 + 1]
NUMBERS += [2**63 - 1, -(2**63), 2**64, 10**400]
VALUES: list[Any] = [
    *NUMBERS,
    *WORDS,
    *(None, True, False, nan, inf, [], {}, [[1]], [None], {"a": {}}, {"a": "\n"}, [0.1, "1"]),
    *("3:10000000", "log:-2:4:10000", "log:0:400:9", "holdout", "paper"),
]


class Case(NamedTuple):
    """The content of a file."""

    content: bytes

    def __repr__(self) -> str:
        return f"a case of {len(self.content)} bytes"  # hypothesis would spell out all of it


@st.composite
def damaged(draw: DrawFn, sound: SearchStrategy[bytes]) -> bytes:
    """Draw a valid file damaged at up to six positions."""
    content = bytearray(draw(sound))
    for _ in range(draw(st.integers(0, 6))):
        a, b = sorted(draw(st.integers(0, len(content))) for _ in range(2))
        how = draw(st.sampled_from(("flip", "insert", "overwrite", "cut", "remove", "repeat", "move")))
        token = draw(st.sampled_from(TOKENS) | st.binary(min_size=1, max_size=9))
        match how:
            case "flip" if a < len(content):
                content[a] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                content[a:a] = token
            case "overwrite":
                content[a : a + len(token)] = token
            case "cut":
                del content[b:]
            case "remove":
                del content[a:b]
            case "repeat":
                content[b:b] = content[a:b] * draw(st.integers(1, 50))
            case "move":
                content[a:a] = content[b : b + 64]
    return bytes(content)


def rarely(odd: SearchStrategy[Any], usual: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Draw an odd value one time in eight, so that most files reach the next check."""
    return st.integers(0, 7).flatmap(lambda i: odd if i == 7 else usual)


@st.composite
def csv_text(draw: DrawFn) -> bytes:
    """Draw a table of text, with odd names, cells, row lengths, separators and encodings."""
    names = ["x", "y", *draw(st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=2))]
    odd = st.sampled_from(WORDS) | st.sampled_from(NUMBERS).map(str) | st.text(max_size=6)
    rows = [[str(x), y, *("1" for _ in names[2:])] for x, y in zip(SEEN, CLASSES, strict=True)]
    for _ in range(draw(st.integers(0, 3))):
        row = rows[draw(st.integers(0, ROWS - 1))]
        if row:
            row[draw(st.integers(0, len(row) - 1))] = draw(odd)
        if draw(st.integers(0, 9)) == 9:
            del row[draw(st.integers(0, len(row))) :]
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=draw(rarely(st.sampled_from(";\t |"), st.just(","))),
        lineterminator=draw(rarely(st.sampled_from(["\r", "", "\n\n"]), st.sampled_from(["\n", "\r\n"]))),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    writer.writerows([draw(rarely(st.just(names[::-1] * 2), st.just(names))), *rows])
    encoding = draw(rarely(st.sampled_from(["utf-16", "utf-8-sig", "utf-32"]), st.just("utf-8")))
    return out.getvalue().encode(encoding, "surrogatepass")


_ONE, _TEXT = Decimal(1), pa.string()
_NUMERIC = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 date32 date64"
COLUMNS: list[tuple[Any, Any, Any]] = [  # a type and two values
    *((pa.type_for_alias(kind), 0, 1) for kind in (*_NUMERIC.split(), "time32[s]", "time64[ns]")),
    *((pa.timestamp(unit, zone), 0, 1) for unit in ("s", "ns") for zone in (None, "Europe/Zurich", "+99:99")),
    *((pa.timestamp("s"), 2**50, -(2**50)), (pa.duration("s"), 2**62, 1), (pa.duration("ns"), 0, 1)),
    *((pa.decimal128(38, 5), _ONE, -_ONE), (pa.decimal256(76, 1), _ONE, -_ONE), (pa.date32(), 2**31 - 1, 0)),
    *((kind, "a", "b") for kind in (_TEXT, pa.large_string(), pa.string_view(), pa.json_())),
    *((pa.dictionary(pa.int8(), _TEXT), "a", "b"), (pa.dictionary(pa.int8(), pa.int64()), 0, 1)),
    *((pa.dictionary(pa.int8(), _TEXT), "a", None), (pa.null(), None, None), (pa.bool_(), True, False)),
    *((pa.float64(), a, b) for a, b in ((1e308, -1e308), (nan, 1.0), (1.0, inf), (5e-324, 0.0), (0.0, -0.0))),
    *((pa.int64(), a, b) for a, b in ((None, 1), (2**63 - 1, -(2**63)), (2**53, 2**53 + 1))),
    *((pa.uint64(), 2**64 - 1, 0), (pa.float32(), 0.1, 0.2)),
    *((_TEXT, "a\n\x1b[31m", "b"), (_TEXT, "x" * 4000, "")),
    *((pa.binary(), b"\xff", b"a"), (pa.binary(2), b"ab", b"\xff\xfe"), (pa.binary_view(), b"a", b"b")),
    *((pa.uuid(), bytes(16), bytes(range(16))), (pa.bool8(), 1, 0), (pa.opaque(pa.int8(), "a", "b"), 0, 1)),
    *((pa.list_(pa.int64()), [], [1, None]), (pa.list_(pa.int64(), 2), [1, 2], [3, 4])),
    *((pa.list_view(pa.int8()), [1], []), (pa.list_(pa.list_(pa.float64())), [[1.0]], [[]])),
    *((pa.map_(_TEXT, pa.int64()), [("k", 1)], []), (pa.struct([("a", pa.int8())]), {"a": 1}, None)),
]  # fmt: skip


def typed_column(column: tuple[Any, Any, Any], n: int) -> Any:
    """Build a column of n rows in which two values alternate."""
    kind, *values = column
    storage = getattr(kind, "storage_type", kind)
    array = pa.array((values * n)[:n], storage)
    return array if storage is kind else pa.ExtensionArray.from_storage(kind, array)


def parquet_of(table: pa.Table, times: int = 1, **options: Any) -> bytes:
    """Write a Parquet file that repeats the table's rows, one row group each time."""
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, table.schema, **options) as writer:
        for _ in range(times):
            writer.write_table(table)
    return bytes(sink.getvalue())


@st.composite
def typed_table(draw: DrawFn) -> pa.Table:
    """Draw columns of any type, few rows, odd names and metadata."""
    n = draw(rarely(st.sampled_from((0, 1, 5)), st.just(ROWS)))
    any_kind = st.sampled_from(COLUMNS)
    names = ["x", "y", *draw(st.lists(st.sampled_from(WORDS), max_size=2))]
    usual: list[Any] = [(pa.float64(), 0.5, 1.0), (pa.string(), "no", "yes")]
    kinds = [draw(any_kind | st.just(one)) for one in usual] + [draw(any_kind) for _ in names[2:]]
    columns = [typed_column(kind, n) for kind in kinds]
    table = pa.Table.from_arrays(columns, draw(rarely(st.just(names[::-1]), st.just(names))))
    if draw(st.booleans()):
        values = st.sampled_from([b"yes", b"", b"\xff", b"{" * 9, b"[]", b"{}", b"null"])
        keys = st.sampled_from([b"sparse", b"pandas", b"target", b"\xff", b"ARROW:schema"])
        table = table.replace_schema_metadata(draw(st.dictionaries(keys, values, max_size=3)))
    return table


@st.composite
def parquet_file(draw: DrawFn) -> bytes:
    """Draw a table, written in any version of the format."""
    table = draw(typed_table())
    options: dict[str, Any] = {
        "version": draw(st.sampled_from(["1.0", "2.4", "2.6"])),
        "compression": draw(st.sampled_from(["none", "snappy", "zstd", "gzip"])),
        "use_dictionary": draw(st.booleans()),
        "store_schema": draw(st.booleans()),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
    }
    try:
        return parquet_of(table, **options)
    except pa.ArrowException:  # a type that this version of the format lacks
        return parquet_of(table.select([]))


def npy(kind: str, shape: Sequence[int], body: bytes, version: int = 1, fortran: bool = False) -> bytes:
    """Build an array file with an arbitrary header."""
    sizes = "".join(f"{n}," for n in shape)
    header = f"{{'descr': {kind}, 'fortran_order': {fortran}, 'shape': ({sizes}), }}\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes((version, 0)) + length + header.encode("utf-8") + body


def sound_npy(array: Any) -> bytes:
    """Build a valid array file, as numpy writes it."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=True)
    return out.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Build an archive with correct checksums."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


X = np.column_stack([SEEN, np.cos(SEEN)])
SIGNS = np.where(np.arange(ROWS) % 2, 1, -1)
ROWS_OF = np.array([range(6), range(2, 8)]) + 1
PARTS = {"x": X, "t": SIGNS, "train": ROWS_OF, "test": ROWS_OF[::-1]}
MEMBERS = {
    "npz": {"X.npy": sound_npy(X), "y.npy": sound_npy(CLASSES)},
    "ida": {f"toy/{name}.npy": sound_npy(part - (name[0:2] in ("tr", "te"))) for name, part in PARTS.items()},
}
KINDS = [
    *("'<f8'", "'>f4'", "'<f2'", "'<f16'", "'<i8'", "'<u8'", "'|b1'", "'<c16'", "'|O'", "'|O8'", "'<U9'"),
    *("'|S3'", "'|S0'", "'|V8'", "'<M8[ns]'", "'<m8'"),
    *(
        "'<U1000000000'",
        "'<f8,<f8'",
        "[('a', '<f8')]",
        "[('a', '<f8', (9, 9))]",
        "[('a', '|O')]",
        "('<f8', (2,))",
    ),
    *("None", "0", "''", "[]", "'" + "(" * 300 + "f8'", "-" * 3000 + "1"),
]


@st.composite
def array_file(draw: DrawFn, sound: bytes) -> bytes:
    """Draw an array file: valid, damaged, or with a false header."""
    sizes = st.sampled_from([ROWS, 2, 0, 1, -1, 10**6, 10**12, 2**31, 2**62, 2**63, 10**30])
    lying = st.builds(
        npy,
        st.sampled_from(KINDS),
        st.lists(sizes, max_size=3) | st.just([ROWS, 2]) | st.just([ROWS]) | st.just([1] * 70),
        st.binary(max_size=200) | st.just(X.tobytes()),
        st.sampled_from([1, 1, 2, 3, 9]),
        st.booleans(),
    )
    return draw(rarely(lying, st.just(sound)) | damaged(st.just(sound)) | lying)


@st.composite
def npz_file(draw: DrawFn, which: str) -> bytes:
    """Draw an archive of arrays with up to two of them odd, and perhaps one renamed."""
    members = dict(MEMBERS[which])
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(sorted(MEMBERS[which])))
        members[name] = draw(array_file(MEMBERS[which][name]))
    if draw(st.integers(0, 7)) == 7:
        content = members.pop(draw(st.sampled_from(sorted(members))))
        name = draw(st.sampled_from(["X", "y", "X.npy", "toy.npy", "../X.npy", "X.npy\n", "a/b/c.npy"]))
        members[name] = content
    methods = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]
    return zipped(members, draw(st.sampled_from(methods)))


@st.composite
def svmlight_text(draw: DrawFn) -> bytes:
    """Draw lines of a sparse table, with odd labels, indices, values and comments."""
    odd = st.sampled_from([0, -1, 10**4, 10**6, 2**31, 2**32, 2**63, "", "qid", "x"])
    index = rarely(odd, st.integers(1, 4)).map(str)
    value = rarely(st.sampled_from([*WORDS, *NUMBERS]), st.integers(-9, 9))
    label = rarely(st.sampled_from([*WORDS, *NUMBERS, "1,2"]), st.sampled_from(["-1", "+1"]))
    rows = draw(rarely(st.integers(0, 2), st.just(ROWS)))
    entries = [[f"{i}:{draw(value)}" for i in sorted(draw(st.lists(index, max_size=3)))] for _ in range(rows)]
    lines = [" ".join([str(draw(label)), *row]) for row in entries]
    return "\n".join([*lines, draw(st.sampled_from(["", "# end", "#", "\0"]))]).encode()


FIELDS = Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3).options()
CERTIFICATIONS: list[dict[str, Any]] = [
    {},
    {"certify": "paper"},
    {"certify": "holdout", "holdout_share": 0.3, "claim": ["vote", "refit"]},
    {"criterion": "balanced"},
    {"criterion": "mean_error"},
    {"criterion": "cost:sick=10,healthy=1"},
    {"criterion": "cost:a=1,b=0.5"},
    {"holdout_share": 0.3, "resampling": "rotation"},  # this combination is refused
]
TOML_VALUES = [
    *("nan", "-inf", "1979-05-27T07:32:00Z", "07:32:00", "1979-05-27", "0xff", "0b1", "1_000", "{}", "''"),
    *("1e999", "[nan]", "[inf, 1]", "[[1], [2]]"),
    *("0x" + "f" * 5000, "[0x" + "f" * 5000 + "]", "9" * 5000, "[1, 'a']", '"""a\nb"""', "[1, 1.0, true]"),
    *("[" * 3000 + "]" * 3000, "{a=" * 500 + "1" + "}" * 500, "{a.b = 1}", "[-0.0]"),
]


@st.composite
def toml_text(draw: DrawFn) -> bytes:
    """Draw a study with a few odd values, unknown fields, tables."""
    odd = st.sampled_from(TOML_VALUES) | st.sampled_from(VALUES).map(json.dumps)
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=5))
    values = {name: FIELDS[name] for name in names} | draw(st.sampled_from(CERTIFICATIONS))
    lines = [f"{name} = {draw(rarely(odd, st.just(json.dumps(values[name]))))}" for name in values]
    name = st.sampled_from(["'a\\nb'", "k.a", "[C]", "[[C]]", "'' ", "é", "x" * 3000, "cls", "self", "study"])
    lines += [f"{draw(name)} = 1"] if draw(st.integers(0, 5)) == 5 else []
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@st.composite
def words_text(draw: DrawFn) -> bytes:
    """Draw the text of a grid or of fold numbers."""
    parts = ["log:", ":", ",", "3", "n", "-2", "4", "1e400", "10000", "10000000", "0x3", "1_0", "nan", "inf"]
    parts += ["-", "+", ".", "é", "٣", " ", "\n", "\0", "9" * 400, "9" * 5000]
    part = st.sampled_from(parts) | st.text(max_size=3)
    return "".join(draw(st.lists(part, max_size=8))).encode(errors="replace")


class Shaped(NamedTuple):
    """What a reader reads: the name of its file, and its contents."""

    name: str
    content: SearchStrategy[bytes]


SVMLIGHT = b"".join(b"%+d 1:%g 3:%g # row\n" % (sign, *row) for sign, row in zip(SIGNS, X, strict=True))
SHAPED = {
    "csv": Shaped("input.csv", csv_text()),
    "parquet": Shaped("input.parquet", parquet_file()),
    "npz": Shaped("input.npz", npz_file("npz")),
    "svmlight": Shaped("input.svmlight", svmlight_text() | st.just(SVMLIGHT)),
    "ida": Shaped("input.npz", npz_file("ida")),
    "toml": Shaped("study.toml", toml_text()),
    "words": Shaped("words", words_text()),
}


def cases(reader: str) -> SearchStrategy[Case]:
    """Return cases for a reader: built to its format, half of them also damaged."""
    content = SHAPED[reader].content
    return (content | damaged(content)).map(Case)
