"""Readers of tables as Arrow columns: CSV, Parquet, NPZ and svmlight.

Files are not trusted. The sizes that a file declares are checked against limits, and what it expands to in
fact has a limited memory, so that a small file that expands to a large one, or claims to, is refused; nothing
in it is unpickled. Text is counted as it is unpacked, and read without that limit: Arrow's reader of text
ends the process where memory is short.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from itertools import islice, pairwise
from math import prod
from os.path import isdir, isfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from ckcv_ray.errors import InputError, convert_errors
from ckcv_ray.tables.readers.code_pages import check_encoding
from ckcv_ray.tables.readers.excel import read_excel
from ckcv_ray.tables.readers.limits import (
    HELD,
    MAX_TABLE_BYTES,
    SPARSE,
    check_bytes,
    check_size,
    check_text,
    count_cell_bytes,
    has_lengths,
    limit_memory,
)
from ckcv_ray.tables.readers.lines import LinesLeftOut
from ckcv_ray.tables.readers.objects import SCHEMES, Address, Bucket, is_address, parse_address
from ckcv_ray.tables.readers.text import COMPRESSED, inflate, read_text
from ckcv_ray.tables.target import is_value
from ckcv_ray.validation import as_path, quote, suggest

SPACED = (".txt", ".dat")  # text tables that may be separated by spaces
TEXT, EXCEL = (".csv", ".tsv", *SPACED), (".xlsx",)
SUFFIXES = (*TEXT, ".parquet", ".feather", *EXCEL, ".npz", ".svmlight", ".libsvm", ".svm")
LONGEST_TYPE = 120
AS_SUCH = frozenset((pa.float64(), pa.int64(), pa.string(), pa.bool_()))  # whose values are as such
SAFE_DIGITS = 15  # of decimals, any two of which are two floats
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
STORES = ("s3a", "gcs", "abfs", "abfss", "wasb", "wasbs", "hdfs")  # under names that are not read
STUDY_FILE = "study.json"  # by which a run folder is known
MAX_FILES = 3
AS_CSV = "write it as CSV first, "
FRAME = AS_CSV + "in Python by pandas.{}.to_csv({{csv!r}}, index=False)"
CURES = {  # what to do with files of other formats
    **dict.fromkeys(
        (".zip", ".7z", ".rar", ".tar", ".tgz", ".xz", *COMPRESSED),
        "unpack it first, and name the table in it",
    ),
    **dict.fromkeys((".xls", ".xlsb", ".xlsm", ".ods", ".numbers"), "save it as .xlsx or .csv"),
    **dict.fromkeys(
        (".data", ".tab", ".asc", ".prn"),
        "if it is text, rename it to .csv (.txt if spaces separate its columns, which its first line names)",
    ),
    ".arff": "copy the lines below @data to a .csv file, below a line of the names that follow @attribute",
    ".rds": AS_CSV + "in R by write.csv(readRDS({file!r}), {csv!r}, row.names=FALSE)",
    ".rdata": AS_CSV + "in R by write.csv(FRAME, {csv!r}, row.names=FALSE)",
    ".dta": FRAME.format("read_stata({file!r})"),
    ".sav": FRAME.format("read_spss({file!r})"),
    ".sas7bdat": FRAME.format("read_sas({file!r})"),
    ".json": FRAME.format("read_json({file!r})"),
    ".jsonl": FRAME.format("read_json({file!r}, lines=True)"),
    ".npy": "write X and y into one file, by numpy.savez({npz!r}, X=X, y=y)",
    ".mat": "read it by scipy.io.loadmat, and write X and y by numpy.savez({npz!r}, X=X, y=y)",
}


def find_suffix(path: Path) -> str:
    """Return the suffix that says the format: of a compressed text table the one before that."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix in COMPRESSED and inner in TEXT else suffix


class Reading(NamedTuple):
    """What a file does not say about itself.

    Attributes:
        separator: of the columns of a text table; None to find it.
        sheet: of a workbook; None if it has one.
        skip_rows: numbers of lines of a text table, or of rows of a sheet, to leave out, such as
            "1-3,7,last"; "none" to keep those that look like units or totals; None to leave out none, and to
            refuse these.
        encoding: of a text table that does not say it by its first bytes, such as cp1251, shift_jis or
            mac_roman; None to find it: UTF-8, or cp1252 if it looks like that.
    """

    separator: str | None = None
    sheet: str | None = None
    skip_rows: str | None = None
    encoding: str | None = None

    def adapt(self, source: str) -> "Reading":
        """Return what applies to another file, which may be of another format."""
        suffix = find_suffix(Path(source))
        kept = (value if suffix in suffixes else None for value, suffixes in zip(self, FOR, strict=True))
        return Reading(*kept)


