"""What is proven: weights that sum to one, losses, held-out rows; and the rule applied is the one claimed."""

from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from claimed import REFIT, SMALL, predict_held, run
from conftest import blobs
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from ckcv_ray import Result, StoreError, Study, Task, load_run
from ckcv_ray.claims.certify import compute_baselines, prove, weight
from ckcv_ray.claims.error import Clipped, Within
from ckcv_ray.claims.quantity import Claim, HeldOutPredictions
from ckcv_ray.claims.rules import BY, Rule, parse_rule
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.errors import ONE, InputError, ceil_percent
from ckcv_ray.learners.ensemble import Ensemble, Member, Models
from ckcv_ray.study.problem import Problem

HELD = Study.of(k=(3,), n_splits=3, certify="holdout", holdout_share=0.5)

# paper

STUDIES = {
    "every k": Study(),
    "equal fold sizes": Study.paper(k=(3, 40, 41, 42, 43, 44, 45)),
    "rotation, every k": Study.paper(resampling="rotation"),
}


@pytest.mark.parametrize("n", [45, 400])
@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES.keys())
def test_weights_sum_to_one_over_the_candidates_of_the_study_and_never_to_more(study: Study, n: int) -> None:
    problem = Problem.of(study, blobs(n))
    total = problem.n_settings * sum(weight(problem, size.k) for size in problem.sizes)
    assert 1 - Fraction(1, 10**30) < total <= 1


@pytest.mark.parametrize("n", [3, 4])
def test_weights_of_the_smallest_tables(n: int) -> None:
    """Of so few rows as no task has; k = 4 has the fold size of k = 3."""
    study = Study()
    problem = replace(Problem.of(study, blobs(60)), sizes=study.resampling.fold_sizes(n))
    assert weight(problem, 3) == Fraction(1, 143)


def test_paper_claims_nothing_where_the_safe_bound_is_not_checked() -> None:
    problem = Problem.of(Study.paper(C=1.0, gamma=1.0, k=3, n_splits=2), blobs(18_001))
    model = SimpleNamespace(C=1.0, gamma=1.0)
    members = (Member(3, split, model, (wrong, 0), (3000, 3000)) for split, wrong in enumerate((300, 320)))
    (claim,) = prove(HeldOutPredictions(problem, Models(Ensemble(tuple(members)))), 3)
    assert (claim.bound, claim.errors, claim.rows) == (1.0, 620, 12_000)
    assert "no bound" in claim.statement


# holdout


def test_what_is_held_out_is_touched_by_nothing() -> None:
    """Other inputs and labels in the held-out rows: the same candidate, l_ee and ensemble; other claims."""
    study = SMALL.replace(certify="holdout", holdout_share=0.33, claim=("vote", "refit"))
    task = blobs(60)
    held = hold_out(60, 0.33, Draws(study.seed, task.salt))
    X, y = task.X.copy(), task.y.copy()
    X[held], y[held] = X[held][::-1], 1 - y[held]
    one, other = run(study, task), run(study, replace(Task.of(X, task.labelled(y)), salt=task.salt))
    assert len(held) == one.certificate.n_held == 19
    for found in ("l_ms", "l_ee", "errors", "setting", "k"):
        assert getattr(one.certificate, found) == getattr(other.certificate, found)
    for a, b in zip(one.ensemble.members, other.ensemble.members, strict=True):
        np.testing.assert_array_equal(a.model.dual_coef, b.model.dual_coef)
        np.testing.assert_array_equal(a.model.vectors, b.model.vectors)
    assert one.run_id != other.run_id
    assert one.certificate.claims != other.certificate.claims


# Losses of numbers, groups and weighted rows


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_predictions_that_are_not_finite_prove_nothing_if_there_are_many(bad: float) -> None:
    rng = np.random.default_rng(3)
    y, held = rng.standard_t(2.5, 120), np.arange(60)
    study = HELD.replace(learner="ridge", clip=4.0, claim="within:0.9")
    problem = Problem.of(study, Task.of(rng.normal(size=(120, 2)), y, numbers=True))
    problem = replace(problem, task=problem.all_rows.take_part(np.arange(60, 120)), held=held)
    one, all_of_them = (predict_held(problem, np.where(held < n, bad, y[:60] + 1)) for n in (1, 60))
    (claim,), (nothing,) = (Within(0.9).claim(held, REFIT) for held in (one, all_of_them))
    assert (claim.bound, claim.errors, claim.rows) == (pytest.approx(1.0), 1, 60)
    assert nothing.bound is None
    assert nothing.statement.startswith("Nothing can be claimed for the error of 90 % of new rows of")
    assert nothing.limit == "any amount"


