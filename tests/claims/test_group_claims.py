"""Claims about the rows of a new group: what they are computed from, what they say, and exact coverage."""

import numpy as np
import pytest
from claimed import run
from conftest import blobs

from ckcv_ray import Result, Study, Task
from ckcv_ray.claims.certify import compute_baselines
from ckcv_ray.claims.rules import Rule
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import Schema
from ckcv_ray.tables.target import ClassTarget
from ckcv_ray.tables.units import Groups

GROUPS = np.random.default_rng(1).permutation(np.repeat(np.arange(30), 3))
TASK = Task.of(blobs(90).X, blobs(90).y, groups=GROUPS)
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 6), n_splits=5)
STUDIES = {
    "paper": SMALL,
    "rotation": SMALL.replace(resampling="rotation"),
    "holdout": SMALL.replace(certify="holdout", holdout_share=0.4, claim=("refit", "vote")),
}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {name: run(study, TASK) for name, study in STUDIES.items()}


@pytest.mark.parametrize("name", STUDIES)
def test_sentences_speak_of_a_new_group(results: dict[str, Result], name: str) -> None:
    certificate = results[name].certificate
    for claim in certificate.claims:
        assert claim.statement.startswith("Assuming independent groups of rows from one source")
        assert "of a new group's rows, each classified by" in claim.statement
    assert "rows of one group may be related in any way" in " ".join(certificate.assumptions)
    assert not any("repeated measurements" in one for one in certificate.not_covered)
    assert "of a new group's rows on average at most" in results[name].claim_for(Rule("vote"))
    assert ", by group (" in results[name].summary(details=True)
    assert "mean 95 % bound 1" not in results[name].summary(details=True)  # there is none for a class


def test_the_constant_is_judged_by_groups_as_the_claims_are() -> None:
    """Nine rows of one group are of class 1; five groups of a row each, of class 0: most groups are of 0."""
    y = np.array([1] * 9 + [0] * 5 + [1] * 2, dtype=np.int32)
    groups = np.array([0] * 9 + [1, 2, 3, 4, 5] + [6, 6])
    task = Task(
        np.arange(16.0)[:, None],
        y,
        ClassTarget("y", (0, 1)),
        Schema.of_numbers("a"),
        Groups(16, groups=groups, column="g"),
    )
    (baseline,) = compute_baselines(Problem.of(SMALL.replace(k=3), task))
    assert (baseline.predicted, baseline.errors, baseline.rows) == (0, 11, 16)
    assert baseline.error == pytest.approx(2 / 7)
