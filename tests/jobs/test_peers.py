"""The job that compares every figure with those of scikit-learn and caret: a part of it; and it notices."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from jobs.faults import check_against_peers as peers


def test_the_figures_of_caret(monkeypatch):
    monkeypatch.setattr(peers, "CARET_RESAMPLINGS", ("kfold:10", "bootstrap:8"))
    compared = peers.compare_caret()
    assert compared.figures > 200
    assert compared.differing == ()


@pytest.mark.parametrize("number", range(3))
def test_the_figures_of_scikit_learn(number):
    table = list(peers.list_tables())[number]
    compared = peers.compare(table, "kfold:5", False, table.learners[2])
    assert compared.figures == 5 * len(table.measures)
    assert compared.differing == ()


def test_rows_in_groups_rows_with_weights_and_a_small_probability():
    table = next(peers.list_tables())
    versions = {version.name.rpartition(", ")[2]: version for version in peers.vary(table)}
    for name, resampling in {
        "groups": "kfold:5",
        "weights": "kfold:5",
        table.name: "repeated_kfold:3x2",
    }.items():
        version = versions[name]
        learner = next(learner for learner in version.learners if isinstance(learner, GaussianNB))
        assert peers.compare(version, resampling, False, learner).differing == ()


def test_what_differs_is_said():
    compared = peers.Compared().add([0.5, np.nan], [0.5, np.nan], "same").add([0.5], [0.5 + 1e-9], "apart")
    assert compared.figures == 3
    assert [what.partition(":")[0] for what in compared.differing] == ["apart"]
    assert peers.Compared().add([np.nan], [0.5], "undefined").differing
