"""Other losses and bounds: what each loss bounds, that each bound holds, and a small run of the job."""

import json
import subprocess
import sys
from itertools import product
from math import log, log1p, sqrt
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import pytest
from conftest import blobs, limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.optimize import brentq

from ckcv_ray import Execution, Job, Study, TestRows
from ckcv_ray.learners.svm.model import UNDECIDED_WIDTH
from ckcv_ray.runs.run import run_job
from jobs.paper import losses
from jobs.paper.soft_bounds import CAP, betting, clipped_linear, ramp

ROOT = Path(__file__).resolve().parents[2]
DELTAS = (0.01, 0.05, 0.3)
repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(100))

margins = arrays(np.float64, 20, elements=st.floats(-3, 3))
samples = st.integers(1, 40).flatmap(lambda m: arrays(np.float64, m, elements=st.floats(0, 1)))


# The losses


@given(margins)
@repeatable
def test_the_losses_are_above_the_errors_they_bound(z):
    wrong = z <= 0
    assert np.all(wrong <= clipped_linear(z))
    np.testing.assert_allclose(clipped_linear(z), np.minimum(1, 2 * ramp(z)), atol=1e-15)
    assert np.all((ramp(z) >= 0) & (clipped_linear(z) <= 1))


@given(margins)
@repeatable
def test_ramp_is_the_error_of_the_random_label(f):
    positive = np.clip((1 + f) / 2, 0, 1)
    np.testing.assert_allclose(ramp(f), 1 - positive, atol=1e-15)  # rows of class +1
    np.testing.assert_allclose(ramp(-f), positive, atol=1e-15)


# Each bound holds: by enumeration, just above each value it takes, where failures are most frequent


def worst_failure(bounds, probability):
    """Largest probability, over means p, of a bound below p; ``probability(p)`` gives that of each sample."""
    tried = np.append(np.unique(bounds) * (1 + 1e-12), np.linspace(0.01, 0.99, 50))
    return max(probability(p)[bounds < p].sum() for p in tried[tried < 1])


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("m", [1, 2, 5, 10])
def test_holds_for_every_sequence_of_zeros_and_ones(m, delta):
    samples = np.array(list(product((0.0, 1.0), repeat=m)))
    ones = samples.sum(axis=1)
    failure = worst_failure(betting(samples, delta), lambda p: p**ones * (1 - p) ** (m - ones))
    assert failure <= delta * (1 + 1e-9)


@pytest.mark.parametrize("delta", DELTAS)
def test_holds_for_every_sequence_of_three_values(delta):
    """0, 1/2 and 1, drawn as two coins are: the mean of each draw is p."""
    samples = np.array(list(product((0.0, 0.5, 1.0), repeat=7)))
    heads, ways = 2 * samples.sum(axis=1), 2.0 ** (samples == 0.5).sum(axis=1)
    failure = worst_failure(betting(samples, delta), lambda p: ways * p**heads * (1 - p) ** (14 - heads))
    assert failure <= delta * (1 + 1e-9)


@pytest.mark.parametrize("shape", [(0.2, 1.8), (0.5, 0.5), (8.0, 2.0), (1.0, 60.0)])
def test_betting_holds_in_simulation(shape):
    """Beta losses, m = 80: more failures than this have probability 1e-6 at most."""
    samples = np.random.default_rng(5).beta(*shape, size=(4000, 80))
    failures = np.sum(betting(samples, 0.05) < shape[0] / sum(shape))
    assert failures <= stats.binom.ppf(1 - 1e-6, 4000, 0.05)


# Shape and definition of each bound


@given(samples, st.sampled_from(DELTAS))
@repeatable
def test_is_in_the_unit_interval_and_accepts_any_shape(sample, delta):
    value = betting(sample, delta)
    assert value.shape == ()
    assert 0 < value <= 1
    together = betting(np.array([[sample, 1 - sample]]), delta)
    assert together.shape == (1, 2)
    assert together[0, 0] == pytest.approx(value, rel=1e-9)


def test_hand_worked_values():
    # One loss of 0, delta = 1/2: the bet is CAP / (1 - u), and 1 + CAP u / (1 - u) = 2
    assert betting(np.zeros(1), 0.5) == pytest.approx(1 / (1 + CAP))


def largest_capital(sample, u, delta):
    """The capital against a mean of u, by the definition, one loss at a time."""
    capital = largest = 0.0
    total, squares = 0.5, 0.25
    for t, loss in enumerate(sample, 1):
        bet = min(sqrt(2 * log(1 / delta) / (len(sample) * squares / t)), CAP / (1 - u))
        capital += log1p(bet * (u - loss))
        largest = max(largest, capital)
        total += loss
        squares += (loss - total / (t + 1)) ** 2
    return largest - log(1 / delta)


@given(samples, st.sampled_from(DELTAS))
@repeatable
def test_betting_is_where_the_capital_crosses(sample, delta):
    def excess(u):
        return largest_capital(sample, u, delta)

    if excess(1 - 1e-9) < 0:
        assert betting(sample, delta) >= 1 - 1e-9
    else:
        assert betting(sample, delta) == pytest.approx(brentq(excess, 0, 1 - 1e-9, xtol=1e-13), abs=1e-9)


# The job


@pytest.fixture(scope="module")
def result():
    study = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=6)
    return run_job(Job(study, blobs(60)), Execution("serial"))


@pytest.fixture(scope="module")
def row(result):
    fresh = blobs(400, seed=1)
    return losses.measure(result, TestRows(fresh.X, fresh.y))


def test_margins_are_those_of_the_counted_errors(result):
    for z, member in zip(losses.estimate_margins(result), result.ensemble.members, strict=True):
        assert np.sum(z <= UNDECIDED_WIDTH) == sum(member.errors)


def test_counts_with_clopper_pearson_are_the_papers_figure(result, row):
    assert row["bound"][losses.CP.key] == pytest.approx(result.l_ee, rel=1e-12)


def test_each_column_is_compared_with_the_label_it_bounds(row):
    for column in losses.COLUMNS:
        assert row["looseness"][column.key] == row["bound"][column.key] / row["true"][column.label]
    assert {column.loss for column in losses.COLUMNS if column.label == "random"} == {"ramp"}
    assert row["true"]["hard"] <= row["true"]["clipped linear"] <= 2 * row["true"]["random"]


def test_a_small_run_of_the_job(ida):
    command = [sys.executable, "-m", "jobs.paper.losses", "--sets", "titanic"]
    options = ["--backend", "serial", "--json"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True)
    output = json.loads(done.stdout)
    row = output["sets"]["titanic"]
    assert "titanic: k =" in done.stderr
    assert set(output["geomean"]) == {column.key for column in losses.COLUMNS} == set(row["looseness"])
    for key, value in output["geomean"].items():
        assert value == pytest.approx(geometric_mean([row["looseness"][key]]))
