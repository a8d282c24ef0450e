"""What is claimed of predicted numbers: exact coverage, ties, infinite errors, copies, forgeries."""

import json
from typing import Any

import numpy as np
import pytest
from claims.claimed import run
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ckcv_ray import Result, Study, Task
from ckcv_ray.claims.baseline import describe_error, name_constant
from ckcv_ray.claims.certificate import Certificate, compare_with_baseline, describe_repeats
from ckcv_ray.claims.numbers import claim_within
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.percent import format_number

REFIT = Rule("refit")
N = 120
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, 2.0] + RNG.standard_t(2.5, N)
STUDY = Study.of(learner="ridge", alpha=(0.1, 10.0), clip=4.0, k=(3,), n_splits=3)
HELD = STUDY.replace(certify="holdout", holdout_share=0.5, claim="refit,within:0.8")


@pytest.fixture(scope="module")
def held() -> Result:
    return run(HELD, Task.of(X, Y, numbers=True))


@pytest.mark.parametrize(
    ("accept", "met"),
    [("clipped<=3.9", True), ("clipped<=0.1", False), ("within:0.8<=50", True), ("within:0.8<=0.1", False)],
)
def test_conditions_are_on_what_is_proven_in_units_of_the_target(accept: str, met: bool):
    result = run(HELD.replace(accept=accept), Task.of(X, Y, numbers=True))
    (decision,) = result.decisions
    assert decision.met is met
    about = "mean error (above 4 counts as 4)" if "clipped" in accept else "error of 80 % of new rows"
    assert decision.proven.startswith(f"proven {about} at most ")
    assert result.summary().startswith(f"{'ACCEPTED' if met else 'NOT ACCEPTED'}: {accept}: ")


def find_width(errors: Any, share: float, delta: float, copies: int = 0) -> float:
    return claim_within(REFIT, f"within:{share}", share, np.asarray(errors, float), delta, copies)["bound"]


@pytest.mark.parametrize(("rows", "place"), [(60, 59), (100, 96), (200, 188), (400, 371)])
def test_the_order_statistic_is_the_least_that_is_proven(rows, place):
    errors = np.random.default_rng(rows).permutation(np.arange(1.0, rows + 1))
    assert find_width(errors, 0.9, 0.05) == place
    assert binom.sf(place - 1, rows, 0.9) <= 0.05 < binom.sf(place - 2, rows, 0.9)
    assert find_width(np.full(rows, 2.5), 0.9, 0.05) == 2.5