AS_IT_IS = Reading()
FOR = (TEXT, EXCEL, (*TEXT, *EXCEL), TEXT)  # suffixes of the files that each field is for


def check_place(source: str) -> None:
    """Raise InputError if a source is a folder, an address that is not read, or of a format that is not."""
    path = Path(source)
    if (cure := CURES.get(find_suffix(path))) and not isdir(source):
        advice = cure.format(file=source, csv=f"{path.stem}.csv", npz=f"{path.stem}.npz")
        raise InputError(f"{source!r} is not read as {path.suffix}: {advice}")
    if found := ADDRESS.match(source):
        scheme = found[1].lower()
        if scheme in SCHEMES:
            parse_address("source", source)
            return
        if scheme in ("http", "https"):
            mend = "download the file first, and name it"
        elif scheme in STORES:
            mend = "copy the file from its object store to this machine first, and name it"
        else:
            mend = f"tables are not read from {scheme}://: name a file on this machine"
        raise InputError(f"{source!r} is an address: {mend}")
    if not isdir(source):
        return
    if isfile(Path(source) / STUDY_FILE):
        raise InputError(
            f"{source!r} is a run folder, and no table: name a file; ckcv status, report and verify read a "
            "run folder, and ckcv predict reads it and then a file of rows"
        )
    files = (path for path in sorted(Path(source).iterdir()) if find_suffix(path) in SUFFIXES)
    named = [repr(str(path)) for path in islice(files, MAX_FILES)]
    such = f", such as {' or '.join(named)}" if named else f": none here ends in {', '.join(SUFFIXES)}"
    raise InputError(f"{source!r} is a folder, and no table: name a file{such}")


def check_file(path: Path) -> None:
    """Raise InputError if there is no file at a path."""
    if not path.is_file():
        nearby: list[str] = []
        with suppress(OSError):
            nearby = [name for name in os.listdir(path.parent) if find_suffix(Path(name)) in SUFFIXES]
        raise InputError(f"there is no file {str(path)!r}{suggest(path.name, nearby, quote)}")


def read_file(path: str | Path, reading: Reading = AS_IT_IS) -> pa.Table:
    """Read the columns of a file in the format given by its suffix; those of a text table are all text.

    Args:
        path: the file, or an address such as s3://bucket/patients.parquet.
        reading: what it does not say about itself.

    Raises:
        InputError: the file does not exist, is not in that format, or is too large.
        UnreachableError: its store does not answer.
    """
    check_place(str(path))
    if is_address(path):
        return _read_object(parse_address("source", str(path)), reading)
    path = as_path("path", path)
    suffix = find_suffix(path)
    if suffix not in SUFFIXES:
        raise InputError(f"{str(path)!r} does not end in {', '.join(SUFFIXES)}")
    for option, value, suffixes in zip(Reading._fields, reading, FOR, strict=True):
        if value is not None and suffix not in suffixes:
            raise InputError(f"{option} is for {' and '.join(suffixes)}, not {str(path)!r}: leave it out")
    lines = LinesLeftOut.parse(reading.skip_rows)
    check_encoding(reading.encoding)
    check_file(path)
    limited = nullcontext() if suffix in TEXT else limit_memory()
    with convert_errors(InputError, f"cannot read {str(path)!r} as {suffix[1:]}"), limited:
        if suffix in TEXT:
            separator = "\t" if reading.separator is None and suffix == ".tsv" else reading.separator
            columns = read_text(path, separator, lines, suffix in SPACED, reading.encoding)
        elif suffix in EXCEL:
            columns = read_excel(path, reading.sheet, lines)
        else:
            readers = {".parquet": _parquet, ".feather": _feather, ".npz": _npz}
            columns = readers.get(suffix, _svmlight)(path)
        return _utf8(with_plain_values(columns), text=suffix in TEXT)


