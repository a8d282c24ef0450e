"""A column whose numbers had one or two decimals asks about a new cell that may have a mark of thousands."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import DeclaredTypes, Schema, has_short_decimals, is_doubtful
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.task import Task

N = 40
FORMS = {  # cells learned from, and new ones: doubtful, the same number as decimals, and as thousands
    "point": ([f"{i}.{i % 10}5" for i in range(N)], "1.250", 1.25, 1250.0),
    "few texts": (["1.5", "2.25"] * (N // 2), "1.250", 1.25, 1250.0),
    "with gaps": (["1.5", "-", "", *[f"{i}.75" for i in range(N - 3)]], "1.250", 1.25, 1250.0),
    "with spaces": ([f" {i}.75" for i in range(N)], " 1.250 ", 1.25, 1250.0),
    "comma": ([f"{i},{i % 10}5" for i in range(N)], "1,250", 1.25, 1250.0),
    "thousands": ([f"{i + 1},000.50" for i in range(N)], "1.250", 1.25, 1250.0),
    "points": ([f"{i + 1}.000,50" for i in range(N)], "-1,250", -1.25, -1250.0),
    "whole dollars": ([f"${i + 1},000,000" for i in range(N)], "$1.250", 1.25, 1250.0),
    "whole points": ([f"{i + 1}.000.000" for i in range(N)], "1,250", 1.25, 1250.0),
    "dollars": ([f"${i}.50" for i in range(N)], "$1.250", 1.25, 1250.0),
    "euros": ([f"{i},50 €" for i in range(N)], "1,250 €", 1.25, 1250.0),
}


def write(folder: Path, cells: list[str], name: str = "table.csv") -> Path:
    rows = (f"{cell};{i % 7};{'ab'[i % 2]}" for i, cell in enumerate(cells))
    path = folder / name
    path.write_text("\n".join(["col;x;y", *rows]), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMS)
def test_a_cell_that_may_have_thousands_is_asked_about(name: str, tmp_path: Path) -> None:
    cells, new, decimals, thousands = FORMS[name]
    task, _ = read_task(write(tmp_path, cells))
    assert task.schema[0].short_decimals
    rows = read(write(tmp_path, [*cells, new], "new.csv")).learn
    found = task.read(rows)
    assert found.bad[-1]
    if "gap" not in name:  # of which the first row is what cannot be judged
        mends = [f"--thousands {mark} if it is" for mark in (",." if "," in new else ".,")]
        assert f"has {new!r} in row {N + 1}, whose mark may be that of thousands" in found.reason
        assert ", ".join(mends) in found.reason
    assert np.array_equal(found.X[:-1], task.X, equal_nan=True)
    mark = "," if "," in new else "."
    for said, value in ((mark, thousands), (",.".replace(mark, ""), decimals)):
        known = task.read(rows, said)
        assert known.X[-1, 0] == value
        assert np.array_equal(known.X[:-1], task.X, equal_nan=True)


@pytest.mark.parametrize("new", ["1.25", "1250", "1.2500", "0.250", "1234.250", "1.250e3", "1.25e", "high"])
def test_other_cells_are_read_as_ever(new: str, tmp_path: Path) -> None:
    task, _ = read_task(write(tmp_path, FORMS["point"][0]))
    plain = Task.of(pa.table({"col": task.X[:, 0], "x": task.X[:, 1]}), task.y)
    rows = read(write(tmp_path, [new] * 3, "new.csv")).learn
    found, expected = task.read(rows), plain.read(rows)
    assert found.bad.tolist() == expected.bad.tolist()
    assert np.array_equal(found.X, expected.X, equal_nan=True)


@pytest.mark.parametrize(
    "cells",
    [
        [f"{i}.5" if i else "1.250" for i in range(N)],
        [f"{i}.5" if i != N - 1 else "7" for i in range(N)],
        [str(i) for i in range(N)],
        [f"{i},5" if i else "1,2500" for i in range(N)],
        [f"${i}.50" if i else "$7" for i in range(N)],
    ],
)
def test_other_columns_ask_about_nothing(cells: list[str], tmp_path: Path) -> None:
    task, _ = read_task(write(tmp_path, cells))
    assert not task.schema[0].short_decimals


def test_nothing_is_asked_where_the_mark_was_said(tmp_path: Path) -> None:
    for thousands, cells in ((",", FORMS["point"][0]), (".", FORMS["comma"][0]), (",", FORMS["dollars"][0])):
        asked = DeclaredTypes(thousands=thousands)
        assert not read_task(write(tmp_path, cells), asked=asked)[0].schema[0].short_decimals


def test_a_doubtful_cell_is_no_gap_of_a_lenient_column(tmp_path: Path) -> None:
    cells = [*FORMS["point"][0], "high"]
    task, _ = read_task(write(tmp_path, cells), asked=DeclaredTypes(numeric=["col"]))
    assert task.schema[0].lenient
    assert task.schema[0].short_decimals
    found = task.read(read(write(tmp_path, ["1.250", "low", "1.5"], "new.csv")).learn)
    assert found.bad.tolist() == [True, False, False]
    assert np.isnan(found.X[1, 0])


def test_text_in_a_frame_is_seen_and_numbers_are_not() -> None:
    y = ["a", "b"] * (N // 2)
    task = Task.of(pa.table({"col": FORMS["point"][0]}), y)
    with pytest.raises(InputError, match=r"'1\.250' in row 1, whose mark may be that of thousands"):
        task.rows_from(pa.table({"col": ["1.250"]}))
    assert task.rows_from(pa.table({"col": [1.25]})).tolist() == [[1.25]]
    assert not Task.of(pa.table({"col": task.X[:, 0]}), y).schema[0].short_decimals


def test_the_schema_on_disk_says_so(tmp_path: Path) -> None:
    task, _ = read_task(write(tmp_path, FORMS["point"][0]))
    written = task.schema.to_json()
    assert [column["short_decimals"] for column in written] == [True, False]
    assert tuple(Schema.from_json(json.loads(json.dumps(written)))) == tuple(task.schema)


@given(st.floats(0.01, 1e6), st.sampled_from(["point", "comma", "$|point", "€|comma", ""]))
def test_numbers_of_two_decimals_are_never_doubtful(value: float, form: str) -> None:
    text = f"{value:.2f}".replace(".", "," if form.endswith("comma") else ".")
    text = {"$": f"${text}", "€": f"{text} €"}.get(form[:1], text)
    assert has_short_decimals([text], form)
    assert not is_doubtful(text, form)
    assert not has_short_decimals([text, text.split("." if "." in text else ",")[0]], form)
