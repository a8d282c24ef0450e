"""What is proven: weights that sum to one, levels, and rows held out."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs

from ckcv_ray.claims.certify import claim_random_member, weight
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.learners.ensemble import Ensemble, Member, Models
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study
from ckcv_ray.tables.task import Task

# paper


def small(study, n):
    """The problem of a study on so few rows as no task has."""
    problem = Problem.of(study, blobs(60))
    return replace(problem, sizes=study.resampling.fold_sizes(n))


STUDIES = {
    "every k": Study(),
    "equal fold sizes": Study.paper(k=(3, 40, 41, 42, 43, 44, 45)),
    "rotation, every k": Study.paper(resampling="rotation"),
}


@pytest.mark.parametrize("n", [45, 400])
@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES.keys())
def test_weights_sum_to_one_over_the_candidates_of_the_study_and_never_to_more(study, n):
    problem = Problem.of(study, blobs(n))
    total = problem.n_settings * sum(weight(problem, size.k) for size in problem.sizes)
    assert 1 - Fraction(1, 10**30) < total <= 1


def test_weights_of_the_smallest_tables():
    assert weight(small(Study(), 3), 3) == Fraction(1, 143)
    assert weight(small(Study(), 4), 3) == Fraction(1, 143)  # k = 4 has the fold size of k = 3


def test_paper_claims_nothing_where_the_safe_bound_is_not_checked():
    problem = Problem.of(Study.paper(C=1.0, gamma=1.0, k=3, n_splits=2), blobs(18_001))
    members = (Member(3, split, None, (wrong, 0), (3000, 3000)) for split, wrong in enumerate((300, 320)))
    claim = claim_random_member(HeldOutPredictions(problem, Models(Ensemble(tuple(members)))), 3)
    assert (claim.bound, claim.errors, claim.rows) == (1.0, 620, 12_000)
    assert "no bound" in claim.statement


# holdout


def test_what_is_held_out_is_touched_by_nothing():
    """Other inputs and labels in the held-out rows: the same candidate, l_ee and ensemble; other claims."""
    study = SMALL.replace(certify="holdout", holdout_share=0.33, claim=("vote", "refit"))
    task = blobs(60)
    held = hold_out(60, 0.33, Draws(study.seed, task.salt))
    X, y = task.X.copy(), task.y.copy()
    X[held], y[held] = X[held][::-1], 1 - y[held]
    one, other = run(study, task), run(study, replace(Task.of(X, task.labelled(y)), salt=task.salt))
    assert len(held) == one.certificate.n_held == 19
    assert (one.setting, one.k) == (other.setting, other.k)
    assert one.certificate.l_ms == other.certificate.l_ms
    assert one.l_ee == other.l_ee
    assert one.certificate.errors == other.certificate.errors
    for a, b in zip(one.ensemble.members, other.ensemble.members, strict=True):
        np.testing.assert_array_equal(a.model.dual_coef, b.model.dual_coef)
        np.testing.assert_array_equal(a.model.vectors, b.model.vectors)
    assert one.run_id != other.run_id
    assert one.certificate.claims != other.certificate.claims