def _read_object(address: Address, reading: Reading) -> pa.Table:
    """Read a table from an object store, by a copy of it that is removed at the end."""
    bucket, _, name = address.key.rpartition("/")
    with TemporaryDirectory(prefix="ckcv-") as folder:
        copy = Path(folder) / name
        with copy.open("wb") as file:
            try:
                Bucket(address._replace(key=bucket)).download(name, MAX_TABLE_BYTES, file)
            except FileNotFoundError:
                raise InputError(f"there is no object {str(address)!r}") from None
            except InputError:
                raise
            except ValueError as error:
                raise InputError(f"cannot read {str(address)!r}: {error}") from None
        try:
            return read_file(copy, reading)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), str(address))) from None


def with_plain_values(columns: pa.Table) -> pa.Table:
    """Return the columns with their values as such, and not as they are stored: views, runs, decimals.

    Categories that are no numbers, text or dates, but such as bytes, become an empty column that says so.
    """
    for i, kind in enumerate(columns.schema.types):
        if kind in AS_SUCH:
            continue
        field, stored = columns.schema.field(i), columns.column(i)
        if pa.types.is_dictionary(kind) and not is_value(kind.value_type):
            columns = columns.set_column(i, withhold(field.name, kind), pa.nulls(columns.num_rows))
        elif (values := as_values(stored)) is not stored:
            columns = columns.set_column(i, field.with_type(values.type), values)
    return columns


