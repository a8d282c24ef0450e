"""Other losses and bounds: what each loss bounds, and a small run of the job."""

import json
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
from ckcv_ray.runs.run import run_job
from jobs.paper import losses
from jobs.paper.losses import clipped_linear, ramp

ROOT = Path(__file__).resolve().parents[2]
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
def row(result):
    fresh = blobs(400, seed=1)
    return losses.measure(result, TestRows(fresh.X, fresh.y))


def test_counts_with_clopper_pearson_are_the_papers_figure(result, row):
    assert row["bound"][losses.CP.key] == pytest.approx(result.l_ee, rel=1e-12)


def test_a_small_run_of_the_job(ida):
    command = [sys.executable, "-m", "jobs.paper.losses", "--sets", "titanic"]
    options = ["--backend", "serial", "--json"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True)
    output = json.loads(done.stdout)
    row = output["sets"]["titanic"]
    assert set(output["geomean"]) == {column.key for column in losses.COLUMNS} == set(row["looseness"])
    for key, value in output["geomean"].items():
        assert value == pytest.approx(geometric_mean([row["looseness"][key]]))
