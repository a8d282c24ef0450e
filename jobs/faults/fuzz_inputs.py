"""Inputs of ``fuzz``: nearly valid files.

A file is built to its format from odd parts (``SHAPED``), or is a valid one with damaged bytes (``damaged``).
Where a checksum would refuse the damage before the reader sees it, the checksum is computed again afterwards.
Malicious files are in ``fuzz_hostile``.
"""

import json
from copy import deepcopy
from math import inf, nan
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyarrow import parquet

from jobs.faults.fuzz_parts import DEEP, HUGE, NUMBERS, VALUES, WORDS, Case, damaged, rarely
from jobs.faults.fuzz_tables import (
    COLUMNS,
    SIGNS,
    X,
    csv_text,
    feather_file,
    npz_file,
    parquet_file,
    svmlight_text,
    typed_column,
    xlsx_file,
)

FIELDS: dict[str, Any] = {
    "C": [0.1, 1.0],
    "gamma": "log:-2:2:3",
    "k": "3:8",
    "n_splits": 3,
    "delta": 0.05,
    "seed": 1,
    "scale": "none",
    "param": {"solver": "newton", "tolerance": 0.01, "max_iter": 100},
    "report_k": [3],
    "exhaustive": True,
    "resampling": "complete",
    "learner": "svm",
    "criterion": "error",
}
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


def as_json(value: Any) -> str:
    """Write JSON text, including values that ``json`` itself cannot write."""
    text = json.dumps(value)
    return text.replace(f'"{DEEP}"', "[" * 20_000 + "]" * 20_000).replace(f'"{HUGE}"', "9" * 5000)


@st.composite
def toml_text(draw: DrawFn) -> bytes:
    """Draw a study with a few odd values, unknown fields, tables."""
    odd = st.sampled_from(TOML_VALUES) | st.sampled_from(VALUES).map(as_json)
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=5))
    values = {name: FIELDS[name] for name in names} | draw(st.sampled_from(CERTIFICATIONS))
    lines = [f"{name} = {draw(rarely(odd, st.just(as_json(values[name]))))}" for name in values]
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


def edited_json(draw: DrawFn, content: bytes) -> bytes:
    """Replace, remove or add one or two values of a JSON file, at any depth."""
    tree = {"": json.loads(content)}
    for _ in range(draw(st.integers(1, 2))):
        at: Any = tree
        key: Any = ""
        while isinstance(at[key], dict | list) and at[key] and draw(st.integers(0, 5)):
            at = at[key]
            key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        how = draw(st.integers(0, 5))
        if how == 0 and at is not tree:
            del at[key]
            break
        if how == 1 and isinstance(at[key], dict):
            at[key][draw(st.sampled_from(WORDS))] = deepcopy(draw(st.sampled_from(VALUES)))
        else:
            at[key] = deepcopy(draw(st.sampled_from(VALUES)))  # which the next edit may change
    return as_json(tree[""]).encode()


def edited_parquet(draw: DrawFn, content: bytes) -> bytes:
    """Put odd values into a column of a Parquet file, or change its rows, columns, types or metadata."""
    table = parquet.read_table(pa.BufferReader(content))
    column = draw(st.integers(0, table.num_columns - 1))
    field, rows = table.schema.field(column), table.num_rows
    row = draw(st.integers(0, max(0, rows - 1)))
    how = draw(st.sampled_from(("value", "value", "value", "rows", "drop", "twice", "type", "metadata")))
    if how == "value":
        listed = pa.types.is_list(field.type)
        odd = st.sampled_from([None, *NUMBERS, *WORDS, nan, inf, 99, -2])
        values = table.column(column).to_pylist()
        everywhere = draw(st.booleans())
        new = draw(st.lists(odd, max_size=3) | st.none() if listed else odd)
        if listed and draw(st.booleans()) and rows and values[row]:
            new = [*values[row][:-1], draw(odd)]
        values = [new if everywhere or i == row else value for i, value in enumerate(values)]
        try:
            table = table.set_column(column, field, pa.array(values, field.type))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return content
    elif how == "rows":
        order = draw(st.lists(st.integers(0, max(0, rows - 1)), max_size=12) | st.just([*range(rows)][::-1]))
        table = table.take(pa.array(order, pa.int64())) if rows else table
    elif how == "drop":
        table = table.remove_column(column)
    elif how == "twice":
        table = table.append_column(field, table.column(column))
    elif how == "type":
        other = typed_column(draw(st.sampled_from(COLUMNS)), rows)
        table = table.set_column(column, pa.field(field.name, other.type), other)
    else:
        metadata = dict(table.schema.metadata or {})
        value = st.sampled_from([b"", b"\xff", b"y", b"[]", b"{", b"3", b"null", b"[" * 5000])
        metadata[draw(st.sampled_from(sorted(metadata)))] = draw(value)
        table = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return bytes(sink.getvalue())


@st.composite
def run_case(draw: DrawFn, runs: dict[str, dict[str, bytes]]) -> Case:
    """Draw a finished run with one or two files missing, damaged, swapped, or edited within their format."""
    base = draw(st.sampled_from(sorted(runs)))
    files = runs[base]
    changed: dict[str, bytes | None] = {}
    for _ in range(draw(rarely(st.just(2), st.just(1)))):
        name = draw(st.sampled_from(sorted(name for name in files if not name.endswith(".pkl"))))
        how = draw(st.sampled_from(("edit", "edit", "edit", "damage", "remove", "swap")))
        if how == "edit":
            edit = edited_json if name.endswith(".json") else edited_parquet
            changed[name] = edit(draw, files[name])
        elif how == "damage":
            changed[name] = draw(damaged(st.just(files[name])))
        else:
            changed[name] = None if how == "remove" else files[draw(st.sampled_from(sorted(files)))]
    return Case(changed, base, sealed=draw(st.booleans()))


SVMLIGHT = b"".join(b"%+d 1:%g 3:%g # row\n" % (sign, *row) for sign, row in zip(SIGNS, X, strict=True))
SHAPED: dict[str, tuple[str, SearchStrategy[bytes]]] = {
    "csv": ("input.csv", csv_text()),
    "parquet": ("input.parquet", parquet_file()),
    "feather": ("input.feather", feather_file()),
    "xlsx": ("input.xlsx", xlsx_file()),
    "npz": ("input.npz", npz_file("npz")),
    "svmlight": ("input.svmlight", svmlight_text() | st.just(SVMLIGHT)),
    "ida": ("input.npz", npz_file("ida")),
    "toml": ("study.toml", toml_text()),
    "words": ("words", words_text()),
}


def cases(reader: str) -> SearchStrategy[Case]:
    """Return cases for a reader of one file: built to its format, half of them also damaged."""
    name, shaped = SHAPED[reader]
    content = shaped | damaged(shaped)
    return content.map(lambda written: Case({name: written}))
