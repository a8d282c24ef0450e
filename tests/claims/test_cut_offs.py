"""Cut-offs with a guarantee: their theorem, exactly and by simulation, and what a run makes of them."""

from dataclasses import replace

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs, tell
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from ckcv_ray import InputError, Study, Task
from ckcv_ray.claims.recalls import find_cut_off
from ckcv_ray.claims.rules import CutOff, orient_scores
from ckcv_ray.core.bounds.binomial import clopper_pearson, find_fewest_rows
from ckcv_ray.runs.export import export
from ckcv_ray.study import Problem

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


@pytest.mark.parametrize("m", [36, 50, 100])
def test_the_sensitivity_at_the_cut_off_is_too_small_as_rarely_as_the_theorem_says(m):
    """With continuous scores it is an order statistic, a Beta variable: the failure is exact."""
    score, y = np.arange(m, dtype=float), np.ones(m, np.int32)
    _, misses = find_cut_off(score, y, 1, 1, 0.9, D).misses
    failure = binom.cdf(misses, m, 0.1)  # at most so many positives below the 10 % quantile
    assert failure <= D < binom.cdf(misses + 1, m, 0.1)


@pytest.mark.parametrize("decimals", [None, 1])
def test_both_recalls_hold_jointly_on_fresh_sets(decimals):
    """100 positives and 300 negatives; the scores are normal, or rounded so that many are tied."""
    rng, failures, few = np.random.default_rng(7), 0, 0
    y = np.repeat([1, 0], [100, 300]).astype(np.int32)
    for _ in range(600):
        score = rng.normal(size=400) + 2.0 * y
        score = score if decimals is None else score.round(decimals)
        chosen = find_cut_off(score, y, 1, 1, 0.9, D)
        t = chosen.cut_off.value - (0 if decimals is None else 0.5 * 10**-decimals)
        sensitivity, specificity = norm.sf(t - 2.0), norm.cdf(t)
        wrong = int(np.sum(chosen.cut_off.flag(score[100:])))
        too_few = sensitivity < 0.9
        few += too_few
        failures += too_few or 1 - specificity > clopper_pearson(wrong, 300, D)
    assert binomtest(few, 600, D, alternative="greater").pvalue > 1e-4
    assert binomtest(failures, 600, 0.05, alternative="greater").pvalue > 1e-4


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


@pytest.mark.slow
@pytest.mark.parametrize("positive", [None, "first"])
def test_a_run_chooses_and_applies_its_cut_off(task, positive):
    label = None if positive is None else str(task.classes[0])
    asked = study(
        require="sensitivity>=0.8",
        claim="sensitivity,specificity,ppv:0.02,npv:0.02,net_benefit:0.02:0.1",
        positive=label,
        accept="specificity>=0.01",
    )
    result = run(asked, task)
    sensitivity, specificity, ppv, npv, benefit, *_ = result.certificate.claims
    held = result.problem.take_held_rows()
    number = result.problem.positive
    assert 1 - sensitivity.bound >= 0.8
    flagged = result.classify(held.X, result.rule()).label == number
    score = orient_scores(result.classify(held.X, result.rule("refit")).score, number)
    assert flagged.tolist() == (score >= sensitivity.cut_off).tolist()
    of_class = held.y == number
    assert np.sum(~flagged & of_class) <= sensitivity.errors
    assert np.sum(flagged & ~of_class) == specificity.errors
    s, c = 1 - sensitivity.bound, 1 - specificity.bound
    assert 1 - ppv.bound == pytest.approx(0.02 * s / (0.02 * s + 0.98 * (1 - c)))
    assert 1 - npv.bound == pytest.approx(0.98 * c / (0.98 * c + 0.02 * (1 - s)))
    assert 1 - benefit.bound == pytest.approx(0.02 * s - 0.98 * (1 - c) / 9)
    assert ppv.delta == 0.05
    assert sensitivity.delta == pytest.approx(D)
    assert result.summary().startswith("ACCEPTED: specificity>=0.01: proven specificity")
    assert result.to_json()["accepted"][0]["met"]


def test_a_result_that_misses_a_condition_says_so_first(task):
    result = run(study(require="sensitivity>=0.8", accept="specificity>=0.999"), task)
    assert result.summary().startswith("NOT ACCEPTED: specificity>=0.999: proven specificity")
    assert not result.decisions[0].met
    assert "NOT ACCEPTED" in result._repr_html_()


