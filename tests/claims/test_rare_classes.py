"""What is said of rare classes before anything is drawn: it depends on the table alone, and is true."""

import re
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest
from conftest import Ran

from ckcv_ray import Task
from ckcv_ray.engine.forecast import describe_rare_classes


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


def test_no_share_is_advised_if_none_works():
    (said,) = describe_rare_classes(table(28, 2), 15)
    assert "--paper" in said
    assert "--holdout-share" not in said


@pytest.mark.parametrize("held", [0, 20])
def test_a_class_in_a_single_group_is_always_said(held):
    (said,) = describe_rare_classes(table(20, 19, 1, groups=True), held)
    assert said.startswith("rare: 'c2' (1 group); where a class of one group is judged, it was not learned")
    assert said.endswith(": leave it out, or add groups of it")


def test_nothing_is_said_of_common_classes():
    assert describe_rare_classes(table(30, 30, 5), 20) == describe_rare_classes(table(30, 2), 0) == []
    assert describe_rare_classes(Task.of(np.eye(8), np.arange(8.0), numbers=True), 4) == []


def test_it_is_said_before_a_run_by_plan_and_by_evaluate(ckcv: Callable[..., Ran], tmp_path: Path) -> None:
    def write(*counts: int) -> Path:
        labels = [f"c{i}" for i, count in enumerate(counts) for _ in range(count)]
        rows = [f"{i % 7},{(3 * i) % 11},{label}" for i, label in enumerate(labels)]
        (tmp_path / "rare.csv").write_text("\n".join(["a,b,y", *rows]))
        return tmp_path / "rare.csv"

    tree = ("--learner", "tree")
    few = ("--k", "3", "--n-splits", "2")
    for words in (("plan",), ("run", "--out", tmp_path / "run")):
        code, _, said = ckcv(words[0], write(20, 18, 2), *words[1:], *tree, *few)
        assert (code, "rare: 'c2' (2 rows); with probability" in said) == (0, True)
    code, _, said = ckcv("run", write(20, 18, 2), "--out", tmp_path / "paper", *tree, "--paper", *few)
    assert (code, "rare: " in said) == (0, False)
    code, _, said = ckcv("evaluate", write(20, 19, 1), "--out", tmp_path / "scores", *tree)
    assert (code, "rare: 'c2' (1 row); where a class of one row is judged" in said) == (0, True)
