"""Words for empty cells (NA, none): what is taken for a gap is said; what is kept is text like any other."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import Execution, Job, load_run, verify
from ckcv_ray.errors import InputError
from ckcv_ray.runs.compare import compare
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.watch import watch
from ckcv_ray.study.study import Study
from ckcv_ray.tables.columns import ColumnKind, DeclaredTypes
from ckcv_ray.tables.named import read_task
from ckcv_ray.tables.read import read_file
from ckcv_ray.tables.task import Roles, Task, compute_salt

NAMIBIA = DeclaredTypes(keep_values=("NA",))
COUNTRIES = ["NA", "ZA", "", "DE"] * 10
DRINKS = ["none", "some", "much", "some", "none"] * 8
LABELS = ["yes", "no"] * 20


def frame(country: list[str] = COUNTRIES, y: list[str] = LABELS) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(40) % 7 / 2, "country": country, "drink": DRINKS, "y": y})


def write(rows: pd.DataFrame, name: str, folder: Path) -> Path:
    path = folder / name
    getattr(rows, {"csv": "to_csv", "parquet": "to_parquet", "xlsx": "to_excel"}[name[2:]])(path, index=False)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.xlsx"])
def test_each_reader_hands_over_the_words_and_they_are_gaps_unless_they_are_kept(
    name: str, tmp_path: Path
) -> None:
    path = write(frame(), name, tmp_path)
    cells = read_file(path)["country"].to_pylist()
    assert [cell or "" for cell in cells] == COUNTRIES
    task, _ = read_task(path)
    assert task.schema[1].levels == ("DE", "ZA")
    assert [found.describe() for found in task.gap_words] == [
        "column 'country': 'NA' in 10 of 40 rows (25 %) was taken for an empty cell, like cells that are "
        "empty: --keep-values NA keeps it",
        "column 'drink': 'none' in 16 of 40 rows (40 %) was taken for an empty cell: --keep-values none "
        "keeps it",
    ]
    kept, _ = read_task(path, asked=NAMIBIA)
    assert kept.schema[1].levels == ("DE", "NA", "ZA")
    assert np.isnan(kept.X[:, 1]).tolist() == [country == "" for country in COUNTRIES]
    assert kept.schema[2].levels == ("much", "some")
    assert kept.salt == task.salt
    assert kept.digest != task.digest


def test_a_quoted_empty_cell_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,y\n"",1\n,2\n"NA",3\n')
    assert read_file(path)["a"].to_pylist() == [None, None, "NA"]


@pytest.mark.parametrize("word", ["NA", "na", "Na"])
def test_words_match_in_any_case(word: str) -> None:
    task = Task.of(frame()[["x", "country"]], LABELS, asked=DeclaredTypes(keep_values=(word,)))
    assert "NA" in task.schema[1].levels


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "keep_values='': an empty cell is a gap in any case"),
        ("unknown", "keep_values='unknown': it is no word that is taken for an empty cell"),
    ],
)
def test_other_words_are_refused(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Task.of(frame()[["x"]], LABELS, asked=DeclaredTypes(keep_values=("NA", word)))


def test_a_kept_word_among_numbers_is_asked_about(tmp_path: Path) -> None:
    rows = frame()
    rows.loc[3, "x"] = None
    rows.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    assert read_task(tmp_path / "t.csv")[0].schema[0].kind is ColumnKind.NUMBER
    with pytest.raises(
        InputError, match=r"'x' holds numbers and in 1 row something else, such as 'NA' in row 4"
    ):
        read_task(tmp_path / "t.csv", asked=NAMIBIA)
    assert read_task(tmp_path / "t.csv", asked=NAMIBIA._replace(numeric=("x",)))[0].schema[0].lenient
    for asked in (NAMIBIA, NAMIBIA._replace(drop_unlabelled=True)):
        with pytest.raises(InputError, match="the target 'x' has 'NA' in row 4, which is no number"):
            Task.from_table(read_file(tmp_path / "t.csv"), Roles("x", numbers=True), asked)


def test_a_gap_that_is_no_text_is_never_kept() -> None:
    rows = frame().assign(x=np.where(np.arange(40) % 7 == 0, np.nan, np.arange(40) % 7))
    asked = DeclaredTypes(categorical=("x",), keep_values=("nan", "none", "NA"))
    task = Task.of(rows.drop(columns="y"), LABELS, asked=asked)
    assert task.schema[0].levels == ("1", "2", "3", "4", "5", "6")


@pytest.mark.parametrize("written", [True, False])
def test_labels_that_are_words_are_counted_and_may_be_kept(written: bool, tmp_path: Path) -> None:
    rows = frame(y=["yes", "no", "NA", "no", ""] * 8)
    columns = read_file(write(rows, "t.csv", tmp_path)) if written else pa.Table.from_pandas(rows)
    with pytest.raises(InputError) as refused:
        Task.from_table(columns)
    assert str(refused.value) == (
        "the target 'y' has empty cells in 16 of 40 rows (40 %), 'NA' in 8 of them, the first in row 3: fix "
        "them, or leave these rows out with --drop-unlabelled; --keep-values NA keeps it as a label"
    )
    dropped = DeclaredTypes(drop_unlabelled=True)
    task = Task.from_table(columns, asked=dropped._replace(keep_values=("NA",)))
    assert (task.classes, task.n) == (("NA", "no", "yes"), 32)
    less = Task.from_table(columns, asked=dropped)
    assert (less.classes, less.n) == (("no", "yes"), 24)
    assert less.make_salt(columns) == less.salt != task.salt == task.make_salt(columns)


def test_a_group_may_be_called_by_a_word_that_is_kept() -> None:
    groups = [("NA", "a", "b", "c", "d", "e", "f")[i % 7] for i in range(40)]
    with pytest.raises(InputError, match="has no group in 6 of 40 rows"):
        Task.of(frame()[["x"]], LABELS, groups=groups)
    assert Task.of(frame()[["x"]], LABELS, groups=groups, asked=NAMIBIA).n_units == 7


cells = st.sampled_from(
    ["", "NA", "na", " NA ", '"NA"', "none", "nan", "-", "?", "1", "1.5", "x", "yes", "true"]
)


@given(st.lists(cells, min_size=40, max_size=40), st.sets(st.sampled_from(["NA", "none", "nan", "-", "?"])))
def test_what_is_kept_has_no_part_in_the_salt(texts: list[str], kept: set[str]) -> None:
    columns = pa.table({"x": np.arange(40) % 7, "c": texts, "y": LABELS})
    columns = columns.replace_schema_metadata({"decimal": "."})
    asked = DeclaredTypes(keep_values=tuple(kept), categorical=("c",))
    try:
        task = Task.from_table(columns, asked=asked)
    except InputError:  # such as a column without a value
        return
    assert task.salt == compute_salt(columns, ())


def test_later_tables_are_read_as_the_one_that_was_learned_from(tmp_path: Path) -> None:
    labels = ["NA" if country == "NA" else "yes" if country == "ZA" else "no" for country in COUNTRIES]
    table = write(frame(y=labels), "t.csv", tmp_path)
    task, _ = read_task(table, asked=NAMIBIA, drop=["drink"])
    run = tmp_path / "run"
    run_job(Job(Study.of(learner="tree", k=(3,), n_splits=3), task, run), Execution("serial"))
    assert verify(run, table=table).ok
    rows = frame(y=labels).assign(id=[f"p{i}" for i in range(40)], prediction=labels)
    new = read_file(write(rows.assign(x=rows["x"] + 0.1), "n.csv", tmp_path))
    loaded = load_run(run)
    assert loaded.predict(new, by="full").tolist() == labels
    assert loaded.task.find_labelled(new).all()
    assert [found["units"] for found in watch(run, new).to_json()["findings"]] == [40, 10, 20, 10]
    assert compare(run, new, predictions="prediction").to_json()["rows"] == 40
