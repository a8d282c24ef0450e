"""Named sets: the generators against their published definitions, and plug-ins, which read their own sets.

Tolerances of the simulations: every statistic below is asymptotically normal and is compared in units of its
own standard deviation; |z| > LIMIT = 6 has probability 2e-9, and no test looks at more than 1000 of them.
The seeds are fixed, so the tests are deterministic.
"""

import importlib.metadata
import json
from importlib.metadata import EntryPoint, EntryPoints
from math import sqrt

import numpy as np
import pytest
from pyarrow import csv

from ckcv_ray import Execution, Job, Study, load_run
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.named import GENERATORS, Columns, is_named, load_source, read
from ckcv_ray.tables.read import Reading, from_matrix
from ckcv_ray.tables.task import Task

LIMIT = 6.0
ROWS = 20_000
A = 2 / sqrt(20)
DIMENSIONS = {"twonorm": 20, "ringnorm": 20, "waveform": 21}


def within(statistics: np.ndarray, expected: np.ndarray | float) -> None:
    """Check means of rows of statistics, in units of their own standard deviation."""
    z = (statistics.mean(axis=0) - expected) / (statistics.std(axis=0) / sqrt(len(statistics)))
    assert np.max(np.abs(z)) < LIMIT


def mix_waves(sign: int) -> tuple[np.ndarray, np.ndarray]:
    """CART, section 2.6.2: class 2 mixes h1 and h3; classes 1 (h1, h2) and 3 (h2, h3) are merged.

    h1 peaks at 11 with height 6; h2(m) = h1(m - 4), h3(m) = h1(m + 4). Of u h + (1 - u) h' + unit noise, u
    uniform, the mean is (h + h') / 2, and u adds (h - h')(h - h')' / 12 to the covariance.
    """
    h1, h2, h3 = (np.maximum(6.0 - np.abs(np.arange(1, 22) - peak), 0) for peak in (11, 15, 7))
    pairs = [(h1, h3)] if sign > 0 else [(h1, h2), (h2, h3)]
    means = np.array([(h + g) / 2 for h, g in pairs])
    within_pair = np.mean([np.outer(h - g, h - g) / 12 for h, g in pairs], axis=0)
    return means.mean(axis=0), np.eye(21) + within_pair + np.cov(means, rowvar=False, bias=True)


