"""Somebody else's predictions: what is proven about them, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from claimed import run
from conftest import unwrap
from numpy.typing import NDArray
from pages import Page

from ckcv_ray import InputError, Study, Task, clopper_pearson, judge
from ckcv_ray.core.bounds.betting import bound_by_optimised_bet
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.errors import round_bound
from ckcv_ray.tables.predictions import PredictionColumns, read_predictions

WORDS = np.array(["well", "sick"])
# Printed by R's binom.test: for the example of its help page (Conover 1971, p. 97), and published ones.
OF_R = [(682, 925, 0.95, 0.7076683, 0.7654066), (1, 1497, 0.90, 3.426347e-05, 3.164954e-03)]


def draw(n: int, seed: int = 1) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return labels, predictions and scores of rows, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.3
    score = np.clip(sick * 0.5 + rng.normal(0.25, 0.2, n), 0, 1).round(4)
    return WORDS[sick.astype(int)], WORDS[(score >= 0.5).astype(int)], score


Y, PREDICTED, SCORE = draw(400)
FOURS = np.arange(400) // 4


@pytest.mark.parametrize(("wrong", "rows", "level", "low", "high"), OF_R)
def test_intervals_are_those_of_r(wrong: int, rows: int, level: float, low: float, high: float) -> None:
    y = WORDS[np.arange(rows) % 2]
    made = judge(y, np.where(np.arange(rows) < wrong, WORDS[1 - np.arange(rows) % 2], y), delta=1 - level)
    assert made.find_interval(made.claims[0]) == pytest.approx((low, high), rel=2e-7)
    assert made.claims[0].bound == clopper_pearson(wrong, rows, 1 - level)


def test_what_is_proven_is_what_a_run_proves_of_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    X, claims = rng.normal(size=(200, 2)), "refit,sensitivity,specificity,auc"
    task = Task.of(X, WORDS[(X[:, 0] + rng.normal(size=200) > 0).astype(int)])
    result = run(Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", claim=claims), task)
    rows = result.judged
    labels = (np.array(task.classes)[rows[name].to_numpy()] for name in ("label", "predicted"))
    made = judge(*labels, score=rows["score"].to_numpy(), claim="error,sensitivity,specificity,auc")
    for ours, theirs in zip(made.claims[:3], result.claims, strict=False):
        assert (ours.bound, ours.errors, ours.rows) == (theirs.bound, theirs.errors, theirs.rows)
        assert ours.gate == theirs.gate
    assert made.claims[3].rows == result.claims[3].rows  # of pairs that are drawn otherwise


def test_no_order_of_a_file_has_a_part_in_losses_and_an_auc_is_of_drawn_pairs() -> None:
    """A file may be sorted by its score: paired in its order, an AUC of a half would look perfect."""
    order, near = np.argsort(SCORE), SCORE * 100 + draw(400, seed=2)[2]
    for given, asked, moved in (
        ((Y, PREDICTED), {"groups": FOURS}, {"groups": FOURS[order]}),
        ((SCORE * 100, near), {"clip": 10, "baseline": 50}, {"clip": 10, "baseline": 50}),
    ):
        first, second = judge(*given, **asked), judge(*(values[order] for values in given), **moved)
        assert second.claims[0].bound == pytest.approx(first.claims[0].bound, abs=1e-12)
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        labels, noise = WORDS[rng.integers(2, size=60)], np.sort(rng.random(60))
        (claim,) = judge(labels, score=noise, positive="sick").claims
        false += claim.risk < 0.5
    assert false <= 19  # of 200 at a level of 5 %: more have a chance below 0.5 %


def test_another_prediction_is_compared_with_and_by_how_much() -> None:
    worse = np.where(np.arange(400) % 3 == 0, "sick", PREDICTED)
    made = judge(Y, PREDICTED, against=worse)
    wins = made.claims[1]
    alone = (Y == PREDICTED) & (worse != Y), (Y != PREDICTED) & (worse == Y)
    won, lost = map(int, map(np.sum, alone))
    assert (wins.rows, wins.errors) == (won + lost, lost)
    # Half of its share, and the margin the other
    assert wins.bound == clopper_pearson(lost, won + lost, 0.0125)
    least = (1 - clopper_pearson(400 - won, 400, 0.00625)) - clopper_pearson(lost, 400, 0.00625)
    assert made.margin == pytest.approx(least)
    assert "points or more" in made.summary()
    assert judge(Y, worse, against=PREDICTED).margin is None


NAME = "sensitivity (recall of 'sick')"
NO_SENSITIVITY = f"The {NAME} cannot be quoted. The {NAME} is proven to be at least 0"


@pytest.mark.parametrize(
    ("predicted", "asked", "verdict"),
    [
        (PREDICTED, {"claim": "better:against"}, "May be quoted: share of wins"),
        (PREDICTED, {"claim": "better:against,error"}, "May be quoted: share of wins"),
        (np.full(400, "well"), {"claim": "sensitivity,specificity"}, NO_SENSITIVITY),
    ],
    ids=["better alone", "better first", "a sensitivity of nothing"],
)
def test_the_first_claim_is_quoted_or_none_is_in_every_form(
    predicted: NDArray[Any], asked: dict[str, Any], verdict: str, tmp_path: Path
) -> None:
    against = np.roll(Y, 1) if "better" in asked["claim"] else None
    made = judge(Y, predicted, against=against, positive="sick", **asked)
    told = {fact.name: fact.text for fact in made.facts()[0].facts}
    assert told["verdict"].startswith(verdict)
    assert told["verdict"] in unwrap(made.summary())
    assert told["verdict"] in Page(Path(made.report(tmp_path / "page.html")).read_text()).text
    (then,) = next(section for section in made.facts() if section.name == "next").facts
    assert then.text.startswith("Quote") == made.to_json()["may_be_quoted"]
    if made.to_json()["may_be_quoted"]:
        assert told["number"] == made.first.limit
        assert f"at least {made.first.limit}" in told["claim"]
    else:
        assert not {"number", "claim"} & told.keys()


def test_numbers_are_quoted_beside_a_number_that_was_named() -> None:
    y = np.random.default_rng(0).normal(100, 20, 200)
    alone, named = (judge(y, y + 3, clip=50, claim="error,within:0.9", **b) for b in ({}, {"baseline": 100}))
    assert [made.to_json()["may_be_quoted"] for made in (alone, named)] == [False, True]
    assert named.claims[0].gate is not None
    low, high = named.find_interval(named.claims[0]) or (0.0, 0.0)
    assert low < 3 / 50 < high < named.claims[0].risk + 0.02
    interval = f"interval {round_bound(50 * low, up=False)} to {round_bound(50 * high)}"
    assert interval in unwrap(named.summary())
    assert named.claims[1].bound == pytest.approx(3)


def test_groups_count_by_their_rows_up_to_a_size_that_was_named() -> None:
    (claim,) = judge(Y, PREDICTED, groups=FOURS).claims
    assert claim.statement.startswith("Suppose that these 100 groups of 400 rows are independent draws")
    assert claim.bound == bound_by_optimised_bet(np.bincount(FOURS, (Y != PREDICTED) / 4), 0.05)
    groups = np.minimum(FOURS, 90)
    (claim,) = judge(Y, PREDICTED, groups=groups, largest_group=50).claims
    sizes, wrong = np.bincount(groups), np.bincount(groups, Y != PREDICTED)
    assert claim.bound == pytest.approx(bound_by_optimised_bet(wrong / sizes, 0.05, sizes / 50))
    assert claim.measured == np.mean(Y != PREDICTED)
    for limit, mean in ((4, False), (None, True)):
        told = unwrap(judge(Y, PREDICTED, groups=FOURS, largest_group=limit).summary())
        assert ("if 'well' were always predicted, mean over groups" in told) is mean
    with pytest.raises(InputError, match="'group' has 40: state the largest"):
        judge(Y, PREDICTED, groups=groups, largest_group=30)


def test_a_cut_off_is_chosen_by_scores_for_what_is_required() -> None:
    asked = {"require": "sensitivity>=0.7", "claim": "sensitivity,specificity"}
    made = judge(Y, score=SCORE, positive="sick", **asked)
    assert [claim.label for claim in made.claims] == ["sick", "well"]
    assert made.claims[0].risk <= 0.3
    for score, turned in ((SCORE, False), (-SCORE, True)):
        cautions = judge(Y, score=score, positive="sick").list_cautions()
        assert any("Larger scores seem to mean 'well'" in caution for caution in cautions) is turned


def test_a_file_of_one_class_proves_its_recall_and_the_error() -> None:
    y, predicted = np.repeat("sick", 60), WORDS[(np.arange(60) > 4).astype(int)]
    error, recall = judge(y, predicted, positive="sick", claim="error,sensitivity").claims
    assert (error.errors, recall.errors, recall.rows) == (5, 5, 60)
    with pytest.raises(InputError, match="counts rows of class 'well', and there are none: leave it out"):
        judge(y, predicted, positive="sick", claim="error,specificity")


def test_rows_without_a_label_count_as_wrong_if_asked() -> None:
    y, predicted, _ = draw(100)
    holes = y.astype(object)
    holes[:7] = None
    made = judge(holes, predicted, empty_wrong=True, accept="error<=0.06")
    (claim,), (condition,) = made.claims, made.decisions
    known = int(np.sum(y[7:] != predicted[7:]))
    assert (claim.errors, claim.rows) == (7 + known, 100)
    assert claim.gate is not None
    assert claim.gate.lost >= 7  # every constant has them right
    least, most = bound_both_sides(known, 100, 0.05)[0], bound_both_sides(7 + known, 100, 0.05)[1]
    assert made.find_interval(claim) == (least, most)
    assert (condition.met, condition.refuted) == (False, False)  # rows without a label may be right
    with pytest.raises(InputError, match="claim nothing else"):
        judge(holes, predicted, empty_wrong=True, claim="sensitivity")


def test_what_is_no_label_counts_as_wrong_and_is_named() -> None:
    odd = np.where(np.arange(400) < 3, "unknown", PREDICTED)
    made = judge(Y, odd)
    assert made.claims[0].errors == int(np.sum(odd != Y))
    assert "and so counted as wrong: 'unknown'." in " ".join(made.summary().split())
    values: dict[str, Any] = made.to_json()
    assert values["labels"] == ["sick", "well"]
    counts = [[int(np.sum((y == Y) & (odd == one))) for one in ("sick", "well")] for y in ("sick", "well")]
    assert values["confusion"] == counts
    assert values["no_class"] == [int(np.sum(Y[:3] == label)) for label in values["labels"]]


N = np.arange(400)
EQUAL = {  # which columns a file has besides labels and predictions, and how many rows are equal
    "labels alone": ({}, 0),
    "columns of few values": ({"sex": N % 2, "stage": N % 7}, 0),
    "a score": ({"score": N * 0.37}, 0),
    "every row twice": ({"score": N % 200 * 0.1}, 400),
    "and numbered": (
        {"score": N % 200 * 0.1, "row": N + 1, "case_id": N * 1000, "name": [f"n{i}" for i in N]},
        400,
    ),
    "of one group": ({"score": N // 4 * 0.1, "unit": N // 4}, 0),
    "of other groups": ({"score": N % 200 * 0.1, "unit": N // 4}, 400),
}


@pytest.mark.parametrize("case", EQUAL)
def test_equal_rows_are_counted_by_all_columns_whatever_is_named(case: str) -> None:
    more, equal = EQUAL[case]
    labels = WORDS[N % 200 // 100]
    columns = {"y": labels, "said": labels, "older": labels} | more
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    group = "unit" if "unit" in more else None
    divided = tuple({"sex", "stage"} & {*more})
    few = table.select(["y", "said"]).slice(0, 9)
    assert not read_predictions(few, PredictionColumns("y", "said"), False).repeats
    for named in ({}, {"against": "older"}, {"score": "score"}, {"subgroups": divided} if not group else {}):
        if {*named.values()} <= {*columns, divided}:
            found = read_predictions(table, PredictionColumns("y", "said", group=group, **named), False)
            assert found.repeats == equal


SCORED = {"score": SCORE, "predicted": None}
REFUSED = {
    "'WELL', which differs from the label 'well' only by case": {"predicted": np.char.upper(PREDICTED)},
    "holds probabilities such as 0.*--score predicted --cut-off 0.5": {"predicted": SCORE},
    "'predicted' has empty cells in 400 of 400 rows.*--empty-wrong": {"predicted": [None] * 400},
    "claim=auc is about scores, and there are none": {"claim": "auc"},
    "require=ppv:0.02>=0.3 needs models, or rows that fix": SCORED | {"require": "ppv:0.02>=0.3"},
    "or required, is for scores: name --score": {"require": "sensitivity>=0.9"},
    "claim=error is about predictions": SCORED | {"claim": "error"},
    "claim=ppv is about predictions": SCORED | {"claim": "ppv"},
    "against=against is about predictions": SCORED | {"against": PREDICTED},
    "nothing says what was predicted: name its column": {"predicted": None},
    "largest_group=2 is about rows that have groups": {"largest_group": 2},
    "largest_group=2 says that no group has more": {"largest_group": 2, "groups": FOURS},
    "largest_group=0 is below 1": {"largest_group": 0, "groups": FOURS},
    "accept=error<=0.3 is about .*: add error to the claims": {"accept": "error<=0.3", "claim": "recall"},
    "accept=ppv>=0.3 is about .*: add ppv to the claims": {"accept": "ppv>=0.3"},
    "accept='row_error' takes the largest number of rows": {"accept": "row_error<=0.3"},
    "a baseline is a number": {"baseline": 3},
    "claim=better:svm needs models": {"claim": "error,better:svm"},
    "can only be counted for the error": {"empty_wrong": True, "claim": "recall"},
    "name --score, and not --prediction": {"score": SCORE, "cut_off": 0.5},
    "weights and claim=weighted_error:4 need each other": {"weights": np.ones(400)},
    "with as many rows: .* expected length 400 but got length 1": {"score": [0.5]},
    "400 different numbers: to predict numbers, name the largest": {"y": np.arange(400.0) / 7},
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_claimed_is_refused_with_its_cure(said: str) -> None:
    with pytest.raises(InputError, match=said):
        judge(**{"y": Y, "predicted": PREDICTED, **REFUSED[said]})
