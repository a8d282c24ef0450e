"""The gate: what may be quoted is proven better than a constant, jointly with all that is claimed."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from claimed import SMALL, make_claim, run
from conftest import blobs, unwrap
from numpy.typing import NDArray
from scipy.stats import binom

from ckcv_ray import Result, Study, Task
from ckcv_ray.claims.better import PairedCounts
from ckcv_ray.claims.certificate import Certificate, describe_guesses
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.core.percent import format_percent
from ckcv_ray.learners.ensemble import predict_numbers
from ckcv_ray.study import Problem

RNG = np.random.default_rng(53)
N = 120
X = RNG.normal(size=(N, 3))
SIGNAL = X[:, 0] + 0.5 * RNG.normal(size=N)
LINEAR = Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_share=0.5)
TASKS = {
    "classes": Task.of(X, np.digitize(SIGNAL, [-0.6, 0.6])),
    "groups": Task.of(X, (SIGNAL > 0).astype(int), groups=np.arange(N) // 3),
    "weights": Task.of(X, (SIGNAL > 0).astype(int), sample_weight=np.where(X[:, 1] > 0, 3.0, 0.5)),
    "numbers": Task.of(X, SIGNAL, numbers=True),
}
STUDIES = {
    "classes": LINEAR.replace(claim="refit,vote"),
    "groups": LINEAR,
    "weights": LINEAR.replace(claim="weighted_error:3", seed=1),
    "numbers": Study.of(learner="ridge", clip=2, k=(3,), n_splits=3, certify="holdout", holdout_share=0.5),
}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {name: run(study, TASKS[name]) for name, study in STUDIES.items()}


# Exact, over all outcomes


@cache
def is_passed(lost: int, won: int, level: float) -> bool:
    return PairedCounts(won, lost, np.empty(0), False).bound(level, 0) < 0.5


find_passed = np.vectorize(is_passed)


def find_false(h: int, q: float, recalls: tuple[float, float], claims: int, gate: float) -> float:
    """The probability that any statement is false, of h rows of which a share q is positive.

    There are the gate, the error, which is quoted only if it is passed, and of two claims the sensitivity,
    which is quoted in any case.
    """
    (s, c), level, total = recalls, 0.05 / claims, 0.0
    error = q * (1 - s) + (1 - q) * (1 - c)
    is_better = error < min(q, 1 - q) - 1e-12
    bounds = clopper_pearson(np.arange(h + 1), h, level)
    for positives in range(h + 1):
        found, flagged = np.arange(positives + 1)[:, None], np.arange(h - positives + 1)[None, :]
        missed, right = positives - found, h - positives - flagged
        chance = (
            binom.pmf(positives, h, q)
            * binom.pmf(found, positives, s)
            * binom.pmf(flagged, h - positives, 1 - c)
        )
        if chance.sum() < 1e-9:  # left out on the safe side
            total += chance.sum()
            continue
        passed = find_passed(flagged, found, gate) & find_passed(missed, right, gate)
        is_false = passed & (~np.bool_(is_better) | (bounds[missed + flagged] < error - 1e-12))
        if claims > 1:
            is_false |= clopper_pearson(missed, positives, level) < 1 - s - 1e-12
        total += float(chance[is_false].sum())
    return total


@pytest.mark.parametrize(("h", "q"), [(30, 0.4), (30, 0.2), (60, 0.4)])
@pytest.mark.parametrize("claims", [1, 2])
def test_the_gate_and_all_claims_of_a_run_hold_jointly(h: int, q: float, claims: int) -> None:
    """Of rules that are exactly as good as "always negative", a little better, and much better."""
    for s in (0.1, 0.5, 0.8, 0.95):
        for better in (1.0, 0.9, 0.3):
            specificity = 1 - better * q * s / (1 - q)
            assert find_false(h, q, (s, specificity), claims, 0.05 / claims) <= 0.05


def test_a_gate_at_the_whole_delta_would_be_false_too_often_beside_another_claim() -> None:
    law = 120, 0.4, (0.82, 1 - 0.4 * 0.82 / 0.6)
    assert find_false(*law, 2, 0.05) > 0.05 > 0.04 > find_false(*law, 2, 0.025)


@pytest.mark.parametrize(("level", "rows"), [(0.05, 5), (0.025, 6), (0.0125, 7)])
def test_it_takes_a_few_rows_outside_each_class(level: float, rows: int) -> None:
    assert is_passed(0, rows, level)
    assert not is_passed(0, rows - 1, level)


@pytest.mark.parametrize(("share", "groups"), [(0.5, 8), (0.1, 32)])
def test_it_takes_as_many_groups_as_their_shares_outside_the_class_say(share: float, groups: int) -> None:
    """The product of 1 + s reaches 1 / delta: exactly so by the optimised bet, in its order about so."""
    passed = [PairedCounts(0, 0, np.full(m, -share), True).bound(0.05, 0) < 0.5 for m in range(1, groups + 1)]
    assert groups > 30 or passed == [(1 + share) ** m > 20 for m in range(1, groups + 1)]


# In a run


def measure(result: Result) -> tuple[NDArray[Any], NDArray[Any]]:
    """Losses of the model refit and of each constant in the order drawn, (units,) and (constants, units)."""
    held, problem = result.problem.take_held_rows(), result.problem
    model = result.models.refit.members[0].model
    if problem.clip is not None:
        constants = [np.median(problem.task.y)]
        lose = [np.minimum(np.abs(p - held.y), 2) / 2 for p in (predict_numbers(model, held.X), *constants)]
    else:
        constants = range(problem.task.n_classes)
        lose = [(p != held.y).astype(float) for p in (model.predict(held.X).label, *constants)]
    drawn = order_held_out(problem.all_rows.n_units, len(set(held.units.tolist())), result.problem.draws)
    of_units = np.array([[loss[held.units == unit].mean() for unit in drawn] for loss in lose])
    return of_units[0], of_units[1:]


@pytest.mark.parametrize("name", STUDIES)
def test_every_constant_has_to_be_beaten_and_the_hardest_is_named(
    results: dict[str, Result], name: str
) -> None:
    result = results[name]
    claim, (mine, constants) = result.certificate.claims.first, measure(result)
    differences = mine - constants
    if name == "classes":
        lost, won = np.sum(differences > 0, axis=1), np.sum(differences < 0, axis=1)
        bounds = clopper_pearson(lost, lost + won, 0.025)
        assert (claim.gate.lost, claim.gate.won) == (lost[bounds.argmax()], won[bounds.argmax()])
    else:
        drawn = order_held_out(N, N // 2, result.problem.draws)
        shares = result.problem.all_rows.weighting.take(drawn) / 3 if name == "weights" else None
        bounds = np.array([bound_losses((1 + of) / 2, claim.delta, shares) for of in differences])
    assert claim.gate.predicted == bounds.argmax()
    assert claim.gate.bound == pytest.approx(bounds.max(), abs=1e-5)
    assert claim.gate.least <= claim.gate.bound < 0.5


def test_a_gate_is_of_each_rule_at_the_level_of_its_own_claim(results: dict[str, Result]) -> None:
    refit, vote = results["classes"].certificate.claims
    assert refit.delta == vote.delta == 0.025
    assert refit.gate.keys() == vote.gate.keys()


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_proven_better_may_be_quoted_and_says_so_of_the_same_rows(
    results: dict[str, Result], name: str
) -> None:
    result = results[name]
    shown, said = unwrap(result.summary()), "errs less often than always predicting any one class: proven"
    if name == "numbers":
        said = "is off by less than always predicting"
    if name == "weights":
        said = "errs less often, by weight, than always predicting any one class: proven"
    assert shown.startswith("May be quoted")
    assert said in shown
    assert "within the same " in shown
    baseline = result.certificate.sample.baselines[1]
    figure = format_percent(baseline["error"]) if name != "numbers" else "on average"
    assert f"{figure} on the same rows if " in shown
    assert Certificate.from_json(result.certificate.to_json()) == result.certificate


def test_a_bound_below_a_constant_that_is_not_proven_better_is_a_figure() -> None:
    """Of these rows a tenth is 'ill': hardly any constant errs less, and five rows are not enough."""
    y = np.where(np.arange(200) < 16, "ill", "well")
    rows = np.random.default_rng(2).normal(size=(200, 2)) + 0.9 * (y == "ill")[:, None]
    result = run(LINEAR, Task.of(rows, y))
    gate = result.certificate.claims.first.gate
    assert gate.bound >= 0.5
    shown = unwrap(result.summary())
    assert shown.startswith("Nothing can be quoted yet. The bound ")
    assert "(refit) is a figure, not to be quoted alone: that it errs less often than" in shown
    assert f"always 'well' alone: {gate['won']})" in shown
    assert "that this is better than a constant is not proven" in result.claim_for(result.rule())


def test_a_gate_that_no_rule_can_pass_is_foreseen_and_said() -> None:
    y = np.where(np.arange(40) % 10 == 0, "ill", "well")
    task = Task.of(X[:40], y)
    (prospect,) = list_prospects(Problem.of(LINEAR, task))
    assert (prospect.needed, prospect.rows) == (5, 20)
    assert prospect.outside < prospect.needed
    said = "at most 13.92 % if none of the 20 held-out rows is wrong; better than a constant takes 5 rows"
    assert f"{said} outside each class, none of them wrong, and about 2 are outside" in str(prospect)
    result = run(LINEAR, task)
    assert result.certificate.claims.first.gate.least >= 0.5
    assert "these rows cannot prove it, even with none wrong" in unwrap(result.summary())


def test_how_many_groups_or_numbers_it_takes_is_planned() -> None:
    (groups,) = list_prospects(Problem.of(LINEAR, TASKS["groups"]))
    (numbers,) = list_prospects(Problem.of(STUDIES["numbers"], TASKS["numbers"]))
    assert 5 <= groups.needed <= groups.rows == 20
    assert "at most 13.92 % if none of the 20 held-out groups is wrong; better" in str(groups)
    assert 5 <= numbers.needed <= numbers.rows == 60
    assert "of the clip if none of the 60 held-out rows is off" in str(numbers)


def test_a_bound_without_rows_held_out_is_not_proven_better_than_a_constant() -> None:
    result = run(SMALL, blobs(60, shift=4.0))
    assert "gate" not in result.certificate.claims.first
    shown = unwrap(result.summary())
    assert shown.startswith("Quote with CAUTION")
    assert "That this is better than a constant is not proven: it takes rows held out" in shown


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (("sensitivity", 0.1, "ill"), "is reached by always predicting 'ill': quote it with the recalls of"),
        (("ppv:0.3", 0.71), "says nothing beyond a constant, which reaches 30.00 %"),
        (("ppv:0.3", 0.69), ""),
        (("npv:0.3", 0.31), "which reaches 70.00 %"),
        (("npv:0.3", 0.29), ""),
        (("net_benefit:0.3:0.2", 1.0), "which reaches 12.50 %"),
        (("net_benefit:0.1:0.2", 1.0), "which reaches 0.00 %"),
        (("net_benefit:0.1:0.2", 0.99), ""),
        (("answered_error", 0.05), "That the rows answered are wrong less often than by always predicting"),
    ],
)
def test_what_a_constant_reaches_too_is_cautioned_against(claim: tuple[Any, ...], words: str) -> None:
    said = describe_guesses([make_claim(*claim)], ("ill", "well"))
    assert (said == []) if not words else words in said[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (None, "it is given for an error that rows held out bound"),
        ({"bound": 1.5}, "gate.bound"),
        ({"won": -1}, "a count is negative"),
        ({"predicted": 3}, "is no class"),
    ],
)
def test_a_forged_gate_is_refused(
    results: dict[str, Result], change: dict[str, Any] | None, words: str
) -> None:
    values = results["classes"].certificate.to_json()
    first = dict(values["claims"][0])
    gate = first.pop("gate")
    if change is not None:
        first.gate = gate | change
    with pytest.raises(ValueError, match=words):
        Certificate.from_json(values | {"claims": [first, *values["claims"][1:]], "proven": first})
