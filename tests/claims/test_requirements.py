"""How many rows a claim by class needs: exactly those with which it can be made."""

import json
import re

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs

from ckcv_ray import Study, Task, plan
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.study import Problem


def frauds(n: int = 600, rare: int = 12) -> Task:
    rng = np.random.default_rng(0)
    y = np.arange(n) < rare
    return Task.of(rng.normal(size=(n, 2)) + 2 * y[:, None], np.where(y, "fraud", "fair"))


def needs(task: Task, **options: object) -> list:
    return list(list_requirements(Problem.of(Study.paper(C=1, gamma=1, k=3, **options), task)))


@pytest.mark.parametrize("delta", [0.05, 0.0253, 0.001])
@pytest.mark.parametrize("misses", [0, 1, 6])
@pytest.mark.parametrize("at_least", WANTED)
def test_the_fewest_rows_are_enough_and_one_less_is_not(at_least, misses, delta):
    allowed = 1 - at_least
    m = find_fewest_rows(allowed, misses, delta)
    assert clopper_pearson(misses, m, delta) <= allowed < clopper_pearson(misses, m - 1, delta)


def test_sensitivity_of_twelve_frauds_in_six_hundred_rows():
    """One recall alone needs 14 of them at 95 %; two that hold jointly need 17."""
    (alone,) = needs(frauds(), certify="holdout", claim="sensitivity")
    assert (alone.label, alone.of, [one.rows for one in alone.needed]) == ("fraud", 198, [14, 29, 59])
    fraud, fair = needs(frauds(), certify="holdout", claim="sensitivity,specificity")
    assert (fraud.quantity, fair.quantity) == ("sensitivity", "specificity")
    assert [one.rows for one in fraud.needed] == [17, 36, 72]
    first, eighty, *_ = fraud.lines()
    assert "about 4 of the 198 held-out rows are of class 'fraud', by its share in the table" in first
    assert "with probability 97.5 %" in first
    assert "at least 80 %: not before 17 held-out rows of class 'fraud', and those without a miss" in eighty
    assert "69 with 7 misses; expected in a table of 2,576 rows" in eighty
    assert "expected in" not in " ".join(fair.lines())  # there are enough


def test_a_plan_is_the_same_whichever_rows_are_drawn():
    study = {"certify": "holdout", "claim": "sensitivity,specificity,auc"}
    plans = [needs(frauds(), seed=seed, **study) for seed in range(5)]
    assert all(plan == plans[0] for plan in plans)


def test_misses_are_about_half_of_what_is_allowed():
    for claim in ("sensitivity", "auc"):
        (need,) = needs(frauds(), certify="holdout", claim=claim)
        for one in need.needed:
            allowed = 1 - one.at_least
            assert clopper_pearson(one.misses, one.rows_with_misses, need.delta) <= allowed
            assert 0.4 * allowed < one.misses / one.rows_with_misses < 0.6 * allowed


def test_what_is_needed_is_about_what_a_run_then_has():
    study = SMALL.replace(certify="holdout", claim="vote,recall,auc")
    problem = Problem.of(study, blobs(60))
    made = [c for c in run(study, blobs(60)).certificate.claims if c.certification == "holdout"]
    by_name = {(c.quantity, c.label): c for c in made}
    for need in list_requirements(problem):
        claim = by_name[need.quantity, need.label]
        assert claim.delta == need.delta
        there = int(re.search(r"\(holdout: \d+ of (\d+) ", claim.statement)[1])
        assert abs(there - need.rows) <= 6


@pytest.mark.parametrize("study", [SMALL, SMALL.replace(certify="holdout")])
def test_other_studies_need_nothing(study):
    assert list_requirements(Problem.of(study, blobs(60))) == ()


def test_a_plan_lists_them():
    task, study = frauds(), Study.paper(C=1, gamma=1, k=3, certify="holdout", claim="auc,recall")
    planned = plan(study, task.X, task.labelled(task.y))
    listed = json.loads(json.dumps(planned.to_json()))["claims"]
    assert [one.quantity for one in listed] == [one.quantity for one in planned.claims]
    rows = [one.rows for one in planned.claims]
    assert len(rows) == 3
    assert rows == sorted(rows)
    auc = next(one for one in planned.claims if str(one.quantity) == "auc")
    assert "those without a pair out of order" in " ".join(auc.lines())
