"""Claims that are closer by choice: more rows that certify, positions, and U on the first split."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from claimed import SMALL
from conftest import blobs

from ckcv_ray import Execution, Job, Study, Task, load_run, verify
from ckcv_ray.claims.by_class import describe_u, get_u, order_held_rows
from ckcv_ray.core.bounds.binomial import average_terms, clopper_pearson, stevens, tabulate_claim
from ckcv_ray.core.bounds.positions import rank_positions
from ckcv_ray.core.bounds.unequal_sizes import slope
from ckcv_ray.core.draws import Draws, draw_first, draw_pairs, order_held_out
from ckcv_ray.errors import InputError
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import run_job
from ckcv_ray.study import Problem
from ckcv_ray.study.certification import Holdout, Nested, Occam, Suited
from ckcv_ray.tables.repeats import find_repeats

SERIAL = Execution("serial")
ONE = SMALL.replace(C=1.0, gamma=0.1, k=3)
STEVENS = ONE.replace(certify="holdout", holdout_share="bound", holdout_bound="stevens")
NESTED = ONE.replace(certify="nested", outer_splits=3)
ROWS = blobs(90, shift=0.7)


def run(study: Study, task: Task = ROWS, out: Path | None = None) -> Result:
    return run_job(Job(study, task, out), SERIAL)


# Positions


def test_held_out_rows_are_bounded_by_the_positions_in_which_they_were_drawn():
    """Redrawn here: which of the drawn rows are wrong, in their order, for each claim."""
    result = run(STEVENS.replace(claim="refit,sensitivity,specificity,auc"))
    refit, sensitivity, specificity, auc, *_ = result.certificate.claims
    drawn = order_held_out(90, 54, result.problem.draws)
    every = result.problem.every_row
    prediction = result.models.refit.members[0].model.predict(every.X)
    wrong = prediction.label[drawn] != every.y[drawn]
    assert 0 < wrong.sum() == refit["errors"]
    assert refit["bound"] == stevens(wrong.sum(), 54, rank_positions(wrong), 0.05 / 3)
    assert refit["bound"] < clopper_pearson(wrong.sum(), 54, 0.05 / 3)
    assert "Stevens by positions in the order of the draw" in refit["statement"]
    for claim, number in ((sensitivity, 1), (specificity, 0)):
        part = wrong[every.y[drawn] == number]
        expected = stevens(part.sum(), len(part), rank_positions(part), claim["delta"])
        assert claim["bound"] == pytest.approx(expected, rel=1e-12)
        assert (claim["errors"], claim["rows"]) == (part.sum(), len(part))
    held = np.sort(drawn)
    low, high = draw_pairs(every.y[held], result.problem.draws)
    score = prediction.score[held]
    pairs = score[high] <= score[low]
    expected = stevens(pairs.sum(), len(pairs), rank_positions(pairs), 0.05 / 3)
    assert auc["bound"] == pytest.approx(expected, rel=1e-12)


def test_only_the_bound_changes_and_the_default_is_as_before():
    plain = run(STEVENS.replace(holdout_bound="clopper_pearson"))
    closer = run(STEVENS)
    assert plain.setting == closer.setting
    one, other = plain.certificate.claims.first, closer.certificate.claims.first
    assert (one["errors"], one["rows"]) == (other["errors"], other["rows"])
    assert one["bound"] == clopper_pearson(one["errors"], one["rows"], 0.05)
    np.testing.assert_array_equal(order_held_rows(plain.problem), np.arange(54))


def test_copies_have_no_known_positions_so_they_are_counted_by_clopper_pearson():
    X, y = ROWS.X.copy(), ROWS.labelled(ROWS.y).copy()
    X[:6], y[:6] = X[6:12], y[6:12]
    result = run(STEVENS, Task.of(X, y))
    certificate, old = result.certificate, find_repeats(result.problem.all_rows, result.problem.held).copies
    first = certificate.claims.first
    without = clopper_pearson(first["errors"], first["rows"] - old, 0.05)
    assert certificate.claims.bound_without_copies == without > first["bound"]


def test_with_groups_positions_are_refused():
    groups = np.repeat(np.arange(30), 3)
    with pytest.raises(InputError, match=r"^holdout_bound=stevens is for rows that are right or wrong"):
        Problem.of(STEVENS, Task.of(ROWS.X, ROWS.labelled(ROWS.y), groups=groups))


# U on the first split


@pytest.mark.parametrize("claim", ["random", "random,recall", "random,auc"])
def test_u_lowers_the_claim_about_a_single_split_alone(claim):
    study = NESTED.replace(claim=claim, outer_splits=1)
    plain, closer = run(study).certificate, run(study.replace(first_uniform=True)).certificate
    u, m = draw_first(Draws(study.seed, ROWS.salt)), 30
    assert 0 < u < 1
    for one, other in zip(plain.claims, closer.claims, strict=True):
        if one["certification"] != "nested":
            assert f"U = {u:.3f}" in other["statement"]
            continue
        number = None if one["label"] is None else list(plain.sample.labels).index(one["label"])
        if one["quantity"] == "error":
            lam = tabulate_claim(m, one["delta"]).lam
        else:
            rows = plain.sample.class_rows if number is None else [plain.sample.class_rows[number]]
            lam = slope(round(min(rows) * 30 / 90), one["delta"])
        assert other["bound"] == pytest.approx(max(0, one["bound"] - (1 - u) / lam), abs=1e-12)
        assert f", U = {u:.3f} drawn for the first split alone" in other["statement"]


def test_u_lowers_the_prefix_of_one_split_of_f_star():
    plain, closer = run(ONE), run(ONE.replace(first_uniform=True))
    first, *prefix = closer.certificate.claims
    assert first["bound"] == plain.certificate.claims.first["bound"]
    if prefix and len(prefix[0]["splits"]) == 1:
        assert prefix[0]["bound"] < plain.certificate.claims.claims[-1]["bound"]


def test_u_is_drawn_once_from_a_key_of_its_own():
    problem = Problem.of(NESTED.replace(first_uniform=True), ROWS)
    assert get_u(problem) == draw_first(problem.draws)
    assert get_u(replace(problem, study=NESTED)) == 1.0
    assert (describe_u(1.0), describe_u(0.25)) == ("", ", U = 0.250 drawn for the first split alone")
    drawn = [draw_first(Draws(seed)) for seed in range(500)]
    assert len(set(drawn)) == 500
    assert 0.45 < np.mean(drawn) < 0.55


@pytest.mark.parametrize("part", [Occam, Nested])
def test_whether_u_is_drawn_is_true_or_false(part):
    with pytest.raises(InputError, match="first_uniform"):
        part(first_uniform="often")


# Shares


@pytest.mark.parametrize(("n", "share"), [(12, 0.6), (400, 0.6), (401, 0.5), (5_000, 0.5)])
def test_bound_holds_out_three_fifths_of_few_rows_and_half_of_many(n, share):
    assert Holdout("bound").canonical(n) == Holdout(share)
    assert len(Holdout("bound").draw_held_out(n, Draws(7))) == int(share * n)
    if n >= 60:
        asked = Suited("bound", holdout_bound="stevens")
        assert asked.canonical(n) == Holdout(share, holdout_bound="stevens")


def test_a_bound_of_held_out_rows_has_a_name():
    with pytest.raises(InputError, match=r"^holdout_bound='exact' is not known: choose from clopper_pearson"):
        Holdout(holdout_bound="exact")


# Folders


@pytest.mark.parametrize(
    "study", [STEVENS, NESTED.replace(outer_share="three_fifths", first_uniform=True, outer_splits=2)]
)
def test_a_folder_with_closer_claims_verifies(study, tmp_path):
    result = run(study, out=tmp_path / "run")
    assert verify(tmp_path / "run").differences == []
    assert load_run(tmp_path / "run").certificate == result.certificate


def test_averaged_terms_are_limited():
    assert average_terms([1.2, 1.4]) == 1.0