@given(st.integers(1, 60), st.floats(0.0, 1.0), st.floats(0.01, 0.3))
@example(14, 0.8966094887136224, 0.0625)  # where the bound falls faster than the loss rises
def test_the_contrary_of_a_mean_error_allows_for_losses_that_were_rounded_up(m, share, delta):
    losses = ClippedErrors(1.0).measure_losses(np.zeros(m), np.full(m, share))
    claim = Claim(Clipped(1.0), "refit", 1.0, delta, "", measured=int(losses.sum()) / (ONE * m))
    exact = 1 - bound_mean_loss([ceil((1 - share) * m * ONE)], m, delta)
    assert Clipped(1.0).find_least(claim, m, True) <= exact


def test_the_constant_is_judged_by_groups_as_the_claims_are() -> None:
    """Nine rows of one group are of class 1; five groups of a row each, of class 0: most groups are of 0."""
    y, groups = np.repeat([1, 0, 1], [9, 5, 2]), [0] * 9 + [1, 2, 3, 4, 5] + [6, 6]
    task = Task.of(np.tile(np.arange(16.0), 2)[:, None], np.tile(y, 2), groups=np.array([*groups, *groups]))
    (baseline,) = compute_baselines(Problem.of(SMALL.replace(k=3), task))
    assert (baseline.predicted, baseline.errors, baseline.rows) == (0, 22, 32)
    assert baseline.error == pytest.approx(2 / 7)


def test_weights_that_are_not_positive_are_no_judged_rows(tmp_path: Path) -> None:
    task = blobs(120)
    weighted = Task.of(task.X, task.y, sample_weight=np.resize([0.5, 3.0, 0.5], 120))
    run(HELD.replace(learner="linear", claim="weighted_error:3"), weighted, tmp_path / "run")
    file = tmp_path / "run" / "judged.parquet"
    table = parquet.read_table(file)
    weights = np.where(np.arange(len(table)) == 3, -1.0, table["weight"].to_numpy())
    place = table.column_names.index("weight")
    parquet.write_table(table.set_column(place, table.schema.field(place), [weights]), file)
    with pytest.raises(StoreError, match="weight has values that are not positive"):
        load_run(tmp_path / "run")


# The rule applied is the rule that is claimed


@pytest.fixture(scope="module")
def paper() -> Result:
    return run(SMALL.replace(seed=2), blobs(60))


def test_predictions_are_told_with_the_claim_that_covers_them(paper: Result) -> None:
    held = run(SMALL.replace(certify="holdout", claim=("vote",)), blobs(60))
    assert "twice the bound for a member drawn independently" in paper.claim_for(paper.rule(by="vote"))
    assert paper.claim_for(paper.rule(by="member:2")).endswith("nothing is proven for it alone")
    assert "nothing is proven of this model" in held.claim_for(held.rule(by="full"))
    (vote,) = held.certificate.claims
    told = held.claim_for(held.rule(by="vote"))
    assert all(said in told for said in (f"at most {ceil_percent(vote.bound)} ", f"({vote.method}); "))
    assert held.rule() == held.rule(by="vote") == Rule("vote")
    assert "nothing is proven for it alone" in held.claim_for(held.rule(seed=1))
    assert f"({paper.certificate.first.method}); " in paper.claim_for(paper.rule(seed=1))


def test_members_are_drawn_from_all_of_f_star_and_a_seed_repeats_one_call(paper: Result) -> None:
    (claim,), drawn = paper.certificate.claims, paper.rule(seed=4)
    assert drawn.classifier() in claim.statement
    for rule in (drawn, paper.rule()):
        assert ("other calls with it repeat its draws" in paper.claim_for(rule)) == (rule is drawn)
    X: Any = np.zeros((200, 2))
    members = paper.predictions(X, drawn).member.tolist()
    assert set(members) == set(range(5))
    assert members == paper.predictions(X, paper.rule("random", seed=4)).member.tolist()
    assert members != paper.predictions(X, paper.rule()).member.tolist()


def test_a_value_of_by_names_one_rule_and_nothing_else_does() -> None:
    assert len({parse_rule(by) for by in BY}) == len(BY)
    assert all(by == rule.name for by, rule in BY.items())
    assert parse_rule("member:7") == parse_rule("member:07") == Rule("member:7")
    for by in ("vote ", "member", "member:-1", "member:1.0"):
        with pytest.raises(InputError, match=r"is not known: choose from auto, vote, .*member:0"):
            parse_rule(by)
