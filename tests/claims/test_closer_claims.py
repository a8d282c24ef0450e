"""Claims that are closer by choice: more rows that certify, and positions."""

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs

from ckcv_ray import Task
from ckcv_ray.core.bounds.binomial import clopper_pearson, rank_positions, stevens
from ckcv_ray.core.draws import draw_pairs, order_held_out
from ckcv_ray.tables.questions import find_repeats

ONE = SMALL.replace(C=1.0, gamma=0.1, k=3)
STEVENS = ONE.replace(certify="holdout", holdout_share=0.6, holdout_bound="stevens")
ROWS = blobs(90, shift=0.7)


def test_held_out_rows_are_bounded_by_the_positions_in_which_they_were_drawn():
    """Redrawn here: which of the drawn rows are wrong, in their order, for each claim."""
    result = run(STEVENS.replace(claim="refit,sensitivity,specificity,auc"), ROWS)
    refit, sensitivity, specificity, auc, *_ = result.certificate.claims
    drawn = order_held_out(90, 54, result.problem.draws)
    every = result.problem.every_row
    prediction = result.models.refit.members[0].model.predict(every.X)
    wrong = prediction.label[drawn] != every.y[drawn]
    assert 0 < wrong.sum() == refit.errors
    assert refit.bound == stevens(wrong.sum(), 54, rank_positions(wrong), 0.05 / 3)
    assert refit.bound < clopper_pearson(wrong.sum(), 54, 0.05 / 3)
    assert "Stevens by positions in the order of the draw" in refit.statement
    for claim, number in ((sensitivity, 1), (specificity, 0)):
        part = wrong[every.y[drawn] == number]
        expected = stevens(part.sum(), len(part), rank_positions(part), claim.delta)
        assert claim.bound == pytest.approx(expected, rel=1e-12)
        assert (claim.errors, claim.rows) == (part.sum(), len(part))
    held = np.sort(drawn)
    low, high = draw_pairs(every.y[held], result.problem.draws)
    score = prediction.score[held]
    pairs = score[high] <= score[low]
    expected = stevens(pairs.sum(), len(pairs), rank_positions(pairs), 0.05 / 3)
    assert auc.bound == pytest.approx(expected, rel=1e-12)


def test_copies_have_no_known_positions_so_they_are_counted_by_clopper_pearson():
    X, y = ROWS.X.copy(), ROWS.labelled(ROWS.y).copy()
    X[:6], y[:6] = X[6:12], y[6:12]
    result = run(STEVENS, Task.of(X, y))
    certificate, old = result.certificate, find_repeats(result.problem.all_rows, result.problem.held).copies
    first = certificate.claims.first
    without = clopper_pearson(first.errors, first.rows - old, 0.05)
    assert certificate.claims.bound_without_copies == without > first.bound
