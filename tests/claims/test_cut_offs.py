"""Cut-offs with a guarantee: their theorem, exactly and by simulation, and what a run makes of them."""

from dataclasses import replace

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs, tell
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import InputError, Study, Task
from ckcv_ray.claims.recalls import find_cut_off
from ckcv_ray.claims.rules import CutOff, Rule, orient_scores
from ckcv_ray.core.bounds.binomial import clopper_pearson, find_fewest_rows
from ckcv_ray.runs.certified import mark_rows
from ckcv_ray.runs.export import export

D = 0.05 / 2  # of each of two that hold together
scores = st.lists(st.integers(-4, 4).map(float), min_size=40, max_size=90)


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
def task() -> Task:
    return blobs(240)


def study(**options: str | None) -> Study:
    return SMALL.replace(k=(3, 5), certify="holdout", holdout_share=0.5, **options)


def test_the_rules_own_cut_off_is_not_what_is_claimed(task):
    result = run(study(require="sensitivity>=0.8"), task)
    assert "nothing is proven for its own cut-off" in result.claim_for(result.rule("refit"))
    refit, of_refit = Rule("refit"), result.rule("refit").predict(result.models, task.X)
    _, (_, flagged) = mark_rows(result, task.X, refit, of_refit)
    assert flagged.startswith("column flag by the model fitted on the learning rows with cut-off")
    assert "sensitivity" in flagged
    marks, told = mark_rows(run(study(), task), task.X, refit, of_refit)
    assert marks == {}
    assert len(told) == 1


def test_a_cut_off_cannot_be_exported(task, tmp_path):
    result = run(study(require="sensitivity>=0.8"), task, tmp_path / "run")
    with pytest.raises(InputError, match="a cut-off of the model's scores, which the file would lack"):
        export(result, tmp_path / "model.skops")


def test_a_quantity_of_which_nothing_is_proven_is_not_quoted():
    """Every positive is missed: what is proven of the sensitivity is that it is at least 0."""
    result = run(study(claim="sensitivity,specificity"), blobs(80))
    first, *others = result.certificate.claims
    certificate = replace(result.certificate, claims=(replace(first, bound=1.0), *others))
    told = tell(replace(result, certificate=certificate))
    assert told["verdict"] == (
        "Nothing can be quoted yet. The sensitivity (recall of 1) is proven to be at least 0.00 %, which is "
        "nothing."
    )
    assert not told.get("claim", "").startswith("Assuming")  # it is that of the study
