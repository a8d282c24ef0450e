"""A cell is read as it was learned: it has the same value, or cannot be judged, or is asked about."""

from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ckcv_ray import Execution, Job, Study, load_run
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Roles, Task

N = 24
DAYS = [i % 28 + 1 for i in range(N)]
EIGHTHS = [i / 8 + 0.125 for i in range(N)]
BITS = [float(i % 2) for i in range(N)]
TEN = [datetime(2026, 11, day, 10) for day in DAYS]
MIDNIGHT = [datetime(2026, 11, day) for day in DAYS]


class Form(NamedTuple):
    """How a cell of each row is written, what it means there, and of which kind that is."""

    kind: str
    values: list[Any]
    cells: list[str] | pa.Array


FORMS = {
    "point": Form("number", EIGHTHS, [f"{x:.3f}" for x in EIGHTHS]),
    "comma": Form("number", EIGHTHS, [f"{x:.3f}".replace(".", ",") for x in EIGHTHS]),
    "percent": Form("percent", EIGHTHS, [f"{x:.3f}%" for x in EIGHTHS]),
    "per mille": Form("per mille", EIGHTHS, [f"{x:.3f}\u2030" for x in EIGHTHS]),
    "dollars": Form("dollars", EIGHTHS, [f"${x:.3f}" for x in EIGHTHS]),
    "bits": Form("number", BITS, ["01"[i % 2] for i in range(N)]),
    "truth": Form("number", BITS, [("False", "True")[i % 2] for i in range(N)]),
    "words": Form("words", BITS, ["ab"[i % 2] for i in range(N)]),
    "naive": Form("clock", TEN, [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in TEN]),
    "zoned": Form("moment", TEN, [f"{moment:%Y-%m-%d} 15:00:00+05:00" for moment in TEN]),
    "utc": Form("moment", TEN, [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in TEN]),
    "days": Form("clock", MIDNIGHT, [f"{day:%Y-%m-%d}" for day in MIDNIGHT]),
    "dotted": Form("clock", MIDNIGHT, [f"{day:%d.%m.%Y}" for day in MIDNIGHT]),
    "floats": Form("number", EIGHTHS, pa.array(EIGHTHS)),
    "integers": Form("number", BITS, pa.array(BITS).cast(pa.int64())),
    "booleans": Form("number", BITS, pa.array(BITS).cast(pa.bool_())),
    "typed days": Form("clock", MIDNIGHT, pa.array(MIDNIGHT).cast(pa.date32())),
    "typed naive": Form("clock", TEN, pa.array(TEN)),
    "typed utc": Form("moment", TEN, pa.array(TEN, pa.timestamp("ms", "UTC"))),
    "declared": Form("words", BITS, pa.array(["ab"[i % 2] for i in range(N)]).dictionary_encode()),
}
JUDGED = [  # forms of which each is read in a column of each other
    ("floats", "integers", "booleans", "bits", "truth"),
    ("words", "declared"),
    ("zoned", "utc", "typed utc"),
    ("days", "naive", "typed days", "typed naive"),
]
ONE_WAY = {("dollars", "point"), ("dollars", "floats"), ("dotted", "typed days"), ("point", "floats")}
ALL_JUDGED = {(name, name) for name in FORMS} | ONE_WAY | {p for one in JUDGED for p in product(one, one)}


def make(place: Path, form: Form) -> pa.Table:
    if isinstance(form.cells, pa.Array):
        z = [i % 5 for i in range(N)]
        return pa.table({"x": form.cells, "z": z, "y": ["pq"[i % 3 == 0] for i in range(N)]})
    return write(place, form.cells)


def write(place: Path, cells: list[str]) -> pa.Table:
    lines = (f"{cell};{i % 5};{'pq'[i % 3 == 0]}\n" for i, cell in enumerate(cells))
    place.write_text("x;z;y\n" + "".join(lines), encoding="utf-8")
    return read(place).learn


@pytest.mark.parametrize(("learned", "later"), [*product(FORMS, FORMS)])
def test_a_cell_has_the_value_that_it_had_or_cannot_be_judged(
    learned: str, later: str, tmp_path: Path
) -> None:
    task = Task.from_table(make(tmp_path / "learned.csv", FORMS[learned]), Roles("y"))
    there, here = FORMS[learned], FORMS[later]
    columns = make(tmp_path / "later.csv", here)
    try:
        rows = task.read(columns)
    except InputError as error:
        assert "'x'" in str(error)  # noqa: PT017
        assert (learned, later) not in ALL_JUDGED
        return
    assert not ((learned, later) in ALL_JUDGED and rows.bad.any())
    if there.kind == here.kind or (there.kind, here.kind) == ("dollars", "number"):  # in the column's unit
        dates = isinstance(here.values[0], datetime)
        values = [1000 * x.replace(tzinfo=UTC).timestamp() for x in here.values] if dates else here.values
        assert np.array_equal(rows.X[~rows.bad, 0], np.array(values)[~rows.bad])
    elif there.kind == "words":
        assert f"{N} rows have categories that were never seen" in rows.unseen
    else:
        assert rows.bad.all()


@pytest.mark.parametrize("unit", ["%", "\u2030"])
def test_a_number_without_its_unit_is_refused_with_the_cure_and_not_in_a_run_folder(
    unit: str, tmp_path: Path
) -> None:
    columns = write(tmp_path / "a.csv", [f"{x:.3f}{unit}" for x in EIGHTHS])
    task = Task.from_table(columns, Roles("y"))
    result = run_job(
        Job(Study.of(learner="tree", k=(3,), n_splits=3), task, tmp_path / "run"), Execution("serial")
    )
    again = load_run(tmp_path / "run")
    assert np.array_equal(again.task.X, result.task.X)
    assert again.predict(columns).tolist() == result.predict(columns).tolist()
    frame = pd.DataFrame({"x": EIGHTHS, "z": np.arange(N) % 5})
    with pytest.raises(InputError, match=f"'x' holds double, which may be .* text, such as '12.5{unit}'"):
        again.predict(frame)
    assert np.isnan(task.read(pa.table(frame.assign(x=np.nan))).X[:, 0]).all()


def test_what_hinders_is_named(tmp_path: Path) -> None:
    task = Task.from_table(write(tmp_path / "a.csv", FORMS["naive"].cells), Roles("y"))
    rows = task.read(write(tmp_path / "b.csv", FORMS["zoned"].cells))
    said = "'2026-11-01 15:00:00+05:00' in row 1, which has a time zone, and those learned from none: fix it"
    assert said in rows.reason


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            [*FORMS["naive"].cells[:-1], "2026-11-23T10:00Z"],
            "with a zone, such as '2026-11-23T10:00Z' in row 24",
        ),
        ([text.replace(":00:00", ":00 CET") for text in FORMS["naive"].cells], "whose zone is a name"),
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
    naive = pd.DataFrame({"x": pd.to_datetime(FORMS["naive"].cells), "z": np.arange(N) % 5})
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
