"""Inputs of ``fuzz``: nearly valid files.

A file is built to its format from odd parts (``SHAPED``), or is a valid one with damaged bytes (``damaged``).
Where a checksum would refuse the damage before the reader sees it, the checksum is computed again afterwards.
Malicious files are in ``fuzz_hostile``.
"""

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from jobs.faults.fuzz_parts import DEEP, HUGE, VALUES, Case, damaged, rarely
from jobs.faults.fuzz_tables import (
    SIGNS,
    X,
    csv_text,
    feather_file,
    npz_file,
    parquet_file,
    svmlight_text,
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


class Shaped(NamedTuple):
    """What a reader reads: the name of its file, and its contents."""

    name: str
    content: SearchStrategy[bytes]


SVMLIGHT = b"".join(b"%+d 1:%g 3:%g # row\n" % (sign, *row) for sign, row in zip(SIGNS, X, strict=True))
SHAPED = {
    "csv": Shaped("input.csv", csv_text()),
    "parquet": Shaped("input.parquet", parquet_file()),
    "feather": Shaped("input.feather", feather_file()),
    "xlsx": Shaped("input.xlsx", xlsx_file()),
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