def test_the_rules_own_cut_off_is_not_what_is_claimed(task):
    result = run(study(require="sensitivity>=0.8"), task)
    assert "nothing is proven for its own cut-off" in result.claim_for(result.rule("refit"))
    assert "sensitivity" in result.claim_for(result.flag_rule)
    assert run(study(), task).flag_rule is None


def test_whether_there_are_enough_positives_depends_on_the_table_alone():
    rng = np.random.default_rng(0)
    rare = Task.of(rng.normal(size=(60, 2)), np.arange(60) < 10)
    for seed in range(5):
        with pytest.raises(InputError, match=r"takes 6 held-out .* of 30 rows held out about 5 are: "):
            Problem.of(Study.of(require="sensitivity>=0.5", seed=seed), rare)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"require": "sensitivity>=0.99"}, r"^require=sensitivity>=0.99 takes 368 held-out rows of class "),
        (
            {"require": "ppv:0.02>=0.5"},
            r"chosen for sensitivity, specificity, ppv or npv; .* write ppv>=0.3 and prevalence=0.02",
        ),
        (
            {"require": "sensitivity"},
            r"^require='sensitivity' lacks its value: .* as 'sensitivity>=0.9', or write sensitivity:0.9",
        ),
        ({"require": "sensitivity<=0.9"}, r"is at least a value: write sensitivity>=0.9"),
        ({"require": "sensitivity>=1.5"}, r"'1.5' is no number between 0 and 1"),
        ({"require": "sensitivity>=x"}, r"'x' is no number between 0 and 1"),
        ({"require": "speed>=0.5"}, r"speed is not known: choose from sensitivity, spec"),
        (
            {"require": "sensitivity>=0.9", "claim": "recall"},
            r"and require=sensitivity>=0.9 is made of sensitivity",
        ),
        ({"claim": "recall,ppv:0.1"}, r"claim=recall is of every class, and ppv:0.1 is made of sensitivity"),
        ({"claim": "ppv"}, r"^claim='ppv' takes a prevalence: write ppv:0.02"),
        ({"claim": "net_benefit:0.02"}, r"write net_benefit:0.02:0.1"),
        ({"claim": "npv:0"}, r"^claim=npv:0: '0' is no number between 0 and 1: write npv:0.02"),
        ({"accept": "auc>=0.9"}, r"^accept=auc>=0.9 is about what is not claimed: add auc to the claims"),
        ({"accept": "error<=0.1", "claim": "auc"}, r"about the error, which is not claimed: claim refit,auc"),
    ],
)
def test_what_cannot_be_required_is_refused(options, said, task):
    with pytest.raises(InputError, match=said):
        Problem.of(study(**options), task)


def test_a_learner_whose_scores_do_not_rank_is_refused():
    from nearest_centroid import NearestCentroid  # registers it, which the command line sees

    task = blobs(240)
    with pytest.raises(InputError, match=r"^require=sensitivity>=0.8 needs scores that order the rows"):
        Problem.of(study(require="sensitivity>=0.8").with_learner(NearestCentroid()), task)


def test_several_classes_have_no_cut_off():
    y = np.arange(300) % 3
    task = Task.of(np.random.default_rng(1).normal(size=(300, 2)), y)
    with pytest.raises(InputError, match=r"^require=sensitivity>=0.8 is for two classes.*: leave it out"):
        Problem.of(study(require="sensitivity>=0.8"), task)


def test_a_cut_off_cannot_be_exported(task, tmp_path):
    result = run(study(require="sensitivity>=0.8"), task, tmp_path / "run")
    with pytest.raises(InputError, match="a cut-off of the model's scores, which the file would lack"):
        export(result, tmp_path / "model.skops")


def test_a_quantity_of_which_nothing_is_proven_is_not_quoted():
    """Every positive is missed: what is proven of the sensitivity is that it is at least 0."""
    result = run(study(claim="sensitivity,specificity"), blobs(80))
    claims = result.certificate.claims
    first = replace(claims.first, bound=1.0)
    certificate = replace(result.certificate, claims=replace(claims, claims=(first, *claims.claims[1:])))
    told = tell(replace(result, finished=result.finished._replace(certificate=certificate)))
    assert told["verdict"] == (
        "Nothing can be quoted yet. The sensitivity (recall of 1) is proven to be at least 0.00 %, which is "
        "nothing."
    )
    assert "claim" not in told