@given(st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_coverage_is_exact_and_at_least_the_level(rows, share, delta):
    width = find_width(np.arange(rows), share, delta)
    if width == UNPROVEN:
        assert share**rows > delta
        return
    place = int(width) + 1  # false only if as many errors are below the quantile
    assert binom.sf(place - 1, rows, share) <= delta
    assert place == 1 or binom.sf(place - 2, rows, share) > delta


def test_a_law_with_atoms_is_covered_at_every_number_of_rows():
    values, chances = np.array([0.0, 1.0, 5.0]), np.array([0.3, 0.55, 0.15])
    for rows in (30, 40, 70):  # the claim is false if fewer than 80 % of new rows are within the width
        false = 0.0
        for zeros in range(rows + 1):  # errors are 0, 1 or 5: a width of 0 is false
            width = find_width(np.repeat(values, [zeros, rows - zeros, 0]), 0.8, 0.05)
            false += binom.pmf(zeros, rows, chances[0]) * (width < 1)
        assert false <= 0.05


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_predictions_that_are_not_finite_prove_nothing_if_there_are_many(bad):
    errors = np.where(np.arange(60) < 1, bad, 1.0)
    claim = claim_within(REFIT, "within:0.9", 0.9, errors, 0.05, 0)
    assert (claim.bound, claim.errors, claim.rows) == (1.0, 1, 60)
    nothing = claim_within(REFIT, "within:0.9", 0.9, np.full(60, bad), 0.05, 0)
    assert nothing["bound"] == UNPROVEN
    assert nothing["statement"].startswith("Nothing can be claimed for how far off 90 % of new rows are")
    assert nothing.limit == "any amount"


def test_copies_are_those_of_the_smallest_errors():
    errors = np.arange(100.0)
    for copies in (1, 10, 40):
        left = find_width(errors[copies:], 0.9, 0.05)
        assert find_width(errors, 0.9, 0.05, copies) == left >= find_width(errors, 0.9, 0.05)
    assert find_width(errors, 0.9, 0.05, 75) == UNPROVEN
    assert find_width(errors, 0.9, 0.05, 1000) == UNPROVEN


def test_claims_are_about_the_rows_held_out(held):
    mean, within = held.certificate.claims
    rows = held.problem.take_held_rows()
    errors = np.abs(held.predict(rows.X) - rows.y)
    assert mean["measured"] == pytest.approx(np.minimum(errors, 4).mean() / 4, abs=2**-19)
    assert mean["measured"] < mean["bound"] < 1
    assert within.bound == np.sort(errors)[within.rows - within.errors - 1]
    assert within.errors == np.sum(errors > within.bound)
    assert mean["quantity"] == "clipped:4"
    assert mean["delta"] == within.delta == 0.025


def test_the_order_of_the_rows_has_no_part_in_what_the_seed_draws(held):
    """Held-out rows in another order have the same totals: the draw orders their places."""
    rows = held.problem.held
    order = np.arange(N)
    order[rows] = rows[::-1]
    (mean, within, *_) = run(HELD, Task.of(X[order], Y[order], numbers=True)).certificate.claims
    first, second, *_ = held.certificate.claims
    assert within.bound == pytest.approx(second["bound"], rel=1e-12)
    assert mean["measured"] == pytest.approx(first.measured, rel=1e-9)


def test_a_sentence_names_no_bound_on_counts(held):
    said = " ".join([*held.certificate.wording.statements, held.summary(details=True), str(held.to_json())])
    for word in ("Clopper", "L_EE", "misclassified", "majority", "wrong"):
        assert word not in said, word
    assert "counts as 4" in said
    assert "at least 80 % of new rows are predicted to within" in said


def test_numbers_are_shown_in_units_of_the_target(held):
    mean, within, *_ = held.certificate.claims
    assert float(mean.limit) == pytest.approx(4 * mean["bound"], rel=1e-3)
    assert float(mean.limit) >= 4 * mean["bound"]
    assert within.says == f"at most {within.limit}"
    assert mean.name == "mean error (above 4 counts as 4)"
    assert within.name == "error of 80 % of new rows"
    assert mean.counted.startswith("measured: ")
    assert "held-out rows further off" in within.counted
    shown = {50.0: "50", 0.12345: "0.1235", 1234567.0: "1234567", 0.0: "0", 1e-7: "1e-07", 2.5: "2.5"}
    assert {value: format_number(value) for value in shown} == shown


def test_the_baseline_is_the_median_of_the_learning_rows(held):
    learning, unseen = held.certificate.sample.baselines
    task = held.problem.task
    assert learning["value"] == unseen["value"] == np.median(task.y)
    losses = np.minimum(np.abs(task.y - np.median(task.y)), 4) / 4
    assert learning["error"] == pytest.approx(losses.mean(), abs=2**-19)
    assert name_constant(learning, ()) == f"always predicting {format_number(np.median(task.y))}"
    said = compare_with_baseline(held.certificate.claims.first, unseen, ())
    assert f"is off by {describe_error(unseen)} on average on the held-out rows" in said
    assert held.baseline == unseen["error"]


def test_a_bound_that_a_constant_reaches_is_not_quoted():
    noise = np.random.default_rng(5).normal(size=N)
    result = run(HELD.replace(claim="refit"), Task.of(X, noise, numbers=True))
    assert not result.to_json()["below_baseline"]
    assert "Nothing can be quoted yet. The bound" in result.summary()
    assert "that it is off by less than always predicting" in " ".join(result.summary().split())


def test_rows_that_repeat_are_counted_once_in_another_bound():
    again = [*range(N), *range(8)]
    doubled = Task.of(X[again], Y[again], numbers=True)
    result = run(HELD, doubled)
    c = result.certificate
    assert c.claims.bound_without_copies > c.claims.first.bound
    (sentence,) = c.describe_repeats()
    assert "and are counted once, the first claim is at most" in sentence
    alone = run(HELD.replace(claim="within:0.8"), doubled).certificate.claims
    assert alone.str(first.quantity) == "within:0.8"
    assert alone.bound_without_copies >= alone.first.bound
    assert "nothing here is proven" in describe_repeats(9, 9, False, alone.first, UNPROVEN)[0]


def forge(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A certificate in which one value is another, or absent."""
    *places, last = path.split(".")
    inner: Any = values
    for place in places:
        inner = inner[int(place) if place.isdigit() else place]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    if places[:2] == ["claims", "0"]:
        values["proven"] = values["claims"][0]
    return values


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("claims.0.quantity", "error", "is not of a target with 0 classes"),
        ("claims.0.quantity", "clipped:0", "is no positive number"),
        ("claims.0.quantity", "clipped:x", "is no positive number"),
        ("claims.1.quantity", "within:2", "no number between 0 and 1"),
        ("claims.0.bound", 1.5, "outside 0..1"),
        ("claims.0.measured", None, "measured: -1.0 is outside 0..1"),
        ("claims.1.measured", 0.5, "is no mean of losses"),
        ("claims.1.bound", -1.0, "is negative, or not finite"),
        ("claims.0.label", "a", "is none of the 0 classes"),
        ("numbers", None, "numbers: they are given where there are no labels"),
        ("numbers.clip", 0.0, "clip: it is not positive"),
        ("numbers.losses", [0.5], "expected 3, one for each split"),
        ("numbers.losses", [0.5, 1.0, 1e9], "losses.2"),
        ("errors", [0, 0, 1], "and no errors"),
        ("baselines.0.clip", None, "value and clip are given with numbers"),
        ("baselines.0.clip", -1.0, "or its clip not positive"),
        ("class_rows", [60, 60], "class_rows"),
    ],
)
def test_a_forged_certificate_of_numbers_is_refused(held, path, value, words):
    values = json.loads(json.dumps(held.certificate.to_json()))
    assert Certificate.from_json(json.loads(json.dumps(values))).to_json() == held.certificate.to_json()
    with pytest.raises(ValueError, match=words):
        Certificate.from_json(forge(values, path, value))
