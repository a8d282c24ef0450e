"""The weighted error: its bound, exactly and in simulation, its claim, how it is stored, and refusals."""

from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from claimed import run
from numpy.typing import NDArray
from pyarrow import parquet

from ckcv_ray import Result, Study, Task, load_run
from ckcv_ray.claims.paper import list_needs
from ckcv_ray.claims.quantity import Claim, list_intervals
from ckcv_ray.claims.weighted import WeightedError
from ckcv_ray.core.bounds.betting import bound_by_betting
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.problem import Problem

RNG = np.random.default_rng(34)
N = 160
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.7 * RNG.normal(size=N) > 0).astype(int)
WEIGHTS = np.where(X[:, 1] > 0.4, 3.0, 0.5)
TASK = Task.of(X, Y, sample_weight=WEIGHTS)
STUDY = Study.of(
    learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_share=0.5, claim="refit,weighted_error:3"
)
KINDS = [  # what a row counts for, whether it is wrong, and the chance of such a row
    [((1.0, 0.0), 0.6), ((1.0, 1.0), 0.1), ((0.1, 0.0), 0.1), ((0.1, 1.0), 0.2)],
    [((1.0, 1.0), 0.1), ((0.05, 0.0), 0.9)],
    [((0.25, 0.0), 0.7), ((0.25, 1.0), 0.3)],
]


@pytest.fixture(scope="module")
def result() -> Result:
    return run(STUDY, TASK)


def find_claim(result: Result) -> Claim:
    return next(claim for claim in result.certificate.claims if claim.quantity == WeightedError(3.0))


# The bound


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_bound_fails_with_probability_delta_at_most(
    kinds: list[tuple[tuple[float, float], float]], delta: float
) -> None:
    """A finite sum over all sequences of rows; the contract of quantities has that of few rows."""
    shares, chances = np.array([pair for pair, _ in kinds]).T, [chance for _, chance in kinds]
    true = float(np.dot(np.prod(shares, axis=0), chances) / np.dot(shares[0], chances))
    failed = 0.0
    for drawn in product(range(len(kinds)), repeat=5):
        a, wrong = shares[:, drawn]
        if bound_by_betting(wrong, delta, a) < true:
            failed += prod(chances[i] for i in drawn)
    assert failed <= delta


def test_what_matters_is_the_weight_by_the_largest_and_not_its_scale() -> None:
    wrong, weights = (RNG.random(80) < 0.2).astype(float), RNG.uniform(0.5, 2, 80)
    bound = bound_by_betting(wrong, 0.05, weights / 2)
    assert bound_by_betting(wrong, 0.05, 1024 * weights / 2048) == bound
    assert bound_by_betting(wrong, 0.05, weights / 8) > bound > np.average(wrong, weights=weights)


@pytest.mark.parametrize("shares", [np.ones(3), np.full(4, 1.1), np.full(4, -0.1), np.zeros(4), [np.nan] * 4])
def test_shares_are_one_for_each_loss_from_0_to_1(shares: NDArray[np.float64]) -> None:
    with pytest.raises(InputError, match="expected one for each of 4 losses, from 0 to 1 and not all 0"):
        bound_by_betting(np.zeros(4), 0.05, shares)


# The claim


def test_it_is_said_what_was_counted_and_what_weights_are_for(result: Result) -> None:
    claim = find_claim(result)
    assert claim.name == "weighted error (weights up to 3)"
    assert "drawn with a chance in proportion to its weight 'weight', is mis" in claim.statement
    assert "if weights are known and none is above 3 (holdout: " in claim.statement
    assert claim.says.startswith("at most ")
    assert claim.counted.endswith(" by weight")
    words = "in fits and in the weighted error alone, which holds if weights are known, and not estimated"
    assert any(words in sentence for sentence in result.certificate.wording.statements)
    assert words in " ".join(result.summary().split())
    about = [str(found.quantity) for found in list_intervals(result.certificate.claims, None, False, 0.05)]
    assert about == ["error"]


def test_weights_are_judged_and_verified(tmp_path: Path) -> None:
    result = run(STUDY, TASK, tmp_path / "run")
    judged = result.finished.judged
    held = result.problem.held
    assert judged["weight"].to_pylist() == WEIGHTS[held].tolist()
    assert load_run(tmp_path / "run").certificate == result.certificate
    assert verify(tmp_path / "run").ok
    without = run(STUDY.replace(claim="refit"), TASK)
    assert "weight" not in without.finished.judged.column_names


# Before the run


def test_what_can_be_proven_at_best_is_planned() -> None:
    problem = Problem.of(STUDY, TASK)
    gate, weighted = list_needs(problem)
    learned = np.resize(np.delete(WEIGHTS, problem.held), 80)
    best = ceil_percent(bound_by_betting(np.zeros(80), 0.025, learned / 3))
    assert weighted.lines[0].startswith(
        f"weighted error (weights up to 3), with probability 97.5 %: at most {best} if none"
    )
    assert gate.claim == "refit"


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        (TASK, {"claim": "weighted_error"}, "takes the largest weight that a new row can have: write"),
        (TASK, {"claim": "weighted_error:-1"}, "claim=weighted_error:-1: '-1' is no positive number"),
        (TASK, {"claim": "weighted_error:3:1"}, "takes the largest weight that a new row can have"),
        (TASK, {"claim": "weighted_error:2"}, "no weight is above 2, and 'weight' has 3 in row "),
        (Task.of(X, Y), {}, "is by the weights of rows, and there are none: name their column with --weight"),
        (TASK, {"accept": "weighted_error:3>=0.5"}, "is that it is at most a value"),
        (
            Task.of(X, Y, groups=np.arange(N) // 2, sample_weight=WEIGHTS),
            {},
            "claim=weighted_error:3 counts rows as independent, which rows of groups are not",
        ),
        (
            Task.of(X, X[:, 0], numbers=True, sample_weight=WEIGHTS),
            {"learner": "ridge", "clip": 2},
            "claim=weighted_error:3 is about classes",
        ),
    ],
)
def test_what_does_not_go_with_it_is_refused(task: Task, options: dict[str, object], words: str) -> None:
    asked = {"learner": "linear", "k": (3,), "certify": "holdout", "claim": "weighted_error:3", **options}
    with pytest.raises(InputError) as refused:
        Problem.of(Study.of(**asked), task)
    assert words in str(refused.value)


def test_weights_that_are_not_positive_are_no_judged_rows(tmp_path: Path) -> None:
    run(STUDY, TASK, tmp_path / "run")
    file = tmp_path / "run" / "judged.parquet"
    table = parquet.read_table(file)
    weights = np.where(np.arange(len(table)) == 3, -1.0, table["weight"].to_numpy())
    place = table.column_names.index("weight")
    parquet.write_table(table.set_column(place, table.schema.field(place), [weights]), file)
    with pytest.raises(StoreError, match="weight has values that are not positive"):
        load_run(tmp_path / "run")
