"""The weighted error: its bound, exactly and in simulation, its claim, how it is stored, and refusals."""

import json
from collections.abc import Callable
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from claims.claimed import run
from numpy.typing import NDArray
from pyarrow import parquet

from ckcv_ray import Result, Study, Task, load_run
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.quantity import list_intervals
from ckcv_ray.core.bounds.betting import bound_by_betting, bound_by_optimised_bet
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import Problem
from jobs.paper.betting_coverage import WEIGHTED, measure_weighted

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
Bound = Callable[[NDArray[np.float64], NDArray[np.float64], float], float]
BOUNDS: dict[str, Bound] = {
    "betting": lambda losses, shares, delta: bound_by_betting(losses, delta, shares),
    "optimised": lambda losses, shares, delta: bound_by_optimised_bet(losses, delta, shares),
}


@pytest.fixture(scope="module")
def result() -> Result:
    return run(STUDY, TASK)


def find_claim(result: Result) -> dict[str, object]:
    return next(claim for claim in result.certificate.claims if "weighted" in claim.quantity)


def judge(result: Result) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which held-out rows the model has wrong, and their weights, in the order of the draw."""
    held, drawn = result.problem.take_held_rows(), order_held_out(N, N // 2, result.problem.draws)
    order = [result.problem.held.tolist().index(row) for row in drawn]
    return (result.models.refit.members[0].model.predict(held.X).label != held.y)[order], WEIGHTS[drawn]


# The bound


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_bound_fails_with_probability_delta_at_most(
    kinds: list[tuple[tuple[float, float], float]], name: str, delta: float
) -> None:
    """A finite sum over all sequences of rows."""
    shares, chances = np.array([pair for pair, _ in kinds]).T, [chance for _, chance in kinds]
    true = float(np.dot(np.prod(shares, axis=0), chances) / np.dot(shares[0], chances))
    failed = 0.0
    for drawn in product(range(len(kinds)), repeat=5):
        a, wrong = shares[:, drawn]
        if BOUNDS[name](wrong, a, delta) < true:
            failed += prod(chances[i] for i in drawn)
    assert failed <= delta


@pytest.mark.parametrize("name", WEIGHTED)
def test_hostile_weights_do_not_break_it(name: str) -> None:
    assert not measure_weighted(name, 66, 300).fails(0.01 / len(WEIGHTED))


def test_without_weights_it_is_the_bound_without_weights() -> None:
    losses = RNG.beta(0.4, 3, 70)
    assert bound_by_betting(losses, 0.05, np.ones(70)) == bound_by_betting(losses, 0.05)


def test_what_matters_is_the_weight_by_the_largest_and_not_its_scale() -> None:
    wrong, weights = (RNG.random(80) < 0.2).astype(float), RNG.uniform(0.5, 2, 80)
    bound = bound_by_betting(wrong, 0.05, weights / 2)
    assert bound_by_betting(wrong, 0.05, 1024 * weights / 2048) == bound
    assert bound_by_betting(wrong, 0.05, weights / 8) > bound > np.average(wrong, weights=weights)


def test_rows_that_are_not_counted_raise_the_bound() -> None:
    wrong, shares = np.repeat([1.0, 0.0], [8, 72]), np.resize([0.2, 1.0], 80)
    bounds = [bound_by_optimised_bet(wrong, 0.05, shares, copies) for copies in (0, 20, 60, 79, 80)]
    assert bounds == sorted(bounds)
    assert bounds[-2:] == [1.0, 1.0]
    assert bound_by_optimised_bet(np.ones(80), 0.05, shares) == 1.0


@pytest.mark.parametrize("shares", [np.ones(3), np.full(4, 1.1), np.full(4, -0.1), np.zeros(4), [np.nan] * 4])
def test_shares_are_one_for_each_loss_from_0_to_1(shares: NDArray[np.float64]) -> None:
    with pytest.raises(InputError, match="expected one for each of 4 losses, from 0 to 1 and not all 0"):
        bound_by_betting(np.zeros(4), 0.05, shares)


# The claim


def test_the_claim_is_what_the_rows_held_out_prove_in_the_order_drawn(result: Result) -> None:
    wrong, weights = judge(result)
    claim = find_claim(result)
    assert (claim.quantity, claim.label, claim.classifier) == ("weighted_error:3", None, "refit")
    assert (claim.errors, claim.rows, claim.delta) == (wrong.sum(), 80, 0.025)
    assert claim.bound == bound_by_betting(wrong, 0.025, weights / 3)
    assert claim.measured == pytest.approx(np.average(wrong, weights=weights), rel=1e-12)
    assert "drawn with a chance in proportion to its weight 'weight', is mis" in claim.statement
    assert "if weights are known and none is above 3 (holdout: " in claim.statement


def test_alone_it_is_of_the_model_refit_and_has_all_of_delta() -> None:
    result = run(STUDY.replace(claim="weighted_error:4.0"), TASK)
    first = result.certificate.claims.first
    wrong, weights = judge(result)
    assert (first.quantity, first.classifier, first.delta) == ("weighted_error:4", "refit", 0.05)
    assert first.bound == bound_by_betting(wrong, 0.05, weights / 4)
    assert result.summary().startswith("Nothing can be quoted yet. The bound ")  # no better than a constant


def test_rows_that_repeat_are_counted_once() -> None:
    rows = np.resize(np.arange(N // 2), N)
    twice = Task.of(X[rows], Y[rows], sample_weight=WEIGHTS[rows])
    claims = run(STUDY.replace(claim="weighted_error:3"), twice).certificate.claims
    assert claims.first.bound < claims.bound_without_copies <= 1


def test_it_is_said_what_was_counted_and_what_weights_are_for(result: Result) -> None:
    claim = find_claim(result)
    assert claim.name == "weighted error (weights up to 3)"
    assert claim.says.startswith("at most ")
    assert claim.counted.endswith(" by weight")
    words = "in fits and in the weighted error alone, which holds if weights are known, and not estimated"
    assert any(words in sentence for sentence in result.certificate.wording.statements)
    assert words in " ".join(result.summary().split())
    about = [found.quantity for found in list_intervals(result.certificate.claims, None, False, 0.05)]
    assert about == ["error"]


def test_a_bound_of_everything_proves_nothing() -> None:
    few = run(STUDY.replace(claim="weighted_error:1000"), TASK)
    assert few.certificate.claims.first.bound == 1
    assert "is proven to be at most 100.00 %, which is nothing" in " ".join(few.summary().split())


@pytest.mark.parametrize(
    ("condition", "met"), [("weighted_error:3<=0.9", True), ("weighted_error:3<=0.1", False)]
)
def test_it_may_be_a_condition(condition: str, met: bool) -> None:
    (decision,) = run(STUDY.replace(accept=condition), TASK).decisions
    assert decision.met is met
    assert "weighted error (weights up to 3) at most " in decision.proven


def test_weights_are_judged_and_verified(tmp_path: Path) -> None:
    result = run(STUDY, TASK, tmp_path / "run")
    judged = result.finished.judged
    held = result.problem.held
    assert judged["weight"].to_pylist() == WEIGHTS[held].tolist()
    assert load_run(tmp_path / "run").certificate == result.certificate
    assert verify(tmp_path / "run").ok
    without = run(STUDY.replace(claim="refit"), TASK)
    assert "weight" not in without.finished.judged.column_names


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measured": 1.5}, "outside 0..1"),
        ({"quantity": "weighted_error:0"}, "is no positive number"),
        ({"quantity": "error"}, "the error is no mean of losses"),
        ({"label": 1}, "is none of the 2 classes"),
        ({"bound": 1.5}, "outside 0..1"),
    ],
)
def test_a_forged_claim_is_refused(result: Result, change: dict[str, object], words: str) -> None:
    values = json.loads(json.dumps(result.certificate.to_json()))
    values["claims"][1].update(change)
    with pytest.raises(ValueError, match=words):
        Certificate.from_json(values)


# Before the run


def test_what_can_be_proven_at_best_is_planned() -> None:
    problem = Problem.of(STUDY, TASK)
    gate, prospect = list_prospects(problem)
    learned = np.delete(WEIGHTS, problem.held)
    assert prospect.at_most == bound_by_betting(np.zeros(80), 0.025, np.resize(learned, 80) / 3)
    assert str(prospect).startswith("weighted error (weights up to 3), with probability 97.5 %: at most ")
    planned = plan_problem(problem, (1,))
    assert planned.prospects == (gate, prospect)
    assert planned.to_json()["prospects"][1]["at_most"] == prospect.at_most
    assert list_prospects(Problem.of(STUDY.replace(claim="auc"), TASK)) == ()
    assert list_prospects(Problem.of(Study.of(learner="linear", k=(3,), certify="paper"), TASK)) == ()


def test_the_rows_that_a_distance_takes_are_planned() -> None:
    numbers = Task.of(X, X @ [1.0, 2.0, 0.0], numbers=True)
    held = {"certify": "holdout", "holdout_share": 0.5, "claim": "within:0.9"}
    study = Study.of(learner="ridge", clip=4, k=(3,), **held)
    (prospect,) = list_prospects(Problem.of(study, numbers))
    assert (prospect.needed, prospect.rows, prospect.beyond) == (29, 80, 3)
    assert "takes 29 held-out rows at least; of 80 at most 3 are further off" in str(prospect)


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
