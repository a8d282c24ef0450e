"""What is said before anything is drawn: how many rows a claim needs, and which classes are rare."""

import json
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest
from conftest import Ran

from ckcv_ray import Study, Task
from ckcv_ray.claims.certify import list_needs, show_rows
from ckcv_ray.claims.predictive import Ppv
from ckcv_ray.claims.quantity import bound_count
from ckcv_ray.engine.forecast import describe_rare_classes
from ckcv_ray.errors import InputError
from ckcv_ray.study.problem import Problem


def make_table(*counts: int, groups: bool = False) -> Task:
    """A table with so many rows, or groups of two rows, of each class."""
    y = np.repeat([f"c{i}" for i in range(len(counts))], np.multiply(counts, 1 + groups))
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    return Task.of(X, y, np.arange(len(y)) // 2 if groups else None)


def test_sensitivity_of_twelve_frauds_in_six_hundred_rows() -> None:
    """One recall alone needs 14 of them at 95 %; two that hold jointly need 17."""
    alone, both = (
        list_needs(
            Problem.of(Study.paper(C=1, gamma=1, k=3, certify="holdout", claim=claim), make_table(588, 12))
        )
        for claim in ("sensitivity", "sensitivity,specificity")
    )
    assert [(need.claim, need.rows, need.needed) for need in alone] == [("sensitivity", 3, 14)]
    fraud, fair = both
    assert (fraud.claim, fraud.needed, fair.claim) == ("sensitivity", 17, "specificity")
    first, eighty, *_ = fraud.lines
    assert "with probability 97.5 %: at least 29.24 % if none of about 3 held-out rows of class 'c1" in first
    assert "at least 80.00 %: not before 17 held-out rows of class 'c1', none of them wrong" in eighty
    assert eighty.endswith("; expected in a table of 2,576 rows")
    assert "expected in" not in " ".join(fair.lines)  # there are enough


# How many rows, for assumed true values


def count_rows(asked: str, true: str | None, delta: float = 0.05) -> list[list[int]]:
    return [row["rows"] for row in show_rows(asked, true, delta)[0]["table"]]


@pytest.mark.parametrize(
    ("asked", "true"), [("sensitivity>=0.9", "0.95"), ("error<=0.1", "0.05"), ("better:svm>=0.9", "0.95")]
)
def test_what_is_a_count_of_wrong_rows_takes_the_same_number(asked: str, true: str) -> None:
    assert count_rows(asked, true) == [[116, 203, 263]]
    listed = count_rows(asked, None)
    assert [116, 203, 263] in listed
    assert listed == sorted(listed, reverse=True)
    assert listed[-1] == [29, 29, 29]  # of which none is wrong


def test_a_predictive_value_is_proven_by_both_recalls_at_half_of_delta() -> None:
    ppv, fewest = Ppv(0.02), [1 - bound_count(0, n, 0.025) for n in (79, 80)]
    assert ppv.compute(fewest[0], fewest[0]) < 0.3 <= ppv.compute(fewest[1], fewest[1])
    assert count_rows("ppv:0.02>=0.3", "1:1") == [[80, 80, 80]]
    better, worse = count_rows("ppv:0.02>=0.3", "0.9:0.99,0.9:0.98")
    assert [141, 243, 285] == better < worse
    assert count_rows("npv:0.02>=0.9", "0.2:0.99") == [[4, 8, 11]]  # if not all positives are missed
    assert ppv.compute(np.array([0.0, 0.5]), np.array([1.0, 0.9])).tolist() == [0.0, ppv.compute(0.5, 0.9)]


def test_what_is_shown_says_its_limit() -> None:
    shown, said = show_rows("error<=0.001", "0.00099", 0.01)
    assert shown["table"] == [{"true": (0.00099,), "rows": [None] * 3}]
    assert "> 1,000,000" in said
    assert "nothing beyond a guess" in show_rows("auc>=0.4", None, 0.05)[1]


@pytest.mark.parametrize(
    ("asked", "true", "why"),
    [
        ("clipped<=20", None, "losses or confidence vary.* ask for within:0.9"),
        ("ppv:0.02", None, "lacks its value"),
        ("auc>=0.8,error<=0.1", None, "ask for one condition, at its share of delta=0.05"),
        ("net_benefit:0.02:0.1>=0.5", None, "ask for less"),
        ("error<=0.05", "0.05", "true=0.05 is no better than error<=0.05"),
        ("ppv:0.02>=0.3", "0.99", "such as 0.9:0.99"),
        ("auc>=0.8", "nan", "from 0 to 1"),
    ],
)
def test_what_cannot_be_shown_is_refused(asked: str, true: str | None, why: str) -> None:
    with pytest.raises(InputError, match=why):
        show_rows(asked, true, 0.05)


def test_plan_shows_rows_without_data(ckcv: Callable[..., Ran]) -> None:
    asked = ("plan", "--show", "sensitivity>=0.9")
    code, printed, _ = ckcv(*asked, "--true", "0.95", "--delta", "0.1", "--json")
    assert code == 0
    assert [row["rows"] for row in json.loads(printed)["table"]] == count_rows(asked[-1], "0.95", 0.1)
    for words, why in (
        (("plan",), "give either DATA or --show"),
        (("plan", "twonorm:40:0", "--true", "0.9"), "--true belongs to --show"),
        ((*asked, "--k", "3", "twonorm:40:0"), "leave out --k, DATA"),
    ):
        code, _, said = ckcv(*words)
        assert (code, why in said) == (2, True), said


# Rare classes


@pytest.mark.parametrize(
    ("counts", "held", "named", "groups"),
    [([100, 98, 2], 100, "'c2' (2 groups", True), ([4] * 25, 50, "'c12' (4 rows), 20 more classes", False)],
)
def test_a_class_that_may_have_no_row_to_learn_from_is_named_with_its_chance(counts, held, named, groups):
    (said,) = describe_rare_classes(make_table(*counts, groups=groups), held)
    all_held = [
        comb(sum(counts) - units, held - units) / comb(sum(counts), held) for units in counts if units <= held
    ]
    assert named in said
    assert f"with probability {100 * (1 - float(np.prod(np.subtract(1, all_held)))):.2f} %" in said


def test_of_a_class_in_one_group_and_of_common_ones() -> None:
    for held in (0, 20):
        (said,) = describe_rare_classes(make_table(20, 19, 1, groups=True), held)
        assert said.startswith("rare: 'c2' (1 group); if the only group of a class is judged")
        assert said.endswith(": add groups of it, or leave it out")
    assert (
        describe_rare_classes(make_table(30, 30, 5), 20) == describe_rare_classes(make_table(30, 2), 0) == []
    )
    assert describe_rare_classes(Task.of(np.eye(8), np.arange(8.0), numbers=True), 4) == []


def test_it_is_said_before_a_run_by_plan_and_by_evaluate(ckcv: Callable[..., Ran], tmp_path: Path) -> None:
    few = ("--k", "3", "--n-splits", "2")
    for command, counts, words, expected in (
        ("plan", (20, 18, 2), few, "rare: 'c2' (2 rows); with probability"),
        ("run", (20, 18, 2), ("--paper", *few), ""),
        ("evaluate", (20, 19, 1), (), "rare: 'c2' (1 row); if the only row of a class is judged"),
    ):
        rows = [
            f"{i % 7},{(3 * i) % 11},{label}" for i, label in enumerate(np.repeat(["c0", "c1", "c2"], counts))
        ]
        (tmp_path / "rare.csv").write_text("\n".join(["a,b,y", *rows]))
        out = () if command == "plan" else ("--out", tmp_path / command)
        code, _, said = ckcv(command, tmp_path / "rare.csv", "--learner", "tree", *words, *out)
        assert (code, expected in said, "rare: " in said) == (0, True, bool(expected))
