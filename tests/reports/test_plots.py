"""Plots of a result for notebooks: on axes of matplotlib, with the figures that the result has."""

import matplotlib
import numpy as np
import pytest
from conftest import blobs
from matplotlib.figure import Figure

from ckcv_ray import InputError, Result, Study, run

matplotlib.use("agg")
SMALL = {"k": (3, 4), "n_splits": 3, "certify": "holdout"}
ROWS = blobs(160, shift=2.0)


@pytest.fixture(scope="module")
def svm() -> Result:
    """A run of the SVM, whose scores rank and are no probabilities."""
    return run(Study.of(**SMALL, C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0)), ROWS.X, ROWS.y)


@pytest.fixture(scope="module")
def linear() -> Result:
    """A run of logistic regression, which has one parameter and gives probabilities."""
    return run(Study.of(**SMALL, learner="linear", param={"C": (0.01, 0.1, 10.0)}), ROWS.X, ROWS.y)


def test_bounds_are_those_of_the_claims(svm: Result) -> None:
    axes = svm.plot.bounds()
    claims = [claim for claim in svm.certificate.claims if claim.quantity.is_error]
    assert [bar.get_width() for bar in axes.patches] == [100 * claim.bound for claim in claims]
    assert len(axes.get_yticklabels()) == len(claims)
    assert 100 * svm.l_ee in [line.get_xdata()[0] for line in axes.lines]


def test_the_surface_has_a_dot_for_each_setting_at_the_winners_k(svm: Result, linear: Result) -> None:
    axes = svm.plot.surface()
    (dots,) = axes.collections
    assert len(dots.get_offsets()) == 9
    assert np.nanmin(dots.get_array()) == 100 * svm.l_ms
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == ("C", "gamma", "log")
    (line,) = linear.plot.surface().lines
    assert min(line.get_ydata()) == 100 * linear.l_ms
    assert list(line.get_xdata()) == [0.01, 0.1, 10.0]


@pytest.mark.parametrize("name", ["bounds", "surface", "roc", "calibration", "decision_curve", "scores"])
def test_they_draw_on_given_axes_and_on_new_ones(linear: Result, name: str) -> None:
    given = Figure().add_subplot()
    assert getattr(linear.plot, name)(given) is given
    assert given.has_data()
    assert getattr(linear.plot, name)().has_data()


def test_what_cannot_be_drawn_is_refused_with_the_reason(svm: Result) -> None:
    with pytest.raises(InputError, match="no calibration of this result: the models give no probabilities"):
        svm.plot.calibration()
    three = blobs(150)
    y = np.arange(150) % 3
    several = run(Study.of(**SMALL, C=(1.0,), gamma=(0.1,)), three.X, y)
    with pytest.raises(InputError, match="no ROC curve of this result: it takes two classes"):
        several.plot.roc()
    with pytest.raises(InputError, match="no distribution of scores of this result: the models give none"):
        several.plot.scores()
    with pytest.raises(InputError, match="no surface of this result: its settings differ in no parameter"):
        several.plot.surface()
