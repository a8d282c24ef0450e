"""What is said before anything is drawn: how many rows a claim needs, and which classes are rare."""

import json
import re
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest
from conftest import Ran

from ckcv_ray import Study, Task, plan
from ckcv_ray.claims.certify import list_needs
from ckcv_ray.claims.quantity import Need
from ckcv_ray.engine.forecast import describe_rare_classes
from ckcv_ray.study.problem import Problem

FRAUD = np.arange(600) < 12
FRAUDS = Task.of(
    np.random.default_rng(0).normal(size=(600, 2)) + 2 * FRAUD[:, None], np.where(FRAUD, "fraud", "fair")
)


def list_needed(**options: object) -> list[Need]:
    return list_needs(Problem.of(Study.paper(C=1, gamma=1, k=3, certify="holdout", **options), FRAUDS))


def test_sensitivity_of_twelve_frauds_in_six_hundred_rows() -> None:
    """One recall alone needs 14 of them at 95 %; two that hold jointly need 17."""
    (alone,) = list_needed(claim="sensitivity")
    assert (alone.claim, alone.rows, alone.needed) == ("sensitivity", 3, 14)
    fraud, fair = list_needed(claim="sensitivity,specificity")
    assert (fraud.claim, fraud.needed, fair.claim) == ("sensitivity", 17, "specificity")
    first, eighty, ninety, most = fraud.lines
    assert "with probability 97.5 %: at least 29.24 % if none of about 3 held-out rows of class 'fr" in first
    assert "at least 80.00 %: not before 17 held-out rows of class 'fraud', none of them wrong" in eighty
    assert eighty.endswith("; expected in a table of 2,576 rows")
    assert ": not before 36 held-out" in ninety
    assert ": not before 72 held-out" in most
    assert "expected in" not in " ".join(fair.lines)  # there are enough


def test_a_plan_lists_what_claims_need() -> None:
    study = Study.paper(C=1, gamma=1, k=3, certify="holdout", claim="auc,recall")
    planned = plan(study, FRAUDS.X, FRAUDS.labelled(FRAUDS.y))
    listed = json.loads(json.dumps(planned.to_json()))["claims"]
    assert [one["claim"] for one in listed] == [one.claim for one in planned.claims]
    assert sorted(one.claim for one in planned.claims) == ["auc", "recall", "recall"]


# Rare classes


def table(*counts: int, groups: bool = False) -> Task:
    """A table with so many rows, or groups of two rows, of each class."""
    y = np.repeat([f"c{i}" for i in range(len(counts))], np.multiply(counts, 1 + groups))
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    return Task.of(X, y, np.arange(len(y)) // 2 if groups else None)


def chance(counts: list[int], held: int) -> float:
    """About the probability that a class has all its units held out, by counting."""
    n = sum(counts)
    return 1 - float(np.prod([1 - comb(n - u, held - u) / comb(n, held) for u in counts if u <= held]))


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize(
    ("counts", "held", "named"),
    [
        ([100, 98, 2], 100, "'c2' (2"),
        ([58, 2], 30, "'c1' (2"),
        ([4] * 25, 50, "'c12' (4 rows), 20 classes more"),
        ([6] * 300, 594, "'c101' (6 rows), 295 classes more"),
    ],
)
def test_a_class_that_may_have_no_row_to_learn_from_is_named_with_what_works(counts, held, named, groups):
    task = table(*counts, groups=groups)
    (said,) = describe_rare_classes(task, held)
    assert (named.replace("rows", "groups") if groups else named) in said
    assert f"with probability {100 * chance(counts, held):.2f} %" in said
    assert "choose --paper" in said
    assert ("leave it out" in said) == (len(counts) == 3)  # else too few are left
    share = float(re.search(r"--holdout-share (0\.\d+)", said)[1])
    n = task.n_units
    assert chance(counts, int(share * n)) <= 0.05 < chance(counts, int((share + 0.01) * n) + 1)
    assert describe_rare_classes(task, int(share * n)) == []


def test_of_a_class_that_no_share_helps_and_of_common_ones() -> None:
    (said,) = describe_rare_classes(table(28, 2), 15)
    assert "--paper" in said
    assert "--holdout-share" not in said
    for held in (0, 20):
        (said,) = describe_rare_classes(table(20, 19, 1, groups=True), held)
        assert said.startswith("rare: 'c2' (1 group); where a class of one group is judged, it was not learn")
        assert said.endswith(": leave it out, or add groups of it")
    assert describe_rare_classes(table(30, 30, 5), 20) == describe_rare_classes(table(30, 2), 0) == []
    assert describe_rare_classes(Task.of(np.eye(8), np.arange(8.0), numbers=True), 4) == []


def test_it_is_said_before_a_run_by_plan_and_by_evaluate(ckcv: Callable[..., Ran], tmp_path: Path) -> None:
    few, two, one = ("--k", "3", "--n-splits", "2"), (20, 18, 2), (20, 19, 1)
    for command, counts, words, expected in (
        ("plan", two, few, "rare: 'c2' (2 rows); with probability"),
        ("run", two, few, "rare: 'c2' (2 rows); with probability"),
        ("run", two, ("--paper", *few), ""),
        ("evaluate", one, (), "rare: 'c2' (1 row); where a class of one row is judged"),
    ):
        labels = np.repeat(["c0", "c1", "c2"], counts)
        rows = [f"{i % 7},{(3 * i) % 11},{label}" for i, label in enumerate(labels)]
        (tmp_path / "rare.csv").write_text("\n".join(["a,b,y", *rows]))
        out = () if command == "plan" else ("--out", tmp_path / f"{command}{len(words)}")
        code, _, said = ckcv(command, tmp_path / "rare.csv", "--learner", "tree", *words, *out)
        assert (code, expected in said, "rare: " in said) == (0, True, bool(expected))
