"""How many rows a claim by class needs: exactly those with which it can be made."""

import json

import numpy as np

from ckcv_ray import Study, Task, plan
from ckcv_ray.claims.certify import list_needs
from ckcv_ray.claims.quantity import Need
from ckcv_ray.study.problem import Problem


def frauds(n: int = 600, rare: int = 12) -> Task:
    rng = np.random.default_rng(0)
    y = np.arange(n) < rare
    return Task.of(rng.normal(size=(n, 2)) + 2 * y[:, None], np.where(y, "fraud", "fair"))


def list_needed(task: Task, **options: object) -> list[Need]:
    return list_needs(Problem.of(Study.paper(C=1, gamma=1, k=3, **options), task))


def test_sensitivity_of_twelve_frauds_in_six_hundred_rows():
    """One recall alone needs 14 of them at 95 %; two that hold jointly need 17."""
    (alone,) = list_needed(frauds(), certify="holdout", claim="sensitivity")
    assert (alone.claim, alone.rows, alone.needed) == ("sensitivity", 4, 14)
    fraud, fair = list_needed(frauds(), certify="holdout", claim="sensitivity,specificity")
    assert (fraud.claim, fraud.needed, fair.claim) == ("sensitivity", 17, "specificity")
    first, eighty, ninety, most = fraud.lines
    assert "about 4 of the 198 held-out rows are of class 'fraud', by its share in the table" in first
    assert "with probability 97.5 %" in first
    assert "at least 80 %: not before 17 held-out rows of class 'fraud', all of them right" in eighty
    assert "69 with 7 misses; expected in a table of 2,576 rows" in eighty
    assert ": not before 36 held-out" in ninety
    assert ": not before 72 held-out" in most
    assert "expected in" not in " ".join(fair.lines)  # there are enough


def test_a_plan_lists_them():
    task, study = frauds(), Study.paper(C=1, gamma=1, k=3, certify="holdout", claim="auc,recall")
    planned = plan(study, task.X, task.labelled(task.y))
    listed = json.loads(json.dumps(planned.to_json()))["claims"]
    assert [one["claim"] for one in listed] == [one.claim for one in planned.claims]
    assert sorted(one.claim for one in planned.claims) == ["auc", "recall", "recall"]