MOMENTS = {  # the means and the covariance of the rows of a class; the first two are of report 460
    "twonorm": lambda sign: (np.full(20, sign * A), np.eye(20)),
    "ringnorm": lambda sign: (np.zeros(20), 4 * np.eye(20)) if sign > 0 else (np.full(20, A), np.eye(20)),
    "waveform": mix_waves,
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_has_the_moments_that_were_published(name):
    X, y = GENERATORS[name](ROWS, np.random.default_rng(7))
    within(y > 0, 1 / 3 if name == "waveform" else 0.5)
    for sign in (-1, 1):
        mean, covariance = MOMENTS[name](sign)
        within(X[y == sign], mean)
        within(X[y == sign].sum(axis=1), mean.sum())
        centred = X[y == sign] - mean
        within(centred[:, :, None] * centred[:, None, :], covariance)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_is_a_function_of_n_and_seed_and_rows_to_test_on_are_fresh(name):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    once, again = load_source(f"{name}:50:3"), load_source(f"{name}:50:3")
    assert once.learn.equals(again.learn)
    assert once.test.equals(again.test)
    assert not load_source(f"{name}:50:4").learn.equals(once.learn)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    columns = load_source(f"{name}:200:0")
    assert columns.learn.column_names == columns.test.column_names
    assert columns.learn.column_names == [*(f"x{i}" for i in range(DIMENSIONS[name])), "y"]
    seen = set(columns.learn["x0"].to_pylist())
    assert len(seen) == 200
    assert columns.test.num_rows >= 10_000
    assert not seen & set(columns.test["x0"].to_pylist())


@pytest.fixture
def plug_ins(monkeypatch):
    """Simulate other installed packages: the first word of their sources, and what reads them."""

    def install(**readers):
        points = EntryPoints(EntryPoint(name, value, "ckcv_ray.sources") for name, value in readers.items())
        monkeypatch.setattr(importlib.metadata, "entry_points", points.select)

    return install


def test_what_names_a_set_and_what_does_not(plug_ins):
    sets = ("sklearn:wine", "ida:banana:1", "twonorm:9:0", "ringnorm:", "waveform", "sklearn", "ida")
    others = ("twonorm.csv", "Twonorm:9:0", "", "C:\\ida.csv", "./ida:1:1", "letters", "other:ab")
    plug_ins(letters=HERE, sklearn=HERE, twonorm=HERE)
    assert [source for source in (*sets, "letters:ab") if not is_named(source)] == []
    assert [source for source in others if is_named(source)] == []
    assert load_source("sklearn:iris").learn.num_columns == 5  # as without a plug-in of that name
    assert load_source("twonorm:9:0").learn.num_rows == 9


@pytest.mark.parametrize(
    "source",
    [
        *("sklearn", "sklearn:nothing", "sklearn:iris:1", "ida", "ida:banana:1", "heart:1", "twonorm:"),
        *("twonorm:400", "twonorm:400:0:0", "ringnorm:400:-1", "ringnorm:4e2:0", "ringnorm: 400:0"),
        *("ringnorm::", "waveform:5:0", "waveform:99999999999999999999:0", "waveform:10000001:0"),
    ],
)
def test_a_name_that_does_not_parse_is_refused(source, plug_ins):
    plug_ins()
    with pytest.raises(InputError) as refused:
        load_source(source)
    assert source.split(":")[0] in str(refused.value)
    ways = ("the forms are", "choose from", "outside 6..", "pip install ./jobs/paper")
    assert any(way in str(refused.value) for way in ways)


def read_letters(source):
    """A plug-in: four rows of a column for each letter after the colon."""
    letters = source.partition(":")[2]
    if not letters:
        raise InputError(f"{source!r} has no letters")
    rows = from_matrix(np.arange(4.0 * len(letters)).reshape(4, -1), np.array([0, 1, 0, 1]), list(letters))
    return Columns(rows, rows[:1])


def read_badly(source):
    raise KeyError("a fault of the plug-in")


HERE = f"{__name__}:read_letters"


def test_a_plug_in_reads_what_begins_with_its_name(plug_ins):
    plug_ins(letters=HERE)
    assert is_named("letters:ab")
    columns, test = read("letters:ab")
    assert columns.column_names == ["a", "b", "y"]
    assert test.num_rows == 1
    with pytest.raises(InputError, match="'letters:' has no letters"):
        read("letters:")
    with pytest.raises(InputError, match="separator is for files, and 'letters:ab' is a named set"):
        read("letters:ab", Reading(separator=";"))


def test_a_plug_in_that_fails_is_bad_input(plug_ins):
    for value, reason in ((f"{__name__}:read_badly", "a fault"), ("no_such_package:read", "No module named")):
        plug_ins(letters=value)
        with pytest.raises(InputError, match=f"{value} cannot read 'letters:ab': .*{reason}"):
            load_source("letters:ab")


@pytest.mark.slow
def test_a_folder_imports_nothing_for_the_source_that_it_names(plug_ins, tmp_path, ckcv):
    """Not even if it is a forged one, of a plug-in that is installed."""
    plug_ins(letters=HERE)
    study = Study.paper(C=(1.0,), gamma=(1.0,), k=(3,), n_splits=2)
    task = Task.from_table(load_source("twonorm:30:0").learn, source="letters:ab")
    run_job(Job(study, task, tmp_path / "run"), Execution("serial"))
    csv.write_csv(load_source("twonorm:30:0").learn, tmp_path / "new.csv")
    assert json.loads((tmp_path / "run" / "execution.json").read_text())["source"] == "letters:ab"
    plug_ins(letters="no_such_package:read")
    for command, *more in (["status"], ["report"], ["predict", tmp_path / "new.csv"], ["verify", "--rerun"]):
        assert ckcv(command, tmp_path / "run", *more)[0] == 0
    assert load_run(tmp_path / "run").task.n == 30
