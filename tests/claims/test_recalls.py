"""Recalls, the cut-offs that guarantee them, and exact intervals of what was measured of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs, tell
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ckcv_ray import InputError, Task
from ckcv_ray.claims.recalls import find_cut_off
from ckcv_ray.claims.rules import CutOff, Rule, orient_scores
from ckcv_ray.core.bounds.binomial import bound_both_sides, clopper_pearson, find_fewest_rows
from ckcv_ray.runs.export import export
from ckcv_ray.runs.result import mark_rows

D = 0.05 / 2  # of each of two that hold together
HELD = SMALL.replace(certify="holdout", claim=("sensitivity", "specificity"))
HALF = SMALL.replace(k=(3, 5), certify="holdout", holdout_share=0.5)
TASK = blobs(240)
scores = st.lists(st.integers(-4, 4).map(float), min_size=40, max_size=90)


# Cut-offs


@given(scores, st.integers(0, 1), st.integers(0, 1), st.randoms(use_true_random=False))
def test_a_cut_off_misses_at_most_as_many_as_its_bound_allows(values, positive, number, random):
    score = np.array(values)
    y = np.array([random.randint(0, 1) for _ in values], np.int32)
    chosen = find_cut_off(score, y, positive, number, 0.9, D)
    m = int(np.sum(y == number))
    assert (chosen is None) == (m < find_fewest_rows(1 - 0.9, 0, D))
    if chosen is None:
        return
    of_class, misses = chosen.misses
    assert of_class == number
    wrong = int(np.sum(chosen.cut_off.classify(score)[y == number] != number))
    assert wrong <= misses
    assert clopper_pearson(misses, m, D) <= 1 - 0.9 < clopper_pearson(misses + 1, m, D)
    further = CutOff(np.nextafter(chosen.cut_off.value, np.inf), positive)  # the next one misses too many
    if number == positive:
        assert np.sum(further.classify(score)[y == number] != number) > misses


@given(st.floats(-1e6, 1e6).filter(lambda score: score == 0 or abs(score) > 1e-100), st.integers(0, 1))
def test_last_bits_of_a_score_do_not_matter(score, positive):
    near = np.array([score, np.nextafter(score, np.inf)])
    rounded = orient_scores(near, positive)
    scale = max(abs(score), 1e-300)
    assert abs(rounded[0] - rounded[1]) <= 2e-12 * scale
    assert np.allclose(np.abs(rounded), np.abs(near), rtol=1e-11, atol=1e-200)
    assert np.array_equal(orient_scores(rounded if positive else -rounded, positive), rounded)


@pytest.fixture(scope="module")
def required():
    return run(HALF.replace(require="sensitivity>=0.8"), TASK)


def test_the_rules_own_cut_off_is_not_what_is_claimed_nor_can_the_chosen_one_be_exported(required, tmp_path):
    assert "nothing is proven for its own cut-off" in required.claim_for(required.rule("refit"))
    predicted = required.rule("refit").predict(required.models, TASK.X)
    _, (_, flagged) = mark_rows(required, TASK.X, Rule("refit"), predicted)
    assert flagged.startswith("column flag by the model fitted on the learning rows with cut-off")
    assert "sensitivity" in flagged
    marks, told = mark_rows(run(HALF, TASK), TASK.X, Rule("refit"), predicted)
    assert (marks, len(told)) == ({}, 1)
    with pytest.raises(InputError, match="a cut-off of the model's scores, which the file would lack"):
        export(required, tmp_path / "model.skops")


def test_a_quantity_of_which_nothing_is_proven_is_not_quoted():
    """Every positive is missed: what is proven of the sensitivity is that it is at least 0."""
    result = run(HALF.replace(claim="sensitivity,specificity"), blobs(80))
    first, *others = result.certificate.claims
    certificate = replace(result.certificate, claims=(replace(first, bound=1.0), *others))
    told = tell(replace(result, certificate=certificate))
    assert told["verdict"] == (
        "Nothing can be quoted yet. The sensitivity (recall of 1) is proven to be at least 0.00 %, which is "
        "nothing."
    )
    assert not told.get("claim", "").startswith("Assuming")  # it is that of the study


# Intervals


@pytest.mark.parametrize("m", [5, 40])
@pytest.mark.parametrize("p", [0.001, 0.2, 0.5, 0.97])
def test_an_interval_misses_as_rarely_as_it_says(m, p):
    ends = np.array([bound_both_sides(x, m, 0.05) for x in range(m + 1)])
    assert bound_both_sides(0, 0, 0.05) == (0.0, 1.0)
    missed = (p < ends[:, 0]) | (p > ends[:, 1])
    assert float(np.sum(binom.pmf(np.arange(m + 1), m, p)[missed])) <= 0.05


def test_every_count_of_held_out_rows_has_an_interval():
    result = run(HALF.replace(claim="refit,vote,sensitivity,specificity,auc"), TASK)
    found = result.intervals
    assert [(str(one.quantity), one.label, one.classifier) for one, *_ in found] == [
        ("error", None, "refit"),
        ("error", None, "vote"),
        ("sensitivity", TASK.classes[1], "refit"),
        ("specificity", TASK.classes[0], "refit"),
    ]
    for claim, *ends in found:
        part = claim.errors if str(claim.quantity) == "error" else claim.rows - claim.errors
        assert tuple(ends) == bound_both_sides(part, claim.rows, 0.05)
    stored = json.loads(json.dumps(result.to_json()))["measured"]
    assert (stored[0]["quantity"], stored[0]["level"]) == ("error", 0.95)
    assert [one["low"] for one in stored] == [low for _, low, _ in found]


def test_what_is_not_binomial_has_no_interval(required):
    """A recall at a cut-off that its own rows chose, rows of groups, scored rows of cross validation."""
    assert [str(claim.quantity) for claim, *_ in required.intervals] == ["specificity"]
    grouped = Task.of(TASK.X, TASK.labelled(TASK.y), groups=np.arange(240) // 2)
    assert run(HALF, grouped).intervals == []