def as_values(stored: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its values as such; the column itself if it has them, or holds no plain values."""
    kind = stored.type
    if pa.types.is_dictionary(kind):
        return _as_categories(stored)
    if pa.types.is_run_end_encoded(kind) and is_value(kind.value_type):
        with suppress(pa.ArrowNotImplementedError):  # of views
            return as_values(pc.run_end_decode(stored))
    if pa.types.is_string_view(kind):
        return stored.cast(pa.string())
    if pa.types.is_float16(kind):
        return stored.cast(pa.float32())
    if pa.types.is_timestamp(kind):
        try:
            pa.array([0], kind).cast(pa.string())
        except pa.ArrowInvalid:  # a zone that is not known here
            return stored.cast(pa.timestamp(kind.unit, "UTC"))
    return _read_decimals(stored) if pa.types.is_decimal(kind) else stored


def _as_categories(stored: pa.ChunkedArray) -> pa.ChunkedArray:
    levels = [chunk.dictionary for chunk in stored.chunks]
    joined = pa.chunked_array(levels, stored.type.value_type)
    if (plain := as_values(joined)) is joined:
        return stored
    values, ends = plain.combine_chunks(), np.cumsum([0, *map(len, levels)])  # as Arrow may join chunks
    parts = [
        pa.DictionaryArray.from_arrays(chunk.indices, values[start:end], ordered=stored.type.ordered)
        for chunk, (start, end) in zip(stored.chunks, pairwise(ends.tolist()), strict=True)
    ]
    return pa.chunked_array(parts, pa.dictionary(stored.type.index_type, values.type, stored.type.ordered))


def _read_decimals(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whole numbers, or the nearest floats; the decimals where two of them are nearest to one."""
    texts = decimals.cast(pa.string())  # Arrow does not round a decimal to the nearest float
    if decimals.type.scale <= 0:
        with suppress(pa.ArrowInvalid):
            return texts.cast(pa.int64())
    numbers = texts.cast(pa.float64())
    digits = (pc.max(pc.abs(numbers)).as_py() or 0.0) * 10.0**decimals.type.scale
    exact = digits < 10.0**SAFE_DIGITS or pc.count_distinct(texts) == pc.count_distinct(numbers)
    return numbers if exact else decimals


def index_names(columns: pa.Table) -> set[str]:
    """Return the names of the columns that are the index of a pandas frame, which names rows."""
    try:
        said = json.loads((columns.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):  # nobody vouches for the metadata of a file
        said = []
    named = {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
    return named | {name for name in columns.column_names if name.startswith("__index_level_")}


def name_columns(d: int) -> list[str]:
    """Return the names of d columns that have none."""
    return [f"x{i}" for i in range(d)]


def from_matrix(
    X: NDArray[Any], y: NDArray[Any] | None, names: list[str] | None = None, target: str = "y"
) -> pa.Table:
    """Make columns x0, x1, ... (or ``names``) from X [n, d], and the target from y [n]."""
    names = names or name_columns(X.shape[1])
    columns: dict[str, Any] = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(names)}
    if X.dtype == object:  # in which nan is a gap
        columns = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    return pa.table(columns | ({} if y is None else {target: y}))


@contextmanager
def npz(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an archive of arrays, refusing pickles; it is closed at the end in any case.

    Raises:
        InputError: an array expands to more than can be read.
    """
    with path.open("rb") as file:
        if file.read(2) not in (b"PK", b"\x93N"):
            raise ValueError("it is not an archive of arrays (np.savez)")
        file.seek(0)
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array, not an archive of arrays (np.savez)")
        with archive:
            assert archive.zip is not None
            for member in archive.zip.infolist():
                check_bytes(f"{str(path)!r}: the array {member.filename!r}", member.file_size)
            yield archive


def check_parquet_size(source: BinaryIO, most_rows: int, most: int) -> pa.Schema:
    """Return the schema of a Parquet file that says to hold at most ``most_rows`` rows and ``most`` values.

    Raises:
        InputError: it says to hold more, or to take more bytes than that many numbers and texts may.
    """
    most_bytes = 16 * most + MAX_TABLE_BYTES
    with parquet.ParquetFile(source) as file:
        rows, size, schema = *_count_rows(file.metadata), file.schema_arrow
        values = rows * file.metadata.num_columns
    if values > most or rows > most_rows:
        allowed = f"at most {most:,} values in {most_rows:,} rows can be read"
        raise InputError(f"it holds {values:,} values in {rows:,} rows: {allowed}")
    if (size := max(size, rows * sum(map(count_cell_bytes, schema.types)))) > most_bytes:
        raise InputError(f"it takes {size >> 20:,} MiB: at most {most_bytes >> 20:,} MiB can be read")
    return schema


def _count_rows(metadata: parquet.FileMetaData) -> tuple[int, int]:
    """Return the rows and bytes of all row groups together; the file may say something else of itself."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]  # whose columns may abort Arrow
    rows = max(metadata.num_rows, sum(max(0, group.num_rows) for group in groups))
    return rows, sum(max(0, group.total_byte_size) for group in groups)


def is_plain(kind: pa.DataType) -> bool:
    """Return whether cells of a type are single values: no lists, no bytes of a width the file chooses."""
    if pa.types.is_dictionary(kind):
        return is_plain(kind.value_type) and not pa.types.is_dictionary(kind.value_type)
    fixed = pa.types.is_fixed_size_binary(kind) or isinstance(kind, pa.BaseExtensionType)
    return not (fixed or pa.types.is_nested(kind))


def read_parquet(
    source: Path | BinaryIO, schema: pa.Schema, verified: bool = False, plain: bool = False
) -> pa.Table:
    """Read a Parquet file, text as dictionaries first: a few values may fill very many cells.

    Args:
        source: a file that was checked.
        schema: of the file.
        verified: whether to verify the checksums of its pages.
        plain: whether to read only the columns whose cells are single values.

    Raises:
        InputError: its text expands to more than can be read.
    """
    text = [field.name for field in schema if has_lengths(field.type)]
    options = {"read_dictionary": text, "page_checksum_verification": verified, "pre_buffer": False}
    with parquet.ParquetFile(source, **options) as file:
        # Arrow's threads may abort the process at its exit (arrow #34314): tables are read on this one, and
        # by the numbers of columns, as by name a.list.element may be a part of a list a as well
        chosen = _find_plain(schema) if plain else None
        table = file.reader.read_all(column_indices=chosen, use_threads=False)
    table.validate(full=True)  # Arrow reads text that is not UTF-8, and times beyond midnight
    check_text(repr(str(source)) if isinstance(source, Path) else "it", table)
    for i, column in enumerate(table.schema):
        if column.name in text and pa.types.is_dictionary(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(column.type.value_type))
    return table


def _find_plain(schema: pa.Schema) -> list[int]:
    """Return the numbers of columns whose cells are single values, as Parquet counts: a list by its parts."""
    starts = np.cumsum([0, *map(_count_parts, schema.types)]).tolist()
    return [start for start, kind in zip(starts, schema.types, strict=False) if is_plain(kind)]


def _count_parts(kind: pa.DataType) -> int:
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return sum(_count_parts(kind.field(i).type) for i in range(kind.num_fields)) or 1


def _parquet(path: Path) -> pa.Table:
    name = repr(str(path))
    with parquet.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    rows, size = _count_rows(metadata)
    flat = [kind for kind in schema.types if is_plain(kind)]
    check_size(name, rows, metadata.num_columns)
    check_bytes(name, max(rows * sum(map(count_cell_bytes, flat)), size if len(flat) == len(schema) else 0))
    columns = read_parquet(path, schema, plain=len(flat) < len(schema))
    for i, field in enumerate(schema):
        if not is_plain(field.type):  # cells of any length, which cannot be learned from
            columns = columns.add_column(i, withhold(field.name, field.type), pa.nulls(columns.num_rows))
    return columns


def withhold(name: str, kind: object) -> pa.Field:
    """Return an empty column in place of one whose cells are not read; it says what they were."""
    return pa.field(name, pa.null(), metadata={HELD: str(kind)[:LONGEST_TYPE]})


def _feather(path: Path) -> pa.Table:
    name, batches = repr(str(path)), []
    check_bytes(name, path.stat().st_size)
    rows = size = 0
    with pa.OSFile(str(path)) as stored:
        content = stored.read_buffer()  # threads of Arrow's pool would read ahead in a file: see read_parquet
    with pa.ipc.open_file(content, options=pa.ipc.IpcReadOptions(use_threads=False)) as file:
        for i in range(file.num_record_batches):  # several may be in one place of the file
            batches.append(batch := file.get_batch(i))
            check_size(name, rows := rows + batch.num_rows, len(file.schema))
            check_bytes(name, size := size + batch.get_total_buffer_size())
            batch.validate(full=True)  # a reader follows offsets as they are
        columns = pa.Table.from_batches(batches, file.schema)
    for i, field in enumerate(columns.schema):
        if not is_plain(field.type):
            columns = columns.set_column(i, withhold(field.name, field.type), pa.nulls(columns.num_rows))
    check_size(name, columns.num_rows, columns.num_columns)
    check_bytes(name, rows * sum(map(count_cell_bytes, columns.schema.types)))
    check_text(name, columns)
    return columns


def _npz(path: Path) -> pa.Table:
    with npz(path) as archive:
        if "X" not in archive.files:
            raise InputError(f"{str(path)!r} has no array 'X': it holds {', '.join(archive.files[:12])}")
        shape = _check_array(archive, "X", path)
        check_size(repr(str(path)), *(shape if len(shape) == 2 else (0, 0)))
        if "y" in archive.files:
            _check_array(archive, "y", path)
        X, y = archive["X"], archive["y"] if "y" in archive.files else None
    if X.ndim != 2 or (y is not None and y.shape != X.shape[:1]):
        shapes = f"X has shape {X.shape}" + ("" if y is None else f" and y {y.shape}")
        raise InputError(f"{str(path)!r}: {shapes}: expected (n, d) and (n,)")
    check_size(repr(str(path)), *X.shape)
    return from_matrix(X, y)


def _check_array(archive: np.lib.npyio.NpzFile, name: str, path: Path) -> tuple[int, ...]:
    """Return the shape of an array of an archive, which is checked to be no longer than its file."""
    assert archive.zip is not None
    member = next(info for info in archive.zip.infolist() if info.filename in (name, f"{name}.npy"))
    with archive.zip.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read:
            raise ValueError(f"its array {name!r} is of a version for names that are not in ASCII")
        shape, _, dtype = read[version](file)
    size = prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size > member.file_size:
        raise ValueError(f"its array {name!r} says to be longer than it is")
    check_bytes(f"{str(path)!r}: the array {name!r}", size)
    return tuple(shape)


def _svmlight(path: Path) -> pa.Table:
    from sklearn.datasets import load_svmlight_file

    content = inflate(path, b":")
    X, y = load_svmlight_file(BytesIO(content), zero_based=True)  # "auto" may vary from file to file
    check_size(repr(str(path)), *X.shape)
    columns = from_matrix(X.toarray(), y)
    if X.shape[1] > 1 and not X[:, 0].count_nonzero():  # the file numbers columns from one
        columns = columns.drop_columns(["x0"])
    return columns.replace_schema_metadata({SPARSE: b"yes"})


def _utf8(columns: pa.Table, text: bool) -> pa.Table:
    """Return the columns, checking that names (and, in a text file, values) are in UTF-8."""
    for i, column in enumerate(columns.schema):
        valid = False
        with suppress(UnicodeDecodeError):
            valid = column.name is not None and not (text and pa.types.is_binary(column.type))
        if not valid:
            raise InputError(f"column {i + 1} is not in UTF-8: save the file in that encoding")
    return columns
