"""The jobs of the paper's Table 1, the realizations it draws and its statistics, and of other losses."""

import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import pytest
from conftest import blobs, limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ckcv_ray import Execution, Job, Study, TestRows
from ckcv_ray.extend import Rotation
from ckcv_ray.runs.run import run_job
from jobs.paper import losses, table1
from jobs.paper.losses import clipped_linear, ramp

ROOT = Path(__file__).resolve().parents[2]


def pool(one: table1.Part) -> list[tuple[float, ...]]:
    """All rows of a realization, sorted."""
    rows = [np.column_stack(list(t.to_pydict().values())) for t in one.columns if t is not None]
    return sorted(map(tuple, np.concatenate(rows)))


def test_a_realization_missing_from_the_archive_is_drawn_from_its_pool(ida: Path) -> None:
    held, drawn, again = (table1.part("thyroid", r, 0) for r in (1, 2, 2))
    other = table1.part("thyroid", 3, 0)
    assert (held.drawn, drawn.drawn) == (False, True)
    assert held.columns.test is not None
    assert drawn.columns.test is not None
    assert len(drawn.columns.learn) == len(held.columns.learn) == 140
    assert len(drawn.columns.test) == len(held.columns.test) == 75
    assert drawn.columns.learn.equals(again.columns.learn)
    assert not drawn.columns.learn.equals(other.columns.learn)
    np.testing.assert_array_equal(pool(held), pool(drawn))


def test_the_studies_request_what_the_columns_need(ida: Path) -> None:
    one = table1.part("splice", 1, 4)
    (study,) = table1.studies(one, conventional=False)
    options = study.options()
    assert [options[name] for name in ("report_k", "scale", "seed", "k")] == [(5, 10), "standard", 4, None]
    fixed = table1.studies(one, conventional=True)
    assert [s.resampling for s in fixed] == [Rotation((5,)), Rotation((10,))]
    assert table1.studies(table1.part("heart", 1, 0), False)[0].options()["scale"] == "none"


def row(name: str, realization: int, seed: int = 0, **values: float) -> dict[str, float | str | bool]:
    figures = dict.fromkeys((*table1.COLUMNS, "vote", "proven"), 20.0)
    own = {"set": name, "realization": realization, "seed": seed, "drawn": realization > 1}
    return own | figures | values


def test_figures_are_shown_next_to_the_papers() -> None:
    """Heart's L_EE is 27.8 ± 1.8 there."""
    rows = [row("heart", 1, l_ee=29.0), row("heart", 2, l_ee=31.0), row("heart", 1, seed=1, l_ee=99.0)]
    assert table1.summary(rows, "l_ee") == (30.0, math.sqrt(2))
    assert table1.seed_deviation(rows, "l_ee") == pytest.approx(70 / math.sqrt(2))
    z = 2.2 / (1.8 * math.sqrt(1 / 2 + 1 / 10))
    text = table1.markdown(rows, table1.COLUMNS)
    assert f"30.0 ± 1.4 (+1.2, {z:+.1f}) | 27.8 ± 1.8 |" in text
    assert "| heart | 2, 1 drawn |" in text
    lines = text.splitlines()
    assert len({line.count("|") for line in lines}) == 1


# Other losses


repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(100))

margins = arrays(np.float64, 20, elements=st.floats(-3, 3))


@given(margins)
@repeatable
def test_the_losses_are_above_the_errors_they_bound(z):
    wrong = z <= 0
    assert np.all(wrong <= clipped_linear(z))
    np.testing.assert_allclose(clipped_linear(z), np.minimum(1, 2 * ramp(z)), atol=1e-15)
    assert np.all((ramp(z) >= 0) & (clipped_linear(z) <= 1))


@pytest.fixture(scope="module")
def result():
    study = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=6)
    return run_job(Job(study, blobs(60)), Execution("serial"))


@pytest.fixture(scope="module")
def measured(result):
    fresh = blobs(400, seed=1)
    return losses.measure(result, TestRows(fresh.X, fresh.y))


def test_counts_with_clopper_pearson_are_the_papers_figure(result, measured):
    assert measured["bound"][losses.CP.key] == pytest.approx(result.l_ee, rel=1e-12)


def test_a_small_run_of_the_job(ida):
    command = [sys.executable, "-m", "jobs.paper.losses", "--sets", "titanic"]
    options = ["--backend", "serial", "--json"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True)
    output = json.loads(done.stdout)
    row = output["sets"]["titanic"]
    assert set(output["geomean"]) == {column.key for column in losses.COLUMNS} == set(row["looseness"])
    for key, value in output["geomean"].items():
        assert value == pytest.approx(geometric_mean([row["looseness"][key]]))
