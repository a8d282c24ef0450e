"""Columns of one name: identical ones are joined, of others it is asked which is meant."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import csv, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.task import Roles, Task, join_copies, make_rows, make_test_rows

N = 40
RNG = np.random.default_rng(np.random.SeedSequence(3))
AGE, DOSE = RNG.normal(size=(2, N)).round(3).tolist()
CITY = RNG.choice(["Rome", "Oslo", "Bonn"], N).tolist()
OUTCOME = ["ill", "well"] * (N // 2)
NAMES = ["age", "dose", "city", "y"]
PLAIN = pa.Table.from_arrays(list(map(pa.array, (AGE, DOSE, CITY, OUTCOME))), names=NAMES)
SUFFIXES = ["csv", "parquet", "feather", "xlsx"]


def with_twin(name: str, values: list[object], place: int = 0) -> pa.Table:
    return PLAIN.add_column(place, name, pa.array(values))


def written(columns: pa.Table, file: Path) -> Path:
    if file.suffix == ".csv":
        csv.write_csv(columns, file)
    elif file.suffix == ".parquet":
        parquet.write_table(columns, file)
    elif file.suffix == ".feather":
        with pa.ipc.new_file(str(file), columns.schema) as writer:
            writer.write_table(columns)
    else:
        book = Workbook()
        for row in (columns.column_names, *zip(*(column.to_pylist() for column in columns), strict=True)):
            book.active.append(row)
        book.save(file)
    return file


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["age", "city", "y"])
def test_a_table_with_an_identical_copy_is_the_one_without(name: str, suffix: str, tmp_path: Path) -> None:
    twins = with_twin(name, PLAIN[name].to_pylist())
    usual, _ = read_task(written(PLAIN, tmp_path / f"a.{suffix}"))
    task, _ = read_task(written(twins, tmp_path / f"b.{suffix}"))
    assert task.salt == usual.salt
    assert sorted(task.features) == sorted(usual.features)
    assert usual.make_salt(read(tmp_path / f"b.{suffix}").learn) == usual.salt
    assert np.array_equal(usual.rows_from(twins), usual.X)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_that_differ_are_refused_unless_all_are_left_out(suffix: str, tmp_path: Path) -> None:
    file = written(with_twin("age", DOSE), tmp_path / f"a.{suffix}")
    with pytest.raises(InputError, match=r"two columns are named 'age', and differ: .* with --drop age$"):
        read_task(file)
    dropped, _ = read_task(file, drop=["age"])
    chosen, _ = read_task(file, features=["dose", "city"])
    assert dropped.features == chosen.features == ("dose", "city")
    assert dropped.salt == chosen.salt == dropped.make_salt(read(file).learn)


@pytest.mark.parametrize("role", ["target", "group", "weight", "id"])
def test_a_column_with_a_purpose_is_a_single_one(role: str) -> None:
    table = with_twin("city", OUTCOME)
    with pytest.raises(InputError, match=r"two columns are named 'city', and differ: rename or remove one$"):
        Task.from_table(table, Roles(**{"target": "y", role: "city"}))
    with pytest.raises(InputError, match="two columns are named 'y'"):
        Task.from_table(with_twin("y", CITY))


def test_copies_are_of_one_value_in_every_cell() -> None:
    gaps = [None, *AGE[1:]]
    twins = [pa.array([float("nan"), *AGE[1:]]), pa.array(gaps), pa.array(AGE), pa.array(AGE)]
    table = pa.Table.from_arrays(twins, names=["age"] * 4)
    assert [column.null_count for column in join_copies(table)] == [0, 0]  # the first has nan
    assert join_copies(PLAIN) is PLAIN
    words = pa.chunked_array([CITY[:7], CITY[7:]])
    assert join_copies(with_twin("city", words.dictionary_encode())).num_columns == 4


def test_frames_of_python_are_read_alike() -> None:
    frame = PLAIN.select(["age", "dose"]).to_pandas()
    frame.index = range(100, 100 + N)
    task = Task.of(frame, OUTCOME)
    twins = frame[["age", "dose", "age"]]
    for X in (twins, pa.Table.from_arrays([PLAIN[name] for name in twins], names=list(twins))):
        assert Task.of(X, OUTCOME).digest == task.digest
        assert np.array_equal(make_rows(X, task), task.X)
    twins = pd.concat([frame, frame[["dose"]].rename(columns={"dose": "age"})], axis=1)
    with pytest.raises(InputError, match=r"two columns are named 'age', and differ: .* --drop age"):
        Task.of(twins, OUTCOME)
    with pytest.raises(InputError, match=r"two columns are named 'age', and differ: rename or remove one$"):
        make_rows(twins, task)


def test_of_new_rows_the_columns_that_were_learned_from_are_looked_at() -> None:
    task = Task.from_table(PLAIN, Roles(drop=["dose"]))
    assert np.array_equal(task.rows_from(with_twin("dose", AGE)), task.X)
    for name in ("age", "city"):
        with pytest.raises(InputError, match=f"two columns are named '{name}', and differ"):
            task.rows_from(with_twin(name, DOSE))
    copied = make_test_rows(with_twin("y", OUTCOME), task)
    assert copied is not None
    assert np.array_equal(copied.y, task.y)
    with pytest.raises(InputError, match="two columns are named 'y'"):
        make_test_rows(with_twin("y", CITY), task)


def test_twins_beside_lists_are_read(tmp_path: Path) -> None:
    table = with_twin("age", DOSE).append_column("age.list.element", pa.array(DOSE))
    listed = table.add_column(1, "age", pa.array([[1, 2]] * N)).append_column("l", pa.array([[1]] * N))
    columns = read(written(listed, tmp_path / "a.parquet")).learn
    assert columns.column_names == listed.column_names
    plain = [i for i, name in enumerate(columns.column_names) if i != 1 and name != "l"]
    assert columns.select(plain).equals(table)


@pytest.mark.parametrize(
    ("came", "offered"),
    [
        ("blood pressure ", "'blood pressure '"),
        ("Blood-pressure", "'Blood-pressure'"),
        ("BLOOD PRESSURE", "'BLOOD PRESSURE'"),
        ("Blood pressure.", "'Blood pressure.'"),
        ("Blood\u2010pressure", r"'Blood\u2010pressure'"),
        ("Blood\u200b pressure", r"'Blood\u200b pressure'"),
        ("Blood presure", "'Blood presure'"),
    ],
)
def test_a_column_whose_name_is_written_otherwise_is_offered(came: str, offered: str) -> None:
    names = ["Blood pressure", *NAMES[1:]]
    task = Task.from_table(PLAIN.rename_columns(names))
    with pytest.raises(InputError) as refused:
        task.rows_from(PLAIN.rename_columns([came, *NAMES[1:]]))
    assert str(refused.value).startswith("there is no column 'Blood pressure': the columns are")
    assert str(refused.value).endswith(f"; did you mean {offered}?")
