"""Plots of a result for notebooks: on axes of matplotlib, with the figures that the result has."""

import matplotlib
import numpy as np
import pytest
from conftest import blobs
from matplotlib.figure import Figure

from ckcv_ray import InputError, Result, Study, evaluate, run

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
    bars, *lines = axes.lines
    assert bars.get_xdata()[1::3].tolist() == [100 * claim.risk for claim in claims]
    assert len(axes.get_yticklabels()) == len(claims)
    assert 100 * svm.l_ee in [line.get_xdata()[0] for line in lines]


@pytest.mark.parametrize("name", ["bounds", "surface", "roc", "calibration", "decision_curve", "scores"])
def test_they_draw_on_given_axes_and_on_new_ones(linear: Result, name: str) -> None:
    given = Figure().add_subplot()
    assert getattr(linear.plot, name)(given) is given
    assert given.has_data()
    assert getattr(linear.plot, name)().has_data()


def test_what_cannot_be_drawn_is_refused_with_the_reason(svm: Result) -> None:
    with pytest.raises(
        InputError, match="Calibration of this result: there is none: the models give no prob"
    ):
        svm.plot.calibration()
    rows = blobs(150)
    several = run(Study.of(**SMALL, C=(1.0,), gamma=(0.1,)), rows.X, np.arange(150) % 3)
    for draw, title in ((several.plot.roc, "ROC curve"), (several.plot.decision_curve, "Decision curve")):
        with pytest.raises(InputError, match=f"{title} of this result: there is none: it takes two classes"):
            draw()
    with pytest.raises(InputError, match="this is an evaluation, which has no claims"):
        evaluate(rows.X, rows.y, learner="constant", resampling="kfold:3").plot.bounds()
