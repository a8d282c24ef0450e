"""The HTML page of scores: what the summary says, one file, and no name taken for markup."""

from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from ckcv_ray import Execution, evaluate
from ckcv_ray.reports.render import make_page

SERIAL = Execution("serial")
X, Y = load_iris(return_X_y=True)


@pytest.mark.slow
def test_a_curve_is_drawn_over_a_parameter_and_a_heat_map_over_two(tmp_path: Path) -> None:
    evaluate(X, Y, tmp_path / "one", SERIAL, learner="linear", param={"C": (0.01, 1.0, 100.0)})
    assert make_page(tmp_path / "one").count("<svg") == 2
    page = make_page(tmp_path / "one")
    assert "<h3>Validation curve of linear</h3>" in page
    assert "Mean over splits at each value of C, and a standard deviation around it; best mean" in page
    both = {"max_depth": (1, 2, 3), "min_samples_leaf": (1, 2)}
    evaluate(X, Y, tmp_path / "two", SERIAL, learner="tree", param=both)
    page = make_page(tmp_path / "two")
    assert page.count("<svg") == 3  # two lines of a curve, and a heat map
    assert ">min_samples_leaf = 1</text>" in page, "the name of a line of the curve"
    assert "over max_depth and min_samples_leaf" in page


def test_what_failed_is_listed(tmp_path: Path) -> None:
    options = {"learner": "neighbors", "resampling": "holdout:0.9", "param": {"n_neighbors": (5, 40)}}
    evaluate(X, Y, tmp_path / "failing", SERIAL, **options)
    page = make_page(tmp_path / "failing")
    assert "Some scores are incomplete" in page
    assert "Expected n_neighbors" in page
