"""A cell is read as it was learned: it has the same value, or cannot be judged, or is asked about."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ckcv_ray import Execution, Job, Study, load_run
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, read

N = 24
DAYS = [i % 28 + 1 for i in range(N)]
FORMS = {  # how a cell of row i may be written
    "point": [f"{i / 8 + 0.125:.3f}" for i in range(N)],
    "comma": [f"{i / 8 + 0.125:.3f}".replace(".", ",") for i in range(N)],
    "percent": [f"{i / 8 + 0.125:.3f}%" for i in range(N)],
    "dollars": [f"${i / 8 + 0.125:.3f}" for i in range(N)],
    "words": ["ab"[i % 2] for i in range(N)],
    "naive": [f"2026-11-{day:02d} 10:00:00" for day in DAYS],
    "zoned": [f"2026-11-{day:02d} 15:00:00+05:00" for day in DAYS],
    "utc": [f"2026-11-{day:02d}T10:00:00Z" for day in DAYS],
    "days": [f"2026-11-{day:02d}" for day in DAYS],
    "dotted": [f"{day:02d}.11.2026" for day in DAYS],
}
AS_WRITTEN = {("naive", "days"), ("days", "naive")}  # the same clock: midnight, if none is said
SAME = {(name, name) for name in FORMS} | {("zoned", "utc"), ("utc", "zoned")}
UNSEEN = {("words", name) for name in FORMS if name != "words"}


def write(place: Path, cells: list[str]) -> pa.Table:
    lines = (f"{cell};{i % 5};{'pq'[i % 3 == 0]}\n" for i, cell in enumerate(cells))
    place.write_text("x;z;y\n" + "".join(lines))
    return read(place).learn


@pytest.mark.parametrize(("learned", "later"), [*product(FORMS, FORMS)])
def test_a_cell_has_the_value_that_it_had_or_cannot_be_judged(
    learned: str, later: str, tmp_path: Path
) -> None:
    task = Task.from_table(write(tmp_path / "learned.csv", FORMS[learned]), Roles("y"))
    columns = write(tmp_path / "later.csv", FORMS[later])
    try:
        rows = task.read(columns)
    except InputError as error:
        assert "'x'" in str(error)  # noqa: PT017
        assert (learned, later) not in SAME
        return
    if (learned, later) in SAME:
        assert np.array_equal(rows.X, task.X)
    elif (learned, later) in UNSEEN:
        assert f"{N} rows have categories that were never seen" in rows.unseen
    elif (learned, later) == ("dollars", "point"):  # in the unit of the column
        assert np.array_equal(rows.X, task.X)
    elif (learned, later) not in AS_WRITTEN and (learned, later) != ("comma", "point"):
        assert rows.bad.all()
    else:  # 0.250 is no number with commas, and may be one with points of thousands
        assert np.array_equal(rows.X[~rows.bad, 1], task.X[~rows.bad, 1])


def test_what_hinders_is_named(tmp_path: Path) -> None:
    task = Task.from_table(write(tmp_path / "a.csv", FORMS["naive"]), Roles("y"))
    rows = task.read(write(tmp_path / "b.csv", FORMS["zoned"]))
    said = "'2026-11-01 15:00:00+05:00' in row 1, which has a time zone, and those learned from none: fix it"
    assert said in rows.reason


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([*FORMS["naive"][:-1], "2026-11-23T10:00Z"], "with a zone, such as '2026-11-23T10:00Z' in row 24"),
        ([text.replace(":00:00", ":00 CET") for text in FORMS["naive"]], "whose zone is a name"),
        ([f"Mon Nov {day:02d} 2026 10:00:00 GMT+0200 (CEST)" for day in DAYS], "whose zone is a name"),
        ([f"2026-11-{day:02d} 10:00 Europe/Rome" for day in DAYS], "whose zone is a name"),
    ],
)
def test_a_zone_in_some_cells_or_by_name_is_asked_about(cells: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        Task.from_table(write(tmp_path / "a.csv", cells), Roles("y"))
    assert said in str(refused.value)
    assert "--categorical x" in str(refused.value)


def test_frames_with_and_without_a_zone_are_told_apart(tmp_path: Path) -> None:
    y = np.arange(N) % 2
    naive = pd.DataFrame({"x": pd.to_datetime(FORMS["naive"]), "z": np.arange(N) % 5})
    aware = naive.assign(x=naive["x"].dt.tz_localize("Asia/Karachi"))
    task = Task.of(aware, y)
    with pytest.raises(InputError, match="which has no time zone, and those learned from one"):
        task.rows_from(pa.Table.from_pandas(naive))
    assert np.array_equal(task.rows_from(pa.Table.from_pandas(aware)), task.X)
    study = Study.of(learner="tree", k=(3,), n_splits=3)
    result = run_job(Job(study, task, tmp_path / "run"), Execution("serial"))
    again = load_run(tmp_path / "run")
    assert again.problem.run_id == result.run_id
    assert again.predict(aware).tolist() == result.predict(aware).tolist()
    with pytest.raises(InputError, match="which has no time zone"):
        again.predict(naive)
