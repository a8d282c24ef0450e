"""The job that compares figures with those of caret: a part of it; and it notices."""

import numpy as np

from jobs.faults import check_against_peers as peers


def test_the_figures_of_caret(monkeypatch):
    monkeypatch.setattr(peers, "RESAMPLINGS", ("kfold:10", "bootstrap:8"))
    compared = peers.compare()
    assert compared.figures > 200
    assert compared.differing == ()


def test_what_differs_is_said():
    compared = peers.Compared().add([0.5, np.nan], [0.5, np.nan], "same").add([0.5], [0.5 + 1e-9], "apart")
    assert compared.figures == 3
    assert [what.partition(":")[0] for what in compared.differing] == ["apart"]
    assert peers.Compared().add([np.nan], [0.5], "undefined").differing
